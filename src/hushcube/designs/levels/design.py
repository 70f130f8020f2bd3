"""Plans that measure tables at nested levels of attributes.                                 [lattice/nested_blocks.py]

Plain tables are measured, as in the marginal basis of a LatticeDesign, and a row of data moves one cell of each: the
cost, the counting and the noise are those of marginals. The tables' cells overlap in other ways than marginals do,
so that recovery and errors are a kind of their own; nothing that relies on residual spaces may take it for a lattice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import family_cost as cost
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.lattice.design import LatticeDesign, blocks_of, smoothing
from hushcube.designs.levels.answers import LevelAnswers, SingleSources
from hushcube.designs.levels.errors import LevelErrors
from hushcube.designs.levels.nesting import Frame, Nesting, nesting
from hushcube.errors import NotApplicable
from hushcube.lattice.basis import MARGINAL, Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema

TOO_COUPLED: Final = "the levels of the tables couple in too many ways to be combined"


@dataclass(frozen=True, eq=False, repr=False)
class LevelDesign(Design, kind="levels"):
    """Tables at some levels of some attributes, each measured with a budget."""

    serves_levels = True
    measured: Family

    def __post_init__(self) -> None:
        if any(len({chain for chain, _ in self.nesting.levels(m)}) < len(m) for m in self.measured):
            raise ValueError("a table has an attribute at two levels")
        super().__post_init__()
        if self.recovery != "none":
            self.frame  # noqa: B018 - refuses what could not be combined

    @property
    def basis(self) -> Basis:
        """Cells are measured, one number each."""
        return MARGINAL

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
    def groups(self) -> int:
        """One for each measured table."""
        return len(self.measured)

    @property
    def counted_tables(self) -> int | None:
        """All that is measured."""
        return len(self.measured)

    def blocks(self) -> Iterator[Block]:
        """Batches of tables of equal shape."""
        return blocks_of(MARGINAL, self.measured, self.budgets)

    @cached_property
    def counted(self) -> Sequence[NDArray[np.int32]]:
        """The measured tables."""
        return self.measured.levels

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """One array for each batch of tables of equal shape."""
        return [(len(batch.ids), *batch.shape) for batch in self.measured.batches]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{len(self.measured):,} table(s) at nested levels"

    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row: two rows may differ at the coarsest level of every attribute."""
        return cost.person_row_cost(MARGINAL, self.measured, budgets, self.privacy)

    def proof_variance(self) -> Floats:
        """What the proof by smoothing adds."""
        return smoothing(MARGINAL, self.measured, self.privacy)

    @cached_property
    def errors(self) -> LevelErrors:
        """Predicted errors."""
        return LevelErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the coordinates of the levels, or one measured table for each."""
        return (SingleSources if self.recovery == "none" else LevelAnswers)(self, measurement)

    def is_answerable(self) -> bool:
        """Whether some measured table holds each table that is needed."""
        return self.nesting.all_held(self.request.marginals, self.measured)

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        return {"design": "levels", "measured": [level.tolist() for level in self.measured.levels]}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The measured tables from the JSON form."""
        return {"measured": LatticeDesign.from_specification({**raw, "basis": "marginal"}, schema)["measured"]}
