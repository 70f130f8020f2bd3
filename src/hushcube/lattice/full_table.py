"""All marginals of a full table in a few passes over its cells, and the way back.

The table's axes are taken in order, and each is either summed out or kept. Tables that begin alike share the work: a
node (kept axes S of the first p) holds the marginal on S and all later axes. For all pairs of attributes of n values

    N (1 + 1 + 1) + N/n (...) + ...      about 4 N additions, where one marginal after the other takes d²/2 N.

Once 64 or fewer cells of later axes are left, all their marginals are one product with a small matrix of zeros and
ones. The transpose adds tables up along the same nodes, backwards. The cells of all marginals stand in one vector.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal

_LEAF: Final = 64


@dataclass(frozen=True, eq=False)
class _Node:
    """Kept axes of `kept` cells, then the next axis of n values, then `rest` cells."""

    kept: int
    n: int
    rest: int
    inner: _Node | None = None
    summed: _Node | None = None
    matrix: Floats | None = None
    """For a leaf: the marginals of the cells that are left, side by side."""
    parts: tuple[tuple[slice, slice], ...] = ()
    """For a leaf: which columns are which part of the vector of all marginals."""
    axes: int = 0
    """For a leaf: how many axes are left."""
    out: tuple[tuple[int, ...], ...] = ()
    """For a leaf: which of them each marginal sums out, counted from 1."""


class FullTable:
    """The marginals of full tables of one shape.

    >>> full = FullTable((2, 3), Family.of([(), (0,), (0, 1)], (2, 3)))
    >>> table = np.arange(6.0).reshape(2, 3)
    >>> full.sums(table).tolist()
    [15.0, 3.0, 12.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    >>> full.adjoint(np.array([1.0, 0.0, 10.0, 0.0, 0.0, 0.0, 0.0, 0.0, 5.0])).tolist()
    [[1.0, 1.0, 1.0], [11.0, 11.0, 16.0]]
    """

    def __init__(self, shape: Sequence[int], marginals: Family) -> None:
        self.shape = tuple(int(n) for n in shape)
        self.cells = math.prod(self.shape)
        self.marginals = tuple(marginals)
        ends = np.cumsum([0, *(math.prod(self.shape[i] for i in m) for m in self.marginals)]).tolist()
        self.places = {m: slice(a, b) for m, a, b in zip(self.marginals, ends, ends[1:], strict=False)}
        """Where the cells of each marginal stand."""
        self.length = int(ends[-1])
        """How many cells the marginals have together."""
        self._root = self._grow(0, 1, list(self.marginals))

    def _grow(self, axis: int, kept: int, members: list[Marginal]) -> _Node:
        rest = math.prod(self.shape[axis:])
        if rest <= _LEAF or not any(m and m[-1] >= axis for m in members):
            matrices, parts, out, at = [np.zeros((rest, 0))], [], [], 0
            for m in members:
                matrix: Floats = np.ones((1, 1))
                for i, n in enumerate(self.shape[axis:], axis):
                    matrix = np.kron(matrix, np.eye(n) if i in m else np.ones((n, 1))).astype(np.float64)
                matrices.append(matrix)
                parts.append((slice(at, at + matrix.shape[1]), self.places[m]))
                out.append(tuple(i - axis + 1 for i in range(axis, len(self.shape)) if i not in m))
                at += matrix.shape[1]
            axes = len(self.shape) - axis
            return _Node(kept, 1, rest, None, None, np.hstack(matrices), tuple(parts), axes, tuple(out))
        n = self.shape[axis]
        with_axis = [m for m in members if axis in m]
        without = [m for m in members if axis not in m]
        inner = self._grow(axis + 1, kept * n, with_axis) if with_axis else None
        summed = self._grow(axis + 1, kept, without) if without else None
        return _Node(kept, n, rest // n, inner, summed)

    def sums(self, table: Floats) -> Floats:
        """The cells of all marginals."""
        result = np.empty(self.length)
        if self.marginals:
            _sum(self._root, table.reshape(-1), result)
        return result

    def adjoint(self, values: Floats) -> Floats:
        """The transpose of `sums`: each cell of the table gets the sum of the values of the cells it belongs to."""
        if not self.marginals:
            return np.zeros(self.shape)
        found = _add(self._root, values)
        if found.shape[1] < self.cells:  # nothing but the total
            found = np.repeat(found, self.cells, axis=1)
        return found.reshape(self.shape)

    def along(self, marginal: Marginal, values: Floats) -> Floats:
        """A marginal's cells, shaped so that they spread over the full table."""
        return values.reshape([n if i in marginal else 1 for i, n in enumerate(self.shape)])

    def minima(self, table: Floats) -> Floats:
        """For each cell of the marginals, the least of the table's cells that it sums up."""
        result = np.empty(self.length)
        if self.marginals:
            _least(self._root, table.reshape(-1), self.shape, result)
        return result


def _sum(node: _Node, cells: Floats, result: Floats) -> None:
    if node.matrix is not None:
        found = cells.reshape(node.kept, node.rest) @ node.matrix
        for columns, place in node.parts:
            result[place] = found[:, columns].ravel()
        return
    if node.inner is not None:
        _sum(node.inner, cells, result)
    if node.summed is not None:
        _sum(node.summed, cells.reshape(node.kept, node.n, node.rest).sum(axis=1), result)


def _least(node: _Node, cells: Floats, shape: tuple[int, ...], result: Floats) -> None:
    if node.matrix is not None:
        for axes, (_, place) in zip(node.out, node.parts, strict=True):
            result[place] = cells.reshape(node.kept, *(shape[len(shape) - node.axes :])).min(axis=axes).ravel()
        return
    if node.inner is not None:
        _least(node.inner, cells, shape, result)
    if node.summed is not None:
        _least(node.summed, cells.reshape(node.kept, node.n, node.rest).min(axis=1), shape, result)


def _add(node: _Node, values: Floats) -> Floats:
    """An array (kept, n * rest), or (kept, 1) where all columns are equal; what may be written to is nobody else's."""
    if node.matrix is not None:
        columns = np.hstack([values[place].reshape(node.kept, -1) for _, place in node.parts])
        return columns if node.matrix.shape[1] == 1 else columns @ node.matrix.T
    shape = (node.kept, node.n, node.rest)
    outer = np.zeros((node.kept, 1, 1)) if node.summed is None else _add(node.summed, values)[:, None, :]
    inner = np.zeros((node.kept, node.n, 1)) if node.inner is None else _add(node.inner, values)
    inner = inner.reshape(node.kept, node.n, -1)
    if node.summed is None and inner.shape == shape:
        found = inner
    elif inner.shape == shape and inner.flags.writeable:
        found = np.add(inner, outer, out=inner)
    else:
        found = np.add(inner, outer, out=np.empty(shape))
    return found.reshape(node.kept, node.n * node.rest)
