"""`hushcube serve`: answer analysts who do not hold the data."""

from __future__ import annotations

from typing import Any

import click

from hushcube.cli.command import option, verb
from hushcube.cli.output import note

_ADDRESS = "Address"
_LIMITS = "Limits"


@verb("serve")
@click.argument("sessions", metavar="SESSION...", nargs=-1)
@option("--tokens", "FILE", "Who may ask: the file of `hushcube token create`.", required=True)
@option("--audit", "FILE", "Note there who asked what, at which price, and what came of it.", required=True)
@option("--host", "ADDRESS", "Where to listen.", group=_ADDRESS, default="127.0.0.1", show_default=True)
@option("--port", "NUMBER", "0: any free one.", group=_ADDRESS, type=int, default=8000, show_default=True)
@option("--tls-cert", "FILE", "A certificate (PEM), for addresses that others reach.", group=_ADDRESS)
@option("--tls-key", "FILE", "Its key (PEM).", group=_ADDRESS)
@option("--without-tls", None, "Listen there in the clear: a proxy in front has TLS.", group=_ADDRESS, is_flag=True)
@option(
    "--rate",
    "NUMBER",
    "Requests of a token in a second; a question counts for 20.  [default: 200]",
    group=_LIMITS,
    type=float,
)
@option("--time-limit", "SECONDS", "Until an answer; what was begun goes on.  [default: 60]", group=_LIMITS, type=float)
def command(sessions: tuple[str, ...], **options: Any) -> None:
    """Answer questions of analysts who do not hold the data, over HTTP.

    \b
    hushcube token create dana --tokens tokens.json --role analyst --account stays --share 0.5
    hushcube serve stays --tokens tokens.json --audit audit.jsonl

    Each SESSION is the folder of a session; all are of one ledger. Stops when asked to (Ctrl-C, SIGTERM), after what is
    under way. The address is printed when requests are accepted.
    """
    from hushcube.server.serving import serve

    given = {name: value for name, value in options.items() if value is not None}
    serve(sessions, **given, ready=click.echo)
    note("stopped; every answer that was charged is stored")
