"""What may be declared as the values of an attribute, and what may not; days, months, quarters and years among them.

Dates between two ends are public domains with the levels that calendars have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, Final, Literal, get_args

from hushcube.errors import SchemaError
from hushcube.model.label import is_label, short
from hushcube.model.level import Level

MAX_VALUES: Final = 1_000_000
Step = Literal["day", "month", "quarter", "year"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
_LARGEST: Final = 200_000
"""Days between the ends: five centuries."""


def _values(where: str, values: Any) -> None:
    if not values:
        raise SchemaError(f"{where}, values", "the domain is empty", "list at least one value")
    _check_count(f"{where}, values", len(values))
    seen: set[str] = set()
    for value in values:
        if not is_label(value):
            raise SchemaError(f"{where}, values", f"{short(value)} is not a label", "use non-empty texts or numbers")
        if value in seen:
            raise SchemaError(f"{where}, values", f"{value[:40]!r} is listed twice", "list each value once")
        seen.add(value)


def _range(where: str, ends: Any) -> None:
    if len(ends) != 2 or not all(_is_int(end) for end in ends):
        raise SchemaError(f"{where}, range", "must be two integers", "write for example `range: [0, 99]`")
    low, high = ends
    if low > high:
        raise SchemaError(
            f"{where}, range", f"the domain is empty: {low} is above {high}", "write the smaller end first"
        )
    if max(abs(low), abs(high)) >= 2**62:
        raise SchemaError(f"{where}, range", "its ends do not fit 64-bit integers", "use smaller numbers")
    _check_count(f"{where}, range", high - low + 1)


def _bins(where: str, edges: Any) -> None:
    if len(edges) < 2:
        raise SchemaError(f"{where}, bins", "the domain is empty", "give at least two edges")
    _check_count(f"{where}, bins", len(edges))
    if not all(_is_int(edge) or (isinstance(edge, float) and math.isfinite(edge)) for edge in edges):
        raise SchemaError(f"{where}, bins", "edges must be finite numbers", "write for example `bins: [0, 10, 50]`")
    if max(map(abs, edges)) >= 2**53:
        raise SchemaError(f"{where}, bins", "edges beyond 2^53 are not exact", "use smaller numbers")
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(f"{where}, bins", "edges must increase", "sort them and drop repeated ones")


def _size(where: str, codes: Any) -> None:
    if not _is_int(codes):
        raise SchemaError(f"{where}, size", "must be an integer", "write for example `size: 10`")
    if codes < 1:
        raise SchemaError(f"{where}, size", "the domain is empty", "give a size of at least 1")
    _check_count(f"{where}, size", codes)


CHECKS: Final = {"values": _values, "range": _range, "bins": _bins, "size": _size}


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise SchemaError(field, f"{count:,} values are more than {MAX_VALUES:,}", "declare coarser values or bins")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def read_dates(where: str, raw: Any) -> tuple[str, str]:
    """Two dates in ISO form, the earlier first."""
    fix = "write for example `dates: [2020-01-01, 2024-12-31]`"
    if not isinstance(raw, list | tuple) or len(raw) != 2:
        raise SchemaError(f"{where}, dates", "must be two dates", fix)
    try:
        first, last = (date.fromisoformat(str(each)) for each in raw)
    except ValueError:
        raise SchemaError(f"{where}, dates", "must be two dates as YYYY-MM-DD", fix) from None
    if first > last:
        raise SchemaError(f"{where}, dates", "the domain is empty: the first is after the last", fix)
    if (last - first).days > _LARGEST:
        raise SchemaError(f"{where}, dates", f"there are more than {_LARGEST:,} days between them", fix)
    return first.isoformat(), last.isoformat()


def day_numbers(ends: Sequence[str]) -> tuple[int, int]:
    """Days since 1970-01-01 of both ends."""
    epoch = date(1970, 1, 1)
    first, last = ((date.fromisoformat(end) - epoch).days for end in ends)
    return first, last


def day_groups(ends: Sequence[str], step: Step) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The labels of the steps between two dates, and the step of each day.

    >>> day_groups(("2023-12-30", "2024-01-02"), "quarter")
    (('2023-Q4', '2024-Q1'), (0, 0, 1, 1))
    """
    first = date.fromisoformat(ends[0])
    low, high = day_numbers(ends)
    names = [_label(first + timedelta(days=each), step) for each in range(high - low + 1)]
    places = {label: place for place, label in enumerate(dict.fromkeys(names))}
    return tuple(places), tuple(places[name] for name in names)


def calendar_levels(ends: Sequence[str], by: Step) -> tuple[Level, ...]:
    """The levels above a step.

    >>> [level.name for level in calendar_levels(("2023-01-01", "2023-12-31"), "month")]
    ['quarter', 'year']
    """
    _, own = day_groups(ends, by)
    some_day = {place: day for day, place in enumerate(own)}
    coarser = ((step, *day_groups(ends, step)) for step in STEPS[STEPS.index(by) + 1 :])
    return tuple(
        Level(step, labels, tuple(map(places.__getitem__, some_day.values()))) for step, labels, places in coarser
    )


def _label(day: date, step: Step) -> str:
    if step == "day":
        return day.isoformat()
    if step == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}-{day.month:02}" if step == "month" else f"{day.year:04}"
