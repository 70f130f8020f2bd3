"""`serve`: sessions of one ledger, at an address that is this machine's own unless something else is asked for."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path

from hushcube.errors import MissingDependency, ServerError
from hushcube.ledger.ledger import Ledger
from hushcube.server.audit import Audit
from hushcube.server.tokens import Tokens
from hushcube.session.folder import SessionFolder
from hushcube.session.session import Session
from hushcube.web.addresses import is_own, listening_at


def serve(
    sessions: Iterable[str | Path],
    *,
    tokens: str | Path,
    audit: str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    tls_cert: str | Path | None = None,
    tls_key: str | Path | None = None,
    without_tls: bool = False,
    rate: float = 200,
    time_limit: float = 60,
    ready: Callable[[str], None] | None = None,
) -> None:
    """Serve sessions until a signal asks to stop; what is under way then is finished first.

    `sessions` are their folders, all of one ledger; `tokens` and `audit` are files. An address that is not this
    machine's own needs TLS, unless `without_tls` says that something in front of the server has it. Port 0 is any free
    port; `ready` is called with the address once requests are accepted. `rate` is how many plain requests of a token
    are answered in a second, and `time_limit` how many seconds an answer may take.
    """
    try:
        from hushcube.server.app import application
        from hushcube.server.desk import Desk, Limits
        from hushcube.web.connection import run
    except ImportError:
        raise MissingDependency("starlette, uvicorn and httptools", "the server", "server") from None
    limits = Limits(rate=rate, seconds=time_limit)
    _check_tls(host, tls_cert, tls_key, without_tls=without_tls)
    known = Tokens(tokens)
    known.list()  # whatever is wrong with the file is said now
    folders = _named(sessions)
    with ExitStack() as opened:
        listening = opened.enter_context(listening_at(host, port))
        ledger = opened.enter_context(Ledger.open(_one_ledger(folders.values())))
        resumed = {name: Session.resume(folder, ledger=ledger) for name, folder in folders.items()}
        desk = Desk(ledger, resumed, known, opened.enter_context(Audit(audit)), limits)
        tls = None if tls_cert is None or tls_key is None else (tls_cert, tls_key)
        run(application(desk), listening, host, tls=tls, patience=time_limit, ready=ready)


def _one_ledger(sessions: Iterable[Path]) -> str:
    """Where the ledger of all sessions is."""
    places = {SessionFolder(folder).declared().ledger for folder in sessions}
    if len(places) > 1:
        raise ServerError("session", "they are of several ledgers", "serve those of each ledger on a port of its own")
    return places.pop()


def _named(sessions: Iterable[str | Path]) -> dict[str, Path]:
    """Sessions by the names of their folders."""
    found: dict[str, Path] = {}
    for folder in map(Path, sessions):
        name = folder.absolute().name
        if name in found:
            fix = "rename one of the folders: sessions are served under their names"
            raise ServerError("session", f"there are two of the name {name!r}", fix)
        found[name] = folder
    if not found:
        raise ServerError("session", "is not given", "name the folder of at least one session")
    return found


def _check_tls(host: str, cert: str | Path | None, key: str | Path | None, *, without_tls: bool) -> None:
    """Refuse files that are no certificate and key, and an address that is open to others without them."""
    if (cert is None) != (key is None):
        raise ServerError("tls_cert", "and `tls_key` belong together", "give both, or none")
    if cert is not None and key is not None:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)
        except (OSError, ssl.SSLError):
            fix = "give a certificate and its key as PEM files that this user can read"
            raise ServerError("tls_cert", "does not fit `tls_key`, or one of them cannot be read", fix) from None
    elif not without_tls and not is_own(host):
        fix = "give `tls_cert` and `tls_key`; or `without_tls`, where a proxy in front of the server has them"
        raise ServerError("host", f"tokens and answers would travel to {host!r} in the clear", fix)
