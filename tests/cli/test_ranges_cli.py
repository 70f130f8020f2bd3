"""Ranges on the command line: plan, release, show, and what is refused."""

import numpy as np
import pytest

from cli.desk import BUDGET, PEOPLE, listing
from hushcube.cli import run

PREFIX = ["--schema", "people.yaml", "--workload", "prefix(age)*sex"]
BOTH = [*PREFIX, "--workload", "ranges(income)=2,region"]


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused: nothing is written, nothing is spent."""

    def check(*arguments):
        before = listing(desk)
        code = run(list(arguments))
        captured = capsys.readouterr()
        assert code == 2, captured.err
        assert listing(desk) == before and drawn == [] and not captured.out
        assert "Traceback" not in captured.err
        return captured.err

    return check


# ------------------------------------------------------------------------------------------------------------- plan


def test_a_printed_plan_names_the_ranges(done):
    out, _ = done("plan", *BOTH, *BUDGET)
    assert "3 tables, 27 cells" in out
    for word in ("sex*prefix(age)", "ranges(income)", "region", "wavelet", "hierarchy"):
        assert word in out
    assert out.count("→") == 1
    assert "sex*age" not in out, "the plan lists what is asked for"


def test_plan_json_has_forms_beside_marginals(document):
    plan = document("plan", *BOTH, *BUDGET)
    assert plan["workload"] == {
        "words": ["prefix(age)*sex", "ranges(income)=2", "region"],
        "marginals": 3,
        "cells": 20 + 4 + 3,
    }
    listed = [(m.get("form"), m["attributes"], m["cells"]) for m in plan["marginals"]]
    assert listed == [
        (None, ["region"], 3),
        ("sex*prefix(age)", ["sex", "age"], 20),
        ("ranges(income)", ["income"], 4),
    ]
    for entry in plan["marginals"]:
        assert 1.9 < entry["margin_95"] / entry["std_error"] < 3
    total = sum(m["cells"] * m["std_error"] ** 2 for m in plan["marginals"])
    chosen = next(c for c in plan["plans"] if all(c[key] == plan["chosen"][key] for key in ("strategy", "budgets")))
    assert chosen["total_variance_discrete"] == pytest.approx(total)


def test_strategy_all_lists_what_each_tree_can_do(document):
    plan = document("plan", *PREFIX, *BUDGET, "--strategy", "all")
    listed = {(c["strategy"], c["recovery"]) for c in plan["plans"]}
    assert {("wavelet", r) for r in ("gls", "ols", "none")} | {("hierarchy", r) for r in ("gls", "ols")} <= listed
    assert ("hierarchy", "none") not in listed
    assert not {"wavelet", "hierarchy"} & {s["strategy"] for s in plan["skipped"]}


def test_trees_do_not_turn_up_without_ranges(document):
    plan = document("plan", "--schema", "people.yaml", "--workload", "2-way", *BUDGET, "--strategy", "all")
    assert not {"wavelet", "hierarchy"} & {c["strategy"] for c in plan["plans"]}


@pytest.mark.parametrize("law", [["--epsilon", "1"], ["--rho", "1/2"], ["--epsilon", "1", "--delta", "1e-6"]])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
@pytest.mark.parametrize("strategy", ["wavelet", "hierarchy"])
def test_trees_plan_under_every_guarantee(document, strategy, law, neighbours):
    plan = document("plan", *BOTH, *law, "--neighbours", neighbours, "--strategy", strategy)
    assert [(c["strategy"], c["recovery"]) for c in plan["plans"]] == [(strategy, "gls")]
    assert all(np.isfinite(m["std_error"]) and m["std_error"] > 0 for m in plan["marginals"])


def test_the_fan_out_can_be_given(document):
    plan = document("plan", *PREFIX, *BUDGET, "--strategy", "hierarchy:fan-out=4", "--out", "new.json")
    assert plan["chosen"]["details"]["fan_outs"] == {"age": [3, 4]}
    searched = document("plan", *PREFIX, *BUDGET, "--strategy", "hierarchy")
    assert searched["plans"][0]["total_variance"] <= plan["plans"][0]["total_variance"]
    released = document("release", "new.json", "--data", "people.csv", "--out", "new")
    assert released["strategy"] == "hierarchy" and released["plan_digest"] == plan["chosen"]["digest"]


# -------------------------------------------------------------------------------------------------- release and show


@pytest.fixture(params=["wavelet", "hierarchy", "residual"])
def published(request, done):
    out, _ = done("release", *BOTH, *BUDGET, "--strategy", request.param, "--data", "people.csv", "--out", "new")
    assert "published 5 tables (50 cells) in new" in out
    return request.param


def test_released_ranges_are_listed_and_shown(published, done, document):
    listed = document("show", "new")["tables"]
    assert [t["table"] for t in listed] == ["region", "sex*age", "income", "sex*prefix(age)", "ranges(income)"]
    assert [t["cells"] for t in listed] == [3, 20, 3, 20, 4]
    out, _ = done("show", "new")
    assert "5 tables" in out and "sex*prefix(age)" in out and "ranges(income)" in out
    assert document("show", "new", "prefix(age)*sex")["attributes"] == ["prefix(age)", "sex"]  # as asked
    shown = document("show", "new", "sex*prefix(age)")
    assert shown["attributes"] == ["sex", "prefix(age)"] and len(shown["cells"]) == 20
    assert [c["prefix(age)"] for c in shown["cells"][:10]] == [f"up to {age}" for age in range(10)]
    cells = document("show", "new", "sex*age")["cells"]
    running = np.cumsum([[c["value"] for c in cells if c["sex"] == sex] for sex in ("Female", "Male")], axis=1)
    assert [c["value"] for c in shown["cells"]] == pytest.approx(running.ravel().tolist(), abs=1e-8)
    for cell in shown["cells"]:
        truth = sum(sex == cell["sex"] and age <= int(cell["prefix(age)"].split()[-1]) for sex, age, *_ in PEOPLE)
        assert abs(cell["value"] - truth) < 25 * cell["std_error"]  # false alarm below exp(-35)
        assert cell["low_95"] < cell["value"] < cell["high_95"]


def test_ranges_can_be_sliced(published, done, document):
    where = ["--where", "sex=Male", "--where", "prefix(age)=up to 3", "--where", "prefix(age)=up to 9"]
    shown = document("show", "new", "prefix(age)*sex", *where)
    assert [(c["sex"], c["prefix(age)"]) for c in shown["cells"]] == [("Male", "up to 3"), ("Male", "up to 9")]
    out, _ = done("show", "new", "sex*prefix(age)", *where)
    assert "up to 3" in out and "Female" not in out and "up to 4" not in out
    missing = document("show", "new", "ranges(income)", "--where", "ranges(income)=unknown")
    assert [c["ranges(income)"] for c in missing["cells"]] == ["unknown"]


def test_sums_of_cells_are_those_of_the_ranges(published, document):
    where = [f"--where=age={age}" for age in range(4)]
    summed = document("show", "new", "sex*age", "--where", "sex=Male", *where, "--sum")
    (prefix,) = document("show", "new", "prefix(age)*sex", "--where=sex=Male", "--where=prefix(age)=up to 3")["cells"]
    assert summed["value"] == pytest.approx(prefix["value"], abs=1e-8)
    assert summed["std_error"] == pytest.approx(prefix["std_error"], rel=1e-9)


def test_json_counts_what_is_published(document):
    released = document("release", *BOTH, *BUDGET, "--data", "people.csv", "--out", "new")
    assert (released["tables"], released["cells"]) == (5, 50)


# ------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("workload", "field", "fix"),
    [
        ("prefix(sex)", "workload: prefix(sex): the values of 'sex' have no order", "ordered: true"),
        ("age*ranges(region)", "workload: ranges(region): the values of 'region' have no order", "ordered: true"),
        ("ranges(unknown)", "attribute: 'unknown' is not in the schema", "sex, age, income, region"),
        ("prefix(age)*shoe", "attribute: 'shoe' is not in the schema", "sex, age, income, region"),
        ("prefix(age)*age", "names an attribute twice", "once"),
        ("prefix(age)=0", "the weight of 'prefix(age)' is not a positive number", "=2.5"),
        ("prefix(age", "attribute: 'prefix(age' is not in the schema", "use one of"),
        ("queries", "no matrix is given", "matrix"),
    ],
)
def test_ranges_that_cannot_be_read_are_refused(refused, workload, field, fix):
    asked = ["--schema", "people.yaml", "--workload", workload, *BUDGET]
    for arguments in (
        ["plan", *asked, "--out", "new.json"],
        ["release", *asked, "--data", "people.csv", "--out", "new"],
    ):
        told = refused(*arguments)
        assert field in told and fix in told.partition("Fix:")[2]


@pytest.mark.parametrize("fan_out", ["1", "0", "-3"])
def test_a_fan_out_is_at_least_two(refused, fan_out):
    told = refused("plan", *PREFIX, *BUDGET, "--strategy", f"hierarchy:fan-out={fan_out}", "--out", "new.json")
    assert f"--strategy hierarchy:fan-out: {fan_out} is too small" in told and "Fix: give a whole number from 2" in told
    told = refused("plan", *PREFIX, *BUDGET, "--strategy", "hierarchy:fan-out=x", "--out", "new.json")
    assert "hierarchy:fan-out: 'x' is not a whole number" in told


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--workload", "2-way", "--strategy", "wavelet"], "no range over an ordered attribute is asked for"),
        (["--workload", "2-way", "--strategy", "hierarchy"], "no range over an ordered attribute is asked for"),
        (["--workload", "prefix(age)", "--strategy", "hierarchy", "--recovery", "none"], "use gls or ols"),
    ],
)
def test_a_tree_that_does_not_apply_says_why(refused, options, told):
    assert told in refused("plan", "--schema", "people.yaml", *options, *BUDGET, "--out", "new.json")


def test_too_many_ranges_are_refused_before_memory_is_taken(refused, desk):
    (desk / "wide.yaml").write_text("attributes:\n  - {name: a, range: [1, 1000000]}\n  - {name: b, size: 200}\n")
    for word, cells in (("ranges(a)", "500,000,500,000"), ("prefix(a)*b", "200,000,000")):
        told = refused("plan", "--schema", "wide.yaml", "--workload", word, *BUDGET, "--out", "new.json")
        assert told.startswith("hushcube: workload") and cells in told and "Fix: ask for smaller" in told


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["prefix(age)"], "marginal: 'prefix(age)' is not in the schema"),
        (["ranges(age)*sex"], "marginal: 'ranges(age)' is not in the schema"),
        (["prefix(age)*sex", "--where", "age=3"], "where: 'age' is not an attribute of this table"),
        (["prefix(age)*sex", "--where", "prefix(age)=3"], "where, prefix(age): '3' is not one of its labels"),
        (["prefix(age)*sex", "--sum"], "'prefix(age)*sex' holds sums already"),
    ],
)
def test_what_a_release_does_not_hold_is_not_shown(desk, done, capsys, arguments, told):
    done("release", *PREFIX, *BUDGET, "--strategy", "wavelet", "--data", "people.csv", "--out", "new")
    assert run(["show", "new", *arguments]) == 2
    problem = capsys.readouterr().err
    assert told in problem and "Fix:" in problem
