"""Shares of cells in their rows, columns or all cells: Fieller's intervals with the exact covariances, all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, Literal, get_args

import numpy as np

from hushcube.bundle.comparing import factors, may_be_negative
from hushcube.bundle.part import Part, attributes_of
from hushcube.bundle.published_table import Table, Where
from hushcube.bundle.ratios import bounded_ratio
from hushcube.errors import QueryError
from hushcube.model.schema import Schema
from hushcube.model.workload import Quantity
from hushcube.options import check_choice

Of = Literal["row", "column", "all"]
WHOLES: Final[tuple[Of, ...]] = get_args(Of)


def sides(schema: Schema, marginal: str | Sequence[str], columns: str | None) -> tuple[list[str], list[str]]:
    """The attributes of a cross-table that stand in its rows, and the one in its columns: named, or the last one."""
    names = [attribute.name for attribute in attributes_of(schema, marginal)]
    if columns is not None and columns not in names:
        raise QueryError("columns", f"{columns!r} is not an attribute of this table", f"use one of: {', '.join(names)}")
    last = names[-1:] if columns is None else [columns]
    return [name for name in names if name not in last], last


def shares(
    parts: Mapping[str, Part],
    schema: Schema,
    quantity: Quantity,
    marginal: str | Sequence[str],
    of: Of,
    where: Where,
    columns: str | None,
) -> Table:
    """Percentages, with both ends of their intervals; unknown where the total is no more than noise."""
    check_choice(of, "of", WHOLES)
    if quantity.kind == "avg" or may_be_negative(quantity, schema):
        problem = f"{quantity} has no shares: it is not made up of parts that are zero or more"
        raise QueryError("what", problem, "ask for the count, or for a sum of a measure with bounds from zero on")
    rows, column = sides(schema, marginal, columns)
    summed = {"row": column, "column": rows, "all": [*rows, *column]}[of]
    S = C = m_SS = m_CC = m_SC = np.zeros(())
    for name, factor in factors(quantity, schema).items():
        found, errors = parts[name].with_totals([*rows, *column], where, summed), parts[name].design.errors
        S, C = S + factor * found.cells.values, C + factor * found.totals
        m_SS = m_SS + (factor * errors.any_margin(found.cells.std_errors)) ** 2
        m_CC = m_CC + (factor * errors.any_margin(found.total_errors)) ** 2
        m_SC = m_SC + (factor * errors.any_quantile()) ** 2 * found.covariances
    value, low, high = bounded_ratio(S, C, np.sqrt(m_SS), np.sqrt(m_CC), m_SC, bounds=(0.0, 1.0))
    ends = (100 * np.clip(low, 0.0, 1.0), 100 * np.clip(high, 0.0, 1.0))
    unknown = np.full(value.shape, np.nan)
    what = f"% of {of}" if quantity.kind == "count" else f"% of {of}, {quantity}"
    private = all(part.private for part in parts.values())
    told = replace(found.cells, values=100 * value, std_errors=unknown, margins=unknown, ends=ends)
    return replace(told, schema=schema, what=what, private=private)
