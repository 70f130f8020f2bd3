"""Definition 3.1: groups are found, checked, and used only where the closed form is the optimum."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.model.noise import LAPLACE
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows
from hushcube.strategies import row_budgets as grouping
from hushcube.strategies.row_budgets import optimal
from hushcube.strategies.search.convex import minimise

PURE, ZCDP = (Privacy.of(neighbours="add-remove", **law) for law in ({"epsilon": 1}, {"rho": 1}))


def rows(*supports, width=3):
    """Rows of ones on cells numbered from 1, as the papers do."""
    dense = np.zeros((len(supports), width))
    for row, support in zip(dense, supports, strict=True):
        row[[cell - 1 for cell in support]] = 1
    return SparseRows.of(dense)


def value(matrix, s, beta, p):
    A = np.abs(matrix.dense().T) ** (3 - p)
    eta = beta / (A @ beta).max()
    return (s / eta**p).sum()


FIGURE_1B = rows({1, 2}, {3, 4}, {1}, {2}, {3}, {4}, width=4)
UNBALANCED = rows({1, 2}, {3}, {1}, {2}, {3})
GREEDY_BREAKS = rows({1}, {3}, {2, 3}, {1, 2})


def test_the_papers_example_has_two_groups():
    found = grouping.find(FIGURE_1B)
    assert found.group_of.tolist() == [0, 0, 1, 1, 1, 1] and found.C.tolist() == [1, 1] and found.holds


def test_marginals_trees_and_signs_are_groups():
    haar = [[1] * 4, [1, 1, -1, -1], [1, -1, 0, 0], [0, 0, 1, -1]]
    found = grouping.find(SparseRows.of(haar))
    assert found.holds and len(found) == 3  # log2(4) + 1
    tree = rows({1, 2, 3, 4}, {1, 2}, {3, 4}, {1}, {2}, {3}, {4}, width=4)
    assert grouping.find(tree).holds and len(grouping.find(tree)) == 3


def test_greedy_in_the_order_given_breaks_where_a_grouping_exists():
    """docs/maths.md section 4; the longest rows first find it."""
    broken = grouping.verified(GREEDY_BREAKS, grouping.greedy(GREEDY_BREAKS, range(4)))
    assert not broken.holds and len(broken) == 3 and broken.C.tolist() == [1, 1, 1]
    assert grouping.find(GREEDY_BREAKS).holds and len(grouping.find(GREEDY_BREAKS)) == 2


def test_rows_of_several_magnitudes_stay_alone_with_their_largest():
    mixed = SparseRows.of([[1, 2, 0], [0, 0, 1], [3, 0, 0]])
    found = grouping.find(mixed)
    assert not found.holds and len(found) == 3
    assert sorted(found.C.tolist()) == [1, 2, 3]


def test_a_column_that_a_group_misses_breaks_the_definition():
    assert not grouping.find(rows({1}, {2}, width=3)).holds


def test_vector_4_the_lemma_is_false_for_unbalanced_groups():
    found = grouping.find(UNBALANCED)
    s, A = np.ones(5), np.abs(UNBALANCED.dense().T)
    assert found.holds and not grouping.is_optimal(UNBALANCED, found, s, A, LAPLACE)
    grouped = grouping.closed_form_budgets(found, s, LAPLACE)
    assert 2 * value(UNBALANCED, s, grouped, 2) == pytest.approx(39.461019275893364, rel=1e-9)
    chosen = optimal(UNBALANCED, s, PURE)
    assert chosen.how == "convex program"
    assert 2 * value(UNBALANCED, s, chosen.beta, 2) == pytest.approx(39.08393261117844, rel=1e-9)


def test_vector_1_budgets_of_the_intro():
    chosen = optimal(FIGURE_1B, np.ones(6), PURE)
    assert chosen.how == "closed form"
    assert 2 * value(FIGURE_1B, np.ones(6), chosen.beta, 2) == pytest.approx(46.167865222356866, rel=1e-9)


def test_unequal_weights_are_optimal_where_the_columns_can_carry_them():
    """Theorem 3.4 asks for equal s; rows {1,2} and {3} with s = 2 and 1 are as good, by raking."""
    found = grouping.find(UNBALANCED)
    s, A = np.array([2.0, 1, 1, 1, 1]), np.abs(UNBALANCED.dense().T)
    assert grouping.is_optimal(UNBALANCED, found, s, A, LAPLACE)
    assert value(UNBALANCED, s, optimal(UNBALANCED, s, PURE).beta, 2) == pytest.approx(minimise(s, A, 2).value)


@pytest.mark.parametrize("privacy", [PURE, ZCDP])
@given(seed=st.integers(0, 10**6))
def test_whatever_is_chosen_is_the_optimum(privacy, seed):
    """Random products of partitions, so that groups often exist, and random weights."""
    rng = np.random.default_rng(seed)
    width = int(rng.integers(2, 9))
    blocks = []
    for _ in range(rng.integers(1, 4)):
        labels = rng.integers(0, rng.integers(1, width + 1), width)
        signs = rng.choice([-1, 1], width) * rng.integers(1, 3)
        blocks += [signs * (labels == label) for label in np.unique(labels)]
    matrix = SparseRows.of(np.array(blocks))
    s = np.ones(len(matrix)) if rng.random() < 0.5 else rng.exponential(size=len(matrix))
    p = 2 if privacy.is_pure else 1
    A = np.abs(matrix.dense().T) ** (3 - p)
    chosen = optimal(matrix, s, privacy)
    assert value(matrix, s, chosen.beta, p) == pytest.approx(minimise(s, A, p).value, rel=1e-8)
    for group in set(chosen.group_of.tolist()):
        assert len(set(chosen.beta[chosen.group_of == group].tolist())) == 1


@given(st.integers(0, 10**6))
def test_the_safe_fallback_is_private(seed):
    """sum_r C_r eta_r bounds the cost of every column, however rows are grouped into disjoint ones."""
    rng = np.random.default_rng(seed)
    matrix = SparseRows.of(rng.integers(-3, 4, rng.integers(1, 8, 2)) + 0.0)
    found = grouping.verified(matrix, grouping.greedy(matrix, range(len(matrix))))
    eta = rng.exponential(size=len(found))
    cost = np.abs(matrix.dense().T) @ eta[found.group_of]
    assert cost.max() <= (found.C * eta).sum() + 1e-12
