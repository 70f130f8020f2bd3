"""Tables whose cells are sums of a marginal's cells: ranges along ordered attributes, or any rows of a sparse matrix.

A form is asked for in its own right, with a weight. Its answers are sums q·y of the cells y of one marginal, its
carrier. All that predictions need of a row q are its squares M_S = ||q summed over the axes outside S||², S any set
of axes: every variance of a strategy whose noise looks alike in all cells is a combination of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Final, Literal, get_args

import numpy as np

from hushcube.errors import WorkloadError
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.model.sparse_rows import SparseRows

Along = Literal["cells", "prefix", "ranges"]
ALONG: Final[tuple[Along, ...]] = get_args(Along)
_MOST_ENTRY: Final = 1e15
"""Of a matrix of queries; squares of entries, and ratios of their sums, stay far from the ends of floats."""


class Form(ABC):
    """A table of sums of the cells of one marginal."""

    marginal: Marginal
    attributes: tuple[Attribute, ...]

    @property
    @abstractmethod
    def word(self) -> str:
        """What names it in a workload."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The number of answers along each of its axes."""

    @property
    @abstractmethod
    def axes(self) -> tuple[str, ...]:
        """The names of its axes: columns of its table."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Sequence[str], ...]:
        """The labels along each axis."""

    @property
    @abstractmethod
    def is_complete(self) -> bool:
        """Whether the answers determine the carrier's cells, which are then published too."""

    @abstractmethod
    def evaluate(self, table: Floats) -> Floats:
        """The answers for a table of the carrier's cells."""

    @abstractmethod
    def combine(self, weights: Floats) -> Floats:
        """sum_S weights[S] M_S for each answer; `weights` has an axis (summed, kept) for each attribute."""

    @abstractmethod
    def squares(self) -> Floats:
        """M_S summed over all answers; shape (2, ..., 2)."""

    @property
    def cells(self) -> int:
        """How many answers there are."""
        return math.prod(self.shape)

    @property
    def carrier_shape(self) -> tuple[int, ...]:
        """The carrier's sizes."""
        return tuple(attribute.size for attribute in self.attributes)


@dataclass(frozen=True)
class RangeTable(Form):
    """A product of cells, prefixes and ranges along the attributes of a marginal.

    >>> age = Attribute(name="age", range=(0, 3))
    >>> prefix = RangeTable((0,), (age,), ("prefix",))
    >>> prefix.word, prefix.labels[0]
    ('prefix(age)', ('up to 0', 'up to 1', 'up to 2', 'up to 3'))
    >>> prefix.evaluate(np.array([5.0, 1.0, 0.0, 2.0])).tolist()
    [5.0, 6.0, 6.0, 8.0]
    >>> RangeTable((0,), (age,), ("ranges",)).cells
    10
    """

    marginal: Marginal
    attributes: tuple[Attribute, ...]
    along: tuple[Along, ...]

    def __post_init__(self) -> None:
        for attribute, along in zip(self.attributes, self.along, strict=True):
            if along != "cells" and not attribute.is_ordered:
                raise WorkloadError(
                    "workload",
                    f"{along}({attribute.name}): the values of {attribute.name!r} have no order",
                    "declare `ordered: true` in the schema, if they are listed in order, or ask for its cells",
                )

    @property
    def word(self) -> str:
        """Such as `prefix(age)*sex`."""
        return "*".join(self.axes)

    @property
    def axes(self) -> tuple[str, ...]:
        """Such as `prefix(age)` and `sex`."""
        return tuple(
            a.name if along == "cells" else f"{along}({a.name})"
            for a, along in zip(self.attributes, self.along, strict=True)
        )

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Answers along each axis; counted, not listed."""
        return tuple(
            a.size + (a.domain_size * (a.domain_size - 1) // 2 if along == "ranges" else 0)
            for a, along in zip(self.attributes, self.along, strict=True)
        )

    @property
    def is_complete(self) -> bool:
        """Cells are differences of prefixes, and ranges of one value."""
        return True

    @cached_property
    def intervals(self) -> tuple[tuple[Ints, Ints], ...]:
        """Where the sums along each axis start, and the position after their ends."""
        return tuple(_intervals(a, along) for a, along in zip(self.attributes, self.along, strict=True))

    @cached_property
    def labels(self) -> tuple[Sequence[str], ...]:
        """`up to 34`, `20 to 34`, or the value itself."""
        return tuple(
            _interval_labels(a, along, *ends)
            for a, along, ends in zip(self.attributes, self.along, self.intervals, strict=True)
        )

    def evaluate(self, table: Floats) -> Floats:
        """Differences of running sums along each axis."""
        for axis, (along, (starts, ends)) in enumerate(zip(self.along, self.intervals, strict=True)):
            if along != "cells":
                running = np.insert(table.cumsum(axis=axis), 0, 0.0, axis=axis)
                table = running.take(ends, axis=axis) - running.take(starts, axis=axis)
        return table

    def combine(self, weights: Floats) -> Floats:
        """M_S is a product over the axes: the squared length where summed, the length where kept."""
        for lengths in self._lengths:
            weights = np.tensordot(weights, np.stack((lengths**2, lengths)), axes=(0, 0))
        return weights

    def squares(self) -> Floats:
        """Products of each axis's sums of squared lengths and of lengths."""
        sums = (
            np.array([n * self.block_energy(axis, n, n), self.block_energy(axis, 1, n)])
            for axis, n in enumerate(self.carrier_shape)
        )
        return reduce(np.multiply.outer, sums, np.ones(()))

    def block_energy(self, axis: int, span: int, leaves: int) -> float:
        """Over all sums q along an axis and all blocks of `span` leaves: (leaves of the block in q)² / span, added up.

        Leaves are the cells, then further ones that belong to the last cell.                      [lattice/trees.py]
        The pairs of cells (j, k), j <= k, that lie in q together count once for j = k and twice otherwise;
        of all n prefixes n - k hold both, of all ranges (j + 1)(n - k).
        """
        attribute, along = self.attributes[axis], self.along[axis]
        n = attribute.domain_size
        k = np.arange(n, dtype=np.float64)
        u = np.floor(k / span) * span  # where the block of k begins
        if along == "cells":
            pairs = np.ones(n)
        elif along == "prefix":
            pairs = (n - k) * (2 * (k - u) + 1)
        else:
            pairs = (n - k) * (k * (k + 1) - u * (u + 1) + k + 1)
        return float((pairs.sum() + attribute.size - n + self._phantom_pairs(axis, span, leaves)) / span)

    def _phantom_pairs(self, axis: int, span: int, leaves: int) -> float:
        """The pairs that leaves beyond the cells are part of: some share a block with cells, the others fill theirs."""
        attribute, along = self.attributes[axis], self.along[axis]
        n = attribute.size
        beside = -n % span  # leaves in the block of the last cells
        block = np.arange(n - n % span, n)
        if along == "cells" or attribute.domain_size < n:
            both = 1.0 * (block == n - 1)  # sums that hold a cell and the last one
        else:
            both = np.ones(len(block)) if along == "prefix" else block + 1.0
        last = n if along == "ranges" and attribute.domain_size == n else 1
        return float(2 * beside * both.sum() + last * (beside**2 + (leaves - n - beside) * span))

    @property
    def _lengths(self) -> tuple[Floats, ...]:
        return tuple((ends - starts).astype(np.float64) for starts, ends in self.intervals)


@dataclass(frozen=True, repr=False)
class QueryTable(Form):
    """The rows of a sparse matrix over the cells of a marginal."""

    marginal: Marginal
    attributes: tuple[Attribute, ...]
    rows: SparseRows

    def __repr__(self) -> str:
        names = "*".join(attribute.name for attribute in self.attributes)
        return f"QueryTable({names[:200]!r}: {len(self.rows):,} rows over {self.rows.width:,} cells)"

    def __post_init__(self) -> None:
        cells = math.prod(self.carrier_shape)
        if self.rows.width != cells:
            names = "*".join(a.name for a in self.attributes)
            raise WorkloadError(
                "queries",
                f"its rows have {self.rows.width:,} numbers, the table {names} has {cells:,} cells",
                "give one number for each cell, in row-major order",
            )
        sizes = np.abs(self.rows.arrays[1])
        if ((sizes > _MOST_ENTRY) | ((sizes < 1 / _MOST_ENTRY) & (sizes > 0))).any():
            problem = f"it holds numbers whose sizes are not between {1 / _MOST_ENTRY:g} and {_MOST_ENTRY:g}"
            raise WorkloadError(
                "queries", problem, "divide its rows by a common factor, and write 0 for next to nothing"
            )

    def within(self, schema: Schema) -> QueryTable:
        """The same over the places of its attributes in a schema: asked levels move attributes."""
        marginal = schema.marginal([attribute.name for attribute in self.attributes])
        return self if marginal == self.marginal else replace(self, marginal=marginal)

    @property
    def word(self) -> str:
        """`queries`: a workload has at most one matrix."""
        return "queries"

    @property
    def shape(self) -> tuple[int, ...]:
        """One axis."""
        return (len(self.rows),)

    @property
    def axes(self) -> tuple[str, ...]:
        """One axis."""
        return ("query",)

    @property
    def labels(self) -> tuple[Sequence[str], ...]:
        """The rows' own labels."""
        return (self.rows.labels,)

    @property
    def is_complete(self) -> bool:
        """Rows say nothing about single cells in general."""
        return False

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


def _intervals(attribute: Attribute, along: Along) -> tuple[Ints, Ints]:
    n, extra = attribute.domain_size, np.arange(attribute.domain_size, attribute.size)
    cells = np.arange(n)
    if along == "cells":
        starts, last = cells, cells
    elif along == "prefix":
        starts, last = np.zeros(n, np.int64), cells
    else:
        starts, last = np.triu_indices(n)
    return np.concatenate((starts, extra)), np.concatenate((last, extra)) + 1


def _interval_labels(attribute: Attribute, along: Along, starts: Ints, ends: Ints) -> Sequence[str]:
    labels = attribute.labels
    if along == "cells":
        return labels
    domain = attribute.domain_size
    if along == "prefix":
        return tuple(f"up to {label}" for label in labels[:domain]) + labels[domain:]
    return tuple(
        labels[a] if a + 1 == b else f"{labels[a]} to {labels[b - 1]}"
        for a, b in zip(starts.tolist(), ends.tolist(), strict=True)
    )
