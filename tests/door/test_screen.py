"""The whole Python interface on one screen, on counts and on a cube; and what objects say of themselves."""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hushcube as hc
from hushcube.cli import run

ROOT = Path(__file__).resolve().parents[2]
SCREEN = """
schema = hc.Schema.read("encounters.yaml")
plan = hc.plan(schema, "<=2-way", measures=["avg(days)"], epsilon=1, neighbours="add-remove")
print(plan)
release = hc.release(plan, df, out="published")
table = release["age*sex"]
average = release.table("age*sex", "avg(days)", where={"sex": "F"})
frames = table.to_pandas(), table.to_polars(), table.to_arrow()
estimate = release.estimate("age*sex", where={"sex": "F", "age": [65, 66]})
opened = hc.open("published")
"""
MEASURES = ', measures=["avg(days)"]'


def people(rows=2_000):
    chance = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "sex": chance.choice(["F", "M"], rows),
            "age": chance.integers(60, 70, rows),
            "outcome": chance.choice(["home", "care home", "transferred"], rows),
            "days": chance.integers(1, 15, rows),
        }
    )


@pytest.fixture(scope="module", params=["cube", "counts"])
def screen(request, tmp_path_factory):
    """What the screen leaves behind, and what it printed."""
    place = tmp_path_factory.mktemp("screen")
    (place / "encounters.yaml").write_text((ROOT / "examples" / "encounters.yaml").read_text())
    code = SCREEN
    if request.param == "counts":
        code = "\n".join(line for line in SCREEN.replace(MEASURES, "").splitlines() if "avg(days)" not in line)
    names = {"hc": hc, "df": people(), "kind": request.param, "place": place}
    printed = io.StringIO()
    with contextlib.chdir(place), contextlib.redirect_stdout(printed):
        exec(code, names)
    return {**names, "printed": printed.getvalue()}


def shown(place, *arguments):
    """What the command line prints."""
    printed = io.StringIO()
    with contextlib.chdir(place), contextlib.redirect_stdout(printed):
        assert run(list(arguments)) == 0
    return [line.rstrip() for line in printed.getvalue().splitlines()]


def test_the_screen_runs_as_written(screen):
    assert "expected error of a cell" in screen["printed"] and "sex*age" in screen["printed"]
    table, estimate = screen["table"], screen["estimate"]
    assert table.attributes == ("age", "sex") and table.values.shape == (10, 2)
    pandas, polars, arrow = screen["frames"]
    assert len(pandas) == polars.height == arrow.num_rows == 20
    assert estimate.low < estimate.value < estimate.high and estimate.std_error > 0
    assert estimate.value == pytest.approx(table.slice({"sex": "F", "age": [65, 66]}).values.sum())
    assert list(screen["opened"]) == list(screen["release"])
    assert np.array_equal(screen["opened"]["age*sex"].values, table.values)
    if screen["kind"] == "cube":
        assert screen["average"].attributes == ("age", "sex") and screen["average"].values.shape == (10, 1)
        assert ((screen["average"].low >= 1) & (screen["average"].high <= 14)).all()
        assert {"avg_days", "avg_days_low", "avg_days_high"} < set(pandas.columns)
        assert np.array_equal(screen["opened"].table("age*sex", "avg(days)").values, table.others[0].values)


def test_printed_objects_show_what_the_command_line_shows(screen):
    place, release = screen["place"], screen["release"]
    assert str(release["age*sex"]).splitlines() == shown(place, "show", "published", "age*sex")
    assert str(release).splitlines() == shown(place, "show", "published")
    where = ["--where", "sex=F", "--where", "age=65", "--where", "age=66"]
    summed = shown(place, "show", "published", "age*sex", *where, "--sum")
    assert summed[0].removeprefix("count: ") == str(screen["estimate"])
    verdict = hc.verify(place / "published")
    assert str(verdict).splitlines() == shown(place, "verify", "published")
    check = hc.check_schema(place / "encounters.yaml")
    assert str(check).splitlines() == shown(place, "schema", "check", "encounters.yaml")


def test_a_comparison_prints_what_the_plan_verb_prints(screen):
    place = screen["place"]
    asked = ["--schema", "encounters.yaml", "--workload", "<=2-way", "--rho", "1", "--neighbours", "add-remove"]
    asked += ["--strategy", "residual"]
    given = {"rho": 1, "neighbours": "add-remove", "strategy": "residual"}
    if screen["kind"] == "cube":
        asked += ["--measure", "avg(days)"]
        given["measures"] = "avg(days)"
    comparison = hc.compare(place / "encounters.yaml", "<=2-way", **given)
    printed = shown(place, "plan", *asked)
    assert printed[-1].startswith("a release publishes")
    remarks = {str(part) for part in comparison.page().parts if type(part) is not str}
    assert [line for line in str(comparison).splitlines() if line not in remarks] == printed[:-1]


def test_plans_and_data_may_be_files(screen, tmp_path):
    screen["plan"].save(tmp_path / "plan.json")
    people().to_csv(tmp_path / "people.csv", index=False)
    made = hc.release(tmp_path / "plan.json", tmp_path / "people.csv", out=tmp_path / "published")
    assert made.plan.digest == screen["plan"].digest
    kept = hc.release(str(tmp_path / "plan.json"), str(tmp_path / "people.csv"))
    kept.save(tmp_path / "saved")
    assert np.array_equal(hc.open(tmp_path / "saved")["sex"].values, kept["sex"].values)
    assert hc.verify(str(tmp_path / "saved")).holds
    with pytest.raises(hc.PlanError, match="cannot be read"):
        hc.release("nowhere.json", people())
    with pytest.raises(hc.SchemaError, match="cannot be read"):
        hc.plan("nowhere.yaml", "1-way", epsilon=1, neighbours="add-remove")


def test_every_noun_introduces_itself_within_a_screen(screen):
    release, schema = screen["release"], screen["schema"]
    labels = [f"{'v' * 200}{j}" for j in range(400)]
    big = hc.Schema([hc.Attribute(f"a{i}", values=labels) for i in range(300)], "x" * 200)
    request = release.plan.count.request
    many = hc.plan(hc.Schema([hc.Attribute(f"a{i}", codes=3) for i in range(40)]), "<=2-way", rho=1,
                   neighbours="add-remove", strategy="residual")  # fmt: skip
    found = [
        schema, big, *schema.attributes, *big.attributes[:1], *schema.measures, hc.Unit("p" * 9_000, 3), request,
        request.workload, many.workload, release.plan, many, release.plan.count, many.count, request.privacy, release,
        release["age*sex"], release["total"], screen["estimate"], hc.FaceValue(),
        hc.Facts.of(schema, zeros=[{"sex": "F", "age": str(age)} for age in range(60, 70)]),
        hc.Attribute("age", range=[0, 99], levels=[{"name": "band", "starts": list(range(100))}]).grouped[0],
        hc.compare(schema, "1-way", rho=1, neighbours="add-remove", strategy="residual"),
        hc.find_budget(schema, "1-way", targets=["sex: stderr<=9"], neighbours="add-remove", strategy="workload"),
        hc.what_if(schema, "1-way", epsilon=[1, 2], neighbours="add-remove", strategy="workload"),
        hc.check_schema(schema, people()), hc.draft_schema(people()), hc.verify(screen["place"] / "published"),
    ]  # fmt: skip
    for noun in found:
        assert len(repr(noun)) <= 1_500 and repr(noun).count("\n") <= 20, type(noun)
        assert "object at 0x" not in repr(noun), type(noun)
        assert len(str(noun).splitlines()) <= 80, type(noun)


def test_notebooks_show_tables_with_error_bars_and_labels_as_text(screen):
    hostile = "<script>alert(1)</script>\u202e&"
    schema = hc.Schema([hc.Attribute("sex", values=["F", hostile])], "<b>name</b>")
    plan = hc.plan(schema, "1-way", rho=1, neighbours="add-remove")
    release = hc.release(plan, pd.DataFrame({"sex": ["F", hostile] * 50}), seed=1)
    pages = [noun._repr_html_() for noun in (plan, release, release["sex"], hc.check_schema(schema))]
    assert "NOT PRIVATE" in pages[1] and "NOT PRIVATE" in pages[2]
    pages += [screen[name]._repr_html_() for name in ("plan", "release", "table", "opened")]
    for page in pages:
        assert "<script" not in page and "<b>" not in page and "\u202e" not in page
        assert set(re.findall(r"</?(\w+)", page)) <= {
            *("div", "table", "caption", "thead", "tbody", "tr", "th", "td", "p", "br", "svg", "rect", "path")
        }
    assert "&lt;script&gt;" in pages[2] and pages[2].count("<svg") == 2
    assert screen["table"]._repr_html_().count("<svg") == 20 * (1 + len(screen["table"].others))
