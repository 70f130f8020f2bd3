"""Opening a release: what is published is read when it is asked for.                        [bundle/writing.py]"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.earlier_cubes import is_earlier_cube, open_earlier_cube
from hushcube.bundle.index import table_entries
from hushcube.bundle.manifest import (
    MANIFEST,
    PLAN,
    STATEMENT,
    check_files,
    entry_key,
    face_folders,
    is_entry,
    is_face_folder,
    measurement_files,
    people_file,
    read_manifest,
    read_plan,
    repeats,
    steadily,
)
from hushcube.bundle.part import Part
from hushcube.bundle.published_face import PublishedFace, read_people
from hushcube.bundle.ratio import quantised_sums
from hushcube.bundle.reading import damaged, parquet, read_text
from hushcube.bundle.release import Release
from hushcube.bundle.statement import is_stamped
from hushcube.bundle.tables import read_numbers, written
from hushcube.designs.design import Design
from hushcube.errors import BadInput, BundleError
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import Measurement
from hushcube.model.schema import COUNT
from hushcube.planning.plan import Plan


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
        faces: dict[str, dict[Marginal | str, dict[str, Any]]] = {name: {} for name in (UNBIASED, *described)}
        listed = table_entries(folder, manifest)
        for entry in listed:
            faces[entry["face"]][entry_key(entry, plan)] = entry
        private = manifest["private"]
        stamped = is_stamped(read_text(folder, STATEMENT))
        asked = {*plan.workload.published, *(form.word for form in plan.workload.forms)}
        if (
            private is not (not stamped)
            or not repeats(manifest, plan)
            or not set(described) <= set(published_promises())
            or not all(map(is_face_folder, places.values()))
            or any(entries.keys() != asked for entries in faces.values())
            or sum(map(len, faces.values())) != len(listed)
            or not all(is_entry(entry) for entry in listed)
        ):
            raise ValueError
        files = measurement_files(plan, manifest["format"])
        if not set(files.values()) <= manifest["checksums"].keys():
            raise damaged(MANIFEST, "has no checksum of the measurements")
        published = {
            name: PublishedFace(
                name,
                {key: told for key, told in description.items() if key != "folder"},
                BundleTables(folder, plan, faces[name]),
                partial(read_people, folder, people_file(places[name]), plan.schema)
                if people_file(places[name]) in manifest["checksums"]
                else None,
            )
            for name, description in described.items()
        }
        for face in published.values():
            face.facts(plan.schema)
        parts = {
            name: Part(
                design, MeasuredTables(folder, plan, faces[UNBIASED], name, files[name], private=private), private
            )
            for name, design in plan.designs.items()
        }
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise damaged(MANIFEST, "does not fit the plan and the tables") from None
    except BundleError:
        raise
    except BadInput as problem:
        raise damaged(PLAN, problem.problem) from None
    return Release(plan, parts, published)


class BundleTables:
    """Published counts of a face, read from a folder when asked for."""

    def __init__(self, folder: Path, plan: Plan, entries: dict[Marginal | str, dict[str, Any]]) -> None:
        self._folder = folder
        self._plan = plan
        self._entries = entries

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
        return self._columns(key, names, cells, width=2)[0]

    def _columns(self, key: Marginal | str, names: list[str], cells: int, *, width: int) -> list[Floats]:
        entry = self._entries[key]
        found = read_numbers(self._folder, entry["file"], names, entry.get("offset"), cells, width=width)
        if len(found[0]) != cells:
            raise damaged(entry["file"], "does not have the right number of rows")
        return found


class MeasuredTables(BundleTables):
    """The unbiased values of one part, and the noisy measurements behind them."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        entries: dict[Marginal | str, dict[str, Any]],
        part: str,
        file: str,
        *,
        private: bool,
    ) -> None:
        super().__init__(folder, plan, entries)
        self._design, self._file, self._private = plan.designs[part], file, private
        self._measure = None if part == COUNT else plan.schema.measure(part)
        columns = [(quantity, at) for quantity in written(plan) for at in range(quantity.width)]
        self._width, self._at = len(columns), columns.index((plan.measured[part], 0))

    def _numbers(self, key: Marginal | str, names: list[str], cells: int) -> Floats:
        found = self._columns(key, names, cells, width=self._width)
        counts, values = found[0], found[self._at]
        return values if self._measure is None else quantised_sums(self._measure, counts, values)

    def measurement(self) -> Measurement:
        """The noisy measurements, in the design's batches."""
        return read_measurement(self._folder, self._file, self._design, private=self._private)


def read_measurement(folder: Path, name: str, design: Design, *, private: bool) -> Measurement:
    """The noisy integers of a file, in a design's batches."""
    shapes = design.shapes
    ends = np.cumsum([0] + [math.prod(shape) for shape in shapes]).tolist()
    with parquet(folder, name) as file:
        if ends[-1] != file.metadata.num_rows:
            raise damaged(name, "does not have the right number of rows")
        column = file.read(columns=["value"]).column("value")
        if len(column) != ends[-1]:  # its pages may hold other numbers of rows than its footer says
            raise damaged(name, "does not have the right number of rows")
        if column.type != "int64" or column.null_count:
            raise damaged(name, "its numbers are not all integers")
        flat = column.to_numpy()
    parts = zip(ends, ends[1:], shapes, strict=False)
    values = [flat[start:end].reshape(shape) for start, end, shape in parts]
    return Measurement(design.digest, tuple(values), private)
