"""The kinds of designs: what can be measured, what it costs, whether it answers a workload, and how well."""

from __future__ import annotations

from hushcube.designs.adaptive import AdaptiveDesign
from hushcube.designs.derived import RepeatedDesign
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.levels.design import LevelDesign
from hushcube.designs.matrix.design import MatrixDesign
from hushcube.designs.matrix.wide import WideMatrixDesign
from hushcube.designs.selective.design import SelectedDesign, SelectiveDesign
from hushcube.designs.selective.rolled import SelectedLevels, SelectiveLevels
from hushcube.designs.sketch.design import SketchDesign
from hushcube.designs.stacked.design import StackedDesign
from hushcube.designs.tree.design import TreeDesign

__all__ = [
    "AdaptiveDesign",
    "LatticeDesign",
    "LevelDesign",
    "MatrixDesign",
    "RepeatedDesign",
    "SelectedDesign",
    "SelectedLevels",
    "SelectiveDesign",
    "SelectiveLevels",
    "SketchDesign",
    "StackedDesign",
    "TreeDesign",
    "WideMatrixDesign",
]
