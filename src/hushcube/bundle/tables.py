"""What the tables of a release hold: their columns, and the numbers in them, computed from the values of each part."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushcube.bundle.published_table import beside
from hushcube.bundle.ratios import averages
from hushcube.bundle.reading import Pack, parquet
from hushcube.designs.design import Design
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.measure import Measure
from hushcube.model.quality import QUALITY_WORDS, Quality
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import COUNTED, Quantity
from hushcube.planning.plan import Plan

ESTIMATED: Final = "estimated_error"
"""The column of estimated errors, and the field of the manifest that says that a face has it."""
FLAGS: Final = pa.array(QUALITY_WORDS, pa.string())
Entry = dict[str, Any]
Entries = dict[Marginal | str, Entry]
"""What the manifest says of tables, by their marginals, and of forms, by their words."""
Rows = NDArray[np.int32]
Columns = dict[Quantity, tuple[NDArray[Any], ...]]
"""The numbers of some cells, column by column."""
Piece = tuple[slice, ...]
"""Cells of a table that follow each other: a slice along every axis."""
Estimates = tuple[Any, Any, Any]
"""Values, standard errors, and half-widths of 95% intervals: arrays or numbers."""
Combined = tuple[Any, Any, Any, tuple[Any, Any] | None]
"""The same, and of averages both ends of their intervals."""


class Values(Protocol):
    """Where the values of tables and forms come from."""

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The values of published marginals (rows of positions) of one shape; (marginals, *shape)."""

    def form(self, form: Form) -> Floats:
        """The values of a published form; of its shape."""


def written(plan: Plan) -> tuple[Quantity, ...]:
    """What the tables of a release hold: the count, of every measure the sum, and the averages asked for."""
    pairs = ((Quantity("sum", name), Quantity("avg", name)) for name in plan.sums)
    return COUNTED, *(q for pair in pairs for q in pair if q.kind == "sum" or q in plan.asked)


def safe_names(plan: Plan) -> dict[str, str]:
    """What measures are called in the names of columns and files, so that nobody has to quote them.

    Capitals become small letters, whatever is neither a letter of ASCII nor a digit an underscore; a name of which
    nothing is left is `measure`. Where two measures would have a column of the same name, the second is called `_2`.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in plan.sums:
        own = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "measure"
        for number in count(1):
            word = own if number == 1 else f"{own}_{number}"
            columns = {*_columns("sum", word), *_columns("avg", word)}
            if not used & columns:
                break
        found[name] = word
        used |= columns
    return found


def file_stem(number: int, word: str) -> str:
    """What the file of a table is called, whatever its word is.

    >>> file_stem(3, "age@band*sex")
    '0003-age-band-sex'
    """
    return f"{number:04d}-{re.sub(r'[^A-Za-z0-9]+', '-', word).strip('-')[:60]}"


def _columns(kind: str, word: str) -> tuple[str, ...]:
    if kind == "count":
        return "value", "std_error"
    if kind == "sum":
        return f"sum_{word}", f"sum_{word}_std_error"
    return f"avg_{word}", f"avg_{word}_low", f"avg_{word}_high"


def column_names(
    plan: Plan, quantities: Iterable[Quantity], taken: Iterable[str] = (), *, estimated: bool = False
) -> dict[Quantity, list[str]]:
    """The columns of numbers of each quantity, beside attributes of some names; counts may have estimated errors."""
    words, attributes = safe_names(plan), list(taken)
    more = {COUNTED: [ESTIMATED]} if estimated else {}
    return {q: beside(attributes, *_columns(q.kind, words.get(q.measure, "")), *more.get(q, [])) for q in quantities}


def flag_names(plan: Plan, quantities: Sequence[Quantity], taken: Iterable[str] = ()) -> dict[Quantity, str]:
    """The column of flags of each quantity, after all columns of numbers: `quality`, `sum_x_quality`, ..."""
    used = [*taken, *(name for own in column_names(plan, quantities, taken).values() for name in own)]
    words = safe_names(plan)
    starts = {q: "" if q.kind == "count" else f"{q.kind}_{words[q.measure]}_" for q in quantities}
    return {quantity: beside(used, f"{start}quality")[0] for quantity, start in starts.items()}


def number_columns(names: Mapping[Quantity, list[str]], numbers: Columns, piece: Piece) -> dict[str, Any]:
    """The columns of numbers of a piece; averages that nobody knows are null."""
    return {
        name: pa.array(np.ascontiguousarray(column[piece]).reshape(-1), from_pandas=quantity.kind == "avg")
        for quantity, columns in numbers.items()
        for name, column in zip(names[quantity], columns, strict=True)
    }


def flag_columns(names: Mapping[Quantity, str], schema: Schema, numbers: Columns, piece: Piece) -> dict[str, Any]:
    """The columns of flags of a piece, the last ones: how far each number can be relied on, in words."""
    return {
        name: pa.DictionaryArray.from_arrays(
            quality_classes(schema, quantity, [column[piece] for column in numbers[quantity]]).reshape(-1), FLAGS
        )
        for quantity, name in names.items()
    }


@dataclass(frozen=True)
class _Graded:
    """Numbers with their errors, as they are graded."""

    values: Floats
    std_errors: Floats
    low: Floats
    high: Floats
    may_be_negative: bool


def quality_classes(
    schema: Schema, quantity: Quantity, columns: Sequence[Floats], quality: Quality | None = None
) -> NDArray[np.int8]:
    """How far numbers can be relied on, from the columns that are published of them: places in QUALITY_WORDS."""
    signed = quantity.kind != "count" and schema.measure(quantity.measure).bounds[0] < 0
    values, errors, *_ = columns
    graded = _Graded(values, errors, values, values, signed)
    if quantity.kind == "avg":
        values, low, high = columns
        graded = _Graded(values, np.full((), np.nan), low, high, signed)
    return (quality or schema.quality).classes(graded)


def positions(shape: tuple[int, ...], axis: int) -> Rows:
    """The position along an axis of every cell, in row-major order."""
    inner, outer = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
    return np.tile(np.repeat(np.arange(shape[axis], dtype=np.int32), inner), outer)


def pieces(shape: tuple[int, ...], most_cells: int) -> Iterator[Piece]:
    """A table in pieces of at most so many cells, in row-major order.

    >>> [[(s.start, s.stop) for s in piece] for piece in pieces((2, 3, 4), 8)]
    [[(0, 1), (0, 2), (0, 4)], [(0, 1), (2, 3), (0, 4)], [(1, 2), (0, 2), (0, 4)], [(1, 2), (2, 3), (0, 4)]]
    """
    if not shape:
        yield ()
        return
    cut = next(axis for axis in range(len(shape)) if math.prod(shape[axis + 1 :]) <= most_cells)
    after = tuple(slice(0, n) for n in shape[cut + 1 :])
    step = max(1, most_cells // math.prod(shape[cut + 1 :]))
    for before in np.ndindex(shape[:cut]):
        for start in range(0, shape[cut], step):
            within = slice(start, min(start + step, shape[cut]))
            yield *(slice(at, at + 1) for at in before), within, *after


def piece_positions(piece: Piece, axis: int) -> Rows:
    """The position along an axis of every cell of a piece."""
    lengths = tuple(along.stop - along.start for along in piece)
    return positions(lengths, axis) + np.int32(piece[axis].start)


def pack_texts(schema: Schema) -> tuple[pa.Array, pa.Array, Rows, Rows]:
    """The texts that packs refer to: the attributes' names, and the labels of all of them, each text once.

    With them comes which text each label is, and where each attribute's labels begin among these. Were a text there
    twice, Parquet would not be written by codes, but text by text: two to four times the time.
    """
    labels = pa.array([label for attribute in schema.attributes for label in attribute.labels], pa.string())
    once = labels.dictionary_encode()
    starts = np.concatenate([[0], np.cumsum(schema.sizes)[:-1]]).astype(np.int32)
    return pa.array(schema.names, pa.string()), once.dictionary, once.indices.to_numpy(), starts


def read_numbers(
    folder: Path,
    name: str,
    attributes: list[str],
    cells: int,
    *,
    width: int = 2,
    flags: int = 0,
    beside_codes: list[str] | None = None,
) -> list[Floats]:
    """The columns of numbers, of which there are so many, of a file, which must hold the table asked for.

    It has the columns of the attributes, since format 5 with those of their codes; those of flags come last.
    """
    with parquet(folder, name) as file:
        names = file.schema_arrow.names
        names = names[: len(names) - flags]
        if names[:-width] not in (attributes, beside_codes) or file.metadata.num_rows != cells:
            raise KeyError
        return [column.to_numpy() for column in file.read(columns=names[-width:]).columns]


def read_packed(
    folder: Path,
    name: str,
    tables: Sequence[Sequence[str]],
    offset: int,
    cells: int,
    *,
    width: int = 2,
    flags: int = 0,
) -> list[Floats]:
    """The same of tables that follow each other in a pack, each of so many cells; only their part of it is read."""
    with parquet(folder, name) as file:
        names = file.schema_arrow.names
        names = names[: len(names) - flags]
        found = Pack(file).rows(offset, len(tables) * cells, columns=[*names[:-width:2], *names[-width:]])
        starts = np.arange(len(tables)) * cells
        ends = pa.array(np.concatenate([starts, starts + cells - 1]))  # of each table
        attributes = [column.take(ends).to_pylist() for column in found.columns[:-width]]
        if attributes != [list(own) * 2 for own in zip(*tables, strict=True)]:
            raise KeyError
        return [column.to_numpy() for column in found.columns[-width:]]


def published_family(plan: Plan) -> Family:
    """The marginals of a release; carriers of queries are not published."""
    family, published = plan.count.request.marginals, plan.workload.published
    return Family.of(published, plan.schema.sizes) if len(published) < len(family) else family


class Numbers:
    """The numbers of the tables of a release: of counts and sums estimates and standard errors, of averages intervals.

    They are computed from the values of each part, in the order of the columns; where a part has no source, its values
    are zeros, and only its errors mean something.
    """

    def __init__(
        self,
        plan: Plan,
        sources: Mapping[str, Values],
        quantities: Sequence[Quantity],
        *,
        intervals: bool = False,
        estimated: Values | None = None,
    ) -> None:
        """Half-widths of intervals are computed if they are asked for, or averages need them.

        Counts at face value may have `estimated` errors.
        """
        self._plan, self._sources, self._quantities = plan, sources, quantities
        self._estimated = estimated
        self._intervals = intervals or any(quantity.kind == "avg" for quantity in quantities)

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Columns:
        """Those of marginals of one shape; each (marginals, *shape)."""
        found = _columns_of(self.estimates(rows, shape))
        if self._estimated is not None:
            found[COUNTED] = (*found[COUNTED], self._estimated.tables(rows, shape))
        return found

    def estimates(self, rows: Rows, shape: tuple[int, ...]) -> dict[Quantity, Combined]:
        """All that is known of marginals of one shape."""

        def found(name: str) -> Estimates:
            design, source = self._plan.designs[name], self._sources.get(name)
            values = np.zeros((len(rows), *shape)) if source is None else source.tables(rows, shape)
            margins = cell_margins(design, rows, shape) if self._intervals else 0.0
            return values, std_errors(design, rows, shape), margins

        return self._combined(found)

    def form(self, form: Form) -> Columns:
        """Those of a form."""

        def found(name: str) -> Estimates:
            errors, source = self._plan.designs[name].errors, self._sources.get(name)
            deviations = np.sqrt(errors.form_variances(form, exact=True))
            margins = errors.any_margin(deviations) if self._intervals else 0.0
            return np.zeros(form.shape) if source is None else source.form(form), deviations, margins

        return _columns_of(self._combined(found))

    def _combined(self, found: Callable[[str], Estimates]) -> dict[Quantity, Combined]:
        parts = {name: found(name) for name in dict.fromkeys((COUNT, *(q.part for q in self._quantities)))}
        schema = self._plan.schema
        return {own: combined(own, schema, parts[COUNT], parts[own.part]) for own in self._quantities}


def _columns_of(found: Mapping[Quantity, Combined]) -> Columns:
    """What files hold of it: estimates with their standard errors, of averages the ends of intervals."""
    return {
        quantity: (values, errors) if ends is None else (values, *ends)
        for quantity, (values, errors, _, ends) in found.items()
    }


def std_errors(design: Design, rows: Rows, shape: tuple[int, ...]) -> Floats:
    """Standard errors of the cells of marginals of one shape, broadcast where a table's cells are alike."""
    errors = design.errors
    if errors.cells_are_alike:
        return _broadcast(np.sqrt(errors.exact_cell_variances[design.request.marginals.find(rows)]), shape)
    each = (np.broadcast_to(errors.cell_variance_table(tuple(row)), shape) for row in rows.tolist())
    return np.sqrt(np.stack(list(each)))


def cell_margins(design: Design, rows: Rows, shape: tuple[int, ...]) -> Floats:
    """Half-widths of the cells' 95% intervals, likewise."""
    alike = table_margins(design, rows)
    if not np.isnan(alike).any():
        return _broadcast(alike, shape)
    errors = std_errors(design, rows, shape)
    each = (design.errors.cell_margin(tuple(row), own) for row, own in zip(rows.tolist(), errors, strict=True))
    return np.stack([np.broadcast_to(widths, shape) for widths in each])


def table_margins(design: Design, rows: Rows) -> Floats:
    """Half-widths of the 95% intervals of the cells of marginals; no number where a table's cells differ."""
    if not design.errors.cells_are_alike:
        return np.full(len(rows), np.nan)
    return design.errors.margins[design.request.marginals.find(rows)]


def _broadcast(numbers: Floats, shape: tuple[int, ...]) -> Floats:
    """One number for all cells of each table."""
    return np.broadcast_to(numbers.reshape(-1, *[1] * len(shape)), (len(numbers), *shape))


def combined(quantity: Quantity, schema: Schema, counts: Estimates, own: Estimates) -> Combined:
    """What a quantity comes to, from the counts and its own part: estimates, and for averages the ends of intervals.

    Averages have no standard errors nor margins: these are no numbers.
    """
    if quantity.kind == "count":
        return *counts, None
    measure = schema.measure(quantity.measure)
    if quantity.kind == "avg":
        value, low, high = averages(measure, counts[0], own[0], counts[2], own[2])
        return value, math.nan, math.nan, (low, high)
    step, center = float(measure.resolution), float(measure.center)
    errors, margins = (np.hypot(step * o, center * c) for o, c in zip(own[1:], counts[1:], strict=True))
    return step * own[0] + center * counts[0], errors, margins, None


def quantised_sums(measure: Measure, counts: Any, values: Any) -> Any:
    """Back from sums in the measure's unit, in which what was taken off each value is added again, to its integers."""
    return (values - float(measure.center) * counts) / float(measure.resolution)
