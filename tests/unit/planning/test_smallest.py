"""The program for targets: its optimum, what proves it, what tables without a target get, and its plan."""

import json
import math

import numpy as np
import pytest

import hushcube as hc
from helpers import make_request, make_schema, question
from hushcube import Attribute, Plan, Privacy, Schema
from hushcube.designs.errors import COVERAGE
from hushcube.model.noise import GAUSSIAN
from hushcube.planning.inverse import find_budget, number, step
from hushcube.planning.smallest import REST, Program, largest_variance
from hushcube.planning.targets import resolve

CALLS = (2, 11, 15, 32, 5, 9, 2, 11, 42, 8, 8, 10)
"""Twelve attributes of calls to a fire department; the fourth is the type of a call."""


def program(sizes, words, targets, *, neighbours="add-remove", law=None, **tried):
    asked = question(make_request(sizes, words, neighbours=neighbours, **(law or {"rho": 1})), **tried)
    return Program.of(asked, resolve(targets, asked))


def rho(amount):
    return Privacy.of(rho=amount, neighbours="add-remove")


@pytest.mark.parametrize(
    ("sizes", "bounds", "least"),
    [
        ((3, 4), {"a0": 1, "a0*a1": 2}, 20 / 31),
        ((3, 4, 2), {"a0*a1": 4, "a1*a2": 1, "a0": 0.5}, 1.4249989386),
        ((2, 3), {"a0*a1": 2}, 0.25),
    ],
)
def test_optima_that_were_computed_by_hand(sizes, bounds, least):
    """Of docs/maths.md, 7."""
    found = program(sizes, ",".join(bounds), [f"{table}: variance<={bound}" for table, bound in bounds.items()])
    assert found.solution.bound * (1 - 1e-9) <= least <= found.solution.value * (1 + 1e-9)
    assert found.solution.gap < 1e-4 and found.cost(found.weights) <= least * 1.0001


def test_the_mean_over_several_tables_is_one_constraint():
    """With an rmse of all cells alone, the weights are even: it is the total variance that is bounded."""
    found = program((3, 4, 2), "<=2-way", ["workload: rmse<=5"])
    assert np.allclose(found.weights, found.weights[0])
    assert found.rows.shape == (1, 7)


def test_calls_to_a_fire_department_need_a_third_of_what_the_workload_as_a_whole_needs():
    schema, targets = make_schema(CALLS), ["2-way: margin<=50", "a3: stderr<=10"]
    found = hc.find_budget(schema, "<=2-way", targets=targets, guarantee="rho", neighbours="add-remove")
    assert float(found.budget) <= 0.0388 and found.least == found.budget and found.plan.strategy == "residual"
    at_most = {"guarantee": "rho", "neighbours": "add-remove", "strategy": "residual"}
    even = hc.find_budget(schema, "<=2-way", targets=targets, budgets="uniform", **at_most)
    assert float(even.budget) > 2 * float(found.budget) and even.least is None
    assert [r <= b for r, b in zip(found.reached, (50, 10), strict=True)] == [True, True]
    assert "it is proven that no smaller one suffices" in str(found)


def test_no_budget_below_the_proven_one_is_possible_and_the_found_one_is():
    found = program((3, 4, 2), "<=2-way", ["2-way: stderr<=9", "total: stderr<=3"])
    assert found.is_too_small(rho(found.solution.bound * 0.999))
    assert not found.is_too_small(rho(found.solution.value * 1.001))


@pytest.mark.parametrize(
    ("law", "neighbours", "most"),
    [
        ({"rho": 1}, "add-remove", 1.0011),
        ({"epsilon": 1, "delta": "1e-6"}, "add-remove", 1.02),
        ({"rho": 1}, "replace-one", 1.4),
    ],
    ids=["rho", "delta", "replace-one"],
)
def test_what_is_found_is_close_to_what_is_proven(law, neighbours, most):
    """Under delta a single table has a better proof, and under replace-one a mean over all pairs is what is proven."""
    asked = question(make_request((3, 4, 2), "<=2-way", neighbours=neighbours, **law), strategy="residual")
    found = find_budget(asked, ["2-way: margin<=40", "a0: stderr<=5"])
    assert 1 <= float(found.budget) / float(found.least) < most


def test_tables_without_a_target_share_a_hundredth():
    targets = ["a0*a1: stderr<=5", "total: stderr<=20"]
    found = program((3, 4, 2), "<=2-way", targets)
    assert found.rest.tolist() == [False, False, False, True, False, True, True]
    assert found.cost(found.weights) <= (1 + REST) * (1 + 1e-4) * found.solution.value
    plan = hc.find_budget(make_schema((3, 4, 2)), "<=2-way", targets=targets, guarantee="rho", neighbours="add-remove")
    assert plan.rest == 3 and "3 tables have no target and share 1% of the budget" in str(plan)
    assert float(plan.budget) <= 1.012 * found.solution.value
    assert np.isfinite(plan.plan.count.errors.exact_cell_variances).all()


def test_the_plan_is_the_same_when_it_is_read_again():
    """Its words have the weights that were asked for; those it was made with are in its budgets alone."""
    targets = ["a0*a1: stderr<=5", "total: stderr<=2"]
    told = {"guarantee": "rho", "neighbours": "add-remove", "targets": targets}
    plan = hc.find_budget(make_schema((3, 4, 2)), ["<=2-way", "a0=3"], **told).plan
    again = Plan.from_json(plan.to_json())
    assert again.digest == plan.digest and json.loads(plan.to_json())["workload"] == ["<=2-way", "a0=3"]
    assert plan.workload.weights != again.workload.weights == plan.workload.as_asked.weights
    assert np.array_equal(again.count.request.weights, plan.count.request.as_asked.weights)


def test_faces_weigh_tables_as_asked_whatever_the_plan_was_made_for(tmp_path):
    rows = {"sex": ["F", "M"] * 6, "age": [0, 1, 2] * 4}
    schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", range=(0, 2))))
    told = {"guarantee": "rho", "neighbours": "add-remove", "targets": ["total: stderr<=1", "2-way: stderr<=4"]}
    found = hc.find_budget(schema, "<=2-way", **told)
    kept = tmp_path / "plan.json"
    found.plan.save(kept)
    import pandas as pd

    pair = [hc.release(plan, pd.DataFrame(rows), seed=1, face="nonnegative") for plan in (found.plan, Plan.read(kept))]
    tables = [release.table("sex*age", face="nonnegative").values for release in pair]
    assert np.array_equal(*tables)


@pytest.mark.parametrize("bound", [1, 2.5, 10.7, 50])
def test_margins_of_the_total_are_inverted_by_their_exact_law(bound):
    largest = largest_variance(bound)
    assert GAUSSIAN.margin(0.5 / largest, 1, COVERAGE) <= bound
    assert GAUSSIAN.margin(0.5 / (largest * 1.0001), 1, COVERAGE) > bound


def test_coarse_noise_has_half_a_step_more():
    coarse, fine = (program((2, 3), "1-way", [f"workload: margin<={bound}"]) for bound in (1.8, 18))
    assert coarse.allowed[0] == pytest.approx((1.3 / 1.959964) ** 2, rel=1e-5)
    assert fine.allowed[0] == pytest.approx((18 / 1.959964) ** 2, rel=1e-5)


def test_means_of_ranges_are_constraints_too():
    schema = Schema((Attribute(name="age", range=(0, 3)), Attribute(name="sex", codes=3)))
    told = {"guarantee": "rho", "neighbours": "add-remove", "strategy": "residual"}
    found = hc.find_budget(schema, ["2-way", "prefix(age)*sex"], targets=["prefix(age)*sex: stderr<=10"], **told)
    even = hc.find_budget(
        schema, "2-way,prefix(age)*sex", targets=["prefix(age)*sex: stderr<=10"], budgets="uniform", **told
    )
    assert math.isclose(found.reached[0], 10, rel_tol=1e-3) and float(found.budget) < float(even.budget)


def test_pure_epsilon_is_searched_with_weights_for_the_targets_and_nothing_is_proven():
    schema, targets = make_schema((5, 4, 3)), ["a2: stderr<=2", "2-way: stderr<=60"]
    told = {"targets": targets, "neighbours": "add-remove", "strategy": "workload"}
    found = hc.find_budget(schema, "<=2-way", **told)
    as_built = hc.find_budget(schema, "<=2-way", budgets="uniform", **told)
    assert float(found.budget) < 0.8 * float(as_built.budget)
    assert found.least is None and "other plans might need less" in found.searched


@pytest.mark.parametrize("tried", [{"budgets": "uniform"}, {"strategy": "residual", "budgets": "uniform"}], ids=str)
def test_budgets_that_may_not_be_chosen_have_no_program(tried):
    assert program((3, 4), "<=2-way", ["a0: stderr<=1"], **tried) is None


def test_targets_of_what_is_public_have_no_program():
    assert program((3, 4), "<=2-way", ["total: stderr<=1"], neighbours="replace-one") is None


def test_nested_levels_have_no_program():
    levels = [{"name": "band", "starts": [0, 2]}]
    schema = Schema((Attribute(name="age", range=(0, 3), levels=levels), Attribute(name="sex", codes=2)))
    asked = hc.find_budget(
        schema, "age*sex,age@band*sex", targets=["age@band*sex: stderr<=9"], guarantee="rho", neighbours="add-remove"
    )
    assert asked.least is None and asked.reached[0] <= 9
    assert asked.goals[0].tables.tolist() == [1]  # though the words of the target have fewer levels than the workload


def test_positions_of_the_grid_are_found_for_what_is_proven():
    found = program((2, 3), "a0*a1", ["a0*a1: variance<=200"])
    asked = question(make_request((2, 3), "a0*a1", rho=1))
    proven = find_budget(asked, ["a0*a1: variance<=200"])
    assert proven.least == number(step(found.solution.bound)) == "0.0025"
