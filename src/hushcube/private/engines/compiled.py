"""Counting in compiled code, where it was built: the same numbers, some four times as fast.          [counting.c]

Installing compiles counting.c where there is a C compiler [hatch_build.py]. It is called through ctypes, which leaves
Python's lock, so that other threads read or draw meanwhile. numba would be the library for this, but it takes as long
to load as it saves on a hundred million rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints
from hushcube.private.engines.coding import Codes

BUILT: Final = Path(__file__).with_name("libcounting.so")
_MOST_CELLS: Final = 1 << 32
_AT_ONCE: Final = 1 << 26  # rows of tables, about: a request to stop waits for a call to end


class _Rows(ctypes.Structure):
    """`struct rows` of counting.c."""

    _fields_ = (
        ("rows", ctypes.c_size_t),
        ("columns", ctypes.c_void_p),
        ("widths", ctypes.c_void_p),
        ("sizes", ctypes.c_void_p),
        ("weights", ctypes.c_void_p),
    )


@cache
def kernel() -> Callable[..., None] | None:
    """`hushcube_count` of counting.c; None where it was not built, or not for this machine."""
    try:
        found = ctypes.CDLL(str(BUILT)).hushcube_count
    except (OSError, AttributeError):
        return None
    number, place = ctypes.c_size_t, ctypes.c_void_p
    found.argtypes, found.restype = (place, number, number, place, number, place), None
    return found


def can_count(columns: Mapping[int, Codes], tables: Ints) -> bool:
    """Whether compiled code is there, and made for codes and tables like these."""
    plain = all(each.dtype.kind == "u" and each.itemsize <= 4 for each in columns.values())
    return plain and tables.shape[1] < _MOST_CELLS and tables.flags.c_contiguous and kernel() is not None


def add(
    columns: Mapping[int, Codes],
    rows: int,
    sizes: Sequence[int],
    marginals: NDArray[np.int32],
    tables: Ints,
    weights: Ints | None,
) -> None:
    """Add rows, or their weights, to the tables of marginals of one length and shape: (marginals, cells).

    Every code is compared with its size first: whatever comes in, nothing is written outside the tables.
    """
    if (function := kernel()) is None:
        raise RuntimeError("counting.c was not built")
    used = np.unique(marginals).tolist()
    codes = [np.ascontiguousarray(columns[i]) for i in used]
    own = np.array([sizes[i] for i in used], np.uint32)
    cells = own[np.searchsorted(used, marginals)].prod(axis=1, dtype=np.uint64)
    if any(len(each) < rows or each[:rows].max(initial=0) >= n for each, n in zip(codes, own, strict=True)):
        raise IndexError("a code is not below the size of its attribute")
    if (cells > tables.shape[1]).any() or len(tables) != len(marginals):
        raise IndexError("a table has fewer cells than its marginal")
    places = np.array([each.ctypes.data for each in codes], np.uintp)
    widths = np.array([each.itemsize for each in codes], np.uint8)
    times = None if weights is None else np.ascontiguousarray(weights, np.int64)
    attributes = np.searchsorted(used, marginals).astype(np.int32)
    every = _Rows(
        rows, *(each.ctypes.data for each in (places, widths, own)), times.ctypes.data if times is not None else None
    )
    step = max(1, _AT_ONCE // max(1, rows))
    for start in range(0, len(marginals), step):
        some, part = attributes[start : start + step], tables[start : start + step]
        function(ctypes.byref(every), *some.shape, some.ctypes.data, part.shape[1], part.ctypes.data)
