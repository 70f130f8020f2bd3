"""What a plan costs an account: the exchange against precise Renyi divergences, prices against brute force."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers import (
    NEIGHBOURS,
    Counts,
    MemoryEngine,
    adaptive,
    carried_out,
    every_plan,
    label,
    make_plan,
    make_request,
    make_schema,
)
from hushcube.costs.calibrate import zcdp_delta, zcdp_epsilon, zcdp_rho
from hushcube.costs.exchange import laplace_rho, pure_rho, row_moves, tanh_above
from hushcube.errors import LedgerError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Privacy, Unit
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.planning.pricing import price, settled, total
from hushcube.planning.question import Question
from hushcube.private.blocks import transformed
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import Hierarchy, read_strategy
from hushcube.strategies.matrix import Matrix
from ranged import every_variant, ordered_schema, ranged_request

ORDERS = ["1.000001", "1.01", "1.5", "2", "3", "7", "30", "200", "10000"]
RATES = ["0.1", "0.25", "0.5", "1", "2", "4", "8"]


# ------------------------------------------------------------------------------------------------------- the exchange


def divergence(rate, moved, order):
    """The Renyi divergence of a discrete Laplace number that is moved, in closed form, to some 50 digits.

    Below and beyond the two centres the ratio of the laws is constant; their tails are geometric sums.
    """
    with localcontext() as context:
        context.prec = 80
        r, a = Decimal(rate), Decimal(order)
        t = (-r).exp()
        below, beyond = t**moved / (1 + t), 1 / (1 + t)
        between = ((1 - t) / (1 + t) * t ** (moved - k) * (a * r * (moved - 2 * k)).exp() for k in range(1, moved))
        mean = (a * r * moved).exp() * below + sum(between, Decimal(0)) + (-a * r * moved).exp() * beyond
        return mean.ln() / (a - 1)


def one_number(rate, moved, rows=1):
    """The price of one number, by the code under test."""
    return laplace_rho(np.array([float(rate)]), np.array([float(moved)]), rows, lambda w: Fraction(w[0]) * moved)


@pytest.mark.parametrize("moved", [1, 2, 5])
@pytest.mark.parametrize("rate", RATES)
def test_no_renyi_divergence_is_larger_than_the_price(rate, moved):
    rho = one_number(rate, moved)
    for order in ORDERS:
        found = divergence(str(Decimal(float(rate))), moved, order)
        assert found <= Decimal(order) * rho.numerator / rho.denominator, order
    assert rho <= pure_rho(Fraction(float(rate)) * moved) * (1 + Fraction(1, 10**12))


@pytest.mark.parametrize("rate", RATES)
def test_no_smaller_price_would_do_for_a_number_that_moves_by_one(rate):
    rho = one_number(rate, 1) * (1 - Fraction(1, 10**5))
    assert divergence(str(Decimal(float(rate))), 1, ORDERS[0]) > Decimal(ORDERS[0]) * rho.numerator / rho.denominator


@given(st.floats(1e-12, 400.0))
def test_the_enclosure_of_tanh_is_above_and_near(y):
    with localcontext() as context:
        context.prec = 60
        e = (-2 * Decimal(y)).exp()
        true = (1 - e) / (1 + e)
        found = Decimal(float(tanh_above(np.array([y]))[0]))
        assert true <= found <= true * (1 + Decimal("1e-12"))


@given(st.lists(st.floats(0.01, 50.0), min_size=1, max_size=6), st.floats(1.0 + 1e-6, 500.0))
def test_randomised_response_is_what_the_concavity_says(epsilons, order):
    """ln cosh(x sqrt(s)) lies below its tangent at s = 1/4, for each pair and so for their sum."""

    def log_cosh(x):
        return x + math.log1p(math.exp(-2 * x)) - math.log(2)

    for x in epsilons:
        found = log_cosh((order - 0.5) * x) - log_cosh(x / 2)
        assert found <= order * (order - 1) * x * math.tanh(x / 2) * (1 + 1e-12) + 1e-13 * x * order


@given(st.integers(0, 10**6), st.sampled_from(NEIGHBOURS), st.integers(1, 2))
def test_numbers_of_a_matrix_move_by_no_more_than_their_largest_move(seed, neighbours, rows):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 4, rng.integers(1, 5, 2))
    groups = np.unique(rng.integers(0, 2, len(matrix)), return_inverse=True)[1]
    privacy = Privacy.of(epsilon=1, neighbours=neighbours, rows_per_person=rows)
    columns = [np.zeros(len(matrix)), *matrix.T] if "add-remove" in privacy.row_changes else list(matrix.T)
    pairs = product(columns, columns) if neighbours == "replace-one" else ((c, 0 * c) for c in columns)
    largest = np.max([np.abs(one - other) for one, other in pairs], axis=0)
    found = row_moves(SparseRows.of(matrix), groups, groups.max() + 1, privacy)
    assert found.tolist() == [largest[groups == g].max() for g in range(groups.max() + 1)]


# --------------------------------------------------------------------------------------------- prices of whole plans


def planned(question):
    return question.planned((read_strategy("workload"), "optimal", "gls"))


def account(neighbours="add-remove", rows=1, **amounts):
    return Privacy.of(neighbours=neighbours, rows_per_person=rows, **(amounts or {"rho": 1}))


def worst_rho(design):
    """The largest rho between neighbours, by brute force: all rows that one person may have, and the laws as drawn."""
    privacy, cells = design.privacy, list(product(*map(range, design.schema.sizes)))
    most = privacy.rows_per_person
    least = most if privacy.total_is_public else 0
    people = [rows for k in range(least, most + 1) for rows in combinations_with_replacement(cells, k)]

    def numbers(rows):
        codes = np.array(rows, np.int64).reshape(len(rows), len(design.schema))
        return np.concatenate([exact.ravel() for _, exact in transformed(design, Counts(design.schema, codes))])

    blocks = list(design.blocks())
    noisy, rate = [], []
    for block in blocks:
        multipliers = np.ones(block.columns) if block.multipliers is None else block.multipliers
        for budget, is_noisy in zip(block.budgets.tolist(), block.noisy.tolist(), strict=True):
            law = float(design.law.parameter(Fraction(budget), block.stretch)) if is_noisy else 1.0
            rate.append(law * multipliers)
            noisy += [is_noisy] * block.columns
    noisy, rate = np.array(noisy), np.concatenate(rate)
    exact = np.unique([numbers(rows) for rows in people], axis=0)
    nobody = numbers(()) if privacy.neighbours == "add-remove" else exact
    changes = np.unique(np.abs(exact[:, None] - nobody).reshape(-1, exact.shape[1]), axis=0)
    assert not changes[:, ~noisy].any(), "an answer without noise changes"
    changes, rate = changes[:, noisy].astype(float), rate[noisy]
    if design.law.name == "laplace":
        return float((changes * rate * np.tanh(changes * rate / 2)).sum(axis=1).max(initial=0.0))
    return float((changes**2 / (2 * rate)).sum(axis=1).max(initial=0.0))


GUARANTEES = [{"epsilon": 1}, {"epsilon": 6}, {"epsilon": 1, "delta": "1e-6"}, {"rho": "1/2"}]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", GUARANTEES, ids=str)
@pytest.mark.parametrize(("sizes", "rows"), [((2, 3), 1), ((2, 2), 2), ((3,), 3)], ids=str)
def test_the_price_is_the_largest_rho_of_any_person(sizes, rows, privacy, neighbours):
    """Never less, and exactly that where a row moves numbers by one length or not at all."""
    request = make_request(sizes, "cube", neighbours=neighbours, rows_per_person=rows, **privacy)
    for design in every_plan(request, recoveries=["gls"]):
        if design.adapts:
            continue
        worst, found = worst_rho(design), float(price(Plan.of_counts(design), account(neighbours, rows)))
        assert worst <= found * (1 + 1e-12), label(design)
        if design.proof == "direct" and not request.privacy.is_pure:
            assert found == 0.5
        elif design.basis.name in ("marginal", "helmert") or (design.basis.name == "fourier" and rows == 1):
            assert found <= worst * (1 + 1e-9), label(design)
        else:
            assert found <= float(pure_rho(request.privacy.epsilon))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("rows", [1, 2])
def test_trees_matrices_and_sketches_are_never_underpriced(neighbours, rows):
    own = {"neighbours": neighbours, "rows_per_person": rows, "epsilon": 3}
    schema = ordered_schema((4, 2))
    ranges = ranged_request(schema, "prefix(a0)*a1", **own)
    matrix = np.vstack([np.eye(8, dtype=int), [[2, 1, 0, 0, -1, 0, 0, 3]], np.ones((1, 8), int)])
    given_rows = QueryTable((0, 1), tuple(schema.attributes), SparseRows.of(matrix))
    sketch = make_plan(make_request((3, 2), "2-way", **own), "sketch")
    designs = [
        sketch,
        *every_variant(ranges, ["wavelet", Hierarchy(fan_out=2)], recoveries=["gls"]),
        *every_variant(ranged_request(schema, "a0*a1", **own), [Matrix(rows=given_rows)], recoveries=["gls"]),
    ]
    assert len({type(design) for design in designs}) >= 3
    for design in designs:
        found = price(Plan.of_counts(design), account(neighbours, rows))
        assert worst_rho(design) <= found * (1 + Fraction(1, 10**12)) <= pure_rho(Fraction(3)) * 2, label(design)


def test_28_tables_cost_28_times_less_than_half_the_square_of_epsilon():
    design = make_plan(make_request((2,) * 8, "2-way", epsilon=1), "workload", "uniform")
    found = price(Plan.of_counts(design), account())
    assert len(design.budgets) == 28
    assert math.isclose(found, math.tanh(1 / 56), rel_tol=1e-12)  # 28 tables of (1/28) tanh(1/56)
    assert 28 < Fraction(1, 2) / found < Fraction(28.01)
    assert found * 25 < pure_rho(Fraction(1)) < Fraction(1, 2)


def test_what_a_plan_states_is_its_price_in_its_own_currency():
    for amounts in ({"epsilon": "0.3"}, {"rho": "0.3"}):
        plan = Plan.of_counts(make_plan(make_request((2, 3), **amounts), "workload"))
        assert price(plan, account(**dict.fromkeys(amounts, 7))) == Fraction(3, 10)


def test_epsilon_with_delta_costs_the_noise_that_is_drawn():
    """Less than what the account would hold for the same guarantee, if the plan's proof is by zCDP; more by others."""
    request = make_request((2, 3), epsilon=1, delta="1e-6")
    held = total(request.privacy)
    for design in every_plan(request, ["workload", "residual"], ["gls"]):
        found = price(Plan.of_counts(design), request.privacy)
        assert found == design.row_cost(design.budgets)
        assert found <= held if design.proof == "zcdp" else found > 0


@pytest.mark.parametrize("rho", [{"rho": 1}, {"epsilon": 1, "delta": "1e-9"}], ids=str)
def test_counts_and_sums_are_the_sum_of_their_prices(rho):
    schema = Schema(make_schema((2, 3)).attributes, measures=(Measure("days", bounds=(0, 4)),))
    privacy = Privacy.of(epsilon=1, neighbours="add-remove")
    plan = planned(Question.of(schema, "1-way", privacy, measures="sum(days)"))
    assert plan.designs["days"].privacy.rows_per_person == 4
    rows = [(design, account(rows=design.privacy.rows_per_person)) for design in plan.designs.values()]
    parts = [price(Plan.of_counts(design), own) for design, own in rows]
    assert price(plan, account(**rho)) == sum(parts) < pure_rho(Fraction(1))


# --------------------------------------------------------------------------------------------------- adaptive methods


def test_an_adaptive_plan_is_charged_its_allowance_and_settled_on_pure_accounts_alone():
    request = make_request((2, 3), "1-way", epsilon=1)
    start = make_plan(request, adaptive("ireduct", sanity_bound=5), "uniform")
    outcome, _ = carried_out(start, MemoryEngine([(0, 1), (1, 2)] * 20), entropy=SeededEntropy(1))
    pure, rho = account(epsilon=5), account(rho=5)
    for plan in (Plan.of_counts(start), Plan.of_counts(outcome)):
        assert price(plan, pure) == 1
        assert price(plan, rho) == pure_rho(Fraction(1))
        assert settled(plan, rho) == price(plan, rho)
    assert settled(Plan.of_counts(start), pure) == 1
    assert settled(Plan.of_counts(outcome), pure) == outcome.person_cost <= 1


# ---------------------------------------------------------------------------------------------- what does not fit


def plan_for(neighbours="add-remove", rows=1, unit=None, **amounts):
    schema = make_schema((2, 3))
    if unit is not None:
        schema = Schema(schema.attributes, unit=Unit(unit, rows))
    privacy = Privacy.of(neighbours=neighbours, rows_per_person=rows, **amounts)
    return planned(Question.of(schema, "1-way", privacy))


@pytest.mark.parametrize("amounts", [{"rho": 1}, {"epsilon": 1, "delta": "1e-6"}], ids=str)
def test_gaussian_noise_is_refused_by_a_pure_account(amounts):
    with pytest.raises(LedgerError, match="Gaussian") as refused:
        price(plan_for(**amounts), account(epsilon=5))
    assert refused.value.field == "account"
    assert "without delta" in refused.value.fix


@pytest.mark.parametrize("amounts", [{"epsilon": 1}, {"epsilon": 1, "delta": "1e-6"}, {"rho": "0.1"}], ids=str)
def test_a_person_who_goes_and_another_who_comes_are_two_steps(amounts):
    plan, holds = plan_for(**amounts), {"rho": 9}
    once, twice = price(plan, account(**holds)), price(plan, account("replace-one", **holds))
    assert once < twice <= 4 * once
    if amounts == {"epsilon": 1}:
        assert price(plan, account("replace-one", epsilon=9)) == 2
        assert twice <= pure_rho(Fraction(2))
    exact = price(plan_for("replace-one", **amounts), account("replace-one", **holds))
    assert exact < twice or "rho" in amounts


def test_what_two_steps_cost_covers_every_replacement():
    """The design of an add-remove plan, judged by brute force as if its guarantee were replace-one."""
    for amounts in ({"epsilon": 4}, {"epsilon": 1, "delta": "1e-6"}):
        design = plan_for(**amounts).count
        found = price(Plan.of_counts(design), account("replace-one"))
        cells = list(product(range(2), range(3)))
        tables = {c: [e.ravel() for _, e in transformed(design, Counts(design.schema, np.array([c])))] for c in cells}
        laws = [np.repeat(b.budgets, b.columns) for b in design.blocks()]
        moved = [[np.abs(x - y) for x, y in zip(tables[a], tables[b], strict=True)] for a in cells for b in cells]
        if design.privacy.is_pure:
            losses = [sum((d * r * np.tanh(d * r / 2)).sum() for d, r in zip(m, laws, strict=True)) for m in moved]
        else:
            losses = [sum((d**2 * r).sum() for d, r in zip(m, laws, strict=True)) for m in moved]
        assert max(losses) <= found


def test_neighbours_that_hide_less_are_refused():
    with pytest.raises(LedgerError, match="replace-one") as refused:
        price(plan_for("replace-one", epsilon=1), account(epsilon=5))
    assert refused.value.field == "neighbours"


def test_rows_of_a_person_are_all_protected_or_refused():
    assert price(plan_for(rows=3, epsilon=1), account(rows=2, epsilon=5)) == 1
    with pytest.raises(LedgerError, match="3 that a person") as refused:
        price(plan_for(rows=2, epsilon=1), account(rows=3, epsilon=5))
    assert refused.value.field == "rows_per_person"
    assert "rows_per_person` 3" in refused.value.fix


def test_the_unit_is_the_same_column():
    plan = plan_for(rows=2, unit="patient", epsilon=1)
    assert price(plan, account(rows=4, epsilon=5), "patient") == 1  # of each patient two rows count, whatever there are
    for other in ("doctor", None):
        with pytest.raises(LedgerError, match="the plan whoever has one 'patient'") as refused:
            price(plan, account(epsilon=5), other)
        assert refused.value.field == "unit"
    with pytest.raises(LedgerError, match="protects whoever has one 'patient', the plan each row"):
        price(plan_for(epsilon=1), account(epsilon=5), "patient")


# ------------------------------------------------------------------------------------------------ totals, and the end


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, "1e-3"), (1, "1e-6"), (20, "1e-12")])
def test_what_an_account_holds_comes_back_as_its_epsilon(epsilon, delta):
    privacy = account(epsilon=epsilon, delta=delta)
    held = total(privacy)
    assert zcdp_delta(float(held), epsilon) <= float(delta) < zcdp_delta(float(held) * 1.000001, epsilon)
    back = zcdp_epsilon(held, privacy.delta)
    assert epsilon * (1 - 1e-6) <= back <= epsilon
    assert zcdp_epsilon(held / 2, privacy.delta) < back
    assert zcdp_epsilon(Fraction(0), privacy.delta) == 0


def test_totals_of_the_other_currencies_are_what_was_declared():
    assert total(account(epsilon="0.1")) == Fraction(1, 10) == total(account(rho="0.1"))
    assert total(account(epsilon=1, delta="1e-6")) == Fraction(zcdp_rho(1.0, 1e-6))
