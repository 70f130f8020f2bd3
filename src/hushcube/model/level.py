"""Levels: the values of an attribute in groups, the groups in larger groups, from fine to coarse.

    levels:
      - {name: division, groups: {New England: [CT, ME, MA], Pacific: [CA, OR, WA]}}
      - {name: region, groups: {Northeast: [New England], West: [Pacific]}}      members are groups of the level before
      - {name: band, starts: [0, 18, 65]}                                        numbers: 0-17, 18-64, 65-99

Of a level, too, `title` and `labels` say what people read [model/words.py]; members are named by code or by label.
A mapping file holds the same as a table: the values in the first column, their groups in the others, fine to coarse.
Every value lies in one group of each level, every group in one group of the next: levels are nested.
Days between two dates have the levels that calendars have: months, quarters and years.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from itertools import accumulate, pairwise
from typing import Any, Final, Literal, get_args

from hushcube.errors import SchemaError
from hushcube.model.label import READERS, LabelFile, check_keys, is_label, label_of
from hushcube.model.words import check_given, checked_word, read_labels
from hushcube.text import short, visible

LEVEL_NAME: Final = re.compile(r"\w([\w -]{0,198}\w)?")
LARGEST_MAPPING: Final = 1_000_000
ReadFile = Callable[[str], str]
"""Reads a mapping file that a schema names."""
Step = Literal["day", "month", "quarter", "year"]
STEPS: Final[tuple[Step, ...]] = get_args(Step)
NumberLabel = Callable[[float, float | None], str]
"""Names the numbers from one up to before another, or up to the end."""


@dataclass(frozen=True, repr=False)
class Level:
    """One way to group the values of an attribute.

    >>> cities = Level("city", ("Boston", "New York", "Reno"), (0, 1, 2))
    >>> Level("coast", ("east", "west"), (0, 0, 1)).groups(cities)
    {'east': ['Boston', 'New York'], 'west': ['Reno']}
    """

    name: str
    coded: tuple[str, ...]
    """The groups as they are declared."""
    places: tuple[int, ...]
    """For each value of the domain, its group."""
    starts: tuple[float, ...] | None = None
    """Where the groups begin, if they were declared so."""
    title: str | None = None
    named: tuple[str, ...] | None = None
    """What people read, where that is something else."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What people read of each group."""
        return self.coded if self.named is None else self.named

    def __repr__(self) -> str:
        shown = ", ".join(map(visible, self.labels[:6])) + (", ..." if len(self.labels) > 6 else "")
        return f"Level({self.name!r}: {len(self.labels):,} groups of {len(self.places):,} values: {shown[:200]})"

    def groups(self, below: Level) -> dict[str, list[str]]:
        """What a finer level has in each group."""
        result: dict[str, dict[str, None]] = {code: {} for code in self.coded}
        for here, there in zip(self.places, below.places, strict=True):
            result[self.coded[here]][below.coded[there]] = None
        return {code: list(members) for code, members in result.items()}

    def to_dict(self, below: Level) -> dict[str, Any]:
        """The keys of the YAML form."""
        own = {"groups": self.groups(below)} if self.starts is None else {"starts": list(self.starts)}
        words: dict[str, Any] = {} if self.title is None else {"title": self.title}
        if self.named is not None:
            pairs = zip(self.coded, self.named, strict=True)
            words["labels"] = {code: label for code, label in pairs if code != label}
        return {"name": self.name, **own, **words}


def read_levels(where: str, raw: Any, values: Level, number_label: NumberLabel) -> tuple[Level, ...]:
    """Read a list of levels over the values of a domain, whose `starts` say where numbers begin."""
    if not isinstance(raw, list | tuple):
        raise SchemaError(f"{where}, levels", "must be a list", "write `levels:` and one `- {name: ...}` for each")
    below = values
    found: list[Level] = []
    for number, each in enumerate(raw, 1):
        below = _read_level(f"{where}, level {number}", each, below, number_label)
        if any(below.name == other.name for other in found):
            raise SchemaError(f"{where}, level {below.name!r}", "is declared twice", "declare each level once")
        found.append(below)
    return tuple(found)


def _read_level(where: str, raw: Any, below: Level, number_label: NumberLabel) -> Level:
    if isinstance(raw, Level):  # made already: it must fit as if it were declared
        if len(raw.places) != len(below.places) or not all(0 <= place < len(raw.labels) for place in raw.places):
            raise SchemaError(where, "does not have one group for each value", "give each value its group")
        raw = raw.to_dict(below)
    keys = ("name", "groups", "starts", "title", "labels")
    check_keys(where, raw, keys, "write for example {name: band, starts: [0, 18, 65]}")
    check_given(where, raw, keys[3:])
    if ("groups" in raw) == ("starts" in raw):
        raise SchemaError(where, "needs either groups or starts", "say which values belong together")
    if "starts" in raw:
        found = _from_starts(where, raw.get("name"), raw["starts"], below, number_label)
    else:
        found = _from_groups(where, raw.get("name"), raw["groups"], below)
    named = read_labels(f"{where}, labels", raw.get("labels"), found.coded)
    return replace(found, title=checked_word(where, "title", raw.get("title")), named=named)


def _from_groups(where: str, name: Any, raw: Any, below: Level) -> Level:
    if not isinstance(raw, Mapping) or not raw:
        raise SchemaError(f"{where}, groups", "must be a mapping", "write for example `groups: {West: [CA, OR]}`")
    index = {text: place for texts in (below.coded, below.labels) for place, text in enumerate(texts)}
    group_of: dict[int, int] = {}
    for group, (label, members) in enumerate(raw.items()):
        at = f"{where}, groups, {short(label)}"
        if not isinstance(members, list | tuple) or not members:
            raise SchemaError(at, "must be a list of labels", "write for example `West: [CA, OR]`")
        for member in (label_of(at, each) for each in members):
            if member not in index:
                fix = f"use the labels of {below.name!r}, the level before"
                raise SchemaError(at, f"{short(member)} is not a label of {below.name!r}", fix)
            if index[member] in group_of:
                raise SchemaError(at, f"{short(member)} is named twice", "put it into one group")
            group_of[index[member]] = group
    absent = next((label for place, label in enumerate(below.labels) if place not in group_of), None)
    if absent is not None:
        raise SchemaError(f"{where}, groups", f"{short(absent)} of {below.name!r} is in no group", "put it into one")
    labels = tuple(label_of(f"{where}, groups", label) for label in raw)
    if not all(map(is_label, labels)):
        raise SchemaError(f"{where}, groups", "a group's name is not a label", "use non-empty texts or numbers")
    if len(set(labels)) != len(labels):
        raise SchemaError(f"{where}, groups", "two groups have one name", "name them differently")
    return Level(_name(where, name), labels, tuple(group_of[place] for place in below.places))


def _from_starts(where: str, name: Any, raw: Any, below: Level, number_label: NumberLabel) -> Level:
    if below.starts is None:
        fix = "use starts with `range`, `size` or `bins`, and groups with labels"
        raise SchemaError(f"{where}, starts", f"{below.name!r} is not in the order of numbers", fix)
    plain = isinstance(raw, list | tuple) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in raw)
    if not plain or not raw:
        raise SchemaError(f"{where}, starts", "must be a list of numbers", "write for example `starts: [0, 18, 65]`")
    starts = tuple(raw)
    if any(not a < b for a, b in pairwise(starts)):
        raise SchemaError(f"{where}, starts", "must increase", "sort them and drop repeated ones")
    if starts[0] != below.starts[0]:
        fix = f"begin with {below.starts[0]:g}"
        raise SchemaError(f"{where}, starts", "the first is not the smallest number", fix)
    inside = set(below.starts)
    wrong = next((start for start in starts if start not in inside), None)
    if wrong is not None:
        fix = f"begin groups where those of {below.name!r} begin"
        raise SchemaError(f"{where}, starts", f"{wrong:g} is not where one of {below.name!r} begins", fix)
    labels = tuple(number_label(low, high) for low, high in zip(starts, (*starts[1:], None), strict=True))
    begins = set(starts)
    group_of = list(accumulate((low in begins for low in below.starts), initial=-1))[1:]
    return Level(_name(where, name), labels, tuple(group_of[place] for place in below.places), starts)


def _name(where: str, name: Any) -> str:
    if not isinstance(name, str) or not LEVEL_NAME.fullmatch(name):
        fix = "use letters, digits, blanks, - and _, for example `name: region`"
        raise SchemaError(where, f"{short(name)} is not a name for a level", fix)
    return name


def mapped(where: str, raw: Mapping[str, Any], read: ReadFile | None) -> dict[str, Any]:
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
    own = {} if any(way in raw for way in READERS) else {"values": list(values), "values_from": file}
    rest = {key: value for key, value in raw.items() if key != "mapping"}
    return {**rest, **own, "levels": levels, "levels_from": file}


def read_mapping(where: str, text: str) -> tuple[tuple[str, ...], list[dict[str, Any]]]:
    """The values and the declared levels of a mapping file, CSV with a header.

    >>> values, levels = read_mapping("m", "code,chapter\\n001,infections\\n390,heart\\n410,heart\\n")
    >>> values, levels[0]["groups"]
    (('001', '390', '410'), {'infections': ['001'], 'heart': ['390', '410']})
    """
    try:
        rows = list(csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True))
    except csv.Error:
        raise SchemaError(where, "is not a CSV file", "write a header and one line for each value") from None
    if len(rows) < 2 or len(rows[0]) < 2:
        raise SchemaError(where, "has no values or no levels", "write a header such as `code,chapter`, then the values")
    if len(rows) > LARGEST_MAPPING:
        raise SchemaError(where, f"has more than {LARGEST_MAPPING:,} lines", "map fewer values")
    width = len(rows[0])
    for number, row in enumerate(rows, 1):
        if len(row) != width or not all(row):
            fix = f"give each line {width} texts that are not empty"
            raise SchemaError(f"{where}, line {number}", "does not fit the header", fix)
    levels = []
    for column in range(1, width):
        groups: dict[str, dict[str, None]] = {}
        for row in rows[1:]:
            groups.setdefault(row[column], {})[row[column - 1]] = None
        levels.append({"name": rows[0][column], "groups": {label: list(each) for label, each in groups.items()}})
    return tuple(row[0] for row in rows[1:]), levels


def day_numbers(ends: Sequence[str]) -> tuple[int, int]:
    """Days since 1970-01-01 of both ends."""
    first, last = ((date.fromisoformat(end) - date(1970, 1, 1)).days for end in ends)
    return first, last


def day_groups(ends: Sequence[str], step: Step) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The labels of the steps between two dates, and the step of each day.

    >>> day_groups(("2023-12-30", "2024-01-02"), "quarter")
    (('2023-Q4', '2024-Q1'), (0, 0, 1, 1))
    """
    first = date.fromisoformat(ends[0])
    low, high = day_numbers(ends)
    names = [_label(first + timedelta(days=each), step) for each in range(high - low + 1)]
    places = {label: place for place, label in enumerate(dict.fromkeys(names))}
    return tuple(places), tuple(places[name] for name in names)


def calendar_levels(ends: Sequence[str], by: Step) -> tuple[Level, ...]:
    """The levels above a step: quarter and year above months."""
    _, own = day_groups(ends, by)
    a_day = {place: day for day, place in enumerate(own)}
    coarser = ((step, *day_groups(ends, step)) for step in STEPS[STEPS.index(by) + 1 :])
    return tuple(Level(step, labels, tuple(places[day] for day in a_day.values())) for step, labels, places in coarser)


def _label(day: date, step: Step) -> str:
    if step == "day":
        return day.isoformat()
    if step == "quarter":
        return f"{day.year:04}-Q{(day.month + 2) // 3}"
    return f"{day.year:04}-{day.month:02}" if step == "month" else f"{day.year:04}"
