"""People with many rows, and measures, on Spark: the cases of every engine, in local mode and through Spark Connect."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from engine_cases import *  # noqa: F403
from engine_cases import KEY, one_person_of
from hushcube.model.privacy import Unit
from hushcube.private.engines.grouped.warehouse import Column
from hushcube.private.engines.spark import recognise_spark
from spark_java import RUNNING

pytestmark = pytest.mark.service


@pytest.fixture(scope="session")
def spark():
    yield RUNNING.start()
    RUNNING.stop()


@pytest.mark.parametrize("collation", ["UTF8_LCASE", "UNICODE_CI", "UTF8_BINARY_RTRIM"])
def test_ids_that_a_collation_calls_equal_are_one_person(spark, tmp_path, collation):
    """In many partitions, so that equal ids have to be brought together."""
    spark.conf.set("spark.sql.shuffle.partitions", "7")
    ids = {"UTF8_BINARY_RTRIM": ["Ann", "Ann ", "Ann  "]}.get(collation, ["Ann", "ANN", "aNn"])
    listed = ", ".join(f"'{each}'" for each in ids)
    i = f"collate(element_at(array({listed}), CAST(id % 3 AS INT) + 1), '{collation}') AS i"
    frame = spark.range(0, 300, 1, 4).selectExpr("id % 5 AS a", i)
    one_person_of(recognise_spark(frame), "i")
    frame.write.parquet(f"file://{tmp_path}/x")  # files are steady: people with few rows are listed
    one_person_of(recognise_spark(f"parquet:{tmp_path}/x/*.parquet", "spark"), "i")


def test_a_frame_that_draws_at_random_is_bounded_by_the_reading_that_counts(spark):
    """Whose row it is changes with every reading: a list of people with few rows is worth nothing for the next."""
    anybody = "pmod(hash(reflect('java.util.UUID', 'randomUUID')), 40) AS id"
    frame = spark.range(0, 200, 1, 3).selectExpr(anybody, "0 AS a")
    with recognise_spark(frame).warehouse.open() as data:
        for unit in (Unit("id", 2), Unit("id", 2, "own")):
            data.people(unit)
            found = data.bounded(unit, ("id", "a"), KEY).grouped([Column("id")])
            assert max(found.column("n").to_pylist()) <= 2
            assert found.num_rows > 30


BOTH = ("test_sums_of_hostile_values_are_duckdbs_bit_for_bit", "test_remote_choices_are_a_persons_own")
CONNECT = ("test_acs_counts_and_sums_as_in_duckdb", "test_remote_choices_do_not_mix_up_columns", "test_nobody_at_all")


def pytest_generate_tests(metafunc):
    """Each case one way, since a case takes seconds; those that could differ most, both ways."""
    if "make" in metafunc.fixturenames:
        name = metafunc.function.__name__
        ways = ["files", "connect"] if name in BOTH else ["connect" if name in CONNECT else "files"]
        metafunc.parametrize("make", ways, indirect=True)


@pytest.fixture
def make(request, spark, tmp_path):
    def made(table):
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        pq.write_table(table, path)
        if request.param == "files":
            return recognise_spark(path, "spark")
        spark.read.parquet(f"file://{path}").createOrReplaceGlobalTempView("people")
        return recognise_spark(f"sc://127.0.0.1:{spark.connect_port}#global_temp.people")

    return made
