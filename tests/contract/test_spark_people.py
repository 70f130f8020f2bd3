"""People with many rows, and measures, on Spark: the cases of every engine, in local mode and through Spark Connect."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest

from engine_cases import *  # noqa: F403
from hushcube.private.engines.spark.engine import recognise_spark
from spark_java import RUNNING


@pytest.fixture(scope="session")
def spark():
    yield RUNNING.start()
    RUNNING.stop()


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
