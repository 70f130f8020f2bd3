"""Numbers on a marginal that may be published: a noisy table. (Exact tables exist on the private side only.)"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import QueryError
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """Values and standard errors on some attributes, with the labels of each axis.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
    >>> table = NoisyTable(schema, (0, 1), np.arange(6.0).reshape(2, 3), np.ones((2, 3)), np.full((2, 3), 2.0))
    >>> table.slice({"sex": "M"}).values.tolist()
    [[3.0, 4.0, 5.0]]
    """

    schema: Schema
    marginal: Marginal
    values: Floats
    std_errors: Floats
    margins: Floats
    """Half-widths of the cells' 95% intervals."""
    kept: tuple[tuple[int, ...], ...] | None = None
    """The positions kept along each axis, where the table is a slice."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return tuple(self.schema.names[i] for i in self.marginal)

    @cached_property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """The labels along each axis."""
        full = [self.schema.attributes[i].labels for i in self.marginal]
        if self.kept is None:
            return tuple(full)
        return tuple(tuple(labels[p] for p in kept) for labels, kept in zip(full, self.kept, strict=True))

    def slice(self, where: Mapping[str, str | Sequence[str]]) -> NoisyTable:
        """The part of the table with the given labels; a text or several for each attribute."""
        chosen = selection(self.schema, self.marginal, where)
        index = np.ix_(*chosen) if chosen else ()
        values, std_errors, margins = (numbers[index] for numbers in (self.values, self.std_errors, self.margins))
        return NoisyTable(self.schema, self.marginal, values, std_errors, margins, tuple(map(tuple, chosen)))


def selection(schema: Schema, marginal: Marginal, where: Mapping[str, str | Sequence[str]]) -> list[list[int]]:
    """The positions along each axis that a condition keeps; every name and label is checked."""
    names = [schema.names[i] for i in marginal]
    for name in where:
        if name not in names:
            raise QueryError(
                "where",
                f"{name!r} is not an attribute of this table",
                f"use one of: {', '.join(names) or 'none'}",
            )
    chosen = []
    for name, i in zip(names, marginal, strict=True):
        attribute = schema.attributes[i]
        if name not in where:
            chosen.append(list(range(attribute.size)))
            continue
        wanted = where[name]
        labels = [wanted] if isinstance(wanted, str) else list(wanted)
        positions = []
        for label in labels:
            position = attribute.position(label)
            if position is None:
                shown = ", ".join(attribute.labels[:12]) + (", ..." if attribute.size > 12 else "")
                raise QueryError(f"where, {name}", f"{label!r} is not one of its labels", f"use one of: {shown}")
            positions.append(position)
        if len(set(positions)) != len(positions) or not positions:
            raise QueryError(f"where, {name}", "names no label, or one twice", "name each label once")
        chosen.append(positions)
    return chosen
