"""Charges: what was taken from an account, for which plan on which data, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from hushcube.errors import LedgerError
from hushcube.ledger.amounts import exactly
from hushcube.text import at_most, visible

State = Literal["unfinished", "published", "abandoned"]
STATES: Final[tuple[State, ...]] = get_args(State)


@dataclass(frozen=True)
class DataIdentity:
    """Which data a charge is for: a declared source and, where it was computed, a digest of what is in it.

    >>> DataIdentity("people.csv").to_dict()
    {'source': 'people.csv'}
    """

    source: str
    digest: str | None = None

    @classmethod
    def of(cls, data: DataIdentity | str) -> DataIdentity:
        """A source by its name alone, or what it is."""
        return data if isinstance(data, DataIdentity) else cls(data)

    def to_dict(self) -> dict[str, str]:
        """The JSON form."""
        return {"source": self.source} | ({} if self.digest is None else {"digest": self.digest})


@dataclass(frozen=True, kw_only=True, repr=False)
class Charge:
    """An amount that was taken from an account before noise was drawn, and what became of it.

    `amount` was taken; `spent` is what it cost in the end: less only where an adaptive release was settled.
    """

    account: str
    key: str
    amount: Fraction
    plan_digest: str
    data: DataIdentity
    what: str
    state: State
    spent: Fraction
    time: str
    """When it was charged: UTC, ISO 8601."""
    entry: int
    """The number of the entry that charged it."""
    begun: bool = False
    """Whether noise may have been drawn for it: then it is never drawn again."""
    bundle_digest: str | None = None
    place: str | None = None
    why: str | None = None
    """For what is abandoned."""
    who: str | None = None
    """Who asked for it, where somebody asks on behalf of the owner: then what each spends can be limited."""

    def check_same(self, account: str, amount: Fraction, plan_digest: str, data: DataIdentity) -> None:
        """Refuse a key that is used again for anything but the charge that it made."""
        asked = {"account": account, "plan": plan_digest, "data": data, "amount": amount}
        there = {"account": self.account, "plan": self.plan_digest, "data": self.data, "amount": self.amount}
        other = next((name for name in asked if asked[name] != there[name]), None)
        if other is not None:
            problem = f"{visible(self.key)!r} charged already, for another {other}"
            raise LedgerError("key", f"{problem}; nothing is charged", "give every release a key of its own")

    @property
    def advice(self) -> str | None:
        """What to do about it; None where nothing is to be done."""
        if self.state != "unfinished":
            return None
        if self.begun:
            there = f"if {visible(self.place or '')!r} is there, run the same command again to record it"
            return f"{there}; else its noise is lost, and what was charged stays charged: give it up with `abandon`"
        again = "run the same command again with the same key: it does not charge twice"
        return f"{again}; or give it up with `abandon`: what was charged stays charged"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; amounts as exact decimals."""
        told = {
            "account": self.account,
            "key": self.key,
            "amount": exactly(self.amount),
            "spent": exactly(self.spent),
            "state": self.state,
            "begun": self.begun,
            "what": self.what,
            "plan_digest": self.plan_digest,
            "data": self.data.to_dict(),
            "time": self.time,
            "entry": self.entry,
        }
        ends = {"bundle_digest": self.bundle_digest, "place": self.place, "why": self.why, "who": self.who}
        return told | {name: value for name, value in ends.items() if value is not None}

    def __repr__(self) -> str:
        return f"Charge({visible(self.key)!r}: {at_most(self.spent)} of {visible(self.account)!r}, {self.state})"
