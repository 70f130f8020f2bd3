"""Designs that measure the integer rows of any matrix over the cells of one small table.

Rows share a budget within a group; every number gets noise of its own. What the rows cost is in costs/row_cost.py, what
they can answer in row_space.py. Without recovery a query is answered by the first row that is a multiple of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.costs.row_cost import cost_of_rows
from hushcube.designs.answers import Answers, OneByOne, summed
from hushcube.designs.block import Block
from hushcube.designs.design import Design, read_marginal
from hushcube.designs.matrix.errors import MatrixErrors
from hushcube.designs.matrix.row_space import Matches, RowSpace, outside, row_space
from hushcube.errors import PlanError
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, position_rows
from hushcube.model.form import Form
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows, integer_problem
from hushcube.model.schema import Schema

MAX_CELLS: Final = 4_096
"""Dense algebra: a few matrices of this size are held."""


@dataclass(frozen=True, eq=False)
class RowSums:
    """Sums of a table's cells, each times the integer that a row has there."""

    rows: SparseRows

    def apply(self, tables: Ints) -> Ints:
        """One number for each row."""
        columns, values, row_of = self.rows.arrays
        numbers = np.zeros(len(self.rows), dtype=np.int64)
        np.add.at(numbers, row_of, values.astype(np.int64) * tables.reshape(-1)[columns])  # at most 2^16 * 2^34 rows
        return numbers


@dataclass(frozen=True, eq=False, repr=False)
class MatrixDesign(Design, kind="matrix"):
    """Rows over the cells of a marginal, in groups with a budget each."""

    marginal: Marginal
    rows: SparseRows
    group_of: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.schema.cells(self.marginal) != self.rows.width or not 0 < self.rows.width <= MAX_CELLS:
            raise PlanError("plan, marginal", "does not fit the rows", "plan again")
        if not all(set(needed) <= set(self.marginal) for needed in self.request.marginals):
            raise PlanError("plan, marginal", "does not hold the workload's attributes", "plan again")
        if len(self.group_of) != len(self.rows) or set(self.group_of) != set(range(len(self.budgets))):
            raise PlanError("plan, group_of", "does not fit the rows and budgets", "plan again")
        if problem := integer_problem(self.rows):
            raise PlanError("plan, rows", problem[0], "plan again")
        super().__post_init__()

    def blocks(self) -> Iterator[Block]:
        """All rows together."""
        groups = np.array(self.group_of, dtype=np.int64)
        yield Block(position_rows(self.marginal), RowSums(self.rows), groups, self.row_budgets, columns=1)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One number for each row."""
        return [(len(self.rows),)]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.rows):,} row(s) of a matrix over {self.schema.describe(self.marginal)}"

    @property
    def row_budgets(self) -> Floats:
        """The budget of each row."""
        return np.asarray(self.budgets[np.array(self.group_of)])

    @property
    def public(self) -> Bools:
        """Rows that are published exactly."""
        return ~np.isfinite(self.row_budgets)

    @property
    def space(self) -> RowSpace:
        """What the rows can answer."""
        return row_space(self.rows, tuple(self.public.tolist()))

    @cached_property
    def matches(self) -> Matches:
        """Which rows answer queries without recovery."""
        return Matches(self.rows)

    def row_cost(self, budgets: Floats) -> Fraction:
        """The cost of one row of data, never understated."""
        return cost_of_rows(self.rows, np.array(self.group_of), budgets, self.privacy)

    def proof_variance(self) -> float:
        """What the proof by smoothing adds."""
        return smoothing(self.rows, self.privacy)

    @cached_property
    def errors(self) -> MatrixErrors:
        """Predicted errors."""
        return MatrixErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """One table by least squares, or each answer by its own row."""
        numbers = measurement.values[0].astype(np.float64)
        return MatchedRows(self, numbers) if self.recovery == "none" else least_squares(self, numbers)

    def is_answerable(self) -> bool:
        """Whether every published table is in the row space or, without recovery, among the rows."""
        if self.recovery == "none":
            return self.matches.missing(self.workload, self.marginal) is None
        return outside(self.space, self.workload, self.marginal) is None

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        own = {"marginal": list(self.marginal), "rows": self.rows.to_dict(), "group_of": list(self.group_of)}
        return {"design": "matrix", **own}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The rows and their groups from the JSON form."""
        marginal, rows = read_marginal(raw["marginal"], schema), SparseRows.from_dict(raw["rows"])
        return {"marginal": marginal, "rows": rows, "group_of": tuple(map(int, raw["group_of"]))}


def smoothing(rows: SparseRows, privacy: Privacy) -> float:
    """t²: a row of data moves as many numbers as its column has entries."""
    touched = np.bincount(rows.arrays[0], minlength=rows.width).max(initial=0)
    return calibrate.smoothing_variance(privacy, float(touched))


def least_squares(design: MatrixDesign, numbers: Floats) -> Answers:
    """Sums of the table H z, which holds what the rows can answer; its cells alone may mean nothing."""
    table = (design.errors.recovery_matrix(exact=True) @ numbers).reshape(design.schema.shape(design.marginal))
    return OneByOne(lambda marginal: summed(table, design.marginal, marginal))


@dataclass(frozen=True, eq=False)
class MatchedRows:
    """Each answer from the row that is a multiple of it."""

    design: MatrixDesign
    numbers: Floats

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        design = self.design
        found = [design.matches.table(design.schema, design.marginal, tuple(row)) for row in rows.tolist()]
        return np.stack([self.numbers[at] * factor for at, factor in found]).reshape(len(rows), *shape)

    def form(self, form: Form) -> Floats:
        """The answers of a form."""
        at, factor = self.design.matches.form(self.design.schema, self.design.marginal, form)
        return (self.numbers[at] * factor).reshape(form.shape)
