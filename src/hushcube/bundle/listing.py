"""The list of the tables of a face, with their files and errors: index.csv, and what other lists are made of.

At the top, index.csv lists the tables of all other faces after the unbiased ones.

Of a pack there is one line: what is said of each of its tables, of which there may be a million, is in its own index.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from hushcube.bundle.tables import Entry, Rows, published_family, safe_names, table_margins, written
from hushcube.faces.value import UNBIASED
from hushcube.model.schema import COUNT
from hushcube.model.workload import Quantity
from hushcube.planning.plan import Plan
from hushcube.shown import number
from hushcube.text import guarded, visible

_COLUMNS: Final = ("table", "title", "attributes", "cells", "file", "face")


class Line(NamedTuple):
    """One table, or a pack of them."""

    word: str
    title: str
    attributes: str
    cells: int
    file: str
    errors: tuple[float, ...]
    """Of the count and of each sum: the standard error of a cell, and the margin of its 95% interval.

    Where cells differ, the root mean square of their standard errors, and no number for the margin.
    """

    @property
    def std_error(self) -> str:
        """That of the count, for people; those of the tables of a pack differ."""
        return "" if math.isnan(self.errors[0]) else number(self.errors[0])


@dataclass(frozen=True)
class Listing:
    """The tables of a face, which have `entries` in the manifest, as seen from a `place`: the empty one at the top."""

    plan: Plan
    face: str
    entries: Sequence[Entry]
    place: str
    private: bool
    folder: str = ""
    """Where the files of the face are."""
    others: Sequence[Listing] = ()
    """At the top, the other faces of the release."""

    @classmethod
    def of(
        cls, plan: Plan, face: str, entries: Sequence[Entry], places: Mapping[str, str], *, private: bool
    ) -> Listing:
        """That of a face of a release with such entries in its manifest, and such folders of faces."""

        def one(name: str, seen_from: str, others: Sequence[Listing] = ()) -> Listing:
            own = [entry for entry in entries if entry["face"] == name]
            return cls(plan, name, own, seen_from, private, places.get(name, ""), others)

        if face != UNBIASED:
            return one(face, places[face])
        return one(face, "", [one(other, "") for other in places])

    @property
    def is_whole(self) -> bool:
        """Whether these are the tables at the top, which all faces are made from."""
        return self.face == UNBIASED

    @property
    def packs(self) -> list[Entry]:
        """The entries of packs."""
        return [entry for entry in self.entries if "pack" in entry]

    @cached_property
    def lines(self) -> list[Line]:
        """All of them, in the order of their files."""
        return [*(self._packs() if self.packs else self._tables()), *self._forms()]

    def _packs(self) -> Iterator[Line]:
        family, none = published_family(self.plan), (math.nan,) * (2 * len(self._quantities))
        for pack in self.packs:
            order = pack["pack"]
            title = f"{len(family.levels[order]):,} tables of {order} attribute{'' if order == 1 else 's'}"
            cells = int(family.cells[family.starts[order] : family.starts[order + 1]].sum())
            yield Line(f"{order}-way", title, "", cells, self._relative(pack["file"]), none)

    def _tables(self) -> Iterator[Line]:
        names = self.plan.schema.names
        files = {tuple(entry["attributes"]): entry["file"] for entry in self.entries if "form" not in entry}
        for batch in published_family(self.plan).batches:
            for marginal, *errors in zip(batch.rows.tolist(), *self._errors(batch.rows), strict=True):
                own = tuple(names[i] for i in marginal)
                told = ("*".join(own) or "total", self._title(marginal) or "Total", "*".join(own))
                yield Line(*told, math.prod(batch.shape), self._relative(files[own]), tuple(errors))

    def _forms(self) -> Iterator[Line]:
        """The tables of ranges and queries, of which each has a file of its own."""
        files = {entry["form"]: entry["file"] for entry in self.entries if "form" in entry}
        for form in self.plan.workload.forms:
            errors: list[float] = []
            for quantity in self._quantities:
                variances = (
                    factor**2 * float(np.mean(self.plan.designs[part].errors.form_variances(form, exact=True)))
                    for part, factor in self._terms(quantity)
                )
                errors += [math.sqrt(sum(variances)), math.nan]
            names = "*".join(self.plan.schema.names[i] for i in form.marginal)
            title = f"{self._title(form.marginal)} ({visible(form.word)})"
            yield Line(form.word, title, names, form.cells, self._relative(files[form.word]), tuple(errors))

    def index(self) -> str:
        """The text of index.csv: what a program needs to find a table, and its errors."""
        text = io.StringIO()
        told = csv.writer(text, lineterminator="\n")
        words = safe_names(self.plan)
        starts = ["" if q.kind == "count" else f"sum_{words[q.measure]}_" for q in self._quantities]
        errors = [f"{start}{name}" for start in starts for name in ("std_error", "margin_95")]
        mark = [] if self.private else ["NOT PRIVATE"]
        told.writerow([*_COLUMNS, *errors, *["warning"] * len(mark)])
        for listing in (self, *self.others):
            for word, title, attributes, *place, own in listing.lines:
                known = [*map(_digits, own), *[""] * (len(errors) - len(own))]  # other faces have no sums
                told.writerow([word, guarded(title), attributes, *place, listing.face, *known, *mark])
        return text.getvalue()

    @cached_property
    def _quantities(self) -> list[Quantity]:
        """What has standard errors: the count, and at the top sums."""
        return [quantity for quantity in written(self.plan)[: None if self.is_whole else 1] if quantity.kind != "avg"]

    def _terms(self, quantity: Quantity) -> list[tuple[str, float]]:
        """The parts that a quantity is made of, and their factors."""
        if quantity.kind == "count":
            return [(COUNT, 1.0)]
        measure = self.plan.schema.measure(quantity.measure)
        return [(quantity.part, float(measure.resolution)), (COUNT, float(measure.center))]

    def _errors(self, rows: Rows) -> list[list[float]]:
        """Standard errors and margins of marginals of one shape, one list after the other."""
        found: list[list[float]] = []
        for quantity in self._quantities:
            terms = [(self.plan.designs[part], factor) for part, factor in self._terms(quantity)]
            variances = [f**2 * d.errors.exact_cell_variances[d.request.marginals.find(rows)] for d, f in terms]
            widths = [(f * table_margins(d, rows)) ** 2 for d, f in terms]
            found += [np.sqrt(np.sum(squares, axis=0)).tolist() for squares in (variances, widths)]
        return found

    @cached_property
    def _titles(self) -> list[str]:
        return [visible(attribute.shown_name) for attribute in self.plan.schema.attributes]

    def _title(self, marginal: Sequence[int]) -> str:
        titles = self._titles
        return " by ".join([titles[i] for i in marginal])

    def _relative(self, file: str) -> str:
        return file.removeprefix(f"{self.place}/") if self.place else file


def _digits(error: float) -> str:
    """As many as another machine computes alike; nothing where there is no number."""
    return "" if math.isnan(error) else f"{error:.7g}"
