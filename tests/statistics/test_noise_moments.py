"""Moments, symmetry, independence, and each row and column its own parameter.

All draws are seeded; the bounds are 6 standard errors, which fresh seeds would break once in 10**8 checks.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from hushcube.private.noise import SeededEntropy, discrete_gaussian, discrete_laplace

N = 300_000


def laplace_moments(rate):
    """Exact E X**2 and E X**4 of the discrete Laplace law."""
    p = math.exp(-rate)
    gap = -math.expm1(-rate)
    second = 2 * p / gap**2
    fourth = 2 * p * (1 + 10 * p + p * p) / gap**4
    return second, fourth


def gaussian_moments(variance):
    if variance > 10**4:  # the lattice no longer shows
        return variance, 3 * variance**2
    k = np.arange(1, math.ceil(14 * math.sqrt(variance)) + 2, dtype=float)
    weights = 2 * np.exp(-(k**2) / (2 * variance))
    return (weights @ k**2) / (1 + weights.sum()), (weights @ k**4) / (1 + weights.sum())


def check(draws, second, fourth):
    x = draws.astype(float)
    assert abs(x.mean()) <= 6 * math.sqrt(second / x.size)
    assert abs((x**2).mean() - second) <= 6 * math.sqrt((fourth - second**2) / x.size)


@pytest.mark.parametrize("scale", [0.2, 0.5, 1, 3, 40, 1000, 10**6, 10**8, 10**12, 10**15, 1 << 52])
def test_laplace_moments(scale):
    rate = 1 / Fraction(scale)
    check(discrete_laplace([rate], N, SeededEntropy(1))[0], *laplace_moments(float(rate)))


@pytest.mark.parametrize("sigma", [0.3, 1, 1.4, 1.6, 5.9, 6.1, 40, 1000, 2**18 + 1, 10**7, 10**10, 1 << 40])
def test_gaussian_moments(sigma):
    variance = Fraction(sigma) ** 2
    count = N if sigma < 1 << 30 else 40_000
    draws = discrete_gaussian([variance], np.ones(count, np.int64), SeededEntropy(2))
    check(draws[0], *gaussian_moments(float(variance)))


@pytest.mark.parametrize("rate", [100, 1000])
def test_tiny_scales_are_almost_always_zero(rate):
    assert not discrete_laplace([Fraction(rate)], N, SeededEntropy(3)).any()
    assert not discrete_gaussian([Fraction(1, 10 * rate)], np.ones(N, np.int64), SeededEntropy(3)).any()


def test_low_digits_of_huge_draws_are_uniform():
    """Each of the low 20 bits is fair at a scale of 10**12, for both laws."""
    laplace = discrete_laplace([Fraction(1, 10**12)], 100_000, SeededEntropy(4))
    gaussian = discrete_gaussian([Fraction(10**24)], np.ones(20_000, np.int64), SeededEntropy(4))
    for draws in (np.abs(laplace), np.abs(gaussian)):
        for bit in range(20):
            assert abs((draws >> bit & 1).mean() - 0.5) < 6 * 0.5 / math.sqrt(draws.size)


@pytest.mark.parametrize("shape", [(2000, 200), (4, 90_000)])
def test_every_row_of_laplace_noise_has_its_own_rate(shape):
    rates = [Fraction(float(x)) for x in np.geomspace(3, 1e-12, shape[0])]
    order = np.random.default_rng(1).permutation(shape[0])
    draws = discrete_laplace([rates[i] for i in order], shape[1], SeededEntropy(6))
    for row, i in zip(draws, order, strict=True):
        second, fourth = laplace_moments(float(rates[i]))
        share = (row.astype(float) ** 2).mean() / second
        # The tails are heavy at 200 draws: the sum of squares is between these bounds except once in 10**7.
        slack = 9 * math.sqrt((fourth / second**2 - 1) / shape[1])
        assert 1 - min(slack, 0.95) < share < 1 + slack


def test_every_entry_of_gaussian_noise_has_its_own_variance():
    """Rows and columns in disorder, small and large variances in one block; each pair is drawn 150 times."""
    rng = np.random.default_rng(2)
    rows = rng.permutation(np.repeat(np.arange(40), 15))
    columns = rng.permutation(np.repeat(np.arange(8), 10))
    values = [Fraction(float(x)) for x in np.geomspace(0.2, 1e6, 40)]
    multipliers = np.array([1, 2, 3, 6, 12, 20, 400, 10**4])
    draws = discrete_gaussian([values[r] for r in rows], multipliers[columns], SeededEntropy(7)).astype(float)
    for r in range(40):
        for c in range(8):
            second, fourth = gaussian_moments(float(values[r]) * int(multipliers[c]))
            group = draws[np.ix_(rows == r, columns == c)]
            assert abs((group**2).mean() - second) <= 7 * math.sqrt((fourth - second**2) / group.size)


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [1, 20, 10**7])
def test_signs_are_fair_and_draws_independent(law, scale):
    """Signs balance; rows, neighbours in a row, and signs against magnitudes, are uncorrelated."""
    rows, columns = 6, 50_000
    if law == "laplace":
        draws = discrete_laplace([Fraction(1, scale)] * rows, columns, SeededEntropy(9))
    else:
        draws = discrete_gaussian([Fraction(scale) ** 2] * rows, np.ones(columns, np.int64), SeededEntropy(9))
    x = draws / draws.std(axis=1, keepdims=True)
    assert np.abs(np.sign(x).sum(axis=1)).max() < 6 * math.sqrt(columns)
    limit = 6 / math.sqrt(columns)
    between = np.corrcoef(x) - np.eye(rows)
    assert np.abs(between).max() < limit
    assert np.abs(np.corrcoef(np.abs(x)) - np.eye(rows)).max() < limit
    for lag in (1, 2, 729):
        assert abs((x[:, lag:] * x[:, :-lag]).mean()) < limit / math.sqrt(rows)
    assert abs((np.sign(x) * (np.abs(x) - np.abs(x).mean())).mean()) < limit / math.sqrt(rows)
