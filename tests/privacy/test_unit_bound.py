"""Contribution bounding: whatever rows a person has, at most `max_rows` of them count, chosen uniformly."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from hushcube import Attribute, Schema
from hushcube.api import plan, release
from hushcube.errors import DataError
from hushcube.model.unit import Unit
from hushcube.private.engines import open_source

CELLS = 5


def schema(most, missing="error"):
    return Schema((Attribute(name="a", codes=CELLS), Attribute(name="b", codes=2)), "visits", Unit("id", most, missing))


def counted(data, most, missing="error"):
    marginals = [np.zeros((1, 0), np.int32), np.array([[0], [1]], np.int32), np.array([[0, 1]], np.int32)]
    counts = open_source(data).count(schema(most, missing), marginals)
    return counts, counts.tables(np.array([[0, 1]], np.int32))[0]


def table(ids, seed=0):
    rng = np.random.default_rng(seed)
    n = len(ids)
    return pa.table({"a": rng.integers(0, CELLS, n), "id": pa.array(ids), "b": rng.integers(0, 2, n)})


@pytest.mark.parametrize("most", [1, 4, 30])
def test_a_person_of_a_thousand_rows_moves_every_table_by_at_most_the_bound(most):
    rng = np.random.default_rng(1)
    others = [f"p{i}" for i in rng.integers(0, 50, 60)]
    few, _ = counted(table(others), 100)
    assert few.rows == 60 and few.dropped == 0
    small = table([f"p{i}" for i in range(60)])  # everybody else has one row, which always counts
    without, before = counted(small, most)
    crowd = table(["x; DROP TABLE t"] * 1_000, seed=2)
    with_all, after = counted(pa.concat_tables([small, crowd]), most)
    assert (with_all.rows, with_all.dropped) == (60 + most, 1_000 - most)
    assert np.abs(after - before).sum() == most and (after >= before).all()
    assert without.tables(np.array([[0]], np.int32)).sum() == 60


def test_the_tables_of_one_count_are_of_the_same_rows():
    counts, both = counted(table(["one"] * 500 + ["two"] * 500), 3)
    for axis, position in ((1, 0), (0, 1)):
        single = counts.tables(np.array([[position]], np.int32))[0]
        assert (both.sum(axis=axis) == single).all()


def test_the_choice_is_uniform_and_new_each_time():
    """2,000 people of 5 rows, of which 2 count: each row is kept 800 times, standard deviation 22."""
    people = 2_000
    data = pa.table(
        {"a": list(range(CELLS)) * people, "b": [0] * CELLS * people, "id": np.arange(people).repeat(CELLS)}
    )
    kept = counted(data, 2)[1].sum(axis=1)
    assert kept.sum() == 2 * people
    assert np.abs(kept - 800).max() < 6 * np.sqrt(people * 0.4 * 0.6)  # false alarm: 1e-8
    again = counted(data, 2)[1].sum(axis=1)
    assert (again != kept).any()  # all alike with a chance below 1e-6


def test_rows_of_nobody_are_refused_or_count_as_their_own():
    data = table(["p", None, "p", None, None])
    with pytest.raises(DataError, match="unit, column 'id'"):
        counted(data, 1)
    counts, _ = counted(data, 1, "own")
    assert (counts.rows, counts.dropped) == (4, 1)
    assert counted(data, 2, "own")[0].dropped == 0


@pytest.mark.parametrize(
    "ids", [[1, 1, 2], [1.5, 1.5, 2.0], [True, True, False], ["a", "a", "A"], ["\u00e9", "\u00e9", "e\u0301"]]
)
def test_ids_of_any_kind(ids):
    counts, _ = counted(table(ids), 1)
    assert (counts.rows, counts.dropped) == (2, 1)


def test_every_kind_of_source(tmp_path):
    data = table(["p", "q", "p", "p"])
    pa.csv.write_csv(data, tmp_path / "t.csv")
    pa.parquet.write_table(data, tmp_path / "t.parquet")
    for source in (data, data.to_pandas(), tmp_path / "t.csv", str(tmp_path / "t.parquet")):
        assert counted(source, 2)[0].dropped == 1
    empty, _ = counted(data.slice(0, 0), 2)
    assert (empty.rows, empty.dropped) == (0, 0)


def test_a_missing_column_is_named():
    with pytest.raises(DataError, match="unit 'id'"):
        counted(pa.table({"a": [0], "b": [0]}), 2)


def test_a_release_covers_the_rows_that_count_and_tells_the_owner_what_was_left_out(tmp_path):
    heard = []
    decided = plan(schema(4), "1-way", epsilon=1, neighbours="add-remove")
    assert decided.privacy.rows_per_person == 4
    published = release(decided, table(["p"] * 1_000 + ["q"]), out=tmp_path / "out", tell_owner=heard.append)
    assert heard == ["996 rows were left out: more than 4 of one 'id' (exact, for the owner of the data only)"]
    assert published.plan.schema.unit == Unit("id", 4)
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    assert "one value of `id`" in text and "at most 4 row(s)" in text and "996" not in text
