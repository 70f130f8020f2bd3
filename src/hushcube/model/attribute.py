"""One public dimension: its values, declared and never inferred from data.

Four ways to declare the values, each excluding the others:

    values: [Female, Male]     explicit labels
    range: [0, 99]             integers, both ends included
    bins: [0, 10, 50]          half-open [0, 10) and closed [10, 50]; numbers fall into them
    size: 10                   the codes 0..9
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal

from hushcube.errors import SchemaError

Kind = Literal["values", "range", "bins", "size"]

KINDS: Final[tuple[Kind, ...]] = ("values", "range", "bins", "size")
ERROR: Final = "error"
"""The policy word: refuse the data instead of folding the value into a category."""

MAX_VALUES: Final = 1_000_000
MAX_LABEL: Final = 10_000
_KEYS: Final = frozenset({"name", "column", "ordered", "missing", "other", *KINDS})
_WORKLOAD_WORD: Final = re.compile(r"cube|queries|(prefix|ranges)\(.*\)|(<=|\d+\.\.)?\d+-way|(star|anchored):.*")
_RESERVED: Final = frozenset("*,:=@\"'\\\x7f") | {chr(code) for code in range(32)}


@dataclass(frozen=True, kw_only=True)
class Attribute:
    """A named dimension with finitely many public values.

    >>> sex = Attribute(name="sex", values=("Female", "Male"), missing="unknown")
    >>> sex.labels, sex.size
    (('Female', 'Male', 'unknown'), 3)
    >>> Attribute(name="income", bins=(0, 10, 50)).labels
    ('[0, 10)', '[10, 50]')
    >>> Attribute(name="age", range=(0, 99)).position("42")
    42
    """

    name: str
    values: tuple[str, ...] | None = None
    range: tuple[int, int] | None = None
    bins: tuple[float, ...] | None = None
    codes: int | None = None
    ordered: bool | None = None
    missing: str = ERROR
    other: str = ERROR
    column: str | None = None

    def __post_init__(self) -> None:
        check_name(self.name, "attribute")
        where = f"attribute {self.name!r}"
        declared = [
            k for k, v in zip(KINDS, (self.values, self.range, self.bins, self.codes), strict=True) if v is not None
        ]
        if len(declared) != 1:
            found = " and ".join(declared) if declared else "none of them"
            raise SchemaError(where, f"declares {found}", "declare exactly one of values, range, bins, size")
        _CHECKS[declared[0]](where, getattr(self, "codes" if declared[0] == "size" else declared[0]))
        for policy in ("missing", "other"):
            if not _is_label(getattr(self, policy)):
                raise SchemaError(
                    f"{where}, {policy}", "must be a label", f"write `{policy}: error` or `{policy}: unknown`"
                )

    @property
    def kind(self) -> Kind:
        """Which of the four declarations was used."""
        if self.values is not None:
            return "values"
        if self.range is not None:
            return "range"
        return "bins" if self.bins is not None else "size"

    @property
    def is_ordered(self) -> bool:
        """Whether the values have an order; ranges and bins do unless declared otherwise."""
        return self.kind in ("range", "bins") if self.ordered is None else self.ordered

    @property
    def source_column(self) -> str:
        """The column of the data that holds this attribute."""
        return self.name if self.column is None else self.column

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The labels of the declared values, without the categories for missing and other."""
        if self.values is not None:
            return self.values
        if self.range is not None:
            low, high = self.range
            return tuple(map(str, range(low, high + 1)))
        if self.bins is not None:
            edges = [_number_text(edge) for edge in self.bins]
            closing = [")"] * (len(edges) - 2) + ["]"]
            return tuple(f"[{a}, {b}{c}" for a, b, c in zip(edges, edges[1:], closing, strict=False))
        return tuple(map(str, range(self.codes or 0)))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All labels in cell order: the domain, then categories for missing and other where declared."""
        return self.domain + self._categories

    @cached_property
    def size(self) -> int:
        """How many values a cell of this attribute can take; counted without writing a million labels."""
        return self.domain_size + len(self._categories)

    def position(self, label: str) -> int | None:
        """The position of a label in cell order, or None where there is no such label."""
        return self._index.get(label)

    @property
    def missing_position(self) -> int | None:
        """Where a null goes, or None where a null is an error."""
        return None if self.missing == ERROR else self._index[self.missing]

    @property
    def other_position(self) -> int | None:
        """Where a value outside the domain goes, or None where it is an error."""
        return None if self.other == ERROR else self._index[self.other]

    @property
    def domain_size(self) -> int:
        """How many declared values there are, without the categories for missing and other."""
        if self.range is not None:
            return self.range[1] - self.range[0] + 1
        if self.bins is not None:
            return len(self.bins) - 1
        return len(self.values) if self.values is not None else self.codes or 0

    @cached_property
    def _categories(self) -> tuple[str, ...]:
        """The categories for missing and other that are not values of the domain."""
        extra = dict.fromkeys(label for label in (self.missing, self.other) if label != ERROR)
        return tuple(label for label in extra if not self._declares(label))

    def _declares(self, label: str) -> bool:
        if self.values is not None or self.bins is not None:
            return label in self.domain
        low, high = self.range if self.range is not None else (0, (self.codes or 0) - 1)
        return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", label) is not None and low <= int(label) <= high

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def to_dict(self) -> dict[str, Any]:
        """The declaration with the keys of the YAML form, defaults left out."""
        declared: Any = self.codes if self.kind == "size" else getattr(self, self.kind)
        fields: dict[str, Any] = {
            "name": self.name,
            self.kind: declared if self.kind == "size" else list(declared),
        }
        if self.ordered is not None:
            fields["ordered"] = self.ordered
        for policy in ("missing", "other"):
            if getattr(self, policy) != ERROR:
                fields[policy] = getattr(self, policy)
        if self.column is not None:
            fields["column"] = self.column
        return fields

    @classmethod
    def from_dict(cls, raw: Any, *, where: str = "attribute") -> Attribute:
        """Read the YAML form; every key is checked and the offending one is named."""
        if not isinstance(raw, Mapping):
            raise SchemaError(where, "must be a mapping", "write for example {name: sex, values: [Female, Male]}")
        unknown = sorted(str(key) for key in raw.keys() - _KEYS)
        if unknown:
            raise SchemaError(where, f"has the unknown key {short(unknown[0])}", f"use only {', '.join(sorted(_KEYS))}")
        if "name" not in raw:
            raise SchemaError(where, "has no name", "add `name:`")
        where = f"attribute {short(raw['name'])}"
        for key in ("ordered",):
            if key in raw and not isinstance(raw[key], bool):
                raise SchemaError(f"{where}, {key}", "must be true or false", f"write `{key}: true`")
        if "column" in raw and (not isinstance(raw["column"], str) or not raw["column"]):
            raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")
        return cls(
            name=raw["name"],
            values=_labels(where, raw["values"]) if "values" in raw else None,
            range=_sequence(where, "range", raw["range"]) if "range" in raw else None,
            bins=_sequence(where, "bins", raw["bins"]) if "bins" in raw else None,
            codes=raw.get("size"),
            ordered=raw.get("ordered"),
            missing=label_of(f"{where}, missing", raw["missing"]) if "missing" in raw else ERROR,
            other=label_of(f"{where}, other", raw["other"]) if "other" in raw else ERROR,
            column=raw.get("column"),
        )


def check_name(name: Any, kind: str) -> None:
    """Refuse what cannot name an attribute or a measure in workload words."""
    if not _is_label(name) or name != name.strip() or len(name) > 200:
        raise SchemaError(f"{kind} name", f"{short(name)} is not a name", "use a non-empty text without outer blanks")
    bad = sorted(set(name) & _RESERVED)
    if bad:
        raise SchemaError(
            f"{kind} {name!r}",
            f"its name holds {bad[0]!r}, which workload words use",
            "rename it, and give `column:`",
        )
    if _WORKLOAD_WORD.fullmatch(name):
        raise SchemaError(f"{kind} {name!r}", "its name is a workload word", "rename it, and give `column:`")


def _check_values(where: str, values: Any) -> None:
    if not values:
        raise SchemaError(f"{where}, values", "the domain is empty", "list at least one value")
    _check_count(f"{where}, values", len(values))
    seen: set[str] = set()
    for value in values:
        if not _is_label(value):
            raise SchemaError(f"{where}, values", f"{short(value)} is not a label", "use non-empty texts or numbers")
        if value in seen:
            raise SchemaError(f"{where}, values", f"{value[:40]!r} stands there twice", "list each value once")
        seen.add(value)


def _check_range(where: str, ends: Any) -> None:
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


def _check_bins(where: str, edges: Any) -> None:
    if len(edges) < 2:
        raise SchemaError(f"{where}, bins", "the domain is empty", "give at least two edges")
    _check_count(f"{where}, bins", len(edges))
    if not all(_is_int(edge) or (isinstance(edge, float) and math.isfinite(edge)) for edge in edges):
        raise SchemaError(f"{where}, bins", "edges must be finite numbers", "write for example `bins: [0, 10, 50]`")
    if max(map(abs, edges)) >= 2**53:
        raise SchemaError(f"{where}, bins", "edges beyond 2^53 are not exact", "use smaller numbers")
    if any(a >= b for a, b in pairwise(edges)):
        raise SchemaError(f"{where}, bins", "edges must increase", "sort them and drop repeated ones")


def _check_size(where: str, codes: Any) -> None:
    if not _is_int(codes):
        raise SchemaError(f"{where}, size", "must be an integer", "write for example `size: 10`")
    if codes < 1:
        raise SchemaError(f"{where}, size", "the domain is empty", "give a size of at least 1")
    _check_count(f"{where}, size", codes)


_CHECKS: Final = {"values": _check_values, "range": _check_range, "bins": _check_bins, "size": _check_size}


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise SchemaError(field, f"{count:,} values are more than {MAX_VALUES:,}", "declare coarser values or bins")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _sequence(where: str, key: str, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list | tuple):
        raise SchemaError(f"{where}, {key}", "must be a list", f"write for example `{key}: [0, 10]`")
    return tuple(raw)


def _labels(where: str, raw: Any) -> tuple[str, ...]:
    return tuple(label_of(f"{where}, values", value) for value in _sequence(where, "values", raw))


def label_of(field: str, raw: Any) -> str:
    """Labels are texts; a number or a truth value in YAML stands for its usual text."""
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, str):
        return raw
    if isinstance(raw, int) or (isinstance(raw, float) and math.isfinite(raw)):
        return _number_text(raw)
    raise SchemaError(field, f"{short(raw)} is not a label", "use texts or numbers (null is declared by `missing:`)")


def _is_label(raw: Any) -> bool:
    """A text that can be written: not empty, not endless, and without half characters (lone surrogates)."""
    if not isinstance(raw, str) or not 0 < len(raw) <= MAX_LABEL:
        return False
    return raw.isascii() or not any("\ud800" <= c <= "\udfff" for c in raw)


def short(raw: Any) -> str:
    """A few characters of what was written, for a message; YAML's anchors can make a small text a huge list."""
    return repr(raw[:40]) if isinstance(raw, str) else reprlib.repr(raw)[:40]


def _number_text(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(number)
