"""The tables of one face, read from their files in blocks of one shape; labels are checked on the way.

A file of its own must have its attributes as columns; in a pack a table is a run of rows. In both, the labels must be
the full product in schema order. What does not fit is reported once and left out of all other checks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hushcube.bundle.axes import Axis, axis_columns, cell_axes, form_axes
from hushcube.bundle.checks.files import Opened
from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.manifest import EXPLAINED, FLAGGED
from hushcube.bundle.reading import Pack, inside, parquet, unreadable
from hushcube.bundle.tables import FLAGS, Entry, Rows, column_names, flag_names, pack_texts, positions, written
from hushcube.designs.design import Design
from hushcube.errors import BundleError
from hushcube.faces.value import UNBIASED
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal, position_rows
from hushcube.model.form import Form
from hushcube.model.schema import COUNT
from hushcube.model.workload import COUNTED, Quantity

CHUNK: Final = 2**19  # cells held at once; the runs in which packs are written, so that each row group is read once


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
    flags: tuple[Ints, ...] = ()
    """Of the values, and of averages: places in QUALITY_WORDS, -1 where there is another word. None before format 6."""
    estimated: tuple[Floats, ...] = ()
    """Estimated errors, where a face has them."""


class FaceTables:
    """The tables and forms of one face, as its files have them: the counts, or the sums of a measure."""

    def __init__(self, opened: Opened, face: str, labels: Check, part: str = COUNT) -> None:
        self.plan, self.schema, self.part = opened.plan, opened.plan.schema, part
        self._opened, self._entries, self._labels = opened, opened.entries[face], labels
        self._quantities = written(opened.plan) if face == UNBIASED else (COUNTED,)
        self._flagged = self._quantities if face == UNBIASED and opened.version >= FLAGGED else ()
        self._estimated = face in opened.estimated
        self._packs: dict[str, Pack] = {}
        self.family = Family.of([key for key in self._entries if not isinstance(key, str)], self.schema.sizes)

    @cached_property
    def noise(self) -> float:
        """The scale of the noise that the tables come from."""
        counts = noise_scale(self.plan.count)
        if self.part == COUNT:
            return counts
        measure, own = self.schema.measure(self.part), noise_scale(self.plan.designs[self.part])
        return float(measure.resolution) * own + abs(float(measure.center)) * counts

    def place(self, key: Marginal | str) -> str:
        """A table as problems name it: its file, and in a pack its attributes."""
        file = str(self._entries[key]["file"])
        if isinstance(key, str) or "offset" not in self._entries[key]:
            return file
        return f"{file}, table {self.schema.describe(key)}"

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
        holding = (m for m in self.family if set(marginal) <= set(m))
        found = min(holding, key=lambda m: (self.schema.cells(m), m), default=None)
        if found is None:
            return None
        try:
            values = self._read(position_rows(found), self.schema.shape(found)).values[0]
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
            return self._file(form.word, np.zeros((1, 0), np.int32), form_axes(form))
        except Unfit as problem:
            self._tell(form.word, problem)
            return None

    def _block(self, rows: Rows, shape: tuple[int, ...]) -> Iterator[Block]:
        """Whole if all of it fits; otherwise table by table."""
        self._labels.checked += len(rows)
        if all("offset" in self._entries[tuple(row)] for row in rows.tolist()):
            with suppress(Unfit):  # the tables that do fit are read one by one
                yield self._packed(rows, shape)
                return
        blocks = []
        for row in rows:
            try:
                blocks.append(self._read(row[None], shape))
            except Unfit as problem:
                self._tell(tuple(row.tolist()), problem)
        if blocks:
            every = ((b.rows, b.values, b.std_errors, *b.averages, *b.flags, *b.estimated) for b in blocks)
            arrays = zip(*every, strict=True)
            kept, values, errors, *others = map(np.concatenate, arrays)
            sizes = (len(blocks[0].averages), len(blocks[0].flags), len(blocks[0].estimated))
            rest = iter(others)
            yield Block(kept, shape, values, errors, *(tuple(islice(rest, size)) for size in sizes))

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

    def _read(self, rows: Rows, shape: tuple[int, ...]) -> Block:
        """A single table, in a pack or in a file of its own."""
        marginal = tuple(rows[0].tolist())
        if "offset" in self._entries[marginal]:
            return self._packed(rows, shape)
        attributes = (self.schema.attributes[i] for i in marginal)
        return self._file(marginal, rows, cell_axes(list(attributes)))

    def _file(self, key: Marginal | str, rows: Rows, axes: Sequence[Axis]) -> Block:
        """The numbers of a file of its own, if columns, rows, labels and codes are what they should be."""
        place, shape = self._entries[key]["file"], tuple(len(axis.labels) for axis in axes)
        with self._reading(place), parquet(self._opened.folder, place) as file:
            found = file.schema_arrow.names
            plain = [axis.name for axis in axes]
            if self._opened.version < EXPLAINED and found == [*plain, *self._columns(plain)]:  # before codes
                axes = [Axis(axis.name, axis.labels) for axis in axes]
            names = axis_columns(axes)
            if found != [*names, *self._columns(names)]:
                raise Unfit(f"holds another table: its columns are {', '.join(found[:12])}")
            if file.metadata.num_rows != math.prod(shape):
                raise Unfit(f"has {file.metadata.num_rows:,} rows, not {math.prod(shape):,}")
            table = file.read()
        for number, axis in enumerate(axes):
            at = positions(shape, number)
            labels = _codes(table.column(axis.name), pa.array(list(axis.labels), pa.string()))
            wrong = np.flatnonzero(labels != at)
            if len(wrong):
                raise Unfit(f"the labels of {axis.name} are not in schema order, from row {wrong[0] + 1:,} on")
            if axis.code_name and not _same(table.column(axis.code_name), axis.codes.take(pa.array(at))):
                raise Unfit(f"the codes of {axis.name} are not those of its labels")
        return self._numbers(table, rows, shape)

    def _columns(self, taken: Sequence[str] = ()) -> list[str]:
        """The names of the columns of numbers and of flags, beside attributes of some names."""
        names = column_names(self.plan, self._quantities, taken, estimated=self._estimated)
        numbers = [name for own in names.values() for name in own]
        return [*numbers, *flag_names(self.plan, self._flagged, taken).values()]

    def _numbers(self, table: pa.Table, rows: Rows, shape: tuple[int, ...]) -> Block:
        """The part's own columns of numbers and flags, which are the last ones."""
        width = sum(quantity.width for quantity in self._quantities) + len(self._flagged) + self._estimated
        columns = iter(table.columns[-width:])
        found: dict[Quantity, list[Floats]] = {}
        average = Quantity("avg", self.part)
        for quantity in self._quantities:
            own = list(islice(columns, quantity.width))
            if quantity.part == self.part:
                found[quantity] = [_floats(column).reshape(len(rows), *shape) for column in own]
            if quantity == average and any(
                np.isnan(numbers).sum() != column.null_count
                for numbers, column in zip(found[average], own, strict=True)
            ):
                raise Unfit("its averages are not all numbers or null")
        estimates = islice(columns, int(self._estimated))
        estimated = tuple(_floats(column).reshape(len(rows), *shape) for column in estimates)
        flags = {
            quantity: _codes(column, FLAGS).reshape(len(rows), *shape)
            for quantity, column in zip(self._flagged, columns, strict=True)
            if quantity.part == self.part
        }
        values, errors = found[self.plan.measured[self.part]]
        averages = tuple(found.get(average, ()))
        return Block(rows, shape, values, errors, averages, tuple(flags.values()), estimated)

    def _packed(self, rows: Rows, shape: tuple[int, ...]) -> Block:
        """Tables that are runs of rows of one pack."""
        order, cells = len(shape), math.prod(shape)
        table = self._run([self._entries[tuple(row)] for row in rows.tolist()], cells)
        columns = [name for k in range(1, order + 1) for name in (f"attribute_{k}", f"label_{k}")]
        if table.column_names != [*columns, *self._columns()]:
            raise Unfit("the pack has other columns")
        names, labels, texts, starts = self._texts
        for axis in range(order):
            own = rows[:, axis][:, None]
            if (_codes(table.column(2 * axis), names).reshape(len(rows), cells) != own).any():
                raise Unfit("its rows belong to another table")
            expected = texts[starts[own] + positions(shape, axis)]
            if (_codes(table.column(2 * axis + 1), labels).reshape(len(rows), cells) != expected).any():
                raise Unfit(f"the labels of {self.schema.names[int(own[0, 0])]} are not in schema order")
        return self._numbers(table, rows, shape)

    def _run(self, entries: list[Entry], cells: int) -> pa.Table:
        """The rows of tables of one size, in their order: one read where they follow each other in one pack."""
        offsets = np.array([entry["offset"] for entry in entries])
        files = {entry["file"] for entry in entries}
        if len(files) > 1 or (np.diff(offsets) != cells).any():
            raise Unfit("the tables do not follow each other")
        (name,) = files
        start, number = int(offsets[0]), len(entries) * cells
        with self._reading(name), unreadable(name):
            if name not in self._packs:
                self._packs[name] = Pack(pq.ParquetFile(inside(self._opened.folder, name)))
            if start + number > self._packs[name].length:
                raise Unfit("lies beyond the end of the pack")
            return self._packs[name].rows(start, number)

    @cached_property
    def _texts(self) -> tuple[pa.Array, pa.Array, Rows, Rows]:
        """Those of packs."""
        return pack_texts(self.schema)


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


def _same(column: Any, expected: Any) -> bool:
    """Whether a column holds what is expected, in the same type."""
    return bool(column.type == expected.type and column.combine_chunks().equals(expected))


def _floats(column: Any) -> Floats:
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise Unfit("its last columns are no numbers")
    return np.asarray(column.to_numpy(), np.float64)
