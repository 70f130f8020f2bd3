"""Least squares over all layers, residual space by residual space.

What a layer says of a space it says independently of the others, and with a precision of its own. So precisions add up,
and the best estimate is the mean of the layers' own best estimates, weighted by them:           [docs/maths.md, 12]

    1 / v_C = sum_layers 1 / v_C(layer),      coefficient_C = v_C sum_layers coefficient_C(layer) / v_C(layer)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.errors import COVERAGE, kept
from hushcube.designs.lattice.design import CHUNK
from hushcube.designs.lattice.margins import MOST_PAIRS, least_squares_kurtosis
from hushcube.designs.lattice.spaces import SpaceErrors
from hushcube.designs.stacked.pool import Pool
from hushcube.lattice import helmert
from hushcube.lattice.basis import kernel, precisions
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal, position_rows, subsets
from hushcube.model.noise import GAUSSIAN, Measurement, standard_margin

if TYPE_CHECKING:
    from hushcube.designs.stacked.design import StackedDesign


def space_precisions(pools: Sequence[Pool], spaces: Family, *, exact: bool) -> Floats:
    """1 / v_C of each space: zero where nothing was measured of it, infinite where it is known exactly.

    What sets with uneven coefficients say of their own spaces comes on top, coefficient by coefficient.
    """
    result = np.zeros(len(spaces))
    for pool in pools:
        variances = pool.variances(exact=exact)
        if exact:
            variances[list(pool.uneven)] = np.inf
        result += precisions(pool.basis, pool.measured, variances, spaces)
    return result


def estimates(pools: Sequence[Pool], measurement: Measurement, spaces: Family) -> Coefficients:
    """The coefficients of every space."""
    means = [pool.means(measurement) for pool in pools]
    if len(pools) == 1 and pools[0].basis.is_minimal:  # each space was measured in the basis of the coefficients
        return means[0]
    result, weights = Coefficients.zeros(spaces), list(map(_weights, pools))
    scale = np.sum([kernel(p.basis, p.measured, w, spaces) for p, w in zip(pools, weights, strict=True)], axis=0)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    for pool, mean, weight in zip(pools, means, weights, strict=True):
        shares = weight / pool.measured.cells
        for at, (batch, numbers) in enumerate(zip(pool.measured.batches, mean.blocks, strict=True)):
            for part in batch.parts(CHUNK):
                tables = pool.basis.adjoint(np.asarray(numbers[part], np.float64), batch.shape)
                result.add_tables(pool.measured.part(at, part), tables, shares[batch.ids[part]], inverse)
    _add_uneven(pools, means, result)
    for total in (total for pool in pools for total in pool.public_totals(measurement)):
        result.blocks[0][...] = total
    return result


def _weights(pool: Pool) -> Floats:
    """1 / variance of each set that is combined with others; zero for what is public."""
    variances = pool.variances(exact=True)
    variances[[*np.flatnonzero(pool.public), *pool.uneven]] = np.inf
    return np.asarray(1 / variances)


def _add_uneven(pools: Sequence[Pool], means: Sequence[Coefficients], result: Coefficients) -> None:
    """Combine the coefficients one by one where their variances are uneven: moved by the share of what is added."""
    known = space_precisions(pools, result.spaces, exact=True)
    for pool, mean in zip(pools, means, strict=True):
        sets = list(pool.measured)
        for at, own in pool.uneven.items():
            rows, space = position_rows(sets[at]), result.spaces.ids([sets[at]])
            before, said = result.gather(rows), mean.gather(rows)
            if before is not None and said is not None:
                result.add(space, (said - before) * (own / (known[space[0]] + own)))


class StackedErrors(SpaceErrors):
    """Variances of residual spaces of which several layers say something."""

    design: StackedDesign

    @kept
    def space_variances(self, *, exact: bool) -> Floats:
        """v_C for each residual space of the workload."""
        spaces = self.design.request.spaces
        with np.errstate(divide="ignore"):
            result = 1 / space_precisions(self.design.pools, spaces, exact=exact)
        for B in self._uneven if exact else ():
            if (at := spaces.ids([B])[0]) >= 0:
                result[at] = np.mean(self._uneven[B] / helmert.residual_norms(self.design.schema.shape(B)))
        return result

    @cached_property
    def _uneven(self) -> dict[Marginal, Floats]:
        """The spaces with uneven coefficients, and the variances of these."""
        pool = next((pool for pool in self.design.pools if pool.uneven), None)
        if pool is None:
            return {}
        sets, schema = list(pool.measured), self.design.schema
        spaces = Family.of([sets[at] for at in pool.uneven], schema.sizes)
        even = dict(zip(spaces, space_precisions(self.design.pools, spaces, exact=True).tolist(), strict=True))
        added = {sets[at]: own for at, own in pool.uneven.items()}
        return {B: helmert.residual_norms(schema.shape(B)) / (even[B] + own) for B, own in added.items()}

    def uneven_variances(self, B: Marginal) -> Floats | None:
        """The true variances of the coefficients of a space, where they are uneven."""
        return self._uneven.get(B)

    def is_uneven(self, marginal: Marginal) -> bool:
        """Whether some space of a table is."""
        return any(B in self._uneven for B in subsets(marginal)) if self._uneven else False

    @property
    def cells_are_alike(self) -> bool:
        """All cells are, but for Helmert coefficients with very small discrete noise."""
        return not self._uneven

    @cached_property
    def margins(self) -> Floats:
        """Margins of cells."""
        pairs = zip(self.design.request.marginals, np.sqrt(self.exact_cell_variances), strict=True)
        return np.array([float(self.cell_margin(marginal, deviation)) for marginal, deviation in pairs])

    def cell_margin(self, marginal: Marginal, deviations: Floats) -> Floats:
        """Margins of the cells of a table: under Laplace noise by their kurtosis, where tables of counts were measured.

        Elsewhere by the largest kurtosis, that of one Laplace term, which is safe.        [designs/lattice/margins.py]
        """
        if self.design.law is GAUSSIAN or not np.any(deviations):
            return self.normal_margin(deviations)
        return deviations * standard_margin(round(self._kurtosis(marginal), 2), COVERAGE)

    def _kurtosis(self, marginal: Marginal) -> float:
        pool, *others = self.design.pools
        pairs = len(self.design.request.marginals) * len(pool.measured)
        if others or not pool.basis.holds_cells or pairs > MOST_PAIRS:
            return self.design.law.tail_kurtosis
        variances = pool.variances(exact=True)
        return least_squares_kurtosis(marginal, pool.measured, _weights(pool), variances, pool.kurtosis)
