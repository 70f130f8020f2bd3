"""What everybody knows about the people in the data: cells that are empty, and counts known from another source.

A fact says how many people are in one cell of one marginal; a count of 0 is a structural zero. Facts are public, as
the schema is: they are declared, they are published, and nothing protects them. The file form:

    zeros:                                  # nobody is like this
      - {sex: Male, pregnant: "yes"}
      - {age: ["0", "1", "2"], marital: [Married, Widowed]}     # lists mean every combination
    totals:                                 # known exactly from another public source
      - {count: 32561}                      # everybody
      - {where: {sex: Female}, count: 10771}

Errors number the items from 1: `facts, totals[2], where, sex`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product
from typing import Any, Final

import numpy as np

from hushcube.errors import FactsError, SchemaError, readable
from hushcube.model.arrays import Ints, Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.files import read_yaml
from hushcube.model.label import check_keys, label_of
from hushcube.model.schema import Schema
from hushcube.model.words import UNIT_NOUN
from hushcube.text import short

_Where = Mapping[str, Any]
"""Labels, or lists of labels, of some attributes."""
_Item = tuple[str, dict[int, tuple[int, ...]], int]
"""One item of a file: where it stands, the values that are meant of each attribute, the count."""

MAX_CELLS: Final = 100_000
MAX_COUNT: Final = 10**12  # far beyond any number of people, and small enough for exact sums in floats
_LISTED: Final = 20  # how many facts of a kind are written out in words


@dataclass(frozen=True)
class Fact:
    """The number of people in one cell of one marginal."""

    marginal: Marginal
    cell: tuple[int, ...]
    count: int


@dataclass(frozen=True, eq=False)
class Known:
    """The facts on one marginal as arrays: their numbers, cells (facts, attributes) and counts."""

    ids: Ints
    cells: Ints
    counts: Ints


@dataclass(frozen=True, repr=False)
class Facts:
    """Distinct facts, the zeros first, each kind ordered by marginal and cell; equal facts are merged.

    >>> schema = Schema.from_yaml('''
    ... attributes:
    ...   - {name: sex, values: [Female, Male]}
    ...   - {name: pregnant, values: ["yes", "no"]}
    ... ''')
    >>> facts = Facts.of(schema, zeros=[{"sex": "Male", "pregnant": "yes"}], totals=[({"sex": "Female"}, 10771)])
    >>> facts.describe()
    ['No person has sex = Male and pregnant = yes.', 'The number of people with sex = Female is 10,771.']
    >>> bool(facts), bool(Facts.none(schema))
    (True, False)
    """

    schema: Schema
    facts: tuple[Fact, ...]

    def __post_init__(self) -> None:
        if len(self.facts) > MAX_CELLS:
            raise _too_many()
        known: dict[tuple[Marginal, tuple[int, ...]], Fact] = {}
        shapes = {marginal: _shape(marginal, self.schema) for marginal in {fact.marginal for fact in self.facts}}
        for number, fact in enumerate(self.facts, 1):
            _check(number, fact, shapes[fact.marginal])
            if known.setdefault((fact.marginal, fact.cell), fact).count != fact.count:
                raise FactsError(f"facts[{number}]", "another fact says another count of the cell", "keep one of them")
        ordered = sorted(known.values(), key=lambda f: (f.count > 0, len(f.marginal), f.marginal, f.cell))
        object.__setattr__(self, "facts", tuple(ordered))

    def __repr__(self) -> str:
        shown = " ".join(self.describe()[:3])
        return f"Facts({len(self.facts):,}: {shown[:300]}{' ...' if len(self.facts) > 3 else ''})"

    def __bool__(self) -> bool:
        return bool(self.facts)

    @classmethod
    def none(cls, schema: Schema) -> Facts:
        """Nothing is known but the schema."""
        return cls(schema, ())

    @classmethod
    def of(cls, schema: Schema, *, zeros: Iterable[_Where] = (), totals: Iterable[tuple[_Where, int]] = ()) -> Facts:
        """Declare facts in Python; an empty mapping stands for everybody."""
        listed = [{"where": where, "count": count} for where, count in totals]
        return cls.from_dict({"zeros": list(zeros), "totals": listed}, schema)

    @classmethod
    def from_dict(cls, raw: Any, schema: Schema) -> Facts:
        """Read the file form; the offending key is named."""
        check_keys("facts", raw, ("zeros", "totals"), "start it with `zeros:` or `totals:`", FactsError)
        found: dict[tuple[Marginal, tuple[int, ...]], tuple[int, str]] = {}
        zeros, totals = raw.get("zeros", []), raw.get("totals", [])
        for key, items in (("zeros", zeros), ("totals", totals)):
            if not isinstance(items, list):
                raise FactsError(f"facts, {key}", "must be a list", f"write `{key}:` and one `- {{...}}` for each")
        read = [*_zeros(zeros, schema), *_totals(totals, schema)]
        if sum(math.prod(map(len, choices.values())) for _, choices, _ in read) > MAX_CELLS:
            raise _too_many()
        for field, choices, count in read:
            marginal = tuple(sorted(choices))
            for cell in product(*(choices[i] for i in marginal)):
                before = found.setdefault((marginal, cell), (count, field))
                if before[0] != count:
                    problem = f"says {count:,} of a cell of which {before[1]} says {before[0]:,}"
                    raise FactsError(field, problem, "keep one of them")
        return cls(schema, tuple(Fact(*where, count) for where, (count, _) in found.items()))

    @classmethod
    def from_yaml(cls, text: str, schema: Schema) -> Facts:
        """Read a facts file's text."""
        return cls.from_dict(read_yaml(text, "facts", FactsError, "write plain lists of zeros and totals"), schema)

    def to_dict(self) -> dict[str, Any]:
        """The file form, one item for each cell."""
        zeros = [self._labels(fact) for fact in self.facts if not fact.count and fact.marginal]
        known = [fact for fact in self.facts if fact.count or not fact.marginal]
        totals = [({"where": self._labels(fact)} if fact.marginal else {}) | {"count": fact.count} for fact in known]
        return {key: items for key, items in (("zeros", zeros), ("totals", totals)) if items}

    def describe(self) -> list[str]:
        """The facts as sentences; a long list is cut."""
        zeros = [fact for fact in self.facts if not fact.count]
        totals = self.facts[len(zeros) :]
        lines: list[str] = []
        for facts, what in ((zeros, "cells declared empty"), (totals, "known counts")):
            lines += map(self.sentence, facts[:_LISTED])
            lines += [f"... and {len(facts) - _LISTED:,} more {what}."] * (len(facts) > _LISTED)
        return lines

    def sentence(self, fact: Fact) -> str:
        """One fact in plain words."""
        conditions = " and ".join(f"{name} = {label}" for name, label in self._labels(fact).items())
        noun = self.schema.unit_noun
        if conditions and not fact.count:
            return f"No person has {conditions}." if noun == UNIT_NOUN else f"There are no {noun} with {conditions}."
        return f"The number of {noun}{' with ' if conditions else ''}{conditions} is {fact.count:,}."

    def _labels(self, fact: Fact) -> dict[str, str]:
        attributes = (self.schema.attributes[i] for i in fact.marginal)
        return {attribute.name: attribute.labels[at] for attribute, at in zip(attributes, fact.cell, strict=True)}

    @property
    def people(self) -> int | None:
        """How many people there are, if facts say so: in every cell of some marginal.

        >>> schema = Schema.from_yaml("attributes: [{name: sex, values: [Female, Male]}]")
        >>> Facts.of(schema, totals=[({"sex": "Female"}, 2), ({"sex": "Male"}, 3)]).people
        5
        >>> Facts.of(schema, totals=[({"sex": "Female"}, 2)]).people
        """
        whole = (k.counts for m, k in self.by_marginal.items() if len(k.ids) == self.schema.cells(m))
        return next((int(counts.sum()) for counts in whole), None)

    @cached_property
    def by_marginal(self) -> dict[Marginal, Known]:
        """The facts of each marginal as arrays."""
        groups: dict[Marginal, list[int]] = {}
        for number, fact in enumerate(self.facts):
            groups.setdefault(fact.marginal, []).append(number)
        cells = {m: np.array([self.facts[i].cell for i in ids], np.int64) for m, ids in groups.items()}
        counts = np.array([fact.count for fact in self.facts], np.int64)
        return {m: Known(np.array(ids), cells[m].reshape(len(ids), len(m)), counts[ids]) for m, ids in groups.items()}

    def classes(self) -> tuple[Ints, ...]:
        """For each attribute the class of each value: the labels that facts name stand alone, the others together.

        No fact tells values of one class apart: a person who moves within a class changes no fact's count.
        Classes are numbered by their first value.
        """
        named = [np.zeros(size, bool) for size in self.schema.sizes]
        for marginal, known in self.by_marginal.items():
            for position, values in zip(marginal, known.cells.T, strict=True):
                named[position][values] = True
        firsts = (np.where(alone, np.arange(len(alone)), np.argmin(alone)) for alone in named)
        return tuple(np.unique(first, return_inverse=True)[1].astype(np.int64) for first in firsts)


def _zeros(items: list[Any], schema: Schema) -> Iterator[_Item]:
    for number, item in enumerate(items, 1):
        field = f"facts, zeros[{number}]"
        choices = _choices(field, item, schema)
        if not choices:
            raise FactsError(field, "names no attribute", "write for example {sex: Male, pregnant: yes}")
        yield field, choices, 0


def _totals(items: list[Any], schema: Schema) -> Iterator[_Item]:
    for number, item in enumerate(items, 1):
        field = f"facts, totals[{number}]"
        example = "write for example {where: {sex: Female}, count: 10771}"
        check_keys(field, item, ("where", "count"), example, FactsError)
        if "count" not in item:
            raise FactsError(field, "has no count", "add `count:`")
        choices = _choices(f"{field}, where", item.get("where", {}), schema, lists=False)
        yield field, choices, _count(f"{field}, count", item["count"])


def _choices(field: str, raw: Any, schema: Schema, *, lists: bool = True) -> dict[int, tuple[int, ...]]:
    """The values that are meant of each attribute named."""
    if not isinstance(raw, Mapping):
        raise FactsError(field, "must be a mapping", "write attributes with their labels, for example {sex: Male}")
    choices: dict[int, tuple[int, ...]] = {}
    for key, value in raw.items():
        name = _text(field, key)
        if name not in schema.names:
            raise FactsError(field, f"{name[:40]!r} is not in the schema", f"use one of: {schema.some_names}")
        place = f"{field}, {name}"
        if isinstance(value, list | tuple) and not lists:
            raise FactsError(place, "is a list", "give one label for each attribute, and one total for each cell")
        labels = value if isinstance(value, list | tuple) else [value]
        found = tuple(_position(place, label, schema[name]) for label in labels)
        if not found or len(set(found)) != len(found):
            problem = "names a label twice" if found else "the list is empty"
            raise FactsError(place, problem, "list each label once, or leave the attribute out")
        if schema.position(name) in choices:  # 7 and "7" are one name
            raise FactsError(field, f"names {name!r} twice", "name each attribute once")
        choices[schema.position(name)] = found
    return choices


def _position(field: str, raw: Any, attribute: Attribute) -> int:
    label = _text(field, raw)
    at = attribute.position(label)
    if at is None:
        known = ", ".join(repr(value[:40]) for value in islice(attribute.labels, 10))
        more = ", ..." if attribute.size > 10 else ""
        raise FactsError(field, f"{label[:40]!r} is not one of its values", f"use one of: {known}{more}")
    return at


def _text(field: str, raw: Any) -> str:
    try:
        return label_of(field, raw.item() if isinstance(raw, np.generic) else raw)
    except SchemaError as error:
        raise FactsError(field, error.problem, "use labels of the schema: texts or numbers") from None


def _count(field: str, raw: Any) -> int:
    whole = not isinstance(raw, bool) and hasattr(raw, "__index__")
    if not whole or raw < 0:
        problem = "is negative" if whole else f"{short(raw)} is not a number of people"
        raise FactsError(field, problem, "write a whole number, 0 or more, without quotes or decimals")
    count = operator.index(raw)
    if count > MAX_COUNT:
        raise FactsError(field, f"{readable(count)} is more than {MAX_COUNT:,}", "give a smaller count")
    return count


def _shape(marginal: Marginal, schema: Schema) -> tuple[int, ...]:
    if list(marginal) != sorted(set(marginal)) or any(not 0 <= i < len(schema) for i in marginal):
        raise FactsError("facts", f"{marginal} is not a marginal", "give increasing positions of attributes")
    return schema.shape(marginal)


def _check(number: int, fact: Fact, shape: tuple[int, ...]) -> None:
    """A fact made in Python: its cell must be one of its marginal's."""
    if len(fact.cell) != len(shape) or not all(map(operator.lt, fact.cell, shape)) or min(fact.cell, default=0) < 0:
        raise FactsError(f"facts[{number}]", "its cell is outside the marginal", "give a value for each, from 0")
    _count(f"facts[{number}], count", fact.count)


def _too_many() -> FactsError:
    return FactsError("facts", f"there are more than {MAX_CELLS:,} cells", "declare fewer or coarser facts")
