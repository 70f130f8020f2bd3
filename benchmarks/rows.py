"""Many rows: all 45 two-way tables of 10 attributes of 10 values, from a Parquet file, against a bare scan of it.

    python -m benchmarks.rows [ROWS]

`scan` is the time in which DuckDB adds up each of the ten columns, `fetch` that in which it hands them over as Arrow
batches, which are dropped. `seconds` is ours: open the file, count, and hand out every table. All are the best of three
runs in turns, each in a process of its own; processor seconds are those of both cores.

The rows are made up, the same each time, any number of them: ten skewed attributes of ten values, `person` (three
people for ten rows, so that some have many), `wage` and `nights`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema

SIZES = (10,) * 10
NAMES = tuple(f"a{i}" for i in range(len(SIZES)))
MEASURES = (
    Measure(name="wage", bounds=(0, 200_000), resolution=100),
    Measure(name="nights", bounds=(0, 30)),
)
MOST = 4
"""Rows of a person that count, where people are bounded: a quarter of them have more."""
PIECE = 1_000_000
FIELDS = pa.schema(
    [
        *((name, pa.uint8()) for name in NAMES),
        ("person", pa.int64()),
        ("wage", pa.int32()),
        ("nights", pa.int32()),
    ]
)


def schema_of(*, unit=False):
    attributes = tuple(Attribute(name=name, codes=size) for name, size in zip(NAMES, SIZES, strict=True))
    return Schema(attributes, unit=Unit("person", MOST) if unit else None)


def main(sizes=(10_000_000, 100_000_000), repeats=3):
    """Print and return a row for each number of rows."""
    from benchmarks.scale import child

    found = []
    with tempfile.TemporaryDirectory(prefix="hushcube-rows-") as folder:
        for size in sizes:
            path = write(Path(folder) / f"{size}.parquet", size)
            runs = {way: [] for way in WAYS}
            for _ in range(repeats):  # in turns, so that a busy machine is busy for all
                for way, each in runs.items():
                    each.append(child("benchmarks.rows", way, str(path)))
            best = {way: min(each, key=lambda run: run["seconds"]) for way, each in runs.items()}
            ours = best["count"]
            row = {"rows": size, **ours}
            for way in ("scan", "fetch"):
                row |= {way: best[way]["seconds"], f"{way}_cpu": best[way]["cpu_seconds"]}
                row[f"over_{way}"] = ours["seconds"] / best[way]["seconds"]
            found.append(row)
            print({key: round(value, 3) for key, value in row.items()}, flush=True)
    return found


def count(path):
    """Every table of two attributes, by hushcube."""
    from hushcube.private.engines import open_source

    pairs = [np.array(list(combinations(range(len(SIZES)), 2)), np.int32)]
    counts = open_source(path).count(schema_of(), pairs)
    counts.tables(pairs[0])


def scan(path):
    """The sum of each column, which no statistics of the file can answer."""
    with duckdb.connect() as connection:
        connection.sql(f"SELECT {', '.join(f'sum({name})' for name in NAMES)} FROM '{path}'").fetchall()


def fetch(path):
    """The columns, batch by batch, for nothing."""
    with duckdb.connect(config={"preserve_insertion_order": "false"}) as connection:
        for _ in connection.sql(f"SELECT {', '.join(NAMES)} FROM '{path}'").to_arrow_reader(1 << 19):
            pass


WAYS = {"count": count, "scan": scan, "fetch": fetch}


def timed(way, path):
    """One run, after one of a few rows: imports are not what is timed."""
    from benchmarks.scale import peak_kilobytes

    with tempfile.TemporaryDirectory(prefix="hushcube-rows-") as folder:
        WAYS[way](str(write(Path(folder) / "few.parquet", 10)))
    started, cpu = time.perf_counter(), time.process_time()
    WAYS[way](path)
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    return {"seconds": seconds, "cpu_seconds": cpu, "peak_GB": peak_kilobytes() / 1e6}


def write(path, rows, seed=7):
    """One Parquet file, piece by piece: memory does not grow with the rows."""
    rng = np.random.default_rng(seed)
    people = max(1, rows * 3 // 10)
    skewed = [(size * (np.arange(256) / 256) ** 1.3).astype(np.uint8) for size in SIZES]
    with pq.ParquetWriter(path, FIELDS) as writer:
        for start in range(0, rows, PIECE):
            n = min(PIECE, rows - start)
            columns = [skew[rng.integers(0, 256, n, dtype=np.uint8)] for skew in skewed]
            columns.append(rng.integers(0, people, n))
            columns.append(rng.integers(0, 1_000, n, dtype=np.int32) ** 2 // 4)
            columns.append(rng.integers(0, 40, n, dtype=np.int32))
            writer.write_table(pa.table(columns, schema=FIELDS))
    return path


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in WAYS:
        print(json.dumps(timed(sys.argv[1], sys.argv[2])))
    else:
        main([int(size.replace(",", "")) for size in sys.argv[1:]] or (10_000_000, 100_000_000))
