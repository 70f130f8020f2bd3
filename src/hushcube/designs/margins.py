"""Half-widths of 95% intervals, from the law of the noise and not only its variance.

A sum of cells of one measured table has an integer law that is inverted exactly. Gaussian answers are combinations of
many numbers: the normal quantile. Laplace answers lie between one Laplace term and the normal law, by their kurtosis.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Design
from hushcube.designs.errors import exact_cell_variances, sum_variance
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.lattice.errors import recovery_weights, set_variances, sources, subsets
from hushcube.lattice.family import Family
from hushcube.model.marginal import Marginal
from hushcube.model.noise import SMOOTH, standard_margin, symmetric_quantile

Floats = NDArray[np.float64]

COVERAGE: Final = 0.95
_MOST_PAIRS: Final = 20_000
"""Pairs (answer, measured table) for which the kurtosis is computed; beyond, one Laplace term's is taken."""


def margins(design: Design) -> Floats:
    """The half-width of the 95% interval of a cell of each marginal (the mean where cells differ)."""
    deviations = np.sqrt(exact_cell_variances(design))
    if not isinstance(design, LatticeDesign):
        return any_margin(design, deviations)
    if design.law == "gaussian" and not _is_lattice(design):
        result = _gaussian_margin(design, deviations)
        if design.basis.name == "helmert" and (total := design.request.marginals.ids([()])[0]) >= 0:
            result[total] = lattice_margin(design, int(design.measured.ids([()])[0]), 1)
        return result
    if _is_lattice(design):
        return _lattice_margins(design, deviations)
    if _are_unknown(design):
        result = deviations * standard_margin(3.0, COVERAGE)
        if design.basis.name == "helmert" and (total := design.request.marginals.ids([()])[0]) >= 0:
            result[total] = float(cell_margin(design, (), deviations[total]))
        return result
    pairs = zip(design.request.marginals, deviations, strict=True)
    return np.array([float(cell_margin(design, marginal, deviation)) for marginal, deviation in pairs])


def _lattice_margins(design: LatticeDesign, deviations: Floats) -> Floats:
    """Exact margins of sums of cells; each budget and number of cells is looked at once."""
    source, summed = sources(design)
    _, first, kind = np.unique(
        np.stack([design.budgets[source], np.rint(summed)]), axis=1, return_index=True, return_inverse=True
    )
    found = [lattice_margin(design, int(source[at]), round(float(summed[at]))) for at in first.tolist()]
    return np.where(deviations > 0, np.array(found)[kind.reshape(-1)], 0.0)


def any_margin(design: Design, deviations: Floats) -> Floats:
    """The half-widths for any combinations of measured numbers: under Laplace noise, safe for every combination.

    Half a step is added to them, whatever their noise: without it a single count would be covered in 79% to 95% of
    cases, depending on where its quantile falls between two integers.
    """
    if design.law == "gaussian":
        return _gaussian_margin(design, deviations)
    return deviations * standard_margin(3.0, COVERAGE) + 0.5 * (deviations > 0)


def cell_margin(design: Design, marginal: Marginal, deviations: Floats) -> Floats:
    """The half-widths for the cells of one workload marginal, given their standard deviations."""
    if not deviations.any():  # public: where nothing noisy is measured there are no weights, and no kurtosis
        return np.zeros_like(deviations)
    if not isinstance(design, LatticeDesign):
        return any_margin(design, deviations)
    at = int(design.request.marginals.ids([marginal])[0])
    if _is_lattice(design):
        source, summed = sources(design)
        return np.full_like(deviations, lattice_margin(design, int(source[at]), round(float(summed[at]))))
    if design.basis.name == "helmert" and marginal == ():
        return np.full_like(deviations, lattice_margin(design, int(design.measured.ids([()])[0]), 1))
    if design.law == "gaussian":
        return _gaussian_margin(design, deviations)
    return deviations * standard_margin(round(excess_kurtosis(design, marginal), 2), COVERAGE)


def _is_lattice(design: LatticeDesign) -> bool:
    """Whether each answer is a plain sum of cells of one measured table."""
    return design.basis.name == "marginal" and (design.recovery == "none" or len(design.measured) == 1)


def _gaussian_margin(design: Design, deviations: Floats) -> Floats:
    """The normal quantile; half a step more where the noise is coarse, nothing where the answer is public."""
    return deviations * standard_margin(0.0, COVERAGE) + 0.5 * is_coarse(design) * (deviations > 0)


def is_coarse(design: Design) -> bool:
    """Whether some noise is so small that its steps show: half a step is then added to margins."""
    noisy = design.budgets[np.isfinite(design.budgets)]
    return design.law == "gaussian" and bool((0.5 / noisy < SMOOTH).any())


def sum_margin(design: Design, marginal: Marginal, weights: Floats) -> float:
    """The half-width of the 95% interval of a weighted sum of cells of one table."""
    if isinstance(design, LatticeDesign) and _is_lattice(design) and ((weights == 0) | (weights == 1)).all():
        source, summed = sources(design)
        at = design.request.marginals.ids([marginal])[0]
        return lattice_margin(design, int(source[at]), round(float(summed[at] * weights.sum())))
    return float(any_margin(design, np.sqrt(sum_variance(design, marginal, weights))))


def lattice_margin(design: LatticeDesign, measured_set: int, summed: int) -> float:
    """The exact 95% margin of a sum of independent cells of one measured table."""
    budget = float(design.budgets[measured_set])
    if not math.isfinite(budget) or summed == 0:
        return 0.0
    parameter = Fraction(budget) if design.law == "laplace" else 1 / (2 * Fraction(budget))
    return float(symmetric_quantile(design.law, parameter, summed, COVERAGE))


def excess_kurtosis(design: LatticeDesign, marginal: Marginal) -> float:
    """An answer's excess kurtosis under Laplace noise: 3 sum w⁴ variance² over its variance squared.

    For marginals under least squares the weights of table C's cells in a cell of A depend only on which attributes of
    both they share, so the sum runs over patterns. Elsewhere the largest value, one Laplace term's, is taken: safe.
    """
    if design.basis.name == "fourier" and design.recovery == "none":
        inside = [at for at in design.measured.ids(subsets(marginal)).tolist() if at >= 0]
        terms = set_variances(design, exact=True)[inside]
        rows = design.measured.product(design.basis.per_axis(design.basis.rows, design.measured.sizes))[inside]
        total = float((rows * terms).sum())
        return float(3 * (rows * (terms / total) ** 2).sum()) if total else 0.0
    if _are_unknown(design):
        return 3.0
    return _least_squares_kurtosis(design, marginal)


def _are_unknown(design: LatticeDesign) -> bool:
    """Whether the kurtosis of no answer is computed."""
    if design.basis.name == "fourier" and design.recovery == "none":
        return False
    return design.basis.name != "marginal" or len(design.request.marginals) * len(design.measured) > _MOST_PAIRS


def _least_squares_kurtosis(design: LatticeDesign, A: Marginal) -> float:
    sizes = design.schema.sizes
    weights = recovery_weights(design) / design.measured.cells
    inside = subsets(A)
    spaces = Family.of(inside, sizes)
    kernel = dict(zip(spaces, design.measured.sum_over_supersets(spaces, weights).tolist(), strict=True))
    variances = set_variances(design, exact=True).tolist()
    cells = design.measured.cells.tolist()
    parts = []
    for c, C in enumerate(design.measured):
        shared = tuple(i for i in A if i in C)
        # w[M] = sum_{B <= shared} share_B / cells(A - B) prod_{B and M} (1 - 1/n) prod_{B - M} (-1/n)
        w = np.array([weights[c] / kernel[B] / math.prod(sizes[i] for i in A if i not in B) for B in subsets(shared)])
        count = np.full(1, cells[c])
        for axis, i in enumerate(shared):
            pairs = w.reshape(-1, 2, 1 << axis)
            w = np.stack(
                (pairs[:, 0] - pairs[:, 1] / sizes[i], pairs[:, 0] + pairs[:, 1] * (1 - 1 / sizes[i])), axis=1
            ).ravel()
            count = np.concatenate((count * (1 - 1 / sizes[i]), count / sizes[i]))
        parts.append((count, w**2, variances[c]))
    total = sum(float((count * squares).sum()) * variance for count, squares, variance in parts)
    if not total:
        return 0.0
    # relative to the answer's variance: squares of tiny variances would be nothing
    return 3 * sum(float((count * (squares * (variance / total)) ** 2).sum()) for count, squares, variance in parts)
