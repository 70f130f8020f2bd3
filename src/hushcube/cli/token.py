"""`hushcube token`: who may ask a server what."""

from __future__ import annotations

from typing import Any

import click

from hushcube.cli.command import Command, option
from hushcube.cli.options import as_json
from hushcube.cli.output import note, print_json, print_page
from hushcube.shown import Column, Grid, Page

_TOKENS: dict[str, Any] = {"required": True}


@click.group("token")
def command() -> None:
    """Say who may ask a server what: create, list and revoke tokens."""


@command.command("create", cls=Command)
@click.argument("name", metavar="NAME")
@option("--tokens", "FILE", "The file of tokens; it is made if there is none.", **_TOKENS)
@option("--role", "ROLE", "reader, analyst (may ask) or owner (sees the record, locks accounts).", required=True)
@option("--account", "ACCOUNT", "An account that the token is for; repeat for several.", "accounts", multiple=True)
@option("--share", "AMOUNT", "The most that it may spend of each account, in the account's currency, or `all`.")
@option("--days", "NUMBER", "After how many days it is refused.  [default: when it is revoked]", type=float)
def create(name: str, tokens: str, **options: Any) -> None:
    """Make a token and print it: the only time that it is seen."""
    from hushcube.server.tokens import Tokens

    made = Tokens(tokens).create(name, **options)
    click.echo(made)
    note("this is the only time that the token is shown; give it to whom it is for, and to nobody else")


@command.command("list", cls=Command)
@option("--tokens", "FILE", "The file of tokens.", **_TOKENS)
@as_json
def list_command(tokens: str, as_json: bool) -> None:
    """List the tokens, without their secrets."""
    from hushcube.server.tokens import Tokens

    known = [token.to_dict() for token in Tokens(tokens).list()]
    if as_json:
        print_json(known)
        return
    names = ("name", "role", "accounts", "share", "expires", "revoked")
    rows = [[_shown(token[name]) for name in names] for token in known]
    print_page(Page((Grid("tokens", [Column(name) for name in names], rows),)))


def _shown(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else value or ""


@command.command("revoke", cls=Command)
@click.argument("name", metavar="NAME")
@option("--tokens", "FILE", "The file of tokens.", **_TOKENS)
def revoke(name: str, tokens: str) -> None:
    """Refuse a token from now on; a server that is running sees it at once."""
    from hushcube.server.tokens import Tokens

    Tokens(tokens).revoke(name)
    click.echo(f"revoked: {name}")
