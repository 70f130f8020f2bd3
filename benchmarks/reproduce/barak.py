"""Barak, Chaudhuri, Dwork, Kale, McSherry, Talwar 2007: the bounds of Theorems 6 to 8, and what is measured on NLTCS.

    fourier     noise on Fourier coefficients; the linear program of section 3.2; rounded       Theorem 7
    marginals   noise on the tables; the linear program of section 4.2; rounded                 Theorem 8

Neighbours differ in one person's data, as in the paper (replace-one). The printed bounds hold with probability 1 - δ:

    (12)   2^|α| 8 |B| ln(|B|/δ)/ε + |B|                 (13)   2^|β| 8 |A| ln(Σ 2^|β|/δ)/ε + Σ 2^|β|
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.reproduce import pictures
from benchmarks.reproduce.data import nltcs
from benchmarks.reproduce.figure import Claim, Figure, Row, held, seed_of
from benchmarks.reproduce.runs import exact, planned
from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.private.engines import ExactCounts
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

BARAK = FaceValue(method="barak")
METHODS: dict[str, tuple[tuple[str, str, str], FaceValue | None]] = {
    "fourier": (("fourier", "uniform", "none"), BARAK),
    "marginals": (("workload", "uniform", "none"), BARAK),
    "covering": (("covering", "optimal", "gls"), None),
    "covering, integral": (("covering", "optimal", "gls"), FaceValue()),
    "residual (rho)": (("residual", "optimal", "gls"), None),
    "ireduct": (("ireduct:sanity-bound=30", "uniform", "gls"), None),
}
THEOREMS = {"fourier": 7, "marginals": 8}
DELTA = 0.05
EPSILONS = ("0.1", "0.3", "1", "3")


def jobs(quick: bool) -> Iterable[Row]:
    """All one-way and all two-way tables."""
    few = {"attributes": 5} if quick else {}
    for words in ("1-way", "2-way"):
        for epsilon in ("1",) if quick else EPSILONS:
            for method in METHODS:
                yield {**few, "words": words, "epsilon": epsilon, "method": method, "runs": 1 if quick else 2}


def measure(job: Row) -> Row:
    """Errors, and what the theorems are about."""
    data = nltcs().first(job.get("attributes"))
    plan, face = METHODS[job["method"]]
    design = planned(data.schema, job["words"], *plan, epsilon=job["epsilon"], neighbours="replace-one")
    counts, found = exact(design, data), []
    for run in range(job["runs"]):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed_of(job) + run))
        start = time.perf_counter()
        if face is None:
            found.append(_errors(design, made.answers(measurement), counts))
        else:
            given = make_face(made, measurement, face, Clock())
            found.append({**_errors(design, given.tables, counts), **_report(given.report)})
        found[-1]["seconds"] = time.perf_counter() - start
    merged = {name: max(each[name] for each in found) for name in found[0] if name != "mean_error"}
    for name in ("whole", "nonnegative", "consistent"):
        merged[name] = all(each[name] for each in found)
    merged["mean_error"] = float(np.mean([each["mean_error"] for each in found]))
    return {**merged, **_printed(design, job), "stand_in": data.stand_in}


def _errors(design: Design, tables: Answers, counts: ExactCounts) -> Row:
    family = design.request.marginals
    off, totals, low, fraction = [], [], 0.0, 0.0
    for batch in family.batches:
        found = tables.tables(batch.rows, batch.shape).reshape(len(batch.rows), -1)
        off.append(np.abs(found - counts.tables(batch.rows).reshape(found.shape)))
        totals.append(found.sum(axis=1))
        low, fraction = min(low, float(found.min())), max(fraction, float(np.abs(found - np.rint(found)).max()))
    sums = np.concatenate(totals)
    return {
        "largest_l1": max(float(part.sum(axis=1).max()) for part in off),
        "mean_error": float(np.mean(np.concatenate([part.ravel() for part in off]))),
        "nonnegative": low >= 0,
        "whole": fraction < 1e-6,
        "consistent": float(np.ptp(sums)) < 1e-6 * max(1.0, float(np.abs(sums).max())),
    }


def _report(report: Row) -> Row:
    """What the linear program said."""
    bound = report.get("bound", {})
    told = {name: report[name] for name in ("support", "numbers_fitted", "moved_by_rounding") if name in report}
    corrected = {"bound": "largest_l1_error", "sharper": "largest_l1_error_sharper"}
    return told | {name: bound[field] for name, field in corrected.items() if field in bound}


def _printed(design: Design, job: Row) -> Row:
    """The bounds as printed, and the scale of the noise beside that of Theorem 6."""
    if job["method"] not in THEOREMS:
        return {}
    epsilon, family = float(job["epsilon"]), design.request.marginals
    cells, size = int(family.cells.max()), len(design.request.spaces)
    if job["method"] == "marginals":
        total = int(family.cells.sum())
        return {"printed": cells * 8 * len(family) * math.log(total / DELTA) / epsilon + total, "rounding": total}
    noisy = design.budgets[np.isfinite(design.budgets)]
    return {
        "printed": cells * 8 * size * math.log(size / DELTA) / epsilon + size,
        "rounding": size,
        "scale": 1 / float(noisy.min()),
        "printed_scale": 2 * size / epsilon,
    }


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The theorems."""
    found = []
    fourier = [row for row in rows if row["method"] == "fourier"]
    scales = [row["scale"] / row["printed_scale"] for row in fourier]
    found.append(
        held(
            "Theorem 6: noise of scale 2|B|/ε on every Fourier coefficient (±1 rows) suffices",
            f"{min(scales):.0%} to {max(scales):.0%} of it suffices: not all coefficients can change at once",
            holds=max(scales) <= 1,
            correction=min(scales) < 0.99,
        )
    )
    for method, theorem in THEOREMS.items():
        own = [row for row in rows if row["method"] == method]
        printed = [row["largest_l1"] / row["printed"] for row in own]
        sharp = [row["largest_l1"] / row["bound"] for row in own]
        found.append(
            held(
                f"Theorem {theorem}: no table's L1 error exceeds the bound (δ = {DELTA:g})",
                f"the largest errors are {min(printed):.1%} to {max(printed):.1%} of the printed bound, "
                f"{min(sharp):.1%} to {max(sharp):.1%} of the corrected one",
                holds=max(sharp) <= 1 and max(printed) <= 1,
            )
        )
        moved = [row["moved_by_rounding"] / row["rounding"] for row in own]
        corrected = [row["moved_by_rounding"] / (row["numbers_fitted"] / 2) for row in own]
        found.append(
            held(
                f"{method}: rounding moves at most {'|B|' if theorem == 7 else 'Σ 2^|β|'} people",
                f"{min(moved):.0%} to {max(moved):.0%} of that; half the numbers fitted is a bound too: "
                f"{min(corrected):.0%} to {max(corrected):.0%} of it",
                holds=max(moved) <= 1,
            )
        )
        support = all(row["support"] <= row["numbers_fitted"] for row in own)
        told = "; ".join(f"{row['support']} of {row['numbers_fitted']}" for row in own[:: len(EPSILONS)])
        found.append(
            held(
                f"{method}: at most as many cells are occupied as numbers are fitted", f"such as {told}", holds=support
            )
        )
        promise = [row["whole"] and row["nonnegative"] and row["consistent"] for row in own]
        found.append(
            held(
                f"{method}: tables are consistent, non-negative and whole",
                f"in {sum(promise)} of {len(promise)} cases",
                holds=all(promise),
            )
        )
    return found


def picture(rows: Sequence[Row]) -> dict[str, object]:
    """The largest L1 errors beside the bounds."""
    shown = []
    for row in rows:
        place = {"words": row["words"], "epsilon": float(row["epsilon"])}
        shown.append({**place, "method": row["method"], "error": row["largest_l1"]})
        if row["method"] in THEOREMS:
            name = f"bound of theorem {THEOREMS[row['method']]}"
            shown += [
                {**place, "method": f"{name}, printed", "error": row["printed"]},
                {**place, "method": f"{name}, corrected", "error": row["bound"]},
            ]
    looks = {}
    for (method, theorem), colour in zip(THEOREMS.items(), (pictures.BLUE, pictures.VERMILION), strict=True):
        pale = pictures.SKY if theorem == 7 else pictures.ORANGE
        looks |= {
            f"bound of theorem {theorem}, printed": (pale, pictures.DASHED),
            f"bound of theorem {theorem}, corrected": (colour, pictures.DASHED),
            method: (colour, "solid"),
        }
    others = (
        (pictures.BLACK, "solid"),
        (pictures.BLACK, pictures.DASHED),
        (pictures.GREY, "solid"),
        (pictures.GREEN, "solid"),
    )
    looks |= dict(zip([m for m in METHODS if m not in THEOREMS], others, strict=True))
    options = {"x": "epsilon", "y": "error", "panel": "words", "looks": looks, "log_x": True}
    title = "NLTCS: the largest L1 error of a table, and its bounds (δ = 0.05)"
    return {"": pictures.lines(shown, y_title="L1 error of a table", title=title, size=(300, 260), **options)}


FIGURES = (
    Figure(
        "barak",
        "Theorems 6 to 8: bounds, rounding and whole numbers",
        "NLTCS, replace-one. The corrected bounds are those of [face values](face-values.md): the noise keeps to half "
        "of what the proof allows, and rounding moves at most half a person for each number fitted. `covering` is "
        "unbiased; `covering, integral` is its face of whole numbers.",
        jobs,
        measure,
        picture,
        lambda rows: [
            (
                "The largest L1 error of a table, the mean |error| of a cell, and the bounds",
                [
                    {
                        "tables": r["words"],
                        "epsilon": r["epsilon"],
                        "method": r["method"],
                        "largest L1": r["largest_l1"],
                        "printed bound": r.get("printed"),
                        "corrected": r.get("bound"),
                        "sharper": r.get("sharper"),
                        "mean error": r["mean_error"],
                        "moved by rounding": r.get("moved_by_rounding"),
                        "seconds": r["seconds"],
                    }
                    for r in rows
                ],
            )
        ],
        claims,
    ),
)
