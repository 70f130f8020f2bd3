"""Fits of tables at face value: seconds, peak memory and error, beside those of the code before they were made faster.

    python -m benchmarks.fits [--only WORDS] [--without-before]

`calls` are made-up calls to a fire department, 305,119 of them, of 30 kinds, with attributes of the sizes of a real
table; the others are the 100,000 made-up people of `nonnegative`. `face-valid` are whole numbers counted from synthetic
people, `nonnegative` the full table of so many cells. epsilon = 1. `cpu` and `seconds` are those of the face alone, on
all cores; `error` is its total squared error over that of the unbiased tables of the same measurement; `left` is the
proved distance from the exact projection, as a share of the noise (people: that of the tables they follow). Where there
are several `data` sets, each with its own noise, figures are means over them: errors of single ones differ by more than
what is compared. `before` is
the same job by the code of commit BEFORE, taken from the history, in a process of its own in the same run; `times` is
its processor time over ours.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import numpy as np

BEFORE = "25b009f"
ROOT = Path(__file__).parent.parent
CALLS = (2, 11, 15, 32, 5, 9, 2, 11, 42, 8, 8, 10)
CASES = {
    # sizes, tables, face, strategy; how many data sets, and whether the code before is run too
    "calls, 6 attributes": (CALLS[:6], "<=2-way", "integral", "auto", 5, True),
    "calls, 12 attributes": (CALLS, "<=2-way", "integral", "auto", 1, True),
    "30 of 10 values": ((10,) * 30, "<=2-way", "integral", "workload", 1, True),
    "full table of 10^7": ((10,) * 7, "2-way", "nonnegative", "workload", 1, True),
    "50 of 10 values": ((10,) * 50, "<=2-way", "integral", "workload", 1, False),
    "15 of 10 values, 3-way": ((10,) * 15, "<=3-way", "integral", "workload", 1, False),
}
CALLS_MADE = 305_119
KINDS = 30


def calls(sizes, rng):
    """Codes of calls: each of 30 kinds has its own steep distribution of every attribute, which 98 in 100 follow."""
    kind = rng.choice(KINDS, CALLS_MADE, p=rng.dirichlet(np.full(KINDS, 0.5)))
    codes = np.empty((CALLS_MADE, len(sizes)), np.int64)
    for i, n in enumerate(sizes):
        steep = (np.arange(n) + 1.0) ** -rng.uniform(2, 5)
        chances = np.stack([rng.permutation(steep) for _ in range(KINDS)])
        own = (np.cumsum(chances, axis=1) / chances.sum(axis=1, keepdims=True))[kind]
        usual = np.cumsum(rng.permutation(steep)) / steep.sum()
        drawn = rng.random(CALLS_MADE)[:, None]
        codes[:, i] = np.where(rng.random(CALLS_MADE) < 0.98, (own < drawn).sum(axis=1), (usual < drawn).sum(axis=1))
    return np.minimum(codes, np.array(sizes) - 1)


def one(name, seed=1):
    """The figures of one data set of a case, by whatever hushcube the path has."""
    import pyarrow as pa

    from benchmarks.nonnegative import people
    from hushcube import Attribute, Schema, plan
    from hushcube.faces.face import make_face
    from hushcube.faces.people import PeopleTables
    from hushcube.faces.value import FaceValue
    from hushcube.private.engines import open_source
    from hushcube.private.measure import measure
    from hushcube.private.noise import SeededEntropy
    from hushcube.progress import Clock

    sizes, words, kind, strategy, *_ = CASES[name]
    make = calls if name.startswith("calls") else people
    codes = make(sizes, np.random.default_rng(seed))
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))
    data = pa.table({f"a{i}": codes[:, i] for i in range(len(sizes))})
    decision = plan(schema, words, epsilon=1, neighbours="add-remove", strategy=strategy).count
    measurement = measure(decision, open_source(data), entropy=SeededEntropy(seed))
    truth, family = PeopleTables(codes, sizes), decision.request.marginals
    wall, cpu = time.perf_counter(), time.process_time()
    face = make_face(decision, measurement, FaceValue(kind), Clock())
    row = {"cpu": time.process_time() - cpu, "seconds": time.perf_counter() - wall, "peak_GB": _peak_kilobytes() / 1e6}
    unbiased = decision.answers(measurement)
    row["error"] = _error(face.tables, truth, family) / _error(unbiased, truth, family)
    certificate = face.report["certificate"]
    row["left"] = None if certificate is None else certificate["share_of_noise"]
    return row


def _error(source, truth, family):
    found = (source.tables(b.rows, b.shape) - truth.tables(b.rows, b.shape) for b in family.batches)
    return sum(float((d**2).sum()) for d in found)


def _peak_kilobytes():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _run(name, source):
    """The means over the data sets of a case, each in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    runs = []
    for seed in range(1, CASES[name][-2] + 1):
        command = [sys.executable, "-m", "benchmarks.fits", "--one", name, "--seed", str(seed)]
        output = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=ROOT)
        runs.append(json.loads(output.stdout.splitlines()[-1]))
    return {key: None if value is None else sum(run[key] for run in runs) / len(runs) for key, value in runs[0].items()}


def _source_before(folder):
    """The package as it was, from the history; None where that is not here."""
    found = subprocess.run(["git", "archive", BEFORE, "src"], capture_output=True, cwd=ROOT, check=False)
    if found.returncode:
        return None
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Path(folder) / "src"


def main(names=tuple(CASES), before=True):
    """Print and return a row for each case."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        old = _source_before(folder) if before else None
        for name in names:
            described = {"case": name, "tables": CASES[name][1], "face": CASES[name][2], "data": CASES[name][-2]}
            row = {**described, **_run(name, ROOT / "src")}
            if old is not None and CASES[name][-1]:
                was = _run(name, old)
                row |= {f"{key}_before": was[key] for key in ("cpu", "seconds", "peak_GB", "error", "left")}
                row["times"] = was["cpu"] / row["cpu"]
            rows.append(row)
            print({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in row.items()}, flush=True)
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names contain this")
    parser.add_argument("--without-before", action="store_true", help="leave the code before out")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.seed)))
    else:
        main(tuple(name for name in CASES if given.only in name), not given.without_before)
