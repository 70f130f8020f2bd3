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

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, DataError
from hushcube.experiments.contender import Setting
from hushcube.experiments.errors import RunErrors, Table, standard_error
from hushcube.experiments.experiment import digest
from hushcube.experiments.runs import repeated
from hushcube.experiments.trial import Trial
from hushcube.experiments.truth import Answers, HeldTables, truth, wanted
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal, position_rows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import code_type
from hushcube.private.engines.contract import refused
from hushcube.private.engines.counting import Totals
from hushcube.private.engines.duckdb import coded, recognise
from hushcube.progress import Progress

Codes = NDArray[Any]
EXACT: Final = "exact"  # the classifier without noise, for reference
_BLOCK: Final = 1 << 14  # rows that are scored at a time: their scores stay in the processor's cache


@dataclass(frozen=True, kw_only=True)
class Classified(Setting):
    """How the classifiers of a setting did, on average over folds; NOT private."""

    sanity_bound: float | str | None
    folds: int
    overall_error: float
    """Of the tables that a classifier is made from; not a number without a sanity bound."""
    standard_error: float
    accuracy: float
    """The share of rows whose class was predicted."""
    accuracy_error: float
    """Its standard error; folds share most of their rows, so it is rather too small."""
    spent: float
    seconds: float
    """For the noise of one fold."""

    @classmethod
    def of(cls, setting: Setting, runs: Sequence[RunErrors], bound: float | str | None) -> Classified:
        """The averages over folds."""
        errors, shares, spent, took = np.array([(r.relative.mean(), r.accuracy, r.spent, r.seconds) for r in runs]).T
        return cls(
            **vars(setting),
            sanity_bound=bound,
            folds=len(runs),
            overall_error=float(errors.mean()),
            standard_error=standard_error(errors),
            accuracy=float(shares.mean()),
            accuracy_error=standard_error(shares),
            spent=float(spent.mean()),
            seconds=float(took.mean()),
        )


def cross_validate(
    schema: Schema, columns: Mapping[int, Codes] | Callable[[], Mapping[int, Codes]], class_name: str, trial: Trial
) -> tuple[tuple[Classified, ...], dict[str, str]]:
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
    if trial.keep is not None and trial.seed is None:
        raise BadInput("seed", "is not given: folds are divided anew each time, and none can be kept", "give a seed")
    contenders, skipped = trial.prepare(workload)
    columns = columns() if callable(columns) else columns
    rows = _checked(schema, columns)
    if rows < folds:
        raise BadInput("folds", "there are more folds than rows", "give fewer folds, or more data")
    trial.progress("counting", 0.0)
    family = wanted(workload, [contender.plan for contender in contenders])
    division = Division(schema, columns, family, divide(rows, folds, trial.seed), folds)
    target, bound = schema.position(class_name), trial.known_bound(workload, rows)

    def run(at: int, fold: int) -> RunErrors:
        """The first setting has no noise."""
        training, held_out = division.fold(fold)
        exact = truth(workload, training)
        start = time.perf_counter()
        answers = contenders[at - 1].run(training, trial.entropy(fold)) if at else exact
        more = {"spent": answers.spent, "seconds": time.perf_counter() - start}
        share = _accuracy(answers, target, held_out)
        return RunErrors.of(exact.tables, answers.tables, bound.by_table, **more, accuracy=share)

    about = {
        "class": class_name,
        "data set": digest(list(division.totals.values())),
        "number of folds": folds,
        "sanity bound": bound.told,
        "seed": trial.seed,
    }
    names, keys = ([EXACT, *(getattr(own, name) for own in contenders)] for name in ("name", "key"))
    settings = [Setting(method=EXACT), *(own.setting for own in contenders)]
    found = repeated(run, names, keys, about, trial)
    return tuple(Classified.of(*each, bound.told) for each in zip(settings, found, strict=True)), skipped


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


class Division:
    """Rows in folds, counted in one pass."""

    def __init__(self, schema: Schema, columns: Mapping[int, Codes], family: Family, places: Codes, folds: int) -> None:
        extra = len(schema)
        marginals = sorted(marginal for marginal in family if marginal)
        cells = [np.zeros(folds * schema.cells(marginal), np.int64) for marginal in marginals]
        tables = [(position_rows((extra, *m)), own[None]) for m, own in zip(marginals, cells, strict=True)]
        Totals(tables, (*schema.sizes, folds)).add({**columns, extra: places}, len(places))
        shapes = [(folds, *schema.shape(marginal)) for marginal in marginals]
        self._counted = {m: own.reshape(shape) for m, own, shape in zip(marginals, cells, shapes, strict=True)}
        self.totals: dict[Marginal, Ints] = {m: by_fold.sum(axis=0) for m, by_fold in self._counted.items()}
        self._columns, self._places = columns, places

    def fold(self, number: int) -> tuple[HeldTables, dict[int, Codes]]:
        """The tables of all rows outside a fold, and its own rows."""
        own = np.flatnonzero(self._places == number)
        outside = {m: self.totals[m] - by_fold[number] for m, by_fold in self._counted.items()}
        held_out = {i: column[own] for i, column in self._columns.items()}
        return HeldTables(len(self._places) - len(own), outside), held_out


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
