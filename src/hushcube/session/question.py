"""The questions of a session: one table of counts each."""

from __future__ import annotations

from collections.abc import Sequence

from hushcube.errors import SessionError
from hushcube.model.arrays import Marginal
from hushcube.model.schema import Schema
from hushcube.text import visible


def read_question(question: str | Sequence[str], schema: Schema) -> Marginal:
    """The table that a question names: attributes joined by `*`, or their names; `total` is everybody.

    >>> from hushcube.samples import TITANIC
    >>> read_question("sex * class", TITANIC), read_question("total", TITANIC)
    ((0, 1), ())
    """
    fix = "name one table, such as age*sex"
    if isinstance(question, str):
        if any(mark in question for mark in "(,="):
            raise SessionError("question", f"{visible(question)!r} is no single table of counts", fix)
        names = [name.strip() for name in question.split("*")]
        names = [] if names in (["total"], ["0-way"]) and "total" not in schema.names else names
    else:
        names = list(question)
    if not all(isinstance(name, str) and name for name in names):
        raise SessionError("question", "has an empty name", fix)
    return schema.marginal(names)
