"""A charged release that is killed at every durable step, and goes on: nothing is charged or drawn twice.

    python -m faults.charged --rounds 20        (in tests/; prints the figures as JSON)

A first run lists the file-system calls that touch the folder of the ledger and of the output: writes, fsyncs, renames,
and the commits that they are part of. In each round, for each of these calls, a release under a new key is killed there
(SIGKILL; a write is torn), and in the first round the call also fails (ENOSPC or EIO). Then the ledger is judged; the
same command runs again, undisturbed, and it is judged again:

    no total is passed, and what is spent is the sum of the charges              the ledger verifies
    a key charges once, and draws once                                           entries of its chain
    a folder is published only for a charge, and is whole                        its receipt
    what is charged and not published is listed as unfinished
    the second run publishes, or says that the noise is lost                     never another charge

A full disk and a file system that cannot be written are real ones, where file systems can be mounted.
"""

import argparse
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import contextmanager, suppress
from fractions import Fraction
from pathlib import Path

from faults.calls import CHANGING
from faults.program import RELEASE, Program, faults_of

PRICE = Fraction(1)
KILLED = -signal.SIGKILL
ACCOUNT = ["--ledger", "DESK/ledger.db", "--account", "people", "--key"]


def command(key: str) -> list[str]:
    """The release of a key, to a folder of its name."""
    return [*RELEASE, f"DESK/{key}", *ACCOUNT, key]


def make_ledger(program: Program, epsilon: int = 400) -> None:
    """A folder with a new ledger in it."""
    import hushcube as hc

    program.fresh("plain")
    with hc.Ledger.create(program.desk / "ledger.db") as ledger:
        ledger.create_account("people", epsilon=epsilon, neighbours="add-remove")


def durable_steps(program: Program) -> list[int]:
    """The calls of a charged release that change something, or force it to the disk."""
    make_ledger(program)
    calls = program.done(command("counted"))
    return [number for number, call in enumerate(calls, 1) if call[1] in (*CHANGING, "fdatasync")]


def problems_of(program: Program, key: str) -> tuple[list[str], str]:
    """What is wrong with a ledger and what was published for it; and how far a key came."""
    import hushcube as hc

    found: list[str] = []
    with hc.Ledger.open(program.desk / "ledger.db") as ledger:
        verdict = ledger.verify()
        found += [f"{check.name}: {problem}" for check in verdict.checks for problem in check.problems]
        account, charges = ledger.account("people"), ledger.charges()
        kinds = Counter((entry.kind, entry.told.get("key")) for entry in ledger.history())
        unfinished = {charge.key for charge in ledger.unfinished()}
    if account.spent != sum(charge.spent for charge in charges) or account.spent > account.total:
        found.append(f"{account.spent} is spent of {account.total} by {len(charges)} charges")
    found += [f"{key} has {times} entries of {kind}" for (kind, key), times in kinds.items() if key and times > 1]
    own = next((charge for charge in charges if charge.key == key), None)
    if (program.desk / key).exists():
        faults, manifest = faults_of(program.desk / key)
        found += faults
        if own is None or manifest.get("receipt", {}).get("key") != key:
            found.append("published without a charge")
    elif own is not None and own.state == "published":
        found.append("recorded as published, and nothing is there")
    if own is None:
        return found, "nothing charged"
    if own.amount != PRICE:
        found.append(f"charged {own.amount}")
    if own.state == "unfinished" and key not in unfinished:
        found.append("an unfinished charge is not listed")
    how = "published" if (program.desk / key).exists() else "begun" if own.begun else "charged"
    return found, f"{how}, {own.state}"


def disturbed(program: Program, key: str, step: int, fault: int) -> tuple[list[str], str]:
    """Disturb the release of a key at a step, and run it again; what is wrong, and how far it had come."""
    code, told, _ = program.run(command(key), step, fault)
    problems, state = problems_of(program, key)
    if code not in ((0, fault) if fault == KILLED else (0, 1, 2)) or "Traceback" in told:
        problems.append(f"exit code {code}: {told[-300:]}")
    again, told, _ = program.run(command(key))
    later, ended = problems_of(program, key)
    problems += [f"run again, {problem}" for problem in later]
    lost = state.startswith("begun")
    expected = (2, state) if lost else (0, "published, published")
    if (again, ended) != expected or (lost and "noise was drawn" not in told):
        problems.append(f"run again after {state!r}: exit code {again}, {ended!r}: {told[-300:]}")
    shutil.rmtree(program.desk / key, ignore_errors=True)
    return problems, state


def rounds(program: Program, count: int, every: int = 1) -> dict:
    """Kill a release at every so many steps, in so many rounds, and let as many steps fail once; the figures."""
    steps, problems = durable_steps(program), []
    states: dict[int, Counter] = {KILLED: Counter(), errno.ENOSPC: Counter(), errno.EIO: Counter()}
    for number in range(count):
        make_ledger(program)
        for at, step in enumerate(steps[number % every :: every]):
            failing = [list(states)[1 + at % 2]] if number == 0 else []
            for fault in [KILLED, *failing]:
                found, state = disturbed(program, f"key-{number}-{step}-{abs(fault)}", step, fault)
                states[fault][state] += 1
                problems += [f"fault {fault} at call {step}, round {number}: {problem}" for problem in found]
    told = {"killed": states[KILLED], "failed": states[errno.ENOSPC] + states[errno.EIO]}
    return {"steps": len(steps), "rounds": count, **told, "problems": problems}


def together(program: Program, times: int) -> list[str]:
    """Two processes with one key at once: one draws, and both end with one bundle; what is wrong."""
    problems = []
    make_ledger(program)
    for number in range(times):
        key = f"both-{number}"
        ended = [run.wait()[:2] for run in [program.start(command(key)) for _ in range(2)]]
        found, state = problems_of(program, key)
        problems += found
        if state != "published, published" or {code for code, _ in ended} - {0, 2} or 0 not in dict(ended):
            problems.append(f"two processes with one key: {state}; {ended}")
        code, told, _ = program.run(command(key))
        if code or "nothing is charged or drawn again" not in told:
            problems.append(f"a third process with the same key: exit code {code}: {told[-300:]}")
    return problems


@contextmanager
def mounted(place: Path, size: str):
    """A small file system in memory; raises CalledProcessError where none can be mounted."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True, capture_output=True)


def without_room(program: Program, folder: Path) -> list[str] | None:
    """A full disk, and one that cannot be written, for the ledger and for the output; None where none can be mounted.

    The command fails and says why, nothing is drawn, and nothing is charged.
    """
    import hushcube as hc

    if os.geteuid() != 0 or shutil.which("mount") is None:
        return None
    problems = []
    try:
        with mounted(folder / "small", "256k") as small:
            make_ledger(program)
            shutil.copy(program.desk / "ledger.db", small / "ledger.db")
            on_small = [*RELEASE, "DESK/new", "--ledger", str(small / "ledger.db"), "--account", "people"]
            to_small = [*RELEASE, str(small / "new"), "--ledger", "DESK/ledger.db", "--account", "people"]
            filler = small / "filler"
            with filler.open("wb", buffering=0) as file:
                for size in (4096, 1):
                    with suppress(OSError):
                        while file.write(b"x" * size):
                            pass
            for name, words in (("full", ("full", "no space")), ("read-only", ("written", "read-only"))):
                if name == "read-only":
                    filler.unlink()
                    subprocess.run(["mount", "-o", "remount,ro", small], check=True, capture_output=True)
                for what, release in (("ledger", on_small), ("output", to_small)):
                    code, told, _ = program.run(release)
                    if code not in (1, 2) or not any(word in told.lower() for word in words) or "Traceback" in told:
                        problems.append(f"{what} on a {name} disk: exit code {code}: {told[-300:]}")
                    with hc.Ledger.open(program.desk / "ledger.db") as ledger:
                        if (program.desk / "new").exists() or ledger.charges():
                            problems.append(f"{what} on a {name} disk: charged or published")
    except subprocess.CalledProcessError:
        return None
    return problems


def part(program: Program, folder: Path, count: int, every: int, pairs: int) -> dict:
    """All of it; the figures."""
    found = rounds(program, count, every)
    room = without_room(program, folder)
    problems = [*found["problems"], *together(program, pairs), *(room or [])]
    return {**found, "pairs": pairs, "disks": 0 if room is None else 4, "problems": problems}


def main(arguments=None) -> int:
    """Print the figures; the exit code is 1 where something is charged or drawn twice, lost, or not listed."""
    from faults.figures import compiled, preloading

    parser = argparse.ArgumentParser(prog="faults.charged", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, metavar="NUMBER")
    parser.add_argument("--library", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        if given.library is None:
            library = compiled(Path(folder))
            command = [sys.executable, "-m", "faults.charged", "--rounds", str(given.rounds), "--library", str(library)]
            return subprocess.run(command, env=preloading(library), check=False).returncode
        found = part(Program(Path(folder), given.library), Path(folder), given.rounds, 1, 10)
    print(json.dumps(found, indent=1))
    return 1 if found["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
