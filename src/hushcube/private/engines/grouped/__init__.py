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

from hushcube.errors import DataError
from hushcube.model.arrays import Marginal
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import check_sums
from hushcube.private.engines.contract import (
    ExactCounts,
    Measures,
    ReadShare,
    Wanted,
    attributes_of,
    position,
    refuse_data,
    without_unit,
)
from hushcube.private.engines.covers import Sizes, greedy, members_of
from hushcube.private.engines.grouped.asking import Asked, asked_for, coded_groups
from hushcube.private.engines.grouped.warehouse import Opened, Warehouse
from hushcube.private.engines.tally import Tally, counts_of

GROUPS: Final = 1 << 20
"""Cells up to which all attributes used are grouped by at once, and that a covering table may have."""
MOST_SCANS: Final = 16
"""Covering tables beyond which reading the rows again costs more than fetching all groups (measured: from 6 on)."""
MOST_BOUNDED_SCANS: Final = 4
"""The same where people have many rows: each reading may have to choose the rows that count again."""
_MOST_SEARCHED: Final = 20_000  # wanted marginals up to which a cover is looked for


class GroupedEngine:
    """Counts the tables of one table of a warehouse."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse

    @guarded
    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        """Group by what the sizes suggest, and keep the coded groups."""
        with self.warehouse.open() as data:
            once = schema.unit is None or data.keeps_choice
            most, smaller = (MOST_SCANS, data.smaller) if once else (MOST_BOUNDED_SCANS, {})
            cover = choose_groups(wanted, schema.sizes, most, smaller)
            tallies = [Tally(schema, marginal, wanted, measures) for marginal in cover]
            asked = _asked(data, schema, cover, measures)
            data, rows, dropped = _bounded(data, schema, asked, measures)
            check_sums(measures, rows or 0)
            reached = 0
            for place, table in data.several([[asked[i].column for i in marginal] for marginal in cover], measures):
                columns, numbers = coded_groups(table, [(schema.attributes[i], asked[i]) for i in cover[place]])
                tallies[place].add(columns, numbers[0], numbers[1::2], [int(each.sum()) for each in numbers[2::2]])
                if progress and place > reached:
                    progress(place / len(cover))
                    reached = place
        counts = counts_of(schema, measures, tallies)
        if len({tally.rows for tally in tallies} | ({rows} if rows is not None else set())) > 1:
            raise DataError("data", "changed while it was counted", "count it again, or count a copy")
        if progress:
            progress(1.0)
        counts.dropped = dropped
        return counts


def _asked(data: Opened, schema: Schema, cover: Sequence[Marginal], measures: Measures) -> dict[int, Asked]:
    """What is asked for each attribute used; every column must be there."""
    refuse_data(schema, data.names)
    if schema.unit is not None:
        position(data.names, schema.unit.column, f"unit {schema.unit.column!r}")
    asked = {i: asked_for(schema.attributes[i], data) for i in sorted({i for marginal in cover for i in marginal})}
    for measure in measures:
        position(data.names, measure.source_column, f"measure {measure.name!r}")
    return asked


def _bounded(
    data: Opened, schema: Schema, asked: Mapping[int, Asked], measures: Measures
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


def choose_groups(
    wanted: Wanted, sizes: Sizes, most: int = MOST_SCANS, smaller: Mapping[int, float] = MappingProxyType({})
) -> list[Marginal]:
    """The attributes of each group-by: together they contain every wanted marginal.

    At most `most` group-bys; `smaller` says what those of at most so many groups cost, where that is less.

    >>> import numpy as np
    >>> pairs = np.array([(0, 1), (1, 2), (0, 2)], np.int32)
    >>> choose_groups([pairs], (10, 10, 10))
    [(0, 1, 2)]
    >>> sorted(choose_groups([pairs], (1000, 1000, 1000)))
    [(0, 1), (0, 2), (1, 2)]
    """
    used = tuple(attributes_of(wanted))
    if math.prod(sizes[i] for i in used) <= GROUPS or sum(map(len, wanted)) > _MOST_SEARCHED:
        return [used]
    members = members_of(wanted, len(sizes))
    found = []
    for limit, cost in {**smaller, GROUPS: 1.0}.items():
        tables, _ = greedy(members, sizes, min(limit, GROUPS))
        if len(tables) <= most:
            found.append((cost * len(tables), tables))
    return min(found)[1] if found else [used]
