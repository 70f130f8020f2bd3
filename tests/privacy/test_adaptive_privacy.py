"""Adaptive methods are private: decisions see noisy answers only, no run costs more than epsilon, and outcomes of
neighbouring tables are as likely as they must be.

Record and replay: noisy answers are recorded on one table and played back on its neighbour, where they would need other
noise. Every decision and every parameter must then be the same, for it may depend on nothing but these answers.
"""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from audit.adaptive import METHODS, QUERIES
from audit.costs import SCALES, check_adaptive_cost, counts_of, exact_cost, make_plan
from audit.tape import record
from helpers import NEIGHBOURS, random_codes
from hushcube.designs.grid import BELOW
from hushcube.private.adaptive import ireduct, resampling
from hushcube.private.adaptive.paths import NoisePaths, Path
from hushcube.private.adaptive.run import prepared
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy

# -------------------------------------------------------------------------------------------------- record and replay


def neighbours_of(codes, neighbours):
    other = codes.copy()
    if neighbours == "replace-one":
        other[0] = (other[0] + 1) % other.max(axis=0).clip(1)
        return other
    return np.concatenate([codes, [[1, 2][: codes.shape[1]]]])


def far_from(codes, neighbours):
    """No neighbour, but what holds for these holds for all: everybody is in one cell, and rows that can go are gone."""
    return np.ones_like(codes)[: None if neighbours == "replace-one" else 3]


CONFIGURATIONS = [
    ("1-way,a0*a1", None, {"sanity_bound": 3, "lambda_factor": "0.9"}),
    ("1-way", None, {"sanity_bound": 3, "pick": "worst", "lambda_max": 40, "lambda_step": "0.5"}),
    ("1-way,a0*a1", None, {"sanity_bound": 1, "caution": "0.5"}),
    ("a0,a0*a1", None, {"sanity_bound": 10, "relative_error": "0.2", "above": 10}),
    ("queries", QUERIES, {"sanity_bound": 3, "lambda_factor": "0.9"}),
    ("queries", QUERIES, {"sanity_bound": 20, "relative_error": "0.3", "above": 20, "pick": "worst"}),
]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS, ids=lambda c: f"{c[0]} {sorted(c[2])}")
def test_with_the_noisy_answers_frozen_everything_is_the_same(monkeypatch, configuration, method, neighbours, seed):
    words, queries, rule = configuration
    plan = make_plan((2, 3), words, method, rule, queries=queries, neighbours=neighbours, epsilon=1)
    codes = random_codes((2, 3), 100, seed)
    tape = record(monkeypatch)
    made, measured = draw(plan, counts_of(plan, codes), entropy=SeededEntropy(seed))
    for other in (neighbours_of(codes, neighbours), far_from(codes, neighbours)):
        tape.replay()
        again, replayed = draw(plan, counts_of(plan, other), entropy=SeededEntropy(seed + 1))
        assert tape.next == len(tape.steps) > 0
        assert again.to_dict() == made.to_dict()  # rates, samples, details: all there is
        assert again.digest == made.digest
        for one, two in zip(measured.values, replayed.values, strict=True):
            assert one.tolist() == two.tolist()
        truths = [prepared(plan, counts_of(plan, table), SeededEntropy(0)).truth for table in (codes, other)]
        assert any(one.tolist() != two.tolist() for one, two in zip(*truths, strict=True))


@pytest.mark.parametrize("method", METHODS)
def test_parameters_follow_the_noisy_number_of_people(monkeypatch, method):
    """Shares of the people, whose number is private and paid for: frozen like any noisy answer."""
    rule = {"sanity_bound": "1%", "lambda_max": "30%", "lambda_factor": "0.9", "people_epsilon": "0.1"}
    plan = make_plan((2, 3), "1-way", method, rule, epsilon=1)
    codes = random_codes((2, 3), 100, 1)
    tape = record(monkeypatch)
    made, _ = draw(plan, counts_of(plan, codes), entropy=SeededEntropy(1))
    tape.replay(rows=101)
    again, _ = draw(plan, counts_of(plan, neighbours_of(codes, "add-remove")), entropy=SeededEntropy(2))
    assert again.to_dict() == made.to_dict()
    assert made.details["adaptive"]["settled"]["people"] == 107
    assert made.details["adaptive"]["settled"]["sanity_bound"] == "1.07"


def test_a_decision_from_exact_answers_would_be_noticed(monkeypatch):
    """The judge has teeth: scales that are chosen by the exact counts change when those do."""
    plan = make_plan((2, 3), "1-way", "twophase", {"sanity_bound": 1}, epsilon=1)
    codes = random_codes((2, 3), 100, 1)
    chosen = resampling.second_rates
    monkeypatch.setattr(resampling, "second_rates", lambda subject, seen: chosen(subject, subject.truth[-2:]))
    tape = record(monkeypatch)
    draw(plan, counts_of(plan, codes), entropy=SeededEntropy(1))
    tape.replay()
    with pytest.raises(AssertionError, match="a decision changed"):
        draw(plan, counts_of(plan, neighbours_of(codes, "add-remove")), entropy=SeededEntropy(1))


# ---------------------------------------------------------------------------------------------------- the exact cost


every_kind = settings(deadline=None, suppress_health_check=list(HealthCheck), derandomize=False)


@given(st.integers(0, 2**40))
@settings(every_kind, max_examples=SCALES["short"].configurations // len(METHODS))
@pytest.mark.parametrize("method", METHODS)
def test_no_run_costs_more_than_epsilon(method, seed):
    """On random configurations, other ones each time; the audit runs 10,000."""
    check_adaptive_cost(method, seed)


def test_samples_whose_rates_add_up_to_epsilon_but_for_rounding():
    """r + 2r is no float in general; if it is rounded down and that is epsilon, the second sample does not fit."""
    fitting = []
    for scale in range(3, 60):
        rate = float(Fraction(1, scale)) * BELOW
        epsilon = Fraction(rate + 2 * rate)
        plan = make_plan((2,), "1-way", "iresamp", {"sanity_bound": 1, "lambda_max": scale}, epsilon=str(epsilon))
        made, _ = draw(plan, counts_of(plan, random_codes((2,), 9)), entropy=SeededEntropy(0))
        assert exact_cost(made) <= epsilon
        fitting.append(3 * Fraction(rate) <= epsilon)
        assert len(made.budgets) == (2 if fitting[-1] else 1)
    assert set(fitting) == {True, False}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("words", "queries"), [("0-way", None), ("queries", [[1, 1]])])
def test_where_nothing_can_change_nothing_is_spent(method, words, queries):
    """The number of people, under replace-one: published exactly."""
    rule = {"sanity_bound": 1}
    plan = make_plan((2,), words, method, rule, queries=queries, neighbours="replace-one", epsilon=1)
    made, measured = draw(plan, counts_of(plan, random_codes((2,), 9)), entropy=SeededEntropy(0))
    assert exact_cost(made) == 0
    assert measured.values[0].ravel().tolist() == [9]


# ---------------------------------------------------------------------------------- outcomes of neighbouring tables

RUNS = 40_000
COUNTS = np.array([[2, 3], [3, 3]])
"""Counts of two cells, without and with one more person; two queries see that person."""


def simulated(subject, grid, truth, seed, *, independent):
    """How often each outcome is seen: the levels reached, and whether each revealed answer is above its count."""
    rng, levels = np.random.default_rng(seed), len(grid)
    answers = []
    for at, answer in enumerate(truth):
        if independent:
            sizes = rng.geometric(-np.expm1(-grid.rates)[:, None], (2, levels, RUNS))
            answers.append(answer + sizes[0] - sizes[1])
        else:
            path = NoisePaths(grid).draw(np.full(RUNS, answer), SeededEntropy(seed + at))
            answers.append(np.stack([path.at(level) for level in range(levels)]))
    values = np.stack(answers)  # (queries, levels, runs)
    # a decision sees max(y, delta) at all levels but the last: equal ones need not be made again
    clipped = np.maximum(values, int(subject.sanity_bounds[0]))
    clipped[:, -1] = clipped[:, -2]
    kinds, kind = np.unique(clipped.reshape(-1, RUNS), axis=1, return_inverse=True)
    decided = []
    for dense in kinds.T.reshape(-1, len(truth), levels):
        paths = []
        for line in dense:
            at = np.flatnonzero(line[1:] != line[:-1])
            paths.append(Path(line[:1], at + 1, np.zeros_like(at), line[at], line[at + 1]))
        decided.append(ireduct.choose_levels(subject, [grid] * len(truth), paths)[0])
    reached = np.array(decided)[kind.ravel()].T
    above = values > np.array([5, 2])[:, None, None]
    hidden = np.arange(levels)[:, None] > reached[:, None]
    outcome = np.where(hidden, 2, above).reshape(-1, RUNS)
    codes = 3 ** np.arange(len(outcome)) @ outcome
    return np.bincount(codes, minlength=3 ** len(outcome))


def losses(*, independent):
    """The log-ratios of outcomes on neighbouring tables, less five standard deviations, with the budget."""
    rule = {"sanity_bound": 6, "lambda_max": 3, "lambda_factor": "0.5"}
    plan = make_plan((2,), "queries", "ireduct", rule, queries=[[1, 1], [1, 0]], epsilon=2)
    subject = prepared(plan, counts_of(plan, random_codes((2,), 5)), SeededEntropy(0))
    grid = subject.grids()[0]
    seen = [
        simulated(subject, grid, (int(cells.sum()), int(cells[0])), 10 * at, independent=independent)
        for at, cells in enumerate(COUNTS)
    ]
    one, two = (counts[(seen[0] > 30) & (seen[1] > 30)] for counts in seen)
    return np.abs(np.log(one / two)), 5 * np.sqrt(1 / one + 1 / two)


def test_outcomes_of_neighbours_are_alike_within_epsilon():
    """Full runs of two queries, three scales each, on both tables: every outcome's loss is within epsilon = 2.

    Five standard deviations for fewer than 200 outcomes: a false alarm has probability below 1e-4. Fresh noise for each
    revealed answer, at the same scales, is caught.
    """
    loss, slack = losses(independent=False)
    assert len(loss) > 10
    assert (loss <= 2 + slack).all()
    assert loss.max() > 1.5  # the budget is used: a loss far below would show nothing
    broken, slack = losses(independent=True)
    assert (broken > 2 + slack).any()
