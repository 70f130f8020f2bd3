"""What a measurement answers: tables, and forms that are not sums of published cells."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Floats
from hushcube.model.form import Form


class Answers(Protocol):
    """Tables on demand, many of one shape at a time, so that a large release streams to disk."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals (rows of positions) of one shape; (marginals, *shape)."""


@runtime_checkable
class FormAnswers(Protocol):
    """Answers of forms that are not sums of their carrier's published cells."""

    def form(self, form: Form) -> Floats:
        """The answers of a form; of its shape."""
