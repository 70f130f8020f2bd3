"""Bad input: exit code 2, the field and the fix are named, nothing is written, nothing is spent, no data is shown."""

import json
import os
import re
import shutil
import sys
import time
import tracemalloc
from pathlib import Path

import pytest

from cli.desk import ASKED, BUDGET, COLUMNS, SECRET
from hushcube.bundle.manifest import FORMAT, manifest_text
from hushcube.cli import run
from hushcube.designs.design import digest_of
from hushcube.planning.plan import Plan


def planned(*budget, asked=ASKED):
    return ["plan", *asked, *budget, "--out", "new.json"]


def schema_of(attribute):
    return f"attributes:\n  - {attribute}\n  - {{name: other, size: 2}}\n"


# ----------------------------------------------------------------------------------------------------- the guarantee

NUMBERS = [
    "0",
    "-1",
    "-0",
    "nan",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "1e-400",
    "true",
    "",
    " ",
    "0x10",
    "1,5",
    "1/0",
    "1/00",
    "1e",
    "one",
    "1_000",
    "501",
    "1e-10",
    "9" * 5000,
    "1e99999",
]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda n: repr(n)[:12])
@pytest.mark.parametrize("name", ["epsilon", "rho"])
def test_budgets_must_be_sensible_numbers(refused, name, number):
    refused(planned(f"--{name}", number, "--neighbours", "add-remove"), f"{name}:")


@pytest.mark.parametrize("number", ["0", "-1e-9", "1", "2", "nan", "inf", "", "true", "1e-400", "1/0"], ids=repr)
def test_delta_must_be_a_probability(refused, number):
    refused(planned("--epsilon", "1", "--delta", number, "--neighbours", "add-remove"), "delta:")


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ([], "neighbours: is not given"),
        (["--neighbours", "add-remove"], "epsilon: no budget"),
        (["--neighbours", "add-remove", "--delta", "1e-6"], "epsilon: no budget"),
        (["--neighbours", "add-remove", "--epsilon", "1", "--rho", "1"], "rho:"),
        (["--neighbours", "add-remove", "--rho", "1", "--delta", "1e-6"], "rho:"),
        (["--epsilon", "1"], "neighbours: is not given"),
        (["--epsilon", "1", "--neighbours", "swap"], "neighbours:"),
        (["--epsilon", "1", "--neighbours", ""], "neighbours:"),
        (["--epsilon", "1", "--neighbours", "add-remove", "--rows-per-person", "0"], "--rows-per-person:"),
        (["--epsilon", "1", "--neighbours", "add-remove", "--rows-per-person", "-1"], "--rows-per-person:"),
        (["--epsilon", "1", "--neighbours", "add-remove", "--rows-per-person", "1000001"], "--rows-per-person:"),
        (["--epsilon", "1", "--neighbours", "add-remove", "--rows-per-person", "true"], "--rows-per-person"),
        (["--epsilon", "1", "--neighbours", "add-remove", "--rows-per-person", "1.5"], "--rows-per-person"),
        ([*BUDGET, "--strategy", "best"], "strategy:"),
        ([*BUDGET, "--budgets", "even"], "budgets:"),
        ([*BUDGET, "--recovery", "lasso"], "recovery:"),
        ([*BUDGET, "--no-such-option"], "--no-such-option"),
    ],
    ids=" ".join,
)
def test_options_must_fit_together(refused, options, field):
    refused(planned(*options), field)


def test_schema_and_workload_are_needed(refused):
    refused(["plan", "--workload", "1-way", *BUDGET], "--schema")
    refused(["plan", "--schema", "people.yaml", *BUDGET], "--workload")


# -------------------------------------------------------------------------------------------------------- the schema

BOMB = "".join(f"  - &a{i} [{', '.join([f'*a{i - 1}'] * 9 if i else ['x'] * 9)}]\n" for i in range(12))
MERGED = "- &m0 {a: 1}\n" + "".join(f"- &m{i} {{<<: [{', '.join([f'*m{i - 1}'] * 9)}]}}\n" for i in range(1, 12))

SCHEMAS = {
    "attribute declared twice": (
        "attributes: [{name: a, size: 2}, {name: a, size: 3}]",
        "attribute 'a': is declared twice",
    ),
    "value twice": (schema_of("{name: a, values: [x, y, x]}"), "attribute 'a', values"),
    "value twice, as text and number": (schema_of("{name: a, values: [1, '1']}"), "attribute 'a', values"),
    "no values": (schema_of("{name: a, values: []}"), "attribute 'a', values"),
    "values null": (schema_of("{name: a, values: null}"), "attribute 'a', values"),
    "values a text": (schema_of("{name: a, values: xyz}"), "attribute 'a', values"),
    "value a list": (schema_of("{name: a, values: [[x]]}"), "attribute 'a', values"),
    "value null": (schema_of("{name: a, values: [x, ~]}"), "attribute 'a', values"),
    "value empty": (schema_of("{name: a, values: [x, '']}"), "attribute 'a', values"),
    "value infinite": (schema_of("{name: a, values: [.inf]}"), "attribute 'a', values"),
    "value too long": (schema_of(f"{{name: a, values: [{'x' * 10_001}]}}"), "attribute 'a', values"),
    "value of half a character": (schema_of('{name: a, values: ["\\ud800"]}'), "attribute 'a', values"),
    "range backwards": (schema_of("{name: a, range: [9, 0]}"), "attribute 'a', range"),
    "range of one": (schema_of("{name: a, range: [9]}"), "attribute 'a', range"),
    "range of halves": (schema_of("{name: a, range: [0.5, 1.5]}"), "attribute 'a', range"),
    "range of truths": (schema_of("{name: a, range: [false, true]}"), "attribute 'a', range"),
    "range too wide": (schema_of("{name: a, range: [0, 1000000]}"), "attribute 'a', range"),
    "range beyond 64 bits": (schema_of("{name: a, range: [99999999999999999999, 99999999999999999999]}"), "range"),
    "size 0": (schema_of("{name: a, size: 0}"), "attribute 'a', size"),
    "size -3": (schema_of("{name: a, size: -3}"), "attribute 'a', size"),
    "size true": (schema_of("{name: a, size: true}"), "attribute 'a', size"),
    "size 2.0": (schema_of("{name: a, size: 2.0}"), "attribute 'a', size"),
    "size 10^12": (schema_of("{name: a, size: 1000000000000}"), "attribute 'a', size"),
    "size of 5,000 digits": (schema_of(f"{{name: a, size: {'9' * 5000}}}"), "schema"),
    "a million values 100 times": (
        "attributes:\n" + "".join(f"- {{name: a{i}, size: 1000000}}\n" for i in range(100)),
        "attributes: together",
    ),
    "one bin edge": (schema_of("{name: a, bins: [1]}"), "attribute 'a', bins"),
    "bins fall": (schema_of("{name: a, bins: [0, 5, 5]}"), "attribute 'a', bins"),
    "bins NaN": (schema_of("{name: a, bins: [0, .nan, 5]}"), "attribute 'a', bins"),
    "bins infinite": (schema_of("{name: a, bins: [0, .inf]}"), "attribute 'a', bins"),
    "bins of texts": (schema_of("{name: a, bins: [low, high]}"), "attribute 'a', bins"),
    "bins beyond 2^53": (schema_of("{name: a, bins: [0, 9007199254740993]}"), "attribute 'a', bins"),
    "unknown key": (schema_of("{name: a, size: 2, sise: 3}"), "'sise'"),
    "unknown key on top": ("attribute: []\nattributes: [{name: a, size: 2}]", "'attribute'"),
    "two kinds": (schema_of("{name: a, size: 2, range: [0, 1]}"), "attribute 'a': declares range and size"),
    "no kind": (schema_of("{name: a}"), "attribute 'a': declares none"),
    "no name": (schema_of("{size: 2}"), "attribute 1: has no name"),
    "empty name": (schema_of("{name: '', size: 2}"), "attribute name"),
    "blank name": (schema_of("{name: ' a', size: 2}"), "attribute name"),
    "name a number": (schema_of("{name: 7, size: 2}"), "attribute name"),
    "name a list": (schema_of("{name: [a], size: 2}"), "attribute name"),
    "name with a star": (schema_of("{name: a*b, size: 2}"), "attribute 'a*b'"),
    "name with a comma": (schema_of("{name: 'a,b', size: 2}"), "attribute 'a,b'"),
    "name with a newline": (schema_of('{name: "a\\nb", size: 2}'), "attribute 'a\\nb'"),
    "name a workload word": (schema_of("{name: 2-way, size: 2}"), "attribute '2-way'"),
    "name cube": (schema_of("{name: cube, size: 2}"), "attribute 'cube'"),
    "ordered perhaps": (schema_of("{name: a, size: 2, ordered: perhaps}"), "attribute 'a', ordered"),
    "missing null": (schema_of("{name: a, size: 2, missing: ~}"), "attribute 'a', missing"),
    "missing empty": (schema_of("{name: a, size: 2, missing: ''}"), "attribute 'a', missing"),
    "other a list": (schema_of("{name: a, size: 2, other: [x]}"), "attribute 'a', other"),
    "column a number": (schema_of("{name: a, size: 2, column: 3}"), "attribute 'a', column"),
    "attribute a text": ("attributes: [sex]", "attribute 1"),
    "attributes a text": ("attributes: sex", "attributes"),
    "attributes missing": ("name: people", "attributes"),
    "attributes empty": ("attributes: []", "attributes: there are none"),
    "schema name a list": ("name: [x]\nattributes: [{name: a, size: 2}]", "name"),
    "2,001 attributes": ("attributes:\n" + "".join(f"- {{name: a{i}, size: 2}}\n" for i in range(2001)), "attributes"),
    "a list": ("- a\n- b", "schema: must be a mapping"),
    "a text": ("people", "schema: must be a mapping"),
    "an empty file": ("", "schema: must be a mapping"),
    "YAML that breaks off": ("attributes: [{name: a, size: 2}", "schema, line"),
    "a tab": ("attributes:\n\t- {name: a}", "schema, line 2"),
    "a Python object": ("attributes: !!python/object/apply:os.getcwd []", "schema"),
    "two documents": ("attributes: []\n---\nattributes: []", "schema"),
    "a control character": ("attributes: \x01", "schema"),
    "key twice": ("attributes: [{name: a, size: 2, size: 3}]", "'size' occurs twice"),
    "key twice on top": ("name: a\nname: b\nattributes: [{name: a, size: 2}]", "'name' occurs twice"),
    "a bomb of anchors": (f"attributes:\n{BOMB}", "attribute 1"),
    "a bomb of anchors as values": (f"x:\n{BOMB}attributes: [{{name: a, values: *a11}}]", "'x'"),
    "a bomb as a name": ("attributes:\n" + BOMB + "  - {name: *a11, size: 2}", "attribute"),
    "a bomb as one value": (f"attributes:\n  - name: a\n    values:\n{BOMB.replace('  -', '    -')}", "values"),
    "a bomb of merges": (MERGED, "'<<'"),
    "a list that holds itself": ("attributes: &a [*a]", "attribute 1"),
    "100,000 brackets": ("[" * 100_000, "schema"),
    "10,000 nested mappings": ("attributes: " + "{a: " * 10_000, "schema"),
    "10,000 nested blocks": ("- " * 10_000, "schema"),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_schemas_are_checked(refused, desk, kind):
    text, field = SCHEMAS[kind]
    (desk / "bad.yaml").write_text(text)
    start = time.perf_counter()
    refused(planned(*BUDGET, asked=["--schema", "bad.yaml", "--workload", "1-way"]), field)
    assert time.perf_counter() - start < 20  # it does not hang, even on a busy machine


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("absent.yaml", "cannot be read"),
        (".", "cannot be read"),
        ("latin.yaml", "not UTF-8"),
        ("people.parquet", "UTF-8"),
        ("a\0b", "cannot be read"),
        ("x" * 300, "cannot be read"),
        ("people.csv", "schema"),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_schema_files_must_be_text(refused, desk, name, problem):
    (desk / "latin.yaml").write_bytes("name: Bevölkerung".encode("latin-1"))
    refused(planned(*BUDGET, asked=["--schema", name, "--workload", "1-way"]), "schema", problem)
    refused(["schema", "check", name], "schema", problem)


# ------------------------------------------------------------------------------------------------------ the workload


@pytest.mark.parametrize(
    ("word", "field"),
    [
        ("pairs", "attribute: 'pairs'"),
        ("sex*shoe", "attribute: 'shoe'"),
        ("sex*sex", "twice"),
        ("", "workload"),
        (",", "workload"),
        ("sex,", "workload"),
        ("sex**age", "workload"),
        ("*", "workload"),
        ("5-way", "workload: '5-way' needs 5"),
        ("<=5-way", "workload"),
        ("3..1-way", "backwards"),
        ("-1-way", "attribute"),
        ("2 way", "attribute"),
        ("99999-way", "attribute"),
        ("star:4", "workload"),
        ("star:", "attribute"),
        ("anchored:2:shoe", "attribute: 'shoe'"),
        ("anchored:4:sex", "workload"),
        ("anchored:2", "attribute"),
        ("sex=0", "weight of 'sex'"),
        ("sex=-1", "weight of 'sex'"),
        ("sex=nan", "weight of 'sex'"),
        ("sex=inf", "weight of 'sex'"),
        ("sex=heavy", "weight of 'sex'"),
        ("sex=", "weight of 'sex'"),
        ("=2", "attribute"),
        ("Sex", "attribute: 'Sex'"),
    ],
)
def test_workload_words_are_checked(refused, word, field):
    refused(planned(*BUDGET, asked=["--schema", "people.yaml", "--workload", word]), field)


LARGE = {
    "9-way of 8": (8, ["9-way"], [], "workload: '9-way' needs 9 attributes, the schema has 8"),
    "cube of 100": (100, ["cube"], [], "workload: it asks for more than 1,000,000 marginals"),
    "50-way of 100": (100, ["50-way"], [], "more than 1,000,000 marginals"),
    "a marginal of 10^12 cells": (12, ["12-way"], [], "workload, largest marginal: 1,000,000,000,000 cells"),
    "a marginal of 10^40 cells": (40, ["40-way"], [], "workload, largest marginal: about 10^40 cells"),
    "a marginal of 10^2000 cells": (2000, ["*".join(f"a{i}" for i in range(2000))], [], "about 10^2000 cells"),
    "10^11 cells in all": (100, ["4-way", "5-way=2"], [], "workload"),
    "identity on 10^12": (12, ["1-way"], ["--strategy", "identity"], "strategy: identity cannot be used here"),
    "identity on 10^100": (100, ["1-way"], ["--strategy", "identity"], "strategy: identity cannot be used here"),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_is_too_large_is_refused_at_once(refused, desk, kind):
    attributes, words, options, field = LARGE[kind]
    (desk / "large.yaml").write_text(
        "attributes:\n" + "".join(f"- {{name: a{i}, size: 10}}\n" for i in range(attributes))
    )
    asked = ["--schema", "large.yaml", *(part for word in words for part in ("--workload", word))]
    start = time.perf_counter()
    refused(planned(*BUDGET, *options, asked=asked), field)
    assert time.perf_counter() - start < 20  # it would take hours
    tracemalloc.start()
    try:
        refused(planned(*BUDGET, *options, asked=asked), field)
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


# ---------------------------------------------------------------------------------------------------------- the data


HEADER = ",".join(COLUMNS)


def csv(*rows, header=HEADER):
    return "\n".join([header, *rows, ""]).encode()


DATA = {
    "missing column": (
        csv("Female,1,5", header="sex,age,income"),
        "attribute 'region': the data has no column 'region'",
    ),
    "other case": (csv("Female,1,5,0", header="Sex,age,income,region"), "attribute 'sex'"),
    "column twice": (csv("Female,1,5,0,1", header="sex,age,income,region,age"), "several columns 'age'"),
    "outside the domain": (
        csv("Female,1,5,0", f"{SECRET},1,5,0"),
        "attribute 'sex', column 'sex': holds values outside",
    ),
    "outside the range": (csv("Female,77311,5,0"), "attribute 'age', column 'age': holds values outside"),
    "text in a range": (csv(f"Female,{SECRET},5,0"), "attribute 'age'"),
    "outside the bins": (csv("Female,1,50.01,0"), "attribute 'income', column 'income': holds values outside"),
    "missing value": (csv("Female,,5,0"), "attribute 'age', column 'age': holds missing values"),
    "too few fields": (csv("Female,1,5,0", f"Female,{SECRET}"), "data: the CSV file cannot be read"),
    "too many fields": (csv("Female,1,5,0", f"Female,1,5,0,{SECRET}"), "data: the CSV file cannot be read"),
    "open quote": (csv("Female,1,5,0", f'"Female,1,5,{SECRET}'), "data: the CSV file cannot be read"),
    "not UTF-8": (
        csv("Female,1,5,0") + f"F\xe9{SECRET},1,5,0\n".encode("latin-1"),
        "data: the CSV file cannot be read",
    ),
    "header not UTF-8": (b"s\xe9x,age,income,region\n", "data: the CSV file cannot be read"),
    "UTF-16": ("sex,age,income,region\nFemale,1,5,0\n".encode("utf-16"), "data"),
    "empty": (b"", "data: the CSV file has no header"),
    "blank header": (b"\nFemale,1,5,0\n", "data: the CSV file has no header"),
    "no header": (f"{SECRET},1,5,0\nMale,1,5,0\n".encode(), "attribute 'sex': the data has no column"),
    "binary": (bytes(range(256)) * 4, "data"),
}


@pytest.mark.parametrize("kind", DATA)
def test_csv_data_is_checked(refused, desk, kind):
    content, field = DATA[kind]
    (desk / "bad.csv").write_bytes(content)
    told = refused(["release", *ASKED, *BUDGET, "--data", "bad.csv", "--out", "new"], field)
    assert "77311" not in told and "50.01" not in told


def test_damaged_parquet_is_refused(refused, desk):
    whole = (desk / "people.parquet").read_bytes()
    contents = {
        "cut.parquet": whole[: len(whole) // 2],
        "tail.parquet": whole[:-20] + b"x" * 20,
        "middle.parquet": whole[:4] + b"\xff" * 200 + whole[204:],
        "text.parquet": b"sex,age\nFemale,1\n",
        "empty.parquet": b"",
    }
    for name, content in contents.items():
        (desk / name).write_bytes(content)
    for name in contents:
        refused(["release", "plan.json", "--data", name, "--out", "new"], "data:")


@pytest.mark.parametrize(
    ("source", "field"),
    [
        (["--data", "absent.csv"], "data: there is no file 'absent.csv'"),
        (["--data", "absent.parquet"], "data: there is no file"),
        (["--data", "nothing/*.parquet"], "data: there is no file"),
        (["--data", ""], "data: is not a path"),
        (["--data", "people"], "data: it is not clear"),
        (["--data", "."], "data: it is not clear"),
        (["--data", "parts"], "data: it is not clear"),
        (["--data", "people.duckdb"], "names a database but no table"),
        (["--data", "people.duckdb#"], "data"),
        (["--data", "people.duckdb#nobody"], "no table or view 'nobody'"),
        (["--data", 'people.duckdb#people"; DROP TABLE people; --'], "no table or view"),
        (["--data", "absent.duckdb#people"], "data: there is no file"),
        (["--data", "duckdb:people.csv#people"], "the database cannot be read"),
        (["--data", "csv:people.parquet"], "data"),
        (["--data", "parquet:people.csv"], "data: the Parquet data cannot be read"),
        (["--query", "SELEC 1"], "query: the SQL cannot be run"),
        (["--query", "SELECT * FROM nowhere"], "query"),
        (["--query", ""], "query: is not one SELECT"),
        (["--query", "SELECT 1; SELECT 2"], "query: is not one SELECT"),
        (["--query", "COPY (SELECT 1) TO 'stolen.csv'"], "query: is not one SELECT"),
        (["--query", "CREATE TABLE x AS SELECT 1"], "query: is not one SELECT"),
        (["--data", "people.duckdb", "--query", "DROP TABLE people"], "query: is not one SELECT"),
        (["--data", "people.csv", "--query", "SELECT 1"], "the database cannot be read"),
        (["--query", f"SELECT CAST('{SECRET}' AS INTEGER) AS sex FROM range(3)"], ""),
        (["--query", f"SELECT error('{SECRET}') AS sex, 1 AS age, 5 AS income, 0 AS region FROM range(3)"], ""),
    ],
    ids=" ".join,
)
def test_sources_must_be_readable(refused, source, field):
    refused(["release", "plan.json", *source, "--out", "new"], field)


def test_schema_drafts_need_readable_data_and_a_new_file(refused):
    refused(["schema", "draft"], "SOURCE")
    refused(["schema", "draft", "absent.csv"], "data")
    refused(["schema", "draft", "people.csv", "--out", "people.yaml"], "--out")
    refused(["schema", "draft", "people.csv", "--out", "nowhere/new.yaml"], "--out")
    refused(["schema", "draft", "people.csv", "--max-values", "1"], "--max-values")
    refused(["schema", "draft", "--query", "SELECT 1 WHERE"], "query")
    refused(["schema", "check", "people.yaml", "--data", "absent.csv"], "data")


# ---------------------------------------------------------------------------------------------------------- outputs

DONE = ["release", "plan.json", "--data", "people.csv"]


@pytest.mark.parametrize(
    ("out", "problem"),
    [
        ("published", "exists already"),
        ("people.csv", "exists already"),
        (".", "exists already"),
        ("dangling", "exists"),
        ("nowhere/new", "parent"),
        ("people.csv/new", "out"),
        ("x" * 300, "not a name"),
        ("a\0b", "not a name"),
        ("", "exists"),
    ],
    ids=lambda text: repr(text)[:20],
)
def test_a_release_needs_a_new_folder(refused, desk, out, problem):
    (desk / "dangling").symlink_to("nowhere-at-all")
    refused([*DONE, "--out", out], "out:", problem)
    if out:
        refused(["demo", "--out", out], "out:", problem)


@pytest.mark.parametrize(
    "out", ["plan.json", "published", "nowhere/new.json", "x" * 300, "a\0b"], ids=lambda o: repr(o)[:20]
)
def test_a_plan_needs_a_new_file(refused, out):
    refused(["plan", *ASKED, *BUDGET, "--out", out], "--out:")


def test_folders_that_cannot_be_written(refused, desk):
    locked = desk / "locked"
    locked.mkdir()
    locked.chmod(0o500)
    # root may write anywhere, but nobody can make a folder in /proc
    place = "/proc" if os.access(locked, os.W_OK) else "locked"
    if not Path(place).is_dir() or sys.platform != "linux":
        pytest.skip("root may write anywhere, and there is no /proc")
    refused([*DONE, "--out", f"{place}/new"], "out:", "cannot be written")
    refused(["plan", *ASKED, *BUDGET, "--out", f"{place}/new.json"], "--out:", "cannot be written")


def test_a_release_needs_data_and_a_folder(refused):
    refused(["release", "plan.json", "--out", "new"], "--data")
    refused(["release", "plan.json", "--data", "people.csv"], "--out")
    refused(["release", "--data", "people.csv", "--out", "new"], "--schema")
    refused(["release", *ASKED, "--data", "people.csv", "--out", "new"], "neighbours")


@pytest.mark.parametrize("seed", ["-1", "x", "1.5", "true", ""])
def test_seeds_are_whole_numbers(refused, seed):
    refused([*DONE, "--out", "new", "--seed", seed], "seed")


@pytest.mark.parametrize(
    "options",
    [
        ["--schema", "people.yaml"],
        ["--workload", "1-way"],
        ["--epsilon", "1"],
        ["--rho", "1"],
        ["--delta", "1e-6"],
        ["--neighbours", "add-remove"],
        ["--rows-per-person", "2"],
        ["--rows-per-person", "1"],
        ["--strategy", "auto"],
        ["--budgets", "optimal"],
        ["--recovery", "gls"],
        ["--epsilon", ""],
    ],
    ids=" ".join,
)
def test_a_plan_file_stands_alone(refused, options):
    refused([*DONE, "--out", "new", *options], options[0], "cannot be combined with a plan file")


# -------------------------------------------------------------------------------------------------------- plan files


def edited(change):
    """Edit a plan of counts, whose fields are shown flat, and leave its digests as they were."""

    def edit(text):
        whole = json.loads(text)
        part = whole["parts"].pop("count")
        raw = {**whole, **part, "digest": whole["digest"]}
        change(raw)
        return json.dumps(_folded(raw, part["digest"]))

    return edit


def resealed(change):
    """Edit a plan and give it digests that fit, as a careful forger would."""

    def edit(text):
        whole = json.loads(text)
        raw = {**whole, **whole.pop("parts")["count"]}
        raw.pop("digest")
        change(raw)
        design = {name: value for name, value in raw.items() if name not in ("measures", "parts")}
        folded = _folded(raw, digest_of({**design, "format": 1}))
        covered = {**folded, "parts": {"count": folded["parts"]["count"]["digest"]}}
        return json.dumps({**folded, "digest": digest_of(covered)})

    return edit


def _folded(raw, digest):
    """A plan file from its fields: what the count's design shares with others stands outside."""
    outside = ("format", "schema", "workload", "measures", "digest")
    own = {name: value for name, value in raw.items() if name not in (*outside, "parts")}
    told = {name: raw[name] for name in (*outside, "privacy") if name in raw}
    return {**told, "parts": {"count": {**own, "digest": digest}}}


PLANS = {
    "empty": lambda _: "",
    "not JSON": lambda _: "strategy: residual",
    "a list": lambda _: "[]",
    "cut": lambda text: text[: len(text) // 2],
    "another version": edited(lambda raw: raw.update(format=3)),
    "an earlier version": edited(lambda raw: raw.update(format=1)),
    "no version": edited(lambda raw: raw.pop("format")),
    "no digest": edited(lambda raw: raw.pop("digest")),
    "tampered digest": edited(lambda raw: raw.update(digest="0" * 64)),
    "changed strategy": edited(lambda raw: raw.update(strategy="other")),
    "budgets raised": edited(lambda raw: raw.update(budget=[2 * b for b in raw["budget"]])),
    "budgets raised, digest mended": resealed(lambda raw: raw.update(budget=[2 * b for b in raw["budget"]])),
    "budgets raised a little, digest mended": resealed(
        lambda raw: raw.update(budget=[b * (1 + 1e-9) for b in raw["budget"]])
    ),
    "budget infinite": resealed(lambda raw: raw.update(budget=[None] * len(raw["budget"]))),
    "budget negative": resealed(lambda raw: raw.update(budget=[-b for b in raw["budget"]])),
    "budget zero": resealed(lambda raw: raw.update(budget=[0.0] * len(raw["budget"]))),
    "budget a text": resealed(lambda raw: raw.update(budget=["x"] * len(raw["budget"]))),
    "budgets too few": resealed(lambda raw: raw.update(budget=raw["budget"][1:])),
    "schema widened, digest old": edited(lambda raw: raw["schema"]["attributes"][1].update(range=[0, 99])),
    "schema gone": resealed(lambda raw: raw.pop("schema")),
    "schema broken": resealed(lambda raw: raw["schema"]["attributes"][0].update(values=[])),
    "workload gone": resealed(lambda raw: raw.pop("workload")),
    "workload empty": resealed(lambda raw: raw.update(workload=[])),
    "privacy gone": resealed(lambda raw: raw.pop("privacy")),
    "epsilon zero": resealed(lambda raw: raw["privacy"].update(epsilon="0")),
    "smaller epsilon": resealed(lambda raw: raw["privacy"].update(epsilon="1/2")),
    "replace-one": resealed(lambda raw: raw["privacy"].update(neighbours="replace-one")),
    "more rows per person": resealed(lambda raw: raw["privacy"].update(rows_per_person=2)),
    "neighbours gone": resealed(lambda raw: raw["privacy"].pop("neighbours")),
    "basis unknown": resealed(lambda raw: raw.update(basis="wavelet")),
    "proof unknown": resealed(lambda raw: raw.update(proof="trust me")),
    "recovery unknown": resealed(lambda raw: raw.update(recovery="magic")),
    "measured negative": resealed(lambda raw: raw.update(measured=[[], [[-1]]])),
    "measured too large": resealed(lambda raw: raw.update(measured=[[], [[99]]])),
    "measured nothing": resealed(lambda raw: raw.update(measured=[], budget=[])),
    "measured too little": resealed(lambda raw: raw.update(measured=[[], [[0]]], budget=[0.1])),
    "measured a text": resealed(lambda raw: raw.update(measured="all")),
    "nested too deep": lambda _: "[" * 100_000,
}


@pytest.mark.parametrize("kind", PLANS)
def test_plan_files_are_checked_and_not_trusted(refused, desk, kind):
    path = desk / "bad.json"
    path.write_text(PLANS[kind]((desk / "plan.json").read_text()))
    refused(["release", "bad.json", "--data", "people.csv", "--out", "new"])


@pytest.mark.parametrize("name", ["absent.json", ".", "people.parquet"])
def test_plan_files_must_be_text(refused, name):
    refused(["release", name, "--data", "people.csv", "--out", "new"], "plan")


def test_the_good_plan_is_good(desk):
    """The cases above fail for what was changed, and not for something else."""
    text = (desk / "plan.json").read_text()
    assert Plan.from_json(resealed(lambda raw: None)(text)).digest == Plan.from_json(text).digest
    assert Plan.from_json(edited(lambda raw: None)(text)).digest == Plan.from_json(text).digest


# ----------------------------------------------------------------------------------------------------------- show


@pytest.fixture
def manifest(desk):
    """Change the release's manifest, and seal it again: who changes one can do that too."""

    def change(edit):
        path = desk / "published" / "manifest.json"
        raw = json.loads(path.read_text())
        edit(raw)
        path.write_text(manifest_text(raw) if isinstance(raw.get("tables"), list) else json.dumps(raw))

    return change


@pytest.mark.parametrize("folder", ["absent", "parts", "people.csv", "", "a\0b", "x" * 300], ids=lambda f: repr(f)[:20])
def test_show_needs_a_release(refused, folder):
    refused(["show", folder], "manifest.json")


def test_show_notices_changed_files(refused, desk):
    table = next((desk / "published" / "tables").glob("*-sex.parquet"))
    whole = table.read_bytes()
    table.write_bytes(whole[:-1] + b"x")
    refused(["show", "published"], table.name, "changed after the release")
    refused(["show", "published", "sex", "--no-verify"], "Fix:")
    table.unlink()
    refused(["show", "published", "sex"], table.name, "is missing")
    refused(["show", "published", "sex", "--no-verify"], table.name, "is missing")
    table.write_bytes(whole)
    for name in ("plan.json", "PRIVACY.md", "schema.yaml", "measurements/count.parquet"):
        path = desk / "published" / name
        kept = path.read_bytes()
        path.write_bytes(kept + b" ")
        refused(["show", "published"], name, "changed")
        path.write_bytes(kept)
    assert run(["show", "published", "sex"]) == 0


def swap_files(raw):
    a, b = (entry for entry in raw["tables"] if entry["attributes"] in (["sex"], ["region"]))
    a["file"], b["file"] = b["file"], a["file"]


MANIFESTS = {
    "another version": lambda raw: raw.update(format=FORMAT + 1),
    "a version that is no number": lambda raw: raw.update(format=True),
    "no checksums": lambda raw: raw.pop("checksums"),
    "checksums empty": lambda raw: raw.update(checksums={}),
    "checksum changed": lambda raw: raw["checksums"].update({"plan.json": "0" * 64}),
    "no tables": lambda raw: raw.pop("tables"),
    "a table less": lambda raw: raw["tables"].pop(),
    "an unknown table": lambda raw: raw["tables"][0].update(attributes=["shoe"]),
    "attributes a number": lambda raw: raw["tables"][0].update(attributes=7),
    "tables a text": lambda raw: raw.update(tables="all"),
    "another plan": lambda raw: raw.update(plan_digest="0" * 64),
    "more privacy claimed": lambda raw: raw["privacy"].update(epsilon="1/10"),
    "privacy gone": lambda raw: raw.pop("privacy"),
    "privacy flag flipped": lambda raw: raw.update(private=False),
    "privacy flag a text": lambda raw: raw.update(private="yes"),
    "labels renamed": lambda raw: raw["schema"]["attributes"][0].update(values=["Male", "Female"]),
    "a file outside": lambda raw: raw["checksums"].update({"../people.csv": "0" * 64}),
    "an absolute file": lambda raw: raw["checksums"].update({"/etc/passwd": "0" * 64}),
    "a file with a null": lambda raw: raw["checksums"].update({"a\0b": "0" * 64}),
    "a folder": lambda raw: raw["checksums"].update({"tables": "0" * 64}),
    "offset negative": lambda raw: raw["tables"][0].update(offset=-1),
    "file a number": lambda raw: raw["tables"][0].update(file=7),
}


@pytest.mark.parametrize("kind", MANIFESTS)
def test_show_notices_changed_manifests(refused, manifest, kind):
    manifest(MANIFESTS[kind])
    refused(["show", "published"], "get the release again")


@pytest.mark.parametrize("kind", ["cut", "a list", "not UTF-8", "nested too deep"])
def test_show_notices_unreadable_manifests(refused, desk, kind):
    path = desk / "published" / "manifest.json"
    contents = {"cut": path.read_bytes()[:-9], "a list": b"[]", "not UTF-8": b"\xff", "nested too deep": b"[" * 100_000}
    path.write_bytes(contents[kind])
    refused(["show", "published"], "manifest.json")


def test_show_reads_no_file_outside_the_release(refused, desk, manifest):
    outside = desk / "outside.parquet"
    shutil.copy(next((desk / "published" / "tables").glob("*-sex.parquet")), outside)
    for name in ("../outside.parquet", str(outside)):
        manifest(lambda raw, name=name: [e.update(file=name) for e in raw["tables"] if e["attributes"] == ["sex"]])
        refused(["show", "published", "sex"], "outside the release")
    link = desk / "published" / "tables" / "link.parquet"
    link.symlink_to(outside)
    manifest(lambda raw: [e.update(file="tables/link.parquet") for e in raw["tables"] if e["attributes"] == ["sex"]])
    refused(["show", "published", "sex"], "is a link that leaves the release")


def test_show_never_takes_one_table_for_another(refused, desk, manifest):
    manifest(swap_files)
    refused(["show", "published", "sex"], "another table")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (["shoe"], "marginal: 'shoe'"),
        (["sex*shoe"], "marginal: 'shoe'"),
        (["sex*sex"], "marginal"),
        (["sex*age*region"], "marginal: sex*age*region is not published"),
        ([""], "marginal"),
        (["sex*"], "marginal"),
        (["2-way"], "marginal"),
        (["sex", "--where", "sex=Other"], "where, sex: 'Other'"),
        (["sex", "--where", "age=1"], "where: 'age'"),
        (["sex", "--where", "shoe=1"], "where: 'shoe'"),
        (["sex", "--where", "Female"], "--where: 'Female' has no ="),
        (["sex", "--where", ""], "--where"),
        (["sex", "--where", "sex=Female", "--where", "sex=Female"], "where, sex"),
        (["total", "--where", "sex=Female"], "where: 'sex'"),
        (["--where", "sex=Female"], "marginal"),
        (["--sum"], "marginal"),
        (["sex*age*region", "--sum"], "marginal"),
        (["sex", "--sum", "--where", "sex=Other"], "where, sex"),
        (["sex", "--rows", "0"], "--rows"),
        (["sex", "--rows", "many"], "--rows"),
        (["sex", "age"], "age"),
    ],
    ids=" ".join,
)
def test_show_answers_only_what_it_can(refused, arguments, field):
    refused(["show", "published", *arguments], field)


# --------------------------------------------------------------------------------------------------- usage mistakes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["plan", *ASKED, "--epsilon"], "--epsilon"),
        (["publish"], "publish"),
        (["show"], "FOLDER"),
        (["schema"], "Usage"),
        (["schema", "check"], "SCHEMA"),
        ([], "Usage"),
        (["schema", "fix"], "fix"),
        (["--verbose"], "--verbose"),
        (["demo", "extra"], "extra"),
        (["plan", "x.yaml"], "x.yaml"),
    ],
    ids=" ".join,
)
def test_usage_mistakes_exit_with_2(refused, arguments, words):
    refused(arguments, words)


def test_messages_name_a_field_and_a_fix():
    """The form that all refusals share."""
    from hushcube.errors import BadInput

    assert re.fullmatch(r"[^:]+: .+\. Fix: .+\.", str(BadInput("field", "problem", "fix")))
