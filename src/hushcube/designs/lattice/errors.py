"""Predicted errors of lattice plans: variances of sets, of residual spaces, of cells and sums of cells.

The recoveries: `none` answers from the single best source (Ding et al.'s K_part; for Fourier, the inverse transform),
`gls` and `ols` combine everything that sees a residual space.                                 [lattice/variances.py]
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.errors import (
    cell_variance_table,
    cell_variances,
    exact_cell_variances,
    form_total,
    form_variances,
    once,
    sum_variance,
)
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import projected
from hushcube.lattice import hadamard, helmert
from hushcube.lattice.family import Family
from hushcube.lattice.hadamard import padded
from hushcube.lattice.variances import cell_variances as lattice_cell_variances
from hushcube.lattice.variances import residual_variances as lattice_residual_variances
from hushcube.model.form import Form, QueryTable, RangeTable
from hushcube.model.groups import GroupTable
from hushcube.model.marginal import Marginal
from hushcube.model.noise import SMOOTH, gaussian_variance, laplace_variance

Floats = NDArray[np.float64]
_ROUNDING: Final = 1e-13
"""Of a sum of numbers that cancel, relative to the sum of their absolute values."""


def set_variances(design: LatticeDesign, *, exact: bool) -> Floats:
    """The noise variance of each measured set, in units of its real rows; of Helmert rows, per unit of squared norm."""
    if not exact:
        with np.errstate(divide="ignore"):
            return (
                2 / design.budgets**2
                if design.law == "laplace"
                else 0.5 / design.budgets - design.smoothing * np.isfinite(design.budgets)
            )
    stretch = design.measured.product(design.basis.per_axis(design.basis.stretch, design.measured.sizes))
    if design.law == "laplace":
        return laplace_variance(design.budgets / stretch) / stretch**2
    parameters = 0.5 / design.budgets
    if design.basis.name != "helmert":
        return np.where(parameters > 0, gaussian_variance(np.maximum(parameters, 1e-300)), 0.0)
    result = parameters.copy()
    for batch in design.measured.batches:
        for i in batch.ids[
            (parameters[batch.ids] * 2.0 ** len(batch.shape) < SMOOTH) & (parameters[batch.ids] > 0)
        ].tolist():
            norms = helmert.residual_norms(batch.shape)
            result[i] = float(np.mean(helmert_coefficient_variances(float(parameters[i]), batch.shape) / norms))
    return result


@lru_cache(maxsize=256)
def helmert_coefficient_variances(parameter: float, shape: tuple[int, ...]) -> Floats:
    """True variances of one set's noisy Helmert coefficients; uneven where the parameter is small."""
    return gaussian_variance(parameter * helmert.residual_norms(shape).astype(np.float64))


def recovery_weights(design: LatticeDesign) -> Floats:
    """The weights u_B with which least squares combines the measured sets, at most 1; zero for what is exact."""
    noisy = np.isfinite(design.budgets)
    if design.recovery == "ols":
        return noisy.astype(np.float64)
    variances = np.where(noisy, set_variances(design, exact=True), 1.0)
    weights: Floats = noisy * (variances[noisy].min(initial=np.inf) / variances) if noisy.any() else noisy * 1.0
    return weights


def space_variances(design: LatticeDesign, *, exact: bool) -> Floats:
    """v_C for each residual space of the workload under least squares (generalised or ordinary)."""
    variances = set_variances(design, exact=exact)
    weights = recovery_weights(design) if design.recovery == "ols" else None
    return lattice_residual_variances(design.basis, design.measured, variances, weights, design.request.spaces)


@cell_variances.register
def _cell_variances(design: LatticeDesign, *, exact: bool) -> Floats:
    marginals = design.request.marginals
    if design.recovery == "none" and design.basis.name == "marginal":
        source, summed = sources(design)
        return set_variances(design, exact=exact)[source] * summed
    if design.recovery == "none" and design.basis.name == "fourier":
        variances = set_variances(design, exact=exact) * design.measured.product(
            design.basis.per_axis(design.basis.rows, design.measured.sizes)
        )
        return marginals.sum_over_subsets(design.measured, variances) / codes(marginals) ** 2
    return lattice_cell_variances(marginals, design.request.spaces, space_variances(design, exact=exact))


def sources(design: LatticeDesign) -> tuple[NDArray[np.int64], Floats]:
    """Without recovery: the measured set that answers each marginal, and how many of its cells make up one answer.

    A measured marginal answers itself; another takes the source with the least variance after summing.
    """
    return once(design, "_sources", lambda: _find_sources(design))


def _find_sources(design: LatticeDesign) -> tuple[NDArray[np.int64], Floats]:
    marginals, measured = design.request.marginals, design.measured
    best = np.full(len(marginals), -1, np.int64)
    least = np.full(len(marginals), np.inf)
    variances = set_variances(design, exact=True) * measured.cells
    for pair in measured.inclusions(marginals):
        own = measured.cells[pair.big] == marginals.cells[pair.small]
        noise = np.where(own, -1.0, variances[pair.big] / marginals.cells[pair.small])
        order = np.argsort(-noise, kind="stable")  # a marginal may stand there several times: the best comes last
        order = order[noise[order] < least[pair.small[order]]]
        best[pair.small[order]], least[pair.small[order]] = pair.big[order], noise[order]
    return best, measured.cells[best] / marginals.cells


def coefficient_variances(design: LatticeDesign, marginal: Marginal) -> Floats:
    """Variances of the Helmert coefficients of one answered table under least squares; shape of the table."""
    spaces = design.request.spaces
    v = once(design, "_space_variances_True", lambda: space_variances(design, exact=True))
    shape = design.schema.shape(marginal)
    result = np.empty(shape)
    for B in subsets(marginal):
        block = tuple(slice(1, None) if i in B else 0 for i in marginal)
        sizes = design.schema.shape(B)
        parameter = _uneven_parameter(design, B)
        if parameter is not None:
            result[block] = helmert_coefficient_variances(parameter, sizes)
        else:
            result[block] = v[spaces.ids([B])[0]] * helmert.residual_norms(sizes)
    return result


@form_variances.register
def _form_variances(design: LatticeDesign, form: Form, *, exact: bool) -> Floats:
    if _is_uneven_form(design, form, exact=exact):
        return _uneven_form_variances(design, form)
    weights = _square_weights(design, form, exact=exact)
    found = form.combine(weights)
    if (weights >= 0).all():
        return found
    # what cancels, such as a public total, is zero and not a little below
    return np.where(found > _ROUNDING * form.combine(np.abs(weights)), found, 0.0)


@form_total.register
def _form_total(design: LatticeDesign, form: Form, *, exact: bool) -> float:
    if _is_uneven_form(design, form, exact=exact):
        return float(_uneven_form_variances(design, form).sum())
    return float((form.squares() * _square_weights(design, form, exact=exact)).sum())


def _is_uneven_form(design: LatticeDesign, form: Form, *, exact: bool) -> bool:
    return exact and any(_uneven_parameter(design, B) is not None for B in subsets(form.marginal))


def _square_weights(design: LatticeDesign, form: Form, *, exact: bool) -> Floats:
    """What each of the squares M_S of a sum adds to its variance."""
    A, shape = form.marginal, form.carrier_shape
    at = design.request.marginals.ids([A])[0]
    f = np.zeros((2,) * len(A))
    if design.recovery == "none" and design.basis.name == "marginal":
        source, summed = sources(design)
        f.flat[-1] = set_variances(design, exact=exact)[source[at]] * summed[at]
        return f
    if design.recovery == "none" and design.basis.name == "fourier":
        noise = set_variances(design, exact=exact)
        for B in subsets(A):
            number = design.measured.ids([B])[0]
            f[_inside(A, B)] = 0.0 if number < 0 else noise[number]
        return np.asarray(_hadamard_squares(f, shape) / codes(design.request.marginals)[at] ** 2)
    v = once(design, f"_space_variances_{exact}", lambda: space_variances(design, exact=exact))
    spaces = design.request.spaces
    for B in subsets(A):
        number = spaces.ids([B])[0]
        f[_inside(A, B)] = v[number] * spaces.cells[number] / design.request.marginals.cells[at]
    return projected(f, shape)


def _inside(A: Marginal, B: Marginal) -> tuple[int, ...]:
    return tuple(int(i in B) for i in A)


def _hadamard_squares(f: Floats, shape: tuple[int, ...]) -> Floats:
    """Like `projected` for Hadamard coefficients: (q·1)² for the constant one, 2^k ||q||² - (q·1)² for the others."""
    for axis, n in enumerate(shape):
        constant, others = np.moveaxis(f, axis, 0)
        f = np.moveaxis(np.stack((constant - others, others * padded(n))), 0, axis)
    return f


def _uneven_form_variances(design: LatticeDesign, form: Form) -> Floats:
    """Along each axis an answer weighs coefficient k by (row_k · q) / ||row_k||²; the coefficients are independent."""
    if isinstance(form, QueryTable):
        rows = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
        return np.array([sum_variance(design, form.marginal, row) for row in rows])
    result = coefficient_variances(design, form.marginal)
    if isinstance(form, GroupTable):
        for axis, (n, members) in enumerate(zip(form.carrier_shape, form.members, strict=True)):
            weights = helmert.forward(members, [1]) / helmert.norms(n)
            result = np.moveaxis(np.tensordot(weights**2, result, axes=(1, axis)), 0, axis)
        return result.reshape(form.shape)
    if not isinstance(form, RangeTable):
        raise TypeError(type(form).__name__)
    for axis, (starts, ends) in enumerate(form.intervals):
        result = helmert.interval_variances(result, axis, starts, ends)
    return result


@sum_variance.register
def _sum_variance(design: LatticeDesign, marginal: Marginal, weights: Floats) -> float:
    axes = range(len(marginal))
    if design.recovery == "none" and design.basis.name == "marginal":
        return float(_variance_of(design, marginal) * (weights**2).sum())
    if design.recovery == "none" and design.basis.name == "fourier":
        padded_weights = hadamard.transform(hadamard.pad(weights, axes), axes)
        noise, variances = set_variances(design, exact=True), np.zeros(padded_weights.shape)
        for B in subsets(marginal):
            at = int(design.measured.ids([B])[0])
            if at >= 0:
                variances[tuple(slice(1, None) if i in B else 0 for i in marginal)] = noise[at]
        return float((padded_weights**2 * variances).sum() / padded_weights.size**2)
    # q·y = sum_k (Tq)_k c_k / ||row_k||², the coefficients c_k independent
    transformed = helmert.forward(weights, axes)
    for axis in axes:
        norms = helmert.norms(weights.shape[axis]).reshape([-1 if a == axis else 1 for a in axes])
        transformed = transformed / norms
    return float((transformed**2 * coefficient_variances(design, marginal)).sum())


@cell_variance_table.register
def _cell_variance_table(design: LatticeDesign, marginal: Marginal) -> Floats:
    if any(_uneven_parameter(design, B) is not None for B in subsets(marginal)):
        return helmert.inverse_variances(coefficient_variances(design, marginal), range(len(marginal)))
    if design.request.marginals.ids([marginal])[0] >= 0:
        return np.asarray(_variance_of(design, marginal))
    v = once(design, "_space_variances_True", lambda: space_variances(design, exact=True))
    return np.asarray(lattice_cell_variances(Family.of([marginal], design.schema.sizes), design.request.spaces, v)[0])


def _variance_of(design: LatticeDesign, marginal: Marginal) -> float:
    return float(exact_cell_variances(design)[design.request.marginals.ids([marginal])[0]])


def is_uneven(design: LatticeDesign) -> bool:
    """Whether some tables' cells have unequal variances: Helmert coefficients whose discrete noise is very small."""
    if design.basis.name != "helmert":
        return False
    smallest = 0.5 / design.budgets * design.measured.product(np.full(len(design.measured.sizes), 2.0))
    return bool(((smallest > 0) & (smallest < SMOOTH)).any())


def _uneven_parameter(design: LatticeDesign, space: Marginal) -> float | None:
    """The Gaussian parameter of a set whose Helmert coefficients have uneven true variances, or None."""
    if design.basis.name != "helmert":
        return None
    at = int(design.measured.ids([space])[0])
    parameter = 0.5 / float(design.budgets[at]) if at >= 0 else 0.0
    return parameter if 0 < parameter * 2.0 ** len(space) < SMOOTH else None


def subsets(items: Marginal) -> list[Marginal]:
    """Subsets in the order of their bit masks."""
    return [tuple(item for at, item in enumerate(items) if mask >> at & 1) for mask in range(1 << len(items))]


def codes(marginals: Family) -> Floats:
    """2^bits of each marginal: its cells with the phantoms."""
    return marginals.product([padded(int(n)) for n in marginals.sizes])
