"""The declared, public domain of a data set."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import yaml

from hushcube.durable import new_file
from hushcube.errors import PrivacyError, SchemaError, WorkloadError
from hushcube.model.arrays import Ints, Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import MARK, at_level, base_of, coarsening
from hushcube.model.files import read_mapping_file, read_text, read_yaml
from hushcube.model.label import MAX_NAME, check_keys, is_label
from hushcube.model.level import ReadFile
from hushcube.model.measure import Measure
from hushcube.model.privacy import KEYS, MAX_ROWS, Unit
from hushcube.model.quality import BY_DEFAULT, Quality
from hushcube.model.words import OF_SCHEMA, UNIT_NOUN, check_given, checked_word
from hushcube.text import visible

COUNT: Final = "count"  # what the number of people is called beside the measures
MAX_ATTRIBUTES = 2_000
MAX_LABELS = 5_000_000
_SHOWN: Final = 12  # attributes in a line


@dataclass(frozen=True, repr=False)
class Schema:
    """Attributes in a fixed order; every marginal lists its attributes in this order.

    >>> schema = Schema.from_yaml('''
    ... name: people
    ... attributes:
    ...   - {name: sex, values: [Female, Male]}
    ...   - {name: age, range: [0, 99]}
    ... ''')
    >>> schema
    Schema('people': sex 2, age 100)
    >>> schema.marginal(["age", "sex"])
    (0, 1)
    """

    attributes: Sequence[Attribute]
    name: str = "data"
    unit: Unit | None = None
    """Whose rows belong together; without it, a row is a person, or a person has no more rows than promised."""
    measures: Sequence[Measure] = ()
    """Numbers that rows carry, to be summed and averaged."""
    whole: Schema | None = None
    """The declared schema, where this one is how a workload sees it: at some levels.  [`at_levels`]"""
    _: KW_ONLY
    title: str | None = None
    description: str | None = None
    source: str | None = None
    """Where the data comes from."""
    licence: str | None = None
    contact: str | None = None
    period: str | None = None
    """What time the data is about."""
    unit_noun: str = UNIT_NOUN
    """What the tables count: people, calls, stays."""
    quality: Quality = BY_DEFAULT
    """From when on published numbers are flagged."""

    def __post_init__(self) -> None:
        self._freeze("attributes", Attribute)
        self._freeze("measures", Measure)
        for key in OF_SCHEMA:
            object.__setattr__(self, key, checked_word("", key, getattr(self, key)))
        object.__setattr__(self, "unit_noun", self.unit_noun or UNIT_NOUN)
        if not isinstance(self.quality, Quality):  # in Python too, it may be written as in YAML
            object.__setattr__(self, "quality", Quality.from_dict(self.quality))
        if not self.attributes:
            raise SchemaError("attributes", "there are none", "declare at least one attribute")
        if len(self.attributes) > MAX_ATTRIBUTES:
            raise SchemaError("attributes", f"there are more than {MAX_ATTRIBUTES:,}", "declare fewer attributes")
        if not is_label(self.name) or len(self.name) > MAX_NAME:
            raise SchemaError("name", f"must be a text of at most {MAX_NAME} characters", "write `name: people`")
        if sum(attribute.size for attribute in self.attributes) > MAX_LABELS:
            problem = f"together they have more than {MAX_LABELS:,} values"
            raise SchemaError("attributes", problem, "declare coarser values or bins")
        seen: set[str] = set()
        for kind, declared in (("attribute", self.attributes), ("measure", self.measures)):
            for one in declared:
                if one.name in seen:
                    raise SchemaError(f"{kind} {one.name!r}", "is declared twice", f"declare each {kind} once")
                seen.add(one.name)
        if any(measure.name == COUNT for measure in self.measures):
            fix = "rename it, and give `column:`"
            raise SchemaError(f"measure {COUNT!r}", "this name is reserved for the number of people", fix)

    @property
    def shown_name(self) -> str:
        """What people read: the title, or the name."""
        return self.name if self.title is None else self.title

    def _freeze(self, key: str, kind: type) -> None:
        """Lists become tuples."""
        given = getattr(self, key)
        if not isinstance(given, list | tuple) or not all(isinstance(one, kind) for one in given):
            raise SchemaError(key, f"must be a list of {kind.__name__}", f"write `[{kind.__name__}(...), ...]`")
        object.__setattr__(self, key, tuple(given))

    def __repr__(self) -> str:
        shown = [f"{visible(a.name)} {a.size:,}" for a in self.attributes[:_SHOWN]]
        more = [f"and {len(self) - _SHOWN:,} more"] if len(self) > _SHOWN else []
        told = f"Schema({visible(self.name)!r}: {', '.join(shown + more)}"
        if self.measures:
            told += f"; measures {', '.join(visible(measure.name) for measure in self.measures[:_SHOWN])}"
        if self.unit is not None:
            told += f"; at most {self.unit.max_rows:,} rows of each {visible(self.unit.column[:40])}"
        return f"{told})"

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """The schema in a file. What mapping files hold is published: they are found in its folder alone."""
        text = read_text(path, SchemaError, "schema")
        return cls.from_yaml(text, partial(read_mapping_file, Path(path).absolute().parent))

    def save(self, path: str | Path) -> None:
        """Write the schema as a new YAML file."""
        with new_file(Path(path), "path") as file:
            file.write_text(self.to_yaml(), encoding="utf-8")

    @property
    def caveat(self) -> str | None:
        """What the errors of tables do not cover, if there is a unit whose rows are bounded."""
        return None if self.unit is None else self.unit.caveat

    @property
    def label_files(self) -> dict[str, tuple[str, ...]]:
        """The files that labels were read from, each with the attributes whose labels they are; all of it is public."""
        found: dict[str, dict[str, None]] = {}
        for attribute in self.declared.attributes:
            for file in (attribute.values_from, attribute.levels_from):
                if file is not None:
                    found.setdefault(file.name, {})[attribute.name] = None
        return {name: tuple(attributes) for name, attributes in found.items()}

    @property
    def declared(self) -> Schema:
        """The schema as its file declares it."""
        return self if self.whole is None else self.whole

    def at_levels(self, asked: Mapping[str, Collection[str | None]]) -> Schema:
        """The schema as a workload sees it: every asked level of an attribute is an attribute of its own.

        `asked` names levels for some attributes, None for the declared values; from coarse to fine, the levels stand in
        the attribute's place. An attribute that is not named stays as it is.

        >>> age = Attribute(name="age", range=(0, 99), levels=({"name": "band", "starts": [0, 18, 65]},))
        >>> Schema((age, Attribute(name="sex", values=("F", "M")))).at_levels({"age": {"band", None}}).names
        ('age@band', 'age', 'sex')
        """
        declared = self.declared
        seen: list[Attribute] = []
        for attribute in declared.attributes:
            wanted = asked.get(attribute.name) or {None}
            levels = [at_level(attribute, level) for level in wanted if level is not None]
            levels.sort(key=lambda level: -level.depth)
            seen += [*levels, attribute] if None in wanted else levels
        if seen == list(declared.attributes):
            return declared
        return replace(declared, attributes=tuple(seen), whole=declared)

    @cached_property
    def chains(self) -> tuple[tuple[int, ...], ...]:
        """For each declared attribute, where its asked levels stand, from coarse to fine."""
        found: dict[str, list[int]] = {}
        for position, attribute in enumerate(self.attributes):
            found.setdefault(base_of(attribute).name, []).append(position)
        return tuple(map(tuple, found.values()))

    @cached_property
    def finest(self) -> Schema:
        """The schema with each attribute at the finest level at which it is seen."""
        seen, declared = tuple(self.attributes[chain[-1]] for chain in self.chains), self.declared
        return declared if seen == declared.attributes else replace(declared, attributes=seen, whole=declared)

    @property
    def is_nested(self) -> bool:
        """Whether some attribute is seen at several levels."""
        return any(len(chain) > 1 for chain in self.chains)

    def coarsening(self, fine: int, coarse: int) -> Ints:
        """For every value of one position, its group at another position of the same attribute."""
        return coarsening(self.attributes[fine], self.attributes[coarse])

    def seen(self, name: str) -> Attribute:
        """A declared attribute by its name, or one of its levels, such as `state@region`, whether asked for or not."""
        attribute, mark, level = (part.strip() for part in name.partition(MARK))
        found = self.declared[attribute]
        return at_level(found, level) if mark else found

    def __len__(self) -> int:
        return len(self.attributes)

    def __getitem__(self, name: str) -> Attribute:
        return self.attributes[self.position(name)]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in order."""
        return tuple(attribute.name for attribute in self.attributes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The attributes' sizes n_i, in order."""
        return tuple(attribute.size for attribute in self.attributes)

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def position(self, name: str) -> int:
        """Where an attribute stands in the schema."""
        if name not in self._positions:
            raise WorkloadError("attribute", f"{name!r} is not in the schema", f"use one of: {self.some_names}")
        return self._positions[name]

    @property
    def some_names(self) -> str:
        """Names of attributes for a message: the first ones."""
        return ", ".join(self.names[:20]) + (", ..." if len(self) > 20 else "")

    def marginal(self, names: Sequence[str]) -> Marginal:
        """The marginal of some attributes, brought into schema order."""
        positions = tuple(sorted(self.position(name) for name in names))
        if len({base_of(self.attributes[i]).name for i in positions}) != len(positions):
            raise WorkloadError("marginal", f"{'*'.join(names)} names an attribute twice", "name each attribute once")
        return positions

    def shape(self, marginal: Marginal) -> tuple[int, ...]:
        """The sizes of a marginal's attributes."""
        return tuple(self.sizes[i] for i in marginal)

    def cells(self, marginal: Marginal) -> int:
        """The number of cells of a marginal, as a Python integer that cannot overflow."""
        return math.prod(self.shape(marginal))

    def rows_per_person(self, promised: int | None) -> int:
        """How many rows of a person count: as promised, or as the unit keeps; one unless told otherwise."""
        if promised is not None:
            if promised > MAX_ROWS:
                raise PrivacyError("rows_per_person", f"is above {MAX_ROWS:,}", "bound the rows of a person")
            self.check_unit(promised)
            return promised
        return 1 if self.unit is None else self.unit.max_rows

    def measure(self, name: str) -> Measure:
        """A measure by its name."""
        known = {measure.name: measure for measure in self.measures}
        if name not in known:
            fix = f"use one of: {', '.join(known) or 'none; declare it under `measures:`'}"
            raise WorkloadError("measure", f"{name!r} is not in the schema", fix)
        return known[name]

    def check_unit(self, promised: int) -> None:
        """Refuse a guarantee for another number of rows than the unit lets count of a person."""
        if self.unit is not None and self.unit.max_rows != promised:
            problem = f"is {promised}, but the schema keeps {self.unit.max_rows} rows of each {self.unit.column!r}"
            raise PrivacyError("rows_per_person", problem, "leave it out: the schema decides")

    def describe(self, marginal: Marginal) -> str:
        """A marginal as a workload word; the total is `total`."""
        return "*".join(self.names[i] for i in marginal) or "total"

    def to_dict(self) -> dict[str, Any]:
        """The declaration with the keys of the YAML form."""
        if self.whole is not None:
            return self.whole.to_dict()
        unit = {} if self.unit is None else self.unit.to_dict()
        measures = {"measures": [measure.to_dict() for measure in self.measures]} if self.measures else {}
        attributes = [attribute.to_dict() for attribute in self.attributes]
        usual = {**dict.fromkeys(OF_SCHEMA), "unit_noun": UNIT_NOUN}
        words = {key: word for key in OF_SCHEMA if (word := getattr(self, key)) != usual[key]}
        quality = {} if self.quality == BY_DEFAULT else {"quality": self.quality.to_dict()}
        return {"name": self.name, **words, **unit, **quality, "attributes": attributes, **measures}

    @classmethod
    def from_dict(cls, raw: Any, read: ReadFile | None = None) -> Schema:
        """Read the YAML form; the offending key is named. `read` reads the mapping files that attributes name."""
        keys = ("name", *OF_SCHEMA, "attributes", "measures", "quality", *KEYS)
        check_keys("schema", raw, keys, "start it with `name:` and `attributes:`")
        check_given("", raw, OF_SCHEMA)
        declared = {"attributes": raw.get("attributes"), "measures": raw.get("measures", [])}
        for key, items in declared.items():
            if not isinstance(items, list):
                raise SchemaError(key, "must be a list", f"write `{key}:` and one `- {{name: ...}}` for each")
        listed, summed = (enumerate(items, 1) for items in declared.values())
        attributes = [Attribute.from_dict(each, where=f"attribute {i}", read=read) for i, each in listed]
        measures = [Measure.from_dict(each, where=f"measure {i}") for i, each in summed]
        words = {key: raw[key] for key in OF_SCHEMA if key in raw}
        quality = Quality.from_dict(raw.get("quality", {}))
        return cls(attributes, raw.get("name", "data"), Unit.from_dict(raw), measures, quality=quality, **words)

    def to_yaml(self) -> str:
        """The YAML form, one attribute or measure a line."""
        told = self.to_dict()
        lists = [key for key in ("attributes", "measures") if key in told]
        text = _dumped({key: value for key, value in told.items() if key not in lists})
        for key in lists:
            lines = (_dumped(item, default_flow_style=True, width=math.inf).strip() for item in told[key])
            text += f"{key}:\n" + "".join(f"  - {line}\n" for line in lines)
        return text

    @classmethod
    def from_yaml(cls, text: str, read: ReadFile | None = None) -> Schema:
        """Read a schema file's text; `read` reads the mapping files that it names."""
        return cls.from_dict(read_yaml(text, "schema", SchemaError, "write a flat list of attributes"), read)


def _dumped(item: dict[str, Any], **style: Any) -> str:
    """YAML in which every character is seen: where one is not, it is written as an escape."""
    text: str = yaml.safe_dump(item, allow_unicode=True, sort_keys=False, **style)
    if any(line != visible(line) for line in text.split("\n")):
        text = yaml.safe_dump(item, allow_unicode=False, sort_keys=False, **style)
    return text
