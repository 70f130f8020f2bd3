"""Tables that the user names: exactly these, with exactly these shares of the budget, or with the best ones."""

import json
import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

import hushcube as hc
from hushcube.cli import run
from hushcube.errors import BadInput, NotApplicable
from hushcube.planning.plan import Plan
from hushcube.strategies import read_strategy
from hushcube.strategies.given import GivenTables

SCHEMA = hc.Schema([hc.Attribute(name, codes=n) for name, n in zip("abcd", (2, 2, 3, 5), strict=True)])
LAWS = [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}]
ASKED = {"epsilon": 1, "neighbours": "add-remove"}
INTRO = "a,a*b"


def total(plan):
    return plan.count.errors.total_variance(exact=False)


def planned(words=INTRO, tables=INTRO, **given):
    return hc.plan(SCHEMA, words, measure_tables=tables, **{**ASKED, **given})


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("recovery", ["gls", "ols", "none"])
def test_budgets_have_exactly_the_shares_that_are_given(law, recovery):
    given = {"epsilon": None, **law, "recovery": recovery}
    plan = planned("1-way", {"a*b": "0.3", "c*d": "0.6", "b*c*d": "0.3"}, **given).count
    assert plan.budget_rule == "given" and plan.strategy == "given"
    assert list(plan.measured) == [(0, 1), (2, 3), (1, 2, 3)]
    drawn = 0.5 / (0.5 / plan.budgets - plan.smoothing) if "delta" in law else plan.budgets
    assert drawn / drawn[0] == pytest.approx([1, 2, 1], rel=1e-9)
    if law == {"epsilon": 1}:  # shares are proportions: they need not sum to 1
        assert math.fsum(plan.budgets) == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize(
    ("tables", "recovery", "expected"),
    [
        ("a=1,a*b=1", "none", 48),
        ("a=4/9,a*b=5/9", "none", 46.17),
        ("a,a*b", "none", 46.167865222356866),
        ("a=4,a*b=5", "gls", 30.012631578947367),
        ("a=0.5,a*b=0.5", "gls", 32),
        ("a,a*b", "gls", 16),  # the table `a` is not worth its budget
        ("a*b", "gls", 16),
    ],
)
def test_the_introduction_of_the_paper(tables, recovery, expected):
    """[docs/maths.md, 9: vectors 1 and 2]"""
    assert total(planned(tables=tables, recovery=recovery)) == pytest.approx(expected, rel=1e-9)


def test_what_is_not_used_is_named():
    assert planned().details == {"unused": ["a"]}
    assert planned(recovery="none").details == {}
    assert list(planned(budgets="uniform").count.measured) == [(0,), (0, 1)]


def test_the_gaussian_optimum_of_the_introduction():
    assert total(planned(epsilon=None, rho="1/2")) == pytest.approx(4 + 2 * math.sqrt(3), rel=1e-7)


@pytest.mark.parametrize("law", LAWS[:2], ids=str)
@pytest.mark.parametrize("recovery", ["gls", "ols", "none"])
def test_shares_that_are_not_given_are_the_best(law, recovery):
    """Against a direct search over the shares of the same tables, from several starts; and never worse than uniform."""
    words, tables, law = "1-way,a*b=3", ["a*b", "c*d", "b*c", "d"], {"epsilon": None, **law}
    best = total(planned(words, tables, recovery=recovery, **law))

    def error(logs):
        shares = dict(zip(tables, np.exp(np.clip(logs, -12, 12)).tolist(), strict=True))
        return planned(words, shares, recovery=recovery, **law).count.errors.weighted_variance()

    mine = planned(words, tables, recovery=recovery, **law).count.errors.weighted_variance()
    starts = [np.zeros(4), np.array([1.0, 0, -1, -6])]
    found = min(minimize(error, s, method="Nelder-Mead", options={"maxfev": 60}).fun for s in starts)
    assert mine <= found * (1 + 2e-3)  # the drawn noise, not its formula, was searched
    assert best <= total(planned(words, tables, recovery=recovery, budgets="uniform", **law)) * (1 + 1e-9)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_optimal_shares_are_never_worse_than_uniform_ones(law, neighbours):
    rng = np.random.default_rng(7)
    every = ["*".join(c) for k in (1, 2, 3) for c in combinations("abcd", k)]
    for _ in range(6):
        tables = [every[i] for i in rng.choice(len(every), 4, replace=False)]
        given = {"epsilon": None, **law, "neighbours": neighbours, "recovery": ["gls", "none"][rng.integers(2)]}
        words = ["*".join(t.split("*")[: 1 + int(rng.integers(3))]) for t in tables[:3]]
        optimal, uniform = (planned(words, tables, budgets=rule, **given) for rule in ("optimal", "uniform"))
        assert total(optimal) <= total(uniform) * (1 + 1e-6), (tables, words, given)


@pytest.mark.parametrize("tables", ["a*b,c", "a*b=1,c=2", "a*b,0-way,c"])
def test_the_total_is_free_where_it_is_public(tables):
    plan = planned("a,c,0-way", tables, neighbours="replace-one").count
    assert list(plan.measured) == [(), (2,), (0, 1)]
    assert np.isinf(plan.budgets[0]) and plan.errors.cell_variances(exact=True)[0] == 0


def test_the_total_alone():
    assert list(planned("0-way", "0-way").count.measured) == [()]
    assert total(planned("0-way", "0-way", neighbours="replace-one")) == 0


def test_the_objective_max():
    totals = planned("1-way", ["a*b", "c*d", "d"])
    largest = planned("1-way", ["a*b", "c*d", "d"], objective="max")
    assert largest.count.errors.max_variance() < totals.count.errors.max_variance()
    given = planned("1-way", "a*b=1,c*d=1,d=1", objective="max")  # shares stay what they are
    assert given.count.budgets == pytest.approx([1 / 3] * 3)


def test_words_of_workloads():
    assert list(planned("1-way", "1..2-way", budgets="uniform").count.measured)[:2] == [(0,), (1,)]
    assert list(planned("1-way", "2-way=1,a*b=5").count.budgets[[0, 1]] * 10) == pytest.approx([5, 1])


def test_plans_read_back_the_same():
    for tables in ("a*b=0.3,c*d=0.7", "a*b,c*d"):
        plan = planned("1-way", tables)
        assert Plan.from_json(plan.to_json()).digest == plan.digest


def test_budgets_for_targets_and_other_budgets():
    given = {"neighbours": "add-remove", "measure_tables": "a*b=1,c*d=3"}
    found = hc.find_budget(SCHEMA, "1-way", targets=["c: stderr<=9"], **given)
    assert found.plan.strategy == "given" and found.reached[0] <= 9
    scenarios = hc.what_if(SCHEMA, "1-way", epsilon=[1, 2], **given)
    assert [each.plan.count.budget_rule for each in scenarios] == ["given", "given"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"tables": "a*b,c"}, NotApplicable, "none of the given tables contains d, which is asked for"),
        ({"tables": "a*b,c", "recovery": "none"}, NotApplicable, "none of the given tables contains d,"),
        ({"tables": "a*b=1,c*d"}, BadInput, "measure_tables: some tables have a share of the budget and others have"),
        ({"tables": "a*b=0,c*d=1"}, BadInput, "measure_tables: a share of the budget is not positive"),
        ({"tables": "a*b=-1,c*d=1"}, BadInput, "is not positive"),
        ({"tables": "a*b=x"}, BadInput, "measure_tables: 'x' is not a finite number"),
        ({"tables": "a*b,,c*d"}, BadInput, "measure_tables: a word is empty"),
        ({"tables": ""}, BadInput, "measure_tables: a word is empty"),
        ({"tables": 7}, BadInput, "measure_tables: 7 names no tables"),
        ({"tables": "a*z"}, BadInput, "'z' is not in the schema"),
        ({"tables": "a*b=1,c*d=1", "budgets": "uniform"}, BadInput, "budgets: shares of the budget are given"),
        ({"tables": "cube", "strategy": "bmax"}, BadInput, "measure_tables: names what is measured, and so does the s"),
        ({"tables": None, "strategy": "given"}, NotApplicable, "no tables are given: write `given:tables="),
    ],
)
def test_bad_input(given, error, message):
    with pytest.raises(error, match=message):
        planned("1-way", **given)


def test_tables_that_cannot_be_held():
    wide = hc.Schema([hc.Attribute(f"x{i}", codes=200) for i in range(4)])
    with pytest.raises(NotApplicable, match=r"the table .* has 1,600,000,000 cells"):
        hc.plan(wide, "1-way", measure_tables="x0*x1*x2*x3", **ASKED)


def test_the_word_of_the_strategy():
    """A list of tables holds commas, and so do options."""
    one = read_strategy("given:tables=a=0.3,b=0.5,c*d=0.2")
    assert one.tables == GivenTables({"a": Fraction(3, 10), "b": Fraction(1, 2), "c*d": Fraction(1, 5)})
    assert read_strategy(str(one)) == one
    assert hc.Given(tables={"a": "0.3", "b": 0.5, "c*d": "1/5"}) == one
    compared = hc.compare(SCHEMA, "1-way", strategy=["auto", "given:tables=a*b,c*d"], **ASKED)
    assert {"given", "covering"} <= {plan.strategy for plan in compared.plans}


def test_levels_of_attributes():
    bands = [{"name": "band", "groups": {"young": [0, 1], "old": [2, 3]}}]
    schema = hc.Schema([hc.Attribute("age", codes=4, levels=bands), hc.Attribute("sex", codes=2)])
    plan = hc.plan(schema, "age@band,sex", measure_tables="age@band*sex=2", **ASKED)
    assert list(plan.count.measured) == [(0, 1)] and plan.schema.sizes == (2, 2)


def test_the_command_line(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml())
    words = ["plan", "--schema", "schema.yaml", "--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove"]
    assert not run([*words, "--measure-tables", "a*b=0.3,c*d=0.7", "--json"])
    chosen = json.loads(capfd.readouterr().out)["chosen"]
    assert (chosen["strategy"], chosen["budgets"]) == ("given", "given")
    assert run([*words, "--measure-tables", "a*b", "--out", "plan.json"]) == 2
    assert "none of the given tables contains c" in capfd.readouterr().err
    assert run([*words, "--measure-tables", "a*b=1,c*d", "--out", "plan.json"]) == 2
    assert "--measure-tables: some tables have a share" in capfd.readouterr().err
    assert run([*words, "--measure-tables", "cube", "--strategy", "bmax", "--out", "plan.json"]) == 2
    assert "--measure-tables: names what is measured, and so does the strategy" in capfd.readouterr().err
    assert not (tmp_path / "plan.json").exists()
