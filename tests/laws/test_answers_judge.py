"""Least squares on the answers, on random lattices: what is measured, budgets and tables asked for are any at all.

`LAW_CASES=1000` in the environment runs more cases than there is time for otherwise.
"""

import math
import os
from fractions import Fraction

import numpy as np
import pytest

from helpers import Dense, all_subsets, all_tables, below, hand_plan, make_request, names
from hushcube.lattice.basis import FOURIER, MARGINAL

CASES = int(os.environ.get("LAW_CASES", "300"))


def random_plan(rng, recovery="answers"):
    """Tables that hold all those asked for, or their Fourier coefficients, with budgets as uneven as 1 to 100."""
    sizes = tuple(rng.integers(2, 5, rng.integers(1, 5)).tolist())
    while math.prod(sizes) > 64:
        sizes = sizes[:-1]
    subsets = all_subsets(range(len(sizes)))
    asked = [subsets[i] for i in rng.permutation(len(subsets))[: rng.integers(1, 6)]]
    words = ["*".join(names(sizes)[i] for i in A) or "0-way" for A in asked]
    neighbours = ["add-remove", "replace-one"][rng.integers(2)]
    request = make_request(sizes, words, neighbours=neighbours, epsilon=2)
    if rng.random() < 0.3:
        basis, measured = FOURIER, [C for C in request.spaces if all(sizes[i] > 1 for i in C)]
    else:
        wider = [tuple(sorted({*A, *rng.permutation(len(sizes))[: rng.integers(3)].tolist()})) for A in asked]
        basis, measured = MARGINAL, list(dict.fromkeys([*wider, *asked[: rng.integers(len(asked) + 1)]]))
    if public := request.privacy.total_is_public:
        measured = list(dict.fromkeys([(), *measured]))
    cells = [math.prod((1 << (sizes[i] - 1).bit_length()) - 1 if basis is FOURIER else 1 for i in B) for B in measured]
    shares = np.exp(rng.uniform(0, math.log(100), len(measured)))
    budgets = below(shares / (shares * cells).sum(), Fraction(1)) / 2
    if public:
        budgets = np.where([all(sizes[i] == 1 for i in B) for B in measured], np.inf, budgets / 2)
    return hand_plan(request, basis, measured, budgets, recovery=recovery)


def numbers(dense, rng):
    """Any integers at all, but public answers are true ones."""
    found = rng.integers(-50, 50, len(dense.S))
    found[dense.public] = (dense.S @ rng.integers(0, 9, dense.S.shape[1]))[dense.public]
    return found


@pytest.mark.parametrize("part", range(10))
def test_tables_and_errors_are_those_of_the_dense_projection(part):
    """The nearest consistent tables to the first answers, all cells alike; their variances; and that they add up."""
    for case in range(part, CASES, 10):
        rng = np.random.default_rng([15, case])
        plan = random_plan(rng)
        dense = Dense(plan)
        z = numbers(dense, rng)
        tables = all_tables(plan, plan.answers(dense.measurement(z)))
        for at, (A, table) in enumerate(sorted(tables.items(), key=lambda item: plan.request.marginals.ids([item[0]]))):
            expected = (dense.recovery(A) @ z).reshape(table.shape)
            np.testing.assert_allclose(table, expected, rtol=0, atol=1e-7, err_msg=f"case {case}, {A}")
            diagonal = np.diag(dense.covariance(A))
            np.testing.assert_allclose(plan.errors.exact_cell_variances[at], diagonal, rtol=1e-7, atol=1e-9)
            weights = rng.normal(size=table.shape)
            variance = weights.ravel() @ dense.covariance(A) @ weights.ravel()
            assert plan.errors.sum_variance(A, np.asarray(weights)) == pytest.approx(variance, rel=1e-7, abs=1e-9)
            for B, small in tables.items():
                if set(B) <= set(A):
                    summed = table.sum(axis=tuple(axis for axis, i in enumerate(A) if i not in B))
                    np.testing.assert_allclose(summed, small, rtol=0, atol=1e-7, err_msg=f"case {case}, {A} {B}")


def test_what_is_measured_more_precisely_is_what_the_answers_forget():
    """A and AB asked for and measured, A precisely: the answers mix it with AB's sums by their cells alone."""
    request = make_request((2, 2), "a0,a0*a1", epsilon=1)
    ways, sets = ("gls", "answers", "none"), [(0,), (0, 1)]
    plans = {way: hand_plan(request, MARGINAL, sets, [0.9, 0.05], recovery=way) for way in ways}
    a, ab = (2 * math.exp(-r) / (1 - math.exp(-r)) ** 2 for r in (0.9, 0.05))
    variances = {name: plan.errors.exact_cell_variances for name, plan in plans.items()}
    assert variances["none"] == pytest.approx([a, ab])
    # each cell of A is (2 y_A + y_AB summed) / 3
    assert variances["answers"][0] == pytest.approx((4 * a + 2 * ab) / 9)
    assert variances["gls"][0] == pytest.approx(1 / (1 / a + 1 / (2 * ab)))
    assert variances["answers"][0] > 70 * variances["gls"][0]


def test_a_measurement_without_noise_stays_as_it_is():
    """Unbiased: what agrees already is not moved."""
    for case in range(20):
        rng = np.random.default_rng([16, case])
        plan = random_plan(rng)
        dense = Dense(plan)
        x = rng.integers(0, 9, dense.S.shape[1])
        found = dense.measurement((dense.S @ x).astype(np.int64))
        for A, table in all_tables(plan, plan.answers(found)).items():
            away = tuple(i for i in range(len(plan.schema)) if i not in A)
            np.testing.assert_allclose(table, x.reshape(plan.schema.sizes).sum(axis=away), atol=1e-8)
