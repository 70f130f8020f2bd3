"""The kinds of people that public facts tell apart.

Facts tell only classes of values apart (Facts.classes), so they are decided on the small table of classes. Its cells
are the atoms, product over attributes of their classes.

Over atoms, facts are equations: f says   sum_{a in R_f} x_a = c_f,   R_f a box of atoms. A zero takes its atoms away,
and atoms that lie in the same boxes are interchangeable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import FactsError, readable
from hushcube.faces.programs import Program, solve, stacked
from hushcube.lattice.family import Family
from hushcube.lattice.nested import group_sums
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.facts import Facts
from hushcube.progress import Clock

MAX_ATOMS: Final = 200_000
STAGE: Final = "public facts"


@dataclass(frozen=True, eq=False)
class Atoms:
    """The kinds of people that facts tell apart; arrays over atoms are flat, in row-major order of `shape`."""

    facts: Facts
    classes: tuple[Ints, ...]
    shape: tuple[int, ...]  # the number of classes of each attribute
    allowed: Bools  # those that no fact declares empty

    def __len__(self) -> int:
        return math.prod(self.shape)

    @cached_property
    def axes(self) -> tuple[int, ...]:
        """The attributes with several classes; a schema may have more attributes than an array has axes."""
        return tuple(i for i, classes in enumerate(self.shape) if classes > 1)

    @cached_property
    def cells(self) -> Floats:
        """How many cells of the full table each atom has."""
        counts = [np.bincount(classes).astype(np.float64) for classes in self.classes]
        return np.ravel(reduce(np.multiply.outer, counts, np.ones(())))

    def labels(self, shape: tuple[int, ...]) -> Ints:
        """The atom of every cell of a full table."""
        if shape != self.facts.schema.sizes:
            raise ValueError(f"{shape} is not the shape of the full table, {self.facts.schema.sizes}")
        return self.spread(np.arange(len(self)))

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """One number an atom, given to each of its cells in a full table."""
        return np.asarray(values.reshape(self.shape)[np.ix_(*self.classes)])

    def sums(self, table: Floats) -> Floats:
        """The sums of a full table over the atoms."""
        for axis, classes in enumerate(self.classes):
            one = self.shape[axis] == 1
            table = table.sum(axis=axis, keepdims=True) if one else group_sums(table, axis, classes)
        return table.reshape(-1)

    def empty(self, marginal: Marginal) -> Bools | None:
        """The cells of a marginal without an allowed atom, with axes to broadcast; None where there is none."""
        kept = [i for i in self.axes if i in marginal]
        others = tuple(at for at, i in enumerate(self.axes) if i not in marginal)
        empty: Bools = ~np.any(self.allowed.reshape([self.shape[i] for i in self.axes]), axis=others)
        if not empty.any():
            return None
        cells = empty[np.ix_(*(self.classes[i] for i in kept))]
        return cells.reshape([len(self.classes[i]) if i in kept else 1 for i in marginal])

    def allowed_by(self, kept: Bools) -> Bools:
        """The atoms that none of some facts declares empty."""
        allowed = np.ones(len(self), bool)
        for marginal, known in self.facts.by_marginal.items():
            zero = (known.counts == 0) & kept[known.ids]
            if zero.any():
                allowed &= self.boxes(marginal, known.cells[zero], known.ids[zero], -1) < 0
        return allowed

    def boxes(self, marginal: Marginal, cells: Ints, numbers: Ints, none: int) -> Ints:
        """For each atom the number of the cell that it lies in, or `none`."""
        classes = tuple(self.classes[i][values] for i, values in zip(marginal, cells.T, strict=True))
        boxes = np.full([self.shape[i] for i in marginal], none)
        boxes[classes or ...] = numbers  # the total is one number
        expanded = boxes.reshape([self.shape[i] if i in marginal else 1 for i in self.axes])
        return np.broadcast_to(expanded, [self.shape[i] for i in self.axes]).reshape(-1)


def atoms(facts: Facts) -> Atoms:
    """The table of classes on which facts are decided."""
    classes = facts.classes()
    shape = tuple(int(of.max()) + 1 for of in classes)
    if math.prod(shape) > MAX_ATOMS:
        problem = f"they tell {readable(math.prod(shape))} kinds of people apart, more than {MAX_ATOMS:,}"
        raise FactsError("facts", problem, "name fewer labels in them")
    found = Atoms(facts, classes, shape, np.ones(math.prod(shape), bool))
    return replace(found, allowed=found.allowed_by(np.ones(len(facts.facts), bool)))


class FixedCells(NamedTuple):
    """What facts say about the cells of tables."""

    batches: list[Floats]
    """For each batch of the family (tables, *shape): the known count, NaN where the cell is free."""
    extra: tuple[Marginal, ...]
    """Marginals that no table holds and that facts are about, beyond zeros that some table shows."""


def fixed_cells(facts: Facts, tables: Family) -> FixedCells:
    """The cells of tables that facts fix: known counts on the same marginal, and every cell that zeros make empty."""
    fine = atoms(facts)
    batches = []
    for batch in tables.batches:
        fixed = np.full((len(batch.ids), *batch.shape), np.nan)
        for at, row in enumerate(map(tuple, batch.rows.tolist())):
            if (empty := fine.empty(row)) is not None:
                np.copyto(fixed[at, ...], 0.0, where=empty)
            if known := facts.by_marginal.get(row):
                fixed[(at, *known.cells.T, ...)] = known.counts
        batches.append(fixed)
    absent = [m for m, at in zip(facts.by_marginal, tables.ids(facts.by_marginal).tolist(), strict=True) if at < 0]
    shown = {m for m in absent if not facts.by_marginal[m].counts.any() and any(set(m) <= set(a) for a in tables)}
    return FixedCells(batches, tuple(m for m in absent if m not in shown))


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
        counts, boxes = np.zeros(0, np.int64), []
        for marginal, used in positive.items():
            if used.any():
                known, rows = table.facts.by_marginal[marginal], len(counts) + np.arange(used.sum())
                counts = np.append(counts, known.counts[used])
                boxes.append(table.boxes(marginal, known.cells[used], rows, total)[allowed])
        return cls(counts, tuple(boxes), int(allowed.sum()))

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
        boxes = np.array(self.boxes, np.int64).reshape(len(self.boxes), self.columns)
        marginals, columns = np.nonzero(boxes < len(self.counts))
        return boxes[marginals, columns], columns

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
        matrix = stacked(*((rows, columns + block * self.columns, float(sign)) for block, sign in enumerate(signs)))
        bounds = lower.astype(np.float64), upper.astype(np.float64)
        return solve(Program(cost, *bounds, left, left, matrix, whole), clock, STAGE, vertex=not whole).x

    def holds(self, x: NDArray[Any]) -> bool:
        """Whether whole numbers satisfy the equations; exact."""
        return bool((self.times(x) == self.counts).all())


def add(groups: Ints, values: NDArray[Any], count: int) -> Floats:
    """The sums of values over groups."""
    return np.bincount(groups, values, count).astype(np.float64)
