"""A release: tables with error bars, any roll-up, any slice, and an interval for any sum of cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_face import FormsFromCells, PublishedFace
from hushcube.bundle.published_table import Table, Where, positions
from hushcube.bundle.roll_up import attributes_of, moved, rolled_up
from hushcube.bundle.stamp import mark
from hushcube.bundle.tables import Values
from hushcube.designs import DerivedDesign, LatticeDesign, margins
from hushcube.designs import errors as error
from hushcube.designs.design import Design
from hushcube.designs.recovery import recover
from hushcube.errors import QueryError
from hushcube.faces.value import UNBIASED
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal, position_rows
from hushcube.model.measurement import Measurement
from hushcube.model.schema import Schema

Floats = NDArray[np.float64]


class Tables(Values, Protocol):
    """Where the unbiased values come from: memory or a folder."""

    def measurement(self) -> Measurement:
        """The noisy measurements behind them."""


class RecoveredTables:
    """Values computed from a measurement when asked for."""

    def __init__(self, plan: Design, measurement: Measurement) -> None:
        self._answers = recover(plan, measurement)
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


@dataclass(frozen=True)
class Estimate:
    """A number with its standard error and the half-width of its 95% interval."""

    value: float
    std_error: float
    margin: float

    @property
    def low(self) -> float:
        """The lower end of the 95% interval."""
        return self.value - self.margin

    @property
    def high(self) -> float:
        """The upper end of the 95% interval."""
        return self.value + self.margin


@dataclass(frozen=True, eq=False, repr=False)
class Release:
    """What was published: `table("age*sex")` gives a table, `estimate(...)` a sum of cells with its interval."""

    plan: Design
    source: Tables
    private: bool
    faces: Mapping[str, PublishedFace] = field(default_factory=dict)
    """Other faces of the same measurement, by their names."""

    def __repr__(self) -> str:
        faces = "".join(f" and {name}" for name in self.faces)
        return f"Release({self.schema.name!r}: {len(self):,} tables{faces}, {self.plan.privacy}{mark(self.private)})"

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.plan.schema

    @classmethod
    def of(cls, plan: Design, measurement: Measurement) -> Release:
        """The release that a measurement allows: its tables are recovered when asked for."""
        return cls(plan, RecoveredTables(plan, measurement), measurement.private)

    def with_face(self, face: PublishedFace) -> Release:
        """The release with one more face; one of the same name is replaced."""
        return replace(self, faces={**self.faces, face.name: face})

    def face(self, name: str) -> PublishedFace:
        """A face by its name."""
        if name not in self.faces:
            known = ", ".join([UNBIASED, *self.faces])
            raise QueryError(
                "face", f"this release has no face {name!r}", f"use one of: {known}; `hushcube recover` adds others"
            )
        return self.faces[name]

    def __iter__(self) -> Iterator[str]:
        """The published tables as workload words."""
        workload = self.plan.workload
        return chain(map(self.schema.describe, workload.published), (form.word for form in workload.forms))

    def __len__(self) -> int:
        return len(self.plan.workload.published) + len(self.plan.workload.forms)

    @property
    def cells(self) -> int:
        """How many numbers are published."""
        workload = self.plan.workload
        return sum(map(self.schema.cells, workload.published)) + sum(form.cells for form in workload.forms)

    def table(self, marginal: str | Sequence[str], where: Where | None = None, *, face: str = UNBIASED) -> Table:
        """A published marginal, or the roll-up of one, or the slice of either that `where` keeps.

        `marginal` is a word such as `age*sex`, or a sequence of names; `total`, or an empty sequence, is the total.
        A form that was asked for is named by its word, such as `prefix(age)*sex`. Attributes come in the order asked.
        The standard errors and margins are those of the unbiased estimates, also beside the values of another face.
        """
        source = self.source if face == UNBIASED else self.face(face).source
        form = self.plan.workload.form(marginal) if isinstance(marginal, str) else None
        if form is not None:
            table, asked = self._form_table(form, source), _in_order(form.axes, str(marginal))
        else:
            table = self._cells(marginal, source)
            asked = tuple(attribute.name for attribute in attributes_of(self.schema, self._names(marginal)))
        told = replace(table, face=face, private=self.private).ordered(asked)
        return told if where is None else told.slice(where)

    def __getitem__(self, marginal: str | Sequence[str]) -> Table:
        return self.table(marginal)

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

    def estimate(self, marginal: str | Sequence[str], where: Where | None = None) -> Estimate:
        """The sum of the cells that `where` keeps (all of them by default), with its exact standard error."""
        if isinstance(marginal, str) and self.plan.workload.form(marginal) is not None:
            raise QueryError(
                "marginal",
                f"{marginal!r} holds sums already",
                "name a table of cells, such as age*sex, and what to add up",
            )
        form = rolled_up(self.schema, attributes_of(self.schema, self._names(marginal)), self.plan.workload.published)
        published = form.marginal
        chosen = iter(positions(form.axes, form.labels, where or {}))
        weights = np.ones(())
        for groups, level in zip(form.groups, form.seen_at, strict=True):
            kept = np.ones(len(groups)) if level is None else np.isin(groups, next(chosen)).astype(np.float64)
            weights = np.multiply.outer(weights, kept)
        return Estimate(
            float((weights * self._values(published, self.source)).sum()),
            math.sqrt(error.sum_variance(self.plan, published, weights)),
            margins.sum_margin(self.plan, published, weights),
        )

    def roll_up(self, marginal: str | Sequence[str], attribute: str) -> Table:
        """A table with one attribute a level coarser; above its coarsest level it is summed out."""
        return self.table(moved(self.schema, self._names(marginal), attribute, 1))

    def drill_down(self, marginal: str | Sequence[str], attribute: str) -> Table:
        """A table with one attribute a level finer, as far as that is published."""
        return self.table(moved(self.schema, self._names(marginal), attribute, -1))

    def _rolled_up(self, marginal: str | Sequence[str], source: Values) -> Table:
        """Sums over groups of the cells of a published table, with their exact errors."""
        form = rolled_up(self.schema, attributes_of(self.schema, self._names(marginal)), self.plan.workload.published)
        deviations = np.sqrt(error.form_variances(self.plan, form, exact=True))
        values = form.evaluate(self._values(form.marginal, source))
        return Table.of(self.schema, form, values, deviations, margins.any_margin(self.plan, deviations))

    def _form_table(self, form: Form, source: Values) -> Table:
        deviations = np.sqrt(error.form_variances(self.plan, form, exact=True))
        widths = margins.any_margin(self.plan, deviations)
        return Table.of(self.schema, form, source.form(form), deviations, widths)

    def _values(self, published: Marginal, source: Values) -> Floats:
        rows = position_rows(published)
        return np.asarray(source.tables(rows, self.schema.shape(published))[0], dtype=np.float64)

    def _errors(self, wanted: Marginal, published: Marginal) -> tuple[Floats, Floats]:
        """Variances and margins of the cells of a table; numbers of shape () where all cells are alike."""
        plan = self.plan
        if wanted == published:
            variances = error.cell_variance_table(plan, wanted)
            return variances, margins.cell_margin(plan, wanted, np.sqrt(variances))
        under = plan.underlying if isinstance(plan, DerivedDesign) else plan
        if not isinstance(under, LatticeDesign):
            variances = error.cell_variance_table(plan, wanted)
            return variances, margins.any_margin(plan, np.sqrt(variances))
        # a roll-up: one of its cells sums a slab of the published table
        slab = np.zeros(self.schema.shape(published))
        slab[tuple(0 if i in wanted else slice(None) for i in published)] = 1.0
        margin = margins.sum_margin(plan, published, slab)
        if not plan.is_consistent:
            return np.asarray(error.sum_variance(plan, published, slab)), np.asarray(margin)
        variances = error.cell_variance_table(plan, wanted)
        first = math.sqrt(error.sum_variance(plan, published, slab))
        return variances, np.sqrt(variances) * (margin / first if first else 0.0)

    def _names(self, marginal: str | Sequence[str]) -> list[str]:
        names = [name.strip() for name in (marginal.split("*") if isinstance(marginal, str) else marginal)]
        return [] if names == ["total"] and "total" not in self.schema.names else names

    def _marginal(self, marginal: str | Sequence[str]) -> Marginal | None:
        """What is asked for as a marginal of the plan; None where the plan does not see these levels."""
        names = [attribute.name for attribute in attributes_of(self.schema, self._names(marginal))]
        return self.schema.marginal(names) if set(names) <= set(self.schema.names) else None

    def _contains(self, wanted: Marginal) -> bool:
        return any(set(wanted) <= set(published) for published in self.plan.workload.published)

    @cached_property
    def _published_set(self) -> frozenset[Marginal]:
        return frozenset(self.plan.workload.published)

    def _published(self, wanted: Marginal) -> Marginal:
        """The published table that answers a marginal: itself, or the smallest one that contains it."""
        published = self.plan.workload.published
        if wanted in self._published_set:
            return wanted
        containing = (m for m in published if set(wanted) <= set(m))
        return min(containing, key=lambda m: (self.schema.cells(m), m))


def _in_order(axes: Sequence[str], word: str) -> tuple[str, ...]:
    """The axes of a form in the order in which a word names them; a matrix of queries names none."""
    parts = ["".join(part.split()) for part in word.split("*")]
    places = {axis: "".join(axis.split()) for axis in axes}
    return tuple(sorted(axes, key=lambda axis: parts.index(places[axis]) if places[axis] in parts else 0))
