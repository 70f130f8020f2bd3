"""One public dimension: its values, declared and never inferred from data.

Five ways to declare the values, each excluding the others:

    values: [Female, Male]                explicit labels
    range: [0, 99]                        integers, both ends included
    bins: [0, 10, 50]                     half-open [0, 10) and closed [10, 50]; numbers fall into them
    size: 10                              the codes 0..9
    dates: [2020-01-01, 2024-12-31]       days, or `by: month`, `quarter` or `year`

and any number of levels above them [model/level.py]; dates have those of the calendar.
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal, get_args

from hushcube.errors import SchemaError
from hushcube.model.label import LabelFile, check_column, check_keys, check_name, is_label, label_of, number_text
from hushcube.model.level import STEPS, Level, Step, calendar_levels, day_groups, read_dates, read_levels, read_mapping
from hushcube.text import short

Declaration = Literal["values", "range", "bins", "size", "dates"]

DECLARATIONS: Final[tuple[Declaration, ...]] = get_args(Declaration)
MAX_VALUES: Final = 1_000_000
ERROR: Final = "error"
"""The policy word: refuse the data instead of folding the value into a category."""

_few: Final = reprlib.Repr()
_few.maxstring = 40

ReadFile = Callable[[str], str]
"""Reads a mapping file that a schema names."""
_KEYS: Final = ("name", *DECLARATIONS, "column", "ordered", "missing", "other", "by", "before", "levels", "mapping")
_ORIGINS: Final = ("values_from", "levels_from")


@dataclass(frozen=True, repr=False)
class Attribute:
    """A named dimension with finitely many public values.

    >>> sex = Attribute("sex", values=["Female", "Male"], missing="unknown")
    >>> sex.labels, sex.size
    (('Female', 'Male', 'unknown'), 3)
    >>> Attribute("income", bins=[0, 10, 50]).labels
    ('[0, 10)', '[10, 50]')
    >>> Attribute("age", range=[0, 99]).position("42")
    42
    >>> sex
    Attribute('sex', values=['Female', 'Male'], missing='unknown')
    """

    name: str
    _: KW_ONLY
    values: Sequence[str | int] | None = None
    """Labels; whole numbers stand for their digits."""
    range: Sequence[int] | None = None
    bins: Sequence[float] | None = None
    codes: int | None = None
    dates: Sequence[str] | None = None
    by: Step = "day"
    """The step of dates."""
    ordered: bool | None = None
    missing: str = ERROR
    other: str = ERROR
    column: str | None = None
    before: str | None = None
    """Only the text before this mark counts: `.` makes 250 of 250.83."""
    levels: Sequence[Level | Mapping[str, Any]] = ()
    """Groups of the values, and groups of those, from fine to coarse; as declared, or read already."""
    values_from: LabelFile | None = None
    """The mapping file that the values were read from."""
    levels_from: LabelFile | None = None
    """The mapping file that the levels were read from."""

    def __post_init__(self) -> None:
        self._check_name()
        where = f"attribute {self.name!r}"
        declared = self._declared
        if len(declared) != 1:
            found = " and ".join(declared) if declared else "none of them"
            raise SchemaError(where, f"declares {found}", f"declare exactly one of {', '.join(DECLARATIONS)}")
        for way, value in declared.items():
            object.__setattr__(self, "codes" if way == "size" else way, _READERS[way](f"{where}, {way}", value))
        if not isinstance(self.ordered, bool | None):
            raise SchemaError(f"{where}, ordered", "must be true or false", "write `ordered: true`")
        if self.column != "":  # the name of a column of some frames
            check_column(where, self.column)
        if self.by not in STEPS or (self.dates is None and self.by != "day"):
            raise SchemaError(f"{where}, by", "is a step of dates", f"write one of {', '.join(STEPS)}, with `dates:`")
        for policy in ("missing", "other"):
            label = label_of(f"{where}, {policy}", getattr(self, policy))
            if not is_label(label):
                fix = f"write `{policy}: error` or `{policy}: unknown`"
                raise SchemaError(f"{where}, {policy}", "must be a label", fix)
            object.__setattr__(self, policy, label)
        if self.before is not None:
            object.__setattr__(self, "before", label_of(f"{where}, before", self.before))
            if not is_label(self.before) or self.values is None:
                fix = "write for example `before: .`, with values"
                raise SchemaError(f"{where}, before", "must be a mark in texts", fix)
        object.__setattr__(self, "levels", self._read_levels(where))

    def _check_name(self) -> None:
        check_name(self.name, "attribute")

    @property
    def _declared(self) -> dict[Declaration, Any]:
        given = (self.values, self.range, self.bins, self.codes, self.dates)
        return {way: value for way, value in zip(DECLARATIONS, given, strict=True) if value is not None}

    def _read_levels(self, where: str) -> tuple[Level, ...]:
        if self.dates is None:
            return read_levels(where, self.levels, self.ground, self._number_label) if self.levels != () else ()
        given = self.levels if isinstance(self.levels, list | tuple) else [self.levels]
        if any(not isinstance(each, Level) for each in given):
            fix = "leave them out; month, quarter and year are there already"
            raise SchemaError(f"{where}, levels", "dates have the levels of the calendar", fix)
        return calendar_levels(self.dates, self.by)

    def __repr__(self) -> str:
        (declared,) = self._declared.values()
        few, key = _few.repr, "codes" if self.declared_by == "size" else self.declared_by
        parts = [few(self.name), f"{key}={few(list(declared) if isinstance(declared, tuple) else declared)}"]
        policies = {"missing": self.missing, "other": self.other}
        parts += [f"{policy}={few(label)}" for policy, label in policies.items() if label != ERROR]
        if self.grouped:
            parts.append(f"levels={few([level.name for level in self.grouped])}")
        return f"{type(self).__name__}({', '.join(parts)})"

    @cached_property
    def declared_by(self) -> Declaration:
        """Which of the declarations was used."""
        return next(iter(self._declared))

    @property
    def is_ordered(self) -> bool:
        """Whether the values have an order; ranges, bins and dates do unless declared otherwise."""
        return self.declared_by in ("range", "bins", "dates") if self.ordered is None else self.ordered

    @property
    def source_column(self) -> str:
        """The column of the data that holds this attribute."""
        return self.name if self.column is None else self.column

    @cached_property
    def _integers(self) -> Sequence[int] | None:
        """What `range` or `size` declares."""
        if self.range is not None:
            return range(self.range[0], self.range[1] + 1)
        return None if self.codes is None else range(self.codes)

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The labels of the declared values, without the categories for missing and other."""
        if self.bins is not None:
            return tuple(self._number_label(a, b) for a, b in zip(self.bins, (*self.bins[1:-1], None), strict=False))
        if self.dates is not None:
            return day_groups(self.dates, self.by)[0]
        return tuple(map(str, self.values or self._integers or ()))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All labels in cell order: the domain, then categories for missing and other where declared."""
        return self.domain + self._categories

    @cached_property
    def size(self) -> int:
        """How many values a cell of this attribute can take; counted without writing a million labels."""
        return self.domain_size + len(self._categories)

    @property
    def ground(self) -> Level:
        """The values themselves as the finest level; with numbers where they begin, if they are such."""
        starts = self._integers if self.bins is None else self.bins[:-1]
        places = tuple(range(self.domain_size))
        return Level(self.name, self.domain, places, None if starts is None else tuple(starts))

    def _number_label(self, low: float, beyond: float | None) -> str:
        """The numbers from one up to before another, or up to the end: `[0, 10)` of bins, `0-17` of integers."""
        if self.bins is not None:
            end = f"{number_text(self.bins[-1])}]" if beyond is None else f"{number_text(beyond)})"
            return f"[{number_text(low)}, {end}"
        last = beyond - 1 if beyond is not None else self._integers[-1] if self._integers else low
        if last == low:
            return number_text(low)
        return f"{number_text(low)}-{number_text(last)}" if low >= 0 else f"{number_text(low)} to {number_text(last)}"

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
        return len(self.domain if self._integers is None else self._integers)

    @cached_property
    def _categories(self) -> tuple[str, ...]:
        """The categories for missing and other that are not values of the domain."""
        extra = dict.fromkeys(label for label in (self.missing, self.other) if label != ERROR)
        return tuple(label for label in extra if not self._declares(label))

    def _declares(self, label: str) -> bool:
        if self._integers is None:
            return label in self.domain
        return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", label) is not None and int(label) in self._integers

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    @property
    def grouped(self) -> tuple[Level, ...]:
        """The levels above the values, from fine to coarse."""
        return tuple(level for level in self.levels if isinstance(level, Level))

    def to_dict(self) -> dict[str, Any]:
        """The declaration with the keys of the YAML form, defaults left out."""
        fields: dict[str, Any] = {"name": self.name}
        fields |= {way: list(value) if isinstance(value, tuple) else value for way, value in self._declared.items()}
        usual = {"ordered": None, "missing": ERROR, "other": ERROR, "column": None, "before": None, "by": "day"}
        fields |= {key: getattr(self, key) for key, value in usual.items() if getattr(self, key) != value}
        if self.levels and self.dates is None:
            fields["levels"] = [level.to_dict(below) for below, level in pairwise((self.ground, *self.grouped))]
        return fields | {key: file.to_dict() for key in _ORIGINS if (file := getattr(self, key)) is not None}

    @classmethod
    def from_dict(cls, raw: Any, *, where: str = "attribute", read: ReadFile | None = None) -> Attribute:
        """Read the YAML form; the offending key is named. `read` reads mapping files."""
        check_keys(where, raw, (*_KEYS, *_ORIGINS), "write for example {name: sex, values: [Female, Male]}")
        if "name" not in raw:
            raise SchemaError(where, "has no name", "add `name:`")
        where = f"attribute {short(raw['name'])}"
        for key in (*DECLARATIONS, "ordered", "before"):
            if key in raw and raw[key] is None:
                raise SchemaError(f"{where}, {key}", "is empty", "write what it is, or leave the key out")
        if raw.get("column") == "":  # in a file, a name that somebody forgot
            raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")
        fields: dict[str, Any] = dict(_mapped(where, raw, read) if "mapping" in raw else raw)
        fields |= {key: LabelFile.from_dict(fields.get(key)) for key in _ORIGINS}
        return cls(codes=fields.pop("size", None), **fields)


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


_READERS: Final[Mapping[Declaration, Callable[[str, Any], Any]]] = {
    "values": _values,
    "range": _range,
    "bins": _bins,
    "size": _size,
    "dates": read_dates,
}
"""What may be declared, and what may not."""


def _check_count(field: str, count: int) -> None:
    if count > MAX_VALUES:
        raise SchemaError(field, f"{count:,} values are more than {MAX_VALUES:,}", "declare coarser values or bins")


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _mapped(where: str, raw: Mapping[str, Any], read: ReadFile | None) -> dict[str, Any]:
    """The declaration with what its mapping file says: levels, and values where none are declared."""
    at = f"{where}, mapping"
    for key in ("levels", "values_from", "levels_from"):
        if key in raw:
            raise SchemaError(at, f"cannot be combined with {key}", "declare the levels here or in the file")
    if not isinstance(raw["mapping"], str) or not raw["mapping"]:
        raise SchemaError(at, "must be the name of a file", "write for example `mapping: codes.csv`")
    if read is None:
        raise SchemaError(at, "names a file, and none can be read here", "read the schema from its own file")
    text = read(raw["mapping"])
    values, levels = read_mapping(at, text)
    file = LabelFile.of(raw["mapping"], text).to_dict()
    own = {} if any(way in raw for way in DECLARATIONS) else {"values": list(values), "values_from": file}
    rest = {key: value for key, value in raw.items() if key != "mapping"}
    return {**rest, **own, "levels": levels, "levels_from": file}
