"""An attribute at several nested levels: coordinates in which all of its tables can be combined exactly.

x_k are the counts at level k of a chain, x_0 the total, x_L the finest. Every group p of level k-1 has m_p children.
The coordinates are theta_0 = x_0 and, for k = 1..L, contrasts theta_k of the children within each parent (orthonormal
columns H_p, m_p - 1 of them), n_k - n_{k-1} in all:

    x_k = sum_{j <= k} S_kj theta_j,     S_kk = blockdiag(H_p),     S_kj = D_k S_{k-1,j}  for j < k,

D_k spreads a parent evenly over its children (1/m_p). The contrasts of one level are orthogonal to what is spread from
above, S_kk' S_kj = 0, so those of the finest level stand alone and are all alike: M_L = S_L' S_L is the identity on
them, and M_l is zero for l < L. They are kept as tables whose siblings sum to zero, without a basis. The others, the
core, couple wherever numbers of children differ.

Children whose subtrees have the same shape are contrasted first among themselves, then with the others. That makes the
matrices M_l fall apart into pieces: where all groups are of one size every coordinate stands alone, and with two levels
the largest piece has one coordinate for each number of children that occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints, applied

_ZERO: Final = 1e-12  # couplings below this, relative to the diagonal, are rounding


@dataclass(frozen=True, eq=False)
class Piece:
    """Coordinates of a chain that do not couple with its others; `copies` of them behave alike."""

    columns: Ints
    """Where they stand in the core, (copies, coordinates), by layers; contrasts of the finest level: its cells."""
    layers: Ints  # the level that each coordinate belongs to, not decreasing
    grams: Floats  # M_l on the piece, for l = 0..L
    copies: int
    is_finest: bool = False  # whether they are the contrasts of the finest level, which are kept as tables of cells

    def reach(self, level: int) -> int:
        """How many of the coordinates a table at a level sees: those of layers up to it."""
        return int(np.searchsorted(self.layers, level, side="right"))

    def seen(self, level: int) -> Ints:
        """The columns of those coordinates."""
        return np.asarray(self.columns[:, : self.reach(level)])

    @cached_property
    def runs(self) -> tuple[tuple[int, int], ...]:
        """The layers, and how many coordinates each of them has."""
        return tuple(zip(*(x.tolist() for x in np.unique(self.layers, return_counts=True)), strict=True))

    def gram(self, level: int) -> Floats:
        """M_l on the coordinates that level l sees."""
        d = self.reach(level)
        return np.asarray(self.grams[level, :d, :d])


@dataclass(frozen=True, eq=False)
class AxisSums:
    """Sums of the cells of one level, in coordinates."""

    core: Floats  # S_l' q on the core: (sums, core)
    energy: Floats  # ||H q||², the squared norm of q on the contrasts of the finest level; (H q)'(H t) with a partner
    index: Ints | None = None  # which of them each answer is, where many are alike
    partner: Floats | None = None  # S_l' t on the core, of a sum t that all others are paired with: (1, core)

    def on(self, piece: Piece, level: int) -> tuple[Floats, Floats]:
        """The coordinates on a piece, and those of the partners: (sums, copies, those that the level sees)."""
        if piece.is_finest:
            energy = self.energy[:, None, None]
            return (np.sqrt(energy),) * 2 if self.partner is None else (energy, np.ones((1, 1, 1)))
        own = np.asarray(self.core[:, piece.seen(level)])
        return own, own if self.partner is None else np.asarray(self.partner[:, piece.seen(level)])

    @cached_property
    def gram(self) -> Floats:
        """The sum over all answers of their coordinates' products, on the core; all energy in the last corner."""
        n = self.core.shape[1]
        times = np.ones(len(self.core)) if self.index is None else np.bincount(self.index, minlength=len(self.core))
        result = np.zeros((n + 1, n + 1))
        result[:n, :n] = (self.core * times[:, None]).T @ self.core
        result[n, n] = times @ self.energy
        return result


@dataclass(frozen=True, eq=False)
class Chain:
    """Nested levels from coarse to fine, below a root that holds everything.

    >>> chain = Chain((np.zeros(2, np.int64), np.array([0, 0, 1, 1, 1])))
    >>> chain.sizes, [piece.layers.tolist() for piece in chain.pieces]
    ((1, 2, 5), [[0, 1], [2]])
    >>> Chain((np.zeros(2, np.int64), np.array([0, 0, 1, 1]))).pieces[0].layers.tolist()  # equal groups: no coupling
    [0]
    """

    parents: tuple[Ints, ...]  # for k = 1..L, the group of level k-1 that each group of level k lies in

    def __post_init__(self) -> None:
        above = 1
        for parents in self.parents:
            if not len(parents) or not np.array_equal(np.unique(parents), np.arange(above)):
                raise ValueError("every group needs a child, every child one parent")
            above = len(parents)

    @property
    def depth(self) -> int:
        """L, the number of levels."""
        return len(self.parents)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """n_0 = 1, ..., n_L."""
        return (1, *map(len, self.parents))

    @cached_property
    def children(self) -> tuple[Ints, ...]:
        """For k = 0..L-1, the number of children of each group of level k."""
        return tuple(np.bincount(parents) for parents in self.parents)

    @cached_property
    def core(self) -> tuple[Floats, ...]:
        """S_l on the core, for l = 0..L-1: (n_l, n_{L-1}); zero on layers beyond l."""
        found = [np.eye(1, self.sizes[-2])]
        for k in range(1, self.depth):
            parents, at = self.parents[k - 1], self.sizes[k - 1]
            S = found[-1][parents] / self.children[k - 1][parents, None]
            for group in range(at):
                own = np.flatnonzero(parents == group)
                own = own[np.argsort(self._shapes[k][own], kind="stable")]
                S[own, at : at + len(own) - 1] = _contrasts(np.unique(self._shapes[k][own], return_counts=True)[1])
                at += len(own) - 1
            found.append(S)
        return tuple(found)

    @cached_property
    def _shapes(self) -> tuple[Ints, ...]:
        """For k = 0..L-1, a number for each group of level k: equal where the trees below them are."""
        below: list[Ints] = [self.children[-1]]
        for k in range(self.depth - 2, -1, -1):
            order = np.lexsort((below[0], self.parents[k]))
            runs = np.split(below[0][order], np.cumsum(self.children[k])[:-1])
            known: dict[bytes, int] = {}
            below.insert(0, np.array([known.setdefault(run.tobytes(), len(known)) for run in runs], np.int64))
        return tuple(below)

    @cached_property
    def pieces(self) -> tuple[Piece, ...]:
        """The parts of the core that do not couple, that of the total first, and the contrasts of the finest level."""
        grams = np.stack([*(S.T @ S for S in self.core), self.core[-1].T @ self._parts])
        layers = np.repeat(np.arange(self.depth), np.diff((0, *self.sizes[:-1])))
        found: list[Piece] = []
        alone: dict[tuple[float, ...], list[int]] = {}
        for columns in _components(grams):
            own = grams[:, columns[:, None], columns]
            if len(columns) == 1 and columns[0] > 0:
                alone.setdefault((float(layers[columns[0]]), *_rounded(own[:, 0, 0])), []).append(int(columns[0]))
            else:
                found.append(Piece(columns[None], layers[columns], own, 1))
        for same in alone.values():
            columns = np.array(same)[:, None]
            found.append(Piece(columns, layers[same[:1]], grams[:, same[:1], same[:1]][:, :, None], len(same)))
        if contrasts := self.sizes[-1] - self.sizes[-2]:
            own = (np.arange(self.depth + 1) == self.depth).astype(np.float64)[:, None, None]
            cells = np.arange(self.sizes[-1])[:, None]
            found.append(Piece(cells, np.array([self.depth]), own, contrasts, is_finest=True))
        return tuple(found)

    @cached_property
    def _parts(self) -> Floats:
        """What each child has of its parent at the second finest level: the core there, divided."""
        return self.core[-1] / self.children[-1][:, None]

    def cells(self, level: int) -> AxisSums:
        """Each cell by itself; those of one parent are alike on the core."""
        if level < self.depth:
            return AxisSums(self.core[level], np.zeros(self.sizes[level]))
        return AxisSums(self._parts, 1 - 1 / self.children[-1], self.parents[-1])

    def sums(self, level: int, weights: Floats) -> AxisSums:
        """Weighted sums of cells: (sums, n_level)."""
        inner = level < self.depth
        sums = weights @ self.core[level] if inner else group_sums(weights, 1, self.parents[-1])
        return self._in_coordinates(level, sums, (weights**2).sum(axis=1))

    def grouped(self, level: int, groups: Ints) -> AxisSums:
        """The sums of the cells of each group; `groups` has the group of each cell."""
        sums = np.zeros((int(groups.max()) + 1, self.sizes[-2]))
        if level < self.depth:
            np.add.at(sums, groups, self.core[level])
        else:
            np.add.at(sums, (groups, self.parents[-1]), 1.0)
        return self._in_coordinates(level, sums, np.bincount(groups))

    def paired(self, level: int, total: Floats) -> AxisSums:
        """Each cell by itself, paired with one weighted sum of them."""
        [partner] = self.sums(level, total[None]).core
        if level < self.depth:
            return AxisSums(self.core[level], np.zeros(self.sizes[level]), partner=partner[None])
        return AxisSums(self._parts[self.parents[-1]], self.residual(total, 0), partner=partner[None])

    def intervals(self, level: int, starts: Ints, ends: Ints) -> AxisSums:
        """Sums of the cells from each start to before each end."""
        cells = self.core[level] if level < self.depth else np.eye(self.sizes[-2])[self.parents[-1]]
        running = np.zeros((len(cells) + 1, cells.shape[1]))
        cells.cumsum(axis=0, out=running[1:])
        return self._in_coordinates(level, running[ends] - running[starts], ends - starts)

    def _in_coordinates(self, level: int, sums: Floats, squares: Floats | Ints) -> AxisSums:
        """From sums over the core or, at the finest level, over each parent's children; and the sums of all squares."""
        if level < self.depth:
            return AxisSums(sums, np.zeros(len(sums)))
        spread = sums / self.children[-1]
        return AxisSums(spread @ self.core[-1], np.maximum(squares - (sums * spread).sum(axis=1), 0.0))

    def adjoint(self, values: Floats, axis: int, level: int) -> Floats:
        """S_l' on the core, along an axis of tables at level l."""
        if level < self.depth:
            return applied(self.core[level].T, values, axis)
        return applied(self._parts.T, group_sums(values, axis, self.parents[-1]), axis)

    def residual(self, values: Floats, axis: int) -> Floats:
        """What is left of tables at the finest level when each cell's mean over its siblings is taken away."""
        children = self.children[-1].reshape([-1 if a == axis else 1 for a in range(values.ndim)])
        means = group_sums(values, axis, self.parents[-1]) / children
        return np.asarray(values - means.take(self.parents[-1], axis=axis))

    def spread(self, coordinates: Floats, axis: int, level: int) -> Floats:
        """S_l on the core: tables at level l, along an axis."""
        if level < self.depth:
            return applied(self.core[level], coordinates, axis)
        return applied(self._parts, coordinates, axis).take(self.parents[-1], axis=axis)


def group_sums(values: Floats, axis: int, groups: Ints) -> Floats:
    """Sums over groups along an axis; `groups` has the group of each position, and none is empty."""
    order = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[order], np.arange(int(groups.max()) + 1))
    return np.asarray(np.add.reduceat(values.take(order, axis=axis), first, axis=axis))


def _contrasts(runs: Sequence[int] | Ints) -> Floats:
    """Orthonormal columns that sum to zero: within each run of cells, then constant on runs; (cells, cells - 1)."""
    m = int(np.sum(runs))
    H = np.zeros((m, m - 1))
    at = start = 0
    for run in runs:
        for k in range(1, int(run)):
            H[start : start + k, at] = 1.0
            H[start + k, at] = -k
            at += 1
        start += int(run)
    ends = np.cumsum(runs)
    for before, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        H[:before, at] = 1.0
        H[before:end, at] = -before / (end - before)
        at += 1
    return np.asarray(H / np.sqrt((H**2).sum(axis=0)))


def _components(grams: Floats) -> list[Ints]:
    """The columns that some M_l couples, directly or through others; the first ones hold column 0."""
    scale = np.sqrt(np.maximum(np.einsum("lii->i", grams), 0.0))
    coupled = (np.abs(grams) > _ZERO * scale[:, None] * scale).any(axis=0)
    left = np.ones(len(scale), bool)
    found = []
    while left.any():
        members = np.zeros(len(scale), bool)
        fresh = np.arange(len(scale)) == np.argmax(left)
        while fresh.any():
            members |= fresh
            fresh = coupled[fresh].any(axis=0) & ~members
        left &= ~members
        found.append(np.flatnonzero(members))
    return found


def _rounded(values: Floats) -> tuple[float, ...]:
    """Equal for numbers that differ by rounding only."""
    return tuple(float(f"{value:.11e}") if abs(value) > _ZERO else 0.0 for value in values.tolist())
