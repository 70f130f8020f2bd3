"""Xiao et al. 2011: Example 1 (proportional noise breaks the guarantee) and the oracle, which nothing can beat.

Numbers are those of the paper and of docs/maths.md sections 3 and 9 (vector 14).
"""

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import minimize

from helpers import NEIGHBOURS, MemoryEngine, expected_overall_error, make_request, make_schema
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare
from hushcube.private.adaptive import not_private
from hushcube.private.adaptive.not_private import oracle, proportional, sensitivity
from hushcube.private.adaptive.run import prepared
from hushcube.private.adaptive.subject import Subject
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.adaptive import NOT_PRIVATE, TwoPhase

T1, T2 = [42, 17, 35, 19, 55], [42, 17, 35, 20, 55]
AGES = make_schema((100,))


def census_subject(ages):
    """Teenagers (13 to 19), and people under 65; sanity bound 1, epsilon 1, replace-one."""
    rows = np.zeros((2, 100))
    rows[0, 13:20], rows[1, :65] = 1, 1
    workload = Workload.parse("queries", AGES, query_table(AGES, None, rows))
    request = Request(workload, Privacy.of(epsilon=1, neighbours="replace-one"))
    plan = TwoPhase(sanity_bound=1).plan(request, "uniform", "none")
    counts = MemoryEngine(np.array(ages)[:, None]).count(AGES, plan.counted)
    return prepared(plan, counts, SeededEntropy(1))


def scales(exposed):
    return [(1 / rates).tolist() for rates in exposed.rates]


def test_example_1_has_the_printed_scales():
    on_T1, on_T2 = (proportional(census_subject(ages), SeededEntropy(2)) for ages in (T1, T2))
    assert np.ravel(scales(on_T1)) == pytest.approx([1.4, 3.5], rel=1e-12)
    assert np.ravel(scales(on_T2)) == pytest.approx([1.2, 6.0], rel=1e-12)
    assert on_T1.sensitivity == pytest.approx(1) == on_T2.sensitivity


def log_ratio(density, output):
    """Of the two tables, at an output; `density(x, scale)` is that of the noise."""
    total = 0.0
    for ages, sign in ((T1, 1), (T2, -1)):
        subject = census_subject(ages)
        found = np.ravel(scales(proportional(subject, SeededEntropy(3))))
        truth = np.concatenate(subject.truth)
        total += sign * sum(math.log(density(y - q, s)) for y, q, s in zip(output, truth, found, strict=True))
    return total


def test_example_1_breaks_the_guarantee():
    """At (102, 5): exp(535/42) as printed, 1.469 times more with the normalisers that the paper leaves out."""
    as_printed = log_ratio(lambda x, scale: math.exp(-abs(x) / scale), (102, 5))
    assert as_printed == pytest.approx(535 / 42, rel=1e-9)
    with_normalisers = log_ratio(lambda x, scale: math.exp(-abs(x) / scale) / (2 * scale), (102, 5))
    assert math.exp(with_normalisers - as_printed) == pytest.approx(1.2 * 6 / (1.4 * 3.5)) == pytest.approx(1.469, 1e-3)
    assert as_printed > 1  # exp(epsilon) is what the guarantee allows


def test_the_discrete_noise_that_is_drawn_breaks_it_too():
    def pmf(x, scale):
        return math.tanh(0.5 / scale) * math.exp(-abs(x) / scale)

    assert log_ratio(pmf, (102, 5)) > 12.5  # about exp(12.7 + ln 1.4), and it grows without bound:
    assert log_ratio(pmf, (302, 5)) - log_ratio(pmf, (202, 5)) == pytest.approx(100 * (1 / 1.2 - 1 / 1.4), rel=1e-9)


@pytest.mark.parametrize("name", NOT_PRIVATE)
def test_no_plan_is_made_of_what_knows_the_truth(name):
    with pytest.raises(BadInput, match="not private"):
        compare(make_request((2, 3), epsilon=1), strategy=name)
    assert set(not_private.METHODS) == set(NOT_PRIVATE)


# --------------------------------------------------------------------------------------------------------- the oracle


def hand_subject(truth, *, neighbours="replace-one", pick="average", epsilon=1, sanity_bound=1):
    """One-way tables with any counts: oracle and proportional look at nothing else."""
    request = make_request(tuple(map(len, truth)), "1-way", neighbours=neighbours, epsilon=epsilon)
    plan = TwoPhase(sanity_bound=sanity_bound, pick=pick).plan(request, "uniform", "none")
    tables = [np.array(table, dtype=np.int64) for table in truth]
    total = [np.array([tables[0].sum()])] if neighbours == "replace-one" else []
    free = np.array([False] * len(total) + [True] * len(tables))
    return Subject(plan.underlying, plan.rule.settled(), free, [*total, *tables])


def test_the_oracle_of_vector_14():
    marginals = [np.array([100, 100]), np.array([1, 1, 1, 1])]
    exposed = oracle(hand_subject(marginals), SeededEntropy(1))
    found = [table[0] for table in scales(exposed)[1:]]
    assert found == pytest.approx([22, 2.2], rel=1e-12)
    assert expected_overall_error(marginals, found, sanity_bound=1) == pytest.approx(1.21)
    assert exposed.sensitivity == pytest.approx(1)
    assert exposed.answers[0].tolist() == [200], "the total is public under replace-one"


@pytest.mark.parametrize("seed", range(5))
def test_no_scales_of_tables_have_less_expected_error(seed):
    """A convex optimiser finds no better ones; the expected error is that of continuous noise."""
    random = np.random.default_rng(seed)
    truth = [random.integers(0, 10 ** random.integers(1, 5), size) for size in (2, 5, 9)]
    subject = hand_subject(truth, sanity_bound=3, neighbours="add-remove", epsilon="1/100")
    found = np.array([table[0] for table in scales(oracle(subject, SeededEntropy(1)))])

    def error(log_rates):
        rates = np.exp(log_rates - log_rates.max())
        return expected_overall_error(truth, rates.sum() / rates / 0.01, 3)

    best = minimize(error, np.zeros(3), method="BFGS").fun
    assert expected_overall_error(truth, found, 3) == pytest.approx(best, rel=1e-6)


def test_the_oracle_for_the_worst_cell_makes_all_tables_equally_bad():
    truth = [np.array([100, 40]), np.array([1, 7, 3]), np.array([9, 5000])]
    found = [
        table[0] for table in scales(oracle(hand_subject(truth, pick="worst", sanity_bound=2), SeededEntropy(1)))[1:]
    ]
    assert np.array(found) / [40, 2, 9] == pytest.approx([found[0] / 40] * 3)


# --------------------------------------------------------------------------------------------- proportional on tables


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_proportional_scales_and_what_they_would_cost(neighbours):
    truth = [np.array([50, 3]), np.array([0, 20, 33]), np.array([1, 1, 7, 44])]
    exposed = proportional(hand_subject(truth, neighbours=neighbours, sanity_bound=2), SeededEntropy(1))
    rates = exposed.rates[-3:]
    for table, own in zip(truth, rates, strict=True):
        assert own * np.maximum(table, 2) == pytest.approx(rates[0][0] * 50)
    if neighbours == "add-remove":  # one cell of every table changes by one
        cost = sum(own.max() for own in rates)
    else:  # two cells of every table do
        cost = sum(max(a + b for a, b in combinations(own, 2)) for own in rates)
    assert exposed.sensitivity == pytest.approx(cost) == pytest.approx(1)


def test_what_shared_rates_would_cost_is_what_a_plan_says():
    subject = hand_subject([np.array([5, 5]), np.array([4, 3, 3])])
    rates = [np.array([math.inf]), np.full(2, 0.125), np.full(3, 0.25)]
    assert sensitivity(subject.start, rates) == subject.cost(np.array([math.inf, 0.125, 0.25])) == Fraction(3, 4)


def test_proportional_noise_has_its_law():
    """Mean sizes of the noise of 20,000 cells each within 5 standard errors (false alarm 1e-6), and not 10% off."""
    table = np.repeat([10, 100], 20_000)
    np.random.default_rng(1).shuffle(table)
    exposed = proportional(hand_subject([table], neighbours="add-remove", epsilon="1/2"), SeededEntropy(5))
    for count, scale in ((10, 2), (100, 20)):
        chosen = table == count
        assert 1 / exposed.rates[0][chosen] == pytest.approx(np.full(20_000, scale))
        sizes, expected = np.abs(exposed.answers[0] - table)[chosen], 1 / math.sinh(1 / scale)
        spread = sizes.std() / math.sqrt(len(sizes))
        assert abs(sizes.mean() - expected) < 5 * spread
        assert abs(sizes.mean() - 1.1 * expected) > 5 * spread
