"""The samplers against the exact pmf and against OpenDP's: same law, and a wrong scale is noticed.

Each is a chi-square test with a false-alarm rate of 10**-6. Our draws are seeded, OpenDP's are not.
"""

import math
from fractions import Fraction

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

from hushcube.private.noise import SeededEntropy, SystemEntropy, discrete_gaussian, discrete_laplace

FALSE_ALARM = 1e-6
LAPLACE_SCALES = [0.01, 0.3, 1.0, 7.5, 1000.0, 1e5, 1e7]
GAUSSIAN_SCALES = [0.01, 0.4, 1.0, 5.0, 30.0, 1000.0, 3e5, 1e7]


def laplace(scale, count, seed):
    return discrete_laplace([1 / Fraction(scale)], count, SeededEntropy(seed))[0]


def gaussian(scale, count, seed):
    return discrete_gaussian([Fraction(scale) ** 2], np.ones(count, np.int64), SeededEntropy(seed))[0]


def laplace_cdf(k, scale):
    k = np.asarray(k, float)
    log_p = -1 / scale
    # P(X > k) = p**(k + 1) / (1 + p) for k >= 0, and by symmetry below
    tail = np.exp(log_p * np.where(k >= 0, k + 1, -k)) / (1 + np.exp(log_p))
    return np.where(k >= 0, 1 - tail, tail)


def gaussian_cdf(k, scale):
    if scale >= 300:  # the sum is the integral to a few parts in 10**7
        return stats.norm.cdf((np.asarray(k, float) + 0.5) / scale)
    support = np.arange(-math.ceil(12 * scale) - 2, math.ceil(12 * scale) + 3)
    weights = np.exp(-(support**2) / (2 * scale**2))
    cumulative = np.cumsum(weights) / weights.sum()
    return cumulative[np.clip(np.searchsorted(support, k), 0, support.size - 1)]


LAWS = {"laplace": (laplace, laplace_cdf), "gaussian": (gaussian, gaussian_cdf)}
CASES = [("laplace", s) for s in LAPLACE_SCALES] + [("gaussian", s) for s in GAUSSIAN_SCALES]


def cuts(cdf, scale, bins=40):
    """Integers that cut the law into about equally likely parts, tails included."""
    spread = np.linspace(-8, 8, 4001) * max(scale, 0.5)
    grid = np.unique(np.round(spread))
    levels = cdf(grid, scale)
    chosen = grid[np.unique(np.searchsorted(levels, np.linspace(0.002, 0.998, bins)))]
    return chosen[(cdf(chosen, scale) > 0) & (cdf(chosen, scale) < 1)]


def histogram(draws, edges):
    return np.bincount(np.searchsorted(edges, draws), minlength=edges.size + 1)


def fit_p_value(draws, cdf, scale):
    """The chi-square test of draws against the exact law, on parts expected at least five times."""
    edges = cuts(cdf, scale)
    expected = np.diff(np.concatenate([[0.0], cdf(edges, scale), [1.0]])) * draws.size
    seen = histogram(draws, edges)
    common = expected >= 5
    seen = np.append(seen[common], seen[~common].sum())
    expected = np.append(expected[common], expected[~common].sum())
    if expected[-1] < 1e-3:  # nothing rare to compare: it must not have been seen
        assert seen[-1] <= 2
        seen, expected = seen[:-1], expected[:-1]
    if seen.size < 2:
        return 1.0
    return stats.chi2.sf(((seen - expected) ** 2 / expected).sum(), seen.size - 1)


def same_law_p_value(first, second, cdf, scale):
    table = np.array([histogram(draws, cuts(cdf, scale)) for draws in (first, second)])
    table = table[:, table.sum(axis=0) >= 10]
    if table.shape[1] < 2:
        return 1.0
    return stats.chi2_contingency(table).pvalue


def opendp_draws(law, scale, count):
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if law == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=scale)
    return np.array(measurement([0] * count))


@pytest.mark.parametrize(("law", "scale"), CASES)
def test_draws_follow_the_exact_pmf(law, scale):
    sampler, cdf = LAWS[law]
    assert fit_p_value(sampler(scale, 400_000, seed=17), cdf, scale) > FALSE_ALARM


@pytest.mark.parametrize(("law", "scale"), CASES)
def test_draws_agree_with_opendp(law, scale):
    sampler, cdf = LAWS[law]
    theirs = opendp_draws(law, scale, 15_000)
    assert same_law_p_value(sampler(scale, 60_000, seed=18), theirs, cdf, scale) > FALSE_ALARM


@pytest.mark.parametrize(("law", "scale"), [case for case in CASES if case[1] >= 0.3])
@pytest.mark.parametrize("error", [1 / 1.3, 1.3])
def test_a_scale_wrong_by_30_percent_is_noticed(law, scale, error):
    """Both tests, at the same sizes, reject with p-values far below the false-alarm rate."""
    sampler, cdf = LAWS[law]
    wrong = sampler(scale * error, 60_000, seed=19)
    assert fit_p_value(wrong, cdf, scale) < FALSE_ALARM**4
    assert same_law_p_value(wrong, sampler(scale, 15_000, seed=20), cdf, scale) < FALSE_ALARM**2


def test_a_bias_of_a_hundredth_is_noticed():
    """The fit is sharp: a scale wrong by 1.5 percent fails at 400,000 draws."""
    assert fit_p_value(laplace(10 * 1.015, 400_000, seed=5), laplace_cdf, 10) < FALSE_ALARM
    assert fit_p_value(gaussian(10 * 1.015, 400_000, seed=5), gaussian_cdf, 10) < FALSE_ALARM


@pytest.mark.parametrize("scale", [2.0, 50.0])
def test_system_entropy_follows_the_exact_pmf(scale):
    """The one test of this file with fresh entropy for our draws."""
    draws = discrete_laplace([1 / Fraction(scale)], 100_000, SystemEntropy())[0]
    assert fit_p_value(draws, laplace_cdf, scale) > 1e-9
    draws = discrete_gaussian([Fraction(scale) ** 2], np.ones(100_000, np.int64), SystemEntropy())[0]
    assert fit_p_value(draws, gaussian_cdf, scale) > 1e-9
