"""Accounts and charges recomputed from the entries alone, in plain integers and without a database.

It shares no code with the SQL that grants charges, so that each judges the other. What a rule of the ledger would have
refused is a problem here: a total that was passed, a key that charged twice, a settlement where none is allowed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from hushcube.errors import BadInput
from hushcube.ledger import amounts
from hushcube.ledger.account import Terms, currency_of, total_of
from hushcube.ledger.chain import Entry
from hushcube.text import visible


@dataclass(frozen=True)
class AccountRow:
    """An account as the table has it."""

    name: str
    entry: int
    total: int
    own: int
    parts: int
    locked: int
    source: str | None
    parent: str | None
    part: str | None


@dataclass(frozen=True)
class ChargeRow:
    """A charge as the table has it."""

    key: str
    account: str
    intent: int
    begun: int | None
    outcome: int | None
    amount: int
    spent: int
    state: str


class Refused(Exception):
    """An entry that no ledger would have made."""


@dataclass
class Replay:
    """What the entries add up to."""

    accounts: dict[str, AccountRow] = field(default_factory=dict)
    charges: dict[str, ChargeRow] = field(default_factory=dict)
    terms: dict[str, Terms] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Iterable[Entry]) -> Replay:
        """Follow the entries from the first to the last."""
        replay = cls()
        for entry in entries:
            try:
                getattr(replay, f"_{entry.kind}", replay._unknown)(entry, entry.told)
            except Refused as problem:
                replay.problems.append(f"entry {entry.number}: {problem}")
            except (BadInput, KeyError, TypeError, ValueError, AttributeError):
                replay.problems.append(f"entry {entry.number}: cannot be understood")
        return replay

    def _ledger(self, entry: Entry, told: dict[str, Any]) -> None:
        if entry.number != 1 or not isinstance(told["ledger"], str):
            raise Refused("a ledger begins in its middle")

    def _account(self, entry: Entry, told: dict[str, Any]) -> None:
        if entry.account in self.accounts:
            raise Refused(f"the account {visible(entry.account)!r} is made twice")
        terms, total = Terms.from_dict(told), amounts.from_digits(told["total"])
        if total != total_of(terms.privacy):
            raise Refused(f"the total of {visible(entry.account)!r} is not what its guarantee allows")
        if terms.parent is not None and self.terms[terms.parent].partition is None:
            raise Refused(f"{visible(terms.parent)!r} has no parts")
        self.terms[entry.account] = terms
        self.accounts[entry.account] = AccountRow(
            entry.account, entry.number, total, 0, 0, 0, terms.source, terms.parent, terms.part
        )

    def _charge(self, entry: Entry, told: dict[str, Any]) -> None:
        key, units, account = told["key"], amounts.from_digits(told["amount"]), self.accounts[entry.account]
        if key in self.charges:
            raise Refused(f"the key {visible(key)!r} charges twice")
        above: AccountRow | None = account
        while above is not None:
            if above.locked:
                raise Refused(f"{visible(above.name)!r} is charged after it was locked")
            above = None if above.parent is None else self.accounts[above.parent]
        source, digest = told["data"]["source"], self.terms[account.name].digest
        if account.source not in (None, source) or digest not in (None, told["data"].get("digest")):
            raise Refused(f"{visible(account.name)!r} is charged for other data")
        self.accounts[account.name] = replace(account, source=source)
        self._spend(account.name, units)
        self.charges[key] = ChargeRow(key, account.name, entry.number, None, None, units, units, "unfinished")

    def _begin(self, entry: Entry, told: dict[str, Any]) -> None:
        charge = self._open(told["key"], entry)
        if charge.begun is not None:
            raise Refused(f"noise is drawn twice for {visible(charge.key)!r}")
        self.charges[charge.key] = replace(charge, begun=entry.number)

    def _publish(self, entry: Entry, told: dict[str, Any]) -> None:
        charge, spent = self._open(told["key"], entry), amounts.from_digits(told["spent"])
        if not 1 <= spent <= charge.amount:
            raise Refused(f"{visible(charge.key)!r} is settled at more than was charged, or at nothing")
        if spent != charge.amount and currency_of(self.terms[charge.account].privacy) != "epsilon":
            raise Refused(f"{visible(charge.key)!r} is settled on an account that counts rho")
        self._spend(charge.account, spent - charge.amount)
        self.charges[charge.key] = replace(charge, outcome=entry.number, spent=spent, state="published")

    def _abandon(self, entry: Entry, told: dict[str, Any]) -> None:
        charge = self._open(told["key"], entry)
        self.charges[charge.key] = replace(charge, outcome=entry.number, state="abandoned")

    def _lock(self, entry: Entry, told: dict[str, Any]) -> None:  # noqa: ARG002 - as all entries
        self.accounts[entry.account] = replace(self.accounts[entry.account], locked=1)

    def _unknown(self, entry: Entry, told: dict[str, Any]) -> None:  # noqa: ARG002 - as all entries
        raise Refused(f"is of an unknown kind, {visible(entry.kind)!r}")

    def _open(self, key: str, entry: Entry) -> ChargeRow:
        charge = self.charges[key]
        if charge.state != "unfinished" or charge.account != entry.account:
            raise Refused(f"ends the charge {visible(key)!r}, which it does not belong to or which has ended")
        return charge

    def _spend(self, name: str, units: int) -> None:
        """Add to an account and, by what its parts then cost, to all above it; refuse what passes a total."""
        account = self.accounts[name]
        self.accounts[name] = replace(account, own=account.own + units)
        while True:
            account = self.accounts[name]
            if account.own + account.parts > account.total:
                self.problems.append(f"{visible(name)!r} has spent more than its total")
            if account.parent is None:
                return
            name = account.parent
            costs = [each.own + each.parts for each in self.accounts.values() if each.parent == name]
            together = max(costs) if self.terms[name].disjoint else sum(costs)
            self.accounts[name] = replace(self.accounts[name], parts=together)
