"""Planning as a product: targets, other budgets and charts on the command line."""

import json
import re
import struct
import sys

import pytest

from cli.desk import ASKED, BUDGET, listing
from hushcube.cli import run

FIND = ["--epsilon", "find", "--neighbours", "add-remove"]
TARGET = ["--target", "age*sex: stderr<=20"]


@pytest.fixture
def refused(desk, capsys):
    """Run a command that must be refused: exit code 2, the field and the fix named, nothing written."""

    def check(arguments, *wanted):
        before = listing(desk)
        assert run(["plan", *arguments]) == 2
        captured = capsys.readouterr()
        assert listing(desk) == before and captured.out == ""
        assert "Fix:" in captured.err
        for words in wanted:
            assert words in captured.err, captured.err

    return check


# ------------------------------------------------------------------------------------------------------------ targets


@pytest.mark.parametrize(
    ("law", "kind"),
    [
        (["--epsilon", "find"], "epsilon"),
        (["--rho", "find"], "rho"),
        (["--epsilon", "find", "--delta", "1e-6"], "epsilon"),
    ],
    ids=" ".join,
)
def test_the_budget_found_can_be_typed_again(document, law, kind):
    law = [*law, "--neighbours", "add-remove"]
    targets = [*TARGET, "--target", "workload: rmse<=12"]
    plan = document("plan", *ASKED, *law, *targets)
    assert plan["found"].keys() == {kind}
    assert [t["target"] for t in plan["targets"]] == ["age*sex: stderr<=20", "workload: rmse<=12"]
    for target in plan["targets"]:
        assert target.keys() == {"target", "tables", "measure", "bound", "reached"}
        assert target["reached"] <= target["bound"]
    assert [t["tables"] for t in plan["targets"]] == [1, 11]
    (table,) = (m for m in plan["marginals"] if m["attributes"] == ["sex", "age"])
    assert table["std_error"] == pytest.approx(plan["targets"][0]["reached"])
    again = [plan["found"][kind] if word == "find" else word for word in law]
    typed = document("plan", *ASKED, *again, "--strategy", plan["chosen"]["strategy"])
    assert typed["privacy"] == plan["privacy"] and "found" not in typed and "targets" not in typed
    same = [c for c in plan["plans"] if c["strategy"] == plan["chosen"]["strategy"] and c["budgets"] == "optimal"]
    # the words' own weights have the least total; those for the targets met them under a budget that is no larger
    assert typed["plans"][0]["total_variance"] <= same[0]["total_variance"] * (1 + 1e-9)
    assert plan["least"] is None if law[0] == "--epsilon" and "--delta" not in law else float(plan["least"][kind]) > 0


def test_the_smallest_budget_is_printed_and_its_plan_saved(done, document, desk):
    out, err = done("plan", *ASKED, *FIND, *TARGET, "--out", "new.json")
    budget = re.search(r"the smallest epsilon found that meets the targets is (\S+)", out)[1]
    assert re.search(r"age\*sex +│ stderr │ +20 │ +(20|19\.\d+) ", out)
    assert "saved the plan" in err
    saved = json.loads((desk / "new.json").read_text())
    assert float(eval(saved["privacy"]["epsilon"])) == float(budget)  # "3121/10000"
    assert run(["release", "new.json", "--data", "people.csv", "--out", "again"]) == 0


def test_targets_follow_the_named_strategy(document):
    told = ["--strategy", "workload", "--budgets", "uniform", "--recovery", "none"]
    plan = document("plan", *ASKED, *FIND, *TARGET, *told)
    assert {**plan["chosen"], "digest": 0}.items() >= {"strategy": "workload", "budgets": "uniform"}.items()
    best = document("plan", *ASKED, *FIND, *TARGET)
    assert float(best["found"]["epsilon"]) <= float(plan["found"]["epsilon"])


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([*BUDGET, *TARGET], ["--target: cannot be combined with a budget that is given", "--epsilon find"]),
        (["--neighbours", "add-remove", *TARGET], ["--target: needs one budget to find", "--rho find"]),
        ([*FIND, "--rho", "1", *TARGET], ["--target: needs one budget to find"]),
        ([*FIND, "--rho", "find", *TARGET], ["--target: needs one budget to find"]),
        (["--rho", "find", "--delta", "1e-6", "--neighbours", "add-remove", *TARGET], ["rho: cannot be combined with"]),
        ([*FIND, "--delta", "2", *TARGET], ["delta: must lie between 0 and 1"]),
        ([*FIND, "--delta", "find", *TARGET], ["delta: 'find' is not a finite number"]),
        (["--epsilon", "find", *TARGET], ["neighbours: is not given"]),
        (FIND, ["--epsilon: `find` needs a target", "--target"]),
        (["--rho", "find", "--neighbours", "add-remove"], ["--rho: `find` needs a target"]),
        ([*FIND, "--target", "pairs: stderr<=20"], ["attribute: 'pairs' is not in the schema"]),
        ([*FIND, "--target", "3-way: stderr<=20"], ["target: sex*age*income, one of '3-way', is not in the workload"]),
        ([*FIND, "--target", "age*sex stderr<=20"], ["target: 'age*sex stderr<=20' cannot be read", "stderr<=20`"]),
        ([*FIND, "--target", "age*sex: stderr=20"], ["target:", "cannot be read"]),
        ([*FIND, "--target", "age*sex: noise<=20"], ["target: 'noise' is unknown", "stderr, margin, variance, rmse"]),
        ([*FIND, "--target", "age*sex: stderr<=0"], ["target: '0' is not a positive number"]),
        ([*FIND, "--target", ""], ["target: '' cannot be read"]),
        ([*FIND, "--target", "age: stderr<=1e-300"], ["target: no epsilon up to 500 meets age: stderr<=1e-300"]),
        ([*FIND, *TARGET, "--strategy", "best"], ["strategy: 'best' is unknown"]),
    ],
    ids=lambda value: " ".join(value)[-40:],
)
def test_targets_are_checked(refused, options, wanted):
    refused([*ASKED, *options, "--out", "new.json", "--chart", "new.svg"], *wanted)


def test_a_release_needs_a_budget(desk, capsys):
    assert run(["release", *ASKED, *FIND, "--data", "people.csv", "--out", "new"]) == 2
    assert "epsilon: 'find' is not a finite number" in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------ other budgets


@pytest.mark.parametrize("law", [["--epsilon", "1"], ["--rho", "0.5"], ["--epsilon", "1", "--delta", "1e-6"]])
def test_what_if_lists_the_best_plan_of_each_budget(document, law):
    law = [*law, "--neighbours", "add-remove"]
    plan = document("plan", *ASKED, *law, "--what-if", "0.1, 1/2,2")
    kind = law[0].removeprefix("--")
    assert [row[kind] for row in plan["what_if"]] == ["0.1", "1/2", "2"]
    assert plan["privacy"][kind] == {"1": "1", "0.5": "1/2"}[law[1]]
    for row in plan["what_if"]:
        alone = document("plan", *ASKED, *[row[kind] if word == law[1] else word for word in law])
        chosen = {name: alone["chosen"][name] for name in ("strategy", "budgets", "recovery")}
        assert {name: row[name] for name in chosen} == chosen
        (same,) = (c for c in alone["plans"] if c.items() >= chosen.items())
        for name in ("total_variance", "rmse", "total_variance_discrete"):
            assert row[name] == pytest.approx(same[name])
        errors = sorted(m["std_error"] for m in alone["marginals"])
        assert row["worst_std_error"] == pytest.approx(errors[-1])
        assert row["median_std_error"] == pytest.approx(errors[len(errors) // 2])


def test_what_if_is_printed_after_the_plan(done):
    out, _ = done("plan", *ASKED, *BUDGET, "--what-if", "0.25,4", "--strategy", "workload")
    assert out.index("expected error of a cell") < out.index("what if the budget were another")
    assert re.search(r"│ +0\.25 │ workload │ optimal │ gls", out) and re.search(r"│ +4 │ workload", out)


def test_what_if_goes_with_targets(document):
    plan = document("plan", *ASKED, *FIND, *TARGET, "--what-if", "1", "--strategy", "workload")
    assert plan["found"]["epsilon"] != "1" and plan["what_if"][0]["epsilon"] == "1"


@pytest.mark.parametrize("numbers", ["", ",", "1,,2", "1,x", "0", "-1", "501", "nan", "1;2", "find"])
def test_what_if_needs_numbers(refused, numbers):
    refused([*ASKED, *BUDGET, "--what-if", numbers, "--out", "new.json"], "what-if:", "list budgets")


# ------------------------------------------------------------------------------------------------------------- charts


def test_charts_are_pictures_of_every_strategy(done, document, desk):
    out, err = done("plan", *ASKED, *BUDGET, "--strategy", "all", "--chart", "errors.png", "--chart", "errors.SVG")
    assert "drew the chart errors.png" in err and "drew" not in out
    png = (desk / "errors.png").read_bytes()
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", png[16:24])
    assert 500 < width < 3000 and 400 < height < 3000
    svg = (desk / "errors.SVG").read_text()
    assert svg.startswith("<svg") and "<script" not in svg and "@font-face" not in svg
    for words in ("people: 11 tables, 120 cells", "epsilon = 1", "attributes in the table", "expected standard error"):
        assert words in svg
    written = [part for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg) for part in text.split(" = ")]
    names = [text.removesuffix(" (chosen)") for text in written]
    for strategy in {c["strategy"] for c in document("plan", *ASKED, *BUDGET, "--strategy", "all")["plans"]}:
        assert names.count(strategy) == 1, strategy
    assert sum(text.endswith(" (chosen)") for text in written) == 1
    assert [p.name for p in desk.glob(".hushcube-partial-*")] == []


@pytest.mark.parametrize(
    ("words", "label"), [("2-way", "cells in the table"), ("sex,region", "cells in the table"), ("age", "10 cells")]
)
def test_tables_of_one_order_are_drawn_by_their_cells(done, desk, words, label):
    done("plan", "--schema", "people.yaml", "--workload", words, *BUDGET, "--chart", "errors.svg")
    assert label in (desk / "errors.svg").read_text()


def test_public_answers_are_left_out(done, desk):
    done("plan", *ASKED, "--rho", "1", "--neighbours", "replace-one", "--chart", "errors.svg")
    assert "attributes in the table" in (desk / "errors.svg").read_text()


def test_strategies_that_come_to_the_same_share_a_line(done, desk):
    """One table: to measure it is what the tables asked for mean, and least squares changes nothing."""
    done("plan", "--schema", "people.yaml", "--workload", "cube", *BUDGET, "--chart", "errors.svg", "--strategy", "all")
    assert re.search(r">[\w -]*(\(chosen\))? = [\w =-]+</text>", (desk / "errors.svg").read_text())


def test_names_are_text_not_markup(done, desk):
    (desk / "odd.yaml").write_text("name: <b>&\\e\nattributes: [{name: a, size: 2}, {name: b, size: 3}]")
    done("plan", "--schema", "odd.yaml", "--workload", "<=2-way", *BUDGET, "--chart", "errors.svg")
    assert "&lt;b&gt;&amp;" in (desk / "errors.svg").read_text()


@pytest.mark.parametrize(
    ("charts", "wanted"),
    [
        (["errors.pdf"], "'errors.pdf' ends neither in .png nor in .svg"),
        (["errors"], "ends neither in .png nor in .svg"),
        ([""], "ends neither in .png nor in .svg"),
        (["there.svg"], "exists already"),
        (["no-folder/errors.svg"], "cannot be made there"),
        (["a.svg", "errors.pdf"], "ends neither"),
        (["a.svg", "a.svg"], "the same name"),
        (["a.svg", "./a.svg"], "the same name"),
        (["a\0.svg"], "cannot be made there"),
    ],
    ids=repr,
)
def test_charts_are_checked_before_planning(refused, desk, monkeypatch, charts, wanted):
    (desk / "there.svg").write_text("mine")
    monkeypatch.setattr("hushcube.cli.plan.make_comparison", lambda *_: pytest.fail("it planned"))
    options = [word for chart in charts for word in ("--chart", chart)]
    refused([*ASKED, *BUDGET, *options, "--out", "new.json"], "--chart:", wanted)


def test_a_chart_and_a_plan_of_one_name(refused):
    refused([*ASKED, *BUDGET, "--chart", "same.svg", "--out", "same.svg"], "--chart: two files have the same name")


def test_nothing_to_draw(refused):
    asked = ["--schema", "people.yaml", "--workload", "0-way", "--rho", "1", "--neighbours", "replace-one"]
    refused([*asked, "--chart", "errors.svg", "--out", "new.json"], "--chart: there is no error to draw")


@pytest.mark.parametrize("package", ["altair", "vl_convert"])
def test_missing_packages_name_the_extra(refused, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    refused([*ASKED, *BUDGET, "--chart", "errors.svg"], "--chart: needs altair", "pip install 'hushcube[charts]'")


def test_charts_are_imported_when_they_are_drawn(done):
    sys.modules.pop("altair", None)
    done("plan", *ASKED, *BUDGET, "--strategy", "workload")
    assert "altair" not in sys.modules


# ------------------------------------------------------------------------------------------------------------ balance


def test_headline_tables_that_are_worse_are_remarked_on_and_balanced(done, document):
    asked = [*ASKED, "--rho", "0.1", "--neighbours", "add-remove"]
    _, err = done("plan", *asked)
    assert "the total has a standard error of" in err and "--balance counts tables alike, --objective max" in err
    assert "--balance" not in done("plan", *asked, "--balance")[1]
    plain, balanced = (document("plan", *asked, *extra)["marginals"] for extra in ([], ["--balance"]))
    assert balanced[0]["attributes"] == [] and balanced[0]["std_error"] < plain[0]["std_error"]


def test_balance_is_not_for_the_largest_variance(refused):
    asked = [*ASKED, "--rho", "0.1", "--neighbours", "add-remove"]
    refused([*asked, "--balance", "--objective", "max"], "balance: is for the total variance")
