"""A ledger under fire: kills and failing disks at every file-system call, and a hundred clients at once.

python -m faults.ledgers [--scale short]        (in tests/; prints JSON)

A first run without fault lists the calls of each step. Then the process of that step meets a fault at one of them, and
what is in the ledger is judged: it verifies, nothing is charged twice or beyond the total, what was announced is there,
whatever is unfinished is listed. The same step with the same key must then work, and charge once in all. Rounds go on
in one ledger, so that its log is in a different state each time.
"""

import argparse
import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from fractions import Fraction
from pathlib import Path

from faults.figures import HERE, compiled
from hushcube.errors import LedgerError
from hushcube.ledger.ledger import Ledger
from ledger_clients import granted

SCALES = {
    "short": {"rounds": 1, "every": 41, "clients": 0, "charges": 0},
    "long": {"rounds": 20, "every": 1, "clients": 100, "charges": 10},
}
STEPS = ("create", "account", "charge", "begin", "publish", "abandon", "lock")
AMOUNT = Fraction(1, 1000)
REFUSED, BROKEN = 3, 99
CHANGING = ("create", "write", "fsync", "fdatasync", "ftruncate", "ftruncate64", "rename", "unlink", "chmod", "fchmod")
"""Between two of these nothing changes on the disk: a process may as well be killed at the second of them."""
ATTACKED = """\
A ledger never forgets a charge that it granted, never charges twice for a key, and never grants more than the total."""
HOW = """\
Every step of a ledger in a file (to make it, to make an account, to charge, to begin, to publish, to abandon, to lock)
is killed by SIGKILL at every call that changes the disk, writes torn in half, in twenty rounds; and every call fails
once with EIO and once with ENOSPC. After each, the ledger must verify, hold what was announced, list what is
unfinished, and complete the same step under the same key with one charge in all. A hundred processes with ten charges
of 0.01 each then charge one account of 5, in SQLite and in Postgres: exactly 500 are granted, and sums are exact."""


class Desk:
    """A ledger in a folder that is watched; forks run its steps."""

    def __init__(self, folder: Path, library: Path) -> None:
        self.folder = folder / "desk"
        self.place = self.folder / "ledger.db"
        self._arm = ctypes.CDLL(str(library)).arm

    def fresh(self, *, empty: bool) -> None:
        """A folder without a ledger, or with one that has an account and some charges."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if not empty:
            with Ledger.create(self.place) as ledger:
                ledger.create_account("people", epsilon=50, neighbours="add-remove")

    def run(self, step: str, key: str, call: int = 0, fault: int = 0) -> tuple[int, str, list[list[str]]]:
        """Run a step in a process of its own: its exit code (minus a signal's number), its words, its calls."""
        with tempfile.TemporaryFile() as told, tempfile.TemporaryFile() as log:
            child = os.fork()
            if child == 0:
                code = BROKEN
                try:
                    signal.alarm(60)
                    self._arm(os.fsencode(self.folder), call, fault, log.fileno())
                    code = self._step(step, key, told)
                finally:
                    self._arm(b"", 0, 0, -1)
                    told.flush()
                    os._exit(code)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            told.seek(0), log.seek(0)
            return code, told.read().decode(), [line.split("\t") for line in log.read().decode().splitlines()]

    def _step(self, step: str, key: str, told) -> int:
        try:
            take(step, key, self.place)
        except LedgerError as problem:
            told.write(str(problem).encode())
            return REFUSED
        except BaseException as problem:
            told.write(f"{type(problem).__name__}: {problem}".encode())
            return REFUSED if type(problem).__module__ == "hushcube.errors" else BROKEN
        return 0


def take(step: str, key: str, place: Path) -> None:
    """One step of a ledger; each can be repeated."""
    if step == "create":
        Ledger.ensure(place).close()
        return
    with Ledger.open(place) as ledger:
        if step == "account":
            if key not in {account.name for account in ledger.accounts()}:
                ledger.create_account(key, epsilon=1, neighbours="add-remove")
        elif step == "charge":
            ledger.charge("people", AMOUNT, key=key, plan_digest="plan", data="people.csv")
        elif step == "begin":
            if not ledger.find_charge(key).begun:
                ledger.begin(key, place="published")
        elif step == "publish":
            ledger.publish(key, bundle_digest="digest", place="published", spent=AMOUNT / 2)
        elif step == "abandon":
            ledger.abandon(key, "it broke")
        else:
            ledger.lock(key)


def prepare(step: str, key: str, place: Path) -> None:
    """What a step needs before it."""
    before = {"begin": ["charge"], "publish": ["charge", "begin"], "abandon": ["charge"], "lock": ["account"]}
    for each in before.get(step, []):
        take(each, key, place)


def state(place: Path) -> dict:
    """What a ledger says, and what is wrong with it."""
    if not place.exists():
        return {"problems": []}
    with Ledger.open(place) as ledger:
        verdict = ledger.verify(published=False)
        charges = {charge.key: charge for charge in ledger.charges()}
        return {
            "problems": [f"{check.name}: {problem}" for check in verdict.checks for problem in check.problems],
            "charges": {key: (c.state, c.begun, c.spent) for key, c in charges.items()},
            "accounts": {account.name: (account.spent, account.locked) for account in ledger.accounts()},
            "unfinished": sorted(charge.key for charge in ledger.unfinished()),
        }


def judge(step: str, key: str, found: dict) -> tuple[bool, list[str]]:
    """Whether the step is done, by what the ledger says; and what is wrong whatever it says."""
    problems = list(found["problems"])
    if step == "create":
        return "charges" in found, problems
    charges, accounts = found["charges"], found["accounts"]
    if accounts["people"][0] != sum(spent for _, _, spent in charges.values()):
        problems.append("what is spent is not the sum of the charges")
    if found["unfinished"] != sorted(k for k, (each, _, _) in charges.items() if each == "unfinished"):
        problems.append("an unfinished charge is not listed")
    own = charges.get(key, (None, False, 0))
    done = {
        "account": key in accounts,
        "charge": own[0] is not None,
        "begin": own[1],
        "publish": own == ("published", True, AMOUNT / 2),
        "abandon": own[0] == "abandoned",
        "lock": accounts.get(key, (0, False))[1],
    }[step]
    return done, problems


def case(desk: Desk, step: str, key: str, number: int, fault: int) -> tuple[str, list[str]]:
    """One fault at one call: the kind of outcome, and what is wrong."""
    prepare(step, key, desk.place)
    code, told, _ = desk.run(step, key, number, fault)
    done, problems = judge(step, key, state(desk.place))
    if code == 0 and not done:
        problems.append("announced, and not there")
    if code not in (0, REFUSED, -signal.SIGKILL):
        problems.append(f"exit code {code}: {told[-300:]}")
    if code == REFUSED and "Fix: " not in told:
        problems.append(f"no fix is named: {told[-300:]}")
    if code == REFUSED and "the ledger is as it was" in told and done:
        problems.append("charged, and it says that nothing was")
    again, words, _ = desk.run(step, key)
    is_done, more = judge(step, key, state(desk.place))
    if again or not is_done:
        problems.append(f"the same step again: {words[-300:]}")
    kind = "killed" if code < 0 else "refused" if code else "done"
    return f"{kind}: {'new' if done else 'old'}", [*problems, *more]


def campaign(folder: Path, library: Path, rounds: int, every: int) -> dict:
    """All faults of all steps."""
    calls, faults, outcomes, problems = {}, Counter(), Counter(), []
    desk = Desk(folder, library)
    for step in STEPS:
        desk.fresh(empty=step == "create")
        prepare(step, "first", desk.place)
        code, told, made = desk.run(step, "first")
        assert code == 0, told
        calls[step] = len(made)
        for turn in range(rounds):
            desk.fresh(empty=step == "create")
            for number, (_, name, *_) in enumerate(made, 1):
                for fault in [-signal.SIGKILL] * (name in CHANGING) + [errno.EIO, errno.ENOSPC] * (turn == 0):
                    if (number + fault) % every:
                        continue
                    if step == "create":
                        desk.fresh(empty=True)
                    outcome, wrong = case(desk, step, f"{turn}/{number}/{fault}", number, fault)
                    faults[signal.Signals(-fault).name if fault < 0 else errno.errorcode[fault]] += 1
                    outcomes[outcome] += 1
                    problems += [f"{step}, {name} ({number}), fault {fault}, round {turn}: {each}" for each in wrong]
    return {"calls": calls, "faults": faults, "outcomes": outcomes, "problems": problems}


def crowd(place: str, clients: int, charges: int) -> dict:
    """Many clients against half of what they ask for: what was granted, and what is wrong."""
    total = Fraction(clients * charges, 200)
    with Ledger.create(place) as ledger:
        ledger.create_account("people", epsilon=total, neighbours="add-remove")
        found = sum(granted(place, ["people"], clients, charges))
        account, spent = ledger.account("people"), sum(charge.spent for charge in ledger.charges())
        problems = [problem for check in ledger.verify().checks for problem in check.problems]
    if not (found * Fraction(1, 100) == spent == account.spent == account.total == total):
        problems.append(f"{found} were granted, {account.spent} was spent of {total}")
    return {"granted": found, "problems": [f"{place.partition('://')[0]}: {problem}" for problem in problems]}


def measured(scale: str) -> dict:
    """Faults in a process with the library that injects them; then the crowds."""
    chosen = SCALES[scale]
    with tempfile.TemporaryDirectory() as folder:
        library = compiled(Path(folder))
        if library is None:
            return {"skipped": "there is no C compiler with the headers of glibc, or this is not Linux"}
        places = [str(HERE.parent), str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": os.pathsep.join(places)}
        command = [sys.executable, "-m", "faults.ledgers", "--scale", scale, "--library", library, "--folder", folder]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        found = {"faults": json.loads(done.stdout)}
        if chosen["clients"]:
            found["sqlite"] = crowd(str(Path(folder) / "crowd.db"), chosen["clients"], chosen["charges"])
            found["postgres"] = _postgres(chosen["clients"], chosen["charges"])
    return found


def _postgres(clients: int, charges: int) -> dict:
    from _pytest.outcomes import Skipped

    from postgres_server import PASSWORD, Server

    try:
        server = Server(connections=clients + 20)
    except Skipped as reason:
        return {"granted": str(reason), "problems": []}
    try:
        os.environ["PGPASSWORD"] = PASSWORD
        return crowd(server.address("crowd"), clients, charges)
    finally:
        server.close()


def figures(scale: str) -> dict:
    """The part of the audit."""
    found = measured(scale)
    if "skipped" in found:
        return {"title": "Ledgers", "attacked": "Skipped.", "how": found["skipped"], "figures": {}, "violations": 0}
    problems = [problem for part in found.values() for problem in part["problems"]]
    kinds, clients = found["faults"]["faults"], SCALES[scale]["clients"]
    return {
        "title": "Ledgers",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {
            **{f"file-system calls to {step}": count for step, count in found["faults"]["calls"].items()},
            "rounds of kills": SCALES[scale]["rounds"],
            "faults injected": sum(kinds.values()),
            **{f"of them {kind}": count for kind, count in sorted(kinds.items())},
            **{f"outcome - {kind}": count for kind, count in sorted(found["faults"]["outcomes"].items())},
            **({"clients at once": clients, "charges of each": SCALES[scale]["charges"]} if clients else {}),
            **{f"granted by {name}": found[name]["granted"] for name in ("sqlite", "postgres") if name in found},
        },
        "broken": problems,
        "violations": len(problems),
    }


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="faults.ledgers", description=__doc__)
    parser.add_argument("--scale", choices=list(SCALES), default="long")
    for hidden in ("--library", "--folder"):
        parser.add_argument(hidden, type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.library is not None:
        chosen = SCALES[given.scale]
        print(json.dumps(campaign(given.folder, given.library, chosen["rounds"], chosen["every"])))
        return 0
    found = figures(given.scale)
    print(json.dumps(found, indent=1))
    return 1 if found["violations"] else 0


if __name__ == "__main__":
    sys.exit(main())
