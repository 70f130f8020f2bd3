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

from hushcube.model.marginal import Marginal
from hushcube.model.noise import SMOOTH, standard_margin, symmetric_quantile
from hushcube.plan.error import (
    cell_variances,
    codes,
    exact_cell_variances,
    recovery_weights,
    set_variances,
    sources,
    subsets,
    sum_variance,
)
from hushcube.plan.plan import Plan

Floats = NDArray[np.float64]

COVERAGE: Final = 0.95
_MOST_PAIRS: Final = 20_000
"""Pairs (answer, measured table) for which the kurtosis is computed; beyond, one Laplace term's is taken."""


def margins(plan: Plan) -> Floats:
    """The half-width of the 95% interval of a cell of each workload marginal (the mean where cells differ)."""
    deviations = np.sqrt(exact_cell_variances(plan))
    if plan.basis.name == "marginal" and (plan.recovery == "none" or len(plan.measured) == 1):
        source, summed = sources(plan)
        return np.array([lattice_margin(plan, int(b), int(n)) for b, n in zip(source, summed.round(), strict=True)])
    if plan.law == "gaussian":
        result = deviations * standard_margin(0.0, COVERAGE) + 0.5 * is_coarse(plan)
    else:
        result = deviations * [standard_margin(round(kurtosis, 2), COVERAGE) for kurtosis in excess_kurtosis(plan).tolist()]
    total, measured = plan.request.marginals.ids([()])[0], plan.measured.ids([()])[0]
    if total >= 0 and plan.basis.name == "helmert":
        result[total] = lattice_margin(plan, int(measured), 1)
    return result


def is_coarse(plan: Plan) -> bool:
    """Whether some noise is so small that its steps show: half a step is then added to margins."""
    noisy = plan.budgets[np.isfinite(plan.budgets)]
    return plan.law == "gaussian" and bool((0.5 / noisy < SMOOTH).any())


def sum_margin(plan: Plan, marginal: Marginal, weights: Floats) -> float:
    """The half-width of the 95% interval of a weighted sum of cells of one table."""
    if plan.basis.name == "marginal" and plan.recovery == "none" and ((weights == 0) | (weights == 1)).all():
        source, summed = sources(plan)
        at = plan.request.marginals.ids([marginal])[0]
        return lattice_margin(plan, int(source[at]), round(float(summed[at] * weights.sum())))
    deviation = math.sqrt(sum_variance(plan, marginal, weights))
    if plan.law == "gaussian":
        return deviation * standard_margin(0.0, COVERAGE) + 0.5 * is_coarse(plan) * (deviation > 0)
    return deviation * standard_margin(3.0, COVERAGE)


def lattice_margin(plan: Plan, measured_set: int, summed: int) -> float:
    """The exact 95% margin of a sum of independent cells of one measured table."""
    budget = float(plan.budgets[measured_set])
    if not math.isfinite(budget) or summed == 0:
        return 0.0
    parameter = Fraction(budget) if plan.law == "laplace" else 1 / (2 * Fraction(budget))
    return float(symmetric_quantile(plan.law, parameter, summed, COVERAGE))


def excess_kurtosis(plan: Plan) -> Floats:
    """An answer's excess kurtosis under Laplace noise: sum of w⁴ variance² times 3, over its variance squared.

    For marginals under least squares the weights of table C's cells in a cell of A depend only on which attributes of
    both they share, so the sum runs over patterns. Elsewhere the largest value, one Laplace term's, is taken: safe.
    """
    marginals = plan.request.marginals
    largest = np.full(len(marginals), 3.0)
    if plan.basis.name == "fourier" and plan.recovery == "none":
        rows = plan.measured.product(plan.basis.per_axis(plan.basis.rows, plan.measured.sizes))
        fourth = marginals.sum_over_subsets(plan.measured, rows * set_variances(plan, exact=True) ** 2) / codes(marginals) ** 4
        return 3 * fourth / np.maximum(cell_variances(plan, exact=True) ** 2, 1e-300)
    if plan.basis.name != "marginal" or len(marginals) * len(plan.measured) > _MOST_PAIRS:
        return largest
    return _least_squares_kurtosis(plan)


def _least_squares_kurtosis(plan: Plan) -> Floats:
    sizes = plan.schema.sizes
    spaces = plan.request.spaces
    weights = recovery_weights(plan) / plan.measured.cells
    kernel = plan.measured.sum_over_supersets(spaces, weights)
    number = {space: i for i, space in enumerate(spaces)}
    cells = plan.measured.cells.tolist()
    variances = set_variances(plan, exact=True)
    result = np.zeros(len(plan.request.marginals))
    for at, A in enumerate(plan.request.marginals):
        second = fourth = 0.0
        for c, C in enumerate(plan.measured):
            shared = [i for i in A if i in C]
            # w[M] = sum_{B <= shared} share_B / cells(A - B) prod_{B and M} (1 - 1/n) prod_{B - M} (-1/n)
            w = np.array(
                [weights[c] / kernel[number[B]] / math.prod(sizes[i] for i in A if i not in B) for B in subsets(tuple(shared))]
            )
            count = np.full(1, cells[c])
            for axis, i in enumerate(shared):
                pairs = w.reshape(-1, 2, 1 << axis)
                w = np.stack((pairs[:, 0] - pairs[:, 1] / sizes[i], pairs[:, 0] + pairs[:, 1] * (1 - 1 / sizes[i])), axis=1).ravel()
                count = np.concatenate((count * (1 - 1 / sizes[i]), count / sizes[i]))
            second += float((count * w**2).sum() * variances[c])
            fourth += float((count * w**4).sum() * variances[c] ** 2)
        result[at] = 3 * fourth / second**2 if second else 0.0
    return result
