"""What a server has on its desk: a ledger, its sessions, the tokens, the audit log, and the limits."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from hushcube.errors import BadInput
from hushcube.server.audit import Audit
from hushcube.server.limits import Rate, UnderWay
from hushcube.server.served import Served
from hushcube.server.tokens import Tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hushcube.ledger.ledger import Ledger
    from hushcube.session.session import Session

NOBODY: Final = ""
"""Who sends no valid token; all of them share one bucket."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much a request may be, take and repeat."""

    rate: float = 200
    """Plain requests of a token in a second; a question counts for twenty."""
    size: int = 64 * 1024
    """Bytes of a request."""
    seconds: float = 60
    """Until an answer; work that was begun goes on, and its answer is stored."""
    under_way: int = 4
    """Questions of a token that are being answered."""

    def __post_init__(self) -> None:
        for name in ("rate", "size", "seconds", "under_way"):
            if not 0 < getattr(self, name) <= 10**9:
                raise BadInput(name, "is not positive", "give a positive number")


class Desk:
    """Everything that requests are answered from."""

    def __init__(
        self,
        ledger: Ledger,
        sessions: Mapping[str, Session],
        tokens: Tokens,
        audit: Audit,
        limits: Limits | None = None,
    ) -> None:
        self.ledger = ledger
        self.tokens = tokens
        self.audit = audit
        self.limits = limits or Limits()
        self.rate = Rate(self.limits.rate)
        self.under_way = UnderWay(self.limits.under_way)
        self.threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="hushcube")
        self.sessions = {name: Served(name, session, self.threads) for name, session in sessions.items()}
        self._folder = tempfile.TemporaryDirectory(prefix="hushcube-server-")

    @property
    def folder(self) -> Path:
        """For what is packed to be downloaded."""
        return Path(self._folder.name)

    async def close(self) -> None:
        """Wait for what is under way; whoever opened the sessions, the ledger and the log closes them."""
        for served in self.sessions.values():
            await served.settle()
        self.threads.shutdown()
        self._folder.cleanup()
