"""PickQueries: which table gets less noise next, judged by its noisy answers alone.

    average   the decrease of the estimated error for each unit of privacy                [Xiao et al. 2011, (14), (15)]
                  w_A mean_cells 1/max(y, delta) (E|X_k| - E|X_{k+1}|)  /  f_A (r_{k+1} - r_k)
              Departs from the paper, which has the sum over cells where Definition 6 has the mean: with the sum the
              choice converges to another optimum than the one that is reported.
    worst     the largest estimated relative error of a cell: E|X_k| / max(min y, delta)                   [section 4.3]

A table's priority depends on its own revealed answers only. So the step that is taken next is always the next step of
the table with the largest priority, and the order of all steps is that of the running minima of the priorities: a step
is taken when all priorities above it are used up, and a table whose priority rises keeps its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.plan.adaptive.grid import Grid
from hushcube.plan.adaptive.rule import Pick, RelativeTarget
from hushcube.private.adaptive.paths import Path

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def priorities(path: Path, grid: Grid, pick: Pick, sanity_bound: float, worth: float) -> Floats:
    """The priority of the step from each level to the next; `worth` is a table's weight over what its rate costs."""
    scales = grid.scales
    if pick == "worst":
        return np.asarray(scales[:-1] / smallest(path, len(grid), sanity_bound)[:-1])
    gain = (scales[:-1] - scales[1:]) / np.diff(grid.rates)
    return np.asarray(worth * mean_inverse(path, len(grid), sanity_bound)[:-1] * gain)


def mean_inverse(path: Path, levels: int, sanity_bound: float) -> Floats:
    """mean_cells 1/max(y, delta) at every level."""
    change = 1 / np.maximum(path.after, sanity_bound) - 1 / np.maximum(path.before, sanity_bound)
    sums = np.cumsum(np.bincount(path.levels, weights=change, minlength=levels)[:levels])
    start = (1 / np.maximum(path.start, sanity_bound)).sum()
    return np.asarray(np.maximum(start + sums, 0.0) / len(path.start))


def smallest(path: Path, levels: int, sanity_bound: float) -> Floats:
    """max(min y, delta) at every level: the smallest of the stretches of levels on which a cell keeps its value."""
    begin, end, value = stretches(path, levels)
    reach = max(levels.bit_length(), 1)
    # least[t, i]: known for the levels i .. i + 2^t - 1; every stretch is covered by two such blocks
    least = np.full((reach, levels), np.inf)
    size = np.frexp((end - begin).astype(np.float64))[1] - 1
    clipped = np.maximum(value, sanity_bound).astype(np.float64)
    np.minimum.at(least, (size, begin), clipped)
    np.minimum.at(least, (size, end - (1 << size)), clipped)
    for t in range(reach - 1, 0, -1):
        half = 1 << (t - 1)
        np.minimum(least[t - 1], least[t], out=least[t - 1])
        np.minimum(least[t - 1, half:], least[t, : levels - half], out=least[t - 1, half:])
    return np.asarray(least[0])


def met_at(path: Path, grid: Grid, target: RelativeTarget) -> int:
    """The first level at which the answers say that the target is met; the last level where none does.

    A cell is in view if its count may reach `above`: y + 3 E|X| >= above, a bound that Laplace noise breaks in 2.5% of
    cases. The target is met if E|X| <= relative_error max(y, above) for every cell in view. A cell fails exactly while
    E|X| is above a threshold of its own, so each stretch of a constant value fails on its first levels.
    """
    error, above = float(target.relative_error), float(target.above.value)
    begin, end, value = stretches(path, len(grid))
    threshold = np.maximum(error * np.maximum(value, above), (above - value) / 3)
    fails_until = np.minimum(np.searchsorted(-grid.scales, -threshold, side="left"), end)
    failing = fails_until > begin
    count = np.zeros(len(grid) + 1, np.int64)
    np.add.at(count, begin[failing], 1)
    np.add.at(count, fails_until[failing], -1)
    met = np.flatnonzero(np.cumsum(count)[: len(grid)] == 0)
    return int(met[0]) if met.size else len(grid) - 1


def is_met(answers: NDArray[np.number[Any]], scale: float, target: RelativeTarget) -> bool:
    """Whether answers with noise of a mean size say that the target is met."""
    error, above = float(target.relative_error), float(target.above.value)
    in_view = answers + 3 * scale >= above
    return bool((scale <= error * np.maximum(answers[in_view], above)).all())


def stretches(path: Path, levels: int) -> tuple[Ints, Ints, Ints]:
    """The runs of levels on which cells keep their values: first level, the one after the last, and the value."""
    cells = np.concatenate([np.arange(len(path.start)), path.cells])
    begin = np.concatenate([np.zeros(len(path.start), np.int64), path.levels])
    value = np.concatenate([path.start, path.after])
    order = np.lexsort((begin, cells))
    cells, begin, value = cells[order], begin[order], value[order]
    last = np.append(cells[1:] != cells[:-1], True)
    end = np.where(last, levels, np.append(begin[1:], levels))
    return begin, end, value
