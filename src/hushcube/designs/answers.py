"""The step from a measurement to tables, which every kind of plan takes in its own way."""

from __future__ import annotations

from functools import singledispatch
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.design import Design
from hushcube.model.form import Form
from hushcube.model.measurement import Measurement


class Answers(Protocol):
    """Tables on demand, many of one shape at a time, so that a large release streams to disk."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> NDArray[np.float64]:
        """The tables of marginals (rows of positions) of one shape; (marginals, *shape)."""


@runtime_checkable
class FormAnswers(Protocol):
    """Answers of forms that are not sums of their carrier's published cells."""

    def form(self, form: Form) -> NDArray[np.float64]:
        """The answers of a form; of its shape."""


@singledispatch
def answers(design: Design, measurement: Measurement) -> Answers:
    """The answers that the plan's recovery gives."""
    raise NotImplementedError(type(design).__name__)
