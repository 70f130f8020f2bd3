"""Who pays for a release: an account of a ledger, or nobody who keeps count.

Charge first, measure second, publish third; each step is on the disk before the next begins:       [docs/ledger.md]

    charge      plan, data, amount and key. Nothing is drawn without it
    begin       after the count, before the first noise: from here on this key never draws again
    publish     the folder is in its place; its digest is recorded, and an adaptive release is settled

A key stands for one release. What is asked for under it again depends on how far it came:

    nothing charged                 it is charged and measured
    charged, not begun              it goes on: counted again, without a second charge
    begun, and the folder is there  its digest is recorded now, and it is opened
    begun, and nothing is there     refused: the noise is lost, or is being drawn by another process
    published                       it is opened, as it was
    abandoned                       refused, with the reason
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushcube import interrupts
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.receipt import Receipt
from hushcube.bundle.writing import room_needed
from hushcube.durable import check_room, sync_folder
from hushcube.errors import BadInput, BundleError, HushcubeError, LedgerError
from hushcube.ledger.account import Account
from hushcube.ledger.amounts import in_full, rounded_up
from hushcube.ledger.chain import canonical
from hushcube.ledger.charge import Charge, DataIdentity
from hushcube.ledger.ledger import Ledger
from hushcube.ledger.published import published_digest
from hushcube.ledger.sources import source_name
from hushcube.planning.plan import Plan
from hushcube.planning.pricing import price, settled
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.private.engines import Engine

Tell = Callable[[str], None]
NOBODY_COUNTS: Final = "no ledger is given, so nobody keeps count of what is released about this data (docs/ledger.md)"
_ANOTHER: Final = "release under another key, which is charged by itself"


class Unpaid:
    """A release that is charged to no account."""

    receipt: Receipt | None = None

    def __init__(self, *, seeded: bool) -> None:
        self._counts_nowhere = not seeded  # what protects nobody needs no account

    def is_published(self, tell_owner: Tell | None) -> bool:  # noqa: ARG002 - for the one who knows
        """Whether it is in its folder already, which nobody knows."""
        return False

    def holding(self, engine: Engine) -> Engine:
        """An engine that reads nothing but what is paid for."""
        return engine

    def charge(self, tell_owner: Tell | None) -> None:
        """Pay, before anything is counted."""

    def begin(self) -> None:
        """Record that noise is about to be drawn."""

    def publish(self, done: Plan) -> None:
        """Record that the folder is in its place."""

    @contextmanager
    def carrying_out(self, tell_owner: Tell | None) -> Iterator[None]:
        """What follows the charge: whatever fails inside also says what is charged, and success, that nobody counts."""
        yield
        if tell_owner is not None and self._counts_nowhere:
            tell_owner(NOBODY_COUNTS)


class Payment(Unpaid):
    """A release that is charged to an account, under a key."""

    def __init__(
        self, ledger: Ledger, account: Account, *, key: str | None, plan: Plan, source: str, folder: Path
    ) -> None:
        self._ledger, self._account, self._plan = ledger, account, plan
        self._folder, self._data = folder.resolve(), DataIdentity(source)
        self._amount = in_full(rounded_up(price(plan, account.privacy, account.unit)))
        self.key = _derived_key(account.name, plan, self._folder) if key is None else key
        self.receipt: Receipt = Receipt(account.name, account.part, self.key, self._amount, account.privacy)
        self._drawing = False

    def is_published(self, tell_owner: Tell | None) -> bool:
        """Whether the release of this key is in its folder; refuses a key that cannot be used any more."""
        charge, name = self._ledger.find_charge(self.key), visible(self.key)
        if charge is None:
            return False
        charge.check_same(self._account.name, self._amount, self._plan.digest, charge.data)
        if charge.data.source != self._data.source:
            raise LedgerError("data", f"{name!r} is the key of a release of other data", _ANOTHER)
        if charge.state == "abandoned":
            raise LedgerError("key", f"{name!r} was abandoned: {visible(charge.why or '')}", _ANOTHER)
        if charge.place is None:
            return False
        if charge.place != str(self._folder):
            problem = f"{name!r} is the key of a release in {visible(charge.place)!r}"
            raise LedgerError("out", problem, f"name that folder; or {_ANOTHER}")
        if charge.state == "published":
            self._check_unchanged(charge)
        elif not self._is_in_place():
            problem = f"noise was drawn for {name!r}, or is being drawn, and nothing is published in {self._shown}"
            raise LedgerError("key", problem, f"wait for the process that draws it, if there is one; or {_ANOTHER}")
        else:
            sync_folder(self._folder.parent)  # which the process that renamed it may not have done
            self.publish(open_bundle(self._folder).plan)
        if tell_owner is not None:
            tell_owner(f"it was published in {self._shown} before: nothing is charged or drawn again")
        return True

    def _check_unchanged(self, charge: Charge) -> None:
        problem = f"{visible(self.key)!r} was published in {self._shown}, and "
        try:
            open_bundle(self._folder)
            if published_digest(self._folder) != charge.bundle_digest:
                raise LedgerError("key", problem + "another release is there now", _ANOTHER)
        except BundleError:
            fix = f"put the folder back as it was; or {_ANOTHER}"
            raise LedgerError("key", problem + "is not there any more as it was", fix) from None

    def _is_in_place(self) -> bool:
        """Whether the release of this charge is published, whole."""
        with suppress(BundleError):
            found = open_bundle(self._folder)
            return found.receipt == self.receipt and found.private
        return False

    def holding(self, engine: Engine) -> Engine:
        """Refuse other data than the account's, before anything is charged; what is counted is held to it, too."""
        from hushcube.private.engines.declared import OnePart, digested

        account, held = self._account, engine
        if account.digest is not None:
            digest, held = digested(engine)
            self._data = DataIdentity(self._data.source, digest)
        account.check_data(self._data)
        attribute = self._divided_by()
        if attribute is None or account.part is None:
            return held
        return OnePart(held, attribute, account.part)

    def _divided_by(self) -> str | None:
        """The attribute of which all rows must have the part's value, if the schema has it."""
        account, schema = self._account, self._plan.schema
        name = None if account.parent is None else self._ledger.account(account.parent).partition
        if name is None or name not in schema.names:
            return None  # that the rows are of the part is the owner's promise
        if account.part not in schema[name].coded:  # by one name only: the ledger must see that two parts are the same
            problem = f"{visible(account.part or '')!r} is no value of {name!r} in the schema"
            fix = "name the part as the data does: by a value, or its code, of the attribute that divides the account"
            raise LedgerError("part", problem, fix)
        return name

    def charge(self, tell_owner: Tell | None) -> None:  # noqa: ARG002 - a ledger is where owners look
        """Charge what the plan costs, once for this key; a disk without room for the release is refused before."""
        check_room(self._folder.parent, room_needed(self._plan), "out")
        tables = f"{len(self._plan.workload.published) + len(self._plan.workload.forms):,} tables"
        with interrupts.irreversible():
            self._ledger.charge(
                self._account.name,
                self._amount,
                key=self.key,
                plan_digest=self._plan.digest,
                data=self._data,
                what=f"release {self._plan.schema.name}: {tables} by {self._plan.strategy}, {self._plan.privacy}",
            )

    def begin(self) -> None:
        """Record, once, that noise is about to be drawn, and where it will be published."""
        with interrupts.irreversible():
            self._ledger.begin(self.key, place=str(self._folder))
            self._drawing = True
        interrupts.resume()

    def publish(self, done: Plan) -> None:
        """Record the digest of the folder; what an adaptive run did not spend goes back to a pure account."""
        adapted = done.digest != self._plan.digest and self._account.currency == "epsilon"
        spent = settled(done, self._account.privacy, self._account.unit) if adapted else None
        digest = published_digest(self._folder)
        self._ledger.publish(self.key, bundle_digest=digest, place=self._folder, spent=spent)

    @contextmanager
    def carrying_out(self, tell_owner: Tell | None) -> Iterator[None]:  # noqa: ARG002 - the charge was told
        """Whatever fails inside says what is charged; once noise was drawn, what was not published is abandoned."""
        try:
            interrupts.resume()
            yield
        except BaseException as problem:
            problem.add_note(self._left(type(problem).__name__))
            raise

    def _left(self, kind: str) -> str:
        """What is true after a failure."""
        charged = f"{self.receipt.charged} is charged to the account {visible(self._account.name)!r}"
        if not self._drawing:
            with suppress(HushcubeError):
                if (found := self._ledger.find_charge(self.key)) is not None and found.place is not None:
                    return "nothing was published by this process: another one carries out the same release"
            again = "the same command, with the same key, goes on without another charge"
            return f"nothing was published; {charged}, and no noise was drawn: {again} (key {visible(self.key)})"
        if self._is_in_place():
            again = "the same command, with the same key, records it"
            return f"the release is published in {self._shown} and its budget is spent; {again} in the ledger"
        with suppress(HushcubeError):
            self._ledger.abandon(self.key, f"it failed after noise was drawn ({kind})")
        return f"nothing was published; {charged} and stays charged, since noise was drawn: {_ANOTHER}"

    @property
    def _shown(self) -> str:
        return repr(visible(str(self._folder)))


@contextmanager
def paying(
    plan: Plan,
    ledger: Ledger | str | Path | None,
    account: str | None,
    part: str | None,
    key: str | None,
    *,
    data: tuple[object, str | None],
    folder: Path | None,
    seed: int | None,
) -> Iterator[Unpaid]:
    """Who pays for a plan on data (a source and a query), published in a folder; refuses what no account pays for."""
    if ledger is None:
        for name, given in (("account", account), ("part", part), ("key", key)):
            if given is not None:
                raise BadInput(name, "is given, but no ledger", "add `ledger`, or leave it out")
        yield Unpaid(seeded=seed is not None)
        return
    if account is None:
        raise LedgerError("account", "is not given", "name the account of the ledger that is to be charged")
    if seed is not None:
        problem = "makes noise that protects nobody, which no account pays for"
        raise LedgerError("seed", problem, "leave out `seed` or `ledger`")
    if folder is None:
        fix = "name a new folder: what is charged is published, and can be found again"
        raise LedgerError("out", "is not given", fix)
    with nullcontext(ledger) if isinstance(ledger, Ledger) else Ledger.open(ledger) as opened:
        paid_by = opened.account(account) if part is None else _part_of(opened, account, part)
        yield Payment(opened, paid_by, key=key, plan=plan, source=source_name(*data), folder=folder)


def _part_of(ledger: Ledger, account: str, part: str) -> Account:
    """The account of a part."""
    parts = [each for each in ledger.accounts() if each.parent == ledger.account(account).name]
    for each in parts:
        if each.part == part:
            return each
    known = ", ".join(visible(each.part or "") for each in parts[:10]) or "it has none"
    problem = f"the account {visible(account)!r} has no part {visible(part)!r}"
    raise LedgerError("part", problem, f"use one of its parts ({known}), or make one with `hushcube ledger create`")


def _derived_key(account: str, plan: Plan, folder: Path) -> str:
    """The key of a release that was given none: the same command has the same one, so that it never pays twice."""
    return hashlib.sha256(canonical([account, plan.digest, str(folder)]).encode()).hexdigest()[:32]
