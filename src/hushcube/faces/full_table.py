"""The non-negative full table whose marginals are nearest to the unbiased ones.

    minimise  f(x) = 1/2 sum_A a_A ||C_A x - z_A||²   over tables x >= 0 of all cells of the domain

Its marginals agree, none is negative, and one data set has them all.

1. Begin with attributes that are independent; fit the locally non-negative tables [local.py] by a few rounds of
   iterative proportional fitting. Cells that are small by then are so in the solution too.
2. Write x = w² and minimise over w by quasi-Newton steps: no constraint is left, and small cells move in
   proportion to their size. A stationary point with w != 0 everywhere and a non-negative gradient is the minimum.
   Along w + t d the residuals C_A x - z_A are quadratic in t, so that f is a polynomial of degree four: the best step
   is known exactly, from two more sums over the table.
3. Stop when the gap is proved to be small, or when f no longer falls.

The certificate. For any numbers s_A (tables) let g = sum_A C_Aᵀ a_A s_A, and for any one table A let h_c = max(0, -min
of g over the cells that c sums up). Then

    f*  >=  -sum_B a_B <s_B, z_B + s_B/2>  -  <h, z_A + s_A>  -  ||h||² / 2 a_A.

Proof. Let s' = s, but s_A + h/a_A for this one table. For every x >= 0 and v_B = C_B x - z_B,
f(x) = 1/2 sum_B a_B ||v_B||² >= sum_B a_B (<s'_B, v_B> - ||s'_B||²/2), and sum_B a_B <s'_B, C_B x> = (g + C_Aᵀ h)·x
is not negative, because h lifts every negative cell of g. What is left is the right-hand side.
With s = C x - z, g is the gradient at x, and the bound says f(x) - f* <= g·x + <h, C_A x> + ||h||²/2 a_A: zero at the
solution, where g >= 0 and g·x = 0. Means of s over the last steps often give more, since g swings about its limit.
The best over all tables A and both s is taken. f* is also at least the optimum of the local tables, a smaller demand.
Cells that are impossible (`allowed` False) have x = x* = 0, and their g does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.answers import Answers
from hushcube.faces.local import FLOOR, LocalTables, one_way_shares
from hushcube.faces.target import Target
from hushcube.lattice.family import Family
from hushcube.lattice.summing import FullTable
from hushcube.model.arrays import Bools, Floats, Marginal
from hushcube.progress import Clock

Stop = Literal["gap", "stalled", "steps"]

_SWEEPS: Final = 5
_MEMORY: Final = 20
_MEMORY_CELLS: Final = 100_000_000
"""The most pairs of steps to remember, and the most numbers of each kind they may have together (0.4 GB)."""
_MOST_STEPS: Final = 600
_CHECK: Final = 10
_AVERAGED: Final = 20
_STALLED: Final = 0.01
"""Of the tolerance, where nothing else is said: f has stopped falling when it falls by less between two checks."""

_NOTHING: Final = 1e-30  # terms of a step's polynomial below this are rounding
_CURVED: Final = 1e-5
"""The least cosine of the angle between a step and its difference of gradients; single precision knows no smaller."""


@dataclass(frozen=True, eq=False)
class FullTableFit:
    """A non-negative full table; `gap` bounds how far f is from its minimum, and `stopped` says why it ended."""

    table: Floats
    objective: float
    gap: float
    steps: int
    stopped: Stop


def nonnegative_table(
    target: Target,
    shape: Sequence[int],
    clock: Clock,
    *,
    start: Answers | None = None,
    allowed: Bools | None = None,
    tolerance: float,
    least_fall: float | None = None,
) -> FullTableFit:
    """The nearest full table without negative cells; stops when the squared distance left is below the tolerance.

    `start` holds non-negative tables to begin near to; `allowed` (of the full shape) is False where nobody can be.
    It also stops where f falls by less than `least_fall` in ten steps.
    """
    fit = _Fit(target, shape, allowed)
    x = fit.start(start, clock)
    lower = -np.inf
    if isinstance(start, LocalTables) and not start.with_facts:
        lower = start.objective - start.gap - fit.base
    return fit.minimise(x, lower, clock, tolerance, _STALLED * tolerance if least_fall is None else least_fall)


class _Fit:
    """One target on one domain. Vectors hold the cells of all tables, one after the other."""

    def __init__(self, target: Target, shape: Sequence[int], allowed: Bools | None) -> None:
        self.target, self.allowed = target, allowed
        weighted = [m for m, a in zip(target.tables, target.weights.tolist(), strict=True) if a > 0]
        family = Family.of(weighted, target.tables.sizes)
        self.full = FullTable(shape, family)
        weights = target.weights[target.tables.ids(self.full.marginals)]
        self.starts = np.array([place.start for place in self.full.places.values()])
        self.a = np.repeat(weights, np.diff([*self.starts, self.full.length]))
        self.z = np.empty(self.full.length)
        for row, table in _each(target.coefficients, family):
            self.z[self.full.places[row]] = table.reshape(-1)
        self.base = target.distance(target.coefficients) / 2

    def start(self, tables: Answers | None, clock: Clock) -> Floats:
        """Independent attributes, then tables fitted in proportion."""
        full = self.full
        near = self.target.coefficients if tables is None else tables
        total = max(self.target.total, 1.0)
        x = np.full(full.shape, total)
        shares = one_way_shares(near, self.target.spaces, total)
        for i, n in enumerate(full.shape):
            x *= full.along((i,), shares.get(i, np.full(n, 1 / n)))
        if self.allowed is not None:
            x *= self.allowed
        if tables is None:
            return x
        aims = []
        for row, given in _each(near, self.target.largest):
            alone = FullTable(full.shape, Family.of([row], full.shape))
            aims.append((row, alone, np.maximum(given, FLOOR * total / given.size).reshape(-1)))
        for sweep in range(_SWEEPS):
            for row, alone, aim in aims:
                clock.tick("fitting the full table", 0.1 * sweep / _SWEEPS)
                now = alone.sums(x)
                x *= full.along(row, np.divide(aim, now, out=np.zeros_like(now), where=now > 0))
        return x

    def minimise(self, x: Floats, lower: float, clock: Clock, tolerance: float, least_fall: float) -> FullTableFit:
        """Quasi-Newton steps on w, x = w²."""
        full, a = self.full, self.a
        w = np.sqrt(x, out=x).reshape(-1)
        memory = Memory(full.cells, max(1, min(_MEMORY, _MEMORY_CELLS // full.cells)))
        r = full.sums(w * w) - self.z
        slopes = full.adjoint(a * r).reshape(-1)
        gap, last, mean = np.inf, np.inf, r.copy()
        stopped: Stop = "steps"
        for step in range(_MOST_STEPS + 1):
            if step % _CHECK == 0 or step == _MOST_STEPS:
                r = full.sums(w * w) - self.z  # without the rounding errors of many updates
                f = float(a @ r**2) / 2
                lower = max(lower, self.lower(r, slopes), self.lower(mean, full.adjoint(a * mean).reshape(-1)))
                gap = max(f - lower, 0.0)
                clock.approach("fitting the full table", gap, tolerance)
                if 2 * gap <= tolerance or last - f <= least_fall:
                    stopped = "gap" if 2 * gap <= tolerance else "stalled"
                    break
                last = f
            slopes *= w
            slopes *= 2
            d = memory.direction(slopes)
            if not float(d @ slopes) < 0:
                memory.forget()
                d = -slopes
            first, second = 2 * full.sums(w * d), full.sums(d * d)
            t = _best_step(a, r, first, second)
            d *= t
            w += d
            r += t * first + t**2 * second
            mean += (r - mean) / _AVERAGED
            fresh = full.adjoint(a * r).reshape(-1)
            change = 2 * w * fresh
            change -= slopes
            memory.add(d, change)
            slopes = fresh
        np.multiply(w, w, out=w)
        return FullTableFit(w.reshape(full.shape), f + self.base, gap, step, stopped)

    def lower(self, s: Floats, slopes: Floats) -> float:
        """The certificate: the best lower bound of f* from residuals s, of slopes g = sum_A C_Aᵀ a_A s_A."""
        if self.allowed is not None:
            slopes = np.where(self.allowed.reshape(-1), slopes, np.inf)
        h = np.maximum(-self.full.minima(slopes), 0.0)
        lifted = np.add.reduceat(h * (self.z + s) + h**2 / (2 * self.a), self.starts)
        return -float((self.a * s) @ (self.z + s / 2) + lifted.min())


class Memory:
    """The last pairs (step, difference of gradients) of a minimisation: limited-memory quasi-Newton directions.

    With the last m steps S and differences of gradients Y (rows), R the upper triangle of S Yᵀ, D its diagonal and
    gamma = s·y / y·y of the newest pair,

        H g = gamma g + [Sᵀ, gamma Yᵀ] M [S g; gamma Y g],      M = [[R⁻ᵀ (D + gamma Y Yᵀ) R⁻¹, -R⁻ᵀ], [-R⁻¹, 0]]

    (Byrd, Nocedal and Schnabel 1994, theorem 2.2): products of small matrices and a few passes over S and Y. They are
    kept in single precision: they only suggest a direction, and the line search judges it. Steps may be so short that
    nothing of them is left in single precision. So all vectors are kept at unit length, and of the lengths only the
    ratios ||s|| / ||y|| =: tau matter: with unit rows, and tau beside D,

        H g = gamma (g + Sᵀ p - Yᵀ q),    q = R⁻¹ S g,    p = R⁻ᵀ ((tau / gamma) D q + Y Yᵀ q - Y g),    gamma = tau D
    """

    def __init__(self, length: int, most: int) -> None:
        self._steps = np.zeros((most, length), np.float32)
        self._changes = np.zeros((most, length), np.float32)
        self._ratios = np.ones(most)  # ||s_i|| / ||y_i||
        self._products = np.zeros((most, most))  # s_i · y_j
        self._squares = np.zeros((most, most))  # y_i · y_j
        self._order: list[int] = []

    def forget(self) -> None:
        """Start anew: the next direction is the steepest."""
        self._order = []

    def add(self, step: Floats, change: Floats) -> None:
        """Keep a pair, in place of the oldest where there is no room; left out where it has no curvature."""
        lengths = np.sqrt(float(step @ step)), np.sqrt(float(change @ change))
        if not float(step @ change) > _CURVED * lengths[0] * lengths[1]:
            return
        most = len(self._steps)
        at = len(self._order) if len(self._order) < most else self._order.pop(0)
        np.divide(step, lengths[0], out=self._steps[at], casting="same_kind")
        np.divide(change, lengths[1], out=self._changes[at], casting="same_kind")
        self._ratios[at] = lengths[0] / lengths[1]
        self._order.append(at)
        self._products[:, at] = self._steps @ self._changes[at]
        self._products[at, :] = self._changes @ self._steps[at]
        self._squares[:, at] = self._squares[at, :] = self._changes @ self._changes[at]

    def direction(self, gradient: Floats) -> Floats:
        """-H times the gradient."""
        length = np.sqrt(float(gradient @ gradient))
        if not self._order or not length > 0:
            return -gradient
        order = np.array(self._order)
        short = np.divide(gradient, length, out=np.empty(len(gradient), np.float32), casting="same_kind")
        a, b = (self._steps @ short).astype(np.float64)[order], (self._changes @ short).astype(np.float64)[order]
        R = np.triu(self._products[np.ix_(order, order)])
        YY = self._squares[np.ix_(order, order)]
        curved = np.diag(R) * self._ratios[order]
        gamma = curved[-1]
        q = np.linalg.solve(R, a)
        p = np.linalg.solve(R.T, curved / gamma * q + YY @ q - b)
        weights = np.zeros((2, len(self._steps)), np.float32)
        weights[:, order] = p, -q
        short += weights[0] @ self._steps
        short += weights[1] @ self._changes
        result: Floats = short.astype(np.float64)
        result *= -gamma * length
        return result


def _best_step(a: Floats, r: Floats, first: Floats, second: Floats) -> float:
    """The t > 0 where 1/2 sum a (r + t first + t² second)² is least; 0 where none is below.

    The polynomial is taken relative to its slope at 0, in units of the t where its first term as large appears: tables
    of next to nobody have coefficients near the smallest numbers.
    """
    slope = -float((a * r) @ first)
    if not slope > 0:
        return 0.0
    bends = (a * second) @ second / 2, (a * first) @ second, (a * first) @ first / 2 + (a * r) @ second
    terms = {power: float(bend) / slope for power, bend in zip((3, 2, 1), bends, strict=True)}
    unit = min(((1 / abs(term)) ** (1 / power) for power, term in terms.items() if term), default=0.0)
    if not 0 < unit < math.inf:
        return 0.0
    scaled = [term * unit**power for power, term in terms.items()]
    c = np.array([*(term if abs(term) > _NOTHING else 0.0 for term in scaled), -1.0, 0.0])
    roots = np.roots(np.polyder(c))
    real = roots.real[(np.abs(roots.imag) <= 1e-9 * np.abs(roots)) & (roots.real > 0)]
    return unit * float(min(real, key=lambda t: np.polyval(c, t), default=0.0))


def _each(tables: Answers, family: Family) -> Iterator[tuple[Marginal, Floats]]:
    for batch in family.batches:
        yield from zip(map(tuple, batch.rows.tolist()), tables.tables(batch.rows, batch.shape), strict=True)


@dataclass(frozen=True, eq=False)
class SummedTable:
    """Tables as sums of one full table."""

    full: Floats

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        out = [tuple(axis for axis in range(self.full.ndim) if axis not in row) for row in rows.tolist()]
        return np.stack([self.full.sum(axis=axes) for axes in out]).reshape(len(rows), *shape)
