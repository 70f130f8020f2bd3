"""A naive Bayes classifier from marginals, exact or noisy.

predicted class  =  argmax_c  log P(c) + sum over features i of log P(v_i | c)     [Xiao et al. 2011, Section 6.5]
y <- max(y + 1, 1) in every cell of every marginal                                 [footnote 3]
P(c) = y_c / sum_c y_c,     P(v | c) = y_cv / sum_v y_cv

On exact counts these are the add-one estimates (n_cv + 1) / (n_c + values). Each table is divided by its own sums, so
that the noise of one marginal stays out of the probabilities of another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.release import Release
from hushcube.errors import BadInput, DataError, QueryError
from hushcube.model.arrays import Floats

Table = NDArray[Any]
Codes = NDArray[Any]

_BLOCK: Final = 1 << 14
"""Rows that are scored at a time: their scores stay in the processor's cache."""


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
                raise BadInput(
                    f"feature {number}",
                    f"its table has the shape {table.shape}, but there are {len(class_table)} classes",
                    "give a table of classes by values",
                )
        return cls(_log_shares(class_table), {number: _log_shares(table) for number, table in features.items()})

    @classmethod
    def from_release(cls, release: Release, class_name: str) -> NaiveBayes:
        """The classifier of a release: features are the attributes published in a two-way table with the class.

        They go by their positions in the schema.
        """
        schema = release.schema
        own = release.table([class_name])
        position = schema.position(class_name)
        features = {}
        for marginal in release.plan.workload.published:
            if len(marginal) == 2 and position in marginal:
                values = release.table([schema.names[i] for i in marginal]).values
                first, second = marginal
                features[second if first == position else first] = values if first == position else values.T
        if not features:
            raise QueryError(
                "class_name",
                f"no two-way table with {class_name} is published",
                f"release some, such as {class_name} with each other attribute",
            )
        return cls.of(own.values, features)

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
                raise DataError(
                    f"feature {number}", "a code is outside its domain", f"use the codes 0 to {table.shape[1] - 1}"
                )
        predicted = np.empty(rows, dtype=np.min_scalar_type(len(self.prior) - 1))
        for start in range(0, rows, _BLOCK):
            block = slice(start, start + _BLOCK)
            predicted[block] = self._best([(codes[block], table) for codes, table in used])
        return predicted

    def _best(self, used: list[tuple[Codes, Floats]]) -> Codes:
        scores = np.empty((len(self.prior), len(used[0][0])))
        scores[:] = self.prior[:, None]
        for codes, table in used:
            scores += table.take(codes, axis=1)
        return np.asarray(scores.argmax(axis=0))


def accuracy(predicted: Codes, actual: Codes) -> float:
    """The share of rows whose class was predicted.

    >>> accuracy(np.array([0, 1, 1, 2]), np.array([0, 1, 2, 2]))
    0.75
    """
    if predicted.shape != actual.shape or not predicted.size:
        raise BadInput("predicted", f"{predicted.size} for {actual.size} rows", "give one for each, and at least one")
    return float((predicted == actual).mean())


def folds(rows: int, k: int, seed: int | None) -> Codes:
    """The number of each row's fold, 0 to k-1: a random division whose parts differ by at most one row.

    Without a seed it is another one every time.

    >>> np.bincount(folds(10, 3, seed=1)).tolist()
    [4, 3, 3]
    """
    if not 2 <= k <= rows:
        raise BadInput("k", f"{k} folds of {rows} rows", "use at least 2 folds, and no more than rows")
    return np.random.default_rng(seed).permutation((np.arange(rows) % k).astype(np.min_scalar_type(k - 1)))


def _log_shares(table: Table) -> Floats:
    """The post-processed cells' logarithms, less those of their sums along the last axis."""
    cells = np.maximum(np.asarray(table, dtype=np.float64) + 1, 1)
    return np.asarray(np.log(cells / cells.sum(axis=-1, keepdims=True)))
