"""Tables whose cells are sums of a marginal's cells: ranges along ordered attributes, or groups of their values.

A form is asked for in its own right, with a weight. Its answers are sums q·y of the cells y of one marginal, its
carrier. All that predictions need of a row q are its squares M_S = ||q summed over the axes outside S||², S any set
of axes: every variance of a strategy whose noise looks alike in all cells is a combination of them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import ClassVar, Final, Literal, get_args

import numpy as np

from hushcube.errors import WorkloadError
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.attribute import Attribute

Along = Literal["cells", "prefix", "ranges"]
ALONG: Final[tuple[Along, ...]] = get_args(Along)


class Form(ABC):
    """A table of sums of the cells of one marginal."""

    marginal: Marginal
    attributes: tuple[Attribute, ...]
    is_complete: ClassVar[bool]
    """Whether the answers determine the carrier's cells, which are then published too."""

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
    def coded(self) -> tuple[Sequence[str], ...]:
        """The same in codes."""
        return self.labels

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
    def word(self) -> str:
        """What names it in a workload, such as `prefix(age)*sex`."""
        return "*".join(self.axes) or "total"

    @property
    def cells(self) -> int:
        """How many answers there are."""
        return math.prod(self.shape)

    @property
    def carrier_shape(self) -> tuple[int, ...]:
        """The carrier's sizes."""
        return tuple(attribute.size for attribute in self.attributes)


class _Product(Form):
    """Sums along each axis, in all combinations."""

    @property
    @abstractmethod
    def lengths(self) -> Sequence[Floats]:
        """For each axis, how many values each of its sums has."""

    def combine(self, weights: Floats) -> Floats:
        """M_S is a product over the axes: the squared length where summed, the length where kept."""
        for lengths in self.lengths:
            weights = np.tensordot(weights, np.stack((lengths**2, lengths)), axes=(0, 0))
        return weights.reshape(self.shape)

    def squares(self) -> Floats:
        """Products of each axis's sums of squared lengths and of lengths."""
        sums = (np.array([(lengths**2).sum(), lengths.sum()]) for lengths in self.lengths)
        return reduce(np.multiply.outer, sums, np.ones(()))


@dataclass(frozen=True)
class RangeTable(_Product):
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
    is_complete = True  # cells are differences of prefixes, and ranges of one value

    def __post_init__(self) -> None:
        for attribute, along in zip(self.attributes, self.along, strict=True):
            if along != "cells" and not attribute.is_ordered:
                problem = f"{along}({attribute.name}): the values of {attribute.name!r} have no order"
                fix = "declare `ordered: true` in the schema, if they are listed in order, or ask for its cells"
                raise WorkloadError("workload", problem, fix)

    @property
    def axes(self) -> tuple[str, ...]:
        """Such as `prefix(age)` and `sex`."""
        pairs = zip(self.attributes, self.along, strict=True)
        return tuple(a.name if along == "cells" else f"{along}({a.name})" for a, along in pairs)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Answers along each axis; counted, not listed."""
        pairs = zip(self.attributes, self.along, strict=True)
        return tuple(a.size + (math.comb(a.domain_size, 2) if along == "ranges" else 0) for a, along in pairs)

    @cached_property
    def intervals(self) -> tuple[tuple[Ints, Ints], ...]:
        """Where the sums along each axis start, and the position after their ends."""
        return tuple(_intervals(a, along) for a, along in zip(self.attributes, self.along, strict=True))

    @cached_property
    def labels(self) -> tuple[Sequence[str], ...]:
        """`up to 34`, `20 to 34`, or the value itself."""
        axes = zip(self.attributes, self.along, self.intervals, strict=True)
        return tuple(_interval_texts(a.labels, a.domain_size, along, *ends) for a, along, ends in axes)

    @property
    def coded(self) -> tuple[Sequence[str], ...]:
        """Likewise."""
        axes = zip(self.attributes, self.along, self.intervals, strict=True)
        return tuple(_interval_texts(a.coded, a.domain_size, along, *ends) for a, along, ends in axes)

    def evaluate(self, table: Floats) -> Floats:
        """Differences of running sums along each axis."""
        for axis, (along, (starts, ends)) in enumerate(zip(self.along, self.intervals, strict=True)):
            if along != "cells":
                running = np.insert(table.cumsum(axis=axis), 0, 0.0, axis=axis)
                table = running.take(ends, axis=axis) - running.take(starts, axis=axis)
        return table

    def squares(self) -> Floats:
        """Counted, not listed: there are many ranges."""
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
    def lengths(self) -> Sequence[Floats]:
        """Of prefixes and ranges."""
        return tuple((ends - starts).astype(np.float64) for starts, ends in self.intervals)


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


def _interval_texts(values: tuple[str, ...], domain: int, along: Along, starts: Ints, ends: Ints) -> Sequence[str]:
    if along == "cells":
        return values
    if along == "prefix":
        return tuple(f"up to {value}" for value in values[:domain]) + values[domain:]
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return tuple(values[a] if a + 1 == b else f"{values[a]} to {values[b - 1]}" for a, b in pairs)


@dataclass(frozen=True, eq=False)
class GroupTable(_Product):
    """A table rolled up along levels; `groups` has, for each axis, the group of each of its values.

    >>> age = Attribute(name="age", codes=4)
    >>> halves = Attribute(name="half", codes=2)
    >>> table = GroupTable((0,), (age,), (halves,), (np.array([0, 0, 1, 1]),))
    >>> table.evaluate(np.array([5.0, 1.0, 0.0, 2.0])).tolist(), table.word
    ([6.0, 2.0], 'half')
    """

    marginal: Marginal
    attributes: tuple[Attribute, ...]
    seen_at: tuple[Attribute | None, ...]
    """What each axis is rolled up to; None where it is summed out."""
    groups: tuple[Ints, ...]
    is_complete = False  # groups do not determine their members

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the levels, such as `age@band`."""
        return tuple(attribute.name for attribute in self.seen_at if attribute is not None)

    @property
    def shape(self) -> tuple[int, ...]:
        """Groups along the axes that are left."""
        return tuple(attribute.size for attribute in self.seen_at if attribute is not None)

    @property
    def labels(self) -> tuple[Sequence[str], ...]:
        """The groups' labels."""
        return tuple(attribute.labels for attribute in self.seen_at if attribute is not None)

    @property
    def coded(self) -> tuple[Sequence[str], ...]:
        """The groups' codes."""
        return tuple(attribute.coded for attribute in self.seen_at if attribute is not None)

    @cached_property
    def members(self) -> tuple[Floats, ...]:
        """For each axis a row of zeros and ones for each group."""
        return tuple(map(members, self.groups))

    def evaluate(self, table: Floats) -> Floats:
        """Sums of the cells of each group, axis by axis."""
        for axis, groups in enumerate(self.groups):
            table = sum_groups(table, groups, axis)
        return table.reshape(self.shape)

    @property
    def lengths(self) -> Sequence[Floats]:
        """Of groups."""
        return [np.bincount(groups).astype(np.float64) for groups in self.groups]


def members(groups: Ints) -> Floats:
    """A row of zeros and ones for each group."""
    return np.asarray((np.arange(groups.max() + 1)[:, None] == groups).astype(np.float64))


def sum_groups(table: Floats, groups: Ints, axis: int) -> Floats:
    """A table with one axis summed within groups, none of which is empty."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.asarray(np.add.reduceat(table.take(order, axis=axis), starts, axis=axis))
