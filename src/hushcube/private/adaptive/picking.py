"""PickQueries: which table gets less noise next, judged by its noisy answers alone.

    average   the decrease of the estimated error for each unit of privacy                [Xiao et al. 2011, (14), (15)]
                  w_A mean_cells 1/max(y, delta) (E|X_k| - E|X_{k+1}|)  /  f_A (r_{k+1} - r_k)
              Departs from the paper, which has the sum over cells where Definition 6 has the mean: with the sum the
              choice converges to another optimum than the one that is reported. And delta is raised to a part of the
              noise (`caution`): a count far below its noise cannot be told from one that is ten times larger, and
              to take it at its word spends the budget of all on the tables that are unlucky at first.
    worst     the same for the squares of relative errors, in which the largest ones count most:
                  w_A mean_cells s(y, lambda_k) (1 - (lambda_{k+1} / lambda_k)²)  /  f_A (r_{k+1} - r_k)

The paper's rule for the worst cell is the largest lambda / max(y, delta) [section 4.3]. It takes y at its word: a small
count that comes out large by luck stops its table at the largest noise. So s is what noise of scale lambda that is seen
as y is expected to do:

    s(y, lambda) = (lambda / max(y, lambda, delta))² + min(sqrt(lambda / delta), (lambda / delta)²) exp(-y / lambda)

The first term is for a count of about y. The second is for a count below delta, whose square is (lambda / delta)²; the
chance of one falls like exp(-y / lambda), and with delta / lambda: in proportion if all counts were alike beforehand,
with the power 3/2 by experience [benchmarks/worst_cell.py]. An answer below zero shows a part of its own error.

And no table is left behind by luck: one with less than a `LAG`th of the rate that all would have alike comes first,
unless all of its answers are `SURE` times their noise. That takes at most a `LAG`th of the budget.

Nothing depends on the order of attributes: of tables with equal priorities, the one comes next that was picked least
often, and of those the first by the names of its attributes [Subject.ranks].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hushcube.designs.grid import Grid
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.private.adaptive.paths import Path

LAG: Final = 4
SURE: Final = 10
AHEAD: Final = 2.0**900
"""Above all other priorities; times the scale, so that tables take turns."""
_FINEST: Final = 1 / 128  # of the logarithm of the scale: how often squares are computed anew
_MOST_HELD: Final = 2**21  # answers at all levels that are held at a time


def for_average(path: Path, grid: Grid, bound: float | Floats, worth: float) -> Floats:
    """The priority of the step from each level to the next; `worth` is a table's weight over what its rate costs.

    `bound` is delta, or a number for each level, falling.
    """
    gain = (grid.scales[:-1] - grid.scales[1:]) / np.diff(grid.rates)
    return np.asarray(worth * mean_inverse(path, len(grid), bound)[:-1] * gain)


def for_worst(path: Path, grid: Grid, delta: float, worth: float, even_rate: float) -> Floats:
    """The same for the worst cell; `even_rate` is that of tables which share the budget alike."""
    squares, least = seen(path, grid, delta)
    gain = (1 - (grid.scales[1:] / grid.scales[:-1]) ** 2) / np.diff(grid.rates)
    behind = is_behind(grid.rates, grid.scales, least, delta, even_rate)[:-1]
    return np.asarray(worth * np.where(behind, AHEAD * grid.scales[:-1], squares[:-1] * gain))


def square(answers: Floats, scale: Floats | float, delta: float) -> Floats:
    """s(y, lambda): the squared relative error that is expected of noise of a mean size, seen in an answer."""
    ratio = np.asarray(scale / delta)
    small = np.minimum(np.sqrt(ratio), ratio**2) * np.exp(np.minimum(-answers / scale, 500.0))
    return np.asarray((scale / np.maximum(answers, np.maximum(scale, delta))) ** 2 + small)


def is_behind(rate: Floats | float, scale: Floats | float, least: Floats | float, delta: float, even: float) -> Bools:
    """Whether a table with a given least answer has so little of the budget that it comes first."""
    is_unsure = np.asarray(least) < np.maximum(SURE * np.asarray(scale), delta)
    return np.asarray(is_unsure & (np.asarray(rate) * LAG < even))


def seen(path: Path, grid: Grid, delta: float) -> tuple[Floats, Floats]:
    """The mean of `square` over the cells, and the least answer, at every level.

    Where levels are close together, they are those of the last level whose scale differs: what a level shows is
    revealed by then.
    """
    turns = np.floor(np.log(grid.scales[0] / grid.scales) / _FINEST)
    looks = np.flatnonzero(np.diff(turns, prepend=-1.0))
    total, least = np.zeros(len(looks)), np.full(len(looks), np.inf)
    for answers in _dense(path, len(grid), looks):
        total += square(answers, grid.scales[looks], delta).sum(axis=0)
        np.minimum(least, answers.min(axis=0), out=least)
    last = np.searchsorted(looks, np.arange(len(grid)), side="right") - 1
    return total[last] / len(path.start), least[last]


def _dense(path: Path, levels: int, looks: Ints) -> Iterator[Floats]:
    """The answers (cells, looks) at some levels, a few cells at a time: how many depends on nothing private."""
    begin, end, value = stretches(path, levels)
    count = np.searchsorted(looks, end) - np.searchsorted(looks, begin)
    first = np.append(np.flatnonzero(begin == 0), len(begin))  # of each cell
    step = max(1, _MOST_HELD // len(looks))
    for at in range(0, len(path.start), step):
        part = slice(first[at], first[min(at + step, len(path.start))])
        yield np.repeat(value[part], count[part]).reshape(-1, len(looks)).astype(np.float64)


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
