"""How far published numbers can be relied on: classes by coefficients of variation, as statistical offices have them.

    cv = standard error / |value|           reliable  <=  caution  <  use with caution  <=  unreliable  <  do not use

The thresholds by default are those of Statistics Canada, 16.6% and 33.3%. Standard errors are those of the noise alone.
Flags are made from published numbers, and cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import SchemaError
from hushcube.model.arrays import Floats
from hushcube.model.noise import standard_margin

QUALITY_WORDS: Final = ("reliable", "use with caution", "do not use")
QUALITY_LETTERS: Final = ("", "E", "F")
"""As Statistics Canada prints them beside a number."""


class Graded(Protocol):
    """Estimates with their errors."""

    @property
    def values(self) -> Floats:
        """The estimates; NaN where there is none."""

    @property
    def std_errors(self) -> Floats:
        """Their standard errors; NaN for ratios, which have intervals alone."""

    @property
    def low(self) -> Floats:
        """The lower ends of their 95% intervals."""

    @property
    def high(self) -> Floats:
        """The upper ends."""

    @property
    def may_be_negative(self) -> bool:
        """Whether the true numbers may be below zero."""


@dataclass(frozen=True)
class Quality:
    """The coefficients of variation above which a number is to be used with caution, or not at all.

    >>> print(Quality())
    E: use with caution, coefficient of variation above 16.6%; F: do not use, above 33.3% or not known
    """

    caution: float = 0.166
    unreliable: float = 0.333

    def __post_init__(self) -> None:
        for key in ("caution", "unreliable"):
            given = getattr(self, key)
            if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < np.inf:
                raise SchemaError(f"quality, {key}", "must be a number above zero", f"write for example `{key}: 0.2`")
        if self.caution > self.unreliable:
            fix = "write the smaller one as `caution`"
            raise SchemaError("quality", "numbers would be unreliable before they need caution", fix)

    def __str__(self) -> str:
        low, high = (f"{100 * threshold:.4g}%" for threshold in (self.caution, self.unreliable))
        words = [f"{letter}: {word}" for letter, word in zip(QUALITY_LETTERS, QUALITY_WORDS, strict=True) if letter]
        return f"{words[0]}, coefficient of variation above {low}; {words[1]}, above {high} or not known"

    def classes(self, table: Graded) -> NDArray[np.int8]:
        """0, 1 or 2 for every number: its place in QUALITY_WORDS.

        What is no more than noise has no coefficient of variation: unknown averages, and zeros or negative numbers
        where the truth cannot be negative. A ratio has that of normal noise whose interval is as wide as its own.
        """
        values, errors = np.asarray(table.values), np.asarray(table.std_errors)
        with np.errstate(divide="ignore", invalid="ignore"):
            errors = np.where(np.isnan(errors), (table.high - table.low) / (2 * standard_margin(0.0, 0.95)), errors)
            cv = np.where(errors == 0, 0.0, errors / np.abs(values))
        is_noise = ~np.isfinite(cv) | (~np.asarray(table.may_be_negative) & (values <= 0) & (errors > 0))
        return np.where(is_noise, 2, (cv > self.caution).astype(np.int8) + (cv > self.unreliable)).astype(np.int8)

    def to_dict(self) -> dict[str, float]:
        """The keys of the schema's YAML form."""
        return {"caution": self.caution, "unreliable": self.unreliable}

    @classmethod
    def from_dict(cls, raw: Any) -> Quality:
        """Read these keys."""
        if not isinstance(raw, Mapping) or not raw.keys() <= {"caution", "unreliable"}:
            fix = "write `quality: {caution: 0.166, unreliable: 0.333}`"
            raise SchemaError("quality", "must have the keys caution and unreliable", fix)
        return cls(**raw)


BY_DEFAULT: Final = Quality()
