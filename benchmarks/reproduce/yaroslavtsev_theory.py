"""Yaroslavtsev et al. 2013, what the paper computes and does not measure: the example of Figure 1, and Table I."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import comb, log, sqrt

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.figure import CONFIRMED, CORRECTED, Claim, Figure, Row, held, judged, seed_of
from benchmarks.reproduce.runs import Nobody, planned, table_errors
from hushcube import Attribute, Schema
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.strategy import objective_value

HALVES = "half weights"
STEPS = {
    "uniform noise on both tables": (("workload", "uniform", "none"), 48.0),
    "budgets 4/9 and 5/9": (("workload", "optimal", "none"), 46.17),
    HALVES: (("workload", "optimal", "none"), 34.6),
    "least squares": (("workload", "optimal", "gls"), None),
    "covering": (("covering", "optimal", "gls"), None),
    "residual (rho)": (("residual", "optimal", "gls"), None),
}
"""The steps of the introduction, and the paper's figures."""
EPSILON = "0.05"
"""Small, so that whole-numbered noise has the variance of the paper's continuous noise."""
WITHIN = 0.1
"""How far variances of two thousand draws may be off: about three standard errors."""


def bits(d: int) -> Schema:
    """Binary attributes A, B, ..."""
    return Schema(tuple(Attribute(name=chr(ord("A") + i), codes=2) for i in range(d)), f"bits{d}")


def measure_example(job: Row) -> Row:
    """The sum of the variances of the six answers, times epsilon²: by formula, and from draws."""
    schema, epsilon = bits(3), float(EPSILON)
    design = planned(schema, "A,A*B", *STEPS[job["method"]][0], epsilon=EPSILON)
    runs, seed = job["runs"], seed_of(job)
    if job["method"] == HALVES:
        squares = sum(_halves(design, seed + run) for run in range(runs)) / runs
        return {"measured": squares * epsilon**2}
    mean = table_errors(design, Nobody(schema), runs=runs, seed=seed, power=2).mean(axis=0)
    return {
        "formula": objective_value(design) * epsilon**2,
        "measured": float(mean @ design.request.marginals.cells) * epsilon**2,
    }


def _halves(design, seed: int) -> float:
    """Every answer is half of its own and half of what the other table says about it."""
    made, measurement = draw(design, Nobody(design.schema), entropy=SeededEntropy(seed))
    answers = made.answers(measurement)
    a = answers.tables(np.array([[0]], np.int32), (2,))[0]
    ab = answers.tables(np.array([[0, 1]], np.int32), (2, 2))[0]
    both = (a + ab.sum(axis=1)) / 2, (ab + a[:, None] - ab[:, ::-1]) / 2
    return float(sum(np.square(part).sum() for part in both))


def example_claims(rows: Sequence[Row]) -> list[Claim]:
    """The figures of the introduction."""
    found = {row["method"]: row["measured"] for row in rows}
    claims = [
        held(
            f"The six variances of {name} sum to {says:g}/epsilon²",
            f"{found[name]:.4g}",
            holds=abs(found[name] / says - 1) < WITHIN,
        )
        for name, (_, says) in STEPS.items()
        if says is not None
    ]
    gain = 1 - found[HALVES] / found["uniform noise on both tables"]
    return [*claims, judged("Budgets and half weights reduce the variance by 28%", {"": [gain]}, 0.28, 0.28)]


EXAMPLE = Figure(
    "yaroslavtsev-1",
    "Figure 1: the marginals A and AB of three bits",
    "The total variance of the six answers, times epsilon², at epsilon 0.05. The half weights are the introduction's: "
    "its answers are not consistent, and least squares has better weights. Best of all is to spend everything on AB.",
    lambda quick: [{"method": method, "runs": 400 if quick else 2000} for method in STEPS],
    measure_example,
    tables=lambda rows: [
        (
            "Total variance times epsilon²",
            [
                {
                    "step": row["method"],
                    "paper": STEPS[row["method"]][1] or "",
                    "formula": row.get("formula"),
                    "measured": row["measured"],
                }
                for row in rows
            ],
        )
    ],
    claims=example_claims,
)

Bound = Callable[[int, int], float]
DELTA = "1e-6"
SPREAD = log(1 / float(DELTA))
METHODS = {
    "I": ("identity", "uniform", "none"),
    "Q": ("workload", "uniform", "none"),
    "F": ("fourier", "uniform", "none"),
    "F+": ("fourier", "optimal", "none"),
    "covering": ("covering", "optimal", "gls"),
    "residual": ("residual", "optimal", "gls"),
}
BOUNDS: dict[tuple[str, bool], Bound] = {  # without their constants, at epsilon 1; True is (epsilon, delta)
    ("I", False): lambda d, k: sqrt(2 ** (d + k)),
    ("Q", False): lambda d, k: 2**k * comb(d, k),
    ("F", False): lambda d, k: k * comb(d, k) * sqrt(2**k),
    ("F+", False): lambda d, k: k * sqrt(comb(d, k) * comb(d + k, k)),
    ("lower bound", False): lambda d, k: sqrt(comb(d, k)),
    ("I", True): lambda d, k: sqrt(2 ** (d + k) * SPREAD),
    ("Q", True): lambda d, k: 2**k * sqrt(comb(d, k) * SPREAD),
    ("F", True): lambda d, k: sqrt(k * 2**k * comb(d, k) * SPREAD),
    ("F+", True): lambda d, k: sqrt(k * comb(d + k, k) * SPREAD),
    ("lower bound", True): lambda d, k: sqrt(comb(d, k)),
}
PURE, APPROXIMATE = "epsilon = 1", "epsilon = 1, delta = 1e-6"
GROWTH = 1.1
"""By how much the ratio of noise to bound may grow with d and still be called bounded."""


RUNS = {1: 300, 2: 60, 3: 30}
"""By k: the more tables there are, the fewer runs give a mean."""


def bound_jobs(quick: bool) -> Iterable[Row]:
    """All k-way marginals of d bits."""
    for guarantee in (PURE, APPROXIMATE):
        for k in (1, 2) if quick else (1, 2, 3):
            for d in (4, 6) if quick else (8, 10, 12, 14, 16):
                for method in METHODS:
                    if (method, guarantee) != ("covering", APPROXIMATE):
                        yield {
                            "guarantee": guarantee,
                            "k": k,
                            "d": d,
                            "method": method,
                            "runs": 10 if quick else RUNS[k],
                        }


def measure_bound(job: Row) -> Row:
    """The expected L1 noise of a marginal."""
    schema, delta = bits(job["d"]), DELTA if job["guarantee"] == APPROXIMATE else None
    design = planned(schema, f"{job['k']}-way", *METHODS[job["method"]], epsilon="1", delta=delta)
    mean = table_errors(design, Nobody(schema), runs=job["runs"], seed=seed_of(job)).mean()
    return {"noise": float(mean) * 2 ** job["k"]}


def bound_claims(rows: Sequence[Row]) -> list[Claim]:
    """Whether noise grows no faster than its bound, and what the text says about the methods."""
    at = {(r["guarantee"], r["method"], r["k"], r["d"]): r["noise"] for r in rows}
    ks, ds = sorted({r["k"] for r in rows}), sorted({r["d"] for r in rows})
    small, large = ds[0], ds[-1]
    claims = []
    for guarantee in (PURE, APPROXIMATE):
        growth, told = [], []
        for method in ("I", "Q", "F", "F+"):
            bound = BOUNDS[method, guarantee == APPROXIMATE]
            over = {d: [at[guarantee, method, k, d] / bound(d, k) for k in ks] for d in ds}
            growth += [b / a for a, b in zip(over[small], over[large], strict=True)]
            told.append(f"{method}: {min(map(min, over.values())):.2g} to {max(map(max, over.values())):.2g}")
        claims.append(
            held(
                f"{guarantee}: noise is at most a constant times its bound in Table I",
                f"noise / bound, {'; '.join(told)}; from d = {small} to {large} it grows by at most {max(growth):.2f}",
                holds=max(growth) < GROWTH,
            )
        )
    for guarantee in (PURE, APPROXIMATE):
        gains = [1 - at[guarantee, "F+", k, d] / at[guarantee, "F", k, d] for k in ks for d in ds]
        told = f"{min(gains):.0%} to {max(gains):.0%} below uniform budgets"
        claims.append(
            held(f"{guarantee}: non-uniform budgets improve the Fourier strategy", told, holds=min(gains) > 0)
        )
    rise = {m: [at[PURE, m, k, large] / at[PURE, m, k, small] for k in ks] for m in ("I", "Q")}
    exponential = 2 ** ((large - small) / 2)
    told = "; ".join(f"{m}: {min(r):.3g} to {max(r):.3g} times" for m, r in rise.items())
    both = all(abs(ratio / exponential - 1) < WITHIN for each in rise.values() for ratio in each)
    claims.append(
        Claim(
            "The noise of I and of Q grows exponentially with d",
            CONFIRMED if both else CORRECTED,
            f"from d = {small} to {large}, where 2^(d/2) grows {exponential:g} times, {told}: that of Q is comb(d, k)",
        )
    )
    return claims


def bound_picture(rows: Sequence[Row]) -> dict[str, object]:
    """Noise against d, a panel for each k and guarantee, with the lower bound."""
    shown = [{**row, "panel": f"{row['guarantee']}: {row['k']}-way"} for row in rows]
    for guarantee, k, d in dict.fromkeys((row["guarantee"], row["k"], row["d"]) for row in rows):
        least = BOUNDS["lower bound", guarantee == APPROXIMATE](d, k)
        shown.append({"panel": f"{guarantee}: {k}-way", "d": d, "method": "lower bound", "noise": least})
    looks = pictures.families(("I", "Q", "F", "F+"), "+", ("covering", "residual"))
    looks["lower bound"] = (pictures.SKY, pictures.DASHED)
    title = "All k-way marginals of d bits: expected L1 noise of a marginal (lower bound without its constant)"
    options = {"x": "d", "y": "noise", "panel": "panel", "columns": 3, "looks": looks, "title": title}
    return {"": pictures.lines(shown, **options)}


BOUND = Figure(
    "yaroslavtsev-table-1",
    "Table I: bounds on the noise of all k-way marginals",
    "The expected L1 norm of the noise of a marginal of d bits, without recovery as in the table, beside the table's "
    "bounds. Under epsilon alone `residual` is at rho = 1/2.",
    bound_jobs,
    measure_bound,
    bound_picture,
    lambda rows: [
        (
            f"Expected L1 noise of a marginal, d = {max(r['d'] for r in rows)}",
            [
                {
                    "guarantee": guarantee,
                    "k": k,
                    **{
                        r["method"]: r["noise"]
                        for r in rows
                        if (r["guarantee"], r["k"], r["d"]) == (guarantee, k, max(r["d"] for r in rows))
                    },
                }
                for guarantee in (PURE, APPROXIMATE)
                for k in sorted({r["k"] for r in rows})
            ],
        )
    ],
    bound_claims,
)

FIGURES = (EXAMPLE, BOUND)
