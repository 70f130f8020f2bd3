"""Days, months, quarters and years between two dates: public domains with the levels that calendars have."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, Final, Literal, get_args

from hushcube.errors import SchemaError
from hushcube.model.level import Level

Step = Literal["day", "month", "quarter", "year"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
_LARGEST: Final = 200_000
"""Days between the ends: five centuries."""


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
