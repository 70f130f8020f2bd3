"""The folder of a session: what was declared when it was opened, and one step after the other.

    session.json        schema, account, ledger, source, policy: never changed
    steps/0001.json     what was asked and the plan for it, written before anything is charged
    steps/0001/         the step, published: an ordinary release of what it measured
    answers.jsonl       every question that was answered, free ones too: a line each

A step that was charged and has no folder is unfinished: a crash, or another process that is at work. Whoever writes
holds a lock on session.json, so that two processes may ask questions of one session.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from hushcube.durable import check_output, explained, new_file, new_folder, sync_folder
from hushcube.errors import BadInput, BundleError, SessionError
from hushcube.model.files import read_json, read_text
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.session.policy import Policy

FORMAT: Final = 1
_SESSION: Final = "session.json"
_STEPS: Final = "steps"
_ANSWERS: Final = "answers.jsonl"
_FIX: Final = "name the folder of a session that was made with `hushcube session open`"
_NUMBER: Final = re.compile(r"(\d{4,9})\.json")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What was agreed when the session was opened."""

    id: str
    schema: Schema
    ledger: str
    account: str
    data: str | None
    """The source as it was named; None for a frame, which must be given again."""
    query: str | None
    engine: str | None
    bad_rows: str
    levels: bool
    """Whether questions may be at levels, which tables are then measured for; else residual spaces may be."""
    policy: Policy

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        told = {name: getattr(self, name) for name in _PLAIN}
        return {"format": FORMAT, **told, "schema": self.schema.to_dict(), "policy": self.policy.to_dict()}

    @classmethod
    def from_dict(cls, raw: Any) -> Declared:
        """Read the JSON form."""
        if not isinstance(raw, dict) or raw.get("format") != FORMAT or raw.keys() != {"format", *_PLAIN, *_NOUNS}:
            raise SessionError("session", "is not a session of this version of hushcube", _FIX)
        plain = {name: raw[name] for name in _PLAIN}
        return cls(**plain, schema=Schema.from_dict(raw["schema"]), policy=Policy.from_dict(raw["policy"]))


_PLAIN: Final = ("id", "ledger", "account", "data", "query", "engine", "bad_rows", "levels")
_NOUNS: Final = ("schema", "policy")


@dataclass(frozen=True)
class Intent:
    """A step before it is charged: the question, what was asked of it, the caller's key, and the plan."""

    number: int
    question: str
    target: dict[str, Any]
    key: str | None
    plan: Plan

    def to_json(self) -> str:
        """The file's text."""
        told = {"question": self.question, "target": self.target, "key": self.key}
        return json.dumps({**told, "plan": self.plan.to_json()}, ensure_ascii=False, allow_nan=False)


class SessionFolder:
    """Where a session is kept."""

    def __init__(self, place: Path) -> None:
        self.place = place.absolute()

    @classmethod
    def create(cls, place: Path, declared: Declared) -> SessionFolder:
        """A new folder, whole or not at all."""
        check_output(place, "folder")
        with new_folder(place, "folder") as work:
            (work / _STEPS).mkdir(0o700)
            (work / _SESSION).touch(0o600)  # an address may hold a password
            (work / _SESSION).write_text(json.dumps(declared.to_dict(), ensure_ascii=False), encoding="utf-8")
            (work / _ANSWERS).touch(0o600)
        return cls(place)

    def declared(self) -> Declared:
        """What was agreed when it was opened."""
        text = read_text(self.place / _SESSION, SessionError, "session")
        try:
            return Declared.from_dict(read_json(text, "session", SessionError, _FIX))
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError):
            raise SessionError("session", "a field is missing or damaged", _FIX) from None

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the folder, among processes."""
        try:
            descriptor = os.open(self.place / _SESSION, os.O_RDONLY)
        except OSError as problem:
            raise explained("session", self.place, problem, "nothing was asked") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def step(self, number: int) -> Path:
        """The folder of a step."""
        return self.place / _STEPS / f"{number:04d}"

    def numbers(self) -> list[int]:
        """The steps that were begun."""
        try:
            names = [path.name for path in (self.place / _STEPS).iterdir()]
        except OSError as problem:
            raise explained("session", self.place, problem, "nothing was asked") from None
        return sorted(int(match[1]) for match in map(_NUMBER.fullmatch, names) if match)

    def write(self, intent: Intent) -> None:
        """Note what is about to be charged."""
        with new_file(self._intent(intent.number), "session") as file:
            file.write_text(intent.to_json(), encoding="utf-8")

    def read(self, number: int) -> Intent:
        """What was about to be charged."""
        raw = read_json(read_text(self._intent(number), SessionError, "session"), "session", SessionError, _FIX)
        try:
            return Intent(number, raw["question"], raw["target"], raw["key"], Plan.from_json(raw["plan"]))
        except (KeyError, TypeError):
            raise SessionError("session", f"what was asked for step {number} is damaged", _FIX) from None

    def forget(self, number: int) -> None:
        """Take back a note for which nothing was charged."""
        self._intent(number).unlink(missing_ok=True)
        sync_folder(self.place / _STEPS)

    def _intent(self, number: int) -> Path:
        return self.place / _STEPS / f"{number:04d}.json"

    def note(self, document: dict[str, Any]) -> None:
        """Add a line to the questions that were answered; of no consequence where that fails."""
        with suppress(OSError), (self.place / _ANSWERS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")

    def answered(self) -> list[dict[str, Any]]:
        """The lines; what a crash cut off is left out."""
        found = []
        with suppress(OSError):
            for line in (self.place / _ANSWERS).read_text(encoding="utf-8").splitlines():
                with suppress(ValueError):
                    found.append(json.loads(line))
        return found


def lasting(data: object) -> str | None:
    """A source as it can be found again from anywhere; None for a frame, which no text stands for.

    >>> lasting("postgresql://host/db#people"), lasting("csv:/data/people.txt"), lasting([])
    ('postgresql://host/db#people', 'csv:/data/people.txt', None)
    """
    if not isinstance(data, str | os.PathLike):
        return None
    text = os.fsdecode(data)
    if "://" in text:
        return text
    kind, colon, rest = text.partition(":")
    if not colon or kind not in ("csv", "parquet", "duckdb"):
        kind, colon, rest = "", "", text
    return f"{kind}{colon}{Path(rest).absolute()}"


def damaged(number: int, problem: str) -> BundleError:
    """A step that cannot be believed."""
    return BundleError(f"step {number}", problem, "put the folder back as it was: the session answers from it")
