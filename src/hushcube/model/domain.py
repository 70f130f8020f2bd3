"""What may be declared as the values of an attribute, and what may not."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any, Final

from hushcube.errors import SchemaError
from hushcube.model.label import is_label, short

MAX_VALUES: Final = 1_000_000


def _values(where: str, values: Any) -> None:
    if not values:
        raise SchemaError(f"{where}, values", "the domain is empty", "list at least one value")
    _check_count(f"{where}, values", len(values))
    seen: set[str] = set()
    for value in values:
        if not is_label(value):
            raise SchemaError(f"{where}, values", f"{short(value)} is not a label", "use non-empty texts or numbers")
        if value in seen:
            raise SchemaError(f"{where}, values", f"{value[:40]!r} is listed twice", "list each value once")
        seen.add(value)


def _range(where: str, ends: Any) -> None:
    if len(ends) != 2 or not all(_is_int(end) for end in ends):
        raise SchemaError(f"{where}, range", "must be two integers", "write for example `range: [0, 99]`")
    low, high = ends
    if low > high:
        raise SchemaError(
            f"{where}, range", f"the domain is empty: {low} is above {high}", "write the smaller end first"
        )
    if max(abs(low), abs(high)) >= 2**62:
        raise SchemaError(f"{where}, range", "its ends do not fit 64-bit integers", "use smaller numbers")
    _check_count(f"{where}, range", high - low + 1)


def _bins(where: str, edges: Any) -> None:
    if len(edges) < 2:
        raise SchemaError(f"{where}, bins", "the domain is empty", "give at least two edges")
    _check_count(f"{where}, bins", len(edges))
    if not all(_is_int(edge) or (isinstance(edge, float) and math.isfinite(edge)) for edge in edges):
        raise SchemaError(f"{where}, bins", "edges must be finite numbers", "write for example `bins: [0, 10, 50]`")
    if max(map(abs, edges)) >= 2**53:
        raise SchemaError(f"{where}, bins", "edges beyond 2^53 are not exact", "use smaller numbers")
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(f"{where}, bins", "edges must increase", "sort them and drop repeated ones")


def _size(where: str, codes: Any) -> None:
    if not _is_int(codes):
        raise SchemaError(f"{where}, size", "must be an integer", "write for example `size: 10`")
    if codes < 1:
        raise SchemaError(f"{where}, size", "the domain is empty", "give a size of at least 1")
    _check_count(f"{where}, size", codes)


CHECKS: Final = {"values": _values, "range": _range, "bins": _bins, "size": _size}


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise SchemaError(field, f"{count:,} values are more than {MAX_VALUES:,}", "declare coarser values or bins")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
