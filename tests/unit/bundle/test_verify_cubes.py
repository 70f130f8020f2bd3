"""Verifying cubes: fresh ones hold whatever the noise, and numbers that are not those of the parts are found."""

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hushcube as hc
from datasets import EARLIER
from hushcube import plan, release
from hushcube.bundle.manifest import seal
from hushcube.bundle.reading import checksum
from hushcube.bundle.tables import safe_names
from hushcube.bundle.verify import verify
from hushcube.errors import BadInput, BundleError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema

SCHEMA = Schema(
    tuple(Attribute(name=name, codes=size) for name, size in (("a", 4), ("b", 4), ("c", 2))),
    measures=(Measure(name="days", bounds=(0, 3)),),
)
PERSON = pa.table({"a": [1], "b": [2], "c": [0], "days": [2]})


def publish(folder, seed, epsilon="0.001"):
    asked = plan(
        SCHEMA,
        "1..2-way",
        measures=["sum(days)", "avg(days)"],
        epsilon=epsilon,
        neighbours="replace-one",
        strategy="identity",
    )
    release(asked, PERSON, out=folder, seed=seed)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", ["0.001", "1", "100"])
def test_fresh_cubes_hold(tmp_path, epsilon):
    for seed in range(5):
        verdict = verify(publish(tmp_path / f"{seed}", seed, epsilon), allow_seeded=True)
        assert verdict.holds, [problem for check in verdict.checks for problem in check.problems]


def changed(folder, name, column, change):
    """Change the first known number of a column, and seal the release again."""
    table = pq.read_table(folder / name)
    at = table.schema.get_field_index(column)
    numbers = table[column].to_pylist()
    place = next(i for i, number in enumerate(numbers) if number is not None)
    numbers[place] = numbers[place] + 0.01 if change == "moved" else None
    field = table.schema.field(at).with_nullable(True)
    pq.write_table(table.set_column(at, field, pa.array(numbers, pa.float64())), folder / name)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["checksums"][name] = checksum(folder, name)
    (folder / "manifest.json").write_bytes(seal(manifest, folder))
    return {check.name: check.problems for check in verify(folder, allow_seeded=True).checks if check.problems}


@pytest.mark.parametrize(
    ("column", "checks"),
    [
        ("value", {"measurements", "unbiased: sums"}),
        ("std_error", {"errors"}),
        ("sum_days", {"measurements", "sum(days): sums"}),
        ("sum_days_std_error", {"errors"}),
        ("avg_days", {"measurements"}),
        ("avg_days_low", {"measurements"}),
        ("avg_days_high", {"measurements"}),
    ],
)
@pytest.mark.parametrize("change", ["moved", "unknown"])
def test_a_changed_number_is_found(tmp_path, column, checks, change):
    folder = publish(tmp_path / "cube", 1, "100")
    name = next(path.relative_to(folder).as_posix() for path in folder.glob("tables/*-a.parquet"))
    problems = changed(folder, name, column, change)
    assert checks <= problems.keys()
    told = [problem for each in problems.values() for problem in each]
    assert any(problem.startswith(f"{name}: ") for problem in told)


def test_another_file_of_measurements_is_found(tmp_path):
    """Sealed again, and with numbers of its own."""
    folder, other = publish(tmp_path / "cube", 1, "1"), publish(tmp_path / "other", 2, "1")
    name = "measurements/sum_days.parquet"
    (folder / name).write_bytes((other / name).read_bytes())
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["checksums"][name] = checksum(folder, name)
    (folder / "manifest.json").write_bytes(seal(manifest, folder))
    problems = {check.name: check.problems for check in verify(folder, allow_seeded=True).checks if check.problems}
    assert problems.keys() == {"measurements"} and "the sum(days), but the measurements give" in str(problems)


@pytest.mark.parametrize("field", ["columns", "parts", "measures", "plan_digest", "privacy", "workload", "schema"])
def test_a_manifest_that_says_otherwise_is_found(tmp_path, field):
    folder = publish(tmp_path / "cube", 1, "100")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest[field] = type(manifest[field])()
    (folder / "manifest.json").write_bytes(seal(manifest, folder))
    problems = {check.name: check.problems for check in verify(folder, allow_seeded=True).checks if check.problems}
    assert f"manifest.json: `{field}` does not say what plan.json says" in problems["files"]
    with pytest.raises(BundleError):
        hc.open(folder)


@pytest.mark.parametrize("column", ["count", "avg(days)", "avg(days) high_95", "sum(cost)", "sum(cost) std_error"])
@pytest.mark.parametrize("change", ["moved", "unknown"])
def test_a_changed_number_of_an_earlier_cube_is_found(tmp_path, column, change):
    folder = shutil.copytree(EARLIER / "cube-3", tmp_path / "cube")
    assert verify(folder, allow_seeded=True).holds and not verify(folder).holds
    problems = changed(folder, "tables/0001-ward.parquet", column, change)
    assert problems == {"cube tables": ("tables/0001-ward.parquet: does not hold the numbers of the parts",)}


def test_names_of_measures_need_no_quotes(tmp_path):
    """They are safe and distinct, and step aside for attributes."""
    names = ["Wage (EUR)", "wage/eur", "x", "x_std_error", "日", "2nd"]
    attributes = (Attribute(name="sum_x", codes=2), Attribute(name="VALUE", codes=2))
    schema = Schema(attributes, measures=tuple(Measure(name=name, bounds=(0, 3)) for name in names))
    asked = plan(schema, "2-way", measures=[f"avg({n})" for n in names], rho=1, neighbours="add-remove")
    words = ["wage_eur", "wage_eur_2", "x", "x_std_error_2", "measure", "2nd"]
    assert list(safe_names(asked).values()) == words
    data = pa.table({"sum_x": [0, 1], "VALUE": [1, 0], **{name: [1, 2] for name in names}})
    found = release(asked, data, out=tmp_path / "out", seed=1)
    assert verify(tmp_path / "out", allow_seeded=True).holds
    [file] = (tmp_path / "out" / "tables").iterdir()
    table = pq.read_table(file)
    assert len(set(map(str.casefold, table.column_names))) == len(table.column_names)
    assert table.column_names[:12] == [
        *(
            "sum_x",
            "sum_x_code",
            "VALUE",
            "VALUE_code",
            "value_",
            "std_error",
            "sum_wage_eur",
            "sum_wage_eur_std_error",
        ),
        *("avg_wage_eur", "avg_wage_eur_low", "avg_wage_eur_high", "sum_wage_eur_2"),
    ]
    for name, word in zip(names, words, strict=True):
        column = "sum_x_" if word == "x" else f"sum_{word}"
        assert table[column].to_numpy() == pytest.approx(found.table("sum_x*VALUE", f"sum({name})").values.ravel())


def test_a_packed_cube_is_what_was_in_memory(tmp_path, monkeypatch):
    asked = plan(SCHEMA, "<=2-way", measures="avg(days)", rho=50, neighbours="add-remove")
    memory = release(asked, PERSON, seed=3)
    monkeypatch.setattr("hushcube.bundle.table_files.MOST_FILES", 3)
    monkeypatch.setattr("hushcube.bundle.table_files._CHUNK", 8)
    memory.save(tmp_path / "out")
    assert verify(tmp_path / "out", allow_seeded=True).holds
    assert (tmp_path / "out" / "tables" / "2-way-index.parquet").exists()
    opened = hc.open(tmp_path / "out")
    for word in memory:
        for what in ("count", "sum(days)", "avg(days)"):
            one, other = memory.table(word, what), opened.table(word, what)
            for numbers in ("values", "std_errors", "low", "high"):
                expected = getattr(one, numbers)
                assert np.allclose(getattr(other, numbers), expected, rtol=1e-9, atol=1e-9, equal_nan=True)


def test_sums_of_cells_of_every_quantity(tmp_path):
    asked = plan(SCHEMA, "a*b", measures="avg(days)", epsilon=3, neighbours="add-remove", strategy="identity")
    found = release(asked, pa.concat_tables([PERSON] * 200), seed=1)
    where = {"a": ["0", "1"], "b": "2"}
    counts, sums = found.estimate("a*b", where), found.estimate("a*b", where, "sum(days)")
    assert counts.value == pytest.approx(200, abs=40) and sums.value == pytest.approx(400, abs=90)
    assert sums.value == pytest.approx(found.table("a*b", "sum(days)", where).values.sum())
    average = found.estimate("a*b", where, "avg(days)")
    assert average.value == pytest.approx(sums.value / counts.value) and average.low < average.value < average.high
    assert np.isnan(found.estimate("a*b", {"a": "3", "b": "3"}, "avg(days)").value)
    with pytest.raises(BadInput, match="'w' is not in the schema"):
        found.estimate("a*b", where, "sum(w)")
