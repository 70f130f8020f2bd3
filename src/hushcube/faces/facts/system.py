"""Public facts as equations over atoms: f says   sum_{a in R_f} x_a = c_f,   R_f a box of atoms.

A zero takes its atoms away, and atoms that lie in the same boxes are interchangeable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.faces.facts.atoms import Atoms
from hushcube.faces.programs import Program, solve
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.progress import Clock

STAGE: Final = "public facts"


@dataclass(frozen=True, eq=False)
class System:
    """The positive facts as equations over columns; `boxes` has an array for each marginal, the rows of the columns.

    Boxes of one marginal are disjoint: a column lies in one row of it, or in none (the number of all rows).
    """

    counts: Ints
    boxes: tuple[Ints, ...]
    columns: int

    @classmethod
    def of(cls, table: Atoms, kept: Bools) -> System:
        """The equations of some facts over the atoms that they allow."""
        allowed = table.allowed_by(kept)
        positive = {m: (known.counts > 0) & kept[known.ids] for m, known in table.facts.by_marginal.items()}
        total = sum(int(used.sum()) for used in positive.values())
        counts, boxes, start = [np.zeros(0, np.int64)], [], 0
        for marginal, used in positive.items():
            if used.any():
                known, end = table.facts.by_marginal[marginal], start + int(used.sum())
                counts.append(known.counts[used])
                boxes.append(table.boxes(marginal, known.cells[used], np.arange(start, end), total)[allowed])
                start = end
        return cls(np.concatenate(counts), tuple(boxes), int(allowed.sum()))

    def with_total(self, total: int) -> System:
        """One more equation, on all columns."""
        m = len(self.counts)
        moved = (np.where(box == m, m + 1, box) for box in self.boxes)
        return System(np.append(self.counts, total), (*moved, np.full(self.columns, m)), self.columns)

    def merged(self) -> tuple[System, Ints]:
        """Columns that lie in the same boxes made one; and the new number of each old column."""
        group = np.zeros(self.columns, np.int64)
        for box in self.boxes:
            group = np.unique(group * (len(self.counts) + 1) + box, return_inverse=True)[1]
        first = np.unique(group, return_index=True)[1]
        return System(self.counts, tuple(box[first] for box in self.boxes), len(first)), group

    @property
    def is_total(self) -> bool:
        """Whether every equation is about all columns."""
        return bool((self.times(np.ones(self.columns)) == self.columns).all())

    def triplets(self) -> tuple[Ints, Ints]:
        """The rows and columns of the ones of the matrix."""
        columns = [np.flatnonzero(box < len(self.counts)) for box in self.boxes]
        rows = [box[at] for box, at in zip(self.boxes, columns, strict=True)]
        return np.concatenate([np.zeros(0, np.int64), *rows]), np.concatenate([np.zeros(0, np.int64), *columns])

    def times(self, x: NDArray[Any]) -> Floats:
        """The sums over the boxes; exact for whole numbers, which stay below 2^53."""
        m = len(self.counts)
        return sum((add(box, x, m + 1)[:m] for box in self.boxes), np.zeros(m))

    def solve(
        self,
        cost: Floats,
        lower: NDArray[Any],
        upper: NDArray[Any],
        clock: Clock,
        *,
        base: NDArray[Any] | None = None,
        signs: tuple[int, ...] = (1,),
        whole: bool = False,
    ) -> Floats:
        """The cheapest solution z of   sum_s signs_s (boxes · z_s) = counts - boxes · base,   lower <= z <= upper."""
        rows, columns = self.triplets()
        left = self.counts - (np.zeros(len(self.counts)) if base is None else self.times(base))
        blocks = np.repeat(np.arange(len(signs)), len(rows))
        program = Program(
            cost=cost,
            lower=lower.astype(np.float64),
            upper=upper.astype(np.float64),
            row_lower=left,
            row_upper=left,
            rows=np.tile(rows, len(signs)),
            columns=np.tile(columns, len(signs)) + blocks * self.columns,
            entries=np.repeat(np.array(signs, np.float64), len(rows)),
            whole=np.arange(len(cost) if whole else 0),
        )
        return solve(program, clock, STAGE, vertex=not whole).x

    def holds(self, x: NDArray[Any]) -> bool:
        """Whether whole numbers satisfy the equations; exact."""
        return bool((self.times(x) == self.counts).all())


def add(groups: Ints, values: NDArray[Any], count: int) -> Floats:
    """The sums of values over groups."""
    return np.bincount(groups, values, count).astype(np.float64)
