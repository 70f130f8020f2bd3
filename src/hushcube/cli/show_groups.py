"""What `hushcube show` prints of sums, of two groups, of shares and of cross-tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import click

from hushcube.cli.output import print_about, print_csv, print_page
from hushcube.text import csv_text, visible

if TYPE_CHECKING:
    from hushcube.bundle.estimate import Estimate
    from hushcube.bundle.release import Release
    from hushcube.bundle.sharing import Of

Conditions = dict[str, list[str]]
_MORE = "--rows shows more, --csv and --json all"
_ALL = "--json has all of them"


def show_sum(release: Release, marginal: str, where: Conditions, *, as_csv: bool, as_json: bool) -> None:
    """The sum of some cells, of every quantity."""
    words = _words(release)
    estimates = {word: release.estimate(marginal, where, word) for word in words}
    if as_csv:
        _print_estimates(release, ((word, {"sum": each}) for word, each in estimates.items()))
        return

    def document() -> dict[str, Any]:
        told = {word: each.to_dict() for word, each in estimates.items()}
        return {**told.pop("count"), **told}

    def text() -> None:
        for word, estimate in estimates.items():
            click.echo(visible(f"{'' if len(words) == 1 else f'{word}: '}{estimate}"))

    _print(release, document, text, as_json=as_json)


def show_compared(
    release: Release, marginal: str, where: Conditions, versus: Conditions, *, as_csv: bool, as_json: bool
) -> None:
    """Two groups, of every quantity."""
    found = {word: release.compare(marginal, where, versus, word) for word in _words(release)}
    if as_csv:
        _print_estimates(release, ((word, each.estimates) for word, each in found.items()))
        return

    def text() -> None:
        print_page(reduce(add, (each.page() for each in found.values())))

    _print(release, lambda: {word: each.to_dict() for word, each in found.items()}, text, as_json=as_json)


def show_shares(
    release: Release,
    marginal: str,
    where: Conditions,
    columns: str | None,
    share: Of,
    rows: int,
    *,
    as_csv: bool,
    as_json: bool,
) -> None:
    """Shares of counts, and of sums of what is not negative."""
    from hushcube.bundle.crossing import documents

    first, *others = (release.shares(marginal, share, word, where, columns=columns) for word in _shared(release))
    if as_csv:
        print_csv(replace(first, others=tuple(others)).to_csv(), first.private, release.schema.caveat)
        return

    def document() -> dict[str, Any]:
        told = {table.what: documents(table) for table in (first, *others)}
        return {"attributes": list(first.attributes), "shares": told}

    def text() -> None:
        print_page(reduce(add, (table.page(rows, more=_MORE) for table in (first, *others))))

    _print(release, document, text, as_json=as_json)


def show_cross(
    release: Release,
    marginal: str,
    where: Conditions,
    columns: str | None,
    share: Of | None,
    face: str,
    rows: int,
    *,
    as_json: bool,
) -> None:
    """A cross-table of every quantity, or of those that have shares."""
    from hushcube.faces.value import UNBIASED

    words = ["count"] if face != UNBIASED else _words(release) if share is None else _shared(release)
    options: dict[str, Any] = {"columns": columns, "share": share, "face": face}
    found = {word: release.cross(marginal, word, where, **options) for word in words}

    def text() -> None:
        print_page(reduce(add, (each.page(rows, more=_ALL) for each in found.values())))

    _print(release, lambda: {word: each.to_dict() for word, each in found.items()}, text, as_json=as_json)


def _words(release: Release) -> list[str]:
    return [str(quantity) for quantity in release.plan.quantities]


def _shared(release: Release) -> list[str]:
    """The quantities that are made up of parts: counts, and sums of measures that are not negative."""
    sums = [f"sum({name})" for name in release.plan.sums if release.schema.measure(name).bounds[0] >= 0]
    return ["count", *sums]


def _print_estimates(release: Release, quantities: Iterable[tuple[str, Mapping[str, Estimate]]]) -> None:
    """One row for each estimate of each quantity."""
    names = ["quantity", "estimate", "value", "std_error", "low", "high", "interval"]
    stamp = [] if release.private else ["NOT PRIVATE"]
    rows = [
        [word, name, each.value, each.std_error, each.low, each.high, each.interval, *stamp]
        for word, estimates in quantities
        for name, each in estimates.items()
    ]
    print_csv(csv_text([[*names, *["warning"] * len(stamp)], *rows]), release.private, release.schema.caveat)


def _print(release: Release, document: Any, text: Any, *, as_json: bool) -> None:
    print_about(release.private, as_json=as_json, document=document, text=text, caveat=release.schema.caveat)
