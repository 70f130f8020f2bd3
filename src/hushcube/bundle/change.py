"""Adding a face to a release that is published: in its place, or in a new folder.

In its place, a face is a new folder of files under a name of its own, forced to the disk, and then one replacement of
the manifest. Until that the release is the old one, whole; from then on it is the new one, whole. Files that nobody
listed are nobody's here: they stay as they are, and links stay links.
"""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path
from typing import Any

from hushcube.bundle.earlier_cubes import is_earlier_cube
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.lock import changing
from hushcube.bundle.manifest import (
    FORMAT,
    MANIFEST,
    STATEMENT,
    checksums,
    face_folders,
    make_manifest,
    read_manifest,
    seal,
    steadily,
)
from hushcube.bundle.published_face import PublishedFace
from hushcube.bundle.reading import damaged
from hushcube.bundle.writing import write, write_face, write_statements
from hushcube.durable import check_output, check_writable, explained, new_folder, replace_file, sync, sync_folder
from hushcube.errors import BundleError
from hushcube.progress import Progress, silent


def check_change(folder: Path, *, in_place: bool = True) -> None:
    """Refuse a release that cannot get a face, or not in its place, before one is computed."""
    manifest, shown = read_manifest(folder), repr(str(folder)[:200])
    if not in_place:
        return
    anew = f"hushcube recover {str(folder)[:200]} --out NEW"
    if _is_part(folder):
        fix = f"make a release of its own of this part, `{anew}`"
        raise BundleError(shown, "is a part of a cube, which would not fit it any more", fix)
    if manifest["format"] != FORMAT:
        problem = f"has format {manifest['format']}, of an earlier version, to which faces cannot be added safely"
        raise BundleError(shown, problem, f"write a new release with the face, `{anew}`")
    check_writable(folder, shown)


def add_face(folder: Path, face: PublishedFace, *, out: Path | None = None, progress: Progress | None = None) -> None:
    """Add a face to a release, or replace the one of its name; with `out`, in a new folder that shares the files."""
    tell = progress or silent
    check_change(folder, in_place=out is None)
    if out is not None:
        check_output(out)
        steadily(folder, lambda: _copy(folder, face, out, tell))
        return
    try:
        with changing(folder) as change:
            release, manifest = open_bundle(folder, verify=False), read_manifest(folder)
            places = face_folders(manifest)
            place, old = _free_place(folder, face.name), places.get(face.name)
            change.announce(place, old)
            entries = [entry for entry in manifest["tables"] if entry["face"] != face.name]
            entries += write_face(release, face, folder, place, tell)
            sync(folder / place)
            sync_folder(folder / "faces")
            sync_folder(folder)
            kept = {n: c for n, c in manifest["checksums"].items() if old is None or not n.startswith(f"{old}/")}
            sums = dict(sorted({**kept, **checksums(folder, place)}.items()))
            new = make_manifest(release.with_face(face), entries, {**places, face.name: place}, sums)
            replace_file(folder / MANIFEST, seal(new, folder), "release")
    except OSError as problem:
        raise explained("release", folder, problem, "the release is unchanged") from None


def _copy(folder: Path, face: PublishedFace, out: Path, tell: Progress) -> None:
    """A new folder with the files of a release, which never change, and one more face; an earlier format is renewed."""
    release, manifest = open_bundle(folder, verify=False).with_face(face), read_manifest(folder)
    if manifest["format"] != FORMAT:
        write(release, out, progress=tell)
        return
    places = face_folders(manifest)
    old = places.pop(face.name, None)
    statements = {STATEMENT, *(f"{place}/{STATEMENT}" for place in places.values())}
    with new_folder(out) as work:
        for name in manifest["checksums"]:
            if name not in statements and (old is None or not name.startswith(f"{old}/")):
                _link(folder, name, work)
        places[face.name] = f"faces/{face.name}"
        entries: list[dict[str, Any]] = [entry for entry in manifest["tables"] if entry["face"] != face.name]
        entries += write_face(release, face, work, places[face.name], tell)
        write_statements(release, places, work)
        new = make_manifest(release, entries, places, checksums(work))
        (work / MANIFEST).write_bytes(seal(new, work))


def _link(folder: Path, name: str, work: Path) -> None:
    (work / name).parent.mkdir(parents=True, exist_ok=True)
    try:
        (work / name).hardlink_to(folder / name)
    except FileNotFoundError:
        raise damaged(name, "is missing") from None
    except OSError:
        shutil.copyfile(folder / name, work / name)


def _free_place(folder: Path, name: str) -> str:
    """A folder for a face that nothing has had yet: its name, or its name and a number."""
    names = (f"faces/{name}" + (f"-{number}" if number > 1 else "") for number in count(1))
    return next(place for place in names if not os.path.lexists(folder / place))


def _is_part(folder: Path) -> bool:
    """Whether a release is a part of a cube, which has a checksum of everything in it."""
    own = folder.resolve()
    for cube in own.parents[1:2]:
        try:
            manifest = read_manifest(cube)
            return (
                is_earlier_cube(manifest) and f"{own.relative_to(cube).as_posix()}/{MANIFEST}" in manifest["checksums"]
            )
        except (BundleError, KeyError, TypeError):
            return False
    return False
