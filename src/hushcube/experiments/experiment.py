"""Run methods on real counts again and again, and compare their answers with the truth.

error of a cell  =  |y - q| / max(q, δ),  δ the sanity bound                              [Xiao et al. 2011, Equation 1]
overall error    =  mean over runs of the mean over tables of the mean over cells       [Definition 6 and section 6.1]

A table counts as much as any other, however many cells it has. Exact tables are counted once for all methods and runs.
Nothing of this is private: it is for the owner of the data, and for nobody else. Every strategy is a method, and so are
some that only an experiment may use.

All that a method decides without data is decided once; a run then goes from exact counts to noisy tables. Oracle and
proportional know the counts, so that no plan describes them: their tables are their noisy answers, never recovered.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.part import FormsFromCells
from hushcube.designs import AdaptiveDesign
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.refinement import Amount, Rule
from hushcube.designs.request import MAX_TABLE_CELLS, Effort, Objective, Request
from hushcube.errors import BadInput, DataError, NotApplicable, TooLarge
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Number, Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.options import read_word
from hushcube.planning.planner import compare
from hushcube.private.adaptive import not_private
from hushcube.private.adaptive.run import prepared
from hushcube.private.adaptive.subject import assembled
from hushcube.private.engines import Engine, ExactCounts
from hushcube.private.measure import MAX_ROWS, draw
from hushcube.private.noise import Entropy, SeededEntropy, SystemEntropy
from hushcube.progress import Progress, silent
from hushcube.strategies import ALL, read_strategy
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE, Adaptive, TwoPhase
from hushcube.strategies.strategy import Strategy
from hushcube.text import short

Table = NDArray[Any]

METHODS: Final = (*ADAPTIVE, *NOT_PRIVATE, *(name for name in ALL if name not in ADAPTIVE))


@dataclass(frozen=True, eq=False)
class Answers:
    """The tables of one run, and what a person's data cost."""

    marginals: Mapping[Marginal, Table]
    forms: Sequence[Table]
    spent: float

    @property
    def tables(self) -> list[Table]:
        """All of them, in the order of the workload."""
        return [*self.marginals.values(), *self.forms]


@dataclass(frozen=True, eq=False)
class Contender:
    """A method that is ready to run."""

    name: str
    plan: Design
    """What it measures; for a method that is not private only what it starts from."""

    @classmethod
    def of(
        cls, method: str | Strategy, request: Request, budgets: Budgets, recovery: Recovery, usual: Mapping[str, object]
    ) -> Contender:
        """Plan a method by its word; options that it is not given take their `usual` values.

        Methods that know the truth begin as twophase does, the one start that needs no lambda_max.
        """
        name = str(method).partition(":")[0].strip()
        if name not in METHODS:
            raise BadInput("method", f"{short(name)} is unknown", f"choose among {', '.join(METHODS)}")
        if isinstance(method, str) and name in NOT_PRIVATE:
            strategy: Strategy = read_word(method.replace(name, TwoPhase.name, 1), ADAPTIVE, "method")
        else:
            strategy = read_strategy(method)
        if isinstance(strategy, Adaptive):
            strategy = strategy.filled(**usual)
        if not strategy.publishes_all:
            problem = f"{strategy} may leave tables out, and the errors of other tables cannot be compared with its own"
            raise BadInput("method", problem, "evaluate it publishing all tables")
        try:
            if name not in NOT_PRIVATE:
                return cls(name, compare(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen)
            if reason := strategy.refusal(request):
                raise NotApplicable(name, reason)
            return cls(name, strategy.plan(request, budgets, "none"))
        except NotApplicable as problem:
            fix = f"choose another among {', '.join(METHODS)}"
            raise BadInput("method", f"{name} cannot be used here: {problem.reason}", fix) from None

    def run(self, counts: ExactCounts, entropy: Entropy) -> Answers:
        """The tables of one run."""
        if self.name in NOT_PRIVATE:
            made, measurement, row_cost = self._exposed(counts, entropy)
        else:
            made, measurement = draw(self.plan, counts, entropy=entropy)
            row_cost = float(made.row_cost(made.budgets))
        answers, spent = FormsFromCells(made.answers(measurement)), row_cost * made.privacy.rows_per_person
        return Answers(_marginals(made.workload, answers), [answers.form(form) for form in made.workload.forms], spent)

    def _exposed(self, counts: ExactCounts, entropy: Entropy) -> tuple[Design, Measurement, float]:
        """Noisy answers in the places of the start's own; the start's noise is not what they have."""
        if not isinstance(self.plan, AdaptiveDesign):
            raise TypeError(type(self.plan).__name__)
        subject = prepared(self.plan, counts, entropy)
        exposed = not_private.METHODS[self.name](subject, entropy)
        values = assembled(subject.start, [answers[None] for answers in exposed.answers])
        return subject.start, Measurement(subject.start.digest, values, private=False), exposed.sensitivity


def truth(workload: Workload, counts: ExactCounts) -> Answers:
    """The exact tables of a workload."""
    exact = FormsFromCells(_Exact(counts))
    return Answers(_marginals(workload, exact), [exact.form(form) for form in workload.forms], np.inf)


class _Exact:
    """Exact counts as answers."""

    def __init__(self, counts: ExactCounts) -> None:
        self._counts = counts

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return self._counts.tables(rows).reshape(len(rows), *shape).astype(np.float64)


def _marginals(workload: Workload, source: FormsFromCells) -> dict[Marginal, Table]:
    found: dict[Marginal, Table] = {}
    for batch in Family.of(workload.marginals, workload.schema.sizes).batches:
        found |= dict(zip(map(tuple, batch.rows.tolist()), source.tables(batch.rows, batch.shape), strict=True))
    return {marginal: found[marginal] for marginal in workload.marginals}


@dataclass(frozen=True, kw_only=True)
class Trial:
    """What is tried: methods under one guarantee, again and again."""

    methods: Sequence[str | Strategy]
    epsilon: Number
    neighbours: str
    rows_per_person: int | None = None
    sanity_bound: Amount | Number | None = None
    """What errors are relative to, for the experiment and for all methods that are not given their own."""
    people: int | None = None
    people_epsilon: Number | None = None
    budgets: Budgets = "uniform"
    recovery: Recovery = "none"
    objective: Objective = "total"
    effort: Effort = "default"
    runs: int = 10
    """Of each method, with other noise; a cross-validation has as many folds."""
    seed: int | None = None
    """Run i draws its noise from `seed` + i, or from the operating system."""
    progress: Progress = silent

    @property
    def relative(self) -> Rule:
        """What errors are relative to, checked."""
        if self.sanity_bound is None:
            fix = "say below which count relative errors stop to matter, for example `sanity_bound=100`"
            raise BadInput("sanity_bound", "is not given", fix)
        return Rule.of(sanity_bound=self.sanity_bound, people=self.people, people_epsilon=self.people_epsilon)

    def prepare(self, workload: Workload) -> tuple[Privacy, list[Contender]]:
        """Check what is asked, and plan every method once under the guarantee; no data is needed."""
        rows = workload.schema.rows_per_person(self.rows_per_person)
        privacy = Privacy.of(epsilon=self.epsilon, neighbours=self.neighbours, rows_per_person=rows)
        request = Request(workload, privacy, objective=self.objective, effort=self.effort)
        relative = self.relative
        if self.runs < 1:
            raise BadInput("runs", f"{self.runs} is less than one", "give a whole number from 1")
        if self.seed is not None and self.seed < 0:
            raise BadInput("seed", f"{self.seed} is negative", "give a whole number from 0")
        if not self.methods:
            raise BadInput("method", "none is given", "name at least one, such as ireduct")
        if workload.cells > MAX_TABLE_CELLS:  # truth and answers are held side by side
            raise TooLarge("workload", workload.cells, MAX_TABLE_CELLS)
        usual = {name: getattr(relative, name) for name in ("sanity_bound", "people", "people_epsilon")}
        planned = (Contender.of(method, request, self.budgets, self.recovery, usual) for method in self.methods)
        return privacy, list({contender.name: contender for contender in planned}.values())

    def run(self, contender: Contender, counts: ExactCounts, number: int) -> tuple[Answers, float]:
        """The tables of one run, and the seconds that it took."""
        entropy = SystemEntropy() if self.seed is None else SeededEntropy(self.seed + number)
        start = time.perf_counter()
        return contender.run(counts, entropy), time.perf_counter() - start


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What every experiment says about a method; NOT private."""

    method: str
    budgets: str
    recovery: str
    epsilon: float
    sanity_bound: float
    overall_error: float
    standard_error: float
    """Of the overall error, which is a mean over runs; not a number for a single run."""
    spent: float
    """Epsilon used up, on average over runs; for oracle and proportional what such noise would cost, were it blind."""
    seconds: float
    """For one run, without counting."""


@dataclass(frozen=True, kw_only=True)
class Result(Outcome):
    """How a method did; NOT private."""

    runs: int
    worst_error: float
    """The largest relative error of any cell, on average over runs."""


def evaluate(workload: Workload, data: ExactCounts | Engine, trial: Trial) -> tuple[Result, ...]:
    """The errors of methods against the exact counts; `data` is counted once, if it is not counted already."""
    privacy, contenders = trial.prepare(workload)
    family = wanted(workload, [contender.plan for contender in contenders])
    counts = held(data, workload.schema, family, trial.progress)
    exact, bound = truth(workload, counts).tables, known_bound(trial.relative, counts.rows)
    results = []
    for at, contender in enumerate(contenders):
        scores = []
        for run in range(trial.runs):
            trial.progress(contender.name, (at * trial.runs + run) / (len(contenders) * trial.runs))
            answers, seconds = trial.run(contender, counts, run)
            errors = overall_error(exact, answers.tables, bound), worst_error(exact, answers.tables, bound)
            scores.append((*errors, answers.spent, seconds))
        overall, worst, spent, seconds_of_runs = np.array(scores).T
        results.append(
            Result(
                method=contender.name,
                budgets=contender.plan.budget_rule,
                recovery=str(contender.plan.recovery),
                epsilon=float(privacy.epsilon or 0),
                sanity_bound=bound,
                runs=trial.runs,
                overall_error=float(overall.mean()),
                standard_error=standard_error(overall),
                worst_error=float(worst.mean()),
                spent=float(spent.mean()),
                seconds=float(seconds_of_runs.mean()),
            )
        )
    return tuple(results)


def known_bound(rule: Rule, rows: int) -> float:
    """The sanity bound as a number; what methods pay to learn, an experiment knows."""
    bound = rule.settled(None if rule.people_epsilon is None else max(1, rows)).sanity_bound
    return math.nan if bound is None else float(bound.value)


def standard_error(values: Floats) -> float:
    """Of the mean of independent values; not a number for a single one."""
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan


class HeldTables(ExactCounts):
    """Tables by their marginals: nothing is counted or summed again when they are asked for."""

    def __init__(self, rows: int, tables: Mapping[Marginal, Ints]) -> None:
        self.rows = rows
        self._tables = tables

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """Tables of one shape."""
        if not marginals.size:  # the total, or no table at all
            return np.full((len(marginals), *(1,) * max(1, marginals.shape[1])), self.rows, dtype=np.int64)
        return np.stack([self._tables[tuple(row)] for row in marginals.tolist()])


def held(data: Engine | ExactCounts, schema: Schema, family: Family, progress: Progress = silent) -> HeldTables:
    """Read the rows once, unless they are counted already, and keep the tables."""
    if isinstance(data, ExactCounts):
        counts = data
    else:
        progress("counting", 0.0)
        counts = data.count(schema, family.levels, progress=lambda share: progress("counting", share))
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "evaluate a part of the data")
    tables: dict[Marginal, Ints] = {}
    for batch in family.batches:
        try:
            found = counts.tables(batch.rows)
        except LookupError:
            fix = "count what its plan measures, too: `wanted(workload, plans)`"
            raise BadInput("counts", "a table that a method measures has not been counted", fix) from None
        tables |= dict(zip(map(tuple, batch.rows.tolist()), found, strict=True))
    return HeldTables(counts.rows, tables)


def wanted(workload: Workload, plans: Sequence[Design] = ()) -> Family:
    """All marginals whose exact tables are needed: for the truth, and by plans."""
    sizes = workload.schema.sizes
    own = Family.of((*workload.marginals, *(form.marginal for form in workload.forms)), sizes)
    groups = [*own.levels, *(group for plan in plans for group in plan.counted)]
    top = max(group.shape[1] for group in groups)
    empty = [np.zeros((0, k), np.int32) for k in range(top + 1)]
    return Family(sizes, [np.concatenate([empty[k], *(g for g in groups if g.shape[1] == k)]) for k in range(top + 1)])


def overall_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The mean over tables of the mean relative error of their cells.

    >>> overall_error([np.array([100, 0])], [np.array([90.0, 2.0])], sanity_bound=4)
    0.3
    """
    return float(np.mean([errors.mean() for errors in _errors(truth, answers, sanity_bound)]))


def worst_error(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> float:
    """The largest relative error of any cell."""
    return float(max(errors.max() for errors in _errors(truth, answers, sanity_bound)))


def _errors(truth: Sequence[Table], answers: Sequence[Table], sanity_bound: float) -> Iterator[Floats]:
    if not sanity_bound > 0:
        raise BadInput("sanity_bound", f"{sanity_bound:g} is not positive", "give a count below which errors are alike")
    if not truth or len(truth) != len(answers):
        problem = f"there are {len(answers)} for {len(truth)} tables"
        raise BadInput("answers", problem, "give one for each, and at least one")
    for q, y in zip(truth, answers, strict=True):
        if q.shape != y.shape:  # numpy would broadcast
            raise BadInput("answers", f"a table of shape {y.shape} answers one of shape {q.shape}", "match the shapes")
        yield np.abs(np.subtract(y, q, dtype=np.float64)) / np.maximum(q, sanity_bound, dtype=np.float64)
