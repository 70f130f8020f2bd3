"""How fast exact tables are counted, against the other ways, in the same run.

    python -m benchmarks.counting [SCALE]

SCALE 1 (the default) is 10 million rows; 0.01 is a quick look. Ratios are engine / other: below 1 is faster.
"""

from __future__ import annotations

import itertools
import math
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source

REPEATS = 3


def main(scale: float = 1.0) -> list[dict[str, object]]:
    """Measure every regime and print a table."""
    rows = max(1_000, round(10_000_000 * scale))
    few = max(100, round(10_000 * min(1.0, 10 * scale)))
    wide = 100 if scale >= 0.1 else 30
    found: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.parquet", rows, (10,) * 10)
        for k in (2, 3):
            found.append(compare(f"(a) all {k}-way of {rows:,} x 10", path, (10,) * 10, marginals(10, (k,))))
        found.append(many_tables(few, wide))
        for sizes, n in (
            ((2,) * 16, 30_000),
            ((9, 16, 7, 15, 6, 5, 2, 2), 30_000),
            ((9, 16, 7, 15, 6, 5, 2, 2, 4, 4), rows),
        ):
            path = write(Path(folder) / "c.parquet", n, sizes)
            cells = f"{math.prod(sizes):,}"
            full = marginals(len(sizes), (len(sizes),))
            found.append(compare(f"(c) one table of {cells} cells, {n:,} rows", path, sizes, full, group_all=True))
    show(found)
    return found


def write(path: Path, rows: int, sizes: tuple[int, ...]) -> Path:
    """Skewed, independent columns, written in pieces."""
    rng = np.random.default_rng(7)
    names = [f"a{i}" for i in range(len(sizes))]
    with pq.ParquetWriter(path, pa.schema([(name, pa.uint8()) for name in names])) as writer:
        for start in range(0, rows, 1_000_000):
            n = min(1_000_000, rows - start)
            columns = [(size * rng.random(n) ** 1.3).astype(np.uint8) for size in sizes]
            writer.write_table(pa.table(columns, names=names))
    return path


def schema_of(sizes: tuple[int, ...]) -> Schema:
    return Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))


def marginals(d: int, orders: tuple[int, ...]) -> list[np.ndarray]:
    return [np.array(list(itertools.combinations(range(d), k)), np.int32).reshape(-1 if k else 1, k) for k in orders]


def compare(name, path, sizes, wanted, *, group_all=False) -> dict[str, object]:
    """The engine, one GROUP BY for each table, and a plain blocked bincount, from the same Parquet file."""
    ways = {"engine": engine, "group_by": group_by, "bincount": bincount}
    if not group_all:
        ways["cover"] = covering
    seconds = dict.fromkeys(ways, math.inf)
    checks = {}
    for _ in range(REPEATS):  # in turns, so that a busy machine is busy for all
        for way, run in ways.items():
            start = time.perf_counter()
            checks[way] = run(path, sizes, wanted)
            seconds[way] = min(seconds[way], time.perf_counter() - start)
    if len(set(checks.values())) != 1:
        raise RuntimeError(f"the ways of counting disagree on {name}")
    others = {way: round(seconds["engine"] / seconds[way], 2) for way in ways if way != "engine"}
    return {"regime": name, "seconds": round(seconds["engine"], 3), **others}


def engine(path, sizes, wanted) -> int:
    counts = open_source(path).count(schema_of(sizes), wanted)
    return sum(int((counts.tables(group) ** 2).sum()) for group in wanted)


def group_by(path, _sizes, wanted) -> int:
    total = 0
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW t AS FROM '{path}'")
        connection.execute("CREATE TEMP TABLE m AS FROM t")
        for marginal in itertools.chain.from_iterable(group.tolist() for group in wanted):
            columns = ", ".join(f"a{i}" for i in marginal)
            counts = connection.sql(f"SELECT count(*) AS n FROM m GROUP BY {columns}").to_arrow_table()
            total += int((counts.column(0).to_numpy() ** 2).sum())
    return total


def read(path) -> list[np.ndarray]:
    with duckdb.connect() as connection:
        table = connection.sql(f"FROM '{path}'").to_arrow_table().combine_chunks()
    return [table.column(i).chunk(0).to_numpy() for i in range(table.num_columns)]


def bincount(path, sizes, wanted, block=1 << 16) -> int:
    """What a careful programmer writes first."""
    listed = [tuple(marginal) for group in wanted for marginal in group.tolist()]
    columns = read(path)
    totals = [np.zeros(math.prod(sizes[i] for i in m), np.int64) for m in listed]
    if max(total.size for total in totals) > block:
        block = 1 << 22
    for start in range(0, len(columns[0]), block):
        part = [column[start : start + block] for column in columns]
        for marginal, total in zip(listed, totals, strict=True):
            index = part[marginal[0]].astype(np.uint32)
            for i in marginal[1:]:
                index *= sizes[i]
                index += part[i]
            total += np.bincount(index, minlength=total.size)
    return sum(int((total**2).sum()) for total in totals)


def covering(path, sizes, wanted, block=1 << 16) -> int:
    """The fastest way known before: a few 4-way tables, chosen by hand as pairs of pairs, or triples of pairs."""
    (group,) = wanted
    columns = read(path)
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]
    joined = [sum(some, ()) for some in itertools.combinations(pairs, group.shape[1])]
    if group.shape[1] == 3:
        block = 1 << 20
    totals = [np.zeros([sizes[i] for i in table], np.int64) for table in joined]
    for start in range(0, len(columns[0]), block):
        coded = [columns[i][start : start + block] * np.uint8(10) + columns[j][start : start + block] for i, j in pairs]
        for some, total in zip(itertools.combinations(coded, group.shape[1]), totals, strict=True):
            index = some[0].astype(np.uint16 if len(some) == 2 else np.uint32)
            for part in some[1:]:
                index *= 100
                index += part
            total += np.bincount(index, minlength=total.size).reshape(total.shape)
    checksum = 0
    for marginal in group.tolist():
        table, total = next((t, n) for t, n in zip(joined, totals, strict=True) if set(marginal) <= set(t))
        rolled = total.sum(axis=tuple(axis for axis, i in enumerate(table) if i not in marginal))
        checksum += int((rolled**2).sum())
    return checksum


def many_tables(rows: int, d: int) -> dict[str, object]:
    """(b): few rows, very many tables, in chunks; the peer is a plain bincount for each of a sample of tables."""
    rng = np.random.default_rng(8)
    columns = {f"a{i}": rng.integers(0, 10, rows).astype(np.uint8) for i in range(d)}
    wanted = marginals(d, (0, 1, 2, 3))
    start = time.perf_counter()
    counts = open_source(pa.table(columns)).count(schema_of((10,) * d), wanted)
    for group in wanted:
        for first in range(0, len(group), 2_000):
            counts.tables(group[first : first + 2_000])
    seconds = time.perf_counter() - start
    arrays = list(columns.values())
    sample = wanted[3][:: max(1, len(wanted[3]) // 2_000)]
    start = time.perf_counter()
    for i, j, k in sample.tolist():
        index = (arrays[i].astype(np.intp) * 10 + arrays[j]) * 10 + arrays[k]
        np.bincount(index, minlength=1_000)
    plain = (time.perf_counter() - start) / len(sample) * len(wanted[3])
    name = f"(b) all {sum(map(len, wanted)):,} tables of <=3 of {d}, {rows:,} rows"
    return {"regime": name, "seconds": round(seconds, 3), "bincount": round(seconds / plain, 2)}


def show(found: list[dict[str, object]]) -> None:
    print(f"{'regime':58} {'seconds':>8} {'/ GROUP BY':>11} {'/ bincount':>11} {'/ cover':>8}")
    for row in found:
        ratios = [row.get(way, "") for way in ("group_by", "bincount", "cover")]
        print(f"{row['regime']:58} {row['seconds']:8} {ratios[0]:>11} {ratios[1]:>11} {ratios[2]:>8}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1.0)
