from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st
from scripted import DigitsReadError, SilentEntropy, exp_fraction

from hushcube.private.noise import SeededEntropy
from hushcube.private.noise.exact import LazyUniform, exp_bounds, exp_threshold, largest_below

exponents = st.builds(
    Fraction, st.integers(0, 1 << 120), st.integers(1 << 90, 1 << 118) | st.sampled_from([1 << 112, 1 << 116])
)


@given(exponents, st.integers(1, 200))
@settings(max_examples=300, deadline=None)
def test_exp_bounds_enclose_the_exponential_tightly(x, bits):
    low, high = exp_bounds(x, bits)
    true = exp_fraction(x, 120)
    slack = Fraction(1, 10**100)
    assert low <= true + slack
    assert true - slack <= high
    assert high - low <= Fraction(1, 1 << bits)


@pytest.mark.parametrize("x", [Fraction(0), Fraction(10**400), Fraction(1, 10**400), Fraction(5000)])
def test_exp_bounds_at_the_extremes(x):
    low, high = exp_bounds(x, 100)
    assert 0 <= low <= high
    assert (low <= 1 <= high) if x < 1 else high <= Fraction(1, 1 << 100)


@pytest.mark.parametrize("x", ["0.001", "1/3", "1", "2.5", "7", "20"])
@pytest.mark.parametrize("bits", [1, 5, 11])
def test_bernoulli_of_an_exponential_by_enumeration(x, bits):
    """Of all uniforms with `bits` digits, those below exp(-x) are told, those above too, and one is open."""
    theta = exp_fraction(Fraction(x))
    answers = {True: 0, False: 0, None: 0}
    for digits in range(1 << bits):
        try:
            answer = LazyUniform(SilentEntropy(), digits, bits).is_below(exp_threshold(Fraction(x)))
        except DigitsReadError:
            answer = None
        answers[answer] += 1
    below = int(theta * (1 << bits))
    assert answers == {True: below, False: (1 << bits) - below - 1, None: 1}


def test_certain_events_need_no_digit():
    assert LazyUniform(SilentEntropy(), 3, 4).is_below(lambda bits: (Fraction(1), Fraction(1)))
    assert not LazyUniform(SilentEntropy(), 3, 4).is_below(lambda bits: (Fraction(-1), Fraction(0)))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 100])
def test_integers_below_a_count_by_enumeration(count):
    bits = 10
    told = dict.fromkeys(range(count), 0)
    for digits in range(1 << bits):
        uniform = LazyUniform(SilentEntropy(), digits, bits)
        try:
            told[uniform.below(count)] += 1
        except DigitsReadError:
            continue
    # Cell k is (k, k + 1) * 2**bits / count: all of its digits but those at the two ends are told.
    assert all(abs(n - Fraction(1 << bits, count)) <= 2 for n in told.values())


def test_leading_zeros_by_enumeration():
    told = [LazyUniform(SilentEntropy(), digits, 8).leading_zeros() for digits in range(1, 256)]
    assert [told.count(b) for b in range(8)] == [128, 64, 32, 16, 8, 4, 2, 1]


@given(st.integers(0, (1 << 20) - 1), st.integers(-3, 400))
@settings(deadline=None)
def test_inversion_does_not_depend_on_the_guess(digits, guess):
    rate = Fraction(1, 7)

    def invert(guess):
        return largest_below(LazyUniform(SeededEntropy(3), digits, 20), lambda k: exp_threshold(k * rate), guess)

    assert invert(guess) == invert(0)
