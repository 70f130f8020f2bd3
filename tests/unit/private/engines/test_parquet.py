"""Columns that Arrow reads by itself: the same counts as by DuckDB, which reads whatever needs SQL."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.engines import duckdb as engine, open_source, parquet
from hushcube.private.engines.parquet import Parquet

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32())
REALS = (pa.float32(), pa.float64())
SCHEMA = Schema(
    (
        Attribute(name="code", codes=5, missing="none", other="rest"),
        Attribute(name="year", range=(-2, 3), missing="none", other="rest"),
        Attribute(name="part", values=("1", "02", "x"), missing="none", other="rest"),
        Attribute(name="bin", bins=(0, 1.5, 4), missing="none", other="rest"),
    )
)
WANTED = [np.array([[0, 1], [2, 3]], np.int32)]
NIGHTS = Measure(name="nights", bounds=(0, 9), missing=2)


def table(rng, rows, integer=INTEGERS[3], measure=REALS[1]):
    low = 0 if str(integer).startswith("u") else -4

    def column(kind):
        values = rng.integers(low, 7, rows).tolist()
        if pa.types.is_floating(kind):
            values = [rng.choice([v, v + 0.5, np.nan, np.inf]) for v in values]
        return pa.array([None if rng.random() < 0.1 else v for v in values], kind)

    kinds = {"code": integer, "year": integer, "part": integer, "bin": REALS[1], "nights": measure}
    return pa.table({name: column(kind) for name, kind in kinds.items()})


def counted(source, schema=SCHEMA, wanted=WANTED, measures=(NIGHTS,)):
    counts = open_source(source).count(schema, wanted, measures=measures)
    sums = counts.sums["nights"].tables(wanted[0]).tolist() if measures else None
    return counts.rows, counts.tables(wanted[0]).tolist(), sums


@pytest.fixture
def ways(monkeypatch):
    """What read each batch, by name."""
    used = []

    def noting(name, read):
        def noted(*given):
            found = read(*given)
            used.extend([name] if found is not None else [])
            return found

        return noted

    monkeypatch.setattr(engine, "_stored", noting("arrow", engine._stored))
    monkeypatch.setattr(engine, "_fetched", noting("duckdb", engine._fetched))
    return used


@pytest.mark.parametrize("integer", INTEGERS, ids=str)
@pytest.mark.parametrize("measure", [REALS[0], REALS[1], pa.int32()], ids=str)
def test_arrow_and_duckdb_count_the_same(tmp_path, ways, monkeypatch, integer, measure):
    monkeypatch.setattr(parquet, "_PIECE", 100)
    rng = np.random.default_rng(3)
    for i, rows in enumerate((700, 0, 250)):
        pq.write_table(table(rng, rows, integer, measure), tmp_path / f"{i}.parquet", row_group_size=60)
    by_arrow = counted(tmp_path / "*.parquet")
    monkeypatch.setattr(engine, "_stored", lambda *_: None)
    assert counted(tmp_path / "*.parquet") == by_arrow and by_arrow[0] == 950
    assert ways == ["arrow", "duckdb"]


@pytest.mark.parametrize("pieces", [1, 100])
def test_what_the_schema_refuses_is_refused(tmp_path, ways, monkeypatch, pieces):
    monkeypatch.setattr(parquet, "_PIECE", pieces)
    strict = Schema((Attribute(name="code", codes=5), Attribute(name="year", range=(-2, 3))))
    for bad, match in (
        (None, "holds missing values"),
        (5, "outside the declared domain"),
        (-1, "outside the declared"),
    ):
        code = pa.array([*range(5)] * 40 + [bad], pa.int32())
        data = pa.table({"code": code, "year": pa.array([1] * 201, pa.int32())})
        pq.write_table(data, tmp_path / "x.parquet", row_group_size=50)
        with pytest.raises(DataError, match=match):
            counted(tmp_path / "x.parquet", strict, [np.array([[0, 1]], np.int32)], ())
    assert ways == ["arrow"] * 3


def test_types_that_differ_between_files_are_widened_by_duckdb(tmp_path, ways):
    rng = np.random.default_rng(4)
    for i, integer in enumerate((pa.int16(), pa.int64())):
        pq.write_table(table(rng, 90, integer), tmp_path / f"{i}.parquet")
    assert counted(tmp_path / "*.parquet")[0] == 180
    assert ways == ["duckdb"]


def test_folders_that_stand_for_a_column_are_left_to_duckdb(tmp_path, ways):
    rng = np.random.default_rng(5)
    for code in (1, 2):
        (tmp_path / f"code={code}").mkdir()
        pq.write_table(table(rng, 50).drop_columns(["code"]), tmp_path / f"code={code}" / "x.parquet")
    rows, tables, _ = counted(tmp_path / "*" / "*.parquet")
    assert rows == 100 and [sum(row) for row in tables[0]][1:3] == [50, 50]
    assert ways == ["duckdb"]


def test_names_that_could_mean_something_else(tmp_path, ways):
    """A field of a struct has the path that a column with a dot in its name has."""
    schema = Schema((Attribute(name="a.b", codes=3), Attribute(name="A.b", codes=3)))
    inner = pa.array([{"b": 2}] * 4, pa.struct({"b": pa.int32()}))
    plain = pa.table({"a.b": pa.array([0, 0, 1, 1], pa.int32()), "A.b": pa.array([1, 1, 1, 2], pa.int32())})
    for data, way in ((plain, "arrow"), (plain.append_column("a", inner), "duckdb")):
        pq.write_table(data, tmp_path / "x.parquet")
        rows, tables, _ = counted(tmp_path / "x.parquet", schema, [np.array([[0, 1]], np.int32)], ())
        assert rows == 4 and tables == [[[0, 2, 0], [0, 1, 1], [0, 0, 0]]]
        assert ways.pop() == way


def test_one_column_can_be_two_attributes(tmp_path, ways):
    schema = Schema((Attribute(name="a", codes=3), Attribute(name="b", column="a", range=(0, 2))))
    pq.write_table(pa.table({"a": pa.array([0, 1, 1], pa.int8())}), tmp_path / "x.parquet")
    assert counted(tmp_path / "x.parquet", schema, [np.array([[0, 1]], np.int32)], ())[1] == [
        np.diag([1, 2, 0]).tolist()
    ]
    assert ways == ["arrow"]


def test_a_file_that_is_damaged_inside_is_refused(tmp_path, ways):
    path = tmp_path / "x.parquet"
    pq.write_table(table(np.random.default_rng(6), 5_000), path, row_group_size=1_000, compression="zstd")
    content = bytearray(path.read_bytes())
    content[4:3_000] = bytes(2_996)
    path.write_bytes(content)
    with pytest.raises(DataError, match="Parquet data cannot be read"):
        counted(path)
    assert ways == ["arrow"]


def test_row_groups_are_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "_PIECE", 100)
    pq.write_table(table(np.random.default_rng(7), 430), tmp_path / "x.parquet", row_group_size=40)
    source = Parquet((str(tmp_path / "x.parquet"),))
    with source.open() as data:
        read = [[len(columns[0]) for columns in piece] for piece in data.direct(["code"], [], 30)]
        assert list(map(sum, read)) == [120, 120, 120, 70] and max(map(max, read)) <= 30
        assert data.direct(["code", "nowhere"], [], 30) is None
