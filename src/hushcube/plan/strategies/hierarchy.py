"""Measure the nodes of a tree over ordered attributes, every level with its own budget; least squares combines them.

A range is a sum of few nodes, and what the levels say about the same people is pooled. The fan-out is given, or
searched: depths from 1 (the cells alone) to log2 n, for each attribute in turn, by the objective that the optimal (or
uniform) budgets reach.       [Hay et al. 2010; Qardaji et al. 2013 on fan-outs; Yaroslavtsev et al. 2013, section III]

Departs from the papers: budgets of the levels are optimised for least squares, not for the canonical nodes of a range;
fan-outs of a tree may differ by one, so that few phantom cells are added; trees over several attributes and several
tables are combined.
"""

from __future__ import annotations

from typing import Any

from hushcube.errors import NotApplicable
from hushcube.lattice.trees import Tree
from hushcube.plan.plan import Budgets, Plan, Recovery
from hushcube.plan.request import Request
from hushcube.plan.strategies import ranges
from hushcube.plan.strategies.ranges import Design
from hushcube.plan.strategies.strategy import Strategy


class Hierarchy(Strategy):
    """Trees along the attributes with ranges."""

    name = "hierarchy"

    def concerns(self, request: Request) -> bool:
        """Only for ranges."""
        return bool(ranges.ranged(request))

    def accepts(self, request: Request) -> str | None:
        """Refuse what has no ranges, or very many tables beside them."""
        return ranges.refusal(request)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Plan:
        """One measured set for each level of each attribute with ranges."""
        if recovery == "none":
            raise NotApplicable(self.name, "nodes of several levels are combined by least squares: use gls or ols")
        fan_out = request.options.fan_out
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


def _best(request: Request, budgets: Budgets) -> Design | None:
    """The best depths found by improving one attribute at a time, from cells alone."""
    pure = request.privacy.is_pure
    trees = {i: Tree.of_depth(request.schema.sizes[i], 1) for i in sorted(ranges.ranged(request))}
    best, least = _design(request, trees), float("inf")
    improved = True
    while improved:
        improved = False
        for i in trees:
            size = request.schema.sizes[i]
            for depth in range(1, (size - 1).bit_length() + 1):
                design = _design(request, {**trees, i: Tree.of_depth(size, depth)})
                if design is None:
                    continue
                value = _value(design, budgets, pure=pure)
                if value < least * (1 - 1e-9):
                    best, least, improved = design, value, True
            if best is not None:
                trees[i] = best.trees[i]
    return best


def _value(design: Design, budgets: Budgets, *, pure: bool) -> float:
    if budgets == "optimal":
        return ranges.optimise(design, pure=pure).value
    return ranges.objective(design, design.uniform, pure=pure)


def _design(request: Request, trees: dict[int, Tree]) -> Design | None:
    every = [trees.get(i, Tree(n, (n,))) for i, n in enumerate(request.schema.sizes)]
    return ranges.design(request, every, [False] * len(every))
