"""A release on disk: Parquet tables and one JSON manifest, complete or not there at all.

    manifest.json          what is here: format, schema, workload, privacy, strategy, checksums, and the list of tables
    tables/*.parquet       one row per cell: the attributes as labelled columns, then `value` and `std_error`
    measurements/          the noisy integers, in the plan's order: all that other post-processing needs
    plan.json, schema.yaml, PRIVACY.md
    faces/NAME/            the same tables under another promise, the synthetic people behind whole numbers, and a
                           PRIVACY.md of its own, so that nothing that is there changes when a face is added

Beyond 1,000 tables they are packed by order into files with columns attribute_1, label_1, ..., value, std_error; an
index beside each gives every table's first row (`offset`) and its number of rows (`cells`) [bundle/index.py].
Everything is written to a temporary folder beside the target and renamed at the end.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.index import table_entries
from hushcube.bundle.manifest import (
    MANIFEST,
    MEASUREMENTS,
    STATEMENT,
    check_files,
    checksums,
    entry_key,
    face_folders,
    is_entry,
    is_face_folder,
    make_manifest,
    read_manifest,
    seal,
    steadily,
)
from hushcube.bundle.people import read_people, write_people
from hushcube.bundle.published_face import PublishedFace
from hushcube.bundle.reading import damaged, parquet, read_text
from hushcube.bundle.release import Release
from hushcube.bundle.stamp import file_stamp
from hushcube.bundle.statement import face_statement, is_stamped, privacy_statement
from hushcube.bundle.tables import read_numbers, write_tables
from hushcube.designs.design import Design
from hushcube.durable import check_output, new_folder
from hushcube.errors import BadInput, BundleError
from hushcube.faces.value import NAMES, UNBIASED
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.measurement import Measurement
from hushcube.planning.loading import read_design
from hushcube.progress import Progress, silent

Floats = NDArray[np.float64]


def write(release: Release, folder: Path, *, progress: Progress | None = None) -> None:
    """Write a release to a new folder; an interruption leaves nothing behind."""
    check_output(folder)
    with new_folder(folder) as work:
        fill(release, work, progress)


def fill(release: Release, folder: Path, progress: Progress | None = None) -> None:
    """Write all files of a release to an empty folder."""
    tell = progress or silent
    tables = write_tables(release.plan, release.source, folder, tell, private=release.private)
    _write_measurement(release.source.measurement(), folder / MEASUREMENTS)
    (folder / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
    (folder / "schema.yaml").write_text(release.schema.to_yaml(), encoding="utf-8")
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
    entries = write_tables(plan, face.source, folder, progress, face=face.name, place=place, private=private)
    if face.read_people is not None:
        write_people(face.read_people(), plan.schema, folder / people_file(place), private=private)
    (folder / place / STATEMENT).write_text(face_statement(plan, face, private=private), encoding="utf-8")
    return entries


def people_file(place: str) -> str:
    """Where the synthetic people of a face are kept."""
    return f"{place}/people.parquet"


def write_statements(release: Release, places: dict[str, str], folder: Path) -> None:
    """What is promised by the release, and by each face in its own place."""
    plan, private = release.plan, release.private
    (folder / STATEMENT).write_text(privacy_statement(plan, private=private), encoding="utf-8")
    for name, face in release.faces.items():
        text = face_statement(plan, face, private=private)
        (folder / places[name] / STATEMENT).write_text(text, encoding="utf-8")


def open_bundle(folder: Path, *, verify: bool = True) -> Release:
    """Open a release; unless told not to, every file's checksum is verified."""
    return steadily(folder, lambda: _open(folder, verify))


def _open(folder: Path, verify: bool) -> Release:
    manifest = read_manifest(folder)
    if "cube" in manifest:
        raise BundleError(f"{str(folder)[:200]!r}", "is a cube", "name one of its parts, such as parts/count")
    if verify:
        check_files(folder, manifest)
    try:
        plan = read_design(read_text(folder, "plan.json"))
        described, places = manifest.get("faces", {}), face_folders(manifest)
        faces: dict[str, dict[Marginal | str, dict[str, Any]]] = {name: {} for name in (UNBIASED, *described)}
        listed = table_entries(folder, manifest)
        for entry in listed:
            faces[entry["face"]][entry_key(entry, plan)] = entry
        private = manifest["private"]
        stamped = is_stamped(read_text(folder, "PRIVACY.md"))
        told = (manifest["plan_digest"], manifest["privacy"], manifest["schema"], private)
        asked = {*plan.workload.published, *(form.word for form in plan.workload.forms)}
        if (
            told != (plan.digest, plan.privacy.to_dict(), plan.schema.to_dict(), not stamped)
            or not set(described) <= set(NAMES.values())
            or not all(map(is_face_folder, places.values()))
            or any(entries.keys() != asked for entries in faces.values())
            or sum(map(len, faces.values())) != len(listed)
            or not all(is_entry(entry) for entry in listed)
        ):
            raise ValueError
        published = {
            name: PublishedFace(
                name,
                {key: told for key, told in description.items() if key != "folder"},
                BundleTables(folder, plan, faces[name], private),
                partial(read_people, folder, people_file(places[name]), plan.schema)
                if people_file(places[name]) in manifest["checksums"]
                else None,
            )
            for name, description in described.items()
        }
        for face in published.values():
            face.facts(plan.schema)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged("manifest.json", "does not fit the plan and the tables") from None
    except BundleError:
        raise
    except BadInput as problem:
        raise damaged("plan.json", problem.problem) from None
    return Release(plan, BundleTables(folder, plan, faces[UNBIASED], private), private, published)


class BundleTables:
    """Published values, read from a folder when asked for."""

    def __init__(
        self, folder: Path, plan: Design, entries: dict[Marginal | str, dict[str, Any]], private: bool
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._entries = entries
        self._private = private

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The values of published marginals of one shape."""
        return np.stack([self._read(tuple(row)).reshape(shape) for row in rows.tolist()])

    def form(self, form: Form) -> Floats:
        """The values of a published form."""
        return self._numbers(form.word, list(form.axes), form.cells).reshape(form.shape)

    def _read(self, marginal: Marginal) -> Floats:
        names = [self._plan.schema.names[i] for i in marginal]
        return self._numbers(marginal, names, self._plan.schema.cells(marginal))

    def _numbers(self, key: Marginal | str, names: list[str], cells: int) -> Floats:
        entry = self._entries[key]
        values, _ = read_numbers(self._folder, entry["file"], names, entry.get("offset"), cells)
        if len(values) != cells:
            raise damaged(entry["file"], "does not have the right number of rows")
        return values

    def measurement(self) -> Measurement:
        """The noisy measurements, in the plan's batches."""
        shapes = self._plan.shapes
        ends = np.cumsum([0] + [math.prod(shape) for shape in shapes]).tolist()
        with parquet(self._folder, MEASUREMENTS) as file:
            if ends[-1] != file.metadata.num_rows:
                raise damaged(MEASUREMENTS, "does not have the right number of rows")
            column = file.read(columns=["value"]).column("value")
            if column.type != "int64" or column.null_count:
                raise damaged(MEASUREMENTS, "its numbers are not all integers")
            flat = column.to_numpy()
        parts = zip(ends, ends[1:], shapes, strict=False)
        values = [flat[start:end].reshape(shape) for start, end, shape in parts]
        return Measurement(self._plan.digest, tuple(values), self._private)


def _write_measurement(measurement: Measurement, path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir()
    schema = pa.schema([("value", pa.int64())], metadata=file_stamp(private=measurement.private))
    with pq.ParquetWriter(
        path, schema, compression="zstd", use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"
    ) as writer:
        for values in measurement.values:
            writer.write_table(pa.table({"value": values.reshape(-1)}, schema=schema))
