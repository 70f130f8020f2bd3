"""Simulated releases against predictions: variances, coverage of intervals, and tables that add up.

Every replicate is one seeded run of `measure` and `recover` on one data set. Cells of a table are correlated, so only
replicate-level numbers are compared: the mean squared error of a table over its cells, one number a replicate. R such
numbers of mean m and variance s² behave like m chi²(nu)/nu with nu = 2 R m² / s² [Satterthwaite]; nu is halved for its
own estimation error. The false-alarm rate of all comparisons of this file together is 1e-6 [Bonferroni]; seeds are
fixed, so the outcome does not vary. Pooled over a plan's tables (1e-6 a plan, nu as estimated) the same test must
reject predictions that are wrong by 30%.
"""

from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from datasets import adult8_schema, nltcs_schema, shared
from helpers import Counts, all_tables, applicable, every_plan, label, make_schema, random_codes
from hushcube.designs.design import EVERY_RECOVERY, RECOVERIES
from hushcube.designs.request import Request
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy

COMPARISONS = 20_000
"""More than all (plan, marginal) pairs below."""
LEVEL = 1e-6 / COMPARISONS


class CountOnce:
    """An engine that counts each group of marginals once, and returns the same exact tables to every replicate."""

    def __init__(self, schema, codes):
        self._counts, self._kept, self.rows = Counts(schema, codes), {}, len(codes)

    def count(self, schema, wanted, *, measures=(), progress=None):
        return self

    def tables(self, marginals):
        key = (marginals.shape[1], marginals.tobytes())
        if key not in self._kept:
            self._kept[key] = self._counts.tables(marginals)
        return self._kept[key]


def adult8():
    return _real(adult8_schema(), "adult8.parquet")


def nltcs():
    return _real(nltcs_schema(), "nltcs.parquet")


def _real(schema, file):
    table = pq.read_table(shared(file))
    columns = []
    for attribute in schema.attributes:
        column = table.column(attribute.name).combine_chunks().dictionary_encode()
        places = np.array([attribute.position(str(label)) for label in column.dictionary.to_pylist()])
        columns.append(places[column.indices.to_numpy()])
    return schema, np.stack(columns, axis=1)


def small(*sizes):
    return lambda: (make_schema(sizes), random_codes(sizes, 400))


PURE, ZCDP, BOTH = {"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"}
SOURCES = {
    "adult8": (adult8, "2-way"),
    "nltcs": (nltcs, "2-way"),
    "2x3x5x4": (small(2, 3, 5, 4), "<=2-way"),
    "2x3x1x5": (small(2, 3, 1, 5), "<=2-way"),
}
FEW_TABLES = ["cluster", "pmost"]
"""With much budget their noise is hardly ever drawn: replicates would say little."""
# data, guarantee, neighbours, strategies, replicates
CASES = [
    ("adult8", PURE, "add-remove", ["bmax", "pmost", "cluster"], 40),
    ("nltcs", PURE, "add-remove", ["bmax", "pmost"], 180),
    ("nltcs", PURE, "add-remove", ["cluster"], 500),
    ("adult8", PURE, "add-remove", ["workload", "fourier", "residual"], 25),
    ("adult8", PURE, "add-remove", ["identity"], 10),
    ("adult8", BOTH, "add-remove", ["workload", "residual"], 25),
    ("nltcs", PURE, "add-remove", ["workload", "fourier", "residual"], 180),
    ("nltcs", PURE, "add-remove", ["identity"], 400),
    ("adult8", PURE, "add-remove", ["covering"], 40),
    ("nltcs", ZCDP, "add-remove", ["workload", "fourier", "residual"], 120),
    ("2x3x5x4", PURE, "replace-one", applicable(PURE), 100),
    ("2x3x5x4", BOTH, "add-remove", ["identity", "workload", "residual"], 100),
    ("2x3x5x4", ZCDP, "replace-one", ["fourier", "residual"], 100),
    ("2x3x1x5", {"rho": 20}, "add-remove", [s for s in applicable({"rho": 20}) if s not in FEW_TABLES], 250),
    ("2x3x1x5", {"rho": 5}, "add-remove", FEW_TABLES, 250),
]
cases = pytest.mark.parametrize(
    ("data", "law", "neighbours", "strategy", "replicates"),
    [(d, law, n, s, r) for d, law, n, names, r in CASES for s in names],
    ids=str,
)
_engines = {}


def prepared(data, law, neighbours):
    load, words = SOURCES[data]
    if data not in _engines:
        schema, codes = load()
        _engines[data] = schema, CountOnce(schema, codes)
    schema, engine = _engines[data]
    return Request(Workload.parse(words, schema), Privacy.of(neighbours=neighbours, **law)), engine


def different_plans(request, strategy):
    """Each variant that differs from those before in what it measures or predicts.

    Least squares on the answers is simulated where that is cheap.
    """
    seen = set()
    cheap = request.privacy.is_pure and len(request.schema) == 4
    for plan in every_plan(request, [strategy], EVERY_RECOVERY if cheap else RECOVERIES):
        key = (plan.budgets.tobytes(), plan.errors.cell_variances(exact=True).round(6).tobytes())
        if key not in seen:
            seen.add(key)
            yield plan


class Simulation:
    """Squared errors and coverage of each marginal in each replicate, from runs that share measurements."""

    def __init__(self, plans, engine, replicates):
        self.plans = plans
        self.families = [plan.request.marginals for plan in plans]
        shape = (len(plans), replicates, len(self.families[0]))
        self.squares, self.covered, self.gap = np.zeros(shape), np.zeros(shape), np.zeros(len(plans))
        widths = [plan.errors.margins for plan in plans]
        measurements = {}
        for r in range(replicates):
            measurements.clear()
            for p, plan in enumerate(plans):
                key = plan.budgets.tobytes()
                if key not in measurements:
                    measurements[key] = measure(plan, engine, entropy=SeededEntropy(r))
                answers = plan.answers(replace(measurements[key], plan_digest=plan.digest))
                for batch in self.families[p].batches:
                    tables = answers.tables(batch.rows, batch.shape)
                    off = np.abs(tables - engine.tables(batch.rows).reshape(tables.shape)).reshape(len(tables), -1)
                    self.squares[p, r, batch.ids] = (off**2).mean(axis=1)
                    self.covered[p, r, batch.ids] = (off <= widths[p][batch.ids, None] + 1e-9).mean(axis=1)
                if r == 0:
                    self.gap[p] = disagreement(all_tables(plan, answers))


def disagreement(tables):
    """The largest difference between two tables summed down to an attribute that they share."""
    ends = {}
    for A, table in tables.items():
        for axis, attribute in enumerate(A):
            ends.setdefault(attribute, []).append(table.sum(axis=tuple(a for a in range(len(A)) if a != axis)))
    return max(np.abs(np.ptp(found, axis=0)).max() for found in ends.values())


def plausible(observed, predicted, level=LEVEL, cautious=True):
    """Whether replicate means fit a prediction; (replicates,) against a number."""
    mean, spread = observed.mean(), observed.var(ddof=1)
    if predicted * len(observed) < 1:  # hardly any noise is ever seen: only that it is rare can be checked
        return observed.sum() < 40
    nu = (1 if cautious else 2) * len(observed) * mean**2 / spread
    low, high = stats.chi2.ppf([level / 2, 1 - level / 2], nu) / nu
    return low <= mean / predicted <= high


def check_mean_squared_errors(run, p, plan):
    predicted = plan.errors.cell_variances(exact=True)
    for number, A in enumerate(plan.request.marginals):
        seen = run.squares[p, :, number]
        assert plausible(seen, predicted[number]), f"{label(plan)} {A}: {seen.mean()} for {predicted[number]}"


def check_that_thirty_percent_would_be_noticed(run, p, plan):
    """Pooled over the marginals of a plan, in proportion to their cells; nothing to reject where nothing is drawn."""
    predicted = plan.errors.cell_variances(exact=True)
    noisy = predicted > 0.01
    if not noisy.any():
        return
    cells = plan.request.marginals.cells[noisy]
    pooled = run.squares[p][:, noisy] / predicted[noisy] @ cells / cells.sum()
    right, low, high = (plausible(pooled, wrong, 1e-6, cautious=False) for wrong in (1.0, 1 / 1.3, 1.3))
    assert right, f"{label(plan)}: {pooled.mean()}"
    assert not low, label(plan)
    assert not high, label(plan)


def check_coverage(run, p, plan):
    """At least 95% up to five standard errors of the replicate means (one-sided 3e-7 a plan); not needlessly more."""
    replicates = len(run.covered[p])
    noisy = plan.errors.cell_variances(exact=True) > 1e-12
    by_replicate = run.covered[p][:, noisy].mean(axis=1)
    slack = 5 * by_replicate.std(ddof=1) / np.sqrt(replicates) + 1e-3
    assert by_replicate.mean() >= 0.95 - slack, label(plan)
    assert run.covered[p].mean(axis=0).min() >= 0.95 - 5 * np.sqrt(0.0475 / replicates), label(plan)
    if not plan.errors.is_coarse:  # there the steps of the noise force more
        assert by_replicate.mean() <= 0.985, label(plan)


def check_adding_up(run, p, plan):
    if plan.recovery != "none":
        assert run.gap[p] < 1e-9 * max(1, plan.errors.cell_variances(exact=True).max()), label(plan)
    elif plan.strategy == "workload":
        assert run.gap[p] > 0.5, "without recovery tables contradict each other: the check can fail"


@pytest.mark.slow
@cases
def test_simulated_releases_are_as_predicted(data, law, neighbours, strategy, replicates):
    """One test a case: the four checks share the simulation, which is what takes the time."""
    request, engine = prepared(data, law, neighbours)
    run = Simulation(list(different_plans(request, strategy)), engine, replicates)
    for p, plan in enumerate(run.plans):
        check_mean_squared_errors(run, p, plan)
        check_that_thirty_percent_would_be_noticed(run, p, plan)
        check_coverage(run, p, plan)
        check_adding_up(run, p, plan)
