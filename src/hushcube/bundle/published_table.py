"""Numbers on the cells of a table that may be published: estimates with their errors. Exact tables stay private."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, product
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.statement import Stamped, mark
from hushcube.errors import MissingDependency, QueryError
from hushcube.faces.value import HALF_WIDTH, UNBIASED
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.label import label_of
from hushcube.model.quality import QUALITY_LETTERS, QUALITY_WORDS
from hushcube.model.schema import COUNT, Schema
from hushcube.shown import Bar, Cell, Column, Grid, Page, Remark, number
from hushcube.text import csv_text, visible

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Label = str | int
Where = Mapping[str, Label | Sequence[Label]]
"""The labels, or codes, to keep of some attributes: one, or several of them."""
_MORE: Final = "`to_pandas()` has all of them"
_ESTIMATED: Final = (
    "Estimated margins should hold the truth in 95% of cases: estimated, not promised. Unbiased margins are promised, "
    "around the unbiased values."
)


@dataclass(frozen=True, eq=False, repr=False)
class Table(Stamped):
    """Estimates for every combination of some attributes' labels, each with its standard error and 95% interval.

    `values`, `std_errors`, `low` and `high` are arrays with one axis for each of the `attributes`, in the order in
    which the table was asked for; `labels` has the labels along each axis.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema([Attribute("sex", values=["F", "M"]), Attribute("age", codes=3)])
    >>> table = Table.of(schema, (0, 1), np.arange(6.0).reshape(2, 3), np.ones((2, 3)), np.full((2, 3), 2.0))
    >>> table.slice({"sex": "M", "age": [0, 2]}).values.tolist()
    [[3.0, 5.0]]
    >>> table.ordered(["age", "sex"]).values.tolist()
    [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]
    """

    schema: Schema
    attributes: tuple[str, ...]
    """The names of the axes."""
    labels: tuple[Sequence[str], ...]
    """The labels along each axis."""
    coded: tuple[Sequence[str], ...]
    """The codes that they stand for, which are the same texts where no others are declared."""
    values: Floats
    std_errors: Floats
    """NaN for averages, whose intervals say all that is known of their errors."""
    margins: Floats
    """Half-widths of the cells' 95% intervals; NaN for averages, whose intervals are not symmetric."""
    ends: tuple[Floats, Floats] | None = None
    """Both ends of the intervals, where these are not symmetric."""
    what: str = COUNT
    """What the numbers are: `count`, or a word such as `avg(days)`."""
    face: str = UNBIASED
    """The face of the release that the values are from; errors are those of the unbiased one."""
    private: bool = True
    """False where the noise came from a seed."""
    estimated: Floats | None = None
    """Estimated errors of the values of another face, where they are known: no promise."""
    others: tuple[Table, ...] = ()
    """Sums and averages of the same cells, where they were asked for together."""

    @classmethod
    def of(
        cls, schema: Schema, axes: Marginal | Form, values: Floats, std_errors: Floats, margins: Floats, **fields: Any
    ) -> Table:
        """A table on a marginal or a form; errors of shape () are those of all cells."""
        if isinstance(axes, Form):
            names, labels, coded = axes.axes, axes.labels, axes.coded
        else:
            attributes = [schema.attributes[i] for i in axes]
            names = tuple(each.name for each in attributes)
            labels, coded = tuple(each.labels for each in attributes), tuple(each.coded for each in attributes)
        errors, widths = (np.broadcast_to(numbers, values.shape) for numbers in (std_errors, margins))
        return cls(schema, names, labels, coded, values, errors, widths, **fields)

    @property
    def low(self) -> Floats:
        """The lower ends of the cells' 95% intervals."""
        return self.values - self.margins if self.ends is None else self.ends[0]

    @property
    def high(self) -> Floats:
        """The upper ends of the cells' 95% intervals."""
        return self.values + self.margins if self.ends is None else self.ends[1]

    @property
    def estimated_margins(self) -> Floats | None:
        """Half-widths of the intervals that estimated errors give: they should hold the truth in 95% of cases."""
        return None if self.estimated is None else HALF_WIDTH * self.estimated

    @property
    def estimated_ends(self) -> tuple[Floats, Floats] | None:
        """Both ends of these intervals; no true count is below zero."""
        if (margins := self.estimated_margins) is None:
            return None
        return np.maximum(self.values - margins, 0.0), self.values + margins

    @property
    def word(self) -> str:
        """What names the table: `age*sex`, or `total`."""
        return "*".join(self.attributes) or "total"

    @property
    def is_average(self) -> bool:
        """Whether the numbers are averages: ratios of two estimates."""
        return self.ends is not None

    @property
    def may_be_negative(self) -> bool:
        """Whether the true numbers may be below zero: sums and averages of a measure may."""
        return any(self.what in (f"sum({m.name})", f"avg({m.name})") and m.bounds[0] < 0 for m in self.schema.measures)

    @property
    def quality(self) -> NDArray[np.int8]:
        """0 where a number is reliable, 1 where it is to be used with caution, 2 where it is not to be used."""
        return self.schema.quality.classes(self)

    @property
    def quality_words(self) -> NDArray[np.object_]:
        """The same in words: reliable, use with caution, do not use."""
        return np.asarray(np.array(QUALITY_WORDS, dtype=object)[self.quality], dtype=object)

    def __repr__(self) -> str:
        shape = " x ".join(f"{len(labels):,}" for labels in self.labels) or "1"
        face = "" if self.face == UNBIASED else f", {self.face}"
        words = ", ".join(visible(table.what) for table in (self, *self.others[:8]))
        return f"Table({visible(self.word)!r}: {words}, {shape} cells{face}{mark(self.private)})"

    def page(self, rows: int = 60, truth: Sequence[float] | None = None, more: str = _MORE) -> Page:
        """The first cells with their error bars, drawn to scale; beside them the truth, where it is public.

        What is said about a whole release is left out; `more` says where the other cells are.
        """
        rows = min(rows, self.values.size)  # a number of any size is taken
        grid = self._side_by_side(rows) if self.others else self._with_bars(rows, truth)
        rest = self.values.size - rows
        is_flagged = self.face == UNBIASED and any(table.quality.any() for table in (self, *self.others))
        legend = [str(self.schema.quality)] if is_flagged else []
        legend += [] if self.estimated is None else [_ESTIMATED]
        return Page((grid, *legend, *([Remark(f"... and {rest:,} more cells: {more}")] if rest > 0 else [])))

    @property
    def _flags(self) -> list[str]:
        """The letter of each number's quality; empty where it is reliable, and beside other faces."""
        return [QUALITY_LETTERS[at] if self.face == UNBIASED else "" for at in self.quality.ravel().tolist()]

    def _side_by_side(self, rows: int) -> Grid:
        """Counts, sums and averages of the same cells, each with its interval."""
        tables = (self, *self.others)
        pairs = ((Column(table.what, right=True), Column("", is_picture=True)) for table in tables)
        cells: list[list[Cell]] = []
        numbers = (zip(table._bars(), table._flags, strict=True) for table in tables)
        for labels, *flagged in islice(zip(self.rows(), *numbers, strict=True), rows):
            cells.append([*labels])
            for bar, flag in flagged:
                told = "unknown"
                if math.isfinite(bar.value):
                    told = f"{number(round(bar.value, 9))} ({number(bar.low)} to {number(bar.high)})"
                cells[-1] += [f"{told} {flag}".rstrip(), bar]
        columns = [*map(Column, self.attributes), *chain.from_iterable(pairs)]
        return Grid(f"{self.schema.shown_name}: {self.word}, with 95% intervals", columns, cells)

    def _bars(self) -> list[Bar]:
        ends = self.estimated_ends or (self.low, self.high)
        low, values, high = (numbers.ravel().tolist() for numbers in (ends[0], self.values, ends[1]))
        least = min((x for x in low if x < 0), default=0.0)  # an average that is unknown is not a number
        most = max((x for x in high if x > 1e-9), default=1e-9)
        return [Bar(*each, least, most) for each in zip(values, low, high, strict=True)]

    def _with_bars(self, rows: int, truth: Sequence[float] | None) -> Grid:
        is_own = self.face == UNBIASED
        told = f"{self.face}, with 95% {'intervals' if self.is_average else 'margins'}" if is_own else self.face
        columns = [
            *map(Column, self.attributes),
            Column("value" if self.what == COUNT else self.what, right=True),
            *([] if self.estimated is None else [Column("estimated margin", right=True)]),
            Column("95% interval" if self.is_average else "margin" if is_own else "unbiased margin", right=True),
            Column(""),
            *([] if truth is None else [Column("truth", right=True)]),
        ]
        cells: list[list[Cell]] = []
        margins, estimated = self.margins.ravel(), self.estimated_margins
        bars = zip(self.rows(), self._bars(), self._flags, strict=True)
        for at, (labels, bar, flag) in enumerate(islice(bars, rows)):
            if not math.isfinite(bar.value):
                numbers = [f"unknown {flag}".rstrip(), ""]
            elif self.is_average:
                numbers = [number(bar.value), f"{number(bar.low)} to {number(bar.high)} {flag}".rstrip()]
            else:
                numbers = [number(round(bar.value, 9)), f"± {number(margins[at])} {flag}".rstrip()]
                if estimated is not None:
                    numbers.insert(1, f"± {number(estimated.ravel()[at])}")
            cells.append([*labels, *numbers, bar, *([] if truth is None else [number(float(truth[at]))])])
        return Grid(f"{self.schema.shown_name}: {self.word}, {told}", columns, cells)

    def slice(self, where: Where) -> Table:
        """The part of the table with the given labels or codes, one or several for each axis."""
        chosen = positions(self.attributes, self.labels, self.coded, where)
        index = np.ix_(*chosen) if chosen else ()
        labels, coded = (
            tuple(tuple(own[at] for at in kept) for own, kept in zip(texts, chosen, strict=True))
            for texts in (self.labels, self.coded)
        )
        return self._changed(lambda numbers: numbers[index], labels=labels, coded=coded)

    def ordered(self, attributes: Sequence[str]) -> Table:
        """The same table with its axes in another order."""
        axes = [self.attributes.index(name) for name in attributes]
        labels, coded = (tuple(texts[axis] for axis in axes) for texts in (self.labels, self.coded))
        names = tuple(attributes)
        return self._changed(lambda numbers: numbers.transpose(axes), attributes=names, labels=labels, coded=coded)

    def _changed(self, change: Any, **fields: Any) -> Table:
        numbers = {name: change(getattr(self, name)) for name in ("values", "std_errors", "margins")}
        numbers |= {} if self.estimated is None else {"estimated": change(self.estimated)}
        ends = None if self.ends is None else (change(self.ends[0]), change(self.ends[1]))
        others = tuple(other._changed(change, **fields) for other in self.others)
        return replace(self, **fields, **numbers, ends=ends, others=others)

    def rows(self) -> Iterable[tuple[str, ...]]:
        """The labels of each cell, in the order of the flattened arrays."""
        return product(*self.labels)

    def columns(self) -> dict[str, Any]:
        """One column for each attribute, beside them `value`, `std_error`, `low`, `high`, `quality`; a row is a cell.

        Averages have no `std_error`; values of other faces may have an `estimated_error`. Other numbers of the same
        cells are beside them: `avg_days`, `avg_days_low`, `avg_days_high`, `avg_days_quality`. A name that is taken
        gets an underscore: `value_`.
        """
        numbers = self._numbers("")
        for other in self.others:
            own = other._numbers(re.sub(r"[^a-z0-9]+", "_", other.what.lower()).strip("_"))
            numbers |= {f"{name}_" if name in numbers else name: each for name, each in own.items()}
        names = beside(self.attributes, *numbers)
        grid = np.indices(self.values.shape).reshape(len(self.attributes), self.values.size)
        axes = zip(self.attributes, self.labels, grid, strict=True)
        found: dict[str, Any] = {name: np.array(labels, dtype=object)[at] for name, labels, at in axes}
        return found | {name: each.ravel() for name, each in zip(names, numbers.values(), strict=True)}

    def _numbers(self, word: str) -> dict[str, NDArray[Any]]:
        """The columns of a quantity, under a word of its own where it cannot be combined with another."""
        after = f"{word}_" if word else ""
        errors = {} if self.is_average else {f"{after}std_error": self.std_errors}
        errors |= {} if self.estimated is None else {"estimated_error": self.estimated}
        quality = {f"{after}quality": self.quality_words}
        return {word or "value": self.values, **errors, f"{after}low": self.low, f"{after}high": self.high, **quality}

    def to_pandas(self) -> pd.DataFrame:
        """A pandas frame with one row a cell."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingDependency("pandas", "to_pandas", "frames") from None
        return pd.DataFrame(self.columns())

    def to_polars(self) -> pl.DataFrame:
        """A polars frame with one row a cell."""
        try:
            import polars as pl
        except ImportError:
            raise MissingDependency("polars", "to_polars", "frames") from None
        columns = self.columns()
        texts = {n: pl.Series(n, own.tolist(), dtype=pl.String) for n, own in columns.items() if own.dtype == object}
        return pl.DataFrame(columns | texts)

    def to_arrow(self) -> pa.Table:
        """An Arrow table with one row a cell."""
        import pyarrow as pa

        columns = self.columns()
        return pa.table({n: pa.array(own, pa.string() if own.dtype == object else None) for n, own in columns.items()})

    def to_csv(self) -> str:
        """The same columns as CSV; empty where a number is not known. A seeded release's has a column `warning`.

        A label that a spreadsheet would compute, such as `=1+1`, has an apostrophe before it; `hc.read_csv` and
        whoever takes one leading apostrophe away have the label again.
        """
        columns = {name: own.tolist() for name, own in self.columns().items()}
        if not self.private:
            columns |= dict.fromkeys(beside(columns, "warning"), ["NOT PRIVATE"] * self.values.size)
        return csv_text([list(columns), *zip(*columns.values(), strict=True)])


def positions(
    names: Sequence[str], labels: Sequence[Sequence[str]], coded: Sequence[Sequence[str]], where: Where
) -> list[list[int]]:
    """The positions along each axis that a condition keeps, by labels or codes; every name and text is checked."""
    for name in where:
        if name not in names:
            fix = f"use one of: {', '.join(names) or 'none'}"
            raise QueryError("where", f"{name!r} is not an attribute of this table", fix)
    chosen = []
    for name, known, codes in zip(names, labels, coded, strict=True):
        if name not in where:
            chosen.append(list(range(len(known))))
            continue
        wanted = where[name]
        index = {text: at for texts in (codes, known) for at, text in enumerate(texts)}
        found = []
        for raw in [wanted] if isinstance(wanted, str) or not isinstance(wanted, Iterable) else wanted:
            label = label_of(f"where, {name}", raw, QueryError)
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
        while name.casefold() in used:
            name += "_"
        found.append(name)
    return found
