"""PickQueries: which table gets less noise next, judged by its noisy answers alone.

    average   the decrease of the estimated error for each unit of privacy                [Xiao et al. 2011, (14), (15)]
                  w_A mean_cells 1/max(y, delta) (E|X_k| - E|X_{k+1}|)  /  f_A (r_{k+1} - r_k)
              Departs from the paper, which has the sum over cells where Definition 6 has the mean: with the sum the
              choice converges to another optimum than the one that is reported. And delta is raised to a part of the
              noise (`caution`): a count far below its noise cannot be told from one that is ten times larger, and
              to take it at its word spends the budget of all on the tables that are unlucky at first.
    worst     the same for the squares of relative errors, in which the largest ones count most:
                  w_A sum_cells s(y) / sqrt(cells) (1 - (lambda_{k+1} / lambda_k)²)  /  f_A (r_{k+1} - r_k)
              A table of more cells has a larger worst cell, but by far not in proportion: hence the root.

The paper's rule for the worst cell is the largest lambda / max(y, delta) [section 4.3]. It takes y at its word: a small
count that comes out large by luck stops its table at the largest noise. So s is what noise of scale lambda that is seen
as y is expected to do. Two things are known of it. Counts are not below zero. And all tables have the same sum, of
which the other tables' answers have an estimate N of variance V: what a table's own answers add up to beyond N is
noise, and each of its cells has a part h of that. Of all linear predictions, the one of least squared error is

    h = c (sum_cells y - N),    c = 2 lambda² / (2 lambda² cells + V),    the rest has the variance 2 lambda² (1 - c)

so that y - h is the better estimate of the count, and h² / 2 + lambda² (1 - c) half the expected square of the noise:

    s(y) = (h² / 2 + lambda² (1 - c)) / max(y - h, lambda, delta)²
           + min((lambda / delta)^(3/4), (lambda / delta)²) exp(-3/4 (y - h) / lambda)

The first term is for a count of about y - h. The second is for a count below delta, whose square is (lambda / delta)²;
the chance of one falls like exp(-y / lambda), and with delta / lambda in proportion if all counts were alike
beforehand. The powers 3/4 and 5/4 in their places, and the root above, are by experience [benchmarks/worst_cell.py].
An answer below zero shows a part of its own error, and so does a sum that is not N.

And no table is left behind by luck: one with less than a `LAG`th of the rate that all would have alike comes first,
unless all of its answers are `SURE` times their noise. That takes at most a `LAG`th of the budget.

Nothing depends on the order of attributes: of tables with equal priorities, the one comes next that was picked least
often, and of those the first by the names of its attributes [Subject.ranks].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.designs.grid import Grid
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.private.adaptive.paths import Path

SMALL: Final = 0.75
"""The powers of both factors of the chance that a count is small."""
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


@dataclass(frozen=True)
class Total:
    """What other tables' answers say of the sum of a table: an estimate and its variance; infinite if nothing."""

    estimate: float = 0.0
    variance: float = np.inf

    def noise(self, sums: Floats, cells: int, scale: Floats) -> tuple[Floats, Floats]:
        """h and c: the noise that sums of answers show in each cell, and the part of its variance that this explains.

        >>> Total(100.0, 0.0).noise(np.array([106.0]), 2, np.array([5.0]))  # two cells share what is too much
        (array([3.]), array([0.5]))
        """
        with np.errstate(over="ignore"):
            part = 1 / (cells + (np.sqrt(self.variance / 2) / scale) ** 2)
        return part * (sums - self.estimate), part


UNKNOWN: Final = Total()


def others_totals(sums: Floats, cells: Floats, scales: Floats) -> list[Total]:
    """For each table the total by the answers of all others, weighted by the inverse of their variances.

    Sums of what comes before a table and of what comes after it: nothing is subtracted that was added.
    """
    weights = 1 / (2 * cells * np.maximum(scales, 1e-100) ** 2)
    both = np.stack([weights, weights * sums])
    before, after = np.zeros_like(both), np.zeros_like(both)
    before[:, 1:] = np.cumsum(both[:, :-1], axis=1)
    after[:, :-1] = np.cumsum(both[:, :0:-1], axis=1)[:, ::-1]
    weight, product = before + after
    return [Total(float(p / w), float(1 / w)) if w > 0 else UNKNOWN for w, p in zip(weight, product, strict=True)]


def for_worst(
    seen: Seen, worth: float, even_rate: float, total: Total = UNKNOWN, begin: int = 0, end: int | None = None
) -> Floats:
    """The same for the worst cell, for some steps; `even_rate` is that of tables which share the budget alike."""
    grid, end = seen.grid, len(seen.grid) - 1 if end is None else end
    rates, scales = grid.rates[begin : end + 1], grid.scales[begin : end + 1]
    gain = (1 - (scales[1:] / scales[:-1]) ** 2) / np.diff(rates)
    behind = is_behind(rates[:-1], scales[:-1], seen.least[begin:end], seen.delta, even_rate)
    return np.asarray(worth * np.where(behind, AHEAD * scales[:-1], seen.squares(total, begin, end) * gain))


def square(
    answers: Floats, scale: Floats | float, delta: float, noise: Floats | float = 0.0, part: Floats | float = 0.0
) -> Floats:
    """s(y): the squared relative error, halved, that is expected of noise that is seen in an answer and in a sum."""
    ratio, count = np.asarray(scale / delta), answers - noise
    small = np.minimum(ratio**SMALL, ratio**2) * np.exp(np.minimum(-SMALL * count / scale, 500.0))
    size = np.asarray(noise) ** 2 / 2 + np.asarray(scale) ** 2 * (1 - np.asarray(part))
    return np.asarray(size / np.maximum(count, np.maximum(scale, delta)) ** 2 + small)


def of_table(squares: Floats) -> float:
    """What the squares of its cells come to for a table."""
    return float(squares.sum() / np.sqrt(len(squares)))


def is_behind(rate: Floats | float, scale: Floats | float, least: Floats | float, delta: float, even: float) -> Bools:
    """Whether a table with a given least answer has so little of the budget that it comes first."""
    is_unsure = np.asarray(least) < np.maximum(SURE * np.asarray(scale), delta)
    return np.asarray(is_unsure & (np.asarray(rate) * LAG < even))


class Seen:
    """What the answers of a table show at every level.

    Where levels are close together, they share what the last level shows whose scale differs: it is revealed by then.
    """

    def __init__(self, path: Path, grid: Grid, delta: float) -> None:
        self.grid, self.delta, self.cells = grid, delta, len(path.start)
        self._stretches = stretches(path, len(grid))
        turns = np.floor(np.log(grid.scales[0] / grid.scales) / _FINEST)
        self._looks = np.flatnonzero(np.diff(turns, prepend=-1.0))
        self._look = np.searchsorted(self._looks, np.arange(len(grid)), side="right") - 1
        change = np.zeros(len(grid), np.int64)
        np.add.at(change, path.levels, path.after - path.before)
        self.sums: Ints = path.start.sum() + np.cumsum(change)
        """Of the answers, at every level."""
        least = np.full(len(self._looks), np.inf)
        for answers in self._dense(self._looks):
            np.minimum(least, answers.min(axis=0), out=least)
        self.least: Floats = least[self._look]
        """The least answer, at every level."""

    def squares(self, total: Total, begin: int, end: int) -> Floats:
        """What the squares of the cells come to, at some levels."""
        if begin == end:
            return np.zeros(0)
        own = slice(self._look[begin], self._look[end - 1] + 1)
        looks = self._looks[own]
        scales = self.grid.scales[looks]
        noise, part = total.noise(self.sums[looks].astype(np.float64), self.cells, scales)
        found = np.zeros(len(looks))
        for answers in self._dense(looks):
            found += square(answers, scales, self.delta, noise, part).sum(axis=0)
        return np.asarray(found[self._look[begin:end] - own.start] / np.sqrt(self.cells))

    def _dense(self, looks: Ints) -> Iterator[Floats]:
        """The answers (cells, looks) at some levels, a few cells at a time: how many depends on nothing private."""
        begin, end, value = self._stretches
        count = np.searchsorted(looks, end) - np.searchsorted(looks, begin)
        first = np.append(np.flatnonzero(begin == 0), len(begin))  # of each cell
        step = max(1, _MOST_HELD // len(looks))
        for at in range(0, self.cells, step):
            part = slice(first[at], first[min(at + step, self.cells)])
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
