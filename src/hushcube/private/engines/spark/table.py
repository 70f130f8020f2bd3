"""Spark groups the rows, through the DataFrame API alone: no SQL is written, and no name or value is quoted.

Before anything else the columns are renamed by their positions (c0, c1, ...), so that dots, quotes, backticks and
names that differ only by case mean nothing to Spark. Values go in as literals of the API, or, where there are
many, as a small table that is joined. Groups come back through Arrow.

Spark has no transactions over files: all group-bys read the files that were listed when the source was opened,
and a `GroupedEngine` refuses group-bys that see different numbers of rows.

At most so many rows of a person are chosen where the rows are, by the key and the person's own rows alone. Equal rows
of a person are numbered. Each row gets SHA-256 of the key, the person, the row and its number, written so that no two
rows read alike, and of each person the rows with the smallest hashes stay. They are kept while the count lasts, in
memory or on the local disks of Spark; a cluster that computes a lost part again chooses the same rows.

Rows are sent to where their person is once, and sorted there twice. Where few people have too many rows, only theirs
are: the list of these people goes to all machines. That takes several readings, so that it is done only where they are
sure to see the same rows; what draws at random is read once, and whatever that reading saw is bounded.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from hushcube.errors import DataError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.private.engines.contract import Measures, position
from hushcube.private.engines.grouped import warehouse
from hushcube.private.engines.grouped.asking import missing_integer
from hushcube.private.engines.grouped.warehouse import Binned, Column, Columns, ColumnType, Known, People, Whole
from hushcube.private.engines.parquet import Parquet
from hushcube.private.engines.source import unreadable
from hushcube.private.engines.spark.session import spoken

_COLUMN_TYPES: Final[dict[str, ColumnType]] = {
    **dict.fromkeys(("ByteType", "ShortType", "IntegerType", "LongType"), "integer"),
    **dict.fromkeys(("FloatType", "DoubleType", "DecimalType"), "number"),
    **dict.fromkeys(("StringType", "CharType", "VarcharType"), "text"),
}
_JOINED_LABELS: Final = 100  # more labels than this are joined as a table: as literals, each costs a millisecond
_BYTEWISE: Final = "UTF8_BINARY"
_SENT_PEOPLE: Final = 1_000_000  # people with too many rows whose ids are sent to every machine: some 100 MB there
_NESTED: Final = ("ArrayType", "StructType", "MapType", "VariantType")
_COMPARED_EDGES: Final = 64
"""More edges than this are searched in an array: as compiled comparisons, each costs five milliseconds."""
_DIGITS: Final = "[0-9](?:_?[0-9])*"
_NUMBER: Final = rf"\+?-?(?:(?:{_DIGITS}\.?(?:{_DIGITS})?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?|(?i:inf|infinity))"
"""A text that DuckDB casts to a double other than NaN; Java alone would take `1d` and `0x1p3` for numbers as well."""
_BLANKS: Final = r"[ \t-\r]*"


class SparkRows(warehouse.Opened):
    """A data frame, its columns renamed by position."""

    keeps_choice = True
    smaller = MappingProxyType({1 << 14: 0.16, 1 << 17: 0.5})  # measured on 10 million rows: small groups fit caches

    def __init__(self, frame: Any) -> None:
        with spoken("the data cannot be read by Spark", "check the table, your rights, and the types of its columns"):
            fields = frame.schema.fields
            self.names = tuple(field.name for field in fields)
            self._types = tuple(type(field.dataType).__name__ for field in fields)
            self.column_types = tuple(_COLUMN_TYPES.get(name, "other") for name in self._types)
            self._collations = [getattr(field.dataType, "collation", _BYTEWISE) for field in fields]
            self._frame = frame.toDF(*(f"c{i}" for i in range(len(fields))))
        self._heavy: dict[Unit, int] = {}
        self._kept: list[Any] = []

    def grouped(self, columns: Columns, sums: Measures = ()) -> pa.Table:
        """Group by expressions of the columns."""
        self._check([*(column.name for column in columns), *(measure.source_column for measure in sums)])
        fix = "check that each column can be grouped by, and that Spark has memory enough (SPARK_DRIVER_MEMORY)"
        with spoken("Spark cannot group the data", fix):
            table: pa.Table = self._counted(columns, sums).toArrow()
        return table

    def people(self, unit: Unit) -> People:
        """Count the rows of each person."""
        place = self._place(unit)
        with spoken("Spark cannot count the rows of people", "check that the unit's column can be grouped by"):
            F, _ = _functions(self._frame)
            ids = self._frame.select(F.col(f"c{place}").alias("p"))
            found, self._heavy[unit] = count_people(F, ids, unit.max_rows)
        return found

    def bounded(self, unit: Unit, columns: Sequence[str], key: bytes) -> SparkRows:
        """The same rows in every later answer: kept for it, and what is lost is chosen again by the same key.

        A frame may draw at random, and a table may change: people with few rows are listed only where every reading
        is sure to see the same rows. Elsewhere everybody's rows are chosen from in a single reading.
        """
        place = self._place(unit)
        self._check(columns)
        places = sorted({place, *(position(self.names, name, f"column {name!r}") for name in columns)})
        with spoken("Spark cannot choose rows of people", "check that the columns can be grouped by"):
            F, window = _functions(self._frame)
            values = [self._value(F, i).alias(f"c{i}") for i in places]
            used = self._frame.select(*values, F.col(f"c{place}").alias("p"))
            types = {f"c{i}": self._types[i] for i in places}
            heavy = self._heavy.get(unit) if self.steady else None
            fewer = copy.copy(self)
            rows = chosen(F, window, used, types, unit, key=key, heavy=heavy)
            fewer._frame = rows.persist()
            self._kept.append(fewer._frame)
        fewer._heavy = {}
        fewer._collations = [_BYTEWISE] * len(self.names)
        return fewer

    def forget(self) -> None:
        """Let go of the rows that were kept."""
        with spoken("Spark cannot end the job", "see its own logs"):
            for frame in self._kept:
                frame.unpersist()

    def _place(self, unit: Unit) -> int:
        self._check([unit.column])
        return position(self.names, unit.column, f"unit {unit.column!r}")

    def _value(self, F: Any, place: int) -> Any:
        """A column; its texts are compared byte by byte."""
        value = F.col(f"c{place}")
        return value if self._collations[place] == _BYTEWISE else F.collate(value, _BYTEWISE)

    def _counted(self, columns: Columns, sums: Measures) -> Any:
        F, _ = _functions(self._frame)
        frame, keys = self._frame, []
        for i, column in enumerate(columns):
            place = self.names.index(column.name)
            value = self._value(F, place)
            if isinstance(column, Known) and len(column.labels) > _JOINED_LABELS:
                labels = frame.sparkSession.createDataFrame(pa.table({f"l{i}": pa.array(column.labels, pa.string())}))
                frame = frame.join(F.broadcast(labels), value == F.col(f"l{i}"), "left")
                by = F.when(value.isNull() | F.col(f"l{i}").isNotNull(), value).otherwise(F.lit(column.outside))
            else:
                by = key(F, column, value, self.column_types[place])
            keys.append(by.alias(f"k{i}"))
        added, totals = [], [F.count(F.lit(1)).alias("n")]
        for i, measure in enumerate(sums):
            place = self.names.index(measure.source_column)
            x = double(F, self._value(F, place), self.column_types[place], self._types[place])
            q, missing = integer(F, F.col(f"x{i}"), measure)
            added.append(x.alias(f"x{i}"))
            totals += [_total(F, q, f"s{i}"), _total(F, missing.cast("long"), f"m{i}")]
        if not keys:
            return frame.select(*added, F.lit(1).alias("one")).agg(*totals)
        return frame.select(*keys, *added).groupBy(*(f"k{i}" for i in range(len(keys)))).agg(*totals)

    def _check(self, names: Sequence[str]) -> None:
        """Refuse columns that Spark would take for something else."""


class LocalRows(SparkRows):
    """Local Parquet files, whose own schemas say what Spark does not: missing columns and nanoseconds."""

    steady = True

    def __init__(self, frame: Any, files: Sequence[str]) -> None:
        import pyarrow.parquet as pq

        super().__init__(frame)
        with unreadable(Parquet.problem, Parquet.fix):
            self._schemas = [pq.read_schema(file) for file in files]

    def _check(self, names: Sequence[str]) -> None:
        """As DuckDB's reader does."""
        for name in names:
            types = [schema.field(name).type for schema in self._schemas if name in schema.names]
            if 0 < len(types) < len(self._schemas):
                raise DataError("data", f"not every file has the column {name!r}", "use files with the same columns")
            if any(pa.types.is_timestamp(each) and each.unit == "ns" for each in types):
                fix = "write it in microseconds, or use the default engine"
                raise DataError("data", f"Spark does not read times in nanoseconds, as in the column {name!r}", fix)


def _total(F: Any, value: Any, name: str) -> Any:
    """A sum that is zero over no rows."""
    return F.coalesce(F.sum(value), F.lit(0)).cast("long").alias(name)


def _functions(frame: Any) -> tuple[Any, Any]:
    """The functions and the windows of the frame's own kind of session: one program may have both kinds."""
    if type(frame).__module__.startswith("pyspark.sql.connect"):
        import pyspark.sql.connect.functions as remote
        from pyspark.sql.connect.window import Window as RemoteWindow

        return remote, RemoteWindow
    import pyspark.sql.functions as classic
    from pyspark.sql.window import Window

    return classic, Window


# `F` is the module of functions, which differs between sessions in this process and those of Spark Connect.


def key(F: Any, column: Column, value: Any, column_type: ColumnType) -> Any:
    """What a column is grouped by, as its class says."""
    if isinstance(column, Known):
        return F.when(value.isNull() | value.isin(*column.labels), value).otherwise(F.lit(column.outside))
    if not isinstance(column, Binned | Whole):
        return value
    whole = isinstance(column, Whole) and column_type == "integer"
    x = value.cast("long" if whole else "double")
    # Spark takes NaN for equal to itself and larger than all numbers; it goes first.
    missing = x.isNull() if whole else x.isNull() | F.isnan(x)
    if column.missing is not None:
        missing = missing | (x == F.lit(column.missing))
    low, high = (column.edges[0], column.edges[-1]) if isinstance(column, Binned) else (column.low, column.high)
    inside = (x >= F.lit(low)) & (x <= F.lit(high))
    if isinstance(column, Binned):
        few = len(column.edges) <= _COMPARED_EDGES
        place = _bin(F, x, column.edges, 0, len(column.edges) - 1) if few else _search(F, x, column.edges)
    else:
        place = x.try_cast("long") - F.lit(low)
        inside = inside if whole else inside & (F.rint(x) == x)
    place = F.when(inside, place).otherwise(F.lit(warehouse.OUTSIDE))
    return F.when(missing, F.lit(warehouse.MISSING)).otherwise(place).cast("long")


def _bin(F: Any, x: Any, edges: Sequence[float], first: int, last: int) -> Any:
    """The bin from `first` up to before `last` that x is in, by bisection: a row takes log2 comparisons."""
    if last - first == 1:
        return F.lit(first)
    middle = (first + last) // 2
    lower, upper = _bin(F, x, edges, first, middle), _bin(F, x, edges, middle, last)
    return F.when(x < F.lit(edges[middle]), lower).otherwise(upper)


def _search(F: Any, x: Any, edges: Sequence[float]) -> Any:
    """The same by steps of ..., 4, 2, 1 through an array of all edges but the last; beyond its end nothing is less."""
    known = F.lit(np.array(edges[:-1]))
    steps = F.lit(2 ** np.arange(len(edges).bit_length(), dtype=np.int32)[::-1])
    return F.aggregate(steps, F.lit(0), lambda at, n: F.when(F.get(known, at + n) <= x, at + n).otherwise(at))


def double(F: Any, value: Any, column_type: ColumnType, type_name: str) -> Any:
    """A measure's column as a double, as DuckDB reads it: null or NaN where it is no number."""
    if column_type in ("integer", "number"):
        return value.cast("double")
    if column_type == "text" or type_name == "BinaryType":
        # DuckDB writes bytes out before it reads a number, and blanks other than a space do not stay blanks.
        around = _BLANKS if column_type == "text" else " *"
        found = F.regexp_extract(value.cast("string"), rf"\A{around}({_NUMBER}){around}\z", 1)
        return F.when(found != F.lit(""), F.regexp_replace(found, r"\A\+|_", "").try_cast("double"))
    return F.lit(None).cast("double")


def integer(F: Any, x: Any, measure: Measure) -> tuple[Any, Any]:
    """The integer of each row, bit for bit what `coding.quantised` makes, and whether its value is missing."""
    low, high = (F.lit(float(bound)) for bound in measure.bounds)
    scaled = (F.least(F.greatest(x, low), high) - F.lit(float(measure.center))) / F.lit(float(measure.resolution))
    q = F.least(F.greatest(F.rint(scaled), F.lit(float(measure.low))), F.lit(float(measure.high))).cast("long")
    missing = x.isNull() | F.isnan(x)
    return F.when(missing, F.lit(missing_integer(measure))).otherwise(q).cast("long"), missing


def count_people(F: Any, ids: Any, most: int) -> tuple[People, int]:
    """Rows in all, without an id (the column p), and remaining; and how many people have more than `most` rows."""
    n, nobody = F.col("n"), F.col("p").isNull()
    each = ids.groupBy("p").agg(F.count(F.lit(1)).alias("n"))
    totals = [
        F.sum(n),
        F.sum(F.when(nobody, n)),
        F.sum(F.when(nobody, n).otherwise(F.least(n, F.lit(most)))),
        F.sum(F.when(~nobody & (n > F.lit(most)), F.lit(1))),
    ]
    row = each.agg(*(F.coalesce(total, F.lit(0)).cast("long") for total in totals)).toArrow().to_pylist()[0]
    rows, missing, kept, heavy = map(int, row.values())
    return People(rows, missing, kept), heavy


def chosen(
    F: Any, window: Any, frame: Any, types: Mapping[str, str], unit: Unit, *, key: bytes, heavy: int | None
) -> Any:
    """The rows of `frame` that count; `types` are those of its columns beside the id p, which is as its column has it.

    So many people are `heavy`, where that is known and further readings are sure to see the same rows.
    """
    person, most = F.col("p"), F.lit(unit.max_rows)
    if heavy is None and unit.missing == "error":  # one person, should the next reading see any
        return _smallest(F, window, frame, types, most, key)
    known = frame.filter(person.isNotNull())
    if heavy is None or heavy > _SENT_PEOPLE:
        nobody = frame.filter(person.isNull()).select(*types)
        return _smallest(F, window, known, types, most, key).union(nobody)
    counted = known.groupBy(person.alias("id")).agg(F.count(F.lit(1)).alias("n"))
    ids = F.broadcast(counted.filter(F.col("n") > most).select("id"))
    light, many = (frame.join(ids, person == F.col("id"), how) for how in ("left_anti", "left_semi"))
    return light.select(*types).union(_smallest(F, window, many, types, most, key))


def _smallest(F: Any, window: Any, frame: Any, types: Mapping[str, str], most: Any, key: bytes) -> Any:
    alike = window.partitionBy("p", *types).orderBy(F.lit(0))
    written = [_written(F, F.col(name), type_name) for name, type_name in types.items()]
    chance = F.sha2(F.concat(F.lit(key.hex()), *written, F.col("alike").cast("string")), 256)
    # Once all rows of a person are together, neither window sends them anywhere else.
    numbered = frame.repartition(F.col("p")).withColumn("alike", F.row_number().over(alike))
    ranked = numbered.withColumn("rank", F.row_number().over(window.partitionBy("p").orderBy(chance)))
    return ranked.filter(F.col("rank") <= most).select(*types)


def _written(F: Any, value: Any, type_name: str) -> Any:
    """A value as text with its length before it, so that no two rows read alike; texts of times would, in autumn."""
    if type_name == "BinaryType":
        text = F.hex(value)
    elif type_name == "TimestampType":
        text = F.unix_micros(value).cast("string")
    elif type_name in ("FloatType", "DoubleType"):  # 0.0 and -0.0 are alike
        text = F.when(value == F.lit(0.0), F.lit("0")).otherwise(value.cast("string"))
    elif type_name in _NESTED:
        text = F.to_json(F.struct(value))
    else:
        text = value.cast("string")
    return F.coalesce(F.concat(F.octet_length(text).cast("string"), F.lit(":"), text), F.lit("-"))
