"""Yaroslavtsev et al. 2013: how long it takes on NLTCS [Figure 6]."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import nltcs
from benchmarks.reproduce.figure import Claim, Figure, Row, held
from benchmarks.reproduce.runs import planned
from benchmarks.reproduce.yaroslavtsev import LOOKS, METHODS, PAPERS, WORKLOADS, job_of, words_of
from hushcube.private.engines import open_source
from hushcube.private.measure import count, draw
from hushcube.private.noise import SeededEntropy


def time_jobs(quick: bool) -> Iterable[Row]:
    """Figure 6: every method on every workload of NLTCS."""
    for workload in ("Q1",) if quick else WORKLOADS:
        for method in METHODS:
            yield {**job_of(workload, method, quick), "runs": 1 if quick else 3}


def measure_time(job: Row) -> Row:
    """Seconds to plan, count, add noise and recover: the least of some runs, after one that warms up."""
    data = nltcs().first(job.get("attributes"))
    words = words_of(data, job["workload"])
    start = time.perf_counter()
    design = planned(data.schema, words, *job["plan"], epsilon="1")
    planning, found = time.perf_counter() - start, []
    for run in range(job["runs"] + 1):
        start = time.perf_counter()
        counts = count([design], data.schema, open_source(data.people))
        counted = time.perf_counter()
        made, measurement = draw(design, counts, entropy=SeededEntropy(run))
        answers = made.answers(measurement)
        for batch in design.request.marginals.batches:
            answers.tables(batch.rows, batch.shape)
        found.append((counted - start, time.perf_counter() - counted))
    counting, publishing = min(found[1:], key=sum)
    total = planning + counting + publishing
    return {
        "planning": planning,
        "counting": counting,
        "publishing": publishing,
        "seconds": total,
        "stand_in": data.stand_in,
    }


def time_claims(rows: Sequence[Row]) -> list[Claim]:
    """What section V-B says of times."""
    slow = {m: max(row["seconds"] for row in rows if row["method"] == m) for m in PAPERS}
    others = {m: seconds for m, seconds in slow.items() if not m.startswith("C")}
    clusters = max(slow["C"], slow["C+"])
    return [
        held(
            "NLTCS: every method but C takes less than a second",
            "; ".join(f"{m}: up to {seconds:.2g} s" for m, seconds in others.items()),
            holds=max(others.values()) < 1,
        ),
        held(
            "NLTCS: clustering takes hours",
            f"up to {clusters:.2g} s: the covers are found by integer arithmetic on bit masks",
            holds=clusters > 3600,
        ),
    ]


def time_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Seconds by method and workload, and where they go for the slowest workload."""
    lines = [
        {"method": m, **{row["workload"]: row["seconds"] for row in rows if row["method"] == m}}
        for m in dict.fromkeys(row["method"] for row in rows)
    ]
    last = rows[-1]["workload"]
    parts = [
        {k: row[k] for k in ("method", "planning", "counting", "publishing")} for row in rows if row["workload"] == last
    ]
    return [("Seconds from the people to all tables", lines), (f"Their parts for {last}", parts)]


FIGURES = (
    Figure(
        "yaroslavtsev-6",
        "Figure 6: running time on NLTCS",
        "From the people to all tables, epsilon 1: plan, count, add noise, recover.",
        time_jobs,
        measure_time,
        lambda rows: {
            "": pictures.lines(
                rows,
                x="workload",
                y="seconds",
                looks=LOOKS,
                title="NLTCS: seconds from the people to all tables",
                size=(420, 260),
            )
        },
        time_tables,
        time_claims,
        alone=True,
    ),
)
