"""The questions of a session: one table of counts each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hushcube.errors import SessionError
from hushcube.model.arrays import Marginal
from hushcube.model.schema import Schema
from hushcube.text import visible

_FIX: Final = "name one table, such as age*sex"


@dataclass(frozen=True)
class Question:
    """A table of the schema: its marginal, and its attributes in the order in which they were named."""

    marginal: Marginal
    names: tuple[str, ...]
    word: str
    """What it is called, whatever the order of its attributes."""

    @classmethod
    def read(cls, given: str | Sequence[str], schema: Schema) -> Question:
        """The table that is named: attributes joined by `*`, or their names; `total` is everybody.

        >>> from hushcube.samples import TITANIC
        >>> asked = Question.read("sex * class", TITANIC)
        >>> asked.marginal, asked.names, asked.word
        ((0, 1), ('sex', 'class'), 'class*sex')
        """
        if isinstance(given, str):
            if any(mark in given for mark in "(,="):
                raise SessionError("question", f"{visible(given)!r} is no single table of counts", _FIX)
            names = [name.strip() for name in given.split("*")]
            names = [] if names in (["total"], ["0-way"]) and names[0] not in schema.names else names
        else:
            names = list(given)
        if not all(isinstance(name, str) and name for name in names):
            raise SessionError("question", "has an empty name", _FIX)
        marginal = schema.marginal(names)
        return cls(marginal, tuple(names), schema.describe(marginal))
