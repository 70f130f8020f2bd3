"""What rows of a matrix cost, by brute force over all columns and pairs in exact fractions."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from hushcube.costs import row_cost as module
from hushcube.costs.row_cost import constant_rows, cost_of_rows, cost_of_sets
from hushcube.lattice.basis import FOURIER, HELMERT
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows

LAWS = [{"epsilon": 1}, {"rho": 1}]
NEIGHBOURS = ["add-remove", "replace-one"]


def brute(S, beta, privacy):
    amounts = [Fraction(float(b)) for b in beta]
    columns = [list(map(int, column)) for column in np.asarray(S).T]
    changes = columns
    if privacy.neighbours == "replace-one":
        changes = [[x - y for x, y in zip(a, b, strict=True)] for a, b in combinations(columns, 2)]
    power = 1 if privacy.is_pure else 2
    return max(
        (sum(b * abs(x) ** power for b, x in zip(amounts, change, strict=True)) for change in changes),
        default=Fraction(0),
    )


def case(seed):
    rng = np.random.default_rng(seed)
    S = rng.integers(-2, 3, rng.integers(1, 8, 2))
    S[np.abs(S).sum(axis=1) == 0, 0] = 1
    group_of = np.unique(rng.integers(0, 3, len(S)), return_inverse=True)[1]
    return S, group_of, rng.exponential(size=group_of.max() + 1)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@given(seed=st.integers(0, 10**6))
def test_the_cost_is_exact_on_small_matrices(law, neighbours, seed):
    S, group_of, budgets = case(seed)
    privacy = Privacy.of(neighbours=neighbours, **law)
    assert cost_of_rows(SparseRows.of(S), group_of, budgets, privacy) == brute(S, budgets[group_of], privacy)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("limit", ["_MOST_TIES", "_PAIRED_CELLS"])
def test_the_cost_is_never_understated_beyond_the_limits(law, neighbours, limit, monkeypatch):
    monkeypatch.setattr(module, limit, 0)
    privacy = Privacy.of(neighbours=neighbours, **law)
    for seed in range(100):
        S, group_of, budgets = case(seed)
        true = brute(S, budgets[group_of], privacy)
        found = cost_of_rows(SparseRows.of(S), group_of, budgets, privacy)
        assert found >= true
        if limit == "_MOST_TIES":
            assert found <= true * (1 + Fraction(1, 10**11)) + Fraction(1, 10**11)


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_what_no_replacement_can_change_is_free(law):
    rows = SparseRows.of([[2, 2, 2], [1, 0, 0], [1, 1, 0]])
    assert constant_rows(rows).tolist() == [True, False, False]
    replace = Privacy.of(neighbours="replace-one", **law)
    free = cost_of_rows(rows, np.arange(3), np.array([np.inf, 1.0, 1.0]), replace)
    assert free == cost_of_rows(rows, np.arange(3), np.array([1.0, 1.0, 1.0]), replace) == 2
    with pytest.raises(OverflowError):
        cost_of_rows(rows, np.arange(3), np.array([1.0, np.inf, 1.0]), replace)
    with pytest.raises(OverflowError):
        cost_of_rows(rows, np.arange(3), np.array([np.inf, 1.0, 1.0]), Privacy.of(neighbours="add-remove", **law))
    assert cost_of_rows(SparseRows.of([[3], [1]]), np.arange(2), np.ones(2), replace) == 0


def test_what_rounding_would_swallow_is_seen():
    rows = SparseRows.of([[1, 0], [1, 1]])
    budgets = np.array([1.0, 2.0**-60])
    cost = cost_of_rows(rows, np.arange(2), budgets, Privacy.of(epsilon=1, neighbours="add-remove"))
    assert budgets.sum() == 1 and cost == 1 + Fraction(1, 2**60)


@pytest.mark.parametrize(
    ("basis", "law"), [(FOURIER, "epsilon"), (FOURIER, "rho"), (HELMERT, "rho")], ids=["F, epsilon", "F, rho", "H, rho"]
)
def test_a_set_with_an_attribute_of_one_value_has_no_rows_and_costs_nothing(basis, law):
    """Nothing varies with it, whoever replaces whom: a plan file may name such a set."""
    privacy = Privacy.of(**{law: 1}, neighbours="replace-one")
    budgets = np.array([0.25, 0.25])
    alone = cost_of_sets(basis, Family.of([(0,)], (2, 1)), budgets[:1], privacy)
    assert cost_of_sets(basis, Family.of([(0,), (0, 1)], (2, 1)), budgets, privacy) == alone > 0
    assert cost_of_sets(basis, Family.of([(0, 1)], (2, 1)), budgets[:1], privacy) == 0
