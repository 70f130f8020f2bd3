"""Recovery is post-processing of one plan's measurement, on a set of shapes that streams."""

import numpy as np
import pytest

from helpers import Dense, MemoryEngine, all_tables, every_plan, hand_plan, label, make_plan, make_request, random_codes
from hushcube.errors import BundleError
from hushcube.lattice.basis import MARGINAL
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

SIZES = (2, 3, 4)


def measured(plan):
    return measure(plan, MemoryEngine(random_codes(SIZES, 100)), entropy=SeededEntropy(1))


def test_a_measurement_of_another_plan_is_refused():
    request = make_request(SIZES, "2-way", epsilon=1)
    plan, other = make_plan(request, "workload"), make_plan(request, "workload", "uniform")
    with pytest.raises(BundleError, match="another plan"):
        other.answers(measured(plan))


def test_tables_come_in_the_order_asked_for():
    for plan in every_plan(make_request((2, 2, 2, 3), "cube", epsilon=1)):
        dense = Dense(plan)
        answers = plan.answers(dense.measurement(np.arange(len(dense.S))))
        rows = np.array([[1, 2], [0, 1], [0, 2]], np.int32)
        together = answers.tables(rows, (2, 2))
        for row, table in zip(rows, together, strict=True):
            np.testing.assert_array_equal(answers.tables(row[None], (2, 2))[0], table, err_msg=label(plan))


def test_least_squares_depends_on_the_ratio_of_variances_only():
    """The same measurement under half the budgets has the same answers."""
    request = make_request(SIZES, "cube", rho=2)
    numbers = None
    answers = []
    for factor in (1, 0.5):
        plan = hand_plan(request, MARGINAL, [(0, 1), (1, 2), (0, 1, 2)], np.array([0.1, 0.02, 0.05]) * factor)
        dense = Dense(plan)
        numbers = np.arange(len(dense.S)) % 7 if numbers is None else numbers
        answers.append(all_tables(plan, plan.answers(dense.measurement(numbers))))
    for A, table in answers[0].items():
        np.testing.assert_allclose(table, answers[1][A], atol=1e-9)


def test_least_squares_is_linear():
    rng = np.random.default_rng(0)
    for plan in every_plan(make_request(SIZES, "2-way", epsilon=1)):
        dense = Dense(plan)
        a, b = rng.integers(-9, 9, (2, len(dense.S)))
        first, second, both = (all_tables(plan, plan.answers(dense.measurement(z))) for z in (a, b, a + b))
        for A, table in both.items():
            np.testing.assert_allclose(first[A] + second[A], table, atol=1e-9, err_msg=label(plan))


def test_consistent_numbers_are_left_alone():
    """Least squares of tables that already agree gives those tables."""
    x = np.random.default_rng(1).integers(0, 50, 24)
    for plan in every_plan(make_request(SIZES, "cube", epsilon=1), recoveries=("gls", "ols", "answers")):
        dense = Dense(plan)
        for A, table in all_tables(plan, plan.answers(dense.measurement((dense.S @ x).astype(int)))).items():
            away = tuple(i for i in range(3) if i not in A)
            np.testing.assert_allclose(table, x.reshape(SIZES).sum(axis=away), atol=1e-9, err_msg=label(plan))
