"""Inverse planning: the budget found is the smallest of its grid, and its plan meets the targets exactly."""

import math

import pytest

import hushcube as hc
from helpers import make_request, make_schema, question
from hushcube import Attribute, Schema, compare, what_if
from hushcube.errors import BadInput, PrivacyError
from hushcube.planning.inverse import find_budget, number, step
from hushcube.planning.question import compare as compare_plans
from hushcube.planning.targets import Target, resolve
from hushcube.strategies import ALL, REGISTRY

SIZES = (3, 4, 2)
UNIFORM = (ALL["workload"], "uniform", "gls")
LOW = {"effort": "low"}
LAWS = {"epsilon": {"epsilon": 1}, "rho": {"rho": 1}, "epsilon, delta": {"epsilon": 1, "delta": "1e-6"}}
TARGETS = [
    ["a0*a1: stderr<=20"],
    ["2-way: stderr<=0.4"],
    ["a0*a1: margin<=30", "workload: rmse<=11", "total: variance<=3000"],
    ["a0: margin<=3.4"],
]


def meets(plan, targets):
    return all(goal.reached(plan) <= goal.target.bound for goal in resolve(targets, question(plan.count.request)))


def met_at(request, at, targets, strategy="auto"):
    plans = compare_plans(question(request, strategy=strategy).under(number(at)), settle=False).plans
    return any(meets(plan, targets) for plan in plans)


@pytest.mark.slow
@pytest.mark.parametrize("targets", TARGETS, ids="; ".join)
@pytest.mark.parametrize("law", LAWS)
def test_no_smaller_budget_meets_the_targets(law, targets):
    request = make_request(SIZES, "<=2-way", **LAWS[law])
    found = find_budget(question(request), targets)
    assert meets(found.plan, targets)
    assert found.reached == tuple(goal.reached(found.plan) for goal in found.goals)
    assert found.plan in found.comparison.plans
    at = step(float(found.budget))
    assert number(at) == found.budget
    for before in (1, 200) if "delta" in law else (1, 2, 10, 200, 3000):
        assert not met_at(request, at - before, targets)


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("rows_per_person", [1, 3])
def test_other_units_and_neighbours(neighbours, rows_per_person):
    request = make_request(SIZES, "2-way", rho=1, neighbours=neighbours, rows_per_person=rows_per_person)
    found = find_budget(question(request), ["workload: stderr<=5"])
    assert found.plan.privacy.neighbours == neighbours
    assert found.plan.privacy.rows_per_person == rows_per_person
    at = step(float(found.budget))
    assert meets(found.plan, ["workload: stderr<=5"]) and not met_at(request, at - 1, ["workload: stderr<=5"])


def test_the_full_table_needs_what_the_formula_says():
    """Var = 2/eps² N/cells less a sixth for each cell summed, since discrete noise is a little smaller."""
    found = find_budget(question(make_request((3, 4, 2), "a0", epsilon=1), strategy="identity"), ["a0: stderr<=50"])
    exact = math.sqrt(2 / (50**2 / 8 + 1 / 6))
    assert exact <= float(found.budget) * (1 + 1e-6) and float(found.budget) <= exact * 1.001


@pytest.mark.parametrize(("budgets", "most"), [("uniform", 1.0), ("optimal", 2.0)])
def test_several_targets_need_no_less_than_each_alone(budgets, most):
    """And just the largest of their budgets, where these are not divided for the targets."""
    asked = question(make_request(SIZES, "<=2-way", epsilon=1), strategy="workload", budgets=budgets)
    texts = ["a0*a1: stderr<=20", "a2: margin<=40", "workload: rmse<=9"]
    alone = [float(find_budget(asked, [text]).budget) for text in texts]
    assert max(alone) <= float(find_budget(asked, texts).budget) <= most * max(alone)


def test_auto_is_no_worse_than_any_strategy_alone():
    request = make_request(SIZES, "<=2-way", epsilon=1)
    best = find_budget(question(request), ["2-way: stderr<=12"])
    alone = {
        name: float(find_budget(question(request, strategy=name), ["2-way: stderr<=12"]).budget)
        for name in ("identity", "workload", "fourier", "residual", "covering")
    }
    assert float(best.budget) <= min(alone.values()) and best.plan.strategy in REGISTRY


def test_margins_that_rise_where_noise_becomes_coarse():
    """Gaussian margins gain half a step at some budget: a target may be met, then missed, then met again."""
    request = make_request((2, 3), "1-way", rho=1)
    plans = {at: question(request).under(number(at)).planned(UNIFORM).count for at in edges(request)}
    smooth, coarse = sorted(plans)
    width = plans[smooth].errors.margins.max()
    assert plans[coarse].errors.margins.max() > width + 0.4
    asked = question(request, strategy="workload", budgets="uniform")
    found = find_budget(asked, [f"workload: margin<={width * 1.005:.6g}"])
    assert step(float(found.budget)) <= smooth
    assert meets(found.plan, [f"workload: margin<={width * 1.005:.6g}"])


def edges(request):
    """The last position with smooth noise, and the first with coarse noise."""
    low, high = step(0.001), step(100)
    while high - low > 1:
        middle = (low + high) // 2
        plan = question(request).under(number(middle)).planned(UNIFORM).count
        low, high = (low, middle) if plan.errors.is_coarse else (middle, high)
    return low, high


def test_tables_of_ranges_can_have_targets():
    schema = Schema((Attribute(name="age", range=(0, 3)), Attribute(name="sex", codes=3)))
    told = {"targets": ["prefix(age)*sex: stderr<=10"], "neighbours": "add-remove", **LOW}
    found = hc.find_budget(schema, ["2-way", "prefix(age)*sex"], **told)
    total = found.plan.count.errors.form_totals(exact=True)[0]
    assert math.sqrt(total / 12) == pytest.approx(found.reached[0]) and found.reached[0] <= 10
    with pytest.raises(BadInput, match=r"'prefix\(age\)\*sex' is not in the workload"):
        hc.find_budget(schema, "2-way", **told)


def test_strategies_that_refuse_small_budgets_are_passed_over_there():
    """pmost refuses an absolute threshold that a budget cannot keep: the search goes on with larger budgets."""
    schema = make_schema((3, 4, 2, 5))
    told = {"strategy": "pmost:threshold=50", "neighbours": "add-remove", **LOW}
    found = hc.find_budget(schema, "<=2-way", targets=["total: stderr<=500"], **told)
    assert found.plan.strategy == "pmost" and found.reached[0] <= 500
    with pytest.raises(BadInput, match="threshold"):
        compare(schema, "<=2-way", epsilon="0.001", **told)


def test_the_objective_is_kept_with_targets():
    schema = make_schema(SIZES)
    told = {"targets": ["2-way: stderr<=9"], "neighbours": "add-remove", **LOW}
    most = hc.find_budget(schema, "<=2-way", objective="max", strategy="workload", **told)
    total = hc.find_budget(schema, "<=2-way", strategy="workload", **told)
    assert float(most.budget) <= float(total.budget) * 1.001 and most.reached[0] <= 9


def test_the_grid_of_four_digits():
    for value in (1e-9, 1.2345e-7, 0.1, 0.99999, 1, 1.0001, 9.9991, 499.96, 500):
        text = number(step(value))
        assert value * (1 - 1e-12) <= float(text) <= value * 1.001
        assert len(text.replace(".", "").strip("0")) <= 4
    assert number(step(1.0)) == "1" and number(step(0.0001234)) == "0.0001234"


# ------------------------------------------------------------------------------------------------------------ refused


@pytest.mark.parametrize(
    "text",
    ["", ":", "a0", "a0:", "a0: stderr", "a0: stderr<20", "a0: stderr>=20", "stderr<=20", ": stderr<=20", 20, None],
    ids=repr,
)
def test_malformed_targets(text):
    with pytest.raises(BadInput, match=r"^target: .* cannot be read\. Fix: write for example `age\*sex: stderr<=20`"):
        Target.parse(text)


@pytest.mark.parametrize("bound", ["0", "-1", "nan", "inf", "twenty", "1e999", "20%"])
def test_bounds_must_be_positive_numbers(bound):
    with pytest.raises(BadInput, match="is not a positive number"):
        Target.parse(f"a0: stderr<={bound}")


def test_unknown_measures_name_the_known_ones():
    with pytest.raises(BadInput, match=r"'error' is unknown\. Fix: bound one of stderr, margin, variance, rmse"):
        Target.parse("a0: error<=2")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("shoe: stderr<=1", "'shoe' is not in the schema"),
        ("a0*a1*a2: stderr<=1", r"'a0\*a1\*a2' is not in the workload"),
        ("3-way: stderr<=1", r"a0\*a1\*a2, one of '3-way', is not in the workload"),
        ("queries: stderr<=1", "queries"),
        ("a0=2: stderr<=1", "'a0=2' holds a weight"),
        ("a0,: stderr<=1", "a word is empty"),
    ],
)
def test_targets_name_tables_of_the_workload(text, problem):
    with pytest.raises(BadInput, match=problem):
        find_budget(question(make_request(SIZES, "<=2-way", epsilon=1)), [text])


def test_targets_out_of_reach_are_named():
    request = make_request(SIZES, "<=2-way", epsilon=1)
    with pytest.raises(BadInput, match=r"no epsilon up to 500 meets a0: stderr<=1e-300\. Fix: allow a larger error"):
        find_budget(question(request), ["a1: stderr<=20", "a0: stderr<=1e-300"])


@pytest.mark.parametrize("targets", [[], (), "a0: stderr<=1"])
def test_targets_are_a_list(targets):
    with pytest.raises(BadInput, match="target"):
        find_budget(question(make_request(SIZES, "1-way", epsilon=1)), targets)


# ------------------------------------------------------------------------------------------------------------- Python


@pytest.mark.slow
def test_find_budget_in_python():
    schema = make_schema(SIZES)
    told = {"targets": ["2-way: stderr<=9"], "neighbours": "add-remove", **LOW}
    pure = hc.find_budget(schema, "2-way", **told)
    rho = hc.find_budget(schema, "2-way", guarantee="rho", **told)
    both = hc.find_budget(schema, "2-way", delta="1e-9", **told)
    assert [str(f.plan.privacy).split(",")[0] for f in (pure, rho)] == [
        f"epsilon = {pure.budget}",
        f"rho = {rho.budget}",
    ]
    assert both.plan.privacy.delta is not None and both.budget == f"{float(both.plan.privacy.epsilon):g}"
    with pytest.raises(BadInput, match="guarantee: 'delta' is unknown"):
        hc.find_budget(schema, "2-way", guarantee="delta", **told)
    with pytest.raises(PrivacyError, match="rho: cannot be combined with epsilon or delta"):
        hc.find_budget(schema, "2-way", guarantee="rho", delta="1e-9", **told)


def test_progress_is_reported_in_the_order_of_the_strategies():
    seen = []
    hc.find_budget(
        make_schema(SIZES), "2-way", targets=["workload: stderr<=9"], neighbours="add-remove", **LOW,
        progress=lambda name, share: seen.append((name, share)),
    )  # fmt: skip
    names, shares = zip(*seen, strict=True)
    assert list(shares) == sorted(shares) and shares[0] >= 0 and shares[-1] < 1
    assert list(dict.fromkeys(names)) == [name for name in REGISTRY if name in names]


def test_fast_strategies_are_tried_before_the_search():
    order = list(REGISTRY)
    fast = ("identity", "workload", "fourier", "residual")
    assert all(order.index(name) < order.index("covering") for name in fast)


def test_what_if_plans_again_under_each_budget():
    schema = make_schema(SIZES)
    told = {"neighbours": "add-remove", **LOW}
    scenarios = what_if(schema, "<=2-way", epsilon=["0.1", 1, 2.5], **told)
    assert [scenario.budget for scenario in scenarios] == ["0.1", "1", "2.5"]
    for scenario in scenarios:
        chosen = compare(schema, "<=2-way", epsilon=scenario.budget, strategy="auto", **told).chosen
        assert chosen.digest == scenario.plan.digest
        assert scenario.total_variance == pytest.approx(chosen.count.errors.total_variance(exact=True))
        assert scenario.rmse == pytest.approx(math.sqrt(scenario.total_variance / chosen.workload.cells))
        assert scenario.median_std_error <= scenario.worst_std_error
    assert scenarios[0].rmse > scenarios[1].rmse > scenarios[2].rmse
    (alone,) = what_if(schema, "2-way", rho=["1/2"], strategy="workload", budgets="uniform", recovery="none", **told)
    assert (alone.plan.strategy, alone.plan.count.budget_rule, alone.plan.count.recovery) == (
        "workload",
        "uniform",
        "none",
    )


@pytest.mark.parametrize("values", [[], "0.1,1", ["x"], [0], [-1], [501], ["nan"], [None]], ids=repr)
def test_what_if_needs_possible_budgets(values):
    with pytest.raises(BadInput, match=r"^what_if: .*Fix: list budgets"):
        what_if(make_schema(SIZES), "1-way", epsilon=values, neighbours="add-remove")
    with pytest.raises(PrivacyError, match="epsilon: no budget"):
        what_if(make_schema(SIZES), "1-way", neighbours="add-remove")
