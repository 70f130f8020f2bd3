import json

import pyarrow.parquet as pq
import pytest

from hushcube.cli import run

SCHEMA = """
name: stays
unit: patient
max_rows: 2
attributes:
  - {name: ward, values: [surgery, medicine]}
  - {name: sex, values: [F, M]}
measures:
  - {name: days, bounds: [1, 14], center: middle, resolution: 0.5}
  - {name: cost, bounds: [0, 2000], resolution: 10}
"""
ASKED = ["--workload", "<=2-way", "--epsilon", "4", "--neighbours", "add-remove", "--measure", "avg(days),sum(cost)"]


class Result:
    """What a command printed, and its exit code."""

    def __init__(self, code, captured):
        self.code, self.out, self.err = code, captured.out, captured.err


@pytest.fixture
def stays(tmp_path, monkeypatch, capsys):
    """A folder with the data, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    wards = ("medicine", "surgery", "surgery", "surgery", "surgery")
    rows = [f"{i // 3},{wards[i % 5]},{'FM'[i % 2]},{1 + i % 9},{10 * (i % 90)}" for i in range(900)]
    (tmp_path / "stays.csv").write_text("patient,ward,sex,days,cost\n" + "\n".join(rows) + "\n")
    (tmp_path / "stays.yaml").write_text(SCHEMA)

    def command(*arguments):
        capsys.readouterr()
        return Result(run(list(arguments)), capsys.readouterr())

    command.folder = tmp_path
    return command


def test_a_cube_is_planned_released_shown_and_verified(stays):
    planned = stays("plan", "--schema", "stays.yaml", *ASKED, "--out", "cube.json")
    assert planned.code == 0 and "days" in planned.out and "cost" in planned.out
    released = stays("release", "cube.json", "--data", "stays.csv", "--out", "cube")
    assert released.code == 0 and "avg(days)" in released.out
    assert "300 rows were left out: more than 2 of one 'patient'" in released.err
    assert stays("verify", "cube").code == 0
    shown = json.loads(stays("show", "cube", "ward*sex", "--json").out)
    assert len(shown["cells"]) == 4 and set(shown["cells"][0]) == {"ward", "sex", "count", "avg(days)", "sum(cost)"}
    average = shown["cells"][0]["avg(days)"]
    assert 1 <= average["low_95"] <= average["value"] <= average["high_95"] <= 14
    assert "surgery" in stays("show", "cube", "ward").out and "ward*sex" in stays("show", "cube").out
    [file] = (stays.folder / "cube" / "tables").glob("*ward-sex*")
    assert pq.read_table(file).column_names == [
        *("ward", "sex", "value", "std_error", "sum_days", "sum_days_std_error"),
        *("avg_days", "avg_days_low", "avg_days_high", "sum_cost", "sum_cost_std_error"),
        *("quality", "sum_days_quality", "avg_days_quality", "sum_cost_quality"),
    ]
    assert "Privacy of the release" in (stays.folder / "cube" / "PRIVACY.md").read_text()


def test_a_cube_that_was_changed_does_not_verify(stays):
    stays("release", "--schema", "stays.yaml", *ASKED, "--data", "stays.csv", "--out", "cube")
    manifest = stays.folder / "cube" / "manifest.json"
    names = ("PRIVACY.md", "plan.json", "schema.yaml", "tables/0000-total.parquet", "measurements/sum_days.parquet")
    for name in names:
        path = stays.folder / "cube" / name
        before = path.read_bytes()
        path.write_bytes(before[:-9])
        assert stays("verify", "cube").code == 1
        assert stays("show", "cube").code == 2
        path.write_bytes(before)
    assert stays("verify", "cube").code == 0
    for name in names:
        path = stays.folder / "cube" / name
        before = path.read_bytes()
        path.unlink()
        found = stays("verify", "cube")
        assert found.code == 1 and f"{name}: is missing" in found.out
        path.write_bytes(before)
    told = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**told, "tables": None}))
    assert stays("verify", "cube").code == 1
    manifest.write_text(json.dumps({**told, "measures": ["sum(cost)"]}))
    assert stays("verify", "cube").code == 1 and stays("show", "cube").code == 2


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (["--measure", "avg(wage)"], "--measure"),
        (["--measure", "median(days)"], "--measure"),
        (["--shares", "count=0.5"], "--shares"),
        (["--shares", "count"], "--shares"),
        (["--rows-per-person", "7"], "--rows-per-person"),
        (["--strategy", "ireduct:sanity-bound=5"], "--strategy: ireduct cannot be used here: it adapts"),
        (["--relative-error", "0.1", "--above", "50"], "--strategy: ireduct cannot be used here: it adapts"),
    ],
)
def test_bad_cubes_are_refused_and_nothing_is_written(stays, change, field):
    found = stays("release", "--schema", "stays.yaml", *ASKED, *change, "--data", "stays.csv", "--out", "cube")
    assert found.code == 2 and f"hushcube: {field}" in found.err
    assert not (stays.folder / "cube").exists()


def test_a_plan_file_decides_alone(stays):
    stays("plan", "--schema", "stays.yaml", *ASKED, "--out", "cube.json")
    found = stays("release", "cube.json", "--measure", "avg(days)", "--data", "stays.csv", "--out", "cube")
    assert found.code == 2 and "cannot be combined with a plan file" in found.err
    path = stays.folder / "cube.json"
    raw = json.loads(path.read_text())
    raw["parts"]["days"], raw["parts"]["cost"] = raw["parts"]["cost"], raw["parts"]["days"]
    path.write_text(json.dumps(raw))
    found = stays("release", "cube.json", "--data", "stays.csv", "--out", "cube")
    assert found.code == 2 and "plan, days" in found.err and not (stays.folder / "cube").exists()


def test_every_verb_takes_a_cube(stays):
    released = stays(
        "release", "--schema", "stays.yaml", *ASKED, "--data", "stays.csv", "--out", "cube", "--face", "integral"
    )
    assert released.code == 0 and "and the face face-valid" in released.out
    assert stays("verify", "cube").code == 0
    told = json.loads(stays("show", "cube", "ward*sex", "--where", "ward=surgery", "--sum", "--json").out)
    assert told.keys() >= {"value", "std_error", "low_95", "high_95", "avg(days)", "sum(cost)"}
    assert told["avg(days)"]["low_95"] <= told["avg(days)"]["value"] <= told["avg(days)"]["high_95"]
    assert "avg(days): " in stays("show", "cube", "ward", "--sum").out
    people = json.loads(stays("show", "cube", "ward", "--face", "face-valid", "--json").out)
    assert all(cell["value"] == int(cell["value"]) >= 0 for cell in people["cells"])
    assert stays("recover", "cube", "--face", "consistent").code == 0
    assert stays("synth", "cube", "--out", "people.csv").code == 0
    assert (stays.folder / "people.csv").read_text().startswith('"ward","sex"\n')
    contents = stays("show", "cube")
    assert "count, avg(days), sum(cost)" in contents.out and "ward*sex" in contents.out
    assert json.loads(stays("show", "cube", "--json").out)["cube"] == ["avg(days)", "sum(cost)"]


def test_targets_what_if_and_charts_stand_beside_measures(stays):
    asked = [*ASKED[:2], "--neighbours", "add-remove", *ASKED[-2:], "--schema", "stays.yaml"]
    targets = ["--target", "ward*sex: stderr<=20", "--target", "sum(cost) ward*sex: stderr<=9000"]
    found = stays("plan", *asked, "--epsilon", "find", *targets, "--what-if", "1,2", "--json")
    told = json.loads(found.out)
    assert [target["target"] for target in told["targets"]] == [targets[1], targets[3]]
    assert all(0 < target["reached"] <= target["bound"] for target in told["targets"])
    assert [part["part"] for part in told["parts"]] == ["count", "days", "cost"] and len(told["what_if"]) == 2
    again = stays("plan", *asked, "--epsilon", told["found"]["epsilon"], "--json")
    cells = {"*".join(table["attributes"]): table for table in json.loads(again.out)["marginals"]}
    assert cells["ward*sex"]["sum(cost)"]["std_error"] == pytest.approx(told["targets"][1]["reached"])
    drawn = stays("plan", *asked, "--epsilon", "1", "--chart", "errors.svg")
    assert drawn.code == 0 and "sum(days)" in drawn.out and (stays.folder / "errors.svg").exists()
    refused = stays("plan", *asked, "--epsilon", "find", "--target", "avg(days) ward: stderr<=1")
    assert refused.code == 2 and "depends on the number of people" in refused.err
    refused = stays(
        "plan", *asked[:4], "--schema", "stays.yaml", "--epsilon", "find", "--target", "sum(days) ward: rmse<=1"
    )
    assert refused.code == 2 and "sum(days) is not asked for" in refused.err
