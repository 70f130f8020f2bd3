"""Verifying cubes: fresh ones hold whatever the noise, and numbers that are not those of the parts are found."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.api import plan_cube, release_cube
from hushcube.bundle.manifest import seal
from hushcube.bundle.reading import checksum
from hushcube.bundle.verify import verify
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema

SCHEMA = Schema(
    tuple(Attribute(name=name, codes=size) for name, size in (("a", 4), ("b", 4), ("c", 2))),
    measures=(Measure(name="days", bounds=(0, 3)),),
)
PERSON = pa.table({"a": [1], "b": [2], "c": [0], "days": [2]})


def publish(folder, seed, epsilon="0.001"):
    asked = plan_cube(
        SCHEMA, "1..2-way", ["sum(days)", "avg(days)"], epsilon=epsilon, neighbours="replace-one", strategy="identity"
    )
    release_cube(asked, PERSON, out=folder, seed=seed)
    return folder


@pytest.mark.parametrize("epsilon", ["0.001", "1", "100"])
def test_fresh_cubes_hold(tmp_path, epsilon):
    for seed in range(5):
        verdict = verify(publish(tmp_path / f"{seed}", seed, epsilon), allow_seeded=True)
        assert verdict.holds, [problem for check in verdict.checks for problem in check.problems]


@pytest.mark.parametrize("column", ["count", "sum(days)", "sum(days) std_error", "avg(days) high_95"])
@pytest.mark.parametrize("change", ["moved", "unknown"])
def test_a_changed_number_is_found(tmp_path, column, change):
    folder = publish(tmp_path / "cube", 1, "100")
    table = pq.read_table(folder / "tables" / "0000-a.parquet")
    at = table.schema.get_field_index(column)
    numbers = table[column].to_pylist()
    place = next(i for i, number in enumerate(numbers) if number is not None)
    numbers[place] = numbers[place] + 0.01 if change == "moved" else None
    table = table.set_column(at, table.schema.field(at), pa.array(numbers, pa.float64()))
    pq.write_table(table, folder / "tables" / "0000-a.parquet")
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["checksums"]["tables/0000-a.parquet"] = checksum(folder, "tables/0000-a.parquet")
    (folder / "manifest.json").write_bytes(seal(manifest, folder))
    problems = [problem for check in verify(folder, allow_seeded=True).checks for problem in check.problems]
    assert problems == ["tables/0000-a.parquet: does not hold the numbers of the parts"]
