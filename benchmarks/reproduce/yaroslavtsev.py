"""Yaroslavtsev, Cormode, Procopiuc, Srivastava 2013: accurate and efficient private release of datacubes and tables.

    I      noise on the full table        F, F+   on Fourier coefficients
    Q, Q+  on the tables asked for        C, C+   on clusters of them [Ding et al. 2011]

The plus stands for optimal budgets, none for uniform ones.

Tables are made consistent by least squares on the answers [section IV-C]. The error of an entry is divided by the mean
true count of its marginal, which is people / cells, and averaged over entries, or over marginals of such averages: the
paper does not say which.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import DATA, Data
from benchmarks.reproduce.figure import (
    CONFIRMED,
    CORRECTED,
    NOT_CONFIRMED,
    ROUNDED,
    Claim,
    Figure,
    Row,
    held,
    judged,
    seed_of,
)
from benchmarks.reproduce.runs import counts_for, planned, table_errors

WORKLOADS = {
    "Q1": "1-way",
    "Q1*": "star:1",
    "Q1a": "anchored:1:{first}",
    "Q2": "2-way",
    "Q2*": "star:2",
    "Q2a": "anchored:2:{first}",
}
PAPERS = {
    "I": ("identity", "uniform", "none"),
    "Q": ("workload", "uniform", "answers"),
    "Q+": ("workload", "optimal", "answers"),
    "F": ("fourier", "uniform", "none"),
    "F+": ("fourier", "optimal", "none"),
    "C": ("cluster:covers=printed", "uniform", "answers"),
    "C+": ("cluster:covers=printed", "optimal", "answers"),
}
OURS = {
    "covering": ("covering", "optimal", "gls"),
    "residual (rho)": ("residual", "optimal", "gls"),
    "ireduct": ("ireduct:sanity-bound=30", "uniform", "gls"),
}
METHODS = PAPERS | OURS
LOOKS = pictures.families(PAPERS, "+", OURS)
EPSILONS = tuple(f"{i / 10:g}" for i in range(1, 11))
FEW = {"I": 2, "ireduct": 2}
"""Runs of methods that take long, and whose errors hardly differ from run to run."""
RUNS = {"Adult": 10, "NLTCS": 30}


READINGS = {"entries": "by_entry", "marginals": "by_marginal"}
NEAR = 1.05
"""Errors whose ratio is below are alike."""


def words_of(data: Data, workload: str) -> str:
    """The workload in our words; a fixed attribute is the first."""
    return WORKLOADS[workload].format(first=data.schema.names[0])


def job_of(workload: str, method: str, quick: bool) -> Row:
    """What is asked, and how it is planned: a point that was planned otherwise is another point."""
    few = {"attributes": 4} if quick else {}
    return {"workload": workload, "method": method, "plan": list(METHODS[method]), **few}


def accuracy_jobs(data: str, quick: bool) -> Iterable[Row]:
    """Figures 4 and 5: all workloads, all methods, epsilon from 0.1 to 1."""
    for workload in ("Q1", "Q1*") if quick else WORKLOADS:
        for method in METHODS:
            runs = 1 if quick else FEW.get(method, RUNS[data])
            epsilons = ["0.1", "1"] if quick else list(EPSILONS)
            yield {**job_of(workload, method, quick), "data": data, "epsilons": epsilons, "runs": runs}


def measure_accuracy(job: Row) -> Row:
    """The mean error of an entry over the mean count of its marginal, over entries and over marginals."""
    data = DATA[job["data"]]().first(job.get("attributes"))
    found: Row = {"by_entry": [], "by_marginal": [], "stand_in": data.stand_in}
    for epsilon in job["epsilons"]:
        design = planned(data.schema, words_of(data, job["workload"]), *job["plan"], epsilon=epsilon)
        counts = counts_for(design, data)
        mean = table_errors(design, counts, runs=job["runs"], seed=seed_of(job)).mean(axis=0)
        cells = design.request.marginals.cells.astype(np.float64)
        scaled = mean * cells / data.people.num_rows
        found["by_entry"].append(float(scaled @ cells / cells.sum()))
        found["by_marginal"].append(float(scaled.mean()))
    return found


def gains(rows: Sequence[Row], workload: str, one: str, other: str, metric: str = "by_entry") -> list[float]:
    """By how much one method's error is below another's, for each epsilon."""
    at = {row["method"]: row[metric] for row in rows if row["workload"] == workload}
    return [1 - a / b for a, b in zip(at[one], at[other], strict=True)] if one in at else []


def compared(
    says: str,
    rows: Sequence[Row],
    workloads: Iterable[str],
    one: str,
    other: str,
    low: float,
    high: float,
    *,
    joined: bool = False,
) -> Claim:
    """Whether one method's error is so far below another's, by either average; with a correction if one contradicts.

    Workloads are judged one by one, or by their mean if `joined`.
    """
    present, found = {row["workload"] for row in rows}, []
    for name, metric in READINGS.items():
        each = {w: gains(rows, w, one, other, metric) for w in workloads if w in present}
        if joined:
            each = {f"mean of {', '.join(each)}": [gain for own in each.values() for gain in own]}
        claim = judged(says, each, low, high)
        found.append(Claim(says, claim.verdict, f"over {name}, {claim.measured}"))
    verdicts = [claim.verdict for claim in found]
    verdict = min(verdicts, key=(CONFIRMED, CORRECTED, NOT_CONFIRMED).index)
    if verdict == CONFIRMED and NOT_CONFIRMED in verdicts:
        verdict = CORRECTED
    return Claim(says, verdict, "; ".join(claim.measured for claim in found))


def claims_adult(rows: Sequence[Row]) -> list[Claim]:
    """What section V-A says of Adult."""
    at = {(row["workload"], row["method"]): row["by_entry"] for row in rows}
    workloads = [w for w in WORKLOADS if (w, "I") in at]
    best = {w: min(PAPERS, key=lambda m, w=w: _typical(at[w, m])) for w in workloads}
    drowned = {w: sum(error > 0.5 for error in at[w, "I"]) for w in workloads}
    epsilons = len(rows[0]["epsilons"])
    fourier = {w: [f / q - 1 for f, q in zip(at[w, "F+"], at[w, "Q+"], strict=True)] for w in workloads}
    return [
        compared("Adult, Q1*: Q+ is 20 to 25% more accurate than Q", rows, ["Q1*"], "Q+", "Q", 0.20, 0.25),
        held(
            "Adult: noise on base counts (I) is never effective",
            "; ".join(
                f"{w}: {_typical(at[w, 'I']) / _typical(at[w, best[w]]):.3g} times the error of {best[w]}"
                for w in workloads
            ),
            holds="I" not in best.values(),
        ),
        held(
            "Adult: the noise of I is comparable to the data in all cases (error above half the mean count)",
            "; ".join(f"{w}: for {n} of {epsilons} epsilons" for w, n in drowned.items()),
            holds=any(drowned.values()),
            correction=min(drowned.values()) < epsilons,
        ),
        compared("Adult: non-uniform budgets improve F", rows, WORKLOADS, "F+", "F", ROUNDED, 1.0),
        judged("Adult: F+ is inferior to other strategies (Q+)", fourier, 0.0, math.inf, of="higher"),
    ]


def claims_nltcs(rows: Sequence[Row]) -> list[Claim]:
    """What section V-B says of NLTCS."""
    at = {(row["workload"], row["method"]): row["by_entry"] for row in rows}
    workloads = [w for w in WORKLOADS if (w, "I") in at]
    best = {w: min(PAPERS, key=lambda m, w=w: _typical(at[w, m])) for w in workloads}
    ones = [w for w in workloads if w.startswith("Q1")]
    lead = {w: _typical(at[w, "I"]) / _typical(at[w, best[w]]) for w in workloads}
    behind = {w: min(_typical(at[w, m]) for m in ("C", "C+")) / _typical(at[w, best[w]]) for w in ones}
    grows = all(lead[a] > lead[b] for a, b in (("Q1*", "Q2*"), ("Q1a", "Q2a")) if b in lead)
    return [
        compared("NLTCS, Q1* and Q2*: F+ is 30 to 35% below F", rows, ["Q1*", "Q2*"], "F+", "F", 0.30, 0.35),
        compared("NLTCS: C+ is about 5% below C, on average", rows, WORKLOADS, "C+", "C", 0.05, 0.05, joined=True),
        held(
            "NLTCS: clustering has the least error at k = 1",
            "; ".join(f"{w}: {best[w]} has the least, C and C+ {behind[w]:.2f} times that" for w in ones),
            holds=all(value < NEAR for value in behind.values()),
            correction=any(best[w] not in ("C", "C+") for w in ones),
        ),
        held(
            "NLTCS: I is not competitive at k = 1, and becomes more accurate with the degree of marginals",
            "; ".join(f"{w}: {ratio:.3g} times the least error" for w, ratio in lead.items()),
            holds=grows and all(lead[w] > 1 for w in ones),
        ),
    ]


def _typical(errors: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, errors)) / len(errors))


def accuracy_picture(rows: Sequence[Row]) -> dict[str, object]:
    """Errors against epsilon, a panel for each workload."""
    shown = [
        {"workload": row["workload"], "method": row["method"], "epsilon": float(epsilon), "error": error}
        for row in rows
        for epsilon, error in zip(row["epsilons"], row["by_entry"], strict=True)
    ]
    title = f"{rows[0]['data']}: mean error of an entry / mean count of its marginal (dashed: uniform budgets)"
    options = {"x": "epsilon", "y": "error", "panel": "workload", "looks": LOOKS, "title": title, "log_x": True}
    return {"": pictures.lines(shown, **options)}


def accuracy_tables(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Errors at one epsilon, and what today's default gains."""
    epsilons = rows[0]["epsilons"]
    middle = len(epsilons) // 2
    found = []
    for name, metric in READINGS.items():
        lines = []
        for workload in dict.fromkeys(row["workload"] for row in rows):
            at = {row["method"]: row[metric][middle] for row in rows if row["workload"] == workload}
            best = min(at[method] for method in PAPERS)
            lines.append({"workload": workload, **at, "best of the paper / covering": best / at["covering"]})
        found.append((f"Errors at epsilon {epsilons[middle]}, averaged over {name}", lines))
    return found


FIGURES = tuple(
    Figure(
        f"yaroslavtsev-{number}",
        f"Figure {number}: accuracy on {data}",
        "The mean |error| of an entry over the mean true count of its marginal. Q1* has all one-way tables and half of "
        "the two-way tables, Q1a those two-way tables that contain the first attribute; Q2, Q2* and Q2a have one "
        f"attribute more. {RUNS[data]} runs, {FEW['I']} of I and `ireduct`, which makes relative errors of cells "
        "small with a sanity bound of 30 people: another aim than this metric.",
        lambda quick, data=data: accuracy_jobs(data, quick),
        measure_accuracy,
        accuracy_picture,
        accuracy_tables,
        claims,
    )
    for number, data, claims in ((4, "Adult", claims_adult), (5, "NLTCS", claims_nltcs))
)
