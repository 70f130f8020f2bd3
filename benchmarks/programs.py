"""The consistent tables nearest to noisy ones: our program over the tables' cells, against one over the domain's cells.

NLTCS, 16 binary attributes, all 120 two-way tables (480 cells; the residual spaces have 137 dimensions), noise of
epsilon = 1. `domain` has a variable for each of the 65,536 cells of the domain, and a row for each cell of a table.
Both are solved by HiGHS with the same settings, each in a process of its own; memory is that process's peak, of which
Python and its packages are about 140 MB. `difference` is that of the optimal values, relative.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from itertools import combinations
from pathlib import Path

import numpy as np

LIMIT = 120.0
PATIENCE = 60.0
"""Seconds more for a solver that looks at its clock too seldom."""
ATTRIBUTES = 16


def main(norms=("l1", "linf"), limit=LIMIT):
    """Print and return a row for each norm."""
    rows = []
    for norm in norms:
        ours, domain = (apart(program, norm, limit) for program in ("tables", "domain"))
        row = {"norm": norm, "variables": ours["variables"], "seconds": ours["seconds"], "memory_MB": ours["memory"]}
        row |= {"distance": ours["value"], "domain_variables": domain["variables"]}
        row |= {"domain_seconds": domain["seconds"], "domain_memory_MB": domain["memory"]}
        if domain["value"] is not None:
            row["ratio"] = domain["seconds"] / ours["seconds"]
            row["difference"] = abs(ours["value"] / domain["value"] - 1)
        rows.append(row)
        print({k: round(v, 9) if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


def apart(program, norm, limit):
    """Run one program in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.programs", program, norm, str(limit)]
    root = Path(__file__).parent.parent
    late = {"variables": None, "seconds": f">{limit:g}", "memory": None, "value": None}
    try:
        done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=limit + PATIENCE)
    except subprocess.TimeoutExpired:
        return late
    if done.returncode:
        return late | {"seconds": f"failed ({done.returncode}): {done.stderr.strip()[-200:]}"}
    return json.loads(done.stdout)


def alone(program, norm, limit):
    """What one process measures: seconds (or that the limit was reached), the peak of memory, and the optimal value."""
    from hushcube.errors import TimeLimitReached
    from hushcube.lattice.family import Family
    from hushcube.progress import Clock

    tables = Family.of(combinations(range(ATTRIBUTES), 2), (2,) * ATTRIBUTES)
    values = noisy(tables)
    small = Family.of([(0,), (1,)], (2, 2))
    over_tables(small, [np.array([[1.0, 2.0], [3.0, 4.0]])], norm, Clock())  # imports are not what is timed
    start = time.perf_counter()
    try:
        run = over_tables if program == "tables" else over_domain
        variables, value = run(tables, values, norm, Clock(limit))
        seconds = time.perf_counter() - start
    except TimeLimitReached:
        variables, value, seconds = None, None, f">{limit:g}"
    return {"variables": variables, "seconds": seconds, "memory": peak(), "value": value}


def over_tables(tables, values, norm, clock):
    from hushcube.faces.norms import nearest
    from hushcube.faces.target import Observed

    cells = int(tables.closure.cells.sum())
    _, distance = nearest(Observed(tables, values, np.ones(len(tables))), norm, clock)
    return cells + (int(tables.cells.sum()) if norm == "l1" else 1), distance


def over_domain(tables, values, norm, clock):
    """minimise sum (d+ + d-), or t, over x and y = Qx, d = y - z."""
    from hushcube.faces.programs import Program, solve, stacked

    z = values[0].ravel()
    cells, domain = len(z), 2**ATTRIBUTES
    bits = np.arange(domain)[:, None] >> np.arange(ATTRIBUTES) & 1
    first, second = tables.batches[0].rows.T
    inside = 4 * np.arange(len(first)) + 2 * bits[:, first] + bits[:, second]  # the cells to which each x is added
    rows, columns, entries = inside.ravel(), np.repeat(np.arange(domain), len(first)), np.ones(inside.size)
    k, free, none = np.arange(cells), np.full(domain, -np.inf), np.full(cells, np.inf)
    if norm == "l1":
        program = Program(
            cost=np.concatenate([np.zeros(domain), np.ones(2 * cells)]),
            lower=np.concatenate([free, np.zeros(2 * cells)]),
            upper=np.full(domain + 2 * cells, np.inf),
            row_lower=z,
            row_upper=z,
            matrix=stacked((rows, columns, entries), (k, domain + k, -1.0), (k, domain + cells + k, 1.0)),
        )
    else:
        program = Program(
            cost=np.append(np.zeros(domain + cells), 1.0),
            lower=np.concatenate([free, -none, [0.0]]),
            upper=np.full(domain + cells + 1, np.inf),
            row_lower=np.concatenate([np.zeros(cells), -none, z]),
            row_upper=np.concatenate([np.zeros(cells), z, none]),
            matrix=stacked(
                (rows, columns, entries),
                (k, domain + k, -1.0),
                (np.arange(cells, 3 * cells), np.tile(domain + k, 2), 1.0),
                (np.arange(cells, 3 * cells), domain + cells, np.repeat([-1.0, 1.0], cells)),
            ),
        )
    return len(program.cost), solve(program, clock, "the program over the domain").value


def noisy(tables):
    """The two-way tables of NLTCS with whole-numbered noise, for a budget that is shared by all of them."""
    import pyarrow.parquet as pq
    from tests.datasets import shared

    data = pq.read_table(shared("nltcs.parquet"))
    values = np.stack([data.column(name).to_numpy().astype(np.int64) for name in data.column_names])
    rng = np.random.default_rng(1)
    (batch,) = tables.batches
    counts = np.stack([np.bincount(2 * values[a] + values[b], minlength=4) for a, b in batch.rows])
    return [(counts + np.rint(rng.laplace(scale=len(tables), size=counts.shape))).reshape(-1, 2, 2)]


def peak():
    """The largest memory of this process, in MB; on Linux a child's `ru_maxrss` starts from its parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024**2 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(alone(sys.argv[1], sys.argv[2], float(sys.argv[3]))))
    else:
        main()
