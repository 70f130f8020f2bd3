"""Matrices in files, for queries and for what is measured: [age*sex:]FILE, rows over the cells of age*sex.

.csv    numbers only, one row a line, one number for each cell
.json   {"rows": [[...], ...]}, or {"width": ..., "starts": ..., "columns": ..., "values": ...} for a sparse matrix;
        optionally "attributes": [...] and "names": [...]
.npy    a numpy array of two dimensions
.npz    what scipy.sparse.save_npz writes (CSR, CSC or COO)
.mtx    Matrix Market, coordinate format
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushcube.errors import BadInput
from hushcube.model.files import read_json
from hushcube.model.queries import QueryTable, SparseRows, query_table
from hushcube.model.schema import Schema

_MOST_NUMBERS: Final = 2**27  # of a dense file: a gigabyte


def read_matrix(text: str, schema: Schema, field: str) -> QueryTable:
    """The matrix that a text names, over the attributes before its colon or all of the schema."""
    attributes, path = _split(text, schema)
    readers = {".csv": _csv, ".json": _json, ".npy": _npy, ".npz": _npz, ".mtx": _mtx}
    reader = readers.get(Path(path).suffix.lower())
    if reader is None:
        raise BadInput(field, f"the file {path!r} has an unknown type", f"give one of {', '.join(readers)}")
    try:
        content = Path(path).read_bytes()
    except (OSError, ValueError):
        fix = "give an existing file; the names before a colon must be attributes of the schema"
        raise BadInput(field, f"the file {path!r} cannot be read", fix) from None
    try:
        own, rows = reader(content)
    except BadInput as problem:
        raise BadInput(field, f"{path!r}: {problem.problem}", problem.fix) from None
    except Exception:  # the readers of numpy, zip and JSON raise whatever a damaged file leads them to
        raise BadInput(field, f"{path!r} is damaged or not what its name says", "write the file again") from None
    if own is not None and attributes is not None and list(own) != list(attributes):
        raise BadInput(field, "the attributes before the colon are not those in the file", "leave one of them out")
    return query_table(schema, attributes if own is None else own, rows, field=field)


def _malformed(problem: str, fix: str) -> BadInput:
    """A file that cannot be read as a matrix."""
    return BadInput("matrix", problem, fix)


Read = tuple[Sequence[str] | None, Any]
"""The attributes, if the file names them, and the rows."""


def _split(text: str, schema: Schema) -> tuple[list[str] | None, str]:
    """What stands before the first colon, if it names attributes, and the path."""
    for at, character in enumerate(text):
        names = [name.strip() for name in text[:at].split("*")]
        if character == ":" and all(name in schema.names for name in names):
            return names, text[at + 1 :]
    return None, text


def _csv(content: bytes) -> Read:
    rows: list[list[float]] = []
    for number, line in enumerate(content.decode("utf-8-sig").splitlines(), start=1):
        if not line.strip():
            continue
        rows.append([_number(word, number) for word in line.split(",")])
        if len(rows[-1]) != len(rows[0]):
            problem = f"line {number} has {len(rows[-1])} numbers, the first has {len(rows[0])}"
            raise _malformed(problem, "give one number for each cell in every row")
        if len(rows) * len(rows[0]) > _MOST_NUMBERS:
            raise _malformed("it is too large", "give a sparse matrix (.npz or .mtx)")
    if not rows:
        raise _malformed("it holds no rows", "give at least one row of numbers")
    return None, rows


def _number(word: str, line: int) -> float:
    try:
        return float(word)
    except ValueError:
        raise _malformed(f"line {line} holds something other than numbers", "give numbers only, no header") from None


def _json(content: bytes) -> Read:
    try:
        raw = read_json(content.decode("utf-8"), "matrix", BadInput, "write the file again")
    except BadInput as problem:
        raise _malformed(f"it is damaged: {problem.problem}", problem.fix) from None
    if isinstance(raw, list):
        raw = {"rows": raw}
    if not isinstance(raw, dict) or ("rows" in raw) == ("starts" in raw):
        raise _malformed("it has neither `rows` nor `starts`, `columns` and `values`", "give the one or the others")
    own = raw.get("attributes")
    if own is not None and not (isinstance(own, list) and all(isinstance(name, str) for name in own)):
        raise _malformed("`attributes` is not a list of names", "list the attributes' names")
    if "starts" in raw:
        return own, SparseRows.from_dict(raw)
    names = raw.get("names")
    return own, SparseRows.of(raw["rows"], None if names is None else [str(name) for name in names])


def _npy(content: bytes) -> Read:
    array = np.load(io.BytesIO(content), allow_pickle=False)
    if not isinstance(array, np.ndarray) or array.ndim != 2:
        raise _malformed("it does not hold one array of two dimensions", "give rows of equal length")
    return None, array


def _npz(content: bytes) -> Read:
    with np.load(io.BytesIO(content), allow_pickle=False) as parts:
        if "format" not in parts.files:
            raise _malformed("it is not a sparse matrix", "write it with scipy.sparse.save_npz, or as .npy")
        kind = parts["format"].item()
        kind = kind.decode() if isinstance(kind, bytes) else str(kind)
        height, width = (int(n) for n in parts["shape"])
        data = parts["data"]
        if kind == "coo":
            first, second = parts["row"], parts["col"]
        elif kind in ("csr", "csc"):
            first = np.repeat(np.arange(len(parts["indptr"]) - 1), np.diff(parts["indptr"]))
            second = parts["indices"]
            if kind == "csc":
                first, second = second, first
        else:
            raise _malformed(f"its format {kind!r} is not read", "convert it to CSR, CSC or COO first")
    return None, _collect(height, width, first, second, data)


def _mtx(content: bytes) -> Read:
    lines = content.decode("utf-8").splitlines()
    header = lines[0].lower().split() if lines else []
    if header[:2] != ["%%matrixmarket", "matrix"] or len(header) != 5:
        raise _malformed("its first line is not that of a Matrix Market file", "write it with scipy.io.mmwrite")
    _, _, form, field, symmetry = header
    known: dict[str, Callable[[str], float]] = {"real": float, "integer": float, "pattern": lambda _: 1.0}
    if form != "coordinate" or field not in known or symmetry not in ("general", "symmetric"):
        raise _malformed(f"it is {form} {field} {symmetry}", "write it as coordinate real general")
    words = [line.split() for line in lines[1:] if line.strip() and not line.startswith("%")]
    height, width, entries = map(int, words[0])
    triples = words[1:]
    long = 2 if field == "pattern" else 3
    if len(triples) != entries or any(len(triple) != long for triple in triples):
        raise _malformed(f"it does not hold the {entries:,} entries that it announces", "write the file again")
    first, second = (np.array([int(triple[at]) - 1 for triple in triples], np.int64) for at in (0, 1))
    values = np.array([known[field](triple[-1]) for triple in triples])
    if symmetry == "symmetric":
        off = first != second
        first, second = np.concatenate((first, second[off])), np.concatenate((second, first[off]))
        values = np.concatenate((values, values[off]))
    return None, _collect(height, width, first, second, values)


def _collect(height: int, width: int, first: Any, second: Any, values: Any) -> SparseRows:
    """Rows from places and values, which must fit."""
    first, second = (np.asarray(places).astype(np.int64) for places in (first, second))
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "biuf" or not len(first) == len(second) == len(numbers) or height < 1 or width < 1:
        raise _malformed("its parts do not fit together", "write the file again")
    if len(first) and (first.min() < 0 or first.max() >= height or second.min() < 0 or second.max() >= width):
        raise _malformed(f"an entry lies outside its {height:,} rows and {width:,} columns", "write the file again")
    return SparseRows.of_entries((height, width), first, second, numbers)
