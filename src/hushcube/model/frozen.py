"""Arrays that nobody can change: a plan is checked once, and must stay what was checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
