"""Opening a release: what is published is read when it is asked for.                        [bundle/writing.py]

The indexes of packs say where each table is, so that one is found without the list of a million others and the plan.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.bundle.axes import axis_columns, cell_axes
from hushcube.bundle.earlier_cubes import is_earlier_cube, open_earlier_cube
from hushcube.bundle.manifest import (
    FLAGGED,
    MANIFEST,
    PEOPLE,
    PLAN,
    check_files,
    entry_key,
    face_folders,
    is_face_folder,
    measurement_files,
    read_manifest,
    read_plan,
    repeats,
    steadily,
)
from hushcube.bundle.part import Part, PublishedFace, names_of
from hushcube.bundle.published_table import Table
from hushcube.bundle.reading import damaged, parquet, read_text
from hushcube.bundle.receipt import Receipt
from hushcube.bundle.release import Release
from hushcube.bundle.statement import STATEMENT, is_stamped
from hushcube.bundle.tables import ESTIMATED, Entries, Entry, Rows, quantised_sums, read_numbers, read_packed, written
from hushcube.designs.design import Design
from hushcube.errors import BadInput, BundleError
from hushcube.faces.value import MOST_PEOPLE, UNBIASED, published_promises
from hushcube.model.arrays import Floats
from hushcube.model.form import Form
from hushcube.model.noise import Measurement
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import COUNTED, Quantity
from hushcube.planning.plan import Plan

_MOST: Final = 10**8  # tables of one pack that an index is read for


def open_bundle(folder: Path, *, verify: bool = True) -> Release:
    """Open a release; unless told not to, every file's checksum is verified."""
    return steadily(folder, lambda: _open(folder, verify))


def _open(folder: Path, verify: bool) -> Release:
    manifest = read_manifest(folder)
    if is_earlier_cube(manifest):
        return open_earlier_cube(folder, manifest, _open, verify=verify)
    if verify:
        check_files(folder, manifest)
    try:
        plan = read_plan(folder, manifest)
        described, places = manifest.get("faces", {}), face_folders(manifest)
        faces: dict[str, Entries] = {name: {} for name in (UNBIASED, *described)}
        listed, private = table_entries(folder, manifest), manifest["private"]
        for entry in listed:
            faces[entry["face"]][entry_key(entry, plan)] = entry
        asked = {*plan.workload.published, *(form.word for form in plan.workload.forms)}
        if (
            private is not (not is_stamped(read_text(folder, STATEMENT)))
            or not repeats(manifest, plan)
            or not set(described) <= set(published_promises())
            or not all(map(is_face_folder, places.values()))
            or any(entries.keys() != asked for entries in faces.values())
            or sum(map(len, faces.values())) != len(listed)
        ):
            raise ValueError
        files = measurement_files(plan, manifest["format"])
        if not set(files.values()) <= manifest["checksums"].keys():
            raise damaged(MANIFEST, "has no checksum of the measurements")
        published = {}
        for name, description in described.items():
            people = f"{places[name]}/{PEOPLE}"
            codes = partial(read_people, folder, people, plan.schema) if people in manifest["checksums"] else None
            told = {key: value for key, value in description.items() if key != "folder"}
            values, estimated = face_columns(folder, plan, faces[name], estimated=ESTIMATED in told)
            published[name] = PublishedFace(name, told, values, codes, estimated)
            published[name].facts(plan.schema)  # which can be read
            published[name].edition(plan.schema)
        tables = partial(MeasuredTables, folder, plan, faces[UNBIASED], private=private, version=manifest["format"])
        parts = {name: Part(design, tables(name, file=files[name]), private) for name, design in plan.designs.items()}
        receipt = Receipt.from_dict(manifest.get("receipt"))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged(MANIFEST, "does not fit the plan and the tables") from None
    except BundleError:
        raise
    except BadInput as problem:
        raise damaged(PLAN, problem.problem) from None
    return Release(plan, parts, published, receipt)


class BundleTables:
    """The values of a face, read from a folder when asked for: the counts, or what a measure's values are summed as."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        entries: Entries,
        part: str = COUNT,
        held: Sequence[Quantity] = (COUNTED,),
        flags: int = 0,
    ) -> None:
        self._folder, self._plan, self._entries = folder, plan, entries
        self._measure = None if part == COUNT else plan.schema.measure(part)
        columns = [(quantity, at) for quantity in held for at in range(quantity.width)]
        self._width, self._at = len(columns), columns.index((plan.measured[part], 0))
        self._flags = flags

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The values of published marginals of one shape; what follows each other in a pack is read at once."""
        schema, cells = self._plan.schema, math.prod(shape)
        marginals = [tuple(row) for row in rows.tolist()]
        found = []
        for file, offset, run in _runs([self._entries[marginal] for marginal in marginals], cells):
            tables = [[schema.names[i] for i in marginal] for marginal in marginals[run]]
            if offset is None:
                coded = axis_columns(cell_axes([schema.attributes[i] for i in marginals[run][0]]))
                columns = self._read_numbers(file, tables[0], cells, beside_codes=coded)
            else:
                columns = read_packed(self._folder, file, tables, offset, cells, width=self._width, flags=self._flags)
            found.append(self._values(file, columns, (len(tables), *shape)))
        return np.concatenate(found)

    def form(self, form: Form) -> Floats:
        """The values of a published form."""
        file = self._entries[form.word]["file"]
        return self._values(file, self._read_numbers(file, list(form.axes), form.cells), form.shape)

    def _read_numbers(
        self, file: str, attributes: list[str], cells: int, *, beside_codes: list[str] | None = None
    ) -> list[Floats]:
        sizes = {"width": self._width, "flags": self._flags}
        return read_numbers(self._folder, file, attributes, cells, **sizes, beside_codes=beside_codes)

    def _values(self, file: str, columns: list[Floats], shape: tuple[int, ...]) -> Floats:
        if len(columns[0]) != math.prod(shape):
            raise damaged(file, "does not have the right number of rows")
        values = columns[self._at]
        return (values if self._measure is None else quantised_sums(self._measure, columns[0], values)).reshape(shape)


class EstimatedErrors(BundleTables):
    """The estimated errors of the cells of a face, the last column of its tables."""

    def __init__(self, folder: Path, plan: Plan, entries: Entries) -> None:
        super().__init__(folder, plan, entries)
        self._at, self._width = self._width, self._width + 1


def face_columns(
    folder: Path, plan: Plan, entries: Entries, *, estimated: bool
) -> tuple[BundleTables, EstimatedErrors | None]:
    """The values of a face, and its estimated errors if it has any."""
    values = BundleTables(folder, plan, entries, flags=int(estimated))
    return values, EstimatedErrors(folder, plan, entries) if estimated else None


def _runs(entries: Sequence[Entry], cells: int) -> Iterator[tuple[str, int | None, slice]]:
    """Tables that follow each other in a pack, in runs: the file, the first row, and which of the entries they are.

    A file of its own is a run without a row.
    """
    start = 0
    for at, entry in enumerate(entries):
        first, after = entries[start], entries[at + 1] if at + 1 < len(entries) else None
        end = None if "offset" not in entry else entry["offset"] + cells
        if after is None or end is None or (after["file"], after.get("offset")) != (entry["file"], end):
            yield first["file"], first.get("offset"), slice(start, at + 1)
            start = at + 1


class MeasuredTables(BundleTables):
    """The unbiased values of one part, and the noisy measurements behind them."""

    def __init__(
        self, folder: Path, plan: Plan, entries: Entries, part: str, *, file: str, private: bool, version: int
    ) -> None:
        held = written(plan)
        super().__init__(folder, plan, entries, part, held, flags=len(held) if version >= FLAGGED else 0)
        self._design, self._file, self._private = plan.designs[part], file, private

    def measurement(self) -> Measurement:
        """The noisy measurements, in the design's batches."""
        return read_measurement(self._folder, self._file, self._design, private=self._private)


def read_measurement(folder: Path, name: str, design: Design, *, private: bool) -> Measurement:
    """The noisy integers of a file, in a design's batches."""
    ends = np.cumsum([0, *map(math.prod, design.shapes)]).tolist()
    with parquet(folder, name) as file:
        if ends[-1] != file.metadata.num_rows:
            raise damaged(name, "does not have the right number of rows")
        column = file.read(columns=["value"]).column("value")
        if len(column) != ends[-1]:  # its pages may hold other numbers of rows than its footer says
            raise damaged(name, "does not have the right number of rows")
        if column.type != "int64" or column.null_count:
            raise damaged(name, "its numbers are not all integers")
        flat = column.to_numpy()
    parts = zip(ends, ends[1:], design.shapes, strict=False)
    return Measurement(design.digest, tuple(flat[start:end].reshape(shape) for start, end, shape in parts), private)


def read_people(folder: Path, name: str, schema: Schema) -> NDArray[np.integer]:
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
            found = pc.index_in(column, value_set=pa.array(attribute.coded, pa.string()))
            if found.null_count:
                raise damaged(name, "does not fit the schema")
            columns.append(found.to_numpy(zero_copy_only=False))
        return np.stack(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.int64)


def table_entries(folder: Path, manifest: Entry) -> list[Entry]:
    """The entries of all tables, also of those that are only listed in an index."""
    return [table for e in manifest["tables"] for table in (_packed(folder, e) if "index" in e else [e])]


def _packed(folder: Path, pack: Entry) -> Iterator[Entry]:
    with parquet(folder, pack["index"]) as file:
        columns = [column.to_pylist() for column in _read_index(file, pack).columns[:-1]]
    for *attributes, offset, cells in zip(*columns, strict=True):
        own = {"attributes": attributes, "file": pack["file"], "face": pack["face"]}
        yield {**own, "cells": cells, "offset": offset}


def _read_index(file: pq.ParquetFile, pack: Entry) -> pa.Table:
    """The whole index; a million rows are read in a moment."""
    wanted = [f"attribute_{axis + 1}" for axis in range(pack["pack"])]
    rows = file.metadata.num_rows
    if file.schema_arrow.names != [*wanted, "offset", "cells", "margin_95"] or rows > _MOST or rows != pack["tables"]:
        raise KeyError
    return file.read()


def find_table(folder: Path, words: str, *, face: str = UNBIASED, verify: bool = True) -> Table | None:
    """One table of a packed release by its word; the files that are read are verified.

    None where the release has to be opened for it: it has no such index, or measures; or the table is a roll-up, a
    form, or one whose cells have margins of their own.
    """

    def read() -> Table | None:
        manifest = read_manifest(folder)
        try:
            return _find(folder, manifest, words, face, verify)
        except BundleError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, BadInput):
            raise damaged(MANIFEST, "does not fit the tables") from None

    return steadily(folder, read)


def packs_of(manifest: Entry) -> list[Entry]:
    """The entries of packs, which have an index."""
    tables = manifest.get("tables")
    return [e for e in tables if isinstance(e, dict) and "index" in e] if isinstance(tables, list) else []


def _find(folder: Path, manifest: Entry, words: str, face: str, verify: bool) -> Table | None:
    packs = packs_of(manifest)
    if manifest.get("measures") or not packs:
        return None
    schema = Schema.from_dict(manifest["schema"])
    asked = names_of(schema, words)
    if len(set(asked)) < len(asked) or not set(asked) <= set(schema.names):
        return None
    names = sorted(asked, key=schema.position)
    pack = next((e for e in packs if e["face"] == face and e["pack"] == len(names)), None)
    if pack is None:
        return None
    if verify:
        check_files(folder, manifest, (STATEMENT, pack["index"], pack["file"]), others=False)
    place = _place(folder, pack, names)
    if place is None:
        return None
    (offset, margin), marginal, private = place, schema.marginal(names), manifest["private"]
    flags = int(face == UNBIASED and manifest["format"] >= FLAGGED)
    estimated = face != UNBIASED and ESTIMATED in manifest["faces"][face]
    width = COUNTED.width + estimated
    found = read_packed(folder, pack["file"], [names], offset, schema.cells(marginal), width=width, flags=flags)
    if is_stamped(read_text(folder, STATEMENT)) is not (private is False):
        raise damaged(STATEMENT, "does not say of the noise what the manifest says")
    values, errors, *more = (np.asarray(column, np.float64).reshape(schema.shape(marginal)) for column in found)
    told = {"face": face, "private": private, "estimated": more[0] if estimated else None}
    table = Table.of(schema, marginal, values, errors, np.asarray(margin), **told)
    return table.ordered(asked)


def _place(folder: Path, pack: Entry, names: list[str]) -> tuple[int, float] | None:
    """The first row of a table in its pack and the margin of its cells, if the index has them."""
    with parquet(folder, pack["index"]) as file:
        found = _read_index(file, pack)
        for axis, name in enumerate(names):
            found = found.filter(pc.equal(found.column(axis), name))
        if not found.num_rows or found.column("margin_95").null_count:
            return None
        row = found.slice(0, 1).to_pylist()[0]
        return int(row["offset"]), float(row["margin_95"])


def index_margins(folder: Path, pack: Entry, schema: Schema) -> tuple[Rows, Floats]:
    """The tables of a pack as positions of their attributes, and their margins; no number where there is none."""
    names = pa.array(schema.names, pa.string())
    with parquet(folder, pack["index"]) as file:
        found = _read_index(file, pack)
        columns = [pc.index_in(found.column(axis), value_set=names) for axis in range(pack["pack"])]
        if any(column.null_count for column in columns):
            raise KeyError
        margins = found.column("margin_95").to_numpy()
        rows = np.array([column.to_numpy() for column in columns], np.int32).reshape(pack["pack"], len(margins)).T
    return rows, margins
