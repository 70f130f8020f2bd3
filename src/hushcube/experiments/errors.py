"""How far noisy tables are from exact ones, in the metrics of the four papers.

    of a cell       |y - q|
    of a table      the mean over its cells                     [Ding et al. 2011, section 6: the error of a cuboid]
    over the mean   of a cell / the mean count of its table     [Yaroslavtsev et al. 2013, section V]
    relative        of a cell / max(q, δ), δ a sanity bound     [Xiao et al. 2011, Equation 1]
    overall         the mean over tables of the mean relative error of their cells             [Definition 6]

Means over cells count every cell alike; means over tables count every table alike, however many cells it has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats

Table = NDArray[Any]


@dataclass(frozen=True, eq=False)
class RunErrors:
    """The errors of one run: an entry for each table."""

    mean: Floats
    """|y - q|, over the cells of a table."""
    largest: Floats
    squared: Floats
    """The mean of (y - q)²."""
    relative: Floats
    """The mean of |y - q| / max(q, δ); not numbers without a sanity bound."""
    largest_relative: Floats
    spent: float = 0.0
    """Epsilon or rho."""
    seconds: float = 0.0
    accuracy: float = math.nan
    """Of a classifier that is made from the tables."""

    @classmethod
    def of(
        cls, truth: Sequence[Table], answers: Sequence[Table], bounds: Sequence[Floats] | None = None, **more: Any
    ) -> RunErrors:
        """Compare noisy tables with exact ones, each with its sanity bounds; `more` is what it cost, and an accuracy.

        >>> errors = RunErrors.of([np.array([100, 0])], [np.array([90.0, 2.0])], [np.array(4.0)])
        >>> errors.mean, errors.largest, errors.relative
        (array([6.]), array([10.]), array([0.3]))
        """
        if not all((bound > 0).all() for bound in bounds or ()):
            raise BadInput("sanity_bound", "is not positive", "give a count below which errors are alike")
        if not truth or len(truth) != len(answers):
            problem = f"there are {len(answers)} for {len(truth)} tables"
            raise BadInput("answers", problem, "give one for each, and at least one")
        rows = []
        for q, y, bound in zip(truth, answers, bounds or [np.array(np.nan)] * len(truth), strict=True):
            if q.shape != y.shape:  # numpy would broadcast
                problem = f"a table of shape {y.shape} answers one of shape {q.shape}"
                raise BadInput("answers", problem, "match the shapes")
            off = np.abs(np.subtract(y, q, dtype=np.float64))
            relative = off / np.maximum(q, bound, dtype=np.float64)
            rows.append((off.mean(), off.max(), np.square(off).mean(), relative.mean(), relative.max()))
        mean, largest, squared, relative, largest_relative = np.array(rows).T
        return cls(mean, largest, squared, relative, largest_relative, **more)

    def to_dict(self) -> dict[str, Any]:
        """Fields for JSON; numbers are repeated digit for digit."""
        raw = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in raw.items()}

    @classmethod
    def from_dict(cls, raw: dict[str, Any]) -> RunErrors:
        """The reverse of `to_dict`."""
        read: dict[str, Any] = {k: np.array(v, np.float64) if isinstance(v, list) else float(v) for k, v in raw.items()}
        return cls(**read)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """The errors of some tables in all runs; NOT private. All are means over runs."""

    runs: int
    mean_error: float
    """|noisy - exact|, over all cells."""
    mean_error_se: float
    """The standard error of `mean_error`; not a number for a single run."""
    root_mean_square: float
    worst_cell: float
    """The largest error of any cell."""
    table_error: float
    """The error of a table, over tables."""
    worst_table: float
    """The largest error of any table."""
    over_mean: float
    """The error of a cell over the mean count of its table, over all cells; infinite if a table counts nobody."""
    over_mean_by_table: float
    """The same, over tables."""
    overall_error: float
    """The relative error, over tables; not a number without a sanity bound, as are the next two."""
    standard_error: float
    """Of the overall error."""
    worst_error: float
    """The largest relative error of any cell."""

    @classmethod
    def of(
        cls, runs: Sequence[RunErrors], cells: Floats, mean_counts: Floats, at: Any = slice(None), /, **more: Any
    ) -> Self:
        """Of runs on tables of so many cells, with such exact mean counts; `at` selects some of the tables."""
        mean, largest, squared, relative, largest_relative = (
            np.array([getattr(run, name)[at] for run in runs])
            for name in ("mean", "largest", "squared", "relative", "largest_relative")
        )
        share, counts = cells[at] / cells[at].sum(), mean_counts[at]
        over_mean = np.divide(mean, counts, out=np.full_like(mean, np.inf), where=counts > 0)
        return cls(
            runs=len(runs),
            mean_error=float((mean @ share).mean()),
            mean_error_se=standard_error(mean @ share),
            root_mean_square=math.sqrt((squared @ share).mean()),
            worst_cell=float(largest.max(axis=1).mean()),
            table_error=float(mean.mean()),
            worst_table=float(mean.max(axis=1).mean()),
            over_mean=float((over_mean @ share).mean()),
            over_mean_by_table=float(over_mean.mean()),
            overall_error=float(relative.mean()),
            standard_error=standard_error(relative.mean(axis=1)),
            worst_error=float(largest_relative.max(axis=1).mean()),
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class PartErrors(Summary):
    """The errors of one table, or of all tables of one number of attributes."""

    table: str | None
    """Its word; None for several."""
    attributes: int
    tables: int
    cells: int


def standard_error(values: Floats) -> float:
    """Of the mean of independent values.

    >>> standard_error(np.array([1.0, 3.0])), standard_error(np.array([1.0]))
    (1.0, nan)
    """
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
