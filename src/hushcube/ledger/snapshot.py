"""All that a ledger holds at one moment: what is exported, and what is verified here or elsewhere.

A JSON export has everything; a CSV export has the entries, from which all the rest follows.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from hushcube.durable import check_file, new_file
from hushcube.errors import LedgerError
from hushcube.ledger.chain import FIELDS, Entry, Head
from hushcube.ledger.replay import AccountRow, ChargeRow, Replay
from hushcube.ledger.store import FORMAT, Statements
from hushcube.model.files import read_json

_NUMBERS: Final = ("total", "own", "parts", "amount", "spent")


@dataclass(frozen=True)
class Snapshot:
    """The head, the entries, and the tables that are derived from them."""

    head: Head
    entries: tuple[Entry, ...]
    accounts: tuple[AccountRow, ...]
    charges: tuple[ChargeRow, ...]

    @classmethod
    def take(cls, sql: Statements) -> Snapshot:
        """What a transaction sees."""
        return cls(
            Head(*sql.rows("SELECT count, hash FROM head")[0]),
            tuple(Entry(*row) for row in _all(sql, "entries", FIELDS, "number")),
            tuple(AccountRow(*row) for row in _all(sql, "accounts", _names(AccountRow), "entry")),
            tuple(ChargeRow(*row) for row in _all(sql, "charges", _names(ChargeRow), "intent")),
        )

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `hushcube ledger export`; amounts are texts, whole numbers of 10^-15."""
        return {
            "hushcube_ledger": FORMAT,
            "head": asdict(self.head),
            "accounts": [_told(row) for row in self.accounts],
            "charges": [_told(row) for row in self.charges],
            "entries": [entry.to_dict() for entry in self.entries],
        }

    def to_csv(self) -> str:
        """The entries, one a line."""
        text = io.StringIO()
        lines = csv.writer(text, lineterminator="\n")
        lines.writerow(FIELDS)
        lines.writerows(entry.row for entry in self.entries)
        return text.getvalue()

    def save(self, path: str | Path) -> None:
        """Write a new file: CSV if its name ends so, else JSON."""
        file = Path(path)
        check_file(file)
        with new_file(file) as work:
            is_csv = file.suffix.lower() == ".csv"
            work.write_text(self.to_csv() if is_csv else json.dumps(self.to_dict(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: str | Path) -> Snapshot:
        """Read an export."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            return cls._from_csv(text) if text.startswith(f"{FIELDS[0]},") else cls._from_json(text)
        except (LedgerError, OSError, KeyError, IndexError, TypeError, ValueError, AttributeError, csv.Error):
            fix = "give a file that `hushcube ledger export` wrote"
            raise LedgerError("export", f"{str(path)[:200]!r} is not the export of a ledger", fix) from None

    @classmethod
    def _from_json(cls, text: str) -> Snapshot:
        raw = read_json(text, "export", LedgerError, "export the ledger again")
        if raw["hushcube_ledger"] != FORMAT:
            raise ValueError
        return cls(
            Head(raw["head"]["count"], raw["head"]["hash"]),
            tuple(_entry(told) for told in raw["entries"]),
            tuple(AccountRow(**_read(told)) for told in raw["accounts"]),
            tuple(ChargeRow(**_read(told)) for told in raw["charges"]),
        )

    @classmethod
    def _from_csv(cls, text: str) -> Snapshot:
        lines = csv.DictReader(io.StringIO(text))
        entries = tuple(_entry({**line, "number": int(line["number"])}) for line in lines)
        replay, last = Replay.of(entries), entries[-1]
        head = Head(last.number, last.hash)
        return cls(head, entries, tuple(replay.accounts.values()), tuple(replay.charges.values()))


def _names(row: type[AccountRow | ChargeRow]) -> tuple[str, ...]:
    return tuple(each.name for each in fields(row))


def _all(sql: Statements, table: str, columns: Iterable[str], order: str) -> list[tuple[Any, ...]]:
    return sql.rows(f"SELECT {', '.join(columns)} FROM {table} ORDER BY {order}")  # noqa: S608 - our words


def _told(row: AccountRow | ChargeRow) -> dict[str, Any]:
    return {name: str(value) if name in _NUMBERS else value for name, value in asdict(row).items()}


def _read(told: dict[str, Any]) -> dict[str, Any]:
    return {name: int(value) if name in _NUMBERS else value for name, value in told.items()}


def _entry(told: dict[str, Any]) -> Entry:
    entry = Entry(*(told[name] for name in FIELDS))
    if not isinstance(entry.number, int) or not all(isinstance(text, str) for text in entry.row[1:]):
        raise ValueError
    return entry
