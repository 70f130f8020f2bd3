"""The floating point filters of the discrete Gaussian never differ from the rational decisions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scripted import DigitsReadError, ScriptedEntropy, SilentEntropy, close, exp_fraction, sharp

from hushcube.private.noise import SeededEntropy, discrete_gaussian, gaussian, ziggurat
from hushcube.private.noise.exact import LazyUniform, largest_below
from hushcube.private.noise.gaussian import BITS, draw_small, tail, thresholds
from hushcube.private.noise.ziggurat import HEIGHT, LONG_BITS, REJECTED, SHORT_BITS, TEST_BITS, UNIT, ZERO, Hat

large = st.builds(
    lambda mantissa, exponent: Fraction(mantissa, 1 << 52) * Fraction(4) ** exponent,
    st.integers(1 << 52, (1 << 54) - 1),
    st.integers(0, 38),
)
small = st.builds(Fraction, st.integers(1, 36 << 60), st.just(1 << 60)) | st.sampled_from(
    [Fraction(1, 10**4), Fraction(1, 10**400), Fraction(1, 7), Fraction(36)]
)
boxes = st.sampled_from([0, 0, 1, 2, 254, 255]) | st.integers(0, 255)
ends = st.integers(-3, 3)


def filter_of(variance, box):
    """The arrays the filter works on, and the exact hat with the same G."""
    sigma = np.sqrt(np.array([float(variance)]))
    area = ziggurat.stretched(sigma)
    return sigma, area, np.array([box]), Hat(box, Fraction(float(area[0])), variance)


def check_cell(variance, box, digits, bits):
    _, area, its_box, hat = filter_of(variance, box)
    k, sure = ziggurat.cells(np.array([digits]), bits, its_box, area)
    if sure[0]:
        assert hat.cell(LazyUniform(SilentEntropy(), digits, bits)) == int(k[0])
    return bool(sure[0])


@given(large, boxes, st.integers(0, (1 << LONG_BITS) - 1), st.sampled_from([SHORT_BITS, LONG_BITS]))
@settings(max_examples=300, deadline=None)
def test_a_certain_cell_agrees_with_every_continuation(variance, box, word, bits):
    check_cell(variance, box, word >> (LONG_BITS - bits), bits)


@given(large, boxes, st.floats(0, 1), ends, st.sampled_from([SHORT_BITS, LONG_BITS]))
@settings(max_examples=400, deadline=None)
def test_cells_beside_an_edge(variance, box, part, shift, bits):
    """Digits on and beside the edge after cell k: the word that holds the edge is never certain."""
    hat = filter_of(variance, box)[3]
    k = int(part * float((hat.stretched - ZERO) / hat.height))
    edge = (ZERO + k * hat.height) / hat.stretched * (1 << bits)
    digits = math.floor(edge) + shift
    if 0 <= digits < 1 << bits:
        sure = check_cell(variance, box, digits, bits)
        assert not (sure and shift == 0 and edge.denominator > 1)


@given(large, boxes, st.floats(0, 9), ends)
@settings(max_examples=400, deadline=None)
def test_heights_beside_the_curve(variance, box, t, shift):
    """V on and beside the curve at k; and a box said to be under the curve is, over all its height."""
    sigma, _, its_box, hat = filter_of(variance, box)
    k = max(1, round(t * float(sigma[0])))
    share = hat.kept(k)
    its_k = np.array([float(k)])
    if ziggurat.under(its_k, its_box, sigma)[0]:
        assert share(200)[0] >= 1
    curve = math.floor(sharp(share) * (1 << TEST_BITS))
    for v in {min(max(curve + shift, 0), (1 << TEST_BITS) - 1), 0, (1 << TEST_BITS) - 1}:
        below, above = ziggurat.verdicts(np.array([v], np.uint32), its_k, its_box, sigma)
        assert not (below[0] and above[0])
        if below[0] or above[0]:
            assert LazyUniform(SilentEntropy(), v, TEST_BITS).is_below(share) == below[0]
        if v == curve:
            assert not below[0]
            assert not above[0]


@given(large)
@settings(max_examples=200, deadline=None)
def test_the_tail_is_never_overlooked(variance):
    sigma, area, box, hat = filter_of(variance, 0)
    for k in (hat.complete + 1, hat.complete + 2):
        assert ziggurat.may_be_tail(np.array([float(k)]), box, area)[0]
        assert not ziggurat.under(np.array([float(k)]), box, sigma)[0]


def test_the_filters_decide_almost_everything():
    entropy = SeededEntropy(3)
    for sigma, bits, share in [(6.0, SHORT_BITS, 1e-4), (2.0**18, SHORT_BITS, 0.2), (1e10, LONG_BITS, 1e-3)]:
        box = (entropy.half_words(100_000) & 255).astype(np.intp)
        digits = (entropy.words(100_000) >> np.uint64(64 - bits)).astype(np.int64)
        sure = ziggurat.cells(digits, bits, box, ziggurat.stretched(np.full(100_000, sigma)))[1]
        assert 1 - sure.mean() <= share


def propose(words, then=()):
    """One proposal from each word at variance 50, NaN where rejected; `then` are the words read next."""
    sigma = np.full(len(words), math.sqrt(50))
    entropy = ScriptedEntropy(np.concatenate([words, np.asarray(then, np.uint32)]))
    k, rejected = ziggurat._propose(sigma, lambda i: Fraction(50), entropy)
    assert (np.abs(k[rejected]) == -REJECTED).all()
    k[rejected] = math.nan
    return k


def test_uncertain_cells_are_settled_to_the_same_result(monkeypatch):
    """With the filter of cells silenced, each word under the curve gives what it gave before."""
    words = SeededEntropy(21).half_words(500)
    fast = propose(words)
    under = np.abs(fast) <= math.sqrt(50) * ziggurat._UNDER[words & 255]  # the others draw a height as well
    cells = ziggurat.cells
    monkeypatch.setattr(ziggurat, "cells", lambda *a: (cells(*a)[0] * 0, np.zeros(a[0].size, bool)))
    slow = propose(words)
    assert under.mean() > 0.8
    assert (fast == slow)[under].all()


def test_uncertain_heights_are_settled_to_the_same_result(monkeypatch):
    """With every height compared, by the filter and then in rationals, the same words are kept."""
    words, heights = SeededEntropy(21).half_words(1000), SeededEntropy(22).half_words(1000)
    monkeypatch.setattr(ziggurat, "under", lambda k, box, sigma: np.zeros(k.size, bool))
    fast = propose(words, heights)
    monkeypatch.setattr(ziggurat, "verdicts", lambda v, *a: (np.zeros(v.size, bool), np.zeros(v.size, bool)))
    slow = propose(words, heights)
    body = (words & 255) != 0  # in box 0 the tail draws further words
    assert 10 < np.isnan(fast).sum() < 200
    assert np.array_equal(fast[body], slow[body], equal_nan=True)


@pytest.mark.parametrize("variance", ["0.05", "0.3", "1", "4", "35.9"])
def test_small_variances_partition_the_unit_interval_by_the_pmf(variance):
    v = Fraction(variance)
    weights = [exp_fraction(k * k / (2 * v)) for k in range(120)]
    total = weights[0] + 2 * sum(weights[1:])
    tails = [Fraction(1), *(sharp(tail(v)(k), 200) for k in range(1, 14))]
    for k in range(13):
        assert close(tails[k] - tails[k + 1], (2 if k else 1) * weights[k] / total, 50)


@pytest.mark.parametrize("variance", ["0.05", "0.3", "1", "35.9"])
@pytest.mark.parametrize("k", [1, 2, 9])
def test_thresholds_of_small_variances_are_enclosed_at_every_precision(variance, k):
    v = Fraction(variance)
    weights = [2 * exp_fraction(i * i / (2 * v)) for i in range(1, 120)]
    share = sum(weights[k - 1 :]) / (1 + sum(weights))
    for bits in range(1, 40):
        low, high = tail(v)(k)(bits)
        assert low <= share + Fraction(1, 10**70)
        assert share - Fraction(1, 10**70) <= high
        assert high - low < Fraction(64, 1 << bits)


@given(small, st.integers(1, 60), ends)
@settings(max_examples=150, deadline=None)
def test_small_variances_beside_a_threshold(variance, k, shift):
    digits = math.floor(sharp(tail(variance)(k)) * (1 << BITS)) + shift
    if not 0 <= digits < 1 << BITS:
        return
    table = thresholds(np.array([float(variance)]))
    asked = []

    def exact(i):
        asked.append(i)
        return variance

    entropy = ScriptedEntropy([digits << 1])
    (drawn,) = draw_small(table, np.zeros(1, np.intp), exact, entropy)
    assert asked or shift
    if not asked:
        assert largest_below(LazyUniform(SilentEntropy(), digits, BITS), tail(variance), int(drawn)) == drawn


@pytest.mark.slow
@pytest.mark.parametrize("variance", ["0.1", "1", "6", "30"])
def test_small_variances_over_every_word(variance):
    """All uniforms of 7 digits: the exact path tells exactly those inside one cell."""
    v, bits = Fraction(variance), 7
    told = {}
    for digits in range(1 << bits):
        try:
            k = largest_below(LazyUniform(SilentEntropy(), digits, bits), tail(v), 0)
        except DigitsReadError:
            continue
        told[k] = told.get(k, 0) + 1
    tails = [Fraction(1), *(sharp(tail(v)(k)) for k in range(1, 40))]
    for k, (top, bottom) in enumerate(itertools.pairwise(tails)):
        assert told.get(k, 0) == max(0, math.floor(top * (1 << bits)) - math.ceil(bottom * (1 << bits)))


@pytest.mark.parametrize("variance", [Fraction(1, 10), Fraction(1), Fraction(30)])
def test_the_slow_path_of_small_variances_gives_the_same_draws(variance, monkeypatch):
    words = SeededEntropy(31).half_words(150)
    table, law = thresholds(np.array([float(variance)])), np.zeros(150, np.intp)
    fast = draw_small(table, law, lambda i: variance, ScriptedEntropy(words))
    monkeypatch.setattr(gaussian, "_DOUBT", math.inf)
    slow = draw_small(table, law, lambda i: variance, ScriptedEntropy(words))
    assert (fast == slow).all()


def test_both_methods_are_asked_only_for_variances_they_are_proved_for():
    assert 1 <= gaussian._SMALL_SIGMA <= gaussian._SMALL_SIGMA_REPEATED <= 6
    assert thresholds(np.array([36.0])).shape[0] <= 64
    assert thresholds(np.array([36.0]))[-1, 0] < 2.0**-60
    assert HEIGHT[0] * 1620 > UNIT  # c / 2**40 <= 2 s / 2**40 is less than 2**-28 s widths of box 0


@pytest.mark.parametrize("shape", [(1, 70_000), (300, 120), (3, 5)])
def test_mixed_small_and_large_variances(shape):
    """Every entry follows its own variance: squares over variance average to 1, within 6 standard errors."""
    rows, columns = shape
    rng = np.random.default_rng(1)
    variances = [Fraction(float(x)) for x in 10 ** rng.uniform(0.5, 4, rows)]
    multipliers = rng.choice(np.array([1, 2, 6, 30, 400]), columns)
    draws = discrete_gaussian(variances, multipliers, SeededEntropy(5))
    assert draws.shape == shape
    z = draws / np.sqrt(np.multiply.outer([float(v) for v in variances], multipliers))
    assert abs((z**2).mean() - 1) < 6 * math.sqrt(2 / z.size)
