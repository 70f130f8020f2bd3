"""From columns to cell positions and bounded integers: DuckDB fetches, Arrow looks texts up, numpy places numbers.

A position is an unsigned integer below the attribute's size. A value that the schema refuses becomes a
refusal code just above: `size` for a missing value, `size + 1` for a value outside the domain. The reader
sees those by taking the maximum, so that explaining a refusal never needs a value or a row.

Coding in SQL was measured and is slower: a CASE takes five times as long as numpy, and a lookup in an ENUM
takes 0.8 microseconds for each text that is not in it. It also keeps labels out of SQL; what little is
written into it goes through `quote` (identifiers) or `literal` (values).

Of a measure, null, NaN and texts come first, then clipping, then rounding. Whatever a row holds, its integer lies
within the measure's bounds: that alone is what the noise relies on. A value that is missing, or is no number, counts
as the measure says, or is refused. Infinities are clipped like large numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.arrays import Bools, Ints
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import AtLevel
from hushcube.model.level import day_groups, day_numbers
from hushcube.model.measure import Measure
from hushcube.private.engines.contract import Measures

Codes = NDArray[np.unsignedinteger[Any]]

_SMALL: Final = frozenset(("tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"))
INTEGERS: Final = _SMALL | {"ubigint", "hugeint"}
FLOATS: Final = frozenset(("float", "double"))
NUMBERS: Final = INTEGERS | FLOATS | {"decimal"}
_TIMES: Final = ("timestamp", "timestamp_s", "timestamp_ms", "timestamp_ns", "timestamp with time zone")
EXACT: Final = 2**53  # integers below this are exact as doubles
_OUTSIDE: Final = 2**62  # no range reaches so far: what lies beyond is moved here, to fit 64 bits
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
"""A label that is a number: ASCII only, since a full-width 1 is a label of its own."""
MOST: Final = 2**62  # sums of absolute integers that 64 bits hold with room to spare


Positions = Callable[[pa.Array], Codes]
"""Values -> their positions in the domain, or refusal codes; each by itself, whatever stands beside it."""


@dataclass(frozen=True)
class Coder:
    """How one attribute is coded: the SQL that fetches its column, and what makes positions of the result."""

    sql: str
    positions: Positions


def quote(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """An SQL text."""
    return "'" + text.replace("'", "''") + "'"


def code_type(size: int) -> type[np.unsignedinteger[Any]]:
    """The smallest unsigned type that holds the positions and both refusal codes."""
    if size + 1 <= 0xFF:
        return np.uint8
    return np.uint16 if size + 1 <= 0xFFFF else np.uint32


def coder(attribute: Attribute, column: str, duckdb_type: str) -> Coder:
    """Code `column`, an SQL reference to a column of DuckDB's type `duckdb_type`, for an attribute."""
    if isinstance(attribute, AtLevel):
        below = coder(attribute.base, column, duckdb_type)
        return Coder(below.sql, lambda array: regrouped(attribute, below.positions(array)))
    text = _text(column, duckdb_type)
    if attribute.before is not None:
        return Coder(f"split_part({text}, {literal(attribute.before)}, 1)", _find_texts(attribute))
    if attribute.declared_by == "values":
        if duckdb_type not in NUMBERS:
            return Coder(text, _find_texts(attribute))
        if duckdb_type in INTEGERS - _SMALL:
            return Coder(text, _find_texts(attribute, integers=True))
        fetched = column if duckdb_type in _SMALL else _double(column, duckdb_type)
        return Coder(fetched, _find_numbers(attribute, duckdb_type))
    if attribute.dates is not None:
        fetched, positions = _day(attribute, column, duckdb_type), _into_days(attribute)
    elif attribute.bins is not None:
        fetched, positions = _double(column, duckdb_type), _into_bins(attribute)
    else:
        fetched, positions = _integer(attribute, column, duckdb_type), _within_range(attribute)
    return Coder(_with_categories(attribute, column, fetched, duckdb_type), positions)


def refusals(attribute: Attribute) -> tuple[int, int]:
    """Where missing values and values outside the domain go: a position, or a refusal code."""
    missing, other = attribute.missing_position, attribute.other_position
    return attribute.size if missing is None else missing, attribute.size + 1 if other is None else other


def regrouped(attribute: Attribute, codes: Codes) -> Codes:
    """From positions of the declared attribute to those of one of its levels; refusals stay refusals."""
    if not isinstance(attribute, AtLevel):
        return codes
    places = np.append(attribute.places, (attribute.size, attribute.size + 1))
    result: Codes = places.astype(code_type(attribute.size))[codes]
    return result


def _find_texts(attribute: Attribute, *, integers: bool = False) -> Positions:
    """Look up texts as they are, byte by byte; truth values are `true` and `false`."""
    places = {code: i for i, code in enumerate(attribute.coded)}
    if integers:  # too wide for numpy: "1.0" and "01" are all 1
        places = {str(int(x)): i for x, i in number_labels(attribute).items() if is_whole(x)}
    texts, targets = list(places), np.array(list(places.values()), dtype=np.int64)

    def positions(array: pa.Array) -> Codes:
        found = pc.index_in(array, value_set=pa.array(texts, type=array.type))
        inside = _numpy(found.is_valid())
        return _placed(attribute, inside, targets[_numpy(found.drop_null())], _missing(array))

    return positions


def _find_numbers(attribute: Attribute, duckdb_type: str) -> Positions:
    """In a column of numbers, a label that is a number stands for it: "1", "1.0" and "01" are all 1."""
    places = number_labels(attribute)
    if duckdb_type in _SMALL:
        places = {x: i for x, i in places.items() if is_whole(x) and abs(x) < 2**63}
        numbers: NDArray[Any] = np.array([int(x) for x in places], dtype=np.int64)
    else:
        # A label meets a 32-bit float as the nearest 32-bit float: 0.1 is found in a column of such floats.
        precision = np.float32 if duckdb_type == "float" else np.float64
        numbers = np.array([float(x) for x in places], dtype=precision).astype(np.float64)
    order = np.argsort(numbers)
    ordered, targets = numbers[order], np.array(list(places.values()), dtype=np.int64)[order]

    def positions(array: pa.Array) -> Codes:
        values, null = _values(array)
        if not len(ordered):
            return _placed(attribute, np.zeros(len(values), dtype=bool), targets, null)
        nearest = np.searchsorted(ordered, values)
        nearest[nearest == len(ordered)] = 0
        inside = ordered[nearest] == values
        return _placed(attribute, inside, targets[nearest[inside]], null)

    return positions


def _within_range(attribute: Attribute) -> Positions:
    """Integers, and floats that are exactly integers."""
    low, high = ends(attribute)
    code = code_type(attribute.size)

    def positions(array: pa.Array) -> Codes:
        values, null = _values(array)
        whole = values.dtype.kind in "iu"
        above = low == 0 and values.dtype.kind == "u"
        if whole and null is None and len(values) and (above or low <= values.min()) and values.max() <= high:
            return values.astype(code, copy=False) if low == 0 else (values.astype(np.int64) - low).astype(code)
        inside = (values >= low) & (values <= high)
        if not whole:
            inside &= values == np.trunc(values)
        return _placed(attribute, inside, values[inside].astype(np.int64) - low, null)

    return positions


def _into_bins(attribute: Attribute) -> Positions:
    """Half-open bins, the last one closed; infinities lie outside."""
    edges = np.array(attribute.bins or (), dtype=np.float64)

    def positions(array: pa.Array) -> Codes:
        values, null = _values(array)
        inside = (values >= edges[0]) & (values <= edges[-1])
        places = np.searchsorted(edges, values[inside], side="right") - 1
        return _placed(attribute, inside, np.minimum(places, len(edges) - 2), null)

    return positions


def _into_days(attribute: Attribute) -> Positions:
    """Days since 1970-01-01 into days, months, quarters or years."""
    ends = attribute.dates or ("1970-01-01", "1970-01-01")
    low, high = day_numbers(ends)
    steps = np.array(day_groups(ends, attribute.by)[1], dtype=np.int64)

    def positions(array: pa.Array) -> Codes:
        values, null = _values(array)
        inside = (values >= low) & (values <= high)
        return _placed(attribute, inside, steps[values[inside] - low], null)

    return positions


def _placed(attribute: Attribute, inside: NDArray[Any], places: NDArray[Any], null: NDArray[Any] | None) -> Codes:
    missing, other = refusals(attribute)
    codes: Codes = np.full(len(inside), other, dtype=code_type(attribute.size))
    codes[inside] = places
    if null is not None:
        codes[null] = missing
    return codes


def _values(array: pa.Array) -> tuple[NDArray[Any], Bools | None]:
    """The numbers, and which of them are missing."""
    null = _missing(array)
    return _numpy(array if null is None else array.fill_null(0)), null


def _missing(array: pa.Array) -> Bools | None:
    """Where there is a null or a NaN; None when nowhere."""
    if not array.null_count and not pa.types.is_floating(array.type):
        return None
    null = array.is_null(nan_is_null=True)
    return _numpy(null) if null.true_count else None


def _numpy(array: pa.Array) -> NDArray[Any]:
    numbers: NDArray[Any] = array.to_numpy(zero_copy_only=False)
    return numbers


def _text(column: str, duckdb_type: str) -> str:
    return column if duckdb_type == "varchar" else f"CAST({column} AS VARCHAR)"


def _double(column: str, duckdb_type: str) -> str:
    """A double; NULL where the value is, and infinity, outside any domain, where it is no number."""
    if duckdb_type in NUMBERS:
        return column if duckdb_type == "double" else f"CAST({column} AS DOUBLE)"
    parsed = f"TRY_CAST({_text(column, duckdb_type) if duckdb_type != 'boolean' else column} AS DOUBLE)"
    return f"CASE WHEN {column} IS NOT NULL THEN COALESCE({parsed}, CAST('inf' AS DOUBLE)) END"


def _integer(attribute: Attribute, column: str, duckdb_type: str) -> str:
    """A 64-bit integer or a double, whichever is exact for the attribute's range."""
    if duckdb_type in _SMALL:
        return column
    clipped = f"CAST(greatest(least({{}}, {_OUTSIDE}), -{_OUTSIDE}) AS BIGINT)"
    if duckdb_type in INTEGERS:  # least and greatest pass over nulls
        return f"CASE WHEN {column} IS NOT NULL THEN {clipped.format(column)} END"
    double = _double(column, duckdb_type)
    if max(map(abs, ends(attribute))) < EXACT:
        return double
    wide = f"TRY_CAST({column if duckdb_type in NUMBERS else _text(column, duckdb_type)} AS HUGEINT)"
    whole = f"CASE WHEN CAST({wide} AS DOUBLE) = {double} THEN {clipped.format(wide)} END"
    return f"CASE WHEN {column} IS NOT NULL AND NOT isnan({double}) THEN COALESCE({whole}, {_OUTSIDE}) END"


def _day(attribute: Attribute, column: str, duckdb_type: str) -> str:
    """The days since 1970-01-01 of a date or a time (UTC); texts in ISO form, months too where they are enough."""
    if duckdb_type in NUMBERS or duckdb_type == "boolean":
        return f"CASE WHEN {column} IS NOT NULL THEN {_OUTSIDE} END"
    moment = column
    if duckdb_type not in ("date", *_TIMES):
        text = _text(column, duckdb_type)
        months = "" if attribute.by == "day" else f", TRY_CAST({text} || '-01' AS TIMESTAMP)"
        moment = f"COALESCE(TRY_CAST({text} AS TIMESTAMP){months}, CAST('infinity' AS TIMESTAMP))"
    day = f"CAST(floor(epoch({moment}) / 86400) AS BIGINT)"
    return f"CASE WHEN {column} IS NULL THEN NULL WHEN isfinite({moment}) THEN {day} ELSE {_OUTSIDE} END"


def _with_categories(attribute: Attribute, column: str, fetched: str, duckdb_type: str) -> str:
    """A value that is the label of the category for missing values is missing."""
    label = attribute.missing
    if attribute.missing_position is None or label in attribute.domain:
        return fetched
    if duckdb_type not in NUMBERS:
        return f"CASE WHEN {_text(column, duckdb_type)} <> {literal(label)} THEN {fetched} END"
    if (number := number_of(label)) is None:
        return fetched
    exact = int(number) if is_whole(number) and abs(number) < 2**63 else f"CAST({literal(str(number))} AS DOUBLE)"
    return f"NULLIF({fetched}, {exact})"


def number_of(label: str) -> Decimal | None:
    """The number that a label is, where it is one that a double can come near."""
    number = Decimal(label) if _NUMBER.fullmatch(label) else None
    return None if number is None or abs(number.adjusted()) > 300 else number


def number_labels(attribute: Attribute) -> dict[Decimal, int]:
    """The values that are numbers, and where they stand."""
    places: dict[Decimal, int] = {}
    for position, code in enumerate(attribute.coded):
        if (number := number_of(code)) is None:
            continue
        twin = places.setdefault(number, position)
        if twin != position:
            problem = f"its values {attribute.coded[twin]!r} and {code!r} are one number in a column of numbers"
            raise DataError(f"attribute {attribute.name!r}", problem, "keep one of the two values")
    return places


def is_whole(number: Decimal) -> bool:
    """Whether a number is an integer."""
    return number == number.to_integral_value()


def ends(attribute: Attribute) -> tuple[int, int]:
    """The first and the last integer of a range, or of codes."""
    low, high = attribute.range if attribute.range is not None else (0, (attribute.codes or 0) - 1)
    return low, high


def fetched_measure(column: str, duckdb_type: str) -> str:
    """The SQL that fetches a measure as a double; NaN where it is missing or no number."""
    parsed = f"CAST({column} AS DOUBLE)" if duckdb_type in NUMBERS else f"TRY_CAST(CAST({column} AS VARCHAR) AS DOUBLE)"
    return f"COALESCE({parsed}, CAST('nan' AS DOUBLE))"


def quantised(array: pa.Array, measure: Measure) -> tuple[Ints, bool]:
    """The integers of some rows, and whether some were missing that must not be."""
    values = array.to_numpy(zero_copy_only=False).astype(np.float64, copy=True)
    missing = np.isnan(values)
    refused = bool(missing.any()) and measure.missing is None
    values[missing] = float(measure.center if measure.missing is None else measure.missing)
    low, high = (float(bound) for bound in measure.bounds)
    scaled = (np.clip(values, low, high) - float(measure.center)) / float(measure.resolution)
    return np.clip(np.rint(scaled), measure.low, measure.high).astype(np.int64), refused


def check_sums(measures: Measures, rows: int) -> None:
    """Refuse sums that might not fit 64 bits."""
    for measure in measures:
        if rows * measure.largest >= MOST:
            raise DataError(f"measure {measure.name!r}", "its sums might not fit 64-bit integers", "give a larger step")
