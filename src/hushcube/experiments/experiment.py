"""Run methods on real counts again and again, and compare their answers with the truth.

overall error  =  mean over runs of the mean over tables of the mean over cells of |y - q| / max(q, delta)
                                                                      [Xiao et al. 2011, Definition 6 and section 6.1]
Nothing of this is private: it is for the owner of the data, and for nobody else.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.refinement import Amount, Rule
from hushcube.designs.request import MAX_TABLE_CELLS, Effort, Objective, Request
from hushcube.errors import BadInput, TooLarge
from hushcube.experiments.methods import Contender, truth
from hushcube.experiments.truth import held, overall_error, wanted, worst_error
from hushcube.model.arrays import Floats
from hushcube.model.form import QueryTable
from hushcube.model.privacy import Number, Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.engines import Engine, ExactCounts
from hushcube.private.noise import Entropy, SeededEntropy, SystemEntropy
from hushcube.progress import Progress, silent
from hushcube.strategies import Strategy


@dataclass(frozen=True)
class Result:
    """How a method did; NOT private."""

    method: str
    budgets: str
    recovery: str
    epsilon: float
    sanity_bound: float
    runs: int
    overall_error: float
    standard_error: float
    """Of the overall error, which is a mean over runs; not a number for a single run."""
    worst_error: float
    """The largest relative error of any cell, on average over runs."""
    spent: float
    """Epsilon used up, on average over runs; for oracle and proportional what such noise would cost, were it blind."""
    seconds: float
    """For one run, without counting."""


def evaluate(
    schema: Schema,
    workload: str | Sequence[str],
    data: ExactCounts | Engine,
    *,
    methods: Sequence[str | Strategy],
    epsilon: Number,
    neighbours: str,
    sanity_bound: Amount | Number | None = None,
    people: int | None = None,
    people_epsilon: Number | None = None,
    budgets: Budgets = "uniform",
    recovery: Recovery = "none",
    runs: int,
    seed: int | None = None,
    queries: QueryTable | None = None,
    rows_per_person: int | None = None,
    progress: Progress | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
) -> tuple[Result, ...]:
    """The errors of methods against the exact counts; `data` is counted once, if it is not counted already.

    Run i draws its noise from `seed` + i, or from the operating system. The result is NOT private.
    """
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(epsilon=epsilon, neighbours=neighbours, rows_per_person=rows)
    relative = relative_rule(sanity_bound, people, people_epsilon)
    request = Request(Workload.parse(workload, schema, queries), privacy, objective=objective, effort=effort)
    contenders = prepare(request, methods, budgets, recovery, relative, runs=runs, seed=seed)
    report = progress or silent
    counts = held(data, request.schema, wanted(request.workload, [contender.plan for contender in contenders]), report)
    exact, bound = truth(request.workload, counts).tables, known_bound(relative, counts.rows)
    results = []
    for at, contender in enumerate(contenders):
        runs_of_it = []
        for run in range(runs):
            report(contender.name, (at * runs + run) / (len(contenders) * runs))
            start = time.perf_counter()
            answers = contender.run(counts, entropy(seed, run))
            seconds = time.perf_counter() - start
            errors = overall_error(exact, answers.tables, bound), worst_error(exact, answers.tables, bound)
            runs_of_it.append((*errors, answers.spent, seconds))
        overall, worst, spent, seconds = np.array(runs_of_it).T
        results.append(
            Result(
                contender.name,
                contender.plan.budget_rule,
                contender.plan.recovery,
                float(privacy.epsilon or 0),
                bound,
                runs,
                float(overall.mean()),
                standard_error(overall),
                float(worst.mean()),
                float(spent.mean()),
                float(seconds.mean()),
            )
        )
    return tuple(results)


def relative_rule(sanity_bound: Amount | Number | None, people: int | None, people_epsilon: Number | None) -> Rule:
    """What errors are relative to, for the experiment and for all methods that are not given their own."""
    if sanity_bound is None:
        fix = "say below which count relative errors stop to matter, for example `sanity_bound=100`"
        raise BadInput("sanity_bound", "is not given", fix)
    return Rule.of(sanity_bound=sanity_bound, people=people, people_epsilon=people_epsilon)


def prepare(
    request: Request,
    methods: Sequence[str | Strategy],
    budgets: Budgets,
    recovery: Recovery,
    relative: Rule,
    *,
    runs: int,
    seed: int | None,
) -> list[Contender]:
    """Check what is asked, and plan every method once; no data is needed."""
    if runs < 1:
        raise BadInput("runs", f"{runs} is less than one", "give a whole number from 1")
    if seed is not None and seed < 0:
        raise BadInput("seed", f"{seed} is negative", "give a whole number from 0")
    if not methods:
        raise BadInput("method", "none is given", "name at least one, such as ireduct")
    if request.workload.cells > MAX_TABLE_CELLS:  # truth and answers are held side by side
        raise TooLarge("workload", request.workload.cells, MAX_TABLE_CELLS)
    usual = {name: getattr(relative, name) for name in ("sanity_bound", "people", "people_epsilon")}
    contenders = [Contender.of(method, request, budgets, recovery, usual) for method in methods]
    return list({contender.name: contender for contender in contenders}.values())


def known_bound(rule: Rule, rows: int) -> float:
    """The sanity bound as a number; what methods pay to learn, an experiment knows."""
    bound = rule.settled(None if rule.people_epsilon is None else max(1, rows)).sanity_bound
    return math.nan if bound is None else float(bound.value)


def entropy(seed: int | None, run: int) -> Entropy:
    """The noise of one run."""
    return SystemEntropy() if seed is None else SeededEntropy(seed + run)


def standard_error(values: Floats) -> float:
    """Of the mean of independent values.

    >>> standard_error(np.array([1.0, 3.0])), standard_error(np.array([1.0]))
    (1.0, nan)
    """
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else math.nan
