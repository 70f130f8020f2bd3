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

import re
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal

from hushcube.errors import SchemaError
from hushcube.model.domain import CHECKS, STEPS, Step, calendar_levels, day_groups, read_dates
from hushcube.model.label import LabelFile, check_column, check_name, is_label, label_of, number_text, short
from hushcube.model.level import Level, read_levels, read_mapping

Declaration = Literal["values", "range", "bins", "size", "dates"]

DECLARATIONS: Final[tuple[Declaration, ...]] = ("values", "range", "bins", "size", "dates")
ERROR: Final = "error"
"""The policy word: refuse the data instead of folding the value into a category."""

_few: Final = reprlib.Repr()
_few.maxstring = 40

ReadFile = Callable[[str], str]
"""Reads a mapping file that a schema names."""
_KEYS: Final = frozenset(
    {"name", "column", "ordered", "missing", "other", "by", "before", "levels", "mapping", "values_from", "levels_from"}
    | {*DECLARATIONS}
)


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
        self._freeze(where)
        given = (self.values, self.range, self.bins, self.codes, self.dates)
        declared = {way: value for way, value in zip(DECLARATIONS, given, strict=True) if value is not None}
        if len(declared) != 1:
            found = " and ".join(declared) if declared else "none of them"
            raise SchemaError(where, f"declares {found}", f"declare exactly one of {', '.join(DECLARATIONS)}")
        if self.column != "":  # the name of a column of some frames
            check_column(where, self.column)
        self._check_dates(where)
        for way, value in declared.items():
            if way != "dates":
                CHECKS[way](where, value)
        for policy in ("missing", "other"):
            if not is_label(getattr(self, policy)):
                raise SchemaError(
                    f"{where}, {policy}", "must be a label", f"write `{policy}: error` or `{policy}: unknown`"
                )
        if self.before is not None and (not is_label(self.before) or self.values is None):
            fix = "write for example `before: .`, with values"
            raise SchemaError(f"{where}, before", "must be a mark in texts", fix)
        self._read_levels(where)

    def _check_name(self) -> None:
        check_name(self.name, "attribute")

    def _freeze(self, where: str) -> None:
        """Lists become tuples, and numbers among the values their texts."""
        for key in ("range", "bins"):
            if (given := getattr(self, key)) is not None:
                object.__setattr__(self, key, _sequence(where, key, given))
        if self.values is not None:
            object.__setattr__(self, "values", _labels(where, self.values))
        for policy in ("missing", "other"):
            if isinstance(label := getattr(self, policy), int):
                object.__setattr__(self, policy, label_of(where, label))

    def __repr__(self) -> str:
        key = "codes" if self.declared_by == "size" else self.declared_by
        declared = getattr(self, key)
        few = _few.repr
        parts = [few(self.name), f"{key}={few(list(declared) if isinstance(declared, tuple) else declared)}"]
        policies = {"missing": self.missing, "other": self.other}
        parts += [f"{policy}={few(label)}" for policy, label in policies.items() if label != ERROR]
        if self.grouped:
            parts.append(f"levels={few([level.name for level in self.grouped])}")
        return f"{type(self).__name__}({', '.join(parts)})"

    def _check_dates(self, where: str) -> None:
        if self.dates is not None:
            object.__setattr__(self, "dates", read_dates(where, self.dates))
        if self.by not in STEPS or (self.dates is None and self.by != "day"):
            raise SchemaError(f"{where}, by", "is a step of dates", f"write one of {', '.join(STEPS)}, with `dates:`")
        if self.dates is not None and any(not isinstance(level, Level) for level in self.levels):
            fix = "leave them out; month, quarter and year are there already"
            raise SchemaError(f"{where}, levels", "dates have the levels of the calendar", fix)

    def _read_levels(self, where: str) -> None:
        if self.dates is not None:
            levels = calendar_levels(self.dates, self.by)
        else:
            levels = read_levels(where, self.levels, self.ground, self._number_label) if self.levels else ()
        object.__setattr__(self, "levels", levels)

    @property
    def declared_by(self) -> Declaration:
        """Which of the declarations was used."""
        if self.values is not None:
            return "values"
        if self.range is not None:
            return "range"
        if self.dates is not None:
            return "dates"
        return "bins" if self.bins is not None else "size"

    @property
    def is_ordered(self) -> bool:
        """Whether the values have an order; ranges, bins and dates do unless declared otherwise."""
        return self.declared_by in ("range", "bins", "dates") if self.ordered is None else self.ordered

    @property
    def source_column(self) -> str:
        """The column of the data that holds this attribute."""
        return self.name if self.column is None else self.column

    @cached_property
    def domain(self) -> tuple[str, ...]:
        """The labels of the declared values, without the categories for missing and other."""
        if self.values is not None:
            return tuple(map(str, self.values))
        if self.range is not None:
            low, high = self.range
            return tuple(map(str, range(low, high + 1)))
        if self.bins is not None:
            return tuple(self._number_label(a, b) for a, b in zip(self.bins, (*self.bins[1:-1], None), strict=False))
        if self.dates is not None:
            return day_groups(self.dates, self.by)[0]
        return tuple(map(str, range(self.codes or 0)))

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
        starts: Sequence[float] | None = None
        if self.declared_by in ("range", "size"):
            low = self.range[0] if self.range is not None else 0
            starts = tuple(range(low, low + self.domain_size))
        elif self.bins is not None:
            starts = self.bins[:-1]
        ends = None if starts is None else tuple(starts)
        return Level(self.name, self.domain, tuple(range(self.domain_size)), ends)

    def _number_label(self, low: float, beyond: float | None) -> str:
        """The numbers from one up to before another, or up to the end: `[0, 10)` of bins, `0-17` of integers."""
        if self.bins is not None:
            end = f"{number_text(self.bins[-1])}]" if beyond is None else f"{number_text(beyond)})"
            return f"[{number_text(low)}, {end}"
        last = (self.range[1] if self.range is not None else self.domain_size - 1) if beyond is None else beyond - 1
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
        if self.range is not None:
            return self.range[1] - self.range[0] + 1
        if self.bins is not None:
            return len(self.bins) - 1
        if self.dates is not None:
            return len(self.domain)
        return len(self.values) if self.values is not None else self.codes or 0

    @cached_property
    def _categories(self) -> tuple[str, ...]:
        """The categories for missing and other that are not values of the domain."""
        extra = dict.fromkeys(label for label in (self.missing, self.other) if label != ERROR)
        return tuple(label for label in extra if not self._declares(label))

    def _declares(self, label: str) -> bool:
        if self.range is None and self.codes is None:
            return label in self.domain
        low, high = self.range if self.range is not None else (0, (self.codes or 0) - 1)
        return re.fullmatch(r"0|-?[1-9][0-9]{0,18}", label) is not None and low <= int(label) <= high

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: i for i, label in enumerate(self.labels)}

    def to_dict(self) -> dict[str, Any]:
        """The declaration with the keys of the YAML form, defaults left out."""
        declared: Any = self.codes if self.declared_by == "size" else getattr(self, self.declared_by)
        fields: dict[str, Any] = {
            "name": self.name,
            self.declared_by: declared if self.declared_by == "size" else list(declared),
        }
        if self.ordered is not None:
            fields["ordered"] = self.ordered
        for policy in ("missing", "other"):
            if getattr(self, policy) != ERROR:
                fields[policy] = getattr(self, policy)
        if self.column is not None:
            fields["column"] = self.column
        if self.before is not None:
            fields["before"] = self.before
        if self.dates is not None:
            return fields if self.by == "day" else {**fields, "by": self.by}
        if self.levels:
            fields["levels"] = [level.to_dict(below) for below, level in pairwise((self.ground, *self.grouped))]
        for key in ("values_from", "levels_from"):
            if (file := getattr(self, key)) is not None:
                fields[key] = file.to_dict()
        return fields

    @property
    def grouped(self) -> tuple[Level, ...]:
        """The levels above the values, from fine to coarse."""
        return tuple(level for level in self.levels if isinstance(level, Level))

    @classmethod
    def from_dict(cls, raw: Any, *, where: str = "attribute", read: ReadFile | None = None) -> Attribute:
        """Read the YAML form; every key is checked and the offending one is named. `read` reads mapping files."""
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
        if raw.get("column") == "":  # in a file, a name that somebody forgot
            raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")
        if "mapping" in raw:
            raw = _mapped(where, raw, read)
        if "levels" in raw and not isinstance(raw["levels"], list | tuple):
            fix = "write `levels:` and one `- {name: ...}` for each"
            raise SchemaError(f"{where}, levels", "must be a list", fix)
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
            dates=raw.get("dates"),
            by=raw.get("by", "day"),
            before=None if "before" not in raw else label_of(f"{where}, before", raw["before"]),
            levels=tuple(raw.get("levels", ())),
            values_from=LabelFile.from_dict(raw.get("values_from")),
            levels_from=LabelFile.from_dict(raw.get("levels_from")),
        )


def _sequence(where: str, key: str, raw: Any) -> tuple[Any, ...]:
    if not isinstance(raw, list | tuple):
        raise SchemaError(f"{where}, {key}", "must be a list", f"write for example `{key}: [0, 10]`")
    return tuple(raw)


def _labels(where: str, raw: Any) -> tuple[str, ...]:
    return tuple(label_of(f"{where}, values", value) for value in _sequence(where, "values", raw))


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
