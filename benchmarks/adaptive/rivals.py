"""The rivals, written after their papers on mbi's estimation, in an environment of their own.

    python -m benchmarks.adaptive.rivals FOLDER METHOD SEED                                           [one_run.py]

    AIM  the algorithm of aim.py on graphical models
    MST  McKenna, Miklau, Sheldon 2021: "Winning the NIST Contest: A scalable and general approach to differentially
         private synthetic data"

The folder holds a job as the programs of `benchmarks/peers` read it. Answers are the tables of the last model itself:
people drawn from it, which both papers publish, would add the error of drawing them. Noise is numpy's, in floats, from
a seed: for comparisons of errors only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from itertools import combinations

import numpy as np

from benchmarks.adaptive.aim import Clique, Measured, aim, exponential
from benchmarks.adaptive.graphical import STEPS, TOLERANCE, fit, tree_megabytes
from benchmarks.adaptive.one_run import About, Method, Tables, serve
from benchmarks.peers.one_job import Job

MAX_SIZE = 80.0
"""Megabytes of the junction tree at the end of AIM's budget [McKenna et al. 2022, 4]."""
ABOUT: About = {"mbi": version("mbi"), "steps": STEPS, "tolerance": TOLERANCE}


def aim_on_mbi(job: Job, seed: int) -> tuple[Tables, About]:
    """The tables of AIM's last graphical model, whose junction tree is as small as the paper asks."""

    def size(cliques: Iterable[Clique]) -> float:
        return tree_megabytes(job.sizes, cliques) / MAX_SIZE

    measured, model, about = aim(job, seed, fit, size)
    return model.tables(job.tables), {**ABOUT, **about, "tree_MB": MAX_SIZE * size(measured.tables)}


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
    model = fit(measured)
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
    found = fit(measured, model).tables(job.tables)
    return {r: apart(found[r], [merged[i] for i in r]) for r in job.tables}, ABOUT


METHODS: dict[str, Method] = {"AIM": aim_on_mbi, "MST": mst}


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
