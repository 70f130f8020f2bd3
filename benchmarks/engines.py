"""How counting scales with the rows, in DuckDB and in Spark, and what does not: `make engines` writes docs/scale.md.

    python -m benchmarks.engines [--quick] [--no-spark] [--page FILE]

Each case runs in a process of its own, so that its peak memory is its own (Java's is added for Spark). Seconds are
whole jobs: open the file, count, and hand out every table; Spark's include the start of Java. `ns a row` is seconds
over rows; `ns a further row` is what the rows beyond the smaller file took, without what a job takes for any number.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import duckdb
import numpy as np

from benchmarks import rows as made_up
from benchmarks.scale import peak_kilobytes
from hushcube.errors import DataError

PAGE = Path(__file__).parent.parent / "docs" / "scale.md"
MARK = "<!-- figures: written by `make engines` -->"
SIZES, QUICK_SIZES = (1_000_000, 10_000_000, 100_000_000), (100_000,)
PAIRS = [np.array(list(combinations(range(10), 2)), np.int32)]
TRIPLES = [np.array([(0, 1, 2), (2, 3, 4), (4, 5, 6), (6, 7, 8), (0, 8, 9)], np.int32)]
MINUTES = 10
"""That a case may take."""
JOBS = {
    "45 two-way tables": {"wanted": PAIRS},
    "5 three-way tables": {"wanted": TRIPLES},
    f"45 two-way tables, at most {made_up.MOST} rows of a person": {"wanted": PAIRS, "unit": True},
    "45 two-way tables and sums of 2 measures": {"wanted": PAIRS, "measures": made_up.MEASURES},
}


def main(sizes=SIZES, *, spark=True, page=PAGE):
    """Measure everything and write the page's figures."""
    from benchmarks.__main__ import table  # brings in every benchmark, which the cases' memory should not hold

    compared = sizes[-2:]
    with tempfile.TemporaryDirectory(prefix="hushcube-rows-") as folder:
        files = {}
        for size in sizes:
            start = time.perf_counter()
            files[size] = str(made_up.write(Path(folder) / f"{size}.parquet", size))
            print(f"wrote {size:,} rows in {time.perf_counter() - start:.0f} s", flush=True)
        duck = scaled("duckdb", files, compared)
        parts = [
            ("### DuckDB", duck),
            ("### The same tables by SQL", against_sql(duck, files[compared[0]], compared[0])),
            ("### After counting", after(files)),
        ]
        if spark:
            found = scaled("spark", files, compared)
            for row, peer in zip(found, duck, strict=True):
                row["over DuckDB"] = row["seconds"] / peer["seconds"] if "seconds" in row else None
            parts.insert(1, ("### Spark, on the same machine", found))
            if len(compared) == 2:
                parts.append(("### A billion rows", billion(duck, found)))
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}."
    text = "\n".join(f"{title}\n\n{table(found)}\n" for title, found in parts)
    head = page.read_text(encoding="utf-8").split(MARK)[0]
    page.write_text(f"{head}{MARK}\n\n{machine}\n\n{text}", encoding="utf-8")
    print(f"wrote {page.name}")


def scaled(engine, files, sizes):
    """Every job on two files."""
    found = []
    for job in JOBS:
        first = None
        for size in sizes:
            got = child("count", engine, files[size], job)
            row = {"job": job, "rows": size}
            if "refused" in got:
                row["job"] += f" ({got['refused']})"
            else:
                seconds = got["seconds"]
                row |= {
                    "seconds": seconds,
                    "rows a second": round(size / seconds),
                    "ns a row": seconds / size * 1e9,
                    "ns a further row": None if first is None else (seconds - first[1]) / (size - first[0]) * 1e9,
                    "peak GB": got["peak_GB"],
                }
                first = size, seconds
            found.append(row)
            print(row, flush=True)
    return found


def against_sql(duck, path, size):
    """Our counting over one GROUP BY for each table, and over one statement with all GROUPING SETS."""
    found = []
    for job in list(JOBS)[:2]:
        ours = next(row["seconds"] for row in duck if (row["job"], row["rows"]) == (job, size))
        row = {"job": job, "rows": size, "seconds": ours}
        for way, words in (("group_by", "GROUP BY"), ("grouping_sets", "GROUPING SETS")):
            seconds = child(way, "duckdb", path, job)["seconds"]
            row |= {f"{words} seconds": seconds, f"over {words}": ours / seconds}
        found.append(row)
        print(row, flush=True)
    return found


def after(files):
    """What comes after counting sees tables, not rows."""
    found = [{"rows": size, **child("release", "duckdb", path, next(iter(JOBS)))} for size, path in files.items()]
    for row in found:
        print(row, flush=True)
    return found


def billion(duck, spark):
    """What the measured cost of a further row means for a billion rows, on cores like these."""
    found = []
    for mine, theirs in zip(duck[1::2], spark[1::2], strict=True):
        row = {"job": mine["job"], "DuckDB, this machine, minutes": mine["ns a further row"] / 60}
        if "seconds" in theirs:
            hours = theirs["ns a further row"] * os.cpu_count() / 3600
            row |= {"Spark, core-hours": hours, "Spark, 100 cores, minutes": hours * 60 / 100}
        found.append(row)
    return found


# ---------------------------------------------------------------------------------------- in a process of its own


def child(way, engine, path, job):
    command = [sys.executable, "-m", "benchmarks.engines", "--case", way, engine, path, job]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60 * MINUTES)
    except subprocess.TimeoutExpired:
        return {"refused": f"stopped after {MINUTES} minutes"}
    if done.returncode:
        raise RuntimeError(f"{way} {engine} {job}: {done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def case(way, engine, path, job):
    import hushcube.private.engines.duckdb  # noqa: F401 - imports are not what is timed

    if way == "release":
        return release(path)
    start = time.perf_counter()
    try:
        {"count": count, "group_by": group_by, "grouping_sets": grouping_sets}[way](engine, path, **JOBS[job])
    except DataError as problem:
        return {"refused": problem.problem}
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_GB": peak_gigabytes()}


def count(engine, path, *, wanted, unit=False, measures=()):
    from hushcube.private.engines import open_source

    source = open_source(f"parquet:{path}", engine=engine)
    counts = source.count(made_up.schema_of(unit=unit), wanted, measures=measures)
    for tables in (counts, *counts.sums.values()):
        for group in wanted:
            tables.tables(group)


def group_by(_engine, path, *, wanted):
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TEMP TABLE m AS SELECT {', '.join(made_up.NAMES)} FROM '{path}'")
        for columns in sets(wanted):
            connection.sql(f"SELECT {columns}, count(*) AS n FROM m GROUP BY {columns}").to_arrow_table()


def grouping_sets(_engine, path, *, wanted):
    with duckdb.connect() as connection:
        all_sets = ", ".join(f"({columns})" for columns in sets(wanted))
        names = ", ".join(made_up.NAMES)
        connection.sql(
            f"SELECT {names}, count(*) AS n FROM '{path}' GROUP BY GROUPING SETS ({all_sets})"
        ).to_arrow_table()


def sets(wanted):
    return [", ".join(made_up.NAMES[i] for i in marginal) for group in wanted for marginal in group.tolist()]


def release(path):
    """Plan, count, draw the noise, and recover every table of at most two attributes."""
    from hushcube import plan
    from hushcube.bundle.release import Release
    from hushcube.planning.plan import Plan
    from hushcube.private.engines import open_source
    from hushcube.private.measure import count as counted, draw

    decided = plan(made_up.schema_of(), "<=2-way", rho="0.5", neighbours="add-remove").count
    laps = [time.perf_counter()]
    counts = counted([decided], decided.schema, open_source(path))
    laps.append(time.perf_counter())
    decided, measurement = draw(decided, counts)
    laps.append(time.perf_counter())
    published = Release.of(Plan.of_counts(decided), {"count": measurement})
    cells = 0
    for batch in decided.request.marginals.batches:
        cells += published.source.tables(batch.rows, batch.shape).size
    laps.append(time.perf_counter())
    counting, noise, recovery = np.diff(laps)
    return {"cells": cells, "counting seconds": counting, "noise seconds": noise, "recovery seconds": recovery}


def peak_gigabytes():
    """This process and those it started that still run: Java, for Spark."""
    total = peak_kilobytes()
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        except OSError:  # it has ended
            continue
        if int(lines["PPid"]) == os.getpid():
            total += int(lines.get("VmHWM", "0").split()[0])
    return total / 1e6


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows: to see whether it runs")
    parser.add_argument("--no-spark", action="store_true")
    parser.add_argument("--page", type=Path, default=PAGE)
    parser.add_argument("--case", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(case(*given.case)))
    else:
        main(QUICK_SIZES if given.quick else SIZES, spark=not given.no_spark, page=given.page)
