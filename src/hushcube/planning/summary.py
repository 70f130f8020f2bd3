"""What people look at before they spend a budget: the strategies compared, and the expected error of each table.

The sum of a measure is resolution * (sum of its integers) + center * (count); both are noisy, and independently so.
The error of an average depends on how many people there are, so that nothing can be said of it beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats
from hushcube.model.workload import COUNTED, Quantity
from hushcube.shown import Grid, Page, Part, Remark, columns, number
from hushcube.strategies import ALL
from hushcube.strategies.strategy import objective_value

if TYPE_CHECKING:
    from hushcube.planning.plan import Plan
    from hushcube.planning.planner import Ranking

TABLES: Final = 40  # lines of a plan's tables
_COMPARED: Final = 8  # lines of a comparison
MORE: Final = "`page(rows=...)` shows more"
BALANCE: Final = "`balance=True`"
LARGEST: Final = '`objective="max"`'
_HEADLINE: Final = 1  # attributes of a table that is read as a headline, at most
_WORSE: Final = 1.1  # times the typical error: from there on headline tables are said to be worse
EVERY: Final = '`strategy="all"` shows every variant'


@dataclass(frozen=True)
class ComparedStrategy:
    """One line of a comparison: a strategy at its best, with those that come to the same."""

    names: tuple[str, ...]
    """The strategy, then its equals."""
    measures: str
    """What it measures, in words."""
    design: Design
    is_chosen: bool
    total_variance: float
    typical_error: float
    """The root mean square of all cells' standard errors."""
    largest_error: float
    times_best: float
    """The objective, over that of the first line."""


def best_variants(ranking: Ranking) -> list[Design]:
    """The best plan of each strategy; of the chosen strategy, the chosen plan, which is the first."""
    best = {ranking.chosen.strategy: ranking.chosen}
    for design in (candidate.plan for candidate in ranking.candidates):
        known = best.setdefault(design.strategy, design)
        if known is not ranking.chosen and objective_value(design) < objective_value(known):
            best[design.strategy] = design
    return list(best.values())


def compared_strategies(ranking: Ranking) -> list[ComparedStrategy]:
    """A line for each distinct strategy, the best first."""
    groups = _alike(best_variants(ranking))
    least = objective_value(groups[0][0])
    return [
        ComparedStrategy(
            names=tuple(equal.strategy for equal in equals),
            measures=ALL[equals[0].strategy].measures,
            design=equals[0],
            is_chosen=ranking.chosen in equals,
            total_variance=equals[0].errors.total_variance(exact=True),
            typical_error=_typical_error(equals[0]),
            largest_error=_largest_error(equals[0]),
            times_best=objective_value(equals[0]) / least if least else 1.0,
        )
        for equals in groups
    ]


def merged_variants(ranking: Ranking) -> list[list[Design]]:
    """All plans, the best first; variants of one strategy that come to the same are together."""
    return _alike((candidate.plan for candidate in ranking.candidates), of_one_strategy=True)


def _alike(designs: Iterable[Design], *, of_one_strategy: bool = False) -> list[list[Design]]:
    """Plans that come to the same, to nine digits, are together; the best come first."""
    groups: dict[tuple[str, ...], list[Design]] = {}
    for design in designs:
        result = (f"{design.errors.weighted_variance():.9g}", f"{objective_value(design):.9g}")
        groups.setdefault((design.strategy, *result) if of_one_strategy else result, []).append(design)
    return sorted(groups.values(), key=lambda equals: objective_value(equals[0]))


def _typical_error(design: Design) -> float:
    return math.sqrt(design.errors.total_variance(exact=True) / design.workload.cells)


def _largest_error(design: Design) -> float:
    return math.sqrt(design.errors.max_variance(weighted=False))


@dataclass(frozen=True)
class TableError:
    """One table: its word, the root mean square of its cells' standard errors, and the margin that goes with it."""

    word: str
    attributes: tuple[str, ...]
    cells: int
    std_error: float
    margin: float
    is_form: bool = False


def table_errors(plan: Plan, quantity: Quantity = COUNTED, *, published: bool = False) -> Iterator[TableError]:
    """The counts, or the sums, of the tables asked for, marginals first; or of all that are published."""
    terms = _terms(plan, quantity)
    factors = list(terms.values())
    for noisy in zip(*(_errors(plan.designs[part], published) for part in terms), strict=True):
        if len(noisy) == 1:
            yield noisy[0]
            continue
        deviation = math.hypot(*(factor * each.std_error for factor, each in zip(factors, noisy, strict=True)))
        width = math.hypot(*(factor * each.margin for factor, each in zip(factors, noisy, strict=True)))
        yield replace(noisy[0], std_error=deviation, margin=width)


def table_variances(plan: Plan, quantity: Quantity = COUNTED) -> Floats:
    """The mean variance of a cell of each table asked for, marginals first, then forms."""
    terms = _terms(plan, quantity).items()
    found: Floats = np.sum([factor**2 * _variances(plan.designs[part]) for part, factor in terms], axis=0)
    return found


def total_variance(plan: Plan, quantity: Quantity = COUNTED) -> float:
    """The expected sum of squared errors of a quantity over all cells, for the noise that is drawn."""
    terms = _terms(plan, quantity).items()
    return sum(factor**2 * plan.designs[part].errors.total_variance(exact=True) for part, factor in terms)


def typical_error(plan: Plan, part: str) -> float:
    """The root mean square of the standard errors of all cells' counts, or sums."""
    return math.sqrt(total_variance(plan, plan.measured[part]) / plan.workload.cells)


def _terms(plan: Plan, quantity: Quantity) -> dict[str, float]:
    """The parts of a plan that a count or a sum is made of, and the factor of each."""
    if quantity.kind == "count":
        return {quantity.part: 1.0}
    if quantity.kind == "avg":
        fix = f"ask for the errors of sum({quantity.measure}) and of the count"
        problem = f"the error of {quantity} depends on how many {plan.schema.unit_noun} there are"
        raise BadInput("quantity", problem, fix)
    measure = plan.schema.measure(quantity.measure)
    return {quantity.part: float(measure.resolution), COUNTED.part: float(measure.center)}


def _errors(design: Design, published: bool) -> Iterator[TableError]:
    schema, workload = design.schema, design.workload
    listed = workload.published if published else workload.marginals
    ids = design.request.marginals.ids(listed)
    deviations, widths = np.sqrt(design.errors.exact_cell_variances)[ids].tolist(), design.errors.margins[ids].tolist()
    for marginal, deviation, width in zip(listed, deviations, widths, strict=True):
        names = tuple(schema.names[i] for i in marginal)
        yield TableError(schema.describe(marginal), names, schema.cells(marginal), deviation, width)
    for form, total in zip(workload.forms, design.errors.form_totals(exact=True), strict=True):
        deviation = math.sqrt(total / form.cells)
        names = tuple(schema.names[i] for i in form.marginal)
        width = float(design.errors.any_margin(np.asarray(deviation)))
        yield TableError(form.word, names, form.cells, deviation, width, is_form=True)


def _variances(design: Design) -> Floats:
    marginals = design.errors.exact_cell_variances[design.request.marginals.ids(design.workload.marginals)]
    forms = zip(design.errors.form_totals(exact=True), design.workload.forms, strict=True)
    return np.concatenate((marginals, [total / form.cells for total, form in forms]))


def imprecise_headline(plan: Plan) -> str | None:
    """That the total or a one-way table is less precise than a typical cell, where there are finer tables too."""
    workload, errors = plan.workload, np.sqrt(table_variances(plan))
    short = [at for at, marginal in enumerate(workload.marginals) if len(marginal) <= _HEADLINE]
    typical = typical_error(plan, COUNTED.part)
    if not short or len(short) == len(workload) or errors[short].max() <= _WORSE * typical:
        return None
    worst = short[int(np.argmax(errors[short]))]
    which = plan.schema.describe(workload.marginals[worst]) if workload.marginals[worst] else "the total"
    return f"{which} has a standard error of {number(errors[worst])}, a typical cell one of {number(typical)}"


def with_sums(plan: Plan) -> Iterator[tuple[TableError, dict[str, TableError]]]:
    """The tables' expected errors, with those of sums beside them."""
    sums = {str(plan.measured[name]): table_errors(plan, plan.measured[name]) for name in plan.sums}
    for told in table_errors(plan):
        yield told, {word: next(errors) for word, errors in sums.items()}


def parts_page(plan: Plan) -> Page:
    """Each part with its share of the guarantee and its error."""
    headings = columns(("part", "share of the guarantee", "strategy"), ["typical error of a cell's count or sum"])
    rows = [
        [name, design.privacy.amounts, design.strategy, f"± {number(typical_error(plan, name))}"]
        for name, design in plan.designs.items()
    ]
    title = f"{plan.schema.name}: {len(plan.workload):,} tables, {plan.privacy}"
    told = "an average's error is about that of its sum over the count; `release` gives an interval for each"
    return Page((Grid(title, headings, rows), Remark(told)))


def tables_page(plan: Plan, rows: int, more: str) -> Page:
    """Each table's expected standard error and 95% margin, in the order asked."""
    counts = plan.count
    names = ["cells", "standard error", "95% margin", *(str(plan.measured[name]) for name in plan.sums)]
    cells = []
    for told, sums in islice(with_sums(plan), rows):
        margins = (f"± {number(each.margin)}" for each in (told, *sums.values()))
        cells.append([told.word, f"{told.cells:,}", number(told.std_error), *margins])
    title = f"expected error of a cell with {counts.strategy}, {counts.budget_rule}, {counts.recovery}"
    parts: list[Part] = [Grid(title, columns(["table"], names), cells)]
    if len(plan.workload) > rows:
        parts.append(Remark(f"... and {len(plan.workload) - rows:,} more tables: {more}"))
    parts += [f"{name.replace('_', ' ')}: {in_words(value)}" for name, value in counts.details.items()]
    if isinstance(counts, LatticeDesign) and counts.projects:
        errors = [f"± {number(_typical_error(design))}" for design in (counts.recovered_by("gls"), counts)]
        ways = "typical error of a cell: {} with least squares on what was measured (gls), {} with that on the answers"
        parts.append(ways.format(*errors))
    if counts.left_out:
        left, several = len(counts.left_out), len(counts.left_out) + len(plan.workload)
        parts.append(Remark(f"{left:,} of {several:,} tables asked for left out: they would not be precise"))
    parts += map(str, plan.bounds)
    if counts.note is not None:
        parts.append(Remark(counts.note))
    if plan.schema.caveat is not None:
        parts.append(plan.schema.caveat)
    return Page(tuple(parts))


def ranking_page(ranking: Ranking, *, every_variant: bool = False, every: str = EVERY) -> Page:
    """The strategies, or every variant, as a table, the best first; `every` says how all variants are seen."""
    parts = [*(_variants(ranking) if every_variant else _strategies(ranking, every))]
    if ranking.least is not None:
        parts.append(_distance(ranking))
    skipped = {} if ranking.is_optimal else ranking.skipped
    return Page((*parts, *(Remark(f"{name} was skipped: {reason}") for name, reason in skipped.items())))


def _strategies(ranking: Ranking, every: str) -> Iterator[Part]:
    """A line for each distinct strategy."""
    lines, is_max = compared_strategies(ranking), ranking.chosen.request.objective == "max"
    numbers = ("typical error", *["largest error"] * is_max, "total variance", "times the best")
    rows = [
        [
            "→" if line.is_chosen else "",
            " = ".join(line.names),
            line.measures,
            f"± {number(line.typical_error)}",
            *[f"± {number(line.largest_error)}"] * is_max,
            number(line.total_variance),
            number(float(f"{line.times_best:.3g}")),
        ]
        for line in lines[:_COMPARED]
    ]
    chosen = frozenset(at for at, line in enumerate(lines) if line.is_chosen)
    yield Grid(asked_for(ranking.chosen), columns(("", "strategy", "what it measures"), numbers), rows, chosen)
    if (rest := len(lines) - _COMPARED) > 0:
        yield f"... and {rest} more {'strategy' if rest == 1 else 'strategies'}: {every}"


def _variants(ranking: Ranking) -> Iterator[Part]:
    """A line for each distinct variant of each strategy."""
    groups, is_max = merged_variants(ranking), ranking.chosen.request.objective == "max"
    numbers = ("sets measured", "total variance", "typical error", *["largest error"] * is_max)
    rows = [
        [
            "→" if ranking.chosen in equals else "",
            design.strategy,
            " = ".join(dict.fromkeys(equal.budget_rule for equal in equals)),
            " = ".join(dict.fromkeys(str(equal.recovery) for equal in equals)),
            f"{design.groups:,}",
            number(design.errors.total_variance(exact=True)),
            f"± {number(_typical_error(design))}",
            *[f"± {number(_largest_error(design))}"] * is_max,
        ]
        for equals in groups
        for design in equals[:1]
    ]
    chosen = frozenset(at for at, equals in enumerate(groups) if ranking.chosen in equals)
    yield Grid(asked_for(ranking.chosen), columns(("", "strategy", "budgets", "recovery"), numbers), rows, chosen)


def asked_for(plan: Design | Plan) -> str:
    """The tables and the guarantee, in a line."""
    return f"{plan.schema.name}: {len(plan.workload):,} tables, {plan.workload.cells:,} cells, {plan.privacy}"


def _distance(ranking: Ranking) -> str:
    """How far the chosen plan is from the best possible one."""
    total = "total variance" if ranking.chosen.workload.origin is None else "total variance with these weights"
    if ranking.is_optimal:
        return f"optimal: no plan of this kind can have less {total}"
    least, reached = ranking.least or 0.0, objective_value(ranking.chosen)
    if not least:
        return ""
    of_all = f"{number(reached / least)} times the best possible"
    if (of_tables := ranking.least_of_tables) is None:
        return f"{total} at most {of_all}"
    near = number(reached / of_tables)
    return f"{total} at most {near} times that of the best plan of tables of counts, and {of_all}"


def in_words(value: Any) -> str:
    """A detail of a plan, for people.

    >>> in_words({"age": [3, 4]}), in_words(784.0), in_words(["age*sex", "sex"])
    ('age 3, 4', '784', 'age*sex, sex')
    """
    if isinstance(value, dict):
        return "; ".join(f"{key} {in_words(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(in_words, value)) or "none"
    return number(value) if isinstance(value, float) else str(value)
