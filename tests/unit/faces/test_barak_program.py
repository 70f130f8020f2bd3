"""The programs of Barak et al. against scipy's on the written-out matrix; their rows against dense matrices."""

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers import Dense, MemoryEngine, hand_plan, make_plan, make_request, marginal_rows, random_codes
from hushcube.errors import BadInput, HushcubeError, TimeLimitReached, TooLarge
from hushcube.faces import barak
from hushcube.faces.barak import nonnegative_table
from hushcube.faces.barak_rows import coefficient_rows, measured_rows, workload_rows
from hushcube.lattice.basis import MARGINAL
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

PURE, ZCDP = {"epsilon": "1/2"}, {"rho": "1/20"}
OBJECTIVES = {
    "fourier": ("max-coefficient", "total-coefficient", "max-marginal", "total-marginal"),
    "workload": ("max-marginal", "total-marginal"),
}
CASES = [(strategy, objective) for strategy, objectives in OBJECTIVES.items() for objective in objectives]
DOMAINS = [((2, 3, 4), "2-way"), ((2, 2, 2, 2, 2), "<=2-way"), ((3, 1, 5), "1..2-way"), ((7,), "cube")]


def measured(sizes, words, strategy, *, rows=60, seed=0, budgets="optimal", **privacy):
    plan = make_plan(make_request(sizes, words, **privacy), strategy, budgets)
    codes = np.minimum(
        random_codes(sizes, rows, seed), random_codes(sizes, rows, seed + 1)
    )  # small values are frequent
    return plan, measure(plan, MemoryEngine(codes), entropy=SeededEntropy(seed))


def dense(plan, measurement, objective):
    """The matrix, the targets, the deviations and the public rows, from the definitions."""
    dense = Dense(plan)
    z = np.concatenate([values.ravel() for values in measurement.values]).astype(float)
    variances = dense.noise_variances()
    if plan.basis.name == "marginal" or objective.endswith("coefficient"):
        return dense.S, z, np.sqrt(variances), dense.public
    asked = list(plan.request.marginals)
    direct = make_plan(plan.request, "fourier", plan.budget_rule, "none")
    R = np.concatenate([Dense(direct).recovery(A) for A in asked])
    M = np.concatenate([marginal_rows(plan.schema.sizes, A) for A in asked])
    if dense.public.any():  # the total, once more
        keep = [A for A in asked if A]
        R = np.concatenate([np.eye(len(z))[dense.public], *(Dense(direct).recovery(A) for A in keep)])
        M = np.concatenate([marginal_rows(plan.schema.sizes, A) for A in ((), *keep)])
    deviations = np.sqrt((R**2) @ variances)
    return M, R @ z, deviations, deviations == 0


def judge(M, targets, units, public, norm):
    """scipy's optimum of the whole program."""
    n = M.shape[1]
    A, t = M[~public] / units[~public, None], targets[~public] / units[~public]
    m = len(t)
    slack = np.ones((m, 1)) if norm == "max" else np.eye(m)
    cost = np.concatenate([np.zeros(n), np.ones(slack.shape[1])])
    found = linprog(
        cost,
        A_ub=np.block([[-A, -slack], [A, -slack]]),
        b_ub=np.concatenate([-t, t]),
        A_eq=np.hstack([M[public], np.zeros((public.sum(), slack.shape[1]))]) if public.any() else None,
        b_eq=targets[public] if public.any() else None,
    )
    assert found.status == 0
    return found.fun


def distance(M, targets, units, public, norm, w):
    errors = np.abs(targets - M @ w)[~public] / units[~public]
    return errors.max(initial=0) if norm == "max" else errors.sum()


@pytest.mark.parametrize(("sizes", "words"), DOMAINS)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("law", [PURE, ZCDP], ids=["pure", "zcdp"])
@pytest.mark.parametrize(("strategy", "objective"), CASES)
def test_rows_are_the_dense_matrix(sizes, words, neighbours, law, strategy, objective):
    plan, found = measured(sizes, words, strategy, neighbours=neighbours, **law)
    make = measured_rows if strategy == "workload" else coefficient_rows if "coeff" in objective else workload_rows
    rows = make(plan, found)
    M, targets, deviations, public = dense(plan, found, objective)
    r, c, entries = rows.entries(np.arange(M.shape[1]))
    written = np.zeros(M.shape)
    written[r, c] = entries
    order, same = (
        np.lexsort(np.column_stack([targets, M]).T),
        np.lexsort(np.column_stack([rows.aim.targets, written]).T),
    )
    if objective.endswith("coefficient") or strategy == "workload":
        order = same = np.arange(len(M))
    np.testing.assert_array_equal(written[same], M[order])
    np.testing.assert_allclose(rows.aim.targets[same], targets[order], atol=1e-9)
    np.testing.assert_allclose(rows.aim.deviations[same], deviations[order], rtol=1e-9)
    np.testing.assert_array_equal(rows.aim.public[same], public[order])
    assert rows.rank == np.linalg.matrix_rank(M)
    y = np.random.default_rng(1).normal(size=len(M))
    np.testing.assert_allclose(rows.adjoint(y), written.T @ y, atol=1e-9)
    assert len(r) == rows.column_entries * M.shape[1]


@pytest.mark.parametrize("weights", ["equal", "deviation"])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize(("sizes", "words"), [((2, 3, 4), "2-way"), ((2,) * 6, "<=2-way"), ((3, 1, 5), "1..2-way")])
@pytest.mark.parametrize(("strategy", "objective"), CASES)
def test_the_optimum_is_scipys(sizes, words, neighbours, strategy, objective, weights):
    plan, found = measured(sizes, words, strategy, neighbours=neighbours, **PURE)
    table = nonnegative_table(plan, found, objective, Clock(), weights=weights)
    M, targets, deviations, public = dense(plan, found, objective)
    units = deviations if weights == "deviation" else np.ones(len(M))
    norm = objective.split("-")[0]
    w = table.table.ravel()
    best = judge(M, targets, units, public, norm)
    assert table.distance == pytest.approx(best, rel=1e-6, abs=1e-5)
    assert distance(M, targets, units, public, norm, w) == pytest.approx(best, rel=1e-6, abs=1e-4)
    assert table.table.shape == sizes
    assert (w >= 0).all()
    assert table.support == (w > 0).sum() <= np.linalg.matrix_rank(M) <= table.rows == len(M)
    assert np.linalg.matrix_rank(M[:, w > 0]) == table.support  # a vertex: independent columns
    np.testing.assert_allclose(M[public] @ w, targets[public], atol=1e-6)
    assert np.abs(table.rounded - table.table).sum() <= table.support / 2 + 1e-9


@pytest.mark.parametrize("objective", OBJECTIVES["fourier"])
def test_columns_come_as_they_are_needed(monkeypatch, objective):
    """From few cells on, over more than one round, the optimum is still the full program's."""
    monkeypatch.setattr(barak, "_FIRST", 1)
    monkeypatch.setattr(barak, "_STEP", 1)
    sizes = (2,) * 8
    plan, found = measured(sizes, "2-way", "fourier", rows=3000, epsilon=1, budgets="uniform")
    seen = []
    table = nonnegative_table(plan, found, objective, Clock(None, lambda _stage, share: seen.append(share)))
    M, targets, _, public = dense(plan, found, objective)
    assert sum(share > 0 for share in seen) >= 1
    assert table.distance == pytest.approx(
        judge(M, targets, np.ones(len(M)), public, objective.split("-")[0]), abs=1e-4
    )


def test_without_noise_the_true_coefficients_are_met():
    """A feasible program has distance zero."""
    plan, found = measured((2, 3, 4), "2-way", "fourier", epsilon=500)
    table = nonnegative_table(plan, found, "max-coefficient", Clock())
    assert table.distance == pytest.approx(0, abs=1e-6)
    assert table.table.sum() == pytest.approx(60)


def test_halves_go_up(monkeypatch):
    plan, found = measured((2, 2), "cube", "fourier", epsilon=1)
    point = np.array([0.5, 1.5, 2.49, 0.0])
    monkeypatch.setattr(barak, "nearest", lambda *_given, **_named: (point, 0.0))
    table = nonnegative_table(plan, found, "max-coefficient", Clock())
    assert table.rounded.tolist() == [[1, 2], [2, 0]]


def test_an_interior_point_is_refused(monkeypatch):
    plan, found = measured((2,) * 6, "2-way", "fourier", **PURE)
    inner = barak.solve
    monkeypatch.setattr(barak, "solve", lambda *given, vertex=False: inner(*given))
    with pytest.raises(HushcubeError, match="no basic solution"):
        nonnegative_table(plan, found, "max-coefficient", Clock())


def test_time_limit():
    plan, found = measured((2, 3), "cube", "fourier", **PURE)
    with pytest.raises(TimeLimitReached):
        nonnegative_table(plan, found, "max-coefficient", Clock(0.0))


@pytest.mark.parametrize(
    ("sizes", "words", "strategy", "what"),
    [
        ((2,) * 19, "1-way", "fourier", "full table"),
        ((5,) * 7 + (3,), "1-way", "fourier", "bit codes"),
        ((2,) * 18, "<=4-way", "fourier", "workload, entries of the program"),
    ],
)
def test_too_large_names_the_other_method(sizes, words, strategy, what):
    plan, found = measured(sizes, words, strategy, rows=3, epsilon=1, budgets="uniform")
    with pytest.raises(TooLarge, match=f"{what}.*full-table"):
        nonnegative_table(plan, found, "max-coefficient", Clock())


def test_objectives_that_do_not_fit():
    plan, found = measured((2, 3), "cube", "workload", **PURE)
    with pytest.raises(BadInput, match=r"objective: .*max-marginal.*fourier"):
        nonnegative_table(plan, found, "max-coefficient", Clock())
    with pytest.raises(BadInput, match="objective: 'least'"):
        nonnegative_table(plan, found, "least", Clock())
    with pytest.raises(BadInput, match="weights: 'even'"):
        nonnegative_table(plan, found, "max-marginal", Clock(), weights="even")
    plan, found = measured((2, 3), "cube", "residual", **ZCDP)
    with pytest.raises(BadInput, match=r"objective: .*helmert"):
        nonnegative_table(plan, found, "max-marginal", Clock())


def test_a_plan_made_by_hand_of_larger_tables():
    """The non-Fourier program works on whatever tables are measured."""
    request = make_request((2, 3, 4), "1-way", epsilon=1)
    plan = hand_plan(request, MARGINAL, [(0, 1), (1, 2)], [0.25, 0.75])
    found = measure(plan, MemoryEngine(random_codes((2, 3, 4), 30)), entropy=SeededEntropy(3))
    table = nonnegative_table(plan, found, "max-marginal", Clock(), weights="deviation")
    M, targets, deviations, public = dense(plan, found, "max-marginal")
    assert table.distance == pytest.approx(judge(M, targets, deviations, public, "max"), rel=1e-6, abs=1e-6)
