"""One contract for every strategy on workloads of ranges and queries; a new strategy is tested by what is here."""

from collections import defaultdict

import numpy as np
import pytest

from helpers import LAWS, MemoryEngine, exact_table, label, random_codes, released
from hushcube.costs import calibrate
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.errors import NotApplicable
from hushcube.planning.plan import Plan, read_design
from hushcube.planning.planner import compare
from hushcube.planning.summary import table_errors
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import REGISTRY, Hierarchy
from hushcube.strategies.strategy import objective_value
from ranged import every_variant, form_rows, ordered_schema, random_queries, ranged_request, strategies

SCHEMA = ordered_schema((6, 2, 3), missing=(0,))
WORDS = "prefix(a0)*a1=2,ranges(a0),a1*a2"
PUBLISHED = ["a1*a2", "a0*a1", "a0", "prefix(a0)*a1", "ranges(a0)"]
QUERIES = random_queries(SCHEMA, (0, 2))


def make(words=WORDS, queries=None, **privacy):
    return ranged_request(SCHEMA, words, queries=queries, **privacy)


PURE, _, TINY, BOTH = LAWS
GUARANTEES = [(PURE, "add-remove"), (TINY, "replace-one"), (BOTH, "add-remove"), (PURE, "replace-one")]
everywhere = pytest.mark.parametrize(
    ("strategy", "law", "neighbours"),
    [(s, law, n) for law, n in GUARANTEES for s in strategies(make(neighbours=n, **law))],
    ids=str,
)
_kept = {}


def variants(strategy, law, neighbours, words=WORDS, queries=None):
    """All variants of one strategy; made once for all tests."""
    key = (strategy, str(law), neighbours, words, queries is None)
    if key not in _kept:
        _kept[key] = list(every_variant(make(words, queries, neighbours=neighbours, **law), [strategy]))
        assert _kept[key], f"{strategy} accepts, but makes no plan"
    return _kept[key]


def by_budgets(plans):
    result = defaultdict(dict)
    for plan in plans:
        result[plan.budget_rule][plan.recovery] = plan
    return result


def published(plan, codes, seed=3):
    return released(plan, measure(plan, MemoryEngine(codes), entropy=SeededEntropy(seed)))


@everywhere
def test_plans_read_back_the_same_and_are_made_the_same_way_twice(strategy, law, neighbours):
    plans = variants(strategy, law, neighbours)
    again = every_variant(make(neighbours=neighbours, **law), [strategy])
    for plan, twin in zip(plans, again, strict=True):
        assert plan.strategy == strategy and plan.digest == twin.digest, label(plan)
        read = read_design(plan.to_json())
        assert read.to_json() == plan.to_json() and read.request == plan.request, label(plan)
        assert read.workload.forms == plan.workload.forms
        assert read.errors.weighted_variance() == plan.errors.weighted_variance()


@everywhere
def test_plans_cost_no_more_than_the_guarantee(strategy, law, neighbours):
    for plan in variants(strategy, law, neighbours):
        if plan.proof != "smoothing":  # there the cost is that of the continuous part, which Plan checks
            assert plan.row_cost(plan.budgets) <= calibrate.row_budget(plan.privacy, plan.proof), label(plan)


@everywhere
def test_predictions_are_finite_and_every_answer_has_an_error(strategy, law, neighbours):
    for plan in variants(strategy, law, neighbours):
        for form in plan.workload.forms:
            for exact in (True, False):
                found = plan.errors.form_variances(form, exact=exact)
                assert np.isfinite(found).all() and (found > 0).all(), label(plan)
                total = plan.errors.form_total(form, exact=exact)
                assert total == pytest.approx(found.sum(), rel=1e-9), label(plan)
        rows = list(table_errors(Plan.of_counts(plan), published=True))
        assert [r.word for r in rows] == PUBLISHED
        assert [r.is_form for r in rows] == [False] * 3 + [True] * 2
        assert all(0 < r.std_error < np.inf and 0 <= r.margin < np.inf for r in rows), label(plan)
        assert np.isfinite(plan.errors.margins).all()


@everywhere
def test_generalised_least_squares_is_never_worse(strategy, law, neighbours):
    """Altogether; and of one measurement gls <= ols and gls <= none, for every form as a whole."""
    for plans in by_budgets(variants(strategy, law, neighbours)).values():
        for other in plans.values():
            assert objective_value(plans["gls"]) <= objective_value(other) * (1 + 1e-9), label(other)
            if not np.array_equal(plans["gls"].budgets, other.budgets):
                continue  # clusters are chosen for the recovery
            for form in other.workload.forms:
                best, found = (p.errors.form_total(form, exact=True) for p in (plans["gls"], other))
                assert best <= found * (1 + 1e-9), label(other)


@everywhere
def test_less_privacy_means_less_error(strategy, law, neighbours):
    key = "rho" if "rho" in law else "epsilon"
    doubled = {**law, key: 2 if law[key] in (1, "1/2") else 40}
    pairs = zip(variants(strategy, law, neighbours), variants(strategy, doubled, neighbours), strict=True)
    for tight, loose in pairs:
        assert loose.errors.total_variance(exact=True) < tight.errors.total_variance(exact=True), label(tight)


@everywhere
def test_released_ranges_are_near_the_truth_and_sums_of_published_cells(strategy, law, neighbours):
    codes = random_codes(SCHEMA.sizes, 1000)
    for plan in variants(strategy, law, neighbours):
        release = published(plan, codes)
        assert list(release) == PUBLISHED
        for form in plan.workload.forms:
            table, carrier = release.table(form.word), release.table([SCHEMA.names[i] for i in form.marginal])
            Q = form_rows(form)
            np.testing.assert_allclose(table.values.ravel(), Q @ carrier.values.ravel(), atol=1e-8, err_msg=label(plan))
            truth = (Q @ exact_table(SCHEMA, codes, form.marginal).ravel()).reshape(form.shape)
            # 25 deviations of Laplace noise: false alarm below exp(-35) an answer
            assert (np.abs(table.values - truth) <= 25 * table.std_errors + 1e-9).all(), label(plan)
            assert table.labels == form.labels and table.attributes == form.axes
        check_ends(plan, release)


def check_ends(plan, release):
    """The last prefix and the category for missing values are everybody; ranges of one value are cells."""
    prefix, ranges = release.table("prefix(a0)*a1"), release.table("ranges(a0)")
    by_a1 = release.table("a0*a1").values.sum(axis=0)
    np.testing.assert_allclose(prefix.values[-2] + prefix.values[-1], by_a1, atol=1e-8, err_msg=label(plan))
    single = ranges.slice({"ranges(a0)": SCHEMA["a0"].labels})
    cells = release.table("a0")
    np.testing.assert_allclose(single.values, cells.values, atol=1e-8, err_msg=label(plan))
    np.testing.assert_allclose(single.std_errors, cells.std_errors, rtol=1e-7, err_msg=label(plan))
    if plan.is_consistent:
        whole = ranges.slice({"ranges(a0)": ["0 to 5", "unknown"]}).values.sum()
        assert whole == pytest.approx(release.table("total").values, abs=1e-7), label(plan)
        np.testing.assert_allclose(by_a1, release.table("a1").values, atol=1e-7, err_msg=label(plan))
        np.testing.assert_allclose(by_a1, release.table("a1*a2").values.sum(axis=1), atol=1e-7, err_msg=label(plan))
        if plan.privacy.neighbours == "replace-one":
            assert whole == pytest.approx(1000, abs=1e-7), label(plan)


@pytest.mark.parametrize(("law", "neighbours"), GUARANTEES[-2:], ids=str)
def test_queries_are_answered_from_cells_that_stay_unpublished(law, neighbours):
    codes = random_codes(SCHEMA.sizes, 500)
    for words in ("queries", "a1,queries=3,prefix(a2)"):
        request = make(words, QUERIES, neighbours=neighbours, **law)
        for plan in every_variant(request, budgets=["optimal"], recoveries=["gls"]):
            assert read_design(plan.to_json()).to_json() == plan.to_json(), label(plan)
            release = published(plan, codes)
            assert list(release) == (["queries"] if words == "queries" else ["a1", "a2", "queries", "prefix(a2)"])
            table = release.table("queries")
            truth = QUERIES.rows.dense() @ exact_table(SCHEMA, codes, (0, 2)).ravel()
            assert (np.abs(table.values - truth) <= 25 * table.std_errors + 1e-9).all(), label(plan)
            np.testing.assert_allclose(
                table.std_errors**2, plan.errors.form_variances(QUERIES, exact=True), rtol=1e-12, err_msg=label(plan)
            )


@pytest.mark.parametrize(("law", "neighbours"), GUARANTEES, ids=str)
def test_auto_is_at_least_as_good_as_each(law, neighbours):
    request = make(neighbours=neighbours, **law)
    automatic = compare(request)
    chosen = objective_value(automatic.chosen)
    assert chosen == min(objective_value(c.plan) for c in automatic.candidates)
    for strategy in {c.plan.strategy for c in automatic.candidates}:
        plans = by_budgets(variants(strategy, law, neighbours))
        assert all(chosen <= objective_value(plans[rule]["gls"]) * (1 + 1e-9) for rule in plans), strategy


def test_a_strategy_that_refuses_one_variant_is_not_skipped():
    """Nodes of a tree need least squares: hierarchy has no `none`, and is compared all the same."""
    everything = compare(make(epsilon=1), strategy="all")
    listed = {(c.plan.strategy, c.plan.budget_rule, c.plan.recovery) for c in everything.candidates}
    for recovery in RECOVERIES:
        for budgets in BUDGETS:
            assert (("hierarchy", budgets, recovery) in listed) == (recovery != "none")
            assert ("wavelet", budgets, recovery) in listed
    assert not {"hierarchy", "wavelet"} & everything.skipped.keys()
    assert not {c.plan.strategy for c in everything.candidates} & everything.skipped.keys()


def test_a_strategy_that_refuses_every_variant_is_skipped_with_its_reason():
    raw = compare(make(epsilon=1), strategy="all", recovery="none")
    assert "least squares" in raw.skipped["hierarchy"]
    assert all(c.plan.strategy != "hierarchy" for c in raw.candidates)
    with pytest.raises(NotApplicable, match="least squares"):
        compare(make(epsilon=1), strategy="hierarchy", recovery="none")


@pytest.mark.parametrize("strategy", ["wavelet", "hierarchy"])
def test_trees_are_for_ranges_only(strategy):
    plain = ranged_request(SCHEMA, "2-way", epsilon=1)
    assert "no range" in REGISTRY[strategy].accepts(plain)
    comparison = compare(plain, strategy="all")
    assert strategy not in comparison.skipped, "it does not concern the request"
    assert all(c.plan.strategy != strategy for c in comparison.candidates)
    with pytest.raises(NotApplicable, match="no range"):
        compare(plain, strategy=strategy)


@pytest.mark.parametrize("rule", BUDGETS)
@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_the_searched_fan_out_is_not_worse_than_given_ones(law, rule):
    schema = ordered_schema((40, 2))
    words = "ranges(a0)*a1"

    def value(fan_out):
        request = ranged_request(schema, words, **law)
        (plan,) = every_variant(request, [Hierarchy(fan_out=fan_out)], [rule], ["gls"])
        return plan.errors.weighted_variance(), plan

    best, plan = value(None)
    assert np.prod(plan.details["fan_outs"]["a0"]) >= 40
    for fan_out in (2, 3, 4, 7, 16, 40):
        found, given = value(fan_out)
        assert set(given.details["fan_outs"]["a0"][1:]) <= {fan_out}
        assert best <= found * 1.02, fan_out  # with_fan_out and of_depth fill up differently


@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_long_axes_of_ranges_are_won_by_trees(law):
    """What they are for: the error of cells summed up grows with the length, that of trees with its logarithm."""
    request = ranged_request(ordered_schema((500,)), "ranges(a0)", **law)
    names = ("wavelet", "hierarchy", "identity", "workload")
    totals = {name: (next(every_variant(request, [name]))).errors.weighted_variance() for name in names}
    assert totals["hierarchy"] < totals["identity"] / 2 and totals["wavelet"] < totals["identity"]
    assert totals["workload"] == pytest.approx(totals["identity"]), "both measure the cells"


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_a_public_total_is_the_last_prefix_without_error(law):
    """Variances that cancel may not come out below zero, where their roots would be no numbers."""
    schema = ordered_schema((7, 3))
    codes = random_codes(schema.sizes, 333)
    request = ranged_request(schema, "prefix(a0)*prefix(a1),ranges(a0)", neighbours="replace-one", **law)
    for plan in every_variant(request, budgets=["optimal"]):
        release = published(plan, codes)
        prefix, ranges = (
            release.table("prefix(a0)*prefix(a1)"),
            release.table("ranges(a0)", where={"ranges(a0)": "0 to 6"}),
        )
        assert np.isfinite(prefix.std_errors).all() and np.isfinite(prefix.margins).all(), label(plan)
        if plan.is_consistent:
            assert prefix.values[-1, -1] == pytest.approx(333, abs=1e-7) == ranges.values[0], label(plan)
            assert prefix.std_errors[-1, -1] < 1e-5 and ranges.std_errors[0] < 1e-5, label(plan)
