"""Delimited text, a row for every line: what a line holds decides about its own row and about nothing else.

    fields      as many as the header has, between delimiters
    a field     anything that does not begin with a quote; or between quotes, where a quote is written twice
    a line      ends with a newline, before which its one carriage return may stand; UTF-8, at most 32 MiB long

A line that is none of this is bad. Arrow reads the lines without quotes, a block of them at once. Lines with quotes are
looked at first: only those that are whole by themselves are read, so that no quote reaches the next line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from io import BufferedIOBase
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

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
        tables, bad = zip(
            self._read(b"\n".join(plain), quoted=False), self._read(b"\n".join(whole), quoted=True), strict=True
        )
        return pa.concat_tables(tables), sum(bad) + len(lines) - len(plain) - len(whole)

    def _read(self, lines: bytes, *, quoted: bool) -> tuple[pa.Table, int]:
        """Lines that are whole by themselves; those with too few or too many fields are bad."""
        if not lines:
            return pa.table({name: pa.array([], pa.string()) for name in self._kept}), 0
        bad: list[Any] = []

        def skip(row: Any) -> str:
            bad.append(row.expected_columns)
            return "skip"

        table = csv.read_csv(
            pa.BufferReader(b"\n" + lines),  # a blank line first: Arrow would take a mark of UTF-8 off the first
            read_options=csv.ReadOptions(column_names=self._names, block_size=len(lines) + 1),
            parse_options=csv.ParseOptions(
                delimiter=self._delimiter, quote_char='"' if quoted else False, invalid_row_handler=skip
            ),
            convert_options=csv.ConvertOptions(
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
