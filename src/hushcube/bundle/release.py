"""A release: counts, sums and averages with error bars, roll-ups, slices, and an interval for any sum of cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Final

import numpy as np

from hushcube.bundle.comparing import Compared, compared, covariance
from hushcube.bundle.crossing import Cross, cross
from hushcube.bundle.estimate import Estimate
from hushcube.bundle.part import Part, PublishedFace, RecoveredTables, Tables, moved
from hushcube.bundle.published_table import Table, Where
from hushcube.bundle.receipt import Receipt
from hushcube.bundle.sharing import Of, shares
from hushcube.bundle.statement import Stamped, mark
from hushcube.bundle.tables import combined
from hushcube.bundle.writing import write
from hushcube.errors import QueryError
from hushcube.faces.value import UNBIASED
from hushcube.model.noise import Measurement
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Quantity
from hushcube.planning.plan import Plan
from hushcube.planning.summary import table_errors
from hushcube.progress import Progress
from hushcube.shown import Column, Grid, Page, Remark, number

_MORE: Final = "`list(release)` has all of them"


@dataclass(frozen=True, eq=False, repr=False)
class Release(Stamped):
    """What was published: `table("age*sex")` gives a table, `estimate(...)` a sum of cells with its interval."""

    plan: Plan
    parts: Mapping[str, Part]
    """The counts, and the whole numbers that each measure's values are summed as."""
    faces: Mapping[str, PublishedFace] = field(default_factory=dict)
    """Other faces of the counts, by their names."""
    receipt: Receipt | None = None
    """What was charged for it, if it was charged to an account of a ledger."""

    def __repr__(self) -> str:
        faces = "".join(f" and {name}" for name in self.faces)
        words = f" of {', '.join(map(str, self.plan.quantities))}" if self.plan.asked else ""
        guarantee = f"{self.plan.privacy}{mark(self.private)}"
        return f"Release({self.schema.name!r}: {len(self):,} tables{words}{faces}, {guarantee})"

    def page(self, rows: int = 60, faces: Sequence[str] | None = None, more: str = _MORE) -> Page:
        """The published tables with the standard errors of their counts; of every face, unless some are named."""
        shown = [UNBIASED, *self.faces] if faces is None else list(faces)
        words = f" with {', '.join(map(str, self.plan.quantities))}" if self.plan.asked else ""
        error = "standard error of a count" if words else "standard error"
        columns = [Column("table"), *[Column("face")] * (len(shown) > 1), Column("cells", right=True)]
        listed = [(told, face) for face in shown for told in table_errors(self.plan, published=True)]
        cells = [
            [told.word, *[face] * (len(shown) > 1), f"{told.cells:,}", number(told.std_error)]
            for told, face in listed[:rows]
        ]
        title = f"{self.schema.shown_name}: {len(self):,} tables{words}, {self.plan.privacy}"
        grid = Grid(title, [*columns, Column(error, right=True)], cells)
        rest = [Remark(f"... and {len(listed) - rows:,} more tables: {more}")] if len(listed) > rows else []
        return Page((grid, *rest, *([] if self.receipt is None else [str(self.receipt)])))

    @classmethod
    def of(cls, plan: Plan, measurements: Mapping[str, Measurement], receipt: Receipt | None = None) -> Release:
        """The release that measurements of a plan's parts allow: its tables are recovered when asked for."""
        every = ((name, design, measurements[name]) for name, design in plan.designs.items())
        parts = {name: Part(design, RecoveredTables(design, m), m.private) for name, design, m in every}
        return cls(plan, parts, receipt=receipt)

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.plan.schema

    @property
    def private(self) -> bool:
        """Whether all noise was real."""
        return all(part.private for part in self.parts.values())

    @property
    def source(self) -> Tables:
        """Where the counts come from."""
        return self.parts[COUNT].source

    def with_face(self, face: PublishedFace) -> Release:
        """The release with one more face; one of the same name is replaced."""
        return replace(self, faces={**self.faces, face.name: face})

    def face(self, name: str) -> PublishedFace:
        """A face by its name."""
        if name not in self.faces:
            fix = f"use one of: {', '.join([UNBIASED, *self.faces])}; `hushcube recover` adds others"
            raise QueryError("face", f"this release has no face {name!r}", fix)
        return self.faces[name]

    def __iter__(self) -> Iterator[str]:
        """The published tables as workload words."""
        workload = self.plan.workload
        return chain(map(self.schema.describe, workload.published), (form.word for form in workload.forms))

    def __len__(self) -> int:
        return len(self.plan.workload.published) + len(self.plan.workload.forms)

    @property
    def cells(self) -> int:
        """How many cells all tables have."""
        workload = self.plan.workload
        return sum(map(self.schema.cells, workload.published)) + sum(form.cells for form in workload.forms)

    def table(
        self, marginal: str | Sequence[str], what: str = COUNT, where: Where | None = None, *, face: str = UNBIASED
    ) -> Table:
        """A published marginal, or the roll-up of one, or the slice of either that `where` keeps.

        `marginal` is a word such as `age*sex`, or a sequence of names; `total`, or an empty sequence, is the total.
        A form that was asked for is named by its word, such as `prefix(age)*sex`. Attributes come in the order asked.
        `what` is `count`, or a measure's `sum(days)` or `avg(days)`. The standard errors and margins are those of the
        unbiased estimates, also beside the values of another face; its published tables may have `estimated` errors.
        """
        quantity = self.quantity(what, face)
        counts = self.parts[COUNT].table(marginal, None if face == UNBIASED else self.face(face).source)
        own = counts if quantity.kind == "count" else self.parts[quantity.part].table(marginal)
        estimates = ((table.values, table.std_errors, table.margins) for table in (counts, own))
        values, errors, margins, ends = combined(quantity, self.schema, *estimates)
        errors, margins = (np.broadcast_to(numbers, values.shape) for numbers in (errors, margins))
        told = replace(own, schema=self.schema, values=values, std_errors=errors, margins=margins, ends=ends)
        told = replace(told, what=str(quantity), face=face, private=self.private)
        estimated = None if face == UNBIASED else self.face(face).estimated
        if estimated is not None and self.parts[COUNT].is_published(marginal):
            told = replace(told, estimated=self.parts[COUNT].table(marginal, estimated).values)
        return told if where is None else told.slice(where)

    def __getitem__(self, marginal: str | Sequence[str]) -> Table:
        """All numbers of a table's cells: the counts, and beside them the sums and averages asked for."""
        others = tuple(self.table(marginal, str(quantity)) for quantity in self.plan.asked)
        return replace(self.table(marginal), others=others)

    def quantity(self, what: str, face: str = UNBIASED) -> Quantity:
        """What a word such as `avg(days)` means, if it is published."""
        if not isinstance(what, str):
            raise QueryError("what", "is not a word such as count or avg(days)", "give a condition as `where={...}`")
        quantity = Quantity.parse(what, self.schema)
        if quantity.part not in self.parts:
            known = ", ".join(["count", *(f"sum({n}), avg({n})" for n in self.plan.sums)])
            raise QueryError("what", f"{quantity} is not published", f"use one of: {known}")
        if quantity.kind != "count" and face != UNBIASED:
            told = f"{quantity} has no other face than the unbiased one: the people of a face have no {quantity.part}"
            raise QueryError("face", told, "leave the face out, or ask for the count")
        return quantity

    def estimate(self, marginal: str | Sequence[str], where: Where | None = None, what: str = COUNT) -> Estimate:
        """The sum of the cells that `where` keeps (all of them by default), with its exact standard error.

        Of `sum(days)` likewise; `avg(days)` is the average over all of these cells, with an interval alone: its value
        and interval are NaN where their count is no more than noise.
        """
        quantity = self.quantity(what)
        counts = self.parts[COUNT].weighted(marginal, where)
        own = counts if quantity.kind == "count" else self.parts[quantity.part].weighted(marginal, where)
        value, std_error, margin, ends = combined(quantity, self.schema, counts, own)
        low, high = ends or (value - margin, value + margin)
        return Estimate(float(value), float(std_error), float(low), float(high))

    def covariance(
        self,
        marginal: str | Sequence[str],
        where_a: Where | None = None,
        where_b: Where | None = None,
        what: str = COUNT,
    ) -> float:
        """The exact covariance of two sums of cells of one table, each of those that its condition keeps."""
        return covariance(self.parts, self.schema, self.quantity(what), marginal, (where_a, where_b))

    def compare(self, marginal: str | Sequence[str], where: Where | None, versus: Where, what: str = COUNT) -> Compared:
        """Two groups of cells: their difference, their ratio, and the share of the first in both together.

        The second group is that of `versus`, and as in `where` along attributes that `versus` does not name: with
        `where={"age": "30", "sex": "F"}` and `versus={"sex": "M"}`, women of 30 are compared with men of 30.
        """
        return compared(self.parts, self.schema, self.quantity(what), marginal, (where or {}, versus))

    def shares(
        self,
        marginal: str | Sequence[str],
        of: Of = "row",
        what: str = COUNT,
        where: Where | None = None,
        *,
        columns: str | None = None,
    ) -> Table:
        """The share of every cell in its row, its column or all cells that `where` keeps, in percent, with intervals.

        The last attribute stands in the columns, unless `columns` names another; all others stand in the rows.
        """
        return shares(self.parts, self.schema, self.quantity(what), marginal, of, where or {}, columns)

    def cross(
        self,
        marginal: str | Sequence[str],
        what: str = COUNT,
        where: Where | None = None,
        *,
        columns: str | None = None,
        share: Of | None = None,
        face: str = UNBIASED,
    ) -> Cross:
        """A cross-table: the last attribute, or `columns`, in the columns, the others in rows, with totals.

        With `share` its cells are percentages of these totals.
        """
        return cross(self, marginal, what, where or {}, columns, share, face)

    def roll_up(self, marginal: str | Sequence[str], attribute: str, what: str = COUNT) -> Table:
        """A table with one attribute a level coarser; above its coarsest level it is summed out."""
        return self.table(moved(self.schema, marginal, attribute, 1), what)

    def drill_down(self, marginal: str | Sequence[str], attribute: str, what: str = COUNT) -> Table:
        """A table with one attribute a level finer, as far as that is published."""
        return self.table(moved(self.schema, marginal, attribute, -1), what)

    def save(self, folder: str | Path, *, progress: Progress | None = None) -> None:
        """Write the release to a new folder."""
        write(self, Path(folder), progress=progress)
