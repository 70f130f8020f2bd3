"""iReduct on the generated census of 10 million people: seconds of one run on one core, counting not included.

`arithmetic` steps of the paper: from lambda_max = n/10 in so many levels down to zero; `geometric` are ours. `steps` is
how many the tables took together. `plain` is the loop of Figure 4 as it stands: pick a table by its priority, draw
NoiseDown for its cells (numpy, floats), and renew its priority; a few hundred steps of every table are timed, and
multiplied by the steps that our run took. `ratio` is its time over ours in the same process. The paper's own program
took 5 s for the one-way and 15 minutes for the two-way marginals, with 100,000 levels, on a machine of 2011. Each case
runs in a process of its own; peak memory includes about 0.08 GB of Python and its packages, and the exact tables.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import numpy as np
from tests.populations import CENSUS

from benchmarks.scale import peak_kilobytes

PEOPLE = 10_000_000
PLAIN_STEPS = 200
OTHERS = tuple(name for name in CENSUS.names if name != "occupation")
WORKLOADS = {
    "1-way": ["1-way"],
    "2-way": ["2-way"],
    "3-way without occupation": ["*".join(three) for three in combinations(OTHERS, 3)],
    "3-way with occupation, the smaller ones": [
        "*".join((*two, "occupation"))
        for two in combinations(OTHERS, 2)
        if len({"age", "state", "birthplace"} & set(two)) < 2
    ],
}
PAPER = {"lambda_max": "10%", "caution": "0"}
CASES = (
    # workload, epsilon, levels of the arithmetic progression (none: geometric), plain baseline
    ("1-way", "0.01", 10**3, False),
    ("1-way", "0.01", 10**4, False),
    ("1-way", "0.01", 10**5, True),
    ("1-way", "0.01", 10**6, False),
    ("1-way", "0.01", None, False),
    ("2-way", "0.1", 10**3, False),
    ("2-way", "0.1", 10**4, False),
    ("2-way", "0.1", 10**5, True),
    ("2-way", "0.1", None, False),
    ("3-way without occupation", "1", 10**5, True),
    ("3-way with occupation, the smaller ones", "1", 10**5, False),
)


def main(cases=CASES, people=PEOPLE):
    """Print and return a row for each case."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        files = count(dict.fromkeys(words for words, *_ in cases), people, Path(folder))
        for words, epsilon, levels, plain in cases:
            order = json.dumps([words, str(files[words]), people, epsilon, levels, plain])
            output = subprocess.run(
                [sys.executable, "-m", "benchmarks.ireduct", order], capture_output=True, text=True, check=True
            )
            rows.append(json.loads(output.stdout.splitlines()[-1]))
            print({k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in rows[-1].items()}, flush=True)
    return rows


def count(names, people, folder):
    """The exact tables of each workload in a file: the people themselves are counted once, and not what is timed."""
    from tests.populations import census

    from hushcube.experiments.truth import held, wanted
    from hushcube.model.workload import Workload
    from hushcube.private.engines import open_source

    data, files = census(people, seed=1), {}
    for number, name in enumerate(names):
        workload, files[name] = Workload.parse(WORKLOADS[name], CENSUS), folder / f"{number}.npz"
        counts = held(open_source(data), CENSUS, wanted(workload))
        tables = {"_".join(map(str, m)): counts.tables(np.array([m], np.int32))[0] for m in workload.marginals}
        np.savez(files[name], **tables)
    return files


def ours(words, file, people, epsilon, levels, plain):
    from hushcube import plan
    from hushcube.experiments.truth import HeldTables
    from hushcube.private.measure import draw
    from hushcube.private.noise import SeededEntropy
    from hushcube.strategies.adaptive import IReduct

    with np.load(file) as stored:
        tables = {tuple(map(int, name.split("_"))): stored[name] for name in stored.files}
    counts = HeldTables(people, tables)

    def decide(words, **given):
        return plan(
            CENSUS,
            words,
            epsilon=epsilon,
            neighbours="replace-one",
            strategy=IReduct(sanity_bound="0.01%", people=people, **given),
            recovery="none",
            budgets="uniform",
        ).count

    rule = {"caution": "0.1"} if levels is None else PAPER | {"lambda_step": f"{10 / levels:.10f}%"}
    decision = decide(WORKLOADS[words], **rule)
    one = min(tables, key=lambda m: tables[m].size)  # imports are not what is timed
    draw(decide(["*".join(CENSUS.names[i] for i in one)], caution="0"), counts, entropy=SeededEntropy(1))
    start = time.perf_counter()
    made, _ = draw(decision, counts, entropy=SeededEntropy(1))
    seconds = time.perf_counter() - start
    steps = made.details["adaptive"]["steps"]
    row = {
        "workload": words,
        "tables": len(decision.workload),
        "cells": decision.workload.cells,
        "epsilon": epsilon,
        "progression": "geometric" if levels is None else f"arithmetic, {levels:,} levels",
        "steps": steps,
        "seconds": seconds,
        "peak_GB": peak_kilobytes() / 1e6,
    }
    if plain:
        final = {tuple(m): made.budgets[i] for i, m in enumerate(made.measured) if m}
        row["plain_seconds"] = step_by_step(tables, final, people, levels)
        row["ratio"] = row["plain_seconds"] / seconds
    return row


def step_by_step(tables, final, people, levels):
    """The seconds of the loop, from PLAIN_STEPS steps of every table: half of them at its start, half at its end."""
    rng = np.random.default_rng(1)
    delta, largest = people * 1e-4, people / 10
    step = largest / levels
    priority, total = np.zeros(len(tables)), 0.0
    for at, (marginal, table) in enumerate(tables.items()):
        truth = table.ravel().astype(float)
        steps = round((largest - 1 / final[marginal]) / step)
        for scale in (largest, largest - step * (steps - PLAIN_STEPS // 2)):
            y = truth + rng.laplace(0, scale, truth.size)
            start = time.perf_counter()
            for k in range(PLAIN_STEPS // 2):
                coarse, fine = scale - k * step, scale - (k + 1) * step
                y = truth + noise_down(y - truth, coarse, fine, rng)
                gain = step * (1 / np.maximum(y, delta)).mean()
                priority[at] = gain / (2 / (fine - step) - 2 / fine)
                priority.argmax()
            total += (time.perf_counter() - start) / PLAIN_STEPS * steps
    return total


def noise_down(x, coarse, fine, rng):
    """Less noise given the noise x, for all cells at once: the exact continuous law, of gradual release."""
    size, r = np.abs(x), fine / coarse
    rate = 1 / fine + 1 / coarse
    between = rng.exponential(1 / (1 / fine - 1 / coarse), x.size)
    u, beyond = rng.random(x.size), rng.exponential(1 / rate, x.size)
    stays = rng.random(x.size) < 2 * r / (1 + r)
    new = np.where(between < size, between, np.where(stays, size, size + beyond))
    return np.sign(x) * np.where(u < (1 - r) / 2, -beyond, new)


if __name__ == "__main__":
    print(json.dumps(ours(*json.loads(sys.argv[1]))))
