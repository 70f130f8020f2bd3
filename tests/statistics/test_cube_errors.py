"""Sums and averages against the truth over repeated releases: standard errors, and intervals that cover."""

import numpy as np
import pyarrow as pa
import pytest

from helpers import seeded_releases
from hushcube import Attribute, Schema, plan, release
from hushcube.model.measure import Measure

RUNS = 150
SCHEMA = Schema(
    (Attribute(name="ward", codes=3), Attribute(name="sex", codes=2)),
    "stays",
    measures=(
        Measure(name="days", bounds=(1, 14), center="middle", resolution="0.5"),
        Measure(name="cost", bounds=(0, 1000), resolution=10),
    ),
)


def people():
    rng = np.random.default_rng(5)
    n = 3_000
    ward = rng.choice(3, n, p=[0.7, 0.28, 0.02])
    days = np.clip(rng.poisson(3 + 2 * ward), 1, 14)
    return {"ward": ward, "sex": rng.integers(0, 2, n), "days": days, "cost": np.clip(80 * days, 0, 1000)}


@pytest.mark.slow
@pytest.mark.parametrize("privacy", [{"epsilon": 2}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize("strategy", ["workload", "identity"])
def test_errors_are_as_stated_and_intervals_cover(privacy, strategy):
    """Mean squared errors over stated variances within 15% (five standard errors), coverage of 95% within 2.5%.

    900 dependent intervals a measure: the standard error of their coverage is about 1%. Bands 30% too narrow are found.
    """
    columns = people()
    data = pa.table(columns)
    truth = {}
    cell = columns["ward"] * 2 + columns["sex"]
    counts = np.bincount(cell, minlength=6).reshape(3, 2)
    for name, step in (("days", 1), ("cost", 10)):
        rounded = np.rint(columns[name] / step) * step  # values are published to this step
        truth[name] = np.bincount(cell, rounded, minlength=6).reshape(3, 2)
    words = "sum(days),avg(days),sum(cost),avg(cost)"
    cube = plan(SCHEMA, "<=2-way", measures=words, neighbours="add-remove", strategy=strategy, **privacy)
    squares = {name: [] for name in truth}
    covered = {name: [] for name in truth}
    narrow = {name: [] for name in truth}
    for found in seeded_releases(cube, data, range(RUNS)):
        for name, sums in truth.items():
            table = found.table("ward*sex", f"sum({name})")
            squares[name].append(((table.values - sums) / table.std_errors) ** 2)
            average = found.table("ward*sex", f"avg({name})")
            mean, known = sums / counts, ~np.isnan(average.values)
            inside = (average.low <= mean + 1e-9) & (mean <= average.high + 1e-9)
            covered[name].append(np.where(known, inside, np.nan))
            half = 0.7 * np.maximum(average.high - average.values, average.values - average.low)
            narrow[name].append(np.where(known, np.abs(average.values - mean) <= half, np.nan))
    for name in truth:
        assert np.mean(squares[name]) == pytest.approx(1, abs=0.15)
        assert 0.925 <= np.nanmean(covered[name]) <= 0.99
        assert np.nanmean(narrow[name]) < 0.925


def test_no_interval_pretends_where_the_count_is_noise():
    cube = plan(SCHEMA, "2-way", measures="avg(days)", epsilon="0.01", neighbours="add-remove")
    columns = people()
    average = release(cube, pa.table(columns), seed=1).table("ward*sex", "avg(days)")
    assert np.isnan(average.values).any()
    assert (np.isnan(average.values) == np.isnan(average.low)).all()
    known = ~np.isnan(average.values)
    assert ((average.low >= 1) & (average.high <= 14) & (average.low <= average.values))[known].all()
