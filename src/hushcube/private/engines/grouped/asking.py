"""What a warehouse is asked for each attribute and measure, and how its answers become positions and integers.

Texts may stand where numbers should: DuckDB says which of them are numbers, whatever database holds them, since
databases disagree about ` 2 `, `1_000`, `inf`, `0x1` and `1e400`. An adapter that meets such texts groups by them, too:
columns t0, t1, ... come with the answer, null where the database has summed already. Here they are read as DuckDB reads
them and join the sums; the groups stay apart, which does no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa

from hushcube.model.arrays import Ints
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import AtLevel, base_of
from hushcube.model.measure import Measure
from hushcube.private.engines import coding
from hushcube.private.engines.coding import EXACT, Coder, Codes, number_labels, quantised, refusals
from hushcube.private.engines.contract import Measures, position
from hushcube.private.engines.grouped.warehouse import OUTSIDE, Binned, Column, ColumnType, Known, Opened, Whole
from hushcube.private.engines.source import Frame

_MOST_LABELS: Final = 2_000  # labels of an attribute that are sent along, so that what no label names is grouped as one


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the warehouse for an attribute; `places` says where its integers go, None: raw values."""

    column: Column
    places: Ints | None = None

    def positions(self, attribute: Attribute, codes: Ints) -> Codes:
        """Where each group stands in the attribute's cells."""
        missing, other = refusals(attribute)
        # OUTSIDE and MISSING are the last two from the end.
        places = np.zeros(0, np.int64) if self.places is None else self.places
        if len(codes) and not OUTSIDE <= codes.min() <= codes.max() < len(places):
            raise ValueError("an adapter returned a number that is no bin")
        positions: Codes = np.append(places, (other, missing)).astype(coding.code_type(attribute.size))[codes]
        return positions


def asked_for(attribute: Attribute, data: Opened) -> Asked:
    """What to group by: integers or known texts where the public domain says which, else the values themselves."""
    name = attribute.source_column
    column_type = data.column_types[position(data.names, name, f"attribute {base_of(attribute).name!r}")]
    if isinstance(attribute, AtLevel):
        if (level := _level(attribute, column_type)) is not None:
            return level
        below = asked_for(attribute.base, data)
        if below.places is None:  # the coder of the level does it
            return below
        return Asked(below.column, coding.regrouped(attribute, below.places.astype(np.uint32)).astype(np.int64))
    if attribute.before is not None or attribute.dates is not None:
        return Asked(Column(name))
    if attribute.declared_by == "values":
        if column_type == "text" and attribute.size <= _MOST_LABELS:
            marks = ("?" * n for n in range(1, attribute.size + 2))
            no_label = next(mark for mark in marks if attribute.position(mark) is None)
            return Asked(Known(name, attribute.coded, no_label))
        if column_type in ("integer", "number") and attribute.size <= _MOST_LABELS:
            return _numbers(attribute, column_type)
        return Asked(Column(name))
    if column_type not in ("integer", "number"):
        return Asked(Column(name))
    places = np.arange(attribute.domain_size)
    missing = _missing_number(attribute)
    if attribute.bins is not None:
        edges = tuple(map(float, attribute.bins))
        return Asked(Binned(name, edges, None if missing is None else float(missing)), places)
    low, high = coding.ends(attribute)
    if column_type == "integer":
        whole = missing is not None and coding.is_whole(missing) and abs(missing) < 2**63
        return Asked(Whole(name, low, high, int(missing) if missing is not None and whole else None), places)
    if max(abs(low), abs(high)) < EXACT:
        return Asked(Whole(name, low, high, None if missing is None else float(missing)), places)
    return Asked(Column(name))


def _level(attribute: AtLevel, column_type: ColumnType) -> Asked | None:
    """Runs of numbers as bins, so that groups travel and not their members; None where groups are something else."""
    base = attribute.base
    places = base.grouped[attribute.depth - 1].places
    firsts = [i for i, place in enumerate(places) if i == 0 or place != places[i - 1]]
    if column_type not in ("integer", "number") or base.dates is not None or base.values is not None or len(firsts) < 2:
        return None
    missing = _missing_number(base)
    if base.bins is not None:
        edges: list[float] = [*(base.bins[i] for i in firsts), base.bins[-1]]
    else:
        low, high = coding.ends(base)
        if column_type != "integer" or max(abs(low), abs(high)) >= EXACT or low + firsts[-1] == high:
            return None  # between two integers there may be other numbers; and the last bin needs two ends
        edges = [*(low + i for i in firsts), high]
    column = Binned(attribute.source_column, tuple(map(float, edges)), None if missing is None else float(missing))
    return Asked(column, np.array([places[i] for i in firsts]))


def _numbers(attribute: Attribute, column_type: ColumnType) -> Asked:
    """Labels that are numbers, as bins that hold one double each: [x, next double after x)."""
    places = number_labels(attribute)
    if column_type == "integer":
        places = {x: i for x, i in places.items() if coding.is_whole(x)}
        exact = all(abs(x) < EXACT for x in places)
    else:  # a 32-bit float meets a label as the nearest 32-bit float: which floats they are is not known here
        exact = all(abs(x) < EXACT and x == float(np.float32(float(x))) for x in places)
    at = {float(x): i for x, i in places.items()}
    if not exact or len(at) < len(places):
        return Asked(Column(attribute.source_column))
    edges = sorted({edge for x in at or (0.0,) for edge in (x, math.nextafter(x, math.inf))})
    edges.append(math.nextafter(edges[-1], math.inf))  # the last bin, closed, holds no label
    other = refusals(attribute)[1]
    return Asked(Binned(attribute.source_column, tuple(edges)), np.array([at.get(edge, other) for edge in edges[:-1]]))


def _missing_number(attribute: Attribute) -> Decimal | None:
    """The number that is the label of the category for missing values, where it is one."""
    if attribute.missing_position is None or attribute.missing in attribute.domain:
        return None
    return coding.number_of(attribute.missing)


def coded_groups(table: pa.Table, asked: Sequence[tuple[Attribute, Asked]]) -> tuple[list[Codes], list[Ints]]:
    """The positions of each group; how many rows it has, and the sums and missing values of its measures."""
    raw = [i for i, (_, remote) in enumerate(asked) if remote.places is None]
    coders: dict[int, Coder] = {}
    if raw:
        with Frame(table, "arrow").open() as data:
            types = [str(each.id) for each in data.relation.types]
            coders = {i: coding.coder(asked[i][0], f"#{i + 1}", types[i]) for i in raw}
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


def missing_integer(measure: Measure) -> int:
    """What a row without a number adds to a sum."""
    return 0 if measure.missing is None else int(quantised(pa.array([math.nan]), measure)[0][0])


def read_texts(table: pa.Table, sums: Measures) -> pa.Table:
    """Turn columns t0, t1, ... (of the sums with these numbers) into parts of s0, m0, s1, m1, ..."""
    asked = [i for i in range(len(sums)) if f"t{i}" in table.column_names]
    rows: Ints = table.column("n").to_numpy()
    for i in asked:
        known = _whole(table.column(f"t{i}")).dictionary_encode()
        integers, missing = _quantised_texts(known.dictionary, sums[i])
        places = known.indices.fill_null(len(known.dictionary)).to_numpy(zero_copy_only=False)
        for name, more in ((f"s{i}", integers), (f"m{i}", missing)):
            added = table.column(name).to_numpy() + np.append(more, 0)[places] * rows
            table = table.set_column(table.column_names.index(name), name, pa.array(added, pa.int64()))
    return table.drop_columns([f"t{i}" for i in asked])


def _quantised_texts(texts: pa.Array, measure: Measure) -> tuple[Ints, Ints]:
    """The integer of each text, and 1 where it is no number."""
    numbered = pa.table({"place": np.arange(len(texts)), "text": texts.cast(pa.string())})
    with Frame(numbered, "arrow").open() as data:
        parsed = data.relation.project("#1 AS place, TRY_CAST(#2 AS DOUBLE) AS x").to_arrow_table().sort_by("place")
    doubles = _whole(parsed.column("x")).fill_null(math.nan)
    missing = np.isnan(doubles.to_numpy(zero_copy_only=False))
    integers, _ = quantised(doubles, measure)
    integers[missing] = missing_integer(measure)
    return integers, missing.astype(np.int64)
