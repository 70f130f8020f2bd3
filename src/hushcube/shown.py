"""What people see of a result: the same page on a terminal, in a text and in a notebook.

Nouns make pages (`Table.page`, ...); `str` and a notebook show a noun's page (`Shown`), and so does the command line.
Names and labels are anybody's: whatever is not seen as itself is written out, and nothing of them is markup.
"""

from __future__ import annotations

import html
import io
import math
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, starmap
from typing import Any, Final

from hushcube.text import visible

_FILE_WIDTH: Final = 120  # of texts that do not go to a terminal: wide enough not to fold
_BAR: Final = 30  # characters of a bar


@dataclass(frozen=True)
class Bar:
    """An estimate with its interval, drawn to scale: from `least`, at most 0, to `most`."""

    value: float
    low: float
    high: float
    least: float
    most: float

    def __str__(self) -> str:
        """Blocks from zero up to the interval's lower end, shade up to its upper end."""
        if not math.isfinite(self.value):
            return ""
        low, high = (min(max(x / self.most, 0.0), 1.0) * _BAR for x in (self.low, self.high))
        if self.high == self.low:
            return "█" * round(low)
        return "█" * math.floor(low) + "▒" * (math.ceil(high) - math.floor(low))

    def html(self) -> str:
        """A picture of the same: a bar up to the value, and the interval across its end."""
        if not math.isfinite(self.value):
            return ""
        span = (self.most - self.least) or 1.0

        def x(number: float) -> float:
            return round(2 + 156 * min(max((number - self.least) / span, 0.0), 1.0), 1)

        zero, value, low, high = map(x, (0.0, self.value, self.low, self.high))
        left, width = min(zero, value), round(abs(value - zero), 1)
        return (
            '<svg width="160" height="14" style="display:block">'
            f'<rect x="{left}" y="2" width="{width}" height="10" fill="#0072B2" fill-opacity="0.45"/>'
            f'<path d="M{low} 7H{high}M{low} 3v8M{high} 3v8" stroke="currentColor" stroke-width="1.2"/>'
            f'<path d="M{zero} 0v14" stroke="currentColor" stroke-opacity="0.35"/></svg>'
        )


Cell = str | Bar


@dataclass(frozen=True)
class Column:
    """A column of a grid; numbers stand to the right."""

    name: str
    right: bool = False
    is_picture: bool = False
    """Whether it is for notebooks alone: a line of text has no room for it."""


def columns(left: Iterable[str] = (), right: Iterable[str] = ()) -> list[Column]:
    """Columns of words, and then columns of numbers."""
    return [*map(Column, left), *(Column(name, right=True) for name in right)]


@dataclass(frozen=True)
class Grid:
    """Rows under headings."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    chosen: frozenset[int] = frozenset()
    """Rows that stand out."""
    is_remark: bool = False
    """Whether the command line prints it on standard error."""

    def rich(self) -> Any:
        """What rich prints."""
        from rich.table import Table

        grid = Table(title=visible(self.title) or None, title_justify="left")
        kept = [at for at, column in enumerate(self.columns) if not column.is_picture]
        for column in (self.columns[at] for at in kept):
            grid.add_column(visible(column.name), justify="right" if column.right else "left")
        for at, row in enumerate(self.rows):
            grid.add_row(*(visible(str(row[each])) for each in kept), style="bold" if at in self.chosen else None)
        return grid

    def html(self) -> str:
        """An HTML table that needs neither scripts nor styles from elsewhere."""
        caption = f'<caption style="{_CAPTION}">{_escaped(self.title)}</caption>' if self.title else ""
        heads = "".join(f'<th style="{_side(c)}">{_escaped(c.name)}</th>' for c in self.columns)
        lines = ("".join(starmap(_cell, zip(self.columns, row, strict=True))) for row in self.rows)
        rows = "".join(f"<tr{_BOLD if at in self.chosen else ''}>{line}</tr>" for at, line in enumerate(lines))
        return f'<table style="{_TABLE}">{caption}<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>'


_TABLE: Final = "border-collapse:collapse;font-variant-numeric:tabular-nums"
_CAPTION: Final = "caption-side:top;text-align:left;font-weight:bold;padding:0.3em 0"
_BOLD: Final = ' style="font-weight:bold"'


def _side(column: Column) -> str:
    return f"text-align:{'right' if column.right else 'left'};white-space:nowrap;padding:0.15em 0.7em"


def _cell(column: Column, cell: Cell) -> str:
    return f'<td style="{_side(column)}">{cell.html() if isinstance(cell, Bar) else _escaped(cell)}</td>'


def _escaped(text: str) -> str:
    return html.escape(visible(text))


class Remark(str):
    """A line beside the result; the command line prints it on standard error."""

    __slots__ = ()


Part = Grid | Remark | str


@dataclass(frozen=True)
class Page:
    """Grids, lines and remarks, from top to bottom."""

    parts: tuple[Part, ...]

    def __add__(self, other: Page) -> Page:
        return Page(self.parts + other.parts)

    def __str__(self) -> str:
        text = io.StringIO()
        terminal = console(file=text, color_system=None, width=page_width())
        for part in self.parts:
            if isinstance(part, Grid):
                terminal.print(part.rich())
            else:
                text.write(f"{visible(part)}\n")
        return "\n".join(line.rstrip() for line in text.getvalue().splitlines())

    def html(self) -> str:
        """For a notebook."""
        shown = []
        for is_grid, parts in groupby(self.parts, key=lambda part: isinstance(part, Grid)):
            if is_grid:
                shown += [part.html() for part in parts if isinstance(part, Grid)]
            else:
                shown.append(f"<p>{'<br>'.join(_escaped(str(part)) for part in parts)}</p>")
        return f"<div>{''.join(shown)}</div>"


class Shown(ABC):
    """A noun whose page is what `print` prints and what a notebook shows."""

    __slots__ = ()

    @abstractmethod
    def page(self) -> Page:
        """What is shown of it."""

    def _whole_page(self) -> Page:
        """The page, with whatever must stand above or below it."""
        return self.page()

    def __str__(self) -> str:
        return str(self._whole_page())

    def _repr_html_(self) -> str:
        return self._whole_page().html()


def page_width() -> int:
    """How many characters a line has: those of the terminal, or of a file."""
    return shutil.get_terminal_size((_FILE_WIDTH, 24)).columns if is_terminal(sys.stdout) else _FILE_WIDTH


def console(**options: Any) -> Any:
    """A terminal for grids; wide enough not to fold when the output is not a terminal. Labels are not markup."""
    from rich.console import Console

    if not is_terminal(sys.stdout):
        options.setdefault("width", _FILE_WIDTH)
    return Console(highlight=False, markup=False, emoji=False, **options)


def is_terminal(stream: Any) -> bool:
    """Whether somebody watches; a stream that was closed before the program began is None."""
    return stream is not None and bool(stream.isatty())


def number(value: float) -> str:
    """A number as people write it: about four significant digits, thousands separated.

    >>> number(1336772.26), number(0.01234), number(24.0)
    ('1,336,772', '0.01234', '24')
    """
    if abs(value) > 1e300:  # a Python integer, too large for a float
        return f"about 10^{math.floor(math.log10(value))}"
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}" if abs(value) < 1e12 else f"{value:.4g}"
    return f"{value:.4g}"
