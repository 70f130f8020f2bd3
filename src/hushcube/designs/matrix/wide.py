"""Designs that measure sparse rows over a large table, by a small design over the classes of its cells.

The small design is over a table of one attribute, with a value for each class; its queries are all answers of this one.
                                                                                             [designs/matrix/classes.py]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hushcube.costs.row_cost import cost_of_rows
from hushcube.designs.answers import Answers
from hushcube.designs.errors import Along, Errors, kept
from hushcube.designs.matrix.classes import Asked, Classes, Lifted, classes_of
from hushcube.designs.matrix.design import MAX_CELLS, MatrixDesign, pair_products
from hushcube.designs.matrix.row_space import positions
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import PlanError
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.form import Form, GroupTable
from hushcube.model.noise import Measurement
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload


def over_classes(request: Request, rows: SparseRows, classes: Classes) -> Request:
    """A request for some rows over the classes."""
    schema = Schema((Attribute(name="class", codes=len(classes)),))
    asked = QueryTable((0,), tuple(schema.attributes), rows)
    workload = Workload(schema, ("queries",), (), (), (asked,), (1.0,))
    return Request(workload, request.privacy, objective=request.objective, effort=request.effort)


@dataclass(frozen=True, eq=False, repr=False)
class WideMatrixDesign(MatrixDesign, kind="wide-matrix"):
    """Rows over the cells of a large marginal that fall into few classes."""

    most_cells: ClassVar[int] = MAX_TABLE_CELLS

    @cached_property
    def classes(self) -> Classes:
        """Which cells the rows cannot tell apart."""
        return classes_of(self.rows)

    @cached_property
    def lifted(self) -> Lifted:
        """All answers, over the classes."""
        found = Lifted.of(self.workload, self.marginal, self.classes)
        if isinstance(found, str):
            raise PlanError("plan, rows", f"cannot answer {found}", "plan again")
        return found

    @cached_property
    def small(self) -> MatrixDesign:
        """The design over the classes."""
        request = over_classes(self.request, self.lifted.rows, self.classes)
        decision = (self.strategy, self.budget_rule, self.recovery, self.proof, self.budgets)
        return MatrixDesign(request, *decision, (0,), self.classes.rows, self.group_of)

    def row_cost(self, budgets: Floats) -> Fraction:
        """The cost of one row of data: that of the distinct columns."""
        return cost_of_rows(self.classes.rows, np.array(self.group_of), budgets, self.privacy)

    @cached_property
    def errors(self) -> WideErrors:  # type: ignore[override] # of the same answers, in another way
        """Predicted errors."""
        return WideErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """All answers at once, from those of the small design."""
        small, [asked] = self.small, self.small.workload.forms
        found: Any = small.make_answers(measurement)
        if self.recovery == "none":
            return WideAnswers(self, found.form(asked))
        table = found.tables(np.zeros((1, 1), np.int32), (len(self.classes),))[0]
        return WideAnswers(self, asked.evaluate(table))

    def is_answerable(self) -> bool:
        """Whether the small design can answer everything; it is checked when it is made."""
        return len(self.classes) <= MAX_CELLS and self.small.is_answerable()

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {**super().specification(), "design": "wide-matrix"}


@dataclass(frozen=True, eq=False)
class WideAnswers:
    """Parts of the vector of all answers."""

    design: WideMatrixDesign
    values: Floats

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of published marginals of one shape."""
        places = self.design.lifted.places
        return np.stack([self.values[places[tuple(row)]] for row in rows.tolist()]).reshape(len(rows), *shape)

    def form(self, form: Form) -> Floats:
        """The answers of a form."""
        return self.values[self.design.lifted.places[form]].reshape(form.shape)


class WideErrors(Errors):
    """Variances of the small design's queries, and of sums of them."""

    design: WideMatrixDesign

    @kept
    def _answers(self, *, exact: bool) -> Floats:
        """The variance of every answer."""
        small = self.design.small
        return small.errors.form_variances(small.workload.forms[0], exact=exact)

    def _of(self, asked: Asked, *, exact: bool) -> Floats:
        return np.asarray(self._answers(exact=exact)[self.design.lifted.places[asked]])

    def _sums(self, marginal: Marginal, weights: Floats) -> Floats:
        """The exact variances of weighted sums of the cells of a published marginal; one sum for each line."""
        design, small = self.design, self.design.small
        place, [asked] = design.lifted.places[marginal], small.workload.forms
        if design.recovery == "none":
            at, factor = small.matches.form(small.schema, small.marginal, asked)
            used = np.zeros((len(weights), len(design.rows)))
            np.add.at(used.T, at[place], (weights * factor[place]).T)
            return np.asarray(used**2 @ small.errors.row_variances(exact=True))
        queries = weights @ design.lifted.rows.dense()[place]
        found = np.einsum("qi,qi->q", queries @ small.errors.covariance(exact=True), queries)
        return np.asarray(np.maximum(found, 0.0))

    def cell_variances(self, *, exact: bool) -> Floats:
        """NaN for a marginal that only carries queries."""
        places = self.design.lifted.places
        marginals = self.design.request.marginals
        return np.array([self._of(A, exact=exact).mean() if A in places else math.nan for A in marginals])

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Those of its answers."""
        if isinstance(form, GroupTable):
            found = self.covariances(form.marginal, form.members, [None] * len(form.members))
            return np.maximum(found, 0.0).reshape(form.shape)
        return self._of(form, exact=exact).reshape(form.shape)

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        """Those of the small design's queries."""
        design, small = self.design, self.design.small
        place, [asked], shape = design.lifted.places[marginal], small.workload.forms, design.schema.shape(marginal)
        if design.recovery == "none":
            at, factor = small.matches.form(small.schema, small.marginal, asked)
            used = np.zeros((len(at[place]), len(design.rows)))
            used[np.arange(len(used)), at[place]] = factor[place]
            weighed = used * small.errors.row_variances(exact=True)
        else:
            used = design.lifted.rows.dense()[place]
            weighed = used @ small.errors.covariance(exact=True)
        return pair_products(weighed.reshape(*shape, -1), used.reshape(*shape, -1), rows, totals)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The variance of a weighted sum of cells."""
        return float(self._sums(marginal, weights.reshape(1, -1))[0])

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """Of a published table, or of one summed from the smallest that contains it."""
        schema, published = self.design.schema, self.design.workload.published
        if marginal in published:
            return self._of(marginal, exact=True).reshape(schema.shape(marginal))
        source = min((m for m in published if set(marginal) <= set(m)), key=lambda m: (schema.cells(m), m))
        inside = positions(schema, source, marginal) == np.arange(schema.cells(marginal))[:, None]
        return self._sums(source, inside.astype(np.float64)).reshape(schema.shape(marginal))
