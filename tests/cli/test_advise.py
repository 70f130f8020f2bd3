"""Advice before spending: what budgets would bring, on the command line and in Python; no data is read."""

import numpy as np
import pytest

import hushcube as hc
from cli.desk import listing
from hushcube.cli import run
from hushcube.errors import BadInput

WORDS = ["people.yaml", "--workload", "<=2-way", "--neighbours", "add-remove", "--effort", "low"]
SCHEMA = hc.Schema((hc.Attribute(name="sex", values=("F", "M")), hc.Attribute(name="age", range=(0, 4))))
ASKED = {"neighbours": "add-remove", "effort": "low"}


def test_a_line_for_each_budget_and_way(document):
    found = document("advise", *WORDS, "--epsilon", "0.5,2", "--people", "20000")
    assert [line["way"] for line in found["advice"]] == ["as it is", "balance", "max", "delta 1e-9"] * 2
    assert {line["epsilon"] for line in found["advice"]} == {"0.5", "2"} and found["people"] == 20_000
    for before, after in zip(found["advice"][:4], found["advice"][4:], strict=True):
        assert after["rmse"] < before["rmse"] and after["total_std_error"] < before["total_std_error"]
        shares = list(before["cells_within"].values())
        assert shares == sorted(shares) and shares <= list(after["cells_within"].values())


def test_the_page_and_the_picture(done, desk):
    out, _ = done("advise", *WORDS, "--rho", "0.1", "--people", "20000", "--chart", "advice.svg")
    assert "within 10%" in out and "20,000 people, spread evenly" in out
    assert (desk / "advice.svg").read_text(encoding="utf-8").startswith("<svg")
    out, err = done("advise", *WORDS, "--rho", "0.1")
    assert "within" not in out and "give the number of people" in err


def test_the_lines_are_those_of_the_plans(tmp_path):
    found = hc.advise(SCHEMA, "<=2-way", rho=["1/10"], people=1000, **ASKED)
    for line, how in zip(found.lines, ({}, {"balance": True}, {"objective": "max"}), strict=True):
        plan = hc.plan(SCHEMA, "<=2-way", rho="0.1", **how, **ASKED)
        assert line.plan.digest == plan.digest
        margins = plan.count.errors.margins
        cells = plan.count.request.marginals.cells
        near = [cells[margins <= share * 1000 / cells].sum() / cells.sum() for share in (0.05, 0.1, 0.2)]
        assert line.within == pytest.approx(near)
    assert hc.chart(found, tmp_path / "advice.png").read_bytes()[1:4] == b"PNG"
    assert repr(found) == "Advice(3 lines, 1,000 people, spread evenly over the cells of each table)"


def test_people_are_spread_as_in_an_earlier_release():
    import pandas as pd

    rows = pd.DataFrame({"sex": ["F"] * 900 + ["M"] * 100, "age": [0, 1, 2, 3, 4] * 200})
    early = hc.release(hc.plan(SCHEMA, "<=2-way", rho=5, **ASKED), rows, seed=1)
    found = hc.advise(SCHEMA, "sex", rho=["0.01"], like=early, **ASKED)
    assert abs(found.people - 1000) < 10 and "as published before" in found.spread
    margin = float(found.lines[0].plan.count.errors.margins[0])
    counts = np.maximum(early.table("sex").values, 0)
    assert found.lines[0].within == pytest.approx([(margin <= share * counts).mean() for share in (0.05, 0.1, 0.2)])
    many = hc.advise(SCHEMA, "sex", rho=["0.01"], like=early, people=10**7, **ASKED)
    assert many.people == 10**7 and many.lines[0].within == (1.0, 1.0, 1.0)
    other = hc.Schema((hc.Attribute(name="sex", values=("F", "X")),))
    with pytest.raises(BadInput, match=r"^like: has no attribute 'sex' with the same values\. Fix: leave it out"):
        hc.advise(other, "sex", rho=["0.01"], like=early, **ASKED)
    narrow = hc.release(hc.plan(SCHEMA, "1-way", rho=5, **ASKED), rows, seed=1)
    with pytest.raises(BadInput, match=r"^like: does not hold sex\*age: .* Fix: ask for fewer tables"):
        hc.advise(SCHEMA, "2-way", rho=["0.01"], like=narrow, **ASKED)
    plan = hc.plan(SCHEMA, "<=2-way", rho=5, **ASKED)
    empty = (hc.release(plan, rows[:0], seed=seed) for seed in range(50))
    nobody = next(release for release in empty if float(release.table("total").values) <= 0)
    with pytest.raises(BadInput, match=r"^like: its published total is not above 0"):
        hc.advise(SCHEMA, "sex", rho=["0.01"], like=nobody, **ASKED)


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"epsilon": [1], "rho": [1]}, "rho: cannot be combined with epsilon"),
        ({"rho": [1], "delta": "1e-6"}, "delta: cannot be combined with rho"),
        ({"people": 0}, "people: 0 is not a number of people"),
        ({"people": True}, "people: True is not a number of people"),
        ({"epsilon": ["x"]}, "what_if: 'x'"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(told, problem):
    with pytest.raises(BadInput, match=problem):
        hc.advise(SCHEMA, "<=2-way", **told, **ASKED)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["people.yaml"], "--workload: is not given"),
        ([*WORDS, "--chart", "advice.pdf"], "ends neither in .png nor in .svg"),
        ([*WORDS, "--epsilon", "0.1,,1"], "Fix:"),
        ([*WORDS, "--like", "nowhere"], "nowhere"),
    ],
    ids=["workload", "chart", "epsilon", "like"],
)
def test_bad_input_on_the_command_line(desk, capsys, arguments, problem):
    before = listing(desk)
    assert run(["advise", *arguments]) == 2
    assert problem in capsys.readouterr().err and listing(desk) == before
