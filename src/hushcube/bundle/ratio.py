"""Averages: ratios of two noisy numbers, with intervals that do not pretend.

Let S and C be independent unbiased estimates of s and c, and m_S and m_C the half-widths of their 95% intervals. For
the true ratio t = s/c the number S - t C has mean zero, and

    { t :  (S - t C)² <= m_S² + t² m_C² }                                                             [Fieller 1954]

covers t as often as they say: exactly so for normal noise, where both are one quantile times a deviation. Under Laplace
noise each margin holds the quantile of its own table's law, which is nearly the normal one for sums of many terms; of
two single terms it is safe, and wider than needed by at most 3%.

The set is an interval if C > m_C: if the count's own interval lies above zero. Elsewhere there is no finite interval,
and none is given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hushcube.model.arrays import Floats
from hushcube.model.measure import Measure


def ratio_interval(S: Floats, C: Floats, m_S: Floats, m_C: Floats) -> tuple[Floats, Floats, Floats]:
    """The ratios and both ends of their intervals; NaN where the count is no more than noise.

    >>> ratio, low, high = ratio_interval(*(np.array([x]) for x in (20.0, 10.0, 4.0, 2.0)))
    >>> float(ratio[0]), float(low[0].round(4)), float(high[0].round(4))
    (2.0, 1.5, 2.6667)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # (C² - m_C²) t² - 2 S C t + (S² - m_S²) <= 0
        a = C**2 - m_C**2
        root = np.sqrt(np.maximum((S * C) ** 2 - a * (S**2 - m_S**2), 0.0))
        known = m_C < C
        ratio, low, high = (np.where(known, x, np.nan) for x in (S / C, (S * C - root) / a, (S * C + root) / a))
    return ratio, low, high


def averages(measure: Measure, counts: Any, sums: Any, count_margins: Any, sum_margins: Any) -> tuple[Any, Any, Any]:
    """Averages of a measure and both ends of their intervals, from counts and sums of its integers; NaN where unknown.

    Means lie within the bounds, so that intervals end there too. An estimate beyond a bound is moved to it before its
    interval is taken: that brings S - t C nearer to zero for all t within the bounds, so that no interval covers less
    often, and none shrinks to the bound alone.
    """
    step, center = float(measure.resolution), float(measure.center)
    least, most = (float(bound) for bound in measure.bounds)
    people = np.maximum(counts, 0.0)
    possible = np.clip(sums, (least - center) / step * people, (most - center) / step * people)
    found = ratio_interval(*(np.asarray(x, np.float64) for x in (possible, counts, sum_margins, count_margins)))
    value, low, high = (np.clip(center + step * t, least, most) for t in found)
    return value, low, high


def sum_values(measure: Measure, counts: Any, sums: Any) -> Any:
    """Sums in the measure's own unit: what was taken off each value is added again."""
    return float(measure.resolution) * sums + float(measure.center) * counts


def sum_errors(measure: Measure, count_errors: Any, sum_errors: Any) -> Any:
    """Their standard errors, or the half-widths of their intervals: those of two independent numbers."""
    return np.hypot(float(measure.resolution) * sum_errors, float(measure.center) * count_errors)


def quantised_sums(measure: Measure, counts: Any, values: Any) -> Any:
    """Back from sums in the measure's unit to those of its integers."""
    return (values - float(measure.center) * counts) / float(measure.resolution)
