"""Compare strategies and choose: plans are data-free, so looking at all of them costs no privacy.

`auto` stops at a plan that is proven to be the best; the others could only be as good.        [planning/lower_bound.py]
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from hushcube.designs.design import BUDGETS, RECOVERIES, Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.errors import BadInput, NotApplicable, TooLarge
from hushcube.planning import memory
from hushcube.planning.lower_bound import least_total, least_total_of_tables
from hushcube.progress import Progress
from hushcube.strategies import ALL, REGISTRY
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE, STOPPING
from hushcube.strategies.objective import objective_value

Variant = tuple[str, Budgets, Recovery]
"""A strategy, how it divides the budget, and how tables are recovered."""
_NEGLIGIBLE: Final = 1e-6
"""A plan this near the bound is the best: budgets are rounded, and the bound allows for noise as narrow as any."""


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
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    progress: Progress | None = None,
    settle: bool = True,
) -> Ranking:
    """Plan with one strategy, with `auto` (the best by predicted error), or with `all` (every variant, best chosen).

    Unless told otherwise one strategy means optimal budgets and generalised least squares; `auto` tries both budgets.
    It stops at a plan that is proven to be the best, unless it may not `settle`.
    """
    tried, skipped = variants(request, strategy=strategy, budgets=budgets, recovery=recovery)
    least = least_total(request)
    candidates = []
    refused: dict[str, str] = {}
    too_large: list[TooLarge] = []
    for done, (name, rule, way) in enumerate(tried):
        if progress:
            progress(name, done / len(tried))
        start = time.perf_counter()
        try:
            plan = ALL[name].plan(request, rule, way)
        except NotApplicable as problem:
            refused.setdefault(name, problem.reason)
            continue
        if (excess := memory.problem([plan])) is not None:
            refused.setdefault(name, f"memory: {excess.problem}")
            too_large.append(excess)
            continue
        candidates.append(Candidate(plan, time.perf_counter() - start))
        if settle and strategy == "auto" and _is_best(plan, least):
            break
    planned = {candidate.plan.strategy for candidate in candidates}  # a strategy may refuse some of its variants
    skipped |= {name: reason for name, reason in refused.items() if name not in planned}
    if not candidates and too_large:
        raise min(too_large, key=lambda excess: excess.cells)
    if not candidates:
        raise NotApplicable(*next(iter(skipped.items())))
    plans = [candidate.plan for candidate in candidates]
    eligible = [plan for plan in plans if ALL[plan.strategy].automatic] or plans
    chosen = eligible[0] if len(eligible) == 1 else min(eligible, key=objective_value)
    return Ranking(tuple(candidates), chosen, skipped, least)


def variants(
    request: Request, *, strategy: str, budgets: Budgets | None, recovery: Recovery | None
) -> tuple[list[Variant], dict[str, str]]:
    """What `compare` tries, and the strategies that do not apply, with the reason.

    First comes what may be proven to be the best, then fast strategies.
    """
    request.schema.check_unit(request.privacy.rows_per_person)
    _check("budgets", budgets, BUDGETS)
    _check("recovery", recovery, RECOVERIES)
    several = strategy in ("auto", "all")
    names = [name for name, s in REGISTRY.items() if s.is_compared(request)] if several else [strategy]
    if strategy == "auto":
        names = [name for name in names if REGISTRY[name].automatic]
        names.sort(key=lambda name: not REGISTRY[name].leads(request))
    if strategy in NOT_PRIVATE:
        fix = "use it in `hushcube evaluate`, or choose ireduct"
        raise BadInput("strategy", f"{strategy} is not private: it chooses noise by the exact counts", fix)
    if strategy not in ("auto", "all", *ALL):
        raise BadInput("strategy", f"{strategy!r} is unknown", f"choose auto, all, {', '.join(ALL)}")
    if request.options.rule.target is not None and strategy not in STOPPING:
        fix = f"use the strategy {' or '.join(STOPPING)}, or leave the target out"
        raise BadInput("relative-error", f"{strategy} does not stop when a target is met", fix)
    skipped = {name: reason for name in names if (reason := ALL[name].refusal(request))}
    if strategy in skipped:
        raise NotApplicable(strategy, skipped[strategy])
    usual: Budgets = "uniform" if strategy in ADAPTIVE else "optimal"  # as in the paper
    rules: Sequence[Budgets] = [budgets] if budgets else BUDGETS if several else [usual]
    recoveries: Sequence[Recovery] = [recovery] if recovery else RECOVERIES if strategy == "all" else ["gls"]
    return [(n, b, r) for n in names if n not in skipped for b in rules for r in recoveries], skipped


def refuse_unpredictable(strategy: str) -> None:
    """Refuse a method whose errors are known only when it has run."""
    if strategy in ADAPTIVE and strategy != "dwork":
        raise BadInput(
            "strategy",
            f"the errors of {strategy} depend on the data, so no budget can be found or compared for it",
            "plan it by itself, and give --relative-error and --above to stop when errors are small",
        )


def _is_best(plan: Design, least: float | None) -> bool:
    return least is not None and objective_value(plan) <= least * (1 + _NEGLIGIBLE)


def _check(field: str, given: str | None, known: Sequence[str]) -> None:
    if given is not None and given not in known:
        raise BadInput(field, f"{given!r} is unknown", f"choose one of {', '.join(known)}")
