"""How large an error may be: targets in words, read, resolved to tables and held against a plan.

[QUANTITY] WORDS: ERROR<=NUMBER      age*sex: stderr<=20      2-way: margin<=40      sum(days) age*sex: stderr<=50

    QUANTITY    count, which it is unless given, or sum(MEASURE), in the measure's unit; an average's error depends on
                the number of people, so that none can be a target
    WORDS       workload words, of tables that are asked for; `workload` means all of them, `total` the 0-way
    stderr      the standard error of a cell, as `hushcube plan` prints it, in each of the tables
    margin      the half-width of the 95% interval of a cell, likewise
    variance    the variance of a cell, likewise
    rmse        the root mean squared error over all cells of the tables together
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats, Ints
from hushcube.model.schema import COUNT
from hushcube.model.workload import Quantity, Workload
from hushcube.planning.plan import Plan
from hushcube.planning.question import Question
from hushcube.planning.summary import table_errors, table_variances

ErrorKind = Literal["stderr", "margin", "variance", "rmse"]
ERRORS: Final[tuple[ErrorKind, ...]] = get_args(ErrorKind)
_EXAMPLE: Final = "write for example `age*sex: stderr<=20`, `2-way: margin<=40` or `workload: rmse<=12`"
_QUANTITY: Final = re.compile(r"(?P<quantity>count|(?:sum|avg)\([^)]+\))\s+(?P<words>.+)")
_CONDITION: Final = re.compile(r"\s*(?P<error>\w+)\s*<=\s*(?P<bound>\S+)\s*")


@dataclass(frozen=True)
class Target:
    """A bound on the error of some tables.

    >>> Target.parse("age*sex: stderr<=20")
    Target(words='age*sex', error='stderr', bound=20.0, quantity='count')
    >>> str(Target.parse("sum(days) <=2-way :  margin <= 1e2"))
    'sum(days) <=2-way: margin<=100'
    """

    words: str
    error: ErrorKind
    bound: float
    quantity: str = COUNT

    @classmethod
    def parse(cls, text: str) -> Target:
        """Read a target; the tables are looked up later, by `resolve`."""
        words, colon, condition = (text if isinstance(text, str) else "").rpartition(":")
        match = _CONDITION.fullmatch(condition)
        if not colon or not words.strip() or match is None:
            raise BadInput("target", f"{str(text)[:80]!r} cannot be read", _EXAMPLE)
        kind: ErrorKind | None = next((error for error in ERRORS if error == match["error"]), None)
        if kind is None:
            raise BadInput("target", f"{match['error']!r} is unknown", f"bound one of {', '.join(ERRORS)}")
        try:
            bound = float(match["bound"])
        except ValueError:
            bound = math.nan
        if not 0 < bound < math.inf:
            raise BadInput("target", f"{match['bound'][:40]!r} is not a positive number", _EXAMPLE)
        named = _QUANTITY.fullmatch(words.strip())
        if named is None:
            return cls(words.strip(), kind, bound)
        return cls(named["words"], kind, bound, named["quantity"])

    def __str__(self) -> str:
        quantity = "" if self.quantity == COUNT else f"{self.quantity} "
        return f"{quantity}{self.words}: {self.error}<={self.bound:.12g}"


@dataclass(frozen=True, eq=False)
class Goal:
    """A target with the tables that it names: their places in the workload, marginals first, then forms."""

    target: Target
    quantity: Quantity
    tables: Ints

    def reached(self, plan: Plan) -> float:
        """What a plan reaches with the noise that is drawn: the worst of the tables, or their root mean square."""
        if self.target.error == "margin":
            widths = [table.margin for table in table_errors(plan, self.quantity)]
            return float(np.array(widths)[self.tables].max())
        variances = table_variances(plan, self.quantity)[self.tables]
        if self.target.error == "rmse":
            cells = table_cells(plan.workload)[self.tables]
            return math.sqrt(float(variances @ cells) / float(cells.sum()))
        worst = float(variances.max())
        return worst if self.target.error == "variance" else math.sqrt(worst)

    def ratio(self, plan: Plan) -> float:
        """The reached over the allowed variance: at most 1 where the target is met."""
        ratio = self.reached(plan) / self.target.bound
        return ratio if self.target.error == "variance" else ratio * ratio


def table_cells(workload: Workload) -> Floats:
    """The number of cells of each table asked for, in the same order."""
    counts = (*map(workload.schema.cells, workload.marginals), *(form.cells for form in workload.forms))
    return np.array(counts, dtype=np.float64)


def resolve(targets: Sequence[str | Target], question: Question | Plan) -> list[Goal]:
    """The tables of each target; all of them must be asked for."""
    if isinstance(targets, str) or not targets:
        raise BadInput("target", "is not a list of targets", _EXAMPLE)
    read = [target if isinstance(target, Target) else Target.parse(target) for target in targets]
    return [Goal(target, _quantity(target, question), _tables(target.words, question.workload)) for target in read]


def _quantity(target: Target, question: Question | Plan) -> Quantity:
    found = Quantity.parse(target.quantity, question.schema)
    if found.kind == "avg":
        noun = question.schema.unit_noun
        problem = f"the error of {found} depends on the number of {noun}, so that no budget can be found for it"
        raise BadInput("target", problem, f"bound the error of sum({found.measure}), or of the count")
    if found.part not in (question.designs if isinstance(question, Plan) else question.requests):
        raise BadInput("target", f"{found} is not asked for", f"ask for it with `--measure {found}`")
    return found


def _tables(words: str, workload: Workload) -> Ints:
    schema = workload.schema
    if words == "workload" and "workload" not in schema.names:
        return np.arange(len(workload))
    if words == "total" and "total" not in schema.names:
        words = "0-way"
    queries = workload.queries if "queries" in (word.strip() for word in words.split(",")) else None
    named = Workload.parse(words, schema, queries)
    if any(weight != 1 for weight in (*named.weights, *named.form_weights)):
        raise BadInput("target", f"{words!r} holds a weight", "give weights in the workload, not in a target")
    places = {word: at for at, word in enumerate(_words_of(workload))}
    wanted = _words_of(named)  # whose schema may have fewer levels
    for word in wanted:
        if word not in places:
            which = repr(words) if word == words else f"{word}, one of {words!r},"
            raise BadInput("target", f"{which} is not in the workload", "ask for it there as well")
    return np.array([places[word] for word in wanted])


def _words_of(workload: Workload) -> list[str]:
    """A word for each table, marginals first."""
    return [*map(workload.schema.describe, workload.marginals), *(form.word for form in workload.forms)]
