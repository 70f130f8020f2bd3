"""Priorities and targets, all levels at once, against what a look at each level gives."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from adaptive_runs import path_of
from hypothesis import given, strategies as st

from hushcube.designs.grid import Grid, mean_size
from hushcube.designs.refinement import Amount, RelativeTarget
from hushcube.private.adaptive.ireduct import met_at
from hushcube.private.adaptive.paths import NoisePaths
from hushcube.private.adaptive.picking import (
    LAG,
    SURE,
    UNKNOWN,
    Seen,
    Total,
    for_average,
    for_worst,
    mean_inverse,
    others_totals,
    stretches,
)
from hushcube.private.adaptive.subject import is_met
from hushcube.private.noise import SeededEntropy


def falling(bound, levels):
    """A bound for each level, from many times the last one down to it."""
    return bound * np.linspace(8.0, 1.0, levels)


bounds = st.tuples(st.sampled_from([0.5, 1.0, 7.25, 100.0]), st.booleans())
"""The least bound, and whether bounds fall from level to level."""


@st.composite
def dense_values(draw):
    """Answers (levels, cells) in which cells keep their values for a while, or for one level, or for all."""
    levels, cells = draw(st.integers(1, 20)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    change = rng.random((levels, cells)) < draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    values = rng.integers(-20, 200, (levels, cells))
    for level in range(1, levels):
        values[level] = np.where(change[level], values[level], values[level - 1])
    return values


@st.composite
def grids(draw, levels):
    rates = np.cumsum(draw(st.lists(st.floats(0.001, 0.3), min_size=levels, max_size=levels)))
    return Grid(rates)


@st.composite
def coarse_grids(draw, levels):
    """Grids whose levels are all looked at."""
    steps = draw(st.lists(st.floats(1.02, 1.5), min_size=levels, max_size=levels))
    return Grid(0.001 * np.cumprod(steps))


def given_bound(bound, levels):
    """What is given to the functions, and the bound of each level."""
    least, falls = bound
    each = falling(least, levels) if falls else np.full(levels, least)
    return (each if falls else least), each.tolist()


@given(dense_values())
def test_a_path_of_values_has_these_values(values):
    path = path_of(values)
    assert [path.at(level).tolist() for level in range(len(values))] == values.tolist()


@given(dense_values(), bounds)
def test_mean_inverse_is_that_of_each_level(values, bound):
    given_, each = given_bound(bound, len(values))
    expected = [
        float(sum(1 / Fraction(max(y, delta)) for y in line) / len(line))
        for line, delta in zip(values.tolist(), each, strict=True)
    ]
    assert mean_inverse(path_of(values), len(values), given_) == pytest.approx(expected, rel=1e-11)


@given(dense_values())
def test_stretches_cover_every_cell_and_level_once(values):
    begin, end, value = stretches(path_of(values), len(values))
    assert (begin < end).all()
    for level, line in enumerate(values.tolist()):
        assert sorted(value[(begin <= level) & (level < end)].tolist()) == sorted(line)
    cell_changes = (values[1:] != values[:-1]).sum() + values.shape[1]
    assert len(begin) == cell_changes


@given(
    st.data(), dense_values(), st.sampled_from(["0.01", "0.1", "0.5", "3"]), st.sampled_from(["0.7", "20.1", "150.3"])
)
def test_the_target_is_met_where_the_first_level_meets_it(data, values, error, above):
    """The paper's words, cell by cell: in view and too noisy."""
    grid = data.draw(grids(len(values)))
    target = RelativeTarget(Fraction(error), Amount(Fraction(above)))

    def meets(level):
        scale = float(mean_size(grid.rates[level]))
        counted = [y for y in values[level].tolist() if y + 3 * scale >= float(above)]
        return all(scale <= float(error) * max(y, float(above)) for y in counted)

    found = [level for level in range(len(values)) if meets(level)]
    assert met_at(path_of(values), grid, target) == (found[0] if found else len(values) - 1)
    for level in range(len(values)):
        assert is_met(values[level], float(grid.scales[level]), target) == meets(level)


@given(st.data(), dense_values(), bounds, st.floats(0.1, 5))
def test_priorities_are_gain_for_each_unit_of_privacy(data, values, bound, worth):
    grid = data.draw(grids(len(values)))
    given_, each = given_bound(bound, len(values))
    found = for_average(path_of(values), grid, given_, worth)
    assert len(found) == len(values) - 1
    for k, priority in enumerate(found.tolist()):
        now, then = (float(mean_size(grid.rates[at])) for at in (k, k + 1))
        error = float(np.mean([1 / max(y, each[k]) for y in values[k].tolist()]))
        expected = worth * error * (now - then) / (grid.rates[k + 1] - grid.rates[k])
        assert priority == pytest.approx(expected, rel=1e-9)


totals = st.sampled_from([UNKNOWN, Total(300.0, 0.0), Total(-40.0, 1e4), Total(1e5, 1e9)])


def expected_squares(answers, scale, delta, total=UNKNOWN):
    """What is expected of noise that is seen in answers and in their sum, from the definition."""
    part = 2 * scale**2 / (2 * scale**2 * len(answers) + total.variance)
    noise = part * (sum(answers) - total.estimate)
    found = []
    for y in answers:
        small = min((scale / delta) ** 0.75, (scale / delta) ** 2) * math.exp(min(-0.75 * (y - noise) / scale, 500))
        size = noise**2 / 2 + scale**2 * (1 - part)
        found.append(size / max(y - noise, scale, delta) ** 2 + small)
    return sum(found) / math.sqrt(len(found))


@given(st.data(), dense_values(), st.sampled_from([0.5, 7.25, 100.0]), st.floats(0.001, 3.0), st.floats(0.1, 5), totals)
def test_priorities_for_the_worst_cell(data, values, delta, even, worth, total):
    """The gain in squares for each unit of privacy; before it, tables that are left behind, the noisiest first."""
    grid = data.draw(coarse_grids(len(values)))
    table = Seen(path_of(values), grid, delta)
    found = for_worst(table, worth, even, total).tolist()
    behind, others = [], []
    for k, priority in enumerate(found):
        now, then = (float(mean_size(grid.rates[at])) for at in (k, k + 1))
        if LAG * grid.rates[k] < even and min(values[k].tolist()) < max(SURE * now, delta):
            behind.append(priority / now)
            continue
        squares = expected_squares(values[k].tolist(), now, delta, total)
        others.append(priority)
        step = grid.rates[k + 1] - grid.rates[k]
        assert priority == pytest.approx(worth * squares * (1 - (then / now) ** 2) / step, rel=1e-9)
    assert behind == pytest.approx(behind[:1] * len(behind))
    assert min(behind, default=math.inf) > 1e9 * max(others, default=0.0)
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, len(found))] * 2)))
    assert for_worst(table, worth, even, total, begin, end).tolist() == found[begin:end]


@given(st.integers(2, 6), st.floats(0.1, 50), st.sampled_from([0.0, 3.0, 1e4]), st.integers(0, 10**6))
def test_the_noise_that_a_sum_shows_is_the_best_linear_prediction(cells, scale, variance, seed):
    """Against the conditional mean and variance from the covariances of a cell's noise with the sum's surplus."""
    rng = np.random.default_rng(seed)
    estimate, total = float(rng.integers(-100, 1000)), float(rng.integers(-100, 1000))
    noises = np.diag([2 * scale**2] * cells + [variance])  # of the cells, and of what others say of the total
    surplus = np.array([1.0] * cells + [-1.0])
    both = noises[0] @ surplus / (surplus @ noises @ surplus)
    noise, part = Total(estimate, variance).noise(np.array([total]), cells, np.array([scale]))
    assert noise[0] == pytest.approx(both * (total - estimate), rel=1e-12)
    left = noises[0, 0] - (noises[0] @ surplus) ** 2 / (surplus @ noises @ surplus)
    assert 2 * scale**2 * (1 - part[0]) == pytest.approx(left, rel=1e-12)


@given(st.lists(st.tuples(st.integers(-500, 10**6), st.integers(1, 99), st.floats(1e-3, 1e5)), min_size=1, max_size=6))
def test_totals_of_others_are_means_weighted_by_inverse_variances(tables):
    found = others_totals(*(np.array(column, float) for column in zip(*tables, strict=True)))
    for j, total in enumerate(found):
        others = [(y, 1 / (2 * cells * Fraction(scale) ** 2)) for y, cells, scale in tables[:j] + tables[j + 1 :]]
        weight = sum(w for _, w in others)
        if not others:
            assert total == UNKNOWN
            continue
        assert total.variance == pytest.approx(float(1 / weight), rel=1e-12)
        size = float(sum(abs(y) * w for y, w in others) / weight)
        assert total.estimate == pytest.approx(float(sum(y * w for y, w in others) / weight), abs=1e-12 * size)


def test_noise_far_below_one_is_no_error():
    """Rates in the hundreds: nothing is divided by zero, and what is exact tells what is not."""
    one, two = others_totals(np.array([50.0, 70.0]), np.array([2.0, 2.0]), mean_size(np.array([0.01, 690.0])))
    assert (one.estimate, two.estimate) == (70.0, 50.0) and one.variance < 1e-100
    noise, part = two.noise(np.array([70.0]), 2, mean_size(np.array([690.0])))
    assert (noise.tolist(), part.tolist()) == ([0.0], [0.0])


def test_close_levels_share_what_the_first_of_them_shows():
    """A million levels are looked at where the scale has changed by a little, never before it is revealed."""
    grid = Grid(np.geomspace(0.01, 0.02, 2000))
    path = NoisePaths(grid).draw(np.array([0, 3, 500, 40]), SeededEntropy(2))
    total = Total(520.0, 40.0)
    table = Seen(path, grid, 5.0)
    squares, least = table.squares(total, 0, len(grid)), table.least
    values = np.stack([path.at(level) for level in range(len(grid))])
    assert table.sums.tolist() == values.sum(axis=1).tolist()
    looked = np.flatnonzero(np.diff(squares, prepend=0))
    assert 50 < len(looked) < 100
    for at, until in pairwise([*looked.tolist(), len(grid)]):
        assert squares[at] == pytest.approx(expected_squares(values[at].tolist(), float(grid.scales[at]), 5.0, total))
        assert np.ptp(squares[at:until]) == np.ptp(least[at:until]) == 0 and least[at] == values[at].min()


def test_on_drawn_paths():
    grid = Grid(np.geomspace(0.01, 1.0, 700))
    path = NoisePaths(grid).draw(np.array([0, 3, 500, 40]), SeededEntropy(2))
    values = np.stack([path.at(level) for level in range(700)])
    coarse = Grid(grid.rates[::10])
    assert Seen(path_of(values[::10]), coarse, 2.5).least.tolist() == values[::10].min(axis=1).tolist()
    assert mean_inverse(path, 700, 2.5) == pytest.approx((1 / np.maximum(values, 2.5)).mean(axis=1), rel=1e-12)


@given(dense_values(), st.integers(0, 19), bounds)
def test_what_is_not_revealed_changes_no_bit_of_a_priority(values, level, bound):
    """Not even by rounding: sums run from coarse to fine."""
    given_, _ = given_bound(bound, len(values))
    level = min(level, len(values) - 1)
    other = values.copy()
    other[level + 1 :] = other[level + 1 :][:, ::-1] * 7 + 1
    one, two = (mean_inverse(path_of(v), len(values), given_)[: level + 1].tolist() for v in (values, other))
    assert one == two
    grid = Grid(0.01 * 1.1 ** np.arange(len(values)))
    tables = [Seen(path_of(v), grid, bound[0]) for v in (values, other)]
    assert tables[0].sums[: level + 1].tolist() == tables[1].sums[: level + 1].tolist()
    one, two = (for_worst(table, 1.0, 0.03, Total(90.0, 7.0))[: level + 1].tolist() for table in tables)
    assert one == two
