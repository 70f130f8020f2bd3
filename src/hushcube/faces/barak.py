"""A non-negative whole-number table near the noisy numbers: the algorithm of Barak et al. 2007, section 3.3.

1. B is the downward closure of the workload, and phi_b its noisy Walsh-Fourier coefficients (strategy `fourier`);
   or c holds the noisy cells of the marginals themselves (strategy `workload`, section 4.2).
2. Find w >= 0 with the least error, by linear programming, and at a vertex.                       below

       max-coefficient     max_b |phi_b - chi_b(w)|                                                            (3.2)
       total-coefficient   sum_b |phi_b - chi_b(w)|                                                            (4.1)
       max-marginal        max |c - C w| over the cells of the marginals; from a Fourier plan, c is what the
       total-marginal      noisy coefficients give                                                       (4.1), (4.2)

3. Round w to the nearest whole numbers. At a vertex at most rank(rows) <= |B| cells are not zero, so that this moves at
   most |B|/2 people.
4. Every marginal of that one table agrees with every other.

Here chi_b has entries ±1, the paper's f^b has ±2^(-k/2): distances are 2^(k/2) times the paper's.
Departs from the paper: attributes may have more than two values (phantom codes are no variables); w keeps a public
total exactly (rounding may move it); errors may be in standard deviations of the noise (`weights="deviation"`), which
is to be preferred where budgets differ. The bounds of the theorems are in planning/bounds.py.

Step 2 minimises b with |target_r - (M w)_r| <= b d_r, or sum_r |target_r - (M w)_r| / d_r, where (M w)_r = target_r for
public rows. M has few rows and as many columns as the table has cells, so the dual program is solved on a few cells,
then on those too whose constraint it breaks, until there are none:

    maximise target·y   subject to   (Mᵀ y)_cell <= 0,   sum_r d_r |y_r| <= 1  (max)   or   d_r |y_r| <= 1  (total)

Finding the broken ones is one product Mᵀ y: a fast transform. The same program on the gathered cells alone has then
the full program's optimum, and its vertices are vertices of the full one (all other cells are zero).
At a vertex the columns of the non-zero cells are linearly independent (a dependence would be a line in both directions
along which nothing changes), so that at most rank(M) cells are not zero. An interior point has no such bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import count
from typing import Final, Literal, get_args

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput, HushcubeError, TooLarge
from hushcube.faces.barak_rows import Rows, coefficient_rows, measured_rows, workload_rows
from hushcube.faces.programs import Matrix, Program, solve, stacked
from hushcube.faces.value import Objective, Weights
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import Measurement
from hushcube.options import check_choice
from hushcube.progress import Clock

Norm = Literal["max", "total"]

_WORK: Final = "finding a non-negative table"
_FIRST: Final = 4
_STEP: Final = 2
"""Cells to begin with and to add in a round, in multiples of the rank: few rounds matter more than few cells."""
_BROKEN: Final = 1e-7  # a dual constraint counts as broken beyond this; |y| is about 1
_ZERO: Final = 1e-7  # the solver's tolerance: what is smaller is zero
_GAP: Final = 1e-5
"""Between the optimum and its dual bound, relative to the largest target: more means that the solver went astray."""

MOST_CELLS: Final = 2**18
_MOST_CODES: Final = 2**22
_MOST_ENTRIES: Final = 2**24  # of the matrix of a program: about a gigabyte while it is handed over
_OTHER: Final = "use the method `full-table`, which needs no linear program"


def nearest(rows: Rows, cells: int, norm: Norm, clock: Clock, *, weighted: bool) -> tuple[Floats, float]:
    """The non-negative table nearest to the rows' targets, over the cells, and its distance from them.

    Errors are in units of the noise's deviation if weighted.
    """
    noisy = ~rows.aim.public
    units = np.ones(len(noisy))
    if weighted and noisy.any():
        units[noisy] = np.maximum(rows.aim.deviations[noisy], 1e-6 * rows.aim.deviations[noisy].max(initial=1e-6))
    middle = float(np.median(units[noisy])) if noisy.any() else 1.0
    program = _Pair(rows, norm, units / middle, noisy)
    chosen = _largest(rows.adjoint(rows.aim.targets / program.units), _FIRST * rows.rank)
    for rounds in count():
        clock.tick(_WORK, 1 - 0.8**rounds)
        bound, y = program.dual(chosen, clock)
        rest = rows.adjoint(y)
        rest[chosen] = -np.inf
        broken = _largest(rest, _STEP * rows.rank)
        broken = broken[rest[broken] > _BROKEN]
        if not len(broken):
            break
        chosen = np.concatenate([chosen, broken])
    value, w = program.primal(chosen, clock)
    if value - bound > _GAP * (1 + np.abs(rows.aim.targets / units * middle).max()) * (norm == "max" or len(units)):
        raise HushcubeError(f"{_WORK}: the solver did not reach the optimum; try another objective")
    table = np.zeros(cells)
    table[chosen] = np.where(w > _ZERO, w, 0.0)
    return table, max(value, 0.0) / middle


def _largest(values: Floats, number: int) -> Ints:
    """Where the largest values stand."""
    return np.arange(len(values)) if number >= len(values) else np.argpartition(-values, number)[:number]


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
            program = Program(-targets, -reach, reach, np.full(n, -np.inf), np.zeros(n), (c, r, entries))
            solution = solve(program, clock, _WORK)
            return -solution.value, solution.x / self.units
        loud = np.flatnonzero(self.noisy)
        scale = float(max(len(loud), 1))
        program = Program(
            cost=np.r_[-targets, targets] / scale,
            lower=np.r_[np.where(self.noisy, 0.0, -np.inf), np.zeros(m)],
            upper=np.r_[np.full(m, np.inf), np.where(self.noisy, np.inf, 0.0)],
            row_lower=np.full(n + 1, -np.inf),
            row_upper=np.r_[np.zeros(n), scale],
            matrix=stacked((c, r, entries), (c, r + m, -entries), (n, loud, 1.0), (n, loud + m, 1.0)),
        )
        solution = solve(program, clock, _WORK)
        return -solution.value, (solution.x[:m] - solution.x[m:]) / self.units

    def primal(self, cells: Ints, clock: Clock) -> tuple[float, Floats]:
        """The optimum and the table, a vertex."""
        r, c, entries = self._entries(cells)
        targets, m, n = self.rows.aim.targets / self.units, len(self.units), len(cells)
        every, loud, endless = np.arange(m), np.flatnonzero(self.noisy), np.full(m, np.inf)
        if self.norm == "total":  # M w + over - under = target
            extra = np.where(self.noisy, np.inf, 0.0)
            cost, upper = np.r_[np.zeros(n), np.ones(2 * m)], np.r_[np.full(n, np.inf), extra, extra]
            matrix = stacked((r, c, entries), (every, n + every, 1.0), (every, n + m + every, -1.0))
            program = Program(cost, np.zeros(n + 2 * m), upper, targets, targets, matrix)
        else:  # M w + b >= target and M w - b <= target
            cost, low, high = np.r_[np.zeros(n), 1.0], np.r_[targets, -endless], np.r_[endless, targets]
            matrix = stacked((r, c, entries), (r + m, c, entries), (loud, n, 1.0), (loud + m, n, -1.0))
            program = Program(cost, np.zeros(n + 1), np.full(n + 1, np.inf), low, high, matrix)
        solution = solve(program, clock, _WORK, vertex=True)
        if not solution.is_vertex:
            raise HushcubeError(f"{_WORK}: the solver returned no basic solution, whose rounding is bounded")
        return solution.value, solution.x[:n]

    def _entries(self, cells: Ints) -> Matrix:
        """The columns, with each row in its unit."""
        r, c, entries = self.rows.entries(cells)
        return r, c, entries / self.units[r]


@dataclass(frozen=True, eq=False)
class BarakTable:
    """A full table that is nowhere negative, and its nearest whole numbers."""

    table: Floats  # the linear program's vertex, of the schema's full shape
    rounded: Ints  # the nearest whole numbers; halves go up
    distance: float  # the objective's least value; with weights `deviation`, in standard deviations
    support: int  # how many cells of `table` are not zero
    rows: int  # |B|: how many noisy numbers the table was fitted to


def nonnegative_table(
    design: LatticeDesign, measurement: Measurement, objective: Objective, clock: Clock, *, weights: Weights = "equal"
) -> BarakTable:
    """The non-negative table nearest to what was measured, as a vertex, and rounded."""
    check(design, objective, weights)
    sizes = design.schema.sizes
    if design.basis.holds_cells:
        rows: Rows = measured_rows(design, measurement)
    else:
        rows = (coefficient_rows if objective.endswith("coefficient") else workload_rows)(design, measurement)
    if (entries := rows.column_entries * 4 * min(rows.rank, math.prod(sizes))) > _MOST_ENTRIES:
        raise TooLarge("workload, entries of the program", entries, _MOST_ENTRIES, _OTHER)
    norm: Norm = "max" if objective.startswith("max") else "total"
    w, distance = nearest(rows, math.prod(sizes), norm, clock, weighted=weights == "deviation")
    support = int(np.count_nonzero(w))
    if support > rows.rank:
        raise HushcubeError(f"{_WORK}: the solver's point is not a vertex")
    table = w.reshape(sizes)
    return BarakTable(table, np.floor(table + 0.5).astype(np.int64), distance, support, len(rows.aim.targets))


def check(design: LatticeDesign, objective: str, weights: str) -> None:
    """Refuse what the algorithm cannot do for a plan, whatever was measured."""
    check_choice(objective, "objective", get_args(Objective))
    check_choice(weights, "weights", get_args(Weights))
    if not (design.basis.has_inverse or design.basis.holds_cells):
        needed = f"{objective} needs a plan that measures Fourier coefficients or tables"
        problem = f"{needed}, not the {design.basis.name} basis"
        raise BadInput("objective", problem, "plan with the strategy `fourier` or `workload`")
    if design.basis.holds_cells and objective.endswith("coefficient"):
        problem = f"{objective} needs noisy Fourier coefficients, and the plan measures tables"
        raise BadInput("objective", problem, "use max-marginal or total-marginal, or plan with the strategy `fourier`")
    if (cells := math.prod(design.schema.sizes)) > MOST_CELLS:
        raise TooLarge("schema, full table", cells, MOST_CELLS, _OTHER)
    codes = math.prod(map(padded, design.schema.sizes))
    if design.basis.has_inverse and codes > _MOST_CODES:
        raise TooLarge("schema, bit codes", codes, _MOST_CODES, _OTHER)
