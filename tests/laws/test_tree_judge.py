"""Dense linear algebra judges plans over trees: explicit rows on the leaves and numpy's pseudo-inverse."""

from itertools import pairwise, product

import numpy as np
import pytest

from helpers import (
    LAWS,
    NEIGHBOURS,
    MemoryEngine,
    Silence,
    all_subsets,
    all_tables,
    exact_table,
    label,
    random_codes,
    released,
)
from hushcube.designs import TreeDesign
from hushcube.errors import PlanError
from hushcube.lattice.trees import Tree
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import Hierarchy
from ranged import DenseTree, every_variant, form_rows, ordered_schema, random_queries, ranged_request

SCHEMA = ordered_schema((5, 2, 2), missing=(2,))
REQUESTS = {
    "one carrier": {"words": "prefix(a0)*a1,a1"},
    "two carriers": {"words": "prefix(a0)*a1,ranges(a2)*a1=2,a0=3"},
    "three ways": {"words": "ranges(a0)*a1*prefix(a2)"},
    "queries": {"words": "a0*a1", "queries": random_queries(SCHEMA, (0, 2))},
}
FAN_OUTS = {"one carrier": 2, "three ways": 3}


def make_plans(name, law, neighbours):
    """What the strategies make, and by hand: wavelets along one attribute, nodes along another, and uneven budgets."""
    request = ranged_request(SCHEMA, neighbours=neighbours, **REQUESTS[name], **law)
    yield from every_variant(request, ["wavelet", Hierarchy(fan_out=FAN_OUTS.get(name))])
    if name == "three ways" and "delta" not in law:
        for recovery in ("gls", "ols"):
            yield by_hand(request, recovery)


def by_hand(request, recovery):
    trees = (Tree(5, (2, 2, 2)), Tree(2, (2,)), Tree(3, (2, 2)))
    everything = list(product(range(4), range(2), range(3)))
    random = np.random.default_rng(7)
    levels = [row for row in everything if row == (3, 1, 2) or random.random() < 0.6]
    # wavelets along a0: each of its levels must come with the finest ones of the others
    levels = sorted({*levels, *((m, 1, 2) for m in range(4))})
    budgets = random.uniform(0.5, 2, len(levels)) / 1000
    if request.privacy.neighbours == "replace-one":
        levels = [(0, 0, 0), *(row for row in levels if any(row))]
        budgets = np.concatenate([[np.inf], random.uniform(0.5, 2, len(levels) - 1) / 1000])
    wavelet = (True, False, False)
    return TreeDesign(request, "by hand", "optimal", recovery, "direct", budgets, trees, wavelet, np.array(levels))


ADD, REPLACE = NEIGHBOURS
PURE, ZCDP, TINY, BOTH = LAWS
cases = pytest.mark.parametrize(
    ("name", "law", "neighbours"),
    [
        *[("two carriers", law, ADD) for law in LAWS],
        *[("two carriers", law, REPLACE) for law in (PURE, TINY)],
        *[("one carrier", ZCDP, neighbours) for neighbours in NEIGHBOURS],
        ("three ways", PURE, REPLACE),
        ("three ways", TINY, ADD),
        ("queries", PURE, ADD),
        ("queries", BOTH, REPLACE),
    ],
    ids=str,
)


def any_numbers(dense, random):
    """Any integers at all, but public answers are true ones."""
    numbers = random.integers(-50, 50, len(dense.S))
    true = dense.S @ dense.padded(random.integers(0, 9, SCHEMA.sizes))
    numbers[dense.public] = true[dense.public]
    return numbers


@cases
def test_tables_and_errors_are_those_of_the_dense_solution(name, law, neighbours):
    random = np.random.default_rng(1)
    for plan in make_plans(name, law, neighbours):
        dense = DenseTree(plan)
        numbers = any_numbers(dense, random)
        release = released(plan, dense.measurement(numbers))
        check_tables(plan, dense, numbers, release)
        check_forms(plan, dense, release)
        check_roll_ups(plan, dense, numbers, release)
        check_sums(plan, dense, release, random)
        check_cost(plan, dense)


def check_tables(plan, dense, numbers, release):
    both = (True, False) if plan.budget_rule == "optimal" else (True,)
    means = [plan.errors.cell_variances(exact=exact) for exact in both]
    for A, table in all_tables(plan, plan.answers(dense.measurement(numbers))).items():
        expected = (dense.recovery(A) @ numbers).reshape(table.shape)
        np.testing.assert_allclose(table, expected, atol=1e-8, err_msg=f"{label(plan)} {A}")
        at = plan.request.marginals.ids([A])[0]
        for mean, exact in zip(means, both, strict=True):
            diagonal = np.diag(dense.covariance(A, exact=exact))
            assert mean[at] == pytest.approx(diagonal.mean(), rel=1e-8, abs=1e-11), f"{label(plan)} {A}"


def check_forms(plan, dense, release):
    for form in plan.workload.forms:
        table, Q = release.table(form.word), form_rows(form)
        carrier = release.source.tables(np.array([form.marginal], np.int32), form.carrier_shape)[0]
        np.testing.assert_allclose(table.values.ravel(), Q @ carrier.ravel(), atol=1e-8, err_msg=label(plan))
        expected = ((Q @ dense.covariance(form.marginal)) * Q).sum(axis=1)
        np.testing.assert_allclose(table.std_errors.ravel() ** 2, expected, rtol=1e-8, atol=1e-10, err_msg=label(plan))


def check_roll_ups(plan, dense, numbers, release):
    """Every subset of every published table: its values are sums of that table's, its error bars those of the sums."""
    for published in plan.workload.published:
        whole = release.table([SCHEMA.names[i] for i in published])
        for A in all_subsets(published):
            rolled = release.table([SCHEMA.names[i] for i in A])
            away = tuple(axis for axis, i in enumerate(published) if i not in A)
            message = f"{label(plan)} {published} {A}"
            np.testing.assert_allclose(rolled.values, whole.values.sum(axis=away), atol=1e-8, err_msg=message)
            diagonal = np.diag(dense.covariance(A)).reshape(rolled.values.shape)
            np.testing.assert_allclose(rolled.std_errors**2, diagonal, rtol=1e-8, atol=1e-10, err_msg=message)
            table = np.broadcast_to(plan.errors.cell_variance_table(A), rolled.values.shape)
            np.testing.assert_allclose(table, diagonal, rtol=1e-8, atol=1e-10, err_msg=message)
            assert (rolled.margins >= 1.9 * rolled.std_errors).all(), message


def check_sums(plan, dense, release, random):
    """Any weights, and what `where` keeps: some labels of each attribute."""
    for A in plan.workload.published:
        covariance = dense.covariance(A)
        weights = random.normal(size=SCHEMA.shape(A))
        expected = weights.ravel() @ covariance @ weights.ravel()
        assert plan.errors.sum_variance(A, weights) == pytest.approx(expected, rel=1e-8, abs=1e-10), label(plan)
        where, kept = {}, np.ones(())
        for i in A:
            low, high = sorted(random.integers(0, SCHEMA.sizes[i], 2))
            where[SCHEMA.names[i]] = SCHEMA.attributes[i].labels[low : high + 1]
            kept = np.multiply.outer(kept, (np.arange(SCHEMA.sizes[i]) >= low) & (np.arange(SCHEMA.sizes[i]) <= high))
        names = [SCHEMA.names[i] for i in A]
        estimate, part = release.estimate(names, where), release.table(names, where=where)
        assert estimate.value == pytest.approx(part.values.sum(), abs=1e-8)
        assert part.values.size == kept.sum() and part.labels == tuple(map(tuple, where.values()))
        expected = kept.ravel() @ covariance @ kept.ravel()
        assert estimate.std_error**2 == pytest.approx(expected, rel=1e-8, abs=1e-10), label(plan)
        assert estimate.low <= estimate.value <= estimate.high


def check_cost(plan, dense):
    """The dearest column of a real cell, or the dearest difference of two."""
    real = dense.padded(np.ones(SCHEMA.sizes)) > 0
    columns = dense.S[:, real]
    budgets = np.where(dense.public, 0.0, dense.budget)

    def cost(change):
        return budgets @ (np.abs(change) if plan.law.name == "laplace" else change**2)

    if plan.privacy.neighbours == "add-remove":
        assert not dense.public.any()
        worst = cost(columns).max()
    else:
        assert not np.ptp(columns[dense.public], axis=1).any(), "an answer without noise changes"
        worst = max(cost(columns - other[:, None]).max() for other in columns.T)
    assert float(plan.row_cost(plan.budgets)) == pytest.approx(worst, rel=1e-10), label(plan)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("name", REQUESTS)
def test_what_is_measured_are_the_dense_rows_and_without_noise_tables_are_exact(name, neighbours):
    codes = random_codes(SCHEMA.sizes, 60)
    for plan in make_plans(name, {"epsilon": 1} if neighbours == "add-remove" else {"rho": 1}, neighbours):
        measurement = measure(plan, MemoryEngine(codes), noise=Silence())
        dense = DenseTree(plan)
        exact = dense.S @ dense.padded(exact_table(SCHEMA, codes, (0, 1, 2)))
        np.testing.assert_array_equal(np.concatenate([v.ravel() for v in measurement.values]), exact)
        for A, table in all_tables(plan, plan.answers(measurement)).items():
            np.testing.assert_allclose(table, exact_table(SCHEMA, codes, A), atol=1e-8, err_msg=label(plan))


def test_levels_that_leave_a_table_open_are_refused():
    request = ranged_request(SCHEMA, "prefix(a0)*a1", rho=1)
    trees = (Tree(5, (2, 3)), Tree(2, (2,)), Tree(3, (3,)))

    def plan(levels, wavelet=(False, False, False), trees=trees):
        budgets = np.full(len(levels), 0.01)
        return TreeDesign(request, "by hand", "optimal", "gls", "direct", budgets, trees, wavelet, np.array(levels))

    assert plan([(2, 1, 0)]).groups == 1
    with pytest.raises(PlanError, match="too little is measured"):
        plan([(2, 0, 0), (1, 1, 0), (0, 1, 0)])
    haar = (Tree(5, (2, 2, 2)), *trees[1:])
    assert plan([(m, 1, 0) for m in range(4)], (True, False, False), haar).groups == 4
    with pytest.raises(PlanError, match="too little is measured"):
        plan([(3, 1, 0)], (True, False, False), haar)
    for levels in ([(3, 1, 0)], [(2, 1, 1)], [(2, 1, 0)] * 2, [(-1, 1, 0), (2, 1, 0)]):
        with pytest.raises(ValueError, match="do not fit"):
            plan(levels)
    with pytest.raises(ValueError, match="do not fit"):
        plan([(m, 1, 0) for m in range(3)], (True, False, False))  # halves of a node with three children


def test_less_noise_on_a_level_cannot_hurt_any_answer():
    """The judge is not the only check: measuring more, or better, never makes generalised least squares worse."""
    request = ranged_request(SCHEMA, "prefix(a0)*a1", rho=1)
    trees = (Tree(5, (2, 3)), Tree(2, (2,)), Tree(3, (3,)))
    levels = [(2, 1, 0), (1, 1, 0), (0, 0, 0)]
    plans = [
        TreeDesign(request, "x", "optimal", "gls", "direct", np.array(b), trees, (False,) * 3, np.array(levels))
        for b in ([0.1, 0.1, 0.1], [0.1, 0.2, 0.1], [0.1, 0.2, 0.3], [0.3, 0.2, 0.3])
    ]
    (form,) = request.workload.forms
    variances = [plan.errors.form_variances(form, exact=True) for plan in plans]
    for worse, better in pairwise(variances):
        assert (better <= worse * (1 + 1e-9)).all() and better.sum() < worse.sum()


def test_noise_is_drawn_for_every_number_that_is_not_public():
    request = ranged_request(SCHEMA, "ranges(a0)*a1", neighbours="replace-one", epsilon="0.01")
    codes = random_codes(SCHEMA.sizes, 10)
    for plan in every_variant(request, ["wavelet", "hierarchy"], ["uniform"], ["gls"]):
        runs = [measure(plan, MemoryEngine(codes), entropy=SeededEntropy(seed)).values for seed in range(4)]
        still = [np.ptp([run[at] for run in runs], axis=0) == 0 for at in range(plan.groups)]
        # a number of rate 0.002 is the same four times with a chance below 1e-8
        assert [bool(each.any()) for each in still] == [not np.isfinite(b) for b in plan.budgets]
