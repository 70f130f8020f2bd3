"""What people look at before they spend a budget: the strategies compared, and the expected error of each table.

The sum of a measure is resolution * (sum of its integers) + center * (count); both are noisy, and independently so.
The error of an average depends on how many people there are, so that nothing can be said of it beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.design import Design
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats
from hushcube.model.workload import COUNTED, Quantity
from hushcube.strategies import ALL
from hushcube.strategies.strategy import objective_value

if TYPE_CHECKING:
    from hushcube.planning.plan import Plan
    from hushcube.planning.planner import Ranking


@dataclass(frozen=True)
class ComparedStrategy:
    """One line of a comparison: a strategy at its best, with those that come to the same."""

    names: tuple[str, ...]
    """The strategy, then its equals."""
    measures: str
    """What it measures, in words."""
    design: Design
    """Its best variant."""
    is_chosen: bool
    total_variance: float
    typical_error: float
    """The root mean square of all cells' standard errors."""
    largest_error: float
    """The largest standard error of a cell."""
    times_best: float
    """The objective, over that of the first line."""


def compared_strategies(comparison: Ranking) -> list[ComparedStrategy]:
    """A line for each distinct strategy, the best first."""
    best: dict[str, Design] = {}
    for design in (comparison.chosen, *(candidate.plan for candidate in comparison.candidates)):
        if design.strategy not in best or objective_value(design) < objective_value(best[design.strategy]):
            best[design.strategy] = design
    joined: dict[tuple[str, str], list[Design]] = {}
    for design in best.values():
        joined.setdefault(_result(design), []).append(design)
    groups = sorted(joined.values(), key=lambda equals: objective_value(equals[0]))
    least = objective_value(groups[0][0])
    return [_compared(equals, comparison.chosen, least) for equals in groups]


def merged_variants(comparison: Ranking) -> list[list[Design]]:
    """All plans, the best first; variants of one strategy that come to the same are together."""
    groups: dict[tuple[str, ...], list[Design]] = {}
    for candidate in comparison.candidates:
        groups.setdefault((candidate.plan.strategy, *_result(candidate.plan)), []).append(candidate.plan)
    return sorted(groups.values(), key=lambda equals: objective_value(equals[0]))


def _result(design: Design) -> tuple[str, str]:
    """What a plan comes to, to nine digits."""
    return f"{design.errors.weighted_variance():.9g}", f"{objective_value(design):.9g}"


def _compared(equals: list[Design], chosen: Design, least: float) -> ComparedStrategy:
    design = equals[0]
    total = design.errors.total_variance(exact=True)
    return ComparedStrategy(
        names=tuple(equal.strategy for equal in equals),
        measures=ALL[design.strategy].measures,
        design=design,
        is_chosen=chosen in equals,
        total_variance=total,
        typical_error=math.sqrt(total / design.workload.cells),
        largest_error=math.sqrt(design.errors.max_variance(weighted=False)),
        times_best=objective_value(design) / least if least else 1.0,
    )


@dataclass(frozen=True)
class TableError:
    """One table: its word, the root mean square of its cells' standard errors, and the margin that goes with it."""

    word: str
    attributes: tuple[str, ...]
    cells: int
    std_error: float
    margin: float
    is_form: bool = False


def table_errors(plan: Plan, quantity: Quantity = COUNTED, *, published: bool = False) -> Iterator[TableError]:
    """The counts, or the sums, of the tables asked for, marginals first; or of all that are published."""
    counts = _errors(plan.count, published)
    if quantity.kind == "count":
        yield from counts
        return
    step, center = _scales(plan, quantity)
    for sums, count in zip(_errors(plan.designs[quantity.part], published), counts, strict=True):
        deviation = math.hypot(step * sums.std_error, center * count.std_error)
        yield replace(sums, std_error=deviation, margin=math.hypot(step * sums.margin, center * count.margin))


def table_variances(plan: Plan, quantity: Quantity = COUNTED) -> Floats:
    """The mean variance of a cell of each table asked for, marginals first, then forms."""
    counts = _variances(plan.count)
    if quantity.kind == "count":
        return counts
    step, center = _scales(plan, quantity)
    found: Floats = step**2 * _variances(plan.designs[quantity.part]) + center**2 * counts
    return found


def total_variance(plan: Plan, quantity: Quantity = COUNTED) -> float:
    """The expected sum of squared errors of a quantity over all cells, for the noise that is drawn."""
    counts = plan.count.errors.total_variance(exact=True)
    if quantity.kind == "count":
        return counts
    step, center = _scales(plan, quantity)
    return step**2 * plan.designs[quantity.part].errors.total_variance(exact=True) + center**2 * counts


def _scales(plan: Plan, quantity: Quantity) -> tuple[float, float]:
    if quantity.kind == "avg":
        fix = f"ask for the errors of sum({quantity.measure}) and of the count"
        raise BadInput("quantity", f"the error of {quantity} depends on how many people there are", fix)
    measure = plan.schema.measure(quantity.measure)
    return float(measure.resolution), float(measure.center)


def _errors(design: Design, published: bool) -> Iterator[TableError]:
    schema, workload = design.schema, design.workload
    listed = workload.published if published else workload.marginals
    ids = design.request.marginals.ids(listed)
    deviations, widths = np.sqrt(design.errors.exact_cell_variances)[ids].tolist(), design.errors.margins[ids].tolist()
    for marginal, deviation, width in zip(listed, deviations, widths, strict=True):
        names = tuple(schema.names[i] for i in marginal)
        yield TableError(schema.describe(marginal), names, schema.cells(marginal), deviation, width)
    for form, total in zip(workload.forms, design.errors.form_totals(exact=True), strict=True):
        deviation = math.sqrt(total / form.cells)
        names = tuple(schema.names[i] for i in form.marginal)
        width = float(design.errors.any_margin(np.asarray(deviation)))
        yield TableError(form.word, names, form.cells, deviation, width, is_form=True)


def _variances(design: Design) -> Floats:
    marginals = design.errors.exact_cell_variances[design.request.marginals.ids(design.workload.marginals)]
    forms = zip(design.errors.form_totals(exact=True), design.workload.forms, strict=True)
    return np.concatenate((marginals, [total / form.cells for total, form in forms]))
