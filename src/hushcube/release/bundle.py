"""A release on disk: Parquet tables and one JSON manifest, complete or not there at all.

    manifest.json          what is here: format, schema, workload, privacy, strategy, checksums, and the list of tables
    tables/*.parquet       one row per cell: the attributes as labelled columns, then `value` and `std_error`
    measurements/          the noisy integers, in the plan's order: all that other post-processing needs
    plan.json, schema.yaml, PRIVACY.md
    faces/NAME/            the same tables under another promise, and the synthetic people behind whole numbers

Beyond 1,000 tables they are packed by order into files with columns attribute_1, label_1, ..., value, std_error; the
manifest gives each table's file, its first row (`offset`) and its number of rows (`cells`).
Everything is written to a temporary folder beside the target and renamed at the end.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.durable import check_output, new_folder
from hushcube.errors import BadInput, BundleError
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.measurement import Measurement
from hushcube.plan.plan import Plan
from hushcube.recover.faces.value import NAMES, UNBIASED
from hushcube.release.faces import PublishedFace
from hushcube.release.manifest import (
    MEASUREMENTS,
    check_files,
    damaged,
    entry_key,
    inside,
    is_entry,
    make_manifest,
    manifest_text,
    read_manifest,
)
from hushcube.release.output import all_or_nothing
from hushcube.release.people import read_people, write_people
from hushcube.release.release import Release
from hushcube.release.stamp import file_stamp
from hushcube.release.statement import privacy_statement
from hushcube.release.tables import read_table, write_tables

Floats = NDArray[np.float64]
Progress = Callable[[str, float], None]


def write(release: Release, folder: Path, *, progress: Progress | None = None) -> None:
    """Write a release to a new folder; an interruption leaves nothing behind."""
    check_output(folder)
    tell = progress or (lambda _stage, _share: None)
    with new_folder(folder) as work:
        tables = write_tables(release.plan, release.source, work, tell, private=release.private)
        _write_measurement(release.source.measurement(), work / MEASUREMENTS)
        (work / "plan.json").write_text(release.plan.to_json(), encoding="utf-8")
        (work / "schema.yaml").write_text(release.schema.to_yaml(), encoding="utf-8")
        for face in release.faces.values():
            tables += _write_face(release, face, work, tell)
        _seal(release, tables, work)


def add_face(folder: Path, face: PublishedFace, *, out: Path | None = None, progress: Progress | None = None) -> None:
    """Write a bundle again with one more face: in its place, or to a new folder. What is there already is linked."""
    release = open_bundle(folder, verify=False).with_face(face)
    if out is not None:
        check_output(out)
    own = f"faces/{face.name}/"
    with all_or_nothing(folder) if out is None else new_folder(out) as work:
        for name in read_manifest(folder)["checksums"]:
            if not name.startswith(own) and name != "PRIVACY.md":
                _link(folder / name, work / name)
        entries = [entry for entry in read_manifest(folder)["tables"] if entry["face"] != face.name]
        entries += _write_face(release, face, work, progress or (lambda _stage, _share: None))
        _seal(release, entries, work)


def _write_face(release: Release, face: PublishedFace, work: Path, progress: Progress) -> list[dict[str, Any]]:
    plan, private = release.plan, release.private
    entries = write_tables(plan, face.source, work, progress, face=face.name, private=private)
    if face.read_people is not None:
        write_people(face.read_people(), plan.schema, work / people_file(face.name), private=private)
    return entries


def people_file(face: str) -> str:
    """Where the synthetic people of a face are kept."""
    return f"faces/{face}/people.parquet"


def _link(source: Path, target: Path) -> None:
    """Files of a bundle never change, so a second bundle may share them."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)


def _seal(release: Release, tables: list[dict[str, Any]], work: Path) -> None:
    """The privacy statement, and the manifest with every checksum."""
    statement = privacy_statement(release.plan, private=release.private, faces=release.faces.values())
    (work / "PRIVACY.md").write_text(statement, encoding="utf-8")
    manifest = make_manifest(release, tables, work)
    (work / "manifest.json").write_text(manifest_text(manifest), encoding="utf-8")


def open_bundle(folder: Path, *, verify: bool = True) -> Release:
    """Open a release; unless told not to, every file's checksum is verified."""
    manifest = read_manifest(folder)
    if "cube" in manifest:
        raise BundleError(f"{str(folder)[:200]!r}", "is a cube", "name one of its parts, such as parts/count")
    if verify:
        check_files(folder, manifest)
    try:
        plan = Plan.from_json((folder / "plan.json").read_text(encoding="utf-8"))
        described = manifest.get("faces", {})
        faces: dict[str, dict[Marginal | str, dict[str, Any]]] = {name: {} for name in (UNBIASED, *described)}
        for entry in manifest["tables"]:
            faces[entry["face"]][entry_key(entry, plan)] = entry
        private = manifest["private"]
        stamped = "NOT PRIVATE" in (folder / "PRIVACY.md").read_text(encoding="utf-8")
        told = (manifest["plan_digest"], manifest["privacy"], manifest["schema"], private)
        asked = {*plan.workload.published, *(form.word for form in plan.workload.forms)}
        if (
            told != (plan.digest, plan.privacy.to_dict(), plan.schema.to_dict(), not stamped)
            or not set(described) <= set(NAMES.values())
            or any(entries.keys() != asked for entries in faces.values())
            or sum(map(len, faces.values())) != len(manifest["tables"])
            or not all(is_entry(entry) for entry in manifest["tables"])
        ):
            raise ValueError
        published = {
            name: PublishedFace(
                name,
                dict(description),
                BundleTables(folder, plan, faces[name], private),
                partial(read_people, folder / people_file(name), plan.schema)
                if people_file(name) in manifest["checksums"]
                else None,
            )
            for name, description in described.items()
        }
        for face in published.values():
            face.facts(plan.schema)
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged("manifest.json", "does not fit the plan and the tables") from None
    except BadInput as problem:
        raise damaged("plan.json", problem.problem) from None
    return Release(plan, BundleTables(folder, plan, faces[UNBIASED], private), private, published)


class BundleTables:
    """Published values, read from a folder when asked for."""

    def __init__(self, folder: Path, plan: Plan, entries: dict[Marginal | str, dict[str, Any]], private: bool) -> None:
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
        values = read_table(inside(self._folder, entry["file"]), names, entry.get("offset"), cells)
        if len(values) != cells:
            raise damaged(entry["file"], "does not have the right number of rows")
        return values

    def measurement(self) -> Measurement:
        """The noisy measurements, in the plan's batches."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            flat = pq.read_table(self._folder / MEASUREMENTS).column("value").to_numpy()
        except (OSError, pa.ArrowException, KeyError):
            raise damaged(MEASUREMENTS, "cannot be read") from None
        shapes = self._plan.shapes
        ends = np.cumsum([0] + [math.prod(shape) for shape in shapes]).tolist()
        if ends[-1] != len(flat):
            raise damaged(MEASUREMENTS, "does not have the right number of rows")
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
