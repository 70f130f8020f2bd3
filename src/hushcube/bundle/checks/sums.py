"""Whether all tables of a face agree: every roll-up equals the cell, and states add up to their regions.

Tables A, A' agree if they give the same table on A ∩ A'. It is enough to look at single steps: let C be the closure of
the published sets under subsets, and go from its largest sets down. Each B of C has one table: the published one, or
the first roll-up that gives it. If for every B ∪ {i} of C its table, summed over i, is the table of B, then by
induction every chain of roll-ups from any published A to any S within A ends at the same table of S.

Whole numbers must agree exactly. Others may differ by rounding: by 10^-6 of a person, and 10^-9 of the largest of the
table's cells, its total, and the release's standard errors. Even a table of small numbers is computed from numbers as
large as the noise. That is far below a standard error, and far above what sums of doubles lose.

Across levels single steps are enough, too: the tables that can be summed from published ones are visited from fine to
coarse; a step makes one attribute one level coarser, or sums its coarsest level out. Each table so reached is the
published one, or the first sum that gives it, and every further way to it must end at the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from hushcube.bundle.checks.tables import CHUNK, Block, FaceTables
from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.tables import Rows
from hushcube.lattice.family import Family
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.form import sum_groups
from hushcube.model.schema import Schema


def tolerance(values: Floats, *, noise: float, exact: bool = False) -> Floats:
    """How far each of some tables (tables, *shape) may be from another way to compute it from noise of some scale.

    >>> tolerance(np.array([[1000.0, 0.0], [0.0, 0.0]]), noise=10.0)
    array([2.00e-06, 1.01e-06])
    """
    flat = values.reshape(len(values), -1)
    if exact or not flat.size:
        return np.zeros(len(values))
    largest = np.maximum(np.abs(flat).max(axis=1), np.abs(flat.sum(axis=1)))
    return 1e-6 + 1e-9 * np.maximum(np.where(np.isfinite(largest), largest, 0.0), noise)


def add_up(tables: FaceTables, levels: Callable[[int], Iterator[Block]], findings: Check, *, exact: bool) -> None:
    """Compare all roll-ups, one number of attributes after the other; each level is read once, `levels` says how."""
    closure = tables.family.closure
    top = len(closure.levels) - 1
    above: _Level | None = None
    for order in range(top, 0, -1):
        below = _Level(tables, closure, order - 1, findings)
        for block in levels(order - 1):
            below.put(block)
        found = above.blocks() if above is not None else ((block, closure.find(block.rows)) for block in levels(order))
        for block, origins in found:
            below.compare(block, origins, exact=exact)
        above = below
    if top == 0:
        for _ in levels(0):
            pass


class _Level:
    """The tables of all sets of one size, with the published table that each comes from (-1: not known yet)."""

    def __init__(self, tables: FaceTables, closure: Family, order: int, findings: Check) -> None:
        self._tables, self._closure, self._findings = tables, closure, findings
        self._batches = {batch.shape: batch for batch in closure.batches if len(batch.shape) == order}
        self._values = {shape: np.zeros((len(batch.ids), *shape)) for shape, batch in self._batches.items()}
        self._origins = {shape: np.full(len(batch.ids), -1, np.int64) for shape, batch in self._batches.items()}

    def put(self, block: Block) -> None:
        """Published tables."""
        ids = self._closure.find(block.rows)
        at = np.searchsorted(self._batches[block.shape].ids, ids)
        self._values[block.shape][at] = block.values
        self._origins[block.shape][at] = ids

    def blocks(self) -> Iterator[tuple[Block, Ints]]:
        """All tables that are known, with where they come from."""
        for shape, batch in self._batches.items():
            for part in batch.parts(CHUNK):
                known = self._origins[shape][part] >= 0
                values = self._values[shape][part][known]
                yield Block(batch.rows[part][known], shape, values, values), self._origins[shape][part][known]

    def compare(self, block: Block, origins: Ints, *, exact: bool) -> None:
        """Sum tables of the next larger size over each of their attributes."""
        if not len(block.rows):
            return
        with np.errstate(invalid="ignore", over="ignore"):
            allowed = tolerance(block.values, noise=self._tables.noise, exact=exact)
            for axis in range(len(block.shape)):
                rows = np.delete(block.rows, axis, axis=1)
                self._compare(rows, block.values.sum(axis=1 + axis), origins, allowed)

    def _compare(self, rows: Rows, sums: Floats, origins: Ints, allowed: Floats) -> None:
        shape = sums.shape[1:]
        values, known = self._values[shape], self._origins[shape]
        ids = self._closure.find(rows)
        at = np.searchsorted(self._batches[shape].ids, ids)
        new = np.flatnonzero(known[at] < 0)
        first = new[np.unique(at[new], return_index=True)[1]]
        values[at[first]], known[at[first]] = sums[first], origins[first]
        expected = values[at]
        wrong = ~(np.abs(sums - expected) <= allowed.reshape(-1, *[1] * len(shape)))
        self._findings.checked += len(rows)
        for k in np.flatnonzero(wrong.reshape(len(rows), -1).any(axis=1)).tolist():
            self._tell(rows[k], int(ids[k]), int(origins[k]), int(known[at[k]]), sums[k], expected[k], wrong[k])

    def _tell(self, row: Rows, own: int, origin: int, other: int, sums: Floats, expected: Floats, wrong: Bools) -> None:
        marginal, first = tuple(row.tolist()), tuple(np.argwhere(wrong)[0].tolist())
        cell, beside = self._tables.cell(marginal, first), self._place(other)
        more = f" (and {int(wrong.sum()) - 1:,} other cells)" if wrong.sum() > 1 else ""
        if own == other:
            text = f"does not add up to {beside}: for {cell} it gives {sums[first]:.10g}, not {expected[first]:.10g}"
        else:
            word = self._tables.schema.describe(marginal)
            text = f"does not agree with {beside} on {word}: {cell} is {sums[first]:.10g} or {expected[first]:.10g}"
        self._findings.add(f"{self._place(origin)}: {text}{more}")

    def _place(self, number: int) -> str:
        order = int(np.searchsorted(self._closure.starts, number, side="right")) - 1
        row = self._closure.levels[order][number - int(self._closure.starts[order])]
        return self._tables.place(tuple(row.tolist()))


def add_up_levels(tables: FaceTables, levels: Callable[[int], Iterator[Block]], findings: Check) -> None:
    """Compare all ways to sum published tables; all of them are held."""
    steps = {place: number for chain in tables.schema.chains for number, place in enumerate(chain, 1)}
    found: dict[Marginal, tuple[Floats, Marginal]] = {}
    for order in range(len(tables.family.levels)):
        for block in levels(order):
            for row, values in zip(block.rows.tolist(), block.values, strict=True):
                found[tuple(row)] = values.reshape(block.shape), tuple(row)
    waiting: dict[int, set[Marginal]] = defaultdict(set)
    for marginal in found:
        waiting[sum(steps[i] for i in marginal)].add(marginal)
    for height in range(max(waiting, default=0), 0, -1):
        for marginal in sorted(waiting.pop(height, ())):
            values, origin = found[marginal]
            allowed = float(tolerance(values[None], noise=tables.noise)[0])
            for axis in range(len(marginal)):
                coarser, summed = _step(tables.schema, marginal, values, axis, out=steps[marginal[axis]] == 1)
                expected, other = found.setdefault(coarser, (summed, origin))
                waiting[height - 1].add(coarser)
                findings.checked += 1
                wrong = ~(np.abs(summed - expected) <= allowed)
                if wrong.any():
                    first = tuple(np.argwhere(wrong)[0].tolist())
                    numbers = f"{summed[first]:.10g} or {expected[first]:.10g}"
                    told = f"{tables.place(origin)}: does not agree with {tables.place(other)}"
                    findings.add(f"{told}: {tables.cell(coarser, first)} is {numbers}")


def _step(schema: Schema, marginal: Marginal, values: Floats, axis: int, *, out: bool) -> tuple[Marginal, Floats]:
    """A table with one attribute a level coarser, or without it."""
    before, place, after = marginal[:axis], marginal[axis], marginal[axis + 1 :]
    if out:
        return (*before, *after), values.sum(axis=axis)
    coarse = place - 1  # levels stand beside each other, from coarse to fine
    return (*before, coarse, *after), sum_groups(values, schema.coarsening(place, coarse), axis)
