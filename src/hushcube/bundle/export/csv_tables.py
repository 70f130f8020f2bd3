"""CSV by RFC 4180: one row a cell, labels that no spreadsheet takes for a formula, and numbers with all their digits.

A label that begins with = + - @, a tab or a line break would be computed by a spreadsheet that opens the file. It gets
an apostrophe in front, as does one that begins with an apostrophe, so that whoever takes one leading apostrophe away
has the label again. A plain number, such as -5, stays what it is.

Files begin with the mark of UTF-8, without which Excel reads them in the encoding of its country.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final

from hushcube.bundle.export.exported import ExportedTable
from hushcube.bundle.export.format import NOTES, Listed, TableFiles
from hushcube.bundle.published_table import beside
from hushcube.errors import BundleError
from hushcube.text import guarded, number_text, unguarded

CONTENTS: Final = "contents.csv"
MARKED: Final = "utf-8-sig"  # UTF-8 with its mark in front
WARNING: Final = "warning"  # the column of a table that is not private
NOT_PRIVATE: Final = "NOT PRIVATE"


class CsvFiles(TableFiles):
    """A folder with contents.csv, notes.txt and one file for each table; or the file of one table."""

    suffix = ".csv"

    def write_table(self, table: ExportedTable, path: Path) -> None:
        """Codes and labels of each attribute, then the columns of numbers."""
        stamp = [] if table.private else [NOT_PRIVATE]
        header = [*table.names, *(column.name for column in table.columns)]
        header += beside(header, WARNING) if stamp else []
        cells = zip(table.texts(guarded), table.rows(), strict=True)
        rows = ([*texts, *map(digits, numbers), *stamp] for texts, numbers in cells)
        write_csv(path, chain([[*map(guarded, header)]], rows))

    def write_contents(self, listed: Sequence[Listed], folder: Path) -> None:
        """contents.csv, and what is to be known in notes.txt."""
        write_list(self, listed, folder)


def write_list(files: TableFiles, listed: Sequence[Listed], folder: Path) -> None:
    """The list of tables as CSV, and the notes beside it."""
    face, stamp = files.about.face, [] if files.about.private else [NOT_PRIVATE]
    header = ["file", "table", "title", "attributes", "cells", "face", *[WARNING] * len(stamp)]
    rows = (
        [own.file, guarded(own.word), guarded(own.title), guarded("*".join(own.attributes)), own.cells, face, *stamp]
        for own in listed
    )
    write_csv(folder / CONTENTS, chain([header], rows))
    (folder / NOTES).write_text(files.about.text, encoding="utf-8")


def write_csv(path: Path, rows: Iterable[Sequence[Any]], encoding: str = MARKED) -> None:
    """Rows as RFC 4180 has them: commas, lines that end in CR and LF, quotes where they are needed."""
    with path.open("w", encoding=encoding, newline="") as file:
        csv.writer(file).writerows(rows)


def read_csv(path: str | Path) -> list[dict[str, str]]:
    """The rows of a table that `export` wrote as CSV or SDMX-CSV, or of `Table.to_csv`, with labels as declared.

    What is in other columns is text, too: `float(row["value"])` is the number that was published.
    """
    try:
        with Path(path).open(encoding=MARKED, newline="") as file:
            rows = csv.DictReader(file, strict=True)
            return [{unguarded(name): unguarded(text) for name, text in row.items()} for row in rows]
    except (OSError, ValueError, csv.Error, AttributeError):  # a row that is longer than the header holds a list
        fix = "name a file of an export"
        raise BundleError(f"{str(path)[:200]!r}", "is not a table that can be read", fix) from None


def digits(found: float | str) -> str:
    """All digits of a number; nothing where nobody knows it. A word is what it is."""
    if isinstance(found, str):
        return found
    return "" if math.isnan(found) else number_text(found)
