"""The nearest non-negative table to noisy rows, as a basic solution, with columns made as they are needed.

    max     minimise b           subject to   |target_r - (M w)_r| <= b d_r,   w >= 0         [Barak et al. 2007, 3.2]
    total   minimise sum_r |target_r - (M w)_r| / d_r,   w >= 0                                              [4.1]

and (M w)_r = target_r for public rows. M has few rows and as many columns as the table has cells, so the dual program
is solved on a few cells, then on those too whose constraint it breaks, until there are none:

    maximise target·y   subject to   (Mᵀ y)_cell <= 0,   sum_r d_r |y_r| <= 1  (max)   or   d_r |y_r| <= 1  (total)

Finding the broken ones is one product Mᵀ y: a fast transform. The same program on the gathered cells alone has then
the full program's optimum, and its vertices are vertices of the full one (all other cells are zero).
At a vertex the columns of the non-zero cells are linearly independent (a dependence would be a line in both directions
along which nothing changes), so that at most rank(M) cells are not zero. An interior point has no such bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from hushcube.errors import HushcubeError
from hushcube.faces.barak.rows import Rows, Triplets
from hushcube.faces.programs import Program, solve
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.progress import Clock

Norm = Literal["max", "total"]

_WORK: Final = "finding a non-negative table"
_FIRST: Final = 4
_STEP: Final = 2
"""Cells to begin with and to add in a round, in multiples of the rank: few rounds matter more than few cells."""
_BROKEN: Final = 1e-7
"""A dual constraint counts as broken beyond this; |y| is about 1."""
_ZERO: Final = 1e-7
"""The solver's tolerance: what is smaller is zero."""
_GAP: Final = 1e-5
"""Between the optimum and its dual bound, relative to the largest target: more means that the solver went astray."""


@dataclass(frozen=True, eq=False)
class Nearest:
    """The table as a vector over the cells, the least distance, and how many cells the last program had."""

    table: Floats
    distance: float
    columns: int


def nearest(rows: Rows, cells: int, norm: Norm, clock: Clock, *, weighted: bool) -> Nearest:
    """The non-negative table nearest to the rows' targets; errors are in units of the noise's deviation if weighted."""
    noisy = ~rows.aim.public
    units = np.ones(len(noisy))
    if weighted and noisy.any():
        units[noisy] = np.maximum(rows.aim.deviations[noisy], 1e-6 * rows.aim.deviations[noisy].max(initial=1e-6))
    middle = float(np.median(units[noisy])) if noisy.any() else 1.0
    program = _Pair(rows, norm, units / middle, noisy)
    chosen = _largest(rows.adjoint(rows.aim.targets / (units / middle)), _FIRST * rows.rank)
    rounds = 0
    while True:
        clock.tick(_WORK, 1 - 0.8**rounds)
        bound, y = program.dual(chosen, clock)
        rest = rows.adjoint(y)
        rest[chosen] = -np.inf
        broken = _largest(rest, _STEP * rows.rank)
        broken = broken[rest[broken] > _BROKEN]
        if not len(broken):
            break
        chosen = np.concatenate([chosen, broken])
        rounds += 1
    value, w = program.primal(chosen, clock)
    if value - bound > _GAP * (1 + np.abs(rows.aim.targets / units * middle).max()) * (norm == "max" or len(units)):
        raise HushcubeError(f"{_WORK}: the solver did not reach the optimum; try another objective")
    table = np.zeros(cells)
    table[chosen] = np.where(w > _ZERO, w, 0.0)
    return Nearest(table, max(value, 0.0) / middle, len(chosen))


def _largest(values: Floats, number: int) -> Ints:
    """Where the largest values stand."""
    if number >= len(values):
        return np.arange(len(values))
    return np.argpartition(-values, number)[:number]


@dataclass(frozen=True, eq=False)
class _Pair:
    """The two programs on some cells."""

    rows: Rows
    norm: Norm
    units: Floats
    noisy: Bools

    def dual(self, cells: Ints, clock: Clock) -> tuple[float, Floats]:
        """The bound target·y and y; for `max` y = p - q with sum d (p + q) <= 1, scaled to the number of rows."""
        r, c, entries = self._entries(cells)
        targets, m, n = self.rows.aim.targets / self.units, len(self.units), len(cells)
        if self.norm == "total":
            reach = np.where(self.noisy, 1.0, np.inf)
            program = Program(-targets, -reach, reach, np.full(n, -np.inf), np.zeros(n), c, r, entries)
            solution = solve(program, clock, _WORK)
            return -solution.value, solution.x / self.units
        scale = float(max(self.noisy.sum(), 1))
        loud = np.flatnonzero(self.noisy)
        program = Program(
            np.concatenate([-targets, targets]) / scale,
            np.concatenate([np.where(self.noisy, 0.0, -np.inf), np.zeros(m)]),
            np.concatenate([np.full(m, np.inf), np.where(self.noisy, np.inf, 0.0)]),
            np.full(n + 1, -np.inf),
            np.concatenate([np.zeros(n), [scale]]),
            np.concatenate([c, c, np.full(2 * len(loud), n)]),
            np.concatenate([r, r + m, loud, loud + m]),
            np.concatenate([entries, -entries, np.ones(2 * len(loud))]),
        )
        solution = solve(program, clock, _WORK)
        return -solution.value, (solution.x[:m] - solution.x[m:]) / self.units

    def primal(self, cells: Ints, clock: Clock) -> tuple[float, Floats]:
        """The optimum and the table, a vertex."""
        r, c, entries = self._entries(cells)
        targets, m, n = self.rows.aim.targets / self.units, len(self.units), len(cells)
        every, loud = np.arange(m), np.flatnonzero(self.noisy)
        if self.norm == "total":  # M w + over - under = target
            extra = np.where(self.noisy, np.inf, 0.0)
            program = Program(
                np.concatenate([np.zeros(n), np.ones(2 * m)]),
                np.zeros(n + 2 * m),
                np.concatenate([np.full(n, np.inf), extra, extra]),
                targets,
                targets,
                np.concatenate([r, every, every]),
                np.concatenate([c, n + every, n + m + every]),
                np.concatenate([entries, np.ones(m), -np.ones(m)]),
            )
        else:  # M w + b >= target and M w - b <= target
            program = Program(
                np.concatenate([np.zeros(n), [1.0]]),
                np.zeros(n + 1),
                np.full(n + 1, np.inf),
                np.concatenate([targets, np.full(m, -np.inf)]),
                np.concatenate([np.full(m, np.inf), targets]),
                np.concatenate([r, r + m, loud, loud + m]),
                np.concatenate([c, c, np.full(2 * len(loud), n)]),
                np.concatenate([entries, entries, np.ones(len(loud)), -np.ones(len(loud))]),
            )
        solution = solve(program, clock, _WORK, vertex=True)
        if not solution.is_vertex:
            raise HushcubeError(f"{_WORK}: the solver returned no basic solution, whose rounding is bounded")
        return solution.value, solution.x[:n]

    def _entries(self, cells: Ints) -> Triplets:
        """The columns, with each row in its unit."""
        r, c, entries = self.rows.entries(cells)
        return r, c, entries / self.units[r]
