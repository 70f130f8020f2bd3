"""Whatever reading or counting raises leaves `hushcube.private` without a word, cause or frame that holds data."""

from __future__ import annotations

import traceback

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from hushcube.cli import run
from hushcube.errors import BadInput, DataError, ResourceError
from hushcube.experiments.classify import coded_rows
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.draft import check_data, draft_schema
from hushcube.private.engines import open_source

SECRET = "topsecret"
SCHEMA = Schema((Attribute(name="a", values=("x", "y"), missing="none", other="rest"), Attribute(name="b", codes=9)))
WANTED = [np.array([[0, 1]], dtype=np.int32)]


class Stream:
    """Something that exports Arrow, until it fails with what it holds."""

    def __init__(self, failure):
        self.failure = failure

    def __arrow_c_stream__(self, requested_schema=None):
        raise self.failure


class Odd:
    """A name of a column that cannot be written."""

    def __str__(self):
        raise ValueError(SECRET)


def batches():
    yield pa.record_batch({"a": ["x"], "b": [1]})
    raise LookupError(SECRET)


def fails(value):
    raise ValueError(f"{SECRET}: {value}")


def lazily(action):
    return pl.LazyFrame({"a": ["x", SECRET], "b": [1, 2]}).with_columns(action)


class Panic(BaseException):
    """What polars raises when Rust gives up: no `Exception`."""


SOURCES = {
    "polars, a cast that fails": lambda: lazily(pl.col("a").cast(pl.Int64)),
    "polars, a function that fails": lambda: lazily(pl.col("a").map_elements(fails, return_dtype=pl.String)),
    "pandas, an integer beyond 64 bits": lambda: pd.DataFrame({"a": ["x"], "b": pd.Series([10**25], dtype=object)}),
    "pandas, mixed values": lambda: pd.DataFrame({"a": ["x", 7], "b": [1, SECRET]}),
    "pandas, odd names": lambda: pd.DataFrame([["x", 1]], columns=["a", Odd()]),
    "a stream": lambda: Stream(KeyError(SECRET)),
    "a file that is not there": lambda: Stream(FileNotFoundError(2, "No such file", SECRET)),
    "a panic": lambda: Stream(Panic(SECRET)),
    "a generator": lambda: pa.RecordBatchReader.from_batches(next(batches()).schema, batches()),
}


def chain(error):
    """Everything that can be reached from an exception, with the local variables of all frames but the test's own."""
    told = []
    while error is not None:
        frames = [each for each in traceback.walk_tb(error.__traceback__) if each[0].f_code.co_filename != __file__]
        told += [repr(error), *traceback.StackSummary.extract(iter(frames), capture_locals=True).format()]
        error = error.__cause__ or error.__context__
    return "".join(told)


def count(source):
    return open_source(source).count(SCHEMA, WANTED)


@pytest.mark.parametrize("make", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize(
    "read", [count, lambda source: check_data(SCHEMA, source), lambda source: coded_rows(SCHEMA, source)]
)
def test_no_library_is_quoted(make, read):
    with pytest.raises(DataError) as caught:
        read(make())
    error = caught.value
    assert error.__cause__ is None and error.__context__ is None
    assert SECRET not in chain(error) and "1000000000" not in chain(error)


def test_refusals_of_our_own_leave_without_context_and_frames(tmp_path):
    (tmp_path / "x.csv").write_text(f'a,b\n"{SECRET}"x,1\n')
    for read in (count, draft_schema):
        with pytest.raises(DataError, match="CSV file cannot be read") as caught:
            read(tmp_path / "x.csv")
        assert caught.value.__context__ is None
        assert SECRET not in chain(caught.value)


def test_a_resource_is_named_and_a_file_only_where_it_is_ours(tmp_path):
    with pytest.raises(ResourceError, match="the disk is full") as caught:
        count(Stream(OSError(28, "No space left", SECRET)))
    assert SECRET not in chain(caught.value)
    (tmp_path / "x.csv").write_text("a,b\nx,1\n")
    engine = open_source(tmp_path / "x.csv")
    (tmp_path / "x.csv").unlink()
    with pytest.raises(BadInput, match=r"x\.csv.*cannot be used"):
        engine.count(SCHEMA, WANTED)


def test_a_failure_is_named_by_its_kind_and_place():
    with pytest.raises(DataError, match=r"it cannot be read \(KeyError at private/engines/source\.py:\d+\)"):
        open_source(Stream(KeyError(SECRET)))


@pytest.mark.parametrize("kind", [KeyboardInterrupt, MemoryError, SystemExit])
def test_interrupts_and_a_lack_of_memory_stay_what_they_are(kind):
    with pytest.raises(kind) as caught:
        open_source(Stream(kind()))
    assert caught.value.__context__ is None


def test_what_the_callers_own_callbacks_raise_is_theirs():
    class Enough(OSError):
        """A caller's own way to stop."""

    def stop(share):
        raise Enough

    with pytest.raises(Enough):
        open_source(pa.table({"a": ["x"], "b": [1]})).count(SCHEMA, WANTED, progress=stop)


def test_the_callers_handler_does_not_show_through():
    @guarded
    def read():
        try:
            raise ValueError(SECRET)
        except ValueError:
            raise DataError("data", "is bad", "fix it") from None

    with pytest.raises(DataError) as caught:
        read()
    assert caught.value.__context__ is None


ADDRESSES = [
    f"POSTGRES://u:{SECRET}@host/db#t",
    f"PostgreSQL://host/db?password={SECRET}#t",
    f"postgres://127.0.0.1:1/db#t?password={SECRET}",
    f" postgresql://u:{SECRET}@host/db#t",
    f"mysql://u:{SECRET}@host/db",
    f"MySQL+pymysql://u:{SECRET}@host/db#t",
    f"jdbc:postgresql://host/db?user=u&password={SECRET}",
    f"Server=host;Pwd={SECRET}",
    f"host=h password={SECRET} dbname=d",
    f"u:{SECRET}@host",
    f"SPARK://u:{SECRET}@host#t",
    f"sc://127.0.0.1:1/;token={SECRET}#t",
    f"Sc://127.0.0.1:1?token={SECRET}#t",
    f"spark://127.0.0.1:1?token={SECRET}#t",
    f"parquet:s3a://key:{SECRET}@bucket/x",
    f"https://u:{SECRET}@host/people.csv",
    f"csv:https://host/people.csv?access_token={SECRET}",
    f"s3://key:{SECRET}@bucket/people.parquet",
    f"duckdb:postgres://u:{SECRET}@host/db#t",
    f"a,b\n{SECRET},1\n",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_secrets_in_addresses_are_never_repeated(address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.yaml").write_text("attributes: [{name: a, values: [x]}]\n")
    planning = ["--workload", "1-way", "--epsilon", "1", "--neighbours", "add-remove", "--out", "o"]
    for command in (
        ["release", "--schema", "s.yaml", "--data", address, *planning],
        ["schema", "check", "s.yaml", "--data", address, "--json"],
        ["schema", "draft", address],
        ["release", "--schema", "s.yaml", "--data", "x.csv", "--engine", address, *planning],
    ):
        assert run(command) == 2
        told = capsys.readouterr()
        assert SECRET not in told.out + told.err
    assert not (tmp_path / "o").exists()


def test_upper_case_schemes_are_addresses_too():
    with pytest.raises(DataError, match="holds a password"):
        open_source(f"POSTGRES://u:{SECRET}@host/db#t")
    with pytest.raises(DataError, match="holds no credentials"):
        open_source(f"SC://host/;token={SECRET}#t")
    with pytest.raises(DataError, match=r"not clear what mysql://\.\.\. is"):
        open_source(f"mysql://u:{SECRET}@host/db")
