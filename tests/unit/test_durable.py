"""What is written is there whole or not at all, never over anything, and on the disk before it is announced."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hushcube import durable, interrupts
from hushcube.errors import HushcubeError, OutputError

PARTIAL = ".hushcube-partial-"


def fill(work):
    if work.is_dir():
        (work / "inner").mkdir()
        (work / "inner" / "text").write_text("x")
    else:
        work.write_text("x")


MAKERS = {"folder": durable.new_folder, "file": durable.new_file}


@pytest.fixture(params=MAKERS, ids=str)
def make(request):
    return MAKERS[request.param]


def test_a_new_one_appears_at_the_end(tmp_path, make):
    with make(tmp_path / "new.txt") as work:
        fill(work)
        assert work.suffix == ("" if work.is_dir() else ".txt")
        assert [path.name for path in tmp_path.iterdir()] == [work.name]
    assert [path.name for path in tmp_path.iterdir()] == ["new.txt"]


@pytest.mark.parametrize("problem", [OSError(errno.EIO, ""), KeyboardInterrupt(), ValueError("x")], ids=repr)
def test_a_failure_leaves_nothing(tmp_path, make, problem):
    with pytest.raises((HushcubeError, KeyboardInterrupt, ValueError)), make(tmp_path / "new") as work:
        fill(work)
        raise problem
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "kind", "words"),
    [
        (errno.ENOSPC, HushcubeError, "no space left on device"),
        (errno.EIO, HushcubeError, "input/output error"),
        (errno.EROFS, OutputError, "read-only file system"),
        (errno.EACCES, OutputError, "permission denied"),
    ],
)
def test_errors_say_where_and_why_and_what_is_left(tmp_path, make, number, kind, words):
    with pytest.raises(HushcubeError) as caught, make(tmp_path / "new", "--out") as work:
        fill(work)
        raise OSError(number, "Error writing bytes to file. Detail: secret")
    told = str(caught.value)
    assert type(caught.value) is kind and told.startswith("--out: ") and "secret" not in told
    assert repr(str(tmp_path / "new")) in told and words in told and "; nothing was published. Fix: " in told
    assert ("make room" in told) == (number == errno.ENOSPC)


@pytest.mark.parametrize("theirs", ["file", "empty folder", "folder", "link"])
def test_what_appears_meanwhile_stays_as_it_is(tmp_path, make, theirs):
    """A plain rename would replace a file, and an empty folder by a folder."""
    place = tmp_path / "new"
    with pytest.raises(OutputError, match=r"another process made .*; nothing was published"), make(place) as work:
        fill(work)
        if theirs == "file":
            place.write_text("theirs")
        elif theirs == "link":
            place.symlink_to("nowhere")
        else:
            place.mkdir()
            if theirs == "folder":
                (place / "theirs").touch()
        kind = place.lstat().st_mode
    assert [path.name for path in tmp_path.iterdir()] == ["new"] and place.lstat().st_mode == kind
    assert theirs != "file" or place.read_text() == "theirs"


def test_file_systems_without_an_exclusive_rename_are_looked_at_first(tmp_path, make, monkeypatch):
    import ctypes

    class Library:
        def __init__(self, *_, **__):
            pass

        def renameat2(self, *_):
            ctypes.set_errno(errno.EINVAL)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", Library)
    with make(tmp_path / "new") as work:
        fill(work)
    with pytest.raises(OutputError, match="another process made"), make(tmp_path / "new") as work:
        fill(work)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_everything_is_synced_before_it_is_moved_and_its_folder_after(tmp_path, make, monkeypatch):
    seen = []
    sync, move = durable._sync, durable._rename
    monkeypatch.setattr(durable, "_sync", lambda path: (seen.append(path), sync(path)))
    monkeypatch.setattr(durable, "_rename", lambda source, target: (seen.append("move"), move(source, target)))
    with make(tmp_path / "new") as work:
        fill(work)
        written = {work, *work.rglob("*")}
    at = seen.index("move")
    assert set(seen[:at]) == written and seen[at + 1 :] == [tmp_path]
    assert all(seen.index(inner) < seen.index(inner.parent) for inner in written - {work})


def test_a_folder_that_cannot_be_synced_is_announced_as_it_is(tmp_path, make, monkeypatch):
    def fail(path):
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(durable, "sync_folder", lambda path: fail(path) if path == tmp_path else None)
    words = "it is in its place, but the disk has not confirmed"
    with pytest.raises(HushcubeError, match=words), make(tmp_path / "new") as work:
        fill(work)
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_request_to_stop_is_honoured_before_the_move_and_not_after(tmp_path, make, monkeypatch):
    monkeypatch.setattr(interrupts, "_noted", [])
    monkeypatch.setattr(interrupts, "_waiting", False)
    monkeypatch.setattr(durable, "sync", lambda _: interrupts._noted.append(signal.SIGINT))  # swallowed by a library
    with pytest.raises(KeyboardInterrupt), make(tmp_path / "new") as work:
        fill(work)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(interrupts, "_noted", [])
    monkeypatch.setattr(durable, "sync", lambda _: None)
    monkeypatch.setattr(durable, "sync_folder", lambda _: interrupts.note(signal.SIGINT))
    with make(tmp_path / "new") as work:
        fill(work)
    assert [path.name for path in tmp_path.iterdir()] == ["new"] and interrupts._noted == [signal.SIGINT]


def test_a_replacement_is_one_step(tmp_path):
    target = tmp_path / "file.json"
    target.write_text("old")
    other = tmp_path / "link"
    other.hardlink_to(target)
    durable.replace_file(target, b"new", "file")
    assert target.read_text() == "new" and other.read_text() == "old"
    assert {path.name for path in tmp_path.iterdir()} == {"file.json", "link"}


def test_a_failed_replacement_leaves_the_old(tmp_path, monkeypatch):
    target = tmp_path / "file.json"
    target.write_text("old")
    monkeypatch.setattr(durable, "_sync", lambda path: (_ for _ in ()).throw(OSError(errno.ENOSPC, "")))
    with pytest.raises(HushcubeError, match=r"^release: .*no space left on device.*it is unchanged"):
        durable.replace_file(target, b"new", "release")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"] and target.read_text() == "old"


# ------------------------------------------------------------------------------------------ what dead processes left

LEAVE = """
import os, sys
from pathlib import Path
from hushcube import durable
maker = getattr(durable, sys.argv[1])
with maker(Path(sys.argv[2])) as work:
    print("ready", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(make, tmp_path):
    run = subprocess.Popen(
        [sys.executable, "-c", LEAVE, make.__name__, tmp_path / "new"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert run.stdout.readline() == b"ready\n"
    yield run
    run.kill()
    run.communicate()


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path, writer):
    (written,) = tmp_path.iterdir()
    assert written.name.startswith(PARTIAL)
    durable.check_output(tmp_path / "other")
    assert list(tmp_path.iterdir()) == [written]
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    assert list(tmp_path.iterdir()) == [written]
    durable.check_file(tmp_path / "other")
    assert list(tmp_path.iterdir()) == []


def test_only_what_is_ours_is_swept(tmp_path, monkeypatch):
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "precious").touch()
    (tmp_path / f"{PARTIAL}{0:016}").symlink_to("target")
    (tmp_path / f"{PARTIAL}of-my-own").mkdir()
    (tmp_path / f"{PARTIAL}{1:016}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    durable.sweep(tmp_path)
    assert (tmp_path / f"{PARTIAL}{1:016}").is_dir()
    monkeypatch.undo()
    durable.sweep(tmp_path)
    assert not (tmp_path / f"{PARTIAL}{1:016}").exists()
    assert (tmp_path / "target" / "precious").exists() and (tmp_path / f"{PARTIAL}of-my-own").is_dir()


def test_a_sweep_that_comes_between_making_and_locking(tmp_path, make, monkeypatch):
    lock, swept = durable._lock, []

    def late(path: Path):
        if not swept:
            swept.append(path)
            durable._remove(path)
        return lock(path)

    monkeypatch.setattr(durable, "_lock", late)
    with make(tmp_path / "new") as work:
        fill(work)
    assert [path.name for path in tmp_path.iterdir()] == ["new"] and work != swept[0]


def test_a_sweep_that_takes_the_probe_of_another_process(tmp_path, monkeypatch):
    remove = Path.rmdir
    monkeypatch.setattr(Path, "rmdir", lambda path: (remove(path), remove(path)))
    durable.check_writable(tmp_path, "out")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_looked_at_is_reported(tmp_path, monkeypatch):
    def broken(self):
        raise OSError(errno.EIO, "broken")

    monkeypatch.setattr(Path, "is_dir", broken)
    with pytest.raises(HushcubeError, match=r"out: writing .* failed \(input/output error\); nothing was written"):
        durable.check_file(tmp_path / "new")
