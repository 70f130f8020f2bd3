"""How well noisy marginals serve a classifier: cross-validation of naive Bayes.       [Xiao et al. 2011, section 6.5]

For each fold, the class marginal and all two-way marginals of the class with another attribute are measured on the
other folds' rows; a classifier made from the noisy tables predicts the rows of the fold. The tables of all folds are
counted in one pass, with the fold as one more attribute: a training table is the total less the fold's own.

predicted class  =  argmax_c  log P(c) + sum over features i of log P(v_i | c)
y <- max(y + 1, 1) in every cell of every marginal                                                          [footnote 3]
P(c) = y_c / sum_c y_c,     P(v | c) = y_cv / sum_v y_cv

On exact counts these are the add-one estimates (n_cv + 1) / (n_c + values). Each table is divided by its own sums, so
that the noise of one marginal stays out of the probabilities of another.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, DataError
from hushcube.experiments.experiment import (
    Answers,
    HeldTables,
    Outcome,
    Table,
    Trial,
    known_bound,
    overall_error,
    standard_error,
    truth,
    wanted,
)
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.boundary import guarded
from hushcube.private.engines import counting
from hushcube.private.engines.coding import code_type
from hushcube.private.engines.contract import refused
from hushcube.private.engines.duckdb import coded, recognise
from hushcube.progress import Progress

Codes = NDArray[Any]
EXACT: Final = "exact"  # the classifier without noise, for reference
_BLOCK: Final = 1 << 14  # rows that are scored at a time: their scores stay in the processor's cache


@dataclass(frozen=True, kw_only=True)
class Classified(Outcome):
    """How a method's classifiers did, on average over folds; errors are those of the tables. NOT private."""

    folds: int
    accuracy: float
    """The share of rows whose class was predicted."""
    accuracy_error: float
    """Its standard error; folds share most of their rows, so it is rather too small."""


def cross_validate(
    schema: Schema, columns: Mapping[int, Codes] | Callable[[], Mapping[int, Codes]], class_name: str, trial: Trial
) -> tuple[Classified, ...]:
    """The accuracy of classifiers from noisy marginals, and of the one from exact marginals before them.

    `columns` holds the coded rows by schema position, or reads them once all else is known to be right. The folds are
    divided by the trial's seed; without one, they are new every time. The result is NOT private.
    """
    if schema.unit is not None:
        fix = "evaluate its tables with `workload`, or use a schema without a unit"
        raise BadInput("classify", "predicts row by row, but the schema counts people", fix)
    workload, folds = class_workload(schema, class_name), trial.runs
    if folds < 2:
        raise BadInput("folds", f"{folds} is less than two", "give a whole number from 2, such as 10")
    privacy, contenders = trial.prepare(workload)
    columns = columns() if callable(columns) else columns
    rows = _checked(schema, columns)
    if rows < folds:
        raise BadInput("folds", "there are more folds than rows", "give fewer folds, or more data")
    division = divide(rows, folds, trial.seed)
    plans = {contender.name: contender.plan for contender in contenders}
    family = wanted(workload, list(plans.values()))
    trial.progress("counting", 0.0)
    scores: dict[str, list[tuple[float, ...]]] = {name: [] for name in (EXACT, *plans)}
    target, bound = schema.position(class_name), known_bound(trial.relative, rows)
    for fold, training in enumerate(_training(schema, columns, family, division, folds)):
        own = np.flatnonzero(division == fold)
        held_out = {i: column[own] for i, column in columns.items()}
        exact = truth(workload, training)
        scores[EXACT].append((0.0, _accuracy(exact, target, held_out), exact.spent, 0.0))
        for at, contender in enumerate(contenders):
            trial.progress(contender.name, (fold * len(contenders) + at) / (folds * len(contenders)))
            answers, seconds = trial.run(contender, training, fold)
            error, share = overall_error(exact.tables, answers.tables, bound), _accuracy(answers, target, held_out)
            scores[contender.name].append((error, share, answers.spent, seconds))
    results = []
    for name, runs in scores.items():
        errors, shares, spent, took = np.array(runs).T
        results.append(
            Classified(
                method=name,
                budgets=trial.budgets if name == EXACT else plans[name].budget_rule,
                recovery="none" if name == EXACT else str(plans[name].recovery),
                epsilon=math.inf if name == EXACT else float(privacy.epsilon or 0),
                sanity_bound=bound,
                folds=folds,
                overall_error=float(errors.mean()),
                standard_error=standard_error(errors),
                accuracy=float(shares.mean()),
                accuracy_error=standard_error(shares),
                spent=float(spent.mean()),
                seconds=float(took.mean()),
            )
        )
    return tuple(results)


def class_workload(schema: Schema, class_name: str) -> Workload:
    """The marginals that a classifier is made from: the class alone, and with each other attribute."""
    target = schema.position(class_name)
    if len(schema) < 2:
        raise BadInput("classify", "the schema has no other attribute", "declare what the class is predicted from")
    marginals = ((target,), *(schema.marginal([class_name, name]) for name in schema.names if name != class_name))
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
    tables = [((place, *marginal), own) for marginal, own in zip(marginals, cells, strict=True)]
    counting.count({**columns, place: division}, len(division), (*schema.sizes, folds), tables, None)
    shaped = (flat.reshape(folds, *schema.shape(marginal)) for marginal, flat in zip(marginals, cells, strict=True))
    counted: dict[Marginal, Ints] = dict(zip(marginals, shaped, strict=True))
    totals = {marginal: by_fold.sum(axis=0) for marginal, by_fold in counted.items()}
    sizes = np.bincount(division, minlength=folds)
    for fold in range(folds):
        rows = len(division) - int(sizes[fold])
        yield HeldTables(rows, {m: totals[m] - by_fold[fold] for m, by_fold in counted.items()})


def _accuracy(answers: Answers, target: int, held_out: Mapping[int, Codes]) -> float:
    """Of the classifier that is made from a run's tables."""
    features = {}
    for marginal, table in answers.marginals.items():
        if len(marginal) == 2:
            first, second = marginal
            features[second if first == target else first] = table if first == target else table.T
    return accuracy(NaiveBayes.of(answers.marginals[(target,)], features).predict(held_out), held_out[target])


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
    empty = [np.zeros(0, code_type(attribute.size)) for attribute in attributes]
    columns = [np.concatenate(parts) for parts in zip(empty, *batches, strict=True)]
    for attribute, column in zip(attributes, columns, strict=True):
        top = int(column.max(initial=0))
        if top >= attribute.size:
            raise refused(attribute, missing=top == attribute.size)
    order = np.lexsort(columns[::-1])
    return {at: column[order] for at, column in enumerate(columns)}


@dataclass(frozen=True, eq=False)
class NaiveBayes:
    """Log-probabilities of the classes and of each feature's values; features go by numbers, such as their positions.

    >>> counts = np.array([[8, 1], [1, 4]])
    >>> NaiveBayes.of(counts.sum(axis=1), {3: counts}).predict({3: np.array([0, 1, 1])}).tolist()
    [0, 1, 1]
    """

    prior: Floats
    likelihoods: Mapping[int, Floats]
    """log P(v | c) as (classes, values)."""

    @classmethod
    def of(cls, class_table: Table, features: Mapping[int, Table]) -> NaiveBayes:
        """The classifier of a class marginal and, for each feature, a table of shape (classes, values)."""
        if not features:
            raise BadInput("features", "there are none", "give a table of classes by values for at least one")
        for number, table in features.items():
            if table.ndim != 2 or len(table) != len(class_table):
                problem = f"its table has the shape {table.shape}, but there are {len(class_table)} classes"
                raise BadInput(f"feature {number}", problem, "give a table of classes by values")
        return cls(_log_shares(class_table), {number: _log_shares(table) for number, table in features.items()})

    def predict(self, columns: Mapping[int, Codes]) -> Codes:
        """The most probable class of each row; the lowest of those that are equally probable."""
        missing = sorted(self.likelihoods.keys() - columns.keys())
        if missing:
            raise DataError(f"feature {missing[0]}", "its column is missing", "give a column of codes for each feature")
        used = [(np.asarray(columns[number]), table) for number, table in self.likelihoods.items()]
        rows = len(used[0][0])
        for number, (codes, table) in zip(self.likelihoods, used, strict=True):
            if len(codes) != rows:
                raise DataError(f"feature {number}", "its column is longer or shorter than another", "give whole rows")
            if rows and (codes.min() < 0 or codes.max() >= table.shape[1]):  # numpy would count negatives from the end
                fix = f"use the codes 0 to {table.shape[1] - 1}"
                raise DataError(f"feature {number}", "a code is outside its domain", fix)
        predicted = np.empty(rows, dtype=np.min_scalar_type(len(self.prior) - 1))
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            scores = np.repeat(self.prior[:, None], len(predicted[block]), axis=1)
            for codes, table in used:
                scores += table.take(codes[block], axis=1)
            predicted[block] = scores.argmax(axis=0)
        return predicted


def accuracy(predicted: Codes, actual: Codes) -> float:
    """The share of rows whose class was predicted."""
    if predicted.shape != actual.shape or not predicted.size:
        raise BadInput("predicted", f"{predicted.size} for {actual.size} rows", "give one for each, and at least one")
    return float((predicted == actual).mean())


def divide(rows: int, k: int, seed: int | None) -> Codes:
    """The number of each row's fold, 0 to k-1: a random division whose parts differ by at most one row."""
    if not 2 <= k <= rows:
        raise BadInput("k", f"{k} folds of {rows} rows", "use at least 2 folds, and no more than rows")
    return np.random.default_rng(seed).permutation((np.arange(rows) % k).astype(np.min_scalar_type(k - 1)))


def _log_shares(table: Table) -> Floats:
    """The post-processed cells' logarithms, less those of their sums along the last axis."""
    cells = np.maximum(np.asarray(table, dtype=np.float64) + 1, 1)
    return np.asarray(np.log(cells / cells.sum(axis=-1, keepdims=True)))
