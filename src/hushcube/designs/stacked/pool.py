"""Everything that layers measured in one basis, as if each set had been measured once.

Of z_1, z_2, ..., the same number measured with independent noise of variances v_1, v_2, ..., the mean

    z = sum_j z_j / v_j  /  sum_j 1/v_j,          1 / variance = sum_j 1/v_j                         [docs/maths.md, 12]

says all that they say: least squares over it is least squares over all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from hushcube.designs.lattice.design import FamilyDesign
from hushcube.designs.lattice.spaces import helmert_coefficient_variances, set_variances, uneven_sets
from hushcube.lattice import helmert
from hushcube.lattice.basis import Basis
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import Measurement


@dataclass(frozen=True, eq=False)
class Pool:
    """Layers of one basis, each with the number of its first array in a measurement."""

    basis: Basis
    layers: tuple[tuple[int, FamilyDesign], ...]

    @classmethod
    def each(cls, layers: Sequence[FamilyDesign]) -> tuple[Self, ...]:
        """One for each basis that occurs."""
        starts = np.cumsum([0, *(len(layer.shapes) for layer in layers)]).tolist()
        own: dict[str, list[tuple[int, FamilyDesign]]] = {}
        for start, layer in zip(starts, layers, strict=False):
            own.setdefault(layer.basis.name, []).append((start, layer))
        return tuple(cls(found[0][1].basis, tuple(found)) for found in own.values())

    @cached_property
    def measured(self) -> Family:
        """The sets that some layer measured."""
        families = [layer.measured for _, layer in self.layers]
        return Family.of({marginal for family in families for marginal in family}, families[0].sizes)

    @cached_property
    def places(self) -> tuple[Ints, ...]:
        """The number here of each set of each layer."""
        return tuple(self.measured.ids(layer.measured) for _, layer in self.layers)

    @cached_property
    def public(self) -> Bools:
        """The sets that are measured without noise."""
        return self._added(self._public) > 0

    def variances(self, *, exact: bool) -> Floats:
        """Of the mean of what all layers say of each set; zero where it is public."""
        with np.errstate(divide="ignore"):
            return np.where(self.public, 0.0, 1 / self._added(self._precisions(exact=exact)))

    @cached_property
    def kurtosis(self) -> Floats:
        """sum_j (variance / v_j)²: the fourth cumulant of the mean, relative to that of one draw of its variance."""
        with np.errstate(divide="ignore", invalid="ignore"):
            precisions = self._precisions(exact=True)
            found = self._added([own**2 for own in precisions]) / self._added(precisions) ** 2
        return np.where(self.public, 0.0, found)

    @cached_property
    def _shares(self) -> tuple[Floats, ...]:
        """What the numbers of each layer's sets weigh in the mean; what is public is the same in every layer."""
        variances, known = self.variances(exact=True), self._added(self._public)
        shares = []
        for places, own, public in zip(self.places, self._precisions(exact=True), self._public, strict=True):
            with np.errstate(divide="ignore", invalid="ignore"):
                shares.append(np.where(self.public[places], public / known[places], variances[places] * own))
        return tuple(shares)

    def _precisions(self, *, exact: bool) -> list[Floats]:
        """Of each layer's sets; infinite where they are public."""
        with np.errstate(divide="ignore"):
            return [1 / set_variances(layer, exact=exact) for _, layer in self.layers]

    @property
    def _public(self) -> list[Floats]:
        return [np.isinf(layer.budgets).astype(np.float64) for _, layer in self.layers]

    def _added(self, values: Sequence[Floats]) -> Floats:
        result = np.zeros(len(self.measured))
        for places, own in zip(self.places, values, strict=True):
            result[places] += own
        return result

    @cached_property
    def uneven(self) -> dict[int, Floats]:
        """The sets with uneven coefficients in some layer: for each coefficient h / variance, h its squared norm."""
        tiny = self._added([uneven_sets(layer).astype(np.float64) for _, layer in self.layers]) > 0
        found: dict[int, Floats] = {}
        for (_, layer), places in zip(self.layers, self.places, strict=True):
            for number in np.flatnonzero((tiny & ~self.public)[places]).tolist():
                at = int(places[number])
                found[at] = found.get(at, np.zeros(())) + self._uneven(layer, number)
        return found

    @staticmethod
    def _uneven(layer: FamilyDesign, number: int) -> Floats:
        """What one layer says of such a set."""
        shape = layer.schema.shape(list(layer.measured)[number])
        variances = helmert_coefficient_variances(0.5 / float(layer.budgets[number]), shape)
        return np.asarray(helmert.residual_norms(shape) / variances)

    def public_totals(self, measurement: Measurement) -> list[int]:
        """The number of people, as often as a layer measured it without noise."""
        found: list[int] = []
        for start, layer in self.layers:
            for number, batch in enumerate(layer.measured.batches):
                public = np.isinf(layer.budgets[batch.ids])
                own = measurement.values[start + number][public]
                found += own.reshape(len(own), -1).sum(axis=1).tolist() if own.size else []
        return found

    def means(self, measurement: Measurement) -> Coefficients:
        """The mean of what all layers measured of each set, in the basis."""
        shapes = ((len(b.ids), *map(self.basis.rows, b.shape)) for b in self.measured.batches)
        result = Coefficients(self.measured, tuple(map(np.zeros, shapes)))
        for (start, layer), places, shares in zip(self.layers, self.places, self._shares, strict=True):
            for number, batch in enumerate(layer.measured.batches):
                numbers = measurement.values[start + number].astype(np.float64)
                said = numbers * shares[batch.ids].reshape(-1, *[1] * len(batch.shape))
                for line in np.flatnonzero(np.isin(places[batch.ids], list(self.uneven))).tolist():
                    own = int(batch.ids[line])
                    said[line] = numbers[line] * (self._uneven(layer, own) / self.uneven[int(places[own])])
                result.add(places[batch.ids], said)
        return result
