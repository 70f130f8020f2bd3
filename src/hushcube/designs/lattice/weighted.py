"""Tables as weighted sums of measured tables, with weights of the user's own.         [designs/weights.py]

Term i of the answer A is the measured table M_i, summed to S_i and spread out evenly over the cells of A:

    A^ = sum_i w_i  spread_A( sum_{S_i}( z_{M_i} ) ),        S_i inside M_i and inside A

Spreading and summing back changes nothing, so that along the residual space C of A only the terms with S_i >= C count:

    coefficient_C(A^) = sum_M W_CM coefficient_C(z_M),       W_CM = sum of w_i over the terms from M with S_i >= C

It is unbiased if, and only if, sum_M W_CM = 1 for every C <= A; that is checked in fractions. Parts of one table's
noise in different residual spaces are uncorrelated, and tables have independent noise, so that, however terms share it,

    v_C(A) = sum_M W_CM² variance_M cells(M) / cells(C)      in the units of lattice/basis.py, which has the rest.

The paper's half weights are `a: a=1/2, a*b=1/2; a*b: a*b=1, a=1, a*b>a=-1` for two bits: a cell of AB is the mean of
itself and of A less its sibling [Yaroslavtsev et al. 2013, introduction]. Answers need not agree with each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hushcube.designs.answers import Answers, OneByOne, summed
from hushcube.designs.errors import Errors, kept
from hushcube.designs.lattice.errors import LatticeErrors
from hushcube.designs.request import Request
from hushcube.designs.weights import SUMMED, Weights
from hushcube.errors import BadInput
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal, position_rows, subsets
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema
from hushcube.model.workload import tables_of

if TYPE_CHECKING:
    from hushcube.designs.lattice.design import LatticeDesign


@dataclass(frozen=True)
class Term:
    """A measured table, by its number, summed to some of its attributes, times a weight."""

    source: int
    summed: Marginal
    weight: Fraction


@dataclass(frozen=True, eq=False)
class Weighting:
    """The weights of a recovery, over the tables of a request and those that are measured."""

    request: Request
    measured: Family
    weights: Weights

    @cached_property
    def terms(self) -> dict[Marginal, list[Term]]:
        """The terms of each marginal of the request; one without weights is summed from the smallest that holds it."""
        marginals, measured, schema = self.request.marginals, self.measured, self.request.schema
        result = {}
        for word, weights in self.weights.rules:
            A = _table(word, schema)
            if marginals.ids([A])[0] < 0:
                raise _bad(f"{word} is given weights, but not asked for", "leave it out, or ask for it")
            result[A] = [self._term(A, word, text, weight) for text, weight in weights]
            self._check(A, word, result[A])
        holders, _ = measured.cheapest_holders(marginals, lambda pair: measured.cells[pair.big])
        for A, holder in zip(marginals, holders.tolist(), strict=True):
            if A not in result and holder < 0:
                raise _bad(f"no measured table contains {schema.describe(A)}", "give it weights, or measure it")
            result.setdefault(A, [Term(holder, A, Fraction(1))])
        return result

    def _term(self, A: Marginal, word: str, text: str, weight: Fraction) -> Term:
        schema = self.request.schema
        body, mark, target = text.partition(SUMMED)
        source = _table(body, schema)
        at = int(self.measured.ids([source])[0])
        if at < 0:
            raise _bad(f"{word} is given a weight of {body}, which is not measured", "give weights of measured tables")
        inside = _table(target, schema) if mark else tuple(i for i in A if i in source)
        if not set(inside) <= set(source) & set(A):
            problem = f"{text} cannot be a part of {word}: {target} is not inside both tables"
            raise _bad(problem, "sum a table to attributes that it shares with the answer")
        return Term(at, inside, weight)

    def _check(self, A: Marginal, word: str, terms: list[Term]) -> None:
        """Refuse an answer that would be biased."""
        schema = self.request.schema
        for C in reversed(subsets(A)):
            total = sum((term.weight for term in terms if set(C) <= set(term.summed)), Fraction(0))
            if total != 1 and all(schema.sizes[i] > 1 for i in C):
                of_part = f", of tables with {schema.describe(C)}," if set(C) != set(A) and C else ""
                problem = f"the weights of {word}{of_part} sum to {total}, and the answer would be biased"
                raise _bad(problem, "give weights that sum to 1 for the table and each of its parts")

    def shares(self, A: Marginal) -> Floats:
        """W_CM of one answer: the subsets C of A in their order, and the measured tables."""
        result = np.zeros((1 << len(A), len(self.measured)))
        for line, C in zip(result, subsets(A), strict=True):
            for term in self.terms[A]:
                if set(C) <= set(term.summed):
                    line[term.source] += float(term.weight)
        return result

    def variances(self, A: Marginal, variances: Floats) -> Floats:
        """v_C(A) for the subsets C of A in their order."""
        cells = np.array([self.request.schema.cells(C) for C in subsets(A)], np.float64)
        return np.asarray(self.shares(A) ** 2 @ (variances * self.measured.cells) / cells)

    def of_cells(self) -> Floats:
        """What a unit of variance of each measured table adds to a cell's of each marginal; (marginals, measured)."""
        schema = self.request.schema
        added = (self._squares(A, _dimensions(A, schema)) / schema.cells(A) ** 2 for A in self.request.marginals)
        return np.stack(list(added))

    def energies(self) -> Floats:
        """s_M, what a unit of variance of each measured table adds to the total error."""
        found = (self._squares(A, self.request.own_space_weights(A)) for A in self.request.marginals)
        return np.asarray(sum(found, np.zeros(len(self.measured))))

    def _squares(self, A: Marginal, of_space: Floats) -> Floats:
        return np.asarray(of_space @ self.shares(A) ** 2 * self.measured.cells)


class WeightedErrors(LatticeErrors):
    """Every answer has residual variances of its own. Margins are those of any combination of measured numbers."""

    @cached_property
    def weighting(self) -> Weighting:
        """The weights, checked."""
        return self.design.weighting

    def own_space_variances(self, marginal: Marginal, *, exact: bool) -> Floats:
        """v_C of one answer."""
        return self.weighting.variances(marginal, self.set_variances(exact=exact))

    @kept
    def cell_variances(self, *, exact: bool) -> Floats:
        """Of the cells of each marginal, which are alike."""
        return np.asarray(self.weighting.of_cells() @ self.set_variances(exact=exact))

    @cached_property
    def margins(self) -> Floats:
        """Margins of cells."""
        return self.any_margin(np.sqrt(self.exact_cell_variances))

    def cell_margin(self, marginal: Marginal, deviations: Floats) -> Floats:
        """Margins of the cells of a table."""
        return Errors.cell_margin(self, marginal, deviations)

    def sum_margin(self, marginal: Marginal, weights: Floats) -> float:
        """The margin of a weighted sum of cells."""
        return Errors.sum_margin(self, marginal, weights)


def weighted_answers(design: LatticeDesign, measurement: Measurement) -> Answers:
    """The weighted sums."""
    measured, sets = Coefficients(design.measured, measurement.values), list(design.measured)
    schema, terms = design.schema, design.weighting.terms

    def table(A: Marginal) -> Floats:
        result = np.zeros(schema.shape(A))
        for term in terms[A]:
            found = measured.gather(position_rows(sets[term.source]))
            if found is None:
                raise LookupError("a source is a measured set")
            part = summed(found[0], sets[term.source], term.summed)
            shape = [schema.sizes[i] if i in term.summed else 1 for i in A]
            result += part.reshape(shape) * (float(term.weight) * part.size / result.size)
        return result

    return OneByOne(table)


def _dimensions(A: Marginal, schema: Schema) -> Floats:
    """m_C of the subsets of A."""
    return np.array([math.prod(schema.sizes[i] - 1 for i in C) for C in subsets(A)], np.float64)


def _table(word: str, schema: Schema) -> Marginal:
    """The one table that a word names."""
    found = list(tables_of(word, schema))
    if len(found) != 1:
        raise _bad(f"{word} is not one table", "name each table by its attributes; the total is `0-way`")
    return found[0]


def _bad(problem: str, fix: str) -> BadInput:
    return BadInput("recovery", problem, fix)
