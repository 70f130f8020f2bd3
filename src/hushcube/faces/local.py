"""Consistent marginals without negative cells, on domains of any size: the projection of the unbiased tables.

    minimise  f(y) = 1/2 sum_A a_A ||y_A - z_A||²    over consistent y with  y_A >= 0  for the largest tables A

by the alternating direction method. Its two steps are cheap: the consistent tables nearest to both z and the present
non-negative ones are diagonal over the residual spaces; the non-negative ones are a cut at zero. Nothing has the size
of the domain. "Locally" non-negative: every table is, but that one data set has them all is not promised (the full
table and synthetic people do promise it).

The multipliers mu_A >= 0 of the cuts bound the optimum from below,

    f* >= D(mu) = min over consistent y of  f(y) - sum_A <mu_A, y_A>
                = f(z') - sum_A <mu_A, z'_A> - 1/2 sum_A <mu_A, d_A>,

z' the consistent tables nearest to z (z itself as a rule) and d the tables with coefficients (K^T_C / K_C)
coefficients_C(mu), K^T the kernel of the largest tables. So f - D is a certificate: by the strong convexity of f the
tables are within a total squared distance of 2 (f - D) from the exact projection. Known cells y = k have multipliers of
either sign, and D gains <mu, k>.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.answers import Answers
from hushcube.errors import FactsError
from hushcube.faces.target import Target
from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.lattice.coefficients import Coefficients, Projection
from hushcube.lattice.facets import Scaling, scaled
from hushcube.lattice.family import Family
from hushcube.lattice.proportional import independent
from hushcube.model.arrays import Floats, keep_freed, position_rows
from hushcube.progress import Clock

_RELAXATION: Final = 1.7
_MOST_STEPS: Final = 5_000
_CHECK: Final = 10
_EXACT: Final = 1e-10  # known cells end this near to their values, as a share of the total
_SETTLED: Final = 1e-10  # the method stands still when a step moves the tables by less than this share of the total
FLOOR: Final = 1e-3
"""Of a table's mean cell: what a cell is at least while tables are fitted in proportion, so that none dies."""
_ROUNDS: Final = 8
_ROUGH: Final = 0.1
_INNER: Final = 1_000
_STAGE: Final = "tables without negative cells"


@dataclass(frozen=True, eq=False)
class NonNegative:
    """Tables whose rounding errors below zero are cut."""

    coefficients: Coefficients

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.maximum(self.coefficients.tables(rows, shape), 0.0)


@dataclass(frozen=True, eq=False)
class LocalTables(NonNegative):
    """What was found; `gap` bounds how far f is from its minimum (infinite: no bound is known)."""

    objective: float
    gap: float
    steps: int
    in_time: bool  # whether it ended by itself
    with_facts: bool  # whether cells were known; the optimum is then not that of the unbiased tables alone


def nonnegative_marginals(
    target: Target, clock: Clock, *, fixed: Sequence[Floats] | None = None, tolerance: float
) -> LocalTables:
    """The nearest consistent non-negative tables; stops when the squared distance left is proved below the tolerance.

    `fixed` holds an array (tables, *shape) for each batch of the target's largest tables: NaN, or the value a cell has.
    Where the time of the clock is up it ends with the best tables so far: without facts there always are some.
    """
    keep_freed()  # steps make and drop arrays of all cells
    solver = _Solver(target, fixed)
    z = solver.cut(solver.unbiased)
    u = np.zeros_like(z)
    rho, best, lower, repair = 1.0, (np.inf, solver.unbiased), -np.inf, _CHECK
    near_both = solver.step(rho)
    for step in range(1, _MOST_STEPS + 1):
        y = near_both(z - u)
        u += _RELAXATION * y + (1 - _RELAXATION) * z
        before, z = z, solver.cut(u)
        u -= z
        late = clock.over
        if step % _CHECK and step < _MOST_STEPS and not late:
            continue
        moved, apart = float(np.linalg.norm(z - before)), float(np.linalg.norm(y - z))
        settled = moved + apart <= _SETTLED * (1 + target.total) or step == _MOST_STEPS
        bound = solver.bound(-rho * u, best[0])
        near = 2 * abs(solver.objective(y) - bound) <= tolerance
        candidates = [] if solver.has_facts else solver.inside(y)
        if settled or (late and solver.has_facts) or (near and step >= repair and not late):
            candidates += solver.repaired(y, z)
            repair = step + step // 3  # it takes as long as dozens of steps
        for candidate in candidates:
            best = min(best, (solver.objective(candidate), candidate), key=lambda pair: pair[0])
        lower = max(lower, bound if np.isfinite(bound) else solver.bound(-rho * u, best[0]))
        gap = max(best[0] - lower, 0.0)
        clock.approach(_STAGE, gap, tolerance)
        if 2 * gap <= tolerance or settled or late:
            break
        if (ratio := apart / max(rho * moved, 1e-300)) > 5 or ratio < 0.2:  # the usual balance of the residuals
            factor = 2.0 if ratio > 5 else 0.5
            rho, u = rho * factor, u / factor
            near_both = solver.step(rho)
    if not np.isfinite(best[0]):
        clock.check(_STAGE)
        raise FactsError("facts", "no consistent tables without negative cells were found for them", "check the counts")
    in_time = 2 * gap <= tolerance or not late
    found = solver.to.unpack(solver.to.nearest(best[1]))
    return LocalTables(found, best[0], gap, step, in_time, solver.has_facts)


class _Solver:
    """The steps of the method for one target; tables and coefficients are vectors."""

    def __init__(self, target: Target, fixed: Sequence[Floats] | None) -> None:
        largest, spaces = target.largest, target.spaces
        self.to = to = Projection(largest, np.ones(len(largest)), spaces)
        self._scaled = scaled(to)
        self._consistent = self._scaled.by(np.ones(len(spaces)))
        self._total, self._sum = max(target.total, 1.0), target.total
        self._known = np.full(to.cells, np.nan) if fixed is None else to.join(fixed)
        self._is_known = ~np.isnan(self._known)
        self.has_facts = bool(self._is_known.any())
        self.unbiased = to.spread(to.join(target.coefficients.blocks))
        self._own = kernel(MARGINAL, target.tables, target.weights, spaces)  # zero: only facts see it
        self._cuts = kernel(MARGINAL, largest, np.ones(len(largest)), spaces)
        self._unseen = (self._own <= 0) & (self._cuts > 0)
        self._squares = self._scaled.by(self._own / self._cuts)
        self._slopes = self._scaled.by(np.where(self._unseen, 0.0, self._cuts / np.where(self._own > 0, self._own, 1)))
        self._strange = self._scaled.by(self._unseen.astype(np.float64))
        self._base = target.distance(target.coefficients) / 2

    def objective(self, y: Floats) -> float:
        """f, of consistent tables."""
        apart = y - self.unbiased
        return self._base + float(apart @ self._squares(apart)) / 2

    def cut(self, values: Floats) -> Floats:
        """The non-negative tables nearest to given ones, known cells at their values."""
        result = np.maximum(values, 0.0)
        if self.has_facts:
            np.copyto(result, self._known, where=self._is_known)
        return result

    def step(self, rho: float) -> Scaling:
        """From given tables to the consistent ones nearest to both them (weight rho) and the unbiased (weights a)."""
        share = self._scaled.by(rho * self._cuts / (self._own + rho * self._cuts))
        still = self.unbiased - share(self.unbiased)
        return lambda given: still + share(given)

    def bound(self, multipliers: Floats, least: float) -> float:
        """D(mu), a lower bound of the optimum; `least` is an f that is reached (infinite: none is known).

        Where facts mention spaces that nothing measures, mu should have no part e there. What is left of it costs at
        most <e, y*> <= sum_A max(e_A) total(y*), and f(y*) <= least bounds the total.
        """
        value = self._base - float(multipliers @ (self.unbiased + self._slopes(multipliers) / 2))
        if self.has_facts:
            value += float(multipliers[self._is_known] @ self._known[self._is_known])
        if self._unseen.any():
            if not np.isfinite(least):
                return -np.inf
            total = self._sum + np.sqrt(2 * max(least - self._base, 0.0) / self._own[0])
            # the unbiased tables may have a part in the unseen spaces: it is not theirs to have
            strange = self._strange(multipliers)
            value += float(strange @ self.unbiased)
            for block in self.to.split(strange):
                value -= total * float(np.maximum(block.reshape(len(block), -1).max(axis=1), 0.0).sum())
        return value

    def inside(self, y: Floats) -> list[Floats]:
        """The consistent tables y, moved as far as no cell is negative: towards independence, or towards even tables.

        Where few people are expected, independent tables have hardly anybody either, and cells a little below zero
        would take y there nearly all the way. Even ones are farther away, but have people in all cells.
        """
        low, found = y < 0, []
        for b in self._centres(y):
            share = float((-y[low] / (b[low] - y[low])).max(initial=0.0))
            found.append(np.asarray(y + min(share * (1 + 1e-12), 1.0) * (b - y)))
        return found

    def repaired(self, y: Floats, z: Floats) -> list[Floats]:
        """The consistent tables nearest to y with the known cells and those that the cut holds at zero put right.

        Cells that become negative are held too. The correction P Eᵀ v has E P Eᵀ v = what is wrong: E picks the held
        cells, P is the projection onto consistent tables, and conjugate gradients find v. Known cells must be exact.
        Without them a rough solution will do, and what is left is moved inside; else none may be found.
        """
        held = self._is_known | ((z == 0) & (y < 0))
        aim = np.where(self._is_known, self._known, 0.0)
        ones, left, exact = np.ones(len(self._own)), _INNER, _EXACT * self._total
        for _ in range(_ROUNDS * (4 if self.has_facts else 1)):
            rest, between = (aim - y)[held], self._scaled.within(held).by(ones)
            v, towards, square = np.zeros_like(rest), rest.copy(), float(rest @ rest)
            enough = (exact / 10) ** 2 if self.has_facts else _ROUGH**2 * square
            while square > enough and left:
                image = between(towards)
                if not (along := float(towards @ image)) > 1e-13 * float(towards @ towards):
                    break  # the held cells contradict each other
                length = square / along
                v += length * towards
                rest -= length * image
                square, last = float(rest @ rest), square
                towards = rest + square / last * towards
                left -= 1
            whole = np.zeros_like(y)
            whole[held] = v
            y = y + self._consistent(whole)
            wrong = y < -(exact if self.has_facts else 0.0)
            held |= wrong
            if not wrong.any() or not left:
                break
        y = self._consistent(y)  # rounding adds up
        if not self.has_facts:
            return self.inside(y)
        off = float(np.abs(y - aim)[self._is_known].max())
        return [] if max(off, -float(y.min())) > exact else [y]

    def _centres(self, y: Floats) -> tuple[Floats, Floats]:
        """Tables in which attributes are independent, and even ones; all cells positive."""
        found = self.to.nearest(y)
        total = max(float(found[0]), 1.0)
        shares = one_way_shares(self.to.unpack(found), self.to.family, total)
        even = [np.full((len(b.ids), *b.shape), total / b.cells) for b in self.to.family.batches]
        return self.to.join(independent(self.to.family, shares, total)), self.to.join(even)


def one_way_shares(tables: Answers, family: Family, total: float) -> dict[int, Floats]:
    """How people divide over the values of each attribute of a family; no value is left without anybody."""
    found = {}
    for i in family.attributes.tolist():
        n = int(family.sizes[i])
        one = np.maximum(tables.tables(position_rows((i,)), (n,))[0], FLOOR * total / n)
        found[i] = one / one.sum()
    return found
