"""Selective runs: their cost, that noisy answers alone decide, and that the last look tells the truth."""

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from datasets import adult8_schema, coded
from helpers import NEIGHBOURS, make_request
from hushcube.costs import calibrate
from hushcube.designs import SelectedDesign, SelectiveLevels
from hushcube.designs.request import OBJECTIVES, Request
from hushcube.designs.selective.design import misfit_cost
from hushcube.experiments.truth import HeldTables, wanted
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.model.arrays import position_rows
from hushcube.model.edition import Edition
from hushcube.model.facts import Facts
from hushcube.model.noise import GAUSSIAN, LAPLACE
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.plan import Plan
from hushcube.private.adaptive import selecting
from hushcube.private.adaptive.selecting import misfits_of
from hushcube.private.engines import open_source
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from hushcube.strategies.selective import Selective
from nested import nested_request

AIMS = [("total", None), ("max", None), ("total", 5)]
"""Objectives, with sanity bounds."""
LAWS = [{"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}, {"epsilon": 2}]


def counted(design, codes):
    """The exact tables of people."""
    sizes, tables = design.schema.sizes, {}
    for m in wanted(design.workload, [design]):
        if m:
            flat = np.ravel_multi_index(tuple(codes[:, i] for i in m), [sizes[i] for i in m])
            shape = [sizes[i] for i in m]
            tables[m] = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    return HeldTables(len(codes), tables)


def people(sizes, many, seed):
    """People whose attributes depend on each other."""
    rng = np.random.default_rng(seed)
    first = rng.integers(0, sizes[0], many)
    columns = [
        first,
        *((first * n // sizes[0] + (rng.random(many) < 0.3) * rng.integers(0, n, many)) % n for n in sizes[1:]),
    ]
    return np.stack(columns, axis=1)


def planned(sizes, words, objective="total", bound=None, **given):
    request = replace(make_request(sizes, words, **given), objective=objective)
    return Selective(sanity_bound=bound).plan(request, "optimal", "gls")


def face_errors(design, counts, seed, method="auto"):
    """|face - truth| of every cell of the tables asked for, and the truth, a table each."""
    made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
    tables = make_face(made, measurement, FaceValue("nonnegative", method=method), Clock()).tables
    found = []
    for batch in design.request.marginals.batches:
        exact = counts.tables(batch.rows).reshape(len(batch.rows), *batch.shape)
        found += zip(np.abs(tables.tables(batch.rows, batch.shape) - exact), exact, strict=True)
    return found


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_runs_end_as_plans_that_are_checked_like_any_other(law, neighbours):
    design = planned((3, 4, 2, 1), "<=3-way", neighbours=neighbours, **law)
    made, measurement = draw(design, counted(design, people((3, 4, 2, 1), 500, 1)), entropy=SeededEntropy(1))
    assert isinstance(made, SelectedDesign)
    allowed = calibrate.row_budget(made.privacy, made.proof)
    spent = made.row_cost(made.budgets)
    assert allowed * Fraction(9, 10) < spent <= allowed, "the budget is used, and no more"
    assert (made.budgets[: len(made.measured)] >= design.budgets).all(), "every set gets what it is sure of"
    again = Plan.from_json(Plan.of_counts(made).to_json()).count
    assert again.digest == made.digest
    assert [np.shape(values) for values in measurement.values] == again.shapes
    answers = again.answers(measurement)
    total = answers.tables(np.zeros((1, 0), np.int32), ())
    assert abs(float(total.reshape(-1)[0]) - 500) < (1e-9 if neighbours == "replace-one" else 300)


@given(
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4).map(tuple),
    words=st.sampled_from(["2-way", "<=2-way", "cube", "1-way"]),
    law=st.sampled_from(LAWS),
    neighbours=st.sampled_from(NEIGHBOURS),
    rows=st.integers(1, 3),
    aim=st.sampled_from(AIMS),
    many=st.integers(0, 300),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_no_run_costs_more_than_is_allowed(sizes, words, law, neighbours, rows, aim, many, seed):
    design = planned(sizes, words, *aim, neighbours=neighbours, rows_per_person=rows, **law)
    made, _ = draw(design, counted(design, people(sizes, many, seed)), entropy=SeededEntropy(seed))
    assert made.row_cost(made.budgets) <= calibrate.row_budget(made.privacy, made.proof)


@pytest.mark.parametrize("law", LAWS)
def test_looks_cost_no_more_than_their_detail_is_worth(law):
    sizes = (3, 4, 2)
    design = planned(sizes, "<=3-way", neighbours="add-remove", **law)
    allowed = calibrate.row_budget(design.privacy, design.proof)
    shares = {}
    for many in (200, 200_000):
        made, measurement = draw(design, counted(design, people(sizes, many, 1)), entropy=SeededEntropy(1))
        noisy = float(measurement.values[0].reshape(-1)[0])
        for look, (n, budget) in enumerate(zip(made.looks, made.misfit_budgets.tolist(), strict=True)):
            shares[many, look] = misfit_cost(design.privacy, n, budget) / allowed
            if look < 2:
                noise = np.sqrt(design.law.formula(np.asarray(budget)))
                assert noise >= 0.004 * noisy * (1 - 1e-9), "no look is finer than a detail"
        spent = made.row_cost(made.budgets)
        assert allowed * Fraction(99, 100) < spent <= allowed, "what looks leave is spent on tables"
    for look in (0, 1):
        assert shares[200, look] == pytest.approx(0.05)
        assert shares[200_000, look] < Fraction(1, 100)
    assert shares[200_000, 2] == pytest.approx(0.025), "the last look is as fine as it was asked to be"


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("words", ["2-way", "<=3-way", "1-way"])
def test_whatever_a_run_looks_at_is_counted(law, words):
    """The last look is at tables with attributes of one value, too, which no set is about."""
    sizes = (3, 1, 4)
    design = planned(sizes, words, neighbours="add-remove", **law)
    codes = people(sizes, 300, 1)
    rows = pa.table({name: codes[:, i] for i, name in enumerate(design.schema.names)})
    made, measurement = draw(design, open_source(rows).count(design.schema, design.counted), entropy=SeededEntropy(1))
    assert measurement.values[-1].shape == (len(made.request.marginals),)


def test_a_row_moves_a_misfit_by_one_at_most():
    rng = np.random.default_rng(1)
    for guess in (np.zeros((1, 2, 3)), rng.gamma(1.0, 2.0, (1, 2, 3)), np.full((1, 2, 3), 0.5)):
        for exact in (rng.integers(0, 4, (1, 2, 3)) for _ in range(20)):
            here = misfits_of(exact, guess)[0]
            cells = list(product(range(2), range(3)))
            for cell in cells:
                more = exact.copy()
                more[(0, *cell)] += 1
                assert abs(misfits_of(more, guess)[0] - here) == 1
            for one, other in product(cells, cells):
                moved = exact.copy()
                moved[(0, *one)] -= 1
                moved[(0, *other)] += 1
                assert abs(misfits_of(moved, guess)[0] - here) <= 2


class Replay:
    """Noise that makes the answers of another run come out again, whatever the data is: a transcript, replayed."""

    def __init__(self, monkeypatch):
        self.monkeypatch, self.answers, self.recording = monkeypatch, [], True
        self.drawn, self.with_noise = selecting.drawn, selecting.with_noise

    def run(self, design, counts):
        told = iter(list(self.answers))
        fine = selecting._Fine(counts, design.finest) if isinstance(design, SelectiveLevels) else counts

        def answered(make):
            if self.recording:
                self.answers.append(make())
                return self.answers[-1]
            return next(told)

        def block_noise(own, block, entropy, noise):
            shape = own.schema.shape(tuple(block.marginals[0].tolist()))
            tables = fine.tables(block.marginals).reshape(len(block.marginals), *shape)
            exact = block.transform.apply(tables).reshape(len(block.budgets), block.columns)
            return answered(lambda: exact + self.drawn(own, block, entropy, noise)) - exact

        replayed = lambda *given: answered(lambda: self.with_noise(*given))  # noqa: E731
        self.monkeypatch.setattr(selecting, "with_noise", replayed)
        self.monkeypatch.setattr(selecting, "drawn", block_noise)
        made = draw(design, counts, entropy=SeededEntropy(7))
        self.recording = False
        return made


def check_decisions(design, monkeypatch):
    """On neighbouring data, and on quite other data, the same noisy answers lead to the same budgets."""
    sizes = design.schema.sizes
    replay, codes = Replay(monkeypatch), people(sizes, 400, 1)
    made, measurement = replay.run(design, counted(design, codes))
    for other in (codes[1:], people(sizes, 50, 9)):
        again, same = replay.run(design, counted(design, other))
        assert again.budgets.tolist() == made.budgets.tolist()
        assert again.digest == made.digest
        assert all((a == b).all() for a, b in zip(same.values, measurement.values, strict=True))


@pytest.mark.parametrize("aim", AIMS)
def test_decisions_are_functions_of_the_noisy_answers(monkeypatch, aim):
    sizes = (3, 4, 2)
    check_decisions(planned(sizes, "<=3-way", *aim, rho="0.1"), monkeypatch)


def test_noise_of_misfits_is_that_of_their_budget(monkeypatch):
    """What is asked of the sampler is the variance that the cost assumes: 1 / (2 budget)."""
    asked = []

    def gaussian(parameters, multipliers, entropy):
        asked.append((parameters[0], multipliers.tolist()))
        return np.zeros((1, len(multipliers)), np.int64)

    monkeypatch.setattr(selecting, "discrete_gaussian", gaussian)
    design = planned((3, 4, 2), "<=3-way", rho="0.1")
    made, _ = draw(design, counted(design, people((3, 4, 2), 400, 1)), entropy=SeededEntropy(1))
    assert [parameter for parameter, _ in asked] == [1 / (2 * Fraction(b)) for b in made.misfit_budgets.tolist()]
    assert [len(ones) for _, ones in asked] == made.looks
    assert all(set(ones) == {1} for _, ones in asked)


@pytest.mark.parametrize("law", [GAUSSIAN, LAPLACE])
def test_every_misfit_gets_its_own_noise(monkeypatch, law):
    marks = np.arange(1, 6) * 1000
    monkeypatch.setattr(selecting, "discrete_gaussian", lambda parameters, ones, entropy: marks[None])
    monkeypatch.setattr(selecting, "discrete_laplace", lambda rates, many, entropy: marks[None])
    noisy = selecting.with_noise(np.arange(5), 0.5, law, SeededEntropy(1))
    assert noisy.tolist() == [1000, 2001, 3002, 4003, 5004]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("order", [1.01, 2, 8])
def test_the_law_of_a_look_keeps_its_cost(neighbours, order):
    """All Renyi divergences of a tiny look, summed up over its outcomes, on every pair of neighbouring tables."""
    privacy = make_request((2, 2), "2-way", neighbours=neighbours, rho=1).privacy
    budget, guess = 0.2, np.full((1, 2, 2), 1.3)
    k = np.arange(-60, 61).astype(np.float64)
    mass = -budget * k**2  # logarithms; the parameter is 1 / (2 budget)
    mass -= np.logaddexp.reduce(mass)
    worst = 0.0
    for cells in product(range(3), repeat=4):
        exact = np.array(cells).reshape(1, 2, 2)
        for one, other in product(range(4), repeat=2):
            moved = exact.copy().reshape(-1)
            moved[one] += 1
            if neighbours == "replace-one":
                moved[other] -= 1
            shift = int(misfits_of(moved.reshape(1, 2, 2), guess)[0] - misfits_of(exact, guess)[0])
            p, q = mass[10:-10], mass[10 - shift : len(mass) - 10 - shift]
            worst = max(worst, float(np.logaddexp.reduce(order * p + (1 - order) * q)) / (order - 1))
    cost = float(misfit_cost(privacy, 1, budget))
    assert worst <= order * cost * (1 + 1e-9)
    assert worst >= order * cost * 0.999, "what is charged is not more than what can be lost"


@pytest.mark.slow
def test_the_last_look_covers_the_error_of_the_face():
    """False alarms: 250 looks of coverage 97.5% miss more than 16 of them with a probability below 0.1%."""
    sizes = (4, 5, 3, 2)
    design = planned(sizes, "2-way", rho="0.05")
    counts, missed, below = counted(design, people(sizes, 2_000, 3)), 0, 0
    family = design.request.marginals
    for seed in range(42):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        face = make_face(made, measurement, FaceValue("nonnegative"), Clock())
        told = face.report["measured_errors"]
        for batch in family.batches:
            exact = counts.tables(batch.rows)
            apart = np.abs(face.tables.tables(batch.rows, batch.shape) - exact).reshape(len(exact), -1).sum(axis=1)
            for row, error in zip(batch.rows.tolist(), apart.tolist(), strict=True):
                seen = told["tables"][design.schema.describe(tuple(row))]
                missed += error > seen["at_most"] + batch.cells / 2
                below += error < seen["seen"]
    assert missed <= 16
    assert 60 <= below <= 190, "the look is unbiased: it is above the error about as often as below"


def test_face_values_are_nearer_to_the_truth_than_without_an_opinion():
    sizes = (6, 7, 5, 4)
    design = planned(sizes, "3-way", rho="0.002")
    codes = people(sizes, 3_000, 5)
    counts, family = counted(design, codes), design.request.marginals
    errors = {"auto": 0.0, "local": 0.0}
    for seed in range(3):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        for method in errors:
            tables = make_face(made, measurement, FaceValue("nonnegative", method=method), Clock()).tables
            errors[method] += sum(
                float(np.abs(tables.tables(b.rows, b.shape) - counts.tables(b.rows)).sum()) for b in family.batches
            )
    assert errors["auto"] < 0.7 * errors["local"]


@pytest.mark.parametrize(
    ("words", "rho", "part"), [("2-way", "0.001", 0.9), (["2-way", "a3*a4=8"], "0.005", 0.9), ("3-way", "0.01", 0.97)]
)
def test_the_objective_max_makes_the_worst_table_better(words, rho, part):
    sizes = (12, 9, 3, 2, 2)
    worst = {}
    for objective in OBJECTIVES:
        design = planned(sizes, words, objective, rho=rho)
        counts, weights = counted(design, people(sizes, 5_000, 5)), design.request.weights
        rows = np.concatenate([batch.ids for batch in design.request.marginals.batches])
        runs = [[error.sum() for error, _ in face_errors(design, counts, seed)] for seed in range(5)]
        worst[objective] = np.mean([(weights[rows] * run).max() for run in runs])
    assert worst["max"] < part * worst["total"]


class Held:
    """Tables of people as an earlier edition."""

    def __init__(self, codes):
        self.codes = codes

    def within(self, schema, wanted):
        tables = {}
        for m in filter(None, wanted):
            shape = schema.shape(m)
            flat = np.ravel_multi_index(tuple(self.codes[:, i] for i in m), shape)
            tables[m] = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
        return Edition.of(schema, tables, "0" * 64)


def like(codes, sizes, words, **given):
    return Selective(like=Held(codes)).plan(make_request(sizes, words, **given), "optimal", "gls")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_runs_from_an_edition_cost_no_more_and_are_plans(law, neighbours):
    sizes = (3, 4, 2, 1)
    design = like(people(sizes, 300, 2), sizes, "<=3-way", neighbours=neighbours, **law)
    made, measurement = draw(design, counted(design, people(sizes, 500, 1)), entropy=SeededEntropy(1))
    allowed = calibrate.row_budget(made.privacy, made.proof)
    assert allowed * Fraction(9, 10) < made.row_cost(made.budgets) <= allowed
    assert made.looks == [6, 2, 15], "of three pairs and one triple that vary, two guesses each"
    again = Plan.from_json(Plan.of_counts(made).to_json()).count
    assert again.digest == made.digest and again.like == design.like
    assert [np.shape(values) for values in measurement.values] == again.shapes
    first, second = (again.misfit_shares(measurement, second=which) for which in (False, True))
    assert all((first[k] > 0).sum() == (second[k] > 0).sum() for k in (2, 3))
    nearest = again.nearest_misfits(measurement)
    assert all((nearest[k] == np.minimum(first[k], second[k])).all() for k in (2, 3)), "errors are estimated by these"


def test_decisions_from_an_edition_are_functions_of_the_noisy_answers(monkeypatch):
    sizes = (3, 4, 2)
    check_decisions(like(people(sizes, 300, 2), sizes, "<=3-way", rho="0.1"), monkeypatch)


@pytest.mark.parametrize("edition", [False, True])
def test_decisions_over_levels_are_functions_of_the_noisy_answers(monkeypatch, edition):
    request = nested_request("s*u,s@l1*t@l1*u,t@l1", rho="0.1")
    held = Held(people(request.schema.finest.sizes, 300, 2)) if edition else None
    check_decisions(Selective(like=held).plan(request, "optimal", "gls"), monkeypatch)


def test_faces_guess_as_the_run_did(monkeypatch):
    """The tables that the last look was at are those of the face: what is noisy, and the edition, say everything."""
    seen = []
    check = selecting._Run.check
    monkeypatch.setattr(selecting._Run, "check", lambda run, fit: (seen.append(fit), check(run, fit))[1])
    sizes = (6, 7, 5, 4)
    design = like(people(sizes, 2_000, 2), sizes, "3-way", rho="0.002")
    made, measurement = draw(design, counted(design, people(sizes, 3_000, 1)), entropy=SeededEntropy(1))
    tables = make_face(made, measurement, FaceValue("nonnegative"), Clock()).tables
    batch = made.request.marginals.batches[0]
    fit = np.maximum(seen[0].tables.tables(batch.rows, batch.shape), 0.0)
    assert np.abs(tables.tables(batch.rows, batch.shape) - fit).sum() < 0.05 * fit.sum()


def test_a_near_edition_lowers_the_error_and_a_wrong_one_hardly_raises_it():
    """From year to year a tenth of the people change; in the wrong edition all values have other names."""
    sizes, words, rho = (6, 7, 5, 4), "3-way", "0.002"
    now, others = people(sizes, 3_000, 5), people(sizes, 3_000, 6)
    rng = np.random.default_rng(7)
    changed = rng.integers(0, sizes, (3_000, len(sizes)))
    near = np.where((rng.random(3_000) < 0.1)[:, None], changed, others)
    wrong = np.stack([rng.permutation(n)[others[:, i]] for i, n in enumerate(sizes)], axis=1)
    designs = {
        "none": planned(sizes, words, rho=rho),
        "near": like(near, sizes, words, rho=rho),
        "wrong": like(wrong, sizes, words, rho=rho),
    }
    counts, family = counted(designs["none"], now), designs["none"].request.marginals
    errors = dict.fromkeys(designs, 0.0)
    for name, design in designs.items():
        for seed in range(4):
            run = draw(design, counts, entropy=SeededEntropy(seed))
            tables = make_face(*run, FaceValue("nonnegative"), Clock()).tables
            errors[name] += sum(
                float(np.abs(tables.tables(b.rows, b.shape) - counts.tables(b.rows)).sum()) for b in family.batches
            )
    assert errors["near"] < 0.8 * errors["none"]
    assert errors["wrong"] < 1.1 * errors["none"]


def half_even(sizes, many, seed):
    """People whose first attributes are even, and whose others fall off; each half depends on its first one."""
    rng, half = np.random.default_rng(seed), len(sizes) // 2
    first = [rng.integers(0, sizes[0], many), np.minimum(rng.geometric(0.5, many) - 1, sizes[half] - 1)]
    columns = [first[0]]
    columns += [
        np.where(rng.random(many) < 0.5, first[0] * n // sizes[0], rng.integers(0, n, many)) for n in sizes[1:half]
    ]
    columns.append(first[1])
    for n in sizes[half + 1 :]:
        own = np.where(rng.random(many) < 0.3, first[1], rng.geometric(0.5, many) - 1)
        columns.append(np.minimum(own, n - 1))
    return np.stack(columns, axis=1)


def relative_errors(request, codes, bound, seeds):
    """Means over tables of the mean relative errors of their cells, without and with the sanity bound."""
    found = []
    for own in (None, bound):
        design = Selective(sanity_bound=own).plan(request, "optimal", "gls")
        counts = counted(design, codes)
        runs = [face_errors(design, counts, seed) for seed in seeds]
        found.append(np.mean([[(error / np.maximum(exact, bound)).mean() for error, exact in run] for run in runs]))
    return found


def test_a_sanity_bound_makes_relative_errors_smaller_where_some_tables_fall_off():
    sizes = (10, 8, 6, 10, 8, 6)
    plain, own = relative_errors(make_request(sizes, "2-way", rho="0.05"), half_even(sizes, 20_000, 1), 10, range(4))
    assert own < 0.97 * plain


def test_a_sanity_bound_on_real_data():
    """Next to nothing is gained: a few percent for a large bound, and no more than a few lost for a small one."""
    schema = adult8_schema()
    request = Request(Workload.parse("2-way", schema), Privacy.of(rho="0.1", neighbours="add-remove"))
    codes = coded("adult8.parquet", schema)
    plain, own = relative_errors(request, codes, 100, range(100, 104))
    assert own < plain
    plain, own = relative_errors(request, codes, 10, range(100, 104))
    assert own < 1.03 * plain


@pytest.mark.parametrize("kind", ["nonnegative", "integral"])
@pytest.mark.parametrize("edition", [False, True])
def test_public_facts_hold_in_faces_of_a_run(kind, edition):
    """Guesses do not know them; the tables that are published do."""
    sizes, codes = (3, 4, 2), people((3, 4, 2), 800, 1)
    codes = codes[(codes[:, 0] != 0) | (codes[:, 1] != 3)]
    given = (sizes, "<=2-way")
    design = like(codes, *given, rho="0.02") if edition else planned(*given, rho="0.02")
    zeros, totals = [{"a0": "0", "a1": "3"}], [({}, len(codes)), ({"a2": "1"}, int(codes[:, 2].sum()))]
    facts = Facts.of(design.schema, zeros=zeros, totals=totals)
    run = draw(design, counted(design, codes), entropy=SeededEntropy(1))
    tables = make_face(*run, FaceValue(kind, method="entropy", facts=facts), Clock()).tables
    pair, single = tables.tables(position_rows((0, 1)), (3, 4))[0], tables.tables(position_rows((2,)), (2,))[0]
    assert abs(pair[0, 3]) < 1e-9
    assert single.sum() == pytest.approx(len(codes)) and single[1] == pytest.approx(codes[:, 2].sum())
