"""Publishing only what is precise: which tables a plan keeps, what it says of the others, and what is refused."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from helpers import LAWS, NEIGHBOURS, make_plan, make_request, question
from hushcube.designs.design import BUDGETS
from hushcube.designs.request import Request
from hushcube.errors import BadInput, NotApplicable, PlanError, WorkloadError
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.planning.lower_bound import least_total
from hushcube.planning.plan import Plan
from hushcube.planning.planner import compare
from hushcube.planning.question import what_if
from hushcube.strategies import PMost
from ranged import ordered_schema

PRECISE = "pmost:publish=precise"


def words(plan):
    return [plan.workload.word(marginal) for marginal in plan.workload.marginals]


@st.composite
def requests(draw):
    d = draw(st.integers(1, 5))
    sizes = tuple(draw(st.lists(st.sampled_from([1, 2, 3, 7, 20]), min_size=d, max_size=d)))
    masks = sorted(draw(st.sets(st.integers(0, 2**d - 1), min_size=1)))
    asked = ["*".join(f"a{i}" for i in range(d) if mask >> i & 1) or "0-way" for mask in masks]
    weighted = [f"{word}={draw(st.sampled_from([1, 1, 2, 5]))}" for word in asked]
    neighbours = draw(st.sampled_from(NEIGHBOURS))
    return make_request(sizes, weighted, neighbours=neighbours, **draw(st.sampled_from(LAWS)))


@pytest.mark.slow
@given(requests(), st.sampled_from(["3%", "10%", "30%", None, "100%"]))
@settings(max_examples=60)
def test_what_is_published_is_precise_and_what_is_not_is_named(request, threshold):
    strategy = PMost(threshold=threshold, publish="precise")
    try:
        even = make_plan(request, strategy, "uniform", "none")
    except BadInput as problem:
        assert problem.field == "threshold" and "every table" not in problem.problem
        return
    left = even.details.get("left_out", [])
    asked = dict(zip(map(request.workload.word, request.workload.marginals), request.workload.weights, strict=True))
    assert sorted(words(even) + left) == sorted(asked)
    assert (even.request == request) == (not left)
    for budgets, recovery in (("uniform", "none"), ("optimal", "none"), ("optimal", "gls")):
        plan = make_plan(request, strategy, budgets, recovery)
        assert words(plan) == words(even)
        largest = plan.errors.max_variance(exact=True, weighted=False)  # which decides what a table is summed from
        assert largest <= plan.details["threshold"] * (1 + 1e-9)
        assert [asked[word] for word in words(plan)] == list(plan.workload.weights)
        assert plan.details["weight"] == pytest.approx(sum(plan.workload.weights))
        assert Plan.from_json(Plan.of_counts(plan).to_json()).count.details == plan.details
    everything = make_plan(request, PMost(threshold="100%", publish="precise"), "uniform", "none")
    assert "left_out" not in everything.details


def test_what_the_cover_of_bmax_makes_precise_is_published_where_the_greedy_choice_leaves_something_out():
    asked = "0-way=1,a0=1,a1=5,a0*a1=1,a2=2,a0*a2=1,a1*a2=1"
    request = make_request((3, 7, 3), asked, epsilon=1)
    plan = make_plan(request, "pmost:threshold=100%,publish=precise", "uniform", "none")
    assert "left_out" not in plan.details and plan.details["weight"] == 12


def test_beyond_16_attributes_tables_hold_only_what_is_read_from_them():
    request = make_request((2,) * 18 + (40, 40), "2-way", epsilon=1)
    plan = make_plan(request, PMost(threshold="1%", publish="precise"), "uniform", "none")
    assert 0 < len(plan.workload) < len(request.workload)
    needed = {i for marginal in plan.workload.marginals for i in marginal}
    assert {i for table in plan.measured for i in table} <= needed
    assert plan.errors.max_variance(exact=False, weighted=False) <= plan.details["threshold"]


def test_an_attribute_at_a_level_of_one_value_is_not_measured_where_its_table_is_left_out():
    age = Attribute(name="age", range=(0, 9), levels=({"name": "all", "starts": [0]},))
    schema = Schema((age, *(Attribute(name=n, codes=c) for n, c in (("a", 2), ("b", 2), ("c", 50), ("d", 50)))))
    request = Request(Workload.parse("a*b,age@all*c*d", schema), Privacy.of(epsilon=1, neighbours="add-remove"))
    plan = make_plan(request, "pmost:threshold=2,publish=precise")
    assert plan.details["left_out"] in (["age@all*c*d"], ["a*b"])
    again = Plan.from_json(Plan.of_counts(plan).to_json())
    assert again.count.to_dict() == plan.to_dict()
    assert again.schema.sizes[0] == (10 if "c" not in words(plan)[0] else 1)


def test_the_message_names_the_least_threshold_and_the_way_out():
    request = make_request((2, 2, 2, 50, 50), "a0*a1,a0*a2,a1*a2,a3*a4", epsilon=1)
    with pytest.raises(BadInput, match="variance of at most 5 while every table is answered") as caught:
        make_plan(request, "pmost:threshold=5")
    assert caught.value.fix == "give at least 8, which is 50% of bmax's, or leave tables out with publish=precise"
    with pytest.raises(BadInput, match=r"no table can have a variance of at most 1\.9") as caught:
        make_plan(request, "pmost:threshold=1.9,publish=precise")
    assert caught.value.fix == "give at least 2, which is 12.5% of bmax's"
    assert len(make_plan(request, "pmost:threshold=2,publish=precise").workload) == 1
    with pytest.raises(BadInput, match="'some' is unknown"):
        make_plan(request, "pmost:publish=some")


def test_plans_of_fewer_tables_are_not_compared():
    request = make_request((2, 2, 2, 50, 50), "a0*a1,a0*a2,a1*a2,a3*a4", epsilon=1)
    strategy = "pmost:threshold=5,publish=precise"
    ranking = compare(request, strategy=strategy)
    assert ranking.least == least_total(ranking.chosen.request) < least_total(request)
    for others in (["auto"], ["all"], ["bmax"]):
        with pytest.raises(BadInput, match="may leave tables out"):
            compare(request, strategy=[*others, strategy])
    with pytest.raises(BadInput, match="depend on the budget"):
        what_if(question(request, strategy=strategy), ["1", "2"])
    with pytest.raises(NotApplicable, match="only tables of cells can be precise"):
        asked = Workload.parse("prefix(a0),a1", ordered_schema((8, 3)))
        compare(Request(asked, request.privacy), strategy=PRECISE)


@pytest.mark.parametrize("told", [[], "a3*a4", ["a0*a1"], ["a9"], [3], ["a3*a4", "2-way"]], ids=json.dumps)
def test_what_a_plan_file_says_of_tables_left_out_is_checked(told):
    request = make_request((2, 2, 2, 50, 50), "a0*a1,a0*a2,a1*a2,a3*a4", epsilon=1)
    plan = make_plan(request, "pmost:threshold=5,publish=precise")
    with pytest.raises((PlanError, WorkloadError, BadInput)):
        replace(plan, details={**plan.details, "left_out": told})


@pytest.mark.parametrize("budgets", BUDGETS)
def test_what_is_left_out_leaves_more_budget_to_the_rest(budgets):
    request = make_request((2, 2, 2, 50, 50), "a0*a1,a0*a2,a1*a2,a3*a4", epsilon=1)
    everything = make_plan(request, "pmost:threshold=8", budgets)
    some = make_plan(request, "pmost:threshold=8,publish=precise", budgets)
    assert len(some.workload) >= len(everything.details["precise"])
