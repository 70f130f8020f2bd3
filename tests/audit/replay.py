"""Neighbouring data with the noisy answers frozen: what is published, and how it comes about, must be the same.

The draws of a neighbour's table are shifted by as much as its exact answers differ, so that the noisy answers agree.
From there on nothing may depend on the data: the code takes the same way, line by line, and all files are the same.
"""

import contextlib
import hashlib
import io
import sys
import tempfile
from functools import partial
from itertools import count
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import hushcube
from audit import adaptive
from audit.exact import ADAPTIVE, databases, neighbours_of
from audit.mechanisms import FAMILIES, READ, fixed_keys, mechanisms, rows_of
from audit.progress import tell
from audit.tags import Violation
from audit.tape import record
from cli.desk import listing
from hushcube import release
from hushcube.cli import run
from hushcube.planning.plan import Plan
from hushcube.private import blocks
from hushcube.private.blocks import Noise

PAIRS = {"short": 300, "long": 10_000}
COMMANDS = {"short": 1, "long": 10}
"""Pairs of each mechanism that are released by the command, from files."""
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Thousands of small folders need no disk."""
ATTACKED = """\
Everything that is published, and every decision on the way there, in all the mechanisms above: does any of it
depend on the data other than through the noisy answers?"""
HOW = """\
A table is released with noise that is written down. Then each of its neighbours is released with its noise shifted
by as much as the exact answers differ, so that the noisy answers are the same (adaptive methods get the answers
themselves played back). All files must be the same, byte by byte; the code must take the same way, line by line,
but for what counts rows; and the command must print the same."""
HERE = str(Path(hushcube.__file__).parent)
COUNTING = str(Path(hushcube.__file__).parent / "private" / "engines")
"""What counts rows depends on them, and nothing else may."""


class Way:
    """The lines of hushcube that were executed, in their order, but for those that count and all that they call."""

    def __init__(self):
        self._hash = hashlib.sha256()
        self._counting = 0

    def __enter__(self):
        sys.settrace(self._call)
        return self

    def __exit__(self, *_):
        sys.settrace(None)

    def _call(self, frame, _event, _argument):
        name = frame.f_code.co_filename
        if not name.startswith(HERE):
            return None
        if self._counting or name.startswith(COUNTING):
            self._counting += 1
            frame.f_trace_lines = False
            return self._counted
        self._hash.update(frame.f_code.co_name.encode())
        return self._line

    def _line(self, frame, event, _argument):
        if event == "line":
            self._hash.update(frame.f_lineno.to_bytes(4, "little"))
        return self._line

    def _counted(self, _frame, event, _argument):
        if event == "return":
            self._counting -= 1
        return self._counted

    @property
    def digest(self):
        """Of the way so far."""
        return self._hash.hexdigest()


@contextlib.contextmanager
def frozen(noise):
    """The given numbers for noise, in the order of drawing."""
    left = iter(noise)

    def drawn(rows, columns):
        return np.array([[next(left) for _ in range(columns)] for _ in range(rows)], np.int64).reshape(rows, columns)

    played = Noise(
        lambda rates, columns, entropy: drawn(len(rates), columns),
        lambda sizes, factors, entropy: drawn(len(sizes), len(factors)),
    )
    with patch.object(blocks, "EXACT", played):  # which every release draws, whichever way it was started
        yield
    if next(left, None) is not None:
        raise Violation("fewer numbers are drawn")


def _plan(mechanism):
    """Of counts alone where an adaptive method has a design."""
    return mechanism.plan if isinstance(mechanism.plan, Plan) else Plan.of_counts(mechanism.plan)


def written(mechanism, people, folder, way=None):
    """Release to a new folder of its own."""
    folder.mkdir()
    traced = way or contextlib.nullcontext()
    with patch("hushcube.private.engines.open_source", lambda data, **_: data), fixed_keys(), traced:
        release(_plan(mechanism), mechanism.engine(people), out=folder / "published")


def published(mechanism, people, folder):
    """Release to a new folder of its own: the way that was taken, and all files."""
    way = Way()
    written(mechanism, people, folder, way)
    return way.digest, listing(folder)


def on_command_line(mechanism, people, folder):
    """Release a file by the command: what it prints, and all files."""
    folder.mkdir()
    (folder / "plan.json").write_text(_plan(mechanism).to_json(), encoding="utf-8")
    pa.csv.write_csv(mechanism.data(people), folder / "people.csv")
    printed, for_the_owner = io.StringIO(), io.StringIO()
    redirected = contextlib.redirect_stdout(printed), contextlib.redirect_stderr(for_the_owner)
    with contextlib.chdir(folder), redirected[0], redirected[1], fixed_keys():
        if run(["release", "plan.json", "--data", "people.csv", "--out", "published"]) != 0:
            raise Violation("the command failed")
    return printed.getvalue(), listing(folder / "published")


def compare(one, other):
    """Raise a Violation unless two releases came about in the same way and hold the same."""
    if one[0] != other[0]:
        raise Violation("another way was taken")
    if one[1] != other[1]:
        raise Violation("other files are published")


def replay(mechanism, people, others, folder, publish=published):
    """Freeze the noisy answers of a database, and release its neighbours with them."""
    own = mechanism.seen(people)
    noise = np.random.default_rng(len(own.laws)).integers(-9, 10, len(own.laws))
    place = {draw: at for at, draw in enumerate(own.draws)}
    number = count()

    def run(some, publish):
        exact = mechanism.seen(some).exact
        shifted = [own.exact[place[draw]] - exact[place[draw]] if draw in place else 0 for draw in range(len(noise))]
        with frozen((noise + np.array(shifted, np.int64)).tolist()):
            return publish(mechanism, some, folder / str(next(number)))

    run(people, written)  # caches are filled
    first = run(people, publish)
    for other in others:
        compare(first, run(other, publish))


def replay_method(method, people, others, folder):
    """The same for a method that decides while noisy answers come in."""
    number = count()
    with pytest.MonkeyPatch.context() as patches:
        tape = record(patches)
        tape.rows = len(rows_of(people))
        published(method, people, folder / "recorded")
        first = None
        for some in (people, *others):
            tape.replay(rows=len(rows_of(some)))
            found = published(method, some, folder / str(next(number)))
            first = first or found
            compare(first, found)


def attacks(scale, family=None):
    """Every mechanism, or those of a family, with what replays it, and how many pairs where that is limited."""
    for one in [] if family == ADAPTIVE else mechanisms(scale, FAMILIES if family is None else [family]):
        yield one, replay, None
        if one.family in READ:
            yield one, partial(replay, publish=on_command_line), COMMANDS[scale]
    for one in adaptive.methods(scale) if family in (None, ADAPTIVE) else []:
        yield one, replay_method, None


def attack(mechanism, how, pairs):
    """Replay so many pairs of one mechanism, or all there are in a few databases."""
    done = 0
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for number, people in enumerate(databases(mechanism, 8)[1:]):
            others = neighbours_of(people, mechanism)[: pairs - done]
            if others:
                (Path(folder) / str(number)).mkdir()
                how(mechanism, people, others, Path(folder) / str(number))
                done += len(others)
    return done


def figures(scale):
    """Replay every mechanism."""
    every = list(attacks(scale))
    done, commands, broken = 0, 0, []
    for at, (mechanism, how, most) in enumerate(every):
        pairs = -(-(PAIRS[scale] - done) // (len(every) - at))
        try:
            replayed = attack(mechanism, how, pairs if most is None else most)
        except Violation as violation:
            broken.append(f"{mechanism.name}, {mechanism.privacy}: {violation}")
            continue
        done += replayed
        tell(scale, f"{done:,} pairs: {mechanism.name}, {mechanism.privacy}")
        commands += 0 if most is None else replayed
    return {
        "title": "Replays",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {"mechanisms": len(every), "pairs replayed": done, "of these by the command": commands},
        "broken": broken,
        "violations": len(broken),
    }
