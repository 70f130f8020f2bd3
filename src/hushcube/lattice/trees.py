"""Balanced trees over an axis: nested partitions, and the spaces between them.

A tree with fan-outs (b_1, ..., b_L) has p_l = b_1 ... b_l nodes on level l, the root alone on level 0, and p_L leaves:
the axis's n cells, then phantoms that hold nobody. Sums over the nodes of level l span a space that contains that of
level l-1; what level l adds is V_l, of dimension p_l - p_{l-1}. With E_l the projection onto level l (the mean over
each node's leaves) and P_l = E_l - E_{l-1}, every strategy that treats the nodes of a level alike has a Gram matrix
that is a number on each V_l, as the residual spaces of attributes without order have (one level, L = 1).

Estimates of phantoms are not zero. They belong to the last cell: a sum that holds it holds them. So all cells together
are all leaves, and tables add up.

The transform is Helmert's [lattice/helmert.py] among the children of every node. Its coefficients stand level by level:
0 is the sum, p_{l-1}..p_l - 1 span V_l. With fan-out 2 it is the unnormalised Haar wavelet: rows of 1, -1 and 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import helmert
from hushcube.model.arrays import Floats, Ints

_CHUNK: Final = 2**18


@dataclass(frozen=True)
class Tree:
    """A balanced tree over the `size` cells of an axis.

    >>> tree = Tree(5, (2, 3))
    >>> tree.depth, tree.nodes, tree.leaves
    (2, (1, 2, 6), 6)
    >>> tree.forward(tree.pad(np.array([1.0, 2, 3, 4, 5]), 0), 0).tolist()
    [15.0, -3.0, -1.0, -3.0, -1.0, 9.0]
    """

    size: int
    fan_outs: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.fan_outs, default=1) < 1 or self.leaves < self.size:
            raise ValueError("a tree needs a leaf for each cell")

    @classmethod
    def with_fan_out(cls, size: int, fan_out: int) -> Tree:
        """Every node but the root has `fan_out` children; the root as many as are needed.

        >>> Tree.with_fan_out(85, 4).fan_outs
        (2, 4, 4, 4)
        """
        depth, leaves = 0, 1
        while leaves < size:
            depth, leaves = depth + 1, leaves * fan_out
        if depth == 0:
            return cls(size, (1,))
        rest = fan_out ** (depth - 1)
        return cls(size, (-(-size // rest), *(fan_out,) * (depth - 1)))

    @classmethod
    def of_depth(cls, size: int, depth: int) -> Tree:
        """Fan-outs as even as they can be, the larger ones at the leaves, with as few phantom cells.

        >>> Tree.of_depth(85, 4).fan_outs
        (3, 3, 3, 4)
        """
        low = max(1, math.floor(size ** (1 / depth) + 1e-9))
        larger = next(k for k in range(depth + 1) if low ** (depth - k) * (low + 1) ** k >= size)
        return cls(size, (low,) * (depth - larger) + (low + 1,) * larger)

    @property
    def depth(self) -> int:
        """L, the number of levels below the root."""
        return len(self.fan_outs)

    @cached_property
    def nodes(self) -> tuple[int, ...]:
        """p_0, ..., p_L."""
        return tuple(math.prod(self.fan_outs[:level]) for level in range(self.depth + 1))

    @property
    def leaves(self) -> int:
        """p_L: the cells, phantom ones included."""
        return self.nodes[-1]

    @property
    def spans(self) -> Floats:
        """Leaves below a node of each level."""
        return self.leaves / np.array(self.nodes, np.float64)

    def block(self, level: int) -> slice:
        """Where the coefficients of V_l stand."""
        return slice(0, 1) if level == 0 else slice(self.nodes[level - 1], self.nodes[level])

    @cached_property
    def levels(self) -> Ints:
        """The level of each coefficient."""
        return np.repeat(np.arange(self.depth + 1), np.diff(self.nodes, prepend=0))

    @cached_property
    def norms(self) -> Floats:
        """The squared norm of each coefficient's row, over the leaves."""
        levels = zip(self.fan_outs, self.spans[1:], self.nodes[:-1], strict=True)
        rows = [np.tile(helmert.norms(fan_out)[1:] * span, above) for fan_out, span, above in levels]
        return np.concatenate([[float(self.leaves)], *rows])

    def pad(self, table: NDArray[np.generic], axis: int) -> NDArray[np.generic]:
        """Counts of leaves from counts of cells: phantoms are zero."""
        return np.pad(table, self._missing(table.ndim, axis))

    def spread(self, weights: Floats, axis: int) -> Floats:
        """Weights of leaves from weights of cells: phantoms belong to the last cell."""
        return np.pad(weights, self._missing(weights.ndim, axis), mode="edge")

    def _missing(self, ndim: int, axis: int) -> list[tuple[int, int]]:
        return [(0, self.leaves - self.size if a == axis else 0) for a in range(ndim)]

    def forward(self, table: Floats, axis: int) -> Floats:
        """All coefficients of a table of leaves along an axis."""
        rest = np.moveaxis(table, axis, -1)
        blocks = []
        for fan_out in reversed(self.fan_outs):
            rest = helmert.forward(rest.reshape(*rest.shape[:-1], -1, fan_out), [rest.ndim])
            blocks.append(rest[..., 1:].reshape(*rest.shape[:-2], -1))
            rest = rest[..., 0]
        return np.moveaxis(np.concatenate([rest, *reversed(blocks)], axis=-1), -1, axis)

    def inverse(self, coefficients: Floats, axis: int) -> Floats:
        """The cells along an axis from all coefficients; phantoms are added to the last one."""
        rest = np.moveaxis(coefficients, axis, -1)
        table = rest[..., :1]
        for level, fan_out in enumerate(self.fan_outs, start=1):
            details = rest[..., self.block(level)].reshape(*table.shape, fan_out - 1)
            children = helmert.inverse(np.concatenate([table[..., None], details], axis=-1), [table.ndim])
            table = children.reshape(*table.shape[:-1], -1)
        last = table[..., self.size - 1 :].sum(axis=-1, keepdims=True)
        return np.moveaxis(np.concatenate([table[..., : self.size - 1], last], axis=-1), -1, axis)

    def weigh(self, v: Floats, starts: Ints, ends: Ints) -> Floats:
        """sum_l v_l ||P_l q||² for many sums q, a chunk at a time; v's first axis gives way to a last one, the sums."""
        chunks = (slice(at, at + _CHUNK) for at in range(0, len(starts), _CHUNK))
        found = [np.tensordot(v, self.energies(starts[c], ends[c]), axes=(0, 1)) for c in chunks]
        return np.concatenate(found, axis=-1)

    def energies(self, starts: Ints, ends: Ints) -> Floats:
        """||P_l q||² for the sums q over cells start..end-1; one row each, one column for each level."""
        ends = np.where(ends == self.size, self.leaves, ends)
        projected = []
        for span in self.spans:
            first, last = -(-starts // span), ends // span  # the first whole node, and the one after the last
            inside = first <= last
            whole = np.where(inside, (last - first) * span, 0.0)
            left = np.where(inside, first * span - starts, ends - starts)
            right = np.where(inside, ends - last * span, 0.0)
            projected.append(whole + (left**2 + right**2) / span)
        return np.diff(np.stack(projected, axis=-1), axis=-1, prepend=0.0)

    @property
    def cell_energies(self) -> Floats:
        """||P_l q||² added up over all cells q; all but the last, which may have phantoms, are alike."""
        first, last = self.energies(np.array([0, self.size - 1]), np.array([1, self.size]))
        return np.asarray((self.size - 1) * first + last)
