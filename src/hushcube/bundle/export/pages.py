"""Plain pages of HTML: a list of tables and a page for each, to be read, linked and printed.

There is no script, and nothing is fetched from anywhere. Pages follow the light or dark colours of their reader's
screen. Headings, captions and the scopes of header cells say to a screen reader what stands where; a label may run in
either direction.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from hushcube.bundle.export.exported import ExportedTable
from hushcube.bundle.export.format import Listed, TableFiles
from hushcube.model.quality import QUALITY_WORDS
from hushcube.shown import number
from hushcube.text import visible

INDEX: Final = "index.html"
_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff]")
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE: Final = """
:root { color-scheme: light dark; --ink: #1b1b1f; --paper: #ffffff; --line: #c9c9d1; --soft: #f3f3f6; --link: #0b57d0;
  --alarm: #b00020; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6ea; --paper: #17171a; --line: #4a4a52; --soft: #232328; --link: #a8c7fa; --alarm: #ffb4ab; } }
body { margin: 0 auto; max-width: 75rem; padding: 1.5rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.5 system-ui, sans-serif; }
a { color: var(--link); }
h1 { font-size: 1.5rem; margin: 0.5rem 0; }
h2 { font-size: 1.15rem; margin: 1.5rem 0 0.25rem; }
p { max-width: 45rem; margin: 0.4rem 0; }
.stamp { color: var(--alarm); font-weight: bold; border: 2px solid; padding: 0.5rem 0.75rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 0.5rem 0; }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
thead th { background: var(--soft); position: sticky; top: 0; }
tbody th { font-weight: normal; white-space: pre-wrap; overflow-wrap: break-word; }
.flag0, .flag1, .flag2 { white-space: nowrap; }
.flag1, .flag2 { font-weight: bold; }
.flag2 { color: var(--alarm); }
.number { text-align: right; white-space: nowrap; }
@media print { body { max-width: none; padding: 0; } .table { overflow: visible; } nav { display: none; }
  thead { display: table-header-group; } tr { break-inside: avoid; } }
"""


class Pages(TableFiles):
    """A folder with index.html and one page for each table; or the page of one table."""

    suffix = ".html"
    most_tables = 20_000
    most_cells = 100_000

    def write_table(self, table: ExportedTable, path: Path) -> None:
        """The table, with what must be known about its numbers below it."""
        back = [f'<nav><a href="../{INDEX}">All tables</a></nav>'] if self.in_folder else []
        name = f"{shown(table.title)} - {shown(self.about.title)}"
        _write(path, name, self._lines([*back, f"<h1>{shown(table.title)}</h1>"], _table(table)))

    def write_contents(self, listed: Sequence[Listed], folder: Path) -> None:
        """The list of tables."""
        head = [f"<h1>{shown(self.about.title)}</h1>"]
        _write(folder / INDEX, shown(self.about.title), self._lines(head, _contents(listed)))

    def _lines(self, head: Iterable[str], body: Iterable[str]) -> Iterator[str]:
        """A page: its head, the stamp if there must be one, its body, and the notes."""
        yield from head
        if self.about.stamp is not None:
            yield f'<p class="stamp" role="note">{shown(self.about.stamp)}</p>'
        yield from body
        for heading, paragraphs in self.about.sections:
            yield f"<h2>{shown(heading)}</h2>"
            yield from (f"<p>{shown(paragraph)}</p>" for paragraph in paragraphs)


def _write(path: Path, title: str, lines: Iterable[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(
            '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<main>\n"
        )
        file.writelines(f"{line}\n" for line in lines)
        file.write("</main>\n</body>\n</html>\n")


def _contents(listed: Sequence[Listed]) -> Iterator[str]:
    yield from _opening("Tables", {"table": False, "attributes": False, "cells": True}.items())
    for each in listed:
        link = f'<a href="{html.escape(each.file)}">{shown(each.title)}</a>'
        attributes = shown(" × ".join(each.attributes)) or "none"
        yield f'<tr><th scope="row">{link}</th><td>{attributes}</td><td class="number">{each.cells:,}</td></tr>'
    yield "</tbody></table></div>"


def _table(table: ExportedTable) -> Iterator[str]:
    numbers = ((column.name, column.is_number) for column in table.columns)
    yield from _opening(table.title, chain(((name, False) for name in table.headings), numbers))
    for texts, found in zip(table.texts(shown), table.rows(), strict=True):
        labels = "".join(f'<th scope="row"><bdi>{text}</bdi></th>' for text in texts)
        cells = "".join(map(_cell, found))
        yield f"<tr>{labels}{cells}</tr>"
    yield "</tbody></table></div>"


def _opening(caption: str, columns: Iterable[tuple[str, bool]]) -> Iterator[str]:
    """The beginning of a table: wide ones scroll by themselves, with the keyboard too. Columns may hold numbers."""
    yield f'<div class="table" role="region" aria-label="{shown(caption)}" tabindex="0"><table>'
    yield f"<caption>{shown(caption)}</caption><thead><tr>"
    for name, is_number in columns:
        aligned = ' class="number"' if is_number else ""
        yield f'<th scope="col"{aligned}>{shown(name)}</th>'
    yield "</tr></thead><tbody>"


def _cell(found: float | str) -> str:
    """A number, or a word about one: what is not reliable stands out."""
    if isinstance(found, str):
        return f'<td class="flag{QUALITY_WORDS.index(found)}">{shown(found)}</td>'
    return f'<td class="number">{"unknown" if math.isnan(found) else number(round(found, 9))}</td>'


def shown(text: str) -> str:
    """A text in which nothing is markup; what no page can hold is written out.

    >>> shown("<b> & \\x00")
    '&lt;b&gt; &amp; \\\\x00'
    """
    return html.escape(_UNSEEN.sub(lambda found: visible(found[0]), text))
