"""Whether the files are those of the manifest, the manifest fits the plan, and PRIVACY.md says what the plan says."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hushcube.bundle.checks.verdict import Findings
from hushcube.bundle.folder import BundleTables, open_bundle
from hushcube.bundle.index import table_entries
from hushcube.bundle.manifest import (
    FORMAT,
    MANIFEST,
    NEEDED,
    SEALED,
    STATEMENT,
    entry_key,
    face_folders,
    file_sizes,
    is_entry,
    is_face_folder,
    measurement_files,
    plan_fields,
    read_plan,
)
from hushcube.bundle.published_face import PublishedFace
from hushcube.bundle.reading import check_file, read_text
from hushcube.bundle.statement import face_statement, privacy_statement
from hushcube.errors import BadInput, BundleError
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.model.arrays import Marginal
from hushcube.model.facts import Facts
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.progress import Progress

Entry = dict[str, Any]
Entries = dict[Marginal | str, Entry]


@dataclass(frozen=True)
class Opened:
    """What can be read of a release: usable entries by face, and the faces' facts."""

    folder: Path
    plan: Plan
    private: bool
    entries: dict[str, Entries]
    """For each face, the unbiased one first, the tables that the manifest lists."""
    facts: dict[str, Facts]
    places: dict[str, str]
    """Where the files of each face but the unbiased one are."""
    is_current: bool
    """Whether the release has this version's format, in which tables also hold what measures come to."""
    broken: frozenset[str]
    """Files that are missing or were changed, which is reported already."""


def check_checksums(
    folder: Path, manifest: Entry, files: Findings, progress: Progress, needed: Sequence[str] = NEEDED
) -> frozenset[str]:
    """Every file with its checksum; returns those that are missing or changed. Other files are remarked on."""
    checksums = manifest.get("checksums")
    if not isinstance(checksums, dict):
        checksums = manifest["checksums"] = {}
        files.add("manifest.json: lists no checksums")
    broken = set(needed) - checksums.keys()
    for name in needed:
        if name in broken and checksums:
            files.add(f"manifest.json: has no checksum of {name}")
    sizes: Entry = {}
    try:
        sizes = file_sizes(manifest)
    except BundleError as problem:
        files.add(f"{problem.field}: {problem.problem}")
    for number, (name, expected) in enumerate(checksums.items()):
        try:
            check_file(folder, name, expected, sizes.get(name))
        except BundleError as problem:
            files.add(f"{problem.field}: {problem.problem}")
            broken.add(name)
        progress("checksums", (number + 1) / len(checksums))
    for name in foreign_files(folder, {MANIFEST, *checksums}):
        files.remark(f"{name}: is not part of the release")
    files.checked += len(checksums)
    return frozenset(broken)


def foreign_files(folder: Path, listed: Collection[str]) -> list[str]:
    """Files that are not listed, and folders, with a slash, in which nothing is."""
    known = {parent.as_posix() for name in listed for parent in PurePosixPath(name).parents}
    foreign = []
    for place, folders, files in os.walk(folder):
        inner = {name: (Path(place, name).relative_to(folder)).as_posix() for name in (*folders, *files)}
        foreign += [inner[name] for name in files if inner[name] not in listed]
        foreign += [f"{inner[name]}/" for name in folders if inner[name] not in known]
        folders[:] = [name for name in folders if inner[name] in known]
    return sorted(foreign)


def open_release(
    folder: Path, manifest: Entry, broken: frozenset[str], files: Findings, privacy: Findings
) -> Opened | None:
    """The plan, and what the manifest says about its tables; None where there is no plan to go by."""
    privacy.checked += 1
    try:
        plan = read_plan(folder, manifest)
    except BundleError as problem:
        if "plan.json" not in broken:
            files.add(f"{problem.field}: {problem.problem}")
        return None
    except BadInput as problem:
        privacy.add(f"plan.json: {problem.field}: {problem.problem}")
        return None
    _check_fields(folder, manifest, plan, broken, files)
    described = _described(manifest, files)
    entries = _entries(folder, manifest, plan, list(described), files)
    private = manifest.get("private") is not False
    facts: dict[str, Facts] = {}
    faces = []
    for name, description in described.items():
        face = PublishedFace(name, description, BundleTables(folder, plan, {}))
        try:
            facts[name] = face.facts(plan.schema)
            faces.append(face)
        except BadInput as problem:
            files.add(f"manifest.json: the facts of the face {name}: {problem.field}: {problem.problem}")
    places = face_folders({"faces": described})
    if len(faces) == len(described):
        apart = manifest["format"] >= SEALED
        statements = {STATEMENT: privacy_statement(plan, private=private, faces=None if apart else faces)}
        if apart:
            statements |= {
                f"{places[face.name]}/{STATEMENT}": face_statement(plan, face, private=private) for face in faces
            }
        for name, text in statements.items():
            _check_statement(folder, name, text, broken, privacy)
    for name in measurement_files(plan, manifest["format"]).values():
        if name not in manifest["checksums"]:
            files.add(f"manifest.json: has no checksum of {name}")
            broken |= {name}
    if not files and not privacy:
        try:
            open_bundle(folder, verify=False)
        except BundleError as problem:
            files.add(f"{problem.field}: {problem.problem}")
    return Opened(folder, plan, private, entries, facts, places, manifest["format"] >= FORMAT, broken)


def _check_fields(folder: Path, manifest: Entry, plan: Plan, broken: frozenset[str], files: Findings) -> None:
    """The fields that repeat the plan's decision, and the schema's own file."""
    for field, value in plan_fields(plan, manifest["format"]).items():
        if manifest.get(field) != value:
            files.add(f"manifest.json: `{field}` does not say what plan.json says")
    if not isinstance(manifest.get("private"), bool):
        files.add("manifest.json: `private` is neither true nor false")
    try:
        if Schema.from_yaml(read_text(folder, "schema.yaml")) != plan.schema.declared:
            files.add("schema.yaml: does not declare the schema of plan.json")
    except (ValueError, BadInput):
        if "schema.yaml" not in broken:
            files.add("schema.yaml: cannot be read")


def _described(manifest: Entry, files: Findings) -> dict[str, Entry]:
    described = manifest.get("faces", {})
    if not isinstance(described, dict):
        files.add("manifest.json: `faces` is not a mapping")
        return {}
    known = {
        name: told
        for name, told in described.items()
        if name in published_promises()
        and isinstance(told, dict)
        and is_face_folder(face_folders({"faces": {name: told}})[name])
    }
    for name in described.keys() - known.keys():
        files.add(f"manifest.json: describes the face {name!r}, which is unknown or not well described")
    return known


def _entries(folder: Path, manifest: Entry, plan: Plan, described: list[str], files: Findings) -> dict[str, Entries]:
    """The usable entries of the tables; what is missing, double or unknown is reported."""
    faces: dict[str, Entries] = {name: {} for name in (UNBIASED, *described)}
    schema, workload = plan.schema, plan.workload
    asked: dict[Marginal | str, tuple[Marginal, int]] = {m: (m, schema.cells(m)) for m in workload.published}
    asked |= {form.word: (form.marginal, form.cells) for form in workload.forms}
    listed = manifest.get("tables")
    if not isinstance(listed, list):
        files.add("manifest.json: lists no tables")
        listed = []
    try:
        listed = table_entries(folder, {"tables": listed})
    except BundleError as problem:
        files.add(f"{problem.field}: {problem.problem}")
        listed = [entry for entry in listed if "index" not in entry]
    except (KeyError, TypeError):
        pass  # each entry that is none is reported below
    for number, entry in enumerate(listed, 1):
        try:
            key, face = entry_key(entry, plan), entry["face"]
            fits = is_entry(entry) and key in asked and face in faces
            if fits:
                marginal, cells = asked[key]
                fits = entry["cells"] == cells and entry["attributes"] == [schema.names[i] for i in marginal]
        except (KeyError, TypeError, AttributeError, BadInput):
            fits = False
        if not fits:
            files.add(f"manifest.json: entry {number:,} of `tables` is none of the plan's tables")
        elif key in faces[face]:
            files.add(f"manifest.json: lists the table {_word(key, schema)} of the face {face} twice")
        elif entry["file"] not in manifest["checksums"]:
            files.add(f"manifest.json: has no checksum of {entry['file']}, which holds a table")
            faces[face].setdefault(key, entry)
        else:
            faces[face][key] = entry
    for face, found in faces.items():
        for key in asked.keys() - found.keys():
            files.add(f"manifest.json: does not list the table {_word(key, schema)} of the face {face}")
    return faces


def _word(key: Marginal | str, schema: Schema) -> str:
    return key if isinstance(key, str) else schema.describe(key)


def _check_statement(folder: Path, name: str, expected: str, broken: frozenset[str], privacy: Findings) -> None:
    privacy.checked += 1
    try:
        text = read_text(folder, name)
    except BundleError as problem:
        if name not in broken:
            privacy.add(f"{problem.field}: {problem.problem}")
        return
    if text != expected:
        lines, wanted = text.split("\n"), expected.split("\n")
        same = next((i for i, (a, b) in enumerate(zip(lines, wanted, strict=False)) if a != b), None)
        at = min(len(lines), len(wanted)) if same is None else same
        privacy.add(f"{name}: is not the statement that the plan and the faces give, from line {at + 1} on")
