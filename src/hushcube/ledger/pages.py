"""What people see of a ledger: accounts and what is left of them, what is unfinished, what happened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hushcube.ledger.account import Account
from hushcube.ledger.chain import Entry, Head
from hushcube.ledger.charge import Charge
from hushcube.shown import Grid, Page, columns
from hushcube.text import at_least, at_most


def ledger_page(place: str, accounts: Sequence[Account], unfinished: Sequence[Charge], head: Head) -> Page:
    """Every account, then every charge that is unfinished with what to do about it, and the head to note elsewhere."""
    parts: list[Grid | str] = [_accounts(place, accounts)] if accounts else [f"{place} has no accounts yet"]
    for charge in unfinished:
        parts.append(f"unfinished: {charge.key} ({at_most(charge.amount)} of {charge.account}, {charge.time[:19]}Z)")
        parts.append(f"  {charge.what}" if charge.what else "  (nothing was said about it)")
        parts.append(f"  {charge.advice}")
    return Page((*parts, f"head {head}"))


def charges_page(charges: Sequence[Charge]) -> Page:
    """Every charge of an account."""
    if not charges:
        return Page(("no charges yet",))
    rows = [(c.time[:19] + "Z", c.key, c.what, c.state, at_most(c.amount), at_most(c.spent)) for c in charges]
    return Page((Grid("charges", columns(["time", "key", "what", "state"], ["charged", "spent"]), rows),))


def history_page(entries: Iterable[Entry]) -> Page:
    """Every entry, one a line."""
    rows = [(str(e.number), e.time[:19] + "Z", e.kind, e.account, e.summary, e.hash[:12]) for e in entries]
    return Page((Grid("history", columns(["entry", "time", "what", "account", "", "hash"]), rows),))


def _accounts(place: str, accounts: Sequence[Account]) -> Grid:
    names = columns(["account", "guarantee", "data", "counts"], ["total", "spent", "left"])
    return Grid(f"ledger {place}", names, [_row(account) for account in accounts])


def _row(account: Account) -> tuple[str, ...]:
    bound = " (and a digest)" * (account.digest is not None)
    data = "not bound yet" if account.source is None else f"{account.source}{bound}"
    of = "" if account.parent is None else f" ({account.part} of {account.parent})"
    person = "" if account.unit is None else f", a person is a {account.unit}"
    parts = {True: "the maximum", False: "the sum"}[account.disjoint]
    split = "" if account.partition is None else f"; parts by {account.partition} cost {parts}"
    figures = (at_least(account.total), at_most(account.spent), at_least(account.left))
    state = ", locked" * account.locked
    return f"{account.name}{of}{state}", f"{account.privacy}{person}{split}", data, account.currency, *figures
