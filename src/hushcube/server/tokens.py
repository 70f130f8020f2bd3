"""Who may do what: tokens, of which only a hash is kept.

A token is `NAME.SECRET`. The secret is 256 random bits, shown once, when the token is created; the file of tokens,
which only its owner can read, keeps its SHA-256. (Nobody guesses 256 random bits, so the hash need not be slow.) The
name is no secret: it is what the audit log and the ledger call the analyst. What an analyst spends is counted by name,
so that a new token of the same name goes on where the revoked one stopped.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from hushcube.durable import check_writable, replace_file
from hushcube.errors import BadInput, ServerError
from hushcube.ledger import amounts
from hushcube.model.privacy import exact_number
from hushcube.text import short

ROLES: Final = ("reader", "analyst", "owner")
"""Each may do what those before it may."""
ALL: Final = "all"
"""Stands for a share that ends only where the account does."""
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_LONGEST: Final = timedelta(days=36500)
_NOBODY: Final = hashlib.sha256(b"").digest()  # of no secret, since secrets are not empty


@dataclass(frozen=True)
class Token:
    """A token without its secret: whose it is, and what it allows."""

    name: str
    role: str
    accounts: tuple[str, ...]
    share: Fraction | None
    """The most that it may spend of each of its accounts, in the account's currency; None where nothing but the account
    itself ends its spending. What readers may spend is nothing, since they cannot ask."""
    created: datetime
    expires: datetime | None = None
    revoked: datetime | None = None
    digest: bytes = field(default=_NOBODY, repr=False)

    def may(self, role: str) -> bool:
        """Whether it can do what a role can.

        >>> token = Token("dana", "analyst", ("stays",), None, datetime.now(UTC))
        >>> token.may("reader"), token.may("owner")
        (True, False)
        """
        return ROLES.index(self.role) >= ROLES.index(role)

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def to_dict(self) -> dict[str, Any]:
        """What may be shown of it."""
        return {
            "name": self.name,
            "role": self.role,
            "accounts": list(self.accounts),
            "share": ALL if self.share is None else amounts.exactly(self.share),
            "created": self.created.isoformat(),
            "expires": self.expires and self.expires.isoformat(),
            "revoked": self.revoked and self.revoked.isoformat(),
        }


class Tokens:
    """The tokens in a file of mode 0600; whoever opens it sees what other processes create and revoke."""

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place)
        self._known: dict[str, Token] = {}
        self._seen: tuple[int, int, int] | None = None

    def create(
        self,
        name: str,
        *,
        role: str,
        accounts: Iterable[str],
        share: Fraction | float | str | None = None,
        days: float | None = None,
    ) -> str:
        """Make a token and return it: the only time that it is seen. Creates the file where there is none.

        `share` is the most that an analyst or owner may spend of each account, in the account's currency, or "all";
        it has no default. The token is refused after some `days`, or lives until it is revoked.
        """
        token = _checked(name, role, tuple(accounts), share, days)
        secret = secrets.token_urlsafe(32)
        with self._changing() as known:
            if name in known and known[name].is_valid(token.created):
                fix = f"revoke it first with `hushcube token revoke {name}`, or choose another name"
                raise ServerError("name", f"there is a token of {name!r} already", fix)
            known[name] = replace(token, digest=hashlib.sha256(secret.encode()).digest())
        return f"{name}.{secret}"

    def list(self) -> tuple[Token, ...]:
        """All tokens, also revoked and expired ones, by name."""
        return tuple(sorted(self._read().values(), key=lambda token: token.name))

    def revoke(self, name: str) -> Token:
        """From now on the token is refused."""
        with self._changing() as known:
            if name not in known:
                raise ServerError("name", f"there is no token of {short(name)}", "see `hushcube token list`")
            if known[name].revoked is None:
                known[name] = replace(known[name], revoked=datetime.now(UTC))
            return known[name]

    def find(self, text: str) -> Token | None:
        """The valid token that a text is; None for any other text, after the same work."""
        name, _, secret = text.partition(".")
        given = hashlib.sha256(secret.encode()).digest()
        token = self._read().get(name)
        same = hmac.compare_digest(given, _NOBODY if token is None else token.digest)
        return token if same and token is not None and secret and token.is_valid(datetime.now(UTC)) else None

    def _read(self) -> dict[str, Token]:
        """The tokens in the file, read again if it is another one than before."""
        try:
            found = self.place.stat()
            seen = (found.st_ino, found.st_mtime_ns, found.st_size)
            if seen != self._seen:
                if found.st_mode & 0o077:
                    fix = "chmod 600, and revoke what others may have read"
                    raise ServerError("tokens", f"{str(self.place)!r} can be read or changed by others", fix)
                self._known, self._seen = _parsed(self.place.read_bytes()), seen
        except OSError as problem:
            reason = os.strerror(problem.errno or 0).lower()
            fix = "create a token with `hushcube token create`, or name the file that has them"
            raise ServerError("tokens", f"{str(self.place)!r} cannot be read ({reason})", fix) from None
        return self._known

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Token]]:
        """The tokens, to be changed by one process at a time, and written back in one step."""
        folder = self.place.absolute().parent
        if not folder.is_dir():
            raise ServerError("tokens", f"{str(folder)!r} is not a folder", "create it first, or choose another")
        check_writable(folder, "tokens")
        lock = os.open(folder, os.O_RDONLY)
        try:
            with suppress(OSError):  # a file system without locks: the last of two changes wins
                fcntl.flock(lock, fcntl.LOCK_EX)
            known = dict(self._read()) if self.place.exists() else {}
            yield known
            kept = [token.to_dict() | {"sha256": token.digest.hex()} for token in known.values()]
            content = json.dumps({"hushcube_tokens": 1, "tokens": kept}, indent=1).encode()
            replace_file(self.place, content, "tokens", mode=0o600)
        finally:
            os.close(lock)


def _checked(
    name: str, role: str, accounts: tuple[str, ...], share: Fraction | float | str | None, days: float | None
) -> Token:
    """A token without a secret; whatever cannot be meant is refused."""
    if not _NAME.fullmatch(name):
        fix = "use at most 40 small letters, digits and hyphens"
        raise ServerError("name", f"{short(name)} cannot be a token's name", fix)
    if role not in ROLES:
        raise ServerError("role", f"{short(role)} is not a role", f"use one of: {', '.join(ROLES)}")
    if not accounts:
        raise ServerError("account", "is not given", "name at least one account of the ledger")
    if role == "reader":
        if share is not None:
            raise ServerError("share", "readers cannot ask, so they spend nothing", "leave it out, or use role analyst")
        share = 0
    elif share is None:
        fix = "say how much of each account the token may spend, or `all`"
        raise ServerError("share", "is not given", fix)
    now = datetime.now(UTC)
    if days is not None and not 0 < days <= _LONGEST.days:
        raise ServerError("days", "are not between 0 and 36,500", "say after how many days the token is refused")
    expires = None if days is None else now + timedelta(days=days)
    amount = None if share == ALL else _amount(share)
    return Token(name, role, tuple(dict.fromkeys(accounts)), amount, now, expires)


def _amount(share: Fraction | float | str) -> Fraction:
    """A share as a ledger counts it, rounded down."""
    found = exact_number("share", share, ServerError)
    if not 0 <= found <= 10**6:
        raise ServerError(
            "share", "is not between 0 and a million", "give an amount of the account's currency, or `all`"
        )
    return amounts.in_full(amounts.rounded_down(found))


def _parsed(content: bytes) -> dict[str, Token]:
    """The tokens of a file by name."""
    try:
        document = json.loads(content)
        if document["hushcube_tokens"] != 1:
            raise ValueError
        tokens = [_token(entry) for entry in document["tokens"]]
    except (ValueError, TypeError, KeyError, BadInput):
        raise ServerError(
            "tokens", "the file is not one of tokens, or damaged", "restore it, or make new tokens"
        ) from None
    return {token.name: token for token in tokens}


def _token(entry: dict[str, Any]) -> Token:
    moments = {name: entry[name] and datetime.fromisoformat(entry[name]) for name in ("created", "expires", "revoked")}
    if entry["role"] not in ROLES:
        raise ValueError
    share = None if entry["share"] == ALL else _amount(entry["share"])
    digest = bytes.fromhex(entry["sha256"])
    return Token(entry["name"], entry["role"], tuple(entry["accounts"]), share, **moments, digest=digest)
