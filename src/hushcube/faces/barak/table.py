"""A non-negative whole-number table near the noisy numbers: the algorithm of Barak et al. 2007, section 3.3.

1. B is the downward closure of the workload, and phi_b its noisy Walsh-Fourier coefficients (strategy `fourier`);
   or c holds the noisy cells of the marginals themselves (strategy `workload`, section 4.2).
2. Find w >= 0 with the least error, by linear programming, and at a vertex.                       [program.py]

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
is to be preferred where budgets differ. The bounds of the theorems are in bounds.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput, HushcubeError, TooLarge
from hushcube.faces.barak.program import Norm, nearest
from hushcube.faces.barak.rows import Rows, coefficient_rows, measured_rows, workload_rows
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Floats, Ints
from hushcube.model.measurement import Measurement
from hushcube.progress import Clock

Objective = Literal["max-coefficient", "total-coefficient", "max-marginal", "total-marginal"]
Weights = Literal["equal", "deviation"]

MOST_CELLS: Final = 2**18
_MOST_CODES: Final = 2**22
_MOST_ENTRIES: Final = 2**24
"""Of the matrix of a program: about a gigabyte while it is handed over."""
_OTHER: Final = "use the method `full-table`, which needs no linear program"


@dataclass(frozen=True, eq=False)
class BarakTable:
    """A full table that is nowhere negative, and its nearest whole numbers."""

    table: Floats
    """The linear program's vertex, of the schema's full shape."""
    rounded: Ints
    """The nearest whole numbers; halves go up."""
    distance: float
    """The objective's least value; with weights `deviation`, in standard deviations."""
    support: int
    """How many cells of `table` are not zero."""
    rows: int
    """|B|: how many noisy numbers the table was fitted to."""


def nonnegative_table(
    design: LatticeDesign,
    measurement: Measurement,
    objective: Objective,
    clock: Clock,
    *,
    weights: Weights = "equal",
) -> BarakTable:
    """The non-negative table nearest to what was measured, as a vertex, and rounded."""
    check(design, objective, weights)
    sizes = design.schema.sizes
    cells = math.prod(sizes)
    rows = _rows(design, measurement, objective)
    if (entries := rows.column_entries * 4 * min(rows.rank, cells)) > _MOST_ENTRIES:
        raise TooLarge("workload, entries of the program", entries, _MOST_ENTRIES, _OTHER)
    norm: Norm = "max" if objective.startswith("max") else "total"
    found = nearest(rows, cells, norm, clock, weighted=weights == "deviation")
    support = int(np.count_nonzero(found.table))
    if support > rows.rank:
        raise HushcubeError("finding a non-negative table: the solver's point is no vertex")
    table = found.table.reshape(sizes)
    rounded = np.floor(table + 0.5).astype(np.int64)
    return BarakTable(table, rounded, found.distance, support, len(rows.aim.targets))


def _rows(design: LatticeDesign, measurement: Measurement, objective: Objective) -> Rows:
    if design.basis.name == "marginal":
        return measured_rows(design, measurement)
    if objective.endswith("coefficient"):
        return coefficient_rows(design, measurement)
    return workload_rows(design, measurement)


def check(design: LatticeDesign, objective: str, weights: str) -> None:
    """Refuse what the algorithm cannot do for a plan, whatever was measured."""
    if objective not in get_args(Objective):
        raise BadInput("objective", f"{objective!r} is not known", f"use one of: {', '.join(get_args(Objective))}")
    if weights not in get_args(Weights):
        raise BadInput("weights", f"{weights!r} is not known", f"use one of: {', '.join(get_args(Weights))}")
    if design.basis.name not in ("fourier", "marginal"):
        problem = (
            f"{objective} needs a plan that measures Fourier coefficients or tables, not the {design.basis.name} basis"
        )
        raise BadInput("objective", problem, "plan with the strategy `fourier` or `workload`")
    if design.basis.name == "marginal" and objective.endswith("coefficient"):
        problem = f"{objective} needs noisy Fourier coefficients, and the plan measures tables"
        raise BadInput("objective", problem, "use max-marginal or total-marginal, or plan with the strategy `fourier`")
    if (cells := math.prod(design.schema.sizes)) > MOST_CELLS:
        raise TooLarge("schema, full table", cells, MOST_CELLS, _OTHER)
    codes = math.prod(map(padded, design.schema.sizes))
    if design.basis.name == "fourier" and codes > _MOST_CODES:
        raise TooLarge("schema, bit codes", codes, _MOST_CODES, _OTHER)
