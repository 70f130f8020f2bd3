"""The non-negative full table whose marginals are nearest to the unbiased ones.

    minimise  f(x) = 1/2 sum_A a_A ||C_A x - z_A||²   over tables x >= 0 of all cells of the domain

Its marginals agree, none is negative, and one data set has them all.

1. Begin with attributes that are independent; fit the locally non-negative tables [local.py] by a few rounds of
   iterative proportional fitting. Cells that are small by then are so in the solution too.
2. Multiply cells: x exp(Cᵀ theta), with one number theta_c for each cell of the tables A. No constraint is left, small
   cells move in proportion to their size, and x stays the nearest to the start, in relative entropy, among the tables
   with its marginals. With r = C x - z and g = Cᵀ a r, the gradient in theta is C (x g) = K a r, K = C diag(x) Cᵀ. So
   a r = K⁻¹ (gradient) is the gradient in the metric of relative entropy, and free. Quasi-Newton steps begin with this
   metric [`Memory`]: all they remember has the size of the tables, not that of the domain.
3. Stop when the gap is proved to be small, or when f no longer falls, or when the time is up.

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
from hushcube.lattice.summing import Cells, FullTable
from hushcube.model.arrays import Bools, Floats, Marginal
from hushcube.progress import Clock

Stop = Literal["gap", "stalled", "steps", "time"]

_SWEEPS: Final = 5
_MEMORY: Final = 40  # the most pairs of steps to remember
_MOST_STEPS: Final = 2_000
_CHECK: Final = 10
_AVERAGED: Final = 20
_STALLED: Final = 1e-6
"""Of the tolerance, where nothing else is said: f has stopped falling when it falls by less between two checks."""
_SINGLE: Final = 2**18  # cells from which single precision is used, where the tolerance allows it
_ROUNDING: Final = 2.0**-21  # the error of a sum in single precision, as a share of it
_UNSEEN: Final = 0.05  # of the tolerance: what rounding may add to f
_FIRST: Final = 0.5  # the logarithm by which the first step changes a cell at most
_FARTHEST: Final = 40.0  # the same for any step, upwards
_FALLS: Final = 1e-4  # the least share of what its slope promises by which a step lowers f
_TRIES: Final = 20  # lengths of a step
_CURVED: Final = 1e-10  # the least cosine of the angle between a step and its difference of gradients
_STAGE: Final = "fitting the full table"


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
    It also stops where f falls by less than `least_fall` in ten steps, or where the time of the clock is up.
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
                if clock.over:
                    return x
                clock.show(_STAGE, 0.1 * sweep / _SWEEPS)
                now = alone.sums(x)
                x *= full.along(row, np.divide(aim, now, out=np.zeros_like(now), where=now > 0))
        return x

    def minimise(self, x: Floats, lower: float, clock: Clock, tolerance: float, least_fall: float) -> FullTableFit:
        """Quasi-Newton steps on theta, x exp(Cᵀ theta)."""
        full, a = self.full, self.a
        r = full.sums(x) - self.z
        f = float(a @ r**2) / 2
        sums = self.z + r
        if full.cells >= _SINGLE and float(a @ (_ROUNDING * sums) ** 2) <= _UNSEEN * min(tolerance, least_fall):
            x = x.astype(np.float32)
        trial, memory = np.empty_like(x), Memory(_MEMORY)
        slopes = full.adjoint(a * r, np.empty_like(x))
        gradient = full.sums(np.multiply(x, slopes, out=trial))
        gap, last, mean, begun = np.inf, np.inf, r.copy(), f
        stopped: Stop = "steps"
        for step in range(_MOST_STEPS + 1):
            if step % _CHECK == 0 or step == _MOST_STEPS or clock.over:
                lower = max(lower, self.lower(r, slopes))
                if full.cells < _SINGLE:  # else the mean is left to the end: its slopes are another full table
                    lower = max(lower, self.lower(mean, full.adjoint(a * mean)))
                gap = max(f - lower, 0.0)
                if 2 * gap <= tolerance or last - f <= least_fall or clock.over:
                    stopped = "gap" if 2 * gap <= tolerance else "time" if clock.over else "stalled"
                    break
                clock.show(_STAGE, _progress(begun - f, last - f, least_fall))
                last = f
            taken = self._step(x, trial, slopes, f, gradient, a * r, memory)
            if taken is None:
                stopped = "stalled"
                break
            theta, r, f = taken
            x, trial = trial, x
            full.adjoint(a * r, slopes)
            before, gradient = gradient, full.sums(np.multiply(x, slopes, out=trial))
            memory.add(theta, gradient - before, a * r)
            mean += (r - mean) / _AVERAGED
        table = x.astype(np.float64)
        r = full.sums(table) - self.z
        f = float(a @ r**2) / 2
        for s in (r, mean):
            lower = max(lower, self.lower(s, full.adjoint(a * s)))
        return FullTableFit(table, f + self.base, max(f - lower, 0.0), step, stopped)

    def _step(
        self, x: Cells, trial: Cells, room: Cells, f: float, gradient: Floats, natural: Floats, memory: Memory
    ) -> tuple[Floats, Floats, float] | None:
        """A step that lowers f: theta, the new residuals and the new f; the cells are in `trial`. None: there is none.

        It is halved or so until f falls by some of what its slope promises. `room` is written over.
        """
        while True:
            theta = memory.direction(gradient, natural)
            slope = float(gradient @ theta)
            if slope < 0:
                change = self.full.adjoint(theta, room)
                largest = max(float(change.max()), -float(change.min())) if not memory.pairs else float(change.max())
                t = min(1.0, _FARTHEST / largest) if memory.pairs and largest > 0 else _FIRST / max(largest, 1e-300)
                for _ in range(_TRIES):
                    np.multiply(change, change.dtype.type(t), out=trial)
                    np.exp(trial, out=trial)
                    trial *= x
                    r = self.full.sums(trial) - self.z
                    reached = float(self.a @ r**2) / 2
                    if reached <= f + _FALLS * t * slope:
                        return t * theta, r, reached
                    fitted = -slope * t / (2 * max(reached - f - slope * t, 1e-300))
                    t *= min(max(fitted, 0.1), 0.5)
            if not memory.pairs:
                return None
            memory.forget()

    def lower(self, s: Floats, slopes: Cells) -> float:
        """The certificate: the best lower bound of f* from residuals s, of slopes g = sum_A C_Aᵀ a_A s_A."""
        if self.allowed is not None:
            slopes = np.where(self.allowed, slopes.reshape(self.full.shape), np.inf)
        h = np.maximum(-self.full.minima(slopes), 0.0)
        lifted = np.add.reduceat(h * (self.z + s) + h**2 / (2 * self.a), self.starts)
        return -float((self.a * s) @ (self.z + s / 2) + lifted.min())


class Memory:
    """The last steps of a minimisation and their differences of gradients: limited-memory quasi-Newton directions.

    The two-loop recursion (Nocedal 1980) needs one matrix H, a first guess of the inverse of the second derivatives,
    and multiplies only sums of gradients by it. Here H = gamma K⁻¹, K at the x where each gradient was taken: H times a
    gradient is gamma times the weighted residuals a r, which are at hand. So a step s is kept with its difference of
    gradients y and that of residuals n, and gamma = s·y / y·n of the newest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.pairs: list[tuple[Floats, Floats, Floats, float]] = []
        self._natural: Floats | None = None

    def forget(self) -> None:
        """Start anew: the next direction is the steepest."""
        self.pairs = []

    def add(self, step: Floats, change: Floats, natural: Floats) -> None:
        """Keep a step to where the residuals are `natural`, in place of the oldest; left out without curvature."""
        if self._natural is None:
            return
        moved, along = natural - self._natural, float(step @ change)
        bent = along > _CURVED * np.sqrt(float(step @ step) * float(change @ change))
        if bent and float(change @ moved) > 0:
            self.pairs = [*self.pairs[1 - self._most :], (step, change, moved, along)]

    def direction(self, gradient: Floats, natural: Floats) -> Floats:
        """-H times the gradient."""
        self._natural = natural
        if not self.pairs:
            return -natural
        rest, result, shares = gradient.copy(), natural.copy(), []
        for step, change, moved, along in reversed(self.pairs):
            share = float(step @ rest) / along
            shares.append(share)
            rest -= share * change
            result -= share * moved
        _, change, moved, along = self.pairs[-1]
        result *= along / float(change @ moved)
        for (step, change, _, along), share in zip(self.pairs, reversed(shares), strict=True):
            result += (share - float(change @ result) / along) * step
        return -result


def _progress(fallen: float, lately: float, least_fall: float) -> float:
    """How far it is: f falls by less and less, and ends where it falls by the least."""
    if not (math.isfinite(lately) and lately > 0 and fallen > 0 and least_fall > 0):
        return 0.1
    begun = max(fallen, 10 * least_fall)
    return 0.1 + 0.9 * min(max(math.log(begun / lately) / math.log(begun / least_fall), 0.0), 0.99)


def _each(tables: Answers, family: Family) -> Iterator[tuple[Marginal, Floats]]:
    for batch in family.batches:
        yield from zip(map(tuple, batch.rows.tolist()), tables.tables(batch.rows, batch.shape), strict=True)


@dataclass(frozen=True, eq=False)
class SummedTable:
    """Tables as sums of one full table."""

    full: Floats

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        full = FullTable(self.full.shape, Family.of_rows(rows, self.full.shape))
        sums = full.sums(self.full)  # axis by axis: many axes at a time are summed ten times slower
        return np.stack([sums[full.places[tuple(row)]] for row in rows.tolist()]).reshape(len(rows), *shape)
