"""The consistent tables nearest to given ones, each residual space times a factor of its own, by margins alone.

    T_f z = sum_C f_C (the part in space C of the consistent tables nearest to z)

With f = 1 that is the projection onto consistent tables; steps of iterative methods have other factors. It can be done
in coefficients: transform, multiply, transform back [lattice/coefficients.py]. But where all tables have k attributes,
the space of a table A itself is seen by A alone, and most cells belong to such spaces. So A keeps its own part, and
only what lies below is exchanged, by the margins of A without one attribute, its facets F:

    (T_f z)_A = f_A z_A + L_A(d_A),     d_AF = y_F - f_A margin_F(z_A)

L_A(d) is the table that has the margins d and no part in A's own space. With M_i the mean along axis i, 1 - L_A is
prod_i (1 - M_i), so that

    L_A(d) = sum_i 1/n_i d_AF(i),     F(i) without axis i, centred along the axes before i.

y are consistent tables again, of k - 1 attributes each, from x_F = cells(F) sum_{A > F} margin_F(z_A) / cells(A). A
sees a space C below it through k - |C| of its facets, and the nearest tables of x divide by the facets' own kernel K°:

    y = T_g x,     g_C = f_C K°_C / ((k - |C|) K_C).

All margins along one axis are one counted sum over the cells of all tables, and all tables get theirs back by one
gather, whatever their shapes are: nothing is done for single tables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Protocol

import numpy as np

from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.lattice.coefficients import Projection
from hushcube.lattice.family import Batch, Family, Rows
from hushcube.model.arrays import Bools, Floats, Ints

Scaling = Callable[[Floats], Floats]
"""T_f, from cells to cells."""

_HIGHEST: Final = 4  # attributes: the places of their margins take about so many numbers a cell
_PART: Final = 1 << 15  # cells that get their margins back at a time: they stay in the cache


class Scaled(Protocol):
    """What makes T_f, the factors f given for each space of a projection of tables of equal weights."""

    def by(self, factors: Floats) -> Scaling:
        """T_f."""
        ...

    def within(self, held: Bools) -> Scaled:
        """The same between vectors of some of the cells: the others are taken for zero, and not found."""
        ...


def scaled(to: Projection) -> Scaled:
    """By margins where all tables have as many attributes, but not many; else by coefficients."""
    levels = [k for k, level in enumerate(to.family.levels) if len(level)]
    alike = len(levels) == 1 and 0 < levels[0] <= _HIGHEST and len(to.spaces) == len(to.family.closure)
    return ByMargins(to) if alike else ByCoefficients(to)


@dataclass(frozen=True, eq=False)
class ByCoefficients:
    """T_f, for any tables."""

    to: Projection
    held: Bools | None = None

    def by(self, factors: Floats) -> Scaling:
        """T_f."""
        to, held, each = self.to, self.held, self.to.each(factors)

        def apply(cells: Floats) -> Floats:
            if held is None:
                return to.spread(each * to.nearest(cells))
            whole = np.zeros(to.cells)
            whole[held] = cells
            return np.asarray(to.spread(each * to.nearest(whole))[held])

        return apply

    def within(self, held: Bools) -> ByCoefficients:
        """The same between vectors of some of the cells."""
        return ByCoefficients(self.to, held)


class ByMargins:
    """T_f, for tables that all have k attributes, k > 0, and all the spaces that they see.

    >>> family = Family.of([(0,), (1,)], (2, 2))
    >>> project = ByMargins(Projection(family, np.ones(2), family.closure)).by(np.ones(3))
    >>> project(np.array([6.0, 2.0, 1.0, 5.0])).tolist()
    [5.5, 1.5, 1.5, 5.5]
    """

    def __init__(self, to: Projection) -> None:
        family, spaces, k = to.family, to.spaces, len(to.family.levels) - 1
        facets = [_Facets(b, i) for i in range(k) for b in family.batches]
        shared = Family.of({row[:i] + row[i + 1 :] for row in family for i in range(k)}, family.sizes)
        below = shared.closure
        self._low = scaled(Projection(shared, np.ones(len(shared)), below))
        self._margins, self._centrings = _margins(facets), _centrings(facets)
        starts, self._cells = _starts(shared), sum(len(b.ids) * b.cells for b in shared.batches)
        places = [np.add.outer(starts[shared.find(f.rows)], np.arange(f.each)).ravel() for f in facets]
        self._shared = np.concatenate(places)
        self._table = np.concatenate([np.repeat(f.batch.ids, f.each) for f in facets])
        self._share = np.concatenate([np.full(f.cells, 1 / f.n) for f in facets])  # cells(F) / cells(A)
        self._owner = np.concatenate([np.repeat(b.ids, b.cells) for b in family.batches])
        self._spaces, self._below = spaces.ids(family), spaces.ids(below)
        own, theirs = (kernel(MARGINAL, tables, np.ones(len(tables)), below) for tables in (family, shared))
        missing = k - np.repeat(np.arange(k), [len(level) for level in below.levels])
        self._ratio = theirs / own / missing

    def by(self, factors: Floats) -> Scaling:
        """T_f."""
        own, below = factors[self._spaces], self._low.by(factors[self._below] * self._ratio)
        of_cells, of_facets = own[self._owner], own[self._table]

        def apply(cells: Floats) -> Floats:
            margins = np.concatenate([margin.of(cells) for margin in self._margins])
            margins *= self._share
            d: Floats = below(_sums(self._shared, margins, self._cells))[self._shared]
            d *= self._share
            d -= np.multiply(of_facets, margins, out=margins)
            for centring in self._centrings:
                centring.of(d)
            result: Floats = of_cells * cells
            for margin in self._margins:
                margin.add(d, result)
            return result

        return apply

    def within(self, held: Bools) -> ByMargins:
        """The same between vectors of some of the cells: the others are taken for zero, and not found."""
        result = copy(self)
        result._margins = [margin.within(held) for margin in self._margins]
        result._owner = self._owner[held]
        return result


@dataclass(frozen=True)
class _Facets:
    """The tables of a batch without their i-th attribute."""

    batch: Batch
    i: int

    @property
    def n(self) -> int:
        """How many values that attribute has."""
        return self.batch.shape[self.i]

    @property
    def rows(self) -> Rows:
        """The attributes of each facet."""
        return np.delete(self.batch.rows, self.i, axis=1)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array of all of them."""
        return (len(self.batch.ids), *self.batch.shape[: self.i], *self.batch.shape[self.i + 1 :])

    @property
    def each(self) -> int:
        """The cells of one of them."""
        return self.batch.cells // self.n

    @property
    def cells(self) -> int:
        """The cells of all of them."""
        return len(self.batch.ids) * self.each


@dataclass(frozen=True, eq=False)
class _Margin:
    """The facets of all tables without their i-th attribute."""

    place: slice  # where their cells are
    numbers: Ints  # for each cell of the tables, its facet's cell among these

    def of(self, cells: Floats) -> Floats:
        """The cells of the facets."""
        return _sums(self.numbers, cells, self.place.stop - self.place.start)

    def add(self, facets: Floats, cells: Floats) -> None:
        """Add its facet's cell to each cell."""
        own = facets[self.place]
        for start in range(0, len(cells), _PART):
            cells[start : start + _PART] += own[self.numbers[start : start + _PART]]

    def within(self, held: Bools) -> _Margin:
        """The same of some of the cells."""
        return _Margin(self.place, self.numbers[held])


@dataclass(frozen=True, eq=False)
class _Centring:
    """Facets that still have their j-th attribute lose their means along it."""

    first: int  # where the cells of these facets begin
    numbers: Ints  # for each of them, which mean it is part of
    shares: Floats  # for each mean, one over how many cells it is of

    def of(self, facets: Floats) -> None:
        """Centre in place."""
        own = facets[self.first :]
        own -= (_sums(self.numbers, own, len(self.shares)) * self.shares)[self.numbers]


def _sums(numbers: Ints, values: Floats, length: int) -> Floats:
    return np.asarray(np.bincount(numbers, values, length), np.float64)  # whole numbers where there is nothing


def _margins(facets: Sequence[_Facets]) -> list[_Margin]:
    found, start = [], 0
    for i, group in groupby(facets, key=lambda f: f.i):
        own = list(group)
        place = slice(start, start := start + sum(f.cells for f in own))
        found.append(_Margin(place, _without([(len(f.batch.ids), *f.batch.shape) for f in own], i + 1)))
    return found


def _centrings(facets: Sequence[_Facets]) -> list[_Centring]:
    found, every = [], sum(f.cells for f in facets)
    for j in range(facets[-1].i):
        own = [f for f in facets if f.i > j]
        numbers = _without([f.shape for f in own], j + 1)
        shares = np.concatenate([np.full(f.cells // f.shape[j + 1], 1 / f.shape[j + 1]) for f in own])
        found.append(_Centring(every - len(numbers), numbers, shares))
    return found


def _without(shapes: Sequence[tuple[int, ...]], axis: int) -> Ints:
    """For each cell of arrays of these shapes the number of its cell when an axis is summed out."""
    found, start = [], 0
    for shape in shapes:
        fewer = (*shape[:axis], 1, *shape[axis + 1 :])
        numbers = np.arange(start, start := start + math.prod(fewer)).reshape(fewer)
        found.append(np.broadcast_to(numbers, shape).ravel())
    return np.concatenate(found)


def _starts(family: Family) -> Ints:
    """Where the cells of each table begin in the vector of all."""
    starts, start = np.zeros(len(family), np.int64), 0
    for batch in family.batches:
        starts[batch.ids] = start + batch.cells * np.arange(len(batch.ids))
        start += batch.cells * len(batch.ids)
    return starts
