"""`hushcube session`: open an online cube, ask it questions, show and export what it has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import Command, option
from hushcube.cli.ledger import PLACE
from hushcube.cli.options import ACCOUNT, OUTPUT, READING, SOURCES, WHAT, as_json, check_data, taking
from hushcube.cli.output import note, print_about, print_json, print_page, progress_bar
from hushcube.errors import BadInput, after

if TYPE_CHECKING:
    from hushcube.session.session import Session

_POLICY = "Policy"
_TARGET = "Target"
_LEVELS = "Questions at declared values alone, which can cost less."
_PLAIN = "Measure as little as each question needs, and nothing for later ones."


@click.group("session")
def command() -> None:
    """Ask an online cube questions, one by one, from one account."""


@command.command("open", cls=Command)
@option("--schema", "FILE", "The schema file (YAML).", group=WHAT)
@option("--ledger", "FILE", "The ledger that has the account.", group=ACCOUNT, default=PLACE, show_default=True)
@option("--account", "NAME", "The account that questions are charged to.", group=ACCOUNT)
@taking(*SOURCES, *READING)
@option(
    "--expected", "WORDS", "Questions that are likely to come, with weights; repeatable.", group=_POLICY, multiple=True
)
@option("--kept", "SHARE", "The share of the account that is left unspent.  [default: 0]", group=_POLICY)
@option("--largest", "SHARE", "The largest share for one question.  [default: 1]", group=_POLICY)
@option("--plain", None, _PLAIN, group=_POLICY, is_flag=True)
@option("--no-levels", None, _LEVELS, group=_POLICY, is_flag=True)
@option("--out", "FOLDER", "The folder of the session; it must not exist yet.", group=OUTPUT)
@as_json
def open_command(as_json: bool, **given: Any) -> None:
    """Open a session on an account and data; nothing is read or charged yet.

    \b
    hushcube session open --schema people.yaml --account people --data people.parquet --out questions
    """
    from hushcube.session.policy import Policy
    from hushcube.session.session import Session

    needed = {"schema": "name a schema file", "account": "name an account of the ledger"}
    for name, fix in {**needed, "out": "name a new folder for the session"}.items():
        if given[name] is None:
            raise BadInput(f"--{name}", "is not given", fix)
    check_data(given["data"], given["query"])
    shares = {name: given[name] for name in ("kept", "largest") if given[name] is not None}
    with Session.open(
        given["schema"],
        **{name: given[name] for name in ("ledger", "account", "data", "query", "engine", "bad_rows")},
        folder=given["out"],
        policy=Policy(expected=given["expected"], ahead=not given["plain"], **shares),
        levels=False if given["no_levels"] else None,
    ) as session:
        _show(session, as_json=as_json)


@command.command("ask", cls=Command)
@click.argument("folder")
@click.argument("question")
@option("--stderr", "NUMBER", "The largest standard error of a cell.", "std_error", group=_TARGET)
@option("--relative-error", "SHARE", "The largest relative standard error of counts --above a number.", group=_TARGET)
@option("--above", "COUNT", "The counts for which --relative-error is wanted.", group=_TARGET)
@option("--epsilon", "NUMBER", "Spend that much, on an account that counts epsilon.", group=_TARGET)
@option("--rho", "NUMBER", "Spend that much, on an account that counts rho.", group=_TARGET)
@option("--price", None, "Say what it would cost, and spend nothing.", "only_price", group=_TARGET, is_flag=True)
@option("--stored", None, "Answer from what is known, however precise that is, and spend nothing.", is_flag=True)
@option("--key", "KEY", "A key stands for one question, and never charges twice.", group=ACCOUNT)
@option("--rows", None, "The most rows to print.", type=click.IntRange(min=1), default=60, show_default=True)
@as_json
def ask_command(
    folder: str, question: str, only_price: bool, stored: bool, key: str | None, rows: int, as_json: bool, **target: Any
) -> None:
    """Answer a question: free if enough is known, else by measuring as little as meets the target.

    \b
    hushcube session ask questions 'age*sex' --stderr 20
    hushcube session ask questions 'age*sex' --relative-error 0.1 --above 500 --price
    """
    from hushcube.errors import SessionError
    from hushcube.session.session import Session

    if stored and (only_price or any(value is not None for value in target.values())):
        raise BadInput("--stored", "takes no target", "leave the target or --stored out")
    with Session.resume(folder) as session:
        if only_price:
            offer = session.offer(question, **target)
            print_json(offer.to_dict()) if as_json else print_page(offer.page())
            return
        if stored:
            answer = session.stored(question)
            if answer is None:
                raise SessionError("question", "nothing that was measured answers it", "ask it with a target")
        else:
            _warn(session)
            with progress_bar() as progress:
                answer = session.ask(question, **target, key=key, progress=progress, tell_owner=note)
        paid = "the answer is free" if answer.free else "the answer is charged and kept in the session"
        with after(f"{paid}: see `hushcube session show {folder}`"):
            print_about(
                True,
                as_json=as_json,
                document=answer.to_dict,
                text=lambda: print_page(answer.page(rows)),
                caveat=session.schema.caveat,
            )


@command.command("show", cls=Command)
@click.argument("folder")
@as_json
def show_command(folder: str, as_json: bool) -> None:
    """List the questions answered so far, what each cost and how precise it is now, and what is left."""
    from hushcube.session.session import Session

    with Session.resume(folder) as session:
        _show(session, as_json=as_json)


@command.command("export", cls=Command)
@click.argument("folder")
@option("--out", "FOLDER", "The folder to publish; it must not exist yet.", group=OUTPUT)
@as_json
def export_command(folder: str, out: str | None, as_json: bool) -> None:
    """Write everything that was measured as an ordinary release; it costs nothing."""
    from hushcube.session.session import Session

    if out is None:
        raise BadInput("--out", "is not given", "name a new folder for the release")
    with Session.resume(folder) as session, progress_bar() as progress:
        release = session.export(out, progress=progress)
    told = {"out": out, "tables": len(release), "cells": release.cells, "privacy": release.plan.privacy.to_dict()}

    def say() -> None:
        click.echo(f"published {len(release):,} tables ({release.cells:,} cells) in {out}: {release.plan.privacy}")
        click.echo(f"look at them with: hushcube show {out}")

    print_about(release.private, as_json=as_json, document=lambda: told, text=say)


def _show(session: Session, *, as_json: bool) -> None:
    print_json(session.to_dict()) if as_json else print_page(session.page())


def _warn(session: Session) -> None:
    """What a crash left, before anything is asked."""
    for charge in session.unfinished:
        note(f"unfinished: {charge.key}: {charge.advice}")
