"""Contribution bounding: whatever rows a person has, at most `max_rows` of them count, chosen uniformly."""

import re

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from engine_cases import one_person_of
from hushcube import Attribute, Schema, plan, release
from hushcube.errors import DataError
from hushcube.model.privacy import Unit
from hushcube.private.engines import bounding, open_source
from hushcube.private.engines.source import Opened
from hushcube.verbs.charging import NOBODY_COUNTS

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


@pytest.mark.parametrize("unsteady", [False, True])
def test_every_set_of_rows_is_as_likely(unsteady):
    """20,000 people of 5 rows keep each of the 10 pairs 2,000 times: chi-square of 9 degrees, false alarm 1e-8."""
    people = 20_000
    data = pa.table(
        {"a": list(range(CELLS)) * people, "b": [0] * CELLS * people, "id": np.arange(people).repeat(CELLS)}
    )
    opened, dropped = bounding.bounded(opened_table(data, steady=not unsteady), Unit("id", 2), ["a", "id"])
    assert (opened.names, opened.rows, dropped) == (("a", "id"), 2 * people, 3 * people)
    sets = opened.relation.aggregate("sum(1 << c0) AS kept", "c2").aggregate("kept, count(*) AS n", "kept").fetchall()
    assert sorted(bin(int(kept)).count("1") for kept, _ in sets) == [2] * 10
    assert sum((n - 2_000) ** 2 / 2_000 for _, n in sets) < 56


def test_equal_rows_count_as_often_as_they_are():
    """3 rows alike and 1 other, of which 1 counts: the other one in a quarter of 20,000 people; false alarm 1e-8."""
    people = 20_000
    data = pa.table({"a": [0, 1, 0, 0] * people, "b": [0] * 4 * people, "id": np.arange(people).repeat(4)})
    kept = counted(data, 1)[1].sum(axis=1)
    assert kept.sum() == people and abs(kept[1] - people / 4) < 5.7 * np.sqrt(people * 3 / 16)


@pytest.mark.parametrize("unsteady", [False, True])
@pytest.mark.parametrize("kind", ["integers", "texts"])
def test_with_the_same_keys_nobody_changes_what_is_kept_of_others(monkeypatch, kind, unsteady):
    keys = np.random.default_rng(5).bytes(16)
    rng = np.random.default_rng(6)
    ids = rng.integers(0, 40, 400)
    every = table([int(i) if kind == "integers" else f"p{i}" for i in ids], seed=3)
    fewer = every.filter(pa.array(ids != 7)).take(rng.permutation(int((ids != 7).sum())))

    def kept(data):
        drawn = iter((keys[:8], keys[8:]))
        monkeypatch.setattr(bounding.os, "urandom", lambda _: next(drawn))
        opened, _ = bounding.bounded(opened_table(data, steady=not unsteady), Unit("id", 4))
        return sorted(opened.relation.fetchall())

    seven = 7 if kind == "integers" else "p7"
    assert [row for row in kept(every) if row[1] != seven] == kept(fewer)


def opened_table(data, *, steady):
    return Opened(duckdb.connect().from_arrow(data), tuple(data.column_names), steady=steady)


def test_a_query_that_draws_at_random_is_bounded_by_one_scan(tmp_path):
    """Each scan sees another person: in a list from an earlier scan nobody of a later one would be found."""
    one = "(SELECT CAST(floor(random() * 1e9) AS BIGINT))"
    draw = f"SELECT a, 0 AS b, {one} AS id FROM range(5) AS t(a), range(40)"
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE VIEW v AS {draw}")
        connection.execute(f"CREATE TABLE t AS {draw}")
    marginals = [np.array([[0, 1]], np.int32)]
    for missing in ("error", "own"):
        assert open_source(None, query=draw).count(schema(2, missing), marginals).rows == 2
    for name in ("v", "t"):
        assert open_source(f"{path}#{name}").count(schema(2), marginals).rows == 2
    assert open_source(duckdb.connect().sql(draw)).count(schema(2), marginals).rows == 2


def test_what_is_no_number_for_ids_is_one_person():
    """Zero and minus zero are one number, and so is every NaN, in the list as in the choice."""
    data = table([0.0, -0.0, float("nan"), float("nan"), -float("nan"), 0.0, 1.0, 1.0])
    assert counted(data, 1)[0].rows == 3
    assert counted(data, 2)[0].rows == 6


@pytest.mark.parametrize("what", ["t", "v"])  # a table is steady, a view is not
@pytest.mark.parametrize("kind", ["VARCHAR COLLATE NOCASE", "VARCHAR COLLATE NOCASE.NOACCENT", "INTERVAL"])
def test_ids_that_their_column_calls_equal_are_one_person(tmp_path, kind, what):
    twins = {"INTERVAL": ("1 month", "30 days")}.get(kind, ("Ann", "ANN"))
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute(f"CREATE TABLE t (a INTEGER, id {kind}); CREATE VIEW v AS FROM t")
        connection.executemany("INSERT INTO t VALUES (?, ?)", [(i % 5, twins[i % 2]) for i in range(20)])
    one_person_of(open_source(f"{tmp_path}/x.duckdb#{what}"), "id")


def test_nothing_is_left_in_the_users_connection():
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT range % 5 AS a, 0 AS b, range % 3 AS id FROM range(60)")
        counts = open_source(connection.table("t")).count(schema(4), [np.array([[0]], np.int32)])
        assert (counts.rows, counts.dropped) == (12, 48)
        assert connection.execute("SELECT table_name FROM duckdb_tables()").fetchall() == [("t",)]


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
    assert heard == [
        "1,001 rows were read and 5 counted; 996 rows were left out: more than 4 of one 'id', 99.5% of all "
        "(exact, for the owner of the data only)",
        NOBODY_COUNTS,
    ]
    assert published.plan.schema.unit == Unit("id", 4)
    text = (tmp_path / "out" / "PRIVACY.md").read_text()
    assert not any(re.search(r"99\.5%|rows were|dropped", each.read_text()) for each in (tmp_path / "out").glob("*.*"))
    assert "one value of `id`" in text and "at most 4 row(s)" in text and "996" not in text
