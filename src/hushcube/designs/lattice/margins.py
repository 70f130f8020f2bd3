"""Margins of marginals and parts of marginals: half-widths of 95% intervals.

A sum of cells of one measured table has an integer law that is inverted exactly. Gaussian answers are combinations of
many numbers: the normal quantile. Laplace answers lie between one Laplace term and the normal law, by their kurtosis.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from hushcube.designs.errors import COVERAGE
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal, subsets
from hushcube.model.noise import GAUSSIAN, LAPLACE, standard_margin

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import LatticeDesign
    from hushcube.designs.lattice.errors import LatticeErrors

MOST_PAIRS: Final = 20_000
"""Pairs (answer, measured table) for which the kurtosis is computed; beyond, one Laplace term's is taken."""


def margins(errors: LatticeErrors) -> Floats:
    """The margin of a cell of each marginal (the mean where cells differ)."""
    design, deviations = errors.design, np.sqrt(errors.exact_cell_variances)
    if design.sums_cells:  # each budget and number of cells is looked at once
        source, summed = errors.sources()
        kinds = np.stack([design.budgets[source], np.rint(summed)])
        _, first, kind = np.unique(kinds, axis=1, return_index=True, return_inverse=True)
        found = [sum_of_cells(design, int(source[at]), round(float(summed[at]))) for at in first.tolist()]
        return np.where(deviations > 0, np.array(found)[kind.reshape(-1)], 0.0)
    if design.law is GAUSSIAN:
        result = errors.normal_margin(deviations)
        if design.basis.is_minimal and (total := design.request.marginals.ids([()])[0]) >= 0:
            result[total] = sum_of_cells(design, int(design.measured.ids([()])[0]), 1)
        return result
    if _are_unknown(design):
        return deviations * standard_margin(LAPLACE.tail_kurtosis, COVERAGE)
    pairs = zip(design.request.marginals, deviations, strict=True)
    return np.array([float(cell_margin(errors, marginal, deviation)) for marginal, deviation in pairs])


def cell_margin(errors: LatticeErrors, marginal: Marginal, deviations: Floats) -> Floats:
    """The margins of the cells of one workload marginal, given their standard deviations."""
    design = errors.design
    if not deviations.any():  # public: where nothing noisy is measured there are no weights, and no kurtosis
        return np.zeros_like(deviations)
    if design.sums_cells:
        source, summed = errors.sources()
        at = int(design.request.marginals.ids([marginal])[0])
        return np.full_like(deviations, sum_of_cells(design, int(source[at]), round(float(summed[at]))))
    if design.basis.is_minimal and marginal == ():
        return np.full_like(deviations, sum_of_cells(design, int(design.measured.ids([()])[0]), 1))
    if design.law is GAUSSIAN:
        return errors.normal_margin(deviations)
    return deviations * standard_margin(round(excess_kurtosis(errors, marginal), 2), COVERAGE)


def sum_of_cells(design: LatticeDesign, measured_set: int, summed: int) -> float:
    """The exact margin of a sum of independent cells of one measured table."""
    budget = float(design.budgets[measured_set])
    return float(design.law.margin(budget, summed, COVERAGE)) if math.isfinite(budget) and summed else 0.0


def excess_kurtosis(errors: LatticeErrors, marginal: Marginal) -> float:
    """An answer's excess kurtosis under Laplace noise: 3 sum w⁴ variance² over its variance squared.

    For marginals under least squares the weights of table C's cells in a cell of A depend only on which attributes of
    both they share, so the sum runs over patterns. Elsewhere the largest value, one Laplace term's, is taken: safe.
    """
    design = errors.design
    if design.inverts:
        inside = [at for at in design.measured.ids(subsets(marginal)).tolist() if at >= 0]
        terms = errors.set_variances(exact=True)[inside]
        rows = design.numbers[inside]
        total = float((rows * terms).sum())
        return float(3 * (rows * (terms / total) ** 2).sum()) if total else 0.0
    if _are_unknown(design):
        return LAPLACE.tail_kurtosis
    return least_squares_kurtosis(
        marginal, design.measured, errors.recovery_weights(), errors.set_variances(exact=True)
    )


def _are_unknown(design: LatticeDesign) -> bool:
    """Whether the kurtosis of no answer is computed."""
    pairs = len(design.request.marginals) * len(design.measured)
    return not design.inverts and (design.projects or not design.basis.holds_cells or pairs > MOST_PAIRS)


def least_squares_kurtosis(
    A: Marginal, measured: Family, weights: Floats, variances: Floats, relative: Floats | None = None
) -> float:
    """The excess kurtosis of a cell of A, from tables that least squares combines with some weights.

    Where a table is a mean of several, `relative` is the fourth cumulant of its noise relative to a single draw's.
    """
    sizes, weights = measured.sizes.tolist(), weights / measured.cells
    spaces = Family.of(subsets(A), sizes)
    kernel = dict(zip(spaces, measured.sum_over_supersets(spaces, weights).tolist(), strict=True))
    parts = []
    for c, C in enumerate(measured):
        shared = tuple(i for i in A if i in C)
        # w[M] = sum_{B <= shared} share_B / cells(A - B) prod_{B and M} (1 - 1/n) prod_{B - M} (-1/n)
        w = np.array([weights[c] / kernel[B] / math.prod(sizes[i] for i in A if i not in B) for B in subsets(shared)])
        count = np.full(1, measured.cells[c])
        for axis, i in enumerate(shared):
            without, given = np.moveaxis(w.reshape(-1, 2, 1 << axis), 1, 0)
            w = np.stack((without - given / sizes[i], without + given * (1 - 1 / sizes[i])), axis=1).ravel()
            count = np.concatenate((count * (1 - 1 / sizes[i]), count / sizes[i]))
        parts.append((count, w**2, float(variances[c])))
    total = sum(float((count * squares).sum()) * variance for count, squares, variance in parts)
    if not total:
        return 0.0
    # relative to the answer's variance: squares of tiny variances would be nothing
    fourth = [float((count * (squares * (variance / total)) ** 2).sum()) for count, squares, variance in parts]
    return 3 * float(sum(fourth) if relative is None else relative @ fourth)
