"""What a face should be near: the unbiased tables, as coefficients, in the norm of the published total squared error.

The distance of consistent tables y from the unbiased ones z is

    2 f(y)  =  sum_A  a_A ||y_A - z_A||²,         a_A the weight of table A in the workload (1 for carriers of ranges,
                                                  for queries what they ask of each residual space),

and diagonal over the residual spaces: 2 f = sum_C K_C cells(C) ||coefficients_C(y - z)||² / row norms + what the
unbiased tables disagree among themselves.                                                    [lattice/variances.py]

Why this norm: the true tables are consistent, non-negative and satisfy all facts. They lie in the convex set onto
which z is projected, and a projection never moves away from a point of the set: in this norm, which is the total
squared error itself, the nearest tables are at most as far from the truth as the unbiased ones, in every single draw.

l1 and linf are near to noisy tables instead: the measured ones, or the answers where no tables were measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.designs.request import Request
from hushcube.errors import FactsError
from hushcube.faces.facts import fixed_cells
from hushcube.faces.value import Weights
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.lattice.projection import combine
from hushcube.lattice.variances import dimensions, kernel
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.facts import Facts
from hushcube.model.noise import Measurement


@dataclass(frozen=True, eq=False)
class Target:
    """Unbiased tables: the family, values for each batch of it, and the weight of each table."""

    tables: Family
    values: tuple[Floats, ...]
    weights: Floats
    known: tuple[Marginal, ...] = ()
    """Tables in which public facts fix cells."""

    @classmethod
    def of(cls, design: Design, answers: Answers, known: Sequence[Marginal] = ()) -> Target:
        """The published tables of a plan and the carriers of its forms; tables that only facts name weigh nothing."""
        request = design.request
        values = tuple(answers.tables(batch.rows, batch.shape) for batch in request.marginals.batches)
        if request.workload.queries is None:
            given = np.where(request.weights > 0, request.weights, 1.0)
            weighed = dict(zip(request.marginals, given.tolist(), strict=True))
        else:
            given = np.maximum(request.weights, request.least_weights)
            weighed = _query_weights(request)
        listed = dict.fromkeys((*request.marginals, *weighed, *known))
        if len(listed) == len(request.marginals):
            return cls(request.marginals, values, given, tuple(known))
        tables = Family.of(listed, request.marginals.sizes)
        found = combine(request.marginals, values, given, tables.closure)
        weights = np.zeros(len(tables))
        weights[tables.ids(weighed)] = list(weighed.values())
        return cls(tables, tuple(found.tables(b.rows, b.shape) for b in tables.batches), weights, tuple(known))

    @cached_property
    def kernel(self) -> Floats:
        """K_C for each residual space; zero where only a fact mentions it."""
        return kernel(MARGINAL, self.tables, self.weights, self.spaces)

    @property
    def spaces(self) -> Family:
        """The residual spaces that the tables see."""
        return self.tables.closure

    @cached_property
    def coefficients(self) -> Coefficients:
        """Those of the consistent tables nearest to the values."""
        return combine(self.tables, self.values, self.weights, self.spaces)

    @cached_property
    def largest(self) -> Family:
        """The tables that no other contains (if they are non-negative, all are), and those with known cells."""
        listed = list(self.tables)
        sets = [frozenset(marginal) for marginal in listed]
        inside = {
            frozenset(marginal[:k] + marginal[k + 1 :])
            for marginal in self.tables.closure
            for k in range(len(marginal))
        }
        kept = [m for m, s in zip(listed, sets, strict=True) if s not in inside or m in self.known]
        return Family.of(kept, self.tables.sizes)

    @property
    def total(self) -> float:
        """The unbiased number of people."""
        return float(np.asarray(self.coefficients.blocks[0]).reshape(-1)[0])

    def distance(self, tables: Answers) -> float:
        """2 f: the weighted total of squared differences from the unbiased tables."""
        result = 0.0
        for batch, values in zip(self.tables.batches, self.values, strict=True):
            difference = (tables.tables(batch.rows, batch.shape) - values).reshape(len(batch.ids), -1)
            result += float(self.weights[batch.ids] @ (difference**2).sum(axis=1))
        return result


def _query_weights(request: Request) -> dict[Marginal, float]:
    """Weights of tables for which K_C is what queries ask of space C, per dimension, and nowhere less.

    Queries say little about single cells, or nothing; the tables that they sum must not be near to noise that nobody
    looks at. From the largest sets down, each gets what its own space lacks: sum_{A >= C} a_A / cells(A) >= K_C.
    """
    spaces = request.spaces
    wanted = request.space_weights / np.maximum(dimensions(spaces), 1.0)
    sets = [frozenset(C) for C in spaces]
    result: dict[int, float] = {}
    cells = spaces.cells.tolist()
    for at in reversed(range(len(spaces))):
        have = sum(weight / cells[big] for big, weight in result.items() if sets[at] < sets[big])
        result[at] = max(float(wanted[at]) - have, 0.0) * cells[at]
    listed = list(spaces)
    return {listed[at]: weight for at, weight in result.items() if weight > 0}


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
    return design.request.marginals if design.measured_tables is None else design.measured_tables


def observe(design: Design, measurement: Measurement, answers: Answers, weights: Weights) -> Observed:
    """The tables with weights: equal, or the reciprocals of the standard deviations."""
    family = observed_tables(design)
    if design.measured_tables is not None:
        values = [numbers.astype(np.float64) for numbers in measurement.values]
        deviations = np.sqrt(design.errors.drawn_variances(exact=True))
    else:
        values = [answers.tables(batch.rows, batch.shape) for batch in family.batches]
        deviations = np.sqrt(design.errors.exact_cell_variances)
    if weights == "equal":
        return Observed(family, values, np.ones(len(family)))
    known = deviations > 0  # what is exact weighs as much as the most precise of the others; facts make it exact
    return Observed(family, values, 1 / np.where(known, deviations, deviations[known].min(initial=1.0)))
