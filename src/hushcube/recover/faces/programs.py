"""Sparse linear programs, solved by HiGHS.

minimise cost·x   subject to   row_lower <= A x <= row_upper,   lower <= x <= upper,   some x whole numbers
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import HushcubeError, MissingDependency, TimeLimitReached
from hushcube.recover.faces.clock import Clock

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SILENT: Final = {"output_flag": False}


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
    highs = _highspy()
    solver = highs.Highs()
    options: dict[str, Any] = {**_SILENT, "time_limit": max(clock.left, 0.0)}
    if not len(program.whole):
        options |= {"solver": "ipm", "run_crossover": "on" if vertex else "off"}
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.passModel(_model(highs, program))
    clock.tick(work, 0.0)
    solver.HandleKeyboardInterrupt = True
    solver.solve()
    status = solver.getModelStatus()
    if status == highs.HighsModelStatus.kTimeLimit:
        raise TimeLimitReached(clock.seconds or 0.0, work)
    if status in (highs.HighsModelStatus.kInfeasible, highs.HighsModelStatus.kUnboundedOrInfeasible):
        raise Infeasible(f"{work}: no point satisfies all constraints")
    if status == highs.HighsModelStatus.kInterrupt:
        raise KeyboardInterrupt
    if status != highs.HighsModelStatus.kOptimal:
        raise HushcubeError(f"{work}: HiGHS stopped with {solver.modelStatusToString(status).lower()}")
    found = solver.getSolution()
    return Solution(
        np.asarray(found.col_value, np.float64),
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


def _highspy() -> Any:
    try:
        import highspy
    except ImportError:
        raise MissingDependency("highspy", "a linear program", "programs") from None
    return highspy
