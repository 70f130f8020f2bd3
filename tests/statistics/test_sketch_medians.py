"""The standard error of a sketch's median, against simulated releases and against the moments of the law.

A sample variance of R runs varies by about sqrt(2/R) of itself, or less than sqrt(5/R) for Laplace noise; each bound
below is at least five of these, pooled over cells: a false alarm has a chance of less than one in 10^5.
"""

import numpy as np
import pytest

from helpers import MemoryEngine, make_schema, random_codes
from hushcube.designs.request import Request
from hushcube.designs.sketch.medians import median_share
from hushcube.model.noise import GAUSSIAN, LAPLACE
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import Sketch

SIZES = (10, 50)
RUNS = 60


def design(law, repetitions=5, words="a0*a1,a0"):
    request = Request(Workload.parse(words, make_schema(SIZES)), Privacy.of(neighbours="add-remove", **law))
    return Sketch(repetitions=repetitions, estimate="median", buckets=5000).plan(request, "uniform", "gls")


def simulated(made, codes, runs=RUNS):
    rows = {A: np.array([A], np.int32) for A in made.request.workload.marginals}
    found = {A: [] for A in rows}
    for seed in range(runs):
        answers = made.answers(measure(made, MemoryEngine(codes, d=2), entropy=SeededEntropy(seed)))
        for A, row in rows.items():
            found[A].append(answers.tables(row, made.schema.shape(A))[0])
    return {A: np.stack(tables) for A, tables in found.items()}


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/50"}], ids=str)
def test_the_median_has_the_standard_error_that_is_stated(law):
    """For epsilon 1 and five repetitions about 2.96 a cell, where one repetition has 7.06; 30% more would be seen."""
    made = design(law)
    for A, values in simulated(made, random_codes(SIZES, 0)).items():
        predicted = np.broadcast_to(made.errors.cell_variance_table(A), made.schema.shape(A))
        ratio = float((values**2).mean() / predicted.mean())
        assert abs(ratio - 1) < (0.1 if A == (0, 1) else 0.29), A
    if law == {"epsilon": 1}:
        one, cell = made.errors.unit_variance(exact=True), float(made.errors.cell_variance_table((0, 1)))
        assert (one**0.5, cell**0.5) == pytest.approx((7.06, 2.96), abs=0.01)


def test_collisions_keep_the_error_within_its_bound():
    """2t/(t+1) times (noise + sum of squares / buckets), for people in a few heavy cells."""
    made = design({"epsilon": 1}, words="a0*a1")
    codes = np.repeat(random_codes(SIZES, 30), 200, axis=0)
    truth = np.zeros(SIZES)
    np.add.at(truth, tuple(codes.T), 1)
    mean = float(((simulated(made, codes, 20)[0, 1] - truth) ** 2).mean())
    assert mean < 10 / 6 * (made.errors.unit_variance(exact=True) + (truth**2).sum() / made.buckets)


@pytest.mark.parametrize(("law", "budget"), [(LAPLACE, 0.3), (LAPLACE, 2.0), (GAUSSIAN, 0.05), (GAUSSIAN, 1.5)])
@pytest.mark.parametrize(("t", "n"), [(1, 1), (3, 1), (5, 1), (5, 3), (101, 1), (2001, 2)])
def test_the_share_of_the_median_by_brute_force(law, budget, t, n):
    """Order statistics of the law itself: the chance of every value of the median, from its distribution function."""
    k = np.arange(-400, 401).astype(float)
    one = law.weights(float(law.parameter(budget)), np.abs(k))
    pmf = one / one.sum()
    for _ in range(n - 1):
        pmf = np.convolve(pmf, one / one.sum(), mode="same")
    from scipy.stats import binom

    below = np.clip(np.cumsum(pmf), 0, 1)
    reached = binom.sf((t - 1) // 2, t, below)  # at least (t + 1)/2 are no larger
    median = np.diff(reached, prepend=0.0)
    assert median_share(law, budget, t, n) == pytest.approx(
        (median * k**2).sum() / (pmf * k**2).sum(), rel=1e-6, abs=1e-12
    )
