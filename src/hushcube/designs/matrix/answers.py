"""The rows of a matrix: one table by least squares, from which all others are summed, or each answer by its own row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hushcube.designs import MatrixDesign
from hushcube.designs.answers import Answers, answers
from hushcube.designs.matrix.errors import recovery_matrix
from hushcube.model.form import Form
from hushcube.model.measurement import Measurement

Floats = NDArray[np.float64]


@answers.register
def _(design: MatrixDesign, measurement: Measurement) -> Answers:
    numbers = measurement.values[0].astype(np.float64)
    return MatchedRows(design, numbers) if design.recovery == "none" else LeastSquaresTable(design, numbers)


class LeastSquaresTable:
    """Sums of the table H z, which holds what the rows can answer; its cells alone may mean nothing."""

    def __init__(self, design: MatrixDesign, numbers: Floats) -> None:
        self._marginal = design.marginal
        self._table = (recovery_matrix(design) @ numbers).reshape(design.schema.shape(design.marginal))

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
