"""Selecting cuboids: coverage against its definition, greedy against a plain one, plans against what they promise."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import ADULT8, LAWS, NEIGHBOURS, hand_plan, make_plan, make_request
from hushcube.designs.design import BUDGETS
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.errors import BadInput
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare
from hushcube.strategies import REGISTRY, PMost, k_part
from hushcube.strategies.minimax import least_maximum
from hushcube.strategies.search import cuboids
from hushcube.strategies.search.coverage import FAR, AllTables, ListedTables, coverage_of, listed
from hushcube.strategies.search.cuboids import Limit, bound_maximum, covers, distinct_covers, own_tables
from ranged import ordered_schema

SELECTING = ["bmax", "pmost", "cluster"]


def cells(mask, sizes):
    return int(np.prod([n for i, n in enumerate(sizes) if mask >> i & 1], dtype=object))


@st.composite
def cases(draw, most=5):
    d = draw(st.integers(1, most))
    sizes = tuple(draw(st.lists(st.integers(2, 7), min_size=d, max_size=d)))
    asked = sorted(draw(st.sets(st.integers(0, 2**d - 1), min_size=1)))
    limit = draw(st.sampled_from([10**8, max(cells(mask, sizes) for mask in asked)]))
    return asked, sizes, limit


def magnification(asked, table, sizes):
    return cells(table, sizes) // cells(asked, sizes) if asked & ~table == 0 else FAR


def plain_gains(coverage, sizes, limit, numbers, weights, threshold):
    """By the definition."""
    return [
        sum(int(weights[i]) for i in numbers if magnification(coverage.masks[i], table, sizes) <= threshold)
        if cells(table, sizes) <= limit
        else 0
        for table in coverage.tables
    ]


# -------------------------------------------------------------------------------------------------------- coverage


@pytest.mark.slow
@given(cases(), st.data())
@pytest.mark.parametrize("kind", [AllTables, ListedTables])
def test_gains_are_what_the_definition_says(kind, case, data):
    asked, sizes, limit = case
    coverage = kind(asked, sizes, limit)
    weights = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(asked), max_size=len(asked))))
    every = np.arange(len(asked))
    some = np.array(sorted(data.draw(st.sets(st.sampled_from(every.tolist())))), np.int64)
    thresholds = coverage.thresholds.tolist()
    pairs = {
        magnification(a, c, sizes) for a in asked for c in coverage.tables if cells(c, sizes) <= limit and not a & ~c
    }
    assert pairs <= set(thresholds) and thresholds == sorted(set(thresholds), reverse=True)
    for threshold, gains in coverage.falling_gains(weights, thresholds):
        assert gains.tolist() == plain_gains(coverage, sizes, limit, every, weights, threshold)
        plain = plain_gains(coverage, sizes, limit, some, weights, threshold)
        assert coverage.gains(some, weights, threshold).tolist() == plain
        for table in np.flatnonzero(coverage.fits).tolist():
            found = coverage.magnifications(table)
            assert found.tolist() == [magnification(a, coverage.tables[table], sizes) for a in asked]
            assert (coverage.serves(table, every, threshold) == (found <= threshold)).all()


@given(cases(), st.data())
def test_the_ways_to_count_gains_agree(case, data):
    asked, sizes, limit = case
    coverage = AllTables(asked, sizes, limit)
    masks = np.array(asked)
    weights = np.array(data.draw(st.lists(st.integers(1, 9), min_size=len(asked), max_size=len(asked))))
    for threshold in coverage.thresholds.tolist():
        differences = np.flatnonzero(coverage._every <= threshold)
        ways = [way() for _, way in coverage._ways(masks, weights, differences)]
        assert len(ways) == 3
        built = coverage._build(masks, weights, threshold)[coverage.fits]
        for found in ways:
            assert (found[coverage.fits] == built).all()


def test_the_list_of_tables_holds_the_cuboids_their_union_and_fits():
    asked = [sum(1 << i for i in pair) for pair in combinations(range(20), 2)]
    tables = listed(asked, (3,) * 20, most_cells=10**6)
    assert set(asked) <= set(tables)
    assert max(cells(mask, (3,) * 20) for mask in tables) <= 10**6
    assert (1 << 20) - 1 in listed(asked, (3,) * 20, most_cells=10**10)


# ------------------------------------------------------------------------------------------------------- selecting


def plain_covers(coverage):
    """Algorithm 1's greedy cover for every distinct magnification, smallest first, in floats and loops."""
    table = np.array([coverage.magnifications(c) for c in range(len(coverage.tables))], float)
    table[~coverage.fits] = np.inf
    table[table >= 2**60] = np.inf
    for threshold in np.unique(table[np.isfinite(table)]):
        serves, open_, chosen = table <= threshold, np.ones(len(coverage), bool), []
        while open_.any():
            chosen.append(int((serves & open_).sum(axis=1).argmax()))
            open_ &= ~serves[chosen[-1]]
        yield chosen, table[chosen].min(axis=0)


@given(cases(), st.sampled_from([1, 2]))
def test_bound_maximum_is_the_plain_enumeration(case, power):
    coverage = coverage_of(*case)
    best = min((len(c) ** power * m.max(), at, c) for at, (c, m) in enumerate(plain_covers(coverage)))
    found = bound_maximum(coverage, power)
    assert found.worst(power) == best[0]
    assert list(found.tables) == sorted(best[2])


@given(cases(), st.sampled_from([1, 2]))
def test_distinct_covers_are_the_plain_enumeration(case, power):
    coverage = coverage_of(*case)
    energies = coverage.cells.astype(float)
    found = [cover.tables for cover in distinct_covers(coverage, energies, power)]
    assert len(found) == len(set(found)) and found[0] == own_tables(coverage).tables
    assert set(found) == {tuple(sorted(c)) for c, _ in plain_covers(coverage)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cuboids, "_MOST_LOOKED", 0)  # the least total of even budgets is found whatever is given up
        kept = list(distinct_covers(coverage, energies, power))
    best = min(len(c) ** power * (m @ energies) for c, m in plain_covers(coverage))
    totals = [len(cover.tables) ** power * (cover.magnification @ energies) for cover in kept]
    assert min(totals) == pytest.approx(best, rel=1e-12)


@given(cases())
def test_covers_cover_and_read_from_the_nearest_table(case):
    asked, sizes, limit = case
    coverage = coverage_of(*case)
    for found in covers(coverage, Limit(len(asked))):
        assert max(cells(mask, sizes) for mask in found.tables) <= limit
        for mask, source, m in zip(asked, found.source.tolist(), found.magnification.tolist(), strict=True):
            assert m == magnification(mask, found.tables[source], sizes)
            assert m == min(magnification(mask, table, sizes) for table in found.tables)
    assert own_tables(coverage).tables == tuple(asked)


# ----------------------------------------------------------------------------------------------------------- plans

WORDS = ["<=2-way", "cube", "a0*a1=5,a1*a3,a3", "2-way,a0*a1*a3=3"]
everywhere = pytest.mark.parametrize(
    ("law", "neighbours", "words"), [(law, n, w) for law in LAWS[:2] for n in NEIGHBOURS for w in WORDS], ids=str
)


def unrecovered(plan):
    return plan.errors.cell_variances(exact=False)


def weighted_total(plan):
    request = plan.request
    return float((unrecovered(plan) * request.marginals.cells * request.weights).sum())


@everywhere
@pytest.mark.parametrize("budgets", BUDGETS)
def test_the_bound_is_the_largest_variance_without_recovery(law, neighbours, words, budgets):
    request = make_request((2, 3, 1, 4), words, neighbours=neighbours, **law)
    even = make_plan(request, "bmax", "uniform", "none")
    plan = make_plan(request, "bmax", budgets, "none")
    assert plan.details["bound"] == pytest.approx((unrecovered(plan) * request.weights).max(), rel=1e-9)
    assert plan.details["bound"] <= even.details["bound"] * (1 + 1e-9)
    assert weighted_total(plan) <= weighted_total(even) * (1 + 1e-9)
    consistent = make_plan(request, "bmax", budgets, "gls")
    assert (unrecovered(consistent) * request.weights).max() <= consistent.details["bound"] * (1 + 1e-9)


@everywhere
@pytest.mark.parametrize("threshold", [None, "70%", "100%", "130%"])
def test_the_precise_tables_are_those_within_the_threshold(law, neighbours, words, threshold):
    request = make_request((2, 3, 1, 4), words, neighbours=neighbours, **law)
    precise = {}
    for budgets in BUDGETS:
        try:
            plan = make_plan(request, PMost(threshold=threshold), budgets, "none")
        except BadInput as problem:
            assert problem.field == "threshold"
            return
        limit = plan.details["threshold"] * (1 + 1e-9)
        within = dict(zip(request.marginals, (unrecovered(plan) <= limit).tolist(), strict=True))
        asked = zip(request.workload.marginals, request.workload.weights, strict=True)
        found = [(request.schema.describe(A), weight) for A, weight in asked if within[A]]
        assert plan.details["precise"] == [word for word, _ in found]
        assert plan.details["weight"] == sum(weight for _, weight in found) > 0
        precise[budgets] = set(plan.details["precise"])
        if threshold in ("100%", "130%"):
            assert len(found) == len(request.workload)
    assert precise["uniform"] <= precise["optimal"]


@pytest.mark.parametrize("law", LAWS[:2] + LAWS[3:], ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_threshold_that_no_table_meets_is_refused_with_the_least_that_is_met(law, neighbours):
    for words in WORDS:
        request = make_request((2, 3, 1, 4), words, neighbours=neighbours, rows_per_person=2, **law)
        with pytest.raises(BadInput, match="every table is answered") as caught:
            make_plan(request, PMost(threshold="1e-3"))
        assert caught.value.field == "threshold"
        least = caught.value.fix.split()[3].rstrip(",")
        plan = make_plan(request, PMost(threshold=least), "uniform", "none")
        assert plan.details["precise"]
        with pytest.raises(BadInput):
            make_plan(request, PMost(threshold=repr(float(least) * 0.999)))


def test_a_share_is_of_the_bound_of_bmax():
    request = make_request(ADULT8, "2-way", epsilon="0.5", rows_per_person=3, neighbours="replace-one")
    bound = make_plan(request, "bmax", "uniform", "none").details["bound"]
    assert bound == pytest.approx(2 * (2 * 3 * 28 / 0.5) ** 2, rel=1e-9)  # the public total costs nothing
    plans = [make_plan(request, PMost(threshold=text), "uniform", "none") for text in ("50%", repr(round(bound) / 2))]
    assert plans[0].details == plans[1].details == make_plan(request, "pmost", "uniform", "none").details


def test_heavy_tables_are_made_precise():
    words = "2-way,a0*a1=100,a0*a3=100"
    plan = make_plan(make_request(ADULT8, words, epsilon=1), "pmost:threshold=60", "uniform", "none")
    assert {"a0*a1", "a0*a3"} <= set(plan.details["precise"])


def test_tables_that_answer_what_is_missing_are_paid_for():
    """Three tables of own plus one for the rest: noise 2 · 4², not 2 · 3²."""
    plan = make_plan(make_request(ADULT8, "2-way", epsilon=1), "pmost:threshold=32", "uniform", "none")
    assert len(plan.measured) == 4
    assert plan.details["weight"] == 3
    assert sorted(unrecovered(plan))[:3] == pytest.approx([32] * 3, rel=1e-9)


@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_clusters_have_the_least_total_of_all_selections(law):
    for sizes, words in ((ADULT8, "1..3-way"), ((3, 4, 5, 6), "cube"), ((2, 2), "a0,a0*a1")):
        request = make_request(sizes, words, **law)
        for budgets in BUDGETS:
            cluster = weighted_total(make_plan(request, "cluster", budgets, "none"))
            for other in ("base", "all-cuboids", "bmax"):
                assert cluster <= weighted_total(make_plan(request, other, budgets, "none")) * (1 + 1e-9)


def test_the_names_of_the_paper_are_the_tables_of_the_main_paper():
    request = make_request((2, 3, 4), "2-way", epsilon=1)
    for name, twin in (("base", "identity"), ("all-cuboids", "workload")):
        a, b = (make_plan(request, strategy).to_dict() for strategy in (name, twin))
        assert {**a, "strategy": twin} == b
        assert not REGISTRY[name].automatic
    tried = {candidate.plan.strategy for candidate in compare(request).candidates}
    assert not {"base", "all-cuboids"} & tried and set(SELECTING) <= tried


@pytest.mark.parametrize("strategy", SELECTING)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(
    ("sizes", "words"),
    [((1, 1), "cube"), ((1, 3), "cube"), ((3, 2), "0-way"), ((2, 1, 3), "a1,a0*a1"), ((4,), "a0"), ((1,), "a0")],
    ids=str,
)
def test_small_and_constant_domains(strategy, neighbours, sizes, words):
    request = make_request(sizes, words, epsilon=1, neighbours=neighbours)
    for budgets in BUDGETS:
        for recovery in ("gls", "none"):
            plan = make_plan(request, strategy, budgets, recovery)
            varies = request.marginals.product([2 if n > 1 else 1 for n in sizes]) > 1
            found = plan.errors.cell_variances(exact=False)
            assert ((found > 0) == (varies | (neighbours == "add-remove"))).all()


@pytest.mark.parametrize("strategy", SELECTING)
def test_no_table_is_larger_than_may_be_held(strategy):
    request = make_request((100,) * 6, "2-way", epsilon=1)  # the base has 10^12 cells
    plan = make_plan(request, strategy, "uniform", "none")
    assert plan.measured.cells.max() <= MAX_TABLE_CELLS


@pytest.mark.parametrize("strategy", SELECTING)
@pytest.mark.parametrize("d", [17, 70])
def test_beyond_16_attributes_listed_tables_are_selected(strategy, d):
    request = make_request((2,) * d, "2-way" if d == 17 else "1-way", epsilon=1)
    plan = make_plan(request, strategy, "uniform", "none")
    own = make_plan(request, "workload", "uniform", "none")
    assert len(plan.measured) < len(own.measured)
    if strategy == "bmax":
        assert unrecovered(plan).max() < unrecovered(own).max()


def test_very_many_tables_of_many_attributes_are_refused():
    request = make_request((2,) * 60, "3-way", epsilon=1)
    for strategy in SELECTING:
        most = "1,024" if strategy == "pmost" else "16,384"
        assert f"at most {most} tables" in REGISTRY[strategy].accepts(request)


@pytest.mark.parametrize("strategy", ["bmax", "cluster"])
def test_marginals_that_only_carry_ranges_are_answered(strategy):
    schema, privacy = ordered_schema((8, 3)), Privacy.of(epsilon=1, neighbours="add-remove")
    request = Request(Workload.parse("prefix(a0),a1", schema), privacy)
    assert (request.weights == 0).any()
    for budgets in BUDGETS:
        assert make_plan(request, strategy, budgets).errors.total_variance(exact=False) > 0
    only_sums = Request(Workload.parse("prefix(a0)", schema), privacy)
    assert "tables of cells" in REGISTRY["pmost"].accepts(only_sums)


@given(
    st.lists(st.floats(0.1, 10), min_size=1, max_size=6),
    st.lists(st.floats(0, 1), min_size=6, max_size=6),
    st.floats(0, 1),
)
@settings(max_examples=100)
def test_filled_shares_are_proportional_above_what_is_needed(shape, needed, load):
    shape = np.array(shape)
    needed = np.array(needed[: len(shape)]) + 1e-6
    needed = needed / needed.sum() * load * 0.999
    shares = k_part.filled(shape, needed)
    assert shares.sum() == pytest.approx(1)
    assert (shares >= needed * (1 - 1e-12)).all()
    free = shares > needed * (1 + 1e-9)
    levels = shares[free] / shape[free]
    assert np.allclose(levels, levels[0])
    assert (shares[~free] / shape[~free] >= levels[0] * (1 - 1e-6)).all()


@pytest.mark.parametrize("objective_law", LAWS[:2], ids=str)
def test_for_the_objective_max_the_maximum_is_least(objective_law):
    request = make_request((2, 7, 5), "cube", **objective_law)
    least = replace(request, objective="max")
    for recovery in ("none", "gls"):
        largest = [
            make_plan(r, "bmax", budgets, recovery).errors.max_variance(exact=False)
            for r, budgets in ((least, "optimal"), (request, "optimal"), (request, "uniform"))
        ]
        assert largest[0] <= min(largest[1:]) * (1 + 1e-6)


@pytest.mark.parametrize("measured", [[(0, 1), (0, 2)], [(0, 1), (0, 2), (0, 1, 2)]], ids=str)
@pytest.mark.parametrize("sizes", [(2, 3, 4), (2, 4, 3)], ids=str)
def test_of_several_tables_that_hold_a_marginal_the_best_is_summed(measured, sizes):
    """Also where tables of the same order hold it, in whichever order they are looked at."""
    request = make_request(sizes, "<=1-way", epsilon=1)
    plan = hand_plan(request, MARGINAL, measured, [1 / 4] * len(measured), recovery="none")
    found = dict(zip(request.marginals, unrecovered(plan).tolist(), strict=True))
    assert found[0,] == pytest.approx(2 * 4**2 * 3, rel=1e-9)
    assert found[()] == pytest.approx(2 * 4**2 * 6, rel=1e-9)


def test_the_largest_variance_is_shared_out_by_the_smallest_tables():
    """Total and a0 from a0*a1, which magnifies 6 times; a2 from a0*a2, which magnifies 2 times."""
    request = replace(make_request((2, 3, 4), "<=1-way", epsilon=1), objective="max")
    measured = Family.of([(0, 1), (0, 2)], (2, 3, 4))
    found = least_maximum(request, MARGINAL, measured, "none", np.ones(2))
    assert found.budgets / found.budgets.sum() == pytest.approx(np.sqrt([6, 2]) / np.sqrt([6, 2]).sum(), rel=1e-4)
