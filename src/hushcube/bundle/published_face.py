"""The faces of a release: the same tables under other promises, beside the unbiased ones.

Synthetic people as files: one row each, one labelled column for each attribute.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.tables import Values
from hushcube.designs.answers import Answers, FormAnswers
from hushcube.model.arrays import Floats, position_rows
from hushcube.model.facts import Facts
from hushcube.model.form import Form

if TYPE_CHECKING:
    from hushcube.faces.face import Face
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from hushcube.bundle.reading import damaged, parquet
from hushcube.bundle.stamp import file_stamp
from hushcube.errors import OutputError
from hushcube.faces.value import MOST_PEOPLE
from hushcube.model.schema import Schema

Codes = NDArray[np.integer]
SUFFIXES: Final = (".parquet", ".csv")


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


def write_people(codes: Codes, schema: Schema, path: Path, *, private: bool) -> None:
    """Write people as Parquet or CSV, by the file's suffix; Parquet has room for the stamp of a seeded release."""
    table = pa.table(
        {
            attribute.name: pa.DictionaryArray.from_arrays(
                np.ascontiguousarray(codes[:, i]).astype(np.int32), pa.array(attribute.labels, pa.string())
            )
            for i, attribute in enumerate(schema.attributes)
        },
        metadata=file_stamp(private=private),
    )
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    elif path.suffix == ".csv":
        plain = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
        pyarrow.csv.write_csv(plain, path)
    else:
        raise OutputError("out", f"{path.suffix or 'no suffix'} is not a kind of file", "end it in .parquet or .csv")


def read_people(folder: Path, name: str, schema: Schema) -> Codes:
    """The positions of people from a Parquet file of a release, which `write_people` wrote."""
    with parquet(folder, name) as file:
        if file.schema_arrow.names != list(schema.names):
            raise damaged(name, "does not fit the schema")
        if file.metadata.num_rows > MOST_PEOPLE:
            raise damaged(name, f"has {file.metadata.num_rows:,} people, more than any release")
        table = file.read()
        columns = []
        for attribute in schema.attributes:
            column = table.column(attribute.name).combine_chunks().cast(pa.string())
            found = pa.compute.index_in(column, value_set=pa.array(attribute.labels, pa.string()))
            if found.null_count:
                raise damaged(name, "does not fit the schema")
            columns.append(found.to_numpy(zero_copy_only=False))
        return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.int64)
