"""Naive Bayes from marginals: exact fractions, one row at a time, are the judge."""

from fractions import Fraction
from math import prod

import numpy as np
import pytest

from helpers import exact_table, make_schema, random_codes
from hushcube.errors import BadInput, DataError, HushcubeError
from hushcube.experiments import classify
from hushcube.experiments.classify import NaiveBayes, accuracy, divide

SIZES = (4, 3, 2, 7)
CLASS = 1


def scalar_scores(class_table, features, row):
    """P(c) times the product of P(v | c), in fractions, by the definition: cells are max(y + 1, 1)."""

    def cell(y):
        return max(Fraction(float(y)) + 1, Fraction(1))

    total = sum(map(cell, class_table))
    return [
        cell(y) / total * prod(cell(t[c][row[i]]) / sum(map(cell, t[c])) for i, t in features.items())
        for c, y in enumerate(class_table)
    ]


def marginals(codes):
    schema = make_schema(SIZES)
    features = {}
    for i in range(len(SIZES)):
        if i != CLASS:
            table = exact_table(schema, codes, tuple(sorted((i, CLASS))))
            features[i] = table if i > CLASS else table.T
    return exact_table(schema, codes, (CLASS,)), features


def dependent_codes(rows, seed):
    """Features that lean towards the class."""
    codes = random_codes(SIZES, rows, seed)
    leaning = np.random.default_rng(seed).random(codes.shape) < 0.4
    return np.where(leaning, codes[:, [CLASS]] % np.array(SIZES), codes)


def columns(codes):
    return {i: codes[:, i].astype(np.uint8) for i in range(codes.shape[1])}


def assert_best(classifier, class_table, features, codes):
    """Each row's class has the largest score; the only one, or the lowest but for rounding."""
    for row, found in zip(codes, classifier.predict(columns(codes)), strict=True):
        scores = scalar_scores(class_table, features, row)
        assert scores[found] == max(scores)


@pytest.mark.parametrize("seed", range(3))
def test_exact_counts_give_the_class_of_the_scalar_definition(seed, monkeypatch):
    monkeypatch.setattr(classify, "_BLOCK", 64)  # several blocks, the last one short
    codes = dependent_codes(150, seed)
    class_table, features = marginals(codes)
    assert_best(NaiveBayes.of(class_table, features), class_table, features, codes)


def test_noisy_counts_give_the_class_of_the_scalar_definition():
    codes = dependent_codes(150, seed=5)
    random = np.random.default_rng(6)
    class_table, features = marginals(codes)
    class_table = class_table + random.laplace(0, 20, class_table.shape)
    features = {i: table + random.laplace(0, 20, table.shape) for i, table in features.items()}
    assert min(table.min() for table in features.values()) < -1  # the floor is used
    assert_best(NaiveBayes.of(class_table, features), class_table, features, codes)


def test_exact_counts_give_the_textbook_probabilities():
    """(n_c + 1) / (n + classes) and (n_cv + 1) / (n_c + values)."""
    codes = dependent_codes(300, seed=8)
    class_table, features = marginals(codes)
    classifier = NaiveBayes.of(class_table, features)
    assert np.allclose(np.exp(classifier.prior), (class_table + 1) / (300 + len(class_table)), rtol=1e-13)
    for i, table in features.items():
        textbook = (table + 1) / (class_table[:, None] + SIZES[i])
        assert np.allclose(np.exp(classifier.likelihoods[i]), textbook, rtol=1e-13)


def test_cells_below_zero_become_one():
    classifier = NaiveBayes.of(np.array([-7.5, 2.0]), {0: np.array([[-0.5, 1.0], [-100.0, 0.0]])})
    assert np.allclose(np.exp(classifier.prior), [1 / 4, 3 / 4])
    assert np.allclose(np.exp(classifier.likelihoods[0]), [[1 / 3, 2 / 3], [1 / 2, 1 / 2]])


def test_the_lowest_of_equal_classes_is_predicted():
    table = np.array([[0, 0], [3, 3], [3, 3]])
    assert NaiveBayes.of(np.array([0, 6, 6]), {0: table}).predict({0: np.array([0, 1])}).tolist() == [1, 1]


def test_many_features_do_not_underflow():
    rare = np.array([[10**9, 0], [10**9, 1]])
    classifier = NaiveBayes.of(np.array([5, 5]), dict.fromkeys(range(200), rare))
    assert classifier.predict(dict.fromkeys(range(200), np.array([1, 0]))).tolist() == [1, 0]


def test_classes_are_learned_from_dependent_data():
    codes = dependent_codes(3000, seed=9)
    classifier = NaiveBayes.of(*marginals(codes[:2000]))
    found = accuracy(classifier.predict(columns(codes[2000:])), codes[2000:, CLASS])
    assert found > 1.2 * np.bincount(codes[2000:, CLASS]).max() / 1000


@pytest.mark.parametrize(
    "features", [{}, {0: np.ones((3, 2))}, {0: np.ones(2)}], ids=["none", "other classes", "one axis"]
)
def test_tables_that_do_not_fit_are_refused(features):
    with pytest.raises(BadInput, match="feature"):
        NaiveBayes.of(np.ones(2), features)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({0: np.zeros(3, int)}, "feature 1: its column is missing"),
        ({0: np.zeros(3, int), 1: np.zeros(2, int)}, "feature 1: its column is longer or shorter"),
        ({0: np.array([0, 2]), 1: np.zeros(2, int)}, "feature 0: a code is outside"),
        ({0: np.array([0, -1]), 1: np.zeros(2, int)}, "feature 0: a code is outside"),
    ],
)
def test_columns_that_do_not_fit_are_refused(given, problem):
    classifier = NaiveBayes.of(np.ones(2), {0: np.ones((2, 2)), 1: np.ones((2, 2))})
    with pytest.raises(DataError, match=problem):
        classifier.predict(given)


def test_no_rows_have_no_classes():
    assert len(NaiveBayes.of(np.ones(2), {0: np.ones((2, 2))}).predict({0: np.array([], int)})) == 0


def test_accuracy_counts_matches_and_refuses_what_cannot_be_compared():
    assert accuracy(np.array([1, 2, 3], np.uint8), np.array([1, 0, 3])) == pytest.approx(2 / 3)
    for predicted, actual in ((np.zeros(2), np.zeros(1)), (np.zeros(0), np.zeros(0))):
        with pytest.raises(HushcubeError):
            accuracy(predicted, actual)


def test_folds_are_equal_random_and_repeatable():
    assignment = divide(1003, 10, seed=1)
    assert sorted(np.bincount(assignment).tolist()) == [100] * 7 + [101] * 3
    assert np.array_equal(assignment, divide(1003, 10, seed=1))
    assert not np.array_equal(assignment, divide(1003, 10, seed=2))
    assert (np.diff(assignment.astype(int)) == 1).mean() < 0.5  # not in turn
    for k in (1, 11):
        with pytest.raises(BadInput):
            divide(10, k, seed=1)
