"""One number with what is known of its error."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hushcube.shown import number


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error and its 95% interval; an average or another ratio has an interval alone.

    Ratios whose denominator may be zero have no finite interval. What is known of them then is `low` and `high`, which
    may be infinite, and the `gap` between them, if there is one, that is ruled out.

    >>> print(Estimate(12.0, 1.0, 10.0, 14.0))
    12 ± 2  (95%: 10 to 14)
    >>> print(Estimate(math.nan, math.nan, 0.0, math.inf, gap=(0.5, 3.0)))
    unknown  (95%: 0 to 0.5, or 3 or more)
    """

    value: float
    std_error: float
    low: float
    high: float
    gap: tuple[float, float] | None = None

    @property
    def margin(self) -> float:
        """Half the width of the 95% interval."""
        return (self.high - self.low) / 2

    @property
    def interval(self) -> str:
        """The 95% interval in words; empty where there is none."""
        if math.isnan(self.low) or math.isnan(self.high):
            return ""
        if self.gap is None:
            return _between(self.low, self.high)
        return f"{_between(self.low, self.gap[0])}, or {_between(self.gap[1], self.high)}"

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"unknown  (95%: {self.interval})" if self.interval else "unknown"
        margin = "" if math.isnan(self.std_error) else f" ± {number(self.margin)}"
        return f"{number(self.value)}{margin}  (95%: {self.interval})"

    def to_dict(self) -> dict[str, Any]:
        """For JSON: null where a number is unknown or infinite; `interval` has the words where an end is open."""
        numbers = {"value": self.value, "std_error": self.std_error, "low_95": self.low, "high_95": self.high}
        told: dict[str, Any] = {name: each if math.isfinite(each) else None for name, each in numbers.items()}
        is_open = math.isinf(self.low) or math.isinf(self.high)
        gap = {} if self.gap is None else {"gap_95": list(self.gap)}
        return {**told, **gap, **({"interval": self.interval} if is_open or gap else {})}


def _between(low: float, high: float) -> str:
    if math.isinf(low) and math.isinf(high):
        return "anything"
    if math.isinf(high):
        return f"{number(low)} or more"
    return f"{number(high)} or less" if math.isinf(low) else f"{number(low)} to {number(high)}"
