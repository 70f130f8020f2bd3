"""Numbers on a marginal or a form that may be published: a noisy table. Exact tables stay on the private side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hushcube.errors import QueryError
from hushcube.model.arrays import Floats
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema


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
    form: Form | None = None
    """What the axes are, where they are not the marginal's attributes."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the axes."""
        return self.form.axes if self.form is not None else tuple(self.schema.names[i] for i in self.marginal)

    @cached_property
    def labels(self) -> tuple[Sequence[str], ...]:
        """The labels along each axis."""
        full = self._full_labels
        if self.kept is None:
            return tuple(full)
        return tuple(tuple(labels[p] for p in kept) for labels, kept in zip(full, self.kept, strict=True))

    @property
    def _full_labels(self) -> Sequence[Sequence[str]]:
        if self.form is not None:
            return self.form.labels
        return [self.schema.attributes[i].labels for i in self.marginal]

    def slice(self, where: Mapping[str, str | Sequence[str]]) -> NoisyTable:
        """The part of the table with the given labels; a text or several for each axis."""
        chosen = positions(self.attributes, self._full_labels, where)
        index = np.ix_(*chosen) if chosen else ()
        values, std_errors, margins = (numbers[index] for numbers in (self.values, self.std_errors, self.margins))
        return NoisyTable(self.schema, self.marginal, values, std_errors, margins, tuple(map(tuple, chosen)), self.form)


def positions(
    names: Sequence[str], labels: Sequence[Sequence[str]], where: Mapping[str, str | Sequence[str]]
) -> list[list[int]]:
    """The positions along each axis that a condition keeps; every name and label is checked."""
    for name in where:
        if name not in names:
            raise QueryError(
                "where",
                f"{name!r} is not an attribute of this table",
                f"use one of: {', '.join(names) or 'none'}",
            )
    chosen = []
    for name, known in zip(names, labels, strict=True):
        if name not in where:
            chosen.append(list(range(len(known))))
            continue
        wanted = where[name]
        index = {label: at for at, label in enumerate(known)}
        found = []
        for label in [wanted] if isinstance(wanted, str) else list(wanted):
            if label not in index:
                shown = ", ".join(known[:12]) + (", ..." if len(known) > 12 else "")
                raise QueryError(f"where, {name}", f"{label!r} is not one of its labels", f"use one of: {shown}")
            found.append(index[label])
        if len(set(found)) != len(found) or not found:
            raise QueryError(f"where, {name}", "names no label, or one twice", "name each label once")
        chosen.append(found)
    return chosen


def beside(taken: Iterable[str], *names: str) -> list[str]:
    """Names of numbers beside attributes: an underscore steps aside for an attribute of the same name, in any case.

    >>> beside(["sex", "Value"], "value", "std_error")
    ['value_', 'std_error']
    """
    used = {name.casefold() for name in taken}
    found = []
    for name in names:
        while name in used:
            name += "_"
        found.append(name)
    return found
