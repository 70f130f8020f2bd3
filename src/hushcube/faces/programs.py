"""Sparse linear programs, solved by HiGHS.

minimise cost·x   subject to   row_lower <= A x <= row_upper,   lower <= x <= upper,   x whole numbers where asked for
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hushcube.errors import HushcubeError, MissingDependency, TimeLimitReached
from hushcube.model.arrays import Floats, Ints
from hushcube.progress import Clock

Matrix = tuple[Ints, Ints, Floats]
"""The row, the column and the value of each entry that is not zero."""


class Infeasible(Exception):
    """No point satisfies the constraints; the caller knows what they mean."""


@dataclass(frozen=True, eq=False)
class Program:
    """A linear program with the matrix A."""

    cost: Floats
    lower: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    matrix: Matrix
    whole: bool = False


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimal point; `is_vertex` says that it is a basic solution."""

    x: Floats
    value: float
    is_vertex: bool


def stacked(*parts: tuple[ArrayLike, ArrayLike, ArrayLike]) -> Matrix:
    """A matrix from the entries of several; one number stands for as many as the others are.

    >>> [each.tolist() for each in stacked(([0, 1], [0, 0], [2.0, 3.0]), ([0, 1], 1, -1.0))]
    [[0, 1, 0, 1], [0, 0, 1, 1], [2.0, 3.0, -1.0, -1.0]]
    """
    alike = (np.broadcast_arrays(*part) for part in parts)
    rows, columns, entries = (np.concatenate(each) for each in zip(*alike, strict=True))
    return rows, columns, entries


def solve(program: Program, clock: Clock, work: str, *, vertex: bool = False) -> Solution:
    """Solve a program: by the interior-point method alone, or to a vertex where the caller needs a basic solution."""
    highs = require_solver()
    solver = highs.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(_model(highs, program))
    solver.HandleKeyboardInterrupt = True
    clock.tick(work, 0.0)
    status = highs.HighsModelStatus
    interior: dict[str, Any] = {"solver": "ipm", "run_crossover": "on" if vertex else "off"}
    for way in [{}] if program.whole else [interior, {"solver": "simplex"}]:
        for name, value in {**way, "time_limit": max(clock.left, 0.0)}.items():
            solver.setOptionValue(name, value)
        solver.solve()
        found = solver.getModelStatus()
        if found in (status.kOptimal, status.kTimeLimit, status.kInterrupt):
            break  # interior points can call an awkward program infeasible; simplex has the last word
    if found == status.kTimeLimit:
        raise TimeLimitReached(clock.seconds or 0.0, work)
    if found == status.kInterrupt:
        raise KeyboardInterrupt
    if found in (status.kInfeasible, status.kUnboundedOrInfeasible):
        raise Infeasible(f"{work}: no point satisfies all constraints")
    if found != status.kOptimal:
        raise HushcubeError(f"{work}: HiGHS stopped with {solver.modelStatusToString(found).lower()}")
    x = np.asarray(solver.getSolution().col_value, np.float64)
    is_vertex = bool(solver.getBasis().valid) and not program.whole
    return Solution(x, float(solver.getInfo().objective_function_value), is_vertex)


def _model(highs: Any, program: Program) -> Any:
    rows, columns, entries = program.matrix
    order = np.lexsort((rows, columns))
    lp = highs.HighsLp()
    lp.num_col_, lp.num_row_ = len(program.cost), len(program.row_lower)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highs.MatrixFormat.kColwise
    lp.a_matrix_.start_ = np.append(0, np.cumsum(np.bincount(columns, minlength=lp.num_col_))).astype(np.int32)
    lp.a_matrix_.index_ = rows[order].astype(np.int32)
    lp.a_matrix_.value_ = entries[order]
    if program.whole:
        lp.integrality_ = [highs.HighsVarType.kInteger] * lp.num_col_
    return lp


def require_solver() -> Any:
    """HiGHS, which is an extra."""
    try:
        import highspy
    except ImportError:
        raise MissingDependency("highspy", "a linear program", "programs") from None
    return highspy
