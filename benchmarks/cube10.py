"""The whole cube: every table of 8 to 10 dimensions, published, as in the experiments of Ding et al. 2011, epsilon = 1.

    python -m benchmarks.cube10

Adult's 8 attributes and two random ones of 4 values: 1,024 tables, 205.6 million cells, 32,561 rows (made-up rows where
the data is not there). `bmax` measures a few tables, `workload` all of them; both are then made to agree by least
squares. Seconds of each stage: `write` makes all tables and writes the bundle, with checksums. Each case runs in a
process of its own, on all cores; `measured` and `cells` are in millions. `floor` is how long numpy needs to draw as
many Laplace numbers as there are cells, in floats, and to write them to one bare column; `ratio` is our time over it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.scale import Clock, child, peak_kilobytes

SIZES = (9, 16, 7, 15, 6, 5, 2, 2, 4, 4)
CASES = ((8, "bmax"), (9, "bmax"), (10, "bmax"), (10, "workload"))
ROWS = 32_561
STAGES = ("plan", "count", "noise", "least_squares", "write")


def main(cases=CASES):
    """Print and return a row for each number of dimensions and strategy."""
    rows = []
    for dimensions, strategy in cases:
        row = child("benchmarks.cube10", strategy, str(dimensions))
        row["seconds"] = sum(row[stage] for stage in STAGES)
        row["floor"] = child("benchmarks.cube10", "floor", str(dimensions))["floor"]
        row["ratio"] = row["seconds"] / row["floor"]
        rows.append(row)
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    return rows


def people(dimensions, rows=ROWS):
    """Adult with random dimensions, as Arrow columns of codes; skewed random rows where Adult is not there."""
    import pyarrow as pa
    import pytest
    from tests.datasets import adult8_schema, coded

    random = np.random.default_rng(7)
    try:
        codes = coded("adult8.parquet", adult8_schema())[:rows]
    except pytest.skip.Exception:
        codes = np.stack([(n * random.random(rows) ** 2).astype(np.int64) for n in SIZES[:8]], axis=1)
    codes = np.hstack([codes, random.integers(0, SIZES[8:], (len(codes), 2))])
    return pa.table({f"a{i}": codes[:, i] for i in range(dimensions)})


def ours(strategy, dimensions):
    """The stages of a release, one after the other."""
    import hushcube as hc
    from hushcube.bundle.release import Release
    from hushcube.planning.plan import Plan
    from hushcube.private.engines import open_source
    from hushcube.private.measure import count, draw

    def decide(sizes):
        schema = hc.Schema(tuple(hc.Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
        choice = {"strategy": strategy, "budgets": "uniform", "recovery": "gls"}
        return hc.plan(schema, "cube", epsilon=1, neighbours="add-remove", **choice).count

    data, small = people(dimensions), people(2, 10)
    draw(decide(SIZES[:2]), count([decide(SIZES[:2])], decide(SIZES[:2]).schema, open_source(small)))  # imports
    clock = Clock()
    design = decide(SIZES[:dimensions])
    clock.lap("plan")
    counts = count([design], design.schema, open_source(data))
    clock.lap("count")
    measurement = draw(design, counts)[1]
    clock.lap("noise")
    release = Release.of(Plan.of_counts(design), {"count": measurement})
    clock.lap("least_squares")
    with tempfile.TemporaryDirectory(dir=".") as folder:
        release.save(Path(folder) / "release")
        clock.lap("write")
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    measured = design.measured.cells.sum() / 1e6
    cells = design.request.marginals.cells.sum() / 1e6
    described = {"dimensions": dimensions, "strategy": strategy, "tables": len(design.workload), "cells": cells}
    return described | {"measured": measured, **clock.laps, "bundle_GB": size / 1e9}


def floor(dimensions):
    """As many numbers, drawn in floats by numpy and written to one bare column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells, random, piece = int(np.prod(np.array(SIZES[:dimensions]) + 1)), np.random.default_rng(1), 2**20
    clock = Clock()
    with tempfile.TemporaryDirectory(dir=".") as folder:
        fields = pa.schema([pa.field("value", pa.float64(), nullable=False)])
        options = {"compression": "none", "use_dictionary": False, "write_statistics": False}
        with pq.ParquetWriter(Path(folder) / "floor.parquet", fields, **options) as writer:
            for start in range(0, cells, piece):
                numbers = random.laplace(size=min(piece, cells - start))
                writer.write_table(pa.table([numbers], schema=fields))
    clock.lap("floor")
    return clock.laps


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        which, dimensions = sys.argv[1], int(sys.argv[2])
        started = time.process_time()
        result = floor(dimensions) if which == "floor" else ours(which, dimensions)
        result |= {"cpu_seconds": time.process_time() - started, "peak_GB": peak_kilobytes() / 1e6}
        print(json.dumps(result))
