"""iReduct that picks for the worst cell, against even noise and against the pick for the average.

The data are made up: nine tables of 305,119 calls, some with counts far below the noise. The largest error varies by
half from run to run, and by less than a tenth in the mean of 40 runs with the same draws. Before, it was forty times
that of even noise, and depended on the order of attributes. Seeds are fixed: what passes once passes always.
"""

import numpy as np
import pytest

from hushcube import Attribute, Schema, plan
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy

SHAPES = ((4, 2.5), (9, 3), (41, 2), (3, 5), (25, 3), (2, 1), (60, 2), (12, 3), (6, 4))
PEOPLE, DELTA = 305_119, 10


class Tables:
    """One-way tables by attribute."""

    rows, sums, dropped, bad = PEOPLE, {}, 0, 0

    def __init__(self, tables):
        self.found = tables

    def tables(self, marginals):
        return np.stack([self.found[row[0]] for row in marginals.tolist()])


def calls():
    rng = np.random.default_rng(1)
    weights = [rng.permutation((np.arange(size) + 1.0) ** -fall) for size, fall in SHAPES]
    return [rng.multinomial(PEOPLE, w / w.sum()) for w in weights]


def worst_error(tables, strategy, runs, epsilon="0.02"):
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=len(t)) for i, t in enumerate(tables)), "calls")
    asked = {"epsilon": epsilon, "neighbours": "add-remove", "recovery": "none", "budgets": "uniform"}
    made = plan(schema, "1-way", strategy=strategy, **asked).count
    found = []
    for seed in range(runs):
        ended, measurement = draw(made, Tables(tables), entropy=SeededEntropy(seed))
        answers = ended.answers(measurement)
        noisy = [answers.tables(np.array([[i]], np.int32), t.shape)[0] for i, t in enumerate(tables)]
        pairs = zip(noisy, tables, strict=True)
        found.append(max(float((np.abs(y - q) / np.maximum(q, DELTA)).max()) for y, q in pairs))
    return np.mean(found)


@pytest.mark.parametrize(
    ("strategy", "runs", "most"), [("ireduct", 40, 1.1), ("twophase", 20, 1.2), ("iresamp", 20, 1.5)]
)
def test_the_worst_cell_is_not_worse_than_with_even_noise_or_for_the_average(strategy, runs, most):
    """Independent samples waste half of iresamp's budget, and twophase's first look a little."""
    tables = calls()
    even = worst_error(tables, "dwork", runs)
    average, worst = (
        worst_error(tables, f"{strategy}:sanity-bound={DELTA},pick={pick}", runs) for pick in ("average", "worst")
    )
    assert worst < most * min(even, average)
    turned = worst_error(tables[::-1], f"{strategy}:sanity-bound={DELTA},pick=worst", runs)
    assert worst / 1.5 < turned < worst * 1.5


def test_sums_that_show_noise_make_the_worst_cell_smaller():
    """Two large counts in a table tell nothing of their noise, but nine such tables have the same sum.

    With these draws the ratio is 0.82, and 0.93 for a rule that does not look at sums.
    """
    people, smaller = 21_574, (2285, 5947, 8697, 4483, 9466, 5347, 6997, 4671, 7646)
    tables = [np.array([few, people - few]) for few in smaller]
    found = [
        worst_error(tables, strategy, 30, "0.2")
        for strategy in ("dwork", "ireduct:sanity-bound=10", "ireduct:sanity-bound=10,pick=worst")
    ]
    assert found[2] < 0.85 * min(found[:2])
