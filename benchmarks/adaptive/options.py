"""What the options of selective runs gain: `python -m benchmarks.adaptive.options [PART ...] [--runs N]`

Parts are `objective`, `sanity-bound` and `like`; each writes a table of docs/strategies.md. A run is one setting and
one seed, with and without the option. What it came to is a line of build/adaptive/options.jsonl: a benchmark that was
stopped goes on where it was. Everything is compared with exact counts, which is not private.

Seeds start at 100: they are none of those that docs/maths.md names where rules and constants of selective runs were
chosen. The people of Adult-8 and NLTCS are the same.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from benchmarks.__main__ import table
from benchmarks.adaptive.cases import CASES, DELTA, GENERATED, WORKLOADS, Absent, errors, generated
from benchmarks.adaptive.coverage import exact_tables
from benchmarks.adaptive.ours import ENTROPY
from benchmarks.peers.one_job import Job
from benchmarks.reproduce.points import Kept
from hushcube import Attribute, Schema, plan
from hushcube.costs.calibrate import zcdp_rho
from hushcube.experiments.truth import HeldTables
from hushcube.faces.face import make_face
from hushcube.lattice.family import Family
from hushcube.model.edition import Edition
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE, KEPT = ROOT / "docs" / "strategies.md", ROOT / "build" / "adaptive" / "options.jsonl"
MARK = "<!-- gains of {}: written by `python -m benchmarks.adaptive.options` -->"
END = "<!-- end of gains -->"
TOLD = "A ratio is taken within each run: the mean of these ratios, ± its standard error."
FIRST_SEED, EARLIER = 100, 10_000
"""The seed of the first run, and how far those of earlier editions are from those of what is like them."""

Row = dict[str, Any]
Tables = list[np.ndarray]


def job_of(setting: Row) -> Job:
    """The people and tables of a setting, under its rho, or that of its epsilon."""
    order, rho = WORKLOADS[setting["tables"]], setting.get("rho") or zcdp_rho(setting["epsilon"], DELTA)
    if setting["data"] not in GENERATED:
        return replace(CASES[setting["data"]].job(order, 1.0), rho=rho)
    attributes = GENERATED[setting["data"]]
    sizes = tuple(n for n, _ in attributes)
    codes = generated(attributes, setting["people"], setting["seed"])
    return Job(sizes, tuple(combinations(range(len(sizes)), order)), codes, rho=rho)


def schema_of(job: Job) -> Schema:
    """Its attributes by their sizes."""
    return Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(job.sizes)))


def published(job: Job, seed: int, option: str = "", objective: str = "total", like: Edition | None = None) -> Tables:
    """The non-negative tables of one selective run, in the order of the job's."""
    words, asked = f"{len(job.tables[0])}-way", {"neighbours": "add-remove", "strategy": f"selective{option}"}
    design = plan(schema_of(job), words, rho=str(job.rho), objective=objective, **asked).count
    if like is not None:  # `like=` refuses what has a seed: here nobody is to be protected
        design = replace(design, like=like)
    counts = HeldTables(len(job.codes), exact_tables(design, job.codes))
    made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
    source = make_face(made, measurement, ENTROPY, Clock()).tables
    found = {
        tuple(row): values
        for batch in Family.of(job.tables, job.sizes).batches
        for row, values in zip(batch.rows.tolist(), source.tables(batch.rows, batch.shape), strict=True)
    }
    return [found[each] for each in job.tables]


def relative_error(job: Job, answers: Tables, bound: float) -> float:
    """The mean over tables of the mean over cells of |error| / max(count, bound)."""
    exact = map(job.exact, job.tables)
    return float(np.mean([np.mean(np.abs(a - e) / np.maximum(e, bound)) for a, e in zip(answers, exact, strict=True)]))


def objectives(setting: Row) -> Row:
    """The people by which the worst table is off, and all tables together, for either objective."""
    job, found = job_of(setting), {}
    for objective in ("total", "max"):
        answers = published(job, setting["seed"], objective=objective)
        off = [np.abs(a - job.exact(each)).sum() for a, each in zip(answers, job.tables, strict=True)]
        found[f"worst, {objective}"], found[f"all, {objective}"] = float(max(off)), float(sum(off))
    return found


def bounds(setting: Row) -> Row:
    """Relative errors over each sanity bound, by default and with the bound."""
    job, found = job_of(setting), {}
    plain = published(job, setting["seed"])
    for bound in setting["bounds"]:
        own = published(job, setting["seed"], f":sanity-bound={bound}")
        found[f"default, {bound}"] = relative_error(job, plain, bound)
        found[f"with, {bound}"] = relative_error(job, own, bound)
    return found


def halves(job: Job, seed: int) -> tuple[Job, Job]:
    """Two of half the people each."""
    order = np.random.default_rng([seed, len(job.codes)]).permutation(len(job.codes))
    first, second = (np.sort(part) for part in np.array_split(order, 2))
    return replace(job, codes=job.codes[first]), replace(job, codes=job.codes[second])


def shuffled(job: Job, tables: Tables, seed: int) -> Tables:
    """Tables in which the values of each attribute have exchanged their names at random."""
    random = np.random.default_rng([seed, len(job.sizes)])
    orders = [random.permutation(n) for n in job.sizes]
    return [
        values[np.ix_(*(orders[i] for i in attributes))] for attributes, values in zip(job.tables, tables, strict=True)
    ]


def editions(setting: Row) -> Row:
    """The sum of absolute errors over the number of people: without an edition, with one, and with a wrong one."""
    seed = setting["seed"]
    before, now = halves(job_of(setting), seed)
    earlier = published(replace(before, rho=zcdp_rho(1.0, DELTA)), seed + EARLIER)
    likes = {"without": None, "with": earlier, "wrong": shuffled(now, earlier, seed)}
    found = {}
    for name, tables in likes.items():
        digest = "0" * 64  # the edition is no release: the name of its plan is not used
        like = tables and Edition.of(schema_of(now), dict(zip(now.tables, tables, strict=True)), digest)
        found[name] = errors(now, published(now, seed, like=like))["l1"]
    return found


def ratio(rows: Sequence[Row], one: str, other: str) -> str:
    """What one is of the other in the same run: the mean over runs, ± its standard error."""
    every = np.array([row[one] / row[other] for row in rows])
    spread = f" ± {every.std(ddof=1) / np.sqrt(len(every)):.3f}" if len(every) > 1 else ""
    return f"{every.mean():.3f}{spread}"


def mean(rows: Sequence[Row], name: str) -> float:
    """Over runs."""
    return float(np.mean([row[name] for row in rows]))


def objective_lines(rows: Sequence[Row]) -> list[Row]:
    """For one setting: people, and what `max` changes."""
    line = {"tables": f"`{rows[0]['tables']}`", "rho": f"{rows[0]['rho']:g}"}
    for part in ("worst", "all"):
        title = "worst table" if part == "worst" else "all tables"
        line |= {f"{title}, `{o}`": f"{mean(rows, f'{part}, {o}'):,.0f}" for o in ("total", "max")}
        line[f"{title}, `max` / `total`"] = ratio(rows, f"{part}, max", f"{part}, total")
    return [line]


def bound_lines(rows: Sequence[Row]) -> list[Row]:
    """For one setting: a line for each bound."""
    people = f", {rows[0]['people']:,} people" if "people" in rows[0] else ""
    return [
        {
            "data": f"{rows[0]['data']}{people}, `{rows[0]['tables']}`",
            "rho": f"{rows[0]['rho']:g}",
            "sanity bound": bound,
            "mean relative error, default": f"{mean(rows, f'default, {bound}'):.4f}",
            "with the bound": f"{mean(rows, f'with, {bound}'):.4f}",
            "with / default": ratio(rows, f"with, {bound}", f"default, {bound}"),
        }
        for bound in rows[0]["bounds"]
    ]


def edition_lines(rows: Sequence[Row]) -> list[Row]:
    """For one setting: what an edition changes, and a wrong one."""
    return [
        {
            "data": rows[0]["data"],
            "tables": f"`{rows[0]['tables']}`",
            "epsilon": f"{rows[0]['epsilon']:g}",
            "without": f"{mean(rows, 'without'):.4f}",
            "with the edition": f"{mean(rows, 'with'):.4f}",
            "with / without": ratio(rows, "with", "without"),
            "with a wrong edition": f"{mean(rows, 'wrong'):.4f}",
            "wrong / without": ratio(rows, "wrong", "without"),
        }
    ]


@dataclass(frozen=True)
class Part:
    """One table: its settings, what a run of one comes to, and the lines that all runs of one come to."""

    runs: int
    settings: tuple[Row, ...]
    measure: Callable[[Row], Row]
    lines: Callable[[Sequence[Row]], list[Row]]


PARTS = {
    "objective": Part(
        20,
        tuple(
            {"data": "Adult-8", "tables": t, "rho": r} for t, r in (("2-way", 0.005), ("2-way", 0.05), ("3-way", 0.05))
        ),
        objectives,
        objective_lines,
    ),
    "sanity-bound": Part(
        20,
        (
            *(
                {"data": name, "people": people, "tables": "2-way", "rho": rho, "bounds": [10]}
                for people in (3_000, 30_000)
                for name, rho in (("generated, some fall off", 0.05), ("generated, all fall off", 0.01))
            ),
            *({"data": "Adult-8", "tables": "2-way", "rho": rho, "bounds": [3, 10, 100]} for rho in (0.01, 0.1, 0.5)),
            *({"data": "Adult-8", "tables": "3-way", "rho": rho, "bounds": [10, 100]} for rho in (0.02, 0.1, 0.5)),
        ),
        bounds,
        bound_lines,
    ),
    "like": Part(
        10,
        tuple(
            {"data": data, "tables": words, "epsilon": epsilon}
            for data in ("Adult-8", "NLTCS")
            for words in WORKLOADS
            for epsilon in (0.1, 1.0)
        ),
        editions,
        edition_lines,
    ),
}


def section(name: str, kept: Kept, runs: int | None = None) -> str:
    """The table of a part, from what is kept and what has to be measured."""
    part, lines = PARTS[name], []
    number = runs or part.runs
    for setting in part.settings:
        jobs = [{"part": name, **setting, "seed": FIRST_SEED + i} for i in range(number)]
        for job in jobs:
            if job not in kept:
                kept.add(job, part.measure(job))
        lines += part.lines([kept.row(job) for job in jobs])
        print(json.dumps(lines[-1], ensure_ascii=False), flush=True)
    return f"Means of {number} runs. {TOLD}\n\n{table(lines)}"


def write_page(name: str, text: str, page: Path) -> None:
    """The table between its marks."""
    head, mark, rest = page.read_text(encoding="utf-8").partition(MARK.format(name))
    if not mark:
        raise ValueError(f"{page.name} has no place for the gains of {name}: {MARK.format(name)}")
    page.write_text(f"{head}{mark}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what is not kept, and write the tables into the page."""
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.adaptive.options", description=__doc__.splitlines()[0].partition(":")[0]
    )
    options.add_argument("parts", nargs="*", metavar="PART", help=f"{', '.join(PARTS)}; all unless given")
    options.add_argument("--runs", type=int, help="of each setting; unless given, 20, and 10 with earlier editions")
    options.add_argument("--keep", type=Path, default=KEPT, help="a file for what was measured")
    given = options.parse_args(arguments)
    if unknown := set(given.parts) - set(PARTS):
        options.error(f"no such part: {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    kept = Kept(given.keep)
    for name in given.parts or PARTS:
        try:
            write_page(name, section(name, kept, given.runs), PAGE)
        except Absent as reason:
            print(f"{name} stays as it is: {reason}")


if __name__ == "__main__":
    main()
