"""Predicted errors of sketch plans: the noise exactly, the collisions as a bound.

Noise. In repetition r a sum q of cells takes from bucket b the factor g_rb = sum over its cells c of sign_rc q_c, so

    Var(average) = variance / t² sum_r sum_b g_rb²            (a cell: variance / t)
    Var(median)  <= variance max_r sum_b g_rb²                (a cell: variance)

computed as it stands for cells, marginals, weighted sums and queries; for ranges, and when plans with very many cells
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
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.errors import (
    cell_variance_table,
    cell_variances,
    drawn_variances,
    form_variances,
    once,
    sum_variance,
)
from hushcube.designs.matrix.matching import positions
from hushcube.designs.sketch.design import Estimate, SketchDesign, Throws
from hushcube.model.form import Form, QueryTable
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_MOST_THROWN: Final = 2**24
"""Cells times marginals that are thrown to predict an error exactly."""


def unit_variance(design: SketchDesign, *, exact: bool) -> float:
    """The noise variance of one measured number."""
    return float(drawn_variances(design, exact=exact)[0])


def combined(squares: Iterable[Floats], estimate: Estimate) -> Floats:
    """From sum_b g_rb² of each repetition to the factor of `unit_variance` in the answers' variance."""
    if estimate == "median":
        return reduce(np.maximum, squares)
    total, t = np.zeros(()), 0
    for each in squares:
        total, t = total + each, t + 1
    return np.asarray(total / t**2)


def spread(design: SketchDesign, A: Marginal) -> Floats:
    """The factor of `unit_variance` for each cell of a marginal; its shape, or a number where all are alike."""
    t, cells = design.groups, design.schema.cells(A)
    if cells == design.cells:
        return np.asarray(1.0 if design.estimate == "median" else 1 / t)
    place = positions(design.schema, design.marginal, A)
    squares = (_squares(place, cells, bucket, sign, design.buckets) for bucket, sign in design.throws)
    return combined(squares, design.estimate).reshape(design.schema.shape(A))


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
    """The mean of `spread` over the cells of each marginal; kept, for variants of a plan throw alike.

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


@cell_variances.register
def _cell_variances(design: SketchDesign, *, exact: bool) -> Floats:
    marginals = tuple(design.request.marginals)
    spreads = _mean_spreads(design.throws, design.estimate, design.schema, design.marginal, marginals)
    return unit_variance(design, exact=exact) * spreads


@cell_variance_table.register
def _cell_variance_table(design: SketchDesign, marginal: Marginal) -> Floats:
    return np.asarray(unit_variance(design, exact=True) * spread(design, marginal))


@sum_variance.register
def _sum_variance(design: SketchDesign, marginal: Marginal, weights: Floats) -> float:
    lifted = weights.reshape(-1)[positions(design.schema, design.marginal, marginal)]
    factors = (np.bincount(bucket, weights=sign * lifted, minlength=design.buckets) for bucket, sign in design.throws)
    return unit_variance(design, exact=True) * float(combined((np.asarray(g @ g) for g in factors), design.estimate))


@form_variances.register
def _form_variances(design: SketchDesign, form: Form, *, exact: bool) -> Floats:
    unit = unit_variance(design, exact=exact)
    if isinstance(form, QueryTable):
        return unit * once(design, "_query_spread", lambda: combined(_query_squares(design, form), design.estimate))
    squares = np.zeros((2,) * len(form.marginal))
    squares.flat[-1] = design.cells / math.prod(form.carrier_shape)
    return np.asarray(unit * form.combine(squares) / (1 if design.estimate == "median" else design.groups))


def _query_squares(design: SketchDesign, form: QueryTable) -> Iterator[Floats]:
    """sum_b g_b² of each repetition, for each row of a matrix of queries."""
    place = positions(design.schema, design.marginal, form.marginal)
    inside = np.argsort(place, kind="stable").reshape(form.rows.width, -1)  # the cells in each cell of the carrier
    columns, values, row_of = form.rows.arrays
    cells, weights = inside[columns], values[:, None]
    for bucket, sign in design.throws:
        keys, at = np.unique(row_of[:, None] * design.buckets + bucket[cells], return_inverse=True)
        factors = np.bincount(at.reshape(-1), weights=(sign[cells] * weights).reshape(-1))
        squares = np.bincount(keys // design.buckets, weights=factors**2, minlength=len(form.rows))
        yield squares.astype(np.float64)
