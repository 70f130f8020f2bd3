"""Columns of every type DuckDB has for numbers and texts, coded as declared."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.private.engines.coding import literal, quote

CONNECTION = duckdb.connect()


def positions(sql_type, given, /, **declared):
    """Where single values of a column go, one count for each; None where the data is refused."""
    attribute = Attribute(name="x", **declared)
    found = []
    for value in given:
        relation = CONNECTION.sql(f"SELECT CAST({value} AS {sql_type}) AS x")
        try:
            counts = open_source(relation).count(Schema((attribute,)), [np.array([[0]], dtype=np.int32)])
        except DataError:
            found.append(None)
        else:
            (place,) = np.flatnonzero(counts.tables(np.array([[0]], dtype=np.int32))[0])
            found.append(attribute.labels[place])
    return found


SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DECIMAL(9,2)", "VARCHAR")
UNSIGNED = ("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT")


@pytest.mark.parametrize("sql_type", SIGNED + UNSIGNED)
def test_integers_in_every_type(sql_type):
    small = ("NULL", "0", "7", "100", "127")
    assert positions(sql_type, small, range=(0, 100)) == [None, "0", "7", "100", None]
    expected = ["n", "0", "7", "o", "o"]
    assert positions(sql_type, small, codes=100, missing="n", other="o") == expected
    bins = positions(sql_type, small, bins=(0, 7, 100), missing="n")
    assert bins == ["n", "[0, 7)", "[7, 100]", "[7, 100]", None]
    assert positions(sql_type, small, values=("7", "x", "0"), other="o") == [None, "0", "7", "o", "o"]


@pytest.mark.parametrize("sql_type", SIGNED)
def test_negative_integers_do_not_wrap(sql_type):
    assert positions(sql_type, ("-100", "100", "-101"), range=(-100, 100)) == ["-100", "100", None]
    assert positions(sql_type, ("-2", "2"), values=("-2", "2")) == ["-2", "2"]


@pytest.mark.parametrize("sql_type", ["TINYINT", "UTINYINT", "DOUBLE", "UHUGEINT"])
def test_domains_wider_than_the_type(sql_type):
    assert positions(sql_type, ("5", "127"), range=(-(2**61), -(2**61) + 9)) == [None, None]
    assert positions(sql_type, ("5", "127"), range=(5, 100_004), other="o") == ["5", "127"]
    assert positions(sql_type, ("5", "127"), values=("127", "99999999999999999999999", "1e400")) == [None, "127"]


@pytest.mark.parametrize("sql_type", ["BIGINT", "HUGEINT", "UBIGINT", "VARCHAR", "DECIMAL(38,1)"])
def test_large_integers_are_exact(sql_type):
    low = 2**60 + 1
    values = (str(low - 1), str(low), str(low + 2), str(low + 3))
    assert positions(sql_type, values, range=(low, low + 2)) == [None, str(low), str(low + 2), None]
    labels = (str(2**60 + 1), str(2**60 + 2))
    if not sql_type.startswith("DECIMAL"):
        assert positions(sql_type, labels, values=labels) == list(labels)
    assert positions(sql_type, ("NULL",), range=(low, low + 2), missing="n") == ["n"]


@pytest.mark.parametrize("sql_type", ["HUGEINT", "UBIGINT", "UHUGEINT", "DOUBLE", "VARCHAR", "DECIMAL(38,0)"])
def test_numbers_beyond_64_bits_lie_outside(sql_type):
    values = ("18446744073709551615", "18446744073709551616")[: 1 if sql_type == "UBIGINT" else 2]
    for declared in ({"codes": 3}, {"range": (2**60, 2**60 + 5)}, {"bins": (0, 2**52)}, {"values": ("1",)}):
        assert positions(sql_type, values, **declared, other="o") == ["o"] * len(values)


@pytest.mark.parametrize("sql_type", ["FLOAT", "DOUBLE", "VARCHAR"])
def test_floats(sql_type):
    odd = ("'nan'", "'inf'", "'-inf'", "'1.5'", "'1e0'", "'-0.0'", "'1.0'")
    expected = ["n", "o", "o", "o", "1", "0", "1"]
    assert positions(sql_type, odd, codes=3, missing="n", other="o") == expected
    assert positions(sql_type, odd, range=(-(2**60), -(2**60) + 3), missing="n", other="o")[:3] == ["n", "o", "o"]
    assert positions(sql_type, odd, bins=(-1, 1, 2), missing="n", other="o") == [
        *("n", "o", "o", "[1, 2]", "[1, 2]", "[-1, 1)", "[1, 2]")
    ]
    if sql_type != "VARCHAR":
        assert positions(sql_type, ("0.1", "'-0.0'", "'nan'"), values=("0", "0.1"), missing="n") == ["0.1", "0", "n"]


def test_decimals_match_numerically():
    assert positions("DECIMAL(9,3)", ("0.5", "0.505", "1"), values=("0.50", "1"), other="o") == ["0.50", "o", "1"]


def test_texts_are_numbers_only_where_numbers_are_declared():
    texts = ("'1'", "' 1'", "'1.0'", "'01'", "'x'", "''", "'1_0'", "'１'")
    assert positions("VARCHAR", texts, values=("1",), other="o") == ["1"] + ["o"] * 7
    assert positions("VARCHAR", texts[:6], codes=3, other="o") == ["1", "1", "1", "1", "o", "o"]
    assert positions("VARCHAR", ("'１'",), values=("1", "１")) == ["１"]
    assert positions("INTEGER", ("1",), values=("１", "1")) == ["1"]


def test_the_label_of_the_missing_category_is_that_category():
    for kind in ({"codes": 3}, {"range": (0, 2)}, {"bins": (0, 2)}, {"values": ("0", "1")}):
        assert positions("VARCHAR", ("'?'", "NULL"), **kind, missing="?") == ["?", "?"]
        for sql_type in ("TINYINT", "DOUBLE", "HUGEINT", "DECIMAL(5,1)"):
            assert positions(sql_type, ("-9", "NULL", "-8"), **kind, missing="-9") == ["-9", "-9", None]


def test_other_types_match_by_their_text():
    assert positions("BOOLEAN", ("true", "false"), values=("false", "true")) == ["true", "false"]
    assert positions("BOOLEAN", ("true", "false"), codes=2) == ["1", "0"]
    assert positions("DATE", ("'2020-02-01'",), values=("2020-02-01",)) == ["2020-02-01"]
    assert positions("DATE", ("'2020-02-01'",), codes=3, other="o") == ["o"]
    assert positions("ENUM('a', 'b')", ("'b'",), values=("b",)) == ["b"]
    assert positions("ENUM('1', '2')", ("'2'",), codes=3) == ["2"]
    assert positions("INTEGER[]", ("[1]",), values=("[1]",)) == ["[1]"]
    assert positions("BLOB", ("'x'",), codes=3, other="o") == ["o"]


def test_many_values_and_many_bins():
    n = 70_000
    assert positions("INTEGER", ("69999",), values=tuple(map(str, range(n)))) == ["69999"]
    assert positions("VARCHAR", ("'69999'", "'70000'"), values=tuple(map(str, range(n)))) == ["69999", None]
    assert positions("DOUBLE", ("12345.5",), bins=tuple(range(n))) == ["[12345, 12346)"]
    for size in (253, 254, 255, 256, 65_533, 65_534, 65_535, 65_536):
        assert positions("INTEGER", (str(size - 1), str(size), "NULL"), codes=size) == [str(size - 1), None, None]


def test_quoting():
    for text in ("it's", 'a"b', "'; DROP TABLE x; --", "\\", "\n", ""):
        assert duckdb.sql(f"SELECT {literal(text)}").fetchall() == [(text,)]
    name = 'a"b; --'
    assert duckdb.sql(f"SELECT 1 AS {quote(name)}").columns == [name]
