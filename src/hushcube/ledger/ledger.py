"""The ledger: accounts are made, charged and locked, and everything that happens is an entry.

A filter on the whole of what is published, however each release was chosen after seeing the ones before:

    pure        the ratio of probabilities of a transcript is the product of its conditional ratios, at most
                exp(sum of what the transcript spent); while no sum passes the total, the whole is total-private,
                also with amounts that are known only afterwards
    rho         sums of adaptively chosen rho_i are a filter    [Feldman and Zrnic 2021]; amounts known afterwards are
                not covered, so what was allowed is what is charged

Every change is one transaction: one conditional UPDATE for each account grants or refuses, the entry is added, and the
database's CHECK stands behind both.
"""

from __future__ import annotations

import secrets
from contextlib import suppress
from copy import copy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Any

from hushcube.errors import LedgerError, NoLedger, NotEnoughBudget, OutputError
from hushcube.ledger import amounts, records
from hushcube.ledger.account import Account
from hushcube.ledger.chain import Entry, Head
from hushcube.ledger.charge import Charge, DataIdentity
from hushcube.ledger.checking import LedgerVerdict, verify_snapshot
from hushcube.ledger.opening import check_text, locked, terms_of
from hushcube.ledger.pages import ledger_page
from hushcube.ledger.postgres import PostgresStore, read_ledger_address
from hushcube.ledger.snapshot import Snapshot
from hushcube.ledger.sqlite import SqliteStore
from hushcube.ledger.store import FORMAT, Store
from hushcube.model.privacy import Number, exact_number
from hushcube.shown import Page, Shown
from hushcube.text import visible


class Ledger(Shown):
    """The record of what was spent, in a file or in a Postgres database.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "ledger.db"
    >>> with Ledger.create(place) as ledger:
    ...     account = ledger.create_account("people", epsilon=1, neighbours="add-remove")
    ...     charge = ledger.charge("people", "0.25", key="first", plan_digest="ab", data="people.csv", what="2-way")
    ...     done = ledger.publish(charge, bundle_digest="cd", place="published")
    ...     ledger.account("people")
    Account('people': 0.25 of 1 epsilon spent)
    """

    _who: str | None = None
    """On whose behalf it charges; None for the owner."""
    _share: int | None = None
    """How many units they may be charged for in all."""

    def __init__(self, store: Store[Any]) -> None:
        self._store = store

    @classmethod
    def create(cls, place: str | Path) -> Ledger:
        """A new ledger, where nothing is yet: a file, or `postgresql://HOST/DATABASE#SCHEMA`."""
        body = {"format": FORMAT, "ledger": secrets.token_hex(16)}
        first = Entry.after(None, records.now(), "ledger", "", body)
        address = read_ledger_address(str(place))
        return cls(SqliteStore.create(Path(place), first) if address is None else PostgresStore.create(address, first))

    @classmethod
    def open(cls, place: str | Path) -> Ledger:
        """A ledger that is there."""
        address = read_ledger_address(str(place))
        return cls(SqliteStore(Path(place)) if address is None else PostgresStore(address))

    @classmethod
    def ensure(cls, place: str | Path) -> Ledger:
        """The ledger that is there, or else a new one."""
        try:
            return cls.open(place)
        except NoLedger:
            pass
        try:
            return cls.create(place)
        except (OutputError, LedgerError):  # another process may have made it meanwhile
            with suppress(NoLedger):
                return cls.open(place)
            raise

    @property
    def place(self) -> str:
        """Where it is."""
        return self._store.place

    def close(self) -> None:
        """Let go of the file or the connection."""
        self._store.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.place!r})"

    def page(self, name: str | None = None) -> Page:
        """What `hushcube ledger show` prints: all accounts, or one with its parts; what is unfinished; the head."""
        return ledger_page(self.place, *self._seen(name))

    def to_dict(self, name: str | None = None) -> dict[str, Any]:
        """The JSON document of `hushcube ledger show`."""
        accounts, unfinished, head = self._seen(name)
        return {
            "ledger": self.place,
            "head": str(head),
            "accounts": [account.to_dict() for account in accounts],
            "unfinished": [{**charge.to_dict(), "advice": charge.advice} for charge in unfinished],
        }

    def _seen(self, name: str | None) -> tuple[list[Account], list[Charge], Head]:
        """Accounts, unfinished charges and the head, at one moment."""
        with self._store.reading() as sql:
            if name is not None:
                records.get_account(sql, name)
            every = list(records.find_accounts(sql).values())
            names = {a.name for a in every if name is None or name in (a.name, a.parent)}
            charges = [c for c in records.find_charges(sql) if c.state == "unfinished" and c.account in names]
            return [a for a in every if a.name in names], charges, records.head_of(sql)

    # ---------------------------------------------------------------------------------------------------- accounts

    def create_account(
        self,
        name: str,
        *,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        neighbours: str | None = None,
        unit: str | None = None,
        rows_per_person: int | None = None,
        source: str | None = None,
        digest: str | None = None,
        partition: str | None = None,
        disjoint: bool | None = None,
        parent: str | None = None,
        part: str | None = None,
    ) -> Account:
        """A new account with a total.

        It is for the data of one `source`, with one `digest` if that is given; without a source, for that of its first
        charge. With a `partition` it can have parts: accounts that name it as their `parent`, have its guarantee unless
        they are given another, and cost it the maximum over parts where they are `disjoint`, else the sum. They are
        where a row is a person, or where you declare it.
        """
        check_text("name", name)
        with self._store.writing() as sql:
            terms = terms_of(
                None if parent is None else records.get_account(sql, parent),
                epsilon=epsilon,
                rho=rho,
                delta=delta,
                neighbours=neighbours,
                rows_per_person=rows_per_person,
                disjoint=disjoint,
                unit=unit,
                source=source,
                digest=digest,
                parent=parent,
                partition=partition,
                part=part,
            )
            return records.add_account(sql, name, terms)

    def account(self, name: str) -> Account:
        """An account by its name."""
        with self._store.reading() as sql:
            return records.get_account(sql, name)

    def accounts(self) -> list[Account]:
        """All accounts, in the order in which they were made."""
        with self._store.reading() as sql:
            return list(records.find_accounts(sql).values())

    def lock(self, name: str) -> Account:
        """Close an account for good: it, and its parts, can no longer be charged."""
        with self._store.writing() as sql:
            account = records.get_account(sql, name)
            if not account.locked:
                records.append(sql, "lock", name, {})
                sql.change("UPDATE accounts SET locked = 1 WHERE name = ?", name)
            return replace(account, locked=True)

    # ----------------------------------------------------------------------------------------------------- charges

    def charge(
        self,
        account: Account | str,
        amount: Number,
        *,
        key: str,
        plan_digest: str,
        data: DataIdentity | str,
        what: str = "",
    ) -> Charge:
        """Take an amount, rounded up, before anything is drawn; it is on the disk when this returns.

        The same key never charges twice: for the same account, amount, plan and data it returns the charge that is
        there, whose state says what became of it; for others it is refused. `what` is for people: what is published.
        On behalf of somebody [`asked_by`] it says so, and the sum of theirs is taken in the same transaction.
        """
        name = account.name if isinstance(account, Account) else account
        asked, identity = exact_number("amount", amount, LedgerError), DataIdentity.of(data)
        texts = {"key": key, "plan_digest": plan_digest, "data": identity.source, "digest": identity.digest or "-"}
        for field, text in texts.items():
            check_text(field, text)
        if asked <= 0:
            raise LedgerError("amount", "is not above 0", "charge what the plan costs")
        units = amounts.rounded_up(asked)
        with self._store.writing() as sql:
            if (found := records.find_charge(sql, key)) is not None:
                found.check_same(name, amounts.in_full(units), plan_digest, identity)
                return found
            line = records.line_of(sql, name)
            for one in line:
                if one.locked:
                    raise locked(one)
            line[0].check_data(identity)
            records.bind(sql, line, identity.source)
            if self._who is not None and self._share is not None:
                room = max(self._share - records.spent_by(sql, name, self._who), 0)
                if units > room:
                    owned = f"the share of {visible(self._who)!r} in {visible(name)!r}"
                    raise NotEnoughBudget(owned, amounts.in_full(units), amounts.in_full(room), line[0].currency)
            if not records.spend(sql, line, units):
                raise NotEnoughBudget(repr(visible(name)), amounts.in_full(units), line[0].left, line[0].currency)
            body = {"key": key, "plan_digest": plan_digest, "data": identity.to_dict(), "what": visible(what)}
            body |= {} if self._who is None else {"who": self._who}
            return records.add_charge(sql, name, units, body)

    def begin(self, charge: Charge | str, *, place: str | Path) -> Charge:
        """Note, once, that noise is about to be drawn for a charge, and where it will be published.

        From here on the charge can be published or abandoned, and nothing else: somebody may have seen the noise, so
        that drawing it again would be a second release.
        """
        key = charge.key if isinstance(charge, Charge) else charge
        with self._store.writing() as sql:
            found = records.get_charge(sql, key)
            if found.begun or found.state != "unfinished":
                problem = f"{visible(key)!r} has drawn its noise already, or another process draws it; nothing is drawn"
                raise LedgerError("key", problem, "run the same command again: it opens what was published")
            return records.begin_charge(sql, found, str(place))

    def publish(
        self, charge: Charge | str, *, bundle_digest: str, place: str | Path, spent: Number | None = None
    ) -> Charge:
        """Note what was published for a charge, and where; again with the same digest it changes nothing.

        `spent` settles an adaptive release of a pure account at what it spent, in the same transaction: the filter
        allows it there (see above), and it is refused on accounts that count rho.
        """
        check_text("bundle_digest", bundle_digest)
        key = charge.key if isinstance(charge, Charge) else charge
        with self._store.writing() as sql:
            found = records.get_charge(sql, key)
            units = amounts.rounded_up(found.amount)
            settled = units if spent is None else amounts.rounded_up(exact_number("spent", spent, LedgerError))
            if found.state == "published" and found.bundle_digest == bundle_digest:
                return found
            if found.state != "unfinished":
                fix = "release with a key of its own"
                raise LedgerError("key", f"the charge {visible(key)!r} is {found.state} already", fix)
            line = records.line_of(sql, found.account)
            if spent is not None:
                _check_settled(line[0], found, settled)
                records.spend(sql, line, settled - units)
            body = {"bundle_digest": bundle_digest, "place": str(place), "spent": amounts.digits(settled)}
            return records.finish_charge(sql, found, "published", body, settled)

    def abandon(self, charge: Charge | str, why: str) -> Charge:
        """Give up an unfinished charge. What was charged stays charged: noise may have been seen."""
        key = charge.key if isinstance(charge, Charge) else charge
        with self._store.writing() as sql:
            found = records.get_charge(sql, key)
            if found.state == "published":
                raise LedgerError("key", f"the charge {visible(key)!r} is published already", "keep it: it is finished")
            if found.state == "abandoned":
                return found
            return records.finish_charge(sql, found, "abandoned", {"why": why}, amounts.rounded_up(found.amount))

    def find_charge(self, key: str) -> Charge | None:
        """The charge that a key made; None where it made none."""
        with self._store.reading() as sql:
            return records.find_charge(sql, key)

    def charges(self, account: str | None = None) -> list[Charge]:
        """Charges in the order in which they were made."""
        with self._store.reading() as sql:
            if account is not None:
                records.get_account(sql, account)
            return records.find_charges(sql, account)

    def asked_by(self, who: str, share: Number | None = None) -> Ledger:
        """This ledger for somebody who asks on behalf of the owner: charges say who, and stay within a share.

        The `share` is the most that they may be charged for of each account, in its currency, from the first charge on.
        """
        check_text("who", who)
        theirs = copy(self)
        theirs._who = who
        theirs._share = None if share is None else amounts.rounded_down(exact_number("share", share, LedgerError))
        return theirs

    def spent_by(self, account: str, who: str) -> Fraction:
        """What one of those who ask has spent of an account."""
        with self._store.reading() as sql:
            return amounts.in_full(records.spent_by(sql, account, who))

    def unfinished(self) -> list[Charge]:
        """Charges for which nothing was published yet, and which nobody gave up."""
        return [charge for charge in self.charges() if charge.state == "unfinished"]

    # ------------------------------------------------------------------------------------------------------- chain

    def history(self, account: str | None = None) -> list[Entry]:
        """All entries, or those of one account."""
        with self._store.reading() as sql:
            if account is not None:
                records.get_account(sql, account)
            return records.entries(sql, account)

    @property
    def head(self) -> Head:
        """The last entry; noted elsewhere, it shows whether entries were cut off."""
        with self._store.reading() as sql:
            return records.head_of(sql)

    def verify(self, *, head: str | None = None, published: bool = True) -> LedgerVerdict:
        """Check the chain, what follows from it, and what was published; `head` is one that was noted elsewhere."""
        return verify_snapshot(self.export(), head=head, published=published)

    def export(self) -> Snapshot:
        """All of it, at one moment: enough to verify it elsewhere."""
        with self._store.reading() as sql:
            return Snapshot.take(sql)


def _check_settled(account: Account, charge: Charge, settled: int) -> None:
    """Refuse to settle what no theorem allows."""
    if account.currency != "epsilon":
        problem = f"{visible(account.name)!r} counts rho, where amounts that are known only afterwards prove nothing"
        raise LedgerError("spent", problem, "leave it out: what was charged is what it costs")
    if not 1 <= settled <= amounts.rounded_up(charge.amount):
        raise LedgerError("spent", "is not above 0 and at most what was charged", "charge the allowance first")
