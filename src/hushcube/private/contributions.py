"""How much of the data a bound on rows per person leaves out: a tool for the owner, NOT private.

Tables are of the rows that count. A small bound needs little noise and leaves out more, and no margin covers what is
left out: the owner has to see both before choosing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from hushcube.errors import DataError
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.duckdb import recognise


@dataclass(frozen=True)
class Bound:
    """How many rows count under one bound; exact numbers, for the owner of the data only."""

    max_rows: int
    counted: int
    left_out: int

    @property
    def share(self) -> str:
        """What is left out, in percent."""
        return share(self.left_out, self.counted + self.left_out)


@guarded
def compare_bounds(schema: Schema, source: object, *, query: str | None = None) -> list[Bound]:
    """What several bounds would leave out, the declared one among them; nothing without a unit or its column."""
    unit = schema.unit
    if unit is None:
        return []
    with recognise(source, query=query).open() as data:
        try:
            place = data.position(unit.column, f"unit {unit.column!r}")
        except DataError:
            return []
        people = data.relation.project(f"#{place + 1} AS p").aggregate("p, count(*) AS n", "p")
        found = people.filter("p IS NOT NULL").aggregate("n, count(*) AS people", "n").fetchall()
        own = people.filter("p IS NULL").aggregate("coalesce(sum(n), 0)").fetchall()[0][0]  # each a person
    sizes = {int(n): int(many) for n, many in found}
    rows = int(own) + sum(n * many for n, many in sizes.items())
    bounds = []
    for most in sorted({*bounds_up_to(max(sizes, default=1)), unit.max_rows}):
        counted = int(own) + sum(min(n, most) * many for n, many in sizes.items())
        bounds.append(Bound(most, counted, rows - counted))
    return bounds


def bounds_up_to(largest: int) -> list[int]:
    """Bounds to compare: 1, 2, 3, 5, 10, 20, 50, ... up to the first that leaves nothing out.

    >>> bounds_up_to(60)
    [1, 2, 3, 5, 10, 20, 50, 100]
    """
    steps = sorted({3, *(digit * 10**power for power in range(len(str(largest)) + 1) for digit in (1, 2, 5))})
    below = list(takewhile(lambda bound: bound < largest, steps))
    return steps[: len(below) + 1]


def share(part: int, whole: int) -> str:
    """A part in percent, such that neither all nor nothing is claimed without being so.

    >>> share(850, 1000), share(1, 10**6), share(0, 9), share(999_999, 10**6)
    ('85.0%', 'under 0.1%', '0%', 'over 99.9%')
    """
    if part in (0, whole):
        return "0%" if part == 0 else "100%"
    percent = 100 * part / whole
    if percent < 0.1:
        return "under 0.1%"
    return f"{percent:.1f}%" if percent < 99.9 else "over 99.9%"
