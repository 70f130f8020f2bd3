"""Noise at every rate of a grid: exact decisions, the float filter in doubt, the joint law, and the order of events."""

import math
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, strategies as st
from scipy import stats

from hushcube.designs.grid import Grid
from hushcube.private.adaptive.paths import NoisePaths, stay_bounds
from hushcube.private.noise import SeededEntropy
from hushcube.private.noise.exact import LazyUniform
from noise_down import posterior

RATES = np.array([0.01, 0.011, 0.2, 0.2000001, 1.5, 30.0])
FALSE_ALARM = 1e-6
UNIT = 1 << 64


class Words:
    """Gives the 64-bit words it was told, and no other."""

    private = False

    def __init__(self, *words):
        self.left = list(words)

    def words(self, count):
        given, self.left = self.left[:count], self.left[count:]
        assert len(given) == count, "more random digits were read than the decision needs"
        return np.array(given, np.uint64)


@cache
def stay_ratio(coarse, fine, digits=120):
    """S(coarse) / S(fine) to within about 10^-100, by an independent implementation."""
    with localcontext() as context:
        context.prec = digits + 60  # S(2^-51) loses 31 digits
        S = []
        for rate in (Fraction(coarse), Fraction(fine)):
            x = Decimal(rate.numerator) / Decimal(rate.denominator)
            S.append(x.exp() + (-x).exp() - 2)
        return Fraction(int((S[0] / S[1]).scaleb(digits)), 10**digits)


TINY = Fraction(1, 10**100)


def words_of(value, count):
    """The first 64-bit words of a number in [0, 1)."""
    digits = int(value * (1 << 64 * count))
    return [digits >> 64 * (count - 1 - i) & (UNIT - 1) for i in range(count)]


# ----------------------------------------------------------------------------------------------------- exact decisions


@pytest.mark.parametrize(
    ("coarse", "fine"),
    [
        (0.01, 0.0101),
        (2.0**-40, 2.0**-39),
        (2.0**-40, 2.0**-40 * (1 + 2.0**-30)),
        (2.0**-51, 1.0),
        (0.5, 40.0),
        (3.0, 3.0000001),
        (100.0, 101.0),
        (300.0, 480.0),
    ],
)
def test_stay_bounds_enclose_the_ratio_and_tighten(coarse, fine):
    true, bounds = stay_ratio(coarse, fine), stay_bounds(Fraction(coarse), Fraction(fine))
    lost = math.ceil(1.5 * fine) if fine > 40 else 0  # exp(-rate) is enclosed absolutely: its leading zeros are lost
    widths = []
    for bits in (64, 128, 256, 1024):
        low, high = bounds(bits)
        assert 0 <= low <= true + TINY
        assert true - TINY <= high <= 1
        widths.append(high - low)
        assert high - low <= Fraction(1 << lost, 1 << bits)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] > widths[-1]


def test_a_rate_surely_stays_itself():
    assert stay_bounds(Fraction(1, 3), Fraction(1, 3))(64) == (1, 1)


def threshold_cases():
    """Digits right below and above every threshold, and the level that they must lead to."""
    for level in range(1, len(RATES)):
        for k in range(level):
            ratio = stay_ratio(RATES[k], RATES[level])
            for side in (-1, 1):
                yield level, k, side, words_of(ratio + side * Fraction(1, 1 << 250), 4), k if side < 0 else k + 1


@pytest.mark.parametrize("guess", [0, 1, 2, 3, 4, 5, 6])
def test_a_uniform_right_at_a_threshold_is_decided_exactly(guess):
    """The numbers agree with the threshold in 240 digits; whatever the guess, the first difference decides."""
    source = NoisePaths(Grid(RATES))
    for level, _, _, words, expected in threshold_cases():
        uniform = LazyUniform(Words(*words[1:]), words[0], 64)
        assert source.change_of(uniform, level, guess) == expected


rates = st.floats(2.0**-40, 40.0)


@given(st.lists(rates, min_size=2, max_size=5, unique=True), st.integers(0, UNIT - 1), st.integers(0, 5))
@example([2.0**-40, 40.0], 0, 0)
@example([1.0, math.nextafter(1.0, 2)], UNIT - 1, 1)
def test_the_chosen_level_is_where_the_uniform_lies(found, word, guess):
    """S(r_{k-1}) / S(r_b) <= U < S(r_k) / S(r_b), for the whole interval that U is known to lie in."""
    grid = Grid(np.sort(np.array(found)))
    level = len(grid) - 1
    uniform = LazyUniform(SeededEntropy(word % 1000), word, 64)
    k = NoisePaths(grid).change_of(uniform, level, guess)
    start, end = uniform.enclosure()
    assert 0 <= k <= level
    assert end <= stay_ratio(grid.rates[k], grid.rates[level]) + TINY or k == level
    assert k == 0 or stay_ratio(grid.rates[k - 1], grid.rates[level]) - TINY <= start


# ---------------------------------------------------------------------------------------------------- the float filter


def decided(source, level, words):
    return int(source._next_change(np.array([level]), Words(*words))[0])


def test_in_doubt_the_exact_numbers_decide():
    """One first word, two continuations, two outcomes: floats, which see the first word only, cannot decide.

    So without the band of doubt one of each pair must come out wrong.
    """
    source = NoisePaths(Grid(RATES))
    for level, k, side, words, expected in threshold_cases():
        assert decided(source, level, words) == expected, (level, k, side)


def test_next_to_a_threshold_the_exact_numbers_decide():
    """Words a few units from a threshold look alike as floats: some are decided wrongly by them, none by the filter."""
    source, wrong = NoisePaths(Grid(RATES)), 0
    S = 2 * np.sinh(RATES / 2) ** 2
    for level in range(1, len(RATES)):
        for k in range(level):
            ratio = stay_ratio(RATES[k], RATES[level])
            for away in (-4000, -700, -40, -2, 2, 40, 700, 4000):
                word = int(ratio * UNIT) + away
                if not 0 <= word < UNIT:
                    continue
                expected = next(
                    j
                    for j in range(level + 1)
                    if Fraction(word, UNIT) < stay_ratio(RATES[j], RATES[level]) or j == level
                )
                assert decided(source, level, [word, 1, 2, 3, 4]) == expected
                wrong += int(np.searchsorted(S, word * 2.0**-64 * S[level], side="right")) != expected
    assert wrong > 0


@pytest.mark.parametrize(("tail", "expected"), [(0, 0), (UNIT - 1, 1)])
def test_no_digit_set(tail, expected):
    """U < 2^-64, and the first level stays with probability about 2^-66."""
    grid = Grid(np.array([2.0**-33, 1.0]))
    assert stay_ratio(*grid.rates) < Fraction(1, UNIT)
    assert decided(NoisePaths(grid), 1, [0, tail, tail, tail]) == expected


@pytest.mark.parametrize("grid", [RATES, np.array([1.0, math.nextafter(1.0, 2)]), np.array([2.0**-40, 2.0**-39])])
def test_all_digits_set(grid):
    """U is rounded up to 1, where the floats leave the grid; the cell changes at once."""
    top = len(grid) - 1
    assert decided(NoisePaths(Grid(grid)), top, [UNIT - 1] * 4) == top


def test_the_exact_path_is_rare_and_taken_near_thresholds(monkeypatch):
    source, asked = NoisePaths(Grid(np.geomspace(1e-4, 1.0, 1000))), []
    exact = NoisePaths.change_of
    monkeypatch.setattr(NoisePaths, "change_of", lambda *args: asked.append(args) or exact(*args))
    source._next_change(np.full(100_000, 999), SeededEntropy(1))
    assert not asked  # a thousand bands of about 2^-44 would catch one of these in 100,000 runs
    ratio = stay_ratio(source._rates[500], source._rates[999]) + Fraction(1, 1 << 200)
    assert decided(source, 999, words_of(ratio, 4)) == 501
    assert len(asked) == 1


# ------------------------------------------------------------------------------------------------------------- the law


def dlap(rate, k):
    p = np.exp(-rate)
    return (1 - p) / (1 + p) * p ** np.abs(k)


def step_law(coarse, fine, z, wrong=1.0):
    c0 = wrong * (math.cosh(coarse) - 1) / (math.cosh(fine) - 1)
    return (1 - c0) * dlap(coarse, z) + c0 * (z == 0)


def values_at(path, levels):
    return np.stack([path.at(level) for level in range(levels)])


def chi_square_p(seen, expected):
    """Classes that are expected less than ten times are taken together."""
    rare = expected < 10
    if rare.any():
        seen, expected = (np.append(counts[~rare], counts[rare].sum()) for counts in (seen, expected))
    return stats.chisquare(seen, expected * seen.sum() / expected.sum()).pvalue


CHAIN = np.array([0.35, 0.6, 1.1])
REACH, SHOWN = 45, 4


@pytest.fixture(scope="module")
def chains():
    """The noise of 200,000 cells at three levels; the truth differs from cell to cell."""
    truth = np.arange(200_000) % 50 - 10
    return values_at(NoisePaths(Grid(CHAIN)).draw(truth, SeededEntropy(5)), 3) - truth


@pytest.mark.parametrize("wrong", [1.0, 1.3, 0.7])
def test_the_joint_law_of_three_levels(chains, wrong):
    """Against P(x2) P(Z2 = x1 - x2) P(Z1 = x0 - x1); false alarm 1e-6. A chance to stay 30% off is rejected."""
    k = np.arange(-REACH, REACH + 1)
    x0, x1, x2 = k[:, None, None], k[:, None], k
    law = (
        dlap(CHAIN[2], x2) * step_law(CHAIN[1], CHAIN[2], x1 - x2, wrong) * step_law(CHAIN[0], CHAIN[1], x0 - x1, wrong)
    )
    assert law.sum() == pytest.approx(1, abs=1e-5)
    width = 2 * SHOWN + 1
    classes = np.clip(k, -SHOWN, SHOWN) + SHOWN
    pooled = np.zeros((width,) * 3)
    np.add.at(pooled, np.ix_(classes, classes, classes), law)
    at = np.clip(chains, -SHOWN, SHOWN) + SHOWN
    seen = np.bincount(np.ravel_multi_index(at, pooled.shape), minlength=pooled.size)
    p = chi_square_p(seen, pooled.ravel() * chains.shape[1])
    assert (p > FALSE_ALARM) == (wrong == 1.0)


@pytest.mark.parametrize("d", [-2, 0, 3])
@pytest.mark.parametrize(("coarse", "fine"), [(0, 1), (0, 2), (1, 2)])
def test_given_the_coarser_value_the_finer_one_has_the_posterior_law(chains, coarse, fine, d):
    """False alarm 1e-6. A finer rate 30% off is rejected."""
    x = chains[fine][chains[coarse] == d]
    k = np.arange(-SHOWN, SHOWN + 1)
    seen = (np.clip(x, -SHOWN, SHOWN)[:, None] == k).sum(axis=0)

    def p_value(factor):
        p, q = (Fraction(math.exp(-rate)) for rate in (CHAIN[coarse], CHAIN[fine] * factor))
        law = np.array([float(posterior(p, q, d, j)) for j in range(-20, 21)])
        expected = [(law[np.clip(np.arange(-20, 21), -SHOWN, SHOWN) == j]).sum() for j in k]
        return chi_square_p(seen, np.array(expected) * len(x))

    assert p_value(1.0) > FALSE_ALARM
    assert p_value(1.3) < FALSE_ALARM


def test_the_law_at_every_level():
    """False alarm 1e-6 at each of 12 levels. A rate 30% off is rejected."""
    grid = Grid(np.geomspace(0.02, 2.0, 12))
    truth = np.full(40_000, 7)
    noise = values_at(NoisePaths(grid).draw(truth, SeededEntropy(6)), 12) - truth
    k = np.arange(-1500, 1501)
    for rate, x in zip(grid.rates, noise, strict=True):
        edge = math.ceil(3 / rate)
        seen = np.bincount(np.clip(x, -edge, edge) + edge, minlength=2 * edge + 1)
        p_values = []
        for factor in (1.0, 1.3, 1 / 1.3):
            expected = np.bincount(np.clip(k, -edge, edge) + edge, weights=dlap(rate * factor, k)) * len(x)
            p_values.append(chi_square_p(seen, expected))
        assert p_values[0] > FALSE_ALARM
        assert max(p_values[1:]) < FALSE_ALARM


# ----------------------------------------------------------------------------------------------------- paths and events


def drawn(cells=40, levels=60, seed=3):
    truth = np.arange(cells) * 3
    return NoisePaths(Grid(np.geomspace(0.01, 1.5, levels))).draw(truth, SeededEntropy(seed)), levels


def test_the_answers_at_a_level_are_those_of_the_events_so_far():
    path, levels = drawn()
    values = path.start.tolist()
    events = list(zip(path.levels, path.cells, path.before, path.after, strict=True))
    assert events
    for level in range(levels):
        for at, cell, before, after in events:
            if at == level:
                assert values[cell] == before
                assert before != after
                values[cell] = after
        assert path.at(level).tolist() == values


def test_events_come_in_an_order_that_tells_nothing():
    path, levels = drawn()
    keys = list(zip(path.levels.tolist(), path.cells.tolist(), strict=True))
    assert all(a < b for a, b in pairwise(keys))
    assert path.levels.min() >= 1
    assert path.levels.max() < levels


def test_single_paths_are_the_cells_of_the_whole():
    path, levels = drawn()
    parts = list(path.single())
    assert len(parts) == len(path.start)
    assert sum(len(part.levels) for part in parts) == len(path.levels)
    for level in (0, 1, 17, levels - 1):
        assert [part.at(level).tolist() for part in parts] == path.at(level)[:, None].tolist()


def test_single_paths_of_cells_that_never_change():
    path = NoisePaths(Grid(np.array([1.0]))).draw(np.array([5, 6, 7]), SeededEntropy(1))
    assert len(path.levels) == 0
    assert [part.at(0).tolist() for part in path.single()] == path.at(0)[:, None].tolist()


def test_a_cell_changes_about_as_often_however_many_levels_there_are():
    """E = sum_k (1 - c_k) P(Z_k != 0), nearly 2 ln(r_top / r_0); six standard deviations, false alarm 2e-9."""
    cells, means = 4000, []
    for levels in (300, 3000, 30_000):
        grid = Grid(np.geomspace(2.0**-12, 2.0**-2, levels))
        path = NoisePaths(grid).draw(np.zeros(cells, np.int64), SeededEntropy(8))
        S = np.cosh(grid.rates) - 1
        chance = (1 - S[:-1] / S[1:]) * (1 - dlap(grid.rates[:-1], 0))
        assert abs(len(path.levels) - cells * chance.sum()) < 6 * math.sqrt(cells * chance.sum())
        means.append(len(path.levels) / cells)
    assert means == pytest.approx([2 * math.log(2**10)] * 3, rel=0.05)


def test_the_finest_noise_alone_is_that_of_the_top_rate():
    """The truth enters in one place: the same noise on another truth."""
    grid = Grid(CHAIN)
    one, other = (NoisePaths(grid).draw(truth, SeededEntropy(4)) for truth in (np.zeros(50, np.int64), np.arange(50)))
    for level in range(3):
        assert (other.at(level) - one.at(level)).tolist() == list(range(50))
