"""Sessions as they are served: one piece of work at a time on each, in threads, and stored answers kept as bytes.

read      bytes that are there: at once, in the event loop
          not there: made once under the session's lock, and kept until the next paid answer
offer     under the lock; nothing is spent
ask       under the lock; work that was begun ends, also when whoever asked has gone or the time is over
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from hushcube.session.session import Session

T = TypeVar("T")
_KEPT: Final = 64 * 2**20
"""Bytes of answers that are kept for each session."""


class Served:
    """A session, its lock, and the answers that are kept."""

    def __init__(self, name: str, session: Session, threads: ThreadPoolExecutor) -> None:
        self.name = name
        self.session = session
        self.account = session.account.name
        self._threads = threads
        self._lock = asyncio.Lock()
        self._under_way: set[asyncio.Task[Any]] = set()
        self._kept: dict[tuple[str, str], bytes] = {}
        self._size = 0
        self._version = session.version

    async def read(self, question: str, form: str, make: Callable[[], bytes]) -> bytes:
        """The bytes of a stored answer, made if they are not there."""
        if (found := self._kept.get((question, form))) is not None:
            return found
        version, made = await self.work(lambda: (self.session.version, make()))
        if version == self._version:
            self._keep(question, form, made)
        return made

    async def work(self, job: Callable[[], T]) -> T:
        """The result of a job in a thread, one at a time; it ends, whoever still waits."""

        async def alone() -> T:
            async with self._lock:
                try:
                    return await asyncio.get_running_loop().run_in_executor(self._threads, job)
                finally:
                    self._forget_what_is_old()

        task = asyncio.create_task(alone())
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _forget_what_is_old(self) -> None:
        """Where something new was measured, every stored answer has a better version."""
        if self._version != self.session.version:
            self._version = self.session.version
            self._kept.clear()
            self._size = 0

    async def settle(self) -> None:
        """Wait for what is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def _keep(self, question: str, form: str, made: bytes) -> None:
        while self._kept and self._size + len(made) > _KEPT:
            oldest = next(iter(self._kept))
            self._size -= len(self._kept.pop(oldest))
        self._kept[question, form] = made
        self._size += len(made)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # whoever still waits gets it; where nobody does, asyncio would print it
