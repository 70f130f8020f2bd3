"""The faults in figures, for `make audit` and, in their short form, for `make test`.

python -m faults.figures [--scale short]        (in tests/; prints JSON)
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from faults import calls, charged, interrupts, order, power, together
from faults.program import Program

SCALES = {
    "short": {"calls": 149, "cuts": 24, "pairs": 2, "workers": 1, "moments": 0, "rounds": 1, "kills": 24},
    "long": {
        "calls": 1,
        "cuts": 1,
        "pairs": 100,
        "workers": os.cpu_count() or 1,
        "moments": 252,
        "rounds": 20,
        "kills": 1,
    },
}
"""Every how many faults and cuts, how many pairs, in how many processes; at how many moments a request to stop, where
tests/faults/test_interrupts.py does not do it; and in how many rounds a charged release is killed, at every how many
steps."""
ATTACKED = """\
A release, a face, a plan or a file of synthetic people is there whole or not at all, whatever happens while it is
written; a published release is never lost or damaged. What is charged to an account is charged and drawn once, before
anything is published."""
HOW = """\
Every file-system call of `release`, `recover`, `synth` and `plan --out` that touches the folder of the output fails
with EIO or ENOSPC, or the process gets SIGINT, SIGTERM, SIGHUP or SIGKILL just before it (writes are torn). The folder
must hold the old or the new, whole; exit code and message must say which; and the next command must leave no remains.
The order of writes, fsyncs and renames is checked against what a power cut may lose, and the power is cut: images of a
disk are taken at every change and right after the announcement. Two recovers of one release run at a time, and readers
meanwhile. A release that is charged to an account is killed at every write, fsync, rename and commit, in 20 rounds, and
run again under the same key; two processes release under one key at once. Releases from a file, from a database and
with a face are asked to stop at many moments."""
HERE = Path(__file__).resolve().parent


def compiled(folder: Path) -> Path | None:
    """The library that injects faults, or None where it cannot be made."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or sys.platform != "linux":
        return None
    made = folder / "inject.so"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", made, HERE / "inject.c", "-ldl"]
    return made if subprocess.run(command, capture_output=True).returncode == 0 else None


def measured(scale: str) -> dict:
    """All parts, each with its figures and its problems; their work is shared by several processes."""
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        if library is None:
            return {"skipped": "there is no C compiler with the headers of glibc, or this is not Linux"}
        running, environment = [], preloading(library)
        for number in range(SCALES[scale]["workers"]):
            command = [sys.executable, "-m", "faults.figures", "--scale", scale, "--library", library]
            command += ["--folder", Path(folder, str(number)), "--share", str(number)]
            running.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE))
        found = [json.loads(run.communicate()[0]) for run in running]
    first = found[0]
    for name in ("faults", "outcomes"):
        first["calls"][name] = sum((Counter(other["calls"][name]) for other in found), Counter())
    first["calls"]["problems"] = [problem for other in found for problem in other["calls"]["problems"]]
    first["requests"] = _requests(SCALES[scale]["moments"])
    return first


def preloading(library: Path) -> dict[str, str]:
    """The environment of a process in which faults can be injected."""
    places = [str(HERE.parent), str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(places)}


def _requests(moments: int) -> dict:
    if not moments:
        return {"moments": 0, "problems": []}
    with tempfile.TemporaryDirectory() as folder:
        found = interrupts.campaign(Path(folder), moments=moments)
    return {"moments": found["moments"], "problems": found["faults"]}


def share(scale: str, folder: Path, library: Path, number: int) -> dict:
    """What one process does: its share of the faults, and the first one the rest too."""
    chosen = SCALES[scale]
    folder.mkdir()
    program = Program(folder, library)
    found = {"calls": calls.part(program, chosen["calls"], (number, chosen["workers"]), say=_say(scale, number))}
    if number == 0:
        found["order"] = _ordered(program)
        found["power"] = power.part(program, folder, chosen["cuts"])
        found["together"] = together.part(program, chosen["pairs"])
        found["charged"] = charged.part(program, folder, chosen["rounds"], chosen["kills"], -(-chosen["pairs"] // 4))
    return found


def _say(scale: str, number: int) -> Callable[[str], None]:
    """How far a process is, on standard error: its standard output is for the figures. The short form says nothing."""
    return lambda line: print(f"  {number}: {line}", file=sys.stderr, flush=True) if scale == "long" else None


def _ordered(program: Program) -> dict:
    problems = []
    for name, verb in calls.VERBS.items():
        program.fresh(verb.template)
        made = program.done(verb.command)
        problems += [f"{name}, {violation}" for violation in order.violations(made, str(program.desk))]
    return {"verbs": len(calls.VERBS), "problems": problems}


def figures(scale: str) -> dict:
    """The part of the audit."""
    found = measured(scale)
    if "skipped" in found:
        return {"title": "Faults", "attacked": "Skipped.", "how": found["skipped"], "figures": {}, "violations": 0}
    problems = [problem for part in found.values() for problem in part["problems"]]
    for problem in problems:
        print(problem, file=sys.stderr)
    kinds, outcomes = found["calls"]["faults"], found["calls"]["outcomes"]
    cuts = found["power"]["cuts"] or found["power"]["skipped"]
    return {
        "title": "Faults",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {
            **{f"file-system calls of {name}": count for name, count in found["calls"]["calls"].items()},
            **({"of all possible faults, one in": SCALES[scale]["calls"]} if SCALES[scale]["calls"] > 1 else {}),
            "faults injected": sum(kinds.values()),
            **{f"of them {kind}": count for kind, count in sorted(kinds.items())},
            "faults after which the old or the new was there, whole": sum(kinds.values())
            - len({problem.partition(": ")[0] for problem in found["calls"]["problems"]}),
            **{f"outcome - {kind}": count for kind, count in sorted(outcomes.items())},
            "requests to stop, at other moments": found["requests"]["moments"],
            **({"of all power cuts, one in": SCALES[scale]["cuts"]} if SCALES[scale]["cuts"] > 1 else {}),
            "power cuts": cuts,
            "concurrent recovers, pairs": found["together"]["pairs"],
            "releases destroyed": found["together"]["destroyed"],
            "faces lost": found["together"]["lost"],
            "reads meanwhile": found["together"]["reads"],
            "two releases to one folder": found["together"]["races"],
            "durable steps of a charged release": found["charged"]["steps"],
            **{
                f"of a charged release {what} - {state}": count
                for what in ("killed", "failed")
                for state, count in sorted(found["charged"][what].items())
            },
            "two processes with one key": found["charged"]["pairs"],
            "full and read-only disks": found["charged"]["disks"],
        },
        "violations": len(problems),
    }


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="faults.figures", description=__doc__)
    parser.add_argument("--scale", choices=list(SCALES), default="long")
    for hidden, kind in (("--library", Path), ("--folder", Path), ("--share", int)):
        parser.add_argument(hidden, type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.library is not None:
        print(json.dumps(share(given.scale, given.folder, given.library, given.share)))
        return 0
    found = measured(given.scale)
    print(json.dumps(found, indent=1))
    return 1 if any(part["problems"] for part in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
