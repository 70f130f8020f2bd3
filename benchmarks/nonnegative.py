"""Tables without negative cells: seconds, peak memory and the proved distance that is left, epsilon = 1.

`full table`: all pairs of attributes, fitted by one full table of so many cells (after the local tables).
`local`: all tables of at most two of 30 attributes, table by table; `face-valid`: the same in whole numbers, counted
from synthetic people. Each case runs in a process of its own.
The data are 100,000 made-up people of a few sparse types. `variance` is the predicted total squared error;
`error` is the total squared error after, over before; `left` is the proved squared distance from the exact projection,
over `variance`. `plain` is scipy's L-BFGS-B with bounds x >= 0 on the same objective from independent attributes, with
the same seconds: `above` is how far its f is above ours, twice, over `variance`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

PEOPLE = 100_000
CASES = (
    # method, sizes, words, with the plain baseline
    ("full table", (8, 8, 7, 7, 6, 6), "2-way", True),
    ("full table", (10, 10, 10, 10, 10, 10), "2-way", False),
    ("full table", (10, 10, 10, 10, 10, 10, 10), "2-way", False),
    ("local", (10,) * 30, "<=2-way", False),
    ("face-valid", (10,) * 30, "<=2-way", False),
)


def main(cases=CASES):
    """Print and return a row for each case."""
    rows = []
    for method, sizes, words, plain in cases:
        order = json.dumps([method, sizes, words, plain])
        output = subprocess.run(
            [sys.executable, "-m", "benchmarks.nonnegative", order], capture_output=True, text=True, check=True
        )
        rows.append(json.loads(output.stdout.splitlines()[-1]))
        print({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def people(sizes, rng):
    """Codes of people of 10 types, each of which prefers two values of every attribute."""
    d, types = len(sizes), rng.choice(10, PEOPLE, p=rng.dirichlet(np.full(10, 0.5)))
    codes = np.empty((PEOPLE, d), np.int64)
    for i, n in enumerate(sizes):
        preferred = rng.integers(0, n, (10, 2))[types, rng.integers(0, 2, PEOPLE)]
        anyone = np.minimum(rng.geometric(0.5, PEOPLE) - 1, n - 1)
        codes[:, i] = np.where(rng.random(PEOPLE) < 0.99, preferred, anyone)
    return codes


def ours(method, sizes, words, plain):
    import pyarrow as pa

    from hushcube import Attribute, Schema, plan
    from hushcube.faces.face import make_face
    from hushcube.faces.full_table import nonnegative_table
    from hushcube.faces.local import nonnegative_marginals
    from hushcube.faces.target import Target
    from hushcube.faces.value import FaceValue
    from hushcube.private.engines import open_source
    from hushcube.private.measure import measure
    from hushcube.private.noise import SeededEntropy
    from hushcube.progress import Clock

    codes = people(sizes, np.random.default_rng(1))
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
    data = pa.table({f"a{i}": codes[:, i] for i in range(len(sizes))})
    decision = plan(schema, words, epsilon=1, neighbours="add-remove", strategy="workload").count
    measurement = measure(decision, open_source(data), entropy=SeededEntropy(1))
    target = Target.of(decision, decision.answers(measurement))
    variance = decision.errors.total_variance(exact=True)
    start = time.perf_counter()
    local = found = nonnegative_marginals(target, Clock(), tolerance=1e-3 * variance)
    answers = local
    if method == "full table":
        found = nonnegative_table(target, sizes, Clock(), start=local, tolerance=1e-3 * variance)
        answers = _Sums(found.table)
    if method == "face-valid":
        answers = make_face(decision, measurement, FaceValue(), Clock()).tables
    seconds = time.perf_counter() - start
    row = {"method": method, "attributes": len(sizes), "cells": _cells(target, method, sizes), "steps": found.steps}
    row |= {"seconds": seconds, "peak_GB": _peak_kilobytes() / 1e6}
    row["error"] = _error(target, codes, answers) / _error(target, codes, target.coefficients)
    row["left"] = 2 * found.gap / variance
    if plain:
        row["plain_seconds"], reached, row["plain_steps"] = bounded(target, sizes, seconds)
        row["plain_above"] = 2 * (reached - found.objective) / variance
    return row


def bounded(target, sizes, seconds):
    """scipy's L-BFGS-B on the full table with bounds, ended after so many seconds: seconds, f and steps."""
    from scipy.optimize import minimize

    shape, d = tuple(sizes), len(sizes)
    tables = [
        (tuple(i for i in range(d) if i not in row), table, target.weights[number])
        for batch in target.tables.batches
        for number, row, table in zip(
            batch.ids, batch.rows.tolist(), target.coefficients.tables(batch.rows, batch.shape), strict=True
        )
    ]
    x = np.full(shape, target.total)
    for i, n in enumerate(shape):
        one = np.maximum(target.coefficients.tables(np.array([[i]], np.int32), (n,))[0], 1.0)
        x *= (one / one.sum()).reshape([n if j == i else 1 for j in range(d)])
    best, steps, start = [np.inf], [0], time.perf_counter()

    def value(x):
        table, f, gradient = x.reshape(shape), 0.0, np.zeros(shape)
        for axes, wanted, weight in tables:
            r = table.sum(axis=axes) - wanted
            f += weight * float((r**2).sum()) / 2
            gradient += weight * np.expand_dims(r, axes)
        best[0] = min(best[0], f)
        return f, gradient.ravel()

    def ended(_):
        steps[0] += 1
        if time.perf_counter() - start > seconds:
            raise StopIteration

    options = {"maxiter": 10**6, "maxfun": 10**6, "ftol": 0, "gtol": 0, "maxcor": 20}
    minimize(
        value, x.ravel(), jac=True, method="L-BFGS-B", bounds=[(0, None)] * x.size, callback=ended, options=options
    )
    return time.perf_counter() - start, best[0], steps[0]


def _cells(target, method, sizes):
    return int(np.prod(sizes)) if method == "full table" else int(target.tables.cells.sum())


def _error(target, codes, answers):
    total = 0.0
    for batch in target.tables.batches:
        for row, table in zip(batch.rows.tolist(), answers.tables(batch.rows, batch.shape), strict=True):
            flat = np.ravel_multi_index(tuple(codes[:, i] for i in row), batch.shape) if row else np.zeros(PEOPLE, int)
            total += float(((np.bincount(flat, minlength=batch.cells) - table.ravel()) ** 2).sum())
    return total


class _Sums:
    def __init__(self, table):
        self.table = table

    def tables(self, rows, shape):
        axes = range(self.table.ndim)
        summed = [self.table.sum(axis=tuple(a for a in axes if a not in row)) for row in rows.tolist()]
        return np.stack(summed).reshape(len(rows), *shape)


def _peak_kilobytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    print(json.dumps(ours(*json.loads(sys.argv[1]))))
