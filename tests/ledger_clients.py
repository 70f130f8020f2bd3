"""Many processes that charge one account at once; run in a process of its own, which forks them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

AMOUNT = "0.01"


def granted(place: str, accounts: list[str], clients: int, charges: int) -> list[int]:
    """What each client was granted: it charges the accounts in turn, and is refused only for lack of budget."""
    roots = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*roots, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, __file__, place, json.dumps(accounts), str(clients), str(charges)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def _client(place: str, accounts: list[str], number: int, charges: int) -> int:
    from hushcube.errors import NotEnoughBudget
    from hushcube.ledger.ledger import Ledger

    found = 0
    with Ledger.open(place) as ledger:
        for turn in range(charges):
            account = accounts[(number + turn) % len(accounts)]
            try:
                ledger.charge(account, AMOUNT, key=f"{number}/{turn}", plan_digest="plan", data=account)
                found += 1
            except NotEnoughBudget:
                pass
    return found


def _main(place: str, accounts: list[str], clients: int, charges: int) -> None:
    if "://" in place:
        import psycopg  # noqa: F401 - once, before the forks

    import hushcube.ledger.ledger  # noqa: F401

    children = []
    for number in range(clients):
        child = os.fork()
        if child == 0:
            code = 255
            try:
                code = _client(place, accounts, number, charges)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    if 255 in codes or min(codes) < 0:
        sys.exit("a client failed")
    print(json.dumps(codes))


if __name__ == "__main__":
    _main(sys.argv[1], json.loads(sys.argv[2]), *map(int, sys.argv[3:]))
