"""Arrays of numbers: the names that signatures give them, and arrays that nobody can change.

A plan is checked once, and must stay what was checked.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


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
