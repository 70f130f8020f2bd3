"""Counting in compiled code, where it was built: the same numbers, some four times as fast.          [counting.c]

Installing compiles the C files beside this one where there is a C compiler [hatch_build.py]. They are called through
ctypes, which leaves Python's lock, so that other threads read or draw meanwhile. numba would be the library for this,
but it takes as long to load as it saves on a hundred million rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Ints
from hushcube.private.engines.coding import Codes

BUILT: Final = Path(__file__).with_name("kernels.compiled")
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


def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any] | None:
    """A function of compiled code, by the types of its result and arguments; None where it was not built for us."""
    try:
        found = getattr(ctypes.CDLL(str(BUILT)), name)
    except (OSError, AttributeError):
        return None
    found.restype, found.argtypes = result, arguments
    return found  # type: ignore[no-any-return]


@cache
def kernel() -> Callable[..., None] | None:
    """`hushcube_count` of counting.c, where it was built."""
    number, place = ctypes.c_size_t, ctypes.c_void_p
    return function("hushcube_count", None, place, number, number, place, number, place)


Tables = tuple[NDArray[np.int32], Ints]
"""Marginals of one length and shape, and the cells of their tables: (marginals, cells)."""


class Target:
    """Tables that rows are added to; what does not depend on the rows is done once."""

    def __init__(self, every: Sequence[Tables], sizes: Sequence[int]) -> None:
        self._used = sorted({i for marginals, _ in every for i in np.unique(marginals).tolist()})
        self._sizes = np.array([sizes[i] for i in self._used], np.uint32)
        place = np.zeros(len(sizes), np.int32)
        place[self._used] = np.arange(len(self._used))
        self._tables = [(place[marginals], tables) for marginals, tables in every]
        self._fits = all(len(m) == len(t) and t.flags.c_contiguous and _fit(self._sizes[m], t) for m, t in self._tables)

    def add(self, columns: Mapping[int, Codes], rows: int, weights: Ints | None) -> bool:
        """Add rows, or their weights; False, and nothing done, where this is not for compiled code.

        Every code is compared with its size first: whatever comes in, nothing is written outside the tables.
        """
        count, codes = kernel(), [np.ascontiguousarray(columns[i][:rows]) for i in self._used]
        plain = all(each.dtype.kind == "u" and each.itemsize <= 4 for each in codes)
        if count is None or not self._fits or not plain:
            return False
        if any(len(each) < rows for each in (*codes, *([] if weights is None else [weights]))):
            raise IndexError("there are fewer codes or weights than rows")
        if any(each.max(initial=0) >= n for each, n in zip(codes, self._sizes.tolist(), strict=True)):
            raise IndexError("a code is not below the size of its attribute")
        places = np.array([each.ctypes.data for each in codes], np.uintp)
        widths = np.array([each.itemsize for each in codes], np.uint8)
        times = None if weights is None else np.ascontiguousarray(weights[:rows], np.int64)
        given = (each.ctypes.data for each in (places, widths, self._sizes))
        every = _Rows(rows, *given, None if times is None else times.ctypes.data)
        step = max(1, _AT_ONCE // max(1, rows))
        for attributes, tables in self._tables:
            for start in range(0, len(tables), step):
                some, part = attributes[start : start + step], tables[start : start + step]
                count(ctypes.byref(every), *some.shape, some.ctypes.data, part.shape[1], part.ctypes.data)
        return True


def _fit(sizes: NDArray[np.uint32], tables: Ints) -> bool:
    """Whether tables have all the cells of their marginals, no more than 32 bits can tell apart."""
    cells = tables.shape[1]
    return cells < _MOST_CELLS and bool((sizes.prod(axis=1, dtype=np.float64) <= cells).all())
