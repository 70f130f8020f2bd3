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

from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.errors import Along, kept
from hushcube.designs.lattice import margins
from hushcube.designs.lattice.spaces import (
    SpaceErrors,
    block,
    helmert_coefficient_variances,
    inside,
    set_variances,
    uneven_sets,
)
from hushcube.lattice import hadamard
from hushcube.lattice.basis import dimensions, kernel, residual_variances
from hushcube.lattice.family import Family, Inclusion
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, applied, subsets, times
from hushcube.model.form import Form

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import LatticeDesign


class LatticeErrors(SpaceErrors):
    """Variances over the residual spaces, or of single sources where nothing is recovered."""

    design: LatticeDesign

    def set_variances(self, *, exact: bool) -> Floats:
        """The noise variance of each set, in units of its real rows; of Helmert rows, per unit of squared norm."""
        return set_variances(self.design, exact=exact)

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
        return super().cell_variances(exact=exact)

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

    def uneven_variances(self, B: Marginal) -> Floats | None:
        """The true variances of the coefficients of a space, where they are uneven."""
        at = self.design.measured.ids([B])[0]
        if at < 0 or not self._uneven[at]:
            return None
        return helmert_coefficient_variances(0.5 / float(self.design.budgets[at]), self.design.schema.shape(B))

    def square_weights(self, form: Form, *, exact: bool) -> Floats:
        """What each of the squares M_S of a sum adds to its variance."""
        design, A = self.design, form.marginal
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
                f[inside(A, B)] = 0.0 if number < 0 else noise[number]
            return np.asarray(_hadamard_squares(f, form.carrier_shape) / codes(design.request.marginals)[at] ** 2)
        return super().square_weights(form, exact=exact)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        design = self.design
        if design.takes_sources:
            return float(self.variance_of(marginal) * (weights**2).sum())
        if design.inverts:
            axes = range(len(marginal))
            padded_weights = hadamard.transform(hadamard.pad(weights, axes), axes)
            return float((padded_weights**2 * self._frequency_variances(marginal)).sum())
        return super().sum_variance(marginal, weights)

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """Of independent cells, of the inverse transform of independent coefficients, or of residual spaces."""
        design = self.design
        if design.takes_sources:
            axes = zip(design.schema.shape(marginal), rows, strict=True)
            squares = [np.ones(n) if own is None else (own**2).sum(axis=1) for n, own in axes]
            weights = [own if total is None else total for own, total in zip(squares, totals, strict=True)]
            return np.asarray(reduce(np.multiply.outer, weights, np.asarray(self.variance_of(marginal))))
        if design.inverts:
            return self._inverted_covariances(marginal, rows, totals)
        return super().covariances(marginal, rows, totals)

    def _inverted_covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """A cell has every coefficient along an axis once, with one sign or the other."""
        result = self._frequency_variances(marginal)
        for axis, (n, own, total) in enumerate(zip(self.design.schema.shape(marginal), rows, totals, strict=True)):
            if total is not None:
                weighed = times(result, hadamard.transform(hadamard.pad(total, [0]), [0]), axis)
                result = hadamard.transform(weighed, [axis]).take(range(n), axis=axis)
            elif own is None:
                result = result.sum(axis=axis, keepdims=True).repeat(n, axis=axis)
            else:
                result = applied(hadamard.transform(hadamard.pad(own, [1]), [1]) ** 2, result, axis)
        return result

    def _frequency_variances(self, marginal: Marginal) -> Floats:
        """What each Hadamard coefficient adds to the variance of a sum that it has the weight 1 in."""
        noise, variances = (
            self.set_variances(exact=True),
            np.zeros([padded(n) for n in self.design.schema.shape(marginal)]),
        )
        for B in subsets(marginal):
            at = int(self.design.measured.ids([B])[0])
            if at >= 0:
                variances[block(marginal, B)] = noise[at]
        return np.asarray(variances / variances.size**2)

    @cached_property
    def margins(self) -> Floats:
        """Margins of cells, exact where they are sums of measured cells."""
        return margins.margins(self)

    def cell_margin(self, marginal: Marginal, deviations: Floats) -> Floats:
        """Margins of the cells of a table."""
        return margins.cell_margin(self, marginal, deviations)

    def sum_margin(self, marginal: Marginal, weights: Floats) -> float:
        """The margin of a weighted sum of cells; exact for plain sums and differences of measured cells."""
        design = self.design
        if design.sums_cells and np.isin(weights, (-1, 0, 1)).all():  # the law is symmetric: signs do not matter
            source, summed = self.sources()
            at = design.request.marginals.ids([marginal])[0]
            return margins.sum_of_cells(design, int(source[at]), round(float(summed[at] * np.abs(weights).sum())))
        return super().sum_margin(marginal, weights)

    @property
    def cells_are_alike(self) -> bool:
        """All cells are, but for Helmert coefficients with very small discrete noise."""
        return not self._uneven.any()

    @cached_property
    def _uneven(self) -> Bools:
        return uneven_sets(self.design)

    def is_uneven(self, marginal: Marginal) -> bool:
        """Whether some space of a table is."""
        at = self.design.measured.ids(subsets(marginal))
        return bool(self._uneven[at[at >= 0]].any())


def _hadamard_squares(f: Floats, shape: tuple[int, ...]) -> Floats:
    """Like `projected` for Hadamard coefficients: (q·1)² for the constant one, 2^k ||q||² - (q·1)² for the others."""
    for axis, n in enumerate(shape):
        constant, others = np.moveaxis(f, axis, 0)
        f = np.moveaxis(np.stack((constant - others, others * padded(n))), 0, axis)
    return f


def codes(marginals: Family) -> Floats:
    """2^bits of each marginal: its cells with the phantoms."""
    return marginals.product([padded(int(n)) for n in marginals.sizes])
