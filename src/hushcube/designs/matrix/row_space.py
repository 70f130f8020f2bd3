"""What a matrix over a small table answers: by least squares, with dense algebra, or by single rows of it.

Rows may depend on each other: S = C E, E of full row rank (a basis of S's row space) and C of full column rank. With
z = S x + noise of weights W,

    H = E^+ (C^T W C)^-1 C^T W          x = H z is the least-squares solution of least norm,

and q·x has a value if q lies in E's row space: then q H S = q.         [Yaroslavtsev et al. 2013, III-B, any rank]

Under replace-one the number of people n is public. Then x = n/N + a vector that sums to zero, and what is solved for is
that vector, from the rows less their means.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.form import Form, RangeTable
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

_DEPENDENT: Final = 1e-11
"""A row (or column) of unit length whose squared distance from the others' span is less depends on them."""
_OUTSIDE: Final = 1e-12
"""The share of a query's squared length that may lie outside the row space: rounding, nothing else."""


class RowSpace:
    """What a matrix can answer, and its least-squares answers; `public` are rows known exactly (constant ones)."""

    def __init__(self, S: Floats, public: Bools) -> None:
        self.S, self.public = S, public
        self._total = np.flatnonzero(public & (S[:, 0] != 0))[:1]  # a row that gives the number of people, if any
        noisy = S[~public]
        self._means = noisy.mean(axis=1) if len(self._total) else np.zeros(len(noisy))
        self.C, self.E = _factors(noisy - self._means[:, None])

    @cached_property
    def _basis(self) -> Floats:
        """(E E^T)^-1."""
        return np.asarray(np.linalg.inv(self.E @ self.E.T), dtype=np.float64)

    @property
    def _is_everything(self) -> bool:
        """Whether every cell has a value: then E = 1."""
        return bool(self.E.shape[0] == self.E.shape[1])

    def outside(self, Q: Floats) -> Bools:
        """Which rows of Q the matrix cannot answer."""
        if self._is_everything:
            return np.zeros(len(Q), dtype=bool)
        lengths = (Q**2).sum(axis=1)
        if len(self._total):
            Q = Q - Q.mean(axis=1, keepdims=True)
        inside = Q @ self.E.T
        left = (Q**2).sum(axis=1) - np.einsum("qi,qi->q", inside @ self._basis, inside)
        return np.asarray(left > _OUTSIDE * lengths)

    def inverse(self, weights: Floats) -> Floats:
        """H for weights of the noisy rows; shape (cells, rows)."""
        cells = self.S.shape[1]
        W = (weights / weights.max(initial=1e-300))[:, None]
        if self.C.shape[0] == self.C.shape[1]:  # independent rows: no choice
            noisy = np.linalg.inv(self.C)
        else:
            noisy = np.linalg.solve(self.C.T @ (W * self.C), (W * self.C).T)
        if not self._is_everything:
            noisy = self.E.T @ (self._basis @ noisy)
        result = np.zeros((cells, len(self.S)))
        result[:, ~self.public] = noisy
        for at in self._total.tolist():
            result[:, at] = (1 - noisy @ (self._means * cells)) / (cells * self.S[at, 0])
        return result


@lru_cache(maxsize=4)
def row_space(rows: SparseRows, public: tuple[bool, ...]) -> RowSpace:
    """The row space of a sparse matrix; kept for the next design on the same matrix."""
    return RowSpace(rows.dense(), np.array(public))


def _factors(S: Floats) -> tuple[Floats, Floats]:
    """C and E with S = C E, from independent rows or independent columns, whichever are fewer."""
    m, n = S.shape
    if m <= n:
        chosen = _independent(S)
        E = S[chosen]
        if len(chosen) == n:
            return S, np.eye(n)
        return (np.eye(m) if len(chosen) == m else np.asarray(np.linalg.solve(E @ E.T, E @ S.T).T, np.float64)), E
    chosen = _independent(S.T)
    C = S[:, chosen]
    return C, (np.eye(n) if len(chosen) == n else np.asarray(np.linalg.solve(C.T @ C, C.T @ S), np.float64))


def _independent(rows: Floats) -> list[int]:
    """Rows that span all rows and are independent; all of them where a Cholesky factor says so, else by pivoting."""
    lengths = np.sqrt((rows**2).sum(axis=1))
    unit = rows / np.maximum(lengths, 1e-300)[:, None]
    gram = unit @ unit.T
    try:
        if float((np.diag(np.linalg.cholesky(gram)) ** 2).min(initial=np.inf)) > _DEPENDENT:
            return list(range(len(rows)))
    except np.linalg.LinAlgError:
        pass
    left = np.diag(gram).copy()  # the squared distance of each row from the span of the chosen ones
    factor = np.zeros((len(rows), len(rows)))
    chosen: list[int] = []
    while len(chosen) < len(rows):
        at = int(np.argmax(left))
        if left[at] <= _DEPENDENT:
            break
        done = len(chosen)
        column = (gram[:, at] - factor[:, :done] @ factor[at, :done]) / np.sqrt(left[at])
        factor[:, done] = column
        left -= column**2
        chosen.append(at)
        left[chosen] = 0.0
    return sorted(chosen)


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
        found: list[tuple[int, float]] = []
        asked: Counter[bytes] = Counter()
        for columns, values in queries:
            if not len(columns):
                found.append((0, 0.0))
                continue
            key, scale = _key(columns, values)
            alike = self._found.get(key, [(-1, 1.0)])
            row, own = alike[asked[key] % len(alike)]
            asked[key] += 1
            found.append((row, scale / own))
        return np.array([row for row, _ in found], np.int64), np.array([factor for _, factor in found])

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


def indicator(schema: Schema, carrier: Marginal, A: Marginal) -> Floats:
    """The cells of a marginal as rows over those of the carrier."""
    return np.asarray(positions(schema, carrier, A) == np.arange(schema.cells(A))[:, None], dtype=np.float64)


def agreement(schema: Schema, carrier: Marginal, A: Marginal) -> int:
    """The attributes of A with more than one value as a bit mask over those of the carrier."""
    varying = [i for i in carrier if schema.sizes[i] > 1]
    return sum(1 << bit for bit, i in enumerate(varying) if i in A)


def pair_sums(schema: Schema, carrier: Marginal, values: Floats, marginals: Iterable[Marginal]) -> Floats:
    """For each marginal, the sum of values[c, c'] over pairs of the carrier's cells that agree on its attributes."""
    varying = [i for i in carrier if schema.sizes[i] > 1]
    alike = agreement_masks(schema, carrier)
    sums = np.bincount(alike.reshape(-1), weights=values.reshape(-1), minlength=1 << len(varying))
    for bit in range(len(varying)):  # pairs that agree on more agree on less
        pairs = sums.reshape(-1, 2, 1 << bit)
        pairs[:, 0] += pairs[:, 1]
    return np.array([sums[agreement(schema, carrier, A)] for A in marginals])


def agreement_masks(schema: Schema, carrier: Marginal) -> NDArray[np.int32]:
    """The set of attributes on which each pair of cells agrees."""
    cells = schema.cells(carrier)
    result = np.zeros((cells, cells), np.int32)
    for bit, i in enumerate([i for i in carrier if schema.sizes[i] > 1]):
        place = positions(schema, carrier, (i,))
        result |= (place[:, None] == place).astype(np.int32) << bit
    return result


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
        if space.outside(indicator(schema, carrier, A)).any():
            return schema.describe(A)
    for form in workload.forms:
        if isinstance(form, QueryTable):
            place = positions(schema, carrier, form.marginal)
            for label, row in zip(form.rows.labels, form.rows.iterate(), strict=True):
                if space.outside(row[place][None]).any():
                    return f"row {label} of {form.word}"
    return None
