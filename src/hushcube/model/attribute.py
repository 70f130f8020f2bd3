"""One public dimension: its values, declared and never inferred from data.

Five ways to declare the values, each excluding the others:

    values: [Female, Male]                explicit labels
    range: [0, 99]                        integers, both ends included
    bins: [0, 10, 50]                     half-open [0, 10) and closed [10, 50]; numbers fall into them
    size: 10                              the codes 0..9
    dates: [2020-01-01, 2024-12-31]       days, or `by: month`, `quarter` or `year`

and any number of levels above them [model/level.py]; dates have those of the calendar. What stands in the data is a
value's code; what people read is its label, which is the same text unless another is declared.        [model/words.py]
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, Final, Literal, overload

from hushcube.errors import SchemaError
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
from hushcube.model.words import OF_COLUMN, GivenLabels, check_given, checked_word, read_labels
from hushcube.text import number_text, short

ERROR: Final = "error"  # the policy word: refuse the data instead of folding the value into a category

_few: Final = reprlib.Repr()
_few.maxstring = 40

_WORDS: Final = (*OF_COLUMN, "labels")
_KEYS: Final = ("name", *READERS, "column", "ordered", "missing", "other", "by", "before", "levels", "mapping", *_WORDS)
_ORIGINS: Final = ("values_from", "levels_from")
WHOLE_CODE: Final = re.compile(r"0|-?[1-9][0-9]{0,17}")  # a code that is a whole number, and no other text for it
CodeType = Literal["whole number", "date", "text"]


class _Labels:
    """The field `labels`: given by codes, or in order; read as the labels of all values in order."""

    @overload
    def __get__(self, attribute: None, owner: type) -> None: ...

    @overload
    def __get__(self, attribute: Attribute, owner: type) -> tuple[str, ...]: ...

    def __get__(self, attribute: Attribute | None, owner: type) -> tuple[str, ...] | None:
        if attribute is None:  # the default
            return None
        return attribute.coded if attribute._named is None else attribute._named

    def __set__(self, attribute: Attribute, given: GivenLabels) -> None:
        vars(attribute)["labels"] = given  # to be checked


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
    >>> call = Attribute("call_type", codes=2, labels={0: "medical", 1: "fire"})
    >>> call.labels, call.coded, call.position("fire"), call.position("1")
    (('medical', 'fire'), ('0', '1'), 1, 1)
    """

    name: str
    _: KW_ONLY
    values: Sequence[str | int] | None = None
    """Codes; whole numbers stand for their digits."""
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
    labels: _Labels = _Labels()
    """What people read, in cell order: the codes, unless labels are declared for them."""
    title: str | None = None
    description: str | None = None
    unit_of_measure: str | None = None

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
        for key in OF_COLUMN:
            object.__setattr__(self, key, checked_word(where, key, getattr(self, key)))
        if self._named is not None:
            vars(self)["labels"] = read_labels(f"{where}, labels", self._named, self.coded)
        object.__setattr__(self, "levels", self._read_levels(where))
        for level in self.grouped:
            self.labels_at(level)

    @property
    def _named(self) -> tuple[str, ...] | None:
        """The labels, where some are declared."""
        found: tuple[str, ...] | None = vars(self)["labels"]
        return found

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
        if self._named is not None:
            parts.append(f"labels={few(list(self._named))}")
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
        """The codes of the declared values, without the categories for missing and other."""
        if self.bins is not None:
            return tuple(self._number_label(a, b) for a, b in zip(self.bins, (*self.bins[1:-1], None), strict=False))
        if self.dates is not None:
            return day_groups(self.dates, self.by)[0]
        return tuple(map(str, self.values or self._integers or ()))

    @cached_property
    def coded(self) -> tuple[str, ...]:
        """What stands in the data, in cell order: the domain, then categories for missing and other where declared."""
        return self.domain + self._categories

    @property
    def shown_name(self) -> str:
        """What people read: the title, or the name."""
        return self.name if self.title is None else self.title

    @property
    def has_labels(self) -> bool:
        """Whether people read something else than the codes."""
        return self._named is not None

    @cached_property
    def code_type(self) -> CodeType:
        """What the codes of the domain are; a category for missing or other values may be something else."""
        if self._integers is not None:
            return "whole number"
        if self.dates is not None and self.by == "day":
            return "date"
        return "whole number" if all(map(WHOLE_CODE.fullmatch, self.domain)) else "text"

    @cached_property
    def size(self) -> int:
        """How many values a cell of this attribute can take; counted without writing a million labels."""
        return self.domain_size + len(self._categories)

    @property
    def ground(self) -> Level:
        """The values themselves as the finest level; with numbers where they begin, if they are such."""
        starts = self._integers if self.bins is None else self.bins[:-1]
        named = None if self._named is None else self._named[: self.domain_size]
        places = tuple(range(self.domain_size))
        return Level(self.name, self.domain, places, None if starts is None else tuple(starts), named=named)

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
        """The position of a label or a code in cell order, or None where there is none."""
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
        """Codes and labels: no label is another value's code."""
        texts = (self.coded,) if self._named is None else (self.coded, self._named)
        return {text: i for own in texts for i, text in enumerate(own)}

    @property
    def grouped(self) -> tuple[Level, ...]:
        """The levels above the values, from fine to coarse."""
        return tuple(level for level in self.levels if isinstance(level, Level))

    def labels_at(self, level: Level) -> dict[str, str] | None:
        """What people read of the groups of a level, and of the categories beside them, by codes; None: these."""
        if level.named is None and self._named is None:
            return None
        categories = islice(zip(self.coded, self.labels, strict=True), self.domain_size, None)
        found = dict((*categories, *zip(level.coded, level.labels, strict=True)))
        read_labels(
            f"attribute {self.name!r}, level {level.name!r}, labels", found, tuple(found)
        )  # which tell all apart
        return found

    def to_dict(self) -> dict[str, Any]:
        """The declaration with the keys of the YAML form, defaults left out."""
        fields: dict[str, Any] = {"name": self.name}
        fields |= {way: list(value) if isinstance(value, tuple) else value for way, value in self._declared.items()}
        usual = {"ordered": None, "missing": ERROR, "other": ERROR, "column": None, "before": None, "by": "day"}
        fields |= {key: getattr(self, key) for key, value in usual.items() if getattr(self, key) != value}
        fields |= {key: word for key in OF_COLUMN if (word := getattr(self, key)) is not None}
        if self._named is not None:
            pairs = zip(self.coded, self._named, strict=True)
            fields["labels"] = {code: label for code, label in pairs if code != label}
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
        check_given(where, raw, (*READERS, "ordered", "before", *_WORDS))
        if raw.get("column") == "":  # in a file, a name that somebody forgot
            raise SchemaError(f"{where}, column", "must be a column name", "write the name of the data's column")
        fields: dict[str, Any] = dict(mapped(where, raw, read) if "mapping" in raw else raw)
        fields |= {key: LabelFile.from_dict(fields.get(key)) for key in _ORIGINS}
        return cls(codes=fields.pop("size", None), **fields)
