"""Balance: tables count alike, so that headline tables are not the worst, and a remark where they are."""

import numpy as np
import pytest

import hushcube as hc
from helpers import make_schema
from hushcube import Plan
from hushcube.errors import BadInput
from hushcube.planning.summary import imprecise_headline, table_variances

SIZES = (9, 16, 7, 15, 6)
TOLD = {"neighbours": "add-remove", "effort": "low"}


def errors(plan):
    return dict(zip(map(len, plan.workload.marginals), np.sqrt(table_variances(plan)), strict=True))


def test_coarse_tables_are_about_as_precise_as_fine_ones_under_rho():
    schema = make_schema(SIZES)
    plain, balanced = (hc.plan(schema, "<=2-way", rho="0.1", balance=balance, **TOLD) for balance in (False, True))
    before, after = (np.sqrt(table_variances(plan)) for plan in (plain, balanced))
    assert before[0] > 2 * np.median(before)
    assert after.max() < 1.2 * np.median(after)
    assert imprecise_headline(plain) is not None and imprecise_headline(balanced) is None


def test_headline_tables_get_better_under_pure_epsilon():
    schema = make_schema((2, 10, 4, 3))
    plain, balanced = (hc.plan(schema, "<=2-way", epsilon=1, balance=balance, **TOLD) for balance in (False, True))
    assert errors(balanced)[0] < 0.9 * errors(plain)[0]


def test_the_mean_variance_of_tables_is_what_is_made_least():
    schema = make_schema((5, 4, 3))
    plans = {balance: hc.plan(schema, "<=2-way", rho="0.1", balance=balance, **TOLD) for balance in (False, True)}
    means = {balance: table_variances(plan).sum() for balance, plan in plans.items()}
    totals = {balance: plan.count.errors.total_variance(exact=True) for balance, plan in plans.items()}
    assert means[True] < means[False] and totals[True] > totals[False]


def test_weights_of_the_workload_count_besides():
    schema = make_schema((5, 4, 3))
    plans = [hc.plan(schema, words, rho="0.1", balance=True, **TOLD) for words in ("<=2-way", ["<=2-way", "a0*a1=9"])]
    first, heavier = (np.sqrt(table_variances(plan))[plan.workload.marginals.index((0, 1))] for plan in plans)
    assert heavier < first


def test_a_balanced_plan_is_an_ordinary_plan():
    plan = hc.plan(make_schema((5, 4, 3)), "<=2-way", rho="0.1", balance=True, **TOLD)
    again = Plan.from_json(plan.to_json())
    assert again.digest == plan.digest and set(again.workload.weights) == {1.0}
    assert np.allclose(table_variances(again), table_variances(plan))


def test_the_page_says_where_headline_tables_are_worse():
    schema = make_schema(SIZES)
    told = {"rho": "0.1", "strategy": "residual", **TOLD}
    page = str(hc.compare(schema, "<=2-way", **told))
    assert "the total has a standard error of" in page and "`balance=True` counts tables alike" in page
    for quiet in ({"balance": True}, {"objective": "max"}):
        assert "counts tables alike" not in str(hc.compare(schema, "<=2-way", **told, **quiet))
    assert "counts tables alike" not in str(hc.compare(schema, "<=1-way", **told))  # nothing else is there


def test_measures_are_balanced_too():
    schema = hc.Schema.from_dict(
        {
            "attributes": [{"name": "a", "size": 9}, {"name": "b", "size": 8}],
            "measures": [{"name": "days", "bounds": [0, 4]}],
        }
    )
    plans = [
        hc.plan(schema, "<=2-way", measures="sum(days)", rho=1, balance=balance, **TOLD) for balance in (False, True)
    ]
    for part in ("count", "days"):
        totals = [plan.designs[part].errors.exact_cell_variances[0] for plan in plans]
        assert totals[1] < totals[0]


def test_the_largest_variance_needs_no_balance():
    with pytest.raises(BadInput, match=r"^balance: is for the total variance: .* Fix: leave one of them out"):
        hc.plan(make_schema((3, 4)), "<=2-way", rho=1, balance=True, objective="max", **TOLD)
