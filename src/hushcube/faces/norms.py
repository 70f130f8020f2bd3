"""The consistent tables nearest to given ones in L1 or L-infinity, as a sparse linear program.

    minimise   sum_A w_A sum_cells |y_A - z_A|      or      max_A w_A max_cells |y_A - z_A|      over consistent y

                                                  [Yaroslavtsev et al. 2013, III-C and IV-C, p = 1 and infinity]

The paper's program has a variable for each Fourier coefficient, and a dense row for each cell. The same space has
sparse coordinates: call the first value of each attribute its reference. The cells of the closure's marginals at which
no attribute has its reference value are free, as many as the residual spaces have dimensions. They settle all others:
a cell of A whose first reference value is on axis i is a cell of A - i less the rest of its line,

    sum_v y_A(v, rest)  =  y_{A-i}(rest)                                       n_i + 1 entries, each 1 or -1.

There is one such equation T y = 0 for each cell with a reference value. They are triangular: none is superfluous. With
d = y - z the program is

    minimise   w·(d+ + d-)     or     t  with  -t <= w d <= t           subject to   T d = -T z,   low <= d <= high

Cells that must not be negative, or that are known, are bounds. No vector of the domain's size appears.
Substituting the equations, so that the free cells are the only variables, makes long rows: on tables of a thousand
cells HiGHS takes up to three times longer; on small binary tables all forms take less than a second or two.

Tables that agree with each other need not be tables of one common table of counts >= 0. With `nonnegative` the distance
is therefore at most that of the program over the domain; they are equal where the tables form a junction tree.

The error at most doubles: ||y - Qx|| <= ||y - z|| + ||z - Qx|| <= 2 ||z - Qx||, in the same weighted norm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, FactsError
from hushcube.faces.programs import Infeasible, Matrix, Program, solve, stacked
from hushcube.faces.target import Observed
from hushcube.lattice.coefficients import Coefficients, combine
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints
from hushcube.progress import Clock

Norm = Literal["l1", "linf"]
Bounds = tuple[Floats | float, Floats | float]

_WORK: Final = "the nearest tables"
_ROUNDING: Final = 1e-13  # equations that given numbers miss by less, as a share of the largest number, hold


@dataclass(frozen=True, eq=False)
class Ties:
    """Equations T y = 0 between numbers."""

    count: int
    matrix: Matrix

    def __matmul__(self, numbers: Floats) -> Floats:
        rows, columns, entries = self.matrix
        return np.bincount(rows, entries * numbers[columns], self.count).astype(np.float64)


def nearest(seen: Observed, norm: Norm, clock: Clock, *, nonnegative: bool = False) -> tuple[Coefficients, float]:
    """The consistent tables nearest to those that were seen, as coefficients on the closure; and how far they are.

    Weights must be positive. Cells are non-negative, and fixed cells exact, up to the solver's tolerance.
    """
    clock.tick(_WORK, 0.0)
    tables, values, weights, fixed = seen.tables, seen.values, seen.weights, seen.fixed
    require_positive(weights)
    if fixed is not None and nonnegative and any((known < 0).any() for known in fixed):
        raise FactsError("facts", "a known cell is negative", "remove it, or allow negative cells")
    spaces = tables.closure
    cells = _Cells(spaces)
    at, count = cells.places(tables), cells.count
    # tables that were not given start from least squares, so that all that is solved for is as small as the noise
    rough = combine(tables, values, weights, spaces)
    given = np.empty(count)
    for places, batch in zip(cells.places(spaces), spaces.batches, strict=True):
        given[places] = rough.tables(batch.rows, batch.shape)
    w, low, high = np.zeros(count), np.full(count, 0.0 if nonnegative else -np.inf), np.full(count, np.inf)
    for number, (places, batch) in enumerate(zip(at, tables.batches, strict=True)):
        given[places] = values[number]
        w[places] = weights[batch.ids].reshape(-1, *[1] * len(batch.shape))
        if fixed is not None:
            known = np.isfinite(fixed[number])
            low[places[known]] = high[places[known]] = fixed[number][known]
    try:
        solved = given + deviations(cells.ties(), given, w, norm, clock, (low, high))
    except Infeasible:
        raise FactsError("facts", "no tables satisfy them all", "remove or correct one of them") from None
    coefficients = combine(tables, [solved[places] for places in at], weights, spaces)
    off = np.zeros(count)
    for places, batch, z in zip(at, tables.batches, values, strict=True):
        off[places] = coefficients.tables(batch.rows, batch.shape) - z
    return coefficients, distance(off, w, norm)


def require_positive(weights: Floats) -> None:
    """Weights of zero would leave answers undecided."""
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise BadInput("weights", "they are not all positive numbers", "give a positive weight to each table or query")


def distance(off: Floats, weights: Floats, norm: Norm) -> float:
    """The weighted norm of differences."""
    sizes = weights * np.abs(off)
    return float(sizes.sum() if norm == "l1" else sizes.max(initial=0.0))


def deviations(
    ties: Ties, given: Floats, weights: Floats, norm: Norm, clock: Clock, bounds: Bounds = (-np.inf, np.inf)
) -> Floats:
    """The d of least weighted norm for which given + d satisfies the ties and the bounds; weight 0: any d will do."""
    if norm not in ("l1", "linf"):
        raise BadInput("norm", f"{norm!r} is not known", "choose l1 or linf")
    missing, below, above = -(ties @ given), bounds[0] - given, bounds[1] - given
    scale = max(np.abs(missing).max(initial=0.0), below.max(initial=0.0), -above.min(initial=0.0))
    if scale <= _ROUNDING * np.abs(given).max(initial=0.0):
        return np.zeros(len(given))
    # the solver's tolerances are absolute: let the largest mismatch, and the largest weight, be 1
    build = _l1 if norm == "l1" else _linf
    w = weights / max(weights.max(initial=0.0), 1e-300)
    x = solve(build(ties, missing / scale, w, below / scale, above / scale), clock, _WORK).x
    d: Floats = x[: len(given)] * scale
    if norm == "l1":
        d[weights > 0] -= x[len(given) :] * scale
    return d


def _l1(ties: Ties, missing: Floats, weights: Floats, low: Floats, high: Floats) -> Program:
    """d = d+ - d- where it costs; both within what the bounds on d leave, as at the optimum one of them is least."""
    costly, free = np.flatnonzero(weights > 0), weights == 0
    minus = np.full(len(weights), -1, np.int64)
    minus[costly] = len(weights) + np.arange(len(costly))
    rows, columns, entries = ties.matrix
    again = minus[columns] >= 0
    return Program(
        cost=np.r_[weights, weights[costly]],
        lower=np.r_[np.where(free, low, np.maximum(low, 0.0)), np.maximum(-high[costly], 0.0)],
        upper=np.r_[np.where(free, high, np.maximum(high, 0.0)), np.maximum(-low[costly], 0.0)],
        row_lower=missing,
        row_upper=missing,
        matrix=stacked(ties.matrix, (rows[again], minus[columns[again]], -entries[again])),
    )


def _linf(ties: Ties, missing: Floats, weights: Floats, low: Floats, high: Floats) -> Program:
    """The last column is t: w d - t <= 0 <= w d + t where it costs.

    Rows scaled by their weights: with 1/w beside t instead, the interior-point method fails on very unequal weights.
    """
    costly, last = np.flatnonzero(weights > 0), len(weights)
    w, none = weights[costly], np.zeros(len(costly))
    row = ties.count + np.arange(len(costly))
    also = row + len(costly)
    return Program(
        cost=np.r_[np.zeros(last), 1.0],
        lower=np.r_[low, 0.0],
        upper=np.r_[high, np.inf],
        row_lower=np.r_[missing, none - np.inf, none],
        row_upper=np.r_[missing, none, none + np.inf],
        matrix=stacked(ties.matrix, (row, costly, w), (also, costly, w), (row, last, -1.0), (also, last, 1.0)),
    )


class _Cells:
    """The cells of all tables of a closure in one row, and what ties them."""

    def __init__(self, spaces: Family) -> None:
        self.spaces = spaces
        ends = np.append(0, np.cumsum(spaces.cells.astype(np.int64)))
        self.starts, self.count = ends[:-1], int(ends[-1])

    def places(self, tables: Family) -> list[Ints]:
        """Where the cells of each batch of a family are; shape (tables, *shape)."""
        return [self._places(batch.rows, batch.shape) for batch in tables.batches]

    def ties(self) -> Ties:
        """One equation for each cell with a reference value, along the first axis that has it."""
        parts: list[Matrix] = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        count = 0
        for batch, places in zip(self.spaces.batches, self.places(self.spaces), strict=True):
            for axis, n in enumerate(batch.shape):
                above = np.delete(batch.rows, axis, axis=1), batch.shape[:axis] + batch.shape[axis + 1 :]
                earlier = (slice(None), *[slice(1, None)] * axis)
                lines = np.moveaxis(places[earlier], axis + 1, -1).reshape(-1, n)
                tied = np.column_stack([lines, self._places(*above)[earlier].ravel()])
                number = np.arange(count, count + len(tied))
                signs = np.tile(np.append(np.ones(n), -1.0), len(tied))
                parts.append((np.repeat(number, n + 1), tied.ravel(), signs))
                count += len(tied)
        return Ties(count, stacked(*parts))

    def _places(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Ints:
        first = self.starts[self.spaces.find(rows)]
        return first.reshape(-1, *[1] * len(shape)) + np.arange(int(np.prod(shape, dtype=np.int64))).reshape(shape)
