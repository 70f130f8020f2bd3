"""Range tables and queries through a release on disk: files, columns, labels, manifest, and the checks."""

import re
import shutil

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from helpers import MemoryEngine, label, random_codes, released
from hushcube import plan, release
from hushcube.bundle import table_files
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.manifest import manifest_text
from hushcube.bundle.writing import write
from hushcube.errors import BundleError, QueryError
from hushcube.model.attribute import Attribute
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from manifests import manifest_of
from ranged import every_variant, ranged_request, strategies

SCHEMA = Schema(
    (
        Attribute(name="sex", values=("F", "M")),
        Attribute(name="age", range=(20, 24), missing="unknown"),
        Attribute(name="grade", values=("low", "mid", "high"), ordered=True),
    ),
    "people",
)
WORDS = "prefix(age)*sex=2,grade,ranges(grade),queries"
MATRIX = [[1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1], [0] * 12]
QUERIES = QueryTable((0, 1), SCHEMA.attributes[:2], SparseRows.of(MATRIX, ["young women", "men", "nobody"]))
SOME = ("identity", "workload", "residual", "wavelet", "hierarchy", "fourier")
PUBLISHED = ["grade", "sex*age", "sex*prefix(age)", "ranges(grade)", "queries"]


def make_release(p, rows=200):
    return released(p, measure(p, MemoryEngine(random_codes(SCHEMA.sizes, rows)), entropy=SeededEntropy(5)))


def make_plans(**law):
    request = ranged_request(SCHEMA, WORDS, queries=QUERIES, **law)
    names = [name for name in strategies(request) if name in SOME]
    yield from every_variant(request, names, ["optimal"], ["gls", "none"])


@pytest.fixture(params=["one file each", "packs"])
def layout(request, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 1000 if request.param == "one file each" else 1)
    return request.param


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("forms") / "out"
    (p,) = every_variant(ranged_request(SCHEMA, WORDS, queries=QUERIES, epsilon=1), ["wavelet"], ["optimal"], ["gls"])
    write(make_release(p), folder)
    return folder


@pytest.fixture
def folder(written, tmp_path):
    return shutil.copytree(written, tmp_path / "out")


def entry_of(folder, word):
    (entry,) = (e for e in manifest_of(folder)["tables"] if e.get("form") == word)
    return entry


@pytest.mark.slow
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 20}], ids=str)
def test_what_is_read_is_what_was_written(tmp_path, layout, law):
    for number, p in enumerate(make_plans(**law)):
        published = make_release(p)
        write(published, tmp_path / str(number))
        read = open_bundle(tmp_path / str(number))
        assert list(read) == list(published) == PUBLISHED and len(read) == len(PUBLISHED)
        assert read.plan.count.digest == p.digest and read.plan.workload == p.workload
        for word in PUBLISHED:
            before, after = published.table(word), read.table(word)
            for name in ("values", "std_errors", "margins"):
                assert np.array_equal(getattr(before, name), getattr(after, name)), f"{label(p)} {word}"
            assert before.labels == after.labels and before.attributes == after.attributes
        measured = published.source.measurement().values, read.source.measurement().values
        assert all(map(np.array_equal, *measured)), label(p)
        shutil.rmtree(tmp_path / str(number))


def test_a_form_is_a_file_with_labelled_columns(written):
    entry = entry_of(written, "sex*prefix(age)")
    assert entry == {
        "attributes": ["sex", "age"],
        "form": "sex*prefix(age)",
        "file": "tables/0002-sex-prefix-age.parquet",
        "face": "unbiased",
        "cells": 12,
    }
    frame = pd.read_parquet(written / entry["file"])
    assert list(frame.columns) == ["sex", "prefix(age)", "value", "std_error", "quality"]
    ups = [f"up to {age}" for age in range(20, 25)] + ["unknown"]
    assert frame["sex"].astype(str).tolist() == ["F"] * 6 + ["M"] * 6
    assert frame["prefix(age)"].astype(str).tolist() == ups * 2
    table = open_bundle(written).table("sex*prefix(age)")
    assert frame["value"].tolist() == table.values.ravel().tolist()
    assert frame["std_error"].tolist() == table.std_errors.ravel().tolist()


def test_queries_are_a_file_with_their_names(written):
    entry = entry_of(written, "queries")
    assert entry["attributes"] == ["sex", "age"] and entry["cells"] == 3
    frame = pd.read_parquet(written / entry["file"])
    assert list(frame.columns) == ["query", "value", "std_error", "quality"]
    assert frame["query"].astype(str).tolist() == ["young women", "men", "nobody"]
    assert (frame["value"].iloc[2], frame["std_error"].iloc[2]) == (0, 0)


def test_duckdb_adds_the_cells_up_to_the_ranges(written):
    """Whoever opens the files without hushcube finds tables that fit each other."""
    files = {e.get("form", "*".join(e["attributes"])): written / e["file"] for e in manifest_of(written)["tables"]}

    def ask(expression, word, condition="true"):
        return duckdb.sql(f"SELECT {expression} FROM '{files[word]}' WHERE {condition}").fetchall()[0][0]

    young = ask("sum(value)", "sex*age", "sex = 'F' AND age IN ('20', '21')")
    assert ask("value", "sex*prefix(age)", "sex = 'F' AND \"prefix(age)\" = 'up to 21'") == pytest.approx(
        young, abs=1e-8
    )
    assert ask("value", "queries", "query = 'young women'") == pytest.approx(young, abs=1e-8)
    everyone = ask("sum(value)", "grade")
    assert ask("value", "ranges(grade)", "\"ranges(grade)\" = 'low to high'") == pytest.approx(everyone, abs=1e-8)


def test_every_file_is_listed_and_checked(written):
    manifest = manifest_of(written)
    files = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    assert files == {"manifest.json", *manifest["checksums"]}
    assert [e.get("form", "*".join(e["attributes"])) for e in manifest["tables"]] == PUBLISHED
    assert manifest["workload"] == ["prefix(age)*sex=2", "grade", "ranges(grade)", "queries"]


def test_slices_of_forms_are_parts_of_them(written):
    published = open_bundle(written)
    whole = published.table("sex*prefix(age)")
    part = published.table("sex*prefix(age)", where={"prefix(age)": ["up to 23", "unknown"], "sex": "M"})
    assert part.labels == (("M",), ("up to 23", "unknown")) and part.attributes == ("sex", "prefix(age)")
    assert np.array_equal(part.values, whole.values[1:, [3, 5]])
    assert np.array_equal(part.margins, whole.margins[1:, [3, 5]])
    assert (
        published.table("queries", where={"query": "men"}).values.tolist()
        == published.table("queries").values[1:2].tolist()
    )
    for where, problem in (
        ({"age": "20"}, "'age' is not an attribute of this table"),
        ({"prefix(age)": "20"}, "'20' is not one of its labels"),
        ({"prefix(age)": ["up to 20", "up to 20"]}, "twice"),
    ):
        with pytest.raises(QueryError, match=re.escape(problem)):
            published.table("prefix(age)*sex", where=where)


@pytest.mark.parametrize("word", ["prefix(age)", "ranges(age)*sex", "prefix(grade)", "prefix(nobody)", "sex*queries"])
def test_forms_that_were_not_asked_for_are_not_there(written, word):
    with pytest.raises(QueryError, match="marginal:"):
        open_bundle(written).table(word)


def test_cells_behind_queries_are_not_published(tmp_path):
    request = ranged_request(SCHEMA, "queries", queries=QUERIES, epsilon=1)
    for number, p in enumerate(every_variant(request, budgets=["optimal"], recoveries=["gls"])):
        published = make_release(p)
        write(published, tmp_path / str(number))
        read = open_bundle(tmp_path / str(number))
        assert list(read) == ["queries"], label(p)
        assert [path.name for path in (tmp_path / str(number) / "tables").iterdir()] == ["0000-queries.parquet"]
        assert np.array_equal(read.table("queries").values, published.table("queries").values)
        for source in (read, published):
            for names in (["sex", "age"], ["sex"], []):
                with pytest.raises(QueryError, match="not published"):
                    source.table(names)


# --------------------------------------------------------------------------------------------------------- the checks


def change_manifest(folder, change):
    manifest = manifest_of(folder)
    change(manifest)
    (folder / "manifest.json").write_text(manifest_text(manifest))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["tables"].pop(),
        lambda m: m["tables"].pop(2),
        lambda m: m["tables"][2].pop("form"),
        lambda m: m["tables"][2].update(form="prefix(age)"),
        lambda m: m["tables"][2].update(form="sex*age"),
        lambda m: m["tables"][2].update(form=7),
        lambda m: m["tables"][2].update(form=["sex*prefix(age)"]),
        lambda m: m["tables"][2].update(form=m["tables"][3]["form"]),
        lambda m: m["tables"][2].update(file=None),
        lambda m: m["tables"][1].update(form="sex*age"),
        lambda m: m["tables"].append({**m["tables"][2], "form": "ranges(age)"}),
        lambda m: m.update(plan_digest="0" * 64),
    ],
)
def test_a_manifest_that_does_not_fit_the_forms_is_refused(folder, change):
    open_bundle(folder)
    change_manifest(folder, change)
    with pytest.raises(BundleError, match=r"manifest\.json"):
        open_bundle(folder)


def test_a_form_is_never_read_from_another_file(folder):
    files = [entry["file"] for entry in manifest_of(folder)["tables"]]
    for file in (files[0], files[1], files[3], files[4], "plan.json", "tables/none.parquet"):
        change_manifest(folder, lambda m, file=file: m["tables"][2].update(file=file))
        with pytest.raises(BundleError, match=r"cannot be read, or holds another table|is missing"):
            open_bundle(folder, verify=False).table("prefix(age)*sex")
    change_manifest(folder, lambda m: m["tables"][2].update(file="../../etc/passwd"))
    with pytest.raises(BundleError, match="outside the release"):
        open_bundle(folder, verify=False).table("prefix(age)*sex")


def test_a_changed_or_missing_form_file_is_noticed(folder):
    path = folder / entry_of(folder, "sex*prefix(age)")["file"]
    table = pq.read_table(path)
    changed = table.set_column(2, "value", pa.array([0.0] * 12))
    pq.write_table(changed, path)
    with pytest.raises(BundleError, match="was changed after the release"):
        open_bundle(folder)
    pq.write_table(table.slice(0, 11), path)
    with pytest.raises(BundleError, match="holds another table"):
        open_bundle(folder, verify=False).table("prefix(age)*sex")
    path.unlink()
    with pytest.raises(BundleError, match="is missing"):
        open_bundle(folder)


# -------------------------------------------------------------------------------------------------------- odd requests


def test_more_than_a_thousand_tables_are_packed_beside_forms(tmp_path):
    attributes = [Attribute(name=f"a{i}", codes=2) for i in range(46)]
    schema = Schema((*attributes, Attribute(name="age", range=(0, 9))))
    p = plan(schema, "2-way,prefix(age)*a3", rho=1, neighbours="add-remove", strategy="residual")
    assert len(p.workload.published) == 1081
    data = pa.table({name: np.zeros(5, dtype=np.int64) for name in schema.names})
    published = release(p, data, out=tmp_path / "out", seed=1)
    assert sorted(f.name for f in (tmp_path / "out" / "tables").iterdir()) == [
        "1081-a3-prefix-age.parquet",
        "2-way-index.parquet",
        "2-way.parquet",
    ]
    form, carrier = published.table("a3*prefix(age)"), published.table("a3*age")
    np.testing.assert_allclose(form.values, carrier.values.cumsum(axis=1), atol=1e-8)
    assert "offset" not in entry_of(tmp_path / "out", "a3*prefix(age)")
    assert abs(form.values[0] - 5).max() < 12 * form.std_errors.max()


NUMBER_NAMES = ("value", "query", "std_error", "Value")


@pytest.mark.parametrize("other", NUMBER_NAMES)
def test_attributes_may_be_named_like_the_columns(tmp_path, layout, other):
    schema = Schema((Attribute(name=other, range=(0, 2)), Attribute(name="sex", values=("x", "y"))))
    words = f"prefix({other})*sex,sex,ranges({other}),{other}*sex"
    p = plan(
        schema,
        words,
        queries=([other], [[1, 0, 1], [0, 1, 0]]),
        epsilon=1,
        neighbours="add-remove",
        strategy="hierarchy",
    )
    published = release(p, pa.table({other: [0, 1, 2], "sex": ["x", "x", "y"]}), out=tmp_path / "out")
    memory = released(p.count, published.source.measurement())
    assert list(published) == list(memory)
    for word in published:
        assert np.array_equal(published.table(word).values, memory.table(word).values), word
    columns = pq.read_schema(tmp_path / "out" / entry_of(tmp_path / "out", f"prefix({other})*sex")["file"]).names
    assert columns == [f"prefix({other})", "sex", "value", "std_error", "quality"]
    assert pq.read_schema(tmp_path / "out" / entry_of(tmp_path / "out", "queries")["file"]).names[0] == "query"


def test_a_cell_axis_named_value_steps_aside(tmp_path):
    schema = Schema((Attribute(name="age", range=(0, 2)), Attribute(name="value", values=("x", "y"))))
    p = plan(schema, "prefix(age)*value", epsilon=1, neighbours="add-remove", strategy="wavelet")
    published = release(p, pa.table({"age": [0, 1, 2], "value": ["x", "x", "y"]}), out=tmp_path / "out")
    file = entry_of(tmp_path / "out", "prefix(age)*value")["file"]
    assert pq.read_schema(tmp_path / "out" / file).names == ["prefix(age)", "value", "value_", "std_error", "quality"]
    memory = released(p.count, published.source.measurement())
    assert np.array_equal(published.table("prefix(age)*value").values, memory.table("prefix(age)*value").values)


def test_hostile_labels_and_query_names_stay_inside_the_folder(tmp_path):
    labels = ("../../etc", "a/b", "\u202e", "a\nb", "'", "*", "x" * 300)
    schema = Schema((Attribute(name="../x", values=labels, ordered=True),))
    p = plan(
        schema,
        "ranges(../x)",
        queries=QueryTable((0,), schema.attributes, SparseRows.of(np.eye(7), labels)),
        rho=1,
        neighbours="add-remove",
        strategy="wavelet",
    )
    (tmp_path / "in").mkdir()
    release(p, pa.table({"../x": list(labels)}), out=tmp_path / "in" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    for path in (tmp_path / "in" / "out" / "tables").iterdir():
        assert re.fullmatch(r"[A-Za-z0-9-]*\.parquet", path.name) and len(path.name) < 100
    read = hc.open(tmp_path / "in" / "out")
    assert read.table("queries").labels == (labels,)
    assert read.table("ranges(../x)").labels[0][1] == "../../etc to a/b"
