"""How far single cells at face value are from the truth: estimated after a selective run, and not promised.

The shape is the model's. A cell with the count y, and the count g if its attributes were independent, is taken for
q = (y + SMOOTH g) / (1 + SMOOTH). For each set B of attributes, what B adds to the smaller sets is off by

    own_B² = 1 / (1 / t² + 1 / w),     w = v_B m_B / cells(B)                     the noise of B's residual space
                                       t = misfit_B sqrt(q) / sqrt(2/pi) sum_c sqrt(q_c)    what its guess is off by

so that the squared deviations of cells grow as q does, and those of all cells add up to the noisy misfit of the run.
Nothing is guessed of single attributes: t is infinite there. An error of B is carried to the cells of a larger table A
in proportion to them, and errors of different sets are independent:

    e_c² = q_c²  sum_{B <= A}  own_B(c_B)² / q_B(c_B)²,     and at most the variance of the unbiased cell

since a fit knows what the unbiased tables know.

The scale is that of the last look, which saw S_A = sum_c |error_c| of each table with noise of variance s². With
x = sqrt(2/pi) sum_c e_c, the ratio r = S / x has the variance u = s² / x² + (pi/2 - 1) / f; f = (sum e)² / sum e²
times the share of a table's numbers that are free says how many errors there are. The factors of tables are normal
around a common one, with the variance T that stands out of the noise (what is left of Cochran's Q when its mean and its
deviation are taken away, and LEAST² at least); before the look the common one is 1, give or take a third. With

    p = 1 / DOUBT²,   a = 1 / (u + T):    common = (p + sum a r) / (p + sum a)
    factor² = mean² + variance,           mean = (T r + u common) / (T + u)

a table that the look hardly sees has nearly the common factor, and one that it sees well has its own. In the end half a
person is added to e in squares: true counts are whole.

Scales are matched by absolute errors. Cells have heavy tails: with those of Laplace's law, whose mean absolute value is
sqrt(2/pi) e, an interval of 95% is the value, give or take ln(20) sqrt(2/pi) e = 2.39 e. This shape and these tails
were chosen by looking at real tables, and how often they hold on others is measured.             [docs/accuracy.md]

Sums of cells have no estimate, nor have tables at several levels, which are such sums: whether the errors of cells in a
group add up or cancel is a matter of the data, and no look sees it.

All of it follows from the published tables of the face and the measurement, so that `verify` can do it again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs import LatticeDesign, SelectedDesign
from hushcube.designs.answers import Answers
from hushcube.faces.atoms import fixed_cells
from hushcube.lattice.basis import dimensions
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Batch, Family
from hushcube.model.arrays import Floats
from hushcube.model.facts import Facts
from hushcube.model.noise import Measurement

_SMOOTH: Final = 0.1
_FEWEST: Final = 0.01  # people that a value of one attribute is taken to have at least
_EMPTY: Final = 1e-6  # of a table's mean cell: what a cell is taken for at least
_LEAST: Final = 0.1  # the deviation of the factors of tables, at least
_DOUBT: Final = 1 / 3
_SMALLEST: Final = 0.1  # the common factor, at least
_PERSON: Final = 0.5
_MEAN: Final = math.sqrt(2 / math.pi)  # of the absolute value of a standard normal number
_TOGETHER: Final = 2**20  # cells at a time


@dataclass(frozen=True, eq=False)
class CellErrors:
    """The estimated errors of the cells of all published tables of a face."""

    family: Family
    shape: Shape
    factors: Floats
    """Of each table: what the last look makes of the shape."""
    common: float
    """What it makes of all of them together."""
    fixed: Coefficients | None = None
    """The cells that public facts fix, which have no error; the others are not numbers."""

    @classmethod
    def of(cls, design: SelectedDesign, measurement: Measurement, tables: Answers, facts: Facts) -> CellErrors:
        """From a measurement and the published tables of a face, which satisfies some facts."""
        family = design.request.marginals
        shape = Shape.of(design, measurement, tables)
        sums, many = np.zeros(len(family)), np.ones(len(family))
        for batch in family.batches:
            free = math.prod(1 - 1 / n for n in batch.shape if n > 1)
            for part in batch.parts(_TOGETHER):
                e = shape.errors(batch.rows[part], batch.shape).reshape(len(batch.ids[part]), -1)
                sums[batch.ids[part]] = e.sum(axis=1)
                squares = np.maximum((e**2).sum(axis=1), 1e-300)
                many[batch.ids[part]] = np.maximum(free * e.sum(axis=1) ** 2 / squares, 1.0)
        seen, _ = design.checked(measurement)
        with_cells = np.arange(len(family)) >= family.starts[1]
        looked = with_cells & (sums > 0)
        factors = np.ones(len(family))
        factors[looked], common = scales(_MEAN * sums[looked], many[looked], seen[looked], design.check_noise)
        fixed = Coefficients(family, tuple(fixed_cells(facts, family).batches)) if facts else None
        return cls(family, shape, factors, common, fixed)

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The estimated errors of the cells of published marginals of one shape; (marginals, *shape)."""
        factors = self.factors[self.family.find(rows)].reshape(-1, *[1] * len(shape))
        e = factors * self.shape.errors(rows, shape)
        if shape:
            e = np.hypot(e, _PERSON)
        if self.fixed is not None and (known := self.fixed.gather(rows)) is not None:
            e = np.where(np.isnan(np.asarray(known, np.float64)), e, 0.0)
        return np.asarray(e)


@dataclass(frozen=True, eq=False)
class Shape:
    """What the model says of errors: of each set of attributes its cells q, and own² / q²."""

    cells: Coefficients
    relative: Coefficients
    family: Family
    most: Floats
    """Of each table: the standard error of its unbiased cells, which errors are expected not to pass."""

    @classmethod
    def of(cls, design: SelectedDesign, measurement: Measurement, tables: Answers) -> Shape:
        """From the tables of a face, and what a run knows of the error of each set."""
        under, spaces = design.underlying, design.request.spaces
        if not isinstance(under, LatticeDesign):
            raise NotImplementedError(type(under).__name__)
        y = _margins(design.request.marginals, tables, spaces)
        people = max(float(np.asarray(y.blocks[0]).reshape(-1)[0]), 1.0)
        with np.errstate(invalid="ignore"):  # spaces that vary with nothing have no variance
            noise = under.errors.space_variances(exact=True) * dimensions(spaces) / spaces.cells
        noise = np.where(np.isfinite(noise), noise, 0.0)
        misfits = design.nearest_misfits(measurement)
        q, relative = [], []
        for batch, block in zip(spaces.batches, y.blocks, strict=True):
            found = _smoothed(batch, np.asarray(block), y, people)
            w = noise[batch.ids].reshape(-1, *[1] * len(batch.shape))
            own = np.broadcast_to(w, found.shape)
            if len(batch.shape) >= 2:
                off = misfits[len(batch.shape)][batch.ids - spaces.starts[len(batch.shape)]] * people
                t2 = found * (off / (_MEAN * np.sqrt(found).reshape(len(found), -1).sum(axis=1))).reshape(w.shape) ** 2
                own = t2 * np.divide(w, t2 + w, out=np.zeros_like(t2), where=t2 + w > 0)
            q.append(found)
            relative.append(own / found**2)
        family, most = design.request.marginals, np.sqrt(under.errors.exact_cell_variances)
        return cls(Coefficients(spaces, tuple(q)), Coefficients(spaces, tuple(relative)), family, most)

    def errors(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """e of the cells of tables of one shape, before it is scaled."""
        squares = np.zeros((len(rows), *shape))
        for kept, place in _subsets(shape):
            squares += np.asarray(self.relative.gather(rows[:, kept])).reshape(len(rows), *place)
        most = self.most[self.family.find(rows)].reshape(-1, *[1] * len(shape))
        return np.asarray(np.minimum(np.asarray(self.cells.gather(rows)) * np.sqrt(squares), most))


def scales(expected: Floats, many: Floats, seen: Floats, noise: float) -> tuple[Floats, float]:
    """The factor of each table, and the common one.

    `expected` has the sums of absolute errors of tables by their shape, `many` how many errors these are, `seen` what
    the last look saw of them, and `noise` its standard deviation.

    >>> factors, common = scales(np.full(50, 100.0), np.full(50, 1e6), np.full(50, 150.0), noise=1.0)
    >>> round(common, 2), round(float(factors[0]), 2)
    (1.5, 1.5)
    >>> factors, common = scales(np.full(50, 100.0), np.full(50, 1e6), np.full(50, 150.0), noise=1e6)
    >>> round(common, 2)
    1.0
    """
    if not len(expected):
        return np.ones(0), 1.0
    r, u = seen / expected, (noise / expected) ** 2 + (math.pi / 2 - 1) / many
    k, b = len(r) - 1, 1 / u
    apart = float((b * (r - (b @ r) / b.sum()) ** 2).sum()) - k - math.sqrt(2 * k)
    between = _LEAST**2 + (max(apart / float(b.sum() - (b @ b) / b.sum()), 0.0) if k else 0.0)
    p, a = _DOUBT**-2, 1 / (u + between)
    common = max(float((p + a @ r) / (p + a.sum())), _SMALLEST)
    mean = np.maximum((between * r + u * common) / (between + u), 0.0)
    left = u / (between + u)
    return np.sqrt(mean**2 + between * left + left**2 / (p + a.sum())), common


def _margins(family: Family, tables: Answers, spaces: Family) -> Coefficients:
    """The tables of all sets of attributes inside published ones, each summed from the first that contains it."""
    blocks = tuple(np.zeros((len(batch.ids), *batch.shape)) for batch in spaces.batches)
    places = {batch.shape: (block, batch) for batch, block in zip(spaces.batches, blocks, strict=True)}
    done = np.zeros(len(spaces), bool)
    for batch in family.batches:
        for part in batch.parts(_TOGETHER):
            rows, values = batch.rows[part], tables.tables(batch.rows[part], batch.shape)
            for kept, _ in _subsets(batch.shape):
                ids, first = np.unique(spaces.find(rows[:, kept]), return_index=True)
                wanted = ~done[ids]
                if not wanted.any():
                    continue
                dropped = tuple(axis + 1 for axis in range(len(batch.shape)) if axis not in kept)
                block, own = places[tuple(batch.shape[axis] for axis in kept)]
                block[np.searchsorted(own.ids, ids[wanted])] = values[first[wanted]].sum(axis=dropped)
                done[ids] = True
    return Coefficients(spaces, blocks)


def _smoothed(batch: Batch, y: Floats, all_sets: Coefficients, people: float) -> Floats:
    """q of sets of one shape."""
    order = len(batch.shape)
    if order < 2:
        return np.maximum(y, _FEWEST)
    g = np.full((len(y), *[1] * order), people)
    for axis in range(order):
        one = np.asarray(all_sets.gather(batch.rows[:, [axis]])) / people
        g = g * one.reshape(len(y), *(n if at == axis else 1 for at, n in enumerate(batch.shape)))
    return np.maximum((y + _SMOOTH * g) / (1 + _SMOOTH), _EMPTY * people / batch.cells)


def _subsets(shape: Sequence[int]) -> Iterator[tuple[list[int], tuple[int, ...]]]:
    """The subsets of axes, and the shape with axes to broadcast that a table on each has."""
    for size in range(len(shape) + 1):
        for kept in combinations(range(len(shape)), size):
            yield list(kept), tuple(n if axis in kept else 1 for axis, n in enumerate(shape))
