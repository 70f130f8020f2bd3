"""Columns of Parquet files as codes, straight from their dictionaries, by compiled code.                     [pages.c]

A column of few values is stored as a dictionary of them and a number for each row. The values of the dictionary are
coded, once for each row group, and the numbers of the rows are turned into codes: no value is ever made of them.

Measured on ten columns of small integers, processor time for a row: 15 ns for Arrow, which makes the values, and 5 ns
here. What is not stored like that, or is compressed by something else than Snappy, is left to Arrow.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, BinaryIO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from hushcube.private.engines import compiled
from hushcube.private.engines.coding import Codes, Positions

Bytes = NDArray[np.uint8]

_CODECS: Final = {"UNCOMPRESSED": 0, "SNAPPY": 1}
_NUMBERS: Final = {"INT32": "<i4", "INT64": "<i8", "FLOAT": "<f4", "DOUBLE": "<f8"}
_TEXTS: Final = "BYTE_ARRAY"
_MOST_TEXTS: Final = 1 << 16  # of a dictionary: they are taken out one by one
_MOST_BYTES: Final = 1 << 26  # of a page that is not compressed, and of a dictionary
_SLACK: Final = 8  # bytes that compiled code may read beyond the end of a buffer
_BEYOND: Final = 1 << 31


class _Survey(ctypes.Structure):
    """`struct survey` of pages.c."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in ("dictionary", "stored", "size", "entries", "room"))


@dataclass(frozen=True)
class _Compiled:
    """The functions of pages.c."""

    survey: Callable[..., int]
    inflate: Callable[..., int]
    begin: Callable[..., None]
    codes: Callable[..., int]
    column_bytes: int


@cache
def _functions() -> _Compiled | None:
    """Compiled code; None where it was not built, or numbers are stored the other way round."""
    size, short, truth, place = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int, ctypes.c_void_p
    survey = compiled.function("hushcube_survey", truth, place, size, size, truth, place)
    inflate = compiled.function("hushcube_inflate", truth, place, size, truth, place, size)
    given = (place, place, size, place, short, short, place, size, truth, truth, truth)
    begin = compiled.function("hushcube_open", None, *given)
    codes = compiled.function("hushcube_codes", truth, place, size, place)
    length = compiled.function("hushcube_column_bytes", size)
    if survey is None or inflate is None or begin is None or codes is None or length is None:
        return None
    return _Compiled(survey, inflate, begin, codes, length()) if sys.byteorder == "little" else None


@dataclass(frozen=True)
class Chunk:
    """Where the pages of a column in a row group are, and what they are like."""

    offset: int
    length: int
    rows: int
    codec: int
    is_optional: bool
    stored: str
    """The type of its values in the file."""
    kind: pa.DataType
    """The type that they are meant to have."""

    @classmethod
    def of(cls, chunk: pq.ColumnChunkMetaData, column: pq.ColumnSchema, kind: pa.DataType) -> Chunk | None:
        """From the description of a file; None where compiled code has nothing to hope for."""
        first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        if _functions() is None or chunk.file_path or not first or chunk.compression not in _CODECS:
            return None
        if column.max_repetition_level or column.max_definition_level > 1:
            return None
        if chunk.physical_type not in _NUMBERS and chunk.physical_type != _TEXTS:
            return None
        codec, is_optional = _CODECS[chunk.compression], bool(column.max_definition_level)
        length = int(chunk.total_compressed_size)
        return cls(first, length, chunk.num_values, codec, is_optional, chunk.physical_type, kind)

    def read(self, file: BinaryIO) -> Bytes | None:
        """Its bytes; None where the file has fewer of them."""
        found = np.zeros(self.length + _SLACK, np.uint8)
        file.seek(self.offset)
        return found if file.readinto(found.data[: self.length]) == self.length else None  # type: ignore[attr-defined]


class Pages:
    """The codes of one column in one row group, in the order of the rows."""

    def __init__(
        self, chunk: Chunk, content: Bytes, lookup: NDArray[np.uint32], missing: int, room: int, code: Any
    ) -> None:
        # what compiled code points at has to stay
        self._kept = content, lookup, np.zeros(room + _SLACK, np.uint8)
        self._code = np.dtype(code)
        self._compiled = _compiled()
        self._column = np.zeros(self._compiled.column_bytes // 8, np.uint64)
        places = [each.ctypes.data for each in (self._column, *self._kept)]
        column, begins, looked_up, into = places
        own = chunk.codec, chunk.is_optional, self._code.itemsize
        self._compiled.begin(column, begins, chunk.length, looked_up, len(lookup), missing, into, room, *own)

    @classmethod
    def of(cls, chunk: Chunk, content: Bytes, positions: Positions) -> Pages | None:
        """From the bytes of a column; None where some of its pages are stored in another way."""
        code, survey = _compiled(), _Survey()
        start = content.ctypes.data
        if not code.survey(start, chunk.length, chunk.rows, chunk.is_optional, ctypes.byref(survey)):
            return None
        if max(survey.size, survey.room) > _MOST_BYTES:
            return None
        raw = np.zeros(survey.size, np.uint8)
        if not code.inflate(start + survey.dictionary, survey.stored, chunk.codec, raw.ctypes.data, survey.size):
            return None
        values = _texts(raw, survey.entries) if chunk.stored == _TEXTS else _numbers(raw, survey.entries, chunk)
        if values is None:
            return None
        codes = positions(pa.concat_arrays([values, pa.nulls(1, values.type)]))
        lookup = np.full(1 << max(len(values) - 1, 1).bit_length(), _BEYOND, np.uint32)
        lookup[: len(values)] = codes[:-1]
        return cls(chunk, content, lookup, int(codes[-1]), survey.room, codes.dtype)

    def codes(self, rows: int) -> Codes:
        """Those of the next rows."""
        found = np.empty(rows, self._code)
        if not self._compiled.codes(self._column.ctypes.data, rows, found.ctypes.data):
            raise pa.ArrowInvalid("damaged pages")
        return found


def _compiled() -> _Compiled:
    found = _functions()
    if found is None:
        raise LookupError("compiled code is not there")
    return found


def _numbers(raw: Bytes, entries: int, chunk: Chunk) -> pa.Array | None:
    """The values of a dictionary of numbers; None where there are not as many as it says."""
    stored = np.dtype(_NUMBERS[chunk.stored])
    if len(raw) != entries * stored.itemsize:
        return None
    return pa.array(raw.view(stored).astype(chunk.kind.to_pandas_dtype()), chunk.kind)


def _texts(raw: Bytes, entries: int) -> pa.Array | None:
    """The values of a dictionary of texts, each after its length; None where they are not that."""
    if entries > _MOST_TEXTS:
        return None
    content, found, at = raw.tobytes(), [], 0
    for _ in range(entries):
        start = at + 4
        at = start + int.from_bytes(content[at:start], "little")
        found.append(content[start:at])
    if at != len(content):
        return None
    try:
        return pa.array(found, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:  # not UTF-8: whoever reads the column says so
        return None
