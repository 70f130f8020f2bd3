"""Adding a face to a release that is published: in its place, or in a new folder.

In its place, a face is a new folder of files under a name of its own, forced to the disk, and then one replacement of
the manifest. Until that the release is the old one, whole; from then on it is the new one, whole. Then README.md,
index.csv and index.html are replaced, which name the face; the new manifest knows them as they were and as they will
be, so that the release is whole at every moment. Files that nobody listed are nobody's here: they stay as they are, and
links stay links.

One change of a published release at a time, and none that a dead process left half done.

A file in the release's folder is locked while the release is changed. It names the process that changes it, and the
folders that the change makes and supersedes. The operating system ends the lock with the process, whatever ends that; a
file that exists but is not locked shows the next one what to put in order.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from hushcube import interrupts
from hushcube.bundle.earlier_cubes import is_earlier_cube
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.guide import guide
from hushcube.bundle.manifest import (
    FORMAT,
    GUIDE,
    MANIFEST,
    PEOPLE,
    checksums,
    earlier_guide,
    face_folders,
    is_face_folder,
    make_manifest,
    read_manifest,
    seal,
    steadily,
)
from hushcube.bundle.part import PublishedFace
from hushcube.bundle.reading import checksum, damaged, inside
from hushcube.bundle.statement import STATEMENT
from hushcube.bundle.writing import write, write_face, write_guide, write_statements
from hushcube.durable import check_output, check_writable, explained, new_folder, replace_file, sync, sync_folder
from hushcube.errors import BundleError, HushcubeError
from hushcube.faces.value import UNBIASED
from hushcube.progress import Progress, silent

LOCK: Final = ".hushcube-lock"
_PATIENCE: Final = 600.0
"""Seconds to wait for another process, which changes a release in a fraction of one, or a very large one in minutes."""
_PAUSE: Final = 0.02
_WRITTEN: Final = ("tables/*.parquet", PEOPLE, STATEMENT, *GUIDE)


class Change:
    """A change of a release under way."""

    def __init__(self, folder: Path, descriptor: int) -> None:
        self._folder, self._descriptor = folder, descriptor
        self._makes: str | None = None
        self._supersedes: str | None = None

    def announce(self, makes: str, supersedes: str | None) -> None:
        """Record the folders that the release is about to gain and lose, before the first of them is made."""
        self._makes, self._supersedes = makes, supersedes
        self._write({"makes": makes, "supersedes": supersedes})

    def settle_last(self) -> None:
        """Remove what a dead process left, and name this one as the holder of the lock."""
        record = _read(self._descriptor)
        for place in (record.get("makes"), record.get("supersedes")):
            if is_face_folder(place):
                _remove_unlisted(self._folder, place)
        self._write({})

    def settle(self, *, done: bool) -> None:
        """Remove what the release does not list, and the lock; what may still be needed stays for the next change."""
        if self._makes is not None:
            _remove_unlisted(self._folder, self._makes)
        if self._supersedes is not None and done:
            _remove_unlisted(self._folder, self._supersedes)
        elif self._supersedes is not None and self._supersedes not in _listed(self._folder):
            return
        (self._folder / LOCK).unlink(missing_ok=True)

    def _write(self, record: dict[str, Any]) -> None:
        holder = {"process": os.getpid(), "host": socket.gethostname(), "since": f"{datetime.now():%Y-%m-%d %H:%M:%S}"}
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, json.dumps({**holder, **record}).encode(), 0)
        os.fsync(self._descriptor)
        sync_folder(self._folder)


@contextmanager
def changing(folder: Path) -> Iterator[Change]:
    """The right to change a release; waits a while for another process that has it, and refuses after that."""
    change, done = None, False
    patience = time.monotonic() + _PATIENCE
    try:
        while change is None:
            with interrupts.held():
                change = _try(folder)
            if change is None:
                if time.monotonic() > patience:
                    raise BundleError(repr(str(folder)[:200]), f"is being changed by {_holder(folder)}", "try later")
                time.sleep(_PAUSE)
        change.settle_last()
        yield change
        done = True
    finally:
        if change is not None:
            with interrupts.held():
                with suppress(OSError, BundleError):
                    change.settle(done=done)
                with suppress(OSError):
                    os.close(change._descriptor)


def _try(folder: Path) -> Change | None:
    """The lock, unless another process has it or has just given it back with the file."""
    path = folder / LOCK
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(descriptor), path.lstat()):
            return Change(folder, os.dup(descriptor))
    except (BlockingIOError, FileNotFoundError):
        pass
    finally:
        with suppress(OSError):
            os.close(descriptor)
    return None


def _holder(folder: Path) -> str:
    """Who changes a release, as far as the lock says."""
    record: dict[str, Any] = {}
    with suppress(OSError):
        descriptor = os.open(folder / LOCK, os.O_RDONLY | os.O_NOFOLLOW)
        record = _read(descriptor)
        os.close(descriptor)
    told = [record.get(name) for name in ("process", "host", "since")]
    return "process {!r} on {!r} since {!r}".format(*told) if all(told) else "another process"


def _read(descriptor: int) -> dict[str, Any]:
    try:
        record = json.loads(os.pread(descriptor, 10_000, 0))
    except ValueError:
        return {}
    return record if isinstance(record, dict) else {}


def _listed(folder: Path) -> frozenset[str]:
    return frozenset(face_folders(read_manifest(folder)).values())


def _remove_unlisted(folder: Path, place: str) -> None:
    """Remove what the program wrote for a face that the release does not list; other files there stay."""
    if place in _listed(folder):
        return
    where = folder / place
    if os.path.lexists(where):
        where = inside(folder, place, is_folder=True)  # not through a link that leaves the release
    for pattern in _WRITTEN:
        for path in where.glob(pattern):
            path.unlink()
    for emptied in (where / "tables", where, where.parent):
        with suppress(OSError):
            emptied.rmdir()


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
            known: dict[str, str] = {}
            entries += write_face(release, face, folder, place, tell, known)
            sync(folder / place)
            sync_folder(folder / "faces")
            sync_folder(folder)
            kept = {n: c for n, c in manifest["checksums"].items() if old is None or not n.startswith(f"{old}/")}
            places |= {face.name: place}
            texts = guide(release.plan, UNBIASED, entries, places, private=release.private)
            coming = {name: text.encode() for name, text in texts.items()}
            hashes = {name: hashlib.sha256(text).hexdigest() for name, text in coming.items()}
            sums = dict(sorted({**kept, **checksums(folder, place, known), **hashes}.items()))
            new = make_manifest(release.with_face(face), entries, places, sums, _guide_now(folder, manifest))
            replace_file(folder / MANIFEST, seal(new, folder, coming), "release")
            with suppress(HushcubeError):  # the face is there; the next change tries again
                for name, text in coming.items():
                    replace_file(folder / name, text, "release", follows=True)
    except OSError as problem:
        raise explained("release", folder, problem, "the release is unchanged") from None


def _guide_now(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The checksum and size of each file of the guide, as it is: the one that is listed, or the one of before."""
    found, earlier = {}, earlier_guide(manifest)
    for name in GUIDE:
        listed = [manifest["checksums"].get(name), manifest["sizes"].get(name)]
        with suppress(BundleError):  # a file that was damaged or removed is replaced
            found[name] = earlier[name] if checksum(folder, name) == earlier.get(name, [None])[0] else listed
    return found


def _copy(folder: Path, face: PublishedFace, out: Path, tell: Progress) -> None:
    """A new folder with the files of a release, which never change, and one more face; an earlier format is renewed."""
    release, manifest = open_bundle(folder, verify=False).with_face(face), read_manifest(folder)
    if manifest["format"] != FORMAT:
        write(release, out, progress=tell)
        return
    places = face_folders(manifest)
    old = places.pop(face.name, None)
    written = {STATEMENT, *(f"{place}/{STATEMENT}" for place in places.values()), *GUIDE}
    with new_folder(out) as work:
        for name in manifest["checksums"]:
            if name not in written and (old is None or not name.startswith(f"{old}/")):
                _link(folder, name, work)
        places[face.name] = f"faces/{face.name}"
        entries: list[dict[str, Any]] = [entry for entry in manifest["tables"] if entry["face"] != face.name]
        known: dict[str, str] = {}
        entries += write_face(release, face, work, places[face.name], tell, known)
        write_statements(release, places, work)
        write_guide(release, UNBIASED, entries, work, places)
        new = make_manifest(release, entries, places, checksums(work, "", known))
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
    cube = own.parent.parent
    try:
        manifest = read_manifest(cube)
        return is_earlier_cube(manifest) and f"{own.relative_to(cube).as_posix()}/{MANIFEST}" in manifest["checksums"]
    except (BundleError, KeyError, TypeError):
        return False
