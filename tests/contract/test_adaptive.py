"""One contract for every adaptive method: from a plan to a release that is whole, consistent and within epsilon."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import hushcube as hc
from helpers import (
    NEIGHBOURS,
    Counts,
    adaptive,
    all_tables,
    exact_table,
    make_schema,
    random_codes,
    released as release_of,
)
from hushcube import find_budget, plan
from hushcube.bundle.verify import verify
from hushcube.bundle.writing import write
from hushcube.costs import calibrate
from hushcube.designs import AdaptiveDesign, LatticeDesign, MatrixDesign, RepeatedDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.refinement import Rule
from hushcube.errors import BadInput
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.planning.plan import read_design
from hushcube.private.adaptive.run import METHODS
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from hushcube.strategies import read_strategy
from hushcube.strategies.adaptive import ADAPTIVE, TwoPhase, with_target

SIZES = (2, 3, 4)
MATRIX = np.array([[1] * 24, [1] * 12 + [0] * 12, [1, 0] * 12, [2, 1, 0, -1] * 6, [0] * 20 + [1] * 4])
"""Over all cells; the first row is constant, so public under replace-one."""
WORDS = ["1-way", "2-way", "cube", "queries"]
RULES = [
    {},
    {"lambda_max": 500, "lambda_step": 5},
    {"pick": "worst"},
    {"caution": "0.5"},
    {"relative_error": "0.5", "above": 30, "sanity_bound": 5},
    {"sanity_bound": "2%", "lambda_max": "200%", "lambda_step": "1%", "people": 200},
]
FACES = [
    FaceValue("consistent"),
    FaceValue("nonnegative", method="local"),
    FaceValue("integral", method="local"),
    FaceValue("integral"),
]
everywhere = pytest.mark.parametrize(("strategy", "neighbours", "words"), list(product(ADAPTIVE, NEIGHBOURS, WORDS)))


def asked(strategy, words="<=2-way", *, sizes=SIZES, neighbours="add-remove", epsilon=1, rule=None, **way):
    strategy = adaptive(strategy, **{"sanity_bound": 10, "lambda_factor": "0.93", **(rule or {})})
    words, queries = ([], (None, MATRIX)) if words == "queries" else (words, None)
    fixed = {"epsilon": epsilon, "neighbours": neighbours, "strategy": strategy, "queries": queries}
    return plan(make_schema(sizes), words, **{"recovery": "gls", **fixed, **way}).count


def people(sizes=SIZES, rows=200, seed=0):
    return random_codes(sizes, rows, seed)


def carried_out(chosen, codes, seed=1):
    return draw(chosen, Counts(chosen.schema, codes), entropy=SeededEntropy(seed))


def released(chosen, codes, seed=1):
    return release_of(*carried_out(chosen, codes, seed))


def exact_answers(chosen, codes):
    """Every table, or the answers of the queries."""
    if chosen.workload.queries is None:
        return {A: exact_table(chosen.schema, codes, A) for A in chosen.workload.marginals}
    return {"queries": MATRIX @ exact_table(chosen.schema, codes, (0, 1, 2)).ravel()}


def found_answers(release):
    chosen = release.plan.count
    if chosen.workload.queries is None:
        return all_tables(chosen, release.source)
    return {"queries": release.source.form(chosen.workload.forms[0])}


def variances(chosen):
    if chosen.workload.queries is None:
        return dict(zip(chosen.request.marginals, chosen.errors.cell_variances(exact=True), strict=True))
    return {"queries": np.maximum(chosen.errors.form_variances(chosen.workload.forms[0], exact=True), 0.0)}


def spent(made):
    return made.row_cost(made.budgets) * made.privacy.rows_per_person


# ------------------------------------------------------------------------------------------------- from plan to release


@everywhere
def test_answers_are_near_the_truth_within_epsilon_and_say_what_they_are(strategy, neighbours, words):
    codes = people()
    for budgets, recovery in product(BUDGETS, RECOVERIES):
        chosen = asked(strategy, words, neighbours=neighbours, budgets=budgets, recovery=recovery)
        made, measurement = carried_out(chosen, codes)
        assert spent(made) <= chosen.privacy.epsilon
        assert made.strategy == strategy and made.recovery == recovery and made.budget_rule == budgets
        assert made.request == chosen.request and isinstance(chosen, AdaptiveDesign) == (strategy in METHODS)
        assert isinstance(made, RepeatedDesign if strategy in ("twophase", "iresamp") else LatticeDesign | MatrixDesign)
        assert measurement.plan_digest == made.digest and not measurement.private
        again = read_design(made.to_json())
        assert again.digest == made.digest
        release = release_of(again, measurement)
        found, allowed = found_answers(release), variances(made)
        for name, truth in exact_answers(chosen, codes).items():
            # 25 deviations of Laplace noise: false alarm below exp(-35) a number
            off = np.abs(found[name] - truth.reshape(found[name].shape))
            assert (off <= 25 * np.sqrt(allowed[name]) + 1e-9).all(), (budgets, recovery, name)
        if strategy in METHODS:
            assert made.details["adaptive"]["spent"] == float(spent(made))


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
def test_recovered_tables_agree_and_others_do_not(strategy, neighbours):
    codes = people()
    for recovery in RECOVERIES:
        made, measurement = carried_out(asked(strategy, neighbours=neighbours, recovery=recovery), codes)
        tables = all_tables(made, release_of(made, measurement).source)
        gaps = [
            np.abs(a.sum(axis=tuple(axis for axis, i in enumerate(A) if i not in B)) - b).max()
            for (A, a), (B, b) in product(tables.items(), repeat=2)
            if set(B) < set(A)
        ]
        assert made.is_consistent == (recovery != "none")
        assert (max(gaps) < 1e-9) if made.is_consistent else (max(gaps) > 0.5)


@pytest.mark.parametrize(("strategy", "words"), list(product(ADAPTIVE, ["1-way", "<=2-way", "cube", "queries"])))
def test_a_public_total_stays_exact(strategy, words):
    codes = people(rows=137)
    for recovery in RECOVERIES:
        release = released(asked(strategy, words, neighbours="replace-one", recovery=recovery, epsilon="0.2"), codes)
        found, known = found_answers(release), variances(release.plan.count)
        if words == "queries":
            assert found["queries"][0] == pytest.approx(137, abs=1e-9) and known["queries"][0] < 1e-9
            continue
        if () in found:
            assert found[()] == pytest.approx(137, abs=1e-9) and known[()] < 1e-9
        if recovery != "none":
            assert all(table.sum() == pytest.approx(137, abs=1e-9) for table in found.values())


@pytest.mark.parametrize("rule", RULES, ids=str)
@pytest.mark.parametrize(("strategy", "neighbours"), list(product(METHODS, NEIGHBOURS)))
def test_every_rule_gives_a_release(strategy, neighbours, rule):
    if strategy == "twophase" and "relative_error" in rule:  # it ends with its second phase, whatever was seen
        with pytest.raises(BadInput, match="twophase has no option 'relative-error'"):
            read_strategy("twophase:sanity-bound=5,relative-error=0.5,above=30")
        with pytest.raises(BadInput, match="twophase does not stop when a target is met"):
            with_target(TwoPhase(sanity_bound=5), {"relative_error": "0.5", "above": 30})
        return
    chosen = asked(strategy, neighbours=neighbours, rule=rule)
    made, measurement = carried_out(chosen, people())
    told = made.details["adaptive"]
    assert spent(made) <= 1
    assert ("target_met" in told) == ("relative_error" in rule)
    settled = Rule.from_dict(told["settled"])
    assert settled.shares == [] and Rule.from_dict(told["asked"]) == chosen.rule
    assert all(np.isfinite(t).all() for t in all_tables(made, release_of(made, measurement).source).values())


@pytest.mark.parametrize("strategy", METHODS)
@pytest.mark.parametrize("words", ["1-way", "<=2-way"])
def test_a_noisy_number_of_people_is_paid_for(strategy, words):
    rule = {"sanity_bound": "1%", "lambda_max": "300%", "people_epsilon": "0.1"}
    noisy = []
    for seed in range(4):
        made, measurement = carried_out(asked(strategy, words, rule=rule), people(), seed)
        under = made.underlying if isinstance(made, RepeatedDesign) else made
        total = under.budgets[under.measured.ids([()])[0]]
        assert spent(made) <= 1 and float(total) == pytest.approx(0.1)
        settled = Rule.from_dict(made.details["adaptive"]["settled"])
        noisy.append(settled.people)
        assert settled.sanity_bound.value == Fraction(settled.people, 100)
        assert measurement.values[0].ravel()[0] == settled.people, "the number that was used is the one published"
    assert len(set(noisy)) > 1 and max(abs(n - 200) for n in noisy) < 400  # exp(-40) for each


@pytest.mark.parametrize("strategy", METHODS)
def test_an_outcome_follows_the_weights(strategy):
    """A table with weight 100 ends with less noise than without, and with less than the others."""
    gains = []
    for seed in range(5):
        rates = []
        for words in ("a0*a1,a1*a2,a0*a2", "a0*a1,a1*a2=100,a0*a2"):
            made, _ = carried_out(asked(strategy, words, recovery="none"), people(rows=2000), seed)
            under = made.underlying if isinstance(made, RepeatedDesign) else made
            rates.append(dict(zip(under.measured, under.budgets, strict=True)))
        plain, weighted = rates
        assert weighted[1, 2] > 2 * max(weighted[0, 1], weighted[0, 2])
        gains.append(weighted[1, 2] / plain[1, 2])
    assert min(gains) > 1.2


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
def test_rows_per_person_divide_the_budget(strategy, neighbours):
    for words in ("<=2-way", "queries"):
        chosen = asked(strategy, words, neighbours=neighbours, rows_per_person=3)
        made, _ = carried_out(chosen, people())
        assert made.row_cost(made.budgets) <= Fraction(1, 3) == calibrate.row_budget(made.privacy, "direct")
        assert float(spent(made)) > (0.65 if strategy == "iresamp" else 0.9 if strategy == "ireduct" else 0.999)
        if strategy in METHODS:
            assert made.details["adaptive"]["spent"] + made.details["adaptive"]["left"] == pytest.approx(1)


@pytest.mark.parametrize(("strategy", "words"), list(product(ADAPTIVE, WORDS)))
def test_a_seed_repeats_a_run(strategy, words):
    chosen, codes = asked(strategy, words), people()
    (first, a), (again, b), (other, c) = (carried_out(chosen, codes, seed) for seed in (4, 4, 5))
    assert first.to_json() == again.to_json()
    assert all(map(np.array_equal, a.values, b.values))
    assert any(x.shape != y.shape or (x != y).any() for x, y in zip(a.values, c.values, strict=True))
    assert other.request == first.request


configurations = st.fixed_dictionaries(
    {
        "strategy": st.sampled_from(sorted(METHODS)),
        "neighbours": st.sampled_from(NEIGHBOURS),
        "words": st.sampled_from(["1-way", "a0,a1*a2=7", "cube", "queries"]),
        "budgets": st.sampled_from(BUDGETS),
        "epsilon": st.fractions(Fraction(1, 1000), 20),
        "rows_per_person": st.integers(1, 4),
    }
)
rules = st.fixed_dictionaries(
    {"sanity_bound": st.fractions(Fraction(1, 10), 100)},
    optional={
        "pick": st.sampled_from(["average", "worst"]),
        "start_share": st.fractions(Fraction(1, 100), Fraction(99, 100)),
        "first_share": st.fractions(Fraction(1, 100), Fraction(99, 100)),
        "lambda_factor": st.fractions(Fraction(1, 10), Fraction(19, 20)),
        "caution": st.sampled_from(["0", "0.3", "0.9"]),
    },
)


@pytest.mark.slow
@settings(max_examples=100)
@given(configurations, rules, st.integers(0, 2**30), st.integers(0, 300))
def test_no_run_spends_more_than_epsilon(configuration, rule, seed, rows):
    chosen = asked(**configuration, rule=rule)
    made, measurement = carried_out(chosen, people(rows=rows), seed)
    assert spent(made) <= chosen.privacy.epsilon
    assert spent(made) >= spent(chosen), "what was revealed first is part of it"
    assert [v.shape for v in measurement.values] == made.shapes


# ------------------------------------------------------------------------------------------------------------- corners


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
@pytest.mark.parametrize("words", ["<=2-way", "queries"])
def test_a_huge_epsilon_gives_nearly_exact_answers(strategy, neighbours, words):
    codes = people()
    release = released(asked(strategy, words, neighbours=neighbours, epsilon=500), codes)
    found = found_answers(release)
    for name, truth in exact_answers(release.plan.count, codes).items():
        assert np.abs(found[name] - truth.reshape(found[name].shape)).max() <= 2  # exp(-30) a number, at rate 10


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
@pytest.mark.parametrize("words", ["<=2-way", "queries"])
def test_a_tiny_epsilon_gives_finite_answers(strategy, neighbours, words):
    release = released(asked(strategy, words, neighbours=neighbours, epsilon="1e-9"), people())
    assert 0 < spent(release.plan.count) <= Fraction(1, 10**9)
    assert all(np.isfinite(table).all() for table in found_answers(release).values())
    assert max(np.max(v) for v in variances(release.plan.count).values()) > 1e17


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
@pytest.mark.parametrize("words", ["<=2-way", "queries"])
def test_nobody_can_be_counted(strategy, neighbours, words):
    codes = np.zeros((0, 3), np.int64)
    release = released(asked(strategy, words, neighbours=neighbours), codes)
    found, allowed = found_answers(release), variances(release.plan.count)
    for name, values in found.items():
        assert (np.abs(values) <= 25 * np.sqrt(allowed[name]) + 1e-9).all()
        assert neighbours == "add-remove" or name != () or values == pytest.approx(0)


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
def test_attributes_with_one_value_and_tables_with_one_cell(strategy, neighbours):
    """Under replace-one such tables are public, like the total."""
    sizes = (1, 3, 1)
    codes = people(sizes, 50)
    for recovery in RECOVERIES:
        release = released(asked(strategy, "cube", sizes=sizes, neighbours=neighbours, recovery=recovery), codes)
        found, allowed = found_answers(release), variances(release.plan.count)
        for A, truth in exact_answers(release.plan.count, codes).items():
            assert (np.abs(found[A] - truth) <= 25 * np.sqrt(allowed[A]) + 1e-9).all()
            if neighbours == "replace-one" and math.prod(sizes[i] for i in A) == 1:
                assert found[A].ravel() == pytest.approx(50)


@pytest.mark.parametrize(
    ("strategy", "neighbours", "words", "sizes"),
    [
        (s, n, words, sizes)
        for s, n, (words, sizes) in product(
            ADAPTIVE, NEIGHBOURS, [("cube", (1, 1)), ("<=1-way", (1,)), ([[1] * 4], (4,))]
        )
    ],
)
def test_what_is_all_public_costs_nothing(strategy, neighbours, words, sizes):
    codes = people(sizes, 50)
    if isinstance(words, list):
        kept = {"epsilon": 1, "neighbours": neighbours, "strategy": adaptive(strategy, sanity_bound=10)}
        chosen = plan(make_schema(sizes), [], queries=(None, words), **kept).count
    else:
        chosen = asked(strategy, words, sizes=sizes, neighbours=neighbours)
    release = released(chosen, codes)
    tables = found_answers(release).values()
    if neighbours == "replace-one":
        assert spent(release.plan.count) == 0 and all(table == pytest.approx(50) for table in tables)
    else:
        assert spent(release.plan.count) > Fraction(1, 2) and any((table != 50).any() for table in tables)


@pytest.mark.parametrize(("strategy", "row"), list(product(METHODS, [[1, 1, 0, 0], [2, 2, 1, 1]])), ids=str)
def test_a_single_query_gets_the_whole_budget_under_replace_one(strategy, row):
    """A row of data that changes moves such an answer by 1: half of what two columns together could be."""
    kept = {"epsilon": 1, "neighbours": "replace-one", "strategy": adaptive(strategy, sanity_bound=10)}
    chosen = plan(make_schema((4,)), [], queries=(None, [row]), **kept).count
    made, _ = carried_out(chosen, people((4,)))
    assert spent(made) > (Fraction(1, 2) if strategy == "iresamp" else Fraction(9, 10))


@pytest.mark.parametrize("strategy", ["twophase", "iresamp", "ireduct"])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_query_that_counts_nobody_is_answered(strategy, neighbours):
    kept = {"epsilon": 1, "neighbours": neighbours, "strategy": adaptive(strategy, sanity_bound=10)}
    chosen = plan(make_schema((4,)), [], queries=(None, [[0] * 4, [1, 0, 0, 0]]), **kept).count
    assert spent(released(chosen, people((4,))).plan.count) <= 1


@pytest.mark.parametrize("strategy", ADAPTIVE)
def test_a_search_for_the_budget_finds_one_or_says_why_not(strategy):
    given = {"targets": ["a0: stderr<=20"], "neighbours": "add-remove", "strategy": adaptive(strategy, sanity_bound=5)}
    try:
        found = find_budget(make_schema(SIZES), "1-way", **given)
    except BadInput:
        return
    assert found.reached[0] <= 20


def test_variances_of_public_queries_are_not_negative():
    for strategy, recovery in product(ADAPTIVE, RECOVERIES):
        made, _ = carried_out(asked(strategy, "queries", neighbours="replace-one", recovery=recovery), people())
        assert (made.errors.form_variances(made.workload.forms[0], exact=True) >= 0).all()


# --------------------------------------------------------------------------------------------------- what is published


@pytest.mark.parametrize(
    ("strategy", "neighbours", "words", "recovery"),
    list(product(ADAPTIVE, NEIGHBOURS, ["<=2-way", "queries"], ["none", "gls"])),
)
def test_a_release_is_written_opened_and_verified(tmp_path, strategy, neighbours, words, recovery):
    release = released(asked(strategy, words, neighbours=neighbours, recovery=recovery), people())
    write(release, tmp_path / "out")
    verdict = verify(tmp_path / "out", allow_seeded=True)
    assert verdict.holds, [check for check in verdict.checks if not check.holds]
    opened = hc.open(tmp_path / "out")
    assert opened.plan.to_json() == release.plan.to_json() and not opened.private
    before, after = release.source.measurement(), opened.source.measurement()
    assert all(map(np.array_equal, before.values, after.values))
    for name, values in found_answers(opened).items():
        assert np.array_equal(values, found_answers(release)[name])
    if words == "queries":
        name = release.plan.workload.forms[0].word
        assert opened.table(name).std_errors == pytest.approx(np.sqrt(variances(release.plan.count)["queries"]))
        return
    whole = opened.estimate("a1*a2", {"a1": ["0", "2"]})
    assert whole.low <= whole.value <= whole.high and whole.std_error > 0
    cells = opened.table("a1*a2")
    assert whole.value == pytest.approx(cells.values[[0, 2]].sum())
    one = opened.estimate("a1*a2", {"a1": "1", "a2": "3"})
    assert (one.value, one.std_error) == pytest.approx((cells.values[1, 3], cells.std_errors[1, 3]))


@pytest.mark.parametrize(("strategy", "recovery"), list(product(ADAPTIVE, RECOVERIES)))
def test_roll_ups_say_how_far_off_their_own_sums_are(strategy, recovery):
    """What a table says of a rolled-up cell is what `estimate` says of the same sum."""
    codes = people(rows=400)
    codes[:, 0] *= np.arange(400) % 50 == 0  # tables with few people in some cells: noise that differs
    release = released(asked(strategy, "2-way", recovery=recovery), codes)
    for at, name in enumerate(("a0", "a1", "a2")):
        table = release.table(name)
        for label in range(SIZES[at]):
            judge = release.estimate(name, {name: str(label)})
            assert table.values[label] == pytest.approx(judge.value)
            assert table.std_errors[label] == pytest.approx(judge.std_error, rel=1e-6)
    total, judge = release.table("total"), release.estimate("total")
    assert (float(total.values), float(total.std_errors)) == pytest.approx((judge.value, judge.std_error), rel=1e-6)


@pytest.mark.parametrize(("strategy", "neighbours"), list(product(ADAPTIVE, NEIGHBOURS)))
def test_faces_keep_their_promise(strategy, neighbours):
    codes = people(rows=60)
    for words, recovery in (("<=2-way", "none"), ("<=2-way", "gls"), ("queries", "gls")):
        made, measurement = carried_out(asked(strategy, words, neighbours=neighbours, recovery=recovery), codes)
        for value in FACES if words != "queries" else FACES[1:2]:
            face = make_face(made, measurement, value, Clock())
            tables = {
                tuple(row): table
                for batch in made.request.marginals.batches
                for row, table in zip(batch.rows.tolist(), face.tables.tables(batch.rows, batch.shape), strict=True)
            }
            totals = [float(table.sum()) for table in tables.values()]
            assert np.ptp(totals) <= 1e-6 * (1 + max(map(abs, totals)))
            for (A, a), (B, b) in product(tables.items(), repeat=2):
                if set(B) < set(A):
                    summed = a.sum(axis=tuple(axis for axis, i in enumerate(A) if i not in B))
                    assert summed == pytest.approx(b, abs=1e-5)
            if value.kind != "consistent":
                assert min(float(table.min()) for table in tables.values()) >= 0
            if value.kind == "integral":
                assert all((table == np.rint(table)).all() for table in tables.values())
                assert len(face.people) == totals[0]
            if neighbours == "replace-one":
                assert totals[0] == pytest.approx(60, rel=1e-6)
