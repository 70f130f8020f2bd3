"""Whether the files are those of the manifest, the manifest fits the plan, and PRIVACY.md says what the plan says."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path, PurePosixPath

from hushcube.bundle.checks.guides import check_guides
from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.folder import BundleTables, open_bundle, table_entries
from hushcube.bundle.manifest import (
    EXPLAINED,
    MANIFEST,
    NEEDED,
    PLAN,
    SCHEMA,
    SEALED,
    check_listed,
    contradicted,
    earlier_guide,
    entry_key,
    face_folders,
    file_sizes,
    is_face_folder,
    measurement_files,
    read_plan,
)
from hushcube.bundle.part import PublishedFace
from hushcube.bundle.reading import read_text
from hushcube.bundle.receipt import Receipt
from hushcube.bundle.statement import STATEMENT, privacy_statement, statements
from hushcube.bundle.tables import ESTIMATED, Entries, Entry
from hushcube.errors import BadInput, BundleError, LedgerError
from hushcube.faces.value import UNBIASED, published_promises
from hushcube.model.arrays import Marginal
from hushcube.model.facts import Facts
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.planning.pricing import price
from hushcube.progress import Progress


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
    version: int
    """The format of its manifest."""
    broken: frozenset[str]
    """Files that are missing or were changed, which is reported already."""
    estimated: Mapping[str, object]
    """For each face with a column of estimated errors, what the manifest says of them."""


def check_checksums(
    folder: Path, manifest: Entry, files: Check, progress: Progress, needed: Sequence[str] = NEEDED
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
    earlier: Entry = {}
    try:
        sizes, earlier = file_sizes(manifest), earlier_guide(manifest)
    except BundleError as problem:
        files.add(f"{problem.field}: {problem.problem}")
    for number, (name, expected) in enumerate(checksums.items()):
        try:
            check_listed(folder, name, expected, sizes.get(name), earlier)
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


def open_release(folder: Path, manifest: Entry, broken: frozenset[str], files: Check, privacy: Check) -> Opened | None:
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
    for name in contradicted(manifest, plan):
        files.add(f"manifest.json: `{name}` does not say what plan.json says")
    if not isinstance(manifest.get("private"), bool):
        files.add("manifest.json: `private` is neither true nor false")
    check_schema(folder, plan, PLAN, broken, files)
    described = _described(manifest, files)
    entries = _entries(folder, manifest, plan, described, files)
    private, version = manifest.get("private") is not False, manifest["format"]
    facts: dict[str, Facts] = {}
    faces = [PublishedFace(name, told, BundleTables(folder, plan, {})) for name, told in described.items()]
    for face in faces:
        try:
            face.edition(plan.schema)
        except (BadInput, TypeError):
            files.add(f"manifest.json: the earlier edition of the face {face.name} cannot be read")
            continue
        try:
            facts[face.name] = face.facts(plan.schema)
        except BadInput as problem:
            files.add(f"manifest.json: the facts of the face {face.name}: {problem.field}: {problem.problem}")
    places = face_folders({"faces": described})
    if len(facts) == len(faces):
        receipt = _receipt(manifest, plan, files, privacy)
        texts = statements(plan, faces, places, private=private, receipt=receipt)
        if version < SEALED:
            texts = {STATEMENT: privacy_statement(plan, private=private, faces=faces)}
        privacy.checked += len(texts)
        for name, text in texts.items():
            _check_text(folder, name, text, broken, privacy)
    if version >= EXPLAINED and files.holds:
        check_guides(folder, manifest, plan, places, broken, files)
    for name in measurement_files(plan, version).values():
        if name not in manifest["checksums"]:
            files.add(f"manifest.json: has no checksum of {name}")
            broken |= {name}
    if files.holds and privacy.holds:
        try:
            open_bundle(folder, verify=False)
        except BundleError as problem:
            files.add(f"{problem.field}: {problem.problem}")
    estimated = {name: told[ESTIMATED] for name, told in described.items() if ESTIMATED in told}
    return Opened(folder, plan, private, entries, facts, places, version, broken, estimated)


def _receipt(manifest: Entry, plan: Plan, files: Check, privacy: Check) -> Receipt | None:
    """What was charged for the release, which must be no less than its plan costs on such an account."""
    try:
        receipt = Receipt.from_dict(manifest.get("receipt"))
    except ValueError:
        files.add("manifest.json: `receipt` cannot be read")
        return None
    if receipt is not None:
        unit = plan.schema.unit
        try:
            covered = price(plan, receipt.total, None if unit is None else unit.column) <= receipt.amount
        except LedgerError:
            covered = False
        if not covered:
            privacy.add("manifest.json: `receipt` is of a charge that does not cover what the plan costs")
    return receipt


def check_schema(folder: Path, plan: Plan, source: str, broken: frozenset[str], files: Check) -> None:
    """The schema's own file declares the schema of the plan, which a file of the release holds."""
    try:
        if Schema.from_yaml(read_text(folder, SCHEMA)) != plan.schema.declared:
            files.add(f"{SCHEMA}: does not declare the schema of {source}")
    except (ValueError, BadInput):
        if SCHEMA not in broken:
            files.add(f"{SCHEMA}: cannot be read")


def _described(manifest: Entry, files: Check) -> dict[str, Entry]:
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


def _entries(folder: Path, manifest: Entry, plan: Plan, described: Collection[str], files: Check) -> dict[str, Entries]:
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
            marginal, cells = asked[key]
            says = entry["attributes"] == [schema.names[i] for i in marginal] and entry["cells"] == cells
            fits = says and face in faces
        except (KeyError, TypeError, ValueError, AttributeError, BadInput):
            fits = False
        if not fits:
            files.add(f"manifest.json: entry {number:,} of `tables` is none of the plan's tables")
        elif key in faces[face]:
            files.add(f"manifest.json: lists the table {_word(key, schema)} of the face {face} twice")
        else:
            faces[face][key] = entry
            if entry["file"] not in manifest["checksums"]:
                files.add(f"manifest.json: has no checksum of {entry['file']}, which holds a table")
    for face, found in faces.items():
        for key in asked.keys() - found.keys():
            files.add(f"manifest.json: does not list the table {_word(key, schema)} of the face {face}")
    return faces


def _word(key: Marginal | str, schema: Schema) -> str:
    return key if isinstance(key, str) else schema.describe(key)


def _check_text(folder: Path, name: str, expected: str, broken: frozenset[str], check: Check) -> None:
    """A text is the one that the plan and the faces give."""
    try:
        text = read_text(folder, name)
    except BundleError as problem:
        if name not in broken:
            check.add(f"{problem.field}: {problem.problem}")
        return
    if text != expected:
        lines = zip_longest(text.split("\n"), expected.split("\n"))
        at = next(number for number, (found, wanted) in enumerate(lines, 1) if found != wanted)
        check.add(f"{name}: is not the text that the plan and the faces give, from line {at} on")
