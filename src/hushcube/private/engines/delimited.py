"""CSV files: read by DuckDB, which refuses a file with a bad line; or line by line, where no line can refuse.

The first line is the header, and decides the delimiter; nothing else about a file is guessed from it. Every field is
text, so that the code 01 stays 01. A blank line is no row.

Where every line is a row, what a line holds decides about its own row and about nothing else:

    fields      as many as the header has, between delimiters
    a field     anything that does not begin with a quote; or between quotes, where a quote is written twice
    a line      ends with a newline, before which its one carriage return may stand; UTF-8, at most 32 MiB long

A line that is none of this is bad. Arrow reads the lines without quotes, a block of them at once. Lines with quotes are
looked at first: only those that are whole by themselves are read, so that no quote reaches the next line.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from hushcube.errors import DataError
from hushcube.private.engines.coding import literal
from hushcube.private.engines.contract import needed
from hushcube.private.engines.source import Opened, Source, exactly

LONGEST_LINE: Final = 2**25
_BLOCK: Final = 2**24
_LONE_RETURN: Final = re.compile(rb"\r(?!\n)")


def read_lines(
    file: BufferedIOBase, delimiter: str, fields: int, kept: Sequence[int]
) -> Iterator[tuple[pa.Table, int]]:
    """Some fields of the good lines, as texts c0, c1, ... (null where empty), and how many lines are bad; in blocks."""
    parser = _Parser(delimiter, fields, kept)
    for block, overlong in _blocks(file):
        table, bad = parser.parse(block)
        yield table, bad + overlong


def _blocks(file: BufferedIOBase) -> Iterator[tuple[bytes, int]]:
    """Whole lines; and how many were passed over because they are too long."""
    rest, skipping, overlong = b"", False, 0
    while chunk := file.read(_BLOCK):
        end = chunk.rfind(b"\n") + 1
        if skipping and end:
            chunk, skipping = chunk[chunk.index(b"\n") + 1 :], False
            end = chunk.rfind(b"\n") + 1
        if skipping:
            continue
        if end:
            yield rest + chunk[:end], overlong
            rest, overlong = chunk[end:], 0
        else:
            rest += chunk
        if len(rest) > LONGEST_LINE:
            rest, skipping, overlong = b"", True, overlong + 1
    yield rest, overlong


class _Parser:
    """Parses blocks of whole lines."""

    def __init__(self, delimiter: str, fields: int, kept: Sequence[int]) -> None:
        mark = re.escape(delimiter)
        field = rf'(?:(?:[^"{mark}][^{mark}]*)?|"(?:[^"]|"")*")'
        self._whole = rf"\A{field}(?:{mark}{field})*\z"
        self._delimiter = delimiter
        self._names = [f"c{i}" for i in range(fields)]
        self._kept = [f"c{i}" for i in kept]

    def parse(self, block: bytes) -> tuple[pa.Table, int]:
        """The good lines of a block, and how many are bad."""
        if b'"' not in block and not _LONE_RETURN.search(block) and _is_text(block):
            return self._read(block, quoted=False)
        lines = [line for line in (each.removesuffix(b"\r") for each in block.split(b"\n")) if line]
        good = [line for line in lines if b"\r" not in line and _is_text(line)]
        plain = [line for line in good if b'"' not in line]
        quoted = pa.array([line for line in good if b'"' in line], pa.large_binary())
        whole = quoted.filter(pc.match_substring_regex(quoted, self._whole)).to_pylist()
        first, some = self._read(b"\n".join(plain), quoted=False)
        second, others = self._read(b"\n".join(whole), quoted=True)
        return pa.concat_tables([first, second]), some + others + len(lines) - len(plain) - len(whole)

    def _read(self, lines: bytes, *, quoted: bool) -> tuple[pa.Table, int]:
        """Lines that are whole by themselves; those with too few or too many fields are bad."""
        if not lines:
            return pa.table({name: pa.array([], pa.string()) for name in self._kept}), 0
        bad: list[Any] = []

        def skip(row: Any) -> str:
            bad.append(row.expected_columns)
            return "skip"

        table = arrow_csv.read_csv(
            pa.BufferReader(b"\n" + lines),  # a blank line first: Arrow would take a mark of UTF-8 off the first
            read_options=arrow_csv.ReadOptions(column_names=self._names, block_size=len(lines) + 1),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self._delimiter, quote_char='"' if quoted else False, invalid_row_handler=skip
            ),
            convert_options=arrow_csv.ConvertOptions(
                include_columns=self._kept,
                column_types=dict.fromkeys(self._kept, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                check_utf8=False,
            ),
        )
        return table, len(bad)


def _is_text(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


_DELIMITERS: Final = ",;\t|"
_TABLE: Final = "hushcube_lines"


@dataclass(frozen=True)
class Delimited(Source):
    """A CSV file in which every line must have as many fields, and a field between quotes may span lines."""

    path: Path
    fields_span_lines = True
    problem = "the CSV file cannot be read"
    fix = (
        'it must be UTF-8 with a header, `"` around fields that need it, and equally many fields in each line; '
        "with `--bad-rows missing`, lines that are not count as missing"
    )

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:  # noqa: ARG002
        """Columns named by position.

        DuckDB skips blank lines, except in a file of one column, where such a line is a field without quotes.
        """
        names, delimiter = self._header()
        declared = ", ".join(f"{literal(f'c{i}')}: 'VARCHAR'" for i in range(len(names)))
        options = (
            f"auto_detect = false, header = true, delim = {literal(delimiter)}, quote = '\"', escape = '\"', "
            f"strict_mode = true, max_line_size = {LONGEST_LINE}, columns = {{{declared}}}"
        )
        if len(names) == 1:
            options += ", allow_quoted_nulls = false"
        relation = connection.sql(f"SELECT * FROM read_csv({exactly(self.path)}, {options})")  # noqa: S608
        if len(names) == 1:
            relation = relation.filter("c0 IS NOT NULL").project("nullif(c0, '') AS c0")
        return Opened(relation, names)

    def own_files(self) -> Sequence[str | Path]:
        """The file."""
        return [self.path]

    def _header(self) -> tuple[tuple[str, ...], str]:
        """The names of the columns, and the delimiter: the mark that the first line has most of."""
        with self._bytes() as file:
            first = file.readline(LONGEST_LINE).decode("utf-8-sig")
            if not first.strip():
                raise DataError("data", "the CSV file has no header", "write the column names into the first line")
            delimiter = max(_DELIMITERS, key=lambda mark: len(next(csv.reader([first], delimiter=mark))))
            more = (line.decode() for line in file) if self.fields_span_lines else ()
            return tuple(next(csv.reader(chain([first], more), delimiter=delimiter, strict=True))), delimiter

    def _bytes(self) -> BufferedIOBase:
        return gzip.open(self.path) if self.path.name.endswith(".gz") else self.path.open("rb")


class Lines(Delimited):
    """A CSV file in which every line is a row, whatever it holds: a line that cannot be read is a row without values.

    So a line changes no other row: not how it is read, and not whether it is. A field cannot span lines here.
    """

    fields_span_lines = False
    fix = "it must have a header in UTF-8 in its first line"

    def show(self, connection: duckdb.DuckDBPyConnection, columns: Sequence[str] | None) -> Opened:
        """The rows go into a table of DuckDB's, which keeps on disk what does not fit its memory."""
        names, delimiter = self._header()
        kept = needed(names, columns)
        listed = [f"c{i}" for i in kept]
        connection.execute(f"CREATE TABLE {_TABLE} ({', '.join(f'{column} VARCHAR' for column in listed)})")
        rows = bad = 0
        with self._bytes() as file:
            file.readline()
            for table, failed in read_lines(file, delimiter, len(names), kept):
                connection.from_arrow(table).insert_into(_TABLE)
                rows, bad = rows + table.num_rows + failed, bad + failed
        nothing = ", ".join(["NULL"] * len(listed))
        connection.execute(f"INSERT INTO {_TABLE} SELECT {nothing} FROM range({bad})")  # noqa: S608
        return Opened(connection.table(_TABLE), tuple(names[i] for i in kept), rows, bad=bad)
