"""A marginal is a set of attributes: their positions in the schema, increasing. The empty one is the total."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Marginal = tuple[int, ...]


def subsets(marginal: Marginal) -> list[Marginal]:
    """Subsets in the order of their bit masks.

    >>> subsets((0, 2))
    [(), (0,), (2,), (0, 2)]
    """
    return [tuple(item for at, item in enumerate(marginal) if mask >> at & 1) for mask in range(1 << len(marginal))]


def position_rows(marginal: Marginal) -> NDArray[np.int32]:
    """A single marginal in the form in which many of one length are given: an array of rows of positions.

    >>> position_rows((0, 2)).tolist(), position_rows(()).shape
    ([[0, 2]], (1, 0))
    """
    return np.array([marginal], dtype=np.int32).reshape(1, len(marginal))
