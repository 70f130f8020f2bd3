"""The rates that the groups of a start may pass through, from coarse to fine; what the groups weigh and cost.

A group is a table, or a single query: its answers share one rate.

    arithmetic    lambda_k = lambda_0 - k step     while it is above zero       [Xiao et al. 2011, Figure 4, line 9]
    geometric     lambda_k = lambda_0 factor^k

The paper has no guard: from 15 in steps of 10 it would go on to 5 and -5, whose negative cost passes the budget test.
Rates are floats a hair below 1 / lambda_k, so that scales which add up to epsilon exactly are never refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import singledispatch
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs.row_cost import unchanged_by_replacing
from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.matrix.design import MatrixDesign
from hushcube.designs.refinement import Rule
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats

MOST_LEVELS: Final = 2**21
MOST_STEPS: Final = 2**24
"""Of all tables together: their priorities are held."""
BELOW: Final = 1 - 2.0**-50
"""Three roundings of relative size 2^-53 lie between 1 / lambda and its float."""


@dataclass(frozen=True, eq=False)
class Grid:
    """Rates of the noise, increasing; `scales` are the mean sizes of the noise, decreasing."""

    rates: Floats

    @classmethod
    def arithmetic(cls, largest: Fraction, step: Fraction, limit: float) -> Grid:
        """Scales down from the largest in equal steps; rates up to the limit.

        >>> (1 / Grid.arithmetic(Fraction(15), Fraction(10), 1.0).rates).round(9).tolist()
        [15.0, 5.0]
        """
        unit = math.lcm(largest.denominator, step.denominator)
        first, down = int(largest * unit), int(step * unit)
        finest = max(Fraction(unit) / Fraction(limit), Fraction(1))
        levels = max(0, math.floor((first - finest) / down)) + 1
        _check(levels)
        if first >= 2**62 or unit >= 2**53:
            raise BadInput("lambda_step", "has too many digits", "round it, and `lambda_max`, to fewer decimals")
        remaining = (first - down * np.arange(levels, dtype=np.int64)).astype(np.float64)
        return cls(_within(unit / remaining * BELOW, limit))

    @classmethod
    def geometric(cls, largest: Fraction, factor: Fraction, limit: float) -> Grid:
        """Scales down from the largest by one factor; rates up to the limit.

        >>> (1 / Grid.geometric(Fraction(8), Fraction(1, 2), 1.0).rates).round(9).tolist()
        [8.0, 4.0, 2.0, 1.0]
        """
        first = float(1 / largest) * BELOW
        levels = max(0, math.floor(math.log(limit / first) / -math.log(float(factor)) + 1e-9)) + 1
        _check(levels)
        return cls(_within(first * float(1 / factor) ** np.arange(levels), limit))

    def __len__(self) -> int:
        return len(self.rates)

    @property
    def scales(self) -> Floats:
        """E|X| of the discrete Laplace law: 1 / sinh(rate), nearly lambda."""
        return mean_size(self.rates)


def mean_size(rate: Floats) -> Floats:
    """E|X| = 2p/(1 - p²) = 1/sinh(rate) of the discrete Laplace law.

    >>> round(float(mean_size(np.array(0.01))), 4)
    99.9983
    """
    return np.asarray(1 / np.sinh(np.minimum(rate, 700.0)))


def _within(rates: NDArray[np.floating[Any]], limit: float) -> Floats:
    """The first rate always; of the others those within the limit."""
    return np.concatenate([rates[:1], rates[1:][rates[1:] <= limit]]).astype(np.float64)


def _check(levels: int) -> None:
    if levels > MOST_LEVELS:
        raise _too_many(f"{levels:,} steps of a table are more than {MOST_LEVELS:,}")


def _too_many(problem: str) -> BadInput:
    fix = "give a larger step, a smaller `lambda_max`, or a smaller `lambda_factor`"
    return BadInput("lambda_step", problem, fix)


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
        raise _too_many(f"{sum(map(len, grids)):,} steps of all tables are more than {MOST_STEPS:,}")
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
