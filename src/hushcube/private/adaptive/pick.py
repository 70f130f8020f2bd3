"""PickQueries: which table gets less noise next, judged by its noisy answers alone.

    average   the decrease of the estimated error for each unit of privacy                [Xiao et al. 2011, (14), (15)]
                  w_A mean_cells 1/max(y, delta) (E|X_k| - E|X_{k+1}|)  /  f_A (r_{k+1} - r_k)
              Departs from the paper, which has the sum over cells where Definition 6 has the mean: with the sum the
              choice converges to another optimum than the one that is reported. And delta is raised to a part of the
              noise (`caution`): a count far below its noise cannot be told from one that is ten times larger, and
              to take it at its word spends the budget of all on the tables that are unlucky at first.
    worst     the largest estimated relative error of a cell: E|X_k| / max(min y, delta)                   [section 4.3]

A table's priority depends on its own revealed answers only. So the step that is taken next is always the next step of
the table with the largest priority, and the order of all steps is that of the running minima of the priorities: a step
is taken when all priorities above it are used up, and a table whose priority rises keeps its turn.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.adaptive.grid import Grid
from hushcube.designs.refinement import Pick, RelativeTarget
from hushcube.model.arrays import Floats, Ints
from hushcube.private.adaptive.paths import Path


def priorities(path: Path, grid: Grid, pick: Pick, bound: float | Floats, worth: float) -> Floats:
    """The priority of the step from each level to the next; `worth` is a table's weight over what its rate costs.

    `bound` is delta, or a number for each level, falling.
    """
    scales = grid.scales
    if pick == "worst":
        return np.asarray((scales / smallest(path, len(grid), bound))[:-1])
    gain = (scales[:-1] - scales[1:]) / np.diff(grid.rates)
    return np.asarray(worth * mean_inverse(path, len(grid), bound)[:-1] * gain)


def mean_inverse(path: Path, levels: int, bound: float | Floats) -> Floats:
    """mean_cells 1/max(y, bound) at every level.

    A stretch of levels with a constant y counts 1/bound while the bound is above y, and 1/y from then on.
    """
    begin, end, value = stretches(path, levels)
    bounds = np.broadcast_to(np.asarray(bound, np.float64), (levels,))
    turn = np.clip(np.searchsorted(-bounds, -value.astype(np.float64)), begin, end)
    small = np.cumsum(_marks(begin, levels) - _marks(turn, levels))[:levels]
    inverse = np.divide(1.0, value, out=np.zeros(len(value)), where=turn < end)
    large = np.cumsum(_marks(turn, levels, inverse) - _marks(end, levels, inverse))[:levels]
    return np.asarray((small / bounds + np.maximum(large, 0.0)) / len(path.start))


def _marks(at: Ints, levels: int, weights: Floats | None = None) -> Floats:
    return np.bincount(at, weights=weights, minlength=levels + 1).astype(np.float64)


def smallest(path: Path, levels: int, bound: float | Floats) -> Floats:
    """max(min y, bound) at every level: the least of the stretches of levels on which a cell keeps its value."""
    begin, end, value = stretches(path, levels)
    reach = max(levels.bit_length(), 1)
    # least[t, i]: known for the levels i .. i + 2^t - 1; every stretch is covered by two such blocks
    least = np.full((reach, levels), np.inf)
    size = np.frexp((end - begin).astype(np.float64))[1] - 1
    np.minimum.at(least, (size, begin), value)
    np.minimum.at(least, (size, end - (1 << size)), value)
    for t in range(reach - 1, 0, -1):
        half = 1 << (t - 1)
        np.minimum(least[t - 1], least[t], out=least[t - 1])
        np.minimum(least[t - 1, half:], least[t, : levels - half], out=least[t - 1, half:])
    return np.asarray(np.maximum(least[0], bound))


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
