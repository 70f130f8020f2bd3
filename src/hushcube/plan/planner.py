"""Compare strategies and choose: plans are data-free, so looking at all of them costs no privacy."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hushcube.errors import BadInput, NotApplicable
from hushcube.plan import error
from hushcube.plan.plan import BUDGETS, RECOVERIES, Budgets, Plan, Recovery
from hushcube.plan.request import Request
from hushcube.plan.strategies import REGISTRY


@dataclass(frozen=True)
class Candidate:
    """A plan and how long it took to make."""

    plan: Plan
    seconds: float


@dataclass(frozen=True)
class Comparison:
    """Candidates in the order tried, the chosen one, and the strategies that do not apply, with the reason."""

    candidates: tuple[Candidate, ...]
    chosen: Plan
    skipped: dict[str, str]


def compare(
    request: Request,
    *,
    strategy: str = "auto",
    budgets: Budgets | None = None,
    recovery: Recovery | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Comparison:
    """Plan with one strategy, with `auto` (the best by predicted error), or with `all` (every variant, best chosen).

    Unless told otherwise one strategy means optimal budgets and generalised least squares; `auto` tries both budgets.
    """
    _check("budgets", budgets, BUDGETS)
    _check("recovery", recovery, RECOVERIES)
    names = list(REGISTRY) if strategy in ("auto", "all") else [strategy]
    if strategy not in ("auto", "all", *REGISTRY):
        raise BadInput("strategy", f"{strategy!r} is unknown", f"choose auto, all, {', '.join(REGISTRY)}")
    skipped = {name: reason for name in names if (reason := REGISTRY[name].accepts(request))}
    for name in names if strategy not in ("auto", "all") else ():
        if name in skipped:
            raise NotApplicable(name, skipped[name])
    rules: Sequence[Budgets] = [budgets] if budgets else BUDGETS if strategy in ("auto", "all") else ["optimal"]
    recoveries: Sequence[Recovery] = [recovery] if recovery else RECOVERIES if strategy == "all" else ["gls"]
    variants = [(n, b, r) for n in names if n not in skipped for b in rules for r in recoveries]
    candidates = []
    for done, (name, rule, way) in enumerate(variants):
        if progress:
            progress(name, done / len(variants))
        start = time.perf_counter()
        try:
            plan = REGISTRY[name].plan(request, rule, way)
        except NotApplicable as problem:
            skipped[name] = problem.reason
            continue
        candidates.append(Candidate(plan, time.perf_counter() - start))
    if not candidates:
        raise NotApplicable(*next(iter(skipped.items())))
    plans = [candidate.plan for candidate in candidates]
    chosen = plans[0] if len(plans) == 1 else min(plans, key=error.weighted_variance)
    return Comparison(tuple(candidates), chosen, skipped)


def _check(field: str, given: str | None, known: Sequence[str]) -> None:
    if given is not None and given not in known:
        raise BadInput(field, f"{given!r} is unknown", f"choose one of {', '.join(known)}")
