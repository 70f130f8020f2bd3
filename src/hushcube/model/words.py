"""The publisher's own words: what the data is called, where it comes from, and what people read in place of codes.

    title: Calls to the fire brigade             of a schema also: description, source, licence, contact, period
    unit_noun: calls                             what the tables count, where a text would say people
    attributes:
      - {name: type, size: 2, labels: {0: medical, 1: fire}}       of an attribute also: title, description,
                                                                   unit_of_measure; a measure has those three

A *code* is what stands in the data; a *label* is what people read. Where no label is declared they are the same text.
All of it is public, none of it is data, and nothing that is measured depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

from hushcube.errors import SchemaError
from hushcube.model.label import is_label, label_of
from hushcube.text import short

LONGEST: Final[Mapping[str, int]] = {
    "title": 200,
    "description": 10_000,
    "source": 1_000,
    "licence": 1_000,
    "contact": 1_000,
    "period": 200,
    "unit_noun": 60,
    "unit_of_measure": 60,
}
"""The characters that each text may have. A description may have several lines."""
OF_SCHEMA: Final = ("title", "description", "source", "licence", "contact", "period", "unit_noun")
OF_COLUMN: Final = ("title", "description", "unit_of_measure")
"""What attributes and measures have."""
UNIT_NOUN: Final = "people"

GivenLabels: TypeAlias = Mapping[Any, Any] | Sequence[Any] | None
"""Labels by their codes, or one for each value in order."""


def checked_word(where: str, key: str, raw: Any) -> str | None:
    """One text, checked; None where there is none. Outer blanks do not count."""
    if raw is None:
        return None
    field = f"{where}, {key}" if where else key
    text = label_of(field, raw).strip()
    lines = key == "description"
    if not is_label(text) or len(text) > LONGEST[key]:
        fix = f"write a text of at most {LONGEST[key]:,} characters, or leave the key out"
        raise SchemaError(field, "is empty or too long", fix)
    if any((c < " " and not (lines and c in "\n\t")) or c == "\x7f" for c in text):
        problem = "holds control characters" if lines else "has several lines, or control characters"
        raise SchemaError(field, problem, "write plain text" if lines else "write plain text on one line")
    return text


def check_given(where: str, raw: Mapping[str, Any], keys: Sequence[str]) -> None:
    """Refuse keys of a file that are there and say nothing."""
    for key in keys:
        if key in raw and raw[key] is None:
            field = f"{where}, {key}" if where else key
            raise SchemaError(field, "is empty", "write what it is, or leave the key out")


def read_labels(field: str, given: GivenLabels, coded: Sequence[str]) -> tuple[str, ...] | None:
    """The label of every code, in order; None where each is its own.

    A text must say which value is meant: no two values have one label, and no label is the code of another value.

    >>> read_labels("labels", {0: "medical", "1": "fire"}, ("0", "1", "2"))
    ('medical', 'fire', '2')
    """
    if given is None or given == coded:
        return None
    at = {code: place for place, code in enumerate(coded)}
    labels = list(coded)
    for code, text in _pairs(field, given, coded):
        if code not in at:
            known = ", ".join(short(each) for each in coded[:6]) + (", ..." if len(coded) > 6 else "")
            raise SchemaError(field, f"{short(code)} is not one of the codes", f"use codes of the values: {known}")
        if not is_label(text):
            raise SchemaError(field, f"{short(text)} is not a label", "use non-empty texts or numbers")
        labels[at[code]] = text
    seen: dict[str, int] = {}
    for place, text in enumerate(labels):
        if seen.setdefault(text, place) != place:
            raise SchemaError(field, f"two values have the label {short(text)}", "name them differently")
        if at.get(text, place) != place:
            raise SchemaError(field, f"the label {short(text)} is the code of another value", "use another label")
    return None if labels == list(coded) else tuple(labels)


def _pairs(field: str, given: Any, coded: Sequence[str]) -> list[tuple[str, str]]:
    """Codes and labels as texts."""
    if isinstance(given, Mapping):
        pairs = [(label_of(field, code), label_of(field, text)) for code, text in given.items()]
        if len(dict(pairs)) < len(pairs):  # 1 and "1" are one code
            raise SchemaError(field, "names a code twice", "give each code one label")
        return pairs
    if not isinstance(given, list | tuple) or len(given) != len(coded):
        fix = f"write for example `labels: {{{coded[0][:40]}: ...}}`"
        raise SchemaError(field, "must say which code has which label", fix)
    return [(code, label_of(field, text)) for code, text in zip(coded, given, strict=True)]
