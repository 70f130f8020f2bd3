"""Averages: ratios of two noisy numbers, with intervals that do not pretend.

Let S and C be independent unbiased estimates of s and c with variances V_S and V_C. For the true ratio t = s/c the
number S - t C has mean zero and variance V_S + t² V_C, so that with a quantile z of its law

    { t :  (S - t C)² <= z² (V_S + t² V_C) }                                                          [Fieller 1954]

covers it as often as z says. The set is an interval if C² > z² V_C: if the count is more than noise. Elsewhere there is
no finite interval, and none is given.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def ratio_interval(S: Floats, C: Floats, V_S: Floats, V_C: Floats, z: Floats) -> tuple[Floats, Floats, Floats]:
    """The ratios and both ends of their intervals; NaN where the count is no more than noise.

    >>> ratio, low, high = ratio_interval(*(np.array([x]) for x in (20.0, 10.0, 4.0, 1.0, 2.0)))
    >>> float(ratio[0]), float(low[0].round(4)), float(high[0].round(4))
    (2.0, 1.5, 2.6667)
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # (C² - z² V_C) t² - 2 S C t + (S² - z² V_S) <= 0
        a = C**2 - z**2 * V_C
        root = np.sqrt(np.maximum((S * C) ** 2 - a * (S**2 - z**2 * V_S), 0.0))
        known = (a > 0) & (C > 0)
        ratio, low, high = (np.where(known, x, np.nan) for x in (S / C, (S * C - root) / a, (S * C + root) / a))
    return ratio, low, high
