"""What the command line says: names of files cannot steer it, and what a plan file tells is not repeated."""

import json

import pyarrow.parquet as pq
import pytest

from cli.desk import BUDGET
from hushcube.designs.design import digest_of
from hushcube.planning.plan import Plan

ADAPTIVE = ["--schema", "people.yaml", "--workload", "1-way", "--relative-error", "0.5", "--above", "5", *BUDGET]


def test_a_run_that_was_just_made_says_what_it_reached(done, desk):
    out, _ = done("release", *ADAPTIVE, "--data", "people.csv", "--out", "new")
    plan = Plan.from_json((desk / "new" / "plan.json").read_text()).count
    assert plan.details["adaptive"]["target_met"] == ("the target is met" in out)
    assert "the answers cost" in out


def test_the_plan_of_a_release_that_adapted_is_not_released_again(done, desk, drawn):
    done("release", *ADAPTIVE, "--data", "people.csv", "--out", "new")
    drawn.clear()
    (desk / "other.csv").write_text("sex,age,income,region\nMale,1,2,0\n")
    out, err = done("release", "new/plan.json", "--data", "other.csv", "--out", "again", code=2)
    assert "records what a run ended with" in err and "target" not in out + err
    assert not (desk / "again").exists() and not drawn


def test_the_plan_of_another_release_can_be_released_again(done):
    done("release", "published/plan.json", "--data", "people.csv", "--out", "again")


@pytest.mark.parametrize("changes", [{"strategy": "x\n\x1b[2J\u202e"}, {"details": {"adaptive": {"target_met": True}}}])
def test_a_doctored_plan_is_refused_in_one_plain_line(done, desk, drawn, changes):
    raw = Plan.from_json((desk / "published" / "plan.json").read_text()).count.to_dict() | changes
    (desk / "plan.json").write_text(json.dumps({**raw, "digest": digest_of(raw)}))
    out, err = done("release", "plan.json", "--data", "people.csv", "--out", "again", code=2)
    assert not out and err.count("\n") == 1 and err[:-1].isprintable()
    assert not (desk / "again").exists() and not drawn


@pytest.mark.parametrize(
    "arguments",
    [
        ["show", "no\x1b[2J\u202e\nsuch"],
        ["show", "published", "se\x1bx"],
        ["sh\x1bow"],
        ["show", "published", "--ro\u202ews"],
    ],
)
def test_messages_hold_nothing_that_steers_a_terminal(done, arguments):
    out, err = done(*arguments, code=2)
    assert all(line.isprintable() for line in (out + err).split("\n"))


def test_json_holds_no_invisible_characters_and_reads_back(done, desk):
    label = "a\x9b2J\u202eb"
    schema = {"name": label, "attributes": [{"name": "x", "values": [label, "c"]}]}
    (desk / "odd.yaml").write_text(json.dumps(schema))
    (desk / "odd.csv").write_text(f"x\n{label}\n", encoding="utf-8")
    asked = ["--schema", "odd.yaml", "--workload", "x", *BUDGET]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    for command in (["show", "new"], ["show", "new", "x"], ["schema", "check", "odd.yaml"], ["plan", *asked]):
        out, _ = done(*command, "--json")
        assert out[:-1].isprintable()
        assert command[0] == "plan" or label in json.dumps(json.loads(out), ensure_ascii=False)
    assert all(line.isprintable() for line in (desk / "new" / "schema.yaml").read_text().split("\n"))
    done("verify", "new")


# -------------------------------------------------------------------------------------------------------------- names


def test_a_name_that_looks_like_the_stamp_is_only_a_name(done, desk):
    (desk / "pilot.yaml").write_text("name: NOT PRIVATE pilot\nattributes: [{name: sex, values: [Female, Male]}]\n")
    done("release", "--schema", "pilot.yaml", "--workload", "sex", *BUDGET, "--data", "people.csv", "--out", "new")
    out, err = done("show", "new", "sex")
    assert "NOT PRIVATE: " not in out + err
    done("verify", "new")


def refused(done, desk, drawn, schema, *words):
    (desk / "odd.yaml").write_text(schema)
    asked = ["--schema", "odd.yaml", *words, *BUDGET, "--data", "odd.csv", "--out", "new"]
    _, err = done("release", *asked, code=2)
    assert not (desk / "new").exists() and not drawn
    return err


def test_a_measure_is_not_called_count(done, desk, drawn):
    schema = "attributes: [{name: x, values: [a, b]}]\nmeasures: [{name: count, bounds: [0, 9]}]\n"
    err = refused(done, desk, drawn, schema, "--workload", "x", "--measure", "sum(count)")
    assert "measure 'count': this name is reserved for the number of people" in err and "column:" in err


@pytest.mark.parametrize("name", ["count", "Count", "value", "sum(w)", "SUM_W", "avg_w_low"])
def test_an_attribute_of_a_cube_may_be_called_like_its_numbers(document, done, desk, name):
    """The numbers step aside: an underscore is added to their names."""
    schema = f"attributes: [{{name: {name!r}, values: [a, b]}}]\nmeasures: [{{name: w, bounds: [0, 9]}}]\n"
    (desk / "odd.yaml").write_text(schema)
    (desk / "odd.csv").write_text(f"{name},w\na,1\nb,2\n")
    asked = ["--schema", "odd.yaml", "--workload", "1-way", "--measure", "sum(w),avg(w)", *BUDGET]
    done("release", *asked, "--data", "odd.csv", "--out", "new")
    done("verify", "new")
    [file] = (desk / "new" / "tables").iterdir()
    columns = pq.read_schema(file).names
    assert columns[0] == name and len({column.casefold() for column in columns}) == len(columns) == 11
    told = document("show", "new", name)
    own = {word + "_" * (word == name.casefold()) for word in ("count", "sum(w)", "avg(w)")}
    assert [cell[name] for cell in told["cells"]] == ["a", "b"] and told["cells"][0].keys() == {name, *own}


def test_an_attribute_may_be_called_like_a_number_of_a_release(document, done, desk):
    columns = ["value", "STD_ERROR", "low_95", "count"]
    listed = ", ".join(f"{{name: {name}, values: [a, b]}}" for name in columns)
    (desk / "odd.yaml").write_text(f"attributes: [{listed}]")
    (desk / "odd.csv").write_text(",".join(columns) + "\n" + "a,b,a,b\n" * 20)
    done("release", "--schema", "odd.yaml", "--workload", "4-way", *BUDGET, "--data", "odd.csv", "--out", "new")
    cells = document("show", "new", "*".join(columns))["cells"]
    assert [[cell[name] for name in columns] for cell in cells][:2] == [["a", "a", "a", "a"], ["a", "a", "a", "b"]]
    assert cells[0].keys() == {*columns, "value_", "std_error_", "low_95_", "high_95", "quality"}
    done("verify", "new")


@pytest.mark.parametrize("place", ["name", "unit", "column", "label", "level"])
def test_half_characters_are_refused_before_anything_is_measured(done, desk, drawn, place):
    half = {key: r'"\ud800"' if key == place else '"x"' for key in ("name", "unit", "column", "label", "level")}
    (desk / "odd.csv").write_text("x\nx\n")
    schema = f"""
name: {half["name"]}
unit: {half["unit"]}
max_rows: 1
attributes:
  - name: x
    column: {half["column"]}
    values: [{half["label"]}]
    levels: [{{name: l, groups: {{{half["level"]}: ["x"]}}}}]
"""
    refused(done, desk, drawn, schema, "--workload", "x")


# --------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize("place", ['"private": true', '"name": "people"', '"face": "unbiased"'])
def test_a_manifest_with_a_key_twice_is_refused(done, desk, place):
    path = desk / "published" / "manifest.json"
    text = path.read_text()
    assert place in text
    path.write_text(text.replace(place, f"{place}, {place}", 1))
    _, err = done("show", "published", code=2)
    assert "manifest.json: the key" in err
    out, _ = done("verify", "published", code=1)
    assert "occurs twice" in out


@pytest.mark.parametrize(
    "text",
    [
        '{"rows": [[1, 1]], "rows": [[1, 0]]}',
        '{"rows": [[NaN, 1]]}',
        '{"rows": [["1", "0"]]}',
        '{"rows": [[1, 1e999]]}',
        '{"width": 2, "starts": [0, 1], "columns": ["0"], "values": [1]}',
        '{"width": 2, "starts": [0, 1], "columns": [true], "values": [1]}',
        '{"width": "2", "starts": [0, 1], "columns": [0], "values": [1]}',
        '{"width": 2, "starts": [0, 1], "columns": [0], "values": [true]}',
        r'{"rows": [[1, 1]], "names": ["\ud800"]}',
    ],
)
def test_a_matrix_is_made_of_numbers(done, desk, text):
    (desk / "q.json").write_text(text)
    _, err = done("plan", "--schema", "people.yaml", "--queries", "sex:q.json", *BUDGET, code=2)
    assert err.startswith("hushcube: --queries: ")


# ------------------------------------------------------------------------------------------ what errors do not cover


BOUNDED = "standard errors and margins do not cover the rows that were left out"


@pytest.mark.parametrize("measure", [[], ["--measure", "avg(age)"]])
def test_bounded_contributions_are_named_wherever_errors_are_shown(done, document, desk, measure):
    (desk / "unit.yaml").write_text(
        "unit: region\nmax_rows: 2\nattributes: [{name: sex, values: [Female, Male]}]\n"
        "measures: [{name: age, bounds: [0, 9]}]\n"
    )
    asked = ["--schema", "unit.yaml", "--workload", "sex", *BUDGET, *measure]
    out, _ = done("plan", *asked)
    assert out.count(BOUNDED) == 1 and "at most 2 rows of each 'region'" in out
    assert BOUNDED in document("plan", *asked)["caveat"]
    done("release", *asked, "--data", "people.csv", "--out", "new")
    for what in (["new"], ["new", "sex"], *([] if measure else [["new", "sex", "--sum"]])):
        out, _ = done("show", *what)
        assert out.count(BOUNDED) == 1
        assert BOUNDED in document("show", *what)["caveat"]
    assert BOUNDED in (desk / "new" / "PRIVACY.md").read_text()


def test_nothing_is_said_of_bounds_where_there_are_none(done, document, desk):
    for command in (["show", "published"], ["show", "published", "sex"]):
        assert "bounded" not in done(*command)[0] and "caveat" not in document(*command)
    assert "bounded" not in (desk / "published" / "PRIVACY.md").read_text()


def test_what_was_searched_for_the_smallest_budget_is_said(done, document):
    asked = ["plan", "--schema", "people.yaml", "--workload", "sex,age", "--target", "sex: stderr<=5"]
    asked += ["--epsilon", "find", "--neighbours", "add-remove"]
    out, err = done(*asked)
    assert "the smallest epsilon found that meets the targets is" in out
    assert "searched: budgets of four digits" in err and "identity" in err and "might need less" in err
    assert document(*asked)["searched"] in err
    named = document(*asked, "--strategy", "workload", "--objective", "max")["searched"]
    assert "the plans that workload would make" in named and "might need less" in named
