"""AIM, whatever model it fits: select the worst approximated table, measure it, fit; until the budget is spent.

    McKenna, Mullins, Sheldon, Miklau 2022: "AIM: An Adaptive and Iterative Mechanism for Differentially Private
    Synthetic Data", Algorithms 2 to 4

A model is whatever gives tables. The paper's is a graphical one, by mbi [graphical.py]; the other is hushcube's own fit
[own_fit.py]. Nothing but numpy and the standard library is imported here, for they run in different environments.
Noise is numpy's, in floats, from a seed: for comparisons of errors only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Any, Protocol

import numpy as np

from benchmarks.adaptive.one_run import About
from benchmarks.peers.one_job import Job

Clique = tuple[int, ...]
ALPHA = 0.9
"""The share of a round's budget that is measured with; the rest selects."""
NOISE = math.sqrt(2 / math.pi)
"""The mean absolute value of a standard normal number."""


class Model(Protocol):
    """What was fitted to all measurements."""

    def tables(self, cliques: Iterable[Clique]) -> Mapping[Clique, np.ndarray]:
        """Its tables, whether they were measured or not."""


@dataclass
class Measured:
    """What was measured of each table: the average, and the standard deviation of its noise, of all cells or each."""

    sizes: tuple[int, ...]
    tables: dict[Clique, tuple[np.ndarray, Any]] = field(default_factory=dict)

    def add(self, clique: Clique, noisy: np.ndarray, sigma: float | np.ndarray) -> None:
        """One more measurement, averaged with those of the same table."""
        if clique in self.tables:
            before, own = self.tables[clique]
            weight, more = own**-2, sigma**-2
            noisy = (weight * before + more * noisy) / (weight + more)
            sigma = (weight + more) ** -0.5
        self.tables[clique] = noisy, sigma

    def total(self) -> float:
        """How many people there are: the tables' sums, weighted by 1/variance; at least one."""
        sums = np.array([noisy.sum() for noisy, _ in self.tables.values()])
        weights = 1 / np.array([np.broadcast_to(np.square(s), y.shape).sum() for y, s in self.tables.values()])
        return max(1.0, float(sums @ weights / weights.sum()))


Fit = Callable[[Measured, Any], Any]
"""Measurements and the model of the round before (None: the first) -> a model."""
Size = Callable[[Iterable[Clique]], float]
"""The size of a model of some tables, as a share of the most that it may have."""


def aim(job: Job, seed: int, fit: Fit, size: Size = lambda _: 0.0) -> tuple[Measured, Any, About]:
    """All measurements, the last model, and what the run came to [Algorithm 4].

    The part of its largest size that a model may have is the part of the budget that is spent.
    """
    random, rho, d = np.random.default_rng(seed), float(job.rho or 0), len(job.sizes)
    rounds = 16 * d
    weights = {r: sum(len({*r} & {*s}) for s in job.tables) for r in closure(job.tables)}
    exact = {r: job.exact(r) for r in weights}
    sigma, epsilon = math.sqrt(rounds / (2 * ALPHA * rho)), math.sqrt(8 * (1 - ALPHA) * rho / rounds)
    measured, used, t = Measured(job.sizes), 0.0, 0

    def measure(r: Clique) -> None:
        measured.add(r, exact[r] + random.normal(scale=sigma, size=exact[r].shape), sigma)

    for r in weights:
        if len(r) == 1:  # [Algorithm 3]
            measure(r)
            used += 0.5 / sigma**2
    model = fit(measured, None)
    last = False
    while not last:
        t += 1
        left = rho - used
        if last := left <= 2 * (0.5 / sigma**2 + epsilon**2 / 8):  # [Algorithm 2, lines 4 to 6]
            sigma, epsilon = math.sqrt(1 / (2 * ALPHA * left)), math.sqrt(8 * (1 - ALPHA) * left)
        used += 0.5 / sigma**2 + epsilon**2 / 8
        small = [r for r in weights if size([*measured.tables, r]) <= min(used / rho, 1.0)]
        model_tables = model.tables(small)
        off = {r: float(np.abs(exact[r] - model_tables[r]).sum()) for r in small}
        quality = np.array([weights[r] * (off[r] - NOISE * sigma * exact[r].size) for r in small])  # [(1)]
        chosen = small[exponential(quality, max(weights[r] for r in small), epsilon, random)]
        measure(chosen)
        model = fit(measured, model)
        moved = float(np.abs(model.tables([chosen])[chosen] - model_tables[chosen]).sum())
        if moved <= NOISE * sigma * exact[chosen].size:  # [Algorithm 2, lines 1 to 3]
            sigma, epsilon = sigma / 2, 2 * epsilon
    return measured, model, {"rounds": t, "spent": used, "measured": len(measured.tables)}


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
