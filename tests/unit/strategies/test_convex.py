"""The convex program (1)-(3): certificates, scipy as the judge, and the numbers of docs/maths.md section 9."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize as scipy_minimise

from hushcube.strategies.search.convex import distinct, minimise

UNBALANCED = np.array([[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])


def random_program(seed, most=40):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, most, 2)
    S = rng.integers(-3, 4, (m, n)) * (rng.random((m, n)) < rng.choice([0.1, 0.4, 0.9]))
    S[np.abs(S).sum(axis=1) == 0, 0] = 1
    return np.exp(rng.normal(size=m) * rng.choice([0, 1, 4])), S.astype(float)


def test_vector_4_unbalanced_groups():
    found = minimise(np.ones(5), UNBALANCED.T, 2)
    assert 2 * found.value == pytest.approx(39.08393261117844, rel=1e-9)
    assert 2 * found.bound == pytest.approx(39.08393261117844, rel=1e-9)
    assert 2 * found.value < 39.46102


@pytest.mark.parametrize(("p", "s", "eta", "value"), [(2, (1, 8, 27), (1, 2, 3), 216), (1, (1, 4, 9), (1, 2, 3), 36)])
def test_vector_3_a_single_constraint_is_corollary_3_3(p, s, eta, value):
    found = minimise(np.array(s, float), np.ones((1, 3)), p)
    assert found.eta == pytest.approx(np.array(eta) / 6, rel=1e-5)  # the optimum is flat: half the digits
    assert found.value == pytest.approx(value, rel=1e-10)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_the_gap_closes_and_the_budgets_are_feasible(seed, p):
    s, S = random_program(seed)
    A = np.abs(S.T) ** (3 - p)
    found = minimise(s, A, p)
    assert found.gap <= 1e-9
    assert (found.eta > 0).all() and (A @ found.eta).max() <= 1 + 1e-12
    assert (s / found.eta**p).sum() == pytest.approx(found.value, rel=1e-12)


@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_no_feasible_budgets_are_better(seed, p):
    """Weak duality, for any budgets."""
    s, S = random_program(seed)
    A = np.abs(S.T) ** (3 - p)
    rng = np.random.default_rng(seed)
    eta = rng.exponential(size=len(s))
    eta /= (A @ eta).max()
    assert (s / eta**p).sum() >= minimise(s, A, p).bound * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("p", [1, 2])
def test_scipy_finds_the_same(seed, p):
    s, S = random_program(seed, most=9)
    s = s / s.max()
    A = np.abs(S.T) ** (3 - p)
    found = minimise(s, A, p)
    start = np.full(len(s), np.log(0.9 / A.sum(axis=1).max()))
    judged = scipy_minimise(  # in logarithms, where the problem is well scaled and still convex
        lambda t: np.log((s * np.exp(-p * t)).sum()),
        start,
        bounds=[(-15, 5)] * len(s),
        constraints={"type": "ineq", "fun": lambda t: 1 - A @ np.exp(t)},
        method="SLSQP",
        options={"maxiter": 2000, "ftol": 1e-15},
    )
    eta = np.exp(judged.x) / (A @ np.exp(judged.x)).max()
    assert found.value == pytest.approx((s / eta**p).sum(), rel=1e-6)


def test_the_multipliers_of_the_optimum_exist():
    """KKT: p s_i / eta_i^(p+1) = sum_j lam_j A_ji with lam >= 0 on tight columns, by non-negative least squares."""
    from scipy.optimize import nnls

    s, S = random_program(5, most=12)
    A = np.abs(S.T)
    eta = minimise(s, A, 2).eta
    tight = A[A @ eta > 1 - 1e-4]
    wanted = 2 * s / eta**3
    _, miss = nnls((tight / wanted).T, np.ones(len(s)))
    assert miss < 1e-3


def test_rows_without_weight_get_nothing():
    found = minimise(np.array([1.0, 0.0, 1.0]), np.eye(3), 2)
    assert found.eta.tolist() == pytest.approx([1, 0, 1]) and found.value == pytest.approx(2)
    assert minimise(np.zeros(2), np.eye(2), 2).value == 0


def test_a_row_of_nothing_has_no_bound():
    with pytest.raises(ValueError, match="zero"):
        minimise(np.ones(2), np.array([[1.0, 0.0]]), 2)


def test_repeated_columns_change_nothing():
    s, S = random_program(3)
    A = np.abs(S.T)
    once, thrice = minimise(s, A, 2), minimise(s, np.concatenate([A] * 3), 2)
    assert once.value == pytest.approx(thrice.value, rel=1e-10)
    assert len(distinct(np.concatenate([A] * 3))) == len(distinct(A))


def test_many_rows_and_columns():
    rng = np.random.default_rng(0)
    S = (rng.random((300, 600)) < 0.05).astype(float)
    S[S.sum(axis=1) == 0, 0] = 1
    assert minimise(np.ones(300), S.T, 2).gap <= 1e-10
