"""Every unbiased number of a release has its flag beside it; verify recomputes it, and earlier releases have none."""

import re
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from hushcube.bundle import table_files
from manifests import manifest_of, resealed

SCHEMA = hc.Schema(
    [hc.Attribute("a", codes=4, ordered=True), hc.Attribute("b", codes=3), hc.Attribute("quality", values=["x", "y"])],
    quality={"caution": 0.1, "unreliable": 0.4},
    measures=[hc.Measure("pay", bounds=[0, 10]), hc.Measure("change", bounds=[-10, 10])],
)
WORDS = ["<=2-way", "prefix(a)"]
MEASURES = ["sum(pay)", "avg(pay)", "avg(change)"]


def rows(seed=7, number=400):
    draw = np.random.default_rng(seed)
    skewed = draw.choice(4, number, p=[0.7, 0.2, 0.08, 0.02])
    columns = {"a": skewed, "b": draw.integers(0, 3, number), "quality": draw.choice(["x", "y"], number)}
    return pa.table({**columns, "pay": draw.integers(0, 11, number), "change": draw.integers(-10, 11, number)})


@pytest.fixture(scope="module", params=["files", "packs"])
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("flags") / "published"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_files, "MOST_FILES", 1_000 if request.param == "files" else 3)
        plan = hc.plan(SCHEMA, WORDS, measures=MEASURES, epsilon=12, neighbours="add-remove", strategy="workload")
        hc.release(plan, rows(), out=folder, seed=1)
    return folder


@pytest.fixture
def copied(published, tmp_path):
    return shutil.copytree(published, tmp_path / "copy")


def table_file(folder, word):
    """The file of a table, and which of its rows are the table's."""
    for entry in manifest_of(folder)["tables"]:
        if entry["face"] == "unbiased" and entry.get("form", "*".join(entry.get("attributes", ()))) == word:
            return entry["file"], slice(None)
        if entry.get("pack") == word.count("*") + 1 and "(" not in word:
            index = pq.read_table(folder / entry["index"]).to_pylist()
            names = [f"attribute_{at + 1}" for at in range(entry["pack"])]
            place = next(line for line in index if "*".join(line[name] for name in names) == word)
            return entry["file"], slice(place["offset"], place["offset"] + place["cells"])
    raise AssertionError(word)


@pytest.mark.parametrize("word", ["a", "a*b", "a*quality", "prefix(a)"])
def test_flags_are_those_that_python_gives(published, word):
    release = hc.open(published)
    file, own = table_file(published, word)
    table = pq.read_table(published / file).to_pandas().iloc[own]
    start = "quality_" if word == "a*quality" and "way" not in file else "quality"
    sums = ("sum_pay", "avg_pay", "sum_change", "avg_change")
    columns = {"count": start, **{"{}({})".format(*each.split("_")): f"{each}_quality" for each in sums}}
    assert list(table.columns)[-5:] == list(columns.values())
    for quantity, column in columns.items():
        assert table[column].astype(str).tolist() == release.table(word, quantity).quality_words.ravel().tolist()
        assert pa.types.is_dictionary(pq.read_schema(published / file).field(column).type)


def test_all_classes_occur(published):
    found = set(hc.open(published).table("a*b").quality_words.ravel())
    assert found == {"reliable", "use with caution", "do not use"}


def test_verify_checks_them(published, copied):
    verdict = hc.verify(published, allow_seeded=True)
    (check,) = (check for check in verdict.checks if check.name == "quality")
    assert verdict.holds and check.checked > 20
    file, own = table_file(copied, "a*b")
    table = pq.read_table(copied / file)
    at = table.column_names.index("avg_pay_quality")
    words = table.column(at).to_pylist()
    first = own.start or 0
    words[first] = "reliable" if words[first] != "reliable" else "do not use"
    changed = table.set_column(at, table.field(at), pa.array(words).dictionary_encode().cast(table.field(at).type))
    pq.write_table(changed, copied / file, row_group_size=2**19)
    resealed(copied, manifest_of(copied), file)
    found = {check.name: check.problems for check in hc.verify(copied, allow_seeded=True).checks if not check.holds}
    assert found.keys() == {"quality"} and len(found["quality"]) == 1
    assert re.search(r"a = 0 and b = 0 is '.*', the flag of the avg\(pay\); its numbers give '", found["quality"][0])


def test_a_word_that_is_no_flag_is_found(copied):
    file, _ = table_file(copied, "prefix(a)")
    table = pq.read_table(copied / file)
    at = table.column_names.index("quality")
    pq.write_table(table.set_column(at, "quality", pa.array(["perfect"] * len(table))), copied / file)
    resealed(copied, manifest_of(copied), file)
    (check,) = (c for c in hc.verify(copied, allow_seeded=True).checks if c.name == "quality")
    assert check.problems == (f"{file}: 4 flags of count are not those of its numbers",)


def test_releases_of_format_5_have_none_and_are_renewed(copied, tmp_path):
    manifest = manifest_of(copied)
    manifest["format"] = 5
    manifest["columns"] = {quantity: names[:-1] for quantity, names in manifest["columns"].items()}
    files = sorted({entry["file"] for entry in manifest["tables"]})
    for file in files:
        table = pq.read_table(copied / file)
        flags = [name for name in table.column_names if re.fullmatch("(.*_)?quality_*", name) and name != "quality"]
        flags += ["quality"] * ("quality_" not in flags and "quality" in table.column_names)
        pq.write_table(table.drop_columns(flags), copied / file, row_group_size=2**19)
    resealed(copied, manifest, *files)
    verdict = hc.verify(copied, allow_seeded=True)
    assert verdict.holds and not any(check.name == "quality" for check in verdict.checks)
    assert hc.open(copied).table("a*b").quality_words[0, 0] == "reliable"
    hc.recover(copied, "nonnegative", out=tmp_path / "new")
    assert manifest_of(tmp_path / "new")["format"] == 7
    assert any(check.name == "quality" for check in hc.verify(tmp_path / "new", allow_seeded=True).checks)
    manifest["format"] = 6
    resealed(copied, manifest)
    assert not hc.verify(copied, allow_seeded=True).holds


def test_other_faces_have_none(copied):
    hc.recover(copied, "nonnegative")
    (entry,) = (e for e in manifest_of(copied)["tables"] if e["face"] == "nonnegative" and e.get("form") == "prefix(a)")
    assert pq.read_schema(copied / entry["file"]).names == ["prefix(a)", "value", "std_error"]
    assert hc.verify(copied, allow_seeded=True).holds


def test_names_of_measures_step_aside_for_no_flag(tmp_path):
    schema = hc.Schema(
        [hc.Attribute("a", codes=2)], measures=[hc.Measure("x", bounds=[0, 1]), hc.Measure("x_quality", bounds=[0, 1])]
    )
    plan = hc.plan(schema, "a", measures=["sum(x)", "sum(x_quality)"], rho=1, neighbours="add-remove")
    hc.release(plan, pa.table({"a": [0, 1], "x": [0, 1], "x_quality": [1, 1]}), out=tmp_path / "out")
    names = pq.read_schema(tmp_path / "out" / table_file(tmp_path / "out", "a")[0]).names
    assert names[2:] == [
        "value", "std_error", "sum_x", "sum_x_std_error", "sum_x_quality", "sum_x_quality_std_error",
        "quality", "sum_x_quality_", "sum_x_quality_quality",
    ]  # fmt: skip
    assert hc.verify(tmp_path / "out").holds


def test_tables_of_bounded_contributions_say_so_in_their_files(tmp_path):
    schema = hc.Schema([hc.Attribute("a", codes=2)], unit=hc.Unit("who", 2))
    plan = hc.plan(schema, "a", rho=1, neighbours="add-remove")
    hc.release(plan, pa.table({"a": [0, 1, 1], "who": ["x", "x", "x"]}), out=tmp_path / "out")
    for path in (tmp_path / "out" / "tables").iterdir():
        told = pq.read_schema(path).metadata[b"hushcube_bounded"].decode()
        assert "at most 2 rows of each 'who'" in told
