"""Reading JSON that programs write and people change: one meaning for each text, or none."""

from __future__ import annotations

import json
import math
from typing import Any

from hushcube.errors import BadInput
from hushcube.model.label import short


def read_json(text: str, field: str, kind: type[BadInput], fix: str) -> Any:
    """The content of a file; a key that occurs twice or a number that is not finite is refused.

    >>> read_json('{"a": 1, "a": 2}', "plan", BadInput, "plan again")
    Traceback (most recent call last):
        ...
    hushcube.errors.BadInput: plan: the key 'a' occurs twice. Fix: plan again.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except _NotPlain as found:
        raise kind(field, str(found), fix) from None
    except (ValueError, RecursionError):  # thousands of digits or brackets, too
        raise kind(field, "is not valid JSON", fix) from None


class _NotPlain(Exception):
    """What Python would read, and JSON does not mean."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise _NotPlain(f"the key {short(next(key for key in keys if keys.count(key) > 1))} occurs twice")
    return result


def _constant(name: str) -> float:
    raise _NotPlain(f"{name} is not a number")


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _NotPlain("a number is too large")
    return value
