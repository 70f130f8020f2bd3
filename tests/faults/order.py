"""What a power cut may lose: everything since the last fsync of a file, and of the folder that has its name.

From the file-system calls of a run this follows what is sure to be on the disk. At a rename that publishes, all that
was written must be; before anything published is removed, the rename must be; in the end, everything must be.
"""

from pathlib import PurePosixPath

LOCK = ".hushcube-lock"
UNFINISHED = (".hushcube-partial-", LOCK)


def unfinished(path: str) -> bool:
    """Whether it is work aside, of which nothing is expected."""
    return any(part.startswith(UNFINISHED) for part in PurePosixPath(path).parts)


def folder_of(path: str) -> str:
    """The folder that has the name."""
    return str(PurePosixPath(path).parent)


def violations(calls: list[list[str]], desk: str) -> list[str]:
    """What is done too early, by the calls of a run: number, name, path and new path."""
    written: set[str] = set()  # files whose content is not on the disk
    named: dict[str, set[str]] = {}  # for each folder, the names in it that are not on the disk
    found = []

    def unsafe(below: str) -> list[str]:
        places = {str(PurePosixPath(place, name)) for place, entries in named.items() for name in entries}
        return sorted(path for path in written | places if path == below or path.startswith(f"{below}/"))

    def rename_entry(path: str) -> None:
        named.setdefault(folder_of(path), set()).add(PurePosixPath(path).name)

    for number, name, path, new in calls:
        at = f"call {number} ({name} {path} {new})"
        if name in ("create", "mkdir", "link"):
            rename_entry(new or path)
        elif name in ("write", "writev", "ftruncate", "ftruncate64"):
            written.add(path)
        elif name in ("fsync", "fdatasync"):
            written.discard(path)
            named.pop(path, None)
        elif name == "rename":
            if not unfinished(new):
                early = [other for other in unsafe(desk) if LOCK not in other and (other != path or path in written)]
                found += [f"{at}: published before {early} are on the disk"] if early else []
            written = {new + other[len(path) :] if other.startswith(path) else other for other in written}
            moved = {p: e for p, e in named.items() if p == path or p.startswith(f"{path}/")}
            for place, entries in moved.items():
                del named[place]
                named[new + place[len(path) :]] = entries
            named.get(folder_of(path), set()).discard(PurePosixPath(path).name)
            rename_entry(new)
        elif name in ("unlink", "unlinkat", "rmdir"):
            pending = [other for other in unsafe(desk) if not unfinished(other)]
            if not unfinished(path) and pending:
                found.append(f"{at}: removed before {pending} are on the disk")
            written.discard(path)
            named.get(folder_of(path), set()).discard(PurePosixPath(path).name)
    left = [path for path in unsafe(desk) if not unfinished(path)]
    return found + [f"at the end {left} are not on the disk"] * bool(left)
