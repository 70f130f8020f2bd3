"""iReduct: start with much noise, and take it back step by step where relative errors are large.

[Xiao et al. 2011, Figure 4]  Every table passes through the scales of its grid; what has been revealed costs what the
last scale costs. Departs from the paper: noise is discrete and NoiseDown exact [paths.py], scales never reach zero
[designs/grid.py], PickQueries has its missing 1/|M_j|, a start that does not fit the budget is an
error and no empty result, scales may go down in geometric progression, and a target may end the run before the budget
is used up.

Steps are taken in the order of their priorities, for as long as the budget allows: the loop of Figure 4, all at once.

A step that does not fit takes its table out of the race; cheaper steps of others go on.   [Xiao et al. 2011, line 16]
Rates only grow, and so does their cost: how many steps of the order fit is found by bisection, with exact costs.

PickQueries says which table gets less noise next, judged by its noisy answers alone.                      [picking.py]

For the worst cell, the sums of tables tell of each other's noise, and are compared at the beginning of a stage. It ends
with the first step beyond a budget that grows by a quarter from stage to stage; a table that reaches twice
its rate before waits for the next stage. The last one ends when nothing fits.

Within a stage a table's priority depends on its own revealed answers only; for the average, the whole run is one stage.
So the step that is taken next is always the next step of the table with the largest priority, and the order of all
steps is that of the running minima of the priorities: a step is taken when all priorities above it are used up, and a
table whose priority rises keeps its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np

from hushcube.designs.grid import Grid
from hushcube.designs.refinement import RelativeTarget
from hushcube.model.arrays import Floats, Ints
from hushcube.private.adaptive.paths import NoisePaths, Path
from hushcube.private.adaptive.picking import UNKNOWN, Seen, Total, for_average, for_worst, others_totals, stretches
from hushcube.private.adaptive.subject import Refined, Subject, is_met
from hushcube.private.noise import Entropy
from hushcube.progress import Progress

GROWTH: Final = Fraction(5, 4)
"""What may be spent by the end of a stage, over what may be spent by the end of the one before."""


def ireduct(subject: Subject, entropy: Entropy, report: Progress) -> Refined:
    """Refine a start until the budget is used up or the target met."""
    grids = subject.grids()
    paths = draw_paths(subject, grids, entropy, report)
    levels, met = choose_levels(subject, grids, paths)
    rates, values = subject.unrefined()
    for at, grid, path, level in zip(subject.chosen.tolist(), grids, paths, levels.tolist(), strict=True):
        rates[at], values[at] = (float(grid.rates[level]),), path.at(level)[None]
    told = {"steps": int(levels.sum())}
    if subject.rule.target is not None:
        told["target_met"] = met
    return Refined(rates, values, told)


def draw_paths(subject: Subject, grids: list[Grid], entropy: Entropy, report: Progress) -> list[Path]:
    """The noisy answers of each free group at all its rates: nothing of them is known outside until it is revealed."""
    sources = {id(grid): NoisePaths(grid) for grid in grids}
    truth = [subject.truth[at] for at in subject.chosen]
    if all(len(answers) == 1 for answers in truth) and len(sources) == 1:
        return list(sources[id(grids[0])].draw(np.concatenate(truth), entropy).single())
    paths = []
    done, total = 0, sum(map(len, truth))
    for answers, grid in zip(truth, grids, strict=True):
        paths.append(sources[id(grid)].draw(answers, entropy))
        done += len(answers)
        report("measuring", done / total)
    return paths


def choose_levels(subject: Subject, grids: list[Grid], paths: list[Path]) -> tuple[Ints, bool]:
    """How far each free group goes, from noisy answers alone, and whether the target is met, if there is one."""
    rule = subject.rule
    last = [
        len(grid) - 1 if rule.target is None else met_at(path, grid, rule.target)
        for grid, path in zip(grids, paths, strict=True)
    ]
    levels = (
        _for_worst(subject, grids, paths, last) if rule.pick == "worst" else _for_average(subject, grids, paths, last)
    )
    target = rule.target
    return levels, target is not None and levels.tolist() == last and all(
        end < len(grid) - 1 or is_met(path.at(end), float(grid.scales[end]), target)
        for grid, path, end in zip(grids, paths, last, strict=True)
    )


def _for_average(subject: Subject, grids: list[Grid], paths: list[Path], last: list[int]) -> Ints:
    """The levels that the tables reach, at most the last ones."""
    keys = [
        for_average(path, grid, subject.bound(at, grid.scales), float(subject.worth[at]))[:end]
        for at, path, grid, end in zip(subject.chosen.tolist(), paths, grids, last, strict=True)
    ]
    return walk(keys, lambda steps: subject.cost(rates_at(subject, grids, steps)) <= subject.allowed)


def _for_worst(subject: Subject, grids: list[Grid], paths: list[Path], last: list[int]) -> Ints:
    """The same for the worst cell, stage by stage."""
    bounds, worth = subject.sanity_bounds[subject.chosen].tolist(), subject.worth[subject.chosen].tolist()
    seen = [Seen(path, grid, delta) for path, grid, delta in zip(paths, grids, bounds, strict=True)]
    levels = np.zeros(len(grids), np.int64)
    for stage in stages(subject):
        ends = last if stage.is_last else stage_ends(grids, levels, last)
        now = totals(subject, seen, levels)
        keys = [
            for_worst(table, w, subject.even_rate, total, at, max(at, end))
            for table, w, total, at, end in zip(seen, worth, now, levels.tolist(), ends, strict=True)
        ]

        def fits(steps: Ints, budget: Fraction = stage.budget) -> bool:
            return subject.cost(rates_at(subject, grids, steps)) <= budget

        levels = walk(keys, fits, subject.ranks, levels, pausing=not stage.is_last)
    return levels


class Stage(NamedTuple):
    """A part of a run, and what may be spent by its end."""

    budget: Fraction
    is_last: bool


def stages(subject: Subject) -> Iterator[Stage]:
    """Each has a quarter more than the one before; there is one only where tables say nothing of each other."""
    budget = subject.cost(subject.rates)
    while subject.has_total and 0 < budget * GROWTH < subject.allowed:
        budget *= GROWTH
        yield Stage(budget, is_last=False)
    yield Stage(subject.allowed, is_last=True)


def stage_ends(grids: list[Grid], levels: Ints, last: list[int]) -> list[int]:
    """The levels at which tables have twice the rates that they have at given ones."""
    doubled = (int(np.searchsorted(g.rates, 2 * g.rates[at])) for g, at in zip(grids, levels.tolist(), strict=True))
    return [min(end, level) for end, level in zip(doubled, last, strict=True)]


def totals(subject: Subject, seen: list[Seen], levels: Ints) -> list[Total]:
    """What the answers of the others, at their levels, say of the sum of each free group."""
    if not subject.has_total:
        return [UNKNOWN] * len(seen)
    order = np.argsort(subject.ranks)  # one that does not depend on that of attributes, so that no rounding does
    own = [(seen[j], int(levels[j])) for j in order.tolist()]
    sums = np.array([table.sums[at] for table, at in own], np.float64)
    cells = np.array([table.cells for table, _ in own], np.float64)
    found = others_totals(sums, cells, np.array([table.grid.scales[at] for table, at in own]))
    return [found[rank] for rank in subject.ranks.tolist()]


def rates_at(subject: Subject, grids: list[Grid], levels: Ints) -> Floats:
    """The rates of all groups, with the free ones at given levels."""
    rates = subject.rates.copy()
    rates[subject.chosen] = [grid.rates[level] for grid, level in zip(grids, levels.tolist(), strict=True)]
    return rates


def walk(
    priorities: Sequence[Floats],
    fits: Callable[[Ints], bool],
    ranks: Ints | None = None,
    taken: Ints | None = None,
    *,
    pausing: bool = False,
) -> Ints:
    """How many steps each table takes: `priorities[j][k]` is that of table j's step k, `fits(levels)` the budget.

    Of equal priorities the first table's comes first. With ranks, tables take turns: the one that was picked least
    often, and of those the one with the least rank. With steps that are taken already, priorities are those of the
    steps after them. A walk that pauses ends with the first step that does not fit.

    >>> steps = walk([np.array([5.0, 1.0]), np.array([3.0, 4.0])], lambda levels: levels.sum() <= 3)
    >>> steps.tolist()  # 5 of the first, then 3 and at once 4 of the second
    [1, 2]
    >>> alike = [np.full(9, 1.0)] * 3
    >>> walk(alike, lambda levels: levels.sum() <= 7, ranks=np.array([1, 2, 0])).tolist()
    [2, 2, 3]
    """
    taken = np.zeros(len(priorities), np.int64) if taken is None else taken
    table = np.repeat(np.arange(len(priorities)), [len(p) for p in priorities])
    least = [np.minimum.accumulate(p) for p in priorities]
    key = np.concatenate(least or [np.zeros(0)])
    ties: tuple[Ints, ...] = ()
    if ranks is not None and len(priorities):
        before = taken.tolist()
        steps = (np.where(p == q, np.arange(len(p)), 0) + b for p, q, b in zip(priorities, least, before, strict=True))
        ties = (ranks[table], np.concatenate([np.maximum.accumulate(own) for own in steps]))
    order = table[np.lexsort((*ties, -key))]  # stable: a table's own steps in sequence
    while order.size:
        count = _most(order, taken, fits)
        taken = _after(order, taken, count)
        if count == order.size or pausing:
            break
        order = order[count:][order[count:] != order[count]]
    return taken


def _after(order: Ints, taken: Ints, count: int) -> Ints:
    return taken + np.bincount(order[:count], minlength=len(taken))


def _most(order: Ints, taken: Ints, fits: Callable[[Ints], bool]) -> int:
    """The most steps of the order that fit together: gallop, then bisect."""
    low, high = 0, 1
    while high <= order.size and fits(_after(order, taken, high)):
        low, high = high, 2 * high
    high = min(high, order.size + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(_after(order, taken, middle)) else (low, middle)
    return low


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
