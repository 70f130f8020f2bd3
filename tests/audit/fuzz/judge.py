"""Runs a case and says which of the requirements it breaks.

code        the exit code is 0, 1 or 2; nobody interrupts here
message     a failure says what is wrong and how to fix it, in a documented form; no traceback, no warning of Python
hang        the command ends
litter      a failure leaves every file as it was, and the temporary folder empty; a success writes what was asked for
spent       bad input draws no noise
json        standard output with --json is one JSON document, or nothing where the command fails
printed     nothing steers a terminal: no control characters, no marks that turn the direction of text
canary      what stands in the data never comes out, but through the tools that show it to its owner
whole       what a release published, verify approves of
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np

from audit.fuzz.hostile import CANARY
from hushcube.cli import run
from hushcube.private.noise.entropy import SystemEntropy

FAILURES = re.compile(r"^hushcube: (--time-limit: .+ Fix: .+|.+ needs .+ Fix: pip install .+)$", re.MULTILINE)
"""What may stand behind exit code 1, besides a release that verify does not approve of."""
BAD_INPUT = re.compile(r"^(hushcube: .+: .+ Fix: .+|Error: .+)$", re.MULTILINE)
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
OWNERS_TOOLS = ("schema",)
LEFT_BY_THE_DEAD = "/.hushcube-partial-"
"""What a process that was killed left behind is removed by the next one, whatever that comes to."""
FLAGS = ("--json", "--sum", "--no-verify", "--allow-seeded")
"""Options that leave the next word alone."""


class Hang(BaseException):
    """The time is up."""


@dataclass(frozen=True)
class Outcome:
    """What a command did."""

    code: int | None
    out: str
    err: str
    drawn: int = 0
    trace: str = ""


def judged(arguments: list[str], place: Path, *, apart: bool, seconds: float) -> tuple[list[str], Outcome]:
    """Run a case in its folder, as a process of its own or in this one; the requirements that it breaks."""
    temporary(place).mkdir(exist_ok=True)
    before = listing(place.parent)
    outcome = (run_apart if apart else run_here)(arguments, place, seconds)
    return list(complaints(arguments, place, outcome, before)), outcome


def run_here(arguments: list[str], place: Path, seconds: float) -> Outcome:
    """Run in this process, with noise that is repeatable and counted."""
    drawn: list[int] = []
    bits = np.random.Philox(1)

    def words(_self: SystemEntropy, count: int) -> np.ndarray:
        drawn.append(count)
        return np.asarray(bits.random_raw(count), np.uint64)

    def half_words(self: SystemEntropy, count: int) -> np.ndarray:
        return words(self, (count + 1) // 2).view(np.uint32)[:count]

    def late(_number: int, _frame: object) -> None:
        raise Hang

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", errors) for errors in ("strict", "backslashreplace"))
    code, trace = None, ""
    handler = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with (
            contextlib.chdir(place),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            patch.object(SystemEntropy, "words", words),
            patch.object(SystemEntropy, "half_words", half_words),
            patch.dict(os.environ, {"HUSHCUBE_DEBUG": "1", "TMPDIR": str(temporary(place))}),
            patch.object(tempfile, "tempdir", str(temporary(place))),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")  # people would see them on standard error
            code = run(arguments)
    except (Exception, Hang):
        trace = traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
    for stream in (out, err):
        stream.flush()
    return Outcome(code, *(s.buffer.getvalue().decode("utf-8", "replace") for s in (out, err)), sum(drawn), trace)


def run_apart(arguments: list[str], place: Path, seconds: float) -> Outcome:
    """Run as people do."""
    command = [sys.executable, "-m", "hushcube", *arguments]
    within = {**os.environ, "TMPDIR": str(temporary(place))}
    try:
        done = subprocess.run(
            command, cwd=place, env=within, capture_output=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        return Outcome(None, "", "", trace="Hang")
    return Outcome(done.returncode, *(text.decode("utf-8", "replace") for text in (done.stdout, done.stderr)))


def temporary(place: Path) -> Path:
    """The temporary folder of the commands that run in a place."""
    return place.parent / "temporary"


def listing(folder: Path) -> dict[str, tuple[int, ...]]:
    """Everything below a folder, with what tells that it changed."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = os.path.join(parent, name)  # noqa: PTH118 - quick, and names may be anything
            told = os.lstat(path)
            changes = () if name in folders else (told.st_size, told.st_mtime_ns)
            found[path] = (told.st_mode, told.st_ino, *changes)
    return found


def complaints(
    arguments: list[str], place: Path, outcome: Outcome, before: dict[str, tuple[int, ...]]
) -> Iterator[str]:
    """The requirements that are not met, each with what shows it."""
    code, out, err = outcome.code, outcome.out, outcome.err
    if outcome.trace:
        kind = outcome.trace.strip().splitlines()[-1].split(":")[0]
        yield "hang" if kind.endswith("Hang") else f"message: unexpected {kind}"
    elif code not in (0, 1, 2):
        yield f"code: {code}"
    elif re.search(r"^Traceback|^hushcube: unexpected|Warning: ", err, re.MULTILINE):
        yield f"message: {err.strip().splitlines()[-1]}"
    elif code == 2 and not BAD_INPUT.search(err):
        yield f"message: exit 2 without a fix: {err[-200:]!r}"
    elif code == 1 and not (FAILURES.search(err) or _disapproves(arguments, out)):
        yield f"message: exit 1 for an undocumented reason: {err[-200:]!r}"
    yield from _files(arguments, place, outcome, before)
    if outcome.drawn and code == 2:
        yield "spent: noise was drawn for bad input"
    if wants_json(arguments):
        yield from _document(out, done=code == 0)
    for name, text in (("output", out), ("error", err)):
        if found := STEERING.search(text):
            yield f"printed: {found[0]!r} on standard {name}"
    if CANARY in out + err and arguments[0] not in OWNERS_TOOLS:
        yield "canary: a value of the data was printed"


def _disapproves(arguments: list[str], out: str) -> bool:
    return arguments[0] == "verify" and ("does not hold" in out or '"holds": false' in out)


def _document(out: str, *, done: bool) -> Iterator[str]:
    if not out and not done:
        return
    try:
        json.loads(out, parse_constant=lambda name: 1 / 0)
    except (ValueError, ZeroDivisionError):
        yield f"json: standard output is no document: {out[:100]!r}"


def _files(arguments: list[str], place: Path, outcome: Outcome, before: dict[str, tuple[int, ...]]) -> Iterator[str]:
    after = listing(place.parent)
    touched = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    done = outcome.code == 0 or "published in" in outcome.err  # a face that failed after its release was published
    promised = [os.path.realpath(place / path) for path in (*(promises(arguments) if done else ()), *kept(arguments))]
    touched = [path for path in touched if path in after or LEFT_BY_THE_DEAD not in path]
    odd = [path for path in touched if not any(f"{os.path.realpath(path)}/".startswith(f"{one}/") for one in promised)]
    if odd:
        path, more = odd[0], f", and {len(odd) - 1} more" if len(odd) > 1 else ""
        what = "left" if path not in before else "lost" if path not in after else "changed"
        yield f"litter: {os.path.relpath(path, place)!r} was {what}{more}"
    if not done or "--help" in arguments or "--version" in arguments:
        return
    for path in promises(arguments):
        if not (place / path).exists():
            yield f"litter: {path!r} was promised, and is not there"
    if arguments[0] == "release" and (place / "out").exists():
        verdict = run_here(["verify", "out", *["--allow-seeded"] * ("--seed" in arguments)], place, 60)
        if verdict.code != 0:
            yield f"whole: {verdict.out[-300:]} {verdict.err} {verdict.trace}"


def wants_json(arguments: list[str]) -> bool:
    """Whether a document is asked for, and not a file or a value of that name."""
    before = [earlier for earlier, word in pairwise(arguments) if word == "--json"]
    free = any(not word.startswith("--") or word in FLAGS for word in before)
    return free and not {"--", "--help", "--version"} & set(arguments)


def promises(arguments: list[str]) -> list[str]:
    """What a command writes when it succeeds; `show` only prints, its CSV too."""
    if arguments[0] == "show":
        return []
    given = [after for word, after in pairwise(arguments) if word in ("--out", "--chart", "--csv")]
    return given or ([arguments[1]] if arguments[0] == "recover" else [])


def kept(arguments: list[str]) -> list[str]:
    """What a command leaves however it ends, so that it can go on."""
    return [after for word, after in pairwise(arguments) if word == "--keep"]
