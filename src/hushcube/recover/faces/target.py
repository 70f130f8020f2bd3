"""What a face should be near: the unbiased tables, as coefficients, in the norm of the published total squared error.

The distance of consistent tables y from the unbiased ones z is

    2 f(y)  =  sum_A  a_A ||y_A - z_A||²,         a_A the weight of table A in the workload (1 where none is given),

and diagonal over the residual spaces: 2 f = sum_C K_C cells(C) ||coefficients_C(y - z)||² / row norms + what the
unbiased tables disagree among themselves.                                                    [lattice/variances.py]

Why this norm: the true tables are consistent, non-negative and satisfy all facts. They lie in the convex set onto
which z is projected, and a projection never moves away from a point of the set: in this norm, which is the total
squared error itself, the nearest tables are at most as far from the truth as the unbiased ones, in every single draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.lattice.variances import kernel
from hushcube.model.marginal import Marginal
from hushcube.plan.plan import Plan
from hushcube.recover.coefficients import Coefficients
from hushcube.recover.kinds import Answers
from hushcube.recover.least_squares import combine

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Target:
    """Unbiased tables: the family, values for each batch of it, and the weight of each table."""

    tables: Family
    values: tuple[Floats, ...]
    weights: Floats
    known: tuple[Marginal, ...] = ()
    """Tables in which public facts fix cells."""

    @classmethod
    def of(cls, plan: Plan, answers: Answers, known: Sequence[Marginal] = ()) -> Target:
        """The published tables of a plan and the carriers of its forms; tables that only facts name weigh nothing."""
        request = plan.request
        tables = request.marginals
        if missing := [marginal for marginal in known if tables.ids([marginal])[0] < 0]:
            tables = Family.of([*tables, *missing], tables.sizes)
        values = tuple(answers.tables(batch.rows, batch.shape) for batch in request.marginals.batches)
        given = np.where(request.weights > 0, request.weights, 1.0)
        if tables is request.marginals:
            return cls(tables, values, given, tuple(known))
        found = combine(request.marginals, values, given, tables.closure)
        weights = np.full(len(tables), 0.0)
        weights[tables.ids(request.marginals)] = given
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
