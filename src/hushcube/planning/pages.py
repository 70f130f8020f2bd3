"""What is printed before a budget is spent: plans, strategies compared, other budgets, and budgets that were found."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from hushcube.model.schema import COUNT
from hushcube.planning.summary import (
    TableError,
    compared_strategies,
    merged_variants,
    table_errors,
    total_variance,
)
from hushcube.shown import Cell, Column, Grid, Page, Part, Remark, number
from hushcube.strategies.strategy import objective_value

if TYPE_CHECKING:
    from hushcube.planning.inverse import Found
    from hushcube.planning.plan import Plan
    from hushcube.planning.planner import Ranking
    from hushcube.planning.question import Comparison
    from hushcube.planning.what_if import Scenario

TABLES: Final = 40
"""Lines of a plan's tables."""
_COMPARED: Final = 8
"""Lines of a comparison."""
MORE: Final = "`page(rows=...)` shows more"
EVERY: Final = '`strategy="all"` shows every variant'


def plan_page(plan: Plan, rows: int = TABLES, more: str = MORE) -> Page:
    """The parts of a plan with sums, and each table's expected standard error and 95% margin."""
    asked = f"{plan.schema.name}: {len(plan.workload):,} tables, {plan.workload.cells:,} cells, {plan.privacy}"
    above = parts_page(plan) if plan.asked else Page((asked,))
    return above + tables_page(plan, rows, more)


def parts_page(plan: Plan) -> Page:
    """Each part with its share and its error."""
    columns = [Column("part"), Column("share of the guarantee"), Column("strategy")]
    columns.append(Column("typical error of a cell's count or sum", right=True))
    rows: list[list[Cell]] = [
        [name, design.privacy.amounts, design.strategy, f"± {number(typical_error(plan, name))}"]
        for name, design in plan.designs.items()
    ]
    title = f"{plan.schema.name}: {len(plan.workload):,} tables, {plan.privacy}"
    told = "an average's error is about that of its sum over the count; `release` gives an interval for each"
    return Page((Grid(title, columns, rows), Remark(told)))


def typical_error(plan: Plan, part: str) -> float:
    """The root mean square of the standard errors of all cells' counts, or sums."""
    return math.sqrt(total_variance(plan, plan.measured[part]) / plan.workload.cells)


def tables_page(plan: Plan, rows: int = TABLES, more: str = MORE) -> Page:
    """Each table's expected standard error and 95% margin, in the order asked."""
    counts = plan.count
    names = ["cells", "standard error", "95% margin", *(str(plan.measured[name]) for name in plan.sums)]
    columns = [Column("table"), *(Column(name, right=True) for name in names)]
    cells: list[list[Cell]] = []
    for told, sums in islice(with_sums(plan), rows):
        others = (f"± {number(each.margin)}" for each in sums.values())
        cells.append([told.word, f"{told.cells:,}", number(told.std_error), f"± {number(told.margin)}", *others])
    asked = f"{counts.strategy}, {counts.budget_rule}, {counts.recovery}"
    parts: list[Part] = [Grid(f"expected error of a cell with {asked}", columns, cells)]
    if len(plan.workload) > rows:
        parts.append(Remark(f"... and {len(plan.workload) - rows:,} more tables: {more}"))
    parts += [f"{name.replace('_', ' ')}: {in_words(value)}" for name, value in counts.details.items()]
    if counts.note is not None:
        parts.append(Remark(counts.note))
    if plan.schema.caveat is not None:
        parts.append(plan.schema.caveat)
    return Page(tuple(parts))


def with_sums(plan: Plan) -> Iterator[tuple[TableError, dict[str, TableError]]]:
    """The tables' expected errors, with those of sums beside them."""
    sums = {str(plan.measured[name]): table_errors(plan, plan.measured[name]) for name in plan.sums}
    for told in table_errors(plan):
        yield told, {word: next(errors) for word, errors in sums.items()}


def comparison_page(
    comparison: Comparison, *, every_variant: bool = False, rows: int = TABLES, more: str = MORE, every: str = EVERY
) -> Page:
    """The strategies compared, the best first, and what the chosen plan promises."""
    plan = comparison.chosen
    counts = comparison.parts[COUNT]
    above = parts_page(plan) if plan.asked else ranking_page(counts, every_variant=every_variant, every=every)
    return above + tables_page(plan, rows, more)


def ranking_page(ranking: Ranking, *, every_variant: bool = False, every: str = EVERY) -> Page:
    """The strategies, or every variant, as a table, the best first; `every` says how all variants are seen."""
    parts = [*(_variants(ranking) if every_variant else _strategies(ranking, every))]
    if ranking.least is not None:
        parts.append(_distance(ranking))
    skipped = {} if ranking.is_optimal else ranking.skipped
    return Page((*parts, *(Remark(f"{name} was skipped: {reason}") for name, reason in skipped.items())))


def _strategies(ranking: Ranking, every: str) -> Iterator[Part]:
    """A line for each distinct strategy."""
    lines, is_max = compared_strategies(ranking), _is_max(ranking)
    numbers = ("typical error", *["largest error"] * is_max, "total variance", "times the best")
    columns = [*map(Column, ("", "strategy", "what it measures")), *(Column(name, right=True) for name in numbers)]
    rows: list[list[Cell]] = [
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
    yield Grid(_asked(ranking), columns, rows, frozenset(at for at, line in enumerate(lines) if line.is_chosen))
    if (rest := len(lines) - _COMPARED) > 0:
        yield f"... and {rest} more {'strategy' if rest == 1 else 'strategies'}: {every}"


def _variants(ranking: Ranking) -> Iterator[Part]:
    """A line for each distinct variant of each strategy."""
    groups, is_max = merged_variants(ranking), _is_max(ranking)
    numbers = ("sets measured", "total variance", "typical error", *["largest error"] * is_max)
    columns = [*map(Column, ("", "strategy", "budgets", "recovery")), *(Column(name, right=True) for name in numbers)]
    rows: list[list[Cell]] = []
    for equals in groups:
        design = equals[0]
        total = design.errors.total_variance(exact=True)
        rows.append(
            [
                "→" if ranking.chosen in equals else "",
                design.strategy,
                " = ".join(dict.fromkeys(d.budget_rule for d in equals)),
                " = ".join(dict.fromkeys(d.recovery for d in equals)),
                f"{design.groups:,}",
                number(total),
                f"± {number(math.sqrt(total / design.workload.cells))}",
                *[f"± {number(math.sqrt(design.errors.max_variance(weighted=False)))}"] * is_max,
            ]
        )
    chosen = frozenset(at for at, equals in enumerate(groups) if ranking.chosen in equals)
    yield Grid(_asked(ranking), columns, rows, chosen)


def _asked(ranking: Ranking) -> str:
    chosen = ranking.chosen
    tables = f"{len(chosen.workload):,} tables, {chosen.workload.cells:,} cells"
    return f"{chosen.schema.name}: {tables}, {chosen.privacy}"


def _is_max(ranking: Ranking) -> bool:
    return ranking.chosen.request.objective == "max"


def _distance(ranking: Ranking) -> str:
    """How far the chosen plan is from the best possible one."""
    if ranking.is_optimal:
        return "optimal: no plan of this kind can have less total variance"
    least, reached = ranking.least or 0.0, objective_value(ranking.chosen)
    if not least:
        return ""
    of_all = f"{number(reached / least)} times the best possible"
    if (of_tables := ranking.least_of_tables) is None:
        return f"total variance at most {of_all}"
    near = number(reached / of_tables)
    return f"total variance at most {near} times that of the best plan of tables of counts, and {of_all}"


def scenarios_page(scenarios: Sequence[Scenario], budget: str) -> Page:
    """One row for each budget, epsilon or rho."""
    numbers = ("total variance", "typical error", "median table", "worst table")
    columns = [
        Column(budget, right=True),
        *map(Column, ("strategy", "budgets", "recovery")),
        *(Column(name, right=True) for name in numbers),
    ]
    rows: list[list[Cell]] = []
    for scenario in scenarios:
        counts = scenario.plan.count
        errors = (scenario.rmse, scenario.median_std_error, scenario.worst_std_error)
        rows.append(
            [
                scenario.budget,
                counts.strategy,
                counts.budget_rule,
                counts.recovery,
                number(scenario.total_variance),
                *(f"± {number(value)}" for value in errors),
            ]
        )
    return Page((Grid("what if the budget were another", columns, rows),))


def found_page(found: Found, budget: str) -> Page:
    """The smallest budget, and what it reaches for each target."""
    columns = [Column("tables"), Column("error"), Column("at most", right=True), Column("reached", right=True)]
    rows: list[list[Cell]] = [
        [str(goal.target).rpartition(":")[0], goal.target.error, number(goal.target.bound), number(reached)]
        for goal, reached in zip(found.goals, found.reached, strict=True)
    ]
    told = f"the smallest {budget} found that meets the targets is {found.budget}"
    return Page((told, Grid("", columns, rows), Remark(found.searched)))


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
