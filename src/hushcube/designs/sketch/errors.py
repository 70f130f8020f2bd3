"""Predicted errors of sketch designs: the noise exactly, the collisions as a bound.

Noise. In repetition r a sum q of cells takes from bucket b the factor g_rb = sum over its cells c of sign_rc q_c, so

    Var(average) = variance / t² sum_r sum_b g_rb²            (a cell: variance / t)
    Var(median)  <= variance max_r sum_b g_rb²                (a cell: variance)

computed as it stands for cells, marginals, weighted sums and queries; for ranges, and when designs with very many cells
are compared, ||q||², the mean over signs of the sum over b, takes its place. Where collisions set the repetitions
apart, the median is the middle one with all its noise; it never has more (Poincare: Var <= sum_r variance_r P(r is the
middle one), for normal noise). Without collisions it has less, down to pi/2 of the average's.

Collisions. With throws at random, the others in a bucket add an error of mean zero to the sum of a set K of k cells:

    E error² = 1/b [k ||x outside K||² + (k - 2) ||x in K||² + (sum of x in K)²]  <=  max(1, 2k - 2)/b ||x||²

for one repetition, since pairs of cells meet with signs that are uncorrelated. The average divides it by t; the
median has at most 2t/(t+1) of one repetition's, since (t+1)/2 of them err at least as much. It depends on the data
(||x||² is the sum of the squared counts), so it is stated and never added: standard errors are those of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from hushcube.designs.errors import Errors, kept
from hushcube.designs.matrix.row_space import positions
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.form import Form
from hushcube.model.queries import QueryTable
from hushcube.model.schema import Schema

if TYPE_CHECKING:
    from hushcube.designs.sketch.design import Estimate, SketchDesign, Throws

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
        spreads = _mean_spreads(design.throws, design.estimate, design.schema, design.marginal, marginals)
        return self.unit_variance(exact=exact) * spreads

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        design, unit = self.design, self.unit_variance(exact=True)
        cells = design.schema.cells(marginal)
        if cells == design.cells:
            return np.asarray(unit * (1.0 if design.estimate == "median" else 1 / design.groups))
        place = positions(design.schema, design.marginal, marginal)
        squares = (_squares(place, cells, bucket, sign, design.buckets) for bucket, sign in design.throws)
        return np.asarray(unit * combined(squares, design.estimate).reshape(design.schema.shape(marginal)))

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        design = self.design
        lifted = weights.reshape(-1)[positions(design.schema, design.marginal, marginal)]
        factors = (np.bincount(b, weights=sign * lifted, minlength=design.buckets) for b, sign in design.throws)
        return self.unit_variance(exact=True) * float(combined((np.asarray(g @ g) for g in factors), design.estimate))

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        design = self.design
        unit = self.unit_variance(exact=exact)
        if isinstance(form, QueryTable):
            return unit * self._query_spread(form)
        squares = np.zeros((2,) * len(form.marginal))
        squares.flat[-1] = design.cells / math.prod(form.carrier_shape)
        return np.asarray(unit * form.combine(squares) / (1 if design.estimate == "median" else design.groups))

    @kept
    def _query_spread(self, form: QueryTable) -> Floats:
        return combined(self._query_squares(form), self.design.estimate)

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


def combined(squares: Iterable[Floats], estimate: Estimate) -> Floats:
    """From sum_b g_rb² of each repetition to the factor of `unit_variance` in the answers' variance."""
    if estimate == "median":
        return reduce(np.maximum, squares)
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
    throws: Throws, estimate: Estimate, schema: Schema, carrier: Marginal, marginals: tuple[Marginal, ...]
) -> Floats:
    """The mean factor of `unit_variance` over the cells of each marginal; kept, for variants of a design throw alike.

    For very many cells and marginals the mean over signs, ||q||², takes its place: the two differ by little there.
    """
    if throws.cells * len(marginals) > _MOST_THROWN:
        summed = np.array([throws.cells / schema.cells(A) for A in marginals])
        return summed if estimate == "median" else summed / throws.repetitions
    total: list[Floats | float] = [0.0] * len(marginals)
    for bucket, sign in throws:
        for at, A in enumerate(marginals):
            cells = schema.cells(A)
            if cells == throws.cells:
                squares = np.ones(1)
            else:
                squares = _squares(positions(schema, carrier, A), cells, bucket, sign, throws.buckets)
            total[at] = np.maximum(total[at], squares) if estimate == "median" else total[at] + squares
    means = np.array([np.mean(each) for each in total])
    return means if estimate == "median" else means / throws.repetitions**2
