"""Simulated releases of ranges on real data against predictions: variances and coverage of intervals.

Adult's 74 ages by sex. Every replicate is one seeded run of `measure` and `recover`. Answers of a range table overlap,
so only replicate-level numbers are compared, as in `test_predictions`: the mean over a table of its answers' squared
errors, each over its predicted variance. R such numbers of mean m and variance s² behave like m chi²(nu)/nu with
nu = 2 R m² / s² [Satterthwaite], halved for its own estimation error. All comparisons of this file together have a
false-alarm rate of 1e-6 [Bonferroni]; seeds are fixed, so the outcome does not vary. Pooled over a strategy's three
guarantees (1e-6 a table, nu as estimated) the same test must reject predictions that are wrong by 30%.
"""

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from datasets import shared
from helpers import Counts, exact_table, label, released
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from ranged import every_variant, ranged_request

SCHEMA = Schema((Attribute(name="age", range=(17, 90)), Attribute(name="sex", values=("Female", "Male"))), "adult")
WORDS = "prefix(age)*sex,ranges(age)"
LAWS = [{"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}]
STRATEGIES = ["identity", "workload", "residual", "wavelet", "hierarchy"]
REPLICATES = 170
COMPARISONS = len(LAWS) * len(STRATEGIES) * 2
LEVEL = 1e-6 / COMPARISONS


class CountedOnce:
    """An engine that counts each group of marginals once."""

    def __init__(self, codes):
        self._counts, self._kept, self.rows = Counts(SCHEMA, codes), {}, len(codes)

    def count(self, schema, wanted, *, measures=(), progress=None):
        return self

    def tables(self, marginals):
        key = marginals.tobytes()
        if key not in self._kept:
            self._kept[key] = self._counts.tables(marginals)
        return self._kept[key]


@pytest.fixture(scope="module")
def adult():
    table = pq.read_table(shared("adult15.parquet"), columns=["age", "sex"])
    ages = table.column("age").to_numpy() - 17
    women = np.array(table.column("sex").to_pylist()) == "Female"
    return np.stack([ages, np.where(women, 0, 1)], axis=1).astype(np.int64)


def simulate(plan, codes):
    """For each form: squared errors over their predictions, and coverage; a mean for each replicate."""
    engine = CountedOnce(codes)
    forms = plan.workload.forms
    truths = [form.evaluate(exact_table(SCHEMA, codes, form.marginal).astype(float)) for form in forms]
    squares, covered = np.zeros((2, REPLICATES, len(forms)))
    tables = None
    for seed in range(REPLICATES):
        release = released(plan, measure(plan, engine, entropy=SeededEntropy(seed)))
        tables = tables or [release.table(form.word) for form in forms]  # error bars are the same every time
        for at, (form, truth) in enumerate(zip(forms, truths, strict=True)):
            off = release.source.form(form) - truth
            squares[seed, at] = (off**2 / tables[at].std_errors ** 2).mean()
            covered[seed, at] = (np.abs(off) <= tables[at].margins + 1e-9).mean()
    return squares, covered


def plausible(observed, factor=1.0, level=LEVEL, cautious=True):
    """Whether replicates of mean 1 if predictions are right fit predictions that are `factor` times as large."""
    mean, spread = observed.mean(), observed.var(ddof=1)
    nu = (1 if cautious else 2) * len(observed) * mean**2 / spread
    low, high = stats.chi2.ppf([level / 2, 1 - level / 2], nu) / nu
    return low <= mean / factor <= high


@pytest.mark.slow
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_simulated_ranges_are_as_predicted(strategy, adult):
    """One test a strategy: the checks share the simulation, which is what takes the time."""
    squares, covered = [], []
    for law in LAWS:
        request = ranged_request(SCHEMA, WORDS, **law)
        (plan,) = every_variant(request, [strategy], ["optimal"], ["gls"])
        seen, inside = simulate(plan, adult)
        for at, form in enumerate(plan.workload.forms):
            assert plan.errors.form_variances(form, exact=True).min() > 0.1, "enough noise to be seen"
            assert plausible(seen[:, at]), f"{label(plan)} {form.word}: {seen[:, at].mean()}"
            slack = 5 * inside[:, at].std(ddof=1) / np.sqrt(REPLICATES)  # one-sided 3e-7 a table
            assert inside[:, at].mean() >= 0.95 - slack, f"{label(plan)} {form.word}: {inside[:, at].mean()}"
        squares.append(seen)
        covered.append(inside)
    pooled = np.concatenate(squares)
    for at in range(pooled.shape[1]):
        right, low, high = (plausible(pooled[:, at], factor, 1e-6, cautious=False) for factor in (1, 1 / 1.3, 1.3))
        assert right and not low and not high, f"{strategy}: {pooled[:, at].mean()}"
    assert np.mean(covered) >= 0.945, f"{strategy}: {np.mean(covered)}"
