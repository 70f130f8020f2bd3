"""A part of a release: the counts, or the whole numbers that a measure's values are summed as, with their errors.

Up and down the levels: tables that were not asked for, as sums of groups of cells of one that was published.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_face import FormsFromCells
from hushcube.bundle.published_table import Table, Where, positions
from hushcube.bundle.tables import Values
from hushcube.designs.design import Design
from hushcube.errors import QueryError, WorkloadError
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.attribute import Attribute, base_of, coarsening, depth_of, is_finer
from hushcube.model.form import Form, GroupTable
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema


class Tables(Values, Protocol):
    """Where the unbiased values come from: memory or a folder."""

    def measurement(self) -> Measurement:
        """The noisy measurements behind them."""


class RecoveredTables:
    """Values computed from a measurement when asked for."""

    def __init__(self, plan: Design, measurement: Measurement) -> None:
        self._answers = plan.answers(measurement)
        self._measurement = measurement

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The values of published marginals of one shape."""
        return self._answers.tables(rows, shape)

    def form(self, form: Form) -> Floats:
        """The values of a published form."""
        return FormsFromCells(self._answers).form(form)

    def measurement(self) -> Measurement:
        """The measurement itself."""
        return self._measurement


@dataclass(frozen=True, eq=False)
class Part:
    """What was measured for one quantity, and where its values come from."""

    design: Design
    source: Tables
    private: bool

    @classmethod
    def of(cls, design: Design, measurement: Measurement) -> Part:
        """What a measurement allows: its tables are recovered when asked for."""
        return cls(design, RecoveredTables(design, measurement), measurement.private)

    @property
    def schema(self) -> Schema:
        """The attributes as the workload sees them."""
        return self.design.schema

    def table(self, marginal: str | Sequence[str], source: Values | None = None) -> Table:
        """A published marginal or form, or a roll-up; its values may be another `source`'s. Its axes are as asked."""
        values = self.source if source is None else source
        form = self.design.workload.form(marginal) if isinstance(marginal, str) else None
        if form is not None:
            return self._form_table(form, values).ordered(_in_order(form.axes, str(marginal)))
        asked = attributes_of(self.schema, names_of(self.schema, marginal))
        return self._cells(marginal, values).ordered([attribute.name for attribute in asked])

    def weighted(self, marginal: str | Sequence[str], where: Where | None = None) -> tuple[float, float, float]:
        """The sum of the cells that `where` keeps, its standard error and the half-width of its 95% interval."""
        if isinstance(marginal, str) and self.design.workload.form(marginal) is not None:
            raise QueryError(
                "marginal",
                f"{marginal!r} holds sums already",
                "name a table of cells, such as age*sex, and what to add up",
            )
        form = rolled_up(
            self.schema, attributes_of(self.schema, names_of(self.schema, marginal)), self.design.workload.published
        )
        published = form.marginal
        chosen = iter(positions(form.axes, form.labels, where or {}))
        weights = np.ones(())
        for groups, level in zip(form.groups, form.seen_at, strict=True):
            kept = np.ones(len(groups)) if level is None else np.isin(groups, next(chosen)).astype(np.float64)
            weights = np.multiply.outer(weights, kept)
        return (
            float((weights * self._values(published, self.source)).sum()),
            math.sqrt(self.design.errors.sum_variance(published, weights)),
            self.design.errors.sum_margin(published, weights),
        )

    def _cells(self, marginal: str | Sequence[str], source: Values) -> Table:
        wanted = self._marginal(marginal)
        if wanted is None or not self._contains(wanted):
            return self._rolled_up(marginal, source)
        published = self._published(wanted)
        values = self._values(published, source)
        if published != wanted:
            values = values.sum(axis=tuple(axis for axis, i in enumerate(published) if i not in wanted))
        variances, widths = self._errors(wanted, published)
        return Table.of(self.schema, wanted, values, np.sqrt(variances), widths)

    def _rolled_up(self, marginal: str | Sequence[str], source: Values) -> Table:
        """Sums over groups of the cells of a published table, with their exact errors."""
        form = rolled_up(
            self.schema, attributes_of(self.schema, names_of(self.schema, marginal)), self.design.workload.published
        )
        deviations = np.sqrt(self.design.errors.form_variances(form, exact=True))
        values = form.evaluate(self._values(form.marginal, source))
        return Table.of(self.schema, form, values, deviations, self.design.errors.any_margin(deviations))

    def _form_table(self, form: Form, source: Values) -> Table:
        deviations = np.sqrt(self.design.errors.form_variances(form, exact=True))
        widths = self.design.errors.any_margin(deviations)
        return Table.of(self.schema, form, source.form(form), deviations, widths)

    def _values(self, published: Marginal, source: Values) -> Floats:
        rows = position_rows(published)
        return np.asarray(source.tables(rows, self.schema.shape(published))[0], dtype=np.float64)

    def _errors(self, wanted: Marginal, published: Marginal) -> tuple[Floats, Floats]:
        """Variances and margins of the cells of a table; numbers of shape () where all cells are alike."""
        errors = self.design.errors
        if wanted != published:
            return errors.roll_up(wanted, published)
        variances = errors.cell_variance_table(wanted)
        return variances, errors.cell_margin(wanted, np.sqrt(variances))

    def _marginal(self, marginal: str | Sequence[str]) -> Marginal | None:
        """What is asked for as a marginal of the plan; None where the plan does not see these levels."""
        names = [attribute.name for attribute in attributes_of(self.schema, names_of(self.schema, marginal))]
        return self.schema.marginal(names) if set(names) <= set(self.schema.names) else None

    def _contains(self, wanted: Marginal) -> bool:
        return any(set(wanted) <= set(published) for published in self.design.workload.published)

    @cached_property
    def _published_set(self) -> frozenset[Marginal]:
        return frozenset(self.design.workload.published)

    def _published(self, wanted: Marginal) -> Marginal:
        """The published table that answers a marginal: itself, or the smallest one that contains it."""
        published = self.design.workload.published
        if wanted in self._published_set:
            return wanted
        containing = (m for m in published if set(wanted) <= set(m))
        return min(containing, key=lambda m: (self.schema.cells(m), m))


def _in_order(axes: Sequence[str], word: str) -> tuple[str, ...]:
    """The axes of a form in the order in which a word names them; a matrix of queries names none."""
    parts = ["".join(part.split()) for part in word.split("*")]
    places = {axis: "".join(axis.split()) for axis in axes}
    return tuple(sorted(axes, key=lambda axis: parts.index(places[axis]) if places[axis] in parts else 0))


def names_of(schema: Schema, marginal: str | Sequence[str]) -> list[str]:
    """The names in a word such as `age*sex`, or in a sequence; `total` has none."""
    names = [name.strip() for name in (marginal.split("*") if isinstance(marginal, str) else marginal)]
    return [] if names == ["total"] and "total" not in schema.names else names


def attributes_of(schema: Schema, names: Sequence[str]) -> tuple[Attribute, ...]:
    """What a reader asks for: attributes, each once and at any of its levels, in the order asked."""
    try:
        found = [schema.seen(name) for name in names]
    except WorkloadError as problem:
        raise QueryError("marginal", problem.problem, problem.fix) from None
    if len({base_of(attribute).name for attribute in found}) != len(found):
        raise QueryError("marginal", f"{'*'.join(names)} names an attribute twice", "name each attribute once")
    return tuple(found)


def rolled_up(schema: Schema, wanted: Sequence[Attribute], published: Iterable[Marginal]) -> GroupTable:
    """The smallest published table that knows all wanted attributes at their levels or finer, and its groups."""
    words = "*".join(attribute.name for attribute in wanted) or "total"
    able = [m for m in published if all(any(is_finer(schema.attributes[i], w) for i in m) for w in wanted)]
    if not able:
        raise QueryError(
            "marginal",
            f"{words} is not published, nor is any table that contains it",
            "ask for one of the published marginals (`hushcube show` lists them), or a subset or coarser level of one",
        )
    marginal = min(able, key=lambda m: (schema.cells(m), m))
    attributes = tuple(schema.attributes[i] for i in marginal)
    seen_at = tuple(next((w for w in wanted if is_finer(a, w)), None) for a in attributes)
    groups = tuple(
        np.zeros(a.size, np.int64) if w is None else coarsening(a, w) for a, w in zip(attributes, seen_at, strict=True)
    )
    return GroupTable(marginal, attributes, seen_at, groups)


def moved(schema: Schema, names: Sequence[str], name: str, step: int) -> list[str]:
    """The names of a table with one attribute a level coarser (step 1) or finer (-1).

    Above its coarsest level an attribute is summed out; below that, one that was summed out comes back.
    """
    attributes = attributes_of(schema, names)
    declared = schema.seen(name.partition("@")[0])
    present = next((a for a in attributes if base_of(a) == declared), None)
    top = len(declared.grouped) + 1  # summed out
    depth = (top if present is None else depth_of(present)) + step
    if not 0 <= depth <= top:
        problem = "is at its finest level already" if step < 0 else "is summed out already"
        raise QueryError("attribute", f"{declared.name!r} {problem}", "ask for another attribute")
    if depth == top:
        return [a.name for a in attributes if a is not present]
    changed = declared.name if depth == 0 else f"{declared.name}@{declared.grouped[depth - 1].name}"
    if present is None:  # it comes back where the schema has it
        later = schema.declared.names[schema.declared.position(declared.name) + 1 :]
        place = next((at for at, a in enumerate(attributes) if base_of(a).name in later), len(attributes))
        return [a.name for a in attributes[:place]] + [changed] + [a.name for a in attributes[place:]]
    return [changed if a is present else a.name for a in attributes]
