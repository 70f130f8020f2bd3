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

A table's priority depends on its own revealed answers only. So the step that is taken next is always the next step of
the table with the largest priority, and the order of all steps is that of the running minima of the priorities: a step
is taken when all priorities above it are used up, and a table whose priority rises keeps its turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hushcube.designs.grid import Grid
from hushcube.designs.refinement import RelativeTarget
from hushcube.model.arrays import Floats, Ints
from hushcube.private.adaptive.paths import NoisePaths, Path
from hushcube.private.adaptive.picking import for_average, for_worst, stretches
from hushcube.private.adaptive.subject import Refined, Subject, is_met
from hushcube.private.noise import Entropy
from hushcube.progress import Progress


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
    keys = [
        priorities(subject, at, path, grid)[:end]
        for at, path, grid, end in zip(subject.chosen.tolist(), paths, grids, last, strict=True)
    ]
    ranks = subject.ranks if rule.pick == "worst" else None
    levels = walk(keys, lambda steps: subject.cost(rates_at(subject, grids, steps)) <= subject.allowed, ranks)
    target = rule.target
    return levels, target is not None and levels.tolist() == last and all(
        end < len(grid) - 1 or is_met(path.at(end), float(grid.scales[end]), target)
        for grid, path, end in zip(grids, paths, last, strict=True)
    )


def rates_at(subject: Subject, grids: list[Grid], levels: Ints) -> Floats:
    """The rates of all groups, with the free ones at given levels."""
    rates = subject.rates.copy()
    rates[subject.chosen] = [grid.rates[level] for grid, level in zip(grids, levels.tolist(), strict=True)]
    return rates


def walk(priorities: Sequence[Floats], fits: Callable[[Ints], bool], ranks: Ints | None = None) -> Ints:
    """How many steps each table takes: `priorities[j][k]` is that of table j's step k, `fits(levels)` the budget.

    Of equal priorities the first table's comes first. With ranks, tables take turns: the one that was picked least
    often, and of those the one with the least rank.

    >>> steps = walk([np.array([5.0, 1.0]), np.array([3.0, 4.0])], lambda levels: levels.sum() <= 3)
    >>> steps.tolist()  # 5 of the first, then 3 and at once 4 of the second
    [1, 2]
    >>> alike = [np.full(9, 1.0)] * 3
    >>> walk(alike, lambda levels: levels.sum() <= 7, ranks=np.array([1, 2, 0])).tolist()
    [2, 2, 3]
    """
    table = np.repeat(np.arange(len(priorities)), [len(p) for p in priorities])
    least = [np.minimum.accumulate(p) for p in priorities]
    key = np.concatenate(least or [np.zeros(0)])
    ties: tuple[Ints, ...] = ()
    if ranks is not None and len(priorities):
        steps = (np.where(p == q, np.arange(len(p)), 0) for p, q in zip(priorities, least, strict=True))
        ties = (ranks[table], np.concatenate([np.maximum.accumulate(own) for own in steps]))
    order = table[np.lexsort((*ties, -key))]  # stable: a table's own steps in sequence
    taken = np.zeros(len(priorities), np.int64)
    while order.size:
        count = _most(order, taken, fits)
        taken = _after(order, taken, count)
        if count == order.size:
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


def priorities(subject: Subject, at: int, path: Path, grid: Grid) -> Floats:
    """The priority of the step of a group from each level to the next."""
    worth = float(subject.worth[at])
    if subject.rule.pick == "worst":
        return for_worst(path, grid, float(subject.sanity_bounds[at]), worth, subject.even_rate)
    return for_average(path, grid, subject.bound(at, grid.scales), worth)


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
