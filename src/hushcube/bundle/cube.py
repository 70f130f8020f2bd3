"""A released cube: counts, sums and averages of the same cells, each with its error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_table import Table, Where
from hushcube.bundle.ratio import ratio_interval
from hushcube.bundle.release import Release
from hushcube.bundle.stamp import mark
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.planning.plan import Asked, Plan

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class CubeRelease:
    """The releases of the counts and of each measure's integers; what people read is made of them."""

    plan: Plan
    count: Release
    sums: Mapping[str, Release]

    def __repr__(self) -> str:
        words = ", ".join(["count", *map(str, self.plan.asked)])
        guarantee = f"{self.plan.privacy}{mark(self.private)}"
        return f"CubeRelease({self.schema.name!r}: {len(self.count):,} tables of {words}, {guarantee})"

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.plan.schema

    @property
    def private(self) -> bool:
        """Whether all noise was real."""
        return all(part.private for part in (self.count, *self.sums.values()))

    def table(self, marginal: str | Sequence[str], what: str = "count", where: Where | None = None) -> Table:
        """The cells of a marginal: how many people, or the sum or the average of a measure."""
        asked = Asked.parse(what, self.schema)
        if asked.kind == "count":
            return self.count.table(marginal, where)
        measure = self.schema.measure(asked.measure)
        counts, sums = self.count.table(marginal, where), self.sums[measure.name].table(marginal, where)
        return _summed(measure, counts, sums) if asked.kind == "sum" else _averaged(measure, counts, sums)


def _averaged(measure: Measure, counts: Table, sums: Table) -> Table:
    """The ratio of two tables, NaN where the count is no more than noise.

    Means lie within the bounds, so that intervals end there too.

    An estimate beyond a bound is moved to it before its interval is taken: that brings S - t C nearer to zero for all t
    within the bounds, so that no interval covers less often, and none shrinks to the bound alone.
    """
    step, center = float(measure.resolution), float(measure.center)
    least, most = (float(bound) for bound in measure.bounds)
    people = np.maximum(counts.values, 0.0)
    possible = np.clip(sums.values, (least - center) / step * people, (most - center) / step * people)
    found = ratio_interval(possible, counts.values, sums.margins, counts.margins)
    value, bottom, top = (np.clip(center + step * t, least, most) for t in found)
    unknown = np.full_like(value, np.nan)
    told = f"avg({measure.name})"
    return replace(sums, values=value, std_errors=unknown, margins=unknown, ends=(bottom, top), what=told)


def _summed(measure: Measure, counts: Table, sums: Table) -> Table:
    """Sums in the measure's own unit: what was taken off each value is added again, with the count's error."""
    step, center = float(measure.resolution), float(measure.center)
    errors = np.hypot(step * sums.std_errors, center * counts.std_errors)
    margins = np.hypot(step * sums.margins, center * counts.margins)
    values = step * sums.values + center * counts.values
    return replace(sums, values=values, std_errors=errors, margins=margins, what=f"sum({measure.name})")
