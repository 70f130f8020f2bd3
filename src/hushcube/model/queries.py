"""Matrices that users give: sparse rows over the cells of a table, as queries to answer or as what to measure.

They are plain numbers, so that they can be hashed and written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np

from hushcube.errors import BadInput, WorkloadError
from hushcube.model.arrays import Floats, Ints, Marginal, frozen
from hushcube.model.attribute import Attribute
from hushcube.model.form import Form
from hushcube.model.label import is_label
from hushcube.model.schema import Schema

LARGEST_ENTRY: Final = 2**16
"""Of a matrix that is measured: sums of squares stay exact in floats, sums of entries times counts in 64 bits."""
MAX_ROWS: Final = 8_192  # of a matrix that is measured: dense matrices of this size are held
_MOST_ENTRY: Final = 1e15
"""Of a matrix of queries; squares of entries, and ratios of their sums, stay far from the ends of floats."""


@dataclass(frozen=True, repr=False)
class SparseRows:
    """Rows of finite numbers in compressed form: row r has `values[starts[r]:starts[r+1]]` at `columns[...]`."""

    width: int
    starts: tuple[int, ...]
    columns: tuple[int, ...]
    values: tuple[float, ...]
    names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        return f"SparseRows({len(self):,} rows over {self.width:,} cells, {len(self.values):,} numbers)"

    def __post_init__(self) -> None:
        starts, columns, values = np.array(self.starts), np.array(self.columns), np.array(self.values, np.float64)
        if len(starts) < 2 or starts[0] != 0 or (np.diff(starts) < 0).any() or starts[-1] != len(columns):
            raise BadInput("matrix", "it has no rows, or they are not well-formed", "give at least one row")
        if len(values) != len(columns) or not np.isfinite(values).all():
            raise BadInput("matrix", "it holds NaN or infinite numbers", "give finite numbers only")
        if len(columns) and (columns.min() < 0 or columns.max() >= self.width):
            raise BadInput("matrix", f"a column is outside 0..{self.width - 1}", "number the cells from 0, row-major")
        keys = self._row_of * self.width + columns
        if len(np.unique(keys)) != len(keys):
            raise BadInput("matrix", "a row names a column twice", "name each column once in a row")
        names = self.names
        if names is not None and not (len(set(names)) == len(names) == len(self) and all(map(is_label, names))):
            raise BadInput("matrix", "its rows' names do not fit", "give each row a name that no other has")

    @classmethod
    def of(cls, matrix: Any, names: Sequence[str] | None = None) -> SparseRows:
        """From nested sequences, a numpy array, or a scipy sparse matrix."""
        if hasattr(matrix, "tocoo"):
            found = matrix.tocoo()
            return cls.of_entries(found.shape, found.row, found.col, found.data, names)
        try:
            dense = np.asarray(matrix)
            if dense.dtype.kind in "USO" and any(isinstance(each, str | bytes) for each in dense.flat):
                raise ValueError  # a text of digits is no number
            dense = dense.astype(np.float64)
        except (TypeError, ValueError):
            problem = "its rows are not equally long lists of numbers"
            raise BadInput("matrix", problem, "give rows of equal length") from None
        if dense.ndim != 2 or not dense.size:
            raise BadInput("matrix", "is not a table of numbers", "give rows of equal length")
        rows, columns = np.nonzero(dense)  # NaN is not zero
        return cls.of_entries(dense.shape, rows, columns, dense[rows, columns], names)

    @classmethod
    def of_entries(
        cls, shape: tuple[int, int], rows: Any, columns: Any, values: Any, names: Sequence[str] | None = None
    ) -> SparseRows:
        """From places and values; repeated places add up, and zeros are left out."""
        if values.dtype.kind not in "biuf":
            raise BadInput("matrix", "it holds something other than numbers", "give numbers only")
        height, width = map(int, shape)
        keys, at = np.unique(rows.astype(np.int64) * width + columns, return_inverse=True)
        sums = np.bincount(at, weights=values.astype(np.float64), minlength=len(keys))
        keys, sums = keys[sums != 0], sums[sums != 0]
        starts = np.concatenate([[0], np.cumsum(np.bincount(keys // width, minlength=height))])
        own = None if names is None else tuple(names)
        return cls(width, tuple(starts.tolist()), tuple((keys % width).tolist()), tuple(sums.tolist()), own)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def labels(self) -> tuple[str, ...]:
        """The rows' names, or their numbers."""
        return self.names if self.names is not None else tuple(map(str, range(len(self))))

    def __matmul__(self, vector: Floats) -> Floats:
        columns, values, rows = self.arrays
        sums: Floats = np.bincount(rows, weights=values * vector[columns], minlength=len(self)).astype(np.float64)
        return sums

    @cached_property
    def arrays(self) -> tuple[Ints, Floats, Ints]:
        """Columns, values and row numbers of the entries."""
        return frozen(self.columns, np.int64), frozen(self.values, np.float64), self._row_of

    @cached_property
    def _row_of(self) -> Ints:
        return frozen(np.repeat(np.arange(len(self), dtype=np.int64), np.diff(self.starts)))

    def dense(self) -> Floats:
        """The whole matrix."""
        columns, values, rows = self.arrays
        result = np.zeros((len(self), self.width))
        result[rows, columns] = values
        return result

    def iterate(self) -> Iterator[Floats]:
        """One dense row after the other."""
        columns, values, _ = self.arrays
        for start, end in zip(self.starts, self.starts[1:], strict=False):
            row = np.zeros(self.width)
            row[columns[start:end]] = values[start:end]
            yield row

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        lists = {key: list(getattr(self, key)) for key in ("starts", "columns", "values")}
        return {"width": self.width, **lists, **({} if self.names is None else {"names": list(self.names)})}

    @classmethod
    def from_dict(cls, raw: Any) -> SparseRows:
        """Read the JSON form; TypeError where a field has another type."""
        names = raw.get("names")
        for key, kinds in (("starts", (int,)), ("columns", (int,)), ("values", (int, float))):
            if not isinstance(raw[key], list) or not all(type(each) in kinds for each in raw[key]):
                raise TypeError(f"{key} is not a list of numbers")
        if type(raw["width"]) is not int or not isinstance(names, list | None):
            raise TypeError("width or names is not what it should be")
        own, values = None if names is None else tuple(names), tuple(map(float, raw["values"]))
        return cls(raw["width"], tuple(raw["starts"]), tuple(raw["columns"]), values, own)


def integer_problem(rows: SparseRows) -> tuple[str, str] | None:
    """Why the rows cannot be measured with exact integers, and what to do about it; None where they can."""
    _, values, row_of = rows.arrays
    broken = np.flatnonzero(values != np.round(values))
    if len(broken):
        at = broken[0]
        found = f"row {rows.labels[row_of[at]]} holds {values[at]:g}, which is not a whole number"
        return found, "multiply the row by its denominator: noise is drawn as integers"
    if len(values) and np.abs(values).max() > LARGEST_ENTRY:
        return f"it holds numbers beyond {LARGEST_ENTRY:,}", "divide its rows by a common factor"
    if len(rows) > MAX_ROWS:
        return f"it has {len(rows):,} rows, more than {MAX_ROWS:,}", "give fewer rows"
    return None


@dataclass(frozen=True, repr=False)
class QueryTable(Form):
    """The rows of a sparse matrix over the cells of a marginal."""

    marginal: Marginal
    attributes: tuple[Attribute, ...]
    rows: SparseRows
    word: ClassVar[str] = "queries"
    axes: ClassVar[tuple[str, ...]] = ("query",)
    is_complete = False  # rows say nothing about single cells in general

    @property
    def _carrier(self) -> str:
        return "*".join(attribute.name for attribute in self.attributes) or "total"

    def __repr__(self) -> str:
        return f"QueryTable({self._carrier[:200]!r}: {len(self.rows):,} rows over {self.rows.width:,} cells)"

    def __post_init__(self) -> None:
        cells = math.prod(self.carrier_shape)
        if self.rows.width != cells:
            problem = f"its rows have {self.rows.width:,} numbers, the table {self._carrier} has {cells:,} cells"
            raise WorkloadError("queries", problem, "give one number for each cell, in row-major order")
        sizes = np.abs(self.rows.arrays[1])
        if ((sizes > _MOST_ENTRY) | ((sizes < 1 / _MOST_ENTRY) & (sizes > 0))).any():
            problem = f"it holds numbers whose sizes are not between {1 / _MOST_ENTRY:g} and {_MOST_ENTRY:g}"
            fix = "divide its rows by a common factor, and write 0 for next to nothing"
            raise WorkloadError("queries", problem, fix)

    def within(self, schema: Schema) -> QueryTable:
        """The same over the places of its attributes in a schema: asked levels move attributes."""
        marginal = schema.marginal([attribute.name for attribute in self.attributes])
        return self if marginal == self.marginal else replace(self, marginal=marginal)

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis."""
        return (len(self.rows),)

    @property
    def labels(self) -> tuple[Sequence[str], ...]:
        """The rows' own labels."""
        return (self.rows.labels,)

    def evaluate(self, table: Floats) -> Floats:
        """Q y."""
        return self.rows @ table.reshape(-1)

    def combine(self, weights: Floats) -> Floats:
        """From each row's own squares."""
        return self._squares @ weights.reshape(-1)

    def squares(self) -> Floats:
        """Sums over the rows."""
        result: Floats = self._squares.sum(axis=0).reshape((2,) * len(self.marginal))
        return result

    @cached_property
    def _squares(self) -> Floats:
        """M_S of each row, S in the order of a (2, ..., 2) array."""
        shape = self.carrier_shape
        result = np.empty((len(self.rows), 2 ** len(shape)))
        for at, row in enumerate(self.rows.iterate()):
            table = row.reshape(shape)
            for number, kept in enumerate(np.ndindex((2,) * len(shape))):
                result[at, number] = (table.sum(axis=tuple(a for a, k in enumerate(kept) if not k)) ** 2).sum()
        return result


def query_table(schema: Schema, attributes: Sequence[str] | None, matrix: Any, *, field: str = "queries") -> QueryTable:
    """Rows over the cells of the table on some attributes (all of the schema unless given), row-major in their order.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
    >>> query_table(schema, ["age", "sex"], [[0, 1, 0, 0, 0, 0]]).rows.dense().tolist()  # age 0 M
    [[0.0, 0.0, 0.0, 1.0, 0.0, 0.0]]
    """
    names = list(schema.names if attributes is None else attributes)
    marginal, given = schema.marginal(names), [schema.position(name) for name in names]
    try:
        rows = matrix if isinstance(matrix, SparseRows) else SparseRows.of(matrix)
        table = QueryTable(marginal, tuple(schema.attributes[i] for i in marginal), rows)
    except BadInput as problem:
        raise WorkloadError(field, problem.problem, problem.fix) from None
    if given == list(marginal):
        return table
    place = np.arange(rows.width).reshape(schema.shape(marginal)).transpose([marginal.index(i) for i in given]).ravel()
    moved = place[np.array(rows.columns, np.int64)]
    return replace(table, rows=replace(rows, columns=tuple(moved.tolist())))
