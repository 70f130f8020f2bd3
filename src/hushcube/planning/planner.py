"""Compare strategies and choose: plans are data-free, so looking at all of them costs no privacy.

`auto` stops at a plan that is proven to be the best; the others could only be as good.        [planning/lower_bound.py]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hushcube.designs.design import BUDGETS, EVERY_RECOVERY, Budgets, Design, Recovery, read_recovery
from hushcube.designs.request import Request
from hushcube.errors import BadInput, NotApplicable, TooLarge
from hushcube.options import check_choice
from hushcube.planning import memory
from hushcube.planning.lower_bound import least_total, least_total_of_tables
from hushcube.progress import Progress
from hushcube.strategies import ALL, AUTO, EVERY, REGISTRY, Choice, read_strategies
from hushcube.strategies.adaptive import Adaptive, Dwork
from hushcube.strategies.selective import Selective
from hushcube.strategies.strategy import Strategy, best_of, objective_value

Variant = tuple[Strategy, Budgets, Recovery]
"""A strategy, how it divides the budget, and how tables are recovered."""
_NEGLIGIBLE: Final = 1e-6
"""A plan this near the bound is the best: budgets are rounded, and the bound allows for noise as narrow as any."""

_NEAR: Final = 0.005
"""Of the total variance: for less `auto` does not search. Under (epsilon, delta) `residual` is so near."""


@dataclass(frozen=True)
class Candidate:
    """A plan and how long it took to make."""

    plan: Design
    seconds: float


@dataclass(frozen=True)
class Ranking:
    """Designs in the order tried, the chosen one, and the strategies that do not apply, with the reason."""

    candidates: tuple[Candidate, ...]
    chosen: Design
    skipped: dict[str, str]
    least: float | None = None
    """No plan has a smaller objective; None where no bound is known."""

    @property
    def is_optimal(self) -> bool:
        """Whether the chosen plan is proven to be the best."""
        return _is_best(self.chosen, self.least)

    @cached_property
    def least_of_tables(self) -> float | None:
        """No plan that measures tables of counts has a smaller objective; None where no such bound is known."""
        return least_total_of_tables(self.chosen.request)


def compare(
    request: Request,
    *,
    strategy: Choice = AUTO,
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    progress: Progress | None = None,
    settle: bool = True,
) -> Ranking:
    """Plan with one strategy, with `auto` (the best by predicted error), or with `all` (every variant, best chosen).

    Several may be given: they are compared, beside `auto` or `all` with options in place of the strategies without.
    Unless told otherwise one strategy means optimal budgets and generalised least squares; `auto` tries both budgets.
    It stops at a plan that is proven to be the best, and searches no further for the last half percent, unless it may
    not `settle`.
    """
    tried, skipped = variants(request, strategy=strategy, budgets=budgets, recovery=recovery)
    least = least_total(request)
    may_settle = settle and read_strategies(strategy)[1] == {AUTO}
    candidates: list[Candidate] = []
    refused: dict[str, str] = {}
    too_large: list[TooLarge] = []
    for done, (one, rule, way) in enumerate(tried):
        name = one.name
        if progress:
            progress(name, done / len(tried))
        if may_settle and one.searches and any(_is_best(c.plan, least, within=_NEAR) for c in candidates):
            refused.setdefault(name, f"a plan within {_NEAR:.1%} of the best possible is found without a search")
            continue
        start = time.perf_counter()
        try:
            plan = one.plan(request, rule, way)
        except NotApplicable as problem:
            refused.setdefault(name, problem.reason)
            continue
        if (excess := memory.problem([plan])) is not None:
            refused.setdefault(name, f"memory: {excess.problem}")
            too_large.append(excess)
            continue
        candidates.append(Candidate(plan, time.perf_counter() - start))
        if may_settle and _is_best(plan, least):
            break
    planned = {candidate.plan.strategy for candidate in candidates}  # a strategy may refuse some of its variants
    skipped |= {name: reason for name, reason in refused.items() if name not in planned}
    if not candidates:
        raise min(too_large, key=lambda one: one.cells) if too_large else NotApplicable(*next(iter(skipped.items())))
    plans = [candidate.plan for candidate in candidates]
    eligible = [plan for plan in plans if ALL[plan.strategy].automatic] or plans
    chosen = best_of(eligible)
    if chosen.left_out:  # what is published has a bound of its own
        least = least_total(chosen.request)
    return Ranking(tuple(candidates), chosen, skipped, least)


def variants(
    request: Request, *, strategy: Choice, budgets: Budgets | None, recovery: Recovery | None
) -> tuple[list[Variant], dict[str, str]]:
    """What `compare` tries, and the strategies that do not apply, with the reason.

    First comes what may be proven to be the best, then fast strategies.
    """
    request.schema.check_unit(request.privacy.rows_per_person)
    if budgets is not None:
        check_choice(budgets, "budgets", BUDGETS)
    way = None if recovery is None else read_recovery(recovery)
    named, words = read_strategies(strategy)
    strategies = named
    if words:
        own = {one.name: one for one in named}
        strategies = [s for s in ({**REGISTRY, **own}).values() if s.is_compared(request) or s.name in own]
    for one in named:
        if not one.publishes_all and len(strategies) > 1:
            problem = f"{one} may leave tables out, and plans of other tables cannot be compared with it"
            raise BadInput("strategy", problem, "plan it by itself")
    if words == {AUTO}:
        strategies = [s for s in strategies if s.automatic or s in named]
        strategies.sort(key=lambda s: not s.leads(request))
    recoveries: Sequence[Recovery] = [way] if way else EVERY_RECOVERY if EVERY in words else ["gls"]
    ways = {s.name: [r for r in recoveries if s.offers(r)] for s in strategies}
    unserved = f"its plans have no recovery `{recovery}`"
    reasons = {s.name: s.refusal(request) or (None if ways[s.name] else unserved) for s in strategies}
    skipped = {name: reason for name, reason in reasons.items() if reason}
    if len(strategies) == 1 and skipped:
        raise NotApplicable(*next(iter(skipped.items())))

    def rules(strategy: Strategy) -> Sequence[Budgets]:
        usual: Budgets = "uniform" if isinstance(strategy, Adaptive) else "optimal"  # as in the paper
        if strategy.own_budgets is not None:
            return [strategy.own_budgets]
        return [budgets] if budgets else BUDGETS if words else [usual]

    return [(s, b, r) for s in strategies if s.name not in skipped for b in rules(s) for r in ways[s.name]], skipped


def refuse_unpredictable(strategy: Choice) -> None:
    """Refuse a method whose errors are known only when it has run, or whose tables only when it has a budget."""
    for named in read_strategies(strategy)[0]:
        if not named.publishes_all:
            problem = f"the tables that {named} publishes depend on the budget, so none can be found or compared for it"
            raise BadInput("strategy", problem, "plan it by itself, or let it publish all tables")
        if isinstance(named, Selective) or (isinstance(named, Adaptive) and not isinstance(named, Dwork)):
            raise BadInput(
                "strategy",
                f"the errors of {named.name} depend on the data, so no budget can be found or compared for it",
                "plan it by itself, and give `relative_error` and `above` to stop when errors are small",
            )


def _is_best(plan: Design, least: float | None, *, within: float = _NEGLIGIBLE) -> bool:
    return least is not None and objective_value(plan) <= least * (1 + within)
