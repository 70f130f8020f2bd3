"""Engines that hold the data to what an account declares of it: its digest and its part."""

import hashlib
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.errors import DataError
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.private.engines.declared import OnePart, digested

SCHEMA = Schema.from_yaml("attributes:\n- {name: year, values: ['2023', '2024']}\n- {name: sex, values: [F, M]}\n")
SEX = [np.array([[1]], np.int32)]
TABLE = pa.table({"year": ["2024", "2024", "2024"], "sex": ["F", "M", "M"]})


def written(folder, name="people.csv", rows="2024,F\n2024,M\n2024,M\n"):
    (folder / name).write_text("year,sex\n" + rows)
    return folder / name


def test_the_digest_of_a_file_is_that_of_its_bytes(tmp_path):
    file = written(tmp_path)
    for bad_rows in ("refuse", "missing"):
        digest, _ = digested(open_source(file, bad_rows=bad_rows))
        assert digest == hashlib.sha256(file.read_bytes()).hexdigest()


def test_the_digest_of_several_files_is_that_of_all(tmp_path):
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(TABLE, tmp_path / name)
    first, _ = digested(open_source(str(tmp_path / "*.parquet")))
    pq.write_table(TABLE.slice(1), tmp_path / "b.parquet")
    second, engine = digested(open_source(str(tmp_path / "*.parquet")))
    assert first != second and engine.count(SCHEMA, SEX).rows == 5


def test_a_frame_has_one_digest_however_it_is_divided():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    divided = pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)])
    assert len({digested(open_source(frame))[0] for frame in (TABLE, divided)}) == 1
    others = [digested(open_source(frame))[0] for frame in (TABLE.slice(1), TABLE.rename_columns(["sex", "year"]))]
    assert len({digested(open_source(TABLE))[0], *others}) == 3
    for frame in (pd.DataFrame({"a": [1, 2]}), pl.DataFrame({"a": [1, 2]})):
        assert digested(open_source(frame))[0] == digested(open_source(pa.table({"a": [1, 2]})))[0]


def test_what_may_change_between_two_looks_has_no_digest():
    pl = pytest.importorskip("polars")
    for engine in (open_source(pl.LazyFrame({"year": ["2024"]})), open_source(None, query="SELECT 1 AS year")):
        with pytest.raises(DataError, match="has none"):
            digested(engine)


def test_a_file_that_changes_after_its_digest_is_refused(tmp_path):
    file = written(tmp_path)
    _, engine = digested(open_source(file))
    assert engine.count(SCHEMA, SEX).rows == 3
    before = file.stat()
    written(tmp_path, rows="2024,M\n2024,M\n2024,M\n")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    with pytest.raises(DataError, match="changed while it was read"):
        engine.count(SCHEMA, SEX)


def test_every_row_must_be_of_the_part(tmp_path):
    engine = OnePart(open_source(written(tmp_path)), "year", "2024")
    counts = engine.count(SCHEMA, SEX)
    assert counts.tables(SEX[0]).tolist() == [[1, 2]] and counts.rows == 3
    mixed = OnePart(open_source(written(tmp_path, rows="2024,F\n2023,M\n")), "year", "2024")
    with pytest.raises(DataError, match="'year' is not that of the part") as refusal:
        mixed.count(SCHEMA, SEX)
    assert "2023" not in str(refusal.value)
