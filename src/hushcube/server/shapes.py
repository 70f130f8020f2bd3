"""What answers look like, as JSON schemas: the OpenAPI document has them, and a test holds every answer to them."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]
TEXT: Final[Schema] = {"type": "string"}
TRUTH: Final[Schema] = {"type": "boolean"}
WHOLE: Final[Schema] = {"type": "integer"}
NUMBER: Final[Schema] = {"type": "number"}
AMOUNT: Final[Schema] = {
    "type": "string",
    "pattern": r"^[0-9]+(\.[0-9]+)?$",
    "description": "An amount of the account's currency: an exact decimal.",
}


def many(item: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": item}


def maybe(item: Schema) -> Schema:
    """It, or null."""
    return {"anyOf": [item, {"type": "null"}]}


def thing(**parts: Schema) -> Schema:
    """An object with all of these."""
    return {"type": "object", "properties": parts, "required": list(parts), "additionalProperties": False}


REFUSAL: Final = thing(field=TEXT, problem=TEXT, fix=TEXT)
ACCOUNT: Final = thing(
    name=TEXT,
    currency={"type": "string", "enum": ["epsilon", "rho"]},
    privacy={"type": "object"},
    total=AMOUNT,
    spent=AMOUNT,
    left=AMOUNT,
    locked=TRUTH,
)
TOKEN: Final = thing(
    name=TEXT,
    role=TEXT,
    accounts=many(thing(name=TEXT, share=maybe(AMOUNT), spent=AMOUNT, left=AMOUNT)),
    expires=maybe(TEXT),
)
SESSION: Final = thing(name=TEXT, account=TEXT, attributes=many(TEXT), version=WHOLE)
OFFER: Final = thing(
    question=TEXT,
    version=WHOLE,
    free=TRUTH,
    granted=TRUTH,
    price=AMOUNT,
    currency=TEXT,
    std_error=maybe(NUMBER),
    known=maybe(NUMBER),
    allowed=AMOUNT,
    could=maybe(NUMBER),
    measures=TEXT,
)
ANSWER: Final = thing(
    question=TEXT,
    version=WHOLE,
    free=TRUTH,
    charged=AMOUNT,
    currency=TEXT,
    std_error=NUMBER,
    columns={"type": "object", "additionalProperties": {"type": "array"}},
)
ANSWERED: Final = thing(question=TEXT, version=WHOLE, std_error=NUMBER, charged=AMOUNT, now=NUMBER)
RELEASE: Final = thing(digest=TEXT, what=TEXT, spent=AMOUNT, time=TEXT)
CHARGE: Final = thing(key=TEXT, who=maybe(TEXT), what=TEXT, amount=AMOUNT, spent=AMOUNT, state=TEXT, time=TEXT)
LINE: Final[Schema] = {"type": "object", "required": ["time", "route", "status"]}
