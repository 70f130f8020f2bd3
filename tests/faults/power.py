"""Power cuts: images of a disk, taken while the program writes to it and right after it says that it has published.

The disk is an ext4 file system in a file, which writes nothing by itself for minutes: what is in an image is what the
program forced there. The process is killed at a call that changes something, or runs to its end; the image that there
is at this moment is mounted, and judged.
"""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

from faults.calls import CHANGING, VERBS, Case
from faults.program import Program

TOOLS = ("mkfs.ext4", "mount", "umount", "sync")


def why_not(folder: Path) -> str | None:
    """Why there can be no images here; None if there can."""
    if sys.platform != "linux" or os.geteuid() != 0:
        return "a file system can only be mounted by root, on Linux"
    if missing := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"{missing[0]} is not installed"
    try:
        _make(folder / "probe")
        with _mounted(folder / "probe", folder / "probed"):
            return None
    except subprocess.CalledProcessError as problem:
        return f"no file system can be mounted: {problem.stderr.decode().strip()}"
    finally:
        (folder / "probe").unlink(missing_ok=True)


def part(program: Program, folder: Path, every: int, verbs=tuple(VERBS)) -> dict:
    """Cut the power at every so many changes of each verb, and right after it; the figures."""
    if (reason := why_not(folder)) is not None:
        return {"cuts": 0, "skipped": reason, "problems": []}
    cuts, problems = 0, []
    for name in verbs:
        program.fresh(VERBS[name].template)
        calls = program.done(VERBS[name].command)
        changes = [number for number, call in enumerate(calls, 1) if call[1] in CHANGING]
        for number in [*changes[::every], 0]:
            problems += [f"{name}, cut at call {number or 'last'}: {p}" for p in _cut(program, name, number, folder)]
            cuts += 1
    return {"cuts": cuts, "problems": problems}


def _cut(program: Program, name: str, number: int, folder: Path) -> list[str]:
    """Run a verb on a disk of its own until a call, or to its end; what is wrong with the image of that moment."""
    verb, kept = VERBS[name], program.desk
    disk, image = folder / "disk", folder / "image"
    _make(disk)
    try:
        with _mounted(disk, folder / "mounted") as place:
            program.desk = place / "desk"
            program.fresh(verb.template)
            subprocess.run(["sync", "-f", place], check=True)
            code, told, _ = program.run(verb.command, number, -signal.SIGKILL if number else 0)
            shutil.copyfile(disk, image)
        with _mounted(image, folder / "mounted") as place:
            program.desk = place / "desk"
            case = Case(program, name, number, [], -signal.SIGKILL)
            new = case.state(verb)
            if code == 0 and not new:
                case.problems.append(f"announced, and not on the disk: {told[-200:]}")
            return case.problems
    finally:
        program.desk = kept


def _make(file: Path) -> None:
    with suppress(FileNotFoundError):
        file.unlink()
    with file.open("wb") as disk:
        disk.truncate(24 * 2**20)
    subprocess.run(["mkfs.ext4", "-q", "-F", file], check=True, capture_output=True)


@contextmanager
def _mounted(file: Path, place: Path):
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop,commit=300", file, place], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True, capture_output=True)
