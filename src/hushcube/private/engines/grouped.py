"""Engines that group where the data lives: only grouped counts travel.

    SELECT k0, ..., kr, count(*) AS n FROM t GROUP BY k0, ..., kr

An adapter (a `Warehouse`) groups by a few `Column`s. Texts, truth values and the like come back as they are and
are coded by the very coder of DuckDB's rows, so that every engine reads a value alike. Numbers that fall into
bins or a range come back as small integers instead, and texts that no label names come back as one text: what
travels is bounded by the public domain wherever it can be, not by how many values the data holds.

Which group-bys are asked for follows from the sizes of the domains alone: one for all attributes used where
their cells are few, else one for each of a few covering tables; and one for all again where those would be many,
since then rows are fewer than the cells that they are spread over.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.marginal import Marginal
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.engines import ExactCounts, Progress
from hushcube.private.engines.coding import Coder, Codes, code_type, coder, number_labels, number_of, refusals
from hushcube.private.engines.cover import greedy, members_of
from hushcube.private.engines.duckdb import refused
from hushcube.private.engines.frames import Frame
from hushcube.private.engines.kernels import RowCounts
from hushcube.private.engines.names import position
from hushcube.private.engines.warehouse import (
    MISSING,
    OUTSIDE,
    Binned,
    Column,
    Kind,
    Known,
    Opened,
    Warehouse,
    Whole,
)

__all__ = [
    "MISSING",
    "OUTSIDE",
    "Binned",
    "Column",
    "GroupedEngine",
    "Kind",
    "Known",
    "Opened",
    "Warehouse",
    "Whole",
]

GROUPS: Final = 1 << 20
"""Cells up to which all attributes used are grouped by at once, and that a covering table may have."""
MOST_SCANS: Final = 16
"""Covering tables beyond which reading the rows again costs more than fetching all groups (measured: from 6 on)."""
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

    def count(
        self,
        schema: Schema,
        wanted: Sequence[NDArray[np.int32]],
        *,
        measures: Sequence[Measure] = (),
        progress: Progress | None = None,
    ) -> ExactCounts:
        """Group by what the sizes suggest, and keep the coded groups."""
        if schema.unit is not None or measures:  # groups no longer know whose rows they are, nor what these hold
            what = "rows per person cannot be bounded" if schema.unit is not None else "measures cannot be summed"
            raise DataError("data", f"{what} where the data lives", "write the table to a Parquet file and use that")
        cover = choose_groups(wanted, schema.sizes)
        used = sorted({i for marginal in cover for i in marginal})
        parts: list[tuple[Marginal, RowCounts]] = []
        largest = dict.fromkeys(used, 0)
        with self.warehouse.open() as data:
            remote = {i: _remote(schema.attributes[i], data) for i in used}
            for done, marginal in enumerate(cover, 1):
                table = data.grouped([remote[i].column for i in marginal])
                columns, times = _coded(table, [(schema.attributes[i], remote[i]) for i in marginal])
                for i, column in zip(marginal, columns, strict=True):
                    largest[i] = max(largest[i], int(column.max(initial=0)))
                if all(largest[i] < schema.sizes[i] for i in marginal):
                    coded = dict(zip(marginal, columns, strict=True))
                    parts.append((marginal, RowCounts(coded, len(times), schema.sizes, times)))
                if progress:
                    progress(done / len(cover))
        for i, top in largest.items():
            if top >= schema.sizes[i]:
                raise refused(schema.attributes[i], missing=top == schema.sizes[i])
        if len({counts.rows for _, counts in parts}) > 1:
            raise DataError("data", "changed while it was counted", "count it again, or count a copy")
        return GroupedCounts(parts)


class GroupedCounts(ExactCounts):
    """The groups of each covering table, counted into what is asked for."""

    def __init__(self, parts: Sequence[tuple[Marginal, RowCounts]]) -> None:
        self._parts = sorted(parts, key=lambda part: part[1].kept)

    @property
    def rows(self) -> int:
        """How many rows were counted."""
        return self._parts[0][1].rows

    def tables(self, marginals: NDArray[np.int32]) -> NDArray[np.int64]:
        """From the fewest groups that tell a marginal's attributes apart."""
        found: NDArray[np.int64] | None = None
        left = np.ones(len(marginals), dtype=bool)
        for attributes, counts in self._parts:
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


def choose_groups(wanted: Sequence[NDArray[np.int32]], sizes: Sequence[int]) -> list[Marginal]:
    """The attributes of each group-by: together they contain every wanted marginal.

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
    tables, _ = greedy(members_of(wanted, len(sizes)), sizes, GROUPS)
    return tables if len(tables) <= MOST_SCANS else [used]


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
    kind = data.kinds[position(data.names, name, f"attribute {attribute.name!r}")]
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


def _coded(table: pa.Table, asked: Sequence[tuple[Attribute, _Remote]]) -> tuple[list[Codes], NDArray[np.int64]]:
    """The positions of each group, and how many rows it has."""
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
    *arrays, times = [_whole(column) for column in table.columns]
    columns = [
        coders[i].positions(array) if i in coders else remote.positions(attribute, _integers(array))
        for i, (array, (attribute, remote)) in enumerate(zip(arrays, asked, strict=True))
    ]
    return columns, _integers(times)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _integers(array: pa.Array) -> NDArray[np.int64]:
    numbers: NDArray[np.int64] = array.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers
