"""Selective runs for attributes that are asked for at several levels: measured at the finest, summed up to the others.

A run guesses tables from smaller ones, and it knows smaller tables as those of fewer attributes. So it is given tables
of one level for each attribute, the finest at which the workload asks for it: each table asked for becomes its *fine
table*, with the same attributes at these levels.

    w_fine = sum of the weights of the tables that are summed up from it       for the sum of all errors
             the largest of them                                               for the largest error

Sums of cells are off by no more than the cells are, all together: |sum_c e_c| <= sum_c |e_c|. So whatever a run makes
small, or measures in its last look, of a fine table bounds the tables that are summed up from it. All of these agree,
for they are sums of the same cells, and none is negative where no fine cell is.

An earlier edition is one of the fine tables: the run over them guesses from it, and holds what it uses.

What is measured and what it costs is what the run over the fine tables measures and costs; one row is in one cell of
each fine table, as it is in one of each asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.answers import Answers, OneByOne
from hushcube.designs.block import Block
from hushcube.designs.derived import DerivedDesign
from hushcube.designs.design import Design
from hushcube.designs.errors import Along, Errors
from hushcube.designs.request import Objective, Request
from hushcube.designs.selective.design import SelectedDesign, SelectiveDesign
from hushcube.errors import PlanError
from hushcube.lattice.nested import group_sums
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.edition import Edition
from hushcube.model.form import Form, GroupTable, members
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

_AGAIN: Final = "plan again"


@dataclass(frozen=True, eq=False)
class Finest:
    """A schema with levels, seen at the finest level of each attribute: positions there are numbers of chains."""

    schema: Schema

    @cached_property
    def chain_of(self) -> dict[int, int]:
        """The attribute that each position is a level of."""
        return {at: number for number, chain in enumerate(self.schema.chains) for at in chain}

    @cached_property
    def places(self) -> NDArray[np.int32]:
        """Where the finest level of each attribute stands."""
        return np.array([chain[-1] for chain in self.schema.chains], np.int32)

    def table(self, marginal: Marginal) -> Marginal:
        """The fine table that a table is summed up from."""
        return tuple(self.chain_of[position] for position in marginal)

    def groups(self, marginal: Marginal) -> list[Ints | None]:
        """For each axis of a table the group of each fine value; None where it is at the finest level."""
        fine = self.places[list(self.table(marginal))].tolist()
        pairs = zip(fine, marginal, strict=True)
        return [None if own == at else self.schema.coarsening(own, at) for own, at in pairs]

    def summed(self, marginal: Marginal, table: Floats) -> Floats:
        """A table from its fine one."""
        for axis, groups in enumerate(self.groups(marginal)):
            table = table if groups is None else group_sums(table, axis, groups)
        return table

    def expanded(self, marginal: Marginal, weights: Floats) -> Floats:
        """Weights of the cells of a table as weights of those of its fine one."""
        for axis, groups in enumerate(self.groups(marginal)):
            weights = weights if groups is None else weights.take(groups, axis=axis)
        return weights

    def form(self, marginal: Marginal) -> GroupTable:
        """A table as the sums over groups that it is."""
        own, fine = self.table(marginal), self.schema.finest
        groups = (
            np.arange(fine.sizes[at]) if each is None else each
            for at, each in zip(own, self.groups(marginal), strict=True)
        )
        carriers = tuple(fine.attributes[at] for at in own)
        return GroupTable(own, carriers, tuple(self.schema.attributes[at] for at in marginal), tuple(groups))

    def grouped(self, form: GroupTable) -> GroupTable:
        """A roll-up of a table as one of its fine table."""
        pairs = zip(form.groups, self.groups(form.marginal), strict=True)
        groups = tuple(own if fine is None else own[fine] for own, fine in pairs)
        own = self.table(form.marginal)
        return GroupTable(own, tuple(self.schema.finest.attributes[at] for at in own), form.seen_at, groups)

    def answers(self, fine: Answers) -> Answers:
        """Tables from fine ones."""
        sizes = self.schema.finest.sizes

        def table(marginal: Marginal) -> Floats:
            own = self.table(marginal)
            shape = tuple(sizes[at] for at in own)
            return self.summed(marginal, fine.tables(np.array([own], np.int32).reshape(1, len(own)), shape)[0])

        return OneByOne(table)

    def codes(self, people: NDArray[Any]) -> NDArray[Any]:
        """People with a value at each level, from those with a value at the finest one of each attribute."""
        columns = []
        for position in range(len(self.schema)):
            chain = self.chain_of[position]
            fine = int(self.places[chain])
            own = people[:, chain]
            columns.append(own if fine == position else self.schema.coarsening(fine, position)[own].astype(own.dtype))
        return np.stack(columns, axis=1)


def fine_request(request: Request, objective: Objective) -> Request:
    """What a run is asked for in place of tables at several levels."""
    asked, seen = request.as_asked.workload, Finest(request.schema)
    weights: dict[Marginal, float] = {}
    for marginal, weight in zip(asked.marginals, asked.weights, strict=True):
        own = seen.table(marginal)
        before = weights.get(own, 0.0)
        weights[own] = max(before, weight) if objective == "max" else before + weight
    schema = request.schema.finest
    words = tuple(f"{schema.describe(own)}={weight:g}" for own, weight in weights.items())
    workload = Workload(schema, words, tuple(weights), tuple(weights.values()))
    return Request(workload, request.privacy, objective=objective, effort=request.effort)


@dataclass(frozen=True, eq=False, repr=False)
class _RolledDesign(DerivedDesign):
    """A design over fine tables, whose sums are the tables asked for."""

    serves_levels = True
    recoveries = ("gls",)
    kind_below: ClassVar[type[SelectiveDesign] | type[SelectedDesign]]
    word: ClassVar[str]

    def __post_init__(self) -> None:
        if self.base is not self.kind_below or not self.request.schema.is_nested:
            raise PlanError("plan, under", "is nothing that is summed up over levels", _AGAIN)
        super().__post_init__()

    @cached_property
    def finest(self) -> Finest:
        """The schema at its finest levels."""
        return Finest(self.schema)

    def based(self, budgets: Floats, measured_by: Any = None) -> Design:
        """The design over the fine tables."""
        fields = dict(measured_by or self.measured_by)
        request = fine_request(self.request, fields.get("objective", "total"))
        return self.base(request, self.strategy, self.budget_rule, self.recovery, self.proof, budgets, **fields)

    def blocks(self) -> Iterator[Block]:
        """Those of the design below, in positions of the schema with its levels."""
        for block in self.underlying.blocks():
            yield replace(block, marginals=self.finest.places[block.marginals])

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """The fine tables that the design below needs."""
        return [self.finest.places[level] for level in self.underlying.counted]

    @property
    def edition(self) -> Edition | None:
        """That of the fine tables."""
        return self.underlying.edition

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.underlying.in_words}, each attribute at the finest level asked for"

    @property
    def note(self) -> str | None:
        """What must be known of the fine tables."""
        return self.underlying.note

    @cached_property
    def errors(self) -> Errors:
        """Those of sums of fine cells."""
        return _RolledErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Sums of the answers of the design below."""
        below, measured = self.averaged(measurement)
        return self.finest.answers(below.answers(measured))

    def averaged(self, measurement: Measurement) -> tuple[Design, Measurement]:
        """The design below, and the measurement as one of it."""
        return self.underlying, Measurement(self.underlying.digest, measurement.values, measurement.private)

    def specification(self) -> dict[str, Any]:
        """The JSON form."""
        return {"design": self.word, **super().specification()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """What is measured of the fine tables, from the JSON form."""
        if raw["under"]["design"] != {SelectiveDesign: "selective", SelectedDesign: "selected"}[cls.kind_below]:
            raise ValueError
        return {"base": cls.kind_below, "measured_by": cls.kind_below.from_specification(raw["under"], schema.finest)}


@dataclass(frozen=True, eq=False, repr=False)
class SelectiveLevels(_RolledDesign, kind="selective-levels"):
    """Before a run over the fine tables."""

    adapts = True
    kind_below = SelectiveDesign
    word = "selective-levels"


@dataclass(frozen=True, eq=False, repr=False)
class SelectedLevels(_RolledDesign, kind="selected-levels"):
    """What a run over the fine tables ended with."""

    kind_below = SelectedDesign
    word = "selected-levels"

    def blocks(self) -> Iterator[Block]:
        """None: what was measured was decided by a run that is over."""
        return self.underlying.blocks()


class _RolledErrors(Errors):
    """Of sums of fine cells: whatever the design below says of them."""

    design: _RolledDesign

    def __init__(self, design: _RolledDesign) -> None:
        super().__init__(design)
        self._under, self._finest = design.underlying.errors, design.finest

    def cell_variances(self, *, exact: bool) -> Floats:
        family = self.design.request.marginals
        totals = [self._under.form_total(self._finest.form(marginal), exact=exact) for marginal in family]
        return np.asarray(np.array(totals) / family.cells)

    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """Of roll-ups of a published table; the strategy has no others."""
        if not isinstance(form, GroupTable):
            raise TypeError(type(form).__name__)
        return self._under.form_variances(self._finest.grouped(form), exact=exact)

    def cell_variance_table(self, marginal: Marginal) -> Floats:
        return self._under.form_variances(self._finest.form(marginal), exact=True)

    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        return self._under.sum_variance(self._finest.table(marginal), self._finest.expanded(marginal, weights))

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:
        groups = self._finest.groups(marginal)
        sums: list[Floats | None] = []
        partners: list[Floats | None] = []
        for own, each, total in zip(groups, rows, totals, strict=True):
            partners.append(total if own is None or total is None else total[own])
            if own is None or total is not None:
                sums.append(each)
            else:
                sums.append(members(own) if each is None else each[:, own])
        found = self._under.covariances(self._finest.table(marginal), sums, partners)
        for axis, (own, total) in enumerate(zip(groups, totals, strict=True)):
            if own is not None and total is not None:
                found = group_sums(found, axis, own)
        return found
