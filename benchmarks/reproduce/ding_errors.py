"""Ding, Winslett, Han, Li 2011: the methods of section 6, and the errors of the cubes that they publish.

    All     noise on every cuboid                         Base    on the finest one, the others are summed from it
    BMax    on those that bound the largest variance      PMost   on those that make most cuboids precise
    AllC, BMaxC, PMostC   the same, made consistent by least squares

All cuboids of a table are published. The error of a cuboid is the mean |error| of its cells; reported are the largest
and the average over cuboids, each a mean over runs. theta' is the bound that BMax finds, theta0 the variance up to
which PMost's cuboids are precise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import Data, adult_and_more, even
from benchmarks.reproduce.figure import Claim, Row, held, seed_of
from benchmarks.reproduce.runs import Nobody, counts_for, planned, table_errors
from hushcube import Schema
from hushcube.designs.design import Design
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats

PAPERS = {
    "All": ("all-cuboids", "uniform", "none"),
    "AllC": ("all-cuboids", "uniform", "ols"),
    "Base": ("base", "uniform", "none"),
    "BMax": ("bmax", "uniform", "none"),
    "BMaxC": ("bmax", "uniform", "ols"),
    "PMost": ("pmost:threshold={share}%", "uniform", "none"),
    "PMostC": ("pmost:threshold={share}%", "uniform", "ols"),
}
OURS = {"covering": ("covering", "optimal", "gls"), "residual (rho)": ("residual", "optimal", "gls")}
UNEQUAL = {
    "BMaxC, unequal budgets": ("bmax:cover=cheapest", "optimal", "gls"),
    "BMaxC for the maximum": ("bmax:cover=cheapest", "optimal", "gls"),
    "PMostC, unequal budgets": ("pmost:threshold={share}%", "optimal", "gls"),
    "covering for the maximum": ("covering", "optimal", "gls"),
}
ADAPTIVE = {"ireduct": ("ireduct:sanity-bound=30", "uniform", "gls")}
METHODS = PAPERS | OURS | UNEQUAL | ADAPTIVE
LOOKS = pictures.families(PAPERS, "C", (*OURS, *ADAPTIVE))


def data_of(job: Row) -> Data:
    """Adult's first dimensions, or those with two more."""
    return adult_and_more().first(job.get("dimensions", 8))


def schema_of(job: Row) -> Schema:
    """What a job's cube is of."""
    return even(job.get("dimensions", 7), job["cardinality"]) if "cardinality" in job else data_of(job).schema


def design_of(job: Row) -> Design:
    """A method on all cuboids."""
    strategy, budgets, recovery = METHODS[job["method"]]
    return planned(
        schema_of(job),
        "cube",
        strategy.format(share=job.get("share", 50)),
        budgets,
        recovery,
        epsilon=job.get("epsilon", "1"),
        objective="max" if job["method"].endswith("maximum") else "total",
    )


def measure(job: Row) -> Row:
    """The errors of all cuboids of one method."""
    stand_in = "cardinality" not in job and adult_and_more().stand_in
    try:
        design = design_of(job)
    except BadInput as problem:  # a threshold that no cuboid can meet while all are answered
        return {"refused": problem.problem, "stand_in": stand_in}
    counts = Nobody(design.schema) if "cardinality" in job else counts_for(design, data_of(job))
    errors = table_errors(design, counts, runs=job["runs"], seed=seed_of(job))
    return {**summary(design, errors), "stand_in": stand_in}


def summary(design: Design, errors: Floats) -> Row:
    """What is shown of the cuboids' errors."""
    sizes = np.array([len(marginal) for marginal in design.request.marginals])
    return {
        "max_error": float(errors.max(axis=1).mean()),
        "average_error": float(errors.mean()),
        "by_dimension": [float(errors[:, sizes == n].max(axis=1).mean()) for n in range(sizes.max() + 1)],
        "measured": design.groups,
        "precise": len(design.details.get("precise", ())),
    }


def jobs(vary: Iterable[Row], runs: int, methods: Iterable[str] = (*PAPERS, *OURS)) -> Iterable[Row]:
    """Every method in every place, which may have its own number of runs."""
    methods = list(methods)
    return ({"runs": runs, **place, "method": method} for place in vary for method in methods)


def places(rows: Sequence[Row], across: str) -> dict[Any, dict[str, Row]]:
    """Rows by place and method."""
    found: dict[Any, dict[str, Row]] = {}
    for row in rows:
        if "refused" not in row:
            found.setdefault(row[across], {})[row["method"]] = row
    return found


def best_two(rows: Sequence[Row], across: str, says: str, *, always: bool) -> Claim:
    """Whether BMaxC and PMostC are the best two of the paper's methods always; or one of them the best, mostly."""
    told, right = [], []
    for place, here in places(rows, across).items():
        for of, field in (("largest", "max_error"), ("average", "average_error")):
            two = sorted((m for m in PAPERS if m in here), key=lambda m, f=field, here=here: here[m][f])[:2]
            right.append(set(two) == {"BMaxC", "PMostC"} if always else two[0] in ("BMaxC", "PMostC"))
            if not right[-1]:
                told.append(f"{across} {place}, {of}: {' and '.join(two) if always else two[0]}")
    text = f"in {sum(right)} of {len(right)} cases" + (f"; else {', '.join(told)}" if told else "")
    return held(says, text, holds=2 * sum(right) > len(right), correction=always and not all(right))


def two_panels(rows: Sequence[Row], x: str, title: str, *, log_x: bool = False, x_title: str = "") -> Row:
    """The largest and the average error side by side."""
    shown = [
        {
            "method": row["method"],
            "of": of,
            "error": row[field],
            x: row[x] if isinstance(row[x], int) else float(row[x]),
        }
        for of, field in (("largest error of a cuboid", "max_error"), ("average error of a cuboid", "average_error"))
        for row in rows
        if "refused" not in row
    ]
    options = {"x": x, "y": "error", "panel": "of", "columns": 2, "title": title, "log_x": log_x, "looks": LOOKS}
    return {"": pictures.lines(shown, size=(300, 240), x_title=x_title, **options)}


def error_tables(rows: Sequence[Row], across: str) -> list[tuple[str, list[Row]]]:
    """A line for each place, a column for each method."""
    at = places(rows, across)
    return [
        (
            f"The {of} error of a cuboid",
            [{across: place, **{m: row[field] for m, row in here.items()}} for place, here in at.items()],
        )
        for of, field in (("largest", "max_error"), ("average", "average_error"))
    ]
