"""A release on disk: Parquet tables and one JSON manifest, complete or not there at all.

    manifest.json          what is here: format, schema, workload, privacy, strategy, checksums, and the list of tables
    tables/*.parquet       one row per cell: the attributes as labelled columns, beside them their codes where these
                           are numbers or labels are declared [bundle/axes.py], then `value` and `std_error` of the
                           count, at face value perhaps an `estimated_error`; of measures `sum_x` and
                           `sum_x_std_error`, and, where they are asked for, `avg_x` with `avg_x_low` and `avg_x_high`,
                           the ends of its 95% interval (null where nobody knows); last, how far each number can be
                           relied on: `quality`, `sum_x_quality`, `avg_x_quality`
    measurements/          the noisy integers of each part, in the order of its design: all that other post-processing
                           needs
    plan.json, schema.yaml, PRIVACY.md
    README.md, index.csv, index.html       what explains the tables to people, and lists them   [bundle/guide.py]
    faces/NAME/            the same counts under another promise, the synthetic people behind whole numbers, and a
                           PRIVACY.md and a guide of its own

Beyond 1,000 tables they are packed by order into few files [bundle/table_files.py]. Everything is written to a
temporary folder beside the target and renamed at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.ahead import beside
from hushcube.bundle.guide import guide
from hushcube.bundle.hashed import hashed
from hushcube.bundle.manifest import MANIFEST, PEOPLE, PLAN, SCHEMA, checksums, make_manifest, measurement_files, seal
from hushcube.bundle.part import PublishedFace
from hushcube.bundle.reading import LONGEST_RUN
from hushcube.bundle.statement import STATEMENT, face_statement, file_stamp, statements
from hushcube.bundle.table_files import PAGES, write_tables
from hushcube.bundle.tables import Entry
from hushcube.durable import check_output, new_folder
from hushcube.errors import OutputError
from hushcube.faces.value import UNBIASED
from hushcube.model.noise import Measurement
from hushcube.model.schema import COUNT, Schema
from hushcube.planning.plan import Plan
from hushcube.progress import Progress, silent

if TYPE_CHECKING:
    from hushcube.bundle.release import Release  # which writes itself

SUFFIXES: Final = (".parquet", ".csv")  # of files of synthetic people
_SMALLEST: Final = 2**16  # bytes that any release takes
_WORTH: Final = 2**20  # noisy integers from which on a thread of their own is worth starting


def write(release: Release, folder: Path, *, progress: Progress | None = None) -> None:
    """Write a release to a new folder; an interruption leaves nothing behind."""
    check_output(folder)
    tell, plan = progress or silent, release.plan
    with new_folder(folder) as work:
        sources = {name: part.source for name, part in release.parts.items()}
        sums: dict[str, str] = {}
        large = sum(math.prod(shape) for design in plan.designs.values() for shape in design.shapes) > _WORTH

        def write_measured(failed: Callable[[], bool]) -> None:
            (work / "measurements").mkdir()
            for name, file in measurement_files(plan).items():
                _write_measurement(release.parts[name].source.measurement(), work, file, sums, failed, large=large)
            (work / PLAN).write_text(plan.to_json(), encoding="utf-8")

        with beside(write_measured) if large else nullcontext():
            entries = write_tables(release, UNBIASED, sources, work, "tables", tell, sums)
        if not large:
            write_measured(lambda: False)
        (work / SCHEMA).write_text(release.schema.to_yaml(), encoding="utf-8")
        places = {name: f"faces/{name}" for name in release.faces}
        for face in release.faces.values():
            entries += write_face(release, face, work, places[face.name], tell, sums)
        write_statements(release, places, work)
        write_guide(release, UNBIASED, entries, work, places)
        (work / MANIFEST).write_bytes(seal(make_manifest(release, entries, places, checksums(work, "", sums)), work))


def room_needed(plan: Plan) -> int:
    """Bytes that a release of the plan takes on a disk, at least: noise cannot be compressed."""
    cells = int(plan.count.request.marginals.cells.sum()) + sum(form.cells for form in plan.workload.forms)
    measured = sum(math.prod(shape) for design in plan.designs.values() for shape in design.shapes)
    return 8 * (cells * len(plan.quantities) + measured) + _SMALLEST


def write_face(
    release: Release, face: PublishedFace, folder: Path, place: str, progress: Progress, sums: dict[str, str]
) -> list[Entry]:
    """Write the files of a face to its place in a release; returns the entries of its tables for the manifest.

    The checksums that are known by then are put into `sums`.
    """
    plan, private = release.plan, release.private
    sources, into = {COUNT: face.source}, f"{place}/tables"
    entries = write_tables(release, face.name, sources, folder, into, progress, sums, face.estimated)
    if face.read_people is not None:
        write_people(face.read_people(), plan.schema, folder / place / PEOPLE, private=private)
    (folder / place / STATEMENT).write_text(face_statement(plan, face, private=private), encoding="utf-8")
    write_guide(release, face.name, entries, folder, {face.name: place}, estimated=face.is_estimated)
    return entries


def write_guide(
    release: Release,
    face: str,
    entries: Sequence[Entry],
    folder: Path,
    places: Mapping[str, str],
    *,
    estimated: bool = False,
) -> None:
    """What explains the tables of a face, in its place, or at the top."""
    for name, text in guide(release.plan, face, entries, places, private=release.private, estimated=estimated).items():
        (folder / places.get(face, "") / name).write_bytes(text.encode())


def write_statements(release: Release, places: dict[str, str], folder: Path) -> None:
    """What is promised by the release, and by each face in its own place."""
    faces, private = release.faces.values(), release.private
    for name, text in statements(release.plan, faces, places, private=private, receipt=release.receipt).items():
        (folder / name).write_text(text, encoding="utf-8")


def _write_measurement(
    measurement: Measurement, folder: Path, name: str, sums: dict[str, str], failed: Callable[[], bool], *, large: bool
) -> None:
    """Write the noisy integers to a file; without an end where all of the release has failed."""
    fields = [pa.field("value", pa.int64(), nullable=False)]
    schema = pa.schema(fields, metadata=file_stamp(private=measurement.private))
    packed = {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED", "write_statistics": False, **PAGES}
    with (
        hashed(folder / name, name, sums) if large else nullcontext(folder / name) as sink,
        pq.ParquetWriter(sink, schema, compression="zstd", **packed) as writer,
    ):
        for values in measurement.values:
            flat = values.reshape(-1)
            for start in range(0, len(flat), LONGEST_RUN):
                if failed():
                    return
                writer.write_table(pa.table([flat[start : start + LONGEST_RUN]], schema=schema))


def write_people(codes: NDArray[np.integer], schema: Schema, path: Path, *, private: bool) -> None:
    """Write people as Parquet or CSV, by the file's suffix; Parquet has room for the stamp of a seeded release.

    They stand in for data, so that they have codes: what reads the data, hushcube and its schema too, reads them.
    """
    every = zip(np.ascontiguousarray(codes.T, dtype=np.int32), schema.attributes, strict=True)
    columns = {a.name: pa.DictionaryArray.from_arrays(own, pa.array(a.coded, pa.string())) for own, a in every}
    table = pa.table(columns, metadata=file_stamp(private=private))
    if path.suffix == ".parquet":
        pq.write_table(table, path, compression="zstd")
    elif path.suffix == ".csv":
        plain = pa.table({name: table.column(name).cast(pa.string()) for name in table.column_names})
        pyarrow.csv.write_csv(plain, path)
    else:
        raise OutputError("out", f"{path.suffix or 'no suffix'} is not a kind of file", "end it in .parquet or .csv")
