"""Covariances of the cells of a table in a form that a page can hold, for every design that knows them.

Often the covariance of two cells depends only on the attributes in which they agree [designs/errors.py]. In general it
depends, along each axis, on the pair of values; but many pairs are alike: with nested levels, for instance, what
matters is which groups the two share. So each axis has a short list of *relations*, and

    Cov(x, y) = c[ r_1(x_1, y_1), ..., r_k(x_k, y_k) ],                                                            (1)

with r_i the relation of two values along axis i, and one number for each combination of relations. Agreement is the
case of two relations: different values (0) and the same (1). Pairs of values are alike if they can be exchanged in (1)
whatever the other axes hold, so that the form is exact for every covariance; it is short where there is structure.

Sums over boxes follow from how many pairs of each relation a box has; other sums from all pairs of cells.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hushcube.bundle.release import Release
from hushcube.designs.errors import Errors
from hushcube.errors import QueryError
from hushcube.model.arrays import Floats, Ints, Marginal

MOST_CELLS: Final = 600
"""Cells of a table whose pairs are looked at."""
MOST_TOGETHER: Final = 5_000
"""Cells of all such tables of a release: smaller tables come first."""
MOST_NUMBERS: Final = 5_000
"""Relations of pairs of values, and covariances, that a table may carry."""
DIGITS: Final = 12
"""Covariances are rounded to this many digits of the largest: those that differ by rounding alone become the same."""


@dataclass(frozen=True, eq=False)
class Covariances:
    """Equation (1); `numbers` has one axis for each axis of the table."""

    numbers: Floats
    relations: list[list[int]] | None
    """Along each axis those of all pairs of values, n * n of them row by row; None: only agreement matters."""


@dataclass(frozen=True, eq=False)
class Joint:
    """What is known of the cells of one published table together, its axes in the order of the schema."""

    release: Release
    marginal: Marginal
    factors: Mapping[str, float]
    """What a quantity is made of: parts and the factors that they come with."""

    def axis(self, name: str) -> int:
        """The place of an attribute among the axes."""
        schema = self.release.plan.count.schema
        return self.marginal.index(schema.position(name))

    def agreement(self) -> Covariances | None:
        """Where it only matters in which attributes cells agree."""
        found: Floats = np.zeros(())
        for errors, square in self._parts():
            own = errors.cell_covariances(self.marginal)
            if own is None:
                return None
            found = found + square * own
        return Covariances(np.asarray(found), None)

    def relations(self) -> Covariances | None:
        """From all pairs of cells; None where that is too much, or not known."""
        shape = self.release.plan.count.schema.shape(self.marginal)
        values = sum(n * n for n in shape)
        if values > MOST_NUMBERS:
            return None
        try:
            pairs = sum(square * _all_pairs(errors, self.marginal) for errors, square in self._parts())
        except QueryError:  # a sketch
            return None
        found = related(np.asarray(pairs))
        return found if values + found.numbers.size <= MOST_NUMBERS else None

    def totals(self) -> list[Floats] | None:
        """The standard errors of sums over axes: in number m, those without the bit 2^axis in m; None: not known."""
        shape = self.release.plan.count.schema.shape(self.marginal)
        found = []
        for kept in range(2 ** len(shape) - 1):
            rows = [None if kept >> axis & 1 else np.ones((1, n)) for axis, n in enumerate(shape)]
            try:
                parts = [each * e.covariances(self.marginal, rows, [None] * len(shape)) for e, each in self._parts()]
            except QueryError:  # a sketch
                return None
            found.append(np.sqrt(np.maximum(sum(parts), 0.0)))
        return found

    def total_margins(self, names: Sequence[str]) -> list[Floats] | None:
        """The margins of the same sums, by the bits of these attributes; None where nothing better is known."""
        schema, found = self.release.plan.count.schema, []
        for kept in range(2 ** len(names) - 1):
            own = [name for axis, name in enumerate(names) if kept >> axis & 1]
            wanted = schema.marginal(own)
            order = [wanted.index(schema.position(name)) for name in own]
            squares: Floats = np.zeros(())
            for part, factor in self.factors.items():
                widths = self.release.parts[part].total_margins(wanted) if factor else np.zeros(())
                if widths is None:
                    return None
                squares = squares + (factor * widths) ** 2
            found.append(np.sqrt(squares.transpose(order) if squares.ndim else squares))
        return found

    def _parts(self) -> Iterator[tuple[Errors, float]]:
        """The parts are counts and sums of integers, which are independent."""
        for part, factor in self.factors.items():
            if factor:
                yield self.release.parts[part].design.errors, factor**2


@lru_cache(maxsize=4)  # a sum of a measure has the counts in it, and a face the same errors
def _all_pairs(errors: Errors, marginal: Marginal) -> Floats:
    """The covariances of all pairs of cells, column by column: of all cells with one, as a product of weights."""
    shape = errors.design.schema.shape(marginal)
    cells = ([np.eye(1, n, at)[0] for n, at in zip(shape, cell, strict=True)] for cell in np.ndindex(*shape))
    columns = [errors.covariances(marginal, [None] * len(shape), weights) for weights in cells]
    return np.stack(columns, axis=-1).reshape(*shape, *shape)


def most_paired(cells: Ints) -> int:
    """How many cells a table may have for its pairs to be looked at, if a release has tables of so many.

    >>> most_paired(np.array([100, 4_000, 300])), most_paired(np.full(60, 100))
    (600, 0)
    """
    sizes, counts = np.unique(cells[cells <= MOST_CELLS], return_counts=True)
    together = np.cumsum(sizes * counts)
    return MOST_CELLS if together[-1:].sum() <= MOST_TOGETHER else int(sizes[together <= MOST_TOGETHER].max(initial=0))


def related(covariance: Floats) -> Covariances:
    """The shortest form of a covariance of shape (*shape, *shape).

    >>> agreeing = related(np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]]))
    >>> agreeing.numbers, agreeing.relations
    (array([3., 1.]), [[0, 1, 1, 1, 0, 1, 1, 1, 0]])
    """
    unit = float(np.abs(covariance).max(initial=0.0)) * 10.0**-DIGITS or 1.0
    rest, relations = np.rint(covariance / unit).astype(np.int64), []
    for axis, n in enumerate(covariance.shape[: covariance.ndim // 2]):
        # axes of the rest: relations of the axes before, first cells along the others, second cells along the others
        pairs = np.moveaxis(rest, (axis, covariance.ndim // 2), (0, 1))
        others = pairs.shape[2:]
        place: dict[bytes, int] = {}
        codes = [place.setdefault(pair.tobytes(), len(place)) for pair in pairs.reshape(n * n, -1)]
        distinct = np.stack([np.frombuffer(pair, np.int64) for pair in place])
        rest = np.moveaxis(distinct.reshape(-1, *others), 0, axis)
        relations.append(codes)
    return Covariances(np.asarray(rest * unit, np.float64), relations)
