"""The manifest of a release: what is in the folder, with a checksum of every other file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeGuard, TypeVar

from hushcube.bundle.reading import check_file, checksum, damaged, read_text
from hushcube.bundle.statement import STATEMENT, stamp
from hushcube.bundle.tables import Entry, column_names, flag_names, safe_names, written
from hushcube.designs.design import Design, digest_of
from hushcube.errors import BundleError
from hushcube.model.arrays import Marginal
from hushcube.model.files import read_json
from hushcube.model.schema import COUNT
from hushcube.planning.plan import Plan, read_design

if TYPE_CHECKING:
    from hushcube.bundle.release import Release

Result = TypeVar("Result")

FORMAT: Final = 7
_READABLE: Final = (1, 2, 3, 4, 5, 6, 7)
"""Format 1 had no faces; format 2 had each in faces/NAME, and all of their statements in PRIVACY.md.

Both had neither sizes nor a digest of the manifest itself. Format 3 had its measurements in measurements/values.parquet
and one design as plan.json; a cube of format 3 was a folder of releases, one for each part.   [bundle/earlier_cubes.py]
Format 4 had no guide, and no codes beside labels; format 5 no flags beside numbers; format 6 no estimated errors beside
counts at face value: faces that have them say so.
"""
SEALED: Final = 3  # from this format on manifests have sizes and a digest, and every face has a statement of its own
PLANNED: Final = 4  # from this one on plan.json is a whole plan, and each of its parts has a file of measurements
EXPLAINED: Final = 5  # from this one on there are guides, and codes beside labels   [bundle/guide.py, bundle/axes.py]
FLAGGED: Final = 6  # from this one on unbiased numbers have their flags beside them   [bundle/tables.py]
MANIFEST: Final = "manifest.json"
_FACE_FOLDER: Final = re.compile(r"faces/[a-z-]+(-[0-9]+)?")
PLAN: Final = "plan.json"
SCHEMA: Final = "schema.yaml"
README: Final = "README.md"
INDEX: Final = "index.csv"
PAGE: Final = "index.html"
GUIDE: Final = (README, INDEX, PAGE)  # what explains the tables, at the top and in the folder of each face
PEOPLE: Final = "people.parquet"  # the synthetic people of a face, in its folder
NEEDED: Final = (PLAN, SCHEMA, STATEMENT)  # what a release cannot be read without, beside the measurements


def make_manifest(
    release: Release,
    tables: list[Entry],
    places: dict[str, str],
    sums: dict[str, str],
    earlier: Entry | None = None,
) -> Entry:
    """The manifest of a release, of whose faces `places` gives the folders, and `sums` the checksums of all files.

    `earlier` has the guide at the top as it was before a face was added: the checksum and the size of each file.
    """
    from hushcube import __version__

    return {
        "format": FORMAT,
        "hushcube": __version__,
        **stamp(private=release.private),
        **plan_fields(release.plan),
        **({} if release.receipt is None else {"receipt": release.receipt.to_dict()}),
        "faces": {name: {**face.description, "folder": places[name]} for name, face in release.faces.items()},
        **({"earlier_guide": earlier} if earlier else {}),
        "checksums": sums,
        "tables": tables,
    }


def checksums(folder: Path, place: str, known: Mapping[str, str]) -> dict[str, str]:
    """The checksums of all files in a place in a folder, by their names in the manifest; some are known already."""
    files = sorted(path.relative_to(folder).as_posix() for path in (folder / place).rglob("*") if path.is_file())
    return {name: known.get(name) or checksum(folder, name) for name in files}


def is_face_folder(place: object) -> TypeGuard[str]:
    """Whether a face may have its files there: in a folder of its own, which it shares with no other part."""
    return isinstance(place, str) and _FACE_FOLDER.fullmatch(place) is not None


def face_folders(manifest: Entry) -> dict[str, str]:
    """Where the files of each face are."""
    return {name: told.get("folder", f"faces/{name}") for name, told in manifest.get("faces", {}).items()}


def plan_fields(plan: Plan, version: int = FORMAT) -> Entry:
    """What the manifest repeats of the plan, for readers without hushcube."""
    told: Entry = {"name": plan.schema.name, "privacy": plan.privacy.to_dict()}
    if version < PLANNED:
        told |= _design_fields(plan.count)
    else:
        files = measurement_files(plan)
        told |= {
            "columns": _columns(plan, version),
            "parts": {
                name: {"privacy": design.privacy.to_dict(), **_design_fields(design), "measurements": files[name]}
                for name, design in plan.designs.items()
            },
            "measures": [str(quantity) for quantity in plan.asked],
            "plan_digest": plan.digest,
            "bounds": [bound.to_dict() for bound in plan.bounds],
        }
    left = {"left_out": list(plan.count.left_out)} if plan.count.left_out else {}
    return {**told, "workload": list(plan.workload.words), **left, "schema": plan.schema.to_dict()}


def _columns(plan: Plan, version: int) -> Entry:
    """The columns of each quantity: numbers, and since format 6 their flags."""
    flags = flag_names(plan, written(plan)) if version >= FLAGGED else {}
    return {
        str(quantity): [*names, *([flags[quantity]] if quantity in flags else [])]
        for quantity, names in column_names(plan, written(plan)).items()
    }


def contradicted(manifest: Entry, plan: Plan) -> list[str]:
    """The fields in which a manifest does not say what its plan says."""
    told = {"left_out": None, **plan_fields(plan, manifest["format"])}
    if "bounds" not in manifest:  # which the first releases of format 4 do not have
        told.pop("bounds", None)
    return [name for name, value in told.items() if manifest.get(name) != value]


def repeats(manifest: Entry, plan: Plan) -> bool:
    """Whether a manifest says what its plan says."""
    wrong = contradicted(manifest, plan)
    if manifest["format"] < PLANNED:  # some of the first releases said less
        return not {"plan_digest", "privacy", "schema"}.intersection(wrong)
    return not wrong


def _design_fields(design: Design) -> Entry:
    names = {"name": design.strategy, "budgets": design.budget_rule}
    strategy = {**names, "recovery": design.recovery_told, "proof": design.proof}
    return {"strategy": strategy, "noise": f"discrete {design.law}", "plan_digest": design.digest}


def measurement_files(plan: Plan, version: int = FORMAT) -> dict[str, str]:
    """Where the noisy integers of each part are."""
    if version < PLANNED:
        return {COUNT: "measurements/values.parquet"}
    names = {COUNT: COUNT, **{name: f"sum_{word}" for name, word in safe_names(plan).items()}}
    return {name: f"measurements/{word}.parquet" for name, word in names.items()}


def read_plan(folder: Path, manifest: Entry) -> Plan:
    """The plan of a release; earlier formats have the design of the counts."""
    text = read_text(folder, PLAN)
    return Plan.from_json(text) if manifest["format"] >= PLANNED else Plan.of_counts(read_design(text))


def seal(manifest: Entry, folder: Path, coming: Mapping[str, bytes] = MappingProxyType({})) -> bytes:
    """The manifest of a folder that is otherwise complete, as it is written: with the size of every file.

    Files that are `coming` take their places after the manifest.
    """
    own = (name for name in manifest["checksums"] if name not in coming)
    sizes = {name: (folder / name).stat().st_size for name in own} | {n: len(text) for n, text in coming.items()}
    return manifest_text({**manifest, "sizes": sizes}).encode()


def manifest_text(manifest: Entry) -> str:
    """One line for each field and each table, and a digest of all of it: there is no other text of these fields."""
    fields = {name: value for name, value in manifest.items() if name not in ("tables", "digest")}
    rest = {**fields, "digest": digest_of({**fields, "tables": manifest["tables"]})}
    as_json = partial(json.dumps, ensure_ascii=False)
    told = ",\n ".join(f"{as_json(name)}: {as_json(value)}" for name, value in rest.items())
    tables = ",\n  ".join(map(as_json, manifest["tables"]))
    return f'{{\n {told},\n "tables": [\n  {tables}\n ]\n}}\n'


def read_manifest(folder: Path) -> Entry:
    """The manifest of a release."""
    if not os.path.lexists(folder / "manifest.json"):
        fix = "give the folder that `hushcube release` wrote"
        raise BundleError(f"{str(folder)[:200]!r}", "is not a release: it has no manifest.json", fix)
    text = read_text(folder, MANIFEST)
    manifest = read_json(text, MANIFEST, BundleError, damaged("", "").fix)
    if not isinstance(manifest, dict) or manifest.get("format") not in _READABLE or manifest["format"] is True:
        raise damaged(MANIFEST, "is not of this version of hushcube")
    has_tables = isinstance(manifest.get("tables"), list)
    if manifest["format"] >= SEALED and not (has_tables and manifest_text(manifest) == text):  # to the byte
        raise damaged(MANIFEST, "was changed after the release (another digest)")
    return manifest


def steadily(folder: Path, read: Callable[[], Result]) -> Result:
    """Read from a release; once more where something did not fit because a face was replaced meanwhile."""
    while True:
        before = state_of(folder)
        try:
            return read()
        except BundleError:
            if state_of(folder) == before:
                raise


def state_of(folder: Path) -> tuple[int, int] | None:
    """What differs between the manifests of a folder as time goes by."""
    try:
        found = (folder / MANIFEST).stat()
    except (OSError, ValueError):  # such as a name that no file can have
        return None
    return found.st_ino, found.st_mtime_ns


def check_files(folder: Path, manifest: Entry, needed: Sequence[str] = NEEDED, *, others: bool = True) -> None:
    """Every file that the manifest lists is there, as it was; or those that are needed, without the others."""
    checksums = manifest.get("checksums")
    if not isinstance(checksums, dict) or not set(needed) <= checksums.keys():
        raise damaged("manifest.json", "lists no checksums")
    sizes = file_sizes(manifest)
    for name in checksums if others else needed:
        check_listed(folder, name, checksums[name], sizes.get(name), earlier_guide(manifest))


def check_listed(folder: Path, name: str, expected: object, size: object, earlier: Entry) -> None:
    """A file is as the manifest says, or a guide as it was before the last face was added.

    The guide is replaced after the manifest: a process that was stopped in between leaves the earlier one.
    """
    try:
        check_file(folder, name, expected, size)
    except BundleError:
        if name not in earlier:
            raise
        check_file(folder, name, *earlier[name])


def earlier_guide(manifest: Entry) -> Entry:
    """The checksum and size that each file of the guide at the top had before the last face was added."""
    told = manifest.get("earlier_guide", {})
    if not isinstance(told, dict) or not all(_is_earlier(*each) for each in told.items()):
        raise damaged(MANIFEST, "does not have the checksum and the size of the earlier guide")
    return told


def _is_earlier(name: str, told: object) -> bool:
    return name in GUIDE and isinstance(told, list) and [type(each) for each in told] == [str, int]


def file_sizes(manifest: Entry) -> Entry:
    """The bytes of every file with a checksum; earlier formats do not say."""
    if manifest["format"] < SEALED:
        return {}
    sizes = manifest.get("sizes")
    if not isinstance(sizes, dict) or sizes.keys() != manifest["checksums"].keys():
        raise damaged(MANIFEST, "does not have the size of every file")
    return sizes


def entry_key(entry: Entry, plan: Plan) -> Marginal | str:
    """A marginal's attributes, or a form's word, of an entry of `tables` that says where the table is."""
    form, offset = entry.get("form"), entry.get("offset", 0)
    if not isinstance(entry["file"], str) or type(offset) is not int or offset < 0:
        raise ValueError
    return plan.schema.marginal(entry["attributes"]) if form is None else str(form)
