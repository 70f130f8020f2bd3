"""The manifest of a release: what is in the folder, with a checksum of every other file."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from hushcube.errors import BundleError
from hushcube.model.marginal import Marginal
from hushcube.plan.plan import Plan
from hushcube.release.reading import checksum, damaged, read_text
from hushcube.release.release import Release
from hushcube.release.stamp import stamp

Result = TypeVar("Result")

FORMAT: Final = 3
_READABLE: Final = (1, 2, 3)
"""Format 1 had no faces; format 2 had each in faces/NAME, and all of their statements in PRIVACY.md."""
MANIFEST: Final = "manifest.json"
STATEMENT: Final = "PRIVACY.md"
MEASUREMENTS: Final = "measurements/values.parquet"


def make_manifest(
    release: Release, tables: list[dict[str, Any]], places: dict[str, str], sums: dict[str, str]
) -> dict[str, Any]:
    """The manifest of a release, of whose faces `places` gives the folders, and `sums` the checksums of all files."""
    from hushcube import __version__

    return {
        "format": FORMAT,
        "hushcube": __version__,
        **stamp(private=release.private),
        **plan_fields(release.plan),
        "faces": {name: {**face.description, "folder": places[name]} for name, face in release.faces.items()},
        "checksums": sums,
        "tables": tables,
    }


def checksums(folder: Path, place: str = "") -> dict[str, str]:
    """The checksums of all files in a folder, or in a place in it, by their names in the manifest."""
    files = sorted(path.relative_to(folder).as_posix() for path in (folder / place).rglob("*") if path.is_file())
    return {name: checksum(folder, name) for name in files}


def face_folders(manifest: dict[str, Any]) -> dict[str, str]:
    """Where the files of each face are."""
    return {name: told.get("folder", f"faces/{name}") for name, told in manifest.get("faces", {}).items()}


def plan_fields(plan: Plan) -> dict[str, Any]:
    """What the manifest repeats of the plan, for readers without hushcube."""
    return {
        "name": plan.schema.name,
        "privacy": plan.privacy.to_dict(),
        "strategy": {
            "name": plan.strategy,
            "budgets": plan.budget_rule,
            "recovery": plan.recovery,
            "proof": plan.proof,
        },
        "noise": f"discrete {plan.law}",
        "plan_digest": plan.digest,
        "workload": list(plan.workload.words),
        "schema": plan.schema.to_dict(),
    }


def manifest_text(manifest: dict[str, Any]) -> str:
    """One line for each entry: readable, and quick to write for 166,751 tables."""
    tables = ",\n  ".join(json.dumps(entry, ensure_ascii=False) for entry in manifest["tables"])
    rest = ",\n ".join(
        f"{json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in manifest.items() if k != "tables"
    )
    return f'{{\n {rest},\n "tables": [\n  {tables}\n ]\n}}\n'


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a release."""
    if not os.path.lexists(folder / "manifest.json"):
        raise BundleError(
            f"{str(folder)[:200]!r}",
            "is not a release: it has no manifest.json",
            "give the folder that `hushcube release` wrote",
        )
    try:
        manifest = json.loads(read_text(folder, "manifest.json"))
    except (ValueError, RecursionError):
        raise damaged("manifest.json", "cannot be read") from None
    if not isinstance(manifest, dict) or manifest.get("format") not in _READABLE:
        raise damaged("manifest.json", "is not of this version of hushcube")
    return manifest


def steadily(folder: Path, read: Callable[[], Result]) -> Result:
    """Read from a release; once more where something did not fit because a face was replaced meanwhile."""
    while True:
        before = version(folder)
        try:
            return read()
        except BundleError:
            if version(folder) == before:
                raise


def version(folder: Path) -> tuple[int, int] | None:
    """What differs between the manifests of a folder as time goes by."""
    try:
        found = (folder / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Every file that the manifest lists is there, as it was."""
    checksums = manifest.get("checksums")
    if not isinstance(checksums, dict) or not {"plan.json", MEASUREMENTS} <= checksums.keys():
        raise damaged("manifest.json", "lists no checksums")
    for name, expected in checksums.items():
        if checksum(folder, name) != expected:
            raise damaged(name, "was changed after the release")


def entry_key(entry: dict[str, Any], plan: Plan) -> Marginal | str:
    """A marginal's attributes, or a form's word."""
    form = entry.get("form")
    return plan.schema.marginal(entry["attributes"]) if form is None else str(form)


def is_entry(entry: dict[str, Any]) -> bool:
    """Whether an entry of `tables` says where the table is."""
    offset = entry.get("offset", 0)
    return isinstance(entry["file"], str) and type(offset) is int and offset >= 0
