"""`hushcube evaluate` on the built-in Titanic data: pages, files, seeds, interruptions, and what is wrong."""

import csv
import json
import os
import signal
import subprocess
import sys
import time

import pytest
import yaml

from cli.desk import listing
from hushcube.cli import run
from hushcube.samples import TITANIC, titanic

WARNING = "NOT PRIVATE"
BUDGET = ["--epsilon", "1", "--neighbours", "replace-one", "--sanity-bound", "5"]
DATA = ["--schema", "titanic.yaml", "--data", "titanic.csv"]
ASKED = [*DATA, "--workload", "1-way", *BUDGET]
ERRORS = {
    *("runs", "mean_error", "mean_error_se", "root_mean_square", "worst_cell", "table_error", "worst_table"),
    *("over_mean", "over_mean_by_table", "overall_error", "standard_error", "worst_error"),
}
FIELDS = ERRORS | {
    *("method", "budgets", "recovery", "face", "epsilon", "rho", "delta", "sanity_bound"),
    *("spent", "seconds", "planning_seconds", "dimensions", "tables"),
}
PLAIN = [*DATA, "--neighbours", "add-remove", "--runs", "2", "--seed", "1"]


@pytest.fixture(autouse=True)
def aboard(desk):
    """The Titanic's people beside the desk's."""
    import pyarrow.csv

    (desk / "titanic.yaml").write_text(yaml.safe_dump(TITANIC.to_dict(), sort_keys=False))
    pyarrow.csv.write_csv(titanic(), desk / "titanic.csv")


@pytest.fixture
def refused(desk, drawn, capsys):
    """Run a command that must be refused: exit code 2, the field and the fix named, nothing drawn or written."""

    def check(arguments, *wanted):
        before = listing(desk)
        code = run(["evaluate", *arguments])
        captured = capsys.readouterr()
        assert code == 2, captured.err
        assert listing(desk) == before and drawn == [] and captured.out == ""
        assert "Fix:" in captured.err and "Traceback" not in captured.err
        for words in wanted:
            assert words in captured.err, captured.err

    return check


def test_all_methods_are_compared_and_a_warning_is_told(desk, done):
    before = listing(desk)
    out, err = done("evaluate", *ASKED, "--runs", "3", "--seed", "1")
    for method in ("dwork", "twophase", "iresamp", "ireduct", "oracle"):
        assert method in out
    assert "3 runs" in out and "±" in out and "sanity bound 5" in out
    assert WARNING in err and "do not publish" in err
    assert listing(desk) == before, "nothing is written"


def test_the_document(document):
    read = document("evaluate", *ASKED, "--method", "dwork", "--method", "proportional", "--runs", "4", "--seed", "3")
    assert WARNING in document.err
    assert read["private"] is False and read["seed"] == 3 and read["workload"] == ["1-way"]
    assert [result["method"] for result in read["results"]] == ["dwork", "proportional"]
    for result in read["results"]:
        assert set(result) == FIELDS
        assert result["runs"] == 4 and result["spent"] == pytest.approx(1)
        assert 0 < result["overall_error"] < result["worst_error"]
        assert [part["table"] for part in result["tables"]] == list(TITANIC.names)
        assert set(result["tables"][0]) == ERRORS | {"table", "attributes", "tables", "cells"}
        assert [part["attributes"] for part in result["dimensions"]] == [1]
        assert (result["budgets"], result["recovery"]) == ("uniform", "none")


def test_the_document_of_one_run_has_no_standard_error(document):
    read = document("evaluate", *ASKED, "--method", "dwork", "--runs", "1")
    assert read["results"][0]["standard_error"] is None and read["seed"] is None


def test_a_seed_repeats(document):
    def results():
        read = document("evaluate", *ASKED, "--method", "ireduct", "--runs", "2", "--seed", "5")
        return [{**result, "seconds": 0, "planning_seconds": 0} for result in read["results"]]

    assert results() == results()


def test_planning_options_reach_the_methods(document):
    more = ["--method", "dwork", "--method", "covering", "--budgets", "optimal", "--recovery", "gls", "--effort", "low"]
    read = document("evaluate", *DATA, "--workload", "2-way", *BUDGET, *more, "--runs", "2")
    assert all((r["budgets"], r["recovery"]) == ("optimal", "gls") for r in read["results"])
    stopped = document(
        *("evaluate", *DATA, "--workload", "1-way", "--epsilon", "20", "--neighbours", "replace-one"),
        *("--method", "ireduct:relative-error=0.2,above=100", "--sanity-bound", "100", "--runs", "2", "--seed", "1"),
    )
    assert stopped["results"][0]["spent"] < 10, "the target is met before the budget is used up"
    assert stopped["results"][0]["sanity_bound"] == 100


def test_data_may_come_from_a_query(document):
    query = ["--query", "SELECT * FROM 'titanic.csv' WHERE class <> 'crew'"]
    read = document(
        *("evaluate", "--schema", "titanic.yaml", "--workload", "class", *BUDGET, *query),
        *("--method", "proportional", "--runs", "2", "--seed", "1"),
    )
    assert read["results"][0]["overall_error"] > 0


def test_queries_are_compared(desk, document):
    (desk / "q.csv").write_text("1,1,0,0\n0,0,1,1\n1,0,0,0\n")
    read = document("evaluate", *DATA, "--queries", "class:q.csv", *BUDGET, "--runs", "2")
    assert all(0 < result["overall_error"] < 1 for result in read["results"])


def test_a_classifier_is_made(done, document):
    asked = ["evaluate", *DATA, "--classify", "survived", *BUDGET, "--folds", "4", "--seed", "1", "--method", "ireduct"]
    out, err = done(*asked)
    assert "accuracy" in out and "exact" in out and "4 folds" in out and WARNING in err
    read = document(*asked)
    exact, noisy = read["results"]
    assert read["classify"] == "survived" and "workload" not in read
    assert exact["method"] == "exact" and exact["epsilon"] is None and exact["overall_error"] == 0
    assert 0.7 < noisy["accuracy"] < 0.85 and noisy["accuracy"] == pytest.approx(exact["accuracy"], abs=0.05)
    assert document(*asked)["results"][1]["accuracy"] == noisy["accuracy"]


def test_help_offers_what_is_taken(done):
    out, _ = done("evaluate", "--help")
    assert "--method NAME" in out and "--classify ATTRIBUTE" in out and "--sanity-bound" in out and "--rho" in out
    assert "--strategy" not in out
    assert "nonnegative" in done("evaluate", "--face", "help")[0]


def test_a_grid_of_settings(done, document):
    """Two methods, three guarantees, two budgets and two faces in one call, without a sanity bound."""
    asked = [
        *("evaluate", *PLAIN, "--workload", "2-way", "--method", "workload", "--method", "covering"),
        *("--epsilon", "0.1", "--epsilon", "1", "--delta", "none", "--delta", "1e-6", "--rho", "0.5"),
        *("--budgets", "uniform", "--budgets", "optimal", "--recovery", "gls", "--face", "unbiased"),
    ]
    read = document(*asked)
    found = {tuple(r[name] for name in ("method", "budgets", "epsilon", "delta", "rho")) for r in read["results"]}
    amounts = {(0.1, None, None), (1, None, None), (0.1, 1e-6, None), (1, 1e-6, None), (None, None, 0.5)}
    pure = {(e, d, r) for e, d, r in amounts if r is None and d is None}
    assert found == {("workload", rule, *own) for rule in ("uniform", "optimal") for own in amounts} | {
        ("covering", rule, *own) for rule in ("uniform", "optimal") for own in pure
    }
    assert all(result["overall_error"] is None and result["mean_error"] > 0 for result in read["results"])
    assert len(read["skipped"]) == 6 and all("pure epsilon" in each["reason"] for each in read["skipped"])
    out, err = done(*asked)
    assert "overall error" not in out and "worst cell" in out and "worst table" in out and "over mean" in out
    assert err.count("left out: covering, ") == 6


def test_methods_are_chosen_that_fit(document):
    def methods(*more):
        return [r["method"] for r in document("evaluate", *PLAIN, "--workload", "1-way", *more)["results"]]

    assert methods("--epsilon", "1", "--sanity-bound", "5") == ["dwork", "twophase", "iresamp", "ireduct", "oracle"]
    assert methods("--epsilon", "1") == ["identity", "workload", "fourier", "covering", "residual"]
    assert methods("--rho", "1", "--sanity-bound", "5") == ["identity", "workload", "fourier", "residual"]


@pytest.mark.parametrize(
    ("by", "places"),
    [
        ("setting", [{}, {}]),
        ("dimension", [{"attributes": str(n), "tables": t} for n, t in ((0, "1"), (1, "4"))] * 2),
        (
            "table",
            [
                {"table": name, "attributes": str(n), "cells": cells}
                for name, n, cells in (("total", 0, "1"), ("class", 1, "4"), *((x, 1, "2") for x in TITANIC.names[1:]))
            ]
            * 2,
        ),
    ],
)
def test_rows_as_page_csv_and_chart(desk, done, document, by, places):
    asked = [
        "evaluate",
        *PLAIN,
        "--workload",
        "<=1-way",
        "--epsilon",
        "1",
        "--method",
        "workload",
        "--method",
        "fourier",
    ]
    out, err = done(*asked, "--by", by, "--csv", "errors.csv", "--chart", "errors.svg", "--chart", "errors.png")
    assert WARNING in err and all(word in out for word in places[-1])
    with (desk / "errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [{name: row[name] for name in place} for row, place in zip(rows, places, strict=True)] == places
    assert {row["private"] for row in rows} == {"false"} and [row["method"] for row in rows[:: len(rows) - 1]] == [
        "workload",
        "fourier",
    ]
    first = document(*asked)["results"][0]
    part = {"setting": first, "dimension": first["dimensions"][0], "table": first["tables"][0]}[by]
    for name in ("mean_error", "worst_cell", "over_mean"):
        assert float(rows[0][name]) == part[name]
    picture = (desk / "errors.svg").read_text()
    assert WARNING in picture and "mean error of a cell" in picture and "fourier" in picture
    assert (desk / "errors.png").read_bytes().startswith(b"\x89PNG")


def test_a_chart_over_budgets_and_one_of_classifiers(desk, done):
    more = ["--method", "workload", "--epsilon", "0.1", "--epsilon", "1"]
    done("evaluate", *PLAIN, "--workload", "2-way", *more, "--chart", "budgets.svg")
    assert ">epsilon<" in (desk / "budgets.svg").read_text()
    asked = without(PLAIN, "--runs")
    done("evaluate", *asked, "--classify", "survived", "--folds", "2", *more, "--chart", "classifiers.svg")
    picture = (desk / "classifiers.svg").read_text()
    assert ">accuracy<" in picture and ">exact<" in picture


def test_runs_are_kept_and_not_run_again(desk, document, done, refused):
    asked = ["evaluate", *PLAIN, "--workload", "2-way", "--epsilon", "1", "--method", "workload"]
    first = document(*asked, "--keep", "runs.jsonl", "--workers", "2")["results"][0]
    again = document(*asked, "--keep", "runs.jsonl")["results"][0]
    assert {**again, "planning_seconds": 0} == {**first, "planning_seconds": 0}, "even the seconds are those of then"
    assert json.loads((desk / "runs.jsonl").read_text().splitlines()[0])["private"] is False
    other = without(asked[1:], "--seed")
    refused(
        [*other, "--seed", "2", "--keep", "runs.jsonl"], "--keep: the runs in 'runs.jsonl' belong to another", "seed"
    )


def test_an_interruption_leaves_a_file_to_go_on_with(desk, done):
    """Ctrl-C goes to all processes at once: none is left, none complains, and what was done is kept."""
    asked = ["evaluate", *without(PLAIN, "--runs"), "--workload", "2-way", "--epsilon", "1", "--method", "workload"]
    order = [sys.executable, "-m", "hushcube", *asked, "--runs", "100000", "--workers", "2", "--keep", "runs.jsonl"]
    kept = desk / "runs.jsonl"
    with subprocess.Popen(order, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as program:
        while not kept.exists() or kept.read_bytes().count(b"\n") < 4:
            assert program.poll() is None
            time.sleep(0.05)
        os.killpg(program.pid, signal.SIGINT)
        out, err = program.communicate(timeout=60)
    assert (program.returncode, out) == (130, b"") and b"Traceback" not in err
    assert b"of 100,000 runs are kept in runs.jsonl, and the same command goes on" in err
    with pytest.raises(ProcessLookupError):
        os.killpg(program.pid, 0)
    before = kept.read_bytes()
    done(*asked, "--runs", "2", "--keep", "runs.jsonl")
    assert kept.read_bytes() == before, "these were run already"


def without(arguments, *names):
    """The arguments without some options and their values."""
    kept = zip(arguments[::2], arguments[1::2], strict=True)
    return [word for pair in kept if pair[0] not in names for word in pair]


CLASSIFY = [*DATA, *BUDGET, "--classify", "survived"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([*ASKED, "--method", "nonsense"], "--method: 'nonsense' is unknown"),
        ([*ASKED, "--runs", "0"], "runs: 0 is less than one"),
        ([*ASKED, "--seed", "-1"], "seed: -1 is negative"),
        ([*ASKED, "--strategy", "ireduct"], "--strategy: methods are compared by name"),
        ([*without(ASKED, "--epsilon"), "--rho", "1", "--delta", "1e-6"], "--rho: cannot be combined with epsilon"),
        ([*ASKED, "--delta", "2"], "--delta: must lie between 0 and 1"),
        ([*ASKED, "--method", "ireduct", "--delta", "1e-6"], "--method: ireduct, uniform, none, epsilon = 1"),
        ([*ASKED, "--workers", "0"], "--workers: 0 is less than one"),
        ([*ASKED, "--keep", "nowhere/runs.jsonl"], "--keep: cannot be made there"),
        ([*ASKED, "--keep", "people.csv"], "--keep: 'people.csv' is not a file of runs"),
        ([*ASKED, "--by", "year"], "--by: 'year' is unknown"),
        ([*CLASSIFY, "--by", "table"], "--by: classifiers are not compared by table"),
        ([*CLASSIFY, "--keep", "folds.jsonl"], "--seed: is not given"),
        ([*ASKED, "--csv", "people.csv"], "--csv: the file exists already"),
        ([*ASKED, "--chart", "errors.pdf"], "--chart: 'errors.pdf' ends neither"),
        ([*ASKED, "--csv", "same.svg", "--chart", "same.svg"], "--chart: two files have the same name"),
        ([*ASKED, "--face", "pretty"], "--face: 'pretty' is unknown"),
        ([*ASKED, "--method", "workload", "--face", "nonnegative:norm=l7"], "--face nonnegative:norm: 'l7' is unknown"),
        ([*ASKED, "--folds", "3"], "--folds: nothing is to be predicted"),
        ([*ASKED, "--classify", "survived"], "--workload: cannot be combined with --classify"),
        ([*CLASSIFY, "--queries", "q.csv"], "--queries: cannot be combined with --classify"),
        ([*CLASSIFY, "--runs", "3"], "--runs: cannot be combined with --classify"),
        ([*CLASSIFY, "--folds", "1"], "folds: 1 is less than two"),
        ([*CLASSIFY, "--folds", "9999"], "folds: there are more folds than rows"),
        ([*CLASSIFY[:-1], "nonsense"], "--classify: 'nonsense' is not in the schema"),
        (without(CLASSIFY, "--schema"), "--schema: is not given"),
        (without(ASKED, "--schema"), "--schema: is not given"),
        (without(ASKED, "--workload"), "--workload: is not given"),
        (without(ASKED, "--data"), "--data: is not given"),
        (without(ASKED, "--epsilon"), "epsilon"),
        (without(ASKED, "--neighbours"), "neighbours"),
        ([*without(ASKED, "--sanity-bound"), "--method", "ireduct"], "--sanity-bound: is not given"),
        ([*without(ASKED, "--sanity-bound"), "--sanity-bound", "1%"], "--sanity-bound: is a share of the people"),
        ([*without(ASKED, "--epsilon"), "--epsilon", "nonsense"], "epsilon"),
        ([*ASKED, "--method", "ireduct:lambda-max=1"], "--method ireduct:lambda-max: epsilon is too small to start"),
        ([*without(ASKED, "--data"), "--data", "nowhere.csv"], "data"),
        ([*without(ASKED, "--data"), "--data", "people.csv"], "the data has no column"),
        ([*without(CLASSIFY, "--data"), "--data", "people.csv"], "the data has no column"),
        ([*ASKED, "--budgets", "nonsense"], "budgets"),
    ],
)
def test_what_is_wrong_is_refused(refused, arguments, told):
    refused(arguments, told)
