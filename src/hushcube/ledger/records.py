"""What a transaction of a ledger reads and writes: accounts, charges, entries.

The tables are those of `store.py`; whatever is here runs inside one transaction.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from hushcube.errors import LedgerError, UnknownAccount
from hushcube.ledger import amounts
from hushcube.ledger.account import Account, Terms, total_of
from hushcube.ledger.chain import FIELDS, Entry, Head, Kind
from hushcube.ledger.charge import Charge, DataIdentity, State
from hushcube.ledger.store import Row, Statements
from hushcube.text import visible

_ENTRY: Final = ", ".join(FIELDS)
_COSTS: Final = {True: "MAX", False: "SUM"}
"""What parts cost together: the maximum where nobody is in two of them."""
_PARTS: Final = "(SELECT CAST(COALESCE({cost}(c.own + c.parts), 0) AS BIGINT) FROM accounts AS c WHERE c.parent = ?)"


# --------------------------------------------------------------------------------------------------------- entries


def now() -> str:
    """The time as entries have it: UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


def head_of(sql: Statements) -> Head:
    """The last entry."""
    return Head(*sql.rows("SELECT count, hash FROM head")[0])


def append(sql: Statements, kind: Kind, account: str, body: dict[str, Any]) -> Entry:
    """Add an entry, and move the head to it."""
    head = head_of(sql)
    entry = Entry.after(head, now(), kind, account, body)
    moved = sql.change(
        "UPDATE head SET count = ?, hash = ? WHERE count = ? AND hash = ?",
        *(entry.number, entry.hash, head.count, head.hash),
    )
    if moved != 1:
        raise LedgerError(
            "ledger", "its head was changed meanwhile; the ledger is as it was", "run `hushcube ledger verify`"
        )
    sql.change(f"INSERT INTO entries ({_ENTRY}) VALUES (?, ?, ?, ?, ?, ?, ?)", *entry.row)  # noqa: S608 - our words
    return entry


def entries(sql: Statements, account: str | None = None) -> list[Entry]:
    """All entries, or those of one account, in order."""
    where, values = ("", ()) if account is None else (" WHERE account = ?", (account,))
    found = sql.rows(f"SELECT {_ENTRY} FROM entries{where} ORDER BY number", *values)  # noqa: S608 - our words
    return [Entry(*row) for row in found]


# -------------------------------------------------------------------------------------------------------- accounts


def find_accounts(sql: Statements) -> dict[str, Account]:
    """All accounts by name, in the order in which they were made; what is left of each, as its parents allow."""
    found = {row[0]: row for row in sql.rows(f"{_ACCOUNT} ORDER BY a.entry")}
    return {name: _account(found, name) for name in found}


def get_account(sql: Statements, name: str) -> Account:
    """An account by its name."""
    return line_of(sql, name)[0]


def line_of(sql: Statements, name: str) -> list[Account]:
    """An account, its parent, the parent of that, and so on."""
    rows: dict[str, Row] = {}
    above: str | None = name
    while above is not None:
        found = sql.rows(f"{_ACCOUNT} WHERE a.name = ?", above)
        if not found:
            raise UnknownAccount(visible(above))
        rows[above] = found[0]
        above = found[0][6]
    return [_account(rows, each) for each in rows]


_ACCOUNT: Final = (
    "SELECT a.name, a.total, a.own, a.parts, a.locked, a.source, a.parent, e.body "
    "FROM accounts AS a JOIN entries AS e ON e.number = a.entry"
)


def _account(rows: dict[str, Row], name: str) -> Account:
    _, total, own, parts, locked, source, _, body = rows[name]
    terms = Terms.from_dict(json.loads(body))
    full = amounts.in_full
    figures = {"total": full(total), "own": full(own), "parts": full(parts), "left": full(_room(rows, name))}
    return Account(name=name, terms=terms, source=source, locked=bool(locked), **figures)


def _room(rows: dict[str, Row], name: str) -> int:
    """What can still be charged: the least of what is left here and of what the parent lets a part add.

    A part whose parent pays the maximum may first catch up with the most expensive part, which costs nothing more.
    """
    _, total, own, parts, _, _, parent, _ = rows[name]
    left: int = total - own - parts
    if parent is None:
        return left
    above = Terms.from_dict(json.loads(rows[parent][7]))
    behind = rows[parent][3] - own - parts if above.disjoint else 0
    return min(left, _room(rows, parent) + behind)


def spend(sql: Statements, line: Sequence[Account], units: int) -> bool:
    """Charge an account and, by what its parts then cost, each one above it; whether all of them allow it.

    A negative amount settles. A refusal leaves changes to be undone with the transaction.
    """
    units, name = min(units, amounts.BEYOND), line[0].name
    granted = sql.change(
        "UPDATE accounts SET own = own + ? WHERE name = ? AND own + ? >= 0 AND own + parts + ? <= total",
        *(units, name, units, units),
    )
    for above in line[1:]:
        cost = _PARTS.format(cost=_COSTS[above.disjoint])
        granted += sql.change(
            f"UPDATE accounts SET parts = {cost} WHERE name = ? AND own + {cost} <= total",  # noqa: S608 - our words
            *(above.name, above.name, above.name),
        )
    return granted == len(line)


def add_account(sql: Statements, name: str, terms: Terms) -> Account:
    """A new account, whose name and part are not taken."""
    if sql.rows("SELECT name FROM accounts WHERE name = ?", name):
        fix = "choose another name; `hushcube ledger show` lists the accounts"
        raise LedgerError("name", f"there is an account {visible(name)!r} already", fix)
    if terms.parent is not None:
        if found := sql.rows("SELECT name FROM accounts WHERE parent = ? AND part = ?", terms.parent, terms.part):
            part = f"{visible(str(terms.part))!r} of {visible(terms.parent)!r}"
            raise LedgerError("part", f"{part} is the account {visible(found[0][0])!r} already", "charge that one")
        if terms.source is not None:
            _check_part_source(sql, get_account(sql, terms.parent), terms.source)
    total = total_of(terms.privacy)
    entry = append(sql, "account", name, {**terms.to_dict(), "total": amounts.digits(total)})
    sql.change(
        "INSERT INTO accounts (name, entry, total, own, parts, locked, source, parent, part) "
        "VALUES (?, ?, ?, 0, 0, 0, ?, ?, ?)",
        *(name, entry.number, total, terms.source, terms.parent, terms.part),
    )
    return get_account(sql, name)


def bind(sql: Statements, line: Sequence[Account], source: str) -> None:
    """An account that has declared no source is for the data of its first charge, and for no other from then on."""
    if line[0].source is None:
        if len(line) > 1:
            _check_part_source(sql, line[1], source)
        sql.change("UPDATE accounts SET source = ? WHERE name = ?", source, line[0].name)


def _check_part_source(sql: Statements, above: Account, source: str) -> None:
    """Refuse data that another part, or the whole, is charged for: then somebody would be in two parts."""
    if not above.disjoint:
        return
    others = sql.rows("SELECT name FROM accounts WHERE parent = ? AND source = ?", above.name, source)
    taken = above.name if above.source == source else others[0][0] if others else None
    if taken is not None:
        problem = f"{visible(source)!r} is the data of the account {visible(taken)!r}, and parts share nobody"
        raise LedgerError("data", problem, "give the data of this part alone")


# --------------------------------------------------------------------------------------------------------- charges

_CHARGE: Final = (
    "SELECT c.key, c.account, c.amount, c.spent, c.state, i.number, i.time, i.body, b.body, o.body "
    "FROM charges AS c JOIN entries AS i ON i.number = c.intent "
    "LEFT JOIN entries AS b ON b.number = c.begun LEFT JOIN entries AS o ON o.number = c.outcome"
)


def find_charges(sql: Statements, account: str | None = None) -> list[Charge]:
    """All charges, or those of one account, in the order in which they were made."""
    where, values = ("", ()) if account is None else (" WHERE c.account = ?", (account,))
    return [_charge(row) for row in sql.rows(f"{_CHARGE}{where} ORDER BY c.intent", *values)]


def find_charge(sql: Statements, key: str) -> Charge | None:
    """The charge that a key made; None where it made none."""
    found = sql.rows(f"{_CHARGE} WHERE c.key = ?", key)
    return _charge(found[0]) if found else None


def get_charge(sql: Statements, key: str) -> Charge:
    """The charge that a key made."""
    if (found := find_charge(sql, key)) is None:
        raise LedgerError("key", f"there is no charge {visible(key)!r} in the ledger", "charge first")
    return found


def spent_by(sql: Statements, account: str, who: str) -> int:
    """What one of those who ask has spent of an account, in units: a sum that the database forms."""
    ((spent,),) = sql.rows(
        "SELECT CAST(COALESCE(SUM(c.spent), 0) AS BIGINT) "  # noqa: S608 - our words
        "FROM charges AS c JOIN entries AS i ON i.number = c.intent "
        f"WHERE c.account = ? AND {sql.field('i.body', 'who')} = ?",
        *(account, who),
    )
    return int(spent)


def add_charge(sql: Statements, account: str, units: int, body: dict[str, Any]) -> Charge:
    """Note what was charged, as unfinished."""
    entry = append(sql, "charge", account, {**body, "amount": amounts.digits(units)})
    sql.change(
        "INSERT INTO charges (key, account, intent, amount, spent, state) VALUES (?, ?, ?, ?, ?, 'unfinished')",
        *(body["key"], account, entry.number, units, units),
    )
    return get_charge(sql, body["key"])


def begin_charge(sql: Statements, charge: Charge, place: str) -> Charge:
    """Note that noise is about to be drawn."""
    entry = append(sql, "begin", charge.account, {"key": charge.key, "place": place})
    sql.change("UPDATE charges SET begun = ? WHERE key = ? AND begun IS NULL", entry.number, charge.key)
    return get_charge(sql, charge.key)


def finish_charge(sql: Statements, charge: Charge, state: State, body: dict[str, Any], units: int) -> Charge:
    """Note what became of a charge, and what it cost in the end."""
    kind: Kind = "publish" if state == "published" else "abandon"
    entry = append(sql, kind, charge.account, {"key": charge.key, **body})
    sql.change(
        "UPDATE charges SET state = ?, spent = ?, outcome = ? WHERE key = ? AND state = 'unfinished'",
        *(state, units, entry.number, charge.key),
    )
    return get_charge(sql, charge.key)


def _charge(row: Row) -> Charge:
    key, account, amount, spent, state, number, time, intent, begun, outcome = row
    told = json.loads(intent)
    ended = {name: value for body in (begun, outcome) if body is not None for name, value in json.loads(body).items()}
    return Charge(
        account=account,
        key=key,
        amount=amounts.in_full(amount),
        spent=amounts.in_full(spent),
        state=state,
        plan_digest=told["plan_digest"],
        data=DataIdentity(**told["data"]),
        what=told["what"],
        time=time,
        entry=number,
        begun=begun is not None,
        who=told.get("who"),
        **{name: ended.get(name) for name in ("bundle_digest", "place", "why")},
    )
