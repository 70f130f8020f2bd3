"""A release on disk: the round trip, the checks, packs, and files that open without hushcube."""

import gc
import json
import re
import threading
from itertools import combinations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from helpers import (
    MemoryEngine,
    all_tables,
    every_plan,
    label,
    make_plan,
    make_request,
    make_schema,
    random_codes,
    released,
)
from hushcube import plan, release
from hushcube.bundle import table_files, writing
from hushcube.bundle.folder import open_bundle, table_entries
from hushcube.bundle.manifest import manifest_text
from hushcube.bundle.writing import write
from hushcube.errors import BundleError, HushcubeError, OutputError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.samples import TITANIC, titanic

SIZES = (2, 3, 4)


def make_release(p, rows=200):
    engine = MemoryEngine(random_codes(p.schema.sizes, rows))
    return released(p, measure(p, engine, entropy=SeededEntropy(5)))


def plans():
    laws = ({"epsilon": 1}, {"rho": 20}, {"rho": 1, "neighbours": "replace-one"}, {"epsilon": 1, "delta": "1e-6"})
    for law in laws:
        yield from every_plan(make_request(SIZES, "<=2-way", **law), recoveries=("gls", "none"))


@pytest.fixture(params=["one file each", "packs"])
def layout(request, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 1000 if request.param == "one file each" else 3)
    return request.param


@pytest.fixture(scope="module", params=[1000, 3], ids=["one file each", "packs"])
def written(request, tmp_path_factory):
    """Releases of all plans, and their folders."""
    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(table_files, "MOST_FILES", request.param)
        made = [(make_release(p), tmp_path_factory.mktemp("written") / "out") for p in plans()]
        for published, folder in made:
            write(published, folder)
    return made


@pytest.mark.slow
def test_what_is_read_is_what_was_written(written):
    for published, folder in written:
        p, read = published.plan.count, open_bundle(folder)
        assert read.private is False and read.plan.count.digest == p.digest and list(read) == list(published)
        found = all_tables(p, read.source)
        for marginal, table in all_tables(p, published.source).items():
            assert np.array_equal(found[marginal], table), label(p)
        before, after = published.source.measurement(), read.source.measurement()
        assert (before.plan_digest, before.private) == (after.plan_digest, after.private)
        assert all(map(np.array_equal, before.values, after.values))
        assert [v.shape for v in before.values] == [v.shape for v in after.values]


@pytest.mark.slow
def test_standard_errors_on_disk_are_the_plans_predictions(written):
    for published, folder in written:
        p, manifest = published.plan.count, json.loads((folder / "manifest.json").read_text())
        for entry in table_entries(folder, manifest):
            marginal = p.schema.marginal(entry["attributes"])
            rows = pq.read_table(folder / entry["file"])
            errors = rows.column("std_error").slice(entry.get("offset", 0), entry["cells"]).to_numpy()
            predicted = np.broadcast_to(np.sqrt(p.errors.cell_variance_table(marginal)), p.schema.shape(marginal))
            assert errors == pytest.approx(predicted.ravel(), rel=1e-12), label(p)


def test_a_measurement_recovers_the_same_tables(tmp_path):
    p = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")
    published = make_release(p)
    write(published, tmp_path / "out")
    again = released(p, open_bundle(tmp_path / "out").source.measurement())
    found = all_tables(p, again.source)
    for marginal, table in all_tables(p, published.source).items():
        assert np.array_equal(found[marginal], table)


def test_every_file_is_listed_and_nothing_else_is_there(tmp_path, layout):
    p = make_plan(make_request(SIZES, "<=2-way", rho=1), "residual")
    write(make_release(p), tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {"manifest.json", *manifest["checksums"]}
    assert {entry["file"] for entry in manifest["tables"]} <= manifest["checksums"].keys()
    assert manifest.keys() == {
        "format", "hushcube", "name", "private", "warning", "privacy", "columns", "parts", "measures", "plan_digest",
        "bounds", "workload", "schema", "faces", "checksums", "sizes", "digest", "tables",
    }  # fmt: skip
    assert manifest["columns"] == {"count": ["value", "std_error", "quality"]}
    part = manifest["parts"]["count"]
    assert part.keys() == {"privacy", "strategy", "noise", "plan_digest", "measurements"}
    packed = {"pack", "file", "index", "tables", "cells", "face"}
    for entry in manifest["tables"]:
        assert entry.keys() == (packed if layout == "packs" else {"attributes", "file", "face", "cells"})
    for entry in table_entries(tmp_path / "out", manifest):
        extra = {"offset"} if layout == "packs" else set()
        assert entry.keys() == {"attributes", "file", "face", "cells"} | extra
        assert entry["face"] == "unbiased"
    assert Schema.from_yaml((tmp_path / "out" / "schema.yaml").read_text()) == p.schema


def test_packs_are_one_file_for_each_order(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    monkeypatch.setattr(table_files, "_CHUNK", 8)  # so that a table's rows start in the middle of many row groups
    p = make_plan(make_request((2, 3, 2, 3, 2), "<=3-way", rho=1), "residual")
    published = make_release(p)
    write(published, tmp_path / "out")
    found = sorted(path.name for path in (tmp_path / "out" / "tables").iterdir())
    assert found == sorted(f"{order}-way{part}.parquet" for order in range(4) for part in ("", "-index"))
    read = open_bundle(tmp_path / "out")
    for name in published:
        assert np.array_equal(read.table(name).values, published.table(name).values)
    frame = pd.read_parquet(tmp_path / "out" / "tables" / "2-way.parquet")
    assert list(frame.columns) == ["attribute_1", "label_1", "attribute_2", "label_2", "value", "std_error", "quality"]
    chosen = frame[(frame.attribute_1 == "a1") & (frame.attribute_2 == "a3")]
    assert chosen.label_1.astype(str).tolist() == [str(i) for i in range(3) for _ in range(3)]
    assert chosen.label_2.astype(str).tolist() == [str(i) for _ in range(3) for i in range(3)]
    assert chosen.value.to_numpy() == pytest.approx(published.table("a1*a3").values.ravel())


def test_labels_that_attributes_share_are_written_as_codes(tmp_path, monkeypatch):
    """A text that is twice in a dictionary makes Parquet's writer spell out every label of the file."""
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    labels = {"a": ["yes", "no"], "b": ["no", "yes", "maybe"], "c": ["maybe", "no"]}
    attributes = tuple(Attribute(name, values=values) for name, values in labels.items())
    made = plan(Schema(attributes), "<=2-way", rho=1, neighbours="add-remove").count
    write(make_release(made), tmp_path / "out")
    pack = pq.ParquetFile(tmp_path / "out" / "tables" / "2-way.parquet")
    columns = [pack.metadata.row_group(0).column(number) for number in range(4)]
    assert [column.path_in_schema for column in columns] == ["attribute_1", "label_1", "attribute_2", "label_2"]
    assert all(column.has_dictionary_page for column in columns)
    ordered = ("ac", "ab", "bc")  # by shape
    expected = [(x, p, y, q) for x, y in ordered for p in labels[x] for q in labels[y]]
    assert [tuple(row.values())[:4] for row in pack.read().to_pylist()] == expected
    assert hc.verify(tmp_path / "out", allow_seeded=True).holds


def test_measurements_of_a_large_release_are_written_beside_its_tables(layout, tmp_path, monkeypatch):
    made = make_plan(make_request((2, 3, 5, 3), "<=3-way", rho=1), "residual")
    published, plain = make_release(made), tmp_path / "plain"
    write(published, plain)
    monkeypatch.setattr(writing, "_WORTH", 0)
    monkeypatch.setattr(writing, "LONGEST_RUN", 8)
    threads = set()
    own = writing._write_measurement

    def watched(*given, **options):
        threads.add(threading.current_thread())
        own(*given, **options)

    monkeypatch.setattr(writing, "_write_measurement", watched)
    write(published, tmp_path / "out")
    assert threading.main_thread() not in threads
    one, other = (json.loads((folder / "manifest.json").read_text()) for folder in (plain, tmp_path / "out"))
    assert one["checksums"].keys() == other["checksums"].keys()
    found = open_bundle(tmp_path / "out").source.measurement().values
    assert all(map(np.array_equal, found, published.source.measurement().values))
    assert hc.verify(tmp_path / "out", allow_seeded=True).holds


def test_a_failure_beside_the_tables_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_WORTH", 0)

    def full(*_given, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writing, "_write_measurement", full)
    with pytest.raises(HushcubeError, match="no space left on device"):
        write(make_release(make_plan(make_request(SIZES, "<=2-way", rho=1), "residual")), tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["files", "packs"])
def test_a_large_table_is_written_in_pieces(layout, tmp_path, monkeypatch):
    """So that memory holds the columns of a few cells, not of the largest table."""
    monkeypatch.setattr(table_files, "MOST_FILES", 1_000 if layout == "files" else 3)
    monkeypatch.setattr(table_files, "_CHUNK", 8)
    published = make_release(make_plan(make_request((2, 3, 5, 3), "cube", epsilon=1), "bmax"))
    write(published, tmp_path / "out")
    for path in (tmp_path / "out" / "tables").glob("*.parquet"):
        if "index" not in path.name:
            found = pq.ParquetFile(path)
            assert max(found.metadata.row_group(i).num_rows for i in range(found.num_row_groups)) <= 8
            assert not any(field.nullable for field in found.schema_arrow)
    read = open_bundle(tmp_path / "out")
    for name in published:
        assert read.table(name).values == pytest.approx(published.table(name).values, rel=1e-12)
    assert hc.verify(tmp_path / "out", allow_seeded=True).holds


def test_more_than_a_thousand_tables_are_packed(tmp_path):
    schema = make_schema((2,) * 46)
    p = plan(schema, "2-way", rho=1, neighbours="add-remove", strategy="residual")
    assert len(p.workload) == 1035
    data = pa.table({name: np.zeros(5, dtype=np.int64) for name in schema.names})
    published = release(p, data, out=tmp_path / "out")
    assert {path.name for path in (tmp_path / "out" / "tables").iterdir()} == {"2-way.parquet", "2-way-index.parquet"}
    table = published.table("a3*a45")
    assert abs(table.values - [[5, 0], [0, 0]]).max() < 8 * table.std_errors.max()


# ------------------------------------------------------------------------------------------------- without hushcube


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
def test_duckdb_and_pandas_open_the_tables_and_they_add_up(tmp_path, law):
    p = plan(TITANIC, "<=2-way", neighbours="add-remove", **law)
    release(p, titanic(), out=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    files = {tuple(e["attributes"]): tmp_path / "out" / e["file"] for e in manifest["tables"]}
    frame = pd.read_parquet(files["class", "survived"])
    assert list(frame.columns) == ["class", "survived", "value", "std_error", "quality"]
    assert frame["class"].astype(str).tolist() == ["1st", "1st", "2nd", "2nd", "3rd", "3rd", "crew", "crew"]
    by_class = frame.groupby("class", observed=True)["value"].sum()
    for pair in ("sex", "age", "survived"):
        rolled = duckdb.sql(f"SELECT class, sum(value) AS v FROM '{files['class', pair]}' GROUP BY ALL").fetchall()
        assert dict(rolled) == pytest.approx(by_class.to_dict(), abs=1e-8)
    one_way = duckdb.sql(f"SELECT class, value FROM '{files[('class',)]}'").fetchall()
    assert dict(one_way) == pytest.approx(by_class.to_dict(), abs=1e-8)
    totals = {pd.read_parquet(path)["value"].sum() for path in files.values()}
    assert max(totals) - min(totals) < 1e-8
    assert not pd.read_parquet(files["class", "sex"]).isna().any().any()


# ------------------------------------------------------------------------------------------------------- odd names


@pytest.mark.parametrize(
    "names", [("value", "std_error"), ("value", "value_", "value__"), ("Value", "VALUE"), ("std_error", "Quality")]
)
def test_attributes_may_be_named_like_the_number_columns(tmp_path, layout, names):
    schema = Schema(tuple(Attribute(name=name, values=("x", "y")) for name in (*names, "sex")))
    p = plan(schema, "cube", epsilon=1, neighbours="add-remove", strategy="identity")
    data = pa.table({name: ["x", "x", "y"] for name in schema.names})
    published = release(p, data, out=tmp_path / "out")
    memory = released(p.count, published.source.measurement())
    for word in published:
        assert np.array_equal(published.table(word).values, memory.table(word).values)
    if layout == "one file each":
        manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
        (entry,) = (e for e in manifest["tables"] if e["attributes"] == list(schema.names))
        columns = pq.read_schema(tmp_path / "out" / entry["file"]).names
        assert columns[:-3] == list(schema.names)
        assert len({name.casefold() for name in columns[-3:]} | {n.casefold() for n in names}) == 3 + len(
            {n.casefold() for n in names}
        )
        for column, word in zip(columns[-3:], ("value", "std_error", "quality"), strict=True):
            assert re.fullmatch(f"{word}_*", column)


HOSTILE = (
    "../../etc",
    "a/b",
    "..",
    "C-drive",
    "CON",
    "sex; DROP TABLE x",
    "a.b",
    "😀",
    "x" * 200,
    "<script>",
    "a\u202eb",
    "NULL",
)


def test_hostile_names_and_labels_stay_inside_the_folder(tmp_path, layout):
    labels = ("", *HOSTILE, "a\nb", "a\x00b", "'", '"', "\\", "*", ",", "=")[1:]
    schema = Schema(tuple(Attribute(name=name, values=labels) for name in HOSTILE), "../evil `x`")
    p = plan(schema, "1-way,../../etc*😀", rho=1, neighbours="add-remove", strategy="workload")
    data = pa.table({name: list(labels) for name in HOSTILE})
    (tmp_path / "in").mkdir()
    published = release(p, data, out=tmp_path / "in" / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert [path.name for path in (tmp_path / "in").iterdir()] == ["out"]
    for path in (tmp_path / "in" / "out" / "tables").iterdir():
        assert re.fullmatch(r"[A-Za-z0-9-]*\.parquet", path.name) and len(path.name) < 100
    assert published.table("😀").labels == (labels,)
    assert published.table(["../../etc", "😀"]).values.shape == (len(labels), len(labels))
    if layout == "one file each":
        manifest = json.loads((tmp_path / "in" / "out" / "manifest.json").read_text())
        (entry,) = (e for e in manifest["tables"] if e["attributes"] == ["😀"])
        assert pq.read_table(tmp_path / "in" / "out" / entry["file"]).column(0).to_pylist() == list(labels)


# ------------------------------------------------------------------------------------------------------- the checks


@pytest.fixture
def folder(tmp_path):
    p = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")
    write(make_release(p), tmp_path / "out")
    return tmp_path / "out"


def test_checksums_are_verified_unless_told_otherwise(folder):
    (folder / "PRIVACY.md").write_text((folder / "PRIVACY.md").read_text() + "and more\n")
    with pytest.raises(BundleError, match=r"PRIVACY\.md: was changed"):
        open_bundle(folder)
    open_bundle(folder, verify=False)


def test_measurements_are_checked_when_read(folder):
    path = folder / "measurements" / "count.parquet"
    for content in (pa.table({"value": [1, 2, 3]}), pa.table({"other": [1]})):
        pq.write_table(content, path)
        with pytest.raises(BundleError, match=r"measurements/count\.parquet"):
            open_bundle(folder, verify=False).source.measurement()
    path.unlink()
    with pytest.raises(BundleError, match=r"measurements/count\.parquet"):
        open_bundle(folder, verify=False).source.measurement()


def test_a_pack_is_never_read_at_the_wrong_place(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_FILES", 3)
    p = make_plan(make_request((2, 2, 2), "<=2-way", epsilon=1), "workload")
    write(make_release(p), tmp_path / "out")
    path = tmp_path / "out" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["tables"] = table_entries(tmp_path / "out", manifest)
    entry = next(e for e in manifest["tables"] if e["attributes"] == ["a0", "a1"])
    for offset in (2, 4, 10**9, entry["offset"] + 1):
        entry["offset"] = offset
        path.write_text(manifest_text(manifest))
        with pytest.raises(BundleError, match="another table"):
            open_bundle(tmp_path / "out").table("a0*a1")


def test_an_existing_folder_is_never_touched(folder):
    p = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")
    before = (folder / "manifest.json").read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        write(make_release(p), folder)
    assert (folder / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("worth", [writing._WORTH, 0], ids=["small", "large"])
def test_a_failure_while_writing_leaves_nothing(tmp_path, layout, worth, monkeypatch):
    """Neither files nor threads."""
    monkeypatch.setattr(writing, "_WORTH", worth)
    monkeypatch.setattr(table_files, "_CHUNK", 8)
    before = threading.active_count()
    p = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")

    def fail(stage, share):
        raise OSError(5, "Input/output error")

    with pytest.raises(HushcubeError, match="nothing was published"):
        write(make_release(p), tmp_path / "out", progress=fail)
    with pytest.raises(KeyboardInterrupt):
        write(make_release(p), tmp_path / "out", progress=lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    assert list(tmp_path.iterdir()) == []
    gc.collect()  # generators that nobody goes on with end with what refers to them
    assert threading.active_count() <= before


def test_a_folder_that_turns_up_meanwhile_is_not_overwritten(tmp_path):
    p = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")

    def someone_else(stage, share):
        (tmp_path / "out").mkdir(exist_ok=True)
        (tmp_path / "out" / "theirs").touch()

    with pytest.raises(HushcubeError, match="nothing was published"):
        write(make_release(p), tmp_path / "out", progress=someone_else)
    assert [path.name for path in tmp_path.rglob("*")] == ["out", "theirs"]


def test_longest_names_work(tmp_path):
    p = make_plan(make_request((2,), "1-way", epsilon=1), "workload")
    write(make_release(p), tmp_path / ("x" * 255))
    assert len(hc.open(tmp_path / ("x" * 255))) == 1


# --------------------------------------------------------------------------------------------------- the statement


@pytest.mark.parametrize(
    ("law", "words"),
    [
        ({"epsilon": "0.5"}, ["epsilon = 0.5", "factor of at most exp(0.5)", "exact discrete Laplace noise"]),
        ({"rho": "0.5"}, ["rho = 0.5", "zero-concentrated", "exact discrete Gaussian noise"]),
        ({"epsilon": 1, "delta": "1e-6"}, ["epsilon = 1, delta = 1e-06", "up to a probability of 1e-06"]),
    ],
)
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_privacy_statement_says_what_is_promised(tmp_path, law, words, neighbours):
    p = plan(make_schema(SIZES), "1-way", neighbours=neighbours, rows_per_person=3, **law).count
    write(make_release(p), tmp_path / "out")
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    for word in [*words, neighbours, "at most 3 rows", "NOT PRIVATE", "public"]:
        assert word in text
    assert ("number of people is public" in text) == (neighbours == "replace-one")


# ------------------------------------------------------------------------------------------------- roll-ups and sums


def subsets(names):
    return [c for k in range(len(names) + 1) for c in combinations(names, k)]


@pytest.mark.slow
def test_rollups_of_every_published_table_agree_and_know_their_variance():
    for law in ({"epsilon": 1}, {"rho": 1}, {"rho": 30}):
        for p in every_plan(make_request(SIZES, "a0*a1,a1*a2", **law), recoveries=("gls", "none")):
            published = make_release(p)
            for names in (("a0", "a1"), ("a1", "a2")):
                whole = published.table(names)
                for kept in subsets(names):
                    rolled = published.table(kept)
                    assert rolled.attributes == kept
                    summed = tuple(axis for axis, name in enumerate(names) if name not in kept)
                    source = published.parts["count"]._published(published.schema.marginal(kept))
                    if p.recovery != "none" or source == published.schema.marginal(names):
                        assert rolled.values == pytest.approx(whole.values.sum(axis=summed), abs=1e-8)
                    for cell in np.ndindex(rolled.values.shape):
                        axes = dict(zip(published.schema.marginal(kept), cell, strict=True))
                        weights = np.zeros(p.schema.shape(source))
                        weights[tuple(axes.get(i, slice(None)) for i in source)] = 1.0
                        variance = p.errors.sum_variance(source, weights)
                        assert rolled.std_errors[cell] ** 2 == pytest.approx(variance, rel=1e-9), label(p)


@pytest.mark.slow
def test_sums_of_cells_have_the_brute_force_variance():
    from helpers import Dense

    random = np.random.default_rng(3)
    for law in ({"epsilon": 1}, {"rho": 30}):
        for neighbours in ("add-remove", "replace-one"):
            for p in every_plan(make_request(SIZES, "a0*a1,a1*a2,a2", neighbours=neighbours, **law)):
                published, dense = make_release(p), Dense(p)
                for marginal in ((0, 1), (1, 2), (2,)):
                    names = [p.schema.names[i] for i in marginal]
                    covariance = dense.covariance(marginal)
                    where = {}
                    mask = np.ones(())
                    for i, name in zip(marginal, names, strict=True):
                        kept = random.random(SIZES[i]) < 0.6
                        kept[random.integers(SIZES[i])] = True
                        where[name] = [str(at) for at in np.flatnonzero(kept)]
                        mask = np.multiply.outer(mask, kept.astype(float))
                    estimate = published.estimate(names, where)
                    values = published.parts["count"]._values(marginal, published.source)
                    assert estimate.value == pytest.approx(float((values * mask).sum()), abs=1e-8)
                    brute = float(mask.ravel() @ covariance @ mask.ravel())
                    assert estimate.std_error**2 == pytest.approx(brute, rel=1e-7, abs=1e-9), label(p)
                    assert estimate.low <= estimate.value <= estimate.high
                    cells = np.broadcast_to(p.errors.cell_variance_table(marginal), values.shape).ravel()
                    assert cells == pytest.approx(np.diag(covariance), rel=1e-7, abs=1e-9)


def test_slices_are_parts_of_tables():
    p = make_plan(make_request(SIZES, "<=3-way", epsilon=1), "workload")
    published = make_release(p)
    whole = published.table("a0*a1*a2")
    part = published.table("a0*a1*a2", where={"a1": ["2", "0"], "a2": "3"})
    assert part.labels == (("0", "1"), ("2", "0"), ("3",))
    for name in ("values", "std_errors", "margins"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[:, [2, 0], 3:])
    assert np.array_equal(whole.slice({"a0": "1"}).values, whole.values[1:])
