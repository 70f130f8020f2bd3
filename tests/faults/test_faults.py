"""The short form of the faults; `python -m faults.figures` is the long one."""

import re
import shutil
import subprocess
import sys
from collections import Counter

import pytest

from faults import figures
from faults.calls import CHANGING, VERBS
from faults.order import violations
from faults.program import FACE, Program, faults_of

pytestmark = pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")


@pytest.fixture(scope="module")
def found():
    measured = figures.measured("short")
    if "skipped" in measured:
        pytest.skip(measured["skipped"])
    return measured


def test_a_fault_at_any_call_leaves_the_old_or_the_new(found):
    assert found["calls"]["problems"] == []
    assert set(found["calls"]["calls"]) == set(VERBS) and sum(found["calls"]["faults"].values()) > 20
    assert {"SIGKILL", "EIO", "ENOSPC"} < set(found["calls"]["faults"])


def test_a_power_cut_leaves_the_old_or_the_new(found):
    assert found["order"]["problems"] == []
    assert found["power"]["problems"] == []
    if not found["power"]["cuts"]:
        pytest.skip(found["power"]["skipped"])


def test_recovers_and_readers_at_once(found):
    assert found["together"]["problems"] == []
    assert (found["together"]["destroyed"], found["together"]["lost"]) == (0, 0)


def test_a_charged_release_that_is_killed_charges_and_draws_once(found):
    assert found["charged"]["problems"] == []
    assert sum(found["charged"]["killed"].values()) >= 5 and found["charged"]["pairs"] == 1


def test_the_audit_gets_its_figures(found, monkeypatch, capsys):
    monkeypatch.setattr(figures, "measured", lambda scale: found)
    told = figures.figures("short")
    assert told["violations"] == 0 and told["figures"]["faults injected"] == sum(found["calls"]["faults"].values())
    found["together"]["problems"].append("a face is lost")
    assert figures.figures("short")["violations"] == 1 and "a face is lost" in capsys.readouterr().err
    found["together"]["problems"].pop()


# ------------------------------------------------------------------------------------------- the judge of the order

SAFE = [
    ("mkdir", "/d/.hushcube-partial-1", ""),
    ("create", "/d/.hushcube-partial-1/a", ""),
    ("write", "/d/.hushcube-partial-1/a", ""),
    ("fsync", "/d/.hushcube-partial-1/a", ""),
    ("fsync", "/d/.hushcube-partial-1", ""),
    ("rename", "/d/.hushcube-partial-1", "/d/new"),
    ("fsync", "/d", ""),
    ("unlink", "/d/old", ""),
]


def judged(calls):
    return violations([[str(number), *call] for number, call in enumerate(calls, 1)], "/d")


def test_the_judge_accepts_the_right_order():
    assert judged(SAFE) == []


@pytest.mark.parametrize(
    ("left_out", "words"), [(3, "published before"), (4, "published before"), (6, "removed before")]
)
def test_the_judge_misses_every_fsync(left_out, words):
    assert words in judged(SAFE[:left_out] + SAFE[left_out + 1 :])[0]


def test_the_judge_looks_at_the_end():
    assert judged(SAFE[:6]) == ["at the end ['/d/new'] are not on the disk"]


# ----------------------------------------------------------------------------------------- an independent witness


def can_trace():
    return shutil.which("strace") and subprocess.run(["strace", "-o", "/dev/null", "true"]).returncode == 0


needs_strace = pytest.mark.skipif(not can_trace(), reason="strace is not installed, or may not trace")
TRACED = "openat,open,creat,mkdir,mkdirat,rename,renameat,renameat2,link,linkat,unlink,unlinkat,rmdir,write,pwrite64"
TRACED += ",writev,fsync,fdatasync,ftruncate,chmod,fchmod,fchmodat,flock"
SAME = {"pwrite64": "write", "renameat": "rename", "renameat2": "rename", "linkat": "link", "mkdirat": "mkdir"}


@needs_strace
@pytest.mark.parametrize("verb", ["plan", "release"])
def test_the_calls_are_those_that_strace_sees(found, tmp_path, verb):
    """The library counts every call that changes something in the folder, and no other."""
    program = Program(tmp_path)
    program.fresh("plain")
    words = [w.replace("HOME", str(program.home)).replace("DESK", str(program.desk)) for w in VERBS[verb].command]
    log = tmp_path / "log"
    command = ["strace", "-f", "-y", "-s", "0", "-o", log, "-e", f"trace={TRACED}", sys.executable, "-m", "hushcube"]
    subprocess.run([*command, *words], check=True, stdout=subprocess.DEVNULL)
    seen = Counter()
    for line in log.read_text().splitlines():
        call = re.match(r"\d+ +(\w+)\((.*)", line)
        if call and str(program.desk) in call[2].partition(" = ")[0]:
            name = SAME.get(call[1], call[1])
            name = "create" if name == "openat" and "O_CREAT" in call[2] else name
            seen[name] += name in CHANGING
    assert +seen == Counter(found["calls"]["changes"][verb])


@needs_strace
def test_a_signal_at_the_rename_that_publishes_a_face(tmp_path):
    program = Program(tmp_path)
    program.fresh("published")
    words = [word.replace("DESK", str(program.desk)) for word in [*FACE, "consistent"]]
    inject = ["-e", "trace=rename,renameat,renameat2", "-e", "inject=rename,renameat,renameat2:signal=INT:when=1"]
    run = subprocess.run(
        ["strace", "-f", "-o", "/dev/null", *inject, sys.executable, "-m", "hushcube", *words],
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0 and "added the face" in run.stdout, "the request came too late"
    problems, manifest = faults_of(program.desk / "published")
    assert problems == [] and manifest["faces"]["consistent"]["folder"] == "faces/consistent-2"
