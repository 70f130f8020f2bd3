"""Whose rows they are, in any warehouse: how many there are, and at most so many of each person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hushcube.model.unit import Unit
from hushcube.private.engines.grouped.warehouse import People


def count_people(table: Any, person: Any, most: int) -> People:
    """Rows in all, without an id, and remaining."""
    import ibis

    each = table.select(p=person).group_by("p").aggregate(n=ibis._.count())
    nobody = each.p.isnull()
    kept = (nobody | (each.n <= most)).ifelse(each.n, most)
    totals = each.aggregate(rows=each.n.sum(), missing=nobody.ifelse(each.n, 0).sum(), kept=kept.sum())
    (found,) = totals.to_pyarrow().to_pylist()
    return People(*(int(found[name] or 0) for name in ("rows", "missing", "kept")))


def chosen(table: Any, unit: Unit, columns: Sequence[str], key: bytes) -> Any:
    """The rows that count: people are told apart as their column does it, and their rows by what is written of them.

    Rows that are written alike are numbered in the order of their values.
    """
    import ibis

    inner = [f"c{i}" for i in range(len(columns))]
    rows = table.select(p=table[unit.column], **{c: table[name] for c, name in zip(inner, columns, strict=True)})
    text = ibis.literal(key.hex())
    for name in ("p", *inner):
        text = text + _written(rows[name])
    hashed = rows.mutate(d=text.hexdigest("sha256"))
    alike = ibis.window(group_by=["p", "d"], order_by=inner or ["p"])
    numbered = hashed.mutate(i=ibis.row_number().over(alike))
    chance = (numbered.d + numbered.i.cast("string")).hexdigest("sha256")
    ranks = ibis.window(group_by=["p"], order_by=["h"])
    ranked = numbered.mutate(h=chance).mutate(r=ibis.row_number().over(ranks))
    few = ranked.r < unit.max_rows
    kept = ranked.filter(few | ranked.p.isnull() if unit.missing == "own" else few)
    return kept.select(**({name: kept[c] for c, name in zip(inner, columns, strict=True)} or {"p": kept.p}))


def _written(value: Any) -> Any:
    """A value with its length, so that no two rows read alike; a null has none."""
    text = value.cast("string")
    return (text.length().cast("string") + ":" + text).fill_null("-")
