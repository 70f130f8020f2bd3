"""Closed-form budgets are optimal without recovery: no feasible budgets do better, and scipy finds the same."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.optimize import minimize

from helpers import make_plan, make_request
from hushcube.costs import row_cost as cost
from hushcube.model.noise import GAUSSIAN, LAPLACE

positive = st.floats(0.01, 100)


def arrays(n):
    return hnp.arrays(float, n, elements=positive)


three = st.integers(1, 6).flatmap(lambda n: st.tuples(arrays(n), arrays(n), arrays(n)))


def error_at(budgets, s, *, pure):
    return float((s * (2 / budgets**2 if pure else 1 / (2 * budgets))).sum())


def spending_one(shape, C):
    return shape / (C * shape).sum()


@pytest.mark.parametrize("pure", [True, False])
@given(three)
def test_closed_form_beats_any_feasible_budgets(pure, drawn):
    s, C, other = drawn
    best = error_at(spending_one((LAPLACE if pure else GAUSSIAN).best_budgets(s, C), C), s, pure=pure)
    assert best <= error_at(spending_one(other, C), s, pure=pure) * (1 + 1e-9)


@pytest.mark.parametrize("pure", [True, False])
def test_closed_form_is_what_scipy_finds(pure):
    rng = np.random.default_rng(0)
    for _ in range(5):
        s, C = rng.uniform(0.1, 10, (2, 4))
        found = minimize(
            lambda t, s=s, C=C: np.log(error_at(spending_one(np.exp(t), C), s, pure=pure)), np.zeros(4), tol=1e-14
        )
        shape = (LAPLACE if pure else GAUSSIAN).best_budgets(s, C)
        np.testing.assert_allclose(spending_one(np.exp(found.x), C), spending_one(shape, C), rtol=1e-3)
        assert np.exp(found.fun) == pytest.approx(error_at(spending_one(shape, C), s, pure=pure), rel=1e-8)


@pytest.mark.parametrize("privacy", [{"epsilon": "0.3"}, {"rho": "0.7"}], ids=str)
@pytest.mark.parametrize("strategy", ["workload", "fourier", "residual"])
def test_uniform_budgets_are_alike_and_spend_everything(strategy, privacy):
    plan = make_plan(make_request((2, 3, 4), "2-way", **privacy), strategy, "uniform")
    assert len(set(plan.budgets.tolist())) == 1
    spent = cost.cost_of_sets(plan.basis, plan.measured, plan.budgets, plan.privacy)
    allowed = plan.privacy.epsilon or plan.privacy.rho
    assert allowed * (1 - Fraction(1, 10**12)) <= spent <= allowed


@given(hnp.arrays(float, st.integers(0, 50), elements=st.floats(0, 1e300, allow_subnormal=True)))
def test_exact_sum_is_the_sum_of_fractions(values):
    assert cost.exact_sum(values) == sum(map(Fraction, values.tolist()), Fraction(0))
