"""One public dimension: its values, declared and never inferred from data.

Five ways to declare the values, each excluding the others:

    values: [Female, Male]                explicit labels
    range: [0, 99]                        integers, both ends included
    bins: [0, 10, 50]                     half-open [0, 10) and closed [10, 50]; numbers fall into them
    size: 10                              the codes 0..9
    dates: [2020-01-01, 2024-12-31]       days, or `by: month`, `quarter` or `year`

and any number of levels above them [model/level.py]; dates have those of the calendar. Seen at one of its levels, an
attribute is an attribute of its own, whose values are groups of another's.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np

from hushcube.errors import SchemaError, WorkloadError
from hushcube.model.arrays import Ints, frozen
from hushcube.model.label import (
    READERS,
    Declaration,
    LabelFile,
    check_column,
    check_keys,
    check_name,
    is_label,
    label_of,
)
from hushcube.model.level import STEPS, Level, ReadFile, Step, calendar_levels, day_groups, mapped, read_levels
from hushcube.text import number_text, short

ERROR: Final = "error"  # the policy word: refuse the data instead of folding the value into a category

_few: Final = reprlib.Repr()
_few.maxstring = 40

_KEYS: Final = ("name", *READERS, "column", "ordered", "missing", "other", "by", "before", "levels", "mapping")
_ORIGINS: Final = ("values_from", "levels_from")
MARK: Final = "@"  # stands between the names of an attribute and of its level


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
            raise SchemaError(where, f"declares {found}", f"declare exactly one of {', '.join(READERS)}")
        for way, value in declared.items():
            object.__setattr__(self, "codes" if way == "size" else way, READERS[way](f"{where}, {way}", value))
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
        return {way: value for way, value in zip(READERS, given, strict=True) if value is not None}

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
        return Level(self.name, self.domain, tuple(range(self.domain_size)), None if starts is None else tuple(starts))

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
        for key in (*READERS, "ordered", "before"):
            if key in raw and raw[key] is None:
                raise SchemaError(f"{where}, {key}", "is empty", "write what it is, or leave the key out")
        if raw.get("column") == "":  # in a file, a name that somebody forgot
            raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")
        fields: dict[str, Any] = dict(mapped(where, raw, read) if "mapping" in raw else raw)
        fields |= {key: LabelFile.from_dict(fields.get(key)) for key in _ORIGINS}
        return cls(codes=fields.pop("size", None), **fields)


@dataclass(frozen=True, kw_only=True, repr=False)
class AtLevel(Attribute):
    """The groups of a level as values; the categories for missing and other values stay what they are.

    >>> age = Attribute(name="age", range=(0, 99), missing="unknown", levels=({"name": "band", "starts": [0, 18, 65]},))
    >>> band = at_level(age, "band")
    >>> band.name, band.labels, band.places[[17, 18, 100]].tolist()
    ('age@band', ('0-17', '18-64', '65-99', 'unknown'), [0, 1, 3])
    """

    base: Attribute
    depth: int
    """How many levels it is above the values: 1 for the finest level."""

    def _check_name(self) -> None:
        """The parts of the name were checked."""

    @cached_property
    def places(self) -> Ints:
        """For each position of the base attribute, categories included, the position here."""
        level = self.base.grouped[self.depth - 1]
        categories = [self._index[label] for label in self.base.labels[self.base.domain_size :]]
        return frozen([*level.places, *categories], np.int64)


def at_level(attribute: Attribute, name: str) -> AtLevel:
    """An attribute at the level with a name."""
    for depth, level in enumerate(attribute.grouped, 1):
        if level.name == name:
            return AtLevel(
                name=f"{attribute.name}{MARK}{name}",
                values=level.labels,
                ordered=attribute.is_ordered and list(level.places) == sorted(level.places),
                missing=_category(attribute, level, attribute.missing),
                other=_category(attribute, level, attribute.other),
                column=attribute.source_column,
                base=attribute,
                depth=depth,
            )
    known = ", ".join(level.name for level in attribute.grouped) or "none; declare it under `levels:`"
    raise WorkloadError("attribute", f"{attribute.name!r} has no level {name!r}", f"use one of: {known}")


def base_of(attribute: Attribute) -> Attribute:
    """The declared attribute: itself, or what it is a level of."""
    return attribute.base if isinstance(attribute, AtLevel) else attribute


def depth_of(attribute: Attribute) -> int:
    """How many levels it is above the declared values."""
    return attribute.depth if isinstance(attribute, AtLevel) else 0


def places_of(attribute: Attribute) -> Ints:
    """For each position of the declared attribute, the position here."""
    return attribute.places if isinstance(attribute, AtLevel) else np.arange(attribute.size)


def is_finer(attribute: Attribute, other: Attribute) -> bool:
    """Whether one attribute is the other, or seen at a finer level of the same."""
    return base_of(attribute) == base_of(other) and depth_of(attribute) <= depth_of(other)


def coarsening(fine: Attribute, coarse: Attribute) -> Ints:
    """For every value of an attribute, its group at a coarser level of the same."""
    if not is_finer(fine, coarse):
        raise ValueError("not a finer and a coarser level of one attribute")
    groups = np.zeros(fine.size, dtype=np.int64)
    groups[places_of(fine)] = places_of(coarse)
    return groups


def _category(attribute: Attribute, level: Level, label: str) -> str:
    """Where missing or other values go: their own category, or the group of the value that they count as."""
    place = None if label == ERROR else attribute.position(label)
    return label if place is None or place >= attribute.domain_size else level.labels[level.places[place]]
