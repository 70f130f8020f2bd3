"""iReduct's decisions against Figure 4 carried out step by step, with PickQueries and the guard mended."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from adaptive_runs import exact_cost, garbled, make_subject, path_of
from hypothesis import given, reject, settings, strategies as st

from helpers import NEIGHBOURS
from hushcube.designs.grid import mean_size
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput
from hushcube.private.adaptive.ireduct import choose_levels, draw_paths, rates_at, totals, walk
from hushcube.private.adaptive.picking import Seen, for_average, for_worst
from hushcube.private.adaptive.subject import is_met
from hushcube.private.noise import SeededEntropy

QUERIES = [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [2, 0, 0, 1, 0, -1]]
RULES = {
    "geometric": {"lambda_factor": "0.8"},
    "arithmetic": {"lambda_max": 40, "lambda_step": 3},
    "coarse": {"lambda_max": 30, "lambda_step": 20},
    "half": {"lambda_factor": "0.5", "start_share": "0.3"},
}


def budgets_of(subject):
    """What may be spent by the end of each stage: there are several where sums of tables tell of each other's noise."""
    found = []
    if subject.rule.pick == "worst" and isinstance(subject.start, LatticeDesign):
        spent = exact_cost(subject.start, subject.rates)
        while 0 < (spent := spent * Fraction(5, 4)) < subject.allowed:
            found.append(spent)
    return [*found, subject.allowed]


def figure_4(subject, grids, paths, priority):
    """Lines 5-17: the best table next; one whose step does not fit, or that is done, leaves the race.

    Of equal ones the first; for the worst cell, the one that was picked least often, then by rank. Before the last
    stage, a step that does not fit ends the stage, and a table with twice its rate waits for the next one.
    """
    target, chosen = subject.rule.target, subject.chosen.tolist()
    levels, budgets = [0] * len(grids), budgets_of(subject)

    def is_done(j):
        at = levels[j]
        met = target is not None and is_met(paths[j].at(at), float(mean_size(grids[j].rates[at])), target)
        return met or at == len(grids[j]) - 1

    def turn(j):
        return (-levels[j], -subject.ranks[j]) if subject.rule.pick == "worst" else (-j,)

    for number, budget in enumerate(budgets, 1):
        is_last, race, begun = number == len(budgets), set(range(len(grids))), list(levels)

        def waits(j, begun=begun, is_last=is_last):
            return not is_last and grids[j].rates[levels[j]] >= 2 * grids[j].rates[begun[j]]

        while race := {j for j in race if not is_done(j) and not waits(j)}:
            best = max(sorted(race), key=lambda j: (priority(j, levels[j], begun), *turn(j)))
            rates = subject.rates.copy()
            for j, group in enumerate(chosen):
                rates[group] = grids[j].rates[levels[j] + (j == best)]
            if exact_cost(subject.start, rates) <= budget:
                levels[best] += 1
            elif is_last:
                race.discard(best)
            else:
                break
    return levels


def revealed_priority(subject, grids, paths):
    """From what is revealed at a level alone; numbers that must not matter stand in the place of the rest."""
    bounds = subject.sanity_bounds[subject.chosen].tolist()

    def hidden(j, level):
        return garbled(paths[j], level, len(grids[j]), seed=level)

    def looked(j, level):
        return Seen(hidden(j, level), grids[j], bounds[j])

    def priority(j, level, begun):
        at = int(subject.chosen[j])
        if subject.rule.pick == "average":
            bound = subject.bound(at, grids[j].scales)
            return float(for_average(hidden(j, level), grids[j], bound, float(subject.worth[at]))[level])
        told = totals(subject, [looked(i, begun[i]) for i in range(len(grids))], np.array(begun))[j]
        return float(for_worst(looked(j, level), float(subject.worth[at]), subject.even_rate, told)[level])

    return priority


def own_priority(subject, grids, paths):
    """(14), (15) with the mean over cells, or of squares for the worst cell, in fractions as far as they go."""
    worth, rule = subject.worth[subject.chosen].tolist(), subject.rule
    even = float(subject.allowed / exact_cost(subject.start, np.where(subject.free, 1.0, subject.rates)))

    def scale(j, level):
        return float(mean_size(grids[j].rates[level]))

    def shown(j, level, begun):
        """The noise that the sum shows in each cell, and the part of the variance that this explains."""
        others = [i for i in range(len(grids)) if i != j] if isinstance(subject.start, LatticeDesign) else []
        if not others:
            return 0.0, 0.0
        sums = {i: int(paths[i].at(begun[i]).sum()) for i in others}
        weights = {i: 1 / (2 * len(paths[i].start) * Fraction(scale(i, begun[i])) ** 2) for i in others}
        total = float(sum(sums[i] * weights[i] for i in others) / sum(weights.values()))
        y, noise = paths[j].at(level), 2 * scale(j, level) ** 2
        part = noise / (noise * len(y) + float(1 / sum(weights.values())))
        return part * (int(y.sum()) - total), part

    def priority(j, level, begun):
        delta = max(float(rule.sanity_bound.value), float(rule.caution) * scale(j, level))
        answers = [max(Fraction(y), Fraction(delta)) for y in paths[j].at(level).tolist()]
        now, then = scale(j, level), scale(j, level + 1)
        step = float(grids[j].rates[level + 1] - grids[j].rates[level])
        if subject.rule.pick == "worst":
            y, delta = paths[j].at(level).astype(float), float(rule.sanity_bound.value)
            if grids[j].rates[level] * 4 < even and y.min() < max(10 * now, delta):
                return worth[j] * 2.0**900 * now
            noise, part = shown(j, level, begun)
            small = min((now / delta) ** 0.75, (now / delta) ** 2) * np.exp(-0.75 * (y - noise) / now)
            squares = (noise**2 / 2 + now**2 * (1 - part)) / np.maximum(y - noise, max(now, delta)) ** 2 + small
            return worth[j] * float(squares.sum()) / len(y) ** 0.5 * (1 - (then / now) ** 2) / step
        mean = float(sum(1 / y for y in answers) / len(answers))
        return worth[j] * mean * (now - then) / step

    return priority


@st.composite
def subjects(draw, *, target):
    rule = {"sanity_bound": draw(st.sampled_from([1, 4, 30])), "pick": draw(st.sampled_from(["average", "worst"]))}
    rule |= {"caution": draw(st.sampled_from([0, "0.1", "0.7"]))}
    rule |= RULES[draw(st.sampled_from(sorted(RULES)))]
    if target:
        rule |= {"relative_error": draw(st.sampled_from(["0.05", "0.3", "2"])), "above": draw(st.sampled_from([5, 20]))}
    asked = {"epsilon": draw(st.sampled_from(["0.3", "0.5", 1, 2])), "neighbours": draw(st.sampled_from(NEIGHBOURS))}
    seed = draw(st.integers(0, 10**6))
    if draw(st.booleans()):
        return make_subject((2, 3), "queries", rule, queries=QUERIES, rows=100, seed=seed, **asked), seed
    words = draw(st.sampled_from(["1-way", "a0,a1*a2=3", "1-way,0-way", "2-way"]))
    try:
        return make_subject((2, 3, 4), words, rule, rows=100, seed=seed, **asked), seed
    except BadInput as problem:
        assert "too small to start" in str(problem)
        reject()


def check(case, *, priority=revealed_priority):
    subject, seed = case
    grids = subject.grids()
    paths = draw_paths(subject, grids, SeededEntropy(seed), lambda *_: None)
    levels, met = choose_levels(subject, grids, paths)
    assert levels.tolist() == figure_4(subject, grids, paths, priority(subject, grids, paths))
    assert exact_cost(subject.start, rates_at(subject, grids, levels)) <= subject.allowed
    target = subject.rule.target
    scales = [float(grid.scales[level]) for grid, level in zip(grids, levels, strict=True)]
    assert met == (
        target is not None
        and all(is_met(path.at(at), s, target) for path, at, s in zip(paths, levels, scales, strict=True))
    )
    return levels


@pytest.mark.slow
@given(subjects(target=False))
@settings(max_examples=40)
def test_decisions_are_those_of_figure_4(case):
    check(case)


@pytest.mark.slow
@given(subjects(target=True))
@settings(max_examples=40)
def test_decisions_are_those_of_figure_4_until_the_target_is_met(case):
    check(case)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("pick", ["average", "worst"])
@pytest.mark.parametrize("caution", [0, "0.1"])
@pytest.mark.parametrize("rule", RULES)
def test_decisions_with_priorities_computed_apart(rule, caution, pick, neighbours):
    """Large counts and uneven tables: no two priorities are so close that rounding could order them."""
    given_ = {"sanity_bound": 4, "pick": pick, "caution": caution, **RULES[rule]}
    asked = {"epsilon": 1, "neighbours": neighbours, "rows": 100_003, "seed": 1}
    for subject in (
        make_subject((3, 5), "1-way,a0*a1", given_, **asked),
        make_subject((2, 3), "queries", given_, queries=QUERIES, **asked),
    ):
        assert check((subject, 7), priority=own_priority).sum() > 0


# ------------------------------------------------------------------------------------------------------ the walk alone


@st.composite
def races(draw):
    """Priorities that rise, fall and tie, and costs of steps."""
    tables = draw(st.integers(0, 5))
    keys = [np.array(draw(st.lists(st.integers(0, 5), max_size=8)), float) for _ in range(tables)]
    costs = [np.cumsum(draw(st.lists(st.integers(0, 4), min_size=len(k), max_size=len(k)))) for k in keys]
    return keys, costs, draw(st.integers(0, 40))


@pytest.mark.slow
@given(races(), st.none() | st.randoms(use_true_random=False), st.booleans(), st.integers(0, 3))
@settings(max_examples=400)
def test_the_walk_takes_the_largest_priority_first(race, order, pausing, begun):
    """A refused table leaves, and the others go on. Ties go to the first table, or with ranks from one to the next.

    A walk may begin where another one ended, and it may end with the first refusal.
    """
    keys, costs, budget = race
    ranks = list(range(len(keys)))
    if order is not None:
        order.shuffle(ranks)

    def turn(j):
        return (-j,) if order is None else (-levels[j], -ranks[j])

    def cost(levels):
        return sum(int(c[level - 1]) for c, level in zip(costs, levels, strict=True) if level)

    start = [min(begun, len(k)) for k in keys]
    levels, left = list(start), set(range(len(keys)))
    while left := {j for j in left if levels[j] < len(keys[j])}:
        best = max(sorted(left), key=lambda j: (keys[j][levels[j]], *turn(j)))
        levels[best] += 1
        if cost(levels) > budget:
            levels[best] -= 1
            left = left - {best} if not pausing else set()
    given_ranks = None if order is None else np.array(ranks, int)
    after = [k[at:] for k, at in zip(keys, start, strict=True)]
    taken = np.array(start, int) if begun else None
    found = walk(after, lambda steps: cost(steps.tolist()) <= budget, given_ranks, taken, pausing=pausing)
    assert found.tolist() == levels


# ------------------------------------------------------------------------------------- how far scales may come down


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("start", ["1/20", "1/2"])
@pytest.mark.parametrize(
    "queries",
    [
        [[1, 0, 0]],
        [[1, 0, 0], [0, 1, 0]],
        [[1, 0, 0], [1, 1, 1]],
        [[3, 0, 0]],
        [[1, -1, 0]],
        [[1, 0, 0], *[[0, 0, 1]] * 3],
    ],
    ids=str,
)
def test_no_grid_ends_before_the_budget_does(queries, start, neighbours):
    """With all others as at the start, a step beyond the end of any grid would be refused."""
    rule = {"sanity_bound": 1, "start_share": start}
    subject = make_subject((3,), "queries", rule, queries=queries, neighbours=neighbours)
    grids = subject.grids()
    for j, group in enumerate(subject.chosen.tolist()):
        beyond = subject.rates.copy()
        beyond[group] = grids[j].rates[-1] / 0.98  # scales go down by a hundredth at a time
        assert exact_cost(subject.start, beyond) > subject.allowed


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("words", ["1-way", "a0*a1", "1-way,a0*a1"])
def test_no_grid_of_a_table_ends_before_the_budget_does(words, neighbours):
    subject = make_subject((2, 3), words, {"sanity_bound": 1}, neighbours=neighbours)
    for j, (group, grid) in enumerate(zip(subject.chosen.tolist(), subject.grids(), strict=True)):
        beyond = subject.rates.copy()
        beyond[group] = grid.rates[-1] / 0.98
        assert exact_cost(subject.start, beyond) > subject.allowed, j


# ----------------------------------------------------------------------------------------- nothing unrevealed, no truth


class Untouchable:
    """Exact answers that nobody may look at."""

    def __getattr__(self, name):
        raise AssertionError(f"exact answers were asked for {name}")

    def __getitem__(self, at):
        raise AssertionError("an exact answer was read")

    __len__ = __iter__ = __array__ = None


@given(subjects(target=True), st.integers(0, 99))
@settings(max_examples=60)
def test_decisions_need_neither_exact_answers_nor_what_is_not_revealed(case, garbage):
    subject, seed = case
    grids = subject.grids()
    paths = draw_paths(subject, grids, SeededEntropy(seed), lambda *_: None)
    decided = choose_levels(subject, grids, paths)
    blind = replace(subject, truth=Untouchable())
    hidden = [
        garbled(path, int(level), len(grid), garbage + j)
        for j, (path, level, grid) in enumerate(zip(paths, decided[0], grids, strict=True))
    ]
    again = choose_levels(blind, blind.grids(), hidden)
    assert (again[0].tolist(), again[1]) == (decided[0].tolist(), decided[1])
    assert blind.grids()[0].rates.tolist() == grids[0].rates.tolist()


def test_an_unrevealed_answer_that_were_looked_at_would_be_noticed():
    """The judge has teeth: answers that are revealed do change decisions."""
    subject = make_subject((3, 5), "1-way", {"sanity_bound": 1}, rows=1000)
    grids = subject.grids()
    paths = draw_paths(subject, grids, SeededEntropy(3), lambda *_: None)
    decided = choose_levels(subject, grids, paths)[0]
    seen = [garbled(path, int(level) // 2, len(g), 5) for path, level, g in zip(paths, decided, grids, strict=True)]
    assert choose_levels(subject, grids, seen)[0].tolist() != decided.tolist()
    dense = [np.stack([path.at(at) for at in range(len(grid))]) for path, grid in zip(paths, grids, strict=True)]
    assert choose_levels(subject, grids, [path_of(values) for values in dense])[0].tolist() == decided.tolist()
