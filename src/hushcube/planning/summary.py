"""What people look at before they spend a budget: the strategies compared, and the expected error of each table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushcube.designs import errors as error
from hushcube.designs.design import Design
from hushcube.designs.margins import any_margin, margins
from hushcube.planning.planner import Comparison
from hushcube.strategies import ALL
from hushcube.strategies.objective import objective_value


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


def compared_strategies(comparison: Comparison) -> list[ComparedStrategy]:
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


def merged_variants(comparison: Comparison) -> list[list[Design]]:
    """All plans, the best first; variants of one strategy that come to the same are together."""
    groups: dict[tuple[str, ...], list[Design]] = {}
    for candidate in comparison.candidates:
        groups.setdefault((candidate.plan.strategy, *_result(candidate.plan)), []).append(candidate.plan)
    return sorted(groups.values(), key=lambda equals: objective_value(equals[0]))


def _result(design: Design) -> tuple[str, str]:
    """What a plan comes to, to nine digits."""
    return f"{error.weighted_variance(design):.9g}", f"{objective_value(design):.9g}"


def _compared(equals: list[Design], chosen: Design, least: float) -> ComparedStrategy:
    design = equals[0]
    total = error.total_variance(design, exact=True)
    return ComparedStrategy(
        names=tuple(equal.strategy for equal in equals),
        measures=ALL[design.strategy].measures,
        design=design,
        is_chosen=chosen in equals,
        total_variance=total,
        typical_error=math.sqrt(total / design.workload.cells),
        largest_error=math.sqrt(error.max_variance(design, weighted=False)),
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


def table_errors(design: Design, *, published: bool = False) -> Iterator[TableError]:
    """The tables asked for, marginals first; or all that are published."""
    schema, workload = design.schema, design.workload
    listed = workload.published if published else workload.marginals
    ids = design.request.marginals.ids(listed)
    deviations, widths = np.sqrt(error.exact_cell_variances(design))[ids].tolist(), margins(design)[ids].tolist()
    for marginal, deviation, width in zip(listed, deviations, widths, strict=True):
        names = tuple(schema.names[i] for i in marginal)
        yield TableError(schema.describe(marginal), names, schema.cells(marginal), deviation, width)
    for form, total in zip(workload.forms, error.form_totals(design, exact=True), strict=True):
        deviation = math.sqrt(total / form.cells)
        names = tuple(schema.names[i] for i in form.marginal)
        width = float(any_margin(design, np.asarray(deviation)))
        yield TableError(form.word, names, form.cells, deviation, width, is_form=True)
