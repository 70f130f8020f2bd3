"""Files and folders that are there whole or not at all, whatever happens: a signal, an error, a power cut.

What is new is written aside, in the folder that it is for, and forced to the disk. One rename then puts it in its
place, never over anything that is there, and the folder is forced to the disk as well. A file is replaced by one rename
too. A process locks what it writes aside, so that the next one can recognise what a dead process left, and removes it.

So are folders for what does not fit memory, which is rows: for their owner only, and gone with their process. Whoever
opens data next removes the folders of processes that were killed; another user's folders, links, and what merely has a
similar name are left alone.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Final

from hushcube import interrupts
from hushcube.errors import HushcubeError, OutputError, ResourceError
from hushcube.resources import FULL, REFUSED, exhausted

_PARTIAL: Final = ".hushcube-partial-"
_TEMPORARY: Final = "hushcube-temporary-"
_TAKEN: Final = (errno.EEXIST, errno.ENOTEMPTY)
_UNSUPPORTED: Final = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)
_RENAME_NOREPLACE: Final = 1
_AT_FDCWD: Final = -100


def check_output(folder: Path, field: str = "out") -> None:
    """Refuse a folder that exists or cannot be made, before anything is spent."""
    check_file(folder, field, "folder", "releases")


def check_file(target: Path, field: str = "out", kind: str = "file", kinds: str = "files") -> None:
    """Refuse what exists or cannot be made, before any work is done; what dead processes left beside it is removed."""
    try:
        target.lstat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError):
        problem = f"cannot be made there: that is not a name that a {kind} can have"
        raise OutputError(field, problem, "choose another name or place") from None
    else:
        fix = f"choose a new one; {kinds} are never overwritten"
        raise OutputError(field, f"the {kind} exists already: {_shown(target)}", fix)
    parent = target.absolute().parent
    try:
        has_place = parent.is_dir()
    except OSError as problem:
        raise explained(field, parent, problem, "nothing was written") from None
    if not has_place:
        wrong = f"cannot be made there: {_shown(parent)} is not a folder"
        raise OutputError(field, wrong, "create the parent folder first")
    check_writable(parent, field)


def check_writable(folder: Path, field: str) -> None:
    """Refuse a folder in which nothing can be made; what dead processes left in it is removed."""
    sweep(folder)
    try:
        with interrupts.held():
            probe = folder / f"{_PARTIAL}{secrets.token_hex(8)}"
            probe.mkdir(0o700)
            with suppress(FileNotFoundError):  # another process may take it for something left behind
                probe.rmdir()
    except OSError as problem:
        raise explained(field, folder, problem, "nothing was written") from None


def check_room(folder: Path, size: int, field: str) -> None:
    """Refuse a folder whose disk has no room for so many bytes."""
    try:
        if shutil.disk_usage(folder).free < size:
            raise OSError(errno.ENOSPC, "")
    except OSError as problem:
        raise explained(field, folder, problem, "nothing was written") from None


@contextmanager
def new_folder(target: Path, field: str = "out") -> Iterator[Path]:
    """A folder to work in, which takes its place when the work is done."""
    with _new(target, field, "", lambda path: path.mkdir(0o700)) as work:
        yield work
        work.chmod(0o755)


@contextmanager
def new_file(target: Path, field: str = "out") -> Iterator[Path]:
    """A file to write, with the suffix of its name, which takes its place when it is written."""
    with _new(target, field, target.suffix, lambda path: path.touch(exist_ok=False)) as work:
        yield work


@contextmanager
def _new(target: Path, field: str, suffix: str, make: Callable[[Path], None]) -> Iterator[Path]:
    try:
        with aside(target.absolute().parent, make, suffix=suffix) as work:
            yield work
            _put(work, target, field, _rename)
    except OSError as problem:
        raise explained(field, target, problem, "nothing was published") from None


def replace_file(target: Path, content: bytes, field: str, *, mode: int = 0o666, follows: bool = False) -> None:
    """Give a file new content in one step: a reader, and a power cut, find the old or the new.

    What `follows` another such step belongs to it: a request to stop that came meanwhile waits for both.
    """
    try:
        with aside(target.absolute().parent, lambda path: path.touch(mode, False), suffix=target.suffix) as work:
            work.write_bytes(content)
            _put(work, target, field, os.replace, nullcontext if follows else interrupts.irreversible)
    except OSError as problem:
        raise explained(field, target, problem, "it is unchanged") from None


def _put(
    work: Path,
    target: Path,
    field: str,
    move: Callable[[Path, Path], None],
    step: Callable[[], AbstractContextManager[None]] = interrupts.irreversible,
) -> None:
    """Force what was written aside to the disk, and move it to its place: the step that cannot be taken back."""
    sync(work)
    with step():
        move(work, target)
        try:
            sync_folder(target.absolute().parent)
        except OSError as problem:
            left = "it is in its place, but the disk has not confirmed that it will stay there"
            raise explained(field, target, problem, left) from None


@contextmanager
def aside(parent: Path, make: Callable[[Path], None], *, prefix: str = _PARTIAL, suffix: str = "") -> Iterator[Path]:
    """A file or folder with a name of its own, locked; removed in the end unless it has moved."""
    made: list[Path] = []
    lock = None
    try:
        with interrupts.held():
            while lock is None:  # a sweep may catch it before it is locked
                made.append(parent / f"{prefix}{secrets.token_hex(8)}{suffix}")
                make(made[-1])
                try:
                    lock = _lock(made[-1])
                except OSError:  # a file system without locks: nothing is swept there either
                    break
        yield made[-1]
        with interrupts.held():
            _remove(made[-1])
    except BaseException:  # while it is handled, requests to stop wait
        for path in made:
            _remove(path)
        raise
    finally:
        if lock is not None:
            with suppress(OSError):  # of no consequence: nothing was written through it
                os.close(lock)


def sync(path: Path) -> None:
    """Force a file, or a folder with all that is in it, to the disk."""
    if not path.is_dir():
        _sync(path)
        return
    for folder, _, files in os.walk(path, topdown=False):
        for name in files:
            _sync(Path(folder, name))
        sync_folder(Path(folder))


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk, where its file system knows how."""
    try:
        _sync(folder)
    except OSError as problem:
        if problem.errno not in (*_UNSUPPORTED, errno.EACCES):
            raise


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(folder: Path, prefix: str = _PARTIAL) -> None:
    """Remove what dead processes of this user had written aside in a folder; links are not followed."""
    ours = re.compile(re.escape(prefix) + r"[0-9a-f]{16}(\..*)?")
    with suppress(OSError), os.scandir(folder) as found:
        for path in [Path(entry.path) for entry in found if ours.fullmatch(entry.name)]:
            with suppress(OSError):
                if path.lstat().st_uid == os.getuid() and (lock := _lock(path)) is not None:
                    _remove(path)
                    os.close(lock)


def _lock(path: Path) -> int | None:
    """A descriptor that locks something while its process lives; None if another has it, or it is gone."""
    with suppress(BlockingIOError, FileNotFoundError):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), path.lstat()):
                return os.dup(descriptor)  # which shares the lock
        finally:
            os.close(descriptor)
    return None


def _remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; the next sweep tries again where that fails."""
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _rename(source: Path, target: Path) -> None:
    """Rename to a name that nothing has: a rename of the standard library would replace a file or an empty folder.

    Where the file system cannot promise that, the name is looked at just before.
    """
    import ctypes

    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):
        code = errno.ENOSYS
    else:
        done = rename(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE)
        code = ctypes.get_errno() if done else 0
    if code in _UNSUPPORTED:
        if os.path.lexists(target):
            code = errno.EEXIST
        else:
            source.rename(target)
            return
    if code:
        raise OSError(code, os.strerror(code))


def explained(field: str, target: Path, problem: OSError, left: str) -> HushcubeError:
    """What went wrong with a file or folder, why, what is left, and what to do."""
    reason = os.strerror(problem.errno).lower() if problem.errno else "input/output error"
    if problem.errno in _TAKEN:
        return OutputError(field, f"another process made {_shown(target)} meanwhile; {left}", "choose a new name")
    if problem.errno in REFUSED:
        told = f"{_shown(target)} cannot be written ({reason}); {left}"
        return OutputError(field, told, "choose another place, or fix its permissions")
    fix = "make room" if problem.errno in FULL else "look at the disk"
    return HushcubeError(f"{field}: writing {_shown(target)} failed ({reason}); {left}. Fix: {fix}, then try again.")


def temporary_folder() -> AbstractContextManager[Path]:
    """A new folder for rows, which is removed in the end."""
    return aside(_place(), _make_temporary, prefix=_TEMPORARY)


def remove_leftovers() -> None:
    """Remove the temporary folders of processes that were killed."""
    sweep(_place(), _TEMPORARY)


def _place() -> Path:
    """Where temporary folders are made: $TMPDIR, which is not replaced by another place if it cannot be used."""
    return Path(os.environ.get("TMPDIR") or tempfile.gettempdir()).absolute()


def _make_temporary(folder: Path) -> None:
    try:
        folder.mkdir(0o700)
    except OSError as problem:
        raise overfull(problem) or explained("TMPDIR", _place(), problem, "nothing was read") from None


def overfull(problem: BaseException) -> ResourceError | None:
    """The resource that ran out while something was kept in a temporary folder; None if none did."""
    fix = "make room there, or set TMPDIR to a folder on another disk"
    return exhausted(problem, f"the temporary folder {str(_place())!r}", fix)


def _shown(path: Path) -> str:
    return repr(str(path)[:200])
