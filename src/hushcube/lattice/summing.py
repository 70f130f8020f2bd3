"""All marginals of a full table in a few passes over its cells, and the way back.

The table's axes are taken in order, and each is either summed out or kept. Tables that begin alike share the work: a
node (kept axes S of the first p) holds the marginal on S and all later axes. For all pairs of attributes of n values

    N (1 + 1 + 1) + N/n (...) + ...      about 4 N additions, where one marginal after the other takes d²/2 N.

Once 64 or fewer cells of later axes are left, all their marginals are one product with a small matrix of zeros and
ones. The transpose adds tables up along the same nodes, backwards. The cells of all marginals stand in one vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal

Cells = NDArray[np.floating[Any]]  # in double or in single precision

_LEAF: Final = 64


@dataclass(frozen=True, eq=False)
class _Branch:
    """Kept axes of `kept` cells, then the next axis of n values, then `rest` cells; that axis is kept or summed out."""

    kept: int
    n: int
    rest: int
    inner: _Branch | _Leaf | None
    summed: _Branch | _Leaf | None


@dataclass(frozen=True, eq=False)
class _Leaf:
    """Kept axes of `kept` cells, then the last axes, of a few cells."""

    kept: int
    shape: tuple[int, ...]
    matrix: Floats  # the marginals of the cells that are left, side by side
    parts: tuple[tuple[slice, slice, tuple[int, ...]], ...]
    """For each marginal its columns, its part of the vector of all, and the axes it sums out, counted from 1."""


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

    def _grow(self, axis: int, kept: int, members: list[Marginal]) -> _Branch | _Leaf:
        rest = self.shape[axis:]
        if math.prod(rest) <= _LEAF or not any(m and m[-1] >= axis for m in members):
            matrix, parts = np.zeros((math.prod(rest), 0)), []
            for m in members:
                own: Floats = np.ones((1, 1))
                for i, n in enumerate(rest, axis):
                    own = np.kron(own, np.eye(n) if i in m else np.ones((n, 1))).astype(np.float64)
                columns = slice(matrix.shape[1], matrix.shape[1] + own.shape[1])
                out = tuple(k for k, i in enumerate(range(axis, len(self.shape)), 1) if i not in m)
                parts.append((columns, self.places[m], out))
                matrix = np.hstack([matrix, own])
            return _Leaf(kept, rest, matrix, tuple(parts))
        n = rest[0]
        with_axis = [m for m in members if axis in m]
        without = [m for m in members if axis not in m]
        inner = self._grow(axis + 1, kept * n, with_axis) if with_axis else None
        summed = self._grow(axis + 1, kept, without) if without else None
        return _Branch(kept, n, math.prod(rest) // n, inner, summed)

    def sums(self, table: Cells) -> Floats:
        """The cells of all marginals."""
        result = np.empty(self.length)
        for leaf, cells in _leaves(self._root, table, np.add):
            found = cells.reshape(leaf.kept, -1) @ leaf.matrix.astype(cells.dtype, copy=False)
            for columns, place, _ in leaf.parts:
                result[place] = found[:, columns].ravel()
        return result

    def minima(self, table: Cells) -> Floats:
        """For each cell of the marginals, the least of the table's cells that it sums up."""
        result = np.empty(self.length)
        for leaf, cells in _leaves(self._root, table, np.minimum):
            for _, place, out in leaf.parts:
                result[place] = cells.reshape(leaf.kept, *leaf.shape).min(axis=out).ravel()
        return result

    def adjoint(self, values: Floats, out: Cells | None = None) -> Cells:
        """The transpose of `sums`: each cell of the table gets the sum of the values of the cells it belongs to.

        The table is written to `out`, where that is given, and in its precision.
        """
        result = np.empty(self.shape) if out is None else out
        if not self.marginals:
            result[...] = 0.0
            return result
        flat = result.reshape(1, -1)
        found = _add(self._root, np.asarray(values, result.dtype), flat)
        if not np.shares_memory(found, flat):
            flat[...] = found  # also where it is nothing but the total
        return result

    def along(self, marginal: Marginal, values: Floats) -> Floats:
        """A marginal's cells, shaped so that they spread over the full table."""
        return values.reshape([n if i in marginal else 1 for i, n in enumerate(self.shape)])


def _leaves(node: _Branch | _Leaf | None, cells: Cells, reduced: np.ufunc) -> Iterator[tuple[_Leaf, Cells]]:
    """The leaves below a node, each with the table whose axes are kept or reduced on the way there."""
    if isinstance(node, _Leaf):
        yield node, cells
    elif node is not None:
        yield from _leaves(node.inner, cells, reduced)
        if node.summed is not None:
            fewer = reduced.reduce(cells.reshape(node.kept, node.n, node.rest), axis=1)
            yield from _leaves(node.summed, fewer, reduced)


def _add(node: _Branch | _Leaf, values: Cells, room: Cells | None = None) -> Cells:
    """An array (kept, n * rest), or (kept, 1) where all columns are equal; what may be written to is nobody else's.

    It is written to `room`, of the full size, where that is given and more than one number is left of a row.
    """
    kind = values.dtype
    if isinstance(node, _Leaf):
        columns = np.asarray(np.hstack([values[place].reshape(node.kept, -1) for _, place, _ in node.parts]), kind)
        if node.matrix.shape[1] == 1:
            return columns
        room = None if room is None else room.reshape(node.kept, -1)
        return np.asarray(np.matmul(columns, node.matrix.T.astype(kind, copy=False), out=room), kind)
    shape = (node.kept, node.n, node.rest)
    outer = np.zeros((node.kept, 1, 1), kind) if node.summed is None else _add(node.summed, values)[:, None, :]
    inner = np.zeros((node.kept, node.n, 1), kind) if node.inner is None else _add(node.inner, values, room)
    inner = inner.reshape(node.kept, node.n, -1)
    if node.summed is None and inner.shape == shape:
        found = inner
    elif inner.shape == shape and inner.flags.writeable:
        found = np.add(inner, outer, out=inner)
    else:
        found = np.add(inner, outer, out=np.empty(shape, kind) if room is None else room.reshape(shape))
    return found.reshape(node.kept, node.n * node.rest)
