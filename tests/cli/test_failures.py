"""What a failure says: the resource or the path, never the data; and what had been published before it."""

import errno
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from cli.desk import ASKED, BUDGET, listing
from hushcube.cli import run

FACE = ["release", *ASKED, *BUDGET, "--data", "people.csv", "--out", "new", "--face", "integral"]
RELEASE = ["release", "plan.json", "--data", "people.csv", "--out", "new"]
PUBLISHED = (
    "hushcube: the unbiased release is published in new and its budget is spent: do not release the data again; "
)
ADD = "add the face with `hushcube recover new --face integral`"


@pytest.fixture
def failing(monkeypatch):
    """Put an exception, or what raises one, in the place of a function."""

    def place(name, problem):
        def fail(*_arguments, **_options):
            if isinstance(problem, int):
                signal.raise_signal(problem)
            raise problem

        monkeypatch.setattr(name, fail)

    return place


@pytest.fixture
def told(capsys):
    """The lines that the program says about its failure."""
    return lambda: failure(capsys.readouterr().err)


def failure(err):
    return [line for line in err.splitlines() if line.startswith("hushcube: ")]


# --------------------------------------------------------------------------------------------------- after publishing


@pytest.mark.parametrize(
    ("problem", "first"),
    [
        (np.linalg.LinAlgError("SVD did not converge"), "unexpected LinAlgError"),
        (MemoryError(), "memory is not enough"),
        (OSError(errno.EIO, "Input/output error", "new/plan.json"), "'new/plan.json' cannot be read or written"),
        (KeyError("qz7731"), "unexpected KeyError"),
    ],
    ids=lambda x: type(x).__name__,
)
def test_whatever_a_face_does_the_published_release_is_reported(desk, failing, told, problem, first):
    failing("hushcube.faces.face.make_face", problem)
    assert run(FACE) == 1
    assert [line == PUBLISHED + ADD or line.startswith(f"hushcube: {first}") for line in told()] == [True, True]
    assert run(["verify", "new"]) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_request_to_stop_while_a_face_is_made_is_an_interruption(desk, failing, listening, told, number, code):
    failing("hushcube.faces.face.make_face", number)
    assert run(FACE) == code
    assert told() == [PUBLISHED.replace("hushcube: ", "hushcube: interrupted: ") + ADD]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full to write to")
def test_output_that_cannot_be_written(desk):
    """The release is published all the same, and says so where it can."""
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "hushcube", *RELEASE]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert ended.returncode == 1
    first, second = failure(ended.stderr)
    assert first == "hushcube: standard output cannot be written (no space left on device). Fix: send it elsewhere."
    assert "the release is published in new and its budget is spent" in second


# ---------------------------------------------------------------------------------------------------------- resources


@pytest.mark.parametrize(
    ("problem", "code", "start"),
    [
        (MemoryError("qz7731"), 1, "memory is not enough"),
        (OSError(errno.ENOSPC, "qz7731", "/spill"), 1, "the disk of '/spill' is full"),
        (OSError(errno.EDQUOT, "qz7731"), 1, "the disk is full"),
        (OSError(errno.EMFILE, "qz7731", "/spill"), 1, "open files are too many"),
        (OSError(errno.ENOMEM, "qz7731"), 1, "memory is not enough"),
        (RuntimeError("can't start new thread"), 1, "memory is not enough"),
        (OSError(errno.EIO, "qz7731", "/spill"), 1, "'/spill' cannot be read or written (input/output error)"),
        (OSError(errno.EACCES, "qz7731", "/spill"), 2, "'/spill': cannot be used (permission denied)"),
        (OSError(errno.EROFS, "qz7731", "/spill"), 2, "'/spill': cannot be used (read-only file system)"),
        (ValueError("qz7731"), 1, "unexpected ValueError"),
    ],
)
def test_a_failure_names_the_resource_or_the_path(desk, failing, told, problem, code, start):
    before = listing(desk)
    failing("hushcube.bundle.writing.new_folder", problem)
    assert run(RELEASE) == code
    (line,) = told()
    assert line.startswith(f"hushcube: {start}") and "Fix: " in line and "qz7731" not in line
    assert listing(desk) == before


@pytest.mark.parametrize(
    ("problem", "code", "start"),
    [
        (OSError(errno.ENOSPC, "qz7731"), 1, "the temporary folder '"),
        (MemoryError("qz7731"), 1, "memory is not enough"),
        (OSError(errno.EACCES, "qz7731", "people.csv"), 2, "'people.csv': cannot be used (permission denied)"),
        (OSError(errno.EIO, "qz7731", "people.csv"), 2, "--data: the CSV file cannot be read"),
    ],
)
@pytest.mark.parametrize("at", ["delimited.Delimited.show", "duckdb.used_where_read"])
def test_a_failure_while_data_is_read(desk, failing, told, problem, code, start, at):
    failing(f"hushcube.private.engines.{at}", problem)
    assert run(RELEASE) == code
    (line,) = told()
    assert line.startswith(f"hushcube: {start}") and "Fix: " in line and "qz7731" not in line
