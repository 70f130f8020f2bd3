"""The engines' contract on an Ibis table; the backend is Ibis's own DuckDB, so that no server is needed."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from test_engines import HOSTILE, TABLE, _strict, check, marginals

from engine_cases import *  # noqa: F403
from engine_cases import one_person_of, same_as
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.private.engines.ibis import recognise_ibis

ibis = pytest.importorskip("ibis", reason="ibis-framework is not installed")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ibis's own calls, when it connects


@pytest.fixture
def make(tmp_path):
    def opened(table):
        for backend in opened.backends:
            backend.disconnect()
        (tmp_path / "x.duckdb").unlink(missing_ok=True)
        with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
            connection.execute('CREATE TABLE "peo""ple; --" AS FROM "table"')
        opened.backends.append(ibis.duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True))
        return recognise_ibis(opened.backends[-1].table('peo"ple; --'))

    opened.backends = []
    yield opened
    for backend in opened.backends:
        backend.disconnect()


@pytest.mark.parametrize("rows", [0, 1, TABLE.num_rows])
def test_ibis_agrees_with_brute_force_on_hostile_data(make, rows):
    table = TABLE.slice(0, rows)
    check(make(table), HOSTILE, table)


def test_random_tables_of_many_types_give_the_counts_of_duckdb(make):
    spark_cases = pytest.importorskip("test_spark_engine")
    table = spark_cases.random_table(2)
    same_as(open_source(table), make(table), spark_cases.MANY, (1,))


def test_refusals_and_missing_columns_are_those_of_every_engine(make):
    strict = Schema((Attribute(**_strict(HOSTILE["income"], "missing")),))
    with pytest.raises(DataError, match="holds missing values"):
        make(TABLE).count(strict, marginals(1, (1,)))
    with pytest.raises(DataError, match=r"'Age'.*upper and lower case differ"):
        make(TABLE).count(Schema((Attribute(name="Age", range=(0, 9)),)), marginals(1, (1,)))


def test_messages_of_the_driver_are_not_passed_on(make):
    table = make(pa.table({"a": ["secret"]})).warehouse.table
    with pytest.raises(DataError, match="cannot group") as caught:
        recognise_ibis(table.mutate(a=table.a.cast("int64"))).count(
            Schema((Attribute(name="a", codes=2),)), marginals(1, (1,))
        )
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


def test_ids_that_a_collation_calls_equal_are_one_person(tmp_path):
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t (a INTEGER, id VARCHAR COLLATE NOCASE.NOACCENT)")
        connection.execute("INSERT INTO t SELECT i % 5, ['Ann', 'ANN', '\u00e4nn'][i % 3 + 1] FROM range(30) AS r(i)")
    backend = ibis.duckdb.connect(str(tmp_path / "x.duckdb"), read_only=True)
    one_person_of(recognise_ibis(backend.table("t")), "id")
    backend.disconnect()


def test_only_tables_are_recognised(make):
    assert recognise_ibis(TABLE) is None
    with pytest.raises(DataError, match="not a table"):
        recognise_ibis(make(TABLE).warehouse.table.age)
