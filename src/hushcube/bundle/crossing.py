"""Cross-tables: one attribute in the columns, the others in the rows, with totals of what is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, product
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hushcube.bundle.published_table import Table, Where, beside
from hushcube.bundle.sharing import Of, sides
from hushcube.bundle.statement import Stamped
from hushcube.bundle.tables import ESTIMATED, combined
from hushcube.faces.value import UNBIASED
from hushcube.model.quality import QUALITY_LETTERS
from hushcube.model.schema import COUNT, Schema
from hushcube.shown import Grid, Page, Remark, columns as shown_columns, number, page_width
from hushcube.text import visible

if TYPE_CHECKING:
    from hushcube.bundle.release import Release  # which makes them

_MORE: Final = "`table` has all of them"
_ESTIMATED: Final = (
    "After ± stand estimated margins, which should hold the truth in 95% of cases: estimated, not promised."
)


@dataclass(frozen=True, eq=False, repr=False)
class Cross(Stamped):
    """A table whose last axis stands in the columns, and the totals of its rows, its columns and all of it."""

    table: Table
    row_totals: Table | None
    column_totals: Table | None
    total: Table | None

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.table.schema

    @property
    def private(self) -> bool:
        """False where the noise came from a seed."""
        return self.table.private

    def __repr__(self) -> str:
        return f"Cross({self.table!r})"

    def page(self, rows: int = 60, columns: int | None = None, more: str = _MORE) -> Page:
        """The first rows, and so many columns, or as many as fit, with margins and flags; totals beside and below."""
        table = self.table
        *heads, across = table.attributes or ("",)
        labels = [visible(label) for label in table.labels[-1]] if table.attributes else [""]
        names = [f"{visible(across)} {labels[0]}".strip(), *labels[1:]]
        count, width = table.values.size // len(labels), len(labels)
        rows, last = min(rows, count), [] if self.row_totals is None else ["total"]
        texts = _texts(table, rows * width)
        ends = [] if self.row_totals is None else _texts(self.row_totals, rows)
        below = [] if self.column_totals is None else _texts(self.column_totals, width)
        corner = [] if self.total is None or not below else _texts(self.total, 1)
        own = list(islice(product(*table.labels[:-1]), rows))
        if columns is None:
            across_all = [[name, *texts[at::width], *below[at : at + 1]] for at, name in enumerate(names)]
            beside = [[head, *texts_of] for head, *texts_of in zip(heads, *own, strict=True)]
            columns = _fitting(across_all, [*beside, ["total", *ends, *corner][: None if last else 0]])
        names = names[:columns]
        lines = [[*own[at], *texts[at * width :][: len(names)], *ends[at : at + 1]] for at in range(rows)]
        if below:
            lines.append([*["total", *[""] * len(heads)][: len(heads)], *below[: len(names)], *corner])
        grid = Grid(self._title, shown_columns(heads, [*names, *last]), lines)
        return Page((grid, *self._remarks(count - rows, width - len(names), more)))

    @property
    def _title(self) -> str:
        table = self.table
        word = "*".join(table.attributes) or "total"
        told = table.what if table.face == UNBIASED else f"{table.what}, {table.face}"
        return f"{table.schema.shown_name}: {word}, {told}"

    def _remarks(self, rows: int, columns: int, more: str) -> Iterator[str]:
        tables = [each for each in (self.table, self.row_totals, self.column_totals, self.total) if each is not None]
        if any(table.estimated is not None for table in tables):
            yield _ESTIMATED
        if self.table.face == UNBIASED and any(table.quality.any() for table in tables):
            yield str(self.schema.quality)
        for count, noun in ((rows, "rows"), (columns, "columns")):
            if count > 0:
                yield Remark(f"... and {count:,} more {noun}: {more}")

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the cells one by one, and the totals likewise."""
        tables = {"cells": self.table, "row_totals": self.row_totals, "column_totals": self.column_totals}
        told: dict[str, Any] = {name: documents(table) for name, table in tables.items() if table is not None}
        if self.total is not None:
            [told["total"]] = documents(self.total)
        return {"rows": list(self.table.attributes[:-1]), "columns": list(self.table.attributes[-1:]), **told}


def _fitting(columns: Sequence[Sequence[str]], others: Sequence[Sequence[str]]) -> int:
    """How many columns fit beside others, one at least; three characters are between them."""
    room = page_width() - 1 - sum(max(map(len, column)) + 3 for column in others if column)
    used = accumulate(max(map(len, column)) + 3 for column in columns)
    return max(sum(each <= room for each in used), 1)


def documents(table: Table) -> list[dict[str, Any]]:
    """For JSON, one document a cell: its labels and its numbers, under names that attributes do not have."""
    numbers = numbers_of(table)
    names = (*table.attributes, *beside(table.attributes, *numbers[0]))
    pairs = zip(table.rows(), numbers, strict=True)
    return [dict(zip(names, (*labels, *own.values()), strict=True)) for labels, own in pairs]


def numbers_of(table: Table) -> list[dict[str, Any]]:
    """For JSON, one document a cell: its value, and beside the unbiased one its interval and its quality.

    Intervals are those of the unbiased estimates, and stand only beside these; others may have an estimated error.
    """
    own: dict[str, Any] = {"value": table.values}
    if not table.is_average:
        own["std_error"] = table.std_errors
    if table.face == UNBIASED:
        own |= {"low_95": table.low, "high_95": table.high, "quality": table.quality_words}
    if table.estimated is not None:
        own[ESTIMATED] = table.estimated
    columns = (each.ravel().tolist() for each in own.values())
    return [dict(zip(own, map(_known, row), strict=True)) for row in zip(*columns, strict=True)]


def _known(number: Any) -> Any:
    """For JSON: null where a number is not known."""
    return None if isinstance(number, float) and math.isnan(number) else number


def cross(
    release: Release,
    marginal: str | Sequence[str],
    what: str,
    where: Where,
    columns: str | None,
    share: Of | None,
    face: str,
) -> Cross:
    """A cross-table of a release; beside shares stand the totals that they are shares of."""
    rows, column = sides(release.schema, marginal, columns)
    if share is None:
        table = release.table([*rows, *column], what, where, face=face)
    else:
        release.quantity(what, face)
        table = release.shares([*rows, *column], share, what, where)
    wanted = {"row": (True, False, False), "column": (False, True, False), "all": (True, True, True)}
    there = (bool(column), bool(rows and column), bool(column))  # what has no rows has no columns to add up
    kept = zip((rows, column, []), wanted[share or "all"], there, strict=True)
    found = [_totals(release, [*rows, *column], what, where, own, face) if a and b else None for own, a, b in kept]
    return Cross(table, *found)


def _totals(
    release: Release, marginal: Sequence[str], what: str, where: Where, kept: Sequence[str], face: str
) -> Table:
    """Sums over all attributes but some. Where tables agree and nothing is left out, the table of these itself."""
    own = {name: labels for name, labels in where.items() if name in kept}
    quantity = release.quantity(what, face)
    parts = [release.parts[COUNT], release.parts[quantity.part]]
    if len(own) == len(where) and all(part.design.is_consistent for part in parts):
        return release.table(kept, what, own, face=face)
    summed = [name for name in marginal if name not in kept]
    if face != UNBIASED:
        table = release.table(marginal, what, where, face=face)
        values = table.values.sum(axis=tuple(table.attributes.index(name) for name in summed))
        unknown = np.full(values.shape, np.nan)
        shape = release.table(kept, what, own, face=face)
        return replace(shape, values=values, std_errors=unknown, margins=unknown, estimated=None)
    estimates = []
    for part in parts:
        found = part.with_totals(marginal, where, summed)
        axes = tuple(found.cells.attributes.index(name) for name in summed)
        totals, deviations = found.totals.squeeze(axis=axes), found.total_errors.squeeze(axis=axes)
        estimates.append((totals, deviations, part.design.errors.any_margin(deviations)))
    values, errors, margins, ends = combined(quantity, release.schema, estimates[0], estimates[1])
    errors, margins = (np.broadcast_to(each, values.shape) for each in (errors, margins))
    shape = release.table(kept, what, own)
    return replace(shape, values=values, std_errors=errors, margins=margins, ends=ends)


def _texts(table: Table, most: int) -> list[str]:
    """The first numbers as a cross-table prints them: with their margins or intervals, and their flags.

    At face value the margins are estimated ones, where there are any.
    """
    found: list[str] = []
    margins = table.margins if table.estimated_margins is None else table.estimated_margins
    columns = (table.values, margins, table.low, table.high, table.quality)
    numbers = (each.ravel()[:most].tolist() for each in columns)
    for value, margin, low, high, flag in zip(*numbers, strict=True):
        if math.isnan(value):
            text = f"unknown {QUALITY_LETTERS[flag]}"
        elif table.face != UNBIASED:
            text = number(round(value, 9)) + ("" if table.estimated is None else f" ± {number(margin)}")
        elif table.is_average:
            text = f"{number(value)} ({number(low)} to {number(high)}) {QUALITY_LETTERS[flag]}"
        else:
            text = f"{number(round(value, 9))} ± {number(margin)} {QUALITY_LETTERS[flag]}"
        found.append(text.rstrip())
    return found
