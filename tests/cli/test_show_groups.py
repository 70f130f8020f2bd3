"""`hushcube show`: cross-tables, shares, two groups compared, CSV and flags; what cannot be combined is refused."""

import csv
import io

import pytest

import hushcube as hc
from hushcube.cli import run


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_cross_table_has_margins_and_totals(done, document):
    out, _ = done("show", "published", "sex*region", "--cross")
    assert "sex*region, count" in out and "region 0" in out and out.count("total") == 2 and "±" in out
    told = document("show", "published", "sex*region", "--cross", "--where", "region=1", "--where", "region=2")["count"]
    assert told["rows"] == ["sex"] and told["columns"] == ["region"] and len(told["cells"]) == 4
    women = [cell["value"] for cell in told["cells"] if cell["sex"] == "Female"]
    total = next(cell for cell in told["row_totals"] if cell["sex"] == "Female")
    assert total["value"] == pytest.approx(sum(women)) and total["low_95"] < total["value"] < total["high_95"]
    assert told["total"]["value"] == pytest.approx(sum(cell["value"] for cell in told["cells"]))
    out, _ = done("show", "published", "sex*region", "--cross", "--columns", "sex")
    assert "region*sex, count" in out and "sex Female" in out


def test_shares_are_percentages_with_intervals(done, document):
    told = document("show", "published", "sex*region", "--share", "row")
    cells = told["shares"]["% of row"]
    assert cells[0].keys() == {"sex", "region", "value", "low_95", "high_95", "quality"}
    out, _ = done("show", "published", "sex*region", "--share", "row", "--csv")
    assert out.splitlines()[0] == "sex,region,value,low,high,quality"
    assert [float(r["value"] or "nan") for r in rows(out)] == pytest.approx(
        [float("nan") if c["value"] is None else c["value"] for c in cells], nan_ok=True
    )
    out, _ = done("show", "published", "sex*region", "--cross", "--share", "column")
    assert "% of column" in out and "total" in out


def test_two_groups_are_compared(done, document):
    asked = ("show", "published", "sex*region", "--where", "sex=Female", "--versus", "sex=Male")
    told = document(*asked)["count"]
    assert told["groups"] == ["sex = Female", "sex = Male"]
    difference = told["first"]["value"] - told["second"]["value"]
    assert told["difference"]["value"] == pytest.approx(difference)
    assert told.keys() == {"groups", "first", "second", "difference", "ratio", "share"}
    out, _ = done(*asked)
    assert "sex = Female" in out and "ratio" in out
    out, _ = done(*asked, "--csv")
    assert [row["estimate"] for row in rows(out)] == ["first", "second", "difference", "ratio", "share"]
    assert float(rows(out)[2]["value"]) == pytest.approx(difference)


def test_csv_has_stable_columns_and_says_what_is_not_private(done, document):
    out, err = done("show", "published", "sex*region", "--csv")
    assert out.splitlines()[0] == "sex,region,value,std_error,low,high,quality" and not err
    cells = document("show", "published", "sex*region")["cells"]
    assert [(float(r["value"]), r["quality"]) for r in rows(out)] == [(c["value"], c["quality"]) for c in cells]
    out, _ = done("show", "published", "sex*region", "--sum", "--csv")
    assert rows(out)[0]["estimate"] == "sum"
    done("release", "plan.json", "--data", "people.csv", "--out", "seeded", "--seed", "7")
    for more in ((), ("--sum",), ("--share", "all")):
        out, err = done("show", "seeded", "sex*region", "--csv", *more)
        assert all(row["warning"] == "NOT PRIVATE" for row in rows(out)) and "NOT PRIVATE" in err


def test_numbers_that_are_noise_are_flagged_with_a_legend(done):
    out, _ = done("show", "published", "sex*age")
    assert " F " in out and "F: do not use" in out


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--cross", "--csv"), "--csv: has one row for every cell"),
        (("--csv", "--json"), "cannot be combined with"),
        (("--sum", "--cross"), "cannot be combined with"),
        (("--versus", "sex=Male", "--cross"), "cannot be combined with"),
        (("--columns", "sex"), "--columns: is for cross-tables and shares"),
        (("--cross", "--columns", "height"), "'height' is not an attribute of this table"),
        (("--versus", "sex"), "--versus: 'sex' has no ="),
        (("--versus", "sex=Other"), "'Other' is not one of its labels"),
        (("--share", "diagonal"), "diagonal"),
        (("--share", "row", "--face", "nonnegative"), "intervals on the unbiased face only"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_combined_is_refused(desk, capsys, options, told):
    assert run(["show", "published", "sex*region", *options]) == 2
    captured = capsys.readouterr()
    assert told in captured.err and not captured.out


def test_a_table_must_be_named(desk, capsys):
    assert run(["show", "published", "--csv"]) == 2
    assert "marginal: is not given" in capsys.readouterr().err


def test_csv_steers_no_terminal(done, desk):
    (desk / "odd.yaml").write_text('attributes: [{name: a, values: ["x\\e[2J", "y, \\"z\\""]}]')
    (desk / "odd.csv").write_text("a\ny\n")
    asked = ["--schema", "odd.yaml", "--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove"]
    done("plan", *asked, "--out", "odd.json")
    done("release", "odd.json", "--data", "odd.csv", "--out", "odd", code=2)
    (desk / "odd.csv").write_text('a\n"y, ""z"""\n')
    done("release", "odd.json", "--data", "odd.csv", "--out", "odd")
    out, _ = done("show", "odd", "a", "--csv")
    assert "\x1b" not in out and rows(out)[1]["a"] == 'y, "z"'


def test_csv_has_no_formulas_and_labels_can_be_had_again(desk, done):
    labels = ["=1+1", "@x", "'tis", "-5", "plain", "-a", " =2"]
    listed = ", ".join(f'"{label}"' for label in labels)
    (desk / "sums.yaml").write_text(f"attributes: [{{name: a, values: [{listed}]}}]")
    (desk / "sums.csv").write_text("a\nplain\n")
    asked = ["--schema", "sums.yaml", "--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove"]
    done("release", *asked, "--data", "sums.csv", "--out", "sums")
    out, _ = done("show", "sums", "a", "--csv")
    assert [row["a"] for row in rows(out)] == ["'=1+1", "'@x", "''tis", "-5", "plain", "'-a", "' =2"]
    text = hc.open("sums").table("a").to_csv()
    assert text == out
    (desk / "table.csv").write_text(text, encoding="utf-8")
    assert [row["a"] for row in hc.read_csv(desk / "table.csv")] == labels
