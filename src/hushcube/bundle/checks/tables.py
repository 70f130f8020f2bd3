"""The tables of one face, read from their files in blocks of one shape; labels are checked on the way.

A file of its own must have its attributes as columns; in a pack a table is a run of rows. In both, the labels must be
the full product in schema order. What does not fit is reported once and left out of all other checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.checks.files import Entry, Opened
from hushcube.bundle.checks.verdict import Findings
from hushcube.bundle.reading import inside, parquet, row_groups, unreadable
from hushcube.bundle.tables import column_names, positions, written
from hushcube.designs.design import Design
from hushcube.errors import BundleError
from hushcube.faces.value import UNBIASED
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal, position_rows
from hushcube.model.form import Form
from hushcube.model.schema import COUNT
from hushcube.model.workload import COUNTED, Quantity

Rows = NDArray[np.int32]

CHUNK: Final = 2**19
"""Cells held at once; the runs in which packs are written, so that each row group is read once."""


def noise_scale(plan: Design) -> float:
    """The largest standard error of a release: how large the numbers are that its tables are computed from.

    A table that only carries queries, and cannot be answered by itself, has none.
    """
    return math.sqrt(float(np.fmax.reduce(plan.errors.exact_cell_variances, initial=0.0)))


class Unfit(Exception):
    """A file that does not hold the table it should; the text says why. Empty where that is reported already."""


@dataclass(frozen=True, eq=False)
class Block:
    """Tables of one shape: rows of positions, values and standard errors (tables, *shape)."""

    rows: Rows
    shape: tuple[int, ...]
    values: Floats
    std_errors: Floats
    averages: tuple[Floats, ...] = ()
    """Beside sums, where they are published: averages and the ends of their intervals, NaN where they are null."""


class FaceTables:
    """The tables and forms of one face, as its files have them: the counts, or the sums of a measure."""

    def __init__(self, opened: Opened, face: str, labels: Findings, part: str = COUNT) -> None:
        self.face, self.plan, self.part = face, opened.plan, part
        self.schema = opened.plan.schema
        self._quantities = written(opened.plan) if opened.is_current and face == UNBIASED else (COUNTED,)
        self._opened = opened
        self._entries = opened.entries[face]
        self._labels = labels
        self._packs: dict[str, _Pack] = {}
        self.family = Family.of([key for key in self._entries if not isinstance(key, str)], self.schema.sizes)

    @cached_property
    def noise(self) -> float:
        """The scale of the noise that the tables come from."""
        counts = noise_scale(self.plan.count)
        if self.part == COUNT:
            return counts
        measure = self.schema.measure(self.part)
        own = noise_scale(self.plan.designs[self.part])
        return float(measure.resolution) * own + abs(float(measure.center)) * counts

    def place(self, key: Marginal | str) -> str:
        """A table as problems name it: its file, and in a pack its attributes."""
        entry = self._entries[key]
        file: str = entry["file"]
        return file if "offset" not in entry else f"{file}, table {self.schema.describe(tuple(key))}"  # type: ignore[arg-type]

    def cell(self, marginal: Marginal, index: Sequence[int]) -> str:
        """A cell in words."""
        attributes = (self.schema.attributes[i] for i in marginal)
        named = (f"{a.name} = {a.labels[at]}" for a, at in zip(attributes, index, strict=True))
        return " and ".join(named) or "the total"

    def level(self, order: int) -> Iterator[Block]:
        """The tables of some number of attributes; those that do not fit are reported and left out."""
        for batch in self.family.batches:
            if len(batch.shape) == order:
                for part in batch.parts(CHUNK):
                    yield from self._block(batch.rows[part], batch.shape)

    def table(self, marginal: Marginal) -> Floats | None:
        """One table or a roll-up of the smallest published one that contains it, if there is one to be read."""
        holding = [m for m in self.family if set(marginal) <= set(m)]
        if not holding:
            return None
        found = min(holding, key=lambda m: (self.schema.cells(m), m))
        shape = self.schema.shape(found)
        rows = position_rows(found)
        try:
            values = (self._packed if "offset" in self._entries[found] else self._single)(rows, shape).values[0]
        except Unfit:
            return None
        with np.errstate(invalid="ignore"):
            return np.asarray(values.sum(axis=tuple(a for a, i in enumerate(found) if i not in marginal)))

    def form(self, form: Form) -> Block | None:
        """The numbers of a form, as the one table of a block; None, and reported, where its file does not fit."""
        if form.word not in self._entries:
            return None
        self._labels.checked += 1
        try:
            return self._file(self._entries[form.word], form.axes, form.labels, form.shape)
        except Unfit as problem:
            self._tell(form.word, problem)
            return None

    def _block(self, rows: Rows, shape: tuple[int, ...]) -> Iterator[Block]:
        """Whole if all of it fits; otherwise table by table."""
        packed = ["offset" in self._entries[tuple(row)] for row in rows.tolist()]
        self._labels.checked += len(rows)
        if all(packed):
            try:
                yield self._packed(rows, shape)
                return
            except Unfit:
                pass  # the tables that do fit are read one by one
        blocks = []
        for row, in_pack in zip(rows, packed, strict=True):
            try:
                blocks.append((self._packed if in_pack else self._single)(row[None], shape))
            except Unfit as problem:
                self._tell(tuple(row.tolist()), problem)
        if blocks:
            yield Block(
                np.concatenate([block.rows for block in blocks]),
                shape,
                np.concatenate([block.values for block in blocks]),
                np.concatenate([block.std_errors for block in blocks]),
                tuple(map(np.concatenate, zip(*(block.averages for block in blocks), strict=True))),
            )

    def _tell(self, key: Marginal | str, problem: Unfit) -> None:
        if str(problem):
            self._labels.add(f"{self.place(key)}: {problem}")

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        """What cannot be read does not fit; of a file with another checksum that is no news."""
        try:
            yield
        except BundleError as problem:
            raise Unfit("" if name in self._opened.broken else problem.problem) from None

    def _single(self, rows: Rows, shape: tuple[int, ...]) -> Block:
        marginal = tuple(rows[0].tolist())
        attributes = [self.schema.attributes[i] for i in marginal]
        names, labels = [a.name for a in attributes], [a.labels for a in attributes]
        return replace(self._file(self._entries[marginal], names, labels, shape), rows=rows)

    def _file(
        self, entry: Entry, names: Sequence[str], labels: Sequence[Sequence[str]], shape: tuple[int, ...]
    ) -> Block:
        """The numbers of a file of its own, if columns, rows and labels are what they should be."""
        numbers = self._columns(names)
        with self._reading(entry["file"]), parquet(self._opened.folder, entry["file"]) as file:
            found = file.schema_arrow.names
            if found != [*names, *numbers]:
                raise Unfit(f"holds another table: its columns are {', '.join(found[:12])}")
            if file.metadata.num_rows != math.prod(shape):
                raise Unfit(f"has {file.metadata.num_rows:,} rows, not {math.prod(shape):,}")
            table = file.read()
        for axis, name in enumerate(names):
            at = _codes(table.column(axis), pa.array(list(labels[axis]), pa.string()))
            wrong = np.flatnonzero(at != positions(shape, axis))
            if len(wrong):
                raise Unfit(f"the labels of {name} are not in schema order, from row {wrong[0] + 1:,} on")
        return self._numbers(table, np.zeros((1, 0), np.int32), shape, (1, *shape))

    def _columns(self, taken: Sequence[str] = ()) -> list[str]:
        """The names of the columns of numbers, beside attributes of some names."""
        return [name for own in column_names(self.plan, self._quantities, taken).values() for name in own]

    def _numbers(self, table: Any, rows: Rows, shape: tuple[int, ...], batch: tuple[int, ...]) -> Block:
        """The part's own columns of numbers, which are the last ones."""
        at = -sum(quantity.width for quantity in self._quantities)
        found: dict[Quantity, list[Floats]] = {}
        for quantity in self._quantities:
            columns = [table.column(at + k) for k in range(quantity.width)]
            if quantity.part == self.part:
                found[quantity] = [_floats(column, batch) for column in columns]
                if quantity.kind == "avg" and any(
                    np.isnan(own).sum() != column.null_count
                    for own, column in zip(found[quantity], columns, strict=True)
                ):
                    raise Unfit("its averages are not all numbers or null")
            at += quantity.width
        values, errors = found[self.plan.measured[self.part]]
        return Block(rows, shape, values, errors, tuple(found.get(Quantity("avg", self.part), ())))

    def _packed(self, rows: Rows, shape: tuple[int, ...]) -> Block:
        """Tables that are runs of rows of one pack."""
        order, cells = len(shape), math.prod(shape)
        table = self._run([self._entries[tuple(row)] for row in rows.tolist()], cells)
        names = [name for k in range(1, order + 1) for name in (f"attribute_{k}", f"label_{k}")]
        if table.column_names != [*names, *self._columns()]:
            raise Unfit("the pack has other columns")
        for axis in range(order):
            own = rows[:, axis].astype(np.int64)[:, None]
            attributes = _codes(table.column(2 * axis), self._names).reshape(len(rows), cells)
            if (attributes != own).any():
                raise Unfit("its rows belong to another table")
            expected = self._first[self._starts[own] + positions(shape, axis)]
            if (_codes(table.column(2 * axis + 1), self._all_labels).reshape(len(rows), cells) != expected).any():
                raise Unfit(f"the labels of {self.schema.names[int(own[0, 0])]} are not in schema order")
        batch = (len(rows), *shape)
        return self._numbers(table, rows, shape, batch)

    def _run(self, entries: list[Entry], cells: int) -> Any:
        """The rows of tables of one size, in their order: one read where they follow each other in one pack."""
        offsets = np.array([entry["offset"] for entry in entries])
        files = {entry["file"] for entry in entries}
        if len(files) > 1 or (np.diff(offsets) != cells).any():
            raise Unfit("the tables do not follow each other")
        (name,) = files
        with self._reading(name), unreadable(name):
            if name not in self._packs:
                self._packs[name] = _Pack(inside(self._opened.folder, name))
            return self._packs[name].rows(int(offsets[0]), len(entries) * cells)

    @cached_property
    def _names(self) -> Any:
        return pa.array(self.schema.names, pa.string())

    @cached_property
    def _all_labels(self) -> Any:
        return pa.array([label for a in self.schema.attributes for label in a.labels], pa.string())

    @cached_property
    def _first(self) -> Ints:
        """For each label of each attribute, the first label with the same text: attributes may share texts."""
        return np.asarray(pc.index_in(self._all_labels, value_set=self._all_labels).to_numpy(zero_copy_only=False))

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate([[0], np.cumsum(self.schema.sizes)[:-1]]).astype(np.int64)


class _Pack:
    """A pack, opened once; only the row groups that are needed are read."""

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path)
        self._starts = np.cumsum([0, *row_groups(self._file)])

    def rows(self, start: int, number: int) -> Any:
        """A run of rows."""
        if start + number > self._starts[-1]:
            raise Unfit("lies beyond the end of the pack")
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        last = int(np.searchsorted(self._starts, start + number, side="left"))
        found = self._file.read_row_groups(list(range(first, max(last, first + 1))))
        return found.slice(start - int(self._starts[first]), number)


def _codes(column: Any, wanted: Any) -> Ints:
    """The position of each text of a column in a list of texts; -1 where it is none of them."""
    array = column.combine_chunks()
    try:
        if not pa.types.is_dictionary(array.type):
            array = array.cast(pa.string()).dictionary_encode()
        at = pc.index_in(array.dictionary.cast(pa.string()), value_set=wanted).fill_null(-1).to_numpy()
    except pa.ArrowException:
        raise Unfit("its labels are no texts") from None
    codes = array.indices.fill_null(len(at)) if array.null_count else array.indices
    found: Ints = np.append(at, -1)[codes.to_numpy(zero_copy_only=False)]
    return found


def _floats(column: Any, shape: tuple[int, ...]) -> Floats:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise Unfit("its last columns are no numbers")
    return np.asarray(column.to_numpy(), np.float64).reshape(shape)
