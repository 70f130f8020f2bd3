"""Accounts: a guarantee that lasts, what is spent of it, and whose data it is for.

An account counts in one currency: epsilon where its guarantee is pure, rho otherwise. An (epsilon, delta) account holds
the largest rho that still gives its guarantee, and is converted once, at the end.               [planning/pricing.py]

Parts of an account (`partition`) are accounts of their own, and cost their parent

    max over parts     where nobody is in two parts: what others' parts show does not depend on a person
    sum over parts     otherwise
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from hushcube.errors import LedgerError
from hushcube.ledger import amounts
from hushcube.ledger.charge import DataIdentity
from hushcube.model.privacy import Privacy
from hushcube.planning.pricing import total
from hushcube.text import at_least, at_most, visible

Currency = Literal["epsilon", "rho"]


def currency_of(privacy: Privacy) -> Currency:
    """What an account with this guarantee counts in."""
    return "epsilon" if privacy.is_pure else "rho"


def total_of(privacy: Privacy) -> int:
    """How much of its currency a guarantee allows, in units, rounded down."""
    return amounts.rounded_down(total(privacy))


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What is agreed when an account is made, and never changes."""

    privacy: Privacy
    unit: str | None = None
    source: str | None = None
    digest: str | None = None
    parent: str | None = None
    partition: str | None = None
    part: str | None = None
    disjoint: bool = False
    """Whether nobody is in two parts."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        told = {name: getattr(self, name) for name in _TEXTS}
        given = {name: value for name, value in told.items() if value is not None}
        split = {} if self.partition is None else {"disjoint": self.disjoint}
        return {"privacy": self.privacy.to_dict(), **given, **split}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Terms:
        """Read the JSON form."""
        texts = {name: raw.get(name) for name in _TEXTS}
        return cls(privacy=Privacy.from_dict(raw["privacy"]), disjoint=raw.get("disjoint", False), **texts)


_TEXTS = ("unit", "source", "digest", "parent", "partition", "part")


@dataclass(frozen=True, kw_only=True, repr=False)
class Account:
    """A total, what is spent of it, and what is left."""

    name: str
    terms: Terms
    total: Fraction
    own: Fraction
    """What was charged to the account itself."""
    parts: Fraction
    """What its parts cost it."""
    left: Fraction
    """What can still be charged to it, as its own total and those of its parents allow."""
    source: str | None
    """Whose data it is for; that of its first charge, unless it was declared."""
    locked: bool

    @property
    def spent(self) -> Fraction:
        """What is spent, with its parts."""
        return self.own + self.parts

    @property
    def privacy(self) -> Privacy:
        """The guarantee that the total stands for."""
        return self.terms.privacy

    @property
    def currency(self) -> Currency:
        """What it counts in: epsilon or rho."""
        return currency_of(self.privacy)

    @property
    def unit(self) -> str | None:
        """The column that says whose row it is; None where a row is a person."""
        return self.terms.unit

    @property
    def digest(self) -> str | None:
        """The digest of the data, where the account is bound to one."""
        return self.terms.digest

    @property
    def parent(self) -> str | None:
        """The account that this one is a part of."""
        return self.terms.parent

    @property
    def partition(self) -> str | None:
        """By what the account is divided into parts."""
        return self.terms.partition

    @property
    def part(self) -> str | None:
        """Which part of its parent it is."""
        return self.terms.part

    @property
    def disjoint(self) -> bool:
        """Whether nobody is in two of its parts, which then cost the maximum and not the sum."""
        return self.terms.disjoint

    def check_data(self, data: DataIdentity) -> None:
        """Refuse data that the account is not for."""
        name = visible(self.name)
        if self.source is not None and data.source != self.source:
            problem = f"the account {name!r} is for {visible(self.source)!r}, and this is {visible(data.source)!r}"
            raise LedgerError("data", problem, "give the account's own data, or make an account for this")
        if self.digest is not None and data.digest != self.digest:
            problem = f"the account {name!r} is bound to a digest of its data, and this has another or none"
            raise LedgerError("data", problem, "give the data as it was, or make an account for what it is now")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; amounts as exact decimals."""
        figures = {"total": self.total, "spent": self.spent, "own": self.own, "parts": self.parts, "left": self.left}
        texts = {name: amounts.exactly(value) for name, value in figures.items()}
        bound = {} if self.source is None else {"source": self.source}
        return {
            "name": self.name,
            "currency": self.currency,
            **texts,
            "locked": self.locked,
            **self.terms.to_dict(),
            **bound,
        }

    def __repr__(self) -> str:
        spent = f"{at_most(self.spent)} of {at_least(self.total)} {self.currency} spent"
        return f"Account({visible(self.name)!r}: {spent}{', locked' * self.locked})"
