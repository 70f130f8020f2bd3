"""Ding et al. 2011: the experiments on errors, I to III and V, and what section 7.2 says [ding_errors.py]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.ding_errors import (
    ADAPTIVE,
    LOOKS,
    OURS,
    PAPERS,
    UNEQUAL,
    best_two,
    error_tables,
    jobs,
    measure,
    places,
    schema_of,
    two_panels,
)
from benchmarks.reproduce.figure import Claim, Figure, Row, held, judged
from benchmarks.reproduce.runs import planned

PAIRS = ("All", "BMax", "PMost")
EPSILONS = ("0.25", "0.5", "1", "2")
CARDINALITIES = {2: 60, 4: 20, 6: 6, 8: 3, 10: 3}
"""With the runs: the fewer cells a cube has, the more runs give a mean."""
SHARES = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


def consistency(rows: Sequence[Row], across: str) -> Claim:
    """How much consistency cuts errors."""
    at = places(rows, across).values()
    cuts = {
        f"{one}, {of}": [1 - here[f"{one}C"][field] / here[one][field] for here in at if one in here]
        for one in PAIRS
        for of, field in (("largest", "max_error"), ("average", "average_error"))
    }
    return judged("Consistency cuts errors by 30 to 50%", cuts, 0.3, 0.5)


def shares_of(rows: Sequence[Row], across: str) -> list[Claim]:
    """BMaxC's and PMostC's errors against All's and AllC's: 1 - share is what they gain."""
    at, claims = places(rows, across).values(), []
    for other, low, high in (("All", 0.05, 0.30), ("AllC", 0.20, 0.50)):
        cuts = {
            f"{one}, {of}": [1 - here[one][field] / here[other][field] for here in at if one in here]
            for one in ("BMaxC", "PMostC")
            for of, field in (("largest", "max_error"), ("average", "average_error"))
        }
        says = f"BMaxC and PMostC have {low:.0%} to {high:.0%} of the errors of {other}"
        claims.append(judged(says, cuts, 1 - high, 1 - low, of="share"))
    return claims


def order_claims(rows: Sequence[Row], across: str) -> list[Claim]:
    """Who is best and worst."""
    at = places(rows, across).values()
    worst = {
        field: [max((*PAIRS, "Base"), key=lambda m, here=here: here[m][field]) for here in at]
        for field in ("max_error", "average_error")
    }
    more = {
        field: float(np.mean([here["PMost"][field] / here["BMax"][field] for here in at])) for field in worst
    }  # errors are in proportion to 1/epsilon, so that the ratios are of one kind
    loose, average = worst["max_error"], worst["average_error"]
    return [
        held("Base has the largest maximum error", f"the largest: {_told(loose)}", holds=set(loose) == {"Base"}),
        held("All has the largest average error", f"the largest: {_told(average)}", holds=set(average) == {"All"}),
        held(
            "BMax has the smaller maximum, PMost the smaller average",
            f"PMost has {more['max_error']:.2f} times BMax's maximum and {more['average_error']:.2f} times its average",
            holds=more["max_error"] > 1 > more["average_error"],
        ),
    ]


def _told(names: Sequence[str]) -> str:
    return ", ".join(f"{name} ({names.count(name)} of {len(names)})" for name in dict.fromkeys(names))


def measure_threshold(job: Row) -> Row:
    """Also how many cuboids are precise where only those are published [Problem 2]."""
    found = measure(job)
    if job["method"] == "PMost":
        only, schema = f"pmost:publish=precise,threshold={job['share']}%", schema_of(job)
        even = planned(schema, "cube", only, "uniform", "none", epsilon="1")
        priced = planned(schema, "cube", f"{only},cover=cheapest", "optimal", "none", epsilon="1")
        found["precise_only"], found["precise_priced"] = (len(plan.details["precise"]) for plan in (even, priced))
    return found


def threshold_claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about theta0."""
    at = {row["share"]: row for row in rows if row["method"] == "PMost" and "refused" not in row}
    counts = [at[share]["precise"] for share in sorted(at)]
    cubes = 2 ** len(schema_of(rows[0]))
    refused = sorted({row["share"] for row in rows if "refused" in row})
    told = f"{counts[0]} at {min(at)}% to {counts[-1]} at {max(at)}%"
    if refused:
        told += f"; below, at {', '.join(f'{s}%' for s in refused)}, none can be while all are answered"
    rises = all(a <= b for a, b in pairwise(counts))
    claims = [held("More cuboids are precise as theta0 rises", told, holds=rises, correction=bool(refused))]
    if 100 in at:
        exact = f"{at[100]['precise']} of {cubes}"
        claims.append(held("All cuboids are precise at theta0 = theta'", exact, holds=at[100]["precise"] == cubes))
    errors = [at[share]["average_error"] for share in sorted(at)]
    both = sorted(errors) in (errors, errors[::-1])
    told = ", ".join(f"{share}%: {at[share]['average_error']:.3g}" for share in sorted(at))
    return [
        *claims,
        held("Errors do not change monotonically with theta0", f"average of PMost: {told}", holds=not both),
    ]


def dimension_rows(rows: Sequence[Row]) -> list[Row]:
    """The largest error by dimensionality."""
    return [
        {"method": row["method"], "dimension": m, "error": error}
        for row in rows
        for m, error in enumerate(row["by_dimension"])
    ]


def dimension_claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about cuboids of m dimensions."""
    at = {row["method"]: row["by_dimension"] for row in rows}
    top = len(at["All"])
    cuts = {one: max(1 - c / p for c, p in zip(at[f"{one}C"], at[one], strict=True)) for one in PAIRS}
    best = [min(PAPERS, key=lambda m, d=d: at[m][d]) for d in range(top)]
    worst = [max(PAPERS, key=lambda m, d=d: at[m][d]) for d in range(top)]
    low, middle = range(min(3, top)), range(1, min(5, top))
    return [
        held(
            "Consistency reduces errors by up to 70% where few dimensions are left",
            "; ".join(f"{one}: up to {cut:.0%}" for one, cut in cuts.items()),
            holds=max(cuts.values()) >= 0.65,
            correction=max(cuts.values()) > 0.75,
        ),
        held(
            "Base is the worst for m < 3",
            "; ".join(f"m = {d}: {worst[d]}" for d in low),
            holds=any(worst[d] == "Base" for d in low),
            correction=any(worst[d] != "Base" for d in low),
        ),
        held(
            "BMaxC is the best for 0 < m < 5",
            "; ".join(f"m = {d}: {best[d]}" for d in middle),
            holds=any(best[d] == "BMaxC" for d in middle),
            correction=any(best[d] != "BMaxC" for d in middle),
        ),
    ]


def cardinality_claims(rows: Sequence[Row]) -> list[Claim]:
    """What the paper says about cardinalities."""
    at = places(rows, "cardinality")
    few, many = at[min(at)], at[max(at)]
    growth = {m: many[m]["max_error"] / few[m]["max_error"] for m in ("Base", "All")}
    return [
        held(
            "Base deteriorates with the cardinality, All hardly changes",
            "largest error grows " + ", ".join(f"{times:.3g} times for {m}" for m, times in growth.items()),
            holds=growth["Base"] > 2 and growth["All"] < 1.25,
        ),
        best_two(rows, "cardinality", "BMaxC or PMostC is the best in most cases", always=False),
    ]


def unequal_claims(rows: Sequence[Row]) -> list[Claim]:
    """Section 7.2."""
    at = {row["method"]: row for row in rows}
    best = {  # whichever is asked for
        "BMaxC, largest": ("BMaxC for the maximum", "BMaxC", "max_error"),
        "BMaxC, average": ("BMaxC, unequal budgets", "BMaxC", "average_error"),
        "PMostC, largest": ("PMostC, unequal budgets", "PMostC", "max_error"),
        "PMostC, average": ("PMostC, unequal budgets", "PMostC", "average_error"),
    }
    cuts = {name: [1 - at[one][field] / at[other][field]] for name, (one, other, field) in best.items()}
    return [judged("Unequal noise reduces the errors of BMaxC and PMostC by 10%", cuts, 0.1, 0.1)]


def _adult(quick: bool) -> Row:
    return {"dimensions": 4} if quick else {}


FIGURES = (
    Figure(
        "ding-1",
        "Experiment I (figure 3): the privacy parameter",
        "Adult's eight dimensions, 256 cuboids of 8.2 million cells; theta0 is half of theta'.",
        lambda quick: jobs(
            ({**_adult(quick), "epsilon": e} for e in (EPSILONS[2:] if quick else EPSILONS)), 1 if quick else 6
        ),
        measure,
        lambda rows: two_panels(rows, "epsilon", "All cuboids of Adult (dashed: without consistency)", log_x=True),
        lambda rows: error_tables(rows, "epsilon"),
        lambda rows: [consistency(rows, "epsilon"), *shares_of(rows, "epsilon"), *order_claims(rows, "epsilon")],
    ),
    Figure(
        "ding-2",
        "Experiment II (figure 4): the threshold of PMost",
        "Adult, epsilon 1; theta0 from a tenth of theta' to all of it. All cuboids are answered, as in the paper.",
        lambda quick: jobs(
            ({**_adult(quick), "share": s} for s in (SHARES[4::5] if quick else SHARES)),
            1 if quick else 3,
            ("PMost", "PMostC"),
        ),
        measure_threshold,
        lambda rows: two_panels(
            rows,
            "share",
            "Adult: the threshold of PMost (dashed: without consistency)",
            x_title="theta0, percent of theta'",
        ),
        lambda rows: [
            *error_tables(rows, "share"),
            (
                "Measured and precise cuboids",
                [
                    {
                        "share": r["share"],
                        "measured": r.get("measured"),
                        "precise": r.get("precise"),
                        "precise if only they are published": r["precise_only"],
                        "with unequal budgets": r["precise_priced"],
                        **({"refused": r["refused"]} if "refused" in r else {}),
                    }
                    for r in rows
                    if r["method"] == "PMost"
                ],
            ),
        ],
        threshold_claims,
    ),
    Figure(
        "ding-3",
        "Experiment III (figure 5): cuboids of different dimensionality",
        "Adult, epsilon 1: the largest error of a cuboid of m dimensions. `ireduct` makes relative errors small, "
        "with a sanity bound of 30 people; it takes a minute, and ran once.",
        lambda quick: (*jobs([_adult(quick)], 1 if quick else 8), *jobs([_adult(quick)], 1, ADAPTIVE)),
        measure,
        lambda rows: {
            "": pictures.lines(
                dimension_rows(rows),
                x="dimension",
                y="error",
                looks=LOOKS,
                y_title="largest error of a cuboid",
                title="Adult: errors by the dimensionality of cuboids (dashed: without consistency)",
                size=(420, 280),
            )
        },
        lambda rows: [
            (
                "The largest error of a cuboid of m dimensions",
                [
                    {"method": row["method"], **{f"m = {m}": e for m, e in enumerate(row["by_dimension"])}}
                    for row in rows
                ],
            )
        ],
        dimension_claims,
    ),
    Figure(
        "ding-5",
        "Experiment V (figure 7): the cardinality of dimensions",
        "Seven dimensions of equal cardinality, epsilon 1. The paper's 10^8 uniform rows change nothing: errors are "
        "those on empty tables.",
        lambda quick: jobs(
            ({"dimensions": 4, "cardinality": c} for c in (2, 4))
            if quick
            else ({"cardinality": c, "runs": runs} for c, runs in CARDINALITIES.items()),
            1,
        ),
        measure,
        lambda rows: two_panels(rows, "cardinality", "Seven equal dimensions (dashed: without consistency)"),
        lambda rows: error_tables(rows, "cardinality"),
        cardinality_claims,
    ),
    Figure(
        "ding-7",
        "Section 7.2: unequal noise",
        "Adult, epsilon 1. Budgets that differ from cuboid to cuboid, with weighted least squares: BMaxC's cuboids are "
        "then chosen by their price (`bmax:cover=cheapest`). `for the maximum`: asked for the least maximum.",
        lambda quick: jobs([_adult(quick)], 1 if quick else 8, ("BMaxC", "PMostC", *UNEQUAL, *OURS)),
        measure,
        tables=lambda rows: [
            (
                "Errors of cuboids",
                [
                    {
                        "method": r["method"],
                        "measured": r["measured"],
                        "largest": r["max_error"],
                        "average": r["average_error"],
                    }
                    for r in rows
                ],
            )
        ],
        claims=unequal_claims,
    ),
)
