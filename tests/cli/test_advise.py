"""Advice before spending: what budgets would bring, by command and in Python; data is read for bounds alone."""

import numpy as np
import pytest

import hushcube as hc
from cli.desk import listing
from hushcube.cli import run
from hushcube.errors import BadInput
from hushcube.planning.summary import typical_error

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
        ({"epsilon": ["x"]}, "^epsilon: 'x'"),
        ({"max_rows": [1]}, "max_rows: what bounds leave out is read from data"),
        ({"data": "nowhere.csv"}, r"^data: the schema declares no unit.* Fix: declare its `unit:`"),
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
        ([*WORDS, "--max-rows", "1,2"], "--max-rows: what bounds leave out is read from data"),
        ([*WORDS, "--data", "people.csv"], "--data: the schema declares no unit"),
    ],
    ids=["workload", "chart", "epsilon", "like", "bounds without data", "no unit"],
)
def test_bad_input_on_the_command_line(desk, capsys, arguments, problem):
    before = listing(desk)
    assert run(["advise", *arguments]) == 2
    assert problem in capsys.readouterr().err and listing(desk) == before


STAYS = {"anna": 1, "bela": 2, "cleo": 4, "dora": 12}
"""So many rows has each person."""


@pytest.fixture
def stays(desk):
    """A schema with a unit, and its data."""
    attributes = "[{name: sex, values: [F, M]}, {name: age, size: 5}]"
    (desk / "stays.yaml").write_text(f"{{name: stays, unit: who, max_rows: 3, attributes: {attributes}}}")
    lines = [f"F,{i % 5},{name}" for name, many in STAYS.items() for i in range(many)]
    (desk / "stays.csv").write_text("\n".join(["sex,age,who", *lines]))
    return ["stays.yaml", "--workload", "1-way", "--neighbours", "add-remove", "--effort", "low", "--rho", "0.1,1"]


def test_bounds_show_what_they_leave_out_beside_the_noise(stays, desk, document):
    before = listing(desk)
    found = document("advise", *stays, "--data", "stays.csv", "--max-rows", "1,5")
    assert found["private"] is False and "NOT PRIVATE" in found["warning"] and "NOT PRIVATE" in document.err
    assert [line["max_rows"] for line in found["bounds"]] == [1, 3, 5]  # the declared one among them
    for line in found["bounds"]:
        most = line["max_rows"]
        counted = sum(min(many, most) for many in STAYS.values())
        assert (line["counted"], line["left_out"]) == (counted, sum(STAYS.values()) - counted)
        assert line["people"] == sum(many > most for many in STAYS.values())
        for budget, error in line["rmse"].items():
            attributes = (hc.Attribute("sex", values=("F", "M")), hc.Attribute("age", codes=5))
            plan = hc.plan(hc.Schema(attributes), "1-way", rho=budget, rows_per_person=most, **ASKED)
            assert error == pytest.approx(typical_error(plan, "count"))
    plain = [line["rmse"] for line in found["advice"] if line["way"] == "as it is"]
    assert plain == list(found["bounds"][1]["rmse"].values())
    assert listing(desk) == before
    without = document("advise", *stays)
    assert not {"private", "warning", "bounds"} & without.keys() and without["advice"] == found["advice"]


def test_bounds_on_the_page_and_in_the_picture_are_not_private(stays, desk, done):
    query = ["--query", "SELECT * FROM 'stays.csv'"]
    out, err = done("advise", *stays[:-1], "0.1", *query, "--chart", "advice.svg")
    assert out.count("NOT PRIVATE") == 2 and "people who lose rows" in out and "78.9%" in out
    assert "NOT PRIVATE: what bounds leave out" in err and "which is NOT PRIVATE either" in err
    drawn = (desk / "advice.svg").read_text(encoding="utf-8")
    assert "NOT PRIVATE: do not publish" in drawn and "rows left out" in drawn
    found = hc.advise("stays.yaml", "sex", rho=[1], data="stays.csv", max_rows=[2], **ASKED)
    assert repr(found).endswith("; NOT PRIVATE)") and [line.bound.people for line in found.bounds] == [2, 2]


@pytest.mark.parametrize(
    ("more", "problem"),
    [
        (["--data", "stays.csv", "--max-rows", "0"], "--max-rows: 0 is not a number of rows"),
        (["--data", "stays.csv", "--max-rows", "1,,2"], "--max-rows: '' is not a number of rows"),
        (["--data", "stays.csv", "--max-rows", "1000000"], "from 1 to 999,999"),
        (["--data", "stays.csv", "--rows-per-person", "3"], "--rows-per-person: cannot be combined with"),
        (["--data", "stays.csv", "--workload", "sax"], "sax"),
        (["--data", "stays.csv", "--people", "0"], "--people: 0 is not a number"),
        (["--data", "nowhere.csv"], "--data: there is no file"),
    ],
    ids=["zero", "empty", "large", "rows per person", "workload", "people", "nowhere"],
)
def test_nothing_is_read_before_all_input_is_checked(stays, desk, capsys, monkeypatch, more, problem):
    from hushcube.private.engines.duckdb import DuckDBEngine

    monkeypatch.setattr(DuckDBEngine, "count", lambda *_args, **_kw: pytest.fail("rows were read"))
    before = listing(desk)
    assert run(["advise", *stays, *more]) == 2
    assert problem in capsys.readouterr().err and listing(desk) == before
