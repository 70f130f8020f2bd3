"""Matrices that users give: rows over the cells of a table, as queries to answer or as what to measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hushcube.errors import BadInput, WorkloadError
from hushcube.model.form import QueryTable
from hushcube.model.schema import Schema
from hushcube.model.sparse_rows import SparseRows

LARGEST_ENTRY: Final = 2**16
"""Of a matrix that is measured: sums of squares stay exact in floats, sums of entries times counts in 64 bits."""
MAX_ROWS: Final = 8_192
"""Of a matrix that is measured: dense matrices of this size are held."""


def query_table(schema: Schema, attributes: Sequence[str] | None, matrix: Any, *, field: str = "queries") -> QueryTable:
    """Rows over the cells of the table on some attributes (all of the schema unless given), row-major in their order.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
    >>> query_table(schema, ["age", "sex"], [[1, 0, 0, 0, 0, 7]]).rows.dense().tolist()  # age 0 F, age 2 M
    [[1.0, 0.0, 0.0, 0.0, 0.0, 7.0]]
    >>> query_table(schema, ["age", "sex"], [[0, 1, 0, 0, 0, 0]]).rows.dense().tolist()  # age 0 M
    [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]
    """
    names = list(schema.names if attributes is None else attributes)
    marginal = schema.marginal(names)
    try:
        rows = matrix if isinstance(matrix, SparseRows) else SparseRows.of(matrix)
    except BadInput as problem:
        raise WorkloadError(field, problem.problem, problem.fix) from None
    cells = schema.cells(marginal)
    if rows.width != cells:
        raise WorkloadError(
            field,
            f"its rows have {rows.width:,} numbers, the table {'*'.join(names) or 'total'} has {cells:,} cells",
            "give one number for each cell, in row-major order of the attributes",
        )
    given = [schema.position(name) for name in names]
    if given != list(marginal):
        shape = tuple(schema.sizes[i] for i in given)
        place = np.arange(cells).reshape(schema.shape(marginal)).transpose([marginal.index(i) for i in given])
        moved = place.reshape(shape).reshape(-1)[np.array(rows.columns, np.int64)]
        rows = SparseRows(rows.width, rows.starts, tuple(moved.tolist()), rows.values, rows.names)
    try:
        return QueryTable(marginal, tuple(schema.attributes[i] for i in marginal), rows)
    except WorkloadError as problem:
        raise WorkloadError(field, problem.problem, problem.fix) from None


def integer_problem(rows: SparseRows) -> tuple[str, str] | None:
    """Why the rows cannot be measured with exact integers, and what to do about it; None where they can."""
    _, values, row_of = rows.arrays
    broken = np.flatnonzero(values != np.round(values))
    if len(broken):
        at = broken[0]
        found = f"row {rows.labels[row_of[at]]} holds {values[at]:g}, which is not a whole number"
        return found, "multiply the row by its denominator: noise is drawn as integers"
    if len(values) and np.abs(values).max() > LARGEST_ENTRY:
        return f"it holds numbers beyond {LARGEST_ENTRY:,}", "divide its rows by a common factor"
    if len(rows) > MAX_ROWS:
        return f"it has {len(rows):,} rows, more than {MAX_ROWS:,}", "give fewer rows"
    return None
