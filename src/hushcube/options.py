"""Options of strategies and faces: documented fields of a frozen dataclass, and the one word that gives them.

    hierarchy:fan-out=4        ireduct:sanity-bound=10,lambda-max=5%        nonnegative:norm=l1

The word is the same on the command line and in Python, where the object itself may be given too. Help and the tables of
the documentation are made from the fields, so that none of them can forget an option.
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self, TypeVar

from hushcube.errors import BadInput
from hushcube.text import short

Value = TypeVar("Value")
Reader = Callable[[Any, str], Any]
"""Turns what was given, text or not, into the value of a field, whose name is in the error otherwise."""


@dataclass(frozen=True)
class Option:
    """One option, as help and documents show it."""

    name: str
    takes: str
    default: object
    says: str
    several: bool = False

    @property
    def word(self) -> str:
        """As it is spelled in a word: `fan-out`."""
        return self.name.replace("_", "-")


def option(default: Value, says: str, *, takes: str, read: Reader, several: bool = False) -> Value:
    """A field of a `Configured` class; `says` is a phrase for help and documents, `takes` stands for the value.

    Commas separate options, but those of a value that may hold `several` words: what names no option belongs to it.
    """
    told = {"says": says, "takes": takes, "read": read, "several": several}
    made: Any = dataclasses.field(default=default, metadata=told)
    return made  # type: ignore[no-any-return] # dataclasses take the field for its value


def choice(default: Value, says: str, choices: tuple[Any, ...]) -> Value:
    """A field that is one of a few words."""
    return option(default, says, takes="|".join(map(str, choices)), read=partial(check_choice, choices=choices))


def check_choice(given: object, name: str, choices: tuple[Any, ...]) -> object:
    """One of a few words, or an error that lists them."""
    if given not in choices:
        raise BadInput(name, f"{short(given)} is unknown", f"choose {', '.join(choices[:-1])} or {choices[-1]}")
    return given


def whole(least: int) -> Reader:
    """Reads a whole number that is not below the least."""

    def read(given: object, name: str) -> int:
        fix = f"give a whole number from {least}"
        if isinstance(given, str) and re.fullmatch("-?[0-9]{1,18}", given.strip()):
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, int):
            raise BadInput(name, f"{short(given)} is not a whole number", fix)
        if given < least:
            raise BadInput(name, f"{given} is too small", fix)
        return given

    return read


class Configured(ABC):
    """A frozen dataclass whose fields made by `option` are its options; they are read and checked when it is made."""

    @property
    @abstractmethod
    def head(self) -> str:
        """The first part of its word."""

    @property
    @abstractmethod
    def summary(self) -> str:
        """What it is, in a phrase for help and documents."""

    def __post_init__(self) -> None:
        for field, given in self._given().items():
            object.__setattr__(self, field.name, field.metadata["read"](given, field.name))

    def _given(self) -> dict[dataclasses.Field[Any], Any]:
        """The options that do not have their default."""
        own = {field: getattr(self, field.name) for field in _fields(type(self))}
        return {field: value for field, value in own.items() if value is not field.default}

    def options(self) -> tuple[Option, ...]:
        """What may be given."""
        return tuple(
            Option(f.name, f.metadata["takes"], f.default, f.metadata["says"], f.metadata["several"])
            for f in _fields(type(self))
        )

    def with_options(self, given: Mapping[str, object]) -> Self:
        """The same with some options changed; their names are spelled as in Python."""
        return dataclasses.replace(self, **given)  # type: ignore[type-var] # whatever has options is a dataclass

    def __str__(self) -> str:
        given = ",".join(f"{f.name.replace('_', '-')}={value}" for f, value in self._given().items())
        return f"{self.head}:{given}" if given else self.head


def _fields(cls: type[Configured]) -> list[dataclasses.Field[Any]]:
    made: Any = cls
    return [field for field in dataclasses.fields(made) if "says" in field.metadata]


Kind = TypeVar("Kind", bound=Configured)


def read_word(text: str, known: Mapping[str, Kind], field: str, *, others: tuple[str, ...] = ()) -> Kind:
    """What a word such as `hierarchy:fan-out=4` names, among what is known; `others` are words that a caller reads."""
    name, colon, rest = text.partition(":")
    start = known.get(name.strip())
    if start is None:
        raise BadInput(field, f"{short(name)} is unknown", f"choose {', '.join((*others, *known))}")
    if colon and not start.options():
        raise BadInput(field, f"{start.head} has no options", f"write `{start.head}` alone")
    spelled = {own.word: own for own in start.options()}
    given: dict[str, str] = {}
    last: Option | None = None
    for part in re.split(r",(?=\s*[A-Za-z_-]+\s*=)", rest) if colon else ():
        word, equals, value = part.partition("=")
        word = word.strip().replace("_", "-")
        if last is not None and last.several and word not in spelled:
            given[last.name] += f",{part}"
            continue
        if not equals or word not in spelled:
            its_own = "; ".join(f"{own.word}={own.takes}: {own.says}" for own in start.options())
            raise BadInput(field, f"{start.head} has no option {short(part.partition('=')[0])}", its_own)
        if spelled[word].name in given:
            raise BadInput(field, f"{word} is given twice", "give it once")
        last = spelled[word]
        given[last.name] = value.strip()
    return start.with_options(given)
