"""The information that tables at nested levels hold together: block diagonal, dense only within small blocks.

A table i has a level l_i(a) of each chain a (0: summed out). With noise of variance 1/w_i on every cell it adds
w_i (x)_a M_{a, l_i(a)} to the information on the tensor of coordinates [lattice/nested.py]. Each chain's M_l fall apart
into the same pieces for all l, so the sum is block diagonal over the choices of a piece of each chain,

    G_b = sum_i w_i F_bi,      F_bi = (x)_a M_{a, l_i(a)}  on the pieces of b,  zero where i does not see them,

the same matrix for all copies of the pieces. Coordinates that no table sees are left out: those kept are the union of
the tables' downward closures, level by level, and there G_b is positive definite. With V = G^-1,

    sum over the cells of table A of the variance = sum_b copies_b tr(V_b F_bA)
    variance of a sum q on A                      = sum_b sum_copies x' V_b x,     x = (x)_a S_{l_a}' q on the copy.

For chains of one level every block is one number, 1/cells added up: the residual spaces of lattice/basis.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from hushcube.lattice.nested import AxisSums, Chain, Piece
from hushcube.model.arrays import Floats, Ints

Levels = tuple[tuple[int, int], ...]
"""A table: (chain, level) of what is not summed out, by chains; levels from 1."""
Key = tuple[tuple[int, int], ...]
"""A block: (chain, piece) of each chain whose piece is not the first one, which holds the total."""
Stacks = dict[int, Floats]
"""Matrices of all blocks, (blocks, size, size) for each size of blocks."""

_CHUNK = 2**22


@dataclass(frozen=True, eq=False)
class Pairs:
    """The tables that see blocks of one size, and F_bi for each pair; by blocks."""

    block: Ints
    table: Ints
    F: Floats

    @cached_property
    def first(self) -> Ints:
        """Where the pairs of each block begin."""
        return np.flatnonzero(np.diff(self.block, prepend=-1))


class Blocks:
    """The coordinates that some tables see, in blocks."""

    def __init__(self, chains: Sequence[Chain], tables: Sequence[Levels]) -> None:
        self.chains = chains
        self._segments: dict[Key, dict[Levels, int]] = {}
        self._sizes: dict[Key, int] = {}
        for table in tables:
            for key, pieces in self._choices(table):
                for layers, size in self._layers(table, pieces):
                    segments = self._segments.setdefault(key, {})
                    if layers not in segments:
                        segments[layers] = self._sizes.setdefault(key, 0)
                        self._sizes[key] += size
        self._places: dict[Key, int] = {}
        self.copies: dict[int, Floats] = {}
        for size in sorted(set(self._sizes.values())):
            keys = [key for key, own in self._sizes.items() if own == size]
            self._places |= {key: at for at, key in enumerate(keys)}
            self.copies[size] = np.array([math.prod(chains[a].pieces[t].copies for a, t in key) for key in keys], float)

    @property
    def work(self) -> float:
        """The multiplications of one inversion."""
        return float(sum(len(copies) * size**3 for size, copies in self.copies.items()))

    def numbers(self, tables: Sequence[Levels]) -> float:
        """How many numbers the pairs of some tables take."""
        return float(sum(self._sizes[key] ** 2 for table in tables for key, _ in self._choices(table)))

    def pairs(
        self, tables: Sequence[Levels], grams: Sequence[Sequence[Floats] | None] | None = None
    ) -> dict[int, Pairs]:
        """F_bi for tables that the coordinates cover.

        `grams` replaces M_l by the sums of other answers than cells, for each table and axis.    [AxisSums.gram]
        """
        found: dict[int, list[tuple[int, int, Floats]]] = {size: [] for size in self.copies}
        for number, table in enumerate(tables):
            own = None if grams is None else grams[number]
            for key, pieces in self._choices(table):
                size = self._sizes[key]
                parts = [
                    piece.gram(level) if own is None else _restricted(own[axis], piece, level)
                    for axis, ((_, level), piece) in enumerate(zip(table, pieces, strict=True))
                ]
                if size == 1:
                    F = np.full((1, 1), math.prod(float(part[0, 0]) for part in parts))
                else:
                    F, at = np.zeros((size, size)), self.positions(key, table).ravel()
                    F[at[:, None], at] = _kron(parts)
                found[size].append((self._places[key], number, F))
        result = {}
        for size, pairs in found.items():
            pairs.sort(key=lambda pair: pair[0])
            blocks, numbers = np.array([pair[:2] for pair in pairs], np.int64).reshape(-1, 2).T
            result[size] = Pairs(blocks, numbers, np.array([F for *_, F in pairs]).reshape(-1, size, size))
        return result

    def size(self, key: Key) -> int:
        """The number of coordinates of a block."""
        return self._sizes[key]

    def matrix(self, stacks: Stacks, key: Key) -> Floats:
        """The matrix of one block."""
        return np.asarray(stacks[self._sizes[key]][self._places[key]])

    def positions(self, key: Key, table: Levels) -> Ints:
        """Where the coordinates that a table sees stand in a block; an axis for each of its own."""
        pieces = [self.chains[a].pieces[dict(key).get(a, 0)] for a, _ in table]
        result = np.empty([piece.reach(level) for (_, level), piece in zip(table, pieces, strict=True)], np.int64)
        for layers, size in self._layers(table, pieces):
            own = [dict(layers).get(a, 0) for a, _ in table]
            box = tuple(slice(*np.searchsorted(p.layers, [at, at + 1])) for at, p in zip(own, pieces, strict=True))
            start = self._segments[key][layers]
            result[box] = np.arange(start, start + size).reshape(result[box].shape)
        return result

    def add(self, pairs: dict[int, Pairs], weights: Floats) -> Stacks:
        """sum_i weights_i F_bi."""
        result = {}
        for size, each in pairs.items():
            result[size] = np.zeros((len(self.copies[size]), size, size))
            if len(each.block):
                weighted = weights[each.table, None, None] * each.F
                result[size][each.block[each.first]] = np.add.reduceat(weighted, each.first, axis=0)
        return result

    def inverse(self, G: Stacks, *, public: bool) -> Stacks:
        """V = G^-1; where the total is public its coordinate is known: nothing of its variance is left."""
        result = {}
        for size, matrices in G.items():
            if public and size == self._sizes[()]:  # its coordinate is made to stand alone
                matrices = matrices.copy()
                G_total = matrices[self._places[()]]
                G_total[0, :] = G_total[:, 0] = 0.0
                G_total[0, 0] = 1.0
            scale = 1 / np.sqrt(np.einsum("bii->bi", matrices))
            scaled = matrices * scale[:, :, None] * scale[:, None, :]
            result[size] = np.linalg.inv(scaled) * scale[:, :, None] * scale[:, None, :]
            if public and size == self._sizes[()]:
                result[size][self._places[()], 0, 0] = 0.0
        return result

    def totals(self, V: Stacks, pairs: dict[int, Pairs], tables: int) -> Floats:
        """sum_b copies_b tr(V_b F_bi) for each table."""
        result = np.zeros(tables)
        for size, each in pairs.items():
            traces = np.einsum("pij,pij->p", V[size][each.block], each.F) * self.copies[size][each.block]
            result += np.bincount(each.table, traces, tables)
        return result

    def product_variances(self, V: Stacks, table: Levels, sums: Sequence[AxisSums]) -> Floats:
        """Variances of the products of sums along the axes of a table: an axis for each, as many answers as there.

        Along axes where sums have a partner, covariances with the products that have the partner in their place.
        """
        result = np.zeros([len(each.energy) for each in sums])
        for key, pieces in self._choices(table):
            at = self.positions(key, table)
            T = self.matrix(V, key)[at.reshape(-1, 1), at.reshape(1, -1)].reshape((*at.shape, *at.shape))
            for done, (each, (_, level), piece) in enumerate(zip(sums, table, pieces, strict=True)):
                T = _contracted(T, *each.on(piece, level), len(table) - done)
            result += T
        for axis, each in enumerate(sums):
            result = result if each.index is None else result.take(each.index, axis=axis)
        return result

    def sum_variances(self, V: Stacks, table: Levels, weights: Floats) -> Floats:
        """Variances of weighted sums of the cells of a table; weights (sums, *shape)."""
        result = np.zeros(len(weights))
        for key, x in self._gathered(weights, table):
            at = self.positions(key, table).ravel()
            result += np.einsum("nci,ij,ncj->n", x, self.matrix(V, key)[at[:, None], at], x, optimize=True)
        return result

    def collected(self, values: Floats, table: Levels) -> Iterator[tuple[Key, Floats]]:
        """What the cells of a table say about each block that it sees: (copies, coordinates that it sees)."""
        for key, x in self._gathered(values[None], table):
            yield key, x[0]

    def table(self, coordinates: Mapping[Key, Floats], table: Levels) -> Floats:
        """The cells of a table, from the coordinates of all blocks: (copies, size) for each."""
        k = len(table)
        parts: dict[tuple[bool, ...], Floats] = {}
        for key, pieces in self._choices(table):
            finest = tuple(piece.is_finest for piece in pieces)
            if finest not in parts:
                chains = [self.chains[a] for a, _ in table]
                parts[finest] = np.zeros([c.sizes[-1 if own else -2] for c, own in zip(chains, finest, strict=True)])
            at = self.positions(key, table)
            columns = [piece.seen(level) for (_, level), piece in zip(table, pieces, strict=True)]
            theta = coordinates[key][:, at.ravel()].reshape((*map(len, columns), *at.shape))
            theta = theta.transpose([axis for i in range(k) for axis in (i, k + i)])
            parts[finest][np.ix_(*(own.ravel() for own in columns))] = theta.reshape([own.size for own in columns])
        for finest, part in parts.items():
            for axis, ((a, level), is_finest) in enumerate(zip(table, finest, strict=True)):
                part = part if is_finest else self.chains[a].spread(part, axis, level)
            parts[finest] = part
        return np.asarray(sum(parts.values()))

    def _gathered(self, values: Floats, table: Levels) -> Iterator[tuple[Key, Floats]]:
        """What tables say about the coordinates of each block: (tables, copies, coordinates that they see)."""
        known: dict[tuple[bool, ...], Floats] = {}  # contrasts of the finest level stand as tables of residuals
        k = len(table)
        for key, pieces in self._choices(table):
            finest = tuple(piece.is_finest for piece in pieces)
            if finest not in known:
                T = values
                for axis, ((a, level), is_finest) in enumerate(zip(table, finest, strict=True), 1):
                    chain = self.chains[a]
                    T = chain.residual(T, axis) if is_finest else chain.adjoint(T, axis, level)
                known[finest] = T
            T = known[finest]
            for axis, ((_, level), piece) in enumerate(zip(table, pieces, strict=True)):
                T = T.take(piece.seen(level), axis=1 + 2 * axis)
            T = T.transpose(0, *range(1, 2 * k, 2), *range(2, 2 * k + 1, 2))
            yield key, T.reshape(len(values), math.prod(T.shape[1 : k + 1]), math.prod(T.shape[k + 1 :]))

    def _choices(self, table: Levels) -> Iterator[tuple[Key, list[Piece]]]:
        """The blocks of a table: a piece of each of its chains."""
        seen = [[(t, p) for t, p in enumerate(self.chains[a].pieces) if p.reach(level)] for a, level in table]
        for choice in product(*seen):
            yield tuple((a, t) for (a, _), (t, _) in zip(table, choice, strict=True) if t), [p for _, p in choice]

    def _layers(self, table: Levels, pieces: Sequence[Piece]) -> Iterator[tuple[Levels, int]]:
        """The layers of the pieces that a table sees, in all combinations, and how many coordinates they are."""
        pairs = zip(table, pieces, strict=True)
        for choice in product(*([run for run in piece.runs if run[0] <= level] for (_, level), piece in pairs)):
            layers = tuple((a, layer) for (a, _), (layer, _) in zip(table, choice, strict=True) if layer)
            yield layers, math.prod(count for _, count in choice)


def _kron(matrices: Sequence[Floats]) -> Floats:
    result: Floats = np.ones((1, 1))
    for matrix in matrices:
        result = np.asarray(np.kron(result, matrix))
    return result


def _restricted(gram: Floats, piece: Piece, level: int) -> Floats:
    """A Gram matrix over the core and, in its last corner, the finest contrasts; the mean over a piece's copies."""
    if piece.is_finest:
        return gram[-1:, -1:] / piece.copies
    columns = piece.seen(level)
    return np.asarray(gram[columns[:, :, None], columns[:, None, :]].mean(axis=0))


def _contracted(T: Floats, x: Floats, y: Floats, k: int) -> Floats:
    """sum_copies x' T y along the first axis of T and its twin, which is k axes later; answers become the last axis."""
    d = x.shape[2]
    flat = np.moveaxis(T, k, 1).reshape(d * d, -1)
    result = np.empty((len(x), flat.shape[1]))
    step = max(1, _CHUNK // (d * d))
    for start in range(0, len(x), step):
        part = slice(start, start + step)
        partners = y if len(y) == 1 else y[part]
        result[part] = np.einsum("ncd,nce->nde", x[part], partners).reshape(-1, d * d) @ flat
    rest = tuple(n for axis, n in enumerate(T.shape) if axis not in (0, k))
    return np.moveaxis(result.reshape(len(x), *rest), 0, -1)
