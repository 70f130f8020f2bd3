"""How well noisy marginals serve a classifier: cross-validation of naive Bayes.       [Xiao et al. 2011, section 6.5]

For each fold, the class marginal and all two-way marginals of the class with another attribute are measured on the
other folds' rows; a classifier made from the noisy tables predicts the rows of the fold. The tables of all folds are
counted in one pass, with the fold as one more attribute: a training table is the total less the fold's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.refinement import Amount
from hushcube.designs.request import Effort, Objective, Request
from hushcube.errors import BadInput, DataError
from hushcube.experiments.experiment import Answers, entropy, known_bound, prepare, relative_rule, standard_error, truth
from hushcube.experiments.naive_bayes import NaiveBayes, accuracy
from hushcube.experiments.naive_bayes import folds as divide
from hushcube.experiments.truth import HeldTables, overall_error, wanted
from hushcube.lattice.family import Family
from hushcube.model.arrays import Ints, Marginal
from hushcube.model.privacy import Number, Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.boundary import guarded
from hushcube.private.engines import kernels
from hushcube.private.engines.coding import code_type
from hushcube.private.engines.duckdb import coded, recognise
from hushcube.private.engines.fit import refused
from hushcube.progress import Progress, silent
from hushcube.strategies import Strategy

Codes = NDArray[Any]
EXACT: Final = "exact"
"""The classifier without noise, for reference."""


@dataclass(frozen=True)
class Classified:
    """How a method's classifiers did; NOT private."""

    method: str
    budgets: str
    recovery: str
    epsilon: float
    sanity_bound: float
    folds: int
    overall_error: float
    """Of the tables that a classifier is made from, on average over folds."""
    standard_error: float
    accuracy: float
    """The share of rows whose class was predicted, on average over folds."""
    accuracy_error: float
    """Its standard error; folds share most of their rows, so it is rather too small."""
    spent: float
    seconds: float
    """For the noise of one fold."""


@dataclass
class _Score:
    budgets: str
    recovery: str
    errors: list[float] = field(default_factory=list)
    accuracies: list[float] = field(default_factory=list)
    spent: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def cross_validate(
    schema: Schema,
    columns: Mapping[int, Codes] | Callable[[], Mapping[int, Codes]],
    class_name: str,
    *,
    methods: Sequence[str | Strategy],
    epsilon: Number,
    neighbours: str,
    sanity_bound: Amount | Number | None = None,
    people: int | None = None,
    people_epsilon: Number | None = None,
    budgets: Budgets = "uniform",
    recovery: Recovery = "none",
    folds: int = 10,
    seed: int | None = None,
    rows_per_person: int | None = None,
    progress: Progress | None = None,
    objective: Objective = "total",
    effort: Effort = "default",
) -> tuple[Classified, ...]:
    """The accuracy of classifiers from noisy marginals, and of the one from exact marginals before them.

    `columns` holds the coded rows by schema position, or reads them once all else is known to be right. The folds are
    divided by `seed`, and fold i draws its noise from `seed` + i; without one, both are new every time. The result is
    NOT private.
    """
    if schema.unit is not None:
        fix = "evaluate its tables with `workload`, or use a schema without a unit"
        raise BadInput("classify", "predicts row by row, but the schema counts people", fix)
    rows = schema.rows_per_person(rows_per_person)
    privacy = Privacy.of(epsilon=epsilon, neighbours=neighbours, rows_per_person=rows)
    relative = relative_rule(sanity_bound, people, people_epsilon)
    request = Request(class_workload(schema, class_name), privacy, objective=objective, effort=effort)
    if folds < 2:
        raise BadInput("folds", f"{folds} is less than two", "give a whole number from 2, such as 10")
    contenders = prepare(request, methods, budgets, recovery, relative, runs=folds, seed=seed)
    report = progress or silent
    columns = columns() if callable(columns) else columns
    rows = _checked(schema, columns)
    if rows < folds:
        raise BadInput("folds", "there are more folds than rows", "give fewer folds, or more data")
    division = divide(rows, folds, seed)
    family = wanted(request.workload, [contender.plan for contender in contenders])
    report("counting", 0.0)
    scores = {EXACT: _Score(budgets, "none")}
    scores |= {c.name: _Score(c.plan.budget_rule, c.plan.recovery) for c in contenders}
    target, bound = schema.position(class_name), known_bound(relative, rows)
    for fold, training in enumerate(_training(schema, columns, family, division, folds)):
        own = np.flatnonzero(division == fold)
        held_out = {i: column[own] for i, column in columns.items()}
        exact = truth(request.workload, training)
        _score(scores[EXACT], exact, exact, target, held_out, bound)
        for at, contender in enumerate(contenders):
            report(contender.name, (fold * len(contenders) + at) / (folds * len(contenders)))
            start = time.perf_counter()
            answers = contender.run(training, entropy(seed, fold))
            scores[contender.name].seconds.append(time.perf_counter() - start)
            _score(scores[contender.name], exact, answers, target, held_out, bound)
    return tuple(
        Classified(
            name,
            score.budgets,
            score.recovery,
            math.inf if name == EXACT else float(privacy.epsilon or 0),
            bound,
            folds,
            float(np.mean(score.errors)),
            standard_error(np.array(score.errors)),
            float(np.mean(score.accuracies)),
            standard_error(np.array(score.accuracies)),
            float(np.mean(score.spent)),
            float(np.mean(score.seconds or [0.0])),
        )
        for name, score in scores.items()
    )


def class_workload(schema: Schema, class_name: str) -> Workload:
    """The marginals that a classifier is made from: the class alone, and with each other attribute.

    >>> from hushcube.samples import TITANIC
    >>> class_workload(TITANIC, "survived").words
    ('survived', 'class*survived', 'sex*survived', 'age*survived')
    """
    target = schema.position(class_name)
    if len(schema) < 2:
        raise BadInput("classify", "the schema has no other attribute", "declare what the class is predicted from")
    pairs = [schema.marginal([class_name, name]) for name in schema.names if name != class_name]
    marginals = ((target,), *pairs)
    return Workload(schema, tuple(map(schema.describe, marginals)), marginals, (1.0,) * len(marginals))


def _checked(schema: Schema, columns: Mapping[int, Codes]) -> int:
    """The number of rows, if columns are whole and hold codes of the schema."""
    fix = "give `coded_rows(schema, data)`"
    if set(columns) != set(range(len(schema))) or len({len(column) for column in columns.values()}) != 1:
        raise DataError("columns", "are not one for each attribute, of one length", fix)
    for i, column in columns.items():
        if column.dtype.kind not in "iu" or (column.size and not 0 <= column.min() <= column.max() < schema.sizes[i]):
            raise DataError(f"attribute {schema.names[i]!r}", "holds codes outside its domain", fix)
    return len(columns[0])


def _training(
    schema: Schema, columns: Mapping[int, Codes], family: Family, division: Codes, folds: int
) -> Iterator[HeldTables]:
    """The tables of all rows outside each fold."""
    place = len(schema)
    marginals = sorted(marginal for marginal in family if marginal)
    cells = [np.zeros(folds * schema.cells(marginal), np.int64) for marginal in marginals]
    kernels.count(
        {**columns, place: division},
        len(division),
        (*schema.sizes, folds),
        [(place, *marginal) for marginal in marginals],
        cells,
    )
    counted: dict[Marginal, Ints] = {
        marginal: flat.reshape(folds, *schema.shape(marginal)) for marginal, flat in zip(marginals, cells, strict=True)
    }
    totals = {marginal: by_fold.sum(axis=0) for marginal, by_fold in counted.items()}
    sizes = np.bincount(division, minlength=folds)
    for fold in range(folds):
        rows = len(division) - int(sizes[fold])
        yield HeldTables(rows, {m: totals[m] - by_fold[fold] for m, by_fold in counted.items()})


def _score(
    score: _Score, exact: Answers, answers: Answers, target: int, held_out: Mapping[int, Codes], bound: float
) -> None:
    features = {}
    for marginal, table in answers.marginals.items():
        if len(marginal) == 2:
            first, second = marginal
            features[second if first == target else first] = table if first == target else table.T
    classifier = NaiveBayes.of(answers.marginals[(target,)], features)
    score.accuracies.append(accuracy(classifier.predict(held_out), held_out[target]))
    score.errors.append(overall_error(exact.tables, answers.tables, bound))
    score.spent.append(answers.spent)


@guarded
def coded_rows(
    schema: Schema, data: object, *, query: str | None = None, progress: Progress | None = None
) -> dict[int, Codes]:
    """The columns of a source by schema position, as codes of one or two bytes where sizes allow.

    Rows come in the order of their codes: databases hand them out in any order, and a seed shall mean one division.
    """
    attributes = schema.attributes
    batches: list[list[Codes]] = []
    seen = 0
    with recognise(data, query=query).open([attribute.source_column for attribute in attributes]) as opened:
        for batch in coded(opened, attributes):
            batches.append(batch)
            seen += len(batch[0])
            if progress and opened.rows:
                progress("reading", min(1.0, seen / opened.rows))
    columns = [
        np.concatenate([np.zeros(0, code_type(attribute.size)), *(batch[at] for batch in batches)])
        for at, attribute in enumerate(attributes)
    ]
    for attribute, column in zip(attributes, columns, strict=True):
        top = int(column.max(initial=0))
        if top >= attribute.size:
            raise refused(attribute, missing=top == attribute.size)
    order = np.lexsort(columns[::-1])
    return {at: column[order] for at, column in enumerate(columns)}
