"""Designs that measure tables at nested levels of attributes, and the tables that come back.

Plain tables are measured, as in the marginal basis of a LatticeDesign, and a row of data moves one cell of each: the
cost, the counting and the noise are those of marginals. The tables' cells overlap in other ways than marginals do,
so that recovery and errors are a kind of their own; nothing that relies on residual spaces may take it for a lattice.

Least squares works on the coordinates of the levels:

    theta_b = G_b^-1 sum_i u_i (x)_a S_{l_i(a)}' y_i  on block b,     x = (x)_a S_{l(a)} theta     [lattice/nested.py]

Every table comes from the same coordinates, so all of them agree, whatever their levels. A public total is no estimate:
its coordinate is set, and what it says about the others is moved to the right-hand side. Without recovery each table is
summed from one measured table, and tables may disagree.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, Final

import numpy as np

from hushcube.designs.answers import Answers, OneByOne
from hushcube.designs.lattice.design import FamilyDesign
from hushcube.designs.levels.errors import LevelErrors
from hushcube.designs.levels.nesting import Frame, Nesting, nesting
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import MARGINAL, Basis
from hushcube.lattice.nested import group_sums
from hushcube.lattice.nested_blocks import Key
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.noise import Measurement

TOO_COUPLED: Final = "the levels of the tables couple in too many ways to be combined"


@dataclass(frozen=True, eq=False, repr=False)
class LevelDesign(FamilyDesign, kind="levels"):
    """Tables at some levels of some attributes. Two rows may differ at the coarsest level of every one of them."""

    serves_levels = True
    basis: Basis = field(default=MARGINAL, init=False)

    def __post_init__(self) -> None:
        if any(len({chain for chain, _ in self.nesting.levels(m)}) < len(m) for m in self.measured):
            raise ValueError("a table has an attribute at two levels")
        super().__post_init__()
        if self.recovery != "none":
            self.frame  # noqa: B018 - refuses what could not be combined

    @cached_property
    def nesting(self) -> Nesting:
        """The levels of the schema."""
        return nesting(self.schema)

    @cached_property
    def frame(self) -> Frame:
        """The coordinates in which the measured tables are combined."""
        found = Frame.of(self.nesting, list(self.measured))
        if found is None:
            raise NotApplicable(self.strategy, TOO_COUPLED)
        return found

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} table(s) at nested levels"

    @cached_property
    def errors(self) -> LevelErrors:
        """Predicted errors."""
        return LevelErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the coordinates of the levels, or one measured table for each."""
        if self.recovery == "none":
            return OneByOne(partial(_from_source, self, dict(_measured(self, measurement))))
        frame, theta = self.frame, _coordinates(self, measurement)
        return OneByOne(lambda table: frame.summed(frame.blocks.table(theta, frame.table(table)), table))

    def is_answerable(self) -> bool:
        """Whether some measured table holds each table that is needed."""
        return self.nesting.all_held(self.request.marginals, self.measured)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"design": "levels", **super().specification()}


def _measured(design: LevelDesign, measurement: Measurement) -> Iterator[tuple[int, Floats]]:
    """The number of each measured table, and its noisy cells."""
    for batch, values in zip(design.measured.batches, measurement.values, strict=True):
        for number, table in zip(batch.ids.tolist(), values, strict=True):
            yield number, table.astype(np.float64)


def _from_source(design: LevelDesign, measured: dict[int, Floats], marginal: Marginal) -> Floats:
    """Sums of cells of one measured table."""
    number = design.errors.source(marginal)
    values, axis = measured[number], 0
    for groups in design.nesting.groups(list(design.measured)[number], marginal):
        if groups is None:
            values = np.asarray(values.sum(axis=axis))
        else:
            values, axis = group_sums(values, axis, groups), axis + 1
    return values


def _coordinates(design: LevelDesign, measurement: Measurement) -> dict[Key, Floats]:
    """theta of each block: (copies, coordinates)."""
    blocks, errors = design.frame.blocks, design.errors
    weights = errors.recovery_weights()
    levels = [design.frame.table(m) for m in design.measured]
    G, known = errors.information(weights), 0.0
    sides: dict[Key, Floats] = {}
    for number, values in _measured(design, measurement):
        if not np.isfinite(design.budgets[number]):
            known = float(values.sum())
        for key, said in blocks.collected(values, levels[number]):
            if key not in sides:
                sides[key] = np.zeros((len(said), blocks.size(key)))
            sides[key][:, blocks.positions(key, levels[number]).ravel()] += weights[number] * said
    V = blocks.inverse(G, public=design.publishes_total)
    if design.publishes_total:
        sides[()] -= known * blocks.matrix(G, ())[0]
    result = {key: side @ blocks.matrix(V, key) for key, side in sides.items()}
    if design.publishes_total:
        result[()][0, 0] = known
    return result
