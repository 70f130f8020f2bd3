"""Predicted errors of sketch designs: the noise exactly, the collisions as a bound.

Noise. In repetition r a sum q of cells takes from bucket b the factor g_rb = sum over its cells c of sign_rc q_c, so

    Var(average) = variance / t² sum_r sum_b g_rb²                        (a cell: variance / t)
    Var(median)  = variance share (mean_r sqrt(sum_b g_rb²))²             (a cell: variance share)

computed as it stands for cells, marginals, weighted sums and queries; for ranges, and when designs with very many cells
are compared, ||q||², the mean over signs of the sum over b, takes its place. The share is that of the median of as many
independent draws, or sums of draws [medians.py]: exact for cells, a little too large for sums whose repetitions differ.

Collisions. With throws at random, the others in a bucket add an error of mean zero to the sum of a set K of k cells:

    E error² = 1/b [k ||x outside K||² + (k - 2) ||x in K||² + (sum of x in K)²]  <=  max(1, 2k - 2)/b ||x||²

for one repetition, since pairs of cells meet with signs that are uncorrelated. The average divides it by t. The median
errs in all by at most 2t/(t+1) of what one repetition does with noise and collisions, since (t+1)/2 of them err at
least as much; where collisions set the repetitions apart, it is the middle one with all its noise. This depends on the
data (||x||² is the sum of the squared counts), so it is stated and never added: standard errors are those of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final

import numpy as np

from hushcube.designs.errors import Errors, kept
from hushcube.designs.matrix.row_space import positions
from hushcube.designs.sketch.medians import median_spread
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import Law
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema

if TYPE_CHECKING:
    from hushcube.designs.sketch.design import SketchDesign, Throws

_MOST_THROWN: Final = 2**24  # cells times marginals that are thrown to predict an error exactly


class SketchErrors(Errors):
    """Variances of the noise alone; collisions are stated beside them."""

    design: SketchDesign

    def unit_variance(self, *, exact: bool) -> float:
        """The noise variance of one measured number."""
        return float(self.drawn_variances(exact=exact)[0])

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        design, marginals = self.design, tuple(self.design.request.marginals)
        law = design.law if design.estimate == "median" else None
        spreads = _mean_spreads(design.throws, law, float(design.budgets[0]), design.schema, design.marginal, marginals)
        return self.unit_variance(exact=exact) * spreads

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        design, unit = self.design, self.unit_variance(exact=True)
        cells = design.schema.cells(marginal)
        if cells == design.cells:
            return np.asarray(unit * self._combined([np.ones(())] * design.groups))
        place = positions(design.schema, design.marginal, marginal)
        squares = (_squares(place, cells, bucket, sign, design.buckets) for bucket, sign in design.throws)
        return np.asarray(unit * self._combined(squares).reshape(design.schema.shape(marginal)))

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        design = self.design
        lifted = weights.reshape(-1)[positions(design.schema, design.marginal, marginal)]
        factors = (np.bincount(b, weights=sign * lifted, minlength=design.buckets) for b, sign in design.throws)
        largest = float(np.abs(weights).max(initial=0.0)) ** 2 or 1.0
        return self.unit_variance(exact=True) * float(self._combined((np.asarray(g @ g) for g in factors), largest))

    def sum_covariance(self, marginal: Marginal, first: Floats, second: Floats) -> float:  # noqa: ARG002
        """Medians have none that is exact, and collisions are no part of any."""
        return float(self.covariances(marginal, (), ()))

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        design = self.design
        unit = self.unit_variance(exact=exact)
        if isinstance(form, QueryTable):
            return unit * self._query_spread(form)
        squares = np.zeros((2,) * len(form.marginal))
        squares.flat[-1] = design.cells / math.prod(form.carrier_shape)
        return unit * self._combined([form.combine(squares)] * design.groups)

    @kept
    def _query_spread(self, form: QueryTable) -> Floats:
        _, values, row_of = form.rows.arrays
        largest = np.zeros(len(form.rows))
        np.maximum.at(largest, row_of, values**2)
        return self._combined(self._query_squares(form), np.where(largest, largest, 1.0))

    def _combined(self, squares: Iterable[Floats], largest: Floats | float = 1.0) -> Floats:
        """From sum_b g_rb² of each repetition to the factor of one number's variance in that of the answer.

        `largest` is the square of the largest factor of a cell: it tells a few draws from many.
        """
        design = self.design
        if design.estimate == "median":
            return median_spread(squares, design.law, float(design.budgets[0]), largest)
        return averaged(squares)

    def _query_squares(self, form: QueryTable) -> Iterator[Floats]:
        """sum_b g_b² of each repetition, for each row of a matrix of queries."""
        design = self.design
        place = positions(design.schema, design.marginal, form.marginal)
        inside = np.argsort(place, kind="stable").reshape(form.rows.width, -1)  # the cells in each cell of the carrier
        columns, values, row_of = form.rows.arrays
        cells, weights = inside[columns], values[:, None]
        for bucket, sign in design.throws:
            keys, at = np.unique(row_of[:, None] * design.buckets + bucket[cells], return_inverse=True)
            factors = np.bincount(at.reshape(-1), weights=(sign[cells] * weights).reshape(-1))
            squares = np.bincount(keys // design.buckets, weights=factors**2, minlength=len(form.rows))
            yield squares.astype(np.float64)


def averaged(squares: Iterable[Floats]) -> Floats:
    """From sum_b g_rb² of each repetition to the factor of one number's variance in that of the average."""
    total, t = np.zeros(()), 0
    for each in squares:
        total, t = total + each, t + 1
    return np.asarray(total / t**2)


def _squares(place: Ints, cells: int, bucket: Ints, sign: Ints, buckets: int) -> Floats:
    """sum_b g_b² of one repetition, for each cell that others are summed into."""
    keys = place * buckets + bucket
    if cells * buckets <= 8 * len(place):
        factors = np.bincount(keys, weights=sign, minlength=cells * buckets).reshape(cells, buckets)
        return np.asarray(np.einsum("cb,cb->c", factors, factors))
    # most places are empty: sort, with the sign in the lowest bit
    ordered = 2 * keys + (sign > 0)
    ordered = np.sort(ordered.astype(np.int32) if 2 * cells * buckets < 2**31 else ordered)
    starts = np.flatnonzero(np.diff(ordered >> 1, prepend=-1))
    factors = np.add.reduceat(2 * (ordered & 1) - 1, starts).astype(np.float64)
    return np.bincount((ordered[starts] >> 1) // buckets, weights=factors**2, minlength=cells).astype(np.float64)


@lru_cache(maxsize=4)
def _mean_spreads(
    throws: Throws, law: Law | None, budget: float, schema: Schema, carrier: Marginal, marginals: tuple[Marginal, ...]
) -> Floats:
    """The mean factor of one number's variance over the cells of each marginal, for medians of noise of a law.

    Without a law, for averages. It is kept, for variants of a design throw alike. For very many cells and marginals the
    mean over signs, ||q||², takes the place of the sum over buckets: the two differ by little there.
    """
    are_many = throws.cells * len(marginals) > _MOST_THROWN
    thrown = [] if are_many else list(throws)

    def squares(A: Marginal) -> Iterator[Floats]:
        cells = schema.cells(A)
        if are_many or cells == throws.cells:
            yield from [np.asarray(throws.cells / cells)] * throws.repetitions
            return
        place = positions(schema, carrier, A)
        for bucket, sign in thrown:
            yield _squares(place, cells, bucket, sign, throws.buckets)

    combined = averaged if law is None else partial(median_spread, law=law, budget=budget)
    return np.array([float(combined(squares(A)).mean()) for A in marginals])
