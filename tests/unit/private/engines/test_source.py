"""Sources that cannot be read say so, name the fix, and never repeat what they hold."""

from __future__ import annotations

import gzip

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source

SECRET = "topsecret"
SCHEMA = Schema((Attribute(name="a", values=("x", "y"), missing="none", other="rest"), Attribute(name="b", codes=9)))
WANTED = [np.array([[0, 1]], dtype=np.int32)]


def count(source, **more):
    return open_source(source, **more).count(SCHEMA, WANTED)


def refuses(source, match, **more):
    with pytest.raises(DataError, match=match) as caught:
        count(source, **more)
    assert SECRET not in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert caught.value.fix


@pytest.mark.parametrize(
    "content",
    [
        f"a,b\n{SECRET},1\n\udcff,2\n",
        f"a,b\n{SECRET},1,2\n",
        f"a,b\n{SECRET}\n",
        f'a,b\n"{SECRET},1\nx,2\n',
        f'a,b\n"{SECRET}"x,1\n',
        f"a,b\nx,1\n{SECRET},2\r\ny,2\n",
        f"a,b\nx,1\n{SECRET},1,2,3\n",
        "a,b\n" + "x,1\n" * 100_000 + f"{SECRET},1,1\n",
    ],
)
def test_csv_that_cannot_be_read(tmp_path, content):
    (tmp_path / "x.csv").write_bytes(content.encode("utf-8", "surrogateescape"))
    refuses(tmp_path / "x.csv", "CSV file cannot be read")


def test_csv_without_a_header_does_not_show_its_first_row(tmp_path):
    (tmp_path / "x.csv").write_text(f"{SECRET},1\nx,2\n")
    refuses(tmp_path / "x.csv", "no column 'a'")
    for empty in ("", "\n"):
        (tmp_path / "x.csv").write_text(empty)
        refuses(tmp_path / "x.csv", "no header")
    (tmp_path / "x.csv").write_text(f"a,{SECRET},b,b\nx,1,2,2\n")
    refuses(tmp_path / "x.csv", "several columns 'b'")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_csv_dialects(tmp_path, mark, end, bom):
    lines = [f'a{mark}"ex,tra"{mark}b', f'"x"{mark}{mark}"3"', f"{mark}?{mark}3.0", f'" x"{mark}""{mark}3']
    (tmp_path / "x.csv").write_text(bom + end.join(lines) + end, newline="")
    (table,) = count(tmp_path / "x.csv").tables(WANTED[0])
    assert table[:, 3].tolist() == [1, 0, 1, 1]
    (tmp_path / "y.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    assert count(f"csv:{tmp_path}/y.gz").rows == 3


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("header", ["b", "b,a"])
def test_blank_lines_of_a_csv_are_no_rows(tmp_path, header, end):
    """At the end and in between, in files of one column and of several; a missing value of one column is quoted."""
    more = "" if header == "b" else ",x"
    lines = [header, f"1{more}", "", f"2{more}", f'""{more}', f" {more}", "", ""]
    (tmp_path / "x.csv").write_text(end.join(lines), newline="")
    schema = Schema((Attribute(name="b", codes=3, missing="none", other="rest"),))
    counts = open_source(tmp_path / "x.csv").count(schema, [np.array([[0]], np.int32)])
    assert counts.rows == 4
    assert counts.tables(np.array([[0]], np.int32))[0].tolist() == [0, 1, 1, 1, 1]


def test_csv_texts_are_not_turned_into_numbers(tmp_path):
    (tmp_path / "x.csv").write_text("code,b\n01,1\n1,1\n1.0,1\n")
    schema = Schema((Attribute(name="code", values=("01", "1"), other="rest"), Attribute(name="b", codes=2)))
    counts = open_source(tmp_path / "x.csv").count(schema, WANTED)
    assert counts.tables(WANTED[0])[0, :, 1].tolist() == [1, 1, 1]


@pytest.mark.parametrize("name", ["a*", "a?", "a[b]", "a[*]", "a'b", "a;--", "a b", "a#b", "ä"])
def test_a_path_is_never_a_pattern_or_sql(tmp_path, name):
    for other in ("a", "ab", "a*", "a?"):
        (tmp_path / f"{other}.csv").write_text(f"a,b\n{SECRET},1\n" * 3)
        pq.write_table(pa.table({"a": [SECRET] * 3, "b": [1] * 3}), tmp_path / f"{other}.parquet")
    (tmp_path / f"{name}.csv").write_text("a,b\nx,1\n")
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), tmp_path / f"{name}.parquet")
    for suffix in ("csv", "parquet"):
        counts = count(tmp_path / f"{name}.{suffix}")
        assert counts.rows == 1
        assert counts.tables(WANTED[0])[0, 0, 1] == 1


def test_parquet_that_cannot_be_read(tmp_path):
    table = pa.table({"a": ["x", SECRET] * 5000, "b": [1, 2] * 5000})
    path = tmp_path / "x.parquet"
    pq.write_table(table, path)
    whole = path.read_bytes()
    for damaged in (whole[:-100], whole[:4], b"", b"PAR1" + bytes(200) + b"PAR1"):
        path.write_bytes(damaged)
        refuses(path, "Parquet data cannot be read")
    damaged = bytearray(whole)
    damaged[10:200] = bytes(190)
    path.write_bytes(damaged)
    refuses(path, "Parquet data cannot be read")


def test_parquet_files_must_agree(tmp_path):
    pq.write_table(pa.table({"a": ["x"], "b": [1]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [2.5], "a": ["y"]}), tmp_path / "2.parquet")
    refuses(f"{tmp_path}/*.parquet", "attribute 'b'.* outside the declared domain")
    pq.write_table(pa.table({"a": ["x"]}), tmp_path / "2.parquet")
    refuses(f"{tmp_path}/*.parquet", "not every file has the column 'b'")


@pytest.mark.parametrize(
    "source",
    [
        "none.csv",
        "none.parquet",
        "none/*.parquet",
        "none.duckdb#t",
        "csv:none",
        "duckdb:md:x#t",
        "parquet:none",
    ],
)
def test_files_that_are_not_there(source, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refuses(source, "there is no file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "source", ["x", "", "x.xlsx", "http://x/y", "'; DROP TABLE t; --", 7, None, [1], {"a": [1]}, b"x"]
)
def test_what_is_no_source(source):
    refuses(source, "data: ")


def test_database_errors(tmp_path):
    path = tmp_path / "x.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            f"CREATE TABLE t AS SELECT 'x' AS a, 1 AS b; CREATE TABLE u AS SELECT '{SECRET}' AS a, 'q' AS b"
        )
        connection.execute("CREATE SCHEMA s; CREATE TABLE s.t AS SELECT 'y' AS a, 2 AS b; CREATE VIEW v AS FROM main.t")
    before = path.read_bytes()
    assert count(f"{path}#v").rows == count(f"{path}#s.t").rows == 1
    refuses(f"{path}#t", "several tables or views 't'")
    refuses(f"{path}#none", "no table or view 'none'")
    refuses(f'{path}#u" UNION FROM "t', "no table or view")
    refuses(path, "no table")
    for query in (
        "SELEC 1",
        "SELECT * FROM nope",
        "",
        "SELECT 1; SELECT 2",
        "DROP TABLE u",
        "INSERT INTO u FROM u",
    ):
        refuses(path, "query: ", query=query)
    refuses(path, "cannot be read", query="SELECT a, CAST(a AS INTEGER) AS b FROM u")
    refuses(None, "query: ", query=f"COPY (SELECT 1) TO '{tmp_path}/written.csv'")
    refuses(pa.table({"a": [1]}), "query: ", query="SELECT 1")
    assert path.read_bytes() == before
    assert not (tmp_path / "written.csv").exists()
    (tmp_path / "no.duckdb").write_text(SECRET * 1000)
    refuses(f"{tmp_path}/no.duckdb#t", "database cannot be read")


def test_frames_that_cannot_be_read():
    import pandas as pd

    refuses(pd.DataFrame({"a": ["x", SECRET, 3.5, object()], "b": [1, 1, 1, 1]}), "data frame")
    assert count(pd.DataFrame({"a": ["x", "y"], 7: [object(), 3], "b": [1, 1]})).rows == 2
    frame = pd.DataFrame([["x", 1, "y"]], columns=["a", "b", "a"])
    refuses(frame, "several columns 'a'")
    categories = pd.DataFrame({"a": pd.Categorical(["y", "x", None, "x"]), "b": pd.array([1, 1, 1, 8], dtype="Int8")})
    assert count(categories).tables(WANTED[0])[0, :, 1].tolist() == [1, 1, 1, 0]


def test_a_label_and_a_number_may_not_be_the_same_number_twice():
    schema = Schema((Attribute(name="a", values=("1", "1.0", "x")), Attribute(name="b", codes=2)))
    with pytest.raises(DataError, match="one number"):
        open_source(pa.table({"a": [1], "b": [1]})).count(schema, WANTED)


def test_nothing_shows_rows_in_its_repr():
    table = pa.table({"a": [SECRET], "b": [1]})
    for source in (table, duckdb.connect().from_arrow(table), table.to_pandas()):
        engine = open_source(source)
        counts = engine.count(SCHEMA, WANTED)
        assert SECRET not in repr(engine) + repr(engine.source) + repr(counts)
        assert "1" not in repr(counts)


def test_progress_ends_with_all():
    seen: list[float] = []
    engine = open_source(pa.table({"a": ["x"] * 5, "b": [1] * 5}))
    engine.count(SCHEMA, WANTED, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
