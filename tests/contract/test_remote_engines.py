"""Postgres keeps the contract of engines, and counts what DuckDB counts; a real server is the judge.

The tests of every source run here as well, on tables of the server.
"""

from __future__ import annotations

import io
import itertools
import math
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from test_engines import (  # noqa: F401  (collected here too, with the fixture `make` below)
    HOSTILE,
    TABLE,
    check,
    marginals,
    test_columns_that_differ_by_case_are_told_apart_or_refused,
    test_empty_table_and_one_row,
    test_engine_counts_more_than_once_and_in_any_order,
    test_every_source_agrees_with_brute_force_on_hostile_data,
    test_missing_column_is_named,
    test_order_of_rows_does_not_matter,
    test_refusals_name_the_column_and_the_fix_but_no_value,
)

from cli.desk import listing
from engine_cases import *  # noqa: F403
from engine_cases import one_person_of, same_as
from hushcube.errors import DataError, MissingDependency
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema
from hushcube.private.engines import grouped, open_source
from hushcube.private.engines.grouped import warehouse
from hushcube.private.engines.postgres import recognise_postgres
from postgres_server import PASSWORD, Server

pytestmark = pytest.mark.service


TYPES = {
    pa.string(): "text",
    pa.large_string(): "text",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.int8(): "smallint",
    pa.uint8(): "smallint",
    pa.int16(): "smallint",
    pa.uint16(): "integer",
    pa.int32(): "integer",
    pa.int64(): "bigint",
    pa.float32(): "real",
    pa.float64(): "double precision",
}
NAME = 'peo"ple; -- %s {x}'
SECRET = "an-unspeakable-diagnosis"


@pytest.fixture(scope="module")
def server():
    started = Server()
    yield started
    started.close()


@pytest.fixture(autouse=True)
def _password(monkeypatch):
    monkeypatch.setenv("PGPASSWORD", PASSWORD)


@pytest.fixture
def make(server):
    return lambda table: recognise_postgres(server.address(load(server, NAME, table)))


def load(server, name, table, types=None):
    """Write an Arrow table to the server; nulls are unquoted and empty, texts quoted."""
    from psycopg import sql

    kinds = types or [TYPES[kind] for kind in table.schema.types]
    columns = [
        sql.SQL("{} {}").format(sql.Identifier(n), sql.SQL(t)) for n, t in zip(table.column_names, kinds, strict=True)
    ]
    target = sql.Identifier(name)
    text = io.BytesIO()
    plain = [c.cast(pa.string()) if pa.types.is_floating(c.type) else c for c in table.columns]
    pa_csv.write_csv(pa.table(plain, names=table.column_names), text, pa_csv.WriteOptions(include_header=False))
    with server.connect() as connection:
        connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(target))
        connection.execute(sql.SQL("CREATE TABLE {} ({})").format(target, sql.SQL(", ").join(columns)))
        with connection.cursor().copy(sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(target)) as copy:
            copy.write(text.getvalue())
    return name


def execute(server, *statements):
    with server.connect() as connection:
        for statement in statements:
            connection.execute(statement)


def same(one, other, schema, orders=(1, 2)):
    """Both engines give the same tables, or refuse with the same words."""
    wanted = marginals(len(schema), orders)
    results = []
    for engine in (one, other):
        try:
            counts = engine.count(schema, wanted)
            results.append([counts.rows, *(counts.tables(m[None])[0].tolist() for group in wanted for m in group)])
        except DataError as error:
            results.append(str(error))
    assert results[0] == results[1]
    return results[0]


@given(
    data=st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "'", '"', ";", "zz", "?", "\\", "\\N", "NULL", "", None]),
            st.one_of(st.none(), st.integers(-5, 15)),
            st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            st.one_of(st.none(), st.floats(width=32), st.sampled_from([0.10000000149011612, 2.0, 7.0])),
        ),
        max_size=40,
    ),
    split=st.booleans(),
)
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_small_tables_count_as_in_duckdb(data, split, server, monkeypatch):
    columns = list(zip(*data, strict=True)) or [()] * 5
    types = (pa.string(), pa.int8(), pa.float64(), pa.int64(), pa.float32())
    table = pa.table({name: pa.array(c, t) for name, c, t in zip("stuvw", columns, types, strict=True)})
    schema = Schema(
        (
            Attribute(name="s", values=("b", "'", ";", "a", "?"), missing="none", other="rest"),
            Attribute(name="t", range=(-2, 9), missing="12", other="none"),
            Attribute(name="u", bins=(-1e10, -1.0, 0.0, 0.5, 1e10), missing="0.25", other="rest"),
            Attribute(name="v", range=(-(2**62) + 1, -(2**62) + 3), missing="rest", other="rest"),
            Attribute(name="w", values=("2", "7.0", "1e3"), missing="none", other="rest"),
            Attribute(name="x", column="w", values=("0.1", "7.0"), missing="none", other="rest"),
            Attribute(name="y", column="t", values=("0", "5.5", "1", "-3.0"), missing="none", other="1"),
        )
    )
    with monkeypatch.context() as patch:
        if split:
            patch.setattr(grouped, "GROUPS", 60)
        same(recognise_postgres(server.address(load(server, "random", table))), open_source(table), schema, (0, 1, 2))


NUMBERS = ["0", "1", "2.5", "9.9999999999999999999999", "10", "-3", "NaN", None, "0.1", "3.0000", "1e-200", "1e30"]
HUGE = ["1e400", "-1e400", "1e-400", "Infinity", "-Infinity"]


@pytest.mark.parametrize("kind", ["numeric", "numeric(38,10)", "real", "double precision"])
def test_numbers_of_every_type_count_as_the_nearest_doubles(server, kind):
    texts = NUMBERS + (HUGE if kind == "numeric" else ["Infinity"] if kind != "numeric(38,10)" else [])
    texts = [text for text in texts if kind == "numeric" or text != "1e-200"]
    if kind == "numeric(38,10)":
        texts = [text for text in texts if text != "1e30"]
    name = load(server, "numbers", pa.table({"x": pa.array(texts, pa.string())}), [kind])
    width = pa.float32() if kind == "real" else pa.float64()
    table = pa.table({"x": pa.array([None if text is None else float(text) for text in texts], width)})
    categories = {"column": "x", "missing": "unknown", "other": "rest"}
    schema = Schema(
        (
            Attribute(name="bins", bins=(0, 1, 10, 1e15), **categories),
            Attribute(name="range", range=(-3, 3), **categories),
            Attribute(name="values", values=("1", "2.5", "0.1", "1e30"), **categories),
            Attribute(name="numbers", values=("1", "2.5", "10"), **categories),
            Attribute(name="minus", column="x", bins=(-5, 5), missing="-3.0", other="rest"),
            Attribute(name="none", column="x", range=(0, 3), missing="10", other="rest"),
        )
    )
    found = same(recognise_postgres(server.address(name)), open_source(table), schema)
    assert found[0] == len(texts)


def test_integers_of_every_width(server):
    values = [0, 1, -1, 5, 32767, -32768, None, 9]
    table = pa.table({"x": pa.array(values, pa.int16())})
    for kind in ("smallint", "integer", "bigint"):
        name = load(server, "integers", table, [kind])
        schema = Schema(
            (
                Attribute(name="a", column="x", codes=6, missing="9", other="rest"),
                Attribute(name="b", column="x", bins=(-1, 5, 40_000), missing="none", other="rest"),
                Attribute(name="c", column="x", values=("01", "32767", "x", "0.5"), missing="none", other="rest"),
                Attribute(name="d", column="x", range=(-1, 4), missing="8.5", other="rest"),
            )
        )
        same(recognise_postgres(server.address(name)), open_source(table), schema)


def test_integers_beyond_doubles_are_told_apart(server):
    at = 2**60
    table = pa.table({"x": pa.array([at, at + 1, at + 2, at + 3, None, 2**63 - 1, -(2**63)], pa.int64())})
    engine = recognise_postgres(server.address(load(server, "wide", table)))
    schema = Schema(
        (
            Attribute(name="a", column="x", range=(at, at + 2), missing=str(at + 3), other="rest"),
            Attribute(name="b", column="x", values=(str(at + 1), "9223372036854775807"), missing="none", other="rest"),
        )
    )
    found = same(engine, open_source(table), schema)
    assert found[1] == [1, 1, 1, 2, 2]


def test_dates_times_and_texts_of_other_types_are_as_duckdb_writes_them(server):
    execute(
        server,
        "DROP TABLE IF EXISTS odd",
        "DROP DOMAIN IF EXISTS small",
        "DROP TYPE IF EXISTS mood",
        "CREATE TYPE mood AS ENUM ('sad', 'ha''ppy')",
        "CREATE DOMAIN small AS integer CHECK (VALUE < 100)",
        """CREATE TABLE odd (d date, t timestamp, z timestamptz, c time, u uuid, m mood, s small, f char(5), b boolean,
           v varchar(9), j jsonb)""",
        """INSERT INTO odd VALUES
           ('2020-02-29', '2020-02-29 01:02:03', '2020-02-29 01:02:03.5+01', '01:02:03',
            '123e4567-e89b-12d3-a456-426614174000', 'ha''ppy', 7, 'ab', true, 'x', '{"a": 1}'),
           (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
           ('infinity', '-infinity', 'infinity', '24:00', '00000000-0000-0000-0000-000000000000', 'sad', 8, 'abc',
            false, '', 'null'),
           ('0044-03-15 BC', '0001-01-01', '20000-01-01', '00:00:00.000001', NULL, 'sad', 99, '', NULL, 'xyz', '[]')""",
    )
    labels = {
        "d": "2020-02-29",
        "t": "2020-02-29 01:02:03",
        "z": "2020-02-29 00:02:03.5+00",
        "c": "01:02:03",
        "u": "123e4567-e89b-12d3-a456-426614174000",
        "m": "ha'ppy",
        "s": "7",
        "f": "ab",
        "b": "true",
        "v": "x",
        "j": '{"a": 1}',
    }
    schema = Schema(
        tuple(Attribute(name=name, values=(label,), missing="none", other="rest") for name, label in labels.items())
    )
    counts = recognise_postgres(server.address("odd")).count(schema, marginals(len(labels), (1,)))
    for place, name in enumerate(labels):
        nulls = {"u": 2, "b": 2}.get(name, 1)
        found = counts.tables(np.array([[place]], np.int32))[0].tolist()
        assert found == [1, nulls, 3 - nulls], name
    schema = Schema(tuple(Attribute(name=name, codes=2, missing="none", other="rest") for name in "bdt"))
    counts = recognise_postgres(server.address("odd")).count(schema, marginals(3, (1,)))
    assert counts.tables(np.array([[0], [1], [2]], np.int32)).tolist() == [[1, 1, 2, 0], [0, 0, 1, 3], [0, 0, 1, 3]]


def test_twins_stay_apart_whatever_the_collation_says(server):
    execute(
        server,
        "DROP TABLE IF EXISTS twins",
        "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        "CREATE TABLE twins (x text COLLATE loose)",
        "INSERT INTO twins VALUES ('e'), ('E'), ('\u00e9'), ('e\u0301'), ('\u00e9'), ('\uff45')",
    )
    for labels, expected in (
        (("e", "\u00e9"), [1, 2, 3]),
        ((*map(str, range(3_000)), "E"), [0] * 3_000 + [1, 5]),
    ):
        schema = Schema((Attribute(name="x", values=labels, other="rest"),))
        counts = recognise_postgres(server.address("twins")).count(schema, marginals(1, (1,)))
        assert counts.tables(np.array([[0]], np.int32))[0].tolist() == expected


def test_texts_that_hold_numbers_fall_into_bins_as_in_duckdb(server):
    texts = ["1", "1.5", " 2 ", "x", "", None, "1e1", "NaN", "inf", "0x1", "none", "-0"]
    table = pa.table({"x": pa.array(texts, pa.string())})
    schema = Schema(
        (
            Attribute(name="b", column="x", bins=(0, 1.5, 10), missing="none", other="rest"),
            Attribute(name="r", column="x", range=(0, 10), missing="none", other="rest"),
        )
    )
    same(recognise_postgres(server.address(load(server, "texts", table))), open_source(table), schema)


def test_labels_that_postgres_cannot_hold_are_not_sent(server):
    table = pa.table({"x": pa.array(["a", "b"], pa.string())})
    schema = Schema((Attribute(name="x", values=("a", "a\0", "?", "??"), other="rest"),))
    counts = recognise_postgres(server.address(load(server, "zero", table))).count(schema, marginals(1, (1,)))
    assert counts.tables(np.array([[0]], np.int32)).tolist() == [[1, 0, 0, 0, 1]]


def test_several_group_bys_see_one_state_of_the_data(server, monkeypatch):
    """Somebody deletes every row after the first group-by; the later ones still see them."""
    from hushcube.private.engines.postgres.table import PostgresRows

    asked = []
    original = PostgresRows._answers

    def grouped_then_deleted(self, groups, sums):
        yield from original(self, groups, sums)
        asked.append(len(groups))
        execute(server, "DELETE FROM states")

    engine = recognise_postgres(server.address(load(server, "states", TABLE)))
    monkeypatch.setattr(PostgresRows, "_answers", grouped_then_deleted)
    monkeypatch.setattr(grouped, "GROUPS", 100)
    check(engine, HOSTILE, TABLE, (1, 2))
    assert len(asked) > 1
    with pytest.raises(AssertionError):
        check(engine, HOSTILE, TABLE, (1, 2))


def test_only_groups_travel(server, monkeypatch):
    """A million distinct numbers and texts come back as a handful of groups."""
    from hushcube.private.engines.postgres.table import PostgresRows

    travelled = []
    original = PostgresRows._fetched

    def fetched(self, query, bound):
        for rows in original(self, query, bound):
            travelled.extend(rows)
            yield rows

    monkeypatch.setattr(PostgresRows, "_fetched", fetched)
    execute(
        server,
        "DROP TABLE IF EXISTS many",
        """CREATE TABLE many AS SELECT i::text AS t, i::bigint AS i, i / 7.0::float8 AS f, i / 7.0::numeric AS n
           FROM generate_series(1, 30000) AS i""",
    )
    categories = {"missing": "none", "other": "rest"}
    schema = Schema(
        (
            Attribute(name="t", values=("1", "2"), **categories),
            Attribute(name="i", range=(1, 3), **categories),
            Attribute(name="f", bins=(0, 1, 10), **categories),
            Attribute(name="n", range=(1, 3), **categories),
            Attribute(name="v", column="i", values=("5", "6"), **categories),
            Attribute(name="w", column="f", values=("1", "2"), **categories),
        )
    )
    counts = recognise_postgres(server.address("many")).count(schema, marginals(6, (1, 2)))
    assert counts.rows == 30_000
    assert len(travelled) < 100
    assert counts.tables(np.array([[5]], np.int32)).tolist() == [[1, 1, 0, 29_998]]


def test_views_and_tables_of_other_schemas_are_found_by_exact_names(server):
    execute(
        server,
        'DROP SCHEMA IF EXISTS "S one" CASCADE',
        'CREATE SCHEMA "S one"',
        'CREATE TABLE "S one"."T" AS SELECT 1 AS a',
        'CREATE VIEW "S one".v AS SELECT a FROM "S one"."T" UNION ALL SELECT 0',
        "DROP TABLE IF EXISTS twice",
        "CREATE TABLE twice AS SELECT 1 AS a",
        'CREATE TABLE "S one".twice AS SELECT 0 AS a',
    )
    schema = Schema((Attribute(name="a", codes=2),))

    def found(table):
        counts = recognise_postgres(server.address(table)).count(schema, marginals(1, (1,)))
        return counts.tables(np.array([[0]], np.int32))[0].tolist()

    assert found("S one.T") == found("T") == [0, 1]
    assert found("S one.v") == [1, 1]
    assert found("twice") == [0, 1]  # the search path decides
    assert found("S one.twice") == [1, 0]
    for name in ("t", "s one.T", "T; DROP TABLE twice", 'S one"."T', "pg_class", "pg_catalog.pg_class"):
        with pytest.raises(DataError, match="no table or view"):
            found(name)


def count_one(engine):
    return engine.count(Schema((Attribute(name="a", codes=2),)), [np.array([[0]], np.int32)])


def refusal(engine):
    with pytest.raises(DataError) as caught:
        count_one(engine)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    message = str(caught.value)
    assert SECRET not in message
    assert PASSWORD not in message
    return message


def test_wrong_or_missing_credentials(server, monkeypatch):
    execute(server, "DROP TABLE IF EXISTS one", "CREATE TABLE one AS SELECT 1 AS a")
    assert count_one(recognise_postgres(server.address("one"))).rows == 1
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert "refuses the user, the password" in refusal(recognise_postgres(server.address("one")))
    monkeypatch.delenv("PGPASSWORD")
    monkeypatch.setenv("PGPASSFILE", "/nonexistent")
    assert "refuses the user, the password" in refusal(recognise_postgres(server.address("one")))
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    assert "refuses the user, the password" in refusal(recognise_postgres(server.address("one", user="nobody")))


def test_the_user_may_come_from_the_environment(server, monkeypatch):
    execute(server, "DROP TABLE IF EXISTS one", "CREATE TABLE one AS SELECT 1 AS a")
    monkeypatch.setenv("PGUSER", "owner")
    assert count_one(recognise_postgres(f"postgres://127.0.0.1:{server.port}/postgres#one")).rows == 1


def test_an_unreachable_server_and_a_missing_database(server):
    assert "no connection" in refusal(recognise_postgres("postgres://owner@127.0.0.1:1/postgres#one"))
    nothing = recognise_postgres(f"postgres://owner@127.0.0.1:{server.port}/nothing#one")
    assert "refuses the user, the password or the database" in refusal(nothing)


def test_a_password_in_the_address_is_refused_and_not_repeated(server):
    for address in (
        f"postgres://owner:{SECRET}@127.0.0.1/db#t",
        f"postgres://owner@127.0.0.1/db?password={SECRET}#t",
        f"postgresql://127.0.0.1/db?sslpassword={SECRET}#t",
        f"postgres://owner:{SECRET}%zz@127.0.0.1/db#t",
    ):
        with pytest.raises(DataError) as caught:
            recognise_postgres(address)
        assert SECRET not in str(caught.value)
    for address in (
        "postgres://127.0.0.1/db",
        "postgres://127.0.0.1/db#",
        "postgres://[::1/db#t",
        "postgres://h/d?x=1#t",
    ):
        with pytest.raises(DataError, match="postgres://host:port"):
            recognise_postgres(address)
    assert recognise_postgres("people.csv") is None
    assert SECRET not in repr(recognise_postgres(f"postgres://{SECRET}@h/d#t").warehouse)


def test_a_missing_driver_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingDependency, match=r"hushcube\[postgres\]"):
        recognise_postgres("postgres://h/d#t")


def test_rights_timeouts_and_broken_views_say_nothing_of_the_data(server, monkeypatch):
    execute(
        server,
        "DROP VIEW IF EXISTS broken, slow",
        "DROP TABLE IF EXISTS secrets",
        "DROP ROLE IF EXISTS clerk",
        f"CREATE TABLE secrets AS SELECT 1 AS a, '{SECRET}'::text AS b",
        "CREATE VIEW broken AS SELECT b::integer AS a FROM secrets",
        "CREATE VIEW slow AS SELECT 1 AS a, pg_sleep(20)::text AS b FROM secrets",
        f"CREATE ROLE clerk LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
    )
    assert "cannot be counted" in refusal(recognise_postgres(server.address("broken")))
    assert "may not read" in refusal(recognise_postgres(server.address("secrets", user="clerk")))
    execute(server, "GRANT SELECT (a) ON secrets TO clerk")
    assert count_one(recognise_postgres(server.address("secrets", user="clerk"))).rows == 1
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=200")
    engine = recognise_postgres(server.address("slow"))
    with pytest.raises(DataError, match="stopped the query"):
        engine.count(Schema((Attribute(name="b", codes=2),)), [np.array([[0]], np.int32)])


@pytest.fixture
def desk(tmp_path, monkeypatch, capsys):
    """A plan of counts and sums for people with many rows; and a release of it that must be refused."""
    from hushcube.cli import run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.yaml").write_text(
        """name: people
unit: id
max_rows: 2
attributes: [{name: a, size: 2}]
measures: [{name: m, bounds: [0, 9]}]
"""
    )
    asked = ["--schema", "people.yaml", "--workload", "1-way", "--measure", "sum(m)"]
    assert run(["plan", *asked, "--epsilon", "1", "--neighbours", "add-remove", "--out", "plan.json"]) == 0
    capsys.readouterr()

    def refused(data, expected=2):
        before = listing(tmp_path)
        code = run(["release", "plan.json", "--data", data, "--out", "published"])
        captured = capsys.readouterr()
        assert code == expected, captured.err
        assert listing(tmp_path) == before
        assert "Fix:" in captured.err
        told = captured.err + captured.out
        assert SECRET not in told and PASSWORD not in told and "Traceback" not in told
        return " ".join(captured.err.split())

    return refused


GOOD = "SELECT i % 3 AS id, i % 2 AS a, 'x' || i AS b, i % 9 AS m FROM generate_series(1, 20) AS i"


def test_a_release_from_postgres_bounds_and_sums(server, desk, tmp_path):
    from hushcube.cli import run

    execute(server, "DROP TABLE IF EXISTS good", f"CREATE TABLE good AS {GOOD}")
    assert run(["release", "plan.json", "--data", server.address("good"), "--out", "published"]) == 0
    assert (tmp_path / "published").is_dir()


def test_the_program_refuses_with_code_2_and_writes_nothing(server, desk, monkeypatch):
    execute(
        server,
        "DROP VIEW IF EXISTS cracked",
        "DROP TABLE IF EXISTS good, nobody, wordy",
        "DROP ROLE IF EXISTS guest",
        f"CREATE TABLE good AS {GOOD}",
        f"CREATE TABLE nobody AS {GOOD}",
        "UPDATE nobody SET id = NULL WHERE a = 1",
        f"CREATE TABLE wordy AS SELECT id, a, '{SECRET}'::text AS m FROM good",
        "CREATE VIEW cracked AS SELECT id, a, m::integer AS m FROM wordy",
        f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
        "GRANT SELECT ON good TO guest",
        "REVOKE SELECT ON good FROM guest",
    )
    assert "no table or view 'nothing'" in desk(server.address("nothing"))
    assert "this user may not read" in desk(server.address("good", user="guest"))
    execute(server, "GRANT SELECT (id, a) ON good TO guest")  # not the measure: it is as good as not there
    assert "no column 'm'" in desk(server.address("good", user="guest"))
    assert "unit, column 'id' holds missing values" in desk(server.address("nobody")).replace(":", "")
    assert "measure 'm', column 'm'" in desk(server.address("wordy"))
    assert "cannot be counted" in desk(server.address("cracked"))
    assert "no connection" in desk("postgres://owner@127.0.0.1:1/postgres#good")
    assert "holds a password" in desk(f"postgres://owner:{SECRET}@127.0.0.1:{server.port}/postgres#good")
    monkeypatch.setenv("PGPASSWORD", SECRET)
    assert "refuses the user, the password" in desk(server.address("good"))
    monkeypatch.setitem(sys.modules, "psycopg", None)
    assert "hushcube[postgres]" in desk(server.address("good"), expected=1)  # what is missing is not the user's input


def meanwhile(own, act, job):
    """Run a job in a thread; once its query sleeps on the server, act; what it returned or raised."""
    outcomes = []

    def run():
        try:
            outcomes.append(job())
        except BaseException as error:
            outcomes.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    running = "FROM pg_stat_activity WHERE application_name = 'hushcube' AND wait_event = 'PgSleep'"
    with own.connect() as watcher:
        end = time.monotonic() + 20
        while not watcher.execute(f"SELECT pid {running}").fetchall():
            assert time.monotonic() < end
            time.sleep(0.02)
        if act == "connection ended":
            watcher.execute(f"SELECT pg_terminate_backend(pid) {running}")
    if act == "server killed":
        own.kill()
    thread.join(20)
    assert not thread.is_alive()
    return outcomes[0]


@pytest.mark.parametrize("how", ["server killed", "connection ended"])
def test_a_loss_in_the_middle_of_a_query(how, capsys, caplog, desk):
    """The query sleeps on the server until it is ended from outside: while it groups, while it chooses rows."""
    own = Server()
    try:
        execute(
            own,
            f"CREATE VIEW slow AS SELECT 1 AS a, '{SECRET}'::text || pg_sleep(60)::text AS b",
            f"CREATE TABLE good AS {GOOD}",
            "CREATE VIEW slow_sums AS SELECT id, a, m + length(pg_sleep(60)::text) AS m FROM good",
        )
        schema = Schema((Attribute(name="b", values=("x",), other="rest"),))
        engine = recognise_postgres(own.address("slow"))
        error = meanwhile(own, how, lambda: engine.count(schema, [np.array([[0]], np.int32)]))
        assert isinstance(error, DataError)
        assert "connection to the Postgres server was lost" in str(error)
        assert error.__cause__ is None
        assert SECRET not in str(error)
        assert not caplog.records
        assert "".join(capsys.readouterr()) == ""
        if how == "server killed":
            own.start()
        assert "was lost" in meanwhile(own, how, lambda: desk(own.address("slow_sums")))
    finally:
        own.close()


def test_rows_are_chosen_without_the_right_to_write_anything(server):
    """No temporary tables, a read-only user, a server that allows no writing: as on a standby."""
    execute(
        server,
        "DROP ROLE IF EXISTS reader",
        "DROP TABLE IF EXISTS visits",
        "CREATE TABLE visits AS SELECT i % 7 AS id, i % 5 AS a, 0 AS b FROM generate_series(1, 200) AS i",
        f"CREATE ROLE reader LOGIN PASSWORD '{PASSWORD.replace(chr(39), chr(39) * 2)}'",
        "ALTER ROLE reader SET default_transaction_read_only = on",
        "REVOKE TEMPORARY ON DATABASE postgres FROM PUBLIC",
        "GRANT SELECT ON visits TO reader",
    )
    schema = Schema((Attribute(name="a", codes=5), Attribute(name="b", codes=1)), unit=Unit("id", 3))
    counts = recognise_postgres(server.address("visits", user="reader")).count(schema, marginals(2, (1, 2)))
    assert (counts.rows, counts.dropped) == (21, 179)


EQUAL = {
    "citext": ("ext.citext", "Ann", "ANN"),
    "domain": ("ext.name", "Ann", "ANN"),
    "array": ("ext.citext[]", "{Ann}", "{ANN}"),
    "loose": ("text COLLATE loose", "e", "\u00e9"),
    "short": ("varchar(9) COLLATE loose", "e", "E"),
    "padded": ("char(5)", "a", "a  "),
    "numeric": ("numeric", "1.0", "1.00"),
    "zero": ("double precision", "0", "-0"),
    "nan": ("real", "NaN", "-NaN"),
    "jsonb": ("jsonb", "1.0", "1.00"),
    "interval": ("interval", "1 month", "30 days"),
    "range": ("numrange", "[1.0,2)", "[1.00,2.0)"),
    "moment": ("timestamptz", "2020-01-01 12:00+00", "2020-01-01 13:00+01"),
    "bytes": ("bytea", "\\x61", "a"),
    "text": ("text", "a", "a"),
}


def test_ids_that_postgres_calls_equal_are_one_person(server):
    """The operator of citext is in a schema that is not searched: comparing by `=` would compare texts."""
    columns = ", ".join(f"x_{name} {kind}" for name, (kind, *_) in EQUAL.items())
    execute(
        server,
        "DROP VIEW IF EXISTS equal_view",
        "DROP TABLE IF EXISTS equal_ids",
        "CREATE SCHEMA IF NOT EXISTS ext",
        "CREATE EXTENSION IF NOT EXISTS citext SCHEMA ext",
        "DROP DOMAIN IF EXISTS ext.name",
        "CREATE DOMAIN ext.name AS ext.citext",
        "CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level1', deterministic = false)",
        f"CREATE TABLE equal_ids (a integer, {columns}, j json)",
        "CREATE VIEW equal_view AS SELECT * FROM equal_ids",
    )
    with server.connect() as connection:
        for i in range(20):
            values = [i % 5, *(kind[1 + i % 2] for kind in EQUAL.values()), "1"]
            connection.execute(f"INSERT INTO equal_ids VALUES ({', '.join(['%s'] * len(values))})", values)
    for name in EQUAL:
        one_person_of(recognise_postgres(server.address("equal_ids")), f"x_{name}")
    for name in ("citext", "loose", "text"):
        one_person_of(recognise_postgres(server.address("equal_view")), f"x_{name}")
    with pytest.raises(DataError, match="unit, column 'j': its type has no equality"):
        one_person_of(recognise_postgres(server.address("equal_ids")), "j")


def test_a_view_that_draws_at_random_is_read_once_for_each_count(server):
    """Who a row belongs to changes with every reading; still nobody has more rows than count."""
    execute(
        server,
        "DROP VIEW IF EXISTS dice",
        "CREATE VIEW dice AS SELECT floor(random() * 40)::integer AS id, 0 AS a FROM generate_series(1, 100)",
    )
    with recognise_postgres(server.address("dice")).warehouse.open() as data:
        assert not data.steady
        for _ in range(5):
            rows = data.bounded(Unit("id", 1), ("id", "a"), bytes(16)).grouped([warehouse.Column("id")])
            assert len(set(rows.column("k0").to_pylist())) == rows.num_rows > 20
            assert set(rows.column("n").to_pylist()) == {1}
    execute(server, "DROP TABLE IF EXISTS one", "CREATE TABLE one AS SELECT 1 AS a")
    with recognise_postgres(server.address("one")).warehouse.open() as data:
        assert data.steady


def test_several_group_bys_of_chosen_rows_are_one_statement(server, monkeypatch):
    from hushcube.private.engines.postgres.table import PostgresRows

    asked = []
    original = PostgresRows._fetched

    def fetched(self, query, bound):
        asked.append(query.as_string())
        return original(self, query, bound)

    monkeypatch.setattr(PostgresRows, "_fetched", fetched)
    monkeypatch.setattr(grouped, "GROUPS", 30)
    execute(
        server,
        "DROP TABLE IF EXISTS wide",
        "CREATE TABLE wide AS SELECT i % 7 AS id, i % 5 AS a, i % 4 AS b, i % 3 AS c FROM generate_series(1, 500) AS i",
    )
    schema = Schema(tuple(Attribute(name=n, codes=k) for n, k in (("a", 5), ("b", 4), ("c", 3))), unit=Unit("id", 9))
    wanted = marginals(3, (1, 2))
    counts = recognise_postgres(server.address("wide")).count(schema, wanted)
    assert len(asked) == 1 and "GROUPING SETS" in asked[0]
    a, b, c = counts.tables(np.array([[0, 1]])), counts.tables(np.array([[1, 2]])), counts.tables(np.array([[0, 2]]))
    assert a.sum() == 63 and (a[0].sum(axis=0) == b[0].sum(axis=1)).all() and (a[0].sum(1) == c[0].sum(1)).all()


@given(texts=st.lists(st.one_of(st.text(alphabet="0123456789.-+eE_ xinfaN\t", max_size=8), st.floats().map(str))))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_are_numbers_where_duckdb_says_so(texts, server):
    table = pa.table({"a": pa.array([0] * len(texts), pa.int16()), "t": pa.array(texts, pa.string())})
    measure = Measure(name="t", bounds=(-1000, 1000), resolution="0.001", missing=7)
    engine = recognise_postgres(server.address(load(server, "texts", table)))
    same_as(open_source(table), engine, Schema((Attribute(name="a", codes=1),)), (1,), [measure])


@pytest.mark.parametrize("kind", ["numeric", "bytea", "date", "uuid", "jsonb", "boolean"])
def test_measures_of_every_type(server, kind):
    """A number is the nearest double; what DuckDB would take for no number is missing."""
    values = {
        "numeric": ("'1.005'", "'1e-200'", "'NaN'", "'1e400'", "'-1e400'", "'2.5'"),
        "bytea": ("'1'", "'\\x00'", "'2.5'", "'x'"),
        "date": ("'2020-02-29'",),
        "uuid": ("'00000000-0000-0000-0000-000000000001'",),
        "jsonb": ("'4'", "'\"4\"'", "'[4]'", "'null'"),
        "boolean": ("true", "false"),
    }[kind]
    expected = {"numeric": [1, 0, 5, 9, 0, 2], "bytea": [1, 5, 2, 5], "jsonb": [4, 5, 5, 5]}.get(
        kind, [5] * len(values)
    )
    rows = ", ".join(f"({i}, {value}::{kind})" for i, value in enumerate((*values, "NULL")))
    execute(server, "DROP TABLE IF EXISTS typed", f"CREATE TABLE typed AS SELECT * FROM (VALUES {rows}) AS t (a, m)")
    schema = Schema((Attribute(name="a", codes=len(values) + 1),))
    measure = Measure(name="m", bounds=(0, 9), missing=5)
    counts = recognise_postgres(server.address("typed")).count(schema, marginals(1, (1,)), measures=[measure])
    assert counts.sums["m"].tables(np.array([[0]], np.int32))[0].tolist() == [*expected, 5]


def test_nothing_can_be_written(server):
    execute(
        server,
        "DROP VIEW IF EXISTS sly",
        "CREATE TABLE IF NOT EXISTS written (a integer)",
        """CREATE OR REPLACE FUNCTION write_one() RETURNS integer LANGUAGE plpgsql AS
           $$ BEGIN INSERT INTO written VALUES (1); RETURN 1; END $$""",
        "CREATE VIEW sly AS SELECT write_one() AS a",
    )
    refusal(recognise_postgres(server.address("sly")))
    with server.connect() as connection:
        assert connection.execute("SELECT count(*) FROM written").fetchone() == (0,)


def test_every_adapter_meets_the_same_numbers_by_hand(make):
    """The three kinds of grouping, by themselves, against plain Python."""
    numbers = [0.0, 1.0, 1.5, 2.0, 2.5, -1.0, math.inf, -math.inf, math.nan, None, 7.0]
    table = pa.table({"x": pa.array(numbers, pa.float64()), "t": pa.array([str(x)[:1] for x in numbers], pa.string())})
    with make(table).warehouse.open() as data:
        assert (data.names, data.column_types) == (("x", "t"), ("number", "text"))
        columns = [
            warehouse.Binned("x", (0.0, 1.0, 2.0), 7.0),
            warehouse.Whole("x", -1, 2, 1.5),
            warehouse.Known("t", ("1", "i"), "?"),
        ]
        found = data.grouped(columns)
        total = data.grouped([]).to_pydict()
    assert total == {"n": [11]}
    rows = itertools.chain.from_iterable([row[:-1]] * row[-1] for row in zip(*found.to_pydict().values(), strict=True))
    missing, outside = warehouse.MISSING, warehouse.OUTSIDE
    bins = [0, 1, 1, 1, outside, outside, outside, outside, missing, missing, missing]
    whole = [1, 2, missing, 3, outside, 0, outside, outside, missing, missing, outside]
    known = ["?", "1", "1", "?", "?", "?", "i", "?", "?", "?", "?"]
    assert sorted(rows) == sorted(zip(bins, whole, known, strict=True))


def test_names_of_columns_are_never_read_as_placeholders(make):
    names = ("per%cent %s", "{name} $1", '"; DROP TABLE x; --', "%(low)s")
    table = pa.table({name: pa.array([0, 1, 1], pa.int32()) for name in names})
    schema = Schema(tuple(Attribute(name=f"a{i}", column=name, codes=2) for i, name in enumerate(names)))
    check(make(table), schema, table, (1, 2))
