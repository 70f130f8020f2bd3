"""Intervals of shares, ratios and differences cover the truth: counts and sums, Laplace and Gaussian noise.

Each release is one observation: the share of its intervals that cover. Their mean must not lie more than four standard
errors below 95%, which happens by chance in less than one of 20,000 cases; and it must lie below 95% by as much where
all intervals are half as long: those of Laplace noise are made for the worst combination, and long for others.
HUSHCUBE_COVERAGE_RELEASES=600 draws more.
"""

import os

import numpy as np
import pandas as pd
import pytest

import hushcube as hc

RELEASES = int(os.environ.get("HUSHCUBE_COVERAGE_RELEASES", "40"))
SCHEMA = hc.Schema(
    [hc.Attribute("a", codes=3), hc.Attribute("b", codes=4)], measures=[hc.Measure("days", bounds=[0, 3], center=1)]
)
TRUTH = np.array([[40, 90, 10, 60], [5, 200, 30, 30], [100, 3, 50, 20]])
PEOPLE = pd.DataFrame(
    np.repeat([(i, j) for i in range(3) for j in range(4)], TRUTH.ravel(), axis=0), columns=["a", "b"]
)
PEOPLE["days"] = np.arange(len(PEOPLE)) % 4
SUMS = PEOPLE.pivot_table(index="a", columns="b", values="days", aggfunc="sum").to_numpy()
LAWS = {"laplace": {"epsilon": 2}, "gaussian": {"rho": 0.5}}


@pytest.fixture(scope="module", params=LAWS)
def releases(request):
    asked = hc.plan(SCHEMA, "a*b,a", measures="sum(days)", neighbours="add-remove", **LAWS[request.param])
    return [hc.release(asked, PEOPLE, seed=seed) for seed in range(RELEASES)]


def judge(low, value, high, truth):
    """`low`, `value`, `high`: one row a release. What is unknown rules nothing out."""
    for scale, holds in ((1.0, True), (0.4, False)):
        below, above = value - scale * (value - low), value + scale * (high - value)
        covered = ~((truth < below - 1e-9) | (truth > above + 1e-9))
        covered = covered.reshape(RELEASES, -1).mean(axis=1)
        error = covered.std() / np.sqrt(RELEASES)
        assert (covered.mean() > 0.95 - 4 * error) == holds, (scale, covered.mean(), error)


@pytest.mark.parametrize("of", ["row", "all"])
@pytest.mark.parametrize("what", ["count", "sum(days)"])
def test_shares_cover(releases, what, of):
    truth = TRUTH if what == "count" else SUMS
    tables = [release.shares("a*b", of, what) for release in releases]
    inside = truth > 20  # what is cut off at zero covers more often
    low, value, high = (np.stack([getattr(t, name)[inside] for t in tables]) for name in ("low", "values", "high"))
    judge(low, value, high, (100 * truth / truth.sum(axis=1 if of == "row" else None, keepdims=True))[inside])


@pytest.mark.parametrize("what", ["count", "sum(days)"])
def test_differences_and_ratios_cover(releases, what):
    truth = TRUTH if what == "count" else SUMS
    pairs = [((0, 1), (1, 1)), ((2, 0), (0, 1)), ((1, 1), (2, 2)), ((1, 3), (1, 2))]
    found = []
    for release in releases:
        groups = (({"a": str(x[0]), "b": str(x[1])}, {"a": str(y[0]), "b": str(y[1])}) for x, y in pairs)
        found.append([release.compare("a*b", *group, what) for group in groups])
    for name, true in (("difference", np.subtract), ("ratio", np.divide)):
        each = ([getattr(compared, name) for compared in row] for row in found)
        numbers = np.array([[(e.low, e.value, e.high) for e in row] for row in each])
        judge(*np.moveaxis(numbers, 2, 0), np.array([true(float(truth[x]), float(truth[y])) for x, y in pairs]))
