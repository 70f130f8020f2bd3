"""The groups of a start: what they weigh and cost, and the rates that each may pass through.

A group is a table, or a single query: its answers share one rate.
"""

from __future__ import annotations

from fractions import Fraction
from functools import singledispatch
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs.family_cost import unchanged_by_replacing
from hushcube.designs.adaptive.grid import Grid, too_many
from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.matrix.design import MatrixDesign
from hushcube.designs.refinement import Rule
from hushcube.model.arrays import Floats

MOST_STEPS: Final = 2**24
"""Of all tables together: their priorities are held."""


@singledispatch
def unit_costs(start: Design) -> Floats:
    """What a unit of each group's rate costs, if all other rates are zero; 1 where it costs nothing."""
    raise NotImplementedError(type(start).__name__)


@unit_costs.register
def _(start: LatticeDesign) -> Floats:
    is_replaced = start.privacy.neighbours == "replace-one"
    return np.asarray(np.where(is_replaced & ~unchanged_by_replacing(start.measured), 2.0, 1.0))


@unit_costs.register
def _(start: MatrixDesign) -> Floats:
    rows = start.rows.dense()
    costs = {"add-remove": np.abs(rows).max(axis=1), "replace-one": rows.max(axis=1) - rows.min(axis=1)}
    return np.asarray(np.maximum(np.max([costs[change] for change in start.privacy.row_changes], axis=0), 1.0))


@singledispatch
def worth(start: Design) -> Floats:
    """The weight of each group's error over what a unit of its rate costs, up to a factor."""
    raise NotImplementedError(type(start).__name__)


@worth.register
def _(start: LatticeDesign) -> Floats:
    weights = np.zeros(len(start.measured))
    weights[start.measured.ids(start.request.marginals)] = start.request.weights
    return weights


@worth.register
def _(start: MatrixDesign) -> Floats:
    return np.asarray(1 / unit_costs(start))


def rate_limits(start: Design) -> Floats:
    """Rates that no group of a start can exceed, whatever the others have."""
    allowed = float(calibrate.row_budget(start.privacy, start.proof))
    return allowed * (1 + 1e-9) / unit_costs(start)


def make_grids(start: Design, rule: Rule, chosen: NDArray[np.intp]) -> list[Grid]:
    """The rates that each chosen group of a start may pass through; groups that start alike share a grid."""
    known: dict[tuple[float, float], Grid] = {}
    grids = []
    for rate, limit in zip(start.budgets[chosen].tolist(), rate_limits(start)[chosen].tolist(), strict=True):
        if (rate, limit) not in known:
            known[rate, limit] = _from(rate, limit, rule)
        grids.append(known[rate, limit])
    if sum(map(len, grids)) > MOST_STEPS:
        raise too_many(f"{sum(map(len, grids)):,} steps of all tables are more than {MOST_STEPS:,}")
    return grids


def _from(rate: float, limit: float, rule: Rule) -> Grid:
    """The grid that begins with a given rate."""
    if rule.lambda_step is None:
        grid = Grid.geometric(1 / Fraction(rate), rule.lambda_factor, limit)
    else:
        step = rule.lambda_step.value
        # a whole number of fractions of a step: the start is the nominal scale where that is a round number
        largest = round(1 / (Fraction(rate) * step) * 2**10) * step / 2**10
        grid = Grid.arithmetic(max(largest, step / 2**10), step, limit)
    return Grid(np.concatenate([[rate], grid.rates[1:][grid.rates[1:] > rate]]))
