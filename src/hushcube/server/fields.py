"""What a request can say: each field once, read by the server and described in its OpenAPI document."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from hushcube.text import short
from hushcube.web.refusals import Refusal

Value = str | int | Fraction
LONGEST: Final = 2000
"""Most characters of a question."""
_LEAST, _MOST = Decimal("1e-15"), Decimal("1e15")


@dataclass(frozen=True)
class Text:
    """Characters: any, those that match a pattern, or one of a few words."""

    name: str
    says: str
    required: bool = False
    pattern: str | None = None
    words: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        if self.words:
            return {"type": "string", "enum": list(self.words)}
        limits = {"pattern": f"^{self.pattern}$"} if self.pattern else {"minLength": 1, "maxLength": LONGEST}
        return {"type": "string", **limits}

    def read(self, raw: Any) -> Value:
        """The text, where it is one of those that are allowed."""
        if not isinstance(raw, str) or not 1 <= len(raw) <= LONGEST:
            raise _bad(self.name, f"is not a text of 1 to {LONGEST:,} characters", self.says)
        if self.words and raw not in self.words:
            raise _bad(self.name, f"{short(raw)} is not known", f"use one of: {', '.join(self.words)}")
        if self.pattern and not re.fullmatch(self.pattern, raw):
            raise _bad(self.name, f"{short(raw)} does not have the form {self.pattern}", self.says)
        return raw


@dataclass(frozen=True)
class Number:
    """A positive number, taken as the digits that were written."""

    name: str
    says: str
    required: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        return {"type": "number", "minimum": float(_LEAST), "maximum": float(_MOST)}

    def read(self, raw: Any) -> Value:
        """The number as a fraction; its size is looked at first, since that of 10^999999999 would fill the memory."""
        if isinstance(raw, bool) or not isinstance(raw, int | Decimal) or not _LEAST <= raw <= _MOST:
            raise _bad(self.name, "is not a number between 1e-15 and 1e15", self.says)
        return Fraction(raw)


@dataclass(frozen=True)
class Count:
    """A whole number in a query string."""

    name: str
    says: str
    most: int
    required: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        """Its JSON schema."""
        return {"type": "integer", "minimum": 1, "maximum": self.most}

    def read(self, raw: Any) -> Value:
        """The number."""
        if not re.fullmatch(r"[1-9][0-9]{0,8}", raw) or int(raw) > self.most:
            raise _bad(self.name, f"is not a whole number from 1 to {self.most:,}", self.says)
        return int(raw)


Field = Text | Number | Count


def read_fields(fields: Sequence[Field], given: Mapping[str, Any], where: str) -> dict[str, Value]:
    """What was given, by name; what is missing, unknown or wrong is refused."""
    known = {field.name: field for field in fields}
    for name in given:
        if name not in known:
            fix = f"use only: {', '.join(known)}" if known else "leave it out"
            raise _bad(short(name), f"is not a field of the {where}", fix)
    for field in fields:
        if field.required and field.name not in given:
            raise _bad(field.name, "is not given", field.says)
    return {name: known[name].read(raw) for name, raw in given.items()}


def read_document(body: bytes) -> dict[str, Any]:
    """A JSON object, with numbers as they were written and no name twice."""
    try:
        found = json.loads(body, parse_float=Decimal, parse_constant=_refuse, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        raise _bad("body", "is not a JSON document", 'send an object such as {"question": "age*sex"}') from None
    if not isinstance(found, dict):
        raise _bad("body", "is not a JSON object", 'send one such as {"question": "age*sex"}')
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _refuse(_: str) -> None:
    raise ValueError


def _bad(field: str, problem: str, fix: str) -> Refusal:
    return Refusal(400, field, problem, fix)
