"""The rivals, written after their papers on mbi's estimation, in an environment of their own.

    python -m benchmarks.adaptive.rivals FOLDER METHOD SEED                                           [one_run.py]

    AIM  McKenna, Mullins, Sheldon, Miklau 2022: "AIM: An Adaptive and Iterative Mechanism for Differentially Private
         Synthetic Data", Algorithms 2 to 4
    MST  McKenna, Miklau, Sheldon 2021: "Winning the NIST Contest: A scalable and general approach to differentially
         private synthetic data"

The folder holds a job as the programs of `benchmarks/peers` read it. Answers are the tables of the last model itself:
people drawn from it, which both papers publish, would add the error of drawing them. Noise is numpy's, in floats, from
a seed: for comparisons of errors only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.metadata import version
from itertools import chain, combinations

import numpy as np

from benchmarks.adaptive.graphical import TOLERANCE, Clique, Measured, tree_megabytes
from benchmarks.adaptive.one_run import About, Method, Tables, serve
from benchmarks.peers.one_job import Job

STEPS = 1000
"""Of mirror descent, at most, for each fit, as in AIM's own program. Fewer are not enough: with 100 where the junction
tree had more than 4 MB, AIM's error on the two-way tables of ACS 2018 was a fifth larger (epsilon 1, one seed)."""
MAX_SIZE = 80.0
"""Megabytes of the junction tree at the end of AIM's budget [McKenna et al. 2022, 4]."""
ALPHA = 0.9
"""The share of a round's budget that is measured with; the rest selects."""
NOISE = math.sqrt(2 / math.pi)
"""The mean absolute value of a standard normal number."""
ABOUT: About = {"mbi": version("mbi"), "steps": STEPS, "tolerance": TOLERANCE}


def aim(job: Job, seed: int) -> tuple[Tables, About]:
    """Select the worst approximated table, measure it, fit; again until the budget is spent [Algorithm 4]."""
    random, sizes, rho, d = np.random.default_rng(seed), job.sizes, float(job.rho or 0), len(job.sizes)
    rounds = 16 * d
    weights = {r: sum(len({*r} & {*s}) for s in job.tables) for r in closure(job.tables)}
    exact = {r: job.exact(r) for r in weights}
    sigma, epsilon = math.sqrt(rounds / (2 * ALPHA * rho)), math.sqrt(8 * (1 - ALPHA) * rho / rounds)
    measured, used, t = Measured(sizes), 0.0, 0

    def measure(r: Clique) -> None:
        measured.add(r, exact[r] + random.normal(scale=sigma, size=exact[r].shape), sigma)

    for r in weights:
        if len(r) == 1:  # [Algorithm 3]
            measure(r)
            used += 0.5 / sigma**2
    model = measured.fit(STEPS)
    last = False
    while not last:
        t += 1
        left = rho - used
        if last := left <= 2 * (0.5 / sigma**2 + epsilon**2 / 8):  # [Algorithm 2, lines 4 to 6]
            sigma, epsilon = math.sqrt(1 / (2 * ALPHA * left)), math.sqrt(8 * (1 - ALPHA) * left)
        used += 0.5 / sigma**2 + epsilon**2 / 8
        limit = MAX_SIZE * min(used / rho, 1.0)
        small = [r for r in weights if tree_megabytes(sizes, [*measured.tables, r]) <= limit]
        model_tables = model.tables(small)
        off = {r: float(np.abs(exact[r] - model_tables[r]).sum()) for r in small}
        quality = np.array([weights[r] * (off[r] - NOISE * sigma * exact[r].size) for r in small])  # [(1)]
        chosen = small[exponential(quality, max(weights[r] for r in small), epsilon, random)]
        measure(chosen)
        model = measured.fit(STEPS, model)
        moved = float(np.abs(model.tables([chosen])[chosen] - model_tables[chosen]).sum())
        if moved <= NOISE * sigma * exact[chosen].size:  # [Algorithm 2, lines 1 to 3]
            sigma, epsilon = sigma / 2, 2 * epsilon
    return model.tables(job.tables), {
        **ABOUT,
        "rounds": t,
        "spent": used,
        "tree_MB": tree_megabytes(sizes, measured.tables),
    }


def mst(job: Job, seed: int) -> tuple[Tables, About]:
    """A third of the budget each for one-way tables, a spanning tree, and the tables of its edges."""
    random, rho, d = np.random.default_rng(seed), float(job.rho or 0), len(job.sizes)
    sigma = math.sqrt(3 * d / (2 * rho))
    ones = [job.exact((i,)) + random.normal(scale=sigma, size=n) for i, n in enumerate(job.sizes)]
    # Values that are drowned by the noise share one code.
    kept = [np.flatnonzero(y >= 3 * sigma) for y in ones]
    merged = [np.full(n, len(own)) for n, own in zip(job.sizes, kept, strict=True)]
    for codes, own in zip(merged, kept, strict=True):
        codes[own] = np.arange(len(own))
    sizes = tuple(int(codes.max()) + 1 for codes in merged)
    small = Job(sizes, job.tables, np.stack([codes[job.codes[:, i]] for i, codes in enumerate(merged)], axis=1))
    measured = Measured(sizes)
    for i, (y, codes) in enumerate(zip(ones, merged, strict=True)):
        # the sum of k noisy counts has k times the variance
        measured.add((i,), np.bincount(codes, weights=y), sigma * np.sqrt(np.bincount(codes)))
    model = measured.fit(STEPS)
    edges = list(combinations(range(d), 2))
    fitted = model.tables(edges)
    off = {r: float(np.abs(small.exact(r) - fitted[r]).sum()) for r in edges}
    epsilon = math.sqrt(8 * rho / 3 / (d - 1))
    part, tree = list(range(d)), list[Clique]()
    for _ in range(d - 1):
        free = [(i, j) for i, j in edges if part[i] != part[j]]
        i, j = free[exponential(np.array([off[r] for r in free]), 1.0, epsilon, random)]
        tree.append((i, j))
        part = [part[i] if p == part[j] else p for p in part]
    sigma = math.sqrt(3 * (d - 1) / (2 * rho))
    for r in tree:
        exact = small.exact(r)
        measured.add(r, exact + random.normal(scale=sigma, size=exact.shape), sigma)
    found = measured.fit(STEPS, model).tables(job.tables)
    return {r: apart(found[r], [merged[i] for i in r]) for r in job.tables}, ABOUT


METHODS: dict[str, Method] = {"AIM": aim, "MST": mst}


def closure(tables: Sequence[Clique]) -> list[Clique]:
    """All tables inside those asked for, the small ones first; the empty one is none.

    >>> closure([(0, 1), (1, 2)])
    [(0,), (1,), (2,), (0, 1), (1, 2)]
    """
    inside = {s for r in tables for s in chain.from_iterable(combinations(r, k) for k in range(1, len(r) + 1))}
    return sorted(inside, key=lambda r: (len(r), r))


def exponential(quality: np.ndarray, sensitivity: float, epsilon: float, random: np.random.Generator) -> int:
    """A place with probability proportional to exp(epsilon quality / (2 sensitivity)): epsilon^2/8-zCDP."""
    return int(np.argmax(epsilon / (2 * sensitivity) * quality + random.gumbel(size=len(quality))))


def apart(table: np.ndarray, merged: Sequence[np.ndarray]) -> np.ndarray:
    """Values that share a code get equal parts of what it has.

    >>> apart(np.array([3.0, 4.0]), [np.array([0, 1, 1])])
    array([3., 2., 2.])
    """
    for axis, codes in enumerate(merged):
        share = 1 / np.bincount(codes)[codes]
        shape = [-1 if i == axis else 1 for i in range(len(merged))]
        table = np.take(table, codes, axis) * share.reshape(shape)
    return table


if __name__ == "__main__":
    serve(METHODS)
