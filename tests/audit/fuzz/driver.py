"""Runs many cases, or a single one again:

python -m audit.fuzz.driver --cases 20000              all of the long form
python -m audit.fuzz.driver --seed 1 --only 4711       one case, with its command and files; kept with --keep FOLDER
"""

import argparse
import os
import resource
import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from audit.fuzz.bundles import make_pool
from audit.fuzz.commands import make_case
from audit.fuzz.judge import Outcome, judged

SEED = 13
LONG, SHORT = 20_000, 1_000
APART = 400
"""One case in so many runs as a process of its own."""
SECONDS = 60.0
"""Nothing here is large: what takes longer hangs."""
MEMORY = 2**33
ATTACKED = """\
Every file and word that the command line reads: schemas, mappings, plans, bundles, workload words, facts, targets,
matrices, data and options."""
HOW = """\
Valid input is generated from its grammar, and most of it is then damaged: fields exchanged or repeated, numbers and
texts at the edge of what programs bear, bytes flipped or cut off, files replaced by links, pipes and folders, checksums
forged to fit. A case holds if the exit code is 0, 1 or 2 with a documented message; nothing hangs; a failure leaves
every file as it was, and bad input draws no noise; a success writes what was asked for and nothing else, and `verify`
approves of a release; `--json` prints one document; nothing printed steers a terminal; no data value is shown."""


@dataclass(frozen=True)
class Case:
    """A case that was run, with all that is needed to run it again."""

    seed: int
    number: int
    arguments: list[str]
    outcome: Outcome
    broken: list[str]
    """The requirements that it breaks."""

    def __str__(self) -> str:
        again = f"python -m audit.fuzz.driver --seed {self.seed} --only {self.number} --keep FOLDER"
        command = shlex.join(["hushcube", *self.arguments])
        return "\n".join((f"case {self.number}: {command}", *self.broken, self.outcome.trace, f"again: {again}"))


@contextmanager
def workshop() -> Iterator[tuple[Path, Path]]:
    """A folder for cases, and the pool of releases."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # a disk is slow to make and remove folders
    with tempfile.TemporaryDirectory(prefix="hushcube-fuzz-", dir=memory) as name:
        root = Path(name).resolve()
        for part in ("pool", "temporary", "cases"):
            (root / part).mkdir()
        yield root / "cases", make_pool(root / "pool")


def run_case(seed: int, number: int, cases: Path, pool: Path, seconds: float = SECONDS) -> Case:
    """Make a case, run it, judge it, and remove it."""
    place = cases / str(number) / "desk"
    place.mkdir(parents=True)
    try:
        arguments = make_case(seed, number, place, pool)
        broken, outcome = judged(arguments, place, apart=number % APART == 0, seconds=seconds)
    finally:
        shutil.rmtree(cases / str(number), ignore_errors=True)
    return Case(seed, number, arguments, outcome, broken)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Nothing here is large: what asks for more than this is refused, and fails."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def run_cases(numbers: range, seed: int = SEED, seconds: float = SECONDS) -> Iterator[Case]:
    """Run many."""
    with bounded_memory(), workshop() as (cases, pool):
        for number in numbers:
            yield run_case(seed, number, cases, pool, seconds)


def figures(scale: str) -> dict[str, object]:
    """How many cases were run, how they ended, and those that broke a requirement."""
    codes: Counter[int | None] = Counter()
    verbs: Counter[str] = Counter()
    failures: list[str] = []
    numbers = range(LONG if scale == "long" else SHORT)
    for case in run_cases(numbers):
        codes[case.outcome.code] += 1
        verbs[" ".join(case.arguments[: 1 + (case.arguments[0] == "schema")])] += 1
        if case.broken:
            failures.append(str(case))
            print(case, end="\n\n", flush=True)
    return {
        "title": "Generated input",
        "attacked": ATTACKED,
        "how": HOW,
        "figures": {
            "cases": len(numbers),
            **{f"of these, exit code {code}": count for code, count in sorted(codes.items(), key=str)},
            "run as a process of their own": len(range(0, len(numbers), APART)),
        },
        "table": {"columns": ["verb", "cases"], "rows": [[verb, count] for verb, count in sorted(verbs.items())]},
        "violations": len(failures),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=LONG)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--only", type=int)
    parser.add_argument("--keep", type=Path)
    chosen = parser.parse_args()
    if chosen.only is not None:
        again(chosen.seed, chosen.only, chosen.keep)
        return
    for case in run_cases(range(chosen.first, chosen.first + chosen.cases), chosen.seed, chosen.seconds):
        if case.broken:
            print(case, end="\n\n", flush=True)


def again(seed: int, number: int, keep: Path | None) -> None:
    """A single case: what it runs, what it prints, what is wrong with it."""
    with workshop() as (cases, pool):
        if keep is not None:
            keep.mkdir(parents=True)
            arguments = make_case(seed, number, keep, pool)
            print(f"cd {shlex.quote(str(keep))} && {shlex.join(['hushcube', *arguments])}")
        case = run_case(seed, number, cases, pool)
        print(case.outcome.out, case.outcome.err, f"exit code {case.outcome.code}", case, sep="\n")


if __name__ == "__main__":
    main()
