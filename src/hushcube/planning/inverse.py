"""Inverse planning: the smallest budget that meets targets on the error.

Budgets are tried on the grid of numbers with four significant digits, so the answer can be typed again and is at most
0.1% above the smallest real budget. Whether a budget suffices is decided by the exact prediction for the discrete noise
that would be drawn. The continuous laws only say where to look first:

    standard error ∝ 1 / epsilon   (pure, and roughly with delta)        standard error ∝ 1 / sqrt(rho)

Plans are made for weights that serve the targets, and for those of the workload; under Gaussian noise it is proven how
small a budget can be at all, and a search that gets there ends.                                [planning/smallest.py]

Errors fall as budgets grow, so a bracket is narrowed until it is one step wide. There are two exceptions:
- Margins of Gaussian noise rise by half a step where the noise becomes coarse: both sides are searched.  [is_coarse]
- Under the objective `max`, or an absolute threshold of `pmost`, what is measured may change with the budget and single
  tables get worse: the answer meets the targets, but a smaller budget might too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

from hushcube.errors import BadInput
from hushcube.model.privacy import LARGEST_BUDGET, SMALLEST_BUDGET
from hushcube.planning.plan import Plan
from hushcube.planning.planner import Variant, refuse_unpredictable, variants
from hushcube.planning.question import Comparison, Question, amount, compare, objective_of
from hushcube.planning.smallest import REST, Program
from hushcube.planning.targets import Goal, Target, resolve
from hushcube.progress import Progress, silent
from hushcube.shown import Grid, Page, Part, Remark, Shown, columns, number as written

_MANTISSAS: Final = 9000  # numbers 1.000 to 9.999
_GUESSES: Final = 8  # steps by scaling laws and secants before plain halving


@dataclass(frozen=True, repr=False)
class Found(Shown):
    """The smallest budget found, the plans compared under it, the goals that the chosen one meets, and the search."""

    comparison: Comparison
    budget: str
    goals: tuple[Goal, ...]
    strategies: tuple[str, ...]
    """Those whose plans were looked at."""
    least: str | None = None
    """No smaller budget of four digits suffices, whatever the plan: proven for unbiased linear answers, if not None."""
    rest: int = 0
    """How many tables need what no target asks for, and share a hundredth of the budget."""

    def __repr__(self) -> str:
        return f"Found({amount(self.plan.privacy)} = {self.budget}: {self.plan!r})"

    def page(self) -> Page:
        """The budget, and what it reaches for each target."""
        rows = [
            [str(goal.target).rpartition(":")[0], goal.target.error, written(goal.target.bound), written(reached)]
            for goal, reached in zip(self.goals, self.reached, strict=True)
        ]
        told = f"the smallest {amount(self.plan.privacy)} found that meets the targets is {self.budget}"
        headings = columns(("tables", "error"), ("at most", "reached"))
        parts: list[Part] = [told, Grid("", headings, rows)]
        if self.rest:
            several = f"{self.rest:,} tables have" if self.rest > 1 else "a table has"
            what = f"{several} no target and share {REST:.0%} of the budget; give them one if they are to be precise"
            parts.append(Remark(what))
        return Page((*parts, Remark(self.searched)))

    @property
    def searched(self) -> str:
        """Among what the budget is the smallest, and how much smaller one could be at most."""
        made = f"budgets of four digits, for the plans that {', '.join(self.strategies)} would make under each"
        if self.least is None:
            return f"searched: {made}; other plans might need less"
        if self.least == self.budget:
            return f"searched: {made}; it is proven that no smaller one suffices"
        least = f"{amount(self.plan.privacy)} = {self.least}"
        return f"searched: {made}; other plans might need less, and it is proven that none needs less than {least}"

    @property
    def plan(self) -> Plan:
        """The best of the plans that meet all targets."""
        return self.comparison.chosen

    @cached_property
    def reached(self) -> tuple[float, ...]:
        """What the plan reaches for each target, in the target's own measure."""
        return tuple(goal.reached(self.plan) for goal in self.goals)


def find_budget(
    question: Question, targets: Sequence[str | Target], *, progress: Progress | None = None, settle: bool = True
) -> Found:
    """The smallest budget of four digits under which the plan of some strategy meets all targets, and that plan.

    The question's own budget only says which kind is wanted: epsilon, epsilon beside its delta, or rho. Under a budget
    that is proven to be the smallest, other plans are compared only if the search may not `settle`.
    """
    refuse_unpredictable(question.strategy)
    goals = resolve(targets, question)
    tried = _variants(question)
    program = Program.of(question, goals)
    aims = program.aims if program else []
    asked = [question, *aims] if question.privacy.is_pure else [*aims, question]  # first what may be proven
    least = None if program is None else _proven(program, question)
    start = step(1.0)
    best = end = step(LARGEST_BUDGET) + 1
    winner = question
    aimed = _aimed(question, tried)
    pairs = [(each, variant) for each in asked for variant in (tried if each is question else aimed)]
    for done, (each, variant) in enumerate(pairs):
        (progress or silent)(variant[0].name, done / len(pairs))
        if least is not None and best <= least + 1:
            break
        probe = _Probe(each, variant, goals)
        if best == end or probe.has_steps or probe.ratio(best) <= 1:  # one look tells whether it could do better
            found = _least(probe, start, best)
            is_equal = each is question and best < end and probe.ratio(best) <= 1  # the words' weights come first
            if found < best or is_equal:
                best = start = found
                winner = each
    if best == end:
        raise _unreachable(question, tried, goals)
    is_proven = least is not None and best <= least + 1
    comparison = compare(winner.under(number(best)), settle=settle and is_proven)
    names = {one.name for one, _, _ in tried}
    plans = [plan for plan in comparison.plans if plan.strategy in names]
    chosen = min((plan for plan in plans if all(goal.ratio(plan) <= 1 for goal in goals)), key=objective_of)
    return Found(
        comparison.choosing(chosen),
        number(best),
        tuple(goals),
        tuple(sorted(names)),
        None if least is None else number(min(least, best)),
        0 if program is None or winner is question else int(program.rest.sum()),
    )


def _aimed(question: Question, tried: Sequence[Variant]) -> list[Variant]:
    """What is tried with weights for the targets: under pure epsilon a search, which sees what the others measure."""
    optimal = [variant for variant in tried if variant[1] != "uniform"]
    searching = [variant for variant in optimal if variant[0].searches and question.privacy.is_pure]
    return searching or optimal


def _proven(program: Program, question: Question) -> int | None:
    """The first position of the grid that is not proven to be too small; None under pure epsilon, it says little."""
    if question.privacy.is_pure:
        return None
    low, high = -1, step(LARGEST_BUDGET) + 1
    while high - low > 1:
        middle = (low + high) // 2
        is_small = program.is_too_small(question.under(number(middle)).privacy)
        low, high = (middle, high) if is_small else (low, middle)
    return max(high, 0)


def _variants(question: Question) -> list[Variant]:
    """What is tried for all parts alike."""
    lists = (variants(request, **question.tried)[0] for request in question.requests.values())
    tried = list({(one.name, rule, way): (one, rule, way) for each in lists for one, rule, way in each}.values())
    return [variant for variant in tried if variant[0].automatic] or tried


def step(budget: float) -> int:
    """The position on the grid of the smallest number of four digits that is not below a budget; 1e-9 stands at 0.

    >>> step(1e-9), step(1.0), number(step(0.12344)), number(step(500))
    (0, 81000, '0.1235', '500')
    """
    exponent = math.floor(math.log10(budget))
    mantissa = math.ceil(budget / 10.0 ** (exponent - 3) * (1 - 1e-12))
    return (exponent + 9) * _MANTISSAS + mantissa - 1000


def number(at: int) -> str:
    """The budget at a position of the grid, as people write it."""
    exponent, mantissa = divmod(at, _MANTISSAS)
    return f"{Decimal(1000 + mantissa).scaleb(exponent - 12).normalize():f}"


class _Probe:
    """How far one variant misses the targets, budget by budget."""

    def __init__(self, question: Question, variant: Variant, goals: Sequence[Goal]) -> None:
        self._question, self._variant, self._goals = question, variant, goals
        self.power = 0.5 if amount(question.privacy) == "epsilon" else 1.0
        """The budget goes like this power of the inverse variance."""
        self.has_steps = not question.privacy.is_pure and any(goal.target.error == "margin" for goal in goals)
        """Whether margins may rise with the budget, where noise becomes coarse."""
        self._last: tuple[int, Plan | None] = (-1, None)
        self.problem: BadInput | None = None

    def plan(self, at: int) -> Plan | None:
        """The variant's plan; None where it cannot serve the budget, which is mostly too small for it."""
        if self._last[0] != at:
            try:
                self._last = at, self._question.under(number(at)).planned(self._variant)
            except BadInput as problem:  # not under this budget
                self._last, self.problem = (at, None), problem
        return self._last[1]

    def ratio(self, at: int) -> float:
        """The worst ratio of reached and allowed variance: at most 1 where all targets are met."""
        plan = self.plan(at)
        return math.inf if plan is None else max(goal.ratio(plan) for goal in self._goals)

    def is_coarse(self, at: int) -> bool:
        """Whether margins include half a step."""
        plan = self.plan(at)
        return plan is not None and any(design.errors.is_coarse for design in plan.designs.values())

    def is_near(self, at: int) -> bool:
        """Whether margins without their half steps would meet the targets."""
        plan = self.plan(at)
        spare = [0.5 * (goal.target.error == "margin") for goal in self._goals]
        pairs = zip(self._goals, spare, strict=True)
        return plan is not None and all(goal.reached(plan) - extra <= goal.target.bound for goal, extra in pairs)


def _least(probe: _Probe, start: int, end: int) -> int:
    """The first position before `end` where the targets are met, or `end`; the search begins at `start`."""
    found = _narrow(probe, start, end)
    coarse = min(found, end - 1)
    if not (probe.has_steps and probe.is_coarse(coarse) and probe.is_near(coarse)):
        return found
    smooth, stride = coarse - 1, 1  # margins are monotone on either side of where coarseness begins
    while smooth >= 0 and probe.is_coarse(smooth):
        coarse, smooth, stride = smooth, smooth - stride, 2 * stride
    smooth = max(smooth, -1)
    while coarse - smooth > 1:
        middle = (smooth + coarse) // 2
        smooth, coarse = (smooth, middle) if probe.is_coarse(middle) else (middle, coarse)
    return _narrow(probe, smooth, smooth) if smooth >= 0 and probe.ratio(smooth) <= 1 else found


def _narrow(probe: _Probe, start: int, end: int) -> int:
    """The same where errors fall as budgets grow: by secants of the logarithms, and then by halving."""
    low, high, at, last = -1, end, start, None
    power, guesses = probe.power, _GUESSES
    while high - low > 1:
        at = min(max(at, low + 1), high - 1)
        ratio, budget = probe.ratio(at), float(number(at))
        low, high = (low, at) if ratio <= 1 else (at, high)
        if not guesses or not 0 < ratio < math.inf:
            at = (low + high) // 2
            continue
        if last is not None and last[0] != ratio:
            power = min(max(math.log(budget / last[1]) / math.log(last[0] / ratio), 0.1), 2.0)
        guesses, last = guesses - 1, (ratio, budget)
        at = step(min(max(budget * ratio**power, float(SMALLEST_BUDGET)), LARGEST_BUDGET))
    return high


def _unreachable(question: Question, tried: Sequence[Variant], goals: Sequence[Goal]) -> BadInput:
    """Which target is out of reach, or that they are together."""
    probes = [_Probe(question, variant, goals) for variant in tried]
    plans = [plan for probe in probes if (plan := probe.plan(step(LARGEST_BUDGET)))]
    for problem in (probe.problem for probe in probes if probe.problem and not plans):
        return problem
    beyond = [str(goal.target) for goal in goals if not any(goal.ratio(plan) <= 1 for plan in plans)]
    which = beyond[0] if beyond else "all targets together"
    return BadInput(
        "target",
        f"no {amount(question.privacy)} up to {LARGEST_BUDGET} meets {which}",
        "allow a larger error, or ask for fewer or smaller tables",
    )
