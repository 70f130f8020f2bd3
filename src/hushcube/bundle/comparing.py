"""Two groups of cells compared: their difference, their ratio, and the share of one in both.

A difference has the exact variance of its weights. A ratio has Fieller's interval with the exact covariance of both
sums.                                                                                             [bundle/ratios.py]
Two averages are four noisy numbers. Each has an interval that covers 97.5%, so that both cover 95% at least, and what
is in the difference or ratio of two intervals covers as often: safe, and wider than it need be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hushcube.bundle.estimate import Estimate
from hushcube.bundle.part import Part
from hushcube.bundle.published_table import Where
from hushcube.bundle.ratios import averages, ratio_estimate
from hushcube.bundle.statement import Stamped
from hushcube.bundle.tables import combined
from hushcube.errors import QueryError
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.measure import Measure
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Quantity
from hushcube.shown import Column, Grid, Page, number

BOTH: Final = 0.975  # of each of two intervals: 95% of both at once


@dataclass(frozen=True, eq=False, repr=False)
class Compared(Stamped):
    """Two groups of the cells of one table, each an estimate, and what lies between them."""

    schema: Schema
    what: str
    groups: tuple[str, str]
    """What is compared with what, in words."""
    first: Estimate
    second: Estimate
    difference: Estimate
    """The first less the second."""
    ratio: Estimate
    """The first over the second."""
    share: Estimate | None
    """Of the first in both together, from 0 to 1; None for averages, and where the groups overlap."""
    private: bool

    @property
    def estimates(self) -> dict[str, Estimate]:
        """All of them, by their names."""
        names = ("first", "second", "difference", "ratio", "share")
        return {name: each for name in names if (each := getattr(self, name)) is not None}

    def __repr__(self) -> str:
        return f"Compared({self.what}: difference {self.difference}, ratio {self.ratio})"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"groups": list(self.groups), **{name: each.to_dict() for name, each in self.estimates.items()}}

    def page(self) -> Page:
        """A line for each estimate."""
        columns = [Column(""), Column(self.what, right=True), Column("margin", right=True), Column("95% interval")]
        rows, words = [], dict(zip(("first", "second"), self.groups, strict=True))
        for name, each in self.estimates.items():
            margin = "" if math.isnan(each.std_error) else f"± {number(each.margin)}"
            value = "unknown" if math.isnan(each.value) else number(each.value)
            rows.append([words.get(name, name), value, margin, each.interval])
        return Page((Grid(f"{self.schema.shown_name}: two groups compared", columns, rows),))


def factors(quantity: Quantity, schema: Schema) -> dict[str, float]:
    """How much the numbers of each part count in a quantity: sum(days) is resolution * integers + center * counts."""
    if quantity.kind == "count":
        return {COUNT: 1.0}
    measure = schema.measure(quantity.measure)
    return {quantity.part: float(measure.resolution), COUNT: float(measure.center)}


def may_be_negative(quantity: Quantity, schema: Schema) -> bool:
    """Whether the true numbers may be below zero."""
    return quantity.kind != "count" and schema.measure(quantity.measure).bounds[0] < 0


def covariance(
    parts: Mapping[str, Part],
    schema: Schema,
    quantity: Quantity,
    marginal: str | Sequence[str],
    conditions: tuple[Where | None, Where | None],
) -> float:
    """The covariance of two sums of cells; parts are measured independently."""
    if quantity.kind == "avg":
        raise QueryError("what", "averages have intervals, and no covariance", "ask for the sum or the count")
    result = 0.0
    for name, factor in factors(quantity, schema).items():
        (table, first), (_, second) = (parts[name].weights(marginal, where) for where in conditions)
        result += factor**2 * parts[name].design.errors.sum_covariance(table, first, second)
    return result


def compared(
    parts: Mapping[str, Part],
    schema: Schema,
    quantity: Quantity,
    marginal: str | Sequence[str],
    conditions: tuple[Where, Where],
) -> Compared:
    """Two groups compared; the second condition takes from the first one what it does not name."""
    where, versus = conditions
    if not versus:
        raise QueryError("versus", "names nothing to compare with", "give labels, such as `versus={'sex': 'Male'}`")
    # all parts answer one workload, from the same published table
    table, first_cells = parts[COUNT].weights(marginal, where)
    groups = (first_cells, parts[COUNT].weights(marginal, {**where, **versus})[1])
    names = (_name(where), _name({**where, **versus}))
    return compared_groups(parts, schema, quantity, table, groups, names)


def compared_groups(
    parts: Mapping[str, Part],
    schema: Schema,
    quantity: Quantity,
    table: Marginal,
    groups: tuple[Floats, Floats],
    names: tuple[str, str],
) -> Compared:
    """Two weighted sums of the cells of a published table compared."""

    def estimate(weights: Floats) -> Estimate:
        counts, own = (parts[name].sum_of(table, weights) for name in (COUNT, quantity.part))
        value, error, margin, ends = combined(quantity, schema, counts, own)
        low, high = ends or (value - margin, value + margin)
        return Estimate(float(value), float(error), float(low), float(high))

    first, second = map(estimate, groups)
    private = all(part.private for part in parts.values())
    if quantity.kind == "avg":
        between = _averages_between(
            [parts[COUNT], parts[quantity.part]], schema.measure(quantity.measure), table, groups
        )
        return Compared(schema, str(quantity), names, first, second, *between, None, private)

    def ratio(over: Floats) -> Estimate:
        S = C = m_SS = m_CC = m_SC = 0.0
        for name, factor in factors(quantity, schema).items():
            errors = parts[name].design.errors
            (s, s_error, _), (c, c_error, _) = (parts[name].sum_of(table, each) for each in (groups[0], over))
            S, C = S + factor * s, C + factor * c
            m_SS += float(factor * errors.any_margin(np.asarray(s_error))) ** 2
            m_CC += float(factor * errors.any_margin(np.asarray(c_error))) ** 2
            m_SC += (factor * errors.any_quantile()) ** 2 * errors.sum_covariance(table, groups[0], over)
        signed = may_be_negative(quantity, schema)
        return ratio_estimate(S, C, math.sqrt(m_SS), math.sqrt(m_CC), m_SC, may_be_negative=signed)

    is_apart = not (groups[0] * groups[1]).any() and not may_be_negative(quantity, schema)
    share = _at_most_one(ratio(groups[0] + groups[1])) if is_apart else None
    difference = estimate(groups[0] - groups[1])
    return Compared(schema, str(quantity), names, first, second, difference, ratio(groups[1]), share, private)


def _name(where: Where) -> str:
    """A condition as people read it: `sex = Female, age = 30 or 31`."""
    told = []
    for name, given in where.items():
        labels = [given] if isinstance(given, str) or not isinstance(given, Iterable) else given
        told.append(f"{name} = {' or '.join(map(str, labels))}")
    return ", ".join(told) or "all"


def _at_most_one(share: Estimate) -> Estimate:
    """A share is not above 1, whatever is known of it beside that."""
    value, high = (min(each, 1.0) for each in (share.value, share.high))
    if share.gap is not None and share.gap[1] > 1:
        return Estimate(value, math.nan, share.low, min(share.gap[0], 1.0))
    return Estimate(value, math.nan, min(share.low, 1.0), high, share.gap)


def _averages_between(
    counts_and_sums: Sequence[Part], measure: Measure, table: Marginal, groups: tuple[Floats, Floats]
) -> tuple[Estimate, Estimate]:
    """The difference and the ratio of two averages, from intervals of both that hold at once."""

    def interval(weights: Floats) -> tuple[float, float, float]:
        values, margins = [], []
        for part in counts_and_sums:
            value, error, _ = part.sum_of(table, weights)
            errors = part.design.errors
            wider = error * (errors.any_quantile(BOTH) - errors.any_quantile())
            values.append(value)
            margins.append(float(errors.any_margin(np.asarray(error))) + wider)
        value, low, high = map(float, averages(measure, *values, *margins))
        return value, low, high

    (a, a_low, a_high), (b, b_low, b_high) = map(interval, groups)
    difference = Estimate(a - b, math.nan, a_low - b_high, a_high - b_low)
    if not (b_low > 0 or b_high < 0):
        least = a_low / b_high if a_low >= 0 and b_low == 0 < b_high else math.nan
        return difference, Estimate(math.nan, math.nan, least, math.nan if math.isnan(least) else math.inf)
    corners = [x / y for x in (a_low, a_high) for y in (b_low, b_high)]
    return difference, Estimate(a / b, math.nan, min(corners), max(corners))
