"""What bounds on the rows of a person leave out, for the owner who has to choose one. NOT private.

Under a bound, tables are of the rows that count. A small one needs little noise and leaves out more, and no margin
covers that: the owner has to see both before choosing.

With n_p rows of person p, a bound k counts C(k) = sum_p min(n_p, k) rows. One row more for everybody counts one more of
each person who has it, so that C(k + 1) - C(k) people have more than k rows and lose some. So two counts say all there
is to know about a bound, whatever the engine is; DuckDB, which `schema check` asks, counts n_p itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np

from hushcube.errors import DataError
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.contract import Engine, ReadShare
from hushcube.private.engines.duckdb import recognise
from hushcube.private.engines.source import changed
from hushcube.text import share


@dataclass(frozen=True)
class Bound:
    """How many rows count under one bound; exact numbers, for the owner of the data only."""

    max_rows: int
    counted: int
    left_out: int
    people: int
    """How many people lose rows."""

    @property
    def share(self) -> str:
        """What is left out, in percent."""
        return share(self.left_out, self.counted + self.left_out)


def count_bounds(schema: Schema, engine: Engine, bounds: Sequence[int], progress: ReadShare) -> list[Bound]:
    """What each bound would leave out, by counts of whatever engine reads the data; nothing without a unit."""
    if (unit := schema.unit) is None:
        return []
    total = [np.empty((1, 0), np.int32)]
    asked = sorted({k for bound in bounds for k in (bound, bound + 1)})
    counted: dict[int, int] = {}
    rows = set()
    for done, most in enumerate(asked):
        progress(done / len(asked))
        counts = engine.count(replace(schema, unit=replace(unit, max_rows=most)), total)
        counted[most] = counts.rows
        rows.add(counts.rows + counts.dropped)
    if len(rows) > 1:
        raise changed()
    return [Bound(k, counted[k], max(rows) - counted[k], counted[k + 1] - counted[k]) for k in bounds]


@guarded
def compare_bounds(schema: Schema, source: object, *, query: str | None = None) -> list[Bound]:
    """What several bounds would leave out, the declared one among them; nothing without a unit or its column."""
    unit = schema.unit
    if unit is None:
        return []
    with recognise(source, query=query).open() as data:
        try:
            place, _ = data.reference(unit.column, f"unit {unit.column!r}")
        except DataError:
            return []
        people = data.relation.project(f"{place} AS p").aggregate("p, count(*) AS n", "p")
        found = people.filter("p IS NOT NULL").aggregate("n, count(*) AS people", "n").fetchall()
        own = people.filter("p IS NULL").aggregate("coalesce(sum(n), 0)").fetchall()[0][0]  # each a person
    sizes = {int(n): int(many) for n, many in found}
    rows = int(own) + sum(n * many for n, many in sizes.items())
    bounds = []
    for most in sorted({*bounds_up_to(max(sizes, default=1)), unit.max_rows}):
        counted = int(own) + sum(min(n, most) * many for n, many in sizes.items())
        bounds.append(Bound(most, counted, rows - counted, sum(many for n, many in sizes.items() if n > most)))
    return bounds


def bounds_up_to(largest: int) -> list[int]:
    """Bounds to compare: 1, 2, 3, 5, 10, 20, 50, ... up to the first that leaves nothing out.

    >>> bounds_up_to(60)
    [1, 2, 3, 5, 10, 20, 50, 100]
    """
    steps = sorted({3, *(digit * 10**power for power in range(len(str(largest)) + 1) for digit in (1, 2, 5))})
    below = list(takewhile(lambda bound: bound < largest, steps))
    return steps[: len(below) + 1]
