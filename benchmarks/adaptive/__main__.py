"""Compare tables at face value with those of data-adaptive rivals, and write docs/accuracy.md: `make adaptive`.

    python -m benchmarks.adaptive [--quick] [--install] [--only CASE ...] [--tables WORD ...] [--methods METHOD ...] ...

A run is one case, tables, epsilon, method and seed, in a process of its own. What it came to is a line of
build/adaptive/results.jsonl: a benchmark that was stopped goes on where it was. AIM and MST need the environment of
mbi, `.venv-peers/mbi`, which `--install` makes; they are skipped where it is absent, and so are cases whose data is
absent. AIM on our fit needs neither mbi nor its environment.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.adaptive.cases import CASES, EPSILONS, TINY, WORKLOADS, Absent, Case, errors, settings
from benchmarks.adaptive.results import AIMS, METHODS, RIVALS, Row, cost_table, error_table, medians, picture, skipped
from benchmarks.peers.__main__ import Skipped, interpreter
from benchmarks.reproduce.points import Kept
from hushcube.verbs.charting import saved

ROOT = Path(__file__).resolve().parent.parent.parent
KEPT = ROOT / "build" / "adaptive" / "results.jsonl"
MARK, END = "<!-- figures: written by `make adaptive` -->", "<!-- end -->"
_SCALE = 0.8  # of the picture in pixels, of which every run leaves one in the history; the pages show the other one
SEEDS = 5
LIMIT = 3600.0
"""Seconds on the clock that one run may take."""
ONE_CORE = {"OPENBLAS_NUM_THREADS": "1", "NPROC": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def run(case: Case, words: str, epsilon: float, method: str, seed: int, limit: float, *, install: bool = False) -> Row:
    """What one run came to, or why there was none."""
    program = "rivals" if method in RIVALS else "own_fit" if method in AIMS else "ours"
    try:
        python = interpreter("mbi", install=install) if method in RIVALS else sys.executable
    except Skipped as reason:
        raise Absent(f"mbi: {reason}") from None
    job = case.job(WORKLOADS[words], epsilon)
    with tempfile.TemporaryDirectory() as name:
        job.write(Path(name))
        command = [python, "-m", f"benchmarks.adaptive.{program}", name, method, str(seed)]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, check=False, cwd=ROOT, env=os.environ | ONE_CORE
            )
        except subprocess.TimeoutExpired:
            return {"skipped": f"it took more than {limit:g} seconds"}
        if done.returncode:
            return {"skipped": f"it failed ({(done.stderr.strip().splitlines() or ['no reason given'])[-1][:200]})"}
        with np.load(Path(name) / "answers.npz") as file:
            answers = [file[str(i)] for i in range(len(file.files))]
        return errors(job, answers) | json.loads(done.stdout.splitlines()[-1])


Settings = Sequence[tuple[Case, str, float]]


def jobs(chosen: Settings, methods: Sequence[str], seeds: int) -> Iterator[tuple[Case, Row]]:
    """One seed of everything first, then the next."""
    for seed in range(seeds):
        for case, tables, epsilon in chosen:
            for method in methods:
                yield case, {"case": case.name, "tables": tables, "epsilon": epsilon, "method": method, "seed": seed}


def measured(
    every: Sequence[tuple[Case, Row]], kept: Kept, limit: float, *, install: bool
) -> tuple[list[Row], set[str]]:
    """All rows, and the reasons why some are missing."""
    absent = set[str]()
    for case, job in every:
        if job in kept:
            continue
        try:
            came_to = run(case, job["tables"], job["epsilon"], job["method"], job["seed"], limit, install=install)
        except Absent as reason:
            absent.add(f"{job['method'] if job['method'] in RIVALS else case.name}: {reason}")
            continue
        kept.add(job, came_to)
        print(json.dumps({**job, **came_to}), flush=True)
    return [kept.row(job) for _, job in every if job in kept], absent


def section(rows: Sequence[Row]) -> str:
    """The tables of the page."""
    middle = medians(rows)
    parts = [
        "L1 error of a table over n, the mean over tables, and in brackets the root mean square error of a cell: "
        "medians over seeds. The lowest L1 is bold. \\* was measured with AIM's published algorithm before this "
        "program was written, and has not been run by it. *Over AIM* is the error of what `--for face-valid` "
        "measures with (`selective`, and `residual` with the fit by entropy for NLTCS, whose tables are small), as a "
        "part of AIM's: of the lower one where it ran on both models.",
        error_table(middle),
        "Processor seconds, and in brackets the peak of memory in GB:",
        cost_table(middle),
    ]
    if reasons := skipped(rows):
        parts += ["Without figures:", "\n".join(f"- {reason}" for reason in reasons)]
    return "\n\n".join(parts)


def write_page(rows: Sequence[Row], page: Path) -> None:
    """The figures between the marks, and the picture beside."""
    head, _, rest = page.read_text(encoding="utf-8").partition(MARK)
    page.write_text(f"{head}{MARK}\n\n{section(rows)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    for file in (page.parent / "pictures" / "accuracy.svg", page.parent / "pictures" / "accuracy.png"):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(saved(picture(medians(rows)), file, scale=_SCALE))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not kept, and write the page."""
    options = argparse.ArgumentParser(prog="python -m benchmarks.adaptive", description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="one seed of a tiny case; the tables are printed only")
    options.add_argument("--install", action="store_true", help="make the environment of the rivals if it is missing")
    options.add_argument("--only", nargs="+", default=list(CASES), choices=CASES, help="cases; all unless given")
    options.add_argument("--tables", nargs="+", default=list(WORKLOADS), choices=WORKLOADS)
    options.add_argument("--epsilons", nargs="+", type=float, default=list(EPSILONS), choices=EPSILONS)
    options.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options.add_argument("--seeds", type=int, default=SEEDS)
    options.add_argument("--limit", type=float, default=LIMIT, help="seconds on the clock that one run may take")
    options.add_argument("--keep", type=Path, default=KEPT, help="a file for what was measured")
    options.add_argument(
        "--print", action="store_true", help="print the tables of what was measured, and write no page"
    )
    given = options.parse_args(arguments)
    asked = [s for s in settings() if s[0].name in given.only and s[1] in given.tables and s[2] in given.epsilons]
    quick = [(TINY, "2-way", 1.0)]
    every = list(jobs(quick, given.methods, 1) if given.quick else jobs(asked, given.methods, given.seeds))
    rows, absent = measured(every, Kept(None if given.quick else given.keep), given.limit, install=given.install)
    for reason in sorted(absent):
        print(f"skipped: {reason}")
    if absent or given.quick or given.print:
        print(section(rows))
        if absent and not given.quick:
            print("Something could not be run: accuracy.md stays as it is.")
        return
    everything = jobs(list(settings()), METHODS, max(given.seeds, SEEDS))
    kept = Kept(given.keep)
    write_page([kept.row(job) for _, job in everything if job in kept], ROOT / "docs" / "accuracy.md")
    print("wrote accuracy.md")


if __name__ == "__main__":
    main()
