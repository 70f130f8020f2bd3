"""Measure the nodes of a tree over ordered attributes, every level with its own budget; least squares combines them.

A range is a sum of few nodes, and what the levels say about the same people is pooled. The fan-out is given, or
searched: depths from 1 (the cells alone) to log2 n, first alike for all attributes and then one by one, by the
objective that the budgets reach.   [Hay et al. 2010; Qardaji et al. 2013, fan-outs; Yaroslavtsev et al. 2013, III]

Departs from the papers: budgets of the levels are optimised for least squares, not for the canonical nodes of a range;
fan-outs of a tree may differ by one, so that few phantom cells are added; trees over several attributes and several
tables are combined.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.designs.tree.design import TreeDesign
from hushcube.errors import NotApplicable
from hushcube.lattice.trees import Tree
from hushcube.options import option, whole
from hushcube.strategies import ranges
from hushcube.strategies.ranges import TreeSets
from hushcube.strategies.strategy import Strategy


@dataclass(frozen=True, kw_only=True)
class Hierarchy(Strategy):
    """Trees along the attributes with ranges."""

    name = "hierarchy"
    measures = "the nodes of trees over ordered attributes"
    makes = (TreeDesign,)

    fan_out: int | None = option(
        None, "children of a node; the best are searched unless given", takes="NUMBER", read=whole(2)
    )

    def concerns(self, request: Request) -> bool:
        """Only for ranges."""
        return bool(ranges.ranged(request))

    def accepts(self, request: Request) -> str | None:
        """Refuse what has no ranges, or very many tables beside them."""
        return ranges.refusal(request)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """One measured set for each level of each attribute with ranges."""
        if recovery == "none":
            raise NotApplicable(self.name, "nodes of several levels are combined by least squares: use gls or ols")
        fan_out = self.fan_out
        design = (
            _best(request, budgets)
            if fan_out is None
            else _design(
                request, {i: Tree.with_fan_out(request.schema.sizes[i], fan_out) for i in ranges.ranged(request)}
            )
        )
        if design is None:
            raise NotApplicable(self.name, "too many levels, or too large tables, would be measured")
        named = {request.schema.names[i]: list(design.trees[i].fan_outs) for i in sorted(ranges.ranged(request))}
        details: dict[str, Any] = {"fan_outs": named}
        return ranges.decide(request, design, strategy=self.name, budgets=budgets, recovery=recovery, details=details)


def _best(request: Request, budgets: Budgets) -> TreeSets | None:
    """The best depths found: the best one for all attributes alike, then improved one attribute at a time."""
    sizes, attributes = request.schema.sizes, sorted(ranges.ranged(request))
    deepest = {i: (sizes[i] - 1).bit_length() for i in attributes}
    tried: dict[tuple[int, ...], tuple[float, TreeSets | None]] = {}

    def value(depths: dict[int, int]) -> float:
        key = tuple(depths.values())
        if key not in tried:
            design = _design(request, {i: Tree.of_depth(sizes[i], depth) for i, depth in depths.items()})
            found = math.inf if design is None else _value(design, budgets, pure=request.privacy.is_pure)
            tried[key] = found, design
        return tried[key][0]

    alike = ({i: min(depth, deepest[i]) for i in attributes} for depth in range(1, max(deepest.values()) + 1))
    best = min(alike, key=value)
    least = math.inf
    while value(best) < least * (1 - 1e-9):
        least = value(best)
        for i in attributes:
            best = min(({**best, i: depth} for depth in range(1, deepest[i] + 1)), key=value)
    return tried[tuple(best.values())][1]


def _value(design: TreeSets, budgets: Budgets, *, pure: bool) -> float:
    if budgets == "optimal":
        return ranges.optimise(design, pure=pure).value
    return ranges.objective(design, design.uniform, pure=pure)


def _design(request: Request, trees: dict[int, Tree]) -> TreeSets | None:
    every = [trees.get(i, Tree(n, (n,))) for i, n in enumerate(request.schema.sizes)]
    return ranges.design(request, every, [False] * len(every))
