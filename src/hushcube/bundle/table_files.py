"""The Parquet files of the tables of a face: one for each table, or packs of many.

Beyond 1,000 tables they are packed by order into files with columns attribute_1, label_1, ..., value, std_error, ...,
quality, with an index beside each:

    tables/3-way-index.parquet     one row for each table of tables/3-way.parquet, in the order of the pack:
        attribute_1, ...           the names of its attributes
        offset, cells              its first row in the pack, and how many it has
        margin_95                  the half-width of the 95% interval of each of its cells; null where cells differ

The manifest has one entry for a pack: `pack` (the number of attributes), `file`, `index`, and how many `tables` and
`cells` there are.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.ahead import ahead
from hushcube.bundle import tables
from hushcube.bundle.axes import Axis, axis_columns, cell_axes, form_axes
from hushcube.bundle.hashed import hashed
from hushcube.bundle.reading import LONGEST_RUN
from hushcube.bundle.statement import table_metadata
from hushcube.bundle.tables import (
    Columns,
    Entry,
    Numbers,
    Piece,
    Rows,
    Values,
    flag_columns,
    number_columns,
    piece_positions,
    pieces,
    published_family,
)
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.lattice.family import Family
from hushcube.model.arrays import keep_freed
from hushcube.model.workload import COUNTED, Quantity
from hushcube.planning.plan import Plan
from hushcube.progress import Progress

if TYPE_CHECKING:
    from hushcube.bundle.release import Release  # which writes itself

Chunk = tuple[Rows, tuple[int, ...], Columns]
"""Marginals of one shape with their numbers."""

MOST_FILES: Final = 1_000
_CHUNK: Final = 2**19  # cells held at once while streaming to disk
# Newer versions of pyarrow write pages of 20,000 rows, which takes a quarter more time; earlier ones set no limit.
_LIMITED: Final = "max_rows_per_page" in inspect.signature(pq.ParquetWriter).parameters
PAGES: Final = {"max_rows_per_page": LONGEST_RUN} if _LIMITED else {}
"""How files are written whose pages are as long as they may be."""


def write_tables(
    release: Release,
    face: str,
    sources: Mapping[str, Values],
    folder: Path,
    place: str,
    progress: Progress,
    sums: dict[str, str],
    estimated: Values | None = None,
) -> list[Entry]:
    """Write all tables of a face to a `place` in `folder`; returns their entries for the manifest.

    The unbiased tables hold all quantities with their flags, those of other faces the counts, and their `estimated`
    errors where there are any. Checksums of large files go to `sums`.
    """
    plan, schema, family = release.plan, release.plan.schema, published_family(release.plan)
    quantities = tables.written(plan) if face == UNBIASED else (COUNTED,)
    flagged = quantities if face == UNBIASED else ()
    told = _Told(float(family.cells.sum()) + sum(form.cells for form in plan.workload.forms), progress)
    stamped = table_metadata(schema, private=release.private)
    files = _Files(plan, quantities, flagged, folder, place, stamped, told, sums, estimated is not None)
    (folder / place).mkdir(parents=True)
    numbers = Numbers(plan, sources, quantities, estimated=estimated)
    whole = face != UNBIASED and published_promises()[face].whole
    chunks = _chunks(family, numbers, whole=whole)
    entries: list[Entry] = []
    if len(family) > MOST_FILES:
        entries += [files.pack(order, own) for order, own in groupby(chunks, lambda chunk: len(chunk[1]))]
    else:
        for rows, _, found in ahead(chunks):
            for at, marginal in enumerate(map(tuple, rows.tolist())):
                attributes = [schema.attributes[i] for i in marginal]
                own = {quantity: tuple(column[at] for column in columns) for quantity, columns in found.items()}
                file = files.one(len(entries), schema.describe(marginal), cell_axes(attributes), own)
                names = [attribute.name for attribute in attributes]
                entries.append({"attributes": names, "file": file, "cells": schema.cells(marginal)})
    for number, form in enumerate(plan.workload.forms, len(family)):
        file = files.one(number, form.word, form_axes(form), _typed(numbers.form(form), whole))
        names = [schema.names[i] for i in form.marginal]
        entries.append({"attributes": names, "form": form.word, "file": file, "cells": form.cells})
    return [{**entry, "face": face} for entry in entries]


def _chunks(family: Family, numbers: Numbers, *, whole: bool) -> Iterator[Chunk]:
    """All marginals in increasing order (number of attributes), as many at a time as memory holds."""
    keep_freed()
    for batch in family.batches:
        for part in batch.parts(_CHUNK):
            rows = batch.rows[part]
            yield rows, batch.shape, _typed(numbers.tables(rows, batch.shape), whole)


@dataclass
class _Told:
    """Who is told how much is written."""

    total: float
    progress: Progress
    done: int = 0

    def more(self, cells: int) -> None:
        """So many cells are written."""
        self.done += cells
        self.progress("writing", min(self.done / self.total, 1.0))


def _typed(found: Columns, whole: bool) -> Columns:
    """Whole numbers as such; queries of whole numbers may have fractional weights."""
    counts, *errors = found[COUNTED]
    if whole and (counts == np.rint(counts)).all():
        return {**found, COUNTED: (np.rint(counts).astype(np.int64), *errors)}
    return found


@dataclass(frozen=True)
class _Files:
    """The files of the tables of a face, in a place of a folder."""

    plan: Plan
    quantities: Sequence[Quantity]
    flagged: Sequence[Quantity]
    """Those whose flags stand beside them."""
    folder: Path
    place: str
    metadata: dict[str, str]
    told: _Told
    sums: dict[str, str]
    estimated: bool
    """Whether counts have estimated errors."""

    def one(self, number: int, word: str, axes: Sequence[Axis], numbers: Columns) -> str:
        """Write tables/0003-age-sex.parquet: the columns age, age_code, sex, value, std_error, those of measures."""
        file = f"{self.place}/{tables.file_stem(number, word)}.parquet"
        texts = [pa.array(list(axis.labels), pa.string()) for axis in axes]
        names = tables.column_names(self.plan, self.quantities, axis_columns(axes), estimated=self.estimated)
        flags = tables.flag_names(self.plan, self.flagged, axis_columns(axes))

        def runs() -> Iterator[dict[str, Any]]:
            for piece in pieces(tuple(len(axis.labels) for axis in axes), _CHUNK):
                columns: dict[str, Any] = {}
                for k, axis in enumerate(axes):
                    at = piece_positions(piece, k)
                    columns[axis.name] = _coded(at, texts[k])
                    if axis.code_name:
                        columns[axis.code_name] = axis.codes.take(pa.array(at))
                yield columns | number_columns(names, numbers, piece) | self._flags(flags, numbers, piece)

        absent = {axis.code_name for axis in axes if axis.code_name and axis.codes.null_count}
        large = math.prod(len(axis.labels) for axis in axes) > _CHUNK
        self._stream(file, runs(), names, absent, large=large, compression="zstd")
        return file

    def pack(self, order: int, chunks: Iterable[Chunk]) -> Entry:
        """Write tables/3-way.parquet with the columns attribute_1, label_1, ..., value, std_error, ..., and its index.

        A table is a run of rows; the index has its place and the margins of its cells.
        """
        file = f"{self.place}/{order}-way.parquet"
        attributes, labels, texts, starts = tables.pack_texts(self.plan.schema)
        names = tables.column_names(self.plan, self.quantities, estimated=self.estimated)
        flags = tables.flag_names(self.plan, self.flagged)
        packed: list[Rows] = []

        def runs() -> Iterator[dict[str, Any]]:
            for rows, shape, numbers in chunks:
                packed.append(rows)
                for piece in pieces(shape, _CHUNK):
                    columns: dict[str, Any] = {}
                    for axis in range(order):
                        along, which = np.unique(rows[:, axis], return_inverse=True)
                        at = texts[starts[along, None] + piece_positions(piece, axis)]  # of each attribute, once
                        own = np.repeat(rows[:, axis].astype(np.int16), at.shape[1])
                        columns[f"attribute_{axis + 1}"] = _coded(own, attributes)
                        columns[f"label_{axis + 1}"] = _coded(at[which].reshape(-1), labels)
                    every = (slice(None), *piece)
                    yield columns | number_columns(names, numbers, every) | self._flags(flags, numbers, every)

        named = [f"{kind}_{axis + 1}" for axis in range(order) for kind in ("attribute", "label")]
        named += flags.values()
        compression = dict.fromkeys(named, "zstd")
        for estimate, *others in names.values():  # estimates are noise to every digit, the others repeat themselves
            compression |= {estimate: "none", **dict.fromkeys(others, "zstd")}
        self._stream(file, runs(), names, set(), large=True, compression=compression, use_dictionary=named)
        return {"pack": order, "file": file, **self._index(order, np.concatenate(packed), attributes)}

    def _flags(self, names: Mapping[Quantity, str], numbers: Columns, piece: Piece) -> dict[str, Any]:
        return flag_columns(names, self.plan.schema, numbers, piece)

    def _index(self, order: int, rows: Rows, names: pa.Array) -> Entry:
        file = f"{self.place}/{order}-way-index.parquet"
        cells = np.prod(np.array(self.plan.schema.sizes, dtype=np.int64)[rows], axis=1, dtype=np.int64)
        columns: dict[str, Any] = {
            f"attribute_{axis + 1}": pa.DictionaryArray.from_arrays(rows[:, axis].astype(np.int16), names)
            for axis in range(order)
        }
        columns["offset"] = np.concatenate([[0], np.cumsum(cells)[:-1]]).astype(np.int64)
        columns["cells"] = cells
        columns["margin_95"] = pa.array(tables.table_margins(self.plan.count, rows), pa.float64(), from_pandas=True)
        self._write(file, columns)
        return {"index": file, "tables": len(rows), "cells": int(cells.sum())}

    def _stream(
        self,
        file: str,
        runs: Iterable[dict[str, Any]],
        names: Mapping[Quantity, Sequence[str]],
        absent: Collection[str],
        *,
        large: bool,
        **options: Any,
    ) -> None:
        """Write a file run by run; of a large one, the next run is made meanwhile, and the checksum.

        Averages, and codes that are `absent`, can be null: else a third less time.
        """
        nullable = {name for quantity, own in names.items() if quantity.kind == "avg" for name in own} | {*absent}

        def table(columns: dict[str, Any]) -> pa.Table:
            fields = [pa.field(name, column.type, nullable=name in nullable) for name, column in columns.items()]
            return pa.table(list(columns.values()), schema=pa.schema(fields, metadata=self.metadata))

        made = ahead(map(table, runs)) if large else map(table, runs)
        first = next(made)
        # statistics would decode every label again: three times the time
        with (
            hashed(self.folder / file, file, self.sums) if large else nullcontext(self.folder / file) as sink,
            pq.ParquetWriter(sink, first.schema, write_statistics=False, **PAGES, **options) as writer,
        ):
            for each in chain([first], made):
                writer.write_table(each)
                self.told.more(each.num_rows)

    def _write(self, file: str, columns: dict[str, Any]) -> None:
        table = pa.table(columns, metadata=self.metadata)
        pq.write_table(table, self.folder / file, compression="zstd", write_statistics=False)


def _coded(codes: NDArray[np.integer], texts: pa.Array) -> pa.DictionaryArray:
    """A column of texts; that codes are within the texts is known, and need not be looked at."""
    return pa.DictionaryArray.from_arrays(codes, texts, safe=False)
