"""Dense linear algebra judges the lattice: explicit matrices and numpy's pseudo-inverse, on every small domain."""

import numpy as np
import pytest

from helpers import (
    LAWS,
    NEIGHBOURS,
    SMALL_DOMAINS,
    Dense,
    MemoryEngine,
    Silence,
    all_subsets,
    all_tables,
    applicable,
    every_plan,
    exact_table,
    label,
    make_request,
    marginal_rows,
    projection,
    random_codes,
    set_rows,
)
from hushcube.designs.design import EVERY_RECOVERY
from hushcube.lattice.basis import BASES, dimensions, kernel
from hushcube.lattice.family import Family
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy


def judged_ways(law, *left_out):
    """The recoveries; least squares on the answers under one law only, for its algebra knows of none."""
    left_out = left_out if law == {"epsilon": 1} else ("answers", *left_out)
    return [recovery for recovery in EVERY_RECOVERY if recovery not in left_out]


@pytest.fixture(
    scope="module",
    params=[(s, law, n, r) for s in SMALL_DOMAINS for law in LAWS for n in NEIGHBOURS for r in applicable(law)],
    ids=lambda case: "-".join(map(str, case)),
)
def plans(request):
    """Each plan with its dense judge and its name: made once for all tests of a case, which pytest runs together.

    On the whole cube and, for two laws, on workloads with uneven weights that leave spaces unseen.
    """
    return list(judged(*request.param))


def judged(sizes, law, neighbours, strategy):
    words = ["cube"]
    if len(sizes) > 1 and law in ({"epsilon": 1}, {"rho": 20}):
        words += [f"{len(sizes) - 1}-way,a0*a1=7", "a0,a0*a1=0.25"]
    for word in words:
        for plan in every_plan(make_request(sizes, word, neighbours=neighbours, **law), [strategy], judged_ways(law)):
            yield plan, Dense(plan), f"{label(plan)} {word}"


def cubes(plans):
    return [(plan, message) for plan, _, message in plans if message.endswith(" cube")]


def assert_close(found, expected, message, *, within):
    """`assert_allclose` without relative tolerance, which is called so often here that its own time counts."""
    assert np.abs(found - expected).max() <= within, message


def consistent_numbers(dense, rng):
    """Any integers at all, but public answers are true ones."""
    numbers = rng.integers(-50, 50, len(dense.S))
    x = rng.integers(0, 9, dense.S.shape[1])
    numbers[dense.public] = (dense.S @ x)[dense.public]
    return numbers


def test_recovered_tables_are_those_of_the_dense_solution(plans):
    rng = np.random.default_rng(1)
    for plan, dense, message in plans:
        numbers = consistent_numbers(dense, rng)
        for A, table in all_tables(plan, plan.answers(dense.measurement(numbers))).items():
            expected = (dense.recovery(A) @ numbers).reshape(table.shape)
            assert_close(table, expected, f"{message} {A}", within=1e-8)


def test_predicted_variances_are_those_of_the_dense_covariance(plans):
    for plan, dense, message in plans:
        exact, continuous = (plan.errors.cell_variances(exact=exact) for exact in (True, False))
        for number, A in enumerate(plan.request.marginals):
            diagonal = np.diag(dense.covariance(A))
            assert exact[number] == pytest.approx(diagonal.mean(), rel=1e-9, abs=1e-12), f"{message} {A}"
            cells = np.broadcast_to(plan.errors.cell_variance_table(A), plan.schema.shape(A))
            np.testing.assert_allclose(cells.ravel(), diagonal, rtol=1e-8, atol=1e-12, err_msg=f"{message} {A}")
            mean = np.diag(dense.covariance(A, exact=False)).mean()
            assert continuous[number] == pytest.approx(mean, rel=1e-9, abs=1e-12), f"{message} {A}"


def test_variance_of_a_weighted_sum_is_that_of_the_dense_covariance(plans):
    rng = np.random.default_rng(2)
    for plan, dense, message in plans:
        for A in plan.request.marginals:
            weights = np.asarray(rng.normal(size=plan.schema.shape(A)))
            expected = weights.ravel() @ dense.covariance(A) @ weights.ravel()
            assert plan.errors.sum_variance(A, weights) == pytest.approx(expected, rel=1e-8, abs=1e-10), (
                f"{message} {A}"
            )


def test_a_measurement_without_noise_recovers_the_exact_tables(plans):
    for plan, message in cubes(plans):
        codes = random_codes(plan.schema.sizes, 100)
        tables = all_tables(plan, plan.answers(measure(plan, MemoryEngine(codes), noise=Silence())))
        for A, table in tables.items():
            assert_close(table, exact_table(plan.schema, codes, A), f"{message} {A}", within=1e-9)


def add_up(plan, message):
    tables = all_tables(
        plan, plan.answers(measure(plan, MemoryEngine(random_codes(plan.schema.sizes, 200)), entropy=SeededEntropy(5)))
    )
    for A, big in tables.items():
        for B, small in tables.items():
            if set(B) <= set(A):
                summed = big.sum(axis=tuple(at for at, i in enumerate(A) if i not in B))
                assert_close(summed, small, f"{message} {A} {B}", within=1e-9)


def test_least_squares_tables_add_up(plans):
    for plan, message in cubes(plans):
        if plan.recovery != "none":
            add_up(plan, message)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_larger_least_squares_tables_add_up(law, neighbours):
    request = make_request((9, 2, 5), neighbours=neighbours, **law)
    for plan in every_plan(request, recoveries=judged_ways(law, "none")):
        add_up(plan, label(plan))


@pytest.mark.parametrize("sizes", SMALL_DOMAINS, ids=str)
@pytest.mark.parametrize("name", BASES)
def test_gram_matrix_of_explicit_rows_is_diagonal_over_the_residual_spaces(sizes, name):
    """S'WS = sum_C N K_C P_C, for one set at a time and for all sets with uneven precisions."""
    everything = all_subsets(range(len(sizes)))
    spaces = Family.of(everything, sizes)
    N = np.prod(sizes)
    rng = np.random.default_rng(3)
    for sets in [*([B] for B in everything), everything]:
        measured = Family.of(sets, sizes)
        precisions = rng.uniform(0.1, 3, len(measured))
        gram = np.zeros((N, N))
        for B, w in zip(measured, precisions, strict=True):
            rows = set_rows(name, sizes, B)
            if name == "centred":
                rows = rows / np.prod([sizes[i] for i in B])
            if name == "helmert":
                rows = rows / np.sqrt((set_rows(name, [sizes[i] for i in B], range(len(B))) ** 2).sum(axis=1))[:, None]
            gram += w * rows.T @ rows
        K = kernel(BASES[name], measured, precisions, spaces)
        expected = sum(N * k * projection(sizes, C) for k, C in zip(K, spaces, strict=True))
        np.testing.assert_allclose(gram, expected, atol=1e-9)


@pytest.mark.parametrize("sizes", SMALL_DOMAINS, ids=str)
def test_residual_spaces_have_the_stated_dimensions_and_split_every_marginal(sizes):
    everything = all_subsets(range(len(sizes)))
    spaces = Family.of(everything, sizes)
    for C, m in zip(spaces, dimensions(spaces), strict=True):
        P = projection(sizes, C)
        assert round(np.trace(P)) == m
        for A in everything:
            sees = np.abs(marginal_rows(sizes, A) @ P).max() > 1e-9
            assert sees == (set(C) <= set(A) and m > 0)


def test_tables_without_recovery_do_not_add_up():
    """The check above can fail: raw noisy tables contradict each other."""
    plan = next(every_plan(make_request((2, 3), epsilon=1), ["workload"], ["none"]))
    tables = all_tables(
        plan, plan.answers(measure(plan, MemoryEngine(random_codes((2, 3), 50)), entropy=SeededEntropy(5)))
    )
    assert np.abs(tables[0, 1].sum(axis=1) - tables[0,]).max() > 0.5
