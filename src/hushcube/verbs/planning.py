"""The verbs before data is touched: plan, compare strategies, find a budget, look at other budgets.

>>> from hushcube.model.attribute import Attribute
>>> schema = Schema([Attribute("sex", values=["F", "M"]), Attribute("age", range=[0, 9])])
>>> plan(schema, "<=2-way", rho="0.5", neighbours="add-remove").strategy
'residual'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from hushcube.designs.design import AnyRecovery, Budgets
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import Effort, Objective
from hushcube.errors import BadInput
from hushcube.model.privacy import Number, Privacy
from hushcube.model.schema import COUNT, Schema
from hushcube.options import check_choice
from hushcube.planning import inverse, question
from hushcube.planning.inverse import Found
from hushcube.planning.plan import Plan
from hushcube.planning.question import Amount, Comparison, Queries, Question, Scenarios
from hushcube.planning.targets import Target
from hushcube.progress import Progress
from hushcube.strategies import AUTO, EVERY, Choice, read_strategies
from hushcube.strategies.given import Given, GivenTables
from hushcube.strategies.selective import Selective
from hushcube.verbs.schemas import schema_of

if TYPE_CHECKING:
    from hushcube.bundle.earlier_edition import EarlierEdition
    from hushcube.bundle.release import Release

_PASSED_ON: Final = ("queries", "measures", "shares", "budgets", "recovery", "objective", "effort", "balance")
"""What a question is told as the verbs are told it."""
Purpose = Literal["unbiased", "face-valid"]
PURPOSES: Final[tuple[Purpose, ...]] = get_args(Purpose)
"""What a plan is made for: unbiased tables, or tables at face value."""
FEW_CELLS: Final = 12
"""Tables with fewer cells on average are resolved by any budget that is worth spending."""
MeasureTables = str | Sequence[str] | Mapping[str, Number | None]
"""The tables to measure, in words such as `a*b=0.3,c*d=0.7`, or with their shares of the budget in a mapping."""


def compare(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "all",
    measure_tables: MeasureTables | None = None,
    budgets: Budgets | None = None,
    recovery: AnyRecovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    balance: bool = False,
    purpose: Purpose = "unbiased",
    like: Release | str | Path | None = None,
    progress: Progress | None = None,
    settle: bool = True,
) -> Comparison:
    """Every applicable plan with its predicted error, and the best one; no data, no cost.

    `measures` are words such as `avg(wage)` and `sum(days)`, of the same tables and under the same guarantee; `shares`
    divides it among `count` and the measures, or else it is divided so that averages err least.
    `measure_tables` names what is measured instead, with shares of the budget or the best ones: the strategy `given`.
    With `balance`, tables count alike whatever their number of cells, so that coarse ones are not the least precise.
    With the purpose `face-valid` the plan is made for tables at face value: `selective` where it applies and a strategy
    is not named; such a plan is released with the face `face_for(plan)`.
    `like` is an earlier edition, a release or its folder, which a selective plan guesses its tables from.
    With the strategy `auto`, a design that is proven to be the best ends the comparison, unless it may not `settle`.
    """
    return question.compare(_asked(locals()), progress=progress, settle=settle)


def plan(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    measure_tables: MeasureTables | None = None,
    budgets: Budgets | None = None,
    recovery: AnyRecovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    balance: bool = False,
    purpose: Purpose = "unbiased",
    like: Release | str | Path | None = None,
) -> Plan:
    """The plan of one strategy, or of the best one; no data, no cost. Words are those of `compare`."""
    return compare(**locals()).chosen


def find_budget(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    targets: Sequence[str | Target],
    guarantee: Amount = "epsilon",
    neighbours: str,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    measure_tables: MeasureTables | None = None,
    budgets: Budgets | None = None,
    recovery: AnyRecovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    balance: bool = False,
    progress: Progress | None = None,
    settle: bool = True,
) -> Found:
    """The smallest epsilon or rho found to meet all targets, and the plan that does; no data, no cost.

    Budgets and weights are searched. With rho, or beside delta, it is proven how small a budget can be (`Found.least`),
    and under one that is proven other plans are compared only if the search may not `settle`.

    >>> from hushcube import Attribute, Schema
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", range=(0, 9))))
    >>> found = find_budget(schema, "<=2-way", targets=["age*sex: stderr<=20"], neighbours="add-remove")
    >>> found.budget, round(found.reached[0], 2)
    ('0.0707', 20.0)
    """
    if guarantee not in get_args(Amount):
        raise BadInput("guarantee", f"{guarantee!r} is unknown", "choose epsilon or rho")
    return inverse.find_budget(_asked({**locals(), guarantee: 1}), targets, progress=progress, settle=settle)


def what_if(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    queries: Queries | None = None,
    measures: str | Sequence[str] = (),
    shares: Mapping[str, Number] | None = None,
    neighbours: str,
    epsilon: Sequence[Number] | None = None,
    rho: Sequence[Number] | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    strategy: Choice = "auto",
    measure_tables: MeasureTables | None = None,
    budgets: Budgets | None = None,
    recovery: AnyRecovery | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
    balance: bool = False,
    progress: Progress | None = None,
) -> Scenarios:
    """The best plan under each of several budgets, epsilon or rho; no data, no cost."""
    any_budget = {name: 1 for name, values in (("epsilon", epsilon), ("rho", rho)) if values is not None}
    values = list(epsilon if epsilon is not None else rho or ())
    return question.what_if(_asked({**locals(), **any_budget}), values, progress=progress)


def _asked(given: Mapping[str, Any]) -> Question:
    """The question that a verb's parameters ask; those that only the verb itself knows are left alone."""
    schema = schema_of(given["schema"])
    rows = schema.rows_per_person(given["rows_per_person"])
    amounts = {name: given.get(name) for name in ("epsilon", "rho", "delta")}
    privacy = Privacy.of(**amounts, neighbours=given["neighbours"], rows_per_person=rows)
    told = {name: given[name] for name in _PASSED_ON}
    strategy = measuring(given["strategy"], given["measure_tables"])
    strategy, like = _liking(strategy, given.get("like"))
    asked = Question.of(schema, given["workload"], privacy, strategy=strategy, **told)
    served = for_purpose(asked, given.get("purpose", "unbiased"), strategy, like)
    named = read_strategies(served.strategy)[0]
    if like is not None and not any(isinstance(one, Selective) and one.like is not None for one in named):
        face = ", or give it to the face: `--face integral:method=entropy,like=FOLDER`"
        fix = "use the strategy `selective`" + face * (not asked.requests[COUNT].schema.is_nested)
        raise BadInput("like", "only selective plans are guessed from an earlier edition, and this is none", fix)
    return served


def _liking(strategy: Choice, like: Release | str | Path | None) -> tuple[Choice, EarlierEdition | None]:
    """The strategies with the earlier edition that they are guessed from, and that edition, if one is given."""
    named, comparing = read_strategies(strategy)
    given = any(isinstance(one, Selective) and one.like is not None for one in named)
    if like is None and not given:
        return strategy, None
    from hushcube.bundle.earlier_edition import read_edition, with_edition

    if like is None:
        return (*sorted(comparing), *map(with_edition, named)), None
    if given:
        raise BadInput("like", "is given twice, once with the strategy", "give it once")
    edition = read_edition(like)
    own = [replace(one, like=edition) if isinstance(one, Selective) else one for one in named]
    return (*sorted(comparing), *own) if own else strategy, edition


def for_purpose(asked: Question, purpose: Purpose, strategy: Choice, like: EarlierEdition | None = None) -> Question:
    """The question, with the strategy that serves a purpose best, unless one is named.

    Under Gaussian noise that is `selective` for face values, whatever the data: it measures everything where the budget
    allows. Under pure epsilon its tables cost more than they bring, and few larger ones (`covering`) are better. Tables
    of a few cells have nothing to guess: they are measured as for unbiased tables.
    """
    check_choice(purpose, "purpose", PURPOSES)
    if purpose == "unbiased" or strategy not in (AUTO, EVERY) or asked.asked or asked.privacy.is_pure:
        return asked
    selective, request = Selective(like=like), asked.requests[COUNT]
    if selective.refusal(request) is not None or float(request.marginals.cells.mean()) < FEW_CELLS:
        return asked
    return replace(asked, strategy=selective)


def face_for(plan: Plan) -> str:
    """The face in which a plan for face values is published: with an opinion, where the plan allows one."""
    serves = isinstance(plan.count.underlying.underlying, LatticeDesign) and plan.count.recovery == "gls"
    return "integral:method=entropy" if serves else "integral"


def measuring(strategy: Choice, tables: MeasureTables | None) -> Choice:
    """The strategy, or the one that measures the tables that are named."""
    if tables is None:
        return strategy
    if strategy not in (AUTO, EVERY):
        problem = "names what is measured, and so does the strategy"
        raise BadInput("measure_tables", problem, "leave one of them out; the strategy `given` has the option `tables`")
    return Given(tables=GivenTables.read(tables, "measure_tables"))
