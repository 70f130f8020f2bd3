"""Predicted errors of a plan, before any data exists: variances of sets, residual spaces and cells, and margins.

`exact=False` uses the continuous formulas 2/beta² and 1/(2 beta) (under `smoothing`, of the continuous mechanism);
`exact=True` the true variances of the discrete noise that is drawn.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice import helmert
from hushcube.lattice.family import Family
from hushcube.lattice.hadamard import padded
from hushcube.lattice.variances import cell_variances as lattice_cell_variances
from hushcube.lattice.variances import residual_variances as lattice_residual_variances
from hushcube.model.noise import SMOOTH, gaussian_variance, laplace_variance, standard_margin, symmetric_quantile
from hushcube.model.marginal import Marginal
from hushcube.plan.plan import Plan

Floats = NDArray[np.float64]

COVERAGE: Final = 0.95
_MOST_PAIRS: Final = 2_000_000


def set_variances(plan: Plan, *, exact: bool) -> Floats:
    """The noise variance of each measured set, in units of its real rows; for Helmert rows, per unit of squared norm."""
    if not exact:
        with np.errstate(divide="ignore"):
            return 2 / plan.budgets**2 if plan.law == "laplace" else 0.5 / plan.budgets - plan.smoothing * np.isfinite(plan.budgets)
    stretch = plan.measured.product(plan.basis.per_axis(plan.basis.stretch, plan.measured.sizes))
    if plan.law == "laplace":
        return laplace_variance(plan.budgets / stretch) / stretch**2
    parameters = 0.5 / plan.budgets
    if plan.basis.name != "helmert":
        return np.where(parameters > 0, gaussian_variance(np.maximum(parameters, 1e-300)), 0.0)
    result = parameters.copy()
    for batch in plan.measured.batches:
        for i in batch.ids[(parameters[batch.ids] * 2.0 ** len(batch.shape) < SMOOTH) & (parameters[batch.ids] > 0)].tolist():
            norms = helmert.residual_norms(batch.shape)
            result[i] = float(np.mean(helmert_coefficient_variances(float(parameters[i]), batch.shape) / norms))
    return result


@lru_cache(maxsize=256)
def helmert_coefficient_variances(parameter: float, shape: tuple[int, ...]) -> Floats:
    """True variances of one set's noisy Helmert coefficients; uneven where the parameter is small."""
    return gaussian_variance(parameter * helmert.residual_norms(shape).astype(np.float64))


def recovery_weights(plan: Plan) -> Floats:
    """The weights u_B with which least squares combines the measured sets, at most 1; zero for what is known exactly."""
    noisy = np.isfinite(plan.budgets)
    if plan.recovery == "ols":
        return noisy.astype(np.float64)
    variances = np.where(noisy, set_variances(plan, exact=True), 1.0)
    return noisy * (variances[noisy].min(initial=1.0) / variances)


def space_variances(plan: Plan, *, exact: bool) -> Floats:
    """v_C for each residual space of the workload under least squares (generalised or ordinary)."""
    variances = set_variances(plan, exact=exact)
    if plan.recovery == "gls" and not exact:
        with np.errstate(divide="ignore"):
            weights = np.where(variances > 0, 1 / variances, 0.0)
    else:
        weights = recovery_weights(plan)
    return lattice_residual_variances(plan.basis, plan.measured, variances, weights, plan.request.spaces)


def cell_variances(plan: Plan, *, exact: bool) -> Floats:
    """The mean cell variance of each workload marginal, in the order of `plan.request.marginals`."""
    marginals = plan.request.marginals
    if plan.recovery == "none" and plan.basis.name == "marginal":
        source, summed = sources(plan)
        return set_variances(plan, exact=exact)[source] * summed
    if plan.recovery == "none" and plan.basis.name == "fourier":
        variances = set_variances(plan, exact=exact) * plan.measured.product(plan.basis.per_axis(plan.basis.rows, plan.measured.sizes))
        return marginals.sum_over_subsets(plan.measured, variances) / _codes(marginals) ** 2
    return lattice_cell_variances(marginals, plan.request.spaces, space_variances(plan, exact=exact))


def total_variance(plan: Plan, *, exact: bool) -> float:
    """The expected sum of squared errors over all cells of the workload, all marginals alike."""
    return math.fsum((cell_variances(plan, exact=exact) * plan.request.marginals.cells).tolist())


def weighted_variance(plan: Plan) -> float:
    """The same, exact and with the workload's weights: what strategies are compared by."""
    return math.fsum((cell_variances(plan, exact=True) * plan.request.marginals.cells * plan.request.weights).tolist())


def sources(plan: Plan) -> tuple[NDArray[np.int64], Floats]:
    """Without recovery: the measured set that answers each marginal, and how many of its cells make up one answer.

    A measured marginal answers itself; another takes the source with the least variance after summing.
    """
    marginals, measured = plan.request.marginals, plan.measured
    best = np.full(len(marginals), -1, np.int64)
    least = np.full(len(marginals), np.inf)
    variances = set_variances(plan, exact=True) * measured.cells
    for pair in measured.inclusions(marginals):
        own = measured.cells[pair.big] == marginals.cells[pair.small]
        noise = np.where(own, -1.0, variances[pair.big] / marginals.cells[pair.small])
        better = noise < least[pair.small]
        best[pair.small[better]], least[pair.small[better]] = pair.big[better], noise[better]
    return best, measured.cells[best] / marginals.cells


def coefficient_variances(plan: Plan, marginal: Marginal) -> Floats:
    """Variances of the Helmert coefficients of one answered table under least squares; shape of the table."""
    spaces = plan.request.spaces
    v = space_variances_of(plan)
    shape = plan.schema.shape(marginal)
    result = np.empty(shape)
    for B in _subsets(list(marginal)):
        block = tuple(slice(1, None) if i in B else 0 for i in marginal)
        sizes = plan.schema.shape(B)
        parameter = _uneven_parameter(plan, B)
        if parameter is not None:
            result[block] = helmert_coefficient_variances(parameter, sizes)
        else:
            result[block] = v[spaces.ids([B])[0]] * helmert.residual_norms(sizes)
    return result


def space_variances_of(plan: Plan) -> Floats:
    """The exact v_C of a plan, computed once."""
    if "space_variances" not in plan.__dict__:
        plan.__dict__["space_variances"] = space_variances(plan, exact=True)
    return plan.__dict__["space_variances"]  # type: ignore[no-any-return]


def _uneven_parameter(plan: Plan, space: Marginal) -> float | None:
    """The Gaussian parameter of a set whose Helmert coefficients have uneven true variances, None where they are even."""
    if plan.basis.name != "helmert":
        return None
    at = int(plan.measured.ids([space])[0])
    parameter = 0.5 / float(plan.budgets[at]) if at >= 0 else 0.0
    return parameter if 0 < parameter * 2.0 ** len(space) < SMOOTH else None


def margins(plan: Plan) -> Floats:
    """The half-width of the 95% interval of a cell of each workload marginal (the mean where cells differ)."""
    deviations = np.sqrt(cell_variances(plan, exact=True))
    if plan.basis.name == "marginal" and (plan.recovery == "none" or len(plan.measured) == 1):
        source, summed = sources(plan)
        return np.array([lattice_margin(plan, int(b), int(n)) for b, n in zip(source, summed.round(), strict=True)])
    if plan.law == "gaussian":
        return deviations * standard_margin(0.0, COVERAGE)
    factors = [standard_margin(round(kurtosis, 2), COVERAGE) for kurtosis in excess_kurtosis(plan).tolist()]
    return deviations * np.array(factors)


def lattice_margin(plan: Plan, measured_set: int, summed: int) -> float:
    """The exact 95% margin of a sum of independent cells of one measured table."""
    budget = float(plan.budgets[measured_set])
    if not math.isfinite(budget):
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
        fourth = marginals.sum_over_subsets(plan.measured, rows * set_variances(plan, exact=True) ** 2) / _codes(marginals) ** 4
        return 3 * fourth / np.maximum(cell_variances(plan, exact=True) ** 2, 1e-300)
    if plan.basis.name != "marginal" or len(marginals) * len(plan.measured) > _MOST_PAIRS // 64:
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
                [weights[c] / kernel[number[B]] / math.prod(sizes[i] for i in A if i not in B) for B in _subsets(shared)]
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


def _subsets(items: list[int]) -> list[tuple[int, ...]]:
    """Subsets in the order of their bit masks."""
    return [tuple(item for at, item in enumerate(items) if mask >> at & 1) for mask in range(1 << len(items))]


def _codes(marginals: Family) -> Floats:
    """2^bits of each marginal: its cells with the phantoms."""
    return marginals.product([padded(int(n)) for n in marginals.sizes])
