"""Plans over nested levels: what the strategy `levels` decides, and plans by hand, against dense linear algebra."""

from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from helpers import LAWS, NEIGHBOURS, MemoryEngine, all_tables, exact_table, label, make_request
from hushcube.costs import calibrate, row_cost as cost
from hushcube.designs import LatticeDesign, LevelDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.form import GroupTable
from hushcube.model.noise import Measurement, gaussian_variance, laplace_variance
from hushcube.model.schema import Schema
from hushcube.planning.plan import read_design
from hushcube.planning.planner import compare
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import ALL, REGISTRY
from nested import WORDS, attribute, covariance, flat, marginal_rows, nested_request, random_people

everywhere = pytest.mark.parametrize(("law", "neighbours"), list(product(LAWS, NEIGHBOURS)), ids=str)


def variants(words=WORDS, *, rules=BUDGETS, recoveries=RECOVERIES, neighbours="add-remove", rows=1, **law):
    return [planned(words, neighbours, rows, tuple(law.items()), rule, way) for rule, way in product(rules, recoveries)]


@cache
def planned(words, neighbours, rows, law, rule, way):
    request = nested_request(words, neighbours=neighbours, rows=rows, **dict(law))
    return REGISTRY["levels"].plan(request, rule, way)


def by_hand(request, measured, budgets, recovery="gls", proof="direct"):
    family = Family.of(measured, request.schema.sizes)
    ordered = np.empty(len(family))
    ordered[family.ids(measured)] = budgets
    return LevelDesign(request, "by hand", "optimal", recovery, proof, ordered, family)


class Dense:
    """A plan as matrices over the finest cells: z = S x + noise; answers of a marginal are rows times an estimate."""

    def __init__(self, plan):
        self.plan = plan
        tables = list(plan.measured)
        order = [int(i) for batch in plan.measured.batches for i in batch.ids]  # as a Measurement holds its numbers
        rows = [marginal_rows(plan.schema, tables[i]) for i in order]
        self.S = np.concatenate(rows)
        self.set_of = np.concatenate([np.full(len(r), i) for r, i in zip(rows, order, strict=True)])
        budget = plan.budgets[self.set_of]
        self.public = ~np.isfinite(budget)
        safe = np.where(self.public, 1.0, budget)
        drawn = laplace_variance(safe) if plan.law.name == "laplace" else gaussian_variance(0.5 / safe)
        self.noise = np.where(self.public, 0.0, drawn)

    def estimator(self):
        """The matrix from measured numbers to an estimate of all cells (least squares)."""
        n, u = self.S.shape[1], np.where(self.public, 0.0, 1.0)
        if self.plan.recovery == "gls":
            u = np.where(self.public, 0.0, 1 / np.where(self.public, 1.0, self.noise))
        public = bool(self.public.any())
        C = covariance(self.S, u, public=public)
        H = C @ self.S.T * u
        if public:  # x = total/n + centred part, for which the known total is moved to the other side
            total = np.flatnonzero(self.public)[:1]
            known = np.zeros((1, len(self.S)))
            known[0, total] = 1.0
            even = np.full((n, 1), 1 / n)
            H = even @ known + H - (H @ self.S @ even) @ known
        return H


def any_numbers(plan, dense, seed=0):
    """Any integers at all, but public answers are true ones."""
    random = np.random.default_rng(seed)
    numbers = random.integers(-40, 60, len(dense.S))
    true = dense.S @ random.integers(0, 9, dense.S.shape[1])
    numbers[dense.public] = true[dense.public]
    return numbers


def measurement_of(plan, numbers):
    values, at = [], 0
    for shape in plan.shapes:
        size = int(np.prod(shape))
        values.append(np.asarray(numbers[at : at + size], np.int64).reshape(shape))
        at += size
    return Measurement(plan.digest, tuple(values), private=False)


# --------------------------------------------------------------------------------------------- the dense judge


@everywhere
def test_tables_and_errors_are_those_of_the_dense_solution(law, neighbours):
    for plan in variants(neighbours=neighbours, recoveries=("gls", "ols"), **law):
        dense = Dense(plan)
        numbers = any_numbers(plan, dense)
        H = dense.estimator()
        C = (H * dense.noise) @ H.T
        tables = all_tables(plan, plan.answers(measurement_of(plan, numbers)))
        means = dict(zip(plan.request.marginals, plan.errors.cell_variances(exact=True), strict=True))
        for marginal, table in tables.items():
            R = marginal_rows(plan.schema, marginal)
            np.testing.assert_allclose(table.ravel(), R @ H @ numbers, rtol=1e-7, atol=1e-6, err_msg=label(plan))
            expected = np.diag(R @ C @ R.T)
            shown = np.broadcast_to(plan.errors.cell_variance_table(marginal), table.shape)
            np.testing.assert_allclose(shown.ravel(), expected, rtol=1e-6, atol=1e-8, err_msg=label(plan))
            np.testing.assert_allclose(means[marginal], expected.mean(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 20}], ids=str)
def test_forms_and_weighted_sums(law, recovery):
    bands = attribute("a", [[0, 0, 0, 1, 1, 2]])
    ordered = Schema((type(bands)(name="a", values=bands.values, levels=bands.levels, ordered=True), flat("u", 2)))
    words = "prefix(a)*u,ranges(a@l1),a@l1*u=3,a"
    for rule in BUDGETS:
        plan = REGISTRY["levels"].plan(nested_request(words, ordered, **law), rule, recovery)
        random = np.random.default_rng(0)
        C = None
        if recovery != "none":
            H = Dense(plan).estimator()
            C = (H * Dense(plan).noise) @ H.T
        for form in plan.workload.forms:
            size = int(np.prod(form.carrier_shape))
            Q = np.stack([form.evaluate(cell.reshape(form.carrier_shape)).ravel() for cell in np.eye(size)], axis=1)
            R = marginal_rows(plan.schema, form.marginal)
            found = plan.errors.form_variances(form, exact=True)
            if C is not None:
                np.testing.assert_allclose(found.ravel(), np.diag(Q @ R @ C @ R.T @ Q.T), rtol=1e-7, atol=1e-9)
            each = [plan.errors.sum_variance(form.marginal, row.reshape(form.carrier_shape)) for row in Q]
            np.testing.assert_allclose(found.ravel(), each, rtol=1e-7, atol=1e-9)
            np.testing.assert_allclose(plan.errors.form_total(form, exact=True), found.sum(), rtol=1e-7)
            weights = random.normal(size=form.carrier_shape)
            if C is not None:
                q = weights.ravel() @ R
                np.testing.assert_allclose(plan.errors.sum_variance(form.marginal, weights), q @ C @ q, rtol=1e-7)
        marginal = plan.workload.marginals[0]
        attributes = tuple(plan.schema.attributes[i] for i in marginal)
        rolled = GroupTable(marginal, attributes, (None, attributes[1]), (np.zeros(3, np.int64), np.arange(2)))
        found = plan.errors.form_variances(rolled, exact=True)
        slab = np.outer(np.ones(3), [1.0, 0.0])
        np.testing.assert_allclose(found[0], plan.errors.sum_variance(marginal, slab), rtol=1e-9)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_without_recovery_each_table_comes_from_the_best_single_source(neighbours):
    for plan in variants(neighbours=neighbours, recoveries=["none"], epsilon=1):
        dense = Dense(plan)
        numbers = any_numbers(plan, dense)
        tables = all_tables(plan, plan.answers(measurement_of(plan, numbers)))
        measured = list(plan.measured)
        for marginal, table in tables.items():
            R = marginal_rows(plan.schema, marginal)
            options = []
            for i in range(len(measured)):
                own = dense.set_of == i
                groups = R @ dense.S[own].T > 0  # which cells of the source lie in which cell
                if np.array_equal(np.sign(groups @ dense.S[own]), R):
                    options.append((groups @ numbers[own], groups @ dense.noise[own], measured[i] == marginal))
            ours = [o for o in options if o[2]] or [min(options, key=lambda o: o[1].sum())]
            np.testing.assert_allclose(table.ravel(), ours[0][0])
            shown = np.broadcast_to(plan.errors.cell_variance_table(marginal), table.shape)
            np.testing.assert_allclose(shown.ravel(), ours[0][1])


def test_levels_of_equal_groups_are_an_ordinary_lattice():
    """Six values in groups of two are a pair of attributes: 3 groups, 2 members."""
    levels = nested_request(
        "s*u,s@l1,s@l1*u,0-way", Schema((attribute("s", [[0, 0, 1, 1, 2, 2]]), flat("u", 2))), epsilon=1
    )
    pairs = make_request((3, 2, 2), "a0*a1*a2,a0,a0*a2,0-way", epsilon=1)
    budgets = [0.1, 0.2, 0.3, 0.05]
    for recovery in RECOVERIES:
        ours = by_hand(levels, [(1, 2), (0,), (0, 2), ()], budgets, recovery)
        family = Family.of([(0, 1, 2), (0,), (0, 2), ()], pairs.schema.sizes)
        ordered = np.empty(4)
        ordered[family.ids([(0, 1, 2), (0,), (0, 2), ()])] = budgets
        theirs = LatticeDesign(pairs, "by hand", "optimal", recovery, "direct", ordered, MARGINAL, family)
        names = {(1, 2): (0, 1, 2), (0,): (0,), (0, 2): (0, 2), (): ()}
        for exact in (True, False):
            a = dict(zip(levels.marginals, ours.errors.cell_variances(exact=exact), strict=True))
            b = dict(zip(pairs.marginals, theirs.errors.cell_variances(exact=exact), strict=True))
            for mine, other in names.items():
                assert a[mine] == pytest.approx(b[other], rel=1e-9)


# ------------------------------------------------------------------------------------------------ what plans promise


@everywhere
def test_plans_read_back_the_same_and_are_made_the_same_way_twice(law, neighbours):
    for rule, plan in zip(BUDGETS, variants(neighbours=neighbours, recoveries=["gls"], **law), strict=True):
        again = read_design(plan.to_json())
        assert isinstance(again, LevelDesign)
        assert again.to_json() == plan.to_json()
        assert again.errors.total_variance(exact=True) == plan.errors.total_variance(exact=True)
        assert REGISTRY["levels"].plan(plan.request, rule, "gls").digest == plan.digest


@everywhere
def test_costs_are_within_the_guarantee_and_use_it_up(law, neighbours):
    for rows in (1, 3):
        for plan in variants(neighbours=neighbours, recoveries=["gls"], rows=rows, **law):
            if plan.proof != "smoothing":
                allowed = calibrate.row_budget(plan.privacy, plan.proof)
                assert allowed * (1 - Fraction(1, 10**12)) <= plan.row_cost(plan.budgets) <= allowed


@pytest.mark.parametrize(("law", "neighbours"), list(product([{"epsilon": 1}, {"rho": "1/2"}], NEIGHBOURS)), ids=str)
def test_no_pair_of_people_costs_more_and_some_pair_costs_as_much(law, neighbours):
    """Brute force: all people, and all pairs of people who differ in any attributes."""
    for plan in variants(neighbours=neighbours, recoveries=["gls"], **law):
        columns = Dense(plan).S
        beta = np.where(Dense(plan).public, 0.0, plan.budgets[Dense(plan).set_of])
        changes = (
            columns.T if neighbours == "add-remove" else (columns.T[:, None] - columns.T[None]).reshape(-1, len(beta))
        )
        if neighbours == "replace-one":
            assert not changes[:, Dense(plan).public].any()
        worst = (np.abs(changes) @ beta if plan.privacy.is_pure else changes**2 @ beta).max()
        assert worst == pytest.approx(float(plan.row_cost(plan.budgets)), rel=1e-11)


@everywhere
def test_the_best_candidate_is_taken_and_optimal_budgets_are_no_worse_than_uniform_ones(law, neighbours):
    optimal, uniform = variants(neighbours=neighbours, recoveries=["gls"], **law)
    for plan in (optimal, uniform):
        chosen = plan.errors.weighted_variance()
        assert chosen <= min(plan.details["predicted"].values()) * (1 + 1e-5)
        assert chosen == pytest.approx(plan.details["predicted"][plan.details["measured"]], rel=1e-9)
        assert {"asked", "finest"} <= plan.details["predicted"].keys()
    assert optimal.errors.weighted_variance() <= uniform.errors.weighted_variance() * (1 + 1e-9)


@everywhere
def test_generalised_least_squares_is_never_worse(law, neighbours):
    """Of one measurement: gls <= ols and gls <= none, for every table."""
    optimal = variants(neighbours=neighbours, rules=["optimal"], recoveries=["gls"], **law)[0]
    fields = (optimal.request, "by hand", "optimal")
    rest = (optimal.proof, optimal.budgets, optimal.measured)
    best, *others = (LevelDesign(*fields, way, *rest).errors.cell_variances(exact=True) for way in RECOVERIES)
    for other in others:
        assert (best <= other * (1 + 1e-9) + 1e-12).all()


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_optimal_gaussian_budgets_are_stationary(neighbours):
    """Moving a little budget between any two tables, or to any other table, does not help: the problem is convex."""
    plan = variants(neighbours=neighbours, recoveries=["gls"], rules=["optimal"], rho="1/2")[0]
    best = plan.errors.total_variance(exact=False)
    noisy = np.flatnonzero(np.isfinite(plan.budgets))
    for i, j in product(noisy, noisy):
        if i != j:
            moved = plan.budgets.copy()
            moved[j] += 0.01 * moved[i]
            moved[i] *= 0.99
            other = by_hand(plan.request, list(plan.measured), moved * (1 - 1e-12))
            assert other.errors.total_variance(exact=False) >= best * (1 - 1e-5)
    for marginal in plan.request.marginals:
        if marginal not in list(plan.measured):
            scaled = np.where(np.isfinite(plan.budgets), plan.budgets * 0.999, np.inf)
            share = 0.0009 * plan.budgets[noisy].sum()
            other = by_hand(plan.request, [*plan.measured, marginal], [*scaled, share])
            assert other.errors.total_variance(exact=False) >= best * (1 - 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_objective_max_makes_the_largest_error_smaller(neighbours):
    for law in ({"epsilon": 1}, {"rho": "1/2"}):
        total = REGISTRY["levels"].plan(nested_request(neighbours=neighbours, **law), "optimal", "gls")
        largest = REGISTRY["levels"].plan(
            nested_request(neighbours=neighbours, objective="max", **law), "optimal", "gls"
        )
        assert largest.errors.max_variance() < total.errors.max_variance()
        assert largest.errors.total_variance(exact=True) > total.errors.total_variance(exact=True)
    with pytest.raises(NotApplicable, match="generalised"):
        REGISTRY["levels"].plan(nested_request(objective="max", epsilon=1), "optimal", "ols")


# ------------------------------------------------------------------------------------------------ from data to tables


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_without_noise_tables_are_exact(recovery, neighbours):
    for plan in variants(neighbours=neighbours, recoveries=[recovery], epsilon=1):
        codes = random_people(plan.schema, 500)
        exact = np.concatenate(
            [
                exact_table(plan.schema, codes, tuple(row)).ravel()
                for b in plan.measured.batches
                for row in b.rows.tolist()
            ]
        )
        for marginal, table in all_tables(plan, plan.answers(measurement_of(plan, exact))).items():
            np.testing.assert_allclose(table, exact_table(plan.schema, codes, marginal), atol=1e-8)


@everywhere
def test_noisy_tables_of_all_levels_agree(law, neighbours):
    for plan in variants(neighbours=neighbours, recoveries=["gls", "ols"], **law):
        assert plan.is_consistent
        codes = random_people(plan.schema, 300)
        tables = all_tables(plan, plan.answers(measure(plan, MemoryEngine(codes), entropy=SeededEntropy(3))))
        for big, small in product(tables, tables):
            if plan.nesting.holds(big, small):
                rolled = marginal_rows(plan.schema, small) @ np.linalg.pinv(marginal_rows(plan.schema, big))
                np.testing.assert_allclose(rolled @ tables[big].ravel(), tables[small].ravel(), atol=1e-7)
        if neighbours == "replace-one":
            assert tables[()] == pytest.approx(300, abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
def test_errors_are_as_predicted(law):
    """300 releases: standardised squared errors average 1 within 5 standard deviations (false alarms below 1e-5).

    Cells are dependent, so that an average over cells is one number for each release.
    """
    plan = variants(neighbours="replace-one", recoveries=["gls"], rules=["optimal"], **law)[0]
    codes = random_people(plan.schema, 200)
    engine, entropy = MemoryEngine(codes), SeededEntropy(5)
    noisy = {m: exact_table(plan.schema, codes, m) for m in plan.request.marginals if m}
    variances = {m: plan.errors.cell_variance_table(m) for m in noisy}
    squares = []
    for _ in range(300):
        tables = all_tables(plan, plan.answers(measure(plan, engine, entropy=entropy)))
        squares.append([float(((tables[m] - exact) ** 2 / variances[m]).mean()) for m, exact in noisy.items()])
    for each in np.array(squares).T:
        assert abs(each.mean() - 1) < 5 * each.std() / np.sqrt(300)
    largest = np.array(squares)[:, int(np.argmax([table.size for table in noisy.values()]))]
    for wrong in (0.7, 1.3):  # a wrong scale would be seen
        assert abs(largest.mean() - wrong) > 5 * largest.std() / np.sqrt(300)


# ------------------------------------------------------------------------------------------------------------ refusals


def test_other_strategies_refuse_several_levels_of_one_attribute():
    request = nested_request(epsilon=1)
    for name, strategy in ALL.items():
        reason = strategy.refusal(request)
        assert (reason is None) if name in ("levels", "selective") else ("several levels" in reason), name
    with pytest.raises(NotApplicable, match="levels"):
        compare(request, strategy="identity")
    found = compare(request, strategy="auto")
    assert found.chosen.strategy == "levels" and not found.skipped


def test_levels_of_which_each_attribute_has_one_are_for_the_others():
    request = nested_request("s@l1*u,t@l1,u", epsilon=1)
    assert not REGISTRY["levels"].concerns(request)
    assert "several levels" in REGISTRY["levels"].refusal(request)
    assert compare(request, strategy="auto").chosen.strategy != "levels"


def test_a_table_has_an_attribute_at_one_level_only():
    request = nested_request("s,s@l1", epsilon=1)
    with pytest.raises(ValueError, match="two levels"):
        by_hand(request, [(0, 1), (1,)], [0.1, 0.1])


def test_where_levels_couple_too_much_fewer_of_them_are_measured():
    """5,000 groups are too many to combine with their members: their counts are sums of what is measured."""
    n = 5000
    wide = Schema(
        (
            attribute("w", [list(np.repeat(np.arange(n), [1, 3] * (n // 2))), [0] * (n // 2) + [1] * (n // 2)]),
            flat("u", 2),
        )
    )
    plan = compare(nested_request("w*u,w@l1,w@l2", wide, epsilon=1), strategy="levels").chosen
    assert (1,) not in list(plan.measured)
    assert (plan.errors.cell_variance_table((1,)) > 0).all()
    plan = by_hand(plan.request, [(2, 3)], [1.0])
    noise = float(laplace_variance(plan.budgets)[0])
    np.testing.assert_allclose(plan.errors.cell_variance_table((1,)), noise * 2 * np.array([1, 3] * (n // 2)))
    np.testing.assert_allclose(
        plan.errors.cell_variance_table((0,)), noise * 2 * np.full(2, n)
    )  # pairs of 1 and 3 members
    with pytest.raises(NotApplicable, match="couple"):
        by_hand(plan.request, [(1,), (2, 3)], [0.1, 0.1])


def test_levels_that_are_not_measured_are_sums_of_finer_ones():
    request = nested_request("s*u,s@l1,s@l2*u", epsilon=1)
    for recovery in RECOVERIES:
        plan = by_hand(request, [(2, 4), (4,)], [0.4, 0.3], recovery)  # neither s@l1 nor s@l2
        dense = Dense(plan)
        numbers = any_numbers(plan, dense)
        tables = all_tables(plan, plan.answers(measurement_of(plan, numbers)))
        cells = tables[2, 4]
        for marginal, table in tables.items():
            rolled = marginal_rows(plan.schema, marginal) @ np.linalg.pinv(marginal_rows(plan.schema, (2, 4)))
            np.testing.assert_allclose(rolled @ cells.ravel(), table.ravel(), atol=1e-8)
            each = [plan.errors.sum_variance((2, 4), row.round().reshape(cells.shape)) for row in rolled]
            shown = np.broadcast_to(plan.errors.cell_variance_table(marginal), table.shape)
            np.testing.assert_allclose(shown.ravel(), each, rtol=1e-8)
            weights = np.random.default_rng(0).normal(size=table.shape)
            expected = plan.errors.sum_variance((2, 4), (weights.ravel() @ rolled).reshape(cells.shape))
            assert plan.errors.sum_variance(marginal, weights) == pytest.approx(expected, rel=1e-8)


def test_margins_and_public_totals():
    plan = variants(neighbours="replace-one", recoveries=["gls"], rules=["optimal"], epsilon=1)[0]
    widths = dict(zip(plan.request.marginals, plan.errors.margins, strict=True))
    assert widths[()] == 0
    assert all(width > 0 for marginal, width in widths.items() if marginal)
    assert cost.unchanged_by_replacing(plan.measured).tolist() == (~np.isfinite(plan.budgets)).tolist()


def test_workloads_whose_answers_are_all_public():
    lone = Schema((attribute("o", [[0, 0], [0]]), flat("u", 2)))
    plan = REGISTRY["levels"].plan(
        nested_request("o@l1,o@l2,0-way", lone, neighbours="replace-one", epsilon=1), "optimal", "gls"
    )
    assert not np.isfinite(plan.budgets).any()
    assert plan.errors.cell_variances(exact=True).tolist() == [0.0, 0.0, 0.0]
