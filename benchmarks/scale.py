"""Many marginals: all of at most 3 of d attributes of 10 values, 10,000 rows, rho = 1/2, the `residual` strategy.

Seconds of each stage, and processor seconds of those that use both cores; `recover` makes every table once and drops
it, `recover_and_write` makes and publishes a release, with its checksums. Each case runs in a process of its own, so
that its peak memory is its own.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np

ROWS, SIZE = 10_000, 10


def main(dimensions=(30, 50, 100), baseline_up_to=50):
    """Print and return a row for each number of attributes; `ratio` is the plain algorithm's time over ours."""
    rows = []
    for d in dimensions:
        row = {"attributes": d, **child("benchmarks.scale", "ours", str(d))}
        if d <= baseline_up_to:
            plain = child("benchmarks.scale", "plain", str(d))
            row["plain_seconds"] = plain["plan"] + plain["measure"] + plain["recover"]
            row["plain_GB"] = plain["peak_GB"]
            row["plan_ratio"] = plain["plan"] / row["plan"]
            row["ratio"] = row["plain_seconds"] / (row["plan"] + row["measure"] + row["recover"])
        rows.append(row)
        print({key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}, flush=True)
    return rows


def child(module, *arguments):
    """What a benchmark prints last, as JSON, in a process of its own."""
    output = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, check=True)
    return json.loads(output.stdout.splitlines()[-1])


def ours(d):
    from tests.populations import generated

    from hushcube import Attribute, Schema, plan
    from hushcube.bundle.release import Release
    from hushcube.bundle.writing import write
    from hushcube.planning.plan import Plan
    from hushcube.private.engines import open_source
    from hushcube.private.measure import measure

    def decide(attributes):
        schema = Schema(tuple(Attribute(name=f"a{i}", codes=SIZE) for i in range(attributes)))
        return plan(schema, "<=3-way", rho="0.5", neighbours="add-remove", strategy="residual").count

    measure(decide(3), open_source(generated(10, (SIZE,) * 3, seed=1)))  # imports are not what is timed
    data = generated(ROWS, (SIZE,) * d, seed=1)
    clock = Clock()
    decision = decide(d)
    total = decision.errors.total_variance(exact=False)
    clock.lap("plan")
    measurement = measure(decision, open_source(data))
    clock.lap("measure", cpu=True)
    release = Release.of(Plan.of_counts(decision), {"count": measurement})
    cells = 0
    for batch in decision.request.marginals.batches:
        for part in batch.parts(2**18):
            cells += release.source.tables(batch.rows[part], batch.shape).size
    clock.lap("recover")
    with tempfile.TemporaryDirectory() as folder:
        write(release, Path(folder) / "release")
        clock.lap("recover_and_write", cpu=True)
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    described = {"marginals": len(decision.workload), "cells": cells, "total_variance": total}
    return described | clock.laps | {"bundle_GB": size / 1e9}


def plain(d):
    from tests.populations import generated

    from benchmarks import baselines

    sizes = (SIZE,) * d
    codes = np.stack([column.to_numpy() for column in generated(ROWS, sizes, seed=1).columns], axis=1).astype(np.int64)
    marginals = [m for k in range(4) for m in combinations(range(d), k)]
    clock = Clock()
    variances, total = baselines.select(marginals, sizes)
    clock.lap("plan")
    answers = baselines.measure(variances, codes, sizes, np.random.default_rng(1))
    clock.lap("measure")
    inverses = [np.linalg.pinv(baselines.subtraction(n)) for n in sizes]
    for marginal in marginals:
        baselines.recover(marginal, answers, sizes, inverses)
    clock.lap("recover")
    return {"total_variance": total, **clock.laps}


def peak_kilobytes():
    """This program's own high-water mark; getrusage would inherit that of the process that started it."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith("VmHWM"))


class Clock:
    def __init__(self):
        self.laps = {}
        self._last = time.perf_counter(), time.process_time()

    def lap(self, name, *, cpu=False):
        """The seconds since the last one; processor seconds, too, if they are asked for."""
        now = time.perf_counter(), time.process_time()
        self.laps[name] = now[0] - self._last[0]
        if cpu:
            self.laps[f"{name}_cpu"] = now[1] - self._last[1]
        self._last = now


if __name__ == "__main__":
    result = {"ours": ours, "plain": plain}[sys.argv[1]](int(sys.argv[2]))
    result["peak_GB"] = peak_kilobytes() / 1e6
    print(json.dumps(result))
