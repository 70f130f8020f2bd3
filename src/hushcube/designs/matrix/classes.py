"""Cells that a matrix cannot tell apart, and what is asked for as rows over classes of such cells.

Cells with equal columns of S are one class. With x~_k the sum of the cells of class k, and S~ the distinct columns,

    S x = S~ x~        q x = q~ x~   for a query q that has one value on each class; no other lies in S's row space

The columns of S~ are those of S, so that what a row of data costs is the same, exactly. A cell that no row touches has
a column of zeros: all of them are one class. So the algebra is of the size of the distinct columns, and the cells of a
large table under few sparse rows have few of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.designs.matrix.row_space import form_rows, positions
from hushcube.errors import TooLarge
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

_MOST_ANSWERS: Final = 2**16
_MOST_ENTRIES: Final = 2**24  # of the answers as rows over classes, dense
Asked = Marginal | Form


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of the cells under some rows."""

    of_cell: Ints
    first: Ints
    """One cell of each class."""
    sizes: Ints
    rows: SparseRows
    """The same rows over the classes."""

    def __len__(self) -> int:
        return len(self.first)

    def expand(self, rows: SparseRows) -> SparseRows:
        """Rows over the classes as rows over the cells."""
        order = np.argsort(self.of_cell, kind="stable")
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        columns, values, row_of = rows.arrays
        lengths = self.sizes[columns]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        cells = order[np.repeat(starts[columns], lengths) + within]
        shape = (len(rows), len(self.of_cell))
        return SparseRows.of_entries(shape, np.repeat(row_of, lengths), cells, np.repeat(values, lengths))

    def lift(self, query: Floats) -> Floats | None:
        """A query over the cells as one over the classes; None where it has two values on one of them."""
        found = query[self.first]
        return found if (found[self.of_cell] == query).all() else None

    def lift_rows(self, rows: SparseRows) -> Iterator[Floats | None]:
        """The same for sparse queries, without a look at the cells that they leave out."""
        columns, values, _ = rows.arrays
        for start, end in zip(rows.starts, rows.starts[1:], strict=False):
            cells, numbers = columns[start:end], values[start:end]
            cells, numbers = cells[numbers != 0], numbers[numbers != 0]
            own, found = self.of_cell[cells], np.zeros(len(self))
            found[own] = numbers
            is_constant = (found[own] == numbers).all() and self.sizes[found != 0].sum() == len(cells)
            yield found if is_constant else None


@lru_cache(maxsize=4)
def classes_of(rows: SparseRows) -> Classes:
    """Each row splits the classes that it touches by its values.

    >>> found = classes_of(SparseRows.of([[1, 1, 0, 0, 2], [1, 1, 1, 0, 0]]))
    >>> found.of_cell.tolist(), found.rows.dense().tolist()
    ([3, 3, 2, 0, 1], [[0.0, 2.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
    """
    columns, values, row_of = rows.arrays
    label, used = np.zeros(rows.width, np.int64), 1
    for start, end in zip(rows.starts, rows.starts[1:], strict=False):
        cells = columns[start:end]
        if len(cells):
            pairs = np.stack([label[cells].astype(np.float64), values[start:end]])
            split = np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)
            label[cells] = used + split
            used += int(split.max()) + 1
    _, first, of_cell, sizes = np.unique(label, return_index=True, return_inverse=True, return_counts=True)
    chosen = first[of_cell[columns]] == columns
    shape = (len(rows), len(first))
    reduced = SparseRows.of_entries(shape, row_of[chosen], of_cell[columns[chosen]], values[chosen], rows.names)
    return Classes(of_cell, first, sizes, reduced)


@dataclass(frozen=True, eq=False)
class Lifted:
    """All answers of a workload as rows over classes, one after the other."""

    rows: SparseRows
    places: dict[Asked, slice]
    weights: Floats
    """Of the tables, for each row."""

    @classmethod
    def of(cls, workload: Workload, carrier: Marginal, classes: Classes) -> Lifted | str:
        """The answers, or the first thing asked for that has two values on a class and so cannot be answered."""
        weights = dict(zip(workload.marginals, workload.weights, strict=True))
        asked: list[tuple[Asked, float]] = [(A, weights.get(A, 0.0)) for A in workload.published]
        asked += zip(workload.forms, workload.form_weights, strict=True)
        found: list[Floats] = []
        places: dict[Asked, slice] = {}
        of_row: list[float] = []
        for one, weight in asked:
            start = len(found)
            for query in _queries(one, workload.schema, carrier, classes):
                if query is None:
                    return workload.schema.describe(one) if isinstance(one, tuple) else one.word
                found.append(query)
                if len(found) > _MOST_ANSWERS or len(found) * len(classes) > _MOST_ENTRIES:
                    raise TooLarge("workload", len(found) * len(classes), _MOST_ENTRIES, "ask for fewer answers")
            places[one] = slice(start, len(found))
            of_row += [weight] * (len(found) - start)
        return cls(SparseRows.of(np.array(found)), places, np.array(of_row))


def _queries(asked: Asked, schema: Schema, carrier: Marginal, classes: Classes) -> Iterator[Floats | None]:
    """The answers of a table or a form, over the classes."""
    if isinstance(asked, QueryTable):
        if asked.marginal == carrier:
            yield from classes.lift_rows(asked.rows)
        else:
            place = positions(schema, carrier, asked.marginal)
            yield from (classes.lift(row[place]) for row in asked.rows.iterate())
        return
    marginal = asked if isinstance(asked, tuple) else asked.marginal
    cell = classes.lift(positions(schema, carrier, marginal).astype(np.float64))
    if cell is None:
        yield None
    elif isinstance(asked, tuple):
        yield from ((cell == number).astype(np.float64) for number in range(schema.cells(asked)))
    else:
        yield from (row[cell.astype(np.int64)] for row in form_rows(asked))
