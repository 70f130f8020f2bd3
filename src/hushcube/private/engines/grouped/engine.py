"""Engines that group where the data lives: only grouped counts travel.

    SELECT k0, ..., kr, count(*) AS n FROM t GROUP BY k0, ..., kr

An adapter (a `Warehouse`) groups by a few `Column`s. Texts, truth values and the like come back as they are and
are coded by the very coder of DuckDB's rows, so that every engine reads a value alike. Numbers that fall into
bins or a range come back as small integers instead, and texts that no label names come back as one text: what
travels is bounded by the public domain wherever it can be, not by how many values the data holds. Measures are
rounded and summed where the rows are, and people with too many rows lose some there: neither ids nor rows travel.

Which group-bys are asked for follows from the sizes of the domains alone: one for all attributes used where
their cells are few, else one for each of a few covering tables; and one for all again where those would be many,
since then rows are fewer than the cells that they are spread over. Such groups are coded as they arrive, a few bytes
each, and counted into covering tables where they are too many to be kept.

What group-bys answer counts a group as often as it has rows; for a measure, as often as its integers sum up to.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.arrays import Ints, Marginal
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import Codes
from hushcube.private.engines.contract import ExactCounts, ReadShare
from hushcube.private.engines.cover import Counter, greedy, members_of
from hushcube.private.engines.fit import missing_values, position, refuse_data, refused, without_unit
from hushcube.private.engines.grouped.asking import Asked, asked_for, coded_groups
from hushcube.private.engines.grouped.warehouse import (
    Opened,
    Summed,
    Warehouse,
)
from hushcube.private.engines.measuring import check_sums

GROUPS: Final = 1 << 20
"""Cells up to which all attributes used are grouped by at once, and that a covering table may have."""
MOST_SCANS: Final = 16
"""Covering tables beyond which reading the rows again costs more than fetching all groups (measured: from 6 on)."""
MOST_BOUNDED_SCANS: Final = 4
"""The same where people have many rows: each reading may have to choose the rows that count again."""
_MOST_SEARCHED: Final = 20_000
"""Wanted marginals up to which a cover is looked for."""


class GroupedEngine:
    """Counts the tables of one table of a warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    @guarded
    def count(
        self,
        schema: Schema,
        wanted: Sequence[NDArray[np.int32]],
        *,
        measures: Sequence[Measure] = (),
        progress: ReadShare | None = None,
    ) -> ExactCounts:
        """Group by what the sizes suggest, and keep the coded groups."""
        with self.warehouse.open() as data:
            once = schema.unit is None or data.keeps_choice
            most, smaller = (MOST_SCANS, data.smaller) if once else (MOST_BOUNDED_SCANS, {})
            cover = choose_groups(wanted, schema.sizes, most, smaller)
            tallies = [Tally(marginal, wanted, schema.sizes, len(measures)) for marginal in cover]
            asked = _asked(data, schema, cover, measures)
            data, rows, dropped = _bounded(data, schema, asked, measures)
            check_sums(measures, rows or 0)
            groups = [[asked[i].column for i in marginal] for marginal in cover]
            reached = 0
            for place, table in data.several(groups, [Summed(measure) for measure in measures]):
                columns, numbers = coded_groups(table, [(schema.attributes[i], asked[i]) for i in cover[place]])
                tallies[place].add(columns, numbers)
                if progress and place > reached:
                    progress(place / len(cover))
                    reached = place
        _check(schema, measures, tallies)
        if len({tally.rows for tally in tallies} | ({rows} if rows is not None else set())) > 1:
            raise DataError("data", "changed while it was counted", "count it again, or count a copy")
        if progress:
            progress(1.0)
        counts, *sums = [
            GroupedCounts([(tally.marginal, tally.groups, parts) for tally, parts in zip(tallies, each, strict=True)])
            for each in zip(*(tally.finish() for tally in tallies), strict=True)
        ]
        counts.dropped = dropped
        counts.sums = {measure.name: tables for measure, tables in zip(measures, sums, strict=True)}
        return counts


def _asked(data: Opened, schema: Schema, cover: Sequence[Marginal], measures: Sequence[Measure]) -> dict[int, Asked]:
    """What is asked for each attribute used; every column must be there."""
    refuse_data(schema, data.names)
    if schema.unit is not None:
        position(data.names, schema.unit.column, f"unit {schema.unit.column!r}")
    used = sorted({i for marginal in cover for i in marginal})
    asked = {i: asked_for(schema.attributes[i], data) for i in used}
    for measure in measures:
        position(data.names, measure.source_column, f"measure {measure.name!r}")
    return asked


def _bounded(
    data: Opened, schema: Schema, asked: Mapping[int, Asked], measures: Sequence[Measure]
) -> tuple[Opened, int | None, int]:
    """The rows that count, how many they are where that is needed beforehand, and how many are left out."""
    unit = schema.unit
    if unit is None:
        rows = sum(data.grouped([]).column("n").to_pylist()) if measures else None
        return data, rows, 0
    found = data.people(unit)
    if found.missing and unit.missing == "error":
        raise without_unit(unit)
    if data.steady and found.kept == found.rows:
        return data, found.rows, 0
    names = [remote.column.name for remote in asked.values()] + [measure.source_column for measure in measures]
    # The key is new for every count: which rows stay is as unforeseeable as the noise.
    chosen = data.bounded(unit, tuple(dict.fromkeys(names)), os.urandom(16))
    return chosen, found.kept, found.rows - found.kept


def _check(schema: Schema, measures: Sequence[Measure], tallies: Sequence[Tally]) -> None:
    """Refuse what does not fit, only after all is counted: which is named does not depend on the order of rows."""
    for i in sorted({i for tally in tallies for i in tally.marginal}):
        top = max(tally.largest[i] for tally in tallies if i in tally.largest)
        if top >= schema.sizes[i]:
            raise refused(schema.attributes[i], missing=top == schema.sizes[i])
    for i, measure in enumerate(measures):
        if measure.missing is None and any(tally.missing[i] for tally in tallies):
            raise missing_values(measure)


def choose_groups(
    wanted: Sequence[NDArray[np.int32]],
    sizes: Sequence[int],
    most: int = MOST_SCANS,
    smaller: Mapping[int, float] = MappingProxyType({}),
) -> list[Marginal]:
    """The attributes of each group-by: together they contain every wanted marginal.

    At most `most` group-bys; `smaller` says what those of at most so many groups cost, where that is less.

    >>> pairs = np.array([(0, 1), (1, 2), (0, 2)], np.int32)
    >>> choose_groups([pairs], (10, 10, 10))
    [(0, 1, 2)]
    >>> sorted(choose_groups([pairs], (1000, 1000, 1000)))
    [(0, 1), (0, 2), (1, 2)]
    """
    used = tuple(sorted({int(i) for marginals in wanted for i in np.unique(marginals)}))
    few = math.prod(sizes[i] for i in used) <= GROUPS
    if few or sum(map(len, wanted)) > _MOST_SEARCHED:
        return [used]
    members = members_of(wanted, len(sizes))
    found = []
    for limit, cost in {**smaller, GROUPS: 1.0}.items():
        tables, _ = greedy(members, sizes, min(limit, GROUPS))
        if len(tables) <= most:
            found.append((cost * len(tables), tables))
    return min(found)[1] if found else [used]


class Tally:
    """Takes the groups of one group-by, in parts; what the schema refuses is remembered, and no longer counted."""

    def __init__(
        self, marginal: Marginal, wanted: Sequence[NDArray[np.int32]], sizes: Sequence[int], measures: int
    ) -> None:
        self.marginal = marginal
        self.rows = 0
        self.groups = 0
        self.largest = dict.fromkeys(marginal, 0)
        self.missing = [0] * measures
        self._sizes = sizes
        within = [marginals[np.isin(marginals, marginal).all(axis=1)] for marginals in wanted]
        within = [marginals for marginals in within if len(marginals)]
        self._counters = [Counter(within, sizes, None) for _ in range(1 + measures)]

    def add(self, columns: Sequence[Codes], numbers: Sequence[Ints]) -> None:
        """Positions of some groups; then their numbers of rows, and for each measure its sums and missing values."""
        rows, *measured = numbers
        self.rows += int(rows.sum())
        self.groups += len(rows)
        for i, column in zip(self.marginal, columns, strict=True):
            self.largest[i] = max(self.largest[i], int(column.max(initial=0)))
        self.missing = [total + int(more.sum()) for total, more in zip(self.missing, measured[1::2], strict=True)]
        if all(top < self._sizes[i] for i, top in self.largest.items()):
            batch = dict(zip(self.marginal, columns, strict=True))
            for counter, weights in zip(self._counters, [rows, *measured[::2]], strict=True):
                counter.add(batch, len(rows), weights)

    def finish(self) -> list[ExactCounts]:
        """The counts, and the sums of each measure."""
        return [counter.finish() for counter in self._counters]


class GroupedCounts(ExactCounts):
    """The groups of each covering table, counted into what is asked for."""

    def __init__(self, parts: Sequence[tuple[Marginal, int, ExactCounts]]) -> None:
        self._parts = sorted(parts, key=lambda part: part[1])

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self._parts[0][2].rows

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """From the fewest groups that tell a marginal's attributes apart."""
        found: Ints | None = None
        left = np.ones(len(marginals), dtype=bool)
        for attributes, _, counts in self._parts:
            here = left & np.isin(marginals, attributes).all(axis=1)
            if here.all():
                return counts.tables(marginals)
            if here.any():
                tables = counts.tables(marginals[here])
                if found is None:
                    found = np.zeros((len(marginals), *tables.shape[1:]), dtype=np.int64)
                found[here] = tables
                left &= ~here
        if left.any() or found is None:
            raise LookupError("a table was asked for that was not announced in `wanted`")
        return found
