"""Entries: all that happened, in order, each with the hash of the one before; the truth that accounts are derived from.

    hash_n = SHA-256(canonical JSON of number, time, kind, account, body and hash_(n-1)),        hash_0 = 64 zeros

A changed, missing or exchanged entry breaks the chain; entries cut off at its end are missed by whoever noted a head,
the hash of the last entry, elsewhere.

    ledger      format and name of the ledger                       the first entry
    account     terms and total
    charge      key, amount, plan, data
    begin       key and place                                       noise is about to be drawn
    publish     key, bundle, place, and what it cost in the end
    abandon     key and why
    lock
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

Kind = Literal["ledger", "account", "charge", "begin", "publish", "abandon", "lock"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
BEFORE_ALL: Final = "0" * 64


@dataclass(frozen=True)
class Entry:
    """Something that happened.

    >>> first = Entry.after(None, "2026-01-01T00:00:00.000000+00:00", "lock", "people", {})
    >>> first.number, first.previous == BEFORE_ALL, first.is_intact
    (1, True, True)
    """

    number: int
    time: str
    kind: str
    account: str
    body: str
    """Canonical JSON."""
    previous: str
    hash: str

    @classmethod
    def after(cls, head: Head | None, time: str, kind: Kind, account: str, body: dict[str, Any]) -> Entry:
        """The next entry."""
        number, previous = (1, BEFORE_ALL) if head is None else (head.count + 1, head.hash)
        fields = (number, time, kind, account, canonical(body), previous)
        return cls(*fields, _hash(*fields))

    @property
    def is_intact(self) -> bool:
        """Whether its hash is that of its fields."""
        return self.hash == _hash(self.number, self.time, self.kind, self.account, self.body, self.previous)

    @property
    def told(self) -> dict[str, Any]:
        """Its body."""
        read: dict[str, Any] = json.loads(self.body)
        return read

    @property
    def summary(self) -> str:
        """What its body says, in a few words."""
        told = self.told
        words = (
            f"{name} {told[name]}" for name in ("key", "amount", "spent", "what", "place", "why") if told.get(name)
        )
        return ", ".join(words) or (f"total {told['total']}" if "total" in told else "")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, from which its hash can be recomputed: `body` is a text."""
        return dict(zip(FIELDS, self.row, strict=True))

    @property
    def row(self) -> tuple[int, str, str, str, str, str, str]:
        """Its fields, in the order of the table."""
        return self.number, self.time, self.kind, self.account, self.body, self.previous, self.hash


FIELDS: Final = ("number", "time", "kind", "account", "body", "previous", "hash")


@dataclass(frozen=True)
class Head:
    """The last entry: how many there are, and its hash. Noted elsewhere, it shows what is cut off later."""

    count: int
    hash: str

    def __str__(self) -> str:
        return f"{self.count}:{self.hash}"


def canonical(document: Any) -> str:
    """The one JSON text of a document: sorted keys, no spaces, ASCII."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _hash(number: int, time: str, kind: str, account: str, body: str, previous: str) -> str:
    return hashlib.sha256(canonical([number, time, kind, account, body, previous]).encode()).hexdigest()
