"""The plans of adaptive methods: files, costs and predictions, before a run and after it."""

import copy
import hashlib
import json
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st

from helpers import NEIGHBOURS, Counts, exact_table, make_schema, random_codes
from hushcube import plan
from hushcube.costs.calibrate import above
from hushcube.designs import AdaptiveDesign, LatticeDesign, MatrixDesign, RepeatedDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.refinement import Rule
from hushcube.designs.request import Request
from hushcube.errors import BadInput, BudgetExceeded, PlanError
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.noise import Measurement, laplace_variance
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.plan import read_design
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.adaptive import ADAPTIVE, IReduct

SIZES = (2, 3, 4)
ADAPTING = ["twophase", "iresamp", "ireduct"]
QUERIES = (None, [[1, 1, 0, 0], [0, 0, 1, -2], [1, 1, 1, 1], [0, 1, 1, 0]])
CODES = random_codes(SIZES, 300)
everywhere = pytest.mark.parametrize(
    ("strategy", "neighbours", "asks"), list(product(ADAPTING, NEIGHBOURS, ["tables", "queries"]))
)


def adaptive(strategy, neighbours="add-remove", asks="tables", *, epsilon=1, budgets="uniform", recovery="gls", **rule):
    strategy = ADAPTIVE[strategy].filled(**{"sanity_bound": 10, "lambda_factor": "0.9", **rule})
    kept = {"epsilon": epsilon, "neighbours": neighbours, "strategy": strategy, "budgets": budgets}
    kept |= {"recovery": recovery}
    if asks == "queries":
        return plan(make_schema(SIZES[2:]), [], queries=QUERIES, **kept).count
    return plan(make_schema(SIZES), "1-way,a0*a1,a1*a2=3", **kept).count


def run(asked, seed=1):
    codes = CODES[:, -len(asked.schema) :]
    return draw(asked, Counts(asked.schema, codes), entropy=SeededEntropy(seed))


def predicted(one):
    """The variances of the workload's tables, or of its queries."""
    forms = [one.errors.form_variances(form, exact=True) for form in one.workload.forms]
    return np.concatenate(forms) if forms else one.errors.cell_variances(exact=True)


def sealed(raw):
    """The text of a plan with a digest that fits it."""
    raw = {key: value for key, value in raw.items() if key != "digest"}
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps({**raw, "digest": hashlib.sha256(canonical.encode()).hexdigest()})


def request(words="1-way", sizes=SIZES, epsilon=1, neighbours="add-remove"):
    return Request(Workload.parse(words, make_schema(sizes)), Privacy.of(epsilon=epsilon, neighbours=neighbours))


def repeated(rates, owners, words="1-way", *, epsilon=1, neighbours="add-remove", recovery="gls", sizes=SIZES):
    """Samples of a workload's own tables."""
    asked = request(words, sizes, epsilon, neighbours)
    fields = {"basis": MARGINAL, "measured": asked.marginals}
    own = (asked, "iresamp", "uniform", recovery, "direct", np.array(rates, float))
    return RepeatedDesign(*own, LatticeDesign, fields, tuple(owners))


# --------------------------------------------------------------------------------------------------------- plan files


@everywhere
def test_plans_read_back_the_same_before_and_after_a_run(strategy, neighbours, asks):
    for budgets, recovery in product(BUDGETS, RECOVERIES):
        asked = adaptive(strategy, neighbours, asks, budgets=budgets, recovery=recovery)
        made, _ = run(asked)
        for one in (asked, made):
            again = read_design(one.to_json())
            assert type(again) is type(one)
            assert again.to_json() == one.to_json() and again.digest == one.digest
            assert again.budgets.tolist() == one.budgets.tolist()
            assert sealed(one.to_dict()) == json.dumps(json.loads(one.to_json()))
            assert predicted(again).tolist() == predicted(one).tolist()
        assert isinstance(asked, AdaptiveDesign) and read_design(asked.to_json()).rule == asked.rule


def test_what_a_run_makes_are_plans_of_their_own():
    for asks, base in (("tables", LatticeDesign), ("queries", MatrixDesign)):
        for strategy, kind in (("ireduct", base), ("twophase", RepeatedDesign), ("iresamp", RepeatedDesign)):
            asked = adaptive(strategy, asks=asks)
            made, measurement = run(asked)
            assert type(made) is kind and made.digest != asked.digest
            assert measurement.plan_digest == made.digest
            assert [v.shape for v in measurement.values] == made.shapes
            assert (made.underlying if kind is RepeatedDesign else made).in_words


def test_every_decision_is_in_the_digest():
    base = adaptive("ireduct")
    others = [
        adaptive("iresamp"),
        adaptive("ireduct", pick="worst"),
        adaptive("ireduct", sanity_bound=11),
        adaptive("ireduct", lambda_factor="0.91"),
        adaptive("ireduct", lambda_step=1),
        adaptive("ireduct", people=300),
        adaptive("ireduct", relative_error="0.1", above=50, sanity_bound=10),
        adaptive("ireduct", budgets="optimal"),
        adaptive("ireduct", recovery="none"),
        adaptive("ireduct", neighbours="replace-one"),
    ]
    assert len({base.digest, *(other.digest for other in others)}) == 1 + len(others)
    assert adaptive("ireduct").digest == base.digest


CHANGES = [
    lambda raw: raw["privacy"].update(epsilon="2"),
    lambda raw: raw.update(strategy="iresamp" if raw["strategy"] != "iresamp" else "ireduct"),
    lambda raw: raw["budget"].__setitem__(0, raw["budget"][0] / 2),
    lambda raw: raw["under"]["measured"][1].reverse(),
    lambda raw: raw.update(digest="0" * 64),
    lambda raw: raw["details"].update(note="spent nothing"),
    lambda raw: raw.pop("under"),
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_file_without_a_new_digest_is_refused(change):
    for one in (adaptive("ireduct"), run(adaptive("twophase"))[0]):
        raw = json.loads(one.to_json())
        change(raw)
        with pytest.raises(BadInput):
            read_design(json.dumps(raw))


def test_a_changed_rule_without_a_new_digest_is_refused():
    for name, value in (("sanity_bound", "11"), ("pick", "worst"), ("start_share", "1/10"), ("people", 5)):
        raw = json.loads(adaptive("ireduct").to_json())
        raw["rule"][name] = value
        with pytest.raises(BadInput):
            read_design(json.dumps(raw))


@pytest.mark.parametrize(
    "damage",
    [None, 7, [], {"x": 1}, {"sanity_bound": "-3"}, {"pick": "best"}, {"relative_error": "1"}, {"people": "5"}],
)
def test_a_damaged_rule_is_refused(damage):
    raw = {**adaptive("ireduct").to_dict(), "rule": damage}
    with pytest.raises(BadInput):
        read_design(sealed(raw))


@pytest.mark.parametrize("kind", ["adaptive", "repeated"])
def test_plans_do_not_rest_on_plans_that_rest_on_others(kind):
    made = adaptive("ireduct") if kind == "adaptive" else run(adaptive("twophase"))[0]
    raw = made.to_dict()
    raw["under"] = {"design": raw["design"], "under": raw["under"], "rule": {}, "sample_of": [0]}
    with pytest.raises(PlanError):
        read_design(sealed(raw))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("strategy", ADAPTING)
def test_a_start_above_the_guarantee_is_refused(strategy, neighbours):
    raw = adaptive(strategy, neighbours).to_dict()
    spent = sum(b for b in raw["budget"] if b is not None) * (2 if neighbours == "replace-one" else 1)
    for factor, fits in ((0.999 / spent, True), (1.0001 / spent, False)):
        changed = {**raw, "budget": [b if b is None else b * factor for b in raw["budget"]]}
        if fits:
            assert read_design(sealed(changed)).digest
        else:
            with pytest.raises(BudgetExceeded):
                read_design(sealed(changed))


def test_adaptive_plans_are_for_pure_epsilon():
    asked = adaptive("ireduct")
    other = replace(asked.request, privacy=Privacy.of(rho=1, neighbours="add-remove"))
    with pytest.raises(PlanError, match="pure epsilon"):
        replace(asked, request=other)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_file_that_measures_something_else_gets_no_answer_without_its_noise(neighbours):
    """The file has the table a0 where the total belongs, whose exact value or noise is settled before the run."""
    shares = {"sanity_bound": "1%", "people_epsilon": "0.1"} if neighbours == "add-remove" else {}
    ireduct = IReduct(**{"sanity_bound": 10, **shares})
    way = {"epsilon": 1, "neighbours": neighbours, "strategy": ireduct, "recovery": "none"}
    raw = plan(make_schema(SIZES), "1-way", **way).count.to_dict()
    assert raw["under"]["measured"] == [[[]], [[0], [1], [2]]]
    raw["under"]["measured"] = [[], [[0], [1], [2]], [[0, 1]]]
    raw["budget"] = [0.01] * 4
    try:
        read = read_design(sealed(raw))
        first = [run(read, seed)[1].values[0][0] for seed in range(5)]
    except BadInput:
        return
    noise = np.array(first) - exact_table(read.schema, CODES, (0,))
    assert (noise[:, 0] != noise[:, 1]).all(), "each cell has noise of its own"


@pytest.mark.parametrize("change", [lambda raw: raw.update(strategy="x"), lambda raw: raw["rule"].pop("sanity_bound")])
def test_a_file_without_what_a_run_needs_is_refused(change):
    raw = copy.deepcopy(adaptive("ireduct").to_dict())
    change(raw)
    with pytest.raises(BadInput):
        run(read_design(sealed(raw)))


# -------------------------------------------------------------------------------------------------- what samples cost


def test_samples_cost_their_sum_exactly():
    half, more = 0.5, float(np.nextafter(0.5, 1))
    assert repeated([half, half], [0, 0], "a0").row_cost(np.array([half, half])) == 1
    for rates in ([half, more], [0.25, 0.25, more], [1.0, 2.0**-80], [0.1] * 9 + [0.10000000000000005]):
        assert sum(map(Fraction, rates)) > 1
        with pytest.raises(BudgetExceeded):
            repeated(rates, [0] * len(rates), "a0")
    tenths = [0.1] * 9 + [0.09999999999999]
    assert sum(map(Fraction, tenths)) <= 1 and repeated(tenths, [0] * 10, "a0").groups == 10


@given(st.lists(st.floats(1e-8, 3.0), min_size=1, max_size=9))
def test_one_table_costs_the_sum_of_its_samples(rates):
    """The cost that the check uses is never below the exact one, and at most one rounding above."""
    total = sum(map(Fraction, rates))
    made = repeated(rates, [0] * len(rates), "a0", epsilon=total + 1)
    cost = made.row_cost(made.budgets)
    assert total <= cost <= total * (1 + Fraction(1, 2**52))
    if cost == total:  # otherwise the bound is above the sum, and the exact guarantee would be refused: safe
        assert repeated(rates, [0] * len(rates), "a0", epsilon=total).groups == len(rates)
    with pytest.raises(BudgetExceeded):
        repeated(rates, [0] * len(rates), "a0", epsilon=total * (1 - Fraction(1, 2**60)))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_file_with_one_sample_more_is_refused(neighbours):
    for strategy in ("twophase", "iresamp"):
        made, _ = run(adaptive(strategy, neighbours))
        left = 1 - made.row_cost(made.budgets)
        factor = 2 if neighbours == "replace-one" else 1
        raw = made.to_dict()
        at = next(i for i, b in enumerate(raw["budget"]) if b is not None)
        for extra, fits in ((float(left) / factor * 0.5, True), (float(left) / factor + 1e-9, False)):
            changed = copy.deepcopy(raw)
            changed["budget"].insert(at + 1, max(extra, 2.0**-50))
            changed["sample_of"].insert(at, changed["sample_of"][at])
            changed["details"] = {}  # they tell what the run spent, which is another amount now
            if fits:
                assert left < 1e-6 or read_design(sealed(changed)).groups == made.groups + 1
            else:
                with pytest.raises(BudgetExceeded):
                    read_design(sealed(changed))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_noise_cannot_be_switched_off(neighbours):
    raw = run(adaptive("twophase", neighbours))[0].to_dict()
    for at, b in enumerate(raw["budget"]):
        if b is not None:
            changed = copy.deepcopy(raw)
            changed["budget"][at] = None
            with pytest.raises(BudgetExceeded):
                read_design(sealed(changed))


@pytest.mark.parametrize(
    "sample_of",
    [
        *([], [0, 0, 1], [0, 0, 1, 2, 2], [1, 1, 2, 2], [0, 0, 2, 2], [0, 1, 0, 2], [0, 0, 1, 1], [0, 1, 2, 3]),
        *([-1, 0, 1, 2], None, "0012", [0, 0, 1, "x"], [0, 0, 1.5, 2], [[0], [0], [1], [2]]),
    ],
    ids=str,
)
def test_samples_that_do_not_fit_the_sets_are_refused(sample_of):
    good = repeated([0.1] * 4, [0, 0, 1, 2])
    assert read_design(good.to_json()).sample_of == (0, 0, 1, 2)
    with pytest.raises(BadInput):
        read_design(sealed({**good.to_dict(), "sample_of": sample_of}))


@given(st.fractions(min_value=Fraction(1, 10**9), max_value=10**9))
def test_rounding_up_gives_the_next_float(value):
    up = above(value)
    assert Fraction(up) >= value > Fraction(float(np.nextafter(up, -np.inf)))


# ------------------------------------------------------------------------------------------------------ their averages

samples = st.lists(st.lists(st.floats(1e-6, 40.0), min_size=1, max_size=6), min_size=3, max_size=3)


@given(samples, st.sampled_from(NEIGHBOURS))
def test_the_underlying_plan_has_the_combined_variance_and_costs_no_more(sets, neighbours):
    rates = [r for group in sets for r in group]
    owners = [at for at, group in enumerate(sets) for _ in group]
    made = repeated(rates, owners, epsilon=490, neighbours=neighbours) if 2.1 * sum(rates) < 490 else None
    if made is None:
        return
    under = made.underlying
    for group, single in zip(sets, under.budgets, strict=True):
        combined = 1 / sum(1 / float(laplace_variance(np.array(r))) for r in group)
        assert float(laplace_variance(np.array(single))) == pytest.approx(combined, rel=1e-9)
        assert Fraction(float(single)) <= sum(map(Fraction, group))
    assert under.row_cost(under.budgets) <= made.row_cost(made.budgets)
    assert made.errors.cell_variances(exact=True).tolist() == under.errors.cell_variances(exact=True).tolist()


def test_a_single_sample_is_kept_as_it_is():
    made = repeated([0.1, 0.2, 0.3, 0.05], [0, 1, 2, 2])
    assert made.underlying.budgets[:2].tolist() == [0.1, 0.2]
    assert made.underlying.budgets[2] < 0.35


def test_a_public_total_is_public_underneath():
    """Also where it is the only sample of its set among sets with several."""
    made, measurement = run(adaptive("twophase", "replace-one", recovery="gls"))
    under = made.underlying
    assert np.isinf(under.budgets[0]) and under.measured.ids([()])[0] == 0
    assert made.averaged(measurement)[1].values[0].ravel().tolist() == [len(CODES)]


def brute_average(values, rates):
    weights = [1 / float(laplace_variance(np.array(r))) for r in rates]
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


@pytest.mark.parametrize("seed", range(5))
def test_merged_tables_are_weighted_averages(seed):
    """Sets of several shapes and orders, each with its own number of samples."""
    rng = np.random.default_rng(seed)
    asked = request("<=2-way", epsilon=400)
    family = asked.marginals
    owners = [at for at in range(len(family)) for _ in range(rng.integers(1, 5))]
    rates = rng.uniform(0.01, 3, len(owners))
    own = (asked, "by hand", "uniform", "none", "direct", rates)
    made = RepeatedDesign(*own, LatticeDesign, {"basis": MARGINAL, "measured": family}, tuple(owners))
    drawn = [rng.integers(-50, 50, [asked.schema.sizes[i] for i in list(family)[at]]) for at in owners]
    values = []
    for batch in family.batches:
        lines = [drawn[i] for i, at in enumerate(owners) if at in batch.ids.tolist()]
        values.append(np.array(lines).reshape(len(lines), *batch.shape))
    assert [v.shape for v in values] == made.shapes
    merged = made.averaged(Measurement(made.digest, tuple(values), private=False))[1]
    assert merged.plan_digest == made.underlying.digest and merged.private is False
    for batch, found in zip(family.batches, merged.values, strict=True):
        for at, table in zip(batch.ids.tolist(), found, strict=True):
            mine = [i for i, owner in enumerate(owners) if owner == at]
            expected = brute_average([drawn[i] for i in mine], rates[mine])
            assert table == pytest.approx(expected.reshape(table.shape), abs=1e-9)


def test_merged_queries_are_weighted_averages():
    made, measurement = run(adaptive("iresamp", asks="queries"))
    merged = made.averaged(measurement)[1].values[0]
    owners = np.array(made.sample_of)
    assert np.bincount(owners).max() > 1
    for at, number in enumerate(merged):
        mine = owners == at
        assert number == pytest.approx(brute_average(measurement.values[0][mine], made.budgets[mine]))


def test_batches_whose_sets_are_not_next_to_each_other_are_told_apart():
    """Sets of the same shape form a batch, wherever they stand."""
    family = Family.of([(0,), (1,), (2,), (0, 1)], (2, 3, 2))
    asked = request("1-way,a0*a1", (2, 3, 2), epsilon=10)
    owners = (0, 0, 1, 2, 2, 2, 3)
    own = (asked, "by hand", "uniform", "none", "direct", np.full(7, 0.5))
    made = RepeatedDesign(*own, LatticeDesign, {"basis": MARGINAL, "measured": family}, owners)
    lines = {0: [[1, 2], [3, 4]], 1: [[5, 6, 7]], 2: [[8, 9], [10, 11], [12, 16]], 3: [[[1, 2, 3], [4, 5, 6]]]}
    values = []
    for batch in family.batches:
        values.append(np.array([line for at in batch.ids.tolist() for line in lines[at]]))
    found = made.averaged(Measurement(made.digest, tuple(values), private=False))[1].values
    for batch, tables in zip(family.batches, found, strict=True):
        for at, table in zip(batch.ids.tolist(), tables, strict=True):
            assert table == pytest.approx(np.mean(lines[at], axis=0))


# --------------------------------------------------------------------------------------------------------- predictions


@everywhere
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_predictions_are_those_of_the_start_and_no_run_is_worse(strategy, neighbours, asks, recovery):
    for budgets in BUDGETS:
        asked = adaptive(strategy, neighbours, asks, budgets=budgets, recovery=recovery)
        start = predicted(asked.underlying)
        assert predicted(asked).tolist() == start.tolist()
        assert np.isfinite(start).all()
        for seed in range(3):
            ended = predicted(run(asked, seed)[0])
            assert (ended <= start * (1 + 1e-9) + 1e-9).all()
            assert ended.sum() < start.sum()


@pytest.mark.parametrize("strategy", ADAPTING)
def test_a_run_costs_no_more_than_epsilon_and_says_what_it_spent(strategy):
    for neighbours in NEIGHBOURS:
        asked = adaptive(strategy, neighbours)
        made, _ = run(asked)
        spent = made.row_cost(made.budgets)
        told = made.details["adaptive"]
        assert spent <= 1 and told["spent"] == float(spent) and told["left"] == float(1 - spent)
        assert told["method"] == strategy and Rule.from_dict(told["asked"]) == asked.rule
        assert Rule.from_dict(told["settled"]) == asked.rule.settled()
