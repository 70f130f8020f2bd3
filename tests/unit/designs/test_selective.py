"""Selective plans: how budgets are divided, what they cost, what files may say."""

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from helpers import NEIGHBOURS, make_request
from hushcube import Attribute, Schema, plan
from hushcube.costs import calibrate
from hushcube.designs import SelectiveDesign
from hushcube.designs.request import OBJECTIVES
from hushcube.designs.selective.allocation import Division, Expected, allocated, shares_above
from hushcube.designs.selective.design import misfit_cost
from hushcube.designs.selective.largest import GAP, Inside, least_largest
from hushcube.errors import BadInput, NotApplicable, PlanError
from hushcube.lattice.family import Family
from hushcube.model.noise import GAUSSIAN, LAPLACE
from hushcube.planning.plan import Plan
from hushcube.planning.planner import compare
from hushcube.strategies.selective import Selective
from hushcube.verbs.planning import face_for

LAWS = [{"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}, {"epsilon": 1}]


def expected():
    rng = np.random.default_rng(1)
    family = Family.of([(0, 1), (0, 2), (1, 2)], (3, 4, 5))
    guess = [rng.gamma(1.0, 100.0, (len(b.ids), *b.shape)) for b in family.batches]
    return Expected.of(family, guess, np.array([0.5, 0.1, 0.01])), family, guess


def errors_at(found, budgets, law):
    with np.errstate(divide="ignore"):
        variances = np.where(budgets > 0, law.formula(np.where(budgets > 0, budgets, 1.0)), np.inf)
    return sum(
        float(
            next(iter(Expected(found.taus[i : i + 1], found.counts[i : i + 1]).errors(variances[i : i + 1])))[1].sum()
        )
        for i in range(len(found))
    )


def test_expected_errors_are_sums_over_cells():
    found, family, guess = expected()
    at = next(iter(found.errors(np.array([np.inf, 100.0]))))[1]
    for number, batch in enumerate(family.batches):
        for row, q in zip(batch.ids.tolist(), guess[number], strict=True):
            d = [0.5, 0.1, 0.01][row]
            tau = d * q.ravel() * np.sqrt(np.pi / 2)
            assert at[row, 0] == pytest.approx(d * q.sum(), rel=1e-6), "unmeasured: what the guess is off by"
            assert at[row, 1] == pytest.approx(np.sqrt(2 / np.pi) * (tau / np.sqrt(1 + tau**2 / 100)).sum(), rel=0.02)


def test_expected_relative_errors_are_means_over_the_cells_of_larger_tables():
    """If all cells of B are off by one part of their guess, so are those of A: its mean is s_A times B's number."""
    family = Family.of([(0,), (0, 1)], (3, 4))
    rng = np.random.default_rng(3)
    large = rng.gamma(0.5, 20.0, (1, 3, 4))
    guess, bound, d = [large.sum(axis=2), large], 10.0, 0.2
    found = next(iter(Expected.of(family, guess, np.array([d, d]), bound).errors(np.array([np.inf, 1e-12]))))[1]
    assert found[:, 0] == pytest.approx([d, d], rel=0.03), "the part itself, for tables of any size"
    assert found[:, 1] == pytest.approx(0.0, abs=1e-6), "nothing is off where there is no noise"
    s = shares_above(family, guess, bound)
    for q, share in zip(guess, s, strict=True):
        assert (d * q / np.maximum(q, bound)).mean() == pytest.approx(d * share)


def test_budgets_for_relative_errors_are_those_of_all_tried_out():
    rng = np.random.default_rng(4)
    family = Family.of([(0, 1), (0, 2), (1, 2)], (3, 4, 5))
    guess = [rng.gamma(0.3, 100.0, (len(b.ids), *b.shape)) for b in family.batches]
    d, bound, budget, costs = np.array([0.5, 0.3, 0.1]), 10.0, 1e-2, np.array([0.5, 0.7, 0.8])
    weights = shares_above(family, guess, bound)

    def total(budgets):
        """The sum over tables of the means over cells."""
        found = 0.0
        for batch, q in zip(family.batches, guess, strict=True):
            for at, cells in zip(batch.ids.tolist(), q, strict=True):
                tau = d[at] * cells * np.sqrt(np.pi / 2)
                left = tau / np.sqrt(1 + tau**2 * 2 * budgets[at]) * np.sqrt(2 / np.pi)
                found += (left / np.maximum(cells, bound)).mean()
        return found

    own = allocated(Expected.of(family, guess, d, bound), weights, costs, GAUSSIAN, budget)
    steps = np.linspace(0.0, 1.0, 51)
    tried = [np.array([a, b, 1 - a - b]) for a in steps for b in steps if a + b <= 1]
    assert total(own) <= min(total(shares * budget / costs) for shares in tried) * 1.01
    plain = allocated(Expected.of(family, guess, d), np.ones(3), costs, GAUSSIAN, budget)
    assert total(own) <= total(plain)


@pytest.mark.parametrize("budget", [1e-5, 1e-3, 0.1])
def test_gaussian_budgets_are_those_of_a_convex_solver(budget):
    found, _, _ = expected()
    costs, weights = np.array([0.5, 0.7, 0.8]), np.array([1.0, 2.0, 1.0])
    own = allocated(found, weights, costs, GAUSSIAN, budget)
    assert costs @ own == pytest.approx(budget)

    def total(budgets):
        single = [Expected(found.taus[i : i + 1], found.counts[i : i + 1]) for i in range(3)]
        return sum(
            w * errors_at(one, np.array([b]), GAUSSIAN) for w, one, b in zip(weights, single, budgets, strict=True)
        )

    shares = minimize(
        lambda logits: total(np.exp(logits) / np.exp(logits).sum() * budget / costs), np.zeros(3), method="Nelder-Mead"
    )
    assert total(own) <= shares.fun * 1.01


def test_laplace_budgets_spend_all_and_more_budget_is_never_worse():
    found, _, _ = expected()
    costs = np.ones(3)
    before = np.inf
    for budget in (1e-4, 1e-3, 1e-2, 1e-1, 1.0):
        own = allocated(found, np.ones(3), costs, LAPLACE, budget)
        assert costs @ own == pytest.approx(budget)
        now = errors_at(found, own, LAPLACE)
        assert now <= before
        before = now


def test_tables_that_smaller_ones_explain_get_nothing_where_the_budget_is_small():
    family = Family.of([(0, 1), (1, 2)], (4, 4, 4))
    guess = [np.full((2, 4, 4), 50.0)]
    own = allocated(Expected.of(family, guess, np.array([0.8, 0.001])), np.ones(2), np.ones(2), GAUSSIAN, 1e-4)
    assert own[1] == 0 < own[0]


def two_tables(weights=(1.0, 1.0), past=(0.0, 0.0, 0.0)):
    """The tables of attributes 0, 1 and of 1, 2, made of three sets: one of them is in both."""
    sets = Family.of([(1,), (0, 1), (1, 2)], (3, 4, 5))
    rng = np.random.default_rng(2)
    guess = [rng.gamma(1.0, 100.0, (len(b.ids), *b.shape)) for b in sets.batches]
    tables = Family.of([(0, 1), (1, 2)], (3, 4, 5))
    inside = Inside.of(tables, sets, np.arange(3), np.array(weights), np.array(past))
    return Expected.of(sets, guess, np.array([0.3, 0.5, 0.05])), inside


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
@pytest.mark.parametrize("budget", [1e-4, 1e-2, 1.0])
@pytest.mark.parametrize("weights", [(1.0, 1.0), (1.0, 5.0)])
def test_the_least_largest_error_is_that_of_all_budgets_tried_out(law, budget, weights):
    found, inside = two_tables(weights, past=(7.0, 0.0, 0.0))
    program = Division(found, np.array([0.5, 0.7, 0.8]), law, budget)
    own = least_largest(program, inside)
    assert program.costs @ own.budgets == pytest.approx(budget)
    steps, least = np.linspace(0.0, 1.0, 101), np.inf
    for i, first in enumerate(steps):
        for second in steps[: len(steps) - i]:
            tried = np.maximum([first, second, 1 - first - second], 0.0) * budget / program.costs
            least = min(least, inside.errors(found.left(program.variances(tried))).max())
    assert own.largest == pytest.approx(inside.errors(found.left(program.variances(own.budgets))).max())
    assert own.largest <= least * 1.02
    assert own.bound <= least * 1.003, "nothing is below the bound, but for the steps of its grid"


@given(
    seed=st.integers(0, 10**6),
    law=st.sampled_from([GAUSSIAN, LAPLACE]),
    log_budget=st.floats(-5, 0),
    past=st.sampled_from([0.0, 1.0, 1e3]),
)
def test_the_largest_error_is_never_above_that_of_budgets_for_the_total(seed, law, log_budget, past):
    rng = np.random.default_rng(seed)
    tables = Family.of([(0, 1, 2), (0, 3), (1, 3), (2,)], rng.integers(1, 9, 4).tolist())
    sets = tables.closure
    guess = [rng.gamma(0.3, 100.0, (len(b.ids), *b.shape)) for b in sets.batches]
    every = Expected.of(sets, guess, 10 ** rng.uniform(-3, 0, len(sets)))
    later = np.arange(2, len(sets))
    found = Expected(every.taus[later], every.counts[later])
    behind = np.where(np.isin(np.arange(len(sets)), later), 0.0, past)
    inside = Inside.of(tables, sets, later, 10 ** rng.uniform(-1, 1, len(tables)), behind)
    program = Division(found, rng.uniform(0.3, 1.0, len(later)), law, 10**log_budget)
    own = least_largest(program, inside)
    even = inside.set_weights(np.full(len(tables), 1 / len(tables)))
    total = allocated(found, even, program.costs, law, program.budget)
    assert program.costs @ own.budgets <= program.budget * (1 + 1e-9)
    assert own.largest <= inside.errors(found.left(program.variances(total))).max() * (1 + 1e-9)
    if law is GAUSSIAN:
        assert own.largest - own.bound <= GAP * own.largest


def test_where_nothing_is_off_budgets_are_even():
    found, inside = two_tables()
    nothing = Division(Expected(found.taus * 0, found.counts), np.ones(3), GAUSSIAN, 0.3)
    assert least_largest(nothing, inside).budgets.tolist() == pytest.approx([0.1] * 3)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_plans_are_written_and_read(law, neighbours, objective):
    request = replace(make_request((2, 3, 4, 1), "<=3-way", neighbours=neighbours, **law), objective=objective)
    design = Selective().plan(request, "optimal", "gls")
    written = Plan.of_counts(design)
    again = Plan.from_json(written.to_json())
    assert isinstance(again.count, SelectiveDesign)
    assert again.digest == written.digest
    assert again.count.objective == objective
    assert ("objective" in design.specification()) == (objective == "max"), "plans of earlier versions stay the same"
    assert design.row_cost(design.budgets) < calibrate.row_budget(request.privacy, design.proof)


def test_misfits_cost_what_a_row_can_move_them_by():
    for neighbours, move in zip(NEIGHBOURS, (1, 2), strict=True):
        rho = make_request((2, 3), "2-way", neighbours=neighbours, rho=1).privacy
        epsilon = make_request((2, 3), "2-way", neighbours=neighbours, epsilon=1).privacy
        assert misfit_cost(rho, 7, 0.25) == 7 * Fraction(1, 4) * move**2
        assert misfit_cost(epsilon, 7, 0.25) == 7 * Fraction(1, 4) * move


@pytest.mark.parametrize(
    ("field", "value"),
    [("misfit_share", "0"), ("misfit_share", "9/10"), ("check_share", "-1/2"), ("check_share", "x"),
     ("objective", "worst"), ("sanity_bound", "0"), ("sanity_bound", "x")],
)  # fmt: skip
def test_shares_of_a_file_are_checked(field, value):
    written = Plan.of_counts(Selective().plan(make_request((2, 3), "2-way", rho=1), "optimal", "gls"))
    raw = json.loads(written.to_json())
    raw["parts"]["count"][field] = value
    with pytest.raises(BadInput, match="plan"):
        Plan.from_json(json.dumps(raw))


def test_a_start_with_other_budgets_is_refused():
    design = Selective().plan(make_request((2, 3), "2-way", rho=1), "optimal", "gls")
    own = (design.request, design.strategy, design.budget_rule, design.recovery, design.proof)
    with pytest.raises(PlanError, match="not what the workload asks for"):
        SelectiveDesign(*own, design.budgets * 2, design.base, design.measured_by, Fraction(1, 20), Fraction(1, 40))


def test_the_largest_error_is_its_concern_if_asked():
    request = replace(make_request((4, 5), "2-way", rho=1), objective="max")
    made = compare(request, strategy="selective").chosen
    assert made.objective == made.details["objective"] == "max"


def test_relative_errors_are_its_concern_if_asked():
    request = make_request((4, 5), "2-way", rho=1)
    made = compare(request, strategy="selective:sanity-bound=2.5").chosen
    assert made.sanity_bound == Fraction(5, 2)
    again = Plan.from_json(Plan.of_counts(made).to_json()).count
    assert again.sanity_bound == Fraction(5, 2)
    assert again.digest == made.digest
    with pytest.raises(NotApplicable, match="leave sanity-bound out"):
        compare(replace(request, objective="max"), strategy="selective:sanity-bound=2.5")
    with pytest.raises(BadInput, match="above zero"):
        compare(request, strategy="selective:sanity-bound=0")


def test_ranges_are_not_its_concern():
    schema = Schema((Attribute("a0", range=(0, 3), ordered=True), Attribute("a1", range=(0, 4), ordered=True)))
    with pytest.raises(NotApplicable, match="no ranges"):
        plan(schema, "prefix(a0)", rho=1, neighbours="add-remove", strategy="selective")


def test_looks_that_leave_nothing_are_refused():
    with pytest.raises(NotApplicable, match="too little"):
        compare(make_request((4, 5, 2), "3-way", rho=1), strategy="selective:misfit-share=0.3")


@pytest.mark.parametrize(
    ("sizes", "law", "selects", "face"),
    [
        ((4, 5, 6), {"rho": 1}, True, "integral:method=entropy"),
        ((4, 5, 6), {"epsilon": 1, "delta": "1e-9"}, True, "integral:method=entropy"),
        ((4, 5, 6), {"epsilon": 1}, False, "integral:method=entropy"),
        ((2, 2, 2), {"rho": 1}, False, "integral:method=entropy"),
    ],
)
def test_plans_for_face_values(sizes, law, selects, face):
    asked = {"neighbours": "add-remove", "purpose": "face-valid", "effort": "low", **law}
    schema = make_request(sizes, "2-way", rho=1).schema
    made = plan(schema, "2-way", **asked)
    assert (made.strategy == "selective") == selects
    assert face_for(made) == face
    assert (plan(schema, "2-way", objective="max", **asked).strategy == "selective") == selects
    assert plan(schema, "2-way", strategy="identity", **asked).strategy == "identity"
    with pytest.raises(BadInput, match="purpose"):
        plan(schema, "2-way", **{**asked, "purpose": "fun"})
