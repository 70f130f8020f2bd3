"""The rows of a matrix: one table by least squares, from which all others are summed, or each answer by its own row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Floats
from hushcube.model.form import Form

if TYPE_CHECKING:
    from hushcube.designs.matrix.design import MatrixDesign


class LeastSquaresTable:
    """Sums of the table H z, which holds what the rows can answer; its cells alone may mean nothing."""

    def __init__(self, design: MatrixDesign, numbers: Floats) -> None:
        self._marginal = design.marginal
        self._table = (design.errors.recovery_matrix() @ numbers).reshape(design.schema.shape(design.marginal))

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        kept = [set(row) for row in rows.tolist()]
        summed = [tuple(axis for axis, i in enumerate(self._marginal) if i not in own) for own in kept]
        return np.stack([self._table.sum(axis=axes) for axes in summed]).reshape(len(rows), *shape)


class MatchedRows:
    """Each answer from the row that is a multiple of it."""

    def __init__(self, design: MatrixDesign, numbers: Floats) -> None:
        self._plan = design
        self._numbers = numbers

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        design = self._plan
        found = [design.matches.table(design.schema, design.marginal, tuple(row)) for row in rows.tolist()]
        return np.stack([self._numbers[at] * factor for at, factor in found]).reshape(len(rows), *shape)

    def form(self, form: Form) -> Floats:
        """The answers of a form."""
        at, factor = self._plan.matches.form(self._plan.schema, self._plan.marginal, form)
        return (self._numbers[at] * factor).reshape(form.shape)
