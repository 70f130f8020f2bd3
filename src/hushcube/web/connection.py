"""uvicorn as it is used here: it does not wait for ever, and it stops when it is asked to, after what is under way.

The head of a request must come in time and be of a reasonable size; what comes after it is the gate's to limit
[server/gate.py].
"""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

SECONDS: Final = 10.0
_CONNECTIONS: Final = 1000
BYTES: Final = 64 * 1024
_SIGNALS: Final = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Connection(HttpToolsProtocol):
    """uvicorn's, which is closed where the head of a request is too slow or too large."""

    _timer: asyncio.TimerHandle | None = None
    _head: int | None = 0
    """Bytes of a head that is not complete."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's is
        """The head of the first request is waited for."""
        super().connection_made(transport)
        self._wait()

    def on_message_begin(self) -> None:
        """The head of another request begins."""
        super().on_message_begin()
        self._head = 0
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Count what comes before a head is complete."""
        if self._head is not None:
            self._head += len(data)
            if self._head > BYTES + len(data):  # what came at once with the head's end may be a body
                self.transport.close()
                return
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """The head is complete."""
        self._head = None
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Server(uvicorn.Server):
    """uvicorn's, which says where it is once requests are accepted, and to which a signal is an orderly end."""

    def __init__(self, config: uvicorn.Config, address: str, ready: Callable[[str], None] | None) -> None:
        super().__init__(config)
        self._address = address
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and say so."""
        await super().startup(sockets)
        if self.started and self._ready is not None:
            self._ready(self._address)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals stop the server; none is raised once more when it has stopped. They come to the main thread only."""
        before = {}
        if threading.current_thread() is threading.main_thread():
            before = {number: signal.signal(number, self.handle_exit) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def run(
    app: ASGIApp,
    listening: socket.socket,
    host: str,
    *,
    tls: tuple[str | Path, str | Path] | None = None,
    patience: float = 1.0,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve an application until a signal asks to stop; what is under way then has some seconds to finish.

    `tls` are files of a certificate and its key; `ready` is called with the address once requests are accepted.
    """
    shown = f"[{host}]" if ":" in host else host
    address = f"{'http' if tls is None else 'https'}://{shown}:{listening.getsockname()[1]}"
    Server(configured(app, tls, patience), address, ready).run([listening])


def configured(app: ASGIApp, tls: tuple[str | Path, str | Path] | None = None, patience: float = 1.0) -> uvicorn.Config:
    """uvicorn's settings: it logs nothing, and says nothing of itself."""
    cert, key = tls or (None, None)
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_CONNECTIONS,
        timeout_graceful_shutdown=int(patience) + 1,
        ssl_certfile=cert,
        ssl_keyfile=key,
    )
