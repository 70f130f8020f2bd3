"""Tables as Parquet files: one each, or packed by order where there are very many."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.published_table import beside
from hushcube.bundle.ratio import averages, sum_errors, sum_values
from hushcube.bundle.reading import parquet, row_groups
from hushcube.bundle.stamp import file_stamp
from hushcube.designs.design import Design
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import COUNTED, Quantity
from hushcube.planning.plan import Plan
from hushcube.progress import Progress

Entry = dict[str, Any]
Columns = Mapping[Quantity, tuple[NDArray[Any], ...]]
"""The numbers of some cells, column by column."""

MOST_FILES: Final = 1_000
_CHUNK: Final = 2**19
"""Cells held at once while streaming to disk."""


class Values(Protocol):
    """Where the values of tables and forms come from."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The values of published marginals (rows of positions) of one shape; (marginals, *shape)."""

    def form(self, form: Form) -> Floats:
        """The values of a published form; of its shape."""


def published_tables(design: Design) -> Family:
    """The marginals that are published; carriers of queries are not."""
    family = design.request.marginals
    if len(design.workload.published) < len(family):
        family = Family.of(design.workload.published, design.schema.sizes)
    return family


def written(plan: Plan) -> tuple[Quantity, ...]:
    """What the tables of a release hold: the count, of every measure the sum, and the averages asked for."""
    averages = {quantity.measure for quantity in plan.asked if quantity.kind == "avg"}
    sums = ((Quantity("sum", n), *([Quantity("avg", n)] if n in averages else [])) for n in plan.sums)
    return COUNTED, *(quantity for pair in sums for quantity in pair)


def safe_names(plan: Plan) -> dict[str, str]:
    """What measures are called in the names of columns and files, so that nobody has to quote them.

    Capitals become small letters, whatever is neither a letter of ASCII nor a digit an underscore; a name of which
    nothing is left is `measure`. Where two measures would have a column of the same name, the second is called `_2`.
    """
    found: dict[str, str] = {}
    used: set[str] = set()
    for name in plan.sums:
        own = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:60] or "measure"
        tried = (own if number == 1 else f"{own}_{number}" for number in count(1))
        found[name] = next(word for word in tried if not used & set(_columns_of(word)))
        used |= set(_columns_of(found[name]))
    return found


def _columns_of(word: str) -> tuple[str, ...]:
    """All columns that a measure may have."""
    return f"sum_{word}", f"sum_{word}_std_error", f"avg_{word}", f"avg_{word}_low", f"avg_{word}_high"


def column_names(plan: Plan, quantities: Sequence[Quantity], taken: Iterable[str] = ()) -> dict[Quantity, list[str]]:
    """The columns of numbers of each quantity, beside attributes of some names."""
    words, attributes = safe_names(plan), list(taken)
    places = {"count": slice(0), "sum": slice(0, 2), "avg": slice(2, 5)}
    return {
        quantity: beside(
            attributes,
            *(
                _columns_of(words[quantity.measure])[places[quantity.kind]]
                if quantity.measure
                else ("value", "std_error")
            ),
        )
        for quantity in quantities
    }


class Numbers:
    """The numbers of the tables of a release: of counts and sums estimates and standard errors, of averages intervals.

    They are computed from the values of each part, in the order of the columns.
    """

    def __init__(self, plan: Plan, sources: Mapping[str, Values], quantities: Sequence[Quantity]) -> None:
        self._plan, self._sources, self._quantities = plan, sources, quantities
        self._intervals = any(quantity.kind == "avg" for quantity in quantities)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> dict[Quantity, tuple[Floats, ...]]:
        """Those of marginals of one shape; each (marginals, *shape)."""
        return self._all(
            lambda name: (
                self._sources[name].tables(rows, shape),
                std_errors(self._plan.designs[name], rows, shape),
                cell_margins(self._plan.designs[name], rows, shape) if self._intervals else None,
            )
        )

    def form(self, form: Form) -> dict[Quantity, tuple[Floats, ...]]:
        """Those of a form."""

        def found(name: str) -> tuple[Floats, Floats, Floats | None]:
            design = self._plan.designs[name]
            errors = np.sqrt(design.errors.form_variances(form, exact=True))
            return self._sources[name].form(form), errors, design.errors.any_margin(errors) if self._intervals else None

        return self._all(found)

    def _all(self, found: Callable[[str], tuple[Floats, Floats, Floats | None]]) -> dict[Quantity, tuple[Floats, ...]]:
        parts = {name: found(name) for name in dict.fromkeys((COUNT, *(q.part for q in self._quantities)))}
        counts, count_errors, count_margins = parts[COUNT]
        told: dict[Quantity, tuple[Floats, ...]] = {}
        for quantity in self._quantities:
            values, errors, margins = parts[quantity.part]
            if quantity.kind == "count":
                told[quantity] = counts, count_errors
                continue
            measure = self._plan.schema.measure(quantity.measure)
            if quantity.kind == "sum":
                told[quantity] = sum_values(measure, counts, values), sum_errors(measure, count_errors, errors)
            else:
                told[quantity] = averages(measure, counts, values, count_margins, margins)
        return told


def write_tables(
    plan: Plan,
    sources: Mapping[str, Values],
    folder: Path,
    progress: Progress,
    *,
    face: str = UNBIASED,
    place: str = "",
    private: bool,
) -> list[Entry]:
    """Write all tables of a face below a `place` in `folder`; returns their entries for the manifest.

    The unbiased tables hold all quantities, those of other faces the counts.
    """
    design = plan.count
    family = published_tables(design)
    place = f"{place}/tables" if place else "tables"
    (folder / place).mkdir(parents=True)
    done, total = 0.0, float(family.cells.sum())
    whole = face != UNBIASED and published_promises()[face].whole
    metadata = file_stamp(private=private)
    few = len(family) <= MOST_FILES
    quantities = written(plan) if face == UNBIASED else (COUNTED,)
    numbers = Numbers(plan, sources, quantities)
    with (_OneFileEach if few else _Packs)(plan, quantities, folder, place, metadata) as sink:
        for batch in family.batches:
            for part in batch.parts(_CHUNK):
                rows = batch.rows[part]
                found = numbers.tables(rows, batch.shape)
                sink.add(rows, batch.shape, _typed(found, whole))
                done += found[COUNTED][0].size
                progress("writing", min(done / total, 1.0))
    entries = sink.entries
    for at, form in enumerate(plan.workload.forms, len(family)):
        name = f"{place}/{at:04d}-{_slug(form.word)}.parquet"
        columns: dict[str, Any] = {
            axis: pa.DictionaryArray.from_arrays(positions(form.shape, k), pa.array(list(labels), pa.string()))
            for k, (axis, labels) in enumerate(zip(form.axes, form.labels, strict=True))
        }
        columns |= number_columns(plan, _typed(numbers.form(form), whole), taken=columns)
        pq.write_table(pa.table(columns, metadata=metadata), folder / name, compression="zstd")
        names = [plan.schema.names[i] for i in form.marginal]
        entries.append({"attributes": names, "form": form.word, "file": name, "cells": form.cells})
    return [{**entry, "face": face} for entry in entries]


def _typed(found: dict[Quantity, tuple[Floats, ...]], whole: bool) -> dict[Quantity, tuple[NDArray[Any], ...]]:
    """Whole numbers as such; queries of whole numbers may have fractional weights."""
    counts, errors = found[COUNTED]
    if whole and (counts == np.rint(counts)).all():
        return {**found, COUNTED: (np.rint(counts).astype(np.int64), errors)}
    return dict(found)


def _slug(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:60]


def read_numbers(
    folder: Path, name: str, attributes: list[str], offset: int | None, cells: int, *, width: int = 2
) -> list[Floats]:
    """The columns of numbers, of which there are so many, of one table, which must be the one asked for.

    Of a pack, only the part with it is read.
    """
    with parquet(folder, name) as file:
        names = file.schema_arrow.names
        numbers = names[-width:]
        if offset is None:
            if names[:-width] != attributes or file.metadata.num_rows != cells:
                raise KeyError
            return [column.to_numpy() for column in file.read(columns=numbers).columns]
        groups, skipped, start = [], 0, 0
        for group, rows in enumerate(row_groups(file)):
            if start + rows > offset and start < offset + cells:
                groups.append(group)
            elif not groups:
                skipped += rows
            start += rows
        found = file.read_row_groups(groups, columns=[*names[:-width:2], *numbers]).slice(offset - skipped, cells)
        ends = [[str(column[at]) for column in found.columns[:-width]] for at in ((0, -1) if found.num_rows else ())]
        if ends != [attributes, attributes]:
            raise KeyError
        return [column.to_numpy() for column in found.columns[-width:]]


class _OneFileEach:
    """tables/0003-age-sex.parquet with the columns age, sex, value, std_error, and those of measures."""

    def __init__(
        self, plan: Plan, quantities: Sequence[Quantity], folder: Path, place: str, metadata: dict[str, str]
    ) -> None:
        schema = plan.schema
        self.entries: list[Entry] = []
        self._plan, self._quantities = plan, quantities
        self._schema = schema
        self._folder = folder
        self._place = place
        self._metadata = metadata

    def __enter__(self) -> _OneFileEach:
        return self

    def __exit__(self, *_: object) -> None:
        """Every file is closed as soon as it is written."""

    def add(self, rows: NDArray[np.int32], shape: tuple[int, ...], numbers: Columns) -> None:
        """Write one file for each marginal."""
        for at, marginal in enumerate(map(tuple, rows.tolist())):
            own = {quantity: tuple(column[at] for column in columns) for quantity, columns in numbers.items()}
            name = f"{self._place}/{len(self.entries):04d}-{_slug(self._schema.describe(marginal))}.parquet"
            columns = {
                self._schema.names[i]: _labels(self._schema, i, positions(shape, axis))
                for axis, i in enumerate(marginal)
            }
            columns |= number_columns(self._plan, own, taken=columns)
            pq.write_table(pa.table(columns, metadata=self._metadata), self._folder / name, compression="zstd")
            self.entries.append(_entry(self._schema, marginal, name))


class _Packs:
    """tables/3-way.parquet with the columns attribute_1, label_1, ..., value, std_error, ...; a table is a run of rows.

    Beside it is an index with the place of each table and the margins of its cells [bundle/index.py].
    """

    def __init__(
        self, plan: Plan, quantities: Sequence[Quantity], folder: Path, place: str, metadata: dict[str, str]
    ) -> None:
        schema = plan.schema
        self.entries: list[Entry] = []
        self._plan, self._quantities = plan, quantities
        self._schema = schema
        self._folder = folder
        self._place = place
        self._metadata = metadata
        self._writer: pq.ParquetWriter | None = None
        self._order = -1
        self._rows: list[NDArray[np.int32]] = []
        self._names = pa.array(schema.names, pa.string())
        self._labels = pa.array([label for attribute in schema.attributes for label in attribute.labels], pa.string())
        self._starts = np.concatenate([[0], np.cumsum(schema.sizes)[:-1]]).astype(np.int32)

    def __enter__(self) -> _Packs:
        return self

    def __exit__(self, problem: type[BaseException] | None, *_: object) -> None:
        if problem is None:
            self._close()
        elif self._writer is not None:
            self._writer.close()

    def _close(self) -> None:
        """Finish a pack: its file, its index, and its entry for the manifest."""
        if self._writer is None:
            return
        self._writer.close()
        rows, place = np.concatenate(self._rows), f"{self._place}/{self._order}-way-index.parquet"
        cells = np.prod(np.array(self._schema.sizes, dtype=np.int64)[rows], axis=1, dtype=np.int64)
        columns: dict[str, Any] = {
            f"attribute_{axis + 1}": pa.DictionaryArray.from_arrays(rows[:, axis].astype(np.int16), self._names)
            for axis in range(self._order)
        }
        columns["offset"] = np.concatenate([[0], np.cumsum(cells)[:-1]]).astype(np.int64)
        columns["cells"] = cells
        columns["margin_95"] = pa.array(table_margins(self._plan.count, rows), pa.float64(), from_pandas=True)
        index = pa.table(columns, metadata=self._metadata)
        pq.write_table(index, self._folder / place, compression="zstd", write_statistics=False)
        told = {"pack": self._order, "file": self._file, "index": place}
        self.entries.append({**told, "tables": len(rows), "cells": int(cells.sum())})
        self._writer, self._rows = None, []

    def add(self, rows: NDArray[np.int32], shape: tuple[int, ...], numbers: Columns) -> None:
        """Append marginals of one shape; they come in increasing order (number of attributes)."""
        order, cells = len(shape), int(np.prod(shape, dtype=np.int64))
        columns: dict[str, Any] = {}
        for axis in range(order):
            attributes = np.repeat(rows[:, axis], cells)
            labels = np.tile(positions(shape, axis), len(rows)) + np.repeat(self._starts[rows[:, axis]], cells)
            columns[f"attribute_{axis + 1}"] = pa.DictionaryArray.from_arrays(attributes.astype(np.int16), self._names)
            columns[f"label_{axis + 1}"] = pa.DictionaryArray.from_arrays(labels, self._labels)
        columns |= number_columns(self._plan, numbers, taken={})
        estimates = {names[0] for names in column_names(self._plan, self._quantities).values()}
        table = pa.table(columns, metadata=self._metadata)
        if order != self._order:
            self._close()
            self._order = order
            self._writer = pq.ParquetWriter(
                self._folder / self._file,
                table.schema,
                compression={name: "none" if name in estimates else "zstd" for name in columns},
                use_dictionary=[name for name in columns if name not in estimates],
                write_statistics=False,  # they would decode every label again: three times the time
            )
        self._writer.write_table(table)  # type: ignore[union-attr]
        self._rows.append(rows)

    @property
    def _file(self) -> str:
        return f"{self._place}/{self._order}-way.parquet"


def std_errors(design: Design, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
    """Standard errors of the cells of marginals of one shape, broadcast where a table's cells are alike."""
    alike = design.errors.exact_cell_variances[design.request.marginals.find(rows)]
    result = np.broadcast_to(alike.reshape(-1, *[1] * len(shape)), (len(rows), *shape))
    if not design.errors.cells_are_alike:
        result = np.stack(
            [np.broadcast_to(design.errors.cell_variance_table(tuple(row)), shape) for row in rows.tolist()]
        )
    return np.sqrt(result)


def cell_margins(design: Design, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
    """Half-widths of the cells' 95% intervals, likewise."""
    alike = table_margins(design, rows)
    if not np.isnan(alike).any():
        return np.broadcast_to(alike.reshape(-1, *[1] * len(shape)), (len(rows), *shape))
    errors = std_errors(design, rows, shape)
    each = (design.errors.cell_margin(tuple(row), own) for row, own in zip(rows.tolist(), errors, strict=True))
    return np.stack([np.broadcast_to(widths, shape) for widths in each])


def table_margins(plan: Design, rows: NDArray[np.int32]) -> Floats:
    """Half-widths of the 95% intervals of the cells of marginals; no number where a table's cells differ."""
    if not plan.errors.cells_are_alike:
        return np.full(len(rows), np.nan)
    return plan.errors.margins[plan.request.marginals.find(rows)]


def positions(shape: tuple[int, ...], axis: int) -> NDArray[np.int32]:
    """The position along an axis of every cell, in row-major order."""
    inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    outer = int(np.prod(shape[:axis], dtype=np.int64))
    return np.tile(np.repeat(np.arange(shape[axis], dtype=np.int32), inner), outer)


def _labels(schema: Schema, attribute: int, positions: NDArray[np.int32]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(positions, pa.array(schema.attributes[attribute].labels, pa.string()))


def number_columns(plan: Plan, numbers: Columns, taken: Iterable[str]) -> dict[str, Any]:
    """The columns of numbers, the last ones; averages that nobody knows are null."""
    names = column_names(plan, list(numbers), taken)
    return {
        name: pa.array(np.ascontiguousarray(column).reshape(-1), from_pandas=quantity.kind == "avg")
        for quantity, columns in numbers.items()
        for name, column in zip(names[quantity], columns, strict=True)
    }


def _entry(schema: Schema, marginal: Marginal, file: str) -> Entry:
    names = [schema.names[i] for i in marginal]
    return {"attributes": names, "file": file, "cells": schema.cells(marginal)}
