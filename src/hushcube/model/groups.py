"""A table rolled up along the levels of its attributes: every answer sums the cells of a product of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np

from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.form import Form


@dataclass(frozen=True, eq=False)
class GroupTable(Form):
    """The sums of a marginal's cells over groups; `groups` has, for each axis, the group of each of its values.

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

    @property
    def word(self) -> str:
        """Such as `age@band*sex`."""
        return "*".join(self.axes) or "total"

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of the levels."""
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
    def is_complete(self) -> bool:
        """Groups do not determine their members."""
        return False

    @cached_property
    def members(self) -> tuple[Floats, ...]:
        """For each axis a row of zeros and ones for each group."""
        return tuple((np.arange(groups.max() + 1)[:, None] == groups).astype(np.float64) for groups in self.groups)

    def evaluate(self, table: Floats) -> Floats:
        """Sums of the cells of each group, axis by axis."""
        for axis, groups in enumerate(self.groups):
            table = sum_groups(table, groups, axis)
        return table.reshape(self.shape)

    def combine(self, weights: Floats) -> Floats:
        """M_S is a product over the axes: the squared size of a group where summed, its size where kept."""
        for sizes in self._sizes:
            weights = np.tensordot(weights, np.stack((sizes**2, sizes)), axes=(0, 0))
        return weights.reshape(self.shape)

    def squares(self) -> Floats:
        """Products of each axis's sums."""
        sums = (np.array([(sizes**2).sum(), sizes.sum()]) for sizes in self._sizes)
        return reduce(np.multiply.outer, sums, np.ones(()))

    @property
    def _sizes(self) -> list[Floats]:
        return [np.bincount(groups).astype(np.float64) for groups in self.groups]


def sum_groups(table: Floats, groups: Ints, axis: int) -> Floats:
    """A table with one axis summed within groups, none of which is empty."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.asarray(np.add.reduceat(table.take(order, axis=axis), starts, axis=axis))
