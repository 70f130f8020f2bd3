"""The faces of a release: the same tables under other promises, beside the unbiased ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.tables import Values
from hushcube.designs.answers import Answers, FormAnswers
from hushcube.model.arrays import Floats
from hushcube.model.facts import Facts
from hushcube.model.form import Form
from hushcube.model.marginal import position_rows

if TYPE_CHECKING:
    from hushcube.faces.face import Face

Codes = NDArray[np.integer]


@dataclass(frozen=True, eq=False, repr=False)
class PublishedFace:
    """A face of a release: its values, what was done to get them, and the synthetic people behind them, if any."""

    name: str
    description: dict[str, Any]
    """`asked` (the choices), `report` (what came out), `facts` (in the form of a facts file), for the manifest."""
    source: Values
    read_people: Callable[[], Codes] | None = None

    def __repr__(self) -> str:
        return f"PublishedFace({self.name!r}, found by {self.description.get('report', {}).get('found_by')})"

    @classmethod
    def of(cls, face: Face) -> PublishedFace:
        """A face that has just been made."""
        people = face.people
        facts = face.value.public_facts
        description = {
            "asked": face.value.to_dict(),
            "report": face.report,
            "facts": facts.to_dict() if facts else None,
            "std_error": "of the unbiased estimate",
        }
        return cls(face.name, description, FormsFromCells(face.tables), None if people is None else lambda: people)

    def facts(self, schema: Any) -> Facts:
        """The public facts that the face satisfies: the publisher's claims, not measured."""
        raw = self.description.get("facts")
        return Facts.from_dict(raw, schema) if raw else Facts.none(schema)


class FormsFromCells:
    """Answers, and forms as sums of their carriers' cells: all of it adds up."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The values of marginals of one shape."""
        return self._answers.tables(rows, shape)

    def form(self, form: Form) -> Floats:
        """The values of a form, unless the answers have a way of their own."""
        if isinstance(self._answers, FormAnswers):
            return self._answers.form(form)
        carrier = position_rows(form.marginal)
        return form.evaluate(self._answers.tables(carrier, form.carrier_shape)[0])
