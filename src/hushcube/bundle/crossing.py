"""Cross-tables: one attribute in the columns, the others in the rows, with totals of what is seen."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_table import Table, Where, beside
from hushcube.bundle.sharing import Of, sides
from hushcube.bundle.statement import Stamped
from hushcube.bundle.tables import combined
from hushcube.faces.value import UNBIASED
from hushcube.model.quality import QUALITY_LETTERS
from hushcube.model.schema import COUNT, Schema
from hushcube.shown import Column, Grid, Page, Remark, number

if TYPE_CHECKING:
    from hushcube.bundle.release import Release  # which makes them

_MORE: Final = "`table` has all of them"


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

    def page(self, rows: int = 60, columns: int = 12, more: str = _MORE) -> Page:
        """The first rows and columns, with margins and flags; totals beside and below them."""
        table = self.table
        *heads, across = table.attributes or ("",)
        labels = list(table.labels[-1])[:columns] if table.attributes else [""]
        count = math.prod(table.values.shape[:-1])
        cells = _texts(table).reshape(count, -1)[:rows, : len(labels)].tolist()
        beside = [[]] * count if self.row_totals is None else [[text] for text in _texts(self.row_totals).ravel()]
        listed = zip(product(*table.labels[:-1]), cells, beside, strict=False)  # of the rows, as many as are shown
        lines = [[*own, *row, *last] for own, row, last in listed]
        if self.column_totals is not None:
            corner = [] if self.total is None else [_texts(self.total).item()]
            below = _texts(self.column_totals).ravel()[: len(labels)].tolist()
            lines.append([*["total", *[""] * (len(heads) - 1)][: len(heads)], *below, *corner])
        named = [f"{across} {label}" if at == 0 else label for at, label in enumerate(labels)]
        last = [] if self.row_totals is None else [Column("total", right=True)]
        grid = Grid(self._title, [*map(Column, heads), *(Column(name, right=True) for name in named), *last], lines)
        return Page((grid, *self._remarks(count - rows, len(labels), more)))

    @property
    def _title(self) -> str:
        table = self.table
        word = "*".join(table.attributes) or "total"
        told = table.what if table.face == UNBIASED else f"{table.what}, {table.face}"
        return f"{table.schema.shown_name}: {word}, {told}"

    def _remarks(self, rows: int, columns: int, more: str) -> Iterator[str]:
        tables = [each for each in (self.table, self.row_totals, self.column_totals, self.total) if each is not None]
        if self.table.face == UNBIASED and any(table.quality.any() for table in tables):
            yield str(self.schema.quality)
        left = [(rows, "rows"), (len(self.table.labels[-1]) - columns if self.table.attributes else 0, "columns")]
        for count, noun in left:
            if count > 0:
                yield Remark(f"... and {count:,} more {noun}: {more}")

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the cells one by one, and the totals likewise."""
        tables = {"cells": self.table, "row_totals": self.row_totals, "column_totals": self.column_totals}
        told: dict[str, Any] = {name: documents(table) for name, table in tables.items() if table is not None}
        if self.total is not None:
            [told["total"]] = documents(self.total)
        return {"rows": list(self.table.attributes[:-1]), "columns": list(self.table.attributes[-1:]), **told}


def documents(table: Table) -> list[dict[str, Any]]:
    """For JSON, one document a cell: its labels and its numbers, under names that attributes do not have."""
    found = []
    for labels, numbers in zip(table.rows(), numbers_of(table), strict=True):
        names = beside(table.attributes, *numbers)
        found.append(dict(zip((*table.attributes, *names), (*labels, *numbers.values()), strict=True)))
    return found


def numbers_of(table: Table) -> list[dict[str, Any]]:
    """For JSON, one document a cell: its value, and beside the unbiased one its interval and its quality.

    Intervals are those of the unbiased estimates, and stand only beside these.
    """
    own: dict[str, Any] = {"value": table.values}
    if not table.is_average:
        own["std_error"] = table.std_errors
    if table.face == UNBIASED:
        own |= {"low_95": table.low, "high_95": table.high, "quality": table.quality_words}
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
    kept = zip((rows, column, []), wanted[share or "all"], strict=True)
    found = [_totals(release, [*rows, *column], what, where, own, face) if shown else None for own, shown in kept]
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
        return replace(shape, values=values, std_errors=unknown, margins=unknown)
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


def _texts(table: Table) -> NDArray[np.object_]:
    """Every number as a cross-table prints it: with its margin or interval, and its flag."""
    found = []
    numbers = (each.ravel().tolist() for each in (table.values, table.margins, table.low, table.high, table.quality))
    for value, margin, low, high, flag in zip(*numbers, strict=True):
        if math.isnan(value):
            text = f"unknown {QUALITY_LETTERS[flag]}"
        elif table.face != UNBIASED:
            text = number(round(value, 9))
        elif table.is_average:
            text = f"{number(value)} ({number(low)} to {number(high)}) {QUALITY_LETTERS[flag]}"
        else:
            text = f"{number(round(value, 9))} ± {number(margin)} {QUALITY_LETTERS[flag]}"
        found.append(text.rstrip())
    return np.array(found, dtype=object).reshape(table.values.shape)
