"""What a measurement answers: tables, and forms that are not sums of published cells."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Floats, Ints, Marginal
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


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Tables that are made one after the other, each from its marginal alone."""

    table: Callable[[Marginal], Floats]

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals of one shape."""
        return np.stack([self.table(tuple(row)) for row in rows.tolist()]).reshape(len(rows), *shape)


def summed(table: Floats | Ints, marginal: Marginal, kept: Marginal) -> Floats:
    """A table on a marginal, summed to those of its attributes that are kept."""
    dropped = tuple(axis for axis, i in enumerate(marginal) if i not in kept)
    return np.asarray(table.sum(axis=dropped), dtype=np.float64)
