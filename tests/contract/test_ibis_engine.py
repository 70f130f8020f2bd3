"""The engines' contract on an Ibis table; the backend is Ibis's own DuckDB, so that no server is needed."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from test_engines import HOSTILE, TABLE, _strict, check, marginals

from engine_cases import (  # noqa: F401
    same_as,
    test_a_missing_column_of_a_measure_or_unit_is_named,
    test_a_person_of_a_thousand_rows_moves_every_table_by_the_bound,
    test_acs_counts_and_sums_as_in_duckdb,
    test_hospital_counts_and_sums_as_in_duckdb,
    test_ids_of_any_kind,
    test_levels_dates_and_cut_texts_are_counted_as_in_duckdb,
    test_missing_measures_are_refused_after_attributes_and_by_name,
    test_nobody_at_all,
    test_refusals_of_levels_name_the_declared_attribute,
    test_remote_choices_are_a_persons_own,
    test_remote_choices_are_uniform_over_sets,
    test_remote_choices_do_not_mix_up_columns,
    test_remote_group_bys_of_one_count_are_of_the_same_rows,
    test_remote_sums_by_hand,
    test_rows_of_nobody_are_refused_or_count_as_their_own,
    test_sums_of_hostile_values_are_duckdbs_bit_for_bit,
    test_sums_over_no_rows_and_over_the_total_alone,
    test_sums_that_might_overflow_are_refused,
    test_the_choice_is_uniform_and_new_each_time,
)
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.private.engines.ibis.engine import recognise_ibis

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


def test_only_tables_are_recognised(make):
    assert recognise_ibis(TABLE) is None
    with pytest.raises(DataError, match="no table"):
        recognise_ibis(make(TABLE).warehouse.table.age)
