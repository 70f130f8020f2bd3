"""Ratios of noisy numbers, and intervals that do not pretend: averages, shares, and ratios of two sums.

Let S and C be unbiased estimates of s and c. For the true ratio t = s/c the number S - t C has mean zero, and

    { t :  (S - t C)² <= m_SS - 2 t m_SC + t² m_CC }                              [Fieller 1954; docs/maths.md, 13]

covers t as often as the right-hand side covers S - t C: for 95% intervals of half-widths m_S and m_C, m_SS = m_S²,
m_CC = m_C², and m_SC is the covariance times the square of the quantile, zero for independent numbers. That is exact
for normal noise. Under Laplace noise the quantile is one that is safe for every combination; where S and C are
independent sums, each margin may hold the quantile of its own table's law, which is nearly the normal one for sums of
many terms; of two single terms it is safe, and wider than needed by at most 3%.

The set is an interval if C > m_C: if the interval of C lies above zero. Elsewhere it is everything, or everything but a
gap; a table says that the ratio is unknown.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hushcube.bundle.estimate import Estimate
from hushcube.model.arrays import Floats
from hushcube.model.measure import Measure


def averages(measure: Measure, counts: Any, sums: Any, count_margins: Any, sum_margins: Any) -> tuple[Any, Any, Any]:
    """Averages of a measure and both ends of their intervals, from counts and sums of its integers; NaN where unknown.

    Means lie within the bounds.
    """
    step, center = float(measure.resolution), float(measure.center)
    least, most = (float(bound) for bound in measure.bounds)
    numbers = (np.asarray(x, np.float64) for x in (sums, counts, sum_margins, count_margins))
    found = bounded_ratio(*numbers, bounds=((least - center) / step, (most - center) / step))
    value, low, high = (np.clip(center + step * t, least, most) for t in found)
    return value, low, high


def bounded_ratio(
    S: Floats, C: Floats, m_S: Floats, m_C: Floats, m_SC: Floats | float = 0.0, *, bounds: tuple[float, float]
) -> tuple[Floats, Floats, Floats]:
    """Ratios that are known to lie within bounds, and both ends of their intervals; NaN where unknown.

    An estimate beyond a bound is moved to it before its interval is taken: that brings S - t C nearer to zero for all t
    within the bounds, so that no interval covers less often, and none shrinks to the bound alone.
    """
    people = np.maximum(C, 0.0)
    return ratio_interval(np.clip(S, bounds[0] * people, bounds[1] * people), C, m_S, m_C, m_SC)


def ratio_interval(
    S: Floats, C: Floats, m_S: Floats, m_C: Floats, m_SC: Floats | float = 0.0
) -> tuple[Floats, Floats, Floats]:
    """Ratios of two noisy numbers, and both ends of their intervals; NaN where there is no finite one.

    >>> ratio, low, high = ratio_interval(*(np.array([x]) for x in (20.0, 10.0, 4.0, 2.0)))
    >>> float(ratio[0]), float(low[0].round(4)), float(high[0].round(4))
    (2.0, 1.5, 2.6667)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # (C² - m_CC) t² - 2 (S C - m_SC) t + (S² - m_SS) <= 0
        a, b = C**2 - m_C**2, S * C - m_SC
        root = np.sqrt(np.maximum(b**2 - a * (S**2 - m_S**2), 0.0))
        known = m_C < C
        ratio, low, high = (np.where(known, x, np.nan) for x in (S / C, (b - root) / a, (b + root) / a))
    return ratio, low, high


def ratio_estimate(S: float, C: float, m_S: float, m_C: float, m_SC: float, *, may_be_negative: bool) -> Estimate:
    """One ratio, with all that is known of it where its interval is not finite.

    Numbers whose truth is not negative are moved to zero where the other one is not negative either: for t >= 0 that
    brings S - t C nearer to zero.

    >>> print(ratio_estimate(20.0, 10.0, 4.0, 2.0, 0.0, may_be_negative=False))
    2  (95%: 1.5 to 2.667)
    >>> print(ratio_estimate(20.0, 1.0, 4.0, 2.0, 0.0, may_be_negative=False))
    unknown  (95%: 6.465 or more)
    """
    if not may_be_negative:
        S, C = (max(S, 0.0) if C >= 0 else S), (max(C, 0.0) if S >= 0 else C)
    if C < 0:  # the ratio is that of the opposite numbers
        S, C = -S, -C
    if m_C < C:
        arrays = (np.asarray(x) for x in (S, C, m_S, m_C, m_SC))
        value, low, high = map(float, ratio_interval(*arrays))
        return Estimate(value, math.nan, low if may_be_negative else max(low, 0.0), high)
    low, high, gap = _open_set(C**2 - m_C**2, S * C - m_SC, S**2 - m_S**2)
    if may_be_negative:
        return Estimate(math.nan, math.nan, low, high, gap)
    if gap is not None and gap[0] < 0:  # what is below zero is ruled out anyway
        low, gap = gap[1], None
    return Estimate(math.nan, math.nan, max(low, 0.0), high, gap)


def _open_set(a: float, b: float, c: float) -> tuple[float, float, tuple[float, float] | None]:
    """{ t : a t² - 2 b t + c <= 0 } for a <= 0: both ends, and the gap that is ruled out."""
    if a == 0:
        if b == 0:  # the denominator is known to be zero, or nothing is known
            return (-math.inf, math.inf, None) if c <= 0 else (math.nan, math.nan, None)
        return (c / (2 * b), math.inf, None) if b > 0 else (-math.inf, c / (2 * b), None)
    square = b**2 - a * c
    if square <= 0:
        return -math.inf, math.inf, None
    return -math.inf, math.inf, ((b + math.sqrt(square)) / a, (b - math.sqrt(square)) / a)
