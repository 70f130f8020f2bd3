"""The strategy `matrix`: the papers' numbers, numpy's pseudo-inverse as the judge, simulations, and refusals."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from helpers import LAWS, NEIGHBOURS, MemoryEngine, all_tables, exact_table, make_schema, random_codes, released
from hushcube.costs import calibrate
from hushcube.designs import MatrixDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import Request
from hushcube.errors import BadInput, BudgetExceeded, NotApplicable, PlanError
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.planning.plan import read_design
from hushcube.planning.planner import compare
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import Matrix

A_AND_AB = [[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
TREE = [[1, 1, 1, 1, 1, 1], [1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 0, 0, 2, 0, -1], [0, 0, 1, 1, 1, 1]]
"""Five rows of rank four over 2 x 3 cells."""


@dataclass(frozen=True, kw_only=True)
class Asked(Request):
    """A request, and the strategy that it is put to."""

    strategy: Matrix = field(compare=False)


def request(sizes, words, S, *, queries=None, neighbours="add-remove", attributes=None, **law):
    schema = make_schema(sizes)
    own = None if queries is None else query_table(schema, None, queries)
    workload = Workload.parse(words, schema, own)
    matrix = Matrix(rows=query_table(schema, attributes, S, field="rows"))
    privacy = Privacy.of(neighbours=neighbours, **(law or {"epsilon": 1}))
    return Asked(workload, privacy, effort="low", strategy=matrix)


def plan(asked, budgets="optimal", recovery="gls"):
    return asked.strategy.plan(asked, budgets, recovery)


def intro(**rest):
    return request((2, 2), "a0,a0*a1", A_AND_AB, **rest)


def by_hand(asked, group_of, budgets, recovery):
    """A plan with budgets of one's own."""
    own = asked.strategy.rows
    return MatrixDesign(
        asked, "matrix", "optimal", recovery, "direct", np.array(budgets), own.marginal, own.rows, tuple(group_of)
    )


def total(decided):
    return decided.errors.total_variance(exact=False)


# ------------------------------------------------------------------------------------------------------- the papers


@pytest.mark.parametrize(
    ("budgets", "recovery", "expected"),
    [("uniform", "none", 48), ("uniform", "gls", 32), ("optimal", "none", 46.167865222356866), ("optimal", "gls", 16)],
)
def test_vectors_1_and_2(budgets, recovery, expected):
    assert total(plan(intro(), budgets, recovery)) == pytest.approx(expected, rel=1e-9)


def test_vectors_1_and_2_at_four_ninths():
    shares = [math.nextafter(4 / 9, 0), math.nextafter(5 / 9, 0)]
    plain, gls = (by_hand(intro(), (0, 0, 1, 1, 1, 1), shares, r) for r in ("none", "gls"))
    assert total(plain) == pytest.approx(46.17, rel=1e-9)
    A, AB = plain.errors.row_variances(exact=False)[[0, 2]]
    assert pytest.approx(34.6275, rel=1e-9) == 2 * (A + 2 * AB) / 4 + 4 * (AB + (A + AB)) / 4
    assert gls.errors.cell_variances(exact=False) == pytest.approx([5.684210526315789, 4.661052631578947], rel=1e-9)
    assert total(gls) == pytest.approx(30.012631578947367, rel=1e-9)


def test_vector_2_the_alternation_gives_a_up():
    decided = plan(intro())
    assert len(decided.rows) == 4 and decided.details["rows"] == 6 and decided.details["budgets"] == "closed form"


def test_vector_2_gaussian_optimum():
    assert total(plan(intro(rho="1/2"))) == pytest.approx(4 + 2 * math.sqrt(3), rel=1e-7)


def test_vector_4_unbalanced_groups():
    S = [[1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    asked = request((3,), "queries", S, queries=S)
    decided = plan(asked, "optimal", "none")
    assert total(decided) == pytest.approx(39.08393261117844, rel=1e-9)
    assert decided.details["budgets"] == "convex program" and decided.groups == 5


# ------------------------------------------------------------------------------------------------- dense algebra


def judge(decided, *, exact):
    """R for all cells of the carrier, from numpy's pseudo-inverse; the public total is a constraint."""
    S, public = decided.rows.dense(), decided.public
    variances = decided.errors.row_variances(exact=exact)
    weights = np.ones(len(S)) if decided.recovery == "ols" else 1 / np.where(public, 1.0, variances)
    root = np.sqrt(weights[~public])[:, None]
    if not public.any():
        return np.linalg.pinv(root * S, rcond=1e-10) * root.T
    N = S.shape[1]
    ones = np.full((N, N), 1 / N)
    H = np.zeros((N, len(S)))
    H[:, ~public] = np.linalg.pinv(root * S[~public] @ (np.eye(N) - ones), rcond=1e-10) * root.T
    at = np.flatnonzero(public)[0]
    H[:, at] = (np.ones(N) - H[:, ~public] @ S[~public].sum(axis=1)) / (N * S[at, 0])
    return H


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("recovery", ["gls", "ols"])
@pytest.mark.parametrize("budgets", BUDGETS)
def test_least_squares_on_rows_that_depend_on_each_other(law, neighbours, recovery, budgets):
    Q = np.array([TREE[0], TREE[2], np.add(TREE[1], TREE[4]), TREE[3]]) / 2
    asked = request((2, 3), "queries", TREE, queries=Q, neighbours=neighbours, **law)
    decided = plan(asked, budgets, recovery)
    for exact in (True, False):
        H = judge(decided, exact=exact)
        assert Q @ H @ decided.rows.dense() == pytest.approx(Q, abs=1e-9)  # unbiased
        cov = (H * decided.errors.row_variances(exact=exact)) @ H.T
        assert decided.errors.form_variances(asked.workload.queries, exact=exact) == pytest.approx(
            np.diag(Q @ cov @ Q.T), rel=1e-7, abs=1e-9
        )
    numbers = np.arange(len(decided.rows)) * 7 - 3
    from hushcube.bundle.part import RecoveredTables
    from hushcube.model.noise import Measurement

    source = RecoveredTables(decided, Measurement(decided.digest, (numbers,), private=False))
    assert source.form(asked.workload.queries) == pytest.approx(Q @ judge(decided, exact=True) @ numbers, abs=1e-8)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_marginals_forms_and_sums_agree_with_the_covariance(neighbours, recovery):
    """On 2 x 3 cells, the rows are all cells, a margin and a total; every prediction from one covariance."""
    S = np.concatenate([np.eye(6), np.kron(np.eye(2), np.ones((1, 3))), np.ones((1, 6))])
    asked = request((2, 3), "cube" if recovery != "none" else "a0,a0*a1", S, neighbours=neighbours)
    decided = plan(asked, "uniform", recovery)
    if recovery == "none":
        variance = decided.errors.row_variances(exact=True)[0]
        assert decided.errors.cell_variances(exact=True) == pytest.approx(variance)
        assert decided.errors.sum_variance((0, 1), np.ones((2, 3))) == pytest.approx(6 * variance)
        assert decided.errors.cell_variance_table((1,)) == pytest.approx(2 * variance)  # rolled up from a0*a1
        return
    cov = decided.errors.covariance(exact=True).reshape(2, 3, 2, 3)
    tables = {(): cov.sum(), (0,): cov.sum(axis=(1, 3)), (1,): cov.sum(axis=(0, 2)), (0, 1): cov.reshape(6, 6)}
    for A, mean in zip(asked.marginals, decided.errors.cell_variances(exact=True), strict=True):
        cells = asked.schema.cells(A)
        dense = np.asarray(tables[A]).reshape(cells, cells)
        assert mean == pytest.approx(np.trace(dense) / cells, abs=1e-12)
        assert decided.errors.cell_variance_table(A).ravel() == pytest.approx(np.diag(dense), abs=1e-12)
        w = np.arange(1.0, cells + 1)
        found = decided.errors.sum_variance(A, w.reshape(asked.schema.shape(A)))
        assert found == pytest.approx(w @ dense @ w, abs=1e-9)


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_ranges_and_prefixes(recovery):
    from hushcube.designs.matrix.row_space import form_rows
    from hushcube.model.attribute import Attribute
    from hushcube.model.schema import Schema

    schema = Schema((Attribute(name="age", range=(0, 3)), Attribute(name="sex", codes=2)))
    workload = Workload.parse("ranges(age)*sex,prefix(age)", schema)
    S = np.concatenate([np.eye(8), np.kron(np.eye(4), np.ones((1, 2))), _all_rows(workload)])
    matrix = Matrix(rows=query_table(schema, None, S))
    asked = Asked(workload, Privacy.of(epsilon=1, neighbours="add-remove"), strategy=matrix)
    decided = plan(asked, "uniform", recovery)
    for form in workload.forms:
        found = decided.errors.form_variances(form, exact=True)
        assert found.shape == form.shape
        if recovery == "none":
            assert found == pytest.approx(decided.errors.row_variances(exact=True)[0])
            continue
        cov = decided.errors.covariance(exact=True)
        lift = np.array([row if len(row) == 8 else np.repeat(row, 2) for row in form_rows(form)])
        assert found.ravel() == pytest.approx(np.einsum("qc,cd,qd->q", lift, cov, lift))


def _all_rows(workload):
    from hushcube.designs.matrix.row_space import form_rows

    return [row if len(row) == 8 else np.repeat(row, 2) for form in workload.forms for row in form_rows(form)]


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_alternation_is_at_least_as_good_as_every_start(law, neighbours):
    S = np.concatenate([np.eye(6), np.kron(np.eye(2), np.ones((1, 3))), np.kron(np.ones((1, 2)), np.eye(3))])
    asked = request((2, 3), "1-way,a0*a1=0.1", S, neighbours=neighbours, **law)
    best = plan(asked, "optimal", "gls").errors.weighted_variance()
    for budgets, recovery in [("uniform", "gls"), ("optimal", "ols"), ("optimal", "none"), ("uniform", "none")]:
        assert best <= plan(asked, budgets, recovery).errors.weighted_variance() * (1 + 1e-6)


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_weights_steer_the_budgets(recovery):
    words = ["a0,a0*a1", "a0=1000,a0*a1"]
    plain, heavy = (plan(request((2, 2), word, A_AND_AB), "optimal", recovery) for word in words)
    assert heavy.errors.cell_variances(exact=False)[0] < plain.errors.cell_variances(exact=False)[0]


# ---------------------------------------------------------------------------------------------------- whole releases


@pytest.mark.slow
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_simulated_errors_match_the_predictions(law, neighbours):
    """Mean squared errors over 3,000 seeded releases, within 5 standard deviations of their mean.

    Plans that differ in how tables are recovered measure the same, and share the measurements.
    """
    asked = intro(neighbours=neighbours, **law)
    plans = [plan(asked, "uniform", recovery) for recovery in RECOVERIES]
    assert all((decided.budgets == plans[0].budgets).all() for decided in plans)
    codes = random_codes((2, 2), 50)
    truth = {A: exact_table(asked.schema, codes, A) for A in asked.workload.marginals}
    rounds = 3000
    squares = {(p, A): np.zeros((rounds, *np.shape(t))) for p in range(len(plans)) for A, t in truth.items()}
    entropy = SeededEntropy(11)
    for i in range(rounds):
        measured = measure(plans[0], MemoryEngine(codes), entropy=entropy)
        for p, decided in enumerate(plans):
            answers = decided.answers(replace(measured, plan_digest=decided.digest))
            for A, table in all_tables(decided, answers).items():
                squares[p, A][i] = (table - truth[A]) ** 2
    for (p, A), found in squares.items():
        decided = plans[p]
        predicted = np.broadcast_to(decided.errors.cell_variance_table(A), found.shape[1:])
        slack = 5 * found.std(axis=0) / math.sqrt(rounds) + 1e-9
        assert (np.abs(found.mean(axis=0) - predicted) < slack).all()
        if predicted.max() > 0:
            assert (np.abs(found.mean(axis=0) - 1.3 * predicted) > slack)[predicted > 0].all()  # and not 30% more


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_plans_cost_what_the_guarantee_allows_and_read_back(law, neighbours):
    for budgets in BUDGETS:
        for recovery in RECOVERIES:
            decided = plan(intro(neighbours=neighbours, **law), budgets, recovery)
            allowed = calibrate.row_budget(decided.privacy, decided.proof)
            if decided.proof != "smoothing":
                assert allowed * (1 - 10**-9) <= decided.row_cost(decided.budgets) <= allowed
            again = read_design(decided.to_json())
            assert again.digest == decided.digest and total(again) == total(decided)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_noise_cannot_be_switched_off(neighbours):
    for budgets in ([math.inf, 0.1], [0.1, math.inf]):
        with pytest.raises(BudgetExceeded):
            by_hand(intro(neighbours=neighbours), (0, 0, 1, 1, 1, 1), budgets, "gls")


def test_a_plan_that_costs_too_much_cannot_exist():
    with pytest.raises(BudgetExceeded):
        by_hand(intro(), (0, 0, 1, 1, 1, 1), [0.5, 0.51], "gls")


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["rows"]["values"].__setitem__(0, 0.5),
        lambda raw: raw["rows"].__setitem__("width", 5),
        lambda raw: raw.__setitem__("marginal", [1, 0]),
        lambda raw: raw.__setitem__("marginal", [0]),
        lambda raw: raw["group_of"].__setitem__(0, 7),
        lambda raw: raw["group_of"].pop(),
        lambda raw: raw["budget"].__setitem__(0, None),
        lambda raw: raw.__setitem__("rows", None),
    ],
)
def test_changed_plan_files_are_refused(change):
    import json

    raw = json.loads(plan(intro(), "uniform").to_json())
    change(raw)
    with pytest.raises(BadInput):
        read_design(json.dumps(raw))


def test_a_release_of_queries_in_memory():
    Q = [[1, 1, 1, 0, 0, 0], [0.5, 0, 0, 0, 0, 0.5]]
    asked = request((2, 3), "queries,a0", np.eye(6), queries=Q)
    decided = plan(asked)
    codes = random_codes((2, 3), 400)
    release = released(decided, measure(decided, MemoryEngine(codes), entropy=SeededEntropy(1)))
    assert list(release) == ["a0", "queries"]
    table = release.table("queries")
    assert table.attributes == ("query",) and table.labels == (("0", "1"),)
    exact = np.array(Q) @ exact_table(asked.schema, codes, (0, 1)).ravel()
    assert (np.abs(table.values - exact) < 25 * table.std_errors).all()
    assert release.table("total").std_errors.shape == ()


def test_matrices_over_some_of_the_attributes_in_any_order():
    """Over a1*a0 of three attributes: the columns are moved into schema order."""
    S = np.zeros((6, 6))
    S[np.arange(6), np.arange(6)] = np.arange(1, 7)
    asked = request((2, 3, 4), "a0*a1", S, attributes=["a1", "a0"])
    decided = plan(asked, "uniform", "none")
    assert decided.marginal == (0, 1)
    codes = random_codes((2, 3, 4), 100)
    values = measure(decided, MemoryEngine(codes), entropy=SeededEntropy(0)).values[0]
    table = exact_table(asked.schema, codes, (0, 1))
    noise = values - np.arange(1, 7) * table.T.ravel()
    assert np.abs(noise).max() < 300  # rate 1/6


# ---------------------------------------------------------------------------------------------------------- refusals


def test_it_applies_only_where_a_matrix_is_given():
    asked = Request(Workload.parse("a0", make_schema((2, 2))), Privacy.of(epsilon=1, neighbours="add-remove"))
    assert "matrix:rows=FILE" in Matrix().accepts(asked)
    assert "matrix" not in compare(asked, strategy="all").skipped
    with pytest.raises(NotApplicable, match="no rows are given"):
        compare(asked, strategy="matrix")


def test_attributes_outside_the_matrix_are_refused():
    asked = request((2, 2), "a0,a1", [[1, 0], [0, 1]], attributes=["a0"])
    with pytest.raises(NotApplicable, match="a1 has attributes that the matrix's table a0 lacks"):
        compare(asked, strategy=asked.strategy)


def test_large_domains_are_refused():
    """Those whose cells the rows tell apart; others are small.          [tests/unit/strategies/test_wide_matrix.py]"""
    asked = request((70, 70), "a0", np.arange(4900)[None])
    with pytest.raises(NotApplicable, match="4,900 distinct columns"):
        compare(asked, strategy=asked.strategy)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("budgets", BUDGETS)
def test_what_lies_outside_the_row_space_is_named(neighbours, budgets):
    asked = request((2, 2), "a0,a1", [[1, 1, 0, 0], [0, 0, 1, 1], [2, 2, -1, -1]], neighbours=neighbours)
    with pytest.raises(BadInput, match="a1 lies outside its row space") as caught:
        plan(asked, budgets)
    assert "add the rows" in caught.value.fix


def test_a_query_outside_the_row_space_is_named():
    asked = request((2, 2), "queries", [[1, 1, 0, 0]], queries=[[2, 2, 0, 0], [1, 0, 0, 0]])
    with pytest.raises(BadInput, match=r"row 1 of queries lies outside its row space"):
        plan(asked)


def test_under_replace_one_the_total_need_not_be_a_row():
    asked = request((2, 2), "a0,0-way", [[1, 1, 0, 0]], neighbours="replace-one")
    decided = plan(asked)
    variances = dict(zip(asked.marginals, decided.errors.cell_variances(exact=True), strict=True))
    assert variances[()] == pytest.approx(0, abs=1e-12) and variances[0,] > 0
    with pytest.raises(BadInput, match="outside its row space"):
        plan(request((2, 2), "a0,0-way", [[1, 1, 0, 0]]))


def test_only_the_total_is_asked_for_and_it_is_public():
    for budgets in BUDGETS:
        for recovery in RECOVERIES:
            decided = plan(request((2, 2), "0-way", A_AND_AB, neighbours="replace-one"), budgets, recovery)
            assert total(decided) == pytest.approx(0, abs=1e-12)


def test_without_recovery_every_answer_must_be_a_row():
    asked = request((2, 2), "a0,a1", A_AND_AB)
    with pytest.raises(NotApplicable, match="multiple of one of its rows, and a1 is not"):
        plan(asked, "optimal", "none")
    compared = compare(asked, strategy=asked.strategy, recovery="gls")
    assert compared.chosen.strategy == "matrix"


def test_multiples_of_rows_answer_without_recovery():
    asked = request((2,), "queries", [[3, 0], [1, 1]], queries=[[1, 0], [0, 0], [-2, -2]])
    decided = plan(asked, "uniform", "none")
    variance = decided.errors.row_variances(exact=True)[0]
    found = decided.errors.form_variances(asked.workload.queries, exact=True)
    assert found == pytest.approx([variance / 9, 0, 4 * variance])


@pytest.mark.parametrize(
    ("S", "problem", "fix"),
    [
        ([[0.5, 1]], "row 0 holds 0.5", "multiply the row by its denominator"),
        ([[1e6, 1]], "beyond 65,536", "common factor"),
        (np.ones((8193, 2)), "8,193 rows", "fewer rows"),
        ([[math.nan, 1]], "NaN", "finite"),
        ([[1, 2, 3]], "3 numbers, the table a0 has 2 cells", "one number for each cell"),
        ([[1, 2], [3]], "not equally long", ""),
        ([["x", "y"]], "not equally long lists of numbers", ""),
    ],
)
def test_bad_matrices(S, problem, fix):
    with pytest.raises(BadInput, match=problem) as caught:
        Matrix(rows=(None, S)).on(make_schema((2,)))
    assert caught.value.field == "rows" and fix in caught.value.fix


def test_rows_of_zeros_are_no_rows():
    with pytest.raises(BadInput, match="zero"):
        plan(request((2,), "a0", [[0, 0]]))
    assert len(plan(request((2,), "a0", [[0, 0], [1, 0], [0, 1]]), "uniform").rows) == 2


def test_a_plan_without_the_workloads_attributes_cannot_exist():
    asked = request((2, 2), "a0,a0*a1", A_AND_AB)
    own = query_table(asked.schema, ["a0"], [[1, 0], [0, 1]])
    with pytest.raises(PlanError, match="attributes"):
        MatrixDesign(asked, "matrix", "optimal", "gls", "direct", np.array([1.0]), own.marginal, own.rows, (0, 0))


@pytest.mark.slow
def test_a_larger_matrix_in_good_time():
    """256 cells and 511 nodes of a tree: dense algebra, budgets and the alternation."""
    tree = np.concatenate([np.kron(np.eye(2**k), np.ones((1, 2 ** (8 - k)))) for k in range(9)])
    asked = request((8, 8, 4), "2-way", tree)
    assert total(plan(asked)) < total(plan(asked, "uniform"))
