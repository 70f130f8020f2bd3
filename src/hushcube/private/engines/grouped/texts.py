"""Texts that stand where numbers should: DuckDB says which of them are numbers, whatever database holds them.

Databases disagree about ` 2 `, `1_000`, `inf`, `0x1` and `1e400`. An adapter that meets such texts groups by them,
too: `TEXT` columns come with the answer, null where the database has summed already. Here they are read as DuckDB
reads them and join the sums; the groups stay apart, which does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from hushcube.private.engines.frames import Frame
from hushcube.private.engines.grouped.warehouse import Summed
from hushcube.private.engines.measuring import Ints, quantised


def missing_integer(summed: Summed) -> int:
    """What a row without a number adds to a sum."""
    if summed.measure.missing is None:
        return 0
    integers, _ = quantised(pa.array([float("nan")]), summed.measure)
    return int(integers[0])


def read_texts(table: pa.Table, sums: Sequence[Summed]) -> pa.Table:
    """Turn columns t0, t1, ... (of the sums with these numbers) into parts of s0, m0, s1, m1, ..."""
    asked = [i for i in range(len(sums)) if f"t{i}" in table.column_names]
    if not asked:
        return table
    rows: Ints = table.column("n").to_numpy()
    for i in asked:
        texts = table.column(f"t{i}").combine_chunks()
        known = texts.dictionary_encode() if isinstance(texts, pa.Array) else texts.chunk(0).dictionary_encode()
        integers, missing = _integers(known.dictionary, sums[i])
        places = known.indices.fill_null(len(known.dictionary)).to_numpy(zero_copy_only=False)
        for name, more in (("s", integers), ("m", missing)):
            place = table.column_names.index(f"{name}{i}")
            added = table.column(place).to_numpy() + np.append(more, 0)[places] * rows
            table = table.set_column(place, f"{name}{i}", pa.array(added, pa.int64()))
    return table.drop_columns([f"t{i}" for i in asked])


def _integers(texts: pa.Array, summed: Summed) -> tuple[Ints, Ints]:
    """The integer of each text, and 1 where it is no number."""
    numbered = pa.table({"place": np.arange(len(texts)), "text": texts.cast(pa.string())})
    with Frame(numbered, "arrow").open() as data:
        parsed = data.relation.project("#1 AS place, TRY_CAST(#2 AS DOUBLE) AS x").to_arrow_table().sort_by("place")
    values = parsed.column("x").combine_chunks()
    doubles = (values.chunk(0) if isinstance(values, pa.ChunkedArray) else values).fill_null(float("nan"))
    missing = np.isnan(doubles.to_numpy(zero_copy_only=False))
    integers, _ = quantised(doubles, summed.measure)
    integers[missing] = missing_integer(summed)
    return integers, missing.astype(np.int64)
