"""What DuckDB may use: a folder for its owner only, bounded memory; and files that change under it are refused."""

import stat
import threading
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hushcube.errors import DataError
from hushcube.private.engines.duckdb import recognise
from hushcube.private.engines.source import MEMORY, connected


def setting(connection, name):
    return connection.execute(f"SELECT current_setting('{name}')").fetchall()[0][0]


def in_bytes(connection, text):
    return connection.execute("SELECT parse_formatted_bytes(?)", [text]).fetchall()[0][0]


def test_what_is_spilled_lies_in_a_folder_of_its_owner_and_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with connected(":memory:", limited=True) as connection:
        folder = Path(setting(connection, "temp_directory"))
        assert folder.parent == tmp_path and stat.S_IMODE(folder.stat().st_mode) == 0o700
        connection.execute("SET memory_limit = '20MB'")
        connection.execute("CREATE TEMP TABLE t AS SELECT hash(range) AS h FROM range(5_000_000)")
        assert any(folder.rglob("duckdb_temp*"))
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame", "duckdb"])
def test_every_source_spills_there(kind, tmp_path, monkeypatch):
    place = tmp_path / "spilled"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    frame = pa.table({"a": [1, 2]})
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("a\n1\n2\n")
    elif kind == "parquet":
        pq.write_table(frame, path)
    elif kind == "duckdb":
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    source = recognise({"frame": frame, "duckdb": f"{path}#t"}.get(kind, str(path)))
    with source.open():
        (folder,) = place.iterdir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert not any(place.iterdir())


def test_memory_is_limited_except_for_queries():
    with connected(":memory:", limited=False) as connection:
        usual = in_bytes(connection, setting(connection, "memory_limit"))
    with connected(":memory:", limited=True) as connection:
        assert in_bytes(connection, setting(connection, "memory_limit")) <= min(MEMORY, usual) * 1.01


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_that_change_while_they_are_read_are_refused(kind, tmp_path):
    path = tmp_path / f"t.{kind}"

    def write(rows):
        table = pa.table({"a": np.arange(rows)})
        pq.write_table(table, path) if kind == "parquet" else path.write_text("a\n" + "1\n" * rows)

    write(10)
    with recognise(str(path)).open() as data:
        assert data.relation.aggregate("count(*)").fetchall() == [(10,)]
    with pytest.raises(DataError, match="changed while it was read"), recognise(str(path)).open():
        write(11)


@pytest.mark.parametrize("kind", ["csv", "parquet", "duckdb"])
def test_every_source_can_be_broken_off(kind, tmp_path):
    path = tmp_path / f"t.{kind}"
    if kind == "csv":
        path.write_text("a\n1\n2\n")
    elif kind == "parquet":
        pq.write_table(pa.table({"a": [1, 2]}), path)
    else:
        with duckdb.connect(str(path)) as connection:
            connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    with recognise(f"{path}#t" if kind == "duckdb" else str(path)).open() as data:
        slow = data.relation.query("rows", "SELECT i FROM range(1000000000000) t(i), rows WHERE hash(i) = 1")
        threading.Timer(0.2, data.stop).start()
        with pytest.raises(duckdb.InterruptException):
            slow.fetchall()
