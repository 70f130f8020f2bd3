"""Facts on the table of classes, judged by dense programs over every cell of the full table."""

import sys
import time
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from helpers import make_schema
from hushcube.errors import FactsError, TimeLimitReached
from hushcube.faces import facts as public
from hushcube.faces.atoms import System, atoms, fixed_cells
from hushcube.faces.facts import check, rake, whole_totals
from hushcube.lattice.family import Family
from hushcube.model.attribute import Attribute
from hushcube.model.facts import Fact, Facts
from hushcube.model.schema import Schema
from hushcube.progress import Clock

CLOCK = Clock()
SIZES = [(2, 3, 2), (2, 2, 2), (4,), (3, 1, 2), (2, 2, 2, 2)]


def membership(table):
    """The facts as rows over the atoms, as triplets (number of the fact, atom, 1)."""
    found = [table.boxes(m, known.cells, known.ids, -1) for m, known in table.facts.by_marginal.items()]
    columns = [np.flatnonzero(numbers >= 0) for numbers in found]
    rows = [numbers[at] for numbers, at in zip(found, columns, strict=True)]
    none = np.zeros(0, np.int64)
    return np.concatenate([none, *rows]), np.concatenate([none, *columns]), np.ones(sum(map(len, rows)))


def cells_of(schema):
    return list(product(*map(range, schema.sizes)))


def dense(facts):
    """The facts as rows over every cell of the full table."""
    cells = cells_of(facts.schema)
    rows = [[all(cell[i] == v for i, v in zip(f.marginal, f.cell, strict=True)) for cell in cells] for f in facts.facts]
    return np.array(rows, float).reshape(len(facts.facts), len(cells)), np.array([f.count for f in facts.facts], float)


def can_hold(facts, whole):
    """The judge of `check`: a program over the full table."""
    rows, counts = dense(facts)
    if not len(counts):
        return True
    n = rows.shape[1]
    found = milp(
        np.zeros(n),
        constraints=LinearConstraint(rows, counts, counts),
        bounds=Bounds(0, np.inf),
        integrality=np.full(n, int(whole)),
    )
    assert found.status in (0, 2)
    return found.status == 0


def nearest(table, wanted, total):
    """The judge of `whole_totals`: the smallest distance, or None."""
    labels = table.labels(table.facts.schema.sizes).ravel()
    rows, counts = dense(table.facts)
    n, k = rows.shape[1], len(table)
    of_atom = np.equal.outer(np.arange(k), labels).astype(float)
    if total is not None:
        rows, counts = np.vstack([rows, np.ones(n)]), np.append(counts, total)
    eye = np.eye(k)
    limits = [
        LinearConstraint(np.hstack([of_atom, -eye]), -np.inf, wanted),
        LinearConstraint(np.hstack([-of_atom, -eye]), -np.inf, -wanted),
    ]
    if len(counts):
        limits.append(LinearConstraint(np.hstack([rows, np.zeros((len(counts), k))]), counts, counts))
    found = milp(
        np.append(np.zeros(n), np.ones(k)),
        constraints=limits,
        integrality=np.append(np.ones(n), np.zeros(k)),
        bounds=Bounds(0, np.inf),
        options={"mip_rel_gap": 0},
    )
    assert found.status in (0, 2)
    return found.fun if found.status == 0 else None


@st.composite
def some_facts(draw, *, true=None):
    """Random facts: of a random table where `true`, else with any counts."""
    schema = make_schema(draw(st.sampled_from(SIZES)))
    true = draw(st.booleans()) if true is None else true
    table = np.array(draw(st.lists(st.integers(0, 3), min_size=48, max_size=48)))[: int(np.prod(schema.sizes))]
    table = table.reshape(schema.sizes)
    found = {}
    for _ in range(draw(st.integers(0, 7))):
        marginal = tuple(sorted(draw(st.sets(st.integers(0, len(schema) - 1)))))
        cell = tuple(draw(st.integers(0, schema.sizes[i] - 1)) for i in marginal)
        at = tuple(cell[marginal.index(i)] if i in marginal else slice(None) for i in range(len(schema)))
        found[marginal, cell] = int(table[at].sum()) if true else draw(st.integers(0, 4))
    return Facts(schema, tuple(Fact(*where, count) for where, count in found.items()))


HALVES = Facts.of(  # a pair of each two of x, y, z: 1 person each, so half a person everywhere
    make_schema((2, 2, 2)),
    zeros=[dict(zip(("a0", "a1", "a2"), cell, strict=True)) for cell in product((0, 1), repeat=3) if sum(cell) != 1],
    totals=[({f"a{i}": 0}, 1) for i in range(3)],
)


@given(some_facts())
def test_facts_hold_just_where_a_table_of_whole_numbers_satisfies_them(facts):
    if can_hold(facts, whole=True):
        check(facts, CLOCK)
    else:
        with pytest.raises(FactsError) as caught:
            check(facts, CLOCK)
        fractions = can_hold(facts, whole=False)
        assert ("fractions of people would" in caught.value.problem) == fractions
        named = [
            f
            for f in facts.facts
            if facts.sentence(f)[:-1] in caught.value.problem.replace(" (", "; ").split(": ", 1)[1].split("; ")
        ]
        if "more" not in caught.value.problem:  # what is named contradicts itself, and each of it is needed
            assert not can_hold(Facts(facts.schema, tuple(named)), whole=fractions)
            for out in named:
                assert can_hold(Facts(facts.schema, tuple(f for f in named if f != out)), whole=fractions)


PEOPLE = Schema(
    (
        Attribute(name="sex", values=("Female", "Male")),
        Attribute(name="pregnant", values=("yes", "no")),
        Attribute(name="age", range=(0, 99)),
    )
)


def contradiction(**declared):
    with pytest.raises(FactsError) as caught:
        check(Facts.of(PEOPLE, **declared), CLOCK)
    assert caught.value.field == "facts"
    assert caught.value.fix == "correct or remove one of them"
    return caught.value.problem


def test_more_women_than_people():
    assert contradiction(zeros=[{"sex": "Male", "pregnant": "yes"}], totals=[({}, 10), ({"sex": "Female"}, 12)]) == (
        "these contradict each other: The number of people with sex = Female is 12; The number of people is 10"
    )


def test_people_in_a_cell_declared_empty():
    problem = contradiction(
        zeros=[{"age": [3, 4, 5], "sex": "Male"}], totals=[({"age": 4, "sex": "Male", "pregnant": "no"}, 2), ({}, 9)]
    )
    assert problem == (
        "these contradict each other: The number of people with sex = Male and pregnant = no and age = 4 is 2; "
        "No person has sex = Male and age = 4"
    )


def test_a_long_contradiction_is_cut():
    ages = [str(age) for age in range(100)]
    problem = contradiction(zeros=[{"age": ages, "sex": "Male"}], totals=[({"sex": "Male"}, 2)])
    assert problem.startswith("these contradict each other: The number of people with sex = Male is 2; No person has")
    assert problem.endswith("; and 96 more")
    assert problem.count("No person has") == 4


def test_fractions_of_people_are_not_enough():
    assert can_hold(HALVES, whole=False)
    assert not can_hold(HALVES, whole=True)
    with pytest.raises(FactsError, match=r"\(fractions of people would satisfy them, whole numbers do not\)"):
        check(HALVES, CLOCK)
    doubled = Facts(HALVES.schema, tuple(Fact(f.marginal, f.cell, 2 * f.count) for f in HALVES.facts))
    check(doubled, CLOCK)
    with pytest.raises(FactsError, match="no table in whole numbers"):
        whole_totals(atoms(HALVES), np.ones(8), None, CLOCK)


@pytest.mark.parametrize("count", [10**6, 10**9, 10**12])
def test_large_counts_are_decided_exactly(count):
    half = count // 2
    parts = [({"sex": "Female"}, half), ({"sex": "Male"}, count - half), ({"age": 7}, half - 1)]
    check(Facts.of(PEOPLE, totals=[*parts, ({}, count)]), CLOCK)
    with pytest.raises(FactsError, match="these contradict"):
        check(Facts.of(PEOPLE, totals=[*parts, ({}, count - 1)]), CLOCK)


def test_when_time_runs_out_the_contradiction_is_told_without_names(monkeypatch):
    def late(*_):
        raise TimeLimitReached(1.0, "naming")

    monkeypatch.setattr(public, "_smallest", late)
    assert contradiction(totals=[({}, 1), ({"sex": "Male"}, 2)]) == "they contradict each other"


def test_the_clock_stops_each_of_them():
    over = Clock(0.001, started=time.monotonic() - 1)
    facts = Facts.of(PEOPLE, totals=[({}, 10), ({"sex": "Male"}, 2)])
    for work in (
        lambda: check(facts, over),
        lambda: whole_totals(atoms(facts), np.ones(2), None, over),
        lambda: rake(np.ones(PEOPLE.sizes), facts, over),
    ):
        with pytest.raises(TimeLimitReached):
            work()


def test_too_many_kinds_of_people_are_refused():
    schema = make_schema((600, 600))
    labels = [str(i) for i in range(500)]
    with pytest.raises(FactsError, match="they tell 251,001 kinds of people apart, more than 200,000"):
        atoms(Facts.of(schema, zeros=[{"a0": labels, "a1": "0"}, {"a0": "0", "a1": labels}]))


def test_zeros_and_the_total_need_no_program(monkeypatch):
    monkeypatch.setitem(sys.modules, "highspy", None)
    zeros = [{"sex": "Male", "pregnant": "yes"}]
    facts = Facts.of(PEOPLE, zeros=zeros, totals=[({}, 10)])
    check(facts, CLOCK)
    table = atoms(facts)
    assert whole_totals(table, np.array([2.5, 4.6, 1.0, 2.2]), None, CLOCK).tolist() == [3, 5, 0, 2]
    assert whole_totals(atoms(Facts.none(PEOPLE)), np.array([7.3]), 9, CLOCK).tolist() == [9]
    assert whole_totals(atoms(Facts.none(PEOPLE)), np.array([-7.3]), None, CLOCK).tolist() == [0]
    assert rake(np.ones(PEOPLE.sizes), facts, CLOCK).sum() == pytest.approx(10)
    empty = Facts.of(PEOPLE, zeros=[{"sex": ["Male", "Female"]}])
    check(empty, CLOCK)
    with pytest.raises(FactsError, match="these contradict"):
        check(Facts.of(PEOPLE, zeros=[{"sex": ["Male", "Female"]}], totals=[({}, 10)]), CLOCK)
    for total in (3, -1):
        with pytest.raises(FactsError, match="no table in whole numbers"):
            whole_totals(atoms(empty), np.ones(2), total, CLOCK)
    with pytest.raises(FactsError, match="no table in whole numbers"):
        whole_totals(table, np.ones(4), 11, CLOCK)


@given(some_facts())
def test_atoms_are_the_cells_that_facts_tell_apart(facts):
    table = atoms(facts)
    sizes = facts.schema.sizes
    rows, _ = dense(facts)
    labels = table.labels(sizes)
    assert labels.shape == sizes
    classes = facts.classes()
    expected = np.zeros(sizes, int)
    for axis in range(len(sizes)):
        expected = expected * table.shape[axis] + classes[axis].reshape([-1] + [1] * (len(sizes) - axis - 1))
    assert (labels == expected).all()
    zero = np.array([f.count == 0 for f in facts.facts], bool)
    declared = rows[zero].any(axis=0)
    assert (table.allowed[labels.ravel()] == ~declared).all()
    matrix = np.zeros((len(facts.facts), len(table)))
    fact, atom, entry = membership(table)
    matrix[fact, atom] = entry
    assert (matrix[:, labels.ravel()] == rows).all()
    assert len(entry) == matrix.sum()
    values = np.random.default_rng(0).random(sizes)
    assert table.sums(values) == pytest.approx(np.bincount(labels.ravel(), values.ravel(), len(table)), rel=1e-13)
    assert (table.cells == np.bincount(labels.ravel(), minlength=len(table))).all()
    with pytest.raises(ValueError, match="is not the shape"):
        table.labels((*sizes, 2))


def test_schemas_of_many_attributes_have_atoms_too():
    schema = make_schema((3,) * 100)
    facts = Facts.of(schema, zeros=[{"a3": 1, "a90": [0, 2]}], totals=[({}, 5), ({"a90": 2}, 3)])
    table = atoms(facts)
    assert len(table) == 6
    check(facts, CLOCK)
    found = whole_totals(table, np.full(6, 1.0), None, CLOCK)
    assert (found.sum(), found.reshape(2, 3)[:, 2].sum()) == (5, 3)


@pytest.mark.slow
@settings(max_examples=100)
@given(some_facts(), st.none() | st.integers(0, 30), st.integers(0, 2**32 - 1), st.sampled_from([0.5, 5.0]))
def test_whole_totals_are_the_nearest(facts, total, seed, scale):
    table = atoms(facts)
    wanted = np.round(np.random.default_rng(seed).normal(scale, scale, len(table)), 3)
    best = nearest(table, wanted, total)
    if best is None:
        with pytest.raises(FactsError, match="no table in whole numbers"):
            whole_totals(table, wanted, total, CLOCK)
        return
    found = whole_totals(table, wanted, total, CLOCK)
    assert found.dtype == np.int64
    assert (found >= 0).all()
    assert not found[~table.allowed].any()
    rows, columns, entries = membership(table)
    assert (np.bincount(rows, found[columns] * entries, len(facts.facts)) == [f.count for f in facts.facts]).all()
    assert total is None or found.sum() == total
    assert np.abs(found - wanted).sum() == pytest.approx(best, rel=1e-4, abs=1e-6)


def test_sums_that_satisfy_the_facts_move_by_less_than_one_person():
    schema = make_schema((5, 4, 3))
    table = np.random.default_rng(1).gamma(1.0, 20.0, schema.sizes)
    true = np.floor(table).astype(int)
    totals = [({"a0": i}, int(true[i].sum())) for i in range(5)] + [
        ({"a1": j}, int(true[:, j].sum())) for j in range(4)
    ]
    facts = Facts.of(schema, totals=totals)
    fine = atoms(facts)
    wanted = fine.sums(rake(table, facts, CLOCK))
    assert np.abs(whole_totals(fine, wanted, None, CLOCK) - wanted).max() < 1


@pytest.mark.parametrize("few", [5, 1_000])
@pytest.mark.parametrize("seed", range(4))
def test_fractions_of_the_linear_program_are_rounded_to_the_nearest(seed, few, monkeypatch):
    monkeypatch.setattr(public, "_FEW", few)
    schema = make_schema((4, 5, 3))
    rng = np.random.default_rng(seed)
    true = rng.poisson(3.0, schema.sizes)
    totals = [({f"a{axis}": v}, int(true.take(v, axis).sum())) for axis in range(3) for v in range(schema.sizes[axis])]
    facts = Facts.of(schema, totals=totals)
    check(facts, CLOCK)
    table = atoms(facts)
    for spread in (0.3, 2.0):
        wanted = np.maximum(true.ravel() + rng.normal(0, spread, true.size), 0)
        found = whole_totals(table, wanted, None, CLOCK)
        assert np.abs(found - wanted).sum() == pytest.approx(nearest(table, wanted, None), rel=1e-4)


def test_a_rounding_that_goes_too_far_is_not_taken():
    schema = make_schema((2, 2, 2))
    facts = Facts.of(schema, totals=[({f"a{i}": 0}, 1) for i in range(3)])
    system = System.of(atoms(facts), np.ones(3, bool))
    halves = np.array([0, 0.5, 0.5, 0, 0.5, 0, 0, 0])  # half a person in each pair: 1.5 away from whole numbers,
    assert public._rounded(system, halves, halves, CLOCK) is None  # but whole people are 2.5 away
    found = whole_totals(atoms(facts), halves, None, CLOCK)
    assert np.abs(found - halves).sum() == pytest.approx(2.5) == nearest(atoms(facts), halves, None)
    whole = np.array([1.0, 0, 0, 0, 0, 0, 0, 0])
    assert (public._rounded(system, whole, whole, CLOCK) == whole).all()


@pytest.mark.parametrize("total", [0, 17, 10**12])
def test_a_far_total_is_shared_out(total):
    facts = Facts.of(make_schema((3, 3)), zeros=[{"a0": 0, "a1": 0}, {"a0": 1, "a1": 1}])
    wanted = np.array([0, 40.4, 10.3, 0, 0, 5.5, 7.0, 2.9, 1.0])
    found = whole_totals(atoms(facts), wanted, total, CLOCK)
    assert found.sum() == total
    assert (found >= 0).all()
    assert found[0] == found[4] == 0


@pytest.mark.slow
@given(some_facts(true=True), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.5]))
def test_raking_satisfies_all_facts_and_is_the_nearest_in_relative_entropy(facts, seed, empty):
    rng = np.random.default_rng(seed)
    table = rng.gamma(1.0, 3.0, facts.schema.sizes) * (rng.random(facts.schema.sizes) >= empty)
    found = rake(table, facts, CLOCK)
    rows, counts = dense(facts)
    assert found.shape == table.shape
    assert (found >= 0).all()
    assert np.abs(rows @ found.ravel() - counts) == pytest.approx(0, abs=1e-11 * max(1, counts.max(initial=1)))
    assert not found.ravel()[rows[counts == 0].any(axis=0)].any()
    kept = (found.ravel() > 0) & (table.ravel() > 0)  # there log(found / table) is a combination of the facts
    if not ((found > 0) & (table == 0)).any():
        logs = np.log(found.ravel()[kept] / table.ravel()[kept])
        residue = logs - rows[:, kept].T @ np.linalg.lstsq(rows[:, kept].T, logs, rcond=None)[0]
        assert np.abs(residue) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("newton", [True, False])
def test_raking_where_facts_force_a_zero_that_scaling_only_nears(newton, monkeypatch):
    if not newton:
        monkeypatch.setattr(public, "_DENSE", 0)
    facts = Facts.of(PEOPLE, totals=[({}, 10), ({"sex": "Female"}, 10), ({"sex": "Female", "age": 4}, 1)])
    found = rake(np.ones(PEOPLE.sizes), facts, CLOCK)
    assert found[0].sum() == pytest.approx(10, rel=1e-12)
    assert found[0, :, 4] == pytest.approx(0.5, rel=1e-12)
    assert found[1].sum() <= (1e-10 if newton else 0)


def test_raking_converges_where_scaling_alone_is_slow():
    facts = Facts.of(PEOPLE, totals=[({}, 10_000), ({"sex": "Female"}, 9_999)])
    found = rake(np.ones(PEOPLE.sizes), facts, CLOCK)
    assert found.sum() == pytest.approx(10_000, rel=1e-12)
    assert found[1].sum() == pytest.approx(1, rel=1e-7)


def test_mass_is_put_where_facts_need_it():
    table = np.zeros(PEOPLE.sizes)
    table[0, 1, 5] = 4.0
    zeros = [{"sex": "Male", "pregnant": "yes"}]
    facts = Facts.of(PEOPLE, zeros=zeros, totals=[({}, 10), ({"sex": "Female"}, 4)])
    found = rake(table, facts, CLOCK)
    assert (found[0] == table[0]).all()
    assert found[1, 1] == pytest.approx(0.06)  # six men, alike in a hundred ages
    assert not found[1, 0].any()
    with pytest.raises(FactsError, match="no table satisfies them"):
        rake(table, Facts.of(PEOPLE, zeros=zeros, totals=[({"sex": "Male", "pregnant": "yes", "age": 3}, 4)]), CLOCK)


def test_nothing_known_changes_nothing():
    table = np.random.default_rng(0).random(PEOPLE.sizes)
    assert (rake(table, Facts.none(PEOPLE), CLOCK) == table).all()
    check(Facts.none(PEOPLE), CLOCK)
    fixed = fixed_cells(Facts.none(PEOPLE), Family.of([(), (0,), (0, 2)], PEOPLE.sizes))
    assert fixed.extra == ()
    assert all(np.isnan(batch).all() for batch in fixed.batches)


@given(some_facts(true=True), st.integers(0, 2**32 - 1))
def test_fixed_cells_are_known_counts_and_all_cells_that_zeros_make_empty(facts, seed):
    d = len(facts.schema)
    every = [m for k in range(d + 1) for m in combinations(range(d), k)]
    rng = np.random.default_rng(seed)
    members = [m for m in every if rng.random() < 0.6]
    family = Family.of(members, facts.schema.sizes)
    fixed = fixed_cells(facts, family)
    rows, counts = dense(facts)
    free = ~rows[counts == 0].any(axis=0).reshape(facts.schema.sizes)
    known = {(f.marginal, f.cell): f.count for f in facts.facts}
    assert len(fixed.batches) == len(family.batches)
    for batch, values in zip(family.batches, fixed.batches, strict=True):
        assert values.shape == (len(batch.ids), *batch.shape)
        for at, marginal in enumerate(map(tuple, batch.rows.tolist())):
            for cell in np.ndindex(batch.shape):
                inside = free[tuple(cell[marginal.index(i)] if i in marginal else slice(None) for i in range(d))]
                expected = known.get((marginal, cell), np.nan if inside.any() else 0)
                np.testing.assert_equal(values[(at, *cell)], expected)
    for marginal in {f.marginal for f in facts.facts}:
        is_known = any(f.count for f in facts.facts if f.marginal == marginal)
        held = marginal in members or (not is_known and any(set(marginal) <= set(m) for m in members))
        assert (marginal in fixed.extra) == (not held)
    assert len(set(fixed.extra)) == len(fixed.extra)
