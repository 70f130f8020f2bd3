"""Public facts as constraints: structural zeros and known totals, which a publisher declares and nobody measured."""

from hushcube.faces.facts.atoms import Atoms, FixedCells, atoms, fixed_cells
from hushcube.faces.facts.feasibility import check, whole_totals
from hushcube.faces.facts.raking import rake

__all__ = ["Atoms", "FixedCells", "atoms", "check", "fixed_cells", "rake", "whole_totals"]
