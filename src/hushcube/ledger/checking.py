"""Whether a ledger holds what it claims: its chain, what follows from it, and what was published for its charges.

chain        every entry has the hash of its fields and of the one before; there is no gap, and the last is the head
head         the chain passes through a head that was noted elsewhere
accounts     what entries add up to is what the tables say, and no total was ever passed
published    where all of that holds, and what was published can be read: it is what the charge says, and costs no more
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hushcube.bundle.checks.verdict import Check, Checked
from hushcube.errors import BadInput, LedgerError
from hushcube.ledger import amounts
from hushcube.ledger.account import Terms
from hushcube.ledger.chain import BEFORE_ALL, Entry, Head
from hushcube.ledger.published import published_digest, published_plan
from hushcube.ledger.replay import AccountRow, ChargeRow, Replay
from hushcube.ledger.snapshot import Snapshot
from hushcube.planning.pricing import price, settled
from hushcube.shown import Page, Shown
from hushcube.text import at_most, visible


@dataclass(frozen=True, repr=False)
class LedgerVerdict(Checked, Shown):
    """All checks of one ledger."""

    checks: tuple[Check, ...]
    head: Head

    def page(self) -> Page:
        """The lines of the checks, what they come to, and the head to note elsewhere."""
        end = "Everything holds." if self.holds else "The ledger does not hold what it claims."
        return Page((*self.lines, end, f"head {self.head}"))

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `hushcube ledger verify`."""
        return {"holds": self.holds, "head": str(self.head), "checks": [check.to_dict() for check in self.checks]}

    def __repr__(self) -> str:
        wrong = [check.name for check in self.checks if not check.holds]
        return f"LedgerVerdict({'does not hold: ' * bool(wrong)}{', '.join(wrong) or 'holds'})"


def verify_snapshot(snapshot: Snapshot, *, head: str | None = None, published: bool = True) -> LedgerVerdict:
    """Check everything; `head` is one that was noted elsewhere, `published` looks at what was published, too."""
    noted = None if head is None else _noted(head)
    replay = Replay.of(snapshot.entries)
    checks = [_chain(snapshot)]
    if noted is not None:
        checks.append(_passes_through(snapshot.entries, noted))
    checks.append(_derived(snapshot, replay))
    if published and all(check.holds for check in checks):
        checks.append(_published(snapshot, replay))
    return LedgerVerdict(tuple(checks), snapshot.head)


def _noted(text: str) -> str:
    """The hash of a head as `ledger show` prints it, with or without the number before it."""
    found = text.rpartition(":")[2].strip().lower()
    if len(found) != len(BEFORE_ALL) or set(found) - set("0123456789abcdef"):
        raise LedgerError("head", "is not the head of a ledger", "give what `hushcube ledger show` printed as the head")
    return found


def _chain(snapshot: Snapshot) -> Check:
    check = Check("chain", "entries follow each other without a gap or a change")
    before, number = BEFORE_ALL, 0
    for entry in snapshot.entries:
        check.checked += 1
        number += 1
        if entry.number != number:
            check.add(f"entry {number}: is missing, or stands elsewhere")
            number = entry.number
        if not entry.is_intact:
            check.add(f"entry {entry.number}: was changed")
        elif entry.previous != before:
            check.add(f"entry {entry.number}: does not follow the one before it")
        before = entry.hash
    if snapshot.head != Head(number, before):
        check.add(f"the head is {snapshot.head.count}, and the last entry {number}: some were cut off or changed")
    return check


def _passes_through(entries: Sequence[Entry], noted: str) -> Check:
    check = Check("head", "the chain passes through the head that was noted", 1)
    if all(entry.hash != noted for entry in entries):
        check.add("no entry has this hash: entries after it, or the whole ledger, were replaced or cut off")
    return check


def _derived(snapshot: Snapshot, replay: Replay) -> Check:
    check = Check("accounts", "accounts and charges are what the entries add up to, within their totals")
    for problem in replay.problems:
        check.add(problem)
    tables: tuple[tuple[str, dict[str, Any], dict[str, Any]], ...] = (
        ("account", {row.name: row for row in snapshot.accounts}, replay.accounts),
        ("charge", {row.key: row for row in snapshot.charges}, replay.charges),
    )
    for what, there, expected in tables:
        for name in dict.fromkeys([*expected, *there]):
            check.checked += 1
            if there.get(name) != expected.get(name):
                check.add(f"{what} {visible(str(name))!r}: {_difference(there.get(name), expected.get(name))}")
    return check


def _difference(there: AccountRow | ChargeRow | None, expected: AccountRow | ChargeRow | None) -> str:
    if there is None or expected is None:
        return "is missing" if there is None else "no entry made it"
    names = (name for name in vars(expected) if getattr(there, name) != getattr(expected, name))
    return f"its {next(names)} is not what the entries add up to"


def _published(snapshot: Snapshot, replay: Replay) -> Check:
    check = Check("published", "what was published is what was charged for, and costs no more")
    bodies = {entry.number: entry for entry in snapshot.entries}
    for charge in replay.charges.values():
        if charge.state != "published" or charge.outcome is None:
            continue
        intent, outcome = (bodies[number].told for number in (charge.intent, charge.outcome))
        folder, key = Path(outcome["place"]), visible(charge.key)
        if not folder.is_dir():
            check.remark(f"{key}: {visible(str(folder))!r} is not here, and was not checked")
            continue
        check.checked += 1
        try:
            problem = _misfit(folder, charge, intent, outcome, replay.terms[charge.account])
        except (BadInput, OSError):
            problem = "cannot be read as what was published"
        if problem is not None:
            check.add(f"{key}: {visible(str(folder))!r} {problem}")
    return check


def _misfit(
    folder: Path, charge: ChargeRow, intent: dict[str, Any], outcome: dict[str, Any], terms: Terms
) -> str | None:
    """What is wrong with what was published for a charge; None if nothing is."""
    if published_digest(folder) != outcome["bundle_digest"]:
        return "is not what was published: its digest is another"
    plan = published_plan(folder)
    ran = any(design.is_outcome for design in plan.designs.values())  # an adaptive plan ends as another one
    if plan.digest != intent["plan_digest"] and not ran:
        return "has another plan than was charged for"
    for cost, units in ((price, charge.amount), (settled, charge.spent)):
        due = amounts.rounded_up(cost(plan, terms.privacy, terms.unit))
        if due > units:
            return f"costs {_shown(due)}, and {_shown(units)} was charged"
    return None


def _shown(units: int) -> str:
    return at_most(amounts.in_full(units))
