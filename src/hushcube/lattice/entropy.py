"""Tables that are near to noisy coefficients and have an opinion where noise leaves many tables possible.

    minimise   1/2 sum_C sum_k (t_Ck - z_Ck)² / (h_k v_C)   +   sum_A sum_c s_c (y_c log(y_c / q_c) - y_c + q_c)

over consistent tables y with the coefficients t: the likelihood of Helmert coefficients z with Gaussian noise of
variance h v (h the squared norms of the rows), plus relative entropy to a guess q of each table A. The stiffness s_c
says how firmly a cell is expected near its guess: near it, the entropy is (y - q)² s / 2q, so that s = 1 / (d² q)
expects a relative deviation of d. Tables are positive, small cells stay small, and a cell that is far larger than its
guess is believed sooner than a normal law would.

The alternating direction method has two cheap steps. The first is diagonal over the residual spaces,

    t_C = (z_C + w_C g_C) / (1 + w_C),     w_C = rho v_C K_C cells(C),     g the coefficients nearest to given tables,

which is done on the cells, by margins [lattice/facets.py]. The second is one equation a cell,
log(y / q) = rho (x - y) / s, solved by Newton's method on log(y / q).

The certificate. With multipliers m = s log(y / q), a_C = K_C cells(C) coefficients_C(m) / h, Fenchel's inequality
bounds the minimum from below by

    D = sum_C <z_C, a_C> - 1/2 h v_C a_C²  -  sum_c s_c (y_c - q_c)
      = <tables of z, m> - 1/2 <m, T_f m> - sum_c s_c (y_c - q_c),     f_C = v_C K_C cells(C).

By the strong convexity of the likelihood, consistent tables without negative cells of the value P are within
sum (t - t*)² / (h v) <= 2 (P - D) of the minimum: in units of the noise, on average, sqrt(2 (P - D) / coefficients).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.lattice import helmert
from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.lattice.coefficients import Coefficients, Projection
from hushcube.lattice.facets import Scaling, scaled
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, keep_freed

Tick = Callable[[float], bool]
"""Called with the share of the work that is done; says whether to go on."""

_RELAXATION: Final = 1.6
_MOST_STEPS: Final = 1_000
_CHECK: Final = 10
_NEWTON: Final = 4  # steps of Newton's method for a cell, from where it was: the next round goes on from there
_FARTHEST: Final = 3.0  # one of them changes the logarithm of a cell by this much at most
_STILL: Final = 1e-8  # the next step would change logarithms by less than its square: by rounding
_PART: Final = 1 << 14  # cells at a time: their arrays stay in the cache
_SETTLED: Final = 1e-6  # of the tables' size, and
_UNSEEN: Final = 3e-5  # of the noise: what steps move them by when the method is content


@dataclass(frozen=True, eq=False)
class EntropyFit:
    """Coefficients of the tables that were found; rounding may leave small cells a little below zero."""

    coefficients: Coefficients
    steps: int
    lower: float
    """A bound of the minimum from below, D."""
    problem: Problem

    def share_of_noise(self, tables: Sequence[Floats]) -> float:
        """How far consistent tables without negative cells are from the minimum at most, in units of the noise.

        They are given for each batch of the problem's tables.
        """
        value = self.problem.value(self.problem.to.join(tables))
        return math.sqrt(2 * max(value - self.lower, 0.0) / self.problem.to.length)


@dataclass(frozen=True, eq=False)
class Noisy:
    """Coefficients with noise: for each batch of the spaces an array, and v_C for each space (zero: exact)."""

    coefficients: Coefficients
    variances: Floats

    @property
    def spaces(self) -> Family:
        """The residual spaces."""
        return self.coefficients.spaces

    def within(self, spaces: Family) -> Noisy:
        """Those of some of the spaces."""
        blocks = tuple(np.asarray(self.coefficients.gather(batch.rows), np.float64) for batch in spaces.batches)
        return Noisy(Coefficients(spaces, blocks), self.variances[self.spaces.ids(spaces)])


def entropic(tables: Family, noisy: Noisy, guess: Floats, stiffness: Floats, tick: Tick) -> EntropyFit:
    """The tables that minimise likelihood and entropy together; `guess` and `stiffness` are vectors of all cells."""
    keep_freed()  # steps make and drop arrays of all cells
    problem = Problem(tables, noisy, guess, stiffness)
    to, y, rho = problem.to, problem.q.copy(), problem.rho
    u, logs, likely = np.zeros_like(y), np.zeros_like(y), problem.step(rho)
    lower = -math.inf
    for step in range(1, _MOST_STEPS + 1):
        spread = likely(y - u)
        before = y.copy()
        u += _RELAXATION * spread
        u += (1 - _RELAXATION) * y
        problem.cells(u, rho, y, logs)
        u -= y
        if step % _CHECK:
            continue
        lower = max(lower, problem.bound(logs, y))
        apart, moved = float(np.linalg.norm(spread - y)), float(np.linalg.norm(y - before))
        left = (apart + moved) / (_SETTLED * float(np.linalg.norm(y)) + problem.little)
        if left <= 1 or not tick(1 - math.log10(left) / 5):
            break
        if (ratio := apart / max(moved, 1e-300)) > 5 or ratio < 0.2:
            factor = 2.0 if ratio > 5 else 0.5
            rho, u = rho * factor, u / factor
            likely = problem.step(rho)
    return EntropyFit(to.unpack(to.nearest(y)), step, lower, problem)


class Problem:
    """One likelihood and one guess; tables and coefficients are vectors."""

    def __init__(self, tables: Family, noisy: Noisy, guess: Floats, stiffness: Floats) -> None:
        spaces = tables.closure
        self.to = to = Projection(tables, np.ones(len(tables)), spaces)
        self._scaled = scaled(to)
        own = noisy.within(spaces)
        self.z = to.join(own.coefficients.blocks)
        self.v = to.each(own.variances)
        self._weight = own.variances * kernel(MARGINAL, tables, np.ones(len(tables)), spaces) * spaces.cells
        self._measured, self._noise = to.spread(self.z), self._scaled.by(self._weight)
        norms = [np.tile(helmert.residual_norms(b.shape).ravel(), len(b.ids)) for b in spaces.batches]
        self.h = np.concatenate(norms).astype(np.float64)
        self.q, self.s = guess, stiffness
        noise = self.v[self.v > 0]
        self.rho = 1 / float(np.median(noise)) if noise.size else 1.0
        self.little = _UNSEEN * math.sqrt(to.cells / self.rho)
        """Steps that move tables by less cannot be seen beside the noise."""

    def step(self, rho: float) -> Scaling:
        """From given tables to those that are near to both them and the noisy coefficients."""
        w = rho * self._weight
        still, moving = self.to.spread(self.z / self.to.each(1 + w)), self._scaled.by(w / (1 + w))
        return lambda given: still + moving(given)

    def cells(self, given: Floats, rho: float, y: Floats, logs: Floats) -> None:
        """Move y = q exp(logs) to where entropy and rho/2 (y - given)² are least, from where it is."""
        room = np.empty((3, min(_PART, len(y))))
        for start in range(0, len(y), _PART):
            part = slice(start, start + _PART)
            _newton(given[part], self.q[part], rho, self.s[part], y[part], logs[part], room)

    def value(self, y: Floats) -> float:
        """The objective P of consistent tables without negative cells."""
        t, noisy = self.to.nearest(y), self.v > 0
        entropy = np.where(y > 0, y * np.log(np.maximum(y, 1e-300) / self.q), 0.0) - y + self.q
        return float(self.s @ entropy + ((t - self.z)[noisy] ** 2 / (self.h * self.v)[noisy]).sum() / 2)

    def bound(self, logs: Floats, y: Floats) -> float:
        """D, for y = q exp(logs)."""
        m = self.s * logs
        return float(m @ (self._measured - self._noise(m) / 2) - self.s @ (y - self.q))


def _newton(given: Floats, q: Floats, rho: float, s: Floats, y: Floats, logs: Floats, room: Floats) -> None:
    steep, down, slope = room[:, : len(y)]
    np.divide(rho, s, out=steep)
    for _ in range(_NEWTON):
        np.subtract(y, given, out=down)
        down *= steep
        down += logs
        np.multiply(steep, y, out=slope)
        slope += 1
        down /= slope
        if (farthest := max(down.max(), -down.min())) > _FARTHEST:
            np.clip(down, -_FARTHEST, _FARTHEST, out=down)
        logs -= down
        np.exp(logs, out=y)
        y *= q
        if farthest < _STILL:
            break
