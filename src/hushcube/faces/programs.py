"""Sparse linear programs, solved by HiGHS.

minimise cost·x   subject to   row_lower <= A x <= row_upper,   lower <= x <= upper,   some x whole numbers
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from hushcube.errors import HushcubeError, MissingDependency, TimeLimitReached
from hushcube.model.arrays import Floats, Ints
from hushcube.progress import Clock

_SILENT: Final[dict[str, Any]] = {"output_flag": False}
_SIMPLEX: Final[dict[str, Any]] = {"solver": "simplex"}


class Infeasible(Exception):
    """No point satisfies the constraints; the caller knows what they mean."""


@dataclass(frozen=True, eq=False)
class Program:
    """A linear program; the matrix as triplets (row, column, entry)."""

    cost: Floats
    lower: Floats
    upper: Floats
    row_lower: Floats
    row_upper: Floats
    rows: Ints
    columns: Ints
    entries: Floats
    whole: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The columns that must be whole numbers."""


@dataclass(frozen=True, eq=False)
class Solution:
    """An optimal point; `is_vertex` says that it is a basic solution."""

    x: Floats
    value: float
    is_vertex: bool


def solve(program: Program, clock: Clock, work: str, *, vertex: bool = False) -> Solution:
    """Solve a program: by the interior-point method alone, or to a vertex where the caller needs a basic solution."""
    highs = require_solver()
    solver = highs.Highs()
    for name, value in _SILENT.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highs, program))
    solver.HandleKeyboardInterrupt = True
    clock.tick(work, 0.0)
    status = highs.HighsModelStatus
    ways: list[dict[str, Any]] = (
        [{}] if len(program.whole) else [{"solver": "ipm", "run_crossover": "on" if vertex else "off"}, _SIMPLEX]
    )
    for way in ways:  # interior points can call an awkward program infeasible; simplex has the last word
        for name, value in {**way, "time_limit": max(clock.left, 0.0)}.items():
            solver.setOptionValue(name, value)
        solver.solve()
        found = solver.getModelStatus()
        if found in (status.kOptimal, status.kTimeLimit, status.kInterrupt):
            break
    if found == status.kTimeLimit:
        raise TimeLimitReached(clock.seconds or 0.0, work)
    if found == status.kInterrupt:
        raise KeyboardInterrupt
    if found in (status.kInfeasible, status.kUnboundedOrInfeasible):
        raise Infeasible(f"{work}: no point satisfies all constraints")
    if found != status.kOptimal:
        raise HushcubeError(f"{work}: HiGHS stopped with {solver.modelStatusToString(found).lower()}")
    return Solution(
        np.asarray(solver.getSolution().col_value, np.float64),
        float(solver.getInfo().objective_function_value),
        bool(solver.getBasis().valid) and not len(program.whole),
    )


def _model(highs: Any, program: Program) -> Any:
    columns, rows = len(program.cost), len(program.row_lower)
    order = np.lexsort((program.rows, program.columns))
    lp = highs.HighsLp()
    lp.num_col_, lp.num_row_ = columns, rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highs.MatrixFormat.kColwise
    counts = np.bincount(program.columns, minlength=columns)
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    lp.a_matrix_.index_ = program.rows[order].astype(np.int32)
    lp.a_matrix_.value_ = program.entries[order]
    if len(program.whole):
        kinds = np.zeros(columns, np.int64)
        kinds[program.whole] = 1
        types = (highs.HighsVarType.kContinuous, highs.HighsVarType.kInteger)
        lp.integrality_ = [types[kind] for kind in kinds.tolist()]
    return lp


def require_solver() -> Any:
    """HiGHS, which is an extra."""
    try:
        import highspy
    except ImportError:
        raise MissingDependency("highspy", "a linear program", "programs") from None
    return highspy
