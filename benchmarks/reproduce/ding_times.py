"""Ding et al. 2011: the number of dimensions [Exp-IV], and how long it all takes [Exp-VI].

Time is that from people to all tables of a cube: select cuboids, count them, add noise, sum or make consistent. Each
cuboid is made, compared and dropped; nothing is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.programs import peak
from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import adult_and_more
from benchmarks.reproduce.ding_errors import (
    LOOKS,
    best_two,
    design_of,
    error_tables,
    jobs,
    places,
    schema_of,
    summary,
    two_panels,
)
from benchmarks.reproduce.figure import Claim, Figure, Row, held, seed_of
from benchmarks.reproduce.runs import Nobody
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.engines import open_source
from hushcube.private.measure import count, draw
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.workload import WorkloadTables

_PART = 1 << 24
RUNS = {5: 30, 6: 20, 7: 10, 8: 6, 9: 2, 10: 1}
"""By the number of dimensions; times are the least of all runs, errors their mean."""
LONGER = 1.5
"""How many times as long something takes before we say that it takes longer."""


def publish(design: Design, seed: int) -> tuple[float, float, np.ndarray]:
    """Seconds for noise and for all tables, and errors of cuboids; on empty tables, which take as long as others."""
    nobody, family = Nobody(design.schema), design.request.marginals
    errors = np.empty((1, len(family)))
    start = time.perf_counter()
    made, measurement = draw(design, nobody, entropy=SeededEntropy(seed))
    noise = time.perf_counter() - start
    start, compared = time.perf_counter(), 0.0
    answers = made.answers(measurement)
    for batch in family.batches:
        for part in batch.parts(_PART):
            tables = answers.tables(batch.rows[part], batch.shape)
            begin = time.perf_counter()
            errors[0, batch.ids[part]] = np.abs(tables).reshape(len(tables), -1).mean(axis=1)
            compared += time.perf_counter() - begin
    return noise, time.perf_counter() - start - compared, errors


def measure(job: Row) -> Row:
    """Errors, seconds and memory of one method on a cube of so many dimensions."""
    data = adult_and_more().first(job["dimensions"])
    start = time.perf_counter()
    design = design_of(job)
    selecting = time.perf_counter() - start
    start = time.perf_counter()
    counts = count([design], data.schema, open_source(data.people))
    for batch in design.measured.batches:
        for part in batch.parts(_PART):
            counts.tables(batch.rows[part])  # they are counted when they are asked for
    counting = time.perf_counter() - start
    del counts
    runs = [publish(design, seed_of(job) + run) for run in range(job["runs"])]
    noise, tables, _ = min(runs, key=lambda run: run[0] + run[1])
    return {
        **summary(design, np.concatenate([errors for _, _, errors in runs])),
        "selecting": selecting,
        "counting": counting,
        "noise": noise,
        "tables": tables,
        "seconds": selecting + counting + noise + tables,
        "gigabytes": peak() / 1024,
        "stand_in": data.stand_in,
    }


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about times."""
    at = places(rows, "dimensions")
    top = max(at)
    low = {d: here for d, here in at.items() if d > 5 or len(at) < 3}
    found = []
    for other, least, most in (("BMaxC", 6.0, 10.0), ("PMostC", 10.0, 40.0)):
        times = {d: here["AllC"]["seconds"] / here[other]["seconds"] for d, here in low.items()}
        inside = all(least * 0.95 <= ratio <= most * 1.05 for d, ratio in times.items() if d != 10)
        told = ", ".join(f"{d} dimensions: {ratio:.2g} times" for d, ratio in times.items())
        longer = min(times.values()) > LONGER
        why = "" if longer else ": here consistency is a few passes over the cells of all tables, whatever was measured"
        says = f"AllC takes {least:g} to {most:g} times as long as {other} above five dimensions, and more at ten"
        correction = not inside or times.get(10, most) < most
        found.append(held(says, told + why, holds=longer, correction=correction))
    shares = {m: at[top][m]["selecting"] / at[top][m]["seconds"] for m in ("BMaxC", "PMostC")}
    found.append(
        held(
            "Selecting cuboids takes a very small part of the time",
            f"{top} dimensions: " + ", ".join(f"{share:.1%} of {m}'s" for m, share in shares.items()),
            holds=max(shares.values()) < 0.1,
        )
    )
    return [best_two(rows, "dimensions", "BMaxC and PMostC are always the best two", always=True), *found]


def time_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Errors, and where the time goes on the largest cube."""
    at = places(rows, "dimensions")
    top = max(at)
    parts = ("measured", "selecting", "counting", "noise", "tables", "seconds", "gigabytes")
    return [
        *error_tables(rows, "dimensions"),
        (
            "Seconds from people to all tables",
            [{"dimensions": d, **{m: r["seconds"] for m, r in h.items()}} for d, h in at.items()],
        ),
        (
            f"The parts of the time at {top} dimensions",
            [{"method": m, **{p: r[p] for p in parts}} for m, r in at[top].items()],
        ),
    ]


class Given(WorkloadTables):
    """Some cuboids, with equal budgets."""

    def __init__(self, tables: Sequence[tuple[int, ...]]) -> None:
        self._tables = tables

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """Measure what was given."""
        measured = Family.of(self._tables, request.schema.sizes)
        return self.decide(request, budgets, recovery, MARGINAL, measured, np.ones(len(measured)))


def few_jobs(quick: bool) -> Iterable[Row]:
    """Figure 9(b): the finest cuboid and random others, summed and made consistent."""
    dimensions = 4 if quick else 8
    for measured in (1, 4) if quick else (1, 32, 64, 96, 128, 160, 192, 224, 256):
        for recovery in ("none", "ols"):
            yield {"dimensions": dimensions, "cuboids": measured, "recovery": recovery}


def measure_few(job: Row) -> Row:
    """Seconds for noise, and for all tables."""
    schema = schema_of(job)
    workload = Workload.parse("cube", schema)
    others = [marginal for marginal in workload.marginals if len(marginal) < len(schema)]
    chosen = np.random.default_rng(job["cuboids"]).permutation(len(others))[: job["cuboids"] - 1]
    request = Request(workload, Privacy.of(epsilon=1, neighbours="add-remove"))
    tables = [tuple(range(len(schema))), *(others[i] for i in chosen)]
    design = Given(tables).plan(request, "uniform", job["recovery"])
    noise, rest, _ = publish(design, seed_of(job))
    return {"noise": noise, "tables": rest, "seconds": noise + rest, "stand_in": adult_and_more().stand_in}


def few_claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about figure 9(b)."""
    at = {way: {r["cuboids"]: r["seconds"] for r in rows if r["recovery"] == way} for way in ("none", "ols")}
    x, y = (np.array(values, float) for values in zip(*sorted(at["ols"].items()), strict=True))
    fit = float(np.corrcoef(x, y)[0, 1]) ** 2
    few, many = min(at["none"]), max(at["none"])
    return [
        held(
            "The time for consistency increases linearly with the number of measured cuboids",
            f"from {y[0]:.3g} s for {few} to {y[-1]:.3g} s for {many}; a straight line explains {fit:.0%} of it",
            holds=y[-1] > y[0] and fit > 0.5,
            correction=fit < 0.9,
        ),
        held(
            "The time for noise decreases as more cuboids are measured",
            f"noise and sums: {at['none'][few]:.3g} s for {few}, {at['none'][many]:.3g} s for {many}",
            holds=at["none"][many] < at["none"][few],
        ),
    ]


FIGURES = (
    Figure(
        "ding-4",
        "Experiments IV and VI (figures 6, 8 and 9a): the number of dimensions",
        "Adult's first dimensions, and two more of four random values; epsilon 1. The cube of ten has "
        "1,024 cuboids of 205.6 million cells.",
        lambda quick: jobs(({"dimensions": d, "runs": n} for d, n in ({3: 1, 4: 1} if quick else RUNS).items()), 1),
        measure,
        lambda rows: {
            "-errors": two_panels(rows, "dimensions", "Adult and two more dimensions (dashed: without consistency)")[
                ""
            ],
            "-times": pictures.lines(
                rows,
                x="dimensions",
                y="seconds",
                looks=LOOKS,
                title="Seconds from people to all tables of the cube (dashed: without consistency)",
                size=(420, 280),
            ),
        },
        time_tables,
        claims,
        alone=True,
    ),
    Figure(
        "ding-6",
        "Experiment VI (figure 9b): the number of measured cuboids",
        "Adult's eight dimensions: the finest cuboid and random others are measured, and all 256 are made from them.",
        few_jobs,
        measure_few,
        lambda rows: {
            "": pictures.lines(
                [{**r, "of": {"none": "noise and sums", "ols": "noise and consistency"}[r["recovery"]]} for r in rows],
                x="cuboids",
                y="seconds",
                line="of",
                log_y=False,
                x_title="measured cuboids",
                title="Seconds for all cuboids of Adult",
                size=(380, 240),
            )
        },
        claims=few_claims,
        alone=True,
    ),
)
