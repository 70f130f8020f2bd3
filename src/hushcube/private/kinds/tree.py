"""Levels of trees: each carrier is counted once, and summed to the nodes of every level that is measured."""

from __future__ import annotations

import numpy as np

from hushcube.model.marginal import Marginal
from hushcube.plan.kinds import TreePlan
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(plan: TreePlan, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    values: dict[int, Ints] = {}
    for carrier in plan.carriers:
        table = counts.tables(np.array([carrier], dtype=np.int32).reshape(1, len(carrier)))[0]
        for axis, i in enumerate(carrier):
            table = np.asarray(plan.trees[i].pad(table, axis))
        for number, row in enumerate(plan.levels.tolist()):
            if number not in values and {i for i, m in enumerate(row) if m} <= set(carrier):
                values[number] = rows(plan, carrier, table, row) + _noise(plan, number, entropy)
                report("measuring", len(values) / plan.groups)
    return tuple(values[number] for number in range(plan.groups))


def rows(plan: TreePlan, carrier: Marginal, table: Ints, levels: list[int]) -> Ints:
    """The exact integers of one set, from the padded table of a carrier: sums over nodes, and differences of halves."""
    axis = 0
    for i in carrier:
        tree, m = plan.trees[i], levels[i]
        table = table.reshape(*table.shape[:axis], tree.nodes[m], -1, *table.shape[axis + 1 :]).sum(axis=axis + 1)
        if m == 0:
            table = np.asarray(table.sum(axis=axis), dtype=np.int64)  # one node: drops the axis
            continue
        if plan.wavelet[i]:
            halves = table.reshape(*table.shape[:axis], -1, 2, *table.shape[axis + 1 :])
            table = np.subtract(*np.moveaxis(halves, axis + 1, 0))
        axis += 1
    return table


def _noise(plan: TreePlan, number: int, entropy: Entropy) -> Ints:
    """Noise for one set; none for what is public."""
    shape, budget = plan.shapes[number], float(plan.budgets[number])
    if not np.isfinite(budget):
        return np.zeros(shape, np.int64)
    return noise(plan, [budget], int(np.prod(shape, dtype=np.int64)), entropy).reshape(shape)
