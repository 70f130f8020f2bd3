"""Arrays of numbers: the names that signatures give them, and arrays that nobody can change.

A plan is checked once, and must stay what was checked.

A marginal is a set of attributes: their positions in the schema, increasing. The empty one is the total.
"""

import math
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

Marginal = tuple[int, ...]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_KEPT: Final = 29 << 20


@cache
def keep_freed() -> None:
    """Have freed memory kept for the next arrays of this process, up to 60 MB for each thread, where there is glibc.

    It gives freed blocks above a threshold back to the system, and the arrays of the next step are paged in anew, which
    can take longer than the step. Freeing one larger block, which is never touched, raises that threshold: to 32 MB at
    most, so that this one is a little smaller.
    """
    np.empty(_KEPT, np.uint8)


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


def applied(matrix: Floats, values: Floats, axis: int) -> Floats:
    """A matrix, applied to all vectors along one axis.

    >>> applied(np.array([[1.0, 1.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [[3.0], [7.0]]
    """
    before, after = values.shape[:axis], values.shape[axis + 1 :]
    flat = values.reshape(math.prod(before), values.shape[axis], math.prod(after))
    return np.asarray(np.matmul(matrix, flat).reshape(*before, len(matrix), *after))


def times(values: Floats, factors: Floats, axis: int) -> Floats:
    """An array whose entries are multiplied by a factor for each position along one axis."""
    return np.asarray(values * factors.reshape([-1 if a == axis else 1 for a in range(values.ndim)]))


def frozen(values: ArrayLike, dtype: Any = None) -> NDArray[Any]:
    """A copy of its own that is read-only for good: its flag cannot be set again.

    >>> budgets = frozen([1.0, 2.0])
    >>> budgets *= 2000
    Traceback (most recent call last):
        ...
    ValueError: output array is read-only
    """
    copy = np.array(values, dtype=dtype)
    copy.setflags(write=False)
    return copy.view()
