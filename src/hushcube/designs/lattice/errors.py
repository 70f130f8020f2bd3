"""Predicted errors of lattice designs: variances of sets, of residual spaces, of cells and sums of cells.

The recoveries: `none` answers from the single best source (Ding et al.'s K_part; for Fourier, the inverse transform),
`gls` and `ols` combine everything that sees a residual space.                                     [lattice/basis.py]
`answers` combines the answers of `none`. Coefficients stay independent. With K_C = sum_{A asked for, A >= C} 1/cells(A)

    tables     v_C K_C² cells(C) = sum_B variance_B cells(B) (sum_{A >= C, read from B} 1/cells(A))²
    Fourier    v_C K_C² = sum_{B >= C} variance_B T_B² prod_{i in C} 1/h_i  prod_{i in B - C} n_i (h_i - n_i) / h_i²
               T_B = sum_{A >= B} 1/cells(A)  prod_{i in A - B} n_i / h_i

since of the h Hadamard rows along an axis with n real codes, the sums over these are n (h - n) in squares, the constant
row aside, and on centred vectors the rows are orthogonal.                                           [docs/maths.md, 4]
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from hushcube.designs.errors import Errors, kept
from hushcube.designs.lattice import margins
from hushcube.designs.request import projected
from hushcube.lattice import hadamard, helmert
from hushcube.lattice.basis import cell_variances, dimensions, kernel, residual_variances
from hushcube.lattice.family import Family, Inclusion
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, subsets
from hushcube.model.form import Form, GroupTable, RangeTable
from hushcube.model.noise import LAPLACE, SMOOTH, gaussian_variance
from hushcube.model.queries import QueryTable

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import LatticeDesign

_ROUNDING: Final = 1e-13  # of a sum of numbers that cancel, relative to the sum of their absolute values


class LatticeErrors(Errors):
    """Variances over the residual spaces, or of single sources where nothing is recovered."""

    design: LatticeDesign
    slabs_are_alike = True

    def set_variances(self, *, exact: bool) -> Floats:
        """The noise variance of each set, in units of its real rows; of Helmert rows, per unit of squared norm."""
        design = self.design
        if not exact:
            with np.errstate(divide="ignore"):
                return design.law.formula(design.budgets) - design.smoothing * np.isfinite(design.budgets)
        if design.law is LAPLACE:
            stretch = design.measured.product(design.basis.per_axis(design.basis.stretch, design.measured.sizes))
            return LAPLACE.variance(design.budgets / stretch) / stretch**2
        parameters = 0.5 / design.budgets
        if not design.basis.is_minimal:
            return np.where(parameters > 0, gaussian_variance(np.maximum(parameters, 1e-300)), 0.0)
        result = parameters.copy()
        for batch in design.measured.batches:
            for i in batch.ids[self._uneven[batch.ids]].tolist():
                variances = helmert_coefficient_variances(float(parameters[i]), batch.shape)
                result[i] = float(np.mean(variances / helmert.residual_norms(batch.shape)))
        return result

    def recovery_weights(self) -> Floats:
        """The weights u_B with which least squares combines the measured sets, at most 1; zero for what is exact."""
        return self.least_squares_weights(self.set_variances(exact=True))

    @kept
    def space_variances(self, *, exact: bool) -> Floats:
        """v_C for each residual space of the workload under least squares (generalised, ordinary, on the answers)."""
        design = self.design
        variances = self.set_variances(exact=exact)
        if design.projects:
            return self._projected_variances(variances)
        weights = self.recovery_weights() if design.recovery == "ols" else None
        spaces = design.request.spaces
        return residual_variances(design.basis, design.measured, variances, weights, spaces)

    def _projected_variances(self, variances: Floats) -> Floats:
        """The same for the tables nearest to the first answers, given the noise of the measured sets."""
        design, asked, spaces = self.design, self.design.request.marginals, self.design.request.spaces
        measured, K = design.measured, asked.sum_over_supersets(spaces, 1 / asked.cells)
        if design.basis.holds_cells:
            source, _ = self.sources()
            pairs = [(source[p.big], p.small, 1 / asked.cells[p.big]) for p in asked.inclusions(spaces)]
            read, seen, shares = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
            both, at = np.unique(read * len(spaces) + seen, return_inverse=True)
            B, C = np.divmod(both, len(spaces))
            noise = np.bincount(at, shares) ** 2 * (variances * measured.cells)[B]
            v = np.bincount(C, noise, len(spaces)) / spaces.cells
        else:
            n, codes = measured.sizes.astype(np.float64), design.basis.per_axis(padded, measured.sizes)
            T = asked.sum_over_supersets(measured, 1 / asked.cells, np.ones(len(n)), n / codes)
            v = measured.sum_over_supersets(spaces, variances * T**2, 1 / codes, n * (codes - n) / codes**2)
        public = ~np.isfinite(design.budgets)
        exact = (kernel(design.basis, measured, public.astype(np.float64), spaces) > 0) | (dimensions(spaces) == 0)
        return np.where(exact, 0.0, v / K**2)

    def cell_variances(self, *, exact: bool) -> Floats:
        """Mean cell variances."""
        design = self.design
        marginals = design.request.marginals
        if design.takes_sources:
            source, summed = self.sources()
            return np.asarray(self.set_variances(exact=exact)[source] * summed)
        if design.inverts:
            noise = self.set_variances(exact=exact) * design.numbers
            variances = marginals.sum_over_subsets(design.measured, noise)
            return variances / codes(marginals) ** 2
        return cell_variances(marginals, design.request.spaces, self.space_variances(exact=exact))

    @kept
    def sources(self) -> tuple[Ints, Floats]:
        """Without recovery: the measured set that answers each marginal, and how many of its cells make up one answer.

        A measured marginal answers itself; another takes the source with the least variance after summing.
        """
        marginals, measured = self.design.request.marginals, self.design.measured
        variances = self.set_variances(exact=True) * measured.cells

        def noise(pair: Inclusion) -> Floats:
            own = measured.cells[pair.big] == marginals.cells[pair.small]
            return np.where(own, -1.0, variances[pair.big] / marginals.cells[pair.small])

        best, _ = measured.cheapest_holders(marginals, noise)
        return best, measured.cells[best] / marginals.cells

    def own_space_variances(self, marginal: Marginal, *, exact: bool) -> Floats:
        """v_C of one answered table, for the subsets C of its marginal in their order."""
        return np.asarray(self.space_variances(exact=exact)[self.design.request.spaces.ids(subsets(marginal))])

    def coefficient_variances(self, marginal: Marginal) -> Floats:
        """Variances of the Helmert coefficients of one answered table under least squares; shape of the table."""
        design, v = self.design, self.own_space_variances(marginal, exact=True)
        result = np.empty(design.schema.shape(marginal))
        for own, B in zip(v.tolist(), subsets(marginal), strict=True):
            sizes, at = design.schema.shape(B), design.measured.ids([B])[0]
            if at >= 0 and self._uneven[at]:
                variances = helmert_coefficient_variances(0.5 / float(design.budgets[at]), sizes)
            else:
                variances = own * helmert.residual_norms(sizes)
            result[_block(marginal, B)] = variances
        return result

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Variances of the answers of a form."""
        if exact and self._is_uneven(form.marginal):
            return self._uneven_form_variances(form)
        weights = self._square_weights(form, exact=exact)
        found = form.combine(weights)
        if (weights >= 0).all():
            return found
        # what cancels, such as a public total, is zero and not a little below
        return np.where(found > _ROUNDING * form.combine(np.abs(weights)), found, 0.0)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """Their sum."""
        if exact and self._is_uneven(form.marginal):
            return float(self._uneven_form_variances(form).sum())
        return float((form.squares() * self._square_weights(form, exact=exact)).sum())

    def _square_weights(self, form: Form, *, exact: bool) -> Floats:
        """What each of the squares M_S of a sum adds to its variance."""
        design = self.design
        A, shape = form.marginal, form.carrier_shape
        at = design.request.marginals.ids([A])[0]
        f = np.zeros((2,) * len(A))
        if design.takes_sources:
            source, summed = self.sources()
            f.flat[-1] = self.set_variances(exact=exact)[source[at]] * summed[at]
            return f
        if design.inverts:
            noise = self.set_variances(exact=exact)
            for B in subsets(A):
                number = design.measured.ids([B])[0]
                f[_inside(A, B)] = 0.0 if number < 0 else noise[number]
            return np.asarray(_hadamard_squares(f, shape) / codes(design.request.marginals)[at] ** 2)
        for own, B in zip(self.own_space_variances(A, exact=exact).tolist(), subsets(A), strict=True):
            f[_inside(A, B)] = own * design.schema.cells(B) / design.request.marginals.cells[at]
        return projected(f, shape)

    def _uneven_form_variances(self, form: Form) -> Floats:
        """Along an axis an answer weighs coefficient k by (row_k · q) / ||row_k||²; coefficients are independent."""
        if isinstance(form, QueryTable):
            rows = (row.reshape(form.carrier_shape) for row in form.rows.iterate())
            return np.array([self.sum_variance(form.marginal, row) for row in rows])
        result = self.coefficient_variances(form.marginal)
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

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        design = self.design
        axes = range(len(marginal))
        if design.takes_sources:
            return float(self._variance_of(marginal) * (weights**2).sum())
        if design.inverts:
            padded_weights = hadamard.transform(hadamard.pad(weights, axes), axes)
            noise, variances = self.set_variances(exact=True), np.zeros(padded_weights.shape)
            for B in subsets(marginal):
                at = int(design.measured.ids([B])[0])
                if at >= 0:
                    variances[_block(marginal, B)] = noise[at]
            return float((padded_weights**2 * variances).sum() / padded_weights.size**2)
        # q·y = sum_k (Tq)_k c_k / ||row_k||², the coefficients c_k independent
        transformed = helmert.forward(weights, axes)
        for axis in axes:
            along = [-1 if a == axis else 1 for a in axes]
            transformed = transformed / helmert.norms(weights.shape[axis]).reshape(along)
        return float((transformed**2 * self.coefficient_variances(marginal)).sum())

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Variances of the cells of a table."""
        design = self.design
        if self._is_uneven(marginal):
            return helmert.inverse_variances(self.coefficient_variances(marginal), range(len(marginal)))
        if design.request.marginals.ids([marginal])[0] >= 0:
            return np.asarray(self._variance_of(marginal))
        v, only = self.space_variances(exact=True), Family.of([marginal], design.schema.sizes)
        return np.asarray(cell_variances(only, design.request.spaces, v)[0])

    def _variance_of(self, marginal: Marginal) -> float:
        return float(self.exact_cell_variances[self.design.request.marginals.ids([marginal])[0]])

    @cached_property
    def margins(self) -> Floats:
        """Margins of cells, exact where they are sums of measured cells."""
        return margins.margins(self)

    def cell_margin(self, marginal: Marginal, deviations: Floats) -> Floats:
        """Margins of the cells of a table."""
        return margins.cell_margin(self, marginal, deviations)

    def sum_margin(self, marginal: Marginal, weights: Floats) -> float:
        """The margin of a weighted sum of cells; exact for plain sums of measured cells."""
        design = self.design
        if design.sums_cells and ((weights == 0) | (weights == 1)).all():
            source, summed = self.sources()
            at = design.request.marginals.ids([marginal])[0]
            return margins.sum_of_cells(design, int(source[at]), round(float(summed[at] * weights.sum())))
        return super().sum_margin(marginal, weights)

    @property
    def cells_are_alike(self) -> bool:
        """All cells are, but for Helmert coefficients with very small discrete noise."""
        return not self._uneven.any()

    @cached_property
    def _uneven(self) -> Bools:
        """The sets whose Helmert coefficients have unequal true variances."""
        design = self.design
        smallest = 0.5 / design.budgets * design.measured.product(np.full(len(design.measured.sizes), 2.0))
        return design.basis.is_minimal & (smallest > 0) & (smallest < SMOOTH)

    def _is_uneven(self, marginal: Marginal) -> bool:
        at = self.design.measured.ids(subsets(marginal))
        return bool(self._uneven[at[at >= 0]].any())


@lru_cache(maxsize=256)
def helmert_coefficient_variances(parameter: float, shape: tuple[int, ...]) -> Floats:
    """True variances of one set's noisy Helmert coefficients; uneven where the parameter is small."""
    return gaussian_variance(parameter * helmert.residual_norms(shape).astype(np.float64))


def _block(A: Marginal, B: Marginal) -> tuple[slice | int, ...]:
    """Where the coefficients of table A have those of the residual space B."""
    return tuple(slice(1, None) if i in B else 0 for i in A)


def _inside(A: Marginal, B: Marginal) -> tuple[int, ...]:
    return tuple(int(i in B) for i in A)


def _hadamard_squares(f: Floats, shape: tuple[int, ...]) -> Floats:
    """Like `projected` for Hadamard coefficients: (q·1)² for the constant one, 2^k ||q||² - (q·1)² for the others."""
    for axis, n in enumerate(shape):
        constant, others = np.moveaxis(f, axis, 0)
        f = np.moveaxis(np.stack((constant - others, others * padded(n))), 0, axis)
    return f


def codes(marginals: Family) -> Floats:
    """2^bits of each marginal: its cells with the phantoms."""
    return marginals.product([padded(int(n)) for n in marginals.sizes])
