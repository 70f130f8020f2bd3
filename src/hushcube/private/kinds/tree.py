"""Levels of trees: each carrier is counted once, and summed to the nodes of every level that is measured."""

from __future__ import annotations

import numpy as np

from hushcube.designs import TreeDesign
from hushcube.model.marginal import Marginal
from hushcube.private.engines import ExactCounts
from hushcube.private.kinds.base import Ints, Report, noise, noisy_values
from hushcube.private.noise import Entropy


@noisy_values.register
def _(design: TreeDesign, counts: ExactCounts, entropy: Entropy, report: Report) -> tuple[Ints, ...]:
    values: dict[int, Ints] = {}
    for carrier in design.carriers:
        table = counts.tables(np.array([carrier], dtype=np.int32).reshape(1, len(carrier)))[0]
        for axis, i in enumerate(carrier):
            table = np.asarray(design.trees[i].pad(table, axis))
        for number, row in enumerate(design.levels.tolist()):
            if number not in values and {i for i, m in enumerate(row) if m} <= set(carrier):
                values[number] = rows(design, carrier, table, row) + _noise(design, number, entropy)
                report("measuring", len(values) / design.groups)
    return tuple(values[number] for number in range(design.groups))


def rows(design: TreeDesign, carrier: Marginal, table: Ints, levels: list[int]) -> Ints:
    """The exact integers of one set, from the padded table of a carrier: sums over nodes, and differences of halves."""
    axis = 0
    for i in carrier:
        tree, m = design.trees[i], levels[i]
        table = table.reshape(*table.shape[:axis], tree.nodes[m], -1, *table.shape[axis + 1 :]).sum(axis=axis + 1)
        if m == 0:
            table = np.asarray(table.sum(axis=axis), dtype=np.int64)  # one node: drops the axis
            continue
        if design.wavelet[i]:
            halves = table.reshape(*table.shape[:axis], -1, 2, *table.shape[axis + 1 :])
            table = np.subtract(*np.moveaxis(halves, axis + 1, 0))
        axis += 1
    return table


def _noise(design: TreeDesign, number: int, entropy: Entropy) -> Ints:
    """Noise for one set; none for what is public."""
    shape, budget = design.shapes[number], float(design.budgets[number])
    if not np.isfinite(budget):
        return np.zeros(shape, np.int64)
    return noise(design, [budget], int(np.prod(shape, dtype=np.int64)), entropy).reshape(shape)
