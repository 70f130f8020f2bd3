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
from hushcube.designs.selective.allocation import Division, Inside, least_bound, least_total
from hushcube.designs.selective.design import misfit_cost
from hushcube.designs.selective.expected import Expected, free_shares, shares_above
from hushcube.designs.selective.largest import GAP, least_largest
from hushcube.errors import BadInput, NotApplicable, PlanError
from hushcube.lattice.basis import HELMERT
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


def allocated(found, weights, costs, law, budget):
    """Each set is a table of its own."""
    return least_total(Division(found, costs, law, budget), apart(weights))


def apart(weights):
    """Tables of one set each."""
    every = np.arange(len(weights))
    return Inside(every, every, np.asarray(weights, float), np.zeros(len(weights)), len(weights))


def errors_at(found, budgets, law):
    return found.left(Division(found, np.ones(len(found)), law, 1.0).variances(np.asarray(budgets)))


def test_expected_errors_are_sums_over_cells():
    found, family, guess = expected()
    at = next(iter(found.errors(np.array([np.inf, 100.0]))))[1]
    for number, batch in enumerate(family.batches):
        for row, q in zip(batch.ids.tolist(), guess[number], strict=True):
            d = [0.5, 0.1, 0.01][row]
            tau, v = d * q.ravel() * np.sqrt(np.pi / 2), 100 * np.prod([1 - 1 / n for n in batch.shape])
            assert at[row, 0] == pytest.approx(d * q.sum(), rel=1e-6), "unmeasured: what the guess is off by"
            assert at[row, 1] == pytest.approx(np.sqrt(2 / np.pi) * (tau / np.sqrt(1 + tau**2 / v)).sum(), rel=0.02)


@given(sizes=st.lists(st.integers(2, 7), min_size=1, max_size=3).map(tuple), less=st.floats(0.01, 0.9))
def test_the_noise_of_a_set_in_its_cells_is_the_designs_own(sizes, less):
    """With less of a budget for the largest set the cells vary by what that set's noise has in them."""
    every = tuple(range(len(sizes)))
    words = "*".join(f"a{i}" for i in every)
    design = Selective().plan(make_request(sizes, words, rho=1), "optimal", "gls").underlying
    budgets = design.budgets * np.append(np.ones(len(design.budgets) - 1), less)
    before, after = (each.errors.cell_variances(exact=False) for each in (design, replace(design, budgets=budgets)))
    more = design.law.formula(budgets[-1:]) - design.law.formula(design.budgets[-1:])
    free = free_shares(Family.of([every], sizes))
    assert after - before == pytest.approx(more * free, rel=1e-6)
    assert free == pytest.approx(np.prod(np.array(sizes) - 1) / np.prod(sizes))


def test_the_noise_of_a_set_in_its_cells_is_what_is_seen_of_it():
    """The mean square of 20,000 drawn pairs: 5% are seven standard errors, and a factor of 3 is rejected."""
    noise = np.random.default_rng(5).normal(size=(20_000, 1, 2)) * np.sqrt(7.0 * HELMERT.row_norms((2, 3)))
    seen = (HELMERT.adjoint(noise, (2, 3)) ** 2).mean()
    assert seen == pytest.approx(7.0 * free_shares(Family.of([(0, 1)], (2, 3)))[0], rel=0.05)
    assert seen != pytest.approx(7.0, rel=0.05)


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
                free = np.prod([1 - 1 / n for n in batch.shape])
                left = tau / np.sqrt(1 + tau**2 * 2 * budgets[at] / free) * np.sqrt(2 / np.pi)
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
        return float(weights @ errors_at(found, budgets, GAUSSIAN))

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
        now = errors_at(found, own, LAPLACE).sum()
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
            least = min(least, inside.errors(program.left(tried)).max())
    assert own.largest == pytest.approx(inside.errors(program.left(own.budgets)).max())
    assert own.largest <= least * 1.02
    assert own.bound <= least * 1.003, "nothing is below the bound, but for the steps of its grid"


def random_program(seed, law, log_budget, past):
    """Tables of several sets, of which the first two are past."""
    rng = np.random.default_rng(seed)
    tables = Family.of([(0, 1, 2), (0, 3), (1, 3), (2,)], rng.integers(1, 9, 4).tolist())
    sets = tables.closure
    guess = [rng.gamma(0.3, 100.0, (len(b.ids), *b.shape)) for b in sets.batches]
    later = np.arange(2, len(sets))
    found = Expected.of(sets, guess, 10 ** rng.uniform(-3, 0, len(sets))).of_sets(later)
    behind = np.where(np.isin(np.arange(len(sets)), later), 0.0, past)
    inside = Inside.of(tables, sets, later, 10 ** rng.uniform(-1, 1, len(tables)), behind)
    return Division(found, rng.uniform(0.3, 1.0, len(later)), law, 10**log_budget), inside


RANDOM = {
    "seed": st.integers(0, 10**6),
    "law": st.sampled_from([GAUSSIAN, LAPLACE]),
    "log_budget": st.floats(-5, 0),
    "past": st.sampled_from([0.0, 1.0, 1e3]),
}


@given(**RANDOM)
def test_the_sum_of_errors_is_never_above_that_of_budgets_for_its_bound(seed, law, log_budget, past):
    program, inside = random_program(seed, law, log_budget, past)
    own, bound = least_total(program, inside), least_bound(program, inside)
    assert (own >= 0).all()
    assert program.costs @ own <= program.budget * (1 + 1e-9)
    assert inside.errors(program.left(own)).sum() <= inside.errors(program.left(bound)).sum() * (1 + 1e-12)


@given(seed=RANDOM["seed"], log_budget=RANDOM["log_budget"], past=RANDOM["past"])
def test_no_small_change_of_gaussian_budgets_makes_the_sum_smaller(seed, log_budget, past):
    program, inside = random_program(seed, GAUSSIAN, log_budget, past)
    own = least_total(program, inside)
    least, rng = inside.errors(program.left(own)).sum(), np.random.default_rng(seed)
    for _ in range(20):
        towards = rng.dirichlet(np.full(len(own), 0.3)) * program.budget / program.costs
        for share in (0.01, 0.1, 0.5):
            tried = (1 - share) * own + share * towards
            assert least <= inside.errors(program.left(tried)).sum() * 1.02


@given(seed=RANDOM["seed"], law=RANDOM["law"], log_budget=RANDOM["log_budget"])
def test_a_set_alone_in_its_tables_gets_what_the_bound_gives_it(seed, law, log_budget):
    program, _ = random_program(seed, law, log_budget, 0.0)
    one = Division(program.expected.of_sets(np.array([3])), program.costs[[3]], law, program.budget)
    assert least_total(one, apart([1.0])) == pytest.approx(least_bound(one, apart([1.0])))
    assert least_total(one, apart([1.0])) == pytest.approx(program.budget / one.costs)


def test_cases_share_the_first_sets():
    _, inside = two_tables(weights=(1.0, 3.0), past=(0.0, 0.0, 0.0))
    twice = inside.supposing(1, 2)
    assert twice.many == 5
    found = twice.errors(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert found == pytest.approx([0.5 * 5**0.5, 1.5 * 10**0.5, 0.5 * 17**0.5, 1.5 * 26**0.5])
    assert twice.errors(np.array([1.0, 2.0, 3.0, 2.0, 3.0])).sum() == pytest.approx(
        inside.errors(np.array([1.0, 2.0, 3.0])).sum()
    )


@given(**RANDOM)
def test_the_largest_error_is_never_above_that_of_budgets_for_the_total(seed, law, log_budget, past):
    program, inside = random_program(seed, law, log_budget, past)
    own, total = least_largest(program, inside), least_total(program, inside)
    assert program.costs @ own.budgets <= program.budget * (1 + 1e-9)
    assert own.largest <= inside.errors(program.left(total)).max() * (1 + 1e-9)
    if law is GAUSSIAN:
        assert own.largest - own.bound <= GAP * own.largest


def test_where_nothing_is_off_budgets_are_even():
    found, inside = two_tables()
    nothing = Division(found.times(0.0), np.ones(3), GAUSSIAN, 0.3)
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
