"""Ding et al. 2011: the examples, which cuboids to measure, consistency; numbers of docs/maths.md, 9."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import ADULT8, all_tables, hand_plan, make_plan, make_request
from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.model.noise import Measurement
from hushcube.strategies.search.coverage import coverage_of
from hushcube.strategies.search.cuboids import Greedy, bound_maximum
from hushcube.strategies.search.precise import publish_most, publish_precise


def two_by_three():
    """A with variance 2 and AB with variance 8: Gaussian noise of rho 1/4 and 1/16."""
    request = make_request((2, 3), "cube", rho="5/16")
    return hand_plan(request, MARGINAL, [(0,), (0, 1)], [1 / 4, 1 / 16])


def test_vector_23_weighted_gls():
    plan = two_by_three()
    z = (np.array([[10, 4]]), np.array([[[3, 5, 1], [2, 0, 3]]]))
    tables = all_tables(plan, plan.answers(Measurement(plan.digest, z, private=False)))
    np.testing.assert_allclose(tables[0,], np.array([129, 53]) / 13, rtol=1e-9)
    np.testing.assert_allclose(tables[0, 1], np.array([[43, 69, 17], [22, -4, 35]]) / 13, rtol=1e-9)
    np.testing.assert_allclose(tables[1,], [5, 5, 4], rtol=1e-9)
    np.testing.assert_allclose(tables[()], 14, rtol=1e-9)


def test_vector_24_eigenvalues():
    plan = two_by_three()
    mu = 6 * kernel(MARGINAL, plan.measured, 1 / plan.errors.set_variances(exact=False), plan.request.spaces)
    assert list(plan.request.spaces) == [(), (0,), (1,), (0, 1)]
    assert mu == pytest.approx([13 / 8, 13 / 8, 1 / 8, 1 / 8], rel=1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_vector_24_cell_variances(exact):
    found = two_by_three().errors.cell_variances(exact=exact)
    assert found == pytest.approx([48 / 13, 24 / 13, 144 / 13, 72 / 13], rel=1e-9)


def test_vector_25_example_3_1_with_consistency():
    """Sizes 2, 7, 5; L_pre = {100, 110, 101, 111}, each with variance 2 (4/eps)² = 32."""
    request = make_request((2, 7, 5), "cube", epsilon=1)
    plan = hand_plan(request, MARGINAL, [(0,), (0, 1), (0, 2), (0, 1, 2)], [0.25] * 4)
    found = dict(zip(request.marginals, plan.errors.cell_variances(exact=False), strict=True))
    for A, variance in found.items():
        assert variance == pytest.approx(70 / 3 if 0 in A else 140 / 3, rel=1e-9)


# --------------------------------------------------------------------------- the examples: Sex 2, Age 7, Salary 5

SIZES = (2, 7, 5)
L_PRE = [(0,), (0, 1), (0, 2), (0, 1, 2)]


def cuboid(label):
    """C_011 is {Age, Salary}."""
    return tuple(i for i, x in enumerate(label) if x == "1")


def mask(label):
    return sum(1 << i for i in cuboid(label))


def cube(sizes=SIZES, asked=None):
    return coverage_of(range(2 ** len(sizes)) if asked is None else asked, sizes, 10**8)


def variances(plan):
    return dict(zip(plan.request.marginals, plan.errors.cell_variances(exact=False).tolist(), strict=True))


@pytest.mark.parametrize(
    ("below", "above", "magnification"),
    [("000", "111", 70), ("100", "111", 35), ("001", "111", 14), ("000", "110", 14), ("000", "100", 2)],
)
def test_vector_20_magnifications(below, above, magnification):
    assert cube().magnifications(mask(above))[mask(below)] == magnification


def test_vector_20_and_example_3_1_the_two_baselines():
    request = make_request(SIZES, "cube", epsilon=1)
    everything = variances(make_plan(request, "all-cuboids", "uniform", "none"))
    assert list(everything.values()) == pytest.approx([128] * 8, rel=1e-9)
    base = variances(make_plan(request, "base", "uniform", "none"))
    assert base[()] == pytest.approx(140, rel=1e-9)
    assert base[cuboid("100")] == pytest.approx(70, rel=1e-9)


def test_examples_3_1_and_3_2_part_of_the_cuboids():
    request = make_request(SIZES, "cube", epsilon=1)
    found = variances(hand_plan(request, MARGINAL, L_PRE, [0.25] * 4, recovery="none"))
    assert found[cuboid("100")] == pytest.approx(32, rel=1e-9)
    assert found[()] == pytest.approx(64, rel=1e-9)  # from C_100, not 448 from C_110


def test_example_4_1_greedy_at_threshold_10():
    coverage = cube()
    ones, every = np.ones(8, np.int64), np.arange(8)
    run = Greedy(coverage, 10, coverage.gains(every, ones, 10), ones, every)
    chosen = []
    while len(run.open):
        chosen.append(run.best())
        run.take(chosen[-1])
    assert chosen == [mask("111"), mask("101")]
    smallest = np.minimum(*(coverage.magnifications(table) for table in chosen))
    assert 2 * 2**2 * smallest.max() == 80


def test_vector_21_example_4_1_the_optimum():
    request = make_request(SIZES, "cube", epsilon=1)
    plan = make_plan(request, "bmax", "uniform", "none")
    assert list(plan.measured) == L_PRE
    assert plan.details["bound"] == pytest.approx(64, rel=1e-9)
    assert max(variances(plan).values()) == pytest.approx(64, rel=1e-9)


def test_vector_21_example_4_2_coverage_by_number_of_cuboids():
    coverage = cube()
    ones, every = np.ones(8, np.int64), np.arange(8)
    covered = []
    for s in (1, 2, 3, 4):
        threshold = 40 // (2 * s**2)
        run = Greedy(coverage, threshold, coverage.gains(every, ones, threshold), ones, every)
        for _ in range(s):
            run.take(run.best())
        covered.append(8 - len(run.open))
    assert covered == [6, 6, 6, 4]


def test_example_4_2_six_cuboids_are_precise_and_ties_go_to_fewer_tables():
    request = make_request(SIZES, "cube", epsilon=1)
    plan = make_plan(request, "pmost:threshold=40", "uniform", "none")
    assert plan.details["weight"] == 6
    assert plan.details["threshold"] == 40
    assert list(plan.measured) == [(0, 1, 2)]  # the paper's two tables cover six as well
    precise = {request.schema.describe(A) for A, v in variances(plan).items() if v <= 40 * (1 + 1e-9)}
    assert set(plan.details["precise"]) == precise
    assert brute_most(cube(), np.ones(8), lambda s: 40 // (2 * s**2)) == 6


def test_vector_22_the_printed_binary_search_misses_the_optimum():
    coverage = cube((2, 5, 3, 3), [1, 3, 4, 5, 8, 10, 11, 15])
    assert 2 * printed_binary_search(coverage) == 90
    found = bound_maximum(coverage, power=2)
    assert 2 * found.worst(2) == 72 == 2 * brute_maximum(coverage, 2)


# ----------------------------------------------------------------------------------------- brute force is the judge


def all_magnifications(coverage):
    return np.array([coverage.magnifications(table) for table in range(len(coverage.tables))], float)


def smallest_by_subset(coverage):
    """For every set of tables (a bit mask over the tables) the least magnification of each cuboid."""
    found = np.full((1, len(coverage)), np.inf)
    for row in all_magnifications(coverage):
        found = np.concatenate([found, np.minimum(found, np.where(row < 2**60, row, np.inf))])
    return found, np.bitwise_count(np.arange(len(found)))


def brute_maximum(coverage, power):
    smallest, s = smallest_by_subset(coverage)
    return int((s[1:].astype(float) ** power * smallest[1:].max(axis=1)).min())


def brute_most(coverage, weights, precise, *, of_all=False):
    """Over all sets of tables that answer everything, or over all."""
    smallest, s = smallest_by_subset(coverage)
    limit = np.array([0, *(precise(n) for n in range(1, s.max() + 1))])
    answered = np.isfinite(smallest).all(axis=1) | of_all
    return float((((smallest <= limit[s][:, None]) & answered[:, None]) @ weights).max())


def printed_feasible(magnifications, threshold, s):
    """Lines 6-12 of Algorithm 1: s times the cuboid that covers most; ties to the lowest mask."""
    covers = magnifications <= threshold
    open_, chosen = np.ones(covers.shape[1], bool), []
    for _ in range(s):
        chosen.append(int((covers & open_).sum(axis=1).argmax()))
        open_ &= ~covers[chosen[-1]]
    return chosen if not open_.any() else None


def printed_binary_search(coverage):
    """Lines 1-5 of Algorithm 1 at epsilon = 1, in units of 2; s from 1 upwards."""
    magnifications, n = all_magnifications(coverage), len(coverage)

    def solution(theta):
        tried = ((s, printed_feasible(magnifications, theta / (2 * s**2), s)) for s in range(1, n + 1))
        return next(((s, chosen) for s, chosen in tried if chosen is not None), None)

    low, high = 0.0, 2.0 * n**2
    while high - low > 1:
        theta = (low + high) / 2
        low, high = (theta, high) if solution(theta) is None else (low, theta)
    s, chosen = solution(high)
    return int(s**2 * magnifications[chosen].min(axis=0).max())


@st.composite
def lattices(draw, most=4):
    d = draw(st.integers(1, most))
    sizes = tuple(draw(st.lists(st.integers(2, 9), min_size=d, max_size=d)))
    asked = draw(st.sets(st.integers(0, 2**d - 1), min_size=1))
    return cube(sizes, sorted(asked))


@given(lattices())
@settings(max_examples=60)
def test_theorem_6_bmax_against_exhaustive_and_printed_search(coverage):
    """Within (ln |L| + 1)² of the optimum (the root of that for Gaussian noise), and never above Algorithm 1."""
    factor = math.log(len(coverage)) + 1
    for power in (1, 2):
        found = bound_maximum(coverage, power).worst(power)
        best = brute_maximum(coverage, power)
        assert best <= found <= factor**power * best + 1e-9
    assert bound_maximum(coverage, 2).worst(2) <= printed_binary_search(coverage)


def test_bmax_is_nearly_always_the_optimum_on_small_lattices():
    hits = 0
    cases = [(sizes, asked) for sizes in product((2, 3, 5), repeat=3) for asked in combinations(range(8), 5)][::23]
    for sizes, asked in cases:
        coverage = cube(sizes, asked)
        hits += bound_maximum(coverage, 2).worst(2) == brute_maximum(coverage, 2)
    assert hits >= 0.9 * len(cases)


@given(lattices(), st.data())
@settings(max_examples=40)
def test_theorem_7_pmost_against_exhaustive_search(coverage, data):
    """At least half the optimum where every cuboid must be answered, and all of it at the bound of bmax."""
    weights = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(coverage), max_size=len(coverage))))
    theta = data.draw(st.integers(1, 200))
    for power in (1, 2):
        known = bound_maximum(coverage, power)
        for bound in (theta, known.worst(power)):
            found = publish_most(coverage, weights, lambda s, b=bound, p=power: b // s**p, known)
            assert found.source.min() >= 0
            reached = weights[found.magnification <= bound // len(found.tables) ** power].sum()
            best = brute_most(coverage, weights, lambda s, b=bound, p=power: b // s**p)
            assert best / 2 <= reached <= best
            assert bound == theta or reached == weights.sum()


@given(lattices(), st.data())
@settings(max_examples=60)
def test_theorem_7_as_printed_where_the_rest_is_left_out(coverage, data):
    """At least 1 - 1/e of the optimum."""
    weights = np.array(data.draw(st.lists(st.integers(1, 5), min_size=len(coverage), max_size=len(coverage))))
    theta = data.draw(st.integers(1, 200))
    for power in (1, 2):
        limit = [0, *(theta // s**power for s in range(1, len(coverage) + 1))]
        known = bound_maximum(coverage, power)
        chosen = publish_precise(coverage, weights, limit.__getitem__, known)
        assert len(set(chosen)) == len(chosen) <= len(coverage)
        smallest = np.min([coverage.magnifications(table) for table in chosen], axis=0)
        reached = weights[smallest <= limit[len(chosen)]].sum()
        best = brute_most(coverage, weights, lambda s, p=power: theta // s**p, of_all=True)
        assert (1 - 1 / math.e) * best <= reached <= best
        assert reached >= weights[known.magnification <= theta // len(known.tables) ** power].sum()
        if best == brute_most(coverage, weights, lambda s, p=power: 0 if s > 1 else theta, of_all=True):
            assert len(chosen) == 1  # the first table is the best single one, and ties go to fewer


def test_problem_2_on_a_lattice_whose_last_table_nothing_precise_can_hold():
    """Algorithm 2 measures abc alone, and publishes three of four tables at variance 4."""
    request = make_request((2, 2, 2, 50, 50), "a0*a1,a0*a2,a1*a2,a3*a4", epsilon=1)
    plan = make_plan(request, "pmost:threshold=5,publish=precise", "uniform", "none")
    assert list(plan.measured) == [(0, 1, 2)]
    assert variances(plan) == pytest.approx({(0, 1): 4, (0, 2): 4, (1, 2): 4}, rel=1e-9)
    assert plan.details["left_out"] == ["a3*a4"]
    assert plan.details["weight"] == 3


# ------------------------------------------------------------------------------------------- docs/maths.md, section 8

BINARY16 = (2,) * 16
COLUMNS = [(ADULT8, "2-way"), (ADULT8, "1..3-way"), (BINARY16, "2-way"), (BINARY16, "1..3-way")]


@pytest.mark.parametrize(
    ("column", "tables", "printed", "printed_gls"),
    [(0, 28, 2.481e6, 1.930e6), (1, 42, 1.167e8, 6.903e7), (2, 23, 2.031e6, 6.702e5), (3, 24, 1.253e8, 2.551e7)],
)
def test_section_8_bmax_uniform(column, tables, printed, printed_gls):
    request = make_request(*COLUMNS[column], epsilon=1)
    plain, consistent = (make_plan(request, "bmax", "uniform", recovery) for recovery in ("none", "gls"))
    assert len(plain.measured) == tables
    assert plain.errors.total_variance(exact=False) == pytest.approx(printed, rel=1e-3)
    assert consistent.errors.total_variance(exact=False) == pytest.approx(printed_gls, rel=1e-3)


# ------------------------------------------------------------------ the main paper's clusters, Yaroslavtsev et al. 2013


def test_yaroslavtsev_figure_1_the_cluster_of_a_and_ab_is_ab():
    request = make_request((2, 2), "a0,a0*a1", epsilon=1)
    for budgets in ("uniform", "optimal"):
        plan = make_plan(request, "cluster", budgets, "none")
        assert list(plan.measured) == [(0, 1)]
        assert plan.errors.total_variance(exact=False) == pytest.approx(16, rel=1e-9)
