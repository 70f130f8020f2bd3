"""The noisy tables that l1 and linf are near to: the measured ones, or the answers where no tables were measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hushcube.designs import LatticeDesign
from hushcube.designs import errors as error
from hushcube.designs.answering import Answers
from hushcube.designs.design import Design
from hushcube.designs.lattice.errors import set_variances
from hushcube.designs.lattice.least_squares import combine
from hushcube.errors import FactsError
from hushcube.faces.facts import fixed_cells
from hushcube.faces.value import Weights
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.facts import Facts
from hushcube.model.measurement import Measurement


@dataclass(frozen=True, eq=False)
class Observed:
    """Noisy tables, an array (tables, *shape) for each batch, and the weight of each table."""

    tables: Family
    values: Sequence[Floats]
    weights: Floats
    fixed: Sequence[Floats] | None = None
    """Where public facts fix cells: their values, NaN elsewhere."""

    def least_squares(self, spaces: Family) -> Coefficients:
        """The coefficients of the nearest consistent tables in l2."""
        return combine(self.tables, self.values, self.weights**2, spaces)

    def with_facts(self, facts: Facts) -> Observed:
        """Tables with known cells join the others, with next to no weight of their own."""
        extra = fixed_cells(facts, self.tables).extra
        if unseen := [m for m in extra if self.tables.closure.ids([m])[0] < 0]:
            raise FactsError(
                "facts",
                f"{facts.schema.describe(unseen[0])} is part of no measured table",
                "use the norm l2, or declare facts about the tables of the release",
            )
        if not extra:
            return Observed(self.tables, self.values, self.weights, fixed_cells(facts, self.tables).batches)
        wider = Family.of([*self.tables, *extra], self.tables.sizes)
        weights = np.full(len(wider), 1e-3 * float(self.weights.min()))
        weights[wider.ids(self.tables)] = self.weights
        values = self._given(wider, self.least_squares(wider.closure))
        return Observed(wider, values, weights, fixed_cells(facts, wider).batches)

    def _given(self, wider: Family, found: Coefficients) -> Sequence[Floats]:
        """The values of the tables, and for those that joined what the others say."""
        by_shape = {batch.shape: (batch, block) for batch, block in zip(self.tables.batches, self.values, strict=True)}
        result = []
        for batch in wider.batches:
            block = found.tables(batch.rows, batch.shape)
            if batch.shape in by_shape:
                own, given = by_shape[batch.shape]
                block[np.searchsorted(batch.ids, wider.find(own.rows))] = given
            result.append(block)
        return result


def observed_tables(design: Design) -> Family:
    """Which tables they are."""
    if isinstance(design, LatticeDesign) and design.basis.name == "marginal":
        return design.measured
    return design.request.marginals


def observe(design: Design, measurement: Measurement, answers: Answers, weights: Weights) -> Observed:
    """The tables with weights: equal, or the reciprocals of the standard deviations."""
    family = observed_tables(design)
    if isinstance(design, LatticeDesign) and design.basis.name == "marginal":
        values = [numbers.astype(np.float64) for numbers in measurement.values]
        deviations = np.sqrt(set_variances(design, exact=True))
    else:
        values = [answers.tables(batch.rows, batch.shape) for batch in family.batches]
        deviations = np.sqrt(error.exact_cell_variances(design))
    if weights == "equal":
        return Observed(family, values, np.ones(len(family)))
    known = deviations > 0  # what is exact weighs as much as the most precise of the others; facts make it exact
    return Observed(family, values, 1 / np.where(known, deviations, deviations[known].min(initial=1.0)))
