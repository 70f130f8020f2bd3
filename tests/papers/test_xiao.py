"""Xiao et al. 2011, the methods: Rescale, iResamp, the guard, and what correlated samples save.

Numbers are those of docs/maths.md sections 3 and 9, by their numbers there. NoiseDown's law is in test_noise_down.py.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from helpers import NEIGHBOURS, Counts, adaptive, make_schema, random_codes
from hushcube import plan
from hushcube.designs import RepeatedDesign
from hushcube.designs.grid import Grid, mean_size
from hushcube.errors import BadInput
from hushcube.model.noise import laplace_variance
from hushcube.private.adaptive.resampling import best_rates, second_rates
from hushcube.private.adaptive.run import prepared
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy, discrete_laplace
from noise_down import pmf


def decided(sizes, words, strategy, *, epsilon, neighbours="add-remove", **rule):
    return plan(
        make_schema(sizes),
        words,
        epsilon=epsilon,
        neighbours=neighbours,
        strategy=adaptive(strategy, **rule),
        recovery="none",
    ).count


def carried_out(asked, codes, seed=0):
    return draw(asked, Counts(asked.schema, codes), entropy=SeededEntropy(seed))


# ------------------------------------------------------------------------------------------------------------- Rescale

SEEN = [np.array([100, 100]), np.array([1, 1, 1, 1])]


def overall_error(scales, counts, delta):
    """Definition 6 with E|noise| = lambda: the mean over marginals of the mean over cells."""
    return float(np.mean([s * np.mean(1 / np.maximum(c, delta)) for s, c in zip(scales, counts, strict=True)]))


def test_vector_14_rescale():
    """lambda_i = (2 / epsilon) sum_k sqrt(c_k) / sqrt(c_i)."""
    rates = best_rates(SEEN, 1.0, np.ones(2))
    scales = 2 * rates.sum() / rates
    assert scales == pytest.approx([22, 2.2], rel=1e-12)
    assert (2 / scales).sum() == pytest.approx(1)
    roots = [math.sqrt(1 / 100), 1.0]
    assert scales == pytest.approx([2 * sum(roots) / root for root in roots], rel=1e-12)
    assert overall_error(scales, SEEN, 1) == pytest.approx(1.21, rel=1e-12)


def test_no_other_scales_of_the_same_cost_are_better():
    best = overall_error([22, 2.2], SEEN, 1)
    for share in np.linspace(0.01, 0.99, 197):  # of epsilon, for the first marginal
        assert overall_error([2 / share, 2 / (1 - share)], SEEN, 1) >= best * (1 - 1e-12)
    assert overall_error([4, 4], SEEN, 1) == pytest.approx(2.02)  # dwork


def test_the_printed_rescale_is_worse_than_uniform_scales():
    """Section 5.2 divides by the sum of max{delta, y} where the sum of 1/max belongs."""
    roots = [math.sqrt(np.maximum(1, counts).mean()) for counts in SEEN]
    printed = [2 * sum(roots) / root for root in roots]
    assert overall_error(printed, SEEN, 1) > overall_error([4, 4], SEEN, 1) > overall_error([22, 2.2], SEEN, 1)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_the_second_phase_has_the_optimal_proportions_and_spends_the_rest(neighbours):
    asked = decided((2, 4), "1-way", "twophase", epsilon=1, neighbours=neighbours, sanity_bound=1, caution=0)
    subject = prepared(asked, Counts(asked.schema, random_codes((2, 4), 10)), SeededEntropy(0))
    rates = second_rates(subject, SEEN)
    assert rates[1] / rates[0] == pytest.approx(10)
    factor = 2 if neighbours == "replace-one" else 1
    assert factor * rates.sum() == pytest.approx(0.93, rel=1e-9)
    both = factor * sum(map(Fraction, [*rates.tolist(), *subject.rates[subject.chosen].tolist()]))
    assert 1 - Fraction(1, 10**12) < both <= 1


# ------------------------------------------------------------------------------------------------------------- iResamp


@pytest.mark.parametrize("seed", range(3))
def test_vector_15_what_samples_cost(seed):
    """1/64, 3/64, 7/64, 15/64: k samples cost 2/lambda_k - 1/lambda_max, and a fifth does not fit."""
    asked = decided((2,), "a0", "iresamp", epsilon="15/64", sanity_bound=1, lambda_max=64)
    made, measured = carried_out(asked, random_codes((2,), 50), seed)
    assert isinstance(made, RepeatedDesign)
    assert np.cumsum(made.budgets) == pytest.approx([1 / 64, 3 / 64, 7 / 64, 15 / 64], rel=1e-12)
    scales = 1 / made.budgets
    assert np.cumsum(made.budgets) == pytest.approx(2 / scales - 1 / scales[0])
    assert measured.values[0].shape == (4, 2)
    assert made.details["adaptive"]["left"] == pytest.approx(0, abs=1e-12)
    less = decided((2,), "a0", "iresamp", epsilon="14999/64000", sanity_bound=1, lambda_max=64)
    assert len(carried_out(less, random_codes((2,), 50), seed)[0].budgets) == 3


def test_vector_30_independent_samples_have_twice_the_variance():
    """Appendix A, scales 5 and 4 (here 5000 and 4000, where discrete noise is as good as continuous)."""
    asked = decided((2,), "a0", "iresamp", epsilon=1, sanity_bound=1, lambda_max=5000)
    rates = np.array([1 / 5000, 1 / 4000])
    own = (asked.request, "iresamp", "uniform", "none", "direct", rates)
    repeated = RepeatedDesign(*own, asked.base, asked.measured_by, (0, 0))
    combined = float(laplace_variance(repeated.underlying_budgets)[0]) / 1e6
    assert combined == pytest.approx(19.512195122, rel=1e-6)
    assert combined == pytest.approx(1 / (1 / 50 + 1 / 32), rel=1e-6)
    assert float(laplace_variance(rates.sum())) / 1e6 == pytest.approx(9.876543210, rel=1e-6)


# ------------------------------------------------------------------------------------------------------------- iReduct


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("seed", range(5))
def test_vector_16_scales_stop_above_zero(neighbours, seed):
    """From 15 in steps of 10 there is one step, to 5; the printed loop goes on to -5, whose cost is negative."""
    asked = decided(
        (2,), "a0", "ireduct", epsilon=1, neighbours=neighbours, sanity_bound=1, lambda_max=15, lambda_step=10
    )
    made, _ = carried_out(asked, random_codes((2,), 50), seed)
    assert 1 / made.budgets[np.isfinite(made.budgets)] == pytest.approx([5])
    assert made.details["adaptive"]["steps"] == 1
    assert made.details["adaptive"]["left"] == pytest.approx(0.6 if neighbours == "replace-one" else 0.8)


def test_the_printed_loop_has_no_guard():
    scales, spent = [15], []
    while (next_ := scales[-1] - 10) and 2 / next_ <= 1 and len(scales) < 5:
        scales.append(next_)
        spent.append(2 / next_)
    assert scales == [15, 5, -5, -15, -25]
    assert min(spent) < 0
    assert Grid.arithmetic(Fraction(15), Fraction(10), 1.0).rates == pytest.approx([1 / 15, 1 / 5])


@pytest.mark.parametrize(("largest", "step"), [(10, 10), (10, 11), ("1%", "2%")])
def test_a_step_as_large_as_the_first_scale_is_refused(largest, step):
    with pytest.raises(BadInput, match="lambda_step"):
        decided((2,), "a0", "ireduct", epsilon=1, sanity_bound=1, lambda_max=largest, lambda_step=step, people=100)


def test_a_start_that_does_not_fit_names_the_scale_that_does():
    """The paper returns the empty set."""
    with pytest.raises(BadInput, match="at least 40") as refused:
        decided((2, 3), "1-way", "ireduct", epsilon="0.1", neighbours="replace-one", sanity_bound=1, lambda_max=39)
    assert "too small to start" in str(refused.value)
    decided((2, 3), "1-way", "ireduct", epsilon="0.1", neighbours="replace-one", sanity_bound=1, lambda_max=40)


COUNTS = [np.array([9000, 1000]), np.array([60, 40, 9880, 20])]


def test_greedy_steps_end_near_the_optimal_scales():
    """With the mean over cells, PickQueries lands where the oracle does: 1% of its error, for one hundredth steps.

    The counts are so large beside the noise that noisy answers are as good as exact ones.
    """
    codes = np.zeros((10_000, 2), np.int64)
    for column, counts in enumerate(COUNTS):
        codes[:, column] = np.repeat(np.arange(len(counts)), counts)
    asked = decided((2, 4), "1-way", "ireduct", epsilon=2, neighbours="replace-one", sanity_bound=10)
    errors = []
    for seed in range(10):
        made, _ = carried_out(asked, codes, seed)
        rates = dict(zip(made.measured, made.budgets.tolist(), strict=True))
        errors.append(overall_error([1 / rates[(0,)], 1 / rates[(1,)]], COUNTS, 10))
    best = best_rates(COUNTS, 10.0, np.ones(2))
    oracle = overall_error(best.sum() / best, COUNTS, 10)
    uniform = overall_error([2, 2], COUNTS, 10)
    assert oracle <= np.mean(errors) * (1 + 1e-9)
    assert np.mean(errors) < 1.02 * oracle < uniform


# ------------------------------------------------------------------------------------------------------------ the noise


def test_vector_17_the_variance_of_discrete_noise():
    assert float(laplace_variance(np.array(1.0))) == pytest.approx(1.8413471884, rel=1e-10)
    p = Fraction(math.exp(-1))
    assert float(sum(pmf(p, k) * k * k for k in range(-80, 81))) == pytest.approx(1.8413471884, rel=1e-10)
    assert float(sum(pmf(p, k) * abs(k) for k in range(-80, 81))) == pytest.approx(float(mean_size(np.array(1.0))))


def test_vector_17_by_drawing():
    """200,000 draws; the squares have standard deviation 4.5, five standard errors: false alarm 6e-7."""
    x = discrete_laplace([Fraction(1)], 200_000, SeededEntropy(17))[0].astype(float)
    assert abs((x**2).mean() - 1.8413471884) < 5 * (x**2).std() / math.sqrt(len(x))
    assert abs((x**2).mean() - float(laplace_variance(np.array(1.3)))) > 5 * (x**2).std() / math.sqrt(len(x))
