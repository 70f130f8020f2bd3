"""CSV files: read by DuckDB, which refuses a file with a bad line; or line by line, where no line can refuse.

The first line is the header, and decides the delimiter; nothing else about a file is guessed from it. Every field is
text, so that the code 01 stays 01. A blank line is no row.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Final

import duckdb

from hushcube.errors import DataError
from hushcube.private.engines.coding import literal
from hushcube.private.engines.lines import LONGEST_LINE, read_lines
from hushcube.private.engines.names import needed
from hushcube.private.engines.source import Opened, Source, exactly

_DELIMITERS: Final = ",;\t|"
_TABLE: Final = "hushcube_lines"


@dataclass(frozen=True)
class Delimited(Source):
    """A CSV file in which every line must have as many fields, and a field between quotes may span lines."""

    path: Path
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
        return self._names(first, delimiter), delimiter

    def _names(self, first: str, delimiter: str) -> tuple[str, ...]:  # noqa: ARG002
        """A name between quotes may span lines."""
        with self._bytes() as file:
            lines = (line.decode("utf-8-sig" if number == 0 else "utf-8") for number, line in enumerate(file))
            return tuple(next(csv.reader(lines, delimiter=delimiter, strict=True)))

    def _bytes(self) -> BufferedIOBase:
        return gzip.open(self.path) if self.path.name.endswith(".gz") else self.path.open("rb")


class Lines(Delimited):
    """A CSV file in which every line is a row, whatever it holds: a line that cannot be read is a row without values.

    So a line changes no other row: not how it is read, and not whether it is. A field cannot span lines here.
    """

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

    def _names(self, first: str, delimiter: str) -> tuple[str, ...]:
        """The header is one line."""
        return tuple(next(csv.reader([first], delimiter=delimiter, strict=True)))
