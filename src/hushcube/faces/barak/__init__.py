"""The algorithm of Barak et al. 2007: a non-negative whole-number table by linear programming, and its bounds."""

from hushcube.faces.barak.bounds import theorem_7, theorem_8
from hushcube.faces.barak.shift import shift, shifted
from hushcube.faces.barak.table import BarakTable, Objective, check, nonnegative_table

__all__ = ["BarakTable", "Objective", "check", "nonnegative_table", "shift", "shifted", "theorem_7", "theorem_8"]
