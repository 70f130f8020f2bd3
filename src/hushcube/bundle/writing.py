"""A release on disk: Parquet tables and one JSON manifest, complete or not there at all.

    manifest.json          what is here: format, schema, workload, privacy, strategy, checksums, and the list of tables
    tables/*.parquet       one row per cell: the attributes as labelled columns, then `value` and `std_error` of the
                           count; of measures `sum_x` and `sum_x_std_error`, and, where they are asked for, `avg_x` with
                           `avg_x_low` and `avg_x_high`, the ends of its 95% interval (null where nobody knows)
    measurements/          the noisy integers of each part, in the order of its design: all that other post-processing
                           needs
    plan.json, schema.yaml, PRIVACY.md
    faces/NAME/            the same counts under another promise, the synthetic people behind whole numbers, and a
                           PRIVACY.md of its own, so that nothing that is there changes when a face is added

Beyond 1,000 tables they are packed by order into files with columns attribute_1, label_1, ..., value, std_error; an
index beside each gives every table's first row (`offset`) and its number of rows (`cells`) [bundle/index.py].
Everything is written to a temporary folder beside the target and renamed at the end.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.bundle.manifest import (
    MANIFEST,
    PLAN,
    SCHEMA,
    STATEMENT,
    checksums,
    make_manifest,
    measurement_files,
    people_file,
    seal,
)
from hushcube.bundle.published_face import PublishedFace, write_people
from hushcube.bundle.stamp import file_stamp
from hushcube.bundle.statement import face_statement, privacy_statement
from hushcube.bundle.tables import write_tables
from hushcube.durable import check_output, new_folder
from hushcube.model.noise import Measurement
from hushcube.model.schema import COUNT
from hushcube.progress import Progress, silent

if TYPE_CHECKING:
    from hushcube.bundle.release import Release  # which writes itself


def write(release: Release, folder: Path, *, progress: Progress | None = None) -> None:
    """Write a release to a new folder; an interruption leaves nothing behind."""
    check_output(folder)
    with new_folder(folder) as work:
        _fill(release, work, progress)


def _fill(release: Release, folder: Path, progress: Progress | None = None) -> None:
    """Write all files of a release to an empty folder."""
    tell, plan = progress or silent, release.plan
    sources = {name: part.source for name, part in release.parts.items()}
    tables = write_tables(plan, sources, folder, tell, private=release.private)
    (folder / "measurements").mkdir()
    for name, file in measurement_files(plan).items():
        _write_measurement(release.parts[name].source.measurement(), folder / file)
    (folder / PLAN).write_text(plan.to_json(), encoding="utf-8")
    (folder / SCHEMA).write_text(release.schema.to_yaml(), encoding="utf-8")
    places = {name: f"faces/{name}" for name in release.faces}
    for face in release.faces.values():
        tables += write_face(release, face, folder, places[face.name], tell)
    write_statements(release, places, folder)
    manifest = make_manifest(release, tables, places, checksums(folder))
    (folder / MANIFEST).write_bytes(seal(manifest, folder))


def write_face(
    release: Release, face: PublishedFace, folder: Path, place: str, progress: Progress
) -> list[dict[str, Any]]:
    """Write the files of a face to its place in a release; returns the entries of its tables for the manifest."""
    plan, private = release.plan, release.private
    sources = {COUNT: face.source}
    entries = write_tables(plan, sources, folder, progress, face=face.name, place=place, private=private)
    if face.read_people is not None:
        write_people(face.read_people(), plan.schema, folder / people_file(place), private=private)
    (folder / place / STATEMENT).write_text(face_statement(plan, face, private=private), encoding="utf-8")
    return entries


def write_statements(release: Release, places: dict[str, str], folder: Path) -> None:
    """What is promised by the release, and by each face in its own place."""
    plan, private = release.plan, release.private
    (folder / STATEMENT).write_text(privacy_statement(plan, private=private), encoding="utf-8")
    for name, face in release.faces.items():
        text = face_statement(plan, face, private=private)
        (folder / places[name] / STATEMENT).write_text(text, encoding="utf-8")


def _write_measurement(measurement: Measurement, path: Path) -> None:
    schema = pa.schema([("value", pa.int64())], metadata=file_stamp(private=measurement.private))
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"
    ) as writer:
        for values in measurement.values:
            writer.write_table(pa.table({"value": values.reshape(-1)}, schema=schema))
