"""What a face should be near: the unbiased tables, as coefficients, in the norm of the published total squared error.

The distance of consistent tables y from the unbiased ones z is

    2 f(y)  =  sum_A  a_A ||y_A - z_A||²,         a_A the weight of table A in the workload (1 for carriers of ranges,
                                                  for queries what they ask of each residual space),

and diagonal over the residual spaces: 2 f = sum_C K_C cells(C) ||coefficients_C(y - z)||² / row norms + what the
unbiased tables disagree among themselves.                                                        [lattice/basis.py]

Why this norm: the true tables are consistent, non-negative and satisfy all facts. They lie in the convex set onto
which z is projected, and a projection never moves away from a point of the set: in this norm, which is the total
squared error itself, the nearest tables are at most as far from the truth as the unbiased ones, in every single draw.

l1 and linf are near to noisy tables instead: the measured ones, or the answers where no tables were measured. With
`near=answers` they are near to the first answers y⁰ of a plan, which each table asked for has from its own numbers
alone, as printed.                                                             [Yaroslavtsev et al. 2013, III-C, IV-C]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

import numpy as np

from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import Request
from hushcube.errors import FactsError
from hushcube.faces.atoms import fixed_cells
from hushcube.faces.value import Near, Weights
from hushcube.lattice.basis import dimensions
from hushcube.lattice.coefficients import Coefficients, Weighed, combine
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.facts import Facts
from hushcube.model.noise import Measurement


@dataclass(frozen=True, eq=False)
class Target(Weighed):
    """The unbiased tables."""

    known: tuple[Marginal, ...] = ()  # tables in which public facts fix cells

    @classmethod
    def of(cls, design: Design, answers: Answers, known: Sequence[Marginal] = ()) -> Target:
        """The published tables of a plan and the carriers of its forms; tables that only facts name weigh nothing."""
        request = design.request.as_asked
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
        inside = {part for marginal in self.spaces if marginal for part in combinations(marginal, len(marginal) - 1)}
        return Family.of([m for m in self.tables if m not in inside or m in self.known], self.tables.sizes)

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
    wanted = request.space_weights / np.maximum(dimensions(request.spaces), 1.0)
    shares: dict[frozenset[int], float] = {}  # a_A / cells(A)
    for C, own in reversed(list(zip(map(frozenset, request.spaces), wanted.tolist(), strict=True))):
        shares[C] = max(own - sum(share for big, share in shares.items() if big > C), 0.0)
    weights = zip(request.spaces, request.spaces.cells.tolist(), strict=True)
    return {C: shares[frozenset(C)] * cells for C, cells in weights if shares[frozenset(C)] > 0}


@dataclass(frozen=True, eq=False)
class Observed(Weighed):
    """Noisy tables."""

    fixed: Sequence[Floats] | None = None  # where public facts fix cells: their values, NaN elsewhere

    def least_squares(self, spaces: Family) -> Coefficients:
        """The coefficients of the nearest consistent tables in l2."""
        return combine(self.tables, self.values, self.weights**2, spaces)

    def with_facts(self, facts: Facts) -> Observed:
        """Tables with known cells join the others, with next to no weight of their own."""
        fixed, extra = fixed_cells(facts, self.tables)
        if unseen := [m for m in extra if self.tables.closure.ids([m])[0] < 0]:
            problem = f"{facts.schema.describe(unseen[0])} is part of no measured table"
            raise FactsError("facts", problem, "use the norm l2, or declare facts about the tables of the release")
        if not extra:
            return replace(self, fixed=fixed)
        wider = Family.of([*self.tables, *extra], self.tables.sizes)
        weights = np.full(len(wider), 1e-3 * float(self.weights.min()))
        weights[wider.ids(self.tables)] = self.weights
        found, ids = self.least_squares(wider.closure), {batch.shape: batch.ids for batch in wider.batches}
        values = {batch.shape: found.tables(batch.rows, batch.shape) for batch in wider.batches}
        for own, given in zip(self.tables.batches, self.values, strict=True):
            values[own.shape][np.searchsorted(ids[own.shape], wider.find(own.rows))] = given
        return Observed(wider, list(values.values()), weights, fixed_cells(facts, wider).batches)


def observed_tables(design: Design, near: Near = "measured") -> Family:
    """Which tables they are."""
    measured = design.measured_tables if near == "measured" else None
    return design.request.marginals if measured is None else measured


def observe(
    design: Design, measurement: Measurement, answers: Answers, weights: Weights, near: Near = "measured"
) -> Observed:
    """The tables with weights: equal, or the reciprocals of the standard deviations."""
    family = observed_tables(design, near)
    if near == "answers" and isinstance(design, LatticeDesign):
        design = design.recovered_by("none")
        answers = design.make_answers(measurement)
    if near == "measured" and design.measured_tables is not None:
        values = [numbers.astype(np.float64) for numbers in measurement.values]
        deviations = np.sqrt(design.errors.drawn_variances(exact=True))
    else:
        values = [answers.tables(batch.rows, batch.shape) for batch in family.batches]
        deviations = np.sqrt(design.errors.exact_cell_variances)
    if weights == "equal":
        return Observed(family, values, np.ones(len(family)))
    known = deviations > 0  # what is exact weighs as much as the most precise of the others; facts make it exact
    return Observed(family, values, 1 / np.where(known, deviations, deviations[known].min(initial=1.0)))
