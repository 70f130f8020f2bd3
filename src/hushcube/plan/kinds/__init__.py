"""The kinds of plans: what can be measured, what it costs, whether it answers a workload, and how well."""

from __future__ import annotations

from hushcube.plan.kinds import lattice_errors, levels_errors, matrix_errors, sketch_errors, tree_errors
from hushcube.plan.kinds.adaptive import AdaptivePlan
from hushcube.plan.kinds.derived import DerivedPlan
from hushcube.plan.kinds.lattice import LatticePlan
from hushcube.plan.kinds.levels import LevelPlan
from hushcube.plan.kinds.matrix import MatrixPlan
from hushcube.plan.kinds.repeated import RepeatedPlan
from hushcube.plan.kinds.sketch import SketchPlan
from hushcube.plan.kinds.tree import TreePlan

__all__ = [
    "AdaptivePlan",
    "DerivedPlan",
    "LatticePlan",
    "LevelPlan",
    "MatrixPlan",
    "RepeatedPlan",
    "SketchPlan",
    "TreePlan",
    "lattice_errors",
    "levels_errors",
    "matrix_errors",
    "sketch_errors",
    "tree_errors",
]
