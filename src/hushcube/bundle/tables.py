"""Tables as Parquet files: one each, or packed by order where there are very many."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.published_table import beside
from hushcube.bundle.reading import parquet, row_groups
from hushcube.bundle.stamp import file_stamp
from hushcube.designs import LatticeDesign
from hushcube.designs import errors as error
from hushcube.designs.design import Design
from hushcube.designs.lattice.errors import is_uneven
from hushcube.designs.margins import margins
from hushcube.faces.value import NAMES, UNBIASED
from hushcube.lattice.family import Family
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema
from hushcube.progress import Progress

Floats = NDArray[np.float64]
Entry = dict[str, Any]

MOST_FILES: Final = 1_000
_CHUNK: Final = 2**19
"""Cells held at once while streaming to disk."""


class Values(Protocol):
    """Where the values of tables and forms come from."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The values of published marginals (rows of positions) of one shape; (marginals, *shape)."""

    def form(self, form: Form) -> Floats:
        """The values of a published form; of its shape."""


def published_tables(plan: Design) -> Family:
    """The marginals that are published; carriers of queries are not."""
    family = plan.request.marginals
    if len(plan.workload.published) < len(family):
        family = Family.of(plan.workload.published, plan.schema.sizes)
    return family


def write_tables(
    plan: Design,
    source: Values,
    folder: Path,
    progress: Progress,
    *,
    face: str = UNBIASED,
    place: str = "",
    private: bool,
) -> list[Entry]:
    """Write all tables of a face below a `place` in `folder`; returns their entries for the manifest."""
    family = published_tables(plan)
    place = f"{place}/tables" if place else "tables"
    (folder / place).mkdir(parents=True)
    done, total = 0.0, float(family.cells.sum())
    whole = face == NAMES["integral"]
    metadata = file_stamp(private=private)
    few = len(family) <= MOST_FILES
    with (_OneFileEach if few else _Packs)(plan, folder, place, metadata) as sink:
        for batch in family.batches:
            for part in batch.parts(_CHUNK):
                rows = batch.rows[part]
                values = source.tables(rows, batch.shape)
                sink.add(rows, batch.shape, _typed(values, whole), std_errors(plan, rows, batch.shape))
                done += values.size
                progress("writing", min(done / total, 1.0))
    entries = sink.entries
    for number, form in enumerate(plan.workload.forms, len(family)):
        name = f"{place}/{number:04d}-{_slug(form.word)}.parquet"
        table = _form_table(plan, _typed(source.form(form), whole), form, metadata)
        pq.write_table(table, folder / name, compression="zstd")
        names = [plan.schema.names[i] for i in form.marginal]
        entries.append({"attributes": names, "form": form.word, "file": name, "cells": form.cells})
    return [{**entry, "face": face} for entry in entries]


def _typed(values: Floats, whole: bool) -> NDArray[Any]:
    """Whole numbers as such; queries of whole numbers may have fractional weights."""
    return np.rint(values).astype(np.int64) if whole and (values == np.rint(values)).all() else values


def _form_table(plan: Design, values: NDArray[Any], form: Form, metadata: dict[str, str]) -> pa.Table:
    """A form: its axes as labelled columns, then value and std_error."""
    columns: dict[str, Any] = {
        axis: pa.DictionaryArray.from_arrays(positions(form.shape, at), pa.array(list(labels), pa.string()))
        for at, (axis, labels) in enumerate(zip(form.axes, form.labels, strict=True))
    }
    columns |= number_columns(values, np.sqrt(error.form_variances(plan, form, exact=True)), taken=columns)
    return pa.table(columns, metadata=metadata)


def _slug(word: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", word).strip("-")[:60]


def read_numbers(
    folder: Path, name: str, attributes: list[str], offset: int | None, cells: int
) -> tuple[Floats, Floats]:
    """Values and standard errors of one table, which must be the one asked for; of a pack, only the part with it."""
    with parquet(folder, name) as file:
        names = file.schema_arrow.names
        numbers = names[-2:]
        if offset is None:
            if names[:-2] != attributes or file.metadata.num_rows != cells:
                raise KeyError
            found = file.read(columns=numbers)
            return found.column(0).to_numpy(), found.column(1).to_numpy()
        groups, skipped, start = [], 0, 0
        for group, rows in enumerate(row_groups(file)):
            if start + rows > offset and start < offset + cells:
                groups.append(group)
            elif not groups:
                skipped += rows
            start += rows
        found = file.read_row_groups(groups, columns=[*names[:-2:2], *numbers]).slice(offset - skipped, cells)
        ends = [[str(column[at]) for column in found.columns[:-2]] for at in ((0, -1) if found.num_rows else ())]
        if ends != [attributes, attributes]:
            raise KeyError
        return found.column(-2).to_numpy(), found.column(-1).to_numpy()


class _OneFileEach:
    """tables/0003-age-sex.parquet with the columns age, sex, value, std_error."""

    def __init__(self, plan: Design, folder: Path, place: str, metadata: dict[str, str]) -> None:
        schema = plan.schema
        self.entries: list[Entry] = []
        self._schema = schema
        self._folder = folder
        self._place = place
        self._metadata = metadata

    def __enter__(self) -> _OneFileEach:
        return self

    def __exit__(self, *_: object) -> None:
        """Every file is closed as soon as it is written."""

    def add(self, rows: NDArray[np.int32], shape: tuple[int, ...], values: NDArray[Any], std_errors: Floats) -> None:
        """Write one file for each marginal."""
        for marginal, table, errors in zip(map(tuple, rows.tolist()), values, std_errors, strict=True):
            name = f"{self._place}/{len(self.entries):04d}-{_slug(self._schema.describe(marginal))}.parquet"
            columns = {
                self._schema.names[i]: _labels(self._schema, i, positions(shape, axis))
                for axis, i in enumerate(marginal)
            }
            columns |= number_columns(table, errors, taken=columns)
            pq.write_table(pa.table(columns, metadata=self._metadata), self._folder / name, compression="zstd")
            self.entries.append(_entry(self._schema, marginal, name))


class _Packs:
    """tables/3-way.parquet with the columns attribute_1, label_1, ..., value, std_error; a table is a run of rows.

    Beside it is an index with the place of each table and the margins of its cells [bundle/index.py].
    """

    def __init__(self, plan: Design, folder: Path, place: str, metadata: dict[str, str]) -> None:
        schema = plan.schema
        self.entries: list[Entry] = []
        self._schema = schema
        self._folder = folder
        self._place = place
        self._metadata = metadata
        self._writer: pq.ParquetWriter | None = None
        self._order = -1
        self._rows: list[NDArray[np.int32]] = []
        self._plan = plan
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
        columns["margin_95"] = pa.array(table_margins(self._plan, rows), pa.float64(), from_pandas=True)
        index = pa.table(columns, metadata=self._metadata)
        pq.write_table(index, self._folder / place, compression="zstd", write_statistics=False)
        told = {"pack": self._order, "file": self._file, "index": place}
        self.entries.append({**told, "tables": len(rows), "cells": int(cells.sum())})
        self._writer, self._rows = None, []

    def add(self, rows: NDArray[np.int32], shape: tuple[int, ...], values: NDArray[Any], std_errors: Floats) -> None:
        """Append marginals of one shape; they come in increasing order (number of attributes)."""
        order, cells = len(shape), int(np.prod(shape, dtype=np.int64))
        columns: dict[str, Any] = {}
        for axis in range(order):
            attributes = np.repeat(rows[:, axis], cells)
            labels = np.tile(positions(shape, axis), len(rows)) + np.repeat(self._starts[rows[:, axis]], cells)
            columns[f"attribute_{axis + 1}"] = pa.DictionaryArray.from_arrays(attributes.astype(np.int16), self._names)
            columns[f"label_{axis + 1}"] = pa.DictionaryArray.from_arrays(labels, self._labels)
        columns |= number_columns(values, std_errors, taken={})
        table = pa.table(columns, metadata=self._metadata)
        if order != self._order:
            self._close()
            self._order = order
            self._writer = pq.ParquetWriter(
                self._folder / self._file,
                table.schema,
                compression={name: "none" if name == "value" else "zstd" for name in columns},
                use_dictionary=[name for name in columns if name != "value"],
                write_statistics=False,  # they would decode every label again: three times the time
            )
        self._writer.write_table(table)  # type: ignore[union-attr]
        self._rows.append(rows)

    @property
    def _file(self) -> str:
        return f"{self._place}/{self._order}-way.parquet"


def std_errors(plan: Design, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
    """Standard errors of the cells of marginals of one shape, broadcast where a table's cells are alike."""
    alike = error.exact_cell_variances(plan)[plan.request.marginals.find(rows)]
    result = np.broadcast_to(alike.reshape(-1, *[1] * len(shape)), (len(rows), *shape))
    if not isinstance(plan, LatticeDesign) or is_uneven(plan):
        result = np.stack(
            [np.broadcast_to(error.cell_variance_table(plan, tuple(row)), shape) for row in rows.tolist()]
        )
    return np.sqrt(result)


def table_margins(plan: Design, rows: NDArray[np.int32]) -> Floats:
    """Half-widths of the 95% intervals of the cells of marginals; no number where a table's cells differ."""
    if not isinstance(plan, LatticeDesign) or is_uneven(plan):
        return np.full(len(rows), np.nan)
    return error.once(plan, "_margins", lambda: margins(plan))[plan.request.marginals.find(rows)]


def positions(shape: tuple[int, ...], axis: int) -> NDArray[np.int32]:
    """The position along an axis of every cell, in row-major order."""
    inner = int(np.prod(shape[axis + 1 :], dtype=np.int64))
    outer = int(np.prod(shape[:axis], dtype=np.int64))
    return np.tile(np.repeat(np.arange(shape[axis], dtype=np.int32), inner), outer)


def _labels(schema: Schema, attribute: int, positions: NDArray[np.int32]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(positions, pa.array(schema.attributes[attribute].labels, pa.string()))


def number_columns(values: NDArray[Any], std_errors: Floats, taken: dict[str, Any]) -> dict[str, Any]:
    """The two number columns, the last ones."""
    names = beside(taken, "value", "std_error")
    return dict(zip(names, (pa.array(np.ascontiguousarray(x).reshape(-1)) for x in (values, std_errors)), strict=True))


def _entry(schema: Schema, marginal: Marginal, file: str) -> Entry:
    names = [schema.names[i] for i in marginal]
    return {"attributes": names, "file": file, "cells": schema.cells(marginal)}
