"""Experiments: definitions recomputed by hand, ready counts, seeds, and what is refused before anything is read."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from helpers import NEIGHBOURS, MemoryEngine, exact_table, make_request, make_schema, random_codes
from hushcube.designs.request import Request
from hushcube.errors import BadInput, TooLarge
from hushcube.experiments.contender import METHODS, Contender
from hushcube.experiments.experiment import Result, evaluate
from hushcube.experiments.trial import Trial
from hushcube.experiments.truth import HeldTables, held, truth, wanted
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


def make_trial(methods, *, neighbours="replace-one", rows_per_person=1, rho=(), delta=None, epsilon=(), **more):
    """One epsilon of 1 unless others are given."""
    amounts = [{"rho": one} for one in several(rho)]
    amounts += [{"epsilon": one, "delta": delta} for one in several(epsilon) or ([] if amounts else [1])]
    people = {"neighbours": neighbours, "rows_per_person": rows_per_person}
    return Trial(methods=methods, privacies=[Privacy.of(**one, **people) for one in amounts], **{**USUAL, **more})


def several(given):
    return list(given) if isinstance(given, list | tuple) else [given]


def tried(methods, words="<=2-way", data=None, queries=None, **changed):
    data = MemoryEngine(CODES) if data is None else data
    trial = make_trial(methods, **{"runs": 3, "seed": 7, "workers": 1, **changed})
    return evaluate(Workload.parse(words, SCHEMA, queries), data, trial)[0]


def exact_counts(schema, words, people, plans=()):
    return held(open_source(people), schema, wanted(Workload.parse(words, schema), plans))


def without_time(results):
    return [replace(result, seconds=0, planning_seconds=0) for result in results]


def contender(name, words="<=2-way", **privacy):
    request = make_request(SIZES, words, **privacy)
    return Contender.of(name, Request(request.workload, request.privacy), "uniform", "none", USUAL)


def cell_errors(q, y):
    """Absolute and relative errors of the cells of a table, by the definition."""
    off = np.abs(y.ravel() - q.ravel())
    return off, off / np.maximum(q.ravel(), 5)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("name", ADAPTED)
def test_errors_are_those_of_the_definitions(name, neighbours):
    """Every run again, by hand: seed + run, the tables against rows counted one by one."""
    (result,) = tried([name], neighbours=neighbours)
    ready = contender(name, epsilon=1, neighbours=neighbours)
    counts = MemoryEngine(CODES).count(SCHEMA, ready.plan.counted)
    exact = [exact_table(SCHEMA, CODES, marginal) for marginal in ready.plan.workload.marginals]
    runs = [ready.run(counts, SeededEntropy(7 + run)) for run in range(3)]
    cells = [[cell_errors(q, y) for q, y in zip(exact, run.tables, strict=True)] for run in runs]
    overall = [np.mean([relative.mean() for _, relative in run]) for run in cells]
    assert (result.overall_error, result.worst_error) == pytest.approx(
        (np.mean(overall), np.mean([max(relative.max() for _, relative in run) for run in cells]))
    )
    together = [np.concatenate([off for off, _ in run]) for run in cells]
    assert result.mean_error == pytest.approx(np.mean(together))
    assert result.mean_error_se == pytest.approx(np.std([run.mean() for run in together], ddof=1) / math.sqrt(3))
    assert result.root_mean_square == pytest.approx(np.sqrt(np.mean(np.square(together))))
    assert result.worst_cell == pytest.approx(np.mean([run.max() for run in together]))
    by_table = np.array([[off.mean() for off, _ in run] for run in cells])
    assert (result.table_error, result.worst_table) == pytest.approx((by_table.mean(), by_table.max(axis=1).mean()))
    counts = [table.mean() for table in exact]
    over = [np.concatenate([off / c for (off, _), c in zip(run, counts, strict=True)]) for run in cells]
    assert (result.over_mean, result.over_mean_by_table) == pytest.approx((np.mean(over), (by_table / counts).mean()))
    assert [part.mean_error for part in result.tables] == pytest.approx(by_table.mean(axis=0))
    assert [part.table for part in result.tables] == list(map(SCHEMA.describe, ready.plan.workload.marginals))
    sizes = np.array([len(marginal) for marginal in ready.plan.workload.marginals])
    assert [(part.attributes, part.tables) for part in result.dimensions] == [(0, 1), (1, 3), (2, 3)]
    for part in result.dimensions:
        own = by_table[:, sizes == part.attributes]
        assert (part.table_error, part.worst_table) == pytest.approx((own.mean(), own.max(axis=1).mean()))
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
    trial = make_trial(ADAPTED, neighbours="add-remove", runs=2, seed=3, workers=1)
    from_counts, _ = evaluate(Workload.parse("2-way", TITANIC), counts, trial)
    assert without_time(from_counts) == without_time(evaluate(Workload.parse("2-way", TITANIC), engine, trial)[0])
    assert [result.method for result in from_counts] == list(ADAPTED)


def test_a_strategy_that_measures_other_tables_needs_them_counted():
    workload = Workload.parse("1-way", TITANIC)
    trial = make_trial(["identity"], neighbours="add-remove", runs=1)
    with pytest.raises(BadInput, match="has not been counted"):
        evaluate(workload, exact_counts(TITANIC, "1-way", titanic()), trial)
    request = Request(workload, Privacy.of(epsilon=1, neighbours="add-remove"))
    plan = Contender.of("identity", request, "uniform", "none", {}).plan
    counts = exact_counts(TITANIC, "1-way", titanic(), plans=[plan])
    assert evaluate(workload, counts, trial)[0][0].overall_error > 0


def test_seeds_repeat_and_the_system_does_not():
    assert without_time(tried(["ireduct", "oracle"])) == without_time(tried(["ireduct", "oracle"]))
    first, second = (tried(["oracle"], seed=None, epsilon="1/10")[0].overall_error for _ in range(2))
    assert first != second


def test_recovery_makes_errors_smaller_but_not_the_oracle_s():
    plain = tried(["dwork", "oracle"], runs=20)
    better = tried(["dwork", "oracle"], runs=20, recoveries=["gls"])
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
    workload = Workload.parse("1-way", SCHEMA)
    for given, told in (({"people": 2000}, 20), ({"people_epsilon": "0.1"}, pytest.approx(19.9))):
        bound = make_trial([], sanity_bound="1%", **given).known_bound(workload, 1990)
        assert bound.told == told and [float(own) for own in bound.by_table] == [told] * len(workload)
    assert make_trial([], sanity_bound=None).known_bound(workload, 1990) == (None, None)
    assert tried(["dwork"], sanity_bound="1%", people=300)[0].sanity_bound == 3


def test_tables_have_sanity_bounds_of_their_own():
    word = SCHEMA.names[0]
    (mixed,), (one,), (other,) = (tried(["dwork"], "1-way", sanity_bound=b) for b in (f"5;{word}=5000", 5, 5000))
    assert mixed.sanity_bound == f"5;{word}=5000"
    for table, small, large in zip(mixed.tables, one.tables, other.tables, strict=True):
        assert table.overall_error == (large if table.table == word else small).overall_error
    assert one.tables[0].overall_error > other.tables[0].overall_error


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
        ({"methods": ["ireduct"], "sanity_bound": None}, "sanity_bound: is not given"),
        ({"workers": 0}, "workers: 0 is less than one"),
        ({"faces": []}, "face: none is given"),
        ({"budgets": []}, "budgets: none is given"),
        ({"faces": ["pretty"]}, "face: 'pretty' is unknown"),
        ({"methods": ["oracle"], "faces": ["integral"]}, "its tables have no other face"),
        ({"methods": ["matrix"]}, "method: matrix, uniform, none, epsilon = 1 cannot be used here"),
        (
            {"methods": ["oracle"], "queries": query_table(SCHEMA, None, np.ones((1, 24)))},
            "oracle, uniform, none, epsilon = 1 cannot be used here",
        ),
        ({"epsilon": -1}, "epsilon"),
        ({"budgets": ["nonsense"]}, "budgets: 'nonsense' is unknown"),
        ({"sanity_bound": 1, "methods": ["ireduct:lambda-max=1"]}, "epsilon is too small to start"),
    ],
)
def test_what_is_wrong_is_told_before_the_data_is_read(changed, told):
    with pytest.raises(BadInput) as problem:
        tried(**{"methods": ["dwork"], "data": Unread(), **changed})
    assert told in str(problem.value)


def test_truth_and_answers_must_fit_into_memory():
    trial = make_trial(["dwork"], neighbours="add-remove", runs=1)
    with pytest.raises(TooLarge):
        evaluate(Workload.parse("2-way", make_schema((9000, 9000, 9000))), Unread(), trial)


def test_absolute_errors_need_no_sanity_bound():
    bounded, plain = (tried(["dwork"], sanity_bound=bound)[0] for bound in (5, None))
    assert plain.sanity_bound is None and math.isnan(plain.overall_error) and math.isnan(plain.tables[0].worst_error)
    assert (plain.mean_error, plain.worst_table) == (bounded.mean_error, bounded.worst_table)


def test_a_table_of_nobody_is_infinitely_off_its_mean():
    (result,) = tried(["dwork"], "1-way", data=MemoryEngine(CODES[:0], 3))
    assert result.over_mean == math.inf and math.isfinite(result.mean_error)


def test_every_combination_is_a_setting():
    found, skipped = evaluate(
        Workload.parse("2-way", SCHEMA),
        MemoryEngine(CODES),
        make_trial(
            ["workload", "covering"],
            epsilon=[1, "1/10"],
            rho=["1/2"],
            sanity_bound=None,
            runs=2,
            workers=1,
            budgets=["uniform", "optimal"],
            recoveries=["gls"],
            faces=["unbiased", "nonnegative"],
        ),
    )
    settings = [(r.method, r.budgets, r.recovery, r.face, r.epsilon, r.rho) for r in found]
    assert len(set(settings)) == len(settings) == (3 + 2) * 2 * 2
    assert ("workload", "optimal", "gls", "nonnegative", None, 0.5) in settings
    assert list(skipped) == [f"covering, {rule}, gls, rho = 0.5" for rule in ("uniform", "optimal")]
    less, more = ([r.mean_error for r in found if r.epsilon == e and r.face == "unbiased"] for e in (1, 0.1))
    assert all(np.array(less) < np.array(more))


@pytest.mark.parametrize(
    ("privacy", "spent"), [({"epsilon": 2}, 2), ({"rho": "1/2"}, 0.5), ({"epsilon": 1, "delta": "1e-6"}, 1)]
)
def test_every_guarantee_is_compared(privacy, spent):
    (result,) = tried(["fourier"], **privacy)
    told = {name: float(Fraction(value)) for name, value in privacy.items()}
    assert {name: getattr(result, name) for name in told} == told
    assert result.spent == pytest.approx(spent)


def test_a_face_is_compared_by_its_own_tables():
    """Without noise to speak of, faces are the counts; with much of it, none of their cells is negative."""
    ready = contender("fourier", epsilon=500, neighbours="add-remove").with_face("integral")
    counts = MemoryEngine(CODES).count(SCHEMA, ready.plan.counted)
    exact = [exact_table(SCHEMA, CODES, marginal) for marginal in ready.plan.workload.marginals]
    answers = ready.run(counts, SeededEntropy(1)).tables
    assert all((y == q).all() for q, y in zip(exact, answers, strict=True))
    noisy = contender("fourier", epsilon="1/100", neighbours="add-remove").with_face("nonnegative")
    assert min(table.min() for table in noisy.run(counts, SeededEntropy(1)).tables) >= 0
    assert ready.setting.face == "integral" and ready.key != noisy.key


def test_settings_that_come_to_the_same_run_once():
    assert len(tried(["dwork", "dwork", "oracle"], recoveries=["none", "gls"])) == 3  # oracle recovers nothing


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
