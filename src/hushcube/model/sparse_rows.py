"""A sparse matrix over the cells of a table: plain numbers, so that it can be hashed and written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats, Ints, frozen
from hushcube.model.label import is_label


@dataclass(frozen=True, repr=False)
class SparseRows:
    """Rows of finite numbers in compressed form: row r has `values[starts[r]:starts[r+1]]` at `columns[...]`.

    >>> rows = SparseRows.of([[1, 1, 0], [0, 0, 2]])
    >>> (rows @ np.array([1.0, 2.0, 3.0])).tolist(), len(rows), rows.width
    ([3.0, 6.0], 2, 3)
    """

    width: int
    starts: tuple[int, ...]
    columns: tuple[int, ...]
    values: tuple[float, ...]
    names: tuple[str, ...] | None = field(default=None)

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
        if self.names is not None and not self._has_fitting_names:
            raise BadInput("matrix", "its rows' names do not fit", "give each row a name that no other has")

    @classmethod
    def of(cls, matrix: Any, names: Sequence[str] | None = None) -> SparseRows:
        """From nested sequences, a numpy array, or a scipy sparse matrix."""
        if hasattr(matrix, "tocsr"):
            csr = matrix.tocsr().copy()
            csr.sum_duplicates()
            csr.eliminate_zeros()
            width, starts, columns, values = csr.shape[1], csr.indptr, csr.indices, csr.data
        else:
            try:
                dense = np.asarray(matrix)
                if dense.dtype.kind in "USO" and any(isinstance(each, str | bytes) for each in dense.flat):
                    raise ValueError  # a text of digits is no number
                dense = dense.astype(np.float64)
            except (TypeError, ValueError):
                raise BadInput(
                    "matrix", "its rows are not equally long lists of numbers", "give rows of equal length"
                ) from None
            if dense.ndim != 2 or not dense.size:
                raise BadInput("matrix", "is not a table of numbers", "give rows of equal length")
            rows, columns = np.nonzero(dense)  # NaN is not zero
            starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(dense)))])
            width, values = dense.shape[1], dense[rows, columns]
        try:
            numbers = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError):
            raise BadInput("matrix", "it holds something other than numbers", "give numbers only") from None
        return cls(
            int(width),
            tuple(np.asarray(starts).tolist()),
            tuple(np.asarray(columns).tolist()),
            tuple(numbers.tolist()),
            None if names is None else tuple(names),
        )

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

    @property
    def _has_fitting_names(self) -> bool:
        names = self.names or ()
        return len(set(names)) == len(names) == len(self) and all(map(is_label, names))

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
        names = {} if self.names is None else {"names": list(self.names)}
        return {
            "width": self.width,
            "starts": list(self.starts),
            "columns": list(self.columns),
            "values": list(self.values),
            **names,
        }

    @classmethod
    def from_dict(cls, raw: Any) -> SparseRows:
        """Read the JSON form; TypeError where a field has another type."""
        names = raw.get("names")
        for key, kinds in (("starts", (int,)), ("columns", (int,)), ("values", (int, float))):
            if not isinstance(raw[key], list) or not all(type(each) in kinds for each in raw[key]):
                raise TypeError(f"{key} is not a list of numbers")
        if type(raw["width"]) is not int or not isinstance(names, list | None):
            raise TypeError("width or names is not what it should be")
        values = tuple(map(float, raw["values"]))
        return cls(
            raw["width"], tuple(raw["starts"]), tuple(raw["columns"]), values, None if names is None else tuple(names)
        )
