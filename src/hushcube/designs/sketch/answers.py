"""Sketches: each repetition estimates every sum of cells; the answer is their average or their median."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import Measurement

if TYPE_CHECKING:
    from hushcube.designs.sketch.design import SketchDesign


class Average:
    """Sums of one table, whose cells are averages."""

    def __init__(self, design: SketchDesign, measurement: Measurement) -> None:
        self._marginal = design.marginal
        self._table = np.zeros(design.schema.shape(design.marginal))
        for table in _repetitions(design, measurement):
            self._table += table
        self._table /= design.groups

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([_summed(self._table, self._marginal, row) for row in rows.tolist()]).reshape(-1, *shape)


class Median:
    """Medians of the repetitions' sums: tables do not add up to each other."""

    def __init__(self, design: SketchDesign, measurement: Measurement) -> None:
        self._plan = design
        self._measurement = measurement

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        estimates = np.empty((self._plan.groups, len(rows), *shape))
        for r, table in enumerate(_repetitions(self._plan, self._measurement)):
            for at, row in enumerate(rows.tolist()):
                estimates[r, at] = _summed(table, self._plan.marginal, row)
        return np.asarray(np.median(estimates, axis=0))

    def form(self, form: Form) -> Floats:
        """The answers of a form, each the median of its own estimates."""
        tables = _repetitions(self._plan, self._measurement)
        carriers = (_summed(table, self._plan.marginal, form.marginal) for table in tables)
        return np.asarray(np.median([form.evaluate(table) for table in carriers], axis=0))


def _repetitions(design: SketchDesign, measurement: Measurement) -> Iterator[Floats]:
    """Each repetition's estimate of the whole table."""
    shape = design.schema.shape(design.marginal)
    for numbers, (bucket, sign) in zip(measurement.values[0], design.throws, strict=True):
        yield (sign * numbers[bucket]).astype(np.float64).reshape(shape)


def _summed(table: Floats, marginal: Marginal, kept: Marginal | list[int]) -> Floats:
    return np.asarray(table.sum(axis=tuple(axis for axis, i in enumerate(marginal) if i not in kept)))
