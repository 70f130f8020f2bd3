"""Levels on the command line: a schema with a mapping file, and all verbs at levels."""

import json
from pathlib import Path

import pytest

from hushcube.cli import run

SCHEMA = """
name: stays
attributes:
  - name: state
    values: [CA, OR, NY, MA]
    levels: [{name: region, groups: {West: [CA, OR], East: [NY, MA]}}]
  - {name: age, range: [0, 9], levels: [{name: band, starts: [0, 5]}]}
  - {name: diagnosis, before: ., mapping: codes/icd.csv, other: other}
"""
BUDGET = ["--epsilon", "4", "--neighbours", "add-remove"]


@pytest.fixture
def stays(tmp_path, monkeypatch, capsys):
    """A folder with a schema in a folder of its own, in which commands are run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "declared" / "codes").mkdir(parents=True)
    (tmp_path / "declared" / "stays.yaml").write_text(SCHEMA)
    (tmp_path / "declared" / "codes" / "icd.csv").write_text("code,chapter\n250,endo\n410,heart\n428,heart\n")
    states, codes = ("CA", "OR", "NY", "MA"), ("250.83", "410", "428.0", "V57")
    rows = [f"{states[i % 4]},{i % 10},{codes[i % 3 + i % 2]}" for i in range(600)]
    (tmp_path / "stays.csv").write_text("state,age,diagnosis\n" + "\n".join(rows) + "\n")

    def command(*arguments):
        capsys.readouterr()
        code = run(list(arguments))
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


ASKED = ["--schema", "declared/stays.yaml", *BUDGET]


def test_schema_check_shows_levels(stays):
    code, out, _ = stays("schema", "check", "declared/stays.yaml", "--data", "stays.csv")
    assert code == 0 and "region (2)" in out and "chapter (2)" in out
    found = json.loads(stays("schema", "check", "declared/stays.yaml", "--json")[1])
    assert found["attributes"][0]["levels"] == {"region": 2}


@pytest.mark.parametrize(
    ("words", "strategy"),
    [("state@region*age@band,diagnosis@chapter", None), ("state*age@band,state@region*diagnosis@chapter", "levels")],
)
def test_planned_released_shown_and_verified(stays, words, strategy):
    assert stays("plan", *ASKED, "--workload", words, "--out", "plan.json")[0] == 0
    assert strategy in (None, json.loads(Path("plan.json").read_text())["parts"]["count"]["strategy"])
    assert stays("release", "plan.json", "--data", "stays.csv", "--out", "out")[0] == 0
    assert stays("verify", "out")[0] == 0
    code, out, _ = stays("show", "out", "state@region")
    assert code == 0 and "West" in out and "±" in out
    code, out, _ = stays("show", "out", "state@region*age@band", "--where", "state@region=East", "--sum", "--json")
    assert code == 0 and abs(json.loads(out)["value"] - 300) < 60


def test_targets_name_levels(stays):
    asked = ["plan", "--schema", "declared/stays.yaml", "--neighbours", "add-remove", "--epsilon", "find"]
    code, out, _ = stays(*asked, "--workload", "state*age,state@region", "--target", "state@region: stderr<=5")
    assert code == 0 and "state@region" in out


def test_evaluations_count_at_levels(stays):
    more = ["--data", "stays.csv", "--sanity-bound", "5", "--runs", "2"]
    assert stays("evaluate", *ASKED, "--workload", "state@region*age@band", *more)[0] == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["plan", *ASKED, "--workload", "state@town"], "'state' has no level 'town'"),
        (
            ["plan", *ASKED, "--workload", "state@region", "--strategy", "levels"],
            "no attribute is asked for at several",
        ),
        (["plan", *ASKED, "--workload", "state,state@region", "--strategy", "residual"], "several levels"),
        (
            [
                "release",
                *ASKED,
                "--workload",
                "state,state@region",
                "--data",
                "stays.csv",
                "--out",
                "new",
                "--face",
                "integral",
            ],
            "faces do not hold levels together",
        ),
    ],
)
def test_mistakes_are_told(stays, tmp_path, arguments, told):
    code, _, err = stays(*arguments)
    assert code == 2 and told in err and not (tmp_path / "new").exists()


def test_a_mapping_file_that_is_not_there(stays, tmp_path):
    (tmp_path / "declared" / "codes" / "icd.csv").unlink()
    code, _, err = stays("schema", "check", "declared/stays.yaml")
    assert code == 2 and "mapping" in err and "cannot be read" in err
