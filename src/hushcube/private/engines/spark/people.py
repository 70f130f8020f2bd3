"""At most so many rows of a person, chosen where the rows are: a function of the key and of the person's own rows.

Equal rows of a person are numbered. Each row gets SHA-256 of the key, the person, the row and its number, written so
that no two rows read alike, and of each person the rows with the smallest hashes stay. They are kept while the count
lasts, in memory or on the local disks of Spark; a cluster that computes a lost part again chooses the same rows.

Rows are sent to where their person is once, and sorted there twice. Where few people have too many rows, only theirs
are: the list of these people goes to all machines. That takes several readings, so that it is done only where they are
sure to see the same rows; what draws at random is read once, and whatever that reading saw is bounded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushcube.model.unit import Unit
from hushcube.private.engines.grouped.warehouse import People

_SENT_PEOPLE: Final = 1_000_000
"""People with too many rows whose ids are sent to every machine: some 100 MB there."""
_NESTED: Final = ("ArrayType", "StructType", "MapType", "VariantType")


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
    written = [_written(F, F.col(name), kind) for name, kind in types.items()]
    chance = F.sha2(F.concat(F.lit(key.hex()), *written, F.col("alike").cast("string")), 256)
    # Once all rows of a person are together, neither window sends them anywhere else.
    numbered = frame.repartition(F.col("p")).withColumn("alike", F.row_number().over(alike))
    ranked = numbered.withColumn("rank", F.row_number().over(window.partitionBy("p").orderBy(chance)))
    return ranked.filter(F.col("rank") <= most).select(*types)


def _written(F: Any, value: Any, kind: str) -> Any:
    """A value as text with its length before it, so that no two rows read alike; texts of times would, in autumn."""
    if kind == "BinaryType":
        text = F.hex(value)
    elif kind == "TimestampType":
        text = F.unix_micros(value).cast("string")
    elif kind in ("FloatType", "DoubleType"):  # 0.0 and -0.0 are alike
        text = F.when(value == F.lit(0.0), F.lit("0")).otherwise(value.cast("string"))
    elif kind in _NESTED:
        text = F.to_json(F.struct(value))
    else:
        text = value.cast("string")
    return F.coalesce(F.concat(F.octet_length(text).cast("string"), F.lit(":"), text), F.lit("-"))
