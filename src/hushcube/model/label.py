"""Labels, names and values: what people write, what files hold and what workload words can name."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any, Final, Literal

from hushcube.errors import BadInput, SchemaError
from hushcube.text import number_text, short

MAX_LABEL: Final = 10_000
MAX_NAME: Final = 200
MAX_VALUES: Final = 1_000_000
_WORKLOAD_WORD: Final = re.compile(r"cube|queries|(prefix|ranges)\(.*\)|(<=|\d+\.\.)?\d+-way|(star|anchored):.*")
Declaration = Literal["values", "range", "bins", "size", "dates"]
_MOST_DAYS: Final = 200_000  # between two dates: five centuries
_RESERVED: Final = frozenset("*,:=@\"'\\\x7f") | {chr(code) for code in range(32)}


def check_name(name: Any, what: str) -> None:
    """Refuse what cannot name an attribute or a measure in workload words."""
    if not is_label(name) or name != name.strip() or len(name) > MAX_NAME:
        raise SchemaError(f"{what} name", f"{short(name)} is not a name", "use a non-empty text without outer blanks")
    bad = sorted(set(name) & _RESERVED)
    if bad:
        problem = f"its name holds {bad[0]!r}, which workload words use"
        raise SchemaError(f"{what} {name!r}", problem, "rename it, and give `column:`")
    if _WORKLOAD_WORD.fullmatch(name):
        raise SchemaError(f"{what} {name!r}", "its name is a workload word", "rename it, and give `column:`")


def check_column(where: str, column: Any) -> None:
    """Refuse what cannot name a column of the data."""
    if column is not None and not is_label(column):
        raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")


def check_keys(where: str, raw: Any, keys: Sequence[str], example: str, error: type[BadInput] = SchemaError) -> None:
    """Refuse what is not a mapping, and keys that are not known."""
    if not isinstance(raw, Mapping):
        raise error(where, "must be a mapping", example)
    unknown = [key for key in raw if key not in keys]
    if unknown:
        fix = f"use only {', '.join(keys[:-1])} and {keys[-1]}"
        raise error(where, f"has the unknown key {short(unknown[0])}", fix)


def label_of(field: str, raw: Any, error: type[BadInput] = SchemaError) -> str:
    """Labels are texts; a number or a truth value, in YAML or in Python, stands for its usual text."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str):
        return raw
    if isinstance(raw, Integral):
        return str(int(raw))
    if isinstance(raw, float) and math.isfinite(raw):
        return number_text(raw)
    raise error(field, f"{short(raw)} is not a label", "use texts or numbers (null is declared by `missing:`)")


def is_label(raw: Any) -> bool:
    """A text that can be written: not empty, not endless, and without half characters (lone surrogates)."""
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_LABEL:
        return False
    return raw.isascii() or not any("\ud800" <= c <= "\udfff" for c in raw)


def _sequence(field: str, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list | tuple):
        raise SchemaError(field, "must be a list", f"write for example `{field.rpartition(', ')[2]}: [0, 10]`")
    return tuple(raw)


def _values(field: str, raw: Any) -> tuple[str, ...]:
    values = tuple(label_of(field, value) for value in _sequence(field, raw))
    if not values:
        raise SchemaError(field, "the domain is empty", "list at least one value")
    _check_count(field, len(values))
    seen: set[str] = set()
    for value in values:
        if not is_label(value):
            raise SchemaError(field, f"{short(value)} is not a label", "use non-empty texts or numbers")
        if value in seen:
            raise SchemaError(field, f"{value[:40]!r} is listed twice", "list each value once")
        seen.add(value)
    return values


def _range(field: str, raw: Any) -> tuple[int, int]:
    ends = _sequence(field, raw)
    if len(ends) != 2 or not all(map(_is_int, ends)):
        raise SchemaError(field, "must be two integers", "write for example `range: [0, 99]`")
    low, high = ends
    if low > high:
        raise SchemaError(field, f"the domain is empty: {low} is above {high}", "write the smaller end first")
    if max(abs(low), abs(high)) >= 2**62:
        raise SchemaError(field, "its ends do not fit 64-bit integers", "use smaller numbers")
    _check_count(field, high - low + 1)
    return low, high


def _bins(field: str, raw: Any) -> tuple[float, ...]:
    edges = _sequence(field, raw)
    if len(edges) < 2:
        raise SchemaError(field, "the domain is empty", "give at least two edges")
    _check_count(field, len(edges))
    if not all(_is_int(edge) or (isinstance(edge, float) and math.isfinite(edge)) for edge in edges):
        raise SchemaError(field, "edges must be finite numbers", "write for example `bins: [0, 10, 50]`")
    if max(map(abs, edges)) >= 2**53:
        raise SchemaError(field, "edges beyond 2^53 are not exact", "use smaller numbers")
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(field, "edges must increase", "sort them and drop repeated ones")
    return edges


def _size(field: str, codes: Any) -> int:
    if not _is_int(codes):
        raise SchemaError(field, "must be an integer", "write for example `size: 10`")
    if codes < 1:
        raise SchemaError(field, "the domain is empty", "give a size of at least 1")
    _check_count(field, codes)
    return int(codes)


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise SchemaError(field, f"{count:,} values are more than {MAX_VALUES:,}", "declare coarser values or bins")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _dates(field: str, raw: Any) -> tuple[str, str]:
    fix = "write for example `dates: [2020-01-01, 2024-12-31]`"
    if not isinstance(raw, list | tuple) or len(raw) != 2:
        raise SchemaError(field, "must be two dates", fix)
    try:
        first, last = (date.fromisoformat(str(each)) for each in raw)
    except ValueError:
        raise SchemaError(field, "must be two dates as YYYY-MM-DD", fix) from None
    if first > last:
        raise SchemaError(field, "the domain is empty: the first is after the last", fix)
    if (last - first).days > _MOST_DAYS:
        raise SchemaError(field, f"there are more than {_MOST_DAYS:,} days between them", fix)
    return first.isoformat(), last.isoformat()


READERS: Final[Mapping[Declaration, Callable[[str, Any], Any]]] = {
    "values": _values,
    "range": _range,
    "bins": _bins,
    "size": _size,
    "dates": _dates,
}
"""What may be declared, and what may not."""


@dataclass(frozen=True)
class LabelFile:
    """A mapping file as it was read: its name beside the schema, its size and its checksum."""

    name: str
    size: int
    sha256: str

    def __post_init__(self) -> None:
        is_size = type(self.size) is int and self.size >= 0
        is_sum = isinstance(self.sha256, str) and re.fullmatch("[0-9a-f]{64}", self.sha256) is not None
        if not is_label(self.name) or not is_size or not is_sum:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")

    @classmethod
    def of(cls, name: str, text: str) -> LabelFile:
        """A file by its content."""
        content = text.encode("utf-8")
        return cls(name, len(content), hashlib.sha256(content).hexdigest())

    def is_copied(self, path: Path) -> bool:
        """Whether another file has the same content."""
        if path.stat().st_size != self.size:
            return False
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest() == self.sha256

    def to_dict(self) -> dict[str, Any]:
        """The YAML form."""
        return {"file": self.name, "bytes": self.size, "sha256": self.sha256}

    @classmethod
    def from_dict(cls, raw: Any) -> LabelFile | None:
        """Read the YAML form."""
        if raw is None:
            return None
        if not isinstance(raw, Mapping) or raw.keys() != {"file", "bytes", "sha256"}:
            raise SchemaError("labels", "do not say correctly which file they come from", "leave the key out")
        return cls(raw["file"], raw["bytes"], raw["sha256"])
