"""The strategy `sketch`: its throws, its cost by brute force, its noise and its collisions by simulation."""

import math
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from helpers import LAWS, NEIGHBOURS, MemoryEngine, all_tables, exact_table, make_schema, random_codes, released
from hushcube.costs import calibrate
from hushcube.designs import SketchDesign
from hushcube.designs.request import Request
from hushcube.designs.sketch.design import ESTIMATES, Throws, row_cost
from hushcube.errors import BadInput, BudgetExceeded, NotApplicable
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.planning.plan import read_design
from hushcube.planning.planner import compare
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import Sketch

SIZES = (3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Asked(Request):
    """A request, and the strategy that it is put to."""

    strategy: Sketch = field(compare=False)


def request(sizes=SIZES, words="a0*a1*a2,a0*a1,a2,0-way", *, queries=None, neighbours="add-remove", law=None, **knobs):
    schema = make_schema(sizes)
    own = None if queries is None else query_table(schema, *queries)
    privacy = Privacy.of(neighbours=neighbours, **(law or {"epsilon": 1}))
    return Asked(Workload.parse(words, schema, own), privacy, strategy=Sketch(**knobs))


def plan(asked, budgets="optimal", recovery="gls"):
    return asked.strategy.plan(asked, budgets, recovery)


def dense(decided):
    """Rows of all repetitions, from the definition."""
    S = np.zeros((decided.groups, decided.buckets, decided.cells))
    for r, (bucket, sign) in enumerate(decided.throws):
        S[r, bucket, np.arange(decided.cells)] = sign
    return S


def marginal_rows(schema, A):
    from hushcube.designs.matrix.row_space import positions

    everything = tuple(range(len(schema)))
    return (positions(schema, everything, A) == np.arange(schema.cells(A))[:, None]).astype(float)


# ----------------------------------------------------------------------------------------------------------- throws


def test_throws_are_those_of_the_documented_hash():
    def word(seed, repetition, cell):
        mask = 2**64 - 1
        z = (seed + ((repetition << 40) + cell + 1) * 0x9E3779B97F4A7C15) & mask
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & mask
        return z ^ z >> 31

    bucket, sign = Throws(500, 8, 1000, 2**64 - 5).repetition(7)
    for cell in range(500):
        found = word(2**64 - 5, 7, cell)
        assert bucket[cell] == (found >> 32) * 1000 >> 32 and sign[cell] == 1 - 2 * (found & 1)


def test_throws_are_even_and_unlike_each_other():
    """Chi-square of 64 buckets, correlations of 100,000 signs: five standard deviations are a false alarm in 10^6."""
    cells = 100_000
    thrown = list(Throws(cells, 4, 64, seed=9))
    for bucket, sign in thrown:
        chi = ((np.bincount(bucket, minlength=64) - cells / 64) ** 2 / (cells / 64)).sum()
        assert abs(chi - 63) < 5 * math.sqrt(2 * 63)
        assert abs(sign.sum()) < 5 * math.sqrt(cells)
        assert abs((sign * (bucket % 2 * 2 - 1)).sum()) < 5 * math.sqrt(cells)
    for (b1, s1), (b2, s2) in combinations(thrown, 2):
        assert abs((s1 * s2).sum()) < 5 * math.sqrt(cells)
        assert abs((b1 == b2).mean() - 1 / 64) < 5 * math.sqrt(1 / 64 / cells)


# ------------------------------------------------------------------------------------------------------------- cost


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("cells", "t", "b"), [(12, 3, 2), (12, 5, 4), (30, 1, 30), (5, 2, 1), (1, 3, 2)])
def test_the_cost_by_brute_force(law, neighbours, cells, t, b):
    privacy = Privacy.of(neighbours=neighbours, **law)
    throws = Throws(cells, t, b, 3)
    S = np.zeros((t, b, cells), dtype=int)
    for r, (bucket, sign) in enumerate(throws):
        S[r, bucket, np.arange(cells)] = sign
    budgets = np.random.default_rng(t).exponential(size=t)
    columns = [S[:, :, c] for c in range(cells)]
    changes = columns if neighbours == "add-remove" else [x - y for x, y in combinations(columns, 2)]
    power = 1 if privacy.is_pure else 2
    brute = max(
        (sum(Fraction(b) * int((np.abs(d) ** power).sum()) for b, d in zip(budgets.tolist(), change, strict=True)))
        for change in changes
    ) if changes else 0  # fmt: skip
    assert row_cost(throws, budgets, privacy) == brute


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_the_bound_for_many_cells_is_safe(law, monkeypatch):
    from hushcube.designs.sketch import design as sketch

    privacy = Privacy.of(neighbours="replace-one", **law)
    throws, budgets = Throws(40, 4, 3, 1), np.array([0.1, 0.2, 0.3, 0.4])
    tight = row_cost(throws, budgets, privacy)
    monkeypatch.setattr(sketch, "_PAIRED_CELLS", 2)
    assert (
        tight
        <= row_cost(throws, budgets, privacy)
        == sum(map(Fraction, budgets.tolist())) * (2 if privacy.is_pure else 4)
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("estimate", ESTIMATES)
def test_plans_cost_what_the_guarantee_allows_and_read_back(law, neighbours, estimate):
    decided = plan(request(neighbours=neighbours, law=law, buckets=7, estimate=estimate))
    if decided.proof != "smoothing":
        allowed = calibrate.row_budget(decided.privacy, decided.proof)
        assert allowed * (1 - 10**-9) <= decided.row_cost(decided.budgets) <= allowed
    again = read_design(decided.to_json())
    assert isinstance(again, SketchDesign) and again.digest == decided.digest and again.estimate == estimate
    assert again.errors.total_variance(exact=True) == decided.errors.total_variance(exact=True)


def test_too_dear_plans_cannot_exist():
    decided = plan(request())
    own = (decided.marginal, decided.buckets, decided.seed, decided.estimate)
    with pytest.raises(BudgetExceeded):
        SketchDesign(decided.request, "sketch", "optimal", "gls", "direct", decided.budgets * 1.01, *own)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("buckets", 0),
        ("buckets", 2**40),
        ("seed", -1),
        ("estimate", "mode"),
        ("marginal", [0]),
        ("marginal", [0, 1, 7]),
        ("budget", [0.1, 0.2, 0.2, 0.2, 0.2]),
        ("budget", [0.2] * 4),
        ("budget", []),
        ("budget", [None] * 5),
    ],
)
def test_changed_plan_files_are_refused(field, value):
    import json

    raw = {**json.loads(plan(request(estimate="median")).to_json()), field: value}
    with pytest.raises(BadInput):
        read_design(json.dumps(raw))


# ------------------------------------------------------------------------------------------------------------ noise


@pytest.mark.parametrize("buckets", [3, 16, 2000])
def test_the_average_is_linear_and_its_variance_exact(buckets):
    """R from the definition: every table's factors, squared and summed."""
    decided = plan(request(buckets=buckets))
    S, schema = dense(decided), decided.schema
    unit = decided.errors.cell_variance_table((0, 1, 2)) * decided.groups
    estimate = S.reshape(-1, decided.cells).T / decided.groups  # cells by measured numbers
    for A, mean in zip(decided.request.marginals, decided.errors.cell_variances(exact=True), strict=True):
        R = marginal_rows(schema, A) @ estimate
        table = np.broadcast_to(decided.errors.cell_variance_table(A), schema.shape(A))
        assert table.ravel() == pytest.approx(unit * (R**2).sum(axis=1))
        assert mean == pytest.approx(unit * (R**2).sum(axis=1).mean())
        weights = np.arange(1.0, schema.cells(A) + 1)
        found = decided.errors.sum_variance(A, weights.reshape(schema.shape(A)))
        assert found == pytest.approx(unit * ((weights @ R) ** 2).sum())


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_very_many_tables_take_the_mean_over_signs(estimate, monkeypatch):
    from hushcube.designs.sketch import errors as sketch_errors

    decided = plan(request((50, 60), "<=2-way", estimate=estimate))
    exact = decided.errors.cell_variances(exact=False)
    monkeypatch.setattr(sketch_errors, "_MOST_THROWN", 0)
    sketch_errors._mean_spreads.cache_clear()
    mean = decided.errors.cell_variances(exact=False)
    sketch_errors._mean_spreads.cache_clear()
    assert exact == pytest.approx(mean, rel=0.05 if estimate == "average" else 0.2)  # the largest of five, not the mean


def test_queries_over_some_attributes():
    Q = np.random.default_rng(0).integers(-2, 3, (4, 15))
    decided = plan(request(words="queries,a1", queries=(["a0", "a2"], Q), buckets=8))
    schema = decided.schema
    R = Q @ marginal_rows(schema, (0, 2)) @ dense(decided).reshape(-1, decided.cells).T / decided.groups
    found = decided.errors.form_variances(decided.workload.queries, exact=False)
    assert found == pytest.approx(2 * decided.groups**2 * (R**2).sum(axis=1))  # rate 1/t each


def test_ranges_take_the_mean_over_signs():
    schema = Schema((Attribute(name="age", range=(0, 29)), Attribute(name="sex", codes=2)))
    workload = Workload.parse("ranges(age),prefix(age)*sex", schema)
    asked = Asked(workload, Privacy.of(epsilon=1, neighbours="add-remove"), strategy=Sketch())
    decided = plan(asked)
    lengths = decided.errors.form_variances(workload.forms[0], exact=False)
    assert lengths[0] == pytest.approx(2 * 2 * 5)  # one age, two cells, 2 t / epsilon² each
    assert lengths.max() == pytest.approx(30 * lengths[0])
    assert decided.errors.form_variances(workload.forms[1], exact=False).shape == (30, 2)


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": 1}], ids=str)
def test_simulated_noise(estimate, law):
    """The spread of 1,000 seeded releases of the same people, within 5 standard deviations.

    Collisions set repetitions apart, and the median has then more noise: it is tried without people.
    """
    asked = request(buckets=16, estimate=estimate, law=law)
    decided = plan(asked)
    codes = random_codes(SIZES, 300 if estimate == "average" else 0)
    entropy, rounds = SeededEntropy(5), 1000
    found = {A: [] for A in asked.workload.marginals}
    for _ in range(rounds):
        for A, table in all_tables(
            decided, decided.answers(measure(decided, MemoryEngine(codes, d=3), entropy=entropy))
        ).items():
            found[A].append(table)
    for A, tables in found.items():
        values = np.stack(tables)
        squares = (values - values.mean(axis=0)) ** 2
        predicted = np.broadcast_to(decided.errors.cell_variance_table(A), values.shape[1:])
        slack = 5 * squares.std(axis=0) / math.sqrt(rounds)
        if estimate == "average" or A == (0, 1, 2):
            assert (np.abs(squares.mean(axis=0) - predicted) < slack).all()
        assert (squares.mean(axis=0) < predicted + slack).all()
        assert squares.mean() == pytest.approx(predicted.mean(), rel=0.25)  # 30% more or less would be seen


# ------------------------------------------------------------------------------------------------------- collisions


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_collisions_stay_within_their_bound(estimate):
    """Over 400 seeds of the throws, without noise: mean zero, and the mean square below the bound (and not far below).

    The mean square of a cell is ||x without it||² / (b t) exactly, for the average.
    """
    asked = request(buckets=8, estimate=estimate)
    decided = plan(asked)
    codes = random_codes(SIZES, 2000)
    x = exact_table(asked.schema, codes, (0, 1, 2)).ravel().astype(float)
    seeds = 400
    errors = {A: [] for A in asked.workload.marginals}
    combine = np.mean if estimate == "average" else np.median
    for seed in range(seeds):
        thrown = list(Throws(len(x), decided.groups, decided.buckets, seed))
        tables = [s * np.bincount(b, weights=s * x, minlength=decided.buckets)[b] for b, s in thrown]
        for A, found in errors.items():
            rows = marginal_rows(asked.schema, A)
            found.append(combine([rows @ table for table in tables], axis=0) - rows @ x)
    energy = (x**2).sum()
    for A, found in errors.items():
        values = np.array(found)
        k = len(x) // asked.schema.cells(A)
        bound = decided.details["collisions"] * max(1, 2 * k - 2) * energy
        assert (np.abs(values.mean(axis=0)) < 5 * values.std(axis=0) / math.sqrt(seeds)).all() or estimate == "median"
        assert (values**2).mean() < bound
        if estimate == "average" and k == 1:
            assert (values**2).mean() == pytest.approx((energy - x**2).mean() / (8 * 5), rel=0.1)


# ---------------------------------------------------------------------------------------------------- whole releases


@pytest.mark.parametrize("estimate", ESTIMATES)
def test_a_hundred_thousand_cells(estimate):
    """Few people in many cells: heavy cells stand out, and nothing dense is made."""
    sizes = (100, 1000)
    codes = np.concatenate([random_codes(sizes, 1000), np.tile([[7, 77]], (5000, 1))])
    asked = request(sizes, "a0*a1,a0,0-way", estimate=estimate)
    decided = plan(asked)
    assert decided.cells == 100_000 and decided.buckets == 2**16
    release = released(decided, measure(decided, MemoryEngine(codes), entropy=SeededEntropy(2)))
    heavy = release.table("a0*a1")
    assert heavy.values[7, 77] == pytest.approx(5000, abs=25 * heavy.std_errors[7, 77] + 100)
    total = release.estimate("a0*a1")
    assert total.std_error > heavy.std_errors[0, 0]
    assert release.table("a0").std_errors.shape == (100,)


def test_forms_are_medians_of_their_own():
    Q = [[1] * 60, [1] * 30 + [0] * 30]
    decided = plan(request(words="queries", queries=(None, Q), buckets=4, estimate="median"))
    measurement = measure(decided, MemoryEngine(random_codes(SIZES, 100)), entropy=SeededEntropy(2))
    z = measurement.values[0]
    own = np.median([np.array(Q) @ (s * z[r][b]) for r, (b, s) in enumerate(decided.throws)], axis=0)
    release = released(decided, measurement)
    assert release.table("queries").values.tolist() == own.tolist()


def test_auto_and_all_never_choose_it():
    asked = request(words="a0*a1", repetitions=1)
    every = compare(asked, strategy="all")
    assert "sketch" in {c.plan.strategy for c in every.candidates} and every.chosen.strategy != "sketch"
    assert "sketch" not in {c.plan.strategy for c in compare(asked, strategy="auto").candidates}
    assert compare(asked, strategy="sketch").chosen.strategy == "sketch"


def test_bad_knobs_are_refused():
    with pytest.raises(BadInput, match="odd"):
        plan(request(estimate="median", repetitions=4))
    with pytest.raises(BadInput, match="fewer"):
        plan(request(buckets=2**26, repetitions=2))
    with pytest.raises(NotApplicable, match="16,777,216"):
        compare(request((5000, 5000), "a0,a1"), strategy="sketch")
