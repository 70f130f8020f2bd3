"""Folders for rows: private, removed in the end, and found again when their process was killed."""

import errno
import itertools
import os
import shutil
import signal
import stat
import subprocess
import sys

import duckdb
import pytest

from hushcube import interrupts
from hushcube.durable import remove_leftovers, temporary_folder
from hushcube.errors import OutputError, ResourceError
from hushcube.private.engines import open_source
from hushcube.private.engines.source import connected


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_for_its_owner_and_goes_with_what_is_in_it(place):
    with temporary_folder() as folder:
        assert folder.parent == place and stat.S_IMODE(folder.stat().st_mode) == 0o700
        (folder / "rows").touch()
    assert list(place.iterdir()) == []


def test_what_killed_processes_left_is_removed_when_data_is_opened(place):
    code = """
import sys
from pathlib import Path
from hushcube.durable import temporary_folder
with temporary_folder() as folder:
    Path(folder, "rows").write_text("secret")
    print("written", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as living:
        assert living.stdout.readline() == "written\n"
        open_source(duckdb.sql("SELECT 1 AS a"))
        assert len(list(place.glob("*/rows"))) == 1  # its process lives
        living.kill()
        living.wait()
        assert len(list(place.glob("*/rows"))) == 1
        open_source(duckdb.sql("SELECT 1 AS a"))
    assert list(place.iterdir()) == []


def test_what_is_not_ours_is_left_alone(place, monkeypatch):
    precious = place / "precious"
    precious.mkdir()
    kept = [place / f"hushcube-temporary-{name}" for name in ("notes", "0" * 16, "f" * 16)]
    kept[0].mkdir()
    kept[1].symlink_to(precious)  # planted
    os.mkfifo(kept[2])
    remove_leftovers()
    assert precious.is_dir() and all(path.exists() for path in kept[:2])
    theirs = place / f"hushcube-temporary-{'a' * 16}"
    theirs.mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    remove_leftovers()
    assert theirs.is_dir()


def test_a_request_to_stop_at_any_step_leaves_nothing(place, listening):
    """A request at each line that runs, one after the other, until one comes too late."""
    for step in itertools.count():
        interrupts._noted.clear()
        lines = itertools.count()

        def tracer(_frame, event, _argument, lines=lines, step=step):
            if event == "line" and next(lines) == step:
                signal.raise_signal(signal.SIGTERM)
            return tracer

        try:
            sys.settrace(tracer)
            with temporary_folder() as folder:
                (folder / "rows").touch()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(None)
        assert list(place.iterdir()) == []
        if not interrupts.noted():
            break
    assert step > 100


@pytest.mark.parametrize(("number", "kind"), [(errno.ENOSPC, ResourceError), (errno.EACCES, OutputError)])
def test_a_place_that_cannot_be_used_is_named(place, monkeypatch, number, kind):
    def refuse(*_arguments, **_options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("pathlib.Path.mkdir", refuse)
    with pytest.raises(kind, match=f"{place}.* Fix: "), temporary_folder():
        pass


def test_a_place_that_was_asked_for_is_not_replaced_by_another(place, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(place / "no"))
    told = r"TMPDIR: .*no' cannot be written \(no such file or directory\)"
    with pytest.raises(OutputError, match=told), temporary_folder():
        pass


def sort(memory="20MB", **settings):
    """Sort more than fits memory."""
    with connected(":memory:", limited=True) as connection:
        for name, value in {"threads": "1", "memory_limit": memory, **settings}.items():
            connection.execute(f"SET {name} = '{value}'")
        rows = connection.sql("SELECT row_number() OVER (ORDER BY hash(range)) FROM range(2000000)")
        for _ in rows.to_arrow_reader(1 << 16):
            pass


def test_duckdb_without_room_is_no_damaged_data(place):
    with pytest.raises(ResourceError, match=f"the temporary folder '{place}' is full. Fix: make room there"):
        sort(max_temp_directory_size="1MB")
    with pytest.raises(ResourceError, match="memory is not enough"):
        sort(temp_directory="")
    assert list(place.iterdir()) == []


def test_a_full_disk(place, monkeypatch):
    """With a real disk of one megabyte, where one can be had."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("a small disk cannot be mounted here: that takes root")
    try:
        with pytest.raises(ResourceError, match=f"the temporary folder '{place}' is full. Fix: make room there"):
            sort()
        assert list(place.iterdir()) == []
        (place / "filled").write_bytes(bytes(1 << 20))
        with pytest.raises(ResourceError, match=f"the temporary folder '{place}' is full. Fix: make room there"):
            sort()
    finally:
        subprocess.run(["umount", str(place)], check=True)
