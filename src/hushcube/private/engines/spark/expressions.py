"""Expressions of Spark's DataFrame API: what a column is grouped by, and the integer that a row adds to a sum.

`F` is the module of functions, which differs between sessions in this process and those of Spark Connect.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hushcube.model.measure import Measure
from hushcube.private.engines.grouped.warehouse import MISSING, OUTSIDE, Binned, Column, ColumnType, Known, Whole
from hushcube.private.engines.measuring import quantised

_COMPARED_EDGES: Final = 64
"""More edges than this are searched in an array: as compiled comparisons, each costs five milliseconds."""
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_NUMBER: Final = rf"\+?-?(?:(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?|(?i:inf|infinity))"
"""A text that DuckDB casts to a double other than NaN; Java alone would take `1d` and `0x1p3` for numbers as well."""
_BLANKS: Final = r"[ \t-\r]*"


def key(F: Any, column: Column, value: Any, column_type: ColumnType) -> Any:
    """What a column is grouped by, as its class says."""
    if isinstance(column, Known):
        return F.when(value.isNull() | value.isin(*column.labels), value).otherwise(F.lit(column.outside))
    if not isinstance(column, Binned | Whole):
        return value
    whole = isinstance(column, Whole) and column_type == "integer"
    x = value.cast("long" if whole else "double")
    # Spark takes NaN for equal to itself and larger than all numbers; it goes first.
    missing = x.isNull() if whole else x.isNull() | F.isnan(x)
    if column.missing is not None:
        missing = missing | (x == F.lit(column.missing))
    if isinstance(column, Binned):
        low, high = column.edges[0], column.edges[-1]
        few = len(column.edges) <= _COMPARED_EDGES
        place = _bin(F, x, column.edges, 0, len(column.edges) - 1) if few else _search(F, x, column.edges)
        inside = (x >= F.lit(low)) & (x <= F.lit(high))
    else:
        inside = (x >= F.lit(column.low)) & (x <= F.lit(column.high))
        place = x.try_cast("long") - F.lit(column.low)
        if not whole:
            inside = inside & (F.rint(x) == x)
    return F.when(missing, F.lit(MISSING)).when(inside, place).otherwise(F.lit(OUTSIDE)).cast("long")


def _bin(F: Any, x: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The bin from `first` up to before `last` that x is in, by bisection: a row takes log2 comparisons."""
    if last - first == 1:
        return F.lit(first)
    middle = (first + last) // 2
    lower, upper = _bin(F, x, edges, first, middle), _bin(F, x, edges, middle, last)
    return F.when(x < F.lit(edges[middle]), lower).otherwise(upper)


def _search(F: Any, x: Any, edges: Sequence[float]) -> Any:
    """The same by steps of ..., 4, 2, 1 through an array of all edges but the last; beyond its end nothing is less."""
    known = F.lit(np.array(edges[:-1]))
    steps = F.lit(2 ** np.arange(len(edges).bit_length(), dtype=np.int32)[::-1])
    return F.aggregate(steps, F.lit(0), lambda at, n: F.when(F.get(known, at + n) <= x, at + n).otherwise(at))


def double(F: Any, value: Any, column_type: ColumnType, type_name: str) -> Any:
    """A measure's column as a double, as DuckDB reads it: null or NaN where it is no number."""
    if column_type in ("integer", "number"):
        return value.cast("double")
    if column_type == "text" or type_name == "BinaryType":
        # DuckDB writes bytes out before it reads a number, and blanks other than a space do not stay blanks.
        around = _BLANKS if column_type == "text" else " *"
        found = F.regexp_extract(value.cast("string"), rf"\A{around}({_NUMBER}){around}\z", 1)
        return F.when(found != F.lit(""), F.regexp_replace(found, r"\A\+|_", "").try_cast("double"))
    return F.lit(None).cast("double")


def integer(F: Any, x: Any, measure: Measure) -> tuple[Any, Any]:
    """The integer of each row, bit for bit what `measuring.quantised` makes, and whether its value is missing."""
    low, high = (F.lit(float(bound)) for bound in measure.bounds)
    scaled = (F.least(F.greatest(x, low), high) - F.lit(float(measure.center))) / F.lit(float(measure.resolution))
    q = F.least(F.greatest(F.rint(scaled), F.lit(float(measure.low))), F.lit(float(measure.high))).cast("long")
    instead = 0 if measure.missing is None else int(quantised(pa.array([math.nan]), measure)[0][0])
    missing = x.isNull() | F.isnan(x)
    return F.when(missing, F.lit(instead)).otherwise(q).cast("long"), missing
