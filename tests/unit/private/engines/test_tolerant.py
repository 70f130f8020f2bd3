"""With `bad_rows="missing"` no row refuses a count, and what a row holds moves its own cell and no other."""

from __future__ import annotations

import gzip
import io
import random
from collections import Counter

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushcube import Attribute, Schema, plan, release
from hushcube.cli import run
from hushcube.errors import DataError, SchemaError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.workload import Workload
from hushcube.private.engines import delimited, open_source

SECRET = "topsecret"
SCHEMA = Schema(
    (
        Attribute(name="a", values=("x", "y"), missing="none", other="rest"),
        Attribute(name="b", range=(0, 3), missing="none", levels=({"name": "half", "starts": [0, 2]},)),
    )
)
PAIR = np.array([[0, 1]], np.int32)
CLEAN = ["x,0", "y,1", '"x",3', "x,", ',"2"', "z,1"]
BAD = {
    "an open quote": b'"x,1',
    "text after a quote": b'"x"y,1',
    "a comma more": b"x,1,2",
    "a comma less": b"x",
    "a bad byte": b"x\xff,1",
    "a bad byte between quotes": b'"\xff",1',
    "a carriage return": b"x\ry,1",
    "only quotes": b'"""',
}


def counted(source, schema=SCHEMA, **more):
    counts = open_source(source, bad_rows="missing", **more).count(schema, [PAIR])
    return counts, counts.tables(PAIR)[0]


def written(path, rows):
    path.write_bytes(b"\n".join([b"a,b", *rows, b""]))
    return path


def clean():
    return [line.encode() for line in CLEAN]


def test_clean_files_are_counted_as_in_the_strict_mode(tmp_path):
    path = written(tmp_path / "x.csv", clean())
    strict = Schema((SCHEMA["a"], Attribute(name="b", range=(0, 3), missing="none", other="none")))
    expected = open_source(path).count(strict, [PAIR]).tables(PAIR)[0]
    counts, table = counted(path)
    assert (table == expected).all() and (counts.rows, counts.bad) == (6, 0)


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_bad_line_moves_its_own_cell_and_no_other(tmp_path, line, place):
    rows = clean()
    before = counted(written(tmp_path / "x.csv", rows))[1]
    counts, after = counted(written(tmp_path / "y.csv", [*rows[:place], line, *rows[place:]]))
    moved = after - before
    assert moved[2, 4] == 1 and np.abs(moved).sum() == 1
    assert (counts.rows, counts.bad) == (7, 1)
    with pytest.raises(DataError):
        open_source(tmp_path / "y.csv").count(SCHEMA, [PAIR])


def test_values_out_of_their_domain_go_to_other_or_else_to_missing(tmp_path):
    counts, table = counted(written(tmp_path / "x.csv", [b"?,1", b'x"y,1', b"x,99", b'x,1"', b"x,1e999", b"y,1.5"]))
    assert table[3, 1] == 2 and table[0, 4] == 3 and table[1, 4] == 1
    assert (counts.rows, counts.bad) == (6, 0)


def parsed(rows):
    """The good lines, each as often as it is there, and how many are bad."""
    file, found, bad = io.BytesIO(b"\n".join(rows)), Counter(), 0
    for table, more in delimited.read_lines(file, ",", 2, [0, 1]):
        found.update(zip(*table.to_pydict().values(), strict=True))
        bad += more
    return found, bad


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 2**24])
def test_any_bytes_at_all_are_one_row(monkeypatch, size):
    """Random lines of marks that could mean something, read in blocks of a few bytes and at once."""
    monkeypatch.setattr(delimited, "_BLOCK", size)
    rng = random.Random(5)
    marks = [b'"', b",", b"x", b"\r", b"\xff", b"\xc3\xa9", b"1", b" ", b"\0", b"\xef\xbb\xbf", b"\\"]
    base, none = parsed(clean() * 3)
    assert none == 0
    kinds = Counter()
    for _ in range(400):
        line = b"".join(rng.choice(marks) for _ in range(rng.randint(1, 8)))
        rows = clean() * 3
        rows.insert(rng.randrange(len(rows) + 1), line)
        found, bad = parsed(rows)
        assert not base - found
        own = sum((found - base).values())
        assert own + bad == (line != b"\r"), line  # a blank line is no row
        kinds[bad] += 1
    assert min(kinds[0], kinds[1]) > 20


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b",", b";", b"\t", b"|"])
def test_dialects_and_blank_lines(tmp_path, end, mark):
    rows = [mark.join(row) for row in ([b"a", b"b"], [b"x", b"1"], [b'"y"', b""], [b'"x""', b"1"])]
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + end.join([rows[0], b"", *rows[1:], b"", b""]))
    counts, table = counted(tmp_path / "x.csv")
    assert (counts.rows, counts.bad) == (3, 1)
    assert table[0, 1] == table[1, 4] == table[2, 4] == 1
    (tmp_path / "y.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    assert counted(tmp_path / "y.csv.gz")[0].rows == 3


def test_one_column(tmp_path):
    (tmp_path / "x.csv").write_bytes(b'b\n1\n\n""\n2,3\n"\n\n')
    counts = open_source(tmp_path / "x.csv", bad_rows="missing").count(SCHEMA, [np.array([[1]], np.int32)])
    assert (counts.rows, counts.bad) == (4, 2)
    assert counts.tables(np.array([[1]], np.int32))[0].tolist() == [0, 1, 0, 0, 3]


def test_lines_that_are_too_long_are_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "LONGEST_LINE", 100)
    monkeypatch.setattr(delimited, "_BLOCK", 50)
    rows = [b"x,1", b"x" * 500 + b",1", b"y,1", b"y" * 300]
    counts, table = counted(written(tmp_path / "x.csv", rows))
    assert (counts.rows, counts.bad) == (4, 2) and table[0, 1] == table[1, 1] == 1


def test_what_is_not_a_row_still_refuses(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"a\xff,b\nx,1\n")
    with pytest.raises(DataError, match="CSV file cannot be read"):
        counted(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_bytes(b"a,c\nx,1\n")
    with pytest.raises(DataError, match="no column 'b'"):
        counted(tmp_path / "x.csv")
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"x,1\n" * 9_999)[:-9])
    with pytest.raises(DataError, match="CSV file cannot be read"):
        counted(tmp_path / "x.csv.gz")


def in_polars(columns):
    return pl.DataFrame([pl.Series(name, list(column), dtype=pl.Object) for name, column in columns.items()])


class Odd:
    """An object that cannot be written."""

    def __str__(self):
        raise ValueError(SECRET)


@pytest.mark.parametrize("make", [pd.DataFrame, in_polars])
@pytest.mark.parametrize("value", [10**25, Odd(), b"\xff", "\ud800", [1], {}, object(), float("inf")])
def test_an_odd_object_in_a_frame_moves_its_own_cell(make, value):
    good = {"a": ["x", "y", "x", None], "b": [0, 1.0, "3", np.int8(2)]}
    before = counted(make({name: np.array(column, dtype=object) for name, column in good.items()}))[1]
    assert before[0, 0] == before[1, 1] == before[0, 3] == before[2, 2] == 1
    mixed = np.empty(5, dtype=object)
    mixed[:] = [*good["b"], value]
    after = counted(make({"a": np.array([*good["a"], "x"], dtype=object), "b": mixed}))[1]
    assert (after - before)[0, 4] == 1 and np.abs(after - before).sum() == 1


def test_categories_of_mixed_types_are_read_one_by_one():
    mixed = pd.DataFrame({"a": pd.Categorical(["x", 7, None]), "b": [0, 1, 2]})
    table = counted(mixed)[1]
    assert table[0, 0] == table[3, 1] == table[2, 2] == 1
    with pytest.raises(DataError, match="bad_rows"):
        open_source(mixed).count(SCHEMA, [PAIR])


@pytest.mark.parametrize("make", [pl.from_arrow, lambda table: table, pa.Table.to_pandas])
def test_frames_of_one_type_are_read_as_ever(make):
    table = pa.table({"a": ["x", "?", None], "b": pa.array([0, 9, None], pa.int64())})
    assert counted(make(table))[1].sum() == 3 and counted(make(table))[1][3, 4] == 1


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        (Schema((SCHEMA["a"], Attribute(name="b", range=(0, 3), other="rest"))), "attribute 'b'"),
        (Schema(SCHEMA.attributes, unit=Unit("id", 2)), "unit"),
    ],
)
def test_without_a_place_for_missing_values_nothing_is_read(schema, words):
    class Unread:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table({"a": ["x"]}).__arrow_c_stream__()  # without the columns: reading on would say so

    with pytest.raises(SchemaError, match=f"{words}: declares no missing value"):
        counted(Unread(), schema)


def test_only_what_is_used_needs_a_place_for_missing_values(tmp_path):
    schema = Schema((SCHEMA["a"], SCHEMA["b"], Attribute(name="c", codes=2)))
    assert counted(written(tmp_path / "x.csv", [b'"x,1']), schema)[0].bad == 1


def test_levels_measures_units_and_the_total(tmp_path):
    (tmp_path / "x.csv").write_text('a,b,id,m\nx,3,p,1\nx,3,p,word\nx,3,p,3\n"\ny,9,,2\n')
    unit = Unit("id", 2, "own")
    workload = Workload.parse("b@half", Schema(SCHEMA.attributes, unit=unit))
    engine = open_source(tmp_path / "x.csv", bad_rows="missing")
    measure = Measure(name="m", bounds=(0, 9), missing=5)
    counts = engine.count(workload.schema, [np.array(workload.marginals, np.int32)], measures=[measure])
    place = np.array(workload.marginals, np.int32)
    assert (counts.rows, counts.dropped, counts.bad) == (4, 1, 1)
    assert counts.tables(place)[0].tolist() == [0, 2, 2]
    assert counts.sums["m"].tables(place)[0, 2] == 7
    total = engine.count(Schema(SCHEMA.attributes, unit=unit), [np.zeros((1, 0), np.int32)])
    assert (total.rows, total.bad) == (4, 1)
    strict = Measure(name="m", bounds=(0, 9))
    with pytest.raises(SchemaError, match="measure 'm': declares no missing value"):
        engine.count(workload.schema, [place], measures=[strict])


def test_tables_of_databases_have_values_out_of_their_domain_only(tmp_path):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'x' AS a, i AS b FROM range(6) AS r(i)")
    assert counted(f"{tmp_path}/x.duckdb#t")[1][0].tolist() == [1, 1, 1, 1, 2]


def test_the_owner_alone_hears_of_bad_rows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path / "x.csv", [*clean(), *BAD.values()])
    (tmp_path / "s.yaml").write_text(SCHEMA.to_yaml())
    command = "release --schema s.yaml --data x.csv --workload 2-way --epsilon 1 --neighbours add-remove --json"
    assert run([*command.split(" "), "--out", "strict"]) == 2
    assert run([*command.split(" "), "--out", "out", "--bad-rows", "missing"]) == 0
    told = capsys.readouterr()
    assert "8 rows cannot be read and count as missing in every attribute (exact, for the owner" in told.err
    assert "cannot be read" not in told.out
    assert not any(b"cannot be read" in file.read_bytes() for file in (tmp_path / "out").glob("*.*"))


def test_python_has_the_same_word():
    data = pd.DataFrame({"a": ["x", 10**25], "b": [1, 2]})
    decided = plan(SCHEMA, "1-way", epsilon=100, neighbours="add-remove")
    with pytest.raises(DataError):
        release(decided, data, seed=1)
    found = release(decided, data, seed=1, bad_rows="missing")
    assert found.table("a").values.round().tolist() == [1, 0, 0, 1]
    with pytest.raises(DataError, match="bad_rows"):
        release(decided, data, seed=1, bad_rows="ignore")
    measured = Schema(SCHEMA.attributes, "s", None, (Measure(name="m", column="b", bounds=(0, 5), missing=0),))
    cube = plan(measured, "1-way", measures="sum(m)", epsilon=100, neighbours="add-remove")
    assert round(float(release(cube, data, seed=1, bad_rows="missing").table("total").values)) == 2
