"""XLSX: one workbook with a list of contents, notes, and a sheet for each table.

Labels are written as texts, so that no spreadsheet takes one for a formula or an address. Numbers have all of their
digits, and are shown with as many as their errors leave meaningful.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushcube.bundle.export.exported import Column, ExportedTable
from hushcube.bundle.export.format import Format, Listed
from hushcube.durable import temporary_folder
from hushcube.errors import MissingDependency
from hushcube.model.quality import QUALITY_WORDS

CONTENTS: Final = "Contents"
NOTES: Final = "Notes"
HEADER: Final = 3  # the row of the names of columns: above it are the title, a remark and a way back
_RESERVED: Final = (CONTENTS, NOTES, "History")  # the last one by Excel
_ROWS: Final = 1_048_576
_LONGEST: Final = 31  # characters of the name of a sheet
_MOST_SHEETS: Final = 500
_FORBIDDEN: Final = re.compile(r"[\[\]:?/\\\x00-\x1f]")
_NO_CHARACTERS: Final = re.compile("[\ufffe\uffff]")  # which XML does not have
_LARGE: Final = 50_000  # cells from which on rows wait on the disk
_WIDEST: Final = 50


class Workbook(Format):
    """A file for all tables."""

    suffix = ".xlsx"
    one_file = True
    most_tables = _MOST_SHEETS
    most_cells = _ROWS - HEADER - 1

    @classmethod
    def check(cls, sizes: Sequence[int]) -> None:
        """It also takes a package."""
        import_xlsxwriter()
        super().check(sizes)

    def write(self, tables: Iterable[ExportedTable], place: Path) -> None:
        """Sheet by sheet; what waits on the disk is gone in the end."""
        xlsxwriter = import_xlsxwriter()
        with temporary_folder() as waiting:
            options = {"tmpdir": str(waiting), "constant_memory": self.cells > _LARGE, "use_zip64": True}
            book = xlsxwriter.Workbook(str(place), options)
            try:
                _Sheets(book, self).write(tables)
                book.close()
            except xlsxwriter.exceptions.FileCreateError as problem:
                raise problem.args[0] from None  # the error of the disk that it holds
            finally:
                for sheet in book.worksheets():
                    if sheet.row_data_fh is not None:  # rows that wait on the disk
                        sheet.row_data_fh.close()


def import_xlsxwriter() -> Any:
    """The package that writes workbooks."""
    try:
        import xlsxwriter
    except ImportError:
        raise MissingDependency("xlsxwriter", "the format xlsx", "xlsx") from None
    return xlsxwriter


class _Sheets:
    """The sheets of a workbook while they are written."""

    def __init__(self, book: Any, workbook: Workbook) -> None:
        self._book, self._about = book, workbook.about
        self._title = book.add_format({"bold": True, "font_size": 14})
        self._head = book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        self._text = book.add_format({"num_format": "@", "valign": "top"})
        self._plain = book.add_format()
        self._prose = book.add_format({"text_wrap": True, "valign": "top"})
        self._strong = book.add_format({"bold": True, "text_wrap": True, "valign": "top"})
        self._stamped = book.add_format({"bold": True, "font_color": "#B00020"})
        self._link = book.add_format({"font_color": "#0B57D0", "underline": 1})
        colours = (None, "#FFF2CC", "#F8CBAD")
        shades = ({} if colour is None else {"bg_color": colour} for colour in colours)
        self._flags = dict(zip(QUALITY_WORDS, map(book.add_format, shades), strict=True))
        self._formats: dict[str, Any] = {}

    def write(self, tables: Iterable[ExportedTable]) -> None:
        """Contents and notes come first, though the contents are known in the end."""
        about, book = self._about, self._book
        book.set_properties({"title": clean(about.title), "comments": about.stamp or ""})
        contents, notes = (book.add_worksheet(name) for name in (CONTENTS, NOTES))
        self._write_notes(notes)
        used = {name.casefold() for name in _RESERVED}
        listed = []
        for table in tables:
            name = sheet_name(table.word, used)
            self._write_table(book.add_worksheet(name), table)
            listed.append(Listed.of(table, name))
        self._write_contents(contents, listed)

    def _above(self, sheet: Any, title: str) -> None:
        """The title, and what must be known at first sight."""
        sheet.write_string(0, 0, clean(title), self._title)
        stamp = self._about.stamp
        sheet.write_string(1, 0, clean(stamp or self._about.remark), None if stamp is None else self._stamped)

    def _write_notes(self, sheet: Any) -> None:
        sheet.set_column(0, 0, 110)
        self._above(sheet, self._about.title)
        at = 3
        for heading, paragraphs in self._about.sections:
            for text, style in chain([(heading, self._strong)], ((each, self._prose) for each in paragraphs)):
                sheet.write_string(at, 0, clean(text), style)
                at += 1
            at += 1

    def _write_contents(self, sheet: Any, listed: Sequence[Listed]) -> None:
        self._above(sheet, self._about.title)
        sheet.write_url(2, 0, _place(NOTES), self._link, f"How to read the tables: {NOTES}")
        for column, (name, width) in enumerate((("table", 40), ("title", 60), ("cells", 12))):
            sheet.set_column(column, column, width)
            sheet.write_string(HEADER, column, name, self._head)
        for row, each in enumerate(listed, HEADER + 1):
            sheet.write_url(row, 0, _place(each.file), self._link, clean(each.word)[:255])
            sheet.write_string(row, 1, clean(each.title), self._text)
            sheet.write_number(row, 2, each.cells, self._numbers(0))
        sheet.freeze_panes(HEADER + 1, 0)

    def _write_table(self, sheet: Any, table: ExportedTable) -> None:
        self._above(sheet, table.title)
        sheet.write_url(2, 0, _place(CONTENTS), self._link, f"All tables: {CONTENTS}")
        self._write_heads(sheet, table)
        styles = [self._numbers(places(table, column)) for column in table.columns]
        width = len(table.names)
        for row, (texts, numbers) in enumerate(zip(table.texts(clean), table.rows(), strict=True), HEADER + 1):
            for at, text in enumerate(texts):
                self._write_text(sheet, row, at, text)
            for at, (found, style) in enumerate(zip(numbers, styles, strict=True), width):
                if isinstance(found, str):
                    sheet.write_string(row, at, found, self._flags[found])
                elif not math.isnan(found):
                    sheet.write_number(row, at, found, style)
        sheet.freeze_panes(HEADER + 1, width)
        sheet.repeat_rows(HEADER)
        sheet.autofilter(HEADER, 0, HEADER + table.cells, width + len(table.columns) - 1)

    def _write_heads(self, sheet: Any, table: ExportedTable) -> None:
        """The names of the columns, which are as wide as what they hold."""
        texts = [max(map(len, own)) for axis in table.axes for own in axis.texts]
        numbers = [_width(column) for column in table.columns]
        names = [*table.headings, *(column.name for column in table.columns)]
        for at, (name, width) in enumerate(zip(names, [*texts, *numbers], strict=True)):
            sheet.set_column(at, at, min(_WIDEST, max(len(name), width) + 3))
            sheet.write_string(HEADER, at, clean(name), self._head)

    def _write_text(self, sheet: Any, row: int, at: int, text: str) -> None:
        """A label as it is: xlsxwriter takes what begins and ends like this for markup, unless it is in two pieces."""
        if text.startswith("<r>") and text.endswith("</r>"):
            sheet.write_rich_string(row, at, text[:1], self._plain, text[1:], self._text)
        else:
            sheet.write_string(row, at, text, self._text)

    def _numbers(self, digits: int) -> Any:
        """The format of numbers with so many digits after the point."""
        shown = "#,##0" + ("." + "0" * digits if digits else "")
        if shown not in self._formats:
            self._formats[shown] = self._book.add_format({"num_format": shown, "valign": "top"})
        return self._formats[shown]


def _width(column: Column) -> int:
    """About how many characters the numbers of a column take."""
    if not column.is_number:
        return max(map(len, QUALITY_WORDS))
    largest = np.nanmax(np.abs(column.numbers), initial=1.0)
    return len(f"{largest:,.0f}") + 3


def places(table: ExportedTable, column: Column) -> int:
    """The digits after the point that errors leave meaningful: two significant ones of a typical error, at most six."""
    own = {each.statistic: each.numbers for each in table.columns if each.quantity == column.quantity}
    errors = next((own[name] for name in ("estimated_error", "std_error") if name in own), None)
    if errors is None:  # of averages
        errors = (own["high_95"] - own["low_95"]) / 4
    known = errors[np.isfinite(errors) & (errors > 0)]
    if (own["value"] == np.rint(own["value"])).all() and column.statistic == "value":
        return 0
    return 0 if not len(known) else min(6, max(0, 1 - math.floor(math.log10(float(np.median(known))))))


def sheet_name(word: str, used: set[str]) -> str:
    """A name that a sheet can have, and no other sheet has; it is used then.

    >>> used = {"contents"}
    >>> [sheet_name(word, used) for word in ("age*sex", "age:sex", "Age*Sex", "contents", "a" * 40)]
    ['age x sex', 'age_sex', 'Age x Sex (2)', 'contents (2)', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa']
    """
    safe = _FORBIDDEN.sub("_", clean(word).replace("*", " x ")).strip("' ") or "table"
    endings = chain([""], (f" ({number})" for number in count(2)))
    names = (_cut(safe, _LONGEST - len(after)).strip("' ") + after for after in endings)
    name = next(each for each in names if each.casefold() not in used)
    used.add(name.casefold())
    return name


def _cut(text: str, length: int) -> str:
    """The beginning of a text, of so many units of UTF-16: whole characters."""
    return text.encode("utf-16-le")[: 2 * length].decode("utf-16-le", "ignore")


def _place(sheet: str) -> str:
    """Where a link to a sheet leads."""
    doubled = sheet.replace("'", "''")
    return f"internal:'{doubled}'!A1"


def clean(text: str) -> str:
    """A text that XML can hold; control characters are escaped by whoever writes it."""
    return _NO_CHARACTERS.sub("\ufffd", text)
