"""A set of marginals held as arrays: subset sums over 166,751 marginals are a few array operations."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import groupby
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats, Ints, Marginal, frozen

Ids = Ints
Rows = NDArray[np.int32]

_FEW: Final = 1 << 14
"""Pairs of marginals that are looked at: if there are no more, the inclusions among them are kept."""
_KEPT: Final = 32
"""For how many families: more than the tables of a small release have shapes, so that none pushes another out."""
_BITS: Final = frozen(np.left_shift(np.int64(1), np.arange(63)))


@dataclass(frozen=True)
class Batch:
    """Marginals of one shape: `rows` holds their attributes, `ids` their numbers in the family."""

    shape: tuple[int, ...]
    ids: Ids
    rows: Rows

    @property
    def cells(self) -> int:
        """The number of cells of each marginal."""
        return math.prod(self.shape)

    def parts(self, most_cells: int) -> Iterator[slice]:
        """Runs of the batch with at most that many cells together (or one marginal), for work in bounded memory."""
        step = max(1, most_cells // self.cells)
        for start in range(0, len(self.ids), step):
            yield slice(start, min(start + step, len(self.ids)))


@dataclass(frozen=True)
class Inclusion:
    """Pairs A >= B: `big` numbers the A's, `small` the B's, `kept` says which columns of A's rows make up B."""

    big: Ids
    small: Ids
    kept: Bools  # shape (k,) where all pairs share one pattern, (pairs, k) otherwise


class Family:
    """Distinct marginals, numbered by order (number of attributes) and then by key.

    >>> family = Family.of([(0, 1), (1, 2)], sizes=(2, 3, 4))
    >>> list(family.closure)
    [(), (0,), (1,), (2,), (0, 1), (1, 2)]
    >>> family.product([2, 3, 4]).tolist()
    [6.0, 12.0]
    """

    def __init__(self, sizes: Iterable[int], levels: Iterable[Rows]) -> None:
        self.sizes = frozen(tuple(sizes), np.int64)
        given = [np.asarray(level, dtype=np.int32) for level in levels]
        distinct = [np.unique(self._key(level), return_index=True) for level in given]
        self._keys = [frozen(keys) for keys, _ in distinct]
        pairs = zip(given, distinct, strict=True)
        self.levels: tuple[Rows, ...] = tuple(frozen(level[first]) for level, (_, first) in pairs)
        self.starts = frozen(np.cumsum([0, *(len(level) for level in self.levels)]))
        self._kept: list[tuple[Family, tuple[Inclusion, ...]]] = []

    @classmethod
    def of(cls, marginals: Iterable[Marginal], sizes: Iterable[int]) -> Family:
        """Collect marginals given as tuples of increasing positions."""
        by_order = {k: list(group) for k, group in groupby(sorted(marginals, key=len), key=len)}
        top = max(by_order, default=-1)
        return cls(sizes, [_rows(by_order.get(k, []), k) for k in range(top + 1)])

    @classmethod
    def of_rows(cls, rows: Rows, sizes: Iterable[int]) -> Family:
        """Collect marginals of one order, given as rows of positions; sorted ones, as in a batch, stay in order."""
        return cls(sizes, [*(np.zeros((0, k), np.int32) for k in range(rows.shape[1])), rows])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __iter__(self) -> Iterator[Marginal]:
        for level in self.levels:
            yield from map(tuple, level.tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Family) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    @property
    def attributes(self) -> Ids:
        """The attributes that occur in some marginal."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(level.ravel() for level in self.levels)]))

    def _key(self, rows: Rows) -> NDArray[Any]:
        """One sortable number a row: a bit mask, a mixed-radix number, or (many attributes, high order) a long one."""
        d, k = len(self.sizes), rows.shape[1]
        if d <= 62:
            return np.asarray(_BITS[rows].sum(axis=1))
        if d**k < 2**62:
            key = np.zeros(len(rows), np.int64)
            for column in rows.T:
                key = key * d + column
            return key
        integers = np.empty(len(rows), dtype=object)
        integers[:] = [sum(1 << position for position in row) for row in rows.tolist()]
        return integers

    def find(self, rows: Rows) -> Ids:
        """The numbers of marginals given as rows of positions; -1 where the family lacks one."""
        k = rows.shape[1]
        if k >= len(self.levels) or not len(self.levels[k]):
            return np.full(len(rows), -1, np.int64)
        keys = self._keys[k]
        wanted = self._key(rows)
        at = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, at + self.starts[k], -1)

    def ids(self, marginals: Iterable[Marginal]) -> Ids:
        """The numbers of marginals given as tuples, in their order."""
        listed = list(marginals)
        result = np.full(len(listed), -1, np.int64)
        places: dict[int, list[int]] = {}
        for at, marginal in enumerate(listed):
            places.setdefault(len(marginal), []).append(at)
        for k, own in places.items():
            result[own] = self.find(_rows([listed[at] for at in own], k))
        return result

    @cached_property
    def closure(self) -> Family:
        """Every subset of every member: the residual spaces that the family sees."""
        levels: list[Rows] = list(self.levels)
        for k in range(len(levels) - 1, 0, -1):
            shorter = [np.delete(levels[k], column, axis=1) for column in range(k)]
            merged = np.concatenate([levels[k - 1], *shorter])
            levels[k - 1] = merged[np.unique(self._key(merged), return_index=True)[1]]
        return Family(self.sizes, levels)

    @cached_property
    def batches(self) -> tuple[Batch, ...]:
        """The members grouped by shape, so that equal shapes are one array operation."""
        batches = []
        for start, level in zip(self.starts, self.levels, strict=False):
            if not level.size:  # an empty order, or the total alone
                batches += [Batch((), frozen(np.arange(len(level)) + start), level)] * bool(len(level))
                continue
            shapes, group = np.unique(self.sizes[level], axis=0, return_inverse=True)
            order = np.argsort(group, kind="stable")
            for shape, members in zip(shapes, np.split(order, np.cumsum(np.bincount(group))[:-1]), strict=True):
                batches.append(Batch(tuple(shape.tolist()), frozen(members + start), frozen(level[members])))
        return tuple(batches)

    @cached_property
    def alone(self) -> tuple[Family, ...]:
        """Each batch as a family of its own: its marginals numbered from 0, in their order."""
        return tuple(Family.of_rows(batch.rows, self.sizes) for batch in self.batches)

    def part(self, number: int, part: slice) -> Family:
        """A run of a batch as a family of its own; the whole batch is always the same one."""
        alone, rows = self.alone[number], self.batches[number].rows[part]
        return alone if len(rows) == len(alone) else Family.of_rows(rows, self.sizes)

    def product(self, factors: Iterable[float] | Floats) -> Floats:
        """For each member, the product of its attributes' factors; 1 for the total."""
        values = np.asarray(factors, dtype=np.float64)
        with np.errstate(over="ignore"):  # a domain beyond 10^308 is infinite enough to be refused
            return np.concatenate([np.ones(0), *(values[level].prod(axis=1) for level in self.levels)])

    @cached_property
    def cells(self) -> Floats:
        """The number of cells of each member."""
        return frozen(self.product(self.sizes))

    def inclusions(self, small: Family) -> Iterator[Inclusion]:
        """All pairs A >= B with A in this family and B in `small`; kept for the next time where there are few."""
        if len(self) * len(small) > _FEW:
            return self._enumerated(small)
        for family, pairs in self._kept:
            if family is small:
                return iter(pairs)
        pairs = tuple(self._enumerated(small))
        self._kept = [*self._kept[1 - _KEPT :], (small, pairs)]
        return iter(pairs)

    def _enumerated(self, small: Family) -> Iterator[Inclusion]:
        """By whichever enumeration is shorter."""
        for k, (start, level) in enumerate(zip(self.starts, self.levels, strict=False)):
            if not len(level):
                continue
            if len(level) << k <= len(level) * len(small) or len(level) > 64:
                yield from self._subsets(small, k, int(start))
            else:
                for i, row in enumerate(level):
                    yield from _members_inside(row, int(start) + i, small)

    def _subsets(self, small: Family, k: int, start: int) -> Iterator[Inclusion]:
        level = self.levels[k]
        for number in range(1 << k):
            kept = _pattern(number, k)
            found = small.find(level[:, kept])
            present = np.flatnonzero(found >= 0)
            if len(present):
                yield Inclusion(present + start, found[present], kept)

    def cheapest_holders(self, small: Family, price: Callable[[Inclusion], Floats]) -> tuple[Ids, Floats]:
        """For each B in `small` the number of the A >= B of the least price (-1: none), and that price."""
        best, least = np.full(len(small), -1, np.int64), np.full(len(small), np.inf)
        for pair in self.inclusions(small):
            prices = price(pair)
            order = np.argsort(-prices, kind="stable")  # B may stand there several times: the best comes last
            order = order[prices[order] < least[pair.small[order]]]
            best[pair.small[order]], least[pair.small[order]] = pair.big[order], prices[order]
        return best, least

    def sum_over_supersets(
        self, small: Family, values: Floats, inside: Floats | None = None, outside: Floats | None = None
    ) -> Floats:
        """For each B in `small`: the sum over members A >= B of values_A prod_{B} inside_i prod_{A-B} outside_i."""
        total = np.zeros(len(small))
        for pair in self.inclusions(small):
            terms = values[pair.big]
            if inside is not None and outside is not None:
                terms = terms * self.pair_products(pair, inside, outside)
            total += np.bincount(pair.small, terms, len(small))
        return total

    def sum_over_subsets(self, small: Family, values: Floats) -> Floats:
        """For each member A: the sum over B in `small` with B <= A of values_B."""
        total = np.zeros(len(self))
        for pair in self.inclusions(small):
            total += np.bincount(pair.big, values[pair.small], len(self))
        return total

    def pair_products(self, pair: Inclusion, inside: Floats, outside: Floats) -> Floats:
        """prod_{B} inside_i prod_{A-B} outside_i for pairs A >= B, A in this family."""
        k = pair.kept.shape[-1]
        rows = self.levels[k][pair.big - self.starts[k]]
        products: Floats = np.where(pair.kept, inside[rows], outside[rows]).prod(axis=1)
        return products


@lru_cache(maxsize=1 << 12)
def _pattern(number: int, k: int) -> Bools:
    """Which of k columns are kept: the bits of a number."""
    return frozen([number >> column & 1 for column in range(k)], np.bool_)


def _rows(marginals: Sequence[Marginal], k: int) -> Rows:
    return np.array(marginals, dtype=np.int32).reshape(len(marginals), k)


def _members_inside(row: Rows, number: int, small: Family) -> Iterator[Inclusion]:
    """The members of `small` inside one large marginal, by testing each of them."""
    for start, level in zip(small.starts, small.levels, strict=False):
        holds = (level[:, :, None] == row).any(axis=1)
        inside = np.flatnonzero(holds.sum(axis=1) == level.shape[1])
        if len(inside):
            yield Inclusion(np.full(len(inside), number, np.int64), inside + start, holds[inside])
