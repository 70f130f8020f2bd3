"""Faults at every file-system call of the verbs that write: afterwards the old or the new is there, whole.

A small library (inject.c) is preloaded, which counts the calls that touch the folder of the output and lets a chosen
one fail (EIO, ENOSPC), or sends a signal just before it (SIGINT, SIGTERM, SIGHUP, SIGKILL; a write is torn by SIGKILL).
A first run without fault lists the calls. After each fault, what is in the folder is judged; then an undisturbed
command must work there and leave no remains of the disturbed one.
"""

import errno
import json
import signal
from collections import Counter
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from faults.order import LOCK
from faults.program import ASKED, FACE, RELEASE, Program, faults_of, names
from hushcube.planning.plan import Plan

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
MAKING = ("create", "write", "mkdir", "rename", "link", "fsync", "ftruncate", "ftruncate64")
REMOVING = ("unlink", "unlinkat", "rmdir")
CHANGING = (*MAKING, *REMOVING, "writev", "chmod", "fchmod", "fchmodat", "flock")
"""Between two of these nothing changes in the folder: a process may as well be killed at the second of them."""


@dataclass(frozen=True)
class Verb:
    """A command that writes `made`, and one that follows it in the same folder."""

    command: list[str]
    made: str
    following: list[str]
    also: str
    """What the following command makes."""
    faces: frozenset[str] | None = None
    """For a face that is added to a release: what there is before."""

    @property
    def template(self) -> str:
        """What the folder holds before."""
        return "published" if any("published" in word for word in self.command) else "plain"


PLAN = ["plan", *ASKED, "--strategy", "workload", "--out"]
VERBS = {
    "release": Verb([*RELEASE, "DESK/new"], "new", [*RELEASE, "DESK/other"], "other"),
    "recover": Verb([*FACE, "consistent"], "published", [*FACE, "nonnegative"], "published", frozenset({"consistent"})),
    "recover --out": Verb([*FACE, "nonnegative", "--out", "DESK/new"], "new", [*RELEASE, "DESK/other"], "other"),
    "synth": Verb(
        ["synth", "DESK/published", "--out", "DESK/made.csv"],
        "made.csv",
        ["synth", "DESK/published", "--out", "DESK/more.csv"],
        "more.csv",
    ),
    "plan": Verb([*PLAN, "DESK/made.json"], "made.json", [*PLAN, "DESK/more.json"], "more.json"),
}


@dataclass
class Case:
    """One fault at one call of a verb."""

    program: Program
    name: str
    number: int
    call: list[str]
    fault: int
    problems: list[str] = field(default_factory=list)

    def play(self) -> str:
        """Inject the fault and judge what is left; returns the kind of outcome."""
        verb, program = VERBS[self.name], self.program
        program.fresh(verb.template)
        before = names(program.desk)
        code, told, _ = program.run(verb.command, self.number, self.fault)
        new = self.state(verb)
        litter = names(program.desk) - before - self._own(verb.made)
        outcome = self._judge(code, told, new, litter)
        code, told, _ = program.run(verb.following)
        if code:
            self.problems.append(f"the next command fails: {told[-300:]}")
        expected = before if verb.faces is not None else before | self._own(verb.made)
        left = names(program.desk) - expected - self._own(verb.also)
        if left:
            self.problems.append(f"the next command leaves {sorted(left)}")
        superseded = "published/faces/consistent" if verb.faces is not None else "/"
        if missing := {n for n in before - names(program.desk) if not n.startswith(superseded)}:
            self.problems.append(f"gone: {sorted(missing)}")
        return outcome

    def state(self, verb: Verb) -> bool:
        """Whether the new one is there; old or new, it is whole."""
        made = self.program.desk / verb.made
        if verb.faces is None and not made.exists():
            return False
        if made.suffix:
            if made.suffix == ".json":
                Plan.from_json(made.read_text())
            elif made.read_text().splitlines()[0] != '"sex","age"' or not made.read_bytes().endswith(b"\n"):
                self.problems.append("the file is not whole")
            return True
        return self._check_release(made, verb)

    def _check_release(self, folder: Path, verb: Verb) -> bool:
        problems, manifest = faults_of(folder)
        self.problems += problems
        if verb.faces is None:
            return True
        if missing := verb.faces - set(manifest["faces"]):
            self.problems.append(f"lost faces: {missing}")
            return False
        return manifest["faces"]["consistent"]["folder"] != "faces/consistent"

    def _own(self, made: str) -> set[str]:
        """The files of what was made, as its manifest lists them."""
        place = self.program.desk / made
        if not (place / "manifest.json").is_file():
            return {made} if place.is_file() else set()
        listed = [made, *(f"{made}/{n}" for n in json.loads((place / "manifest.json").read_text())["checksums"])]
        return {*listed, f"{made}/manifest.json", *(str(parent) for n in listed for parent in Path(n).parents)}

    def _judge(self, code: int, told: str, new: bool, litter: set[str]) -> str:
        """What the exit code and the words say must be so."""
        if "Traceback" in told or "unexpected" in told or code == 99:
            self.problems.append(f"exit code {code}: {told[-1500:]}")
        if code == -signal.SIGKILL and self.fault == -signal.SIGKILL:
            return "killed: new" if new else "killed: old"
        # an error of the lock itself, or while things are put in order, leaves something for the next command
        orderly = self.call[1] in REMOVING or self.call[2].endswith(LOCK)
        excused = code == 0 or orderly or "has not confirmed" in told
        if litter and not (self.fault > 0 and excused):
            self.problems.append(f"left: {sorted(litter)}; exit code {code}: {told[-300:]}")
        if code == 0:
            if not new:
                self.problems.append("exit code 0, and nothing is there")
            return "done, remains for the next command to remove" if litter else "done"
        if self.fault < 0 and code == 128 - self.fault:
            if new:
                self.problems.append(f"interrupted, and it is there: {told[-300:]}")
            return "interrupted: old"
        if self.fault > 0 and code in (1, 2):
            announced = "in its place" in told or "published in" in told
            if new != announced:
                self.problems.append(f"exit code {code}, there is {'the new' if new else 'the old'}: {told[-300:]}")
            return "failed: new, and said so" if new else "failed: old"
        self.problems.append(f"exit code {code}: {told[-300:]}")
        return "other"


def cases(program: Program, name: str, every: int) -> tuple[list[str], list[tuple[int, list[str], int]]]:
    """The kinds of the calls of a verb, and the faults to inject."""
    program.fresh(VERBS[name].template)
    calls = program.done(VERBS[name].command)
    chosen = []
    for number, call in enumerate(calls, 1):
        faults = [-SIGNALS[number % 3], errno.EIO]
        faults += [-signal.SIGKILL] * (call[1] in CHANGING) + [errno.ENOSPC] * (call[1] in MAKING)
        chosen += [(number, call, fault) for fault in faults]
    return [call[1] for call in calls], sorted(chosen, key=itemgetter(2))[::every]  # some of every kind


def part(program: Program, every: int, share: tuple[int, int], verbs=tuple(VERBS), say=lambda _line: None) -> dict:
    """A share of the faults at every call, or at every so many of them; the figures."""
    calls, changes, faults, outcomes, problems = {}, {}, Counter(), Counter(), []
    for name in verbs:
        kinds, chosen = cases(program, name, every)
        calls[name], changes[name] = len(kinds), Counter(kind for kind in kinds if kind in CHANGING)
        mine = chosen[share[0] :: share[1]]
        for done, (number, call, fault) in enumerate(mine):
            if done % 100 == 0:
                say(f"{name}: {done:,} of {len(mine):,} faults")
            case = Case(program, name, number, call, fault)
            outcomes[case.play()] += 1
            word = errno.errorcode[fault] if fault > 0 else signal.Signals(-fault).name
            faults[word] += 1
            problems += [f"{name}, {word} at call {number} ({' '.join(call[1:])}): {p}" for p in case.problems]
    return {"calls": calls, "changes": changes, "faults": faults, "outcomes": outcomes, "problems": problems}
