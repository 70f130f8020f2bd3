"""A disk or memory that ran out is reported as that by every engine, never as damaged data, and without its words."""

import errno
import types

import duckdb
import pytest

from hushcube.errors import DataError, ResourceError
from hushcube.private.engines.ibis import _spoken as ibis
from hushcube.private.engines.postgres import _explained
from hushcube.private.engines.source import unreadable
from hushcube.private.engines.spark.session import spoken as spark

SECRET = "qz7731"
ENGINES = {
    "duckdb": lambda: unreadable("is damaged", "repair it"),
    "ibis": lambda: ibis("is damaged"),
    "spark": lambda: spark("is damaged", "repair it"),
}


class Py4JJavaError(Exception):
    """As Java's exceptions look to Python."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("problem", "told"),
    [
        (duckdb.OutOfMemoryException(f"failed to offload {SECRET} max_temp_directory_size"), "disk"),
        (duckdb.OutOfMemoryException(f"could not allocate block {SECRET}"), "memory"),
        (duckdb.IOException(f'Could not write file "{SECRET}": No space left on device'), "disk"),
        (OSError(errno.ENOSPC, SECRET), "disk"),
    ],
)
def test_what_ran_out_is_named(engine, problem, told):
    with pytest.raises(ResourceError, match=told) as caught, ENGINES[engine]():
        raise problem
    assert SECRET not in str(caught.value) and "Fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("words", "told"),
    [("java.io.IOException: No space left on device", "disk where Spark"), ("java.lang.OutOfMemoryError", "memory")],
)
def test_what_java_ran_out_of(words, told):
    with pytest.raises(ResourceError, match=told), spark("is damaged", "repair it"):
        raise Py4JJavaError(f"{words} {SECRET}")


@pytest.mark.parametrize(("kind", "told"), [("DiskFull", "disk"), ("OutOfMemory", "memory")])
def test_what_a_postgres_server_ran_out_of(kind, told):
    errors = pytest.importorskip("psycopg.errors", reason="psycopg is not installed")
    connection = types.SimpleNamespace(closed=False)
    with pytest.raises(ResourceError, match=f"the {told} of the Postgres server is not"), _explained(connection):
        raise getattr(errors, kind)(SECRET)


@pytest.mark.parametrize("engine", ENGINES)
def test_values_that_read_like_a_full_disk_are_still_damaged_data(engine):
    """The texts of errors about values are not looked at, because they quote them; Java's cannot be told apart."""
    with pytest.raises(ResourceError if engine == "spark" else DataError), ENGINES[engine]():
        raise duckdb.ConversionException("could not convert 'No space left on device'")
