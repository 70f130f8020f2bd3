"""`hushcube ledger`: accounts, what is left of them, and whether the record holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.command import Command, option
from hushcube.cli.options import ACCOUNT, DATA, GUARANTEE, OUTPUT, as_json, taking
from hushcube.cli.output import note, print_json, print_page

if TYPE_CHECKING:
    from hushcube.ledger.ledger import Ledger

PLACE = "hushcube-ledger.db"
_WHERE = "A file, or postgresql://HOST/DATABASE#SCHEMA."
_place = option("--ledger", "FILE", _WHERE, "place", group=OUTPUT, default=PLACE, show_default=True)
_DISJOINT = "Nobody is in two parts, which then cost the maximum.  [default: where a row is a person]"
_MADE = (
    option("--epsilon", "NUMBER", "The total of pure or, with --delta, of approximate privacy.", group=GUARANTEE),
    option("--rho", "NUMBER", "The total of zero-concentrated privacy.", group=GUARANTEE),
    option("--delta", "NUMBER", "Probability that --epsilon may fail.", group=GUARANTEE),
    option("--neighbours", "RELATION", "add-remove or replace-one; no default.", group=GUARANTEE),
    option("--unit", "COLUMN", "The column that says whose row it is.  [default: a row is a person]", group=GUARANTEE),
    option("--rows-per-person", "NUMBER", "The most rows of one person.  [default: 1]", group=GUARANTEE, type=int),
    option("--source", "SOURCE", "The data it is for.  [default: that of its first charge]", group=DATA),
    option("--digest", "SHA256", "The digest of the data, where it must not change.", group=DATA),
    option("--partition", "NAME", "It has parts, by this.", group=ACCOUNT),
    option("--disjoint/--overlapping", None, _DISJOINT, group=ACCOUNT, default=None),
    option("--parent", "NAME", "The account that it is a part of.", group=ACCOUNT),
    option("--part", "VALUE", "Which part it is.", group=ACCOUNT),
)


@click.group("ledger")
def command() -> None:
    """Keep count of what is released: accounts, charges, and a record that can be verified."""


def _verb(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    """A verb of the group, whose messages name what was typed."""
    return command.command(name, cls=Command)


def _opened(place: str) -> Ledger:
    from hushcube.ledger.ledger import Ledger

    return Ledger.open(place)


@_verb("create")
@click.argument("name")
@taking(*_MADE)
@_place
@as_json
def create(name: str, place: str, as_json: bool, **terms: Any) -> None:
    """Make an account, and the ledger too where there is none yet.

    \b
    hushcube ledger create people --epsilon 4 --neighbours add-remove --source people.csv
    hushcube ledger create hospital --rho 1 --neighbours add-remove --unit patient_id --rows-per-person 8
    """
    from hushcube.ledger.ledger import Ledger
    from hushcube.ledger.opening import terms_of

    if terms["parent"] is None:
        terms_of(None, **terms)  # what is refused makes no file
    with Ledger.ensure(place) if terms["parent"] is None else Ledger.open(place) as ledger:
        account = ledger.create_account(name, **terms)
        is_new = ledger.head.count == 2
        if as_json:
            print_json({"ledger": ledger.place, "new": is_new, "account": account.to_dict()})
            return
        if is_new:
            note(f"{ledger.place} is a new ledger: keep a copy of it, and note its head elsewhere now and then")
        print_page(ledger.page(name))


@_verb("show")
@click.argument("name", required=False)
@_place
@as_json
def show(name: str | None, place: str, as_json: bool) -> None:
    """Print accounts with what is left of them, and what is unfinished; with NAME, also its charges.

    \b
    hushcube ledger show
    hushcube ledger show people
    """
    from hushcube.ledger.pages import charges_page

    with _opened(place) as ledger:
        charges = [] if name is None else ledger.charges(name)
        if as_json:
            told = ledger.to_dict(name)
            print_json(told if name is None else {**told, "charges": [charge.to_dict() for charge in charges]})
            return
        print_page(ledger.page(name))
        if name is not None:
            print_page(charges_page(charges))


@_verb("history")
@click.argument("name", required=False)
@_place
@as_json
def history(name: str | None, place: str, as_json: bool) -> None:
    """Print all that happened, or what happened to one account."""
    from hushcube.ledger.pages import history_page

    with _opened(place) as ledger:
        entries = ledger.history(name)
    if as_json:
        print_json({"entries": [{**entry.to_dict(), "body": entry.told} for entry in entries]})
    else:
        print_page(history_page(entries))


@_verb("lock")
@click.argument("name")
@_place
@as_json
def lock(name: str, place: str, as_json: bool) -> None:
    """Close an account for good: it, and its parts, can no longer be charged."""
    with _opened(place) as ledger:
        account = ledger.lock(name)
        if as_json:
            print_json({"account": account.to_dict()})
        else:
            print_page(ledger.page(name))


@_verb("abandon")
@click.argument("key")
@option("--why", "TEXT", "Why nothing is published for it.", required=True)
@_place
@as_json
def abandon(key: str, why: str, place: str, as_json: bool) -> None:
    """Give up an unfinished charge; what was charged stays charged."""
    with _opened(place) as ledger:
        charge = ledger.abandon(key, why)
    if as_json:
        print_json({"charge": charge.to_dict()})
    else:
        click.echo(repr(charge))


@_verb("export")
@option("--out", "FILE", "A new .json or .csv file; printed as JSON if left out.", group=OUTPUT)
@_place
def export(out: str | None, place: str) -> None:
    """Write all of a ledger as one document, with which it can be verified elsewhere."""
    with _opened(place) as ledger:
        snapshot = ledger.export()
    if out is None:
        print_json(snapshot.to_dict())
        return
    snapshot.save(out)
    click.echo(f"wrote {len(snapshot.entries):,} entries to {out}")


@_verb("verify")
@click.argument("export", metavar="[EXPORT]", required=False)
@option("--head", "HASH", "A head that was noted elsewhere: the chain must pass through it.")
@option("--no-published", None, "Do not look at what was published.", is_flag=True)
@_place
@as_json
def verify(export: str | None, head: str | None, no_published: bool, place: str, as_json: bool) -> None:
    """Check a ledger, or an export of one: its chain, its sums, and what was published for its charges.

    Every problem is reported. The exit code is 0 if all holds, 1 if not, 2 if there is no ledger.

    \b
    hushcube ledger verify
    hushcube ledger verify export.json --head 12:5f0c...
    """
    from hushcube.ledger.checking import verify_snapshot
    from hushcube.ledger.snapshot import Snapshot

    if export is not None:
        snapshot = Snapshot.read(Path(export))
    else:
        with _opened(place) as ledger:
            snapshot = ledger.export()
    verdict = verify_snapshot(snapshot, head=head, published=not no_published)
    if as_json:
        print_json(verdict.to_dict())
    else:
        print_page(verdict.page())
    if not verdict.holds:
        raise click.exceptions.Exit(1)
