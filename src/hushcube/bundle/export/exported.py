"""A table to export, whatever the format: its axes with codes and labels, and columns of numbers, one row a cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby, product
from typing import Any, Final

from numpy.typing import NDArray

from hushcube.bundle.published_table import Table, beside
from hushcube.errors import WorkloadError
from hushcube.faces.value import UNBIASED
from hushcube.model.schema import Schema
from hushcube.model.workload import Quantity

_RUN: Final = 2**14  # cells that are Python numbers at once
_SAID: Final = {
    "value": "",
    "std_error": "standard error",
    "low_95": "lower end of the 95% interval",
    "high_95": "upper end of the 95% interval",
    "quality": "quality",
    "estimated_error": "estimated error",
    "estimated_low": "lower end of the estimated interval",
    "estimated_high": "upper end of the estimated interval",
}
"""The statistics of a quantity, and what they are called."""


@dataclass(frozen=True)
class Axis:
    """An attribute of a table, or the sums along one: what stands in the data, and what people read."""

    name: str
    title: str
    codes: Sequence[str]
    labels: Sequence[str]

    @cached_property
    def texts(self) -> tuple[Sequence[str], ...]:
        """What is written of each value: its label and, where that is another text, its code."""
        return (self.labels, self.codes) if tuple(self.codes) != tuple(self.labels) else (self.labels,)

    @property
    def has_labels(self) -> bool:
        """Whether people read something else than what stands in the data."""
        return len(self.texts) > 1

    @classmethod
    def of(cls, schema: Schema, name: str, labels: Sequence[str], codes: Sequence[str]) -> Axis:
        """An axis of a table; what is not an attribute, such as `prefix(age)`, has no title of its own.

        Codes that are not all different, such as names of queries, are positions.
        """
        if len(set(codes)) < len(codes):
            codes = [str(at) for at in range(len(codes))]
        try:
            attribute = schema.seen(name)
        except WorkloadError:
            return cls(name, name, codes, labels)
        unit = "" if attribute.unit_of_measure is None else f" ({attribute.unit_of_measure})"
        return cls(name, f"{attribute.shown_name}{unit}", codes, labels)


@dataclass(frozen=True, eq=False)
class Column:
    """A statistic of a quantity, for each cell in row-major order: numbers, NaN where nobody knows, or words."""

    name: str
    """Such as `value`, `std_error` or `sum_days_low_95`: short, and beside the names of the attributes."""
    title: str
    """The same for people."""
    quantity: str
    """Such as `count` or `sum(days)`."""
    statistic: str
    """`value`, `std_error`, `low_95`, `high_95`, or `quality`: how far the value can be relied on, in words. At face
    value `estimated_error`, `estimated_low` and `estimated_high`, where the release has estimates."""
    numbers: NDArray[Any]

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers."""
        return self.statistic != "quality"


@dataclass(frozen=True, eq=False)
class ExportedTable:
    """A table with all that is published about its cells."""

    word: str
    title: str
    axes: tuple[Axis, ...]
    columns: tuple[Column, ...]
    private: bool = True

    @property
    def shape(self) -> tuple[int, ...]:
        """How many labels there are along each axis."""
        return tuple(len(axis.labels) for axis in self.axes)

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return math.prod(self.shape)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns of texts: `sex`, and `sex_code` beside it where labels are not codes."""
        taken = [axis.name for axis in self.axes]
        pairs = ((axis.name, *(beside(taken, f"{axis.name}_code") if axis.has_labels else [])) for axis in self.axes)
        return tuple(chain.from_iterable(pairs))

    @property
    def headings(self) -> tuple[str, ...]:
        """The same for people."""
        titles = ((axis.title, f"{axis.title}, code")[: len(axis.texts)] for axis in self.axes)
        return tuple(chain.from_iterable(titles))

    def texts(self, shown: Callable[[str], str]) -> Iterator[tuple[str, ...]]:
        """The texts of each cell, as they are shown."""
        own = ([tuple(map(shown, each)) for each in zip(*axis.texts, strict=True)] for axis in self.axes)
        return (tuple(chain.from_iterable(cell)) for cell in product(*own))

    @property
    def quantities(self) -> Iterator[tuple[str, list[Column]]]:
        """The columns of each quantity."""
        for quantity, columns in groupby(self.columns, lambda column: column.quantity):
            yield quantity, list(columns)

    def rows(self, columns: Iterable[Column] | None = None) -> Iterator[tuple[Any, ...]]:
        """What columns hold of each cell, some of them or all; few are Python numbers at once."""
        arrays = [column.numbers for column in (self.columns if columns is None else columns)]
        for start in range(0, self.cells, _RUN):
            yield from zip(*(numbers[start : start + _RUN].tolist() for numbers in arrays), strict=True)


class Exporter:
    """Makes tables of one release ready to be exported; axes are made once."""

    def __init__(self, schema: Schema, names: dict[str, str]) -> None:
        """`names` are what measures are called in the names of columns."""
        self._schema, self._names = schema, names
        self._axes: dict[str, Axis] = {}

    def table(self, table: Table) -> ExportedTable:
        """A table of the release, with what else is known of its cells beside it."""
        axes = tuple(self._axis(*each) for each in zip(table.attributes, table.labels, table.coded, strict=True))
        found = [own for each in (table, *table.others) for own in self._columns(each)]
        made = ExportedTable(table.word, self._title(axes), axes, tuple(found), table.private)
        names = beside(made.names, *(column.name for column in found))
        columns = (replace(column, name=name) for name, column in zip(names, found, strict=True))
        return replace(made, columns=tuple(columns))

    def _axis(self, name: str, labels: Sequence[str], codes: Sequence[str]) -> Axis:
        known = self._axes.get(name)
        if known is None or known.labels is not labels:
            known = self._axes[name] = Axis.of(self._schema, name, labels, codes)
        return known

    def _title(self, axes: Sequence[Axis]) -> str:
        noun = self._schema.unit_noun
        titles = [axis.title for axis in axes]
        if not titles:
            return f"All {noun}"
        return f"{noun[0].upper()}{noun[1:]} by {', '.join(titles[:-1])}{' and ' if titles[1:] else ''}{titles[-1]}"

    def _columns(self, table: Table) -> Iterator[Column]:
        """The statistics of one quantity.

        Averages have no standard errors; other faces neither intervals nor flags, but perhaps estimated errors.
        """
        quantity = Quantity.parse(table.what, self._schema)
        numbers: dict[str, NDArray[Any]] = {"value": table.values}
        if not table.is_average:
            numbers["std_error"] = table.std_errors
        if table.face == UNBIASED:
            numbers |= {"low_95": table.low, "high_95": table.high, "quality": table.quality_words}
        elif table.estimated is not None and table.estimated_ends is not None:
            low, high = table.estimated_ends
            numbers |= {"estimated_error": table.estimated, "estimated_low": low, "estimated_high": high}
        word, what = self._named(quantity)
        for statistic, each in numbers.items():
            name = statistic if not word else word if statistic == "value" else f"{word}_{statistic}"
            title = ", ".join(filter(None, [what, _SAID[statistic]]))
            yield Column(name, title, table.what, statistic, each.reshape(-1))

    def _named(self, quantity: Quantity) -> tuple[str, str]:
        """What a quantity is called in the names of columns, and for people."""
        if quantity.kind == "count":
            return "", f"number of {self._schema.unit_noun}"
        measure, what = self._schema.measure(quantity.measure), "sum" if quantity.kind == "sum" else "average"
        unit = "" if measure.unit_of_measure is None else f" ({measure.unit_of_measure})"
        return f"{quantity.kind}_{self._names[measure.name]}", f"{what} of {measure.shown_name}{unit}"
