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
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.at_level import AtLevel, base_of
from hushcube.model.attribute import Attribute
from hushcube.model.marginal import Marginal
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import (
    Coder,
    Codes,
    code_type,
    coder,
    number_labels,
    number_of,
    refusals,
    regrouped,
)
from hushcube.private.engines.contract import ExactCounts, Progress
from hushcube.private.engines.cover import greedy, members_of
from hushcube.private.engines.fit import missing_values, position, refuse_data, refused, without_unit
from hushcube.private.engines.frames import Frame
from hushcube.private.engines.grouped.counts import GroupedCounts, Tally
from hushcube.private.engines.grouped.warehouse import (
    OUTSIDE,
    Binned,
    Column,
    Kind,
    Known,
    Opened,
    Summed,
    Warehouse,
    Whole,
)
from hushcube.private.engines.measuring import Ints, check_sums

GROUPS: Final = 1 << 20
"""Cells up to which all attributes used are grouped by at once, and that a covering table may have."""
MOST_SCANS: Final = 16
"""Covering tables beyond which reading the rows again costs more than fetching all groups (measured: from 6 on)."""
MOST_BOUNDED_SCANS: Final = 4
"""The same where people have many rows: each reading may have to choose the rows that count again."""
_MOST_SEARCHED: Final = 20_000
"""Wanted marginals up to which a cover is looked for."""
_MOST_LABELS: Final = 2_000
"""Labels of an attribute that are sent along, so that what no label names is grouped as one."""
_EXACT: Final = 2**53
"""Integers below this are exact as doubles."""


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
        progress: Progress | None = None,
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
                columns, numbers = _coded(table, [(schema.attributes[i], asked[i]) for i in cover[place]])
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


def _asked(data: Opened, schema: Schema, cover: Sequence[Marginal], measures: Sequence[Measure]) -> dict[int, _Remote]:
    """What is asked for each attribute used; every column must be there."""
    refuse_data(schema, data.names)
    if schema.unit is not None:
        position(data.names, schema.unit.column, f"unit {schema.unit.column!r}")
    used = sorted({i for marginal in cover for i in marginal})
    asked = {i: _remote(schema.attributes[i], data) for i in used}
    for measure in measures:
        position(data.names, measure.source_column, f"measure {measure.name!r}")
    return asked


def _bounded(
    data: Opened, schema: Schema, asked: Mapping[int, _Remote], measures: Sequence[Measure]
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


@dataclass(frozen=True, eq=False)
class _Remote:
    """What is asked of the warehouse for an attribute; `places` says where its integers go, None: raw values."""

    column: Column
    places: NDArray[np.int64] | None = None

    def positions(self, attribute: Attribute, codes: NDArray[np.int64]) -> Codes:
        """Where each group stands in the attribute's cells."""
        missing, other = refusals(attribute)
        # OUTSIDE and MISSING are the last two from the end.
        places = np.zeros(0, np.int64) if self.places is None else self.places
        if len(codes) and not OUTSIDE <= codes.min() <= codes.max() < len(places):
            raise ValueError("an adapter returned a number that is no bin")
        positions: Codes = np.append(places, (other, missing)).astype(code_type(attribute.size))[codes]
        return positions


def _remote(attribute: Attribute, data: Opened) -> _Remote:
    name = attribute.source_column
    kind = data.kinds[position(data.names, name, f"attribute {base_of(attribute).name!r}")]
    if isinstance(attribute, AtLevel):
        return _level(attribute, kind) or _regrouped(attribute, _remote(attribute.base, data))
    if attribute.before is not None or attribute.dates is not None:
        return _Remote(Column(name))
    if attribute.kind == "values":
        if kind == "text" and attribute.size <= _MOST_LABELS:
            return _Remote(Known(name, attribute.labels, _no_label(attribute)))
        if kind in ("integer", "number") and attribute.size <= _MOST_LABELS:
            return _numbers(attribute, kind)
        return _Remote(Column(name))
    if kind not in ("integer", "number"):
        return _Remote(Column(name))
    places = np.arange(attribute.domain_size)
    missing = _missing_number(attribute)
    if attribute.bins is not None:
        edges = tuple(map(float, attribute.bins))
        return _Remote(Binned(name, edges, None if missing is None else float(missing)), places)
    low, high = attribute.range if attribute.range is not None else (0, (attribute.codes or 0) - 1)
    if kind == "integer":
        whole = missing is not None and missing == missing.to_integral_value() and abs(missing) < 2**63
        return _Remote(Whole(name, low, high, int(missing) if missing is not None and whole else None), places)
    if max(abs(low), abs(high)) < _EXACT:
        return _Remote(Whole(name, low, high, None if missing is None else float(missing)), places)
    return _Remote(Column(name))


def _level(attribute: AtLevel, kind: Kind) -> _Remote | None:
    """Runs of numbers as bins, so that groups travel and not their members; None where groups are something else."""
    base = attribute.base
    places = base.grouped[attribute.depth - 1].places
    firsts = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1]]
    if kind not in ("integer", "number") or base.dates is not None or base.values is not None or len(firsts) < 2:
        return None
    missing = _missing_number(base)
    if base.bins is not None:
        edges: list[float] = [*(base.bins[i] for i in firsts), base.bins[-1]]
    else:
        low, high = base.range if base.range is not None else (0, (base.codes or 0) - 1)
        if kind != "integer" or max(abs(low), abs(high)) >= _EXACT or low + firsts[-1] == high:
            return None  # between two integers there may be other numbers; and the last bin needs two ends
        edges = [*(low + i for i in firsts), high]
    column = Binned(attribute.source_column, tuple(map(float, edges)), None if missing is None else float(missing))
    return _Remote(column, np.array([places[i] for i in firsts]))


def _regrouped(attribute: AtLevel, below: _Remote) -> _Remote:
    """What is asked for the values themselves, with places in the level."""
    if below.places is None:  # the coder of the level does it
        return below
    return _Remote(below.column, regrouped(attribute, below.places.astype(np.uint32)).astype(np.int64))


def _numbers(attribute: Attribute, kind: Kind) -> _Remote:
    """Labels that are numbers, as bins that hold one double each: [x, next double after x)."""
    places = number_labels(attribute)
    if kind == "integer":
        places = {x: i for x, i in places.items() if x == x.to_integral_value()}
        exact = all(abs(x) < _EXACT for x in places)
    else:  # a 32-bit float meets a label as the nearest 32-bit float: which floats they are is not known here
        exact = all(abs(x) < _EXACT and x == float(np.float32(float(x))) for x in places)
    at = {float(x): i for x, i in places.items()}
    if not exact or len(at) < len(places):
        return _Remote(Column(attribute.source_column))
    edges = sorted({edge for x in at for edge in (x, math.nextafter(x, math.inf))})
    if not edges:
        edges = [0.0, math.nextafter(0.0, 1.0)]
    edges.append(math.nextafter(edges[-1], math.inf))  # the last bin, closed, holds no label
    other = refusals(attribute)[1]
    return _Remote(
        Binned(attribute.source_column, tuple(edges)), np.array([at.get(edge, other) for edge in edges[:-1]])
    )


def _missing_number(attribute: Attribute) -> Decimal | None:
    """The number that is the label of the category for missing values, where it is one."""
    if attribute.missing_position is None or attribute.missing in attribute.domain:
        return None
    return number_of(attribute.missing)


def _no_label(attribute: Attribute) -> str:
    """A text that is no label."""
    return next(text for text in ("?" * n for n in range(1, attribute.size + 2)) if attribute.position(text) is None)


def _coded(table: pa.Table, asked: Sequence[tuple[Attribute, _Remote]]) -> tuple[list[Codes], list[Ints]]:
    """The positions of each group; how many rows it has, and the sums and missing values of its measures."""
    raw = [i for i, (_, remote) in enumerate(asked) if remote.places is None]
    coders: dict[int, Coder] = {}
    if raw:
        with Frame(table, "arrow").open() as data:
            types = [str(kind.id) for kind in data.relation.types]
            coders = {i: coder(asked[i][0], f"#{i + 1}", types[i]) for i in raw}
            # All columns go through DuckDB together, since it keeps no order of rows.
            fetched = [coders[i].sql if i in coders else f"#{i + 1}" for i in range(len(types))]
            chosen = data.relation.project(", ".join(f"{sql} AS k{i}" for i, sql in enumerate(fetched)))
            table = chosen.to_arrow_table()
    arrays = [_whole(column) for column in table.columns]
    columns = [
        coders[i].positions(array) if i in coders else remote.positions(attribute, _integers(array))
        for i, (array, (attribute, remote)) in enumerate(zip(arrays, asked, strict=False))
    ]
    return columns, [_integers(array) for array in arrays[len(asked) :]]


def _whole(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _integers(array: pa.Array) -> Ints:
    numbers: Ints = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
