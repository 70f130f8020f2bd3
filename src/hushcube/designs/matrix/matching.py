"""Queries as rows over one table's cells: where marginals and forms lie in it, and which of them a matrix holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from hushcube.designs.matrix.row_space import RowSpace
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form, RangeTable
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload


class Matches:
    """The rows of a matrix, found by what they are multiples of; rows alike answer repeated queries in turn."""

    def __init__(self, rows: SparseRows) -> None:
        self._found: dict[bytes, list[tuple[int, float]]] = {}
        columns, values, _ = rows.arrays
        for i, (start, end) in enumerate(zip(rows.starts, rows.starts[1:], strict=False)):
            if end > start:
                order = np.argsort(columns[start:end])
                key, scale = _key(columns[start:end][order], values[start:end][order])
                self._found.setdefault(key, []).append((i, scale))

    def of(self, queries: Iterator[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
        """For each query the row that answers it (-1: none) and the factor; a query of nothing is 0 times any row."""
        at, factor = [], []
        asked: Counter[bytes] = Counter()
        for columns, values in queries:
            if not len(columns):
                at.append(0)
                factor.append(0.0)
                continue
            key, scale = _key(columns, values)
            alike = self._found.get(key, [(-1, 1.0)])
            row, own = alike[asked[key] % len(alike)]
            asked[key] += 1
            at.append(row)
            factor.append(scale / own)
        return np.array(at, np.int64), np.array(factor)

    def table(self, schema: Schema, carrier: Marginal, A: Marginal) -> tuple[Ints, Floats]:
        """The rows that answer the cells of a marginal inside the carrier."""
        place = positions(schema, carrier, A)
        cells = np.argsort(place, kind="stable").reshape(schema.cells(A), -1)
        return self.of((row, np.ones(len(row))) for row in cells)

    def form(self, schema: Schema, carrier: Marginal, form: Form) -> tuple[Ints, Floats]:
        """The rows that answer a form."""
        place = positions(schema, carrier, form.marginal)
        lifted = (row[place] for row in form_rows(form))
        return self.of((np.flatnonzero(row), row[row != 0]) for row in lifted)

    def missing(self, workload: Workload, carrier: Marginal) -> str | None:
        """The first published table with a cell that is a multiple of no row."""
        schema = workload.schema
        for A in workload.published:
            if (self.table(schema, carrier, A)[0] < 0).any():
                return schema.describe(A)
        for form in workload.forms:
            if (self.form(schema, carrier, form)[0] < 0).any():
                return form.word
        return None


def _key(columns: Ints, values: Floats) -> tuple[bytes, float]:
    """Columns and ratios, as bytes, and the first value."""
    return columns.astype(np.int64).tobytes() + np.round(values / values[0], 12).tobytes(), float(values[0])


def positions(schema: Schema, carrier: Marginal, A: Marginal) -> Ints:
    """For each cell of the carrier, the cell of the marginal A that it falls into."""
    shape = schema.shape(carrier)
    index = np.zeros((1,) * len(shape), np.int64)
    for axis, i in enumerate(carrier):
        if i in A:
            own = np.arange(shape[axis]).reshape([-1 if a == axis else 1 for a in range(len(shape))])
            index = index * shape[axis] + own
    return np.broadcast_to(index, shape).reshape(-1)


def form_rows(form: Form) -> Iterator[Floats]:
    """One row over the carrier's cells for each answer of a form, in its order."""
    if isinstance(form, QueryTable):
        yield from form.rows.iterate()
        return
    if not isinstance(form, RangeTable):
        raise TypeError(type(form).__name__)
    for answer in np.ndindex(form.shape):
        row = np.zeros(form.carrier_shape)
        ends = zip(answer, form.intervals, strict=True)
        row[tuple(slice(int(starts[k]), int(stops[k])) for k, (starts, stops) in ends)] = 1.0
        yield row.reshape(-1)


def outside(space: RowSpace, workload: Workload, carrier: Marginal) -> str | None:
    """The first published table with a cell outside the row space; only the largest tables need a look."""
    schema = workload.schema
    listed = sorted(workload.published, key=len, reverse=True)
    for at, A in enumerate(listed):
        if any(set(A) < set(larger) for larger in listed[:at]):
            continue
        place, cells = positions(schema, carrier, A), schema.cells(A)
        if space.outside((place == np.arange(cells)[:, None]).astype(np.float64)).any():
            return schema.describe(A)
    for form in workload.forms:
        if isinstance(form, QueryTable):
            place = positions(schema, carrier, form.marginal)
            for label, row in zip(form.rows.labels, form.rows.iterate(), strict=True):
                if space.outside(row[place][None]).any():
                    return f"row {label} of {form.word}"
    return None
