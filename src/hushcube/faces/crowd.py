"""Synthetic people, their residuals in every table, and the moves that change both together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput
from hushcube.lattice.coefficients import Weighed
from hushcube.model.arrays import Floats, Ints
from hushcube.progress import Clock

Codes = NDArray[np.unsignedinteger]
Singles = NDArray[np.float32]
Classes = Sequence[Ints] | None  # a class for each value of each attribute

STAGE: Final = "moving synthetic people"
_BLOCK: Final = 2**13  # people whose scores are gathered at a time: a block of scores stays in the cache
_EVENTS: Final = 2**15  # about how many cells a chunk of moves may touch
_JOINT: Final = 2**10  # the most rows of a look-up that several tables share
_CROWDED: Final = 8  # the most chunks of people who would move at once
_FEW: Final = 2**10  # moves of a chunk that are taken one by one
_SPOILT: Final = 0.02  # the share of moves of a chunk that may turn out not to help
_ROUNDS: Final = 6
_KEPT_VIEWS: Final = 2**18


def narrow(codes: NDArray[np.integer], sizes: Sequence[int]) -> Codes:
    """The people in the smallest unsigned type that holds every attribute's positions, columns contiguous."""
    kind = np.min_scalar_type(max(max(sizes, default=1) - 1, 0))
    return np.asfortranarray(codes.astype(kind))


def cell_numbers(columns: NDArray[np.integer], sizes: Sequence[int], marginal: Sequence[int]) -> Ints:
    """The cell of a marginal that each person is in; `columns` holds the people, attribute by attribute."""
    index = np.zeros(columns.shape[1], np.int64)
    for attribute in marginal:
        index *= sizes[attribute]
        index += columns[attribute]
    return index


@dataclass(frozen=True, eq=False)
class View:
    """The tables with attribute j: their places in the long vector of all cells, and where people fall in them.

    A person with positions x is in cell offsets + across @ x + strides * x_j. Products of floats are exact here, and
    much faster than a loop over tables.
    """

    offsets: NDArray[np.floating]
    across: NDArray[np.floating]
    strides: Ints
    weights: Floats
    together: list[tuple[tuple[int, ...], list[int]]]
    """Tables that are looked up together: their other attributes, and their numbers."""


class Crowd:
    """The people (attribute by attribute), and the residual r of every cell of every table to come near to."""

    def __init__(
        self, codes: NDArray[np.integer], sizes: Sequence[int], targets: Weighed, classes: Classes, clock: Clock
    ) -> None:
        self.clock = clock
        self.sizes = tuple(int(size) for size in sizes)
        self.columns = np.ascontiguousarray(codes.T)
        self.classes = [np.zeros(size, np.int64) for size in self.sizes] if classes is None else classes
        self._check(targets)
        self.columns = np.ascontiguousarray(narrow(self.columns.T, self.sizes).T)
        self.marginals: list[tuple[int, ...]] = []
        residuals, weights, starts = [np.zeros(0)], [np.zeros(0)], [0]
        for batch, values in zip(targets.tables.batches, targets.values, strict=True):
            for row, number, value in zip(batch.rows.tolist(), batch.ids.tolist(), values, strict=True):
                counts = np.bincount(cell_numbers(self.columns, self.sizes, row), minlength=batch.cells)
                residuals.append(counts - np.asarray(value, np.float64).reshape(-1))
                weights.append(np.full(batch.cells, targets.weights[number], np.float64))
                starts.append(starts[-1] + batch.cells)
                self.marginals.append(tuple(row))
        self.residual, self.weight, self.starts = np.concatenate(residuals), np.concatenate(weights), starts
        self.views: dict[int, View] = {}
        touched = {j for row, start in zip(self.marginals, starts, strict=False) for j in row if self.weight[start] > 0}
        self.movable = sorted(j for j in touched if self.sizes[j] > 1 and self.columns.size)

    def _check(self, targets: Weighed) -> None:
        if len(self.columns) != len(self.sizes):
            raise BadInput("codes", "they do not have one column for each attribute", "give an array (people, sizes)")
        if ((self.columns < 0) | (self.columns >= np.array(self.sizes)[:, None])).any():
            raise BadInput("codes", "a value is outside its attribute", "give positions below the attribute's size")
        if (targets.weights < 0).any() or not np.isfinite(targets.weights).all():
            raise BadInput("weights", "one is negative or not a number", "give non-negative weights")
        if tuple(map(len, self.classes)) != self.sizes:
            raise BadInput("classes", "they do not fit the attributes", "give one class for each value")

    def codes(self) -> Codes:
        """The people as they are now."""
        return narrow(self.columns.T, self.sizes)

    def distance(self) -> float:
        """f, the weighted sum of squares."""
        return float(np.sum(self.weight * self.residual**2))

    def _view(self, j: int) -> View:
        if j in self.views:
            return self.views[j]
        having = [k for k, row in enumerate(self.marginals) if j in row and self.weight[self.starts[k]] > 0]
        across = np.zeros((len(having), len(self.sizes)))
        for t, k in enumerate(having):
            stride = 1
            for attribute in reversed(self.marginals[k]):
                across[t, attribute] = stride
                stride *= self.sizes[attribute]
        strides = across[:, j].astype(np.int64)
        across[:, j] = 0
        starts = np.array(self.starts, np.int64)[having]
        together = self._together(j, having)
        kind = np.float32 if len(self.residual) < 2**24 else np.float64  # exact for the numbers of cells
        view = View(starts.astype(kind), across.astype(kind), strides, self.weight[starts], together)
        if len(self.marginals) * len(self.sizes) <= _KEPT_VIEWS:
            self.views[j] = view
        return view

    def _together(self, j: int, having: list[int]) -> list[tuple[tuple[int, ...], list[int]]]:
        """Tables of one or two attributes join, as long as their look-up stays in the cache; others stand alone."""
        joined: list[tuple[tuple[int, ...], list[int]]] = []
        rows = _JOINT + 1
        for k in having:
            others = tuple(a for a in self.marginals[k] if a != j)
            own = math.prod(self.sizes[a] for a in others)
            if len(others) < 2 and rows * own <= _JOINT and joined:
                joined[-1] = (joined[-1][0] + others, [*joined[-1][1], k])
                rows *= own
            else:
                joined.append((others, [k]))
                rows = own if len(others) < 2 else _JOINT + 1
        return joined

    def _bases(self, people: Ints, view: View) -> Ints:
        """The people's cells with value 0 of j: (tables, people), in the long vector."""
        found = view.across @ self.columns[:, people].astype(view.across.dtype)
        found += view.offsets[:, None]
        return found.astype(np.int64)

    def _kinds(self, j: int) -> tuple[Codes, Ints]:
        """Kinds of people, who differ in j at most, as columns of codes, and the kind of each person.

        All kinds that there can be, where those are fewer than people; else everybody is of a kind of their own.
        """
        others = [k for k in range(len(self.sizes)) if k != j]
        kinds, people = math.prod(self.sizes[k] for k in others), self.columns.shape[1]
        if kinds >= people or self.classes[j].any():
            return self.columns, np.arange(people)
        columns = np.zeros_like(self.columns, shape=(len(self.sizes), kinds))
        outer = 1
        for k in others:
            outer *= self.sizes[k]
            columns[k] = np.tile(np.repeat(np.arange(self.sizes[k]), kinds // outer), outer // self.sizes[k])
        return columns, cell_numbers(self.columns, self.sizes, others)

    def _scores(self, j: int, view: View, people: Codes) -> Singles:
        """For each person and value b of j: sum_A 2 w_A r_A[with b], in single precision; infinite where none may go.

        The tables of j and one other attribute are added up first, a few attributes at a time: one look-up for all.
        """
        joint = [(others, self._joint(j, tables)) for others, tables in view.together]
        scores = np.zeros((people.shape[1], self.sizes[j]), np.float32)
        for start in range(0, len(scores), _BLOCK):
            block = scores[start : start + _BLOCK]
            columns = people[:, start : start + _BLOCK]
            for others, values in joint:
                block += values.take(cell_numbers(columns, self.sizes, others), axis=0, mode="clip")
        if self.classes[j].any():
            scores[self.classes[j][people[j], None] != self.classes[j]] = np.inf
        return scores

    def _joint(self, j: int, tables: Sequence[int]) -> Singles:
        """2 w r of tables whose other attributes follow each other, added up over all of their cells."""
        joint = np.zeros((1, self.sizes[j]), np.float32)
        for k in tables:
            joint = (joint[:, None] + self._turned(k, j).astype(np.float32)).reshape(-1, self.sizes[j])
        return joint

    def _turned(self, k: int, j: int) -> Floats:
        """2 w r of table k as a matrix, the values of j across."""
        row = self.marginals[k]
        at = row.index(j)
        outer, inner = (math.prod(self.sizes[a] for a in part) for part in (row[:at], row[at + 1 :]))
        r = self.residual[self.starts[k] : self.starts[k + 1]].reshape(outer, self.sizes[j], inner)
        return np.asarray(r.transpose(0, 2, 1).reshape(-1, self.sizes[j]) * (2 * self.weight[self.starts[k]]))

    def move(self, j: int, rng: np.random.Generator) -> None:
        """Move people to their best value of j where that lowers f; it ends early where the time is up."""
        view = self._view(j)
        kinds, kind = self._kinds(j)
        scores = self._scores(j, view, kinds)
        best = scores.argmin(axis=1)
        least = np.take_along_axis(scores, best[:, None], axis=1)[:, 0]
        own = scores.reshape(-1).take(kind * self.sizes[j] + self.columns[j])
        gains = own - least.take(kind) - np.float32(2 * view.weights.sum())
        order = rng.permutation(np.flatnonzero(gains > 0))  # people who are alike come in no order
        order = order[np.argsort(~(gains[order].view(np.uint32) >> 16).astype(np.uint16), kind="stable")]
        for part in _chunks(order, 2 * len(view.weights), _CROWDED):
            if self.clock.over:
                return
            base, stride, to = self._bases(part, view), view.strides[:, None], best[kind[part]]
            cells = np.stack([base + stride * self.columns[j, part], base + stride * to])
            done = self._take_together(cells, view.weights)
            self.columns[j, part[done]] = to[done]

    def _take_together(self, cells: Ints, weights: Floats) -> Ints:
        """Do most of the moves that help, from cells[0] to cells[1], in about their order; returns which.

        Where many move at once, what the earlier ones did to a cell is about their share of what all do to it. Those
        that would not help then are dropped, a few times, and the exact change of f by all others decides.
        """
        if cells.shape[2] <= _FEW:
            moves = cells.transpose(1, 2, 0)
            return self._take(moves, np.broadcast_to(np.array([-1.0, 1.0]), moves.shape), weights)
        r, own = self.residual, 2 * float(weights.sum())
        alone = 2 * (weights @ (r[cells[1]] - r[cells[0]])) + own
        kept = np.flatnonzero(alone < 0)
        for rounds in range(_ROUNDS):
            shift, others = self._together_with(cells[:, :, kept], weights)
            earlier = (np.arange(len(kept)) + 0.5) / max(len(kept), 1)
            good = alone[kept] + earlier * others < 0
            if np.count_nonzero(~good) <= (_SPOILT * len(good) if rounds else 0):
                break
            kept = kept[good]
        shift, others = self._together_with(cells[:, :, kept], weights)
        while len(kept) and not float(alone[kept].sum() + others.sum() / 2) < 0:
            kept = kept[::2]
            shift, others = self._together_with(cells[:, :, kept], weights)
        r += shift
        return kept

    def _together_with(self, cells: Ints, weights: Floats) -> tuple[Ints, Floats]:
        """What moves do to each cell together, and by how much all others change what f falls by each of them."""
        out, to = cells
        length = len(self.residual)
        shift = np.bincount(to.reshape(-1), minlength=length) - np.bincount(out.reshape(-1), minlength=length)
        return shift, 2 * (weights @ (shift[to] - shift[out])) - 4 * float(weights.sum())

    def swap(self, j: int, rng: np.random.Generator) -> None:
        """Let pairs of people exchange their values of j where that lowers f; it ends early where the time is up."""
        view = self._view(j)
        p, q = self._pairs(j, rng)
        gains = np.zeros(len(p))
        for block in _chunks(np.arange(len(p)), 4 * len(view.weights)):
            if self.clock.over:
                return
            gains[block] = -self._changes(*self._exchange(p[block], q[block], j, view), view.weights)
        for part in _chunks(_best_first(gains), 4 * len(view.weights)):
            if self.clock.over:
                return
            done = part[self._take(*self._exchange(p[part], q[part], j, view), view.weights)]
            self.columns[j, p[done]], self.columns[j, q[done]] = self.columns[j, q[done]], self.columns[j, p[done]]

    def _pairs(self, j: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Pairs who differ in j and agree on the first few other attributes, in a random order of attributes."""
        others = rng.permutation([k for k in range(len(self.sizes)) if k != j])
        keys = [rng.permutation(self.columns.shape[1])]
        keys += [rng.permutation(self.sizes[k])[self.columns[k]] for k in others.tolist()]
        if self.classes[j].any():  # people exchange within classes only
            keys.append(self.classes[j][self.columns[j]])
        order = np.lexsort(keys)[int(rng.integers(2)) :]
        p, q = order[: len(order) // 2 * 2].reshape(-1, 2).T
        mine, other = self.columns[j, p], self.columns[j, q]
        able = (mine != other) & (self.classes[j][mine] == self.classes[j][other])
        return p[able], q[able]

    def _exchange(self, p: Ints, q: Ints, j: int, view: View) -> tuple[Ints, Floats]:
        """The cells that an exchange touches and the signs; 0 in the tables where the two agree elsewhere."""
        mine, other = self._bases(p, view), self._bases(q, view)
        a, b = view.strides[:, None] * self.columns[j, p], view.strides[:, None] * self.columns[j, q]
        cells = np.stack([mine + a, other + b, mine + b, other + a], axis=2)
        return cells, np.array([-1.0, -1.0, 1.0, 1.0]) * (mine != other)[:, :, None]

    def _changes(self, cells: Ints, signs: Floats, weights: Floats) -> Floats:
        """The change of f by each move alone: sum_A w_A sum_c (2 sign r + sign²); cells are (tables, moves, events)."""
        return np.asarray(weights @ np.einsum("tme,tme->tm", signs, 2 * self.residual[cells] + signs))

    def _take(self, cells: Ints, signs: Floats, weights: Floats) -> Ints:
        """Do the moves that help, in their order; returns which."""
        alone = self._changes(cells, signs, weights)
        little = 1e-9 * float(weights.sum())
        kept = np.flatnonzero(alone < -little)
        for _ in range(_ROUNDS):
            change = alone[kept] + 2 * (weights @ _earlier(cells[:, kept], signs[:, kept]))
            good = change < -little
            if good.all():
                break
            kept = kept[good]
        else:
            change = alone[kept] + 2 * (weights @ _earlier(cells[:, kept], signs[:, kept]))
            sums = np.cumsum(change)
            kept = kept[: int(np.argmin(sums)) + 1 if len(sums) and sums.min() < 0 else 0]
        np.add.at(self.residual, cells[:, kept].reshape(-1), signs[:, kept].reshape(-1))
        return kept


def _earlier(cells: Ints, signs: Floats) -> Floats:
    """For each table and move: sum over its cells of sign times what the moves before it did to the cell."""
    flat = cells.reshape(len(cells), -1)
    if not flat.size:
        return np.zeros(cells.shape[:2])
    flat = flat - flat.min(axis=1, keepdims=True)
    if flat.max() < 2**16:
        flat = flat.astype(np.uint16)  # which numpy sorts by radix
    sign = signs.reshape(flat.shape)
    order = np.argsort(flat, axis=1, kind="stable")
    cell, step = np.take_along_axis(flat, order, 1), np.take_along_axis(sign, order, 1)
    before = np.cumsum(step, axis=1) - step
    new = np.ones(cell.shape, np.bool_)
    new[:, 1:] = cell[:, 1:] != cell[:, :-1]
    since = np.maximum.accumulate(np.where(new, np.arange(cell.shape[1]), 0), axis=1)
    sums = np.empty_like(before)
    np.put_along_axis(sums, order, before - np.take_along_axis(before, since, 1), 1)
    return np.asarray(np.einsum("tme,tme->tm", sums.reshape(cells.shape), signs))


def _best_first(gains: Floats) -> Ints:
    wanted = np.flatnonzero(gains > 0)
    return np.asarray(wanted[np.argsort(-gains[wanted], kind="stable")])


def _chunks(wanted: Ints, width: int, most: int | None = None) -> list[Ints]:
    """Parts of about as many events as the cache holds; larger ones where there would be more than so many parts."""
    step = max(64, _EVENTS // max(width, 1))
    if most is not None:
        step = max(step, -(-len(wanted) // most))
    return [wanted[start : start + step] for start in range(0, len(wanted), step)]
