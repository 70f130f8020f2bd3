"""Mapping files: what a schema names is published, so it may name little, and says what it named."""

import json
import os
import shutil

import duckdb
import pytest
import yaml

from hushcube import Attribute, Schema, plan
from hushcube.cli import run
from hushcube.errors import SchemaError

SECRET = "qz7731"
PEOPLE = "id,disease,name\n" + "".join(f"p{i},{SECRET}{i % 3},{SECRET}{i % 3}x\n" for i in range(30))
CODES = "code,chapter\n250,endo\n410,heart\n428,heart\n"
BUDGET = ["--epsilon", "4", "--neighbours", "add-remove"]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """A folder with data, and a schema in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "declared").mkdir()
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "codes.csv").write_text(CODES)
    (tmp_path / "declared" / "codes.csv").write_text(CODES)
    rows = "".join(f"{('250', '410', '428')[i % 3]},{'FM'[i % 2]}\n" for i in range(60))
    (tmp_path / "stays.csv").write_text("diagnosis,sex\n" + rows)
    return tmp_path


@pytest.fixture
def command(desk, capsys):
    def check(*arguments, code=0):
        capsys.readouterr()
        found = run([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert found == code, captured.err
        return captured.out, captured.err

    return check


def declare(desk, mapping, more="", name="diagnosis"):
    attribute = {"name": name, "mapping": str(mapping)}
    text = f"attributes:\n  - {json.dumps(attribute)}\n  - {{name: sex, values: [F, M]}}\n{more}"
    (desk / "declared" / "s.yaml").write_text(text)
    return ["--schema", "declared/s.yaml", *BUDGET]


# ------------------------------------------------------------------------------------------------------ which files


@pytest.mark.parametrize("kind", ["up", "absolute", "link", "folder link", "chain", "hidden up"])
def test_a_mapping_stays_within_the_folder_of_the_schema(desk, command, kind):
    inside = desk / "declared"
    (inside / "sub").mkdir()
    if kind in ("link", "chain"):
        (inside / "link.csv").symlink_to("../codes.csv")
        (inside / "sub" / "chain.csv").symlink_to("../link.csv")
    if kind == "folder link":
        (inside / "out").symlink_to("..", target_is_directory=True)
    name = {
        "up": "../codes.csv",
        "absolute": desk / "declared" / "codes.csv",
        "link": "link.csv",
        "folder link": "out/codes.csv",
        "chain": "sub/chain.csv",
        "hidden up": "sub/../../codes.csv",
    }[kind]
    asked = declare(desk, name)
    for verb in (["plan", *asked, "--workload", "1-way"], ["schema", "check", "declared/s.yaml"]):
        _, err = command(*verb, code=2)
        assert "mapping: " in err and "is outside the folder of the schema" in err


def test_links_and_folders_within_the_folder_are_fine(desk, command):
    (desk / "declared" / "sub").mkdir()
    shutil.copy(desk / "codes.csv", desk / "declared" / "sub" / "real.csv")
    (desk / "declared" / "link.csv").symlink_to("sub/real.csv")
    (desk / "other").symlink_to("declared", target_is_directory=True)
    declare(desk, "link.csv")
    command("plan", "--schema", "other/s.yaml", "--workload", "1-way", *BUDGET)


def test_only_regular_files_of_some_size_are_read(desk, command, monkeypatch):
    os.mkfifo(desk / "declared" / "pipe.csv")
    (desk / "declared" / "folder.csv").mkdir()
    for name in ("pipe.csv", "folder.csv"):
        _, err = command("plan", *declare(desk, name), "--workload", "1-way", code=2)
        assert "is not a regular file" in err
    monkeypatch.setattr("hushcube.model.files.LARGEST_MAPPING", 10)
    _, err = command("plan", *declare(desk, "codes.csv"), "--workload", "1-way", code=2)
    assert "is larger than" in err


def test_a_schema_without_a_file_reads_none():
    with pytest.raises(SchemaError, match="none can be read here"):
        Schema.from_yaml("attributes: [{name: a, mapping: codes.csv}]")


# ------------------------------------------------------------------------------------------- a mapping is not the data


def files_of(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_the_data_is_no_mapping(desk, command):
    shutil.copy(desk / "people.csv", desk / "declared" / "people.csv")
    asked = declare(desk, "people.csv", name="id")
    command("plan", *asked, "--workload", "id", "--out", "plan.json")
    data = ["--data", "people.csv"]
    for verb in (["release", *asked, "--workload", "id"], ["release", "plan.json"]):
        _, err = command(*verb, *data, "--out", "new", code=2)
        assert "attribute 'id', mapping: is the data" in err and SECRET not in err
    _, err = command("schema", "check", "declared/s.yaml", *data, code=2)
    assert "is the data" in err
    assert not (desk / "new").exists()


@pytest.mark.parametrize("kind", ["csv", "parquet", "glob", "duckdb", "query"])
def test_a_mapping_with_more_than_two_columns_of_the_data_is_refused(desk, command, kind):
    """A part of the data's lines, or the data in another form."""
    (desk / "declared" / "part.csv").write_text("".join(PEOPLE.splitlines(keepends=True)[:20]))
    (desk / "declared" / "s.yaml").write_text("attributes: [{name: id, mapping: part.csv, other: other}]")
    with duckdb.connect("people.duckdb") as connection:
        connection.execute("CREATE TABLE people AS FROM 'people.csv'")
        connection.execute("COPY people TO 'people.parquet'")
    data = {
        "csv": ["--data", "people.csv"],
        "parquet": ["--data", "people.parquet"],
        "glob": ["--data", "people*.parquet"],
        "duckdb": ["--data", "people.duckdb#people"],
        "query": ["--query", "FROM 'people.csv'"],
    }[kind]
    asked = ["--schema", "declared/s.yaml", *BUDGET, "--workload", "id@disease"]
    _, err = command("release", *asked, *data, "--out", "new", code=2)
    assert "attribute 'id', mapping: has more than two columns of the data" in err and SECRET not in err
    assert not (desk / "new").exists()


def test_one_level_may_be_a_column_of_the_data(desk, command):
    (desk / "declared" / "states.csv").write_text("city,state\nBoston,MA\nReno,NV\n")
    (desk / "declared" / "s.yaml").write_text("attributes: [{name: city, mapping: states.csv}]")
    (desk / "trips.csv").write_text("city,state\nBoston,MA\nReno,NV\n")
    asked = ["--schema", "declared/s.yaml", *BUDGET, "--workload", "city@state"]
    _, err = command("release", *asked, "--data", "trips.csv", "--out", "new", code=2)
    assert "is the data" in err  # the very same bytes
    (desk / "trips.csv").write_text("city,state\n" + "Boston,MA\nReno,NV\n" * 30)
    command("release", *asked, "--data", "trips.csv", "--out", "new")


# ------------------------------------------------------------------------------------------------- what becomes public


def test_labels_that_no_table_needs_are_not_published(desk, command):
    asked = declare(desk, "codes.csv")
    command("release", *asked, "--workload", "sex", "--data", "stays.csv", "--out", "new")
    for path in files_of(desk / "new"):
        assert b"endo" not in path.read_bytes() and b"codes.csv" not in path.read_bytes(), path
    assert [a["name"] for a in yaml.safe_load((desk / "new" / "schema.yaml").read_text())["attributes"]] == ["sex"]
    command("verify", "new")
    command("show", "new", "sex")


def test_levels_that_no_table_needs_are_not_published(desk, command):
    asked = declare(desk, "codes.csv")
    command("release", *asked, "--workload", "diagnosis", "--data", "stays.csv", "--out", "new")
    text = (desk / "new" / "schema.yaml").read_text()
    assert "250" in text and "endo" not in text and "codes.csv" in text
    own = "attributes: [{name: diagnosis, values: ['250', '410', '428'], mapping: codes.csv}]"
    (desk / "declared" / "s.yaml").write_text(own)
    command("release", *asked, "--workload", "diagnosis", "--data", "stays.csv", "--out", "again")
    assert "codes.csv" not in (desk / "again" / "schema.yaml").read_text() + (desk / "again" / "PRIVACY.md").read_text()


@pytest.mark.parametrize("measure", [[], ["--measure", "sum(days)"]])
def test_files_that_become_public_are_listed(desk, command, measure):
    more = "measures: [{name: days, bounds: [0, 9], column: diagnosis}]\n" if measure else ""
    asked = [*declare(desk, "codes.csv", more), "--workload", "diagnosis@chapter*sex", *measure]
    out, _ = command("plan", *asked, "--out", "plan.json")
    assert "a release publishes what these files hold: declared/s.yaml, declared/codes.csv" in out
    listed = json.loads(command("plan", *asked, "--json")[0])["public_files"]
    assert listed == ["declared/s.yaml", "declared/codes.csv"]
    command("release", "plan.json", "--data", "stays.csv", "--out", "new")
    statement = (desk / "new" / "PRIVACY.md").read_text()
    assert "The labels of `diagnosis` were read from the file `codes.csv`, which is public, too." in statement
    command("verify", "new")
    shutil.copy(desk / "new" / "schema.yaml", desk / "published.yaml")  # needs no other file
    assert Schema.read("published.yaml").label_files == {"codes.csv": ("diagnosis",)}


def test_a_matrix_of_queries_is_listed(desk, command):
    (desk / "q.csv").write_text("1,0\n1,1\n")
    asked = [*declare(desk, "codes.csv"), "--queries", "sex:q.csv", "--strategy", "identity"]
    out, _ = command("plan", *asked)
    assert "declared/codes.csv, sex:q.csv" in out
    command("release", *asked, "--data", "stays.csv", "--out", "new")
    assert "So are the rows of the matrix of queries" in (desk / "new" / "PRIVACY.md").read_text()
    command("verify", "new")


def test_families_of_tables_need_the_values_of_all_attributes(desk):
    declare(desk, "codes.csv")
    schema = Schema.read("declared/s.yaml")
    law = {"epsilon": 1, "neighbours": "add-remove"}
    assert plan(schema, "1-way", **law).schema.names == ("diagnosis", "sex")
    assert plan(schema, ["1-way", "diagnosis@chapter"], **law).schema["diagnosis"].grouped
    assert plan(schema, "anchored:1:sex", **law).schema.names == ("diagnosis", "sex")
    assert not plan(schema, "diagnosis*sex", **law).schema["diagnosis"].grouped
    assert plan(schema, "sex", **law).schema.names == ("sex",)


def test_declared_levels_are_published_as_they_were():
    attribute = Attribute(name="a", codes=4, levels=({"name": "half", "groups": {"x": ["0", "1"], "y": ["2", "3"]}},))
    schema = Schema((attribute, Attribute(name="b", codes=2)))
    assert plan(schema, "b", epsilon=1, neighbours="add-remove").schema == schema
