import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scripted import DigitsReadError, ScriptedEntropy, SilentEntropy, close, exp_fraction, sharp

from hushcube.private.noise import SeededEntropy, discrete_laplace, laplace
from hushcube.private.noise.exact import LazyUniform
from hushcube.private.noise.laplace import (
    FIRST_BITS,
    MAX_SCALE,
    SECOND_BITS,
    TEST_BITS,
    Law,
    Laws,
    constants,
    estimate,
    nearest,
    split,
    splits,
)

RATES = [Fraction(1, 1000), Fraction(0.1), Fraction(1, 3), Fraction(1), Fraction(2.5), Fraction(20)]
rates = st.builds(
    lambda mantissa, exponent: Fraction(mantissa, 1 << 53) * Fraction(2) ** exponent,
    st.integers(1 << 52, (1 << 53) - 1),
    st.integers(-51, 12),
) | st.builds(Fraction, st.integers(1, 1 << 60), st.integers(1, 1 << 60)).filter(lambda r: r * MAX_SCALE >= 1)

known_bits = st.sampled_from([FIRST_BITS, SECOND_BITS])


def filtered(rate, digits, bits):
    scale, log_top = constants(nearest([rate]), np.array([split(rate)]))
    k, sure = estimate(np.array([digits]), bits, scale, log_top)
    return int(k[0]), bool(sure[0])


@pytest.mark.parametrize("rate", RATES)
def test_the_partition_of_the_unit_interval_has_the_pmf(rate):
    """|X| = k on an interval of length tail(k) - tail(k + 1), to 60 digits the probability of k and -k."""
    p = exp_fraction(rate, 120)
    law = Law.of(rate)
    tails = [Fraction(1), *(sharp(law.tail(k)) for k in range(1, 12))]
    for k in range(11):
        pmf = (1 - p) / (1 + p) * p**k
        assert close(tails[k] - tails[k + 1], pmf if k == 0 else 2 * pmf)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("k", [1, 3, 30])
def test_thresholds_are_enclosed_at_every_precision(rate, k):
    p = exp_fraction(rate, 120)
    share = 2 * p**k / (1 + p)
    for bits in range(1, 60):
        low, high = Law.of(rate).tail(k)(bits)
        assert low <= share + Fraction(1, 10**70)
        assert share - Fraction(1, 10**70) <= high


@pytest.mark.parametrize("rate", RATES)
def test_inversion_and_filter_over_every_word(rate):
    """All uniforms of 10 digits: the exact path tells those inside one cell, the filter never differs."""
    bits = 10
    told = Counter()
    for digits in range(1 << bits):
        try:
            k = Law.of(rate).invert(LazyUniform(SilentEntropy(), digits, bits))
        except DigitsReadError:
            k = None
        told[k] += 1
        guess, sure = filtered(rate, digits, bits)
        assert not sure or guess == k
    tails = [Fraction(1), *(sharp(Law.of(rate).tail(k)) for k in range(1, 200))]
    for k, (top, bottom) in enumerate(itertools.pairwise(tails)):
        inside = math.floor(top * (1 << bits)) - math.ceil(bottom * (1 << bits))
        assert told[k] == max(0, inside)


@given(rates, st.integers(0, (1 << 63) - 1), known_bits)
@settings(max_examples=300, deadline=None)
def test_a_certain_filter_agrees_with_every_continuation(rate, word, bits):
    """With a silent source the exact path answers only what holds however U goes on."""
    digits = word >> (63 - bits)
    k, sure = filtered(rate, digits, bits)
    if sure:
        assert Law.of(rate).invert(LazyUniform(SilentEntropy(), digits, bits)) == k


@given(rates, st.integers(1, 40), st.floats(0, 1), st.integers(-3, 3), known_bits)
@settings(max_examples=400, deadline=None)
def test_the_filter_beside_a_threshold(rate, spread, part, shift, bits):
    """Words on and beside a threshold: the one that holds it is never certain, the others never wrong."""
    law = Law.of(rate)
    k = 1 + int(part * spread / law.rate)
    digits = int(sharp(law.tail(k)) * (1 << bits)) + shift
    if not 0 <= digits < 1 << bits:
        return
    guess, sure = filtered(rate, digits, bits)
    assert not (sure and shift == 0)
    if sure:
        assert law.invert(LazyUniform(SilentEntropy(), digits, bits)) == guess


def test_the_filter_decides_almost_everything():
    words = SeededEntropy(5).half_words(100_000) >> np.uint32(1)
    for scale, share in [(1, 1e-4), (1000, 1e-3), (10**6, 0.05), (10**12, 0.06)]:
        rate = Fraction(1, scale)
        constant = constants(nearest([rate]), np.array([split(rate)]))
        assert (~estimate(words, FIRST_BITS, *constant)[1]).mean() <= share


@pytest.mark.parametrize("rate", [*RATES, Fraction(1, 10**5), Fraction(3000)])
def test_the_slow_path_gives_the_same_draws_from_the_same_digits(rate, monkeypatch):
    words = SeededEntropy(11).half_words(1500)
    fast = discrete_laplace([rate], 1500, ScriptedEntropy(words))
    constant = constants(nearest([rate]), np.array([0]))
    sure = estimate(words >> np.uint32(1), FIRST_BITS, *constant)[1]
    unsure = lambda *arguments: (estimate(*arguments)[0] * 0 - 7, np.zeros_like(arguments[0], bool))  # noqa: E731
    monkeypatch.setattr(laplace, "estimate", unsure)
    slow = discrete_laplace([rate], 1500, ScriptedEntropy(words))
    assert sure.mean() > 0.99
    assert (fast == slow)[0, sure].all()


def test_low_digits_are_independent_of_the_high_ones():
    """exp(-rate (2**m h + l)) = exp(-coarse h) exp(-rate l), the weights that H and L are drawn with."""
    rate = Fraction(3, 10**12)
    law = Law.of(rate)
    assert law.low_bits == 18
    for high, low in [(1, 5), (7, 0), (10**6, 200_000)]:
        whole = exp_fraction(rate * ((high << law.low_bits) + low))
        assert close(sharp(law.tail(high)) * sharp(law.low_weight(low)), whole)


@pytest.mark.parametrize("scale", [(1 << 22) + 1, 10**9, 10**15, 1 << 52])
def test_digits_that_accept_low_digits_at_once_are_certain(scale):
    law = Law.of(Fraction(1, scale))
    assert law.low_bits + TEST_BITS <= 64
    assert 1 << 20 <= 1 / law.rate < 1 << 21
    last = laplace.DOUBTFUL - 1
    largest = (1 << law.low_bits) - 1
    assert LazyUniform(SilentEntropy(), last, TEST_BITS).is_below(law.low_weight(largest))


def test_splitting_gives_the_same_law(monkeypatch):
    """Split at a small scale, where the pmf can be told: false alarms once in 10**9 (Hoeffding)."""
    monkeypatch.setattr(laplace, "SPLIT_SCALE", 4)
    monkeypatch.setattr(laplace, "_COARSE_LOG2", 2)
    assert Law.of(Fraction(1, 10)).low_bits == 2
    n = 20_000
    draws = discrete_laplace([Fraction(1, 10)], n, SeededEntropy(8))[0]
    p = np.exp(-0.1)
    for k in range(-25, 26):
        assert abs((draws <= k).mean() - (1 - p ** (k + 1) / (1 + p) if k >= 0 else p**-k / (1 + p))) < 0.024


@pytest.mark.slow
def test_a_draw_that_does_not_fit_is_refused():
    with pytest.raises(OverflowError, match="int64"):
        Law.of(Fraction(1, MAX_SCALE)).invert(LazyUniform(SeededEntropy(1), 1, 1 << 14))


@given(st.lists(st.floats(2.0**-51, 4096.0), min_size=1, max_size=20))
def test_laws_of_floats_are_those_of_the_fractions_they_are(values):
    exact = [Fraction(value) for value in values]
    floats, fractions = Laws(np.array(values)), Laws(exact)
    assert splits(np.array(values)).tolist() == [split(rate) for rate in exact]
    for name in ("low_bits", "scale", "log_top"):
        assert getattr(floats, name).tolist() == getattr(fractions, name).tolist()
    assert [floats.law(i) for i in range(len(values))] == [fractions.law(i) for i in range(len(values))]


def test_rates_that_are_too_small_are_refused_as_floats_too():
    with pytest.raises(ValueError, match="at least"):
        Laws(np.array([1.0, 2.0**-53]))
