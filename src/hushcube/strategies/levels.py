"""Measure tables at several nested levels, and combine them exactly: for workloads over levels of one attribute.

A state's count says something about its region, a region's about its states. What is measured is chosen by the
predicted error among

    asked      the tables that are asked for
    finest     those that no other one holds; everything else is summed up from them
    merged     tables from which several of those asked for are summed, where that pays
    whole      one table of everything that is asked for
    refined    those asked for with each attribute at its finest level: the levels do not couple, whatever they are
    joined     the tables asked for, the smallest tables that hold two of them each, and the merged ones
    all        everything that can be summed from the whole table, or at least from those asked for

the last two as far as they are few, with budgets that are optimal under generalised least squares; tables that get
little are left out [strategies/search/nested.py]. Ordinary least squares has closed budgets, for its error is
sum_i s_i variance_i; so has no recovery, where each table comes from one source. The objective `max` takes a table by
the mean variance of its cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Final

import numpy as np

from hushcube.costs.calibrate import Proof
from hushcube.costs.row_cost import cost_of_sets
from hushcube.designs.budgets import without_public
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import smoothing
from hushcube.designs.levels.design import TOO_COUPLED, LevelDesign
from hushcube.designs.levels.nesting import Nesting, nesting
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import law_of
from hushcube.strategies.search.nested import Problem, merged, noisy, optimise, table_weights
from hushcube.strategies.strategy import Strategy, best_fit, objective_value

Tables = tuple[Marginal, ...]
_WIDE: Final = ("joined", "all")
"""Sets with more tables than needed: left out where the best budgets would take too long to find."""
_MOST_CLOSED: Final = 300  # tables that are looked at beyond those asked for
_MOST_JOINED: Final = 24  # tables asked for, those of most attributes, of which pairs are joined
_TIE: Final = 1e-6  # between candidates so near to each other the first is taken
_LEAST: Final = 1e-9  # of the largest weight, for tables that answer next to nothing


class Levels(Strategy):
    """Tables at several levels."""

    name = "levels"
    measures = "tables at several nested levels"
    makes = (LevelDesign,)
    serves_levels = True

    def concerns(self, request: Request) -> bool:
        """Only where some attribute is asked for at several levels."""
        return request.schema.is_nested

    def accepts(self, request: Request) -> str | None:
        """Needs nested levels."""
        if not request.schema.is_nested:
            return "no attribute is asked for at several levels"
        if request.objective == "max" and request.workload.forms:
            return "the largest error of ranges over levels is not looked for: use the objective total"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The candidate of the least predicted error."""
        if request.objective == "max" and budgets == "optimal" and recovery != "gls":
            raise NotApplicable(self.name, "the largest error is made least for generalised least squares only")
        found: dict[str, LevelDesign] = {}
        sets = candidates(request, everything=budgets == "optimal" and recovery == "gls")
        for name, tables in sets.items():
            seeds = [seed for seed in sets.values() if len(seed) < len(tables)]
            shared = shares(request, tables, budgets, recovery, seeds, is_wide=name in _WIDE)
            if shared is not None:
                found[name] = _divided(request, *shared, budgets, recovery)
        if not found:
            raise NotApplicable(self.name, TOO_COUPLED)
        values = {name: objective_value(design) for name, design in found.items()}
        best = min(values.values())
        chosen = next(name for name, value in values.items() if value <= best * (1 + _TIE))
        aim = {"objective": "max"} if request.objective == "max" and budgets == "optimal" else {}
        return replace(found[chosen], details={"measured": chosen, "predicted": values, **aim})


def candidates(request: Request, *, everything: bool) -> dict[str, Tables]:
    """The sets of tables that may be measured; those that only the best budgets can use, if everything is wanted."""
    nested, pure = nesting(request.schema), request.privacy.is_pure
    asked = noisy(request, request.marginals)
    if not asked:
        return {"asked": ()}
    found = {
        "asked": asked,
        "finest": tuple(nested.maximal(asked)),
        "merged": merged(request, nested, pure=pure),
        "whole": (nested.join(asked),),
        "refined": tuple(nested.refined(asked)),
    }
    if everything:
        joined = (nested.join(pair) for pair in combinations(asked[-_MOST_JOINED:], 2))
        found["joined"] = tuple(dict.fromkeys((*asked, *joined, *found["merged"])))
        tops = next((tops for tops in (found["whole"], found["finest"]) if _closed(nested, tops) <= _MOST_CLOSED), ())
        found["all"] = noisy(request, dict.fromkeys(m for top in tops for m in nested.below(top)))
    distinct: dict[frozenset[Marginal], tuple[str, Tables]] = {}
    for name, tables in found.items():
        fit = tuple(m for m in tables if request.schema.cells(m) <= MAX_TABLE_CELLS)
        distinct.setdefault(frozenset(fit), (name, fit))
    return {name: fit for name, fit in distinct.values() if fit}


def _closed(nested: Nesting, tops: Sequence[Marginal]) -> int:
    """How many tables can be summed from some, at most."""
    return sum(math.prod(level + 1 for _, level in nested.levels(top)) for top in tops)


def shares(
    request: Request, tables: Tables, budgets: Budgets, recovery: Recovery, seeds: Sequence[Tables], *, is_wide: bool
) -> tuple[Tables, Floats] | None:
    """The tables that are kept and their budgets up to scale; None where it is too much to combine them."""
    ones = np.ones(len(tables))
    if not tables or (recovery == "none" and budgets == "uniform"):
        return tables, ones
    if recovery == "none":
        s = _weights_of_sources(request, tables)
    else:
        problem = Problem.of(request, nesting(request.schema), tables)
        if problem is None or (is_wide and not problem.is_light):
            return None
        if budgets == "uniform" or len(tables) == 1:
            return tables, ones
        if recovery == "gls":
            solution = optimise(problem, seeds, pure=request.privacy.is_pure)
            return solution.measured, solution.budgets
        s = problem.separable()
    return tables, law_of(request.privacy).best_budgets(np.maximum(s, _LEAST * s.max()), ones)


def _weights_of_sources(request: Request, tables: Tables) -> Floats:
    """s_i where each table asked for is summed from the smallest measured one that holds it."""
    nested, cells = nesting(request.schema), request.schema.cells
    s = np.zeros(len(tables))
    for A, weight in zip(request.marginals, table_weights(request).tolist(), strict=True):
        able = [i for i, big in enumerate(tables) if nested.holds(big, A)]
        if able:  # what is public needs no source
            i = min(able, key=lambda i: cells(tables[i]))
            s[i] += weight * cells(tables[i])
    return s


def _divided(request: Request, tables: Tables, shape: Floats, budgets: Budgets, recovery: Recovery) -> LevelDesign:
    """Divide the guarantee in these proportions under the best proof; where the total is public it is measured too."""
    known = dict(zip(tables, shape.tolist(), strict=True))
    if request.privacy.total_is_public:
        known |= {m: 1.0 for m in ((), *request.marginals) if request.schema.cells(m) == 1}
    privacy, measured = request.privacy, Family.of(known, request.schema.sizes)
    proportions = without_public(np.array([known[m] for m in measured]), measured, privacy)

    def make(proof: Proof, own: Floats) -> LevelDesign:
        return LevelDesign(request, Levels.name, budgets, recovery, proof, own, measured)

    cost, smooth = (
        partial(cost_of_sets, MARGINAL, measured, privacy=privacy),
        partial(smoothing, MARGINAL, measured, privacy),
    )
    return best_fit(privacy, [proportions], cost, smooth, make, tables=len(measured))
