"""A folder as somebody sees it who can only read it: a second, read-only mount of it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def read_only(folder: Path, place: Path) -> Iterator[Path]:
    """The files of a folder at another place, where nobody can write, whoever they are."""

    def mount(*options: str) -> None:
        command = ["mount", *options, str(place)]
        if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
            pytest.skip("no file system can be mounted here")

    place.mkdir()
    mount("--bind", str(folder))
    try:
        mount("-o", "remount,bind,ro")
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)  # also if something in it is still open
