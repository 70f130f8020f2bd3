"""Whether tables agree across levels: states add up to their regions, wherever both are published.

As in sums.py single steps are enough: the tables that can be summed from published ones are visited from fine to
coarse; a step makes one attribute one level coarser, or sums its coarsest level out. Each table so reached is the
published one, or the first sum that gives it, and every further way to it must end at the same numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np

from hushcube.bundle.checks.sums import tolerance
from hushcube.bundle.checks.tables import Block, FaceTables
from hushcube.bundle.checks.verdict import Findings
from hushcube.model.arrays import Floats
from hushcube.model.groups import sum_groups
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema


def add_up_levels(tables: FaceTables, levels: Callable[[int], Iterator[Block]], findings: Findings) -> None:
    """Compare all ways to sum published tables; all of them are held."""
    schema = tables.schema
    steps = {place: number for chain in schema.chains for number, place in enumerate(chain, 1)}
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
                coarser, summed = _step(schema, steps, marginal, values, axis)
                expected, other = found.setdefault(coarser, (summed, origin))
                waiting[height - 1].add(coarser)
                findings.checked += 1
                wrong = ~(np.abs(summed - expected) <= allowed)
                if wrong.any():
                    first = tuple(np.argwhere(wrong)[0].tolist())
                    numbers = f"{summed[first]:.10g} or {expected[first]:.10g}"
                    told = f"{tables.place(origin)}: does not agree with {tables.place(other)}"
                    findings.add(f"{told}: {tables.cell(coarser, first)} is {numbers}")


def _step(
    schema: Schema, steps: dict[int, int], marginal: Marginal, values: Floats, axis: int
) -> tuple[Marginal, Floats]:
    """A table with one attribute a level coarser, or without it."""
    place = marginal[axis]
    if steps[place] == 1:
        return (*marginal[:axis], *marginal[axis + 1 :]), values.sum(axis=axis)
    coarse = place - 1  # levels stand beside each other, from coarse to fine
    groups = schema.coarsening(place, coarse)
    return (*marginal[:axis], coarse, *marginal[axis + 1 :]), sum_groups(values, groups, axis)
