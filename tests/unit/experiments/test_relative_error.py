"""Relative errors: the definition cell by cell, the worked example, and what noise does on average."""

import numpy as np
import pytest

from helpers import expected_overall_error
from hushcube.errors import BadInput
from hushcube.experiments.errors import RunErrors


def overall_error(truth, answers, bound):
    return RunErrors.of(truth, answers, [np.array(bound)] * len(truth)).relative.mean()


def worst_error(truth, answers, bound):
    return RunErrors.of(truth, answers, [np.array(bound)] * len(truth)).largest_relative.max()


MEASURES = (overall_error, worst_error)


def cell_errors(truth, answers, bound):
    """By the definition, one number at a time: a list of errors for each table."""
    return [
        [abs(float(y) - float(q)) / max(float(q), bound) for q, y in zip(t.ravel(), a.ravel(), strict=True)]
        for t, a in zip(truth, answers, strict=True)
    ]


@pytest.mark.parametrize("bound", [0.5, 3, 1000.0])
def test_errors_equal_the_definition_cell_by_cell(bound):
    random = np.random.default_rng(1)
    truth = [random.integers(0, 10, shape) for shape in ((), (3,), (2, 5), (4, 1, 3))]
    answers = [t + random.normal(0, 5, t.shape) for t in truth]
    cells = cell_errors(truth, answers, bound)
    assert overall_error(truth, answers, bound) == pytest.approx(np.mean([np.mean(errors) for errors in cells]))
    assert worst_error(truth, answers, bound) == pytest.approx(max(map(max, cells)))


def test_each_table_counts_the_same_whatever_its_size():
    truth = [np.array([10]), np.full(1000, 10)]
    answers = [np.array([20.0]), np.full(1000, 10.0)]
    assert overall_error(truth, answers, 1) == 0.5


def test_compact_counts_do_not_wrap_around():
    truth = [np.array([200, 1], dtype=np.uint8)]
    assert overall_error(truth, [np.array([100, 3], dtype=np.uint8)], 1) == (0.5 + 2) / 2
    assert worst_error(truth, [np.array([0, 1], dtype=np.uint8)], 1) == 1


@pytest.mark.parametrize("measure", MEASURES)
def test_exact_answers_have_no_error(measure):
    truth = [np.array([0, 5]), np.array([[1, 2]])]
    assert measure(truth, truth, 1) == 0


def test_the_worked_example_of_expected_error():
    truth = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    assert expected_overall_error(truth, (22, 2.2), 1) == pytest.approx(1.21, rel=1e-12)
    assert expected_overall_error(truth, (22, 2.2), 10) == pytest.approx((0.22 + 0.22) / 2, rel=1e-12)


def test_expected_error_is_the_mean_error_under_noise():
    """A mean of 2,000 runs, seeded; 5 standard errors: a false alarm in about 2 million. A scale 10% off is seen."""
    random = np.random.default_rng(2)
    truth, scales = [np.array([50, 400, 3]), np.array([[9, 9], [0, 70]])], (4.0, 1.5)
    errors = [
        overall_error(truth, [t + random.laplace(0, s, t.shape) for t, s in zip(truth, scales, strict=True)], 5)
        for _ in range(2000)
    ]
    margin = 5 * np.std(errors) / np.sqrt(len(errors))
    assert abs(np.mean(errors) - expected_overall_error(truth, scales, 5)) < margin
    assert abs(np.mean(errors) - expected_overall_error(truth, (4.4, 1.65), 5)) > margin


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    ("truth", "answers", "bound", "field"),
    [
        ([np.ones(2)], [np.ones(2)], 0, "sanity_bound"),
        ([np.ones(2)], [np.ones(2)], float("nan"), "sanity_bound"),
        ([], [], 1, "answers"),
        ([np.ones(2)], [np.ones(2), np.ones(2)], 1, "answers"),
        ([np.ones(2)], [np.ones((2, 2))], 1, "answers"),
    ],
)
def test_what_cannot_be_compared_is_refused(measure, truth, answers, bound, field):
    with pytest.raises(BadInput) as caught:
        measure(truth, answers, bound)
    assert caught.value.field == field
