"""A graphical model fitted to noisy tables by mbi, and any table read off it.

Needs mbi and its jax, numpy and networkx: it runs in the environment of the rivals.

    p = argmin over Markov random fields of  sum_r ||M_r(p) - y_r||^2 / (2 sigma_r^2)    [McKenna et al. 2019, (1)]

Several measurements of one table are averaged, weighted by 1/sigma^2: the minimum is the same, and jax need not compile
again. Tables outside the model's cliques are summed from the full table where that is small, and found by
eliminating attributes otherwise; mbi would compile a program for each table and each round.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from benchmarks.adaptive.aim import Clique, Measured

warnings.simplefilter("ignore")

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import mbi  # noqa: E402

MEGABYTE = 2**20
FULL_TABLE = 2**24
"""Cells up to which all tables are summed from the full one."""
STEPS = 1000
"""Of mirror descent, at most, for each fit, as in AIM's own program. Fewer are not enough: with 100 where the junction
tree had more than 4 MB, AIM's error on the two-way tables of ACS 2018 was a fifth larger (epsilon 1, one seed)."""
TOLERANCE = 1e-4
"""Mirror descent stops when 100 steps improve the loss by less than this share of it."""


def fit(measured: Measured, start: Model | None = None, steps: int = STEPS) -> Model:
    """The model that fits best, by mirror descent; `start` is an earlier one, inside the new."""
    domain = mbi.Domain(range(len(measured.sizes)), measured.sizes)
    given = [_weighed(r, noisy, sigma) for r, (noisy, sigma) in measured.tables.items()]
    warm = None if start is None else start.field
    total = measured.total()
    return Model(measured.sizes, _Descent().estimate(domain, given, total, iters=steps, tol=TOLERANCE, warm_start=warm))


def _weighed(clique: Clique, noisy: np.ndarray, sigma: float | np.ndarray) -> Any:
    """A measurement as mbi takes it: cells of other precision are scaled until all have the same."""
    if np.ndim(sigma) == 0:
        return mbi.LinearMeasurement(noisy.ravel(), clique, stddev=float(sigma))
    weights = np.min(sigma) / np.ravel(sigma)
    query = mbi.WeightedQuery(weights)
    return mbi.LinearMeasurement(noisy.ravel() * weights, clique, stddev=float(np.min(sigma)), query=query)


@dataclass(frozen=True)
class _Descent(mbi.estimation.MirrorDescent):
    """mbi's mirror descent without the marginals before the first and after the last step, which nobody reads: each
    would be one more program to compile, and compiling is most of the time."""

    def _init(self, domain, loss_fn, known_total, *, warm_start=None, constraints=()):  # noqa: ARG002 - mbi's own
        start = mbi.CliqueVector.zeros(domain, loss_fn.cliques)
        potentials = start if warm_start is None else warm_start.potentials.expand(loss_fn.cliques)
        # numpy's types, not Python's: with those, the second block of steps would be compiled again
        step = jax.numpy.asarray(np.float64(2.0 / (loss_fn.lipschitz * known_total)))
        return mbi.estimation.MirrorDescentState(start, potentials, step, jax.numpy.asarray(np.float64(np.inf)))

    def _finalize(self, state, known_total, constraints=()):  # noqa: ARG002
        return mbi.MarkovRandomField(potentials=state.potentials, marginals=state.mu, total=known_total)


@dataclass(frozen=True, eq=False)
class Model:
    """A fitted Markov random field."""

    sizes: tuple[int, ...]
    field: Any

    def tables(self, cliques: Iterable[Clique]) -> dict[Clique, np.ndarray]:
        """The model's tables, whether it has such cliques or not."""
        potentials = [(tuple(r), np.asarray(f.values, np.float64)) for r, f in self.field.potentials.tables.items()]
        total = float(self.field.total)
        if math.prod(self.sizes) <= FULL_TABLE:
            logs = sum(_spread(values, r, len(self.sizes)) for r, values in potentials)
            full = np.exp(np.broadcast_to(logs, self.sizes) - np.max(logs))
            full *= total / full.sum()
            return {r: _sum_to(full, range(len(self.sizes)), r) for r in cliques}
        return {r: _eliminated(potentials, self.sizes, r, total) for r in cliques}


def _spread(values: np.ndarray, clique: Clique, attributes: int) -> np.ndarray:
    """A table with an axis for every attribute."""
    order = np.argsort(clique)
    shape = [1] * attributes
    for place in order:
        shape[clique[place]] = values.shape[place]
    return np.transpose(values, order).reshape(shape)


def _sum_to(values: np.ndarray, attributes: Sequence[int], clique: Clique) -> np.ndarray:
    """Sum over all attributes but those of a clique, which are in increasing order, as its own are."""
    return values.sum(axis=tuple(place for place, i in enumerate(attributes) if i not in clique))


def _eliminated(
    potentials: Sequence[tuple[Clique, np.ndarray]], sizes: Sequence[int], clique: Clique, total: float
) -> np.ndarray:
    """Attributes outside the clique are summed out, the one with the smallest table first. Factors are kept as
    numbers with largest value 1 beside a logarithm that cancels, so that products do not overflow."""
    factors = [(r, np.exp(values - values.max())) for r, values in potentials]
    outside = {i for r, _ in factors for i in r} - set(clique)
    while outside:
        joined = {i: set().union(*(r for r, _ in factors if i in r)) for i in outside}
        i = min(outside, key=lambda i: math.prod(sizes[j] for j in joined[i]))
        kept = tuple(sorted(joined[i] - {i}))
        product = _contracted([f for f in factors if i in f[0]], kept)
        factors = [f for f in factors if i not in f[0]] + [(kept, product / product.max())]
        outside.remove(i)
    found = np.broadcast_to(_contracted(factors, clique), [sizes[i] for i in clique])
    return found * (total / found.sum())


def _contracted(factors: Sequence[tuple[Clique, np.ndarray]], kept: Clique) -> np.ndarray:
    """The product of factors, summed to some attributes; those that no factor has are added with one value."""
    present = sorted({i for r, _ in factors for i in r} & set(kept))
    operands = [part for r, values in factors for part in (values, list(r))]
    found = np.einsum(*operands, present, optimize="greedy")
    return found.reshape([found.shape[present.index(i)] if i in present else 1 for i in kept])


def tree_megabytes(sizes: tuple[int, ...], cliques: Iterable[Clique]) -> float:
    """The size of a junction tree: its cliques' cells as doubles, attributes eliminated as greedily as mbi does.

    >>> tree_megabytes((2, 2, 2, 2), [(0, 1), (1, 2), (2, 3)]) * 2**20 / 8
    12.0
    """
    beside = [1 << i for i in range(len(sizes))]
    for r in cliques:
        mask = sum(1 << i for i in r)
        for i in r:
            beside[i] |= mask
    left, formed = set(range(len(sizes))), list[int]()
    while left:
        i = min(left, key=lambda i: _cells(sizes, beside[i]))
        own = beside[i]
        formed.append(own)
        left.remove(i)
        for j in left:
            if own >> j & 1:
                beside[j] = (beside[j] | own) & ~(1 << i)
    largest = [m for m in set(formed) if not any(m != other and m & other == m for other in formed)]
    return sum(_cells(sizes, m) for m in largest) * 8 / MEGABYTE


@cache
def _cells(sizes: tuple[int, ...], mask: int) -> int:
    return math.prod(n for i, n in enumerate(sizes) if mask >> i & 1)
