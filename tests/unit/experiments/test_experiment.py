"""Experiments: definitions recomputed by hand, ready counts, seeds, and what is refused before anything is read."""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import NEIGHBOURS, MemoryEngine, exact_table, make_request, make_schema, random_codes
from hushcube.designs.refinement import Rule
from hushcube.designs.request import Request
from hushcube.errors import BadInput, TooLarge
from hushcube.experiments.experiment import (
    METHODS,
    Contender,
    HeldTables,
    Result,
    Trial,
    evaluate,
    held,
    known_bound,
    overall_error,
    truth,
    wanted,
    worst_error,
)
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.private.engines import open_source
from hushcube.private.noise import SeededEntropy
from hushcube.samples import TITANIC, titanic
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE

SIZES = (2, 3, 4)
SCHEMA = make_schema(SIZES)
CODES = random_codes(SIZES, 300, seed=4) * [1, 0, 1] + [0, 1, 0]
USUAL = {"sanity_bound": 5}
ADAPTED = (*ADAPTIVE, *NOT_PRIVATE)


class Unread:
    """Data that must not be looked at."""

    def count(self, *_wanted, **_more):
        raise AssertionError("the data was read")


def tried(methods, words="<=2-way", data=None, queries=None, **changed):
    data = MemoryEngine(CODES) if data is None else data
    asked = {"epsilon": 1, "neighbours": "replace-one", **USUAL, "runs": 3, "seed": 7, **changed}
    return evaluate(Workload.parse(words, SCHEMA, queries), data, Trial(methods=methods, **asked))


def exact_counts(schema, words, people, plans=()):
    return held(open_source(people), schema, wanted(Workload.parse(words, schema), plans))


def without_time(results):
    return [replace(result, seconds=0) for result in results]


def contender(name, words="<=2-way", **privacy):
    request = make_request(SIZES, words, **privacy)
    return Contender.of(name, Request(request.workload, request.privacy), "uniform", "none", USUAL)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("name", ADAPTED)
def test_errors_are_those_of_the_definitions(name, neighbours):
    """Every run again, by hand: seed + run, the tables against rows counted one by one."""
    (result,) = tried([name], neighbours=neighbours)
    ready = contender(name, epsilon=1, neighbours=neighbours)
    counts = MemoryEngine(CODES).count(SCHEMA, ready.plan.counted)
    exact = [exact_table(SCHEMA, CODES, marginal) for marginal in ready.plan.workload.marginals]
    runs = [ready.run(counts, SeededEntropy(7 + run)) for run in range(3)]
    overall = [overall_error(exact, run.tables, 5) for run in runs]
    assert (result.overall_error, result.worst_error) == pytest.approx(
        (np.mean(overall), np.mean([worst_error(exact, run.tables, 5) for run in runs]))
    )
    assert result.standard_error == pytest.approx(np.std(overall, ddof=1) / math.sqrt(3))
    assert 0.9 < result.spent <= 1 and result.spent == pytest.approx(np.mean([run.spent for run in runs]))
    assert (result.method, result.runs, result.epsilon, result.sanity_bound) == (name, 3, 1.0, 5.0)
    assert (result.budgets, result.recovery) == ("uniform", "none") and result.seconds > 0
    assert result.overall_error > 0


def test_a_table_of_answers_belongs_to_its_marginal():
    """With much budget the noisy tables are nearly the exact ones, table by table."""
    for name in (*ADAPTED, "covering", "identity"):
        ready = contender(name, ["a1*a2", "a0", "a0*a2"], epsilon=500, neighbours="add-remove")
        counts = MemoryEngine(CODES).count(SCHEMA, ready.plan.counted)
        answers = ready.run(counts, SeededEntropy(1))
        assert list(answers.marginals) == [(1, 2), (0,), (0, 2)]
        for marginal, table in answers.marginals.items():
            assert np.abs(table - exact_table(SCHEMA, CODES, marginal)).max() < 4


def test_counts_may_be_ready_and_serve_every_method():
    engine = open_source(titanic())
    counts = exact_counts(TITANIC, "2-way", titanic())
    assert isinstance(counts, HeldTables) and counts.rows == 2201
    trial = Trial(methods=ADAPTED, epsilon=1, neighbours="add-remove", **USUAL, runs=2, seed=3)
    from_counts = evaluate(Workload.parse("2-way", TITANIC), counts, trial)
    assert without_time(from_counts) == without_time(evaluate(Workload.parse("2-way", TITANIC), engine, trial))
    assert [result.method for result in from_counts] == list(ADAPTED)


def test_a_strategy_that_measures_other_tables_needs_them_counted():
    workload = Workload.parse("1-way", TITANIC)
    trial = Trial(methods=["identity"], epsilon=1, neighbours="add-remove", **USUAL, runs=1)
    with pytest.raises(BadInput, match="has not been counted"):
        evaluate(workload, exact_counts(TITANIC, "1-way", titanic()), trial)
    request = Request(workload, Privacy.of(epsilon=1, neighbours="add-remove"))
    plan = Contender.of("identity", request, "uniform", "none", {}).plan
    counts = exact_counts(TITANIC, "1-way", titanic(), plans=[plan])
    assert evaluate(workload, counts, trial)[0].overall_error > 0


def test_seeds_repeat_and_the_system_does_not():
    assert without_time(tried(["ireduct", "oracle"])) == without_time(tried(["ireduct", "oracle"]))
    first, second = (tried(["oracle"], seed=None, epsilon="1/10")[0].overall_error for _ in range(2))
    assert first != second


def test_recovery_makes_errors_smaller_but_not_the_oracle_s():
    plain = tried(["dwork", "oracle"], runs=20)
    better = tried(["dwork", "oracle"], runs=20, recovery="gls")
    assert better[0].overall_error < plain[0].overall_error
    assert [result.recovery for result in better] == ["gls", "none"]
    assert better[1].overall_error == plain[1].overall_error


@pytest.mark.parametrize("name", ADAPTED)
def test_queries_are_a_table_of_their_own(name):
    rows = np.zeros((3, 24))
    rows[0, :12], rows[1, 5:20], rows[2, 3] = 1, 1, 1
    queries = query_table(SCHEMA, None, rows)
    (result,) = tried([name], "queries", queries=queries, runs=2)
    request = Request(Workload.parse("queries", SCHEMA, queries), Privacy.of(epsilon=1, neighbours="replace-one"))
    ready = Contender.of(name, request, "uniform", "none", USUAL)
    counts = MemoryEngine(CODES).count(SCHEMA, ready.plan.counted)
    exact = rows @ exact_table(SCHEMA, CODES, (0, 1, 2)).ravel()
    errors = []
    for run in range(2):
        (answers,) = ready.run(counts, SeededEntropy(7 + run)).tables
        errors.append((np.abs(answers.ravel() - exact) / np.maximum(exact, 5)).mean())
    assert result.overall_error == pytest.approx(np.mean(errors))


def test_the_sanity_bound_is_settled():
    assert known_bound(Rule.of(sanity_bound="1%", people=2000), 1990) == 20
    assert known_bound(Rule.of(sanity_bound="1%", people_epsilon="0.1"), 1990) == pytest.approx(19.9)
    assert tried(["dwork"], sanity_bound="1%", people=300)[0].sanity_bound == 3


def test_a_noisy_number_of_people_may_be_paid_for():
    paid = {"sanity_bound": "1%", "people_epsilon": "0.1"}
    for result in tried(ADAPTED, "1-way", **paid, neighbours="add-remove"):
        assert result.sanity_bound == pytest.approx(3)
        assert result.spent <= 1


def test_one_run_has_no_standard_error():
    (result,) = tried(["dwork"], runs=1)
    assert isinstance(result, Result) and math.isnan(result.standard_error)


def test_more_people_to_a_row_cost_more():
    one, four = (tried(["oracle", "dwork"], runs=20, rows_per_person=rows) for rows in (1, 4))
    for alone, shared in zip(one, four, strict=True):
        assert shared.overall_error > 2 * alone.overall_error
        assert shared.spent == pytest.approx(1)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"methods": ["nonsense"]}, "method: 'nonsense' is unknown"),
        ({"methods": []}, "method: none is given"),
        ({"runs": 0}, "runs: 0 is less than one"),
        ({"seed": -1}, "seed: -1 is negative"),
        ({"sanity_bound": None}, "sanity_bound: is not given"),
        ({"methods": ["matrix"]}, "method: matrix cannot be used here"),
        ({"methods": ["oracle"], "queries": query_table(SCHEMA, None, np.ones((1, 24)))}, "oracle cannot be used here"),
        ({"epsilon": -1}, "epsilon"),
        ({"budgets": "nonsense"}, "budgets: 'nonsense' is unknown"),
        ({"sanity_bound": 1, "methods": ["ireduct:lambda-max=1"]}, "epsilon is too small to start"),
    ],
)
def test_what_is_wrong_is_told_before_the_data_is_read(changed, told):
    with pytest.raises(BadInput) as problem:
        tried(**{"methods": ["dwork"], "data": Unread(), **changed})
    assert told in str(problem.value)


def test_truth_and_answers_must_fit_into_memory():
    trial = Trial(methods=["dwork"], epsilon=1, neighbours="add-remove", **USUAL, runs=1)
    with pytest.raises(TooLarge):
        evaluate(Workload.parse("2-way", make_schema((9000, 9000, 9000))), Unread(), trial)


def test_every_table_is_wanted_once():
    request = make_request(SIZES, "<=2-way", epsilon=1)
    family = wanted(request.workload, [contender("identity", epsilon=1, neighbours="add-remove").plan])
    assert list(family) == [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    counts = held(MemoryEngine(CODES), SCHEMA, family)
    for marginal, table in truth(request.workload, counts).marginals.items():
        assert (table == exact_table(SCHEMA, CODES, marginal)).all()
    assert repr(counts) == "<HeldTables: exact, not shown>"


def test_all_strategies_are_methods():
    assert set(METHODS) > {"dwork", "ireduct", "oracle", "proportional", "covering", "identity", "fourier"}
    assert len(METHODS) == len(set(METHODS))
