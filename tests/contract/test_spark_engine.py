"""The engines' contract on Spark, in local mode and through Spark Connect; DuckDB and brute force are the judges.

One Java process serves both: a Spark Connect server runs inside the local session, on loopback.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import socket
import subprocess
import sys
import threading
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_engines import CASE_TWINS, HOSTILE, TABLE, _strict, check, marginals

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.private.engines.spark import SparkFiles, SparkRows, recognise_spark
from spark_java import QUICK, RUNNING, missing_java

pytestmark = pytest.mark.service


pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'hushcube[spark]'")


@pytest.fixture(scope="session")
def spark():
    """A session of the program's own, with a Spark Connect server in it."""
    yield RUNNING.start()
    RUNNING.stop()


def in_files(spark, folder, table):
    pq.write_table(table, folder / "da'ta;[x],{y} *.parquet")
    return recognise_spark(folder / "da'ta;[x],{y} *.parquet", "spark")


def in_parts(spark, folder, table):
    (folder / "parts").mkdir(exist_ok=True)
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), folder / "parts" / "1.parquet")
    pq.write_table(table.slice(half).select(table.column_names[::-1]), folder / "parts" / "2.parquet")
    return recognise_spark(f"parquet:{folder}/parts/*.parquet", "spark")


def in_frame(spark, folder, table):
    return recognise_spark(read(spark, folder, table))


def over_connect(spark, folder, table):
    spark.conf.set("spark.sql.caseSensitive", "true")
    read(spark, folder, table).createOrReplaceGlobalTempView("`peo``ple; --`")
    spark.conf.set("spark.sql.caseSensitive", "false")
    return recognise_spark(f"sc://127.0.0.1:{spark.connect_port}/;use_ssl=false#global_temp.peo`ple; --")


def read(spark, folder, table):
    pq.write_table(table, folder / "frame.parquet")
    session = spark.newSession()
    session.conf.set("spark.sql.caseSensitive", "true")
    return session.read.parquet(f"file://{folder}/frame.parquet")


WAYS = {"files": in_files, "parts": in_parts, "frame": in_frame, "connect": over_connect}


@pytest.fixture(params=WAYS)
def make(request, spark, tmp_path):
    return lambda table: WAYS[request.param](spark, tmp_path, table)


def same_as_duckdb(engine, path, schema, orders):
    wanted = marginals(len(schema), orders)
    found, expected = engine.count(schema, wanted), open_source(path).count(schema, wanted)
    assert found.rows == expected.rows
    for group in wanted:
        for marginal in group:
            assert np.array_equal(found.tables(marginal[None]), expected.tables(marginal[None])), schema.describe(
                marginal
            )


def test_spark_agrees_with_brute_force_on_hostile_data(make):
    check(make(TABLE), HOSTILE, TABLE)


def test_empty_table_and_the_total_alone(make):
    check(make(TABLE.slice(0, 0)), HOSTILE, TABLE.slice(0, 0), (0, 2))
    check(make(TABLE), HOSTILE, TABLE, (0,))


@pytest.mark.parametrize("policy", ["missing", "other"])
def test_refusals_name_the_column_and_the_fix_but_no_value(spark, tmp_path, policy):
    engine = in_frame(spark, tmp_path, TABLE)
    for attribute in HOSTILE.attributes[:4]:
        with pytest.raises(DataError) as caught:
            engine.count(Schema((Attribute(**_strict(attribute, policy)),)), [np.array([[0]], dtype=np.int32)])
        assert repr(attribute.name) in str(caught.value)
        assert f"`{policy}: " in str(caught.value)
        assert caught.value.__cause__ is None


def test_names_are_exact(make, request):
    table = pa.table({"a.b": [0, 1, 1], "`": [1, 1, 0], 'x"; --': [0, 0, 0], "": [1, 0, 1]})
    names = dict(zip(("dot", "tick", "quote", "empty"), table.column_names, strict=True))
    schema = Schema(tuple(Attribute(name=name, column=column, codes=2) for name, column in names.items()))
    check(make(table), schema, table, (1, 2))
    twins = Schema((Attribute(name="a", codes=2), Attribute(name="A", codes=2)))
    try:
        check(make(CASE_TWINS), twins, CASE_TWINS, (1, 2))
    except DataError as error:  # a server that takes the two for one cannot read its own files
        assert "cannot group" in str(error) and "connect" in request.node.name
    with pytest.raises(DataError, match=r"'Age'.*upper and lower case differ"):
        make(TABLE).count(Schema((Attribute(name="Age", range=(0, 9)),)), marginals(1, (1,)))


def test_two_columns_of_one_name_are_refused_only_when_asked_for(spark, tmp_path):
    frame = read(spark, tmp_path, pa.table({"a": [0, 1], "b": [1, 1], "c": [0, 0]})).toDF("a", "b", "b")
    check(recognise_spark(frame), Schema((Attribute(name="a", codes=2),)), pa.table({"a": [0, 1]}), (1,))
    with pytest.raises(DataError, match="several columns 'b'"):
        recognise_spark(frame).count(Schema((Attribute(name="b", codes=2),)), marginals(1, (1,)))


DAYS = [datetime.date(2020, 2, 29), datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None]
MANY = Schema(
    (
        Attribute(name="text", values=tuple(f"v{i}" for i in range(300)), missing="none", other="rest"),
        Attribute(name="int8", range=(-100, 100), missing="-7", other="rest"),
        Attribute(name="int64", range=(2**53, 2**53 + 9), missing="none", other="rest"),
        Attribute(name="uint64", values=("0", "7", "40"), missing="none", other="rest"),
        Attribute(name="float32", values=("0.1", "0.5", "3"), missing="none", other="rest"),
        Attribute(name="double", bins=tuple(np.linspace(-1, 1, 150).tolist()), missing="none", other="rest"),
        Attribute(name="decimal", bins=(-1, 0.1, 0.2, 0.3, 1.1), missing="0.25", other="rest"),
        Attribute(name="day", values=("2020-02-29", "9999-12-31"), missing="none", other="rest"),
        Attribute(name="time", values=("2020-02-29 12:34:56.789012",), missing="none", other="rest"),
        Attribute(name="flag", values=("true",), missing="none", other="rest"),
        Attribute(name="digits", range=(0, 9), missing="none", other="rest"),
        Attribute(name="bytes", values=("a", "b"), missing="none", other="rest"),
    )
)


def random_table(seed, rows=400):
    random = np.random.default_rng(seed)

    def some(values, kind):
        return pa.array([values[i] for i in random.integers(0, len(values), rows)], kind)

    moment = datetime.datetime(2020, 2, 29, 12, 34, 56, 789012)
    doubles = [*np.linspace(-1, 1, 150), -0.0, np.nan, np.inf, -np.inf, None, 1.0000000000000002, -1.5, 0.123, 1e-320]
    decimals = [Decimal(text) for text in ("0.1", "0.2", "0.25", "0.3", "-1", "1.1", "1.10000001", "-1.00000001", "0")]
    return pa.table(
        {
            "text": some([*(f"v{i}" for i in range(320)), None, "V1", "v1 "], pa.string()),
            "int8": some([*range(-128, 128), None], pa.int8()),
            "int64": some([2**53 + i for i in range(-2, 12)] + [None, 2**63 - 1, -(2**63)], pa.int64()),
            "uint64": some([0, 7, 40, 2**64 - 1, None], pa.uint64()),
            "float32": some([0.1, 0.5, 3, 0.30000001, None, float("nan")], pa.float32()),
            "double": some(doubles, pa.float64()),
            "decimal": some([*decimals, None], pa.decimal128(12, 8)),
            "day": some(DAYS, pa.date32()),
            "time": some([moment, moment.replace(microsecond=0), None], pa.timestamp("us")),
            "flag": some([True, False, None], pa.bool_()),
            "digits": some(["1", "01", " 2", "3.0", "x", None, "4e0", "nan", "10"], pa.string()),
            "bytes": some([b"a", b"b", b"\xff\x00", None], pa.binary()),
        }
    )


def test_random_tables_of_many_types_give_the_counts_of_duckdb(make, tmp_path):
    table = random_table(1)
    pq.write_table(table, tmp_path / "duck.parquet")
    same_as_duckdb(make(table), tmp_path / "duck.parquet", MANY, (1,))


def test_texts_are_compared_byte_by_byte_whatever_the_collation(spark, tmp_path):
    from pyspark.sql import functions

    table = pa.table({"t": ["a", "A", "á", "a", None]})
    frame = read(spark, tmp_path, table)
    frame = frame.select(functions.collate("t", "UNICODE_CI_AI").alias("t"))
    schema = Schema((Attribute(name="t", values=("a", "A"), missing="none", other="rest"),))
    check(recognise_spark(frame), schema, table, (1,))


def test_partition_folders_are_columns_as_for_duckdb(spark, tmp_path):
    for year in (2019, 2020):
        (tmp_path / "p" / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.table({"a": [0, 1, 1]}), tmp_path / "p" / f"year={year}" / "x.parquet")
    schema = Schema((Attribute(name="a", codes=2), Attribute(name="year", range=(2019, 2021))))
    pattern = f"parquet:{tmp_path}/p/*/x.parquet"
    same_as_duckdb(recognise_spark(pattern, "spark"), pattern, schema, (0, 1, 2))


def test_files_that_spark_would_misread_are_refused(spark, tmp_path):
    one = marginals(1, (1,))
    pq.write_table(pa.table({"a": [0]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"b": [0]}), tmp_path / "2.parquet")
    with pytest.raises(DataError, match="not every file has the column 'a'"):
        recognise_spark(f"{tmp_path}/*.parquet", "spark").count(Schema((Attribute(name="a", codes=2),)), one)
    pq.write_table(pa.table({"a": [0]}), tmp_path / "_hidden.parquet")
    with pytest.raises(DataError, match="begin with _"):
        recognise_spark(f"{tmp_path}/*.parquet", "spark").count(Schema((Attribute(name="a", codes=2),)), one)
    times = pa.table({"t": pa.array([0], pa.timestamp("ns")), "a": [1]})
    pq.write_table(times, tmp_path / "3.parquet")
    engine = recognise_spark(f"{tmp_path}/3.parquet", "spark")
    check(engine, Schema((Attribute(name="a", codes=2),)), times, (1,))
    with pytest.raises(DataError, match="nanoseconds"):
        engine.count(Schema((Attribute(name="t", values=("x",), other="y"),)), one)
    (tmp_path / "4.parquet").write_text("secret")
    with pytest.raises(DataError, match="cannot be read") as caught:
        recognise_spark(f"{tmp_path}/4.parquet", "spark").count(Schema((Attribute(name="a", codes=2),)), one)
    assert "secret" not in str(caught.value)


def test_messages_of_spark_are_not_passed_on(spark):
    from pyspark.sql import functions

    frame = spark.range(3).select(functions.lit("secret value").cast("int").alias("a"))
    with pytest.raises(DataError, match="cannot group") as caught:
        recognise_spark(frame).count(Schema((Attribute(name="a", codes=2),)), marginals(1, (1,)))
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_missing_table_is_named_and_the_programs_session_goes_on(spark):
    address = f"sc://127.0.0.1:{spark.connect_port}"
    for table in ("nobody", "no.body", "x'; DROP TABLE t"):
        with pytest.raises(DataError, match="has no table"):
            recognise_spark(f"{address}#{table}").count(Schema((Attribute(name="a", codes=2),)), marginals(1, (1,)))
    assert spark.range(3).count() == 3


def test_addresses(tmp_path):
    assert recognise_spark("people.parquet") is None
    assert recognise_spark("postgres://host#table", None) is None
    assert recognise_spark(3) is None
    engine = recognise_spark("spark://a:7077,b:7077#s.t")
    assert (engine.warehouse.address, engine.warehouse.table) == ("spark://a:7077,b:7077", "s.t")
    pattern = "s3a://bucket/x/*.parquet"
    for text, address in ((f"parquet:{pattern}", "local[*]"), (f"spark://a#parquet:{pattern}", "spark://a")):
        assert recognise_spark(text, "spark").warehouse == SparkFiles((pattern,), address, listed=False)
    assert recognise_spark("sc://a#parquet:x/*").warehouse == SparkFiles(("x/*",), "sc://a", listed=False)
    (tmp_path / "x.parquet").touch()
    found = recognise_spark(f"spark://a#parquet:{tmp_path}/*.parquet").warehouse
    assert found == SparkFiles((f"{tmp_path}/x.parquet",), "spark://a")
    for text in ("sc://host", "sc://host#", "sc://#t", "spark://host:1#a..b", "sc://host#parquet:"):
        with pytest.raises(DataError, match="no table"):
            recognise_spark(text)
    for text in ("sc://host/;token=hush#t", "sc://me:hush@host#t", "sc://host/;x-secret=hush#t"):
        with pytest.raises(DataError, match="credentials") as caught:
            recognise_spark(text)
        assert "hush" not in str(caught.value).replace("hushcube", "")
    (tmp_path / "x.csv").touch()
    with pytest.raises(DataError, match="Parquet"):
        recognise_spark(tmp_path / "x.csv", "spark")
    with pytest.raises(DataError, match="Parquet"):
        recognise_spark(pa.table({}), "spark")
    with pytest.raises(DataError, match="no file"):
        recognise_spark("nowhere.parquet", "spark")


@pytest.mark.parametrize("scheme", ["spark", "sc"])
def test_what_is_no_address_is_refused(scheme):
    with pytest.raises(DataError, match="is not an address"):
        recognise_spark(f"{scheme}://127.0.0.1:x#t").count(HOSTILE, marginals(1, (1,)))


class Wire:
    """Passes bytes between clients and a port, until it is cut."""

    def __init__(self, target):
        self._target = target
        self._ends = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._ends[0].getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._ends[0].accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                self._ends += [client, server]
                for pair in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, start, end):
        with contextlib.suppress(OSError):
            while data := start.recv(1 << 16):
                end.sendall(data)

    def cut(self):
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def test_a_connection_that_drops_in_the_middle_is_an_error(spark, tmp_path, monkeypatch, capfd):
    over_connect(spark, tmp_path, TABLE)
    wire = Wire(spark.connect_port)
    grouped = SparkRows.grouped

    def dropped(self, columns, sums=()):
        wire.cut()
        return grouped(self, columns, sums)

    engine = recognise_spark(f"sc://127.0.0.1:{wire.port}#global_temp.peo`ple; --")
    check(engine, HOSTILE, TABLE, (1,))
    capfd.readouterr()
    monkeypatch.setattr(SparkRows, "grouped", dropped)
    with pytest.raises(DataError, match="Spark stopped answering"):
        engine.count(HOSTILE, marginals(len(HOSTILE), (1,)))
    assert capfd.readouterr() == ("", "")


ALONE = """
import os, signal, sys, threading, time
import numpy as np
from hushcube.errors import HushcubeError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines.spark import recognise_spark
schema, wanted = Schema((Attribute(name="a", codes=2),)), [np.array([[0]], dtype=np.int32)]
engine = recognise_spark("x.parquet", "spark")
"""
KILLED = """
print(engine.count(schema, wanted).tables(wanted[0]).tolist())
from pyspark import SparkContext
assert SparkContext._active_spark_context is None
java = SparkContext._gateway.proc.pid
from hushcube.private.engines import spark
grouped = spark.SparkRows.grouped
def interrupted(self, columns, sums=()):
    os.kill(java, signal.SIGKILL)
    return grouped(self, columns, sums)
spark.SparkRows.grouped = interrupted
"""
AGAIN = """
spark.SparkRows.grouped = grouped
print(engine.count(schema, wanted).tables(wanted[0]).tolist())
"""
COUNT = """
try:
    engine.count(schema, wanted)
except HushcubeError as error:
    print(type(error).__name__, error)
"""


def alone(folder, code, **environment):
    """Run a program of its own, and see what it prints, also where it should not."""
    pq.write_table(pa.table({"a": [0, 1, 1]}), folder / "x.parquet")
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert sorted(path.name for path in folder.iterdir()) == ["x.parquet"]
    return done.stdout.splitlines(), done.stderr


@pytest.mark.skipif(bool(missing_java()), reason=missing_java())
def test_own_session_is_quiet_and_ends_and_a_killed_one_is_an_error_and_replaced(tmp_path):
    (tmp_path / "cwd").mkdir()
    submit = f"--driver-java-options '{QUICK}' pyspark-shell"
    lines, noise = alone(
        tmp_path / "cwd", ALONE + KILLED + COUNT + AGAIN, TMPDIR=str(tmp_path), PYSPARK_SUBMIT_ARGS=submit
    )
    assert lines[0] == "[[1, 2]]"
    assert lines[1].startswith("DataError data: Spark stopped answering.")
    assert lines[2] == "[[1, 2]]"  # in another Java process
    assert noise == ""
    assert not list(tmp_path.glob("hushcube-spark-*"))
