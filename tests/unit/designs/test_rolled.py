"""Selective plans over levels: everything is that of the fine tables, summed up."""

import json
from fractions import Fraction
from itertools import product
from shutil import rmtree

import numpy as np
import pyarrow as pa
import pytest

from helpers import NEIGHBOURS
from hushcube import Attribute, open as open_release, plan, recover, release, verify
from hushcube.bundle.earlier_edition import face_with_edition
from hushcube.costs import calibrate
from hushcube.designs import SelectedLevels, SelectiveLevels
from hushcube.designs.request import OBJECTIVES
from hushcube.designs.selective.design import misfit_cost
from hushcube.designs.selective.rolled import Finest, fine_request
from hushcube.errors import BadInput, NotApplicable, PlanError
from hushcube.experiments.truth import HeldTables
from hushcube.faces.checking import check_face
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue, read_face
from hushcube.model.edition import Edition
from hushcube.model.facts import Fact, Facts
from hushcube.model.form import GroupTable
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.private.adaptive import selecting
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from hushcube.strategies.selective import Selective
from hushcube.verbs.planning import face_for
from nested import SCHEMA, attribute, flat, marginal_rows, nested_request, random_people

LAWS = [{"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}, {"epsilon": 2}]


def planned(words="s*u,s@l1*t@l1,s@l2*t*u,s@l2,t,0-way", **given):
    return Selective().plan(nested_request(words, **given), "optimal", "gls")


def counted(design, codes):
    """The exact tables of people that a run may look at, and those asked for."""
    sizes, tables = design.schema.sizes, {}
    needed = {tuple(row) for rows in design.counted for row in rows.tolist()} | set(design.workload.marginals)
    for m in needed - {()}:
        flat_codes = np.ravel_multi_index(tuple(codes[:, i] for i in m), [sizes[i] for i in m])
        shape = [sizes[i] for i in m]
        tables[m] = np.bincount(flat_codes, minlength=int(np.prod(shape))).reshape(shape)
    return HeldTables(len(codes), tables)


def done(design, many=400, seed=1):
    return draw(design, counted(design, random_people(design.schema, many, seed)), entropy=SeededEntropy(seed))


def tables_of(design, answers):
    sizes = design.schema.sizes
    return {
        m: answers.tables(np.array([m], np.int32).reshape(1, len(m)), tuple(sizes[i] for i in m))[0]
        for m in design.workload.marginals
    }


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_plans_and_outcomes_are_written_and_read(law, neighbours, objective):
    design = planned(neighbours=neighbours, objective=objective, **law)
    made, measurement = done(design)
    for own, kind in ((design, SelectiveLevels), (made, SelectedLevels)):
        written = Plan.of_counts(own)
        again = Plan.from_json(written.to_json())
        assert isinstance(again.count, kind)
        assert again.digest == written.digest
    assert made.row_cost(made.budgets) <= calibrate.row_budget(made.privacy, made.proof)
    assert made.row_cost(made.budgets) == made.underlying.row_cost(made.budgets)
    assert [np.shape(values) for values in measurement.values] == made.shapes
    with pytest.raises(PlanError, match="cannot be carried out again"):
        list(made.blocks())


def test_what_is_counted_are_the_finest_levels():
    design = planned(rho=1)
    finest = {chain[-1] for chain in design.schema.chains}
    assert {int(i) for rows in design.counted for i in np.unique(rows)} <= finest


def test_with_little_noise_the_tables_are_nearly_the_true_ones():
    design = planned(rho=500)
    codes = random_people(design.schema, 500, 3)
    counts = counted(design, codes)
    made, measurement = draw(design, counts, entropy=SeededEntropy(1))
    faces = [make_face(made, measurement, FaceValue(kind), Clock()).tables for kind in ("nonnegative", "integral")]
    for answers in (made.answers(measurement), *faces):
        for marginal, table in tables_of(made, answers).items():
            exact = counts.tables(np.array([marginal], np.int32).reshape(1, len(marginal)))[0]
            assert np.abs(table.ravel() - exact.ravel()).max() < 4


def covariance_of(design):
    """Of all cells of the finest levels, from weighted sums of the one table that has all of them."""
    whole = tuple(chain[-1] for chain in design.schema.chains)
    shape = design.schema.shape(whole)
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([[design.errors.sum_covariance(whole, a, b) for b in units] for a in units])


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_errors_are_those_of_sums_of_fine_cells(neighbours):
    """One dense covariance of the finest cells is the judge of every table, roll-up and covariance."""
    schema = Schema((attribute("s", [[0, 0, 1, 1, 1], [0, 0]]), attribute("t", [[0, 1, 0]])))
    design = planned("s*t,s@l1*t@l1,s@l1*t,t@l1", schema=schema, neighbours=neighbours, rho=1)
    made, _ = done(design)
    cells = covariance_of(made)
    means = dict(zip(made.request.marginals, made.errors.cell_variances(exact=True), strict=True))
    for marginal in made.workload.marginals:
        rows = marginal_rows(made.schema, marginal)
        expected = rows @ cells @ rows.T
        shape = made.schema.shape(marginal)
        shown = np.broadcast_to(made.errors.cell_variance_table(marginal), shape)
        np.testing.assert_allclose(shown.ravel(), np.diag(expected), rtol=1e-6)
        assert means[marginal] == pytest.approx(np.diag(expected).mean())
        nothing = [None] * len(marginal)
        found = made.errors.covariances(marginal, nothing, nothing)
        np.testing.assert_allclose(found.ravel(), np.diag(expected), rtol=1e-6)
        for axis in range(len(marginal)):  # each cell with the total over an axis
            totals = [np.ones(n) if at == axis else None for at, n in enumerate(shape)]
            joint = made.errors.covariances(marginal, nothing, totals).ravel()
            places = list(product(*map(range, shape)))
            for number, place in enumerate(places):
                same = [
                    all(a == b for at, (a, b) in enumerate(zip(place, other, strict=True)) if at != axis)
                    for other in places
                ]
                assert joint[number] == pytest.approx(expected[number][same].sum(), rel=1e-6, abs=1e-9)


def test_errors_of_roll_ups_of_tables_at_levels():
    schema = Schema((attribute("s", [[0, 0, 1, 2, 1], [0, 0, 1]]), flat("u", 3)))
    design = planned("s,s@l1*u", schema=schema, rho=1)
    made, _ = done(design)
    asked = next(m for m in made.workload.marginals if len(m) == 2)
    own = [made.schema.attributes[i] for i in asked]
    form = GroupTable(asked, tuple(own), (own[0], None), (np.arange(3), np.zeros(3, np.int64)))
    found = made.errors.form_variances(form, exact=True)
    expected = [made.errors.sum_variance(asked, np.eye(3)[at][:, None] * np.ones((1, 3))) for at in range(3)]
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize("kind", ["nonnegative", "integral"])
def test_faces_hold_levels_together(kind):
    design = planned(rho="0.02")
    made, measurement = done(design, many=300)
    face = make_face(made, measurement, FaceValue(kind), Clock())
    tables = tables_of(made, face.tables)
    seen = Finest(made.schema)
    fine = {seen.table(m): table for m, table in tables.items() if all(g is None for g in seen.groups(m))}
    compared = 0
    for m, table in tables.items():
        assert table.min() >= 0
        if kind == "integral":
            assert (table == np.rint(table)).all()
        if (own := fine.get(seen.table(m))) is not None:
            np.testing.assert_allclose(seen.summed(m, own), table, atol=1e-6)
            compared += 1
    assert compared >= 3
    assert "measured_errors" in face.report
    if kind == "integral":
        for chain, position in ((c, i) for c in made.schema.chains for i in c):
            people = face.people
            assert (made.schema.coarsening(chain[-1], position)[people[:, chain[-1]]] == people[:, position]).all()


@pytest.mark.parametrize("kind", ["nonnegative", "integral"])
def test_faces_at_several_levels_have_no_estimated_errors(kind):
    made, measurement = done(planned(rho="0.1"))
    assert make_face(made, measurement, FaceValue(kind), Clock()).errors is None
    assert make_face(*made.averaged(measurement), FaceValue(kind), Clock()).errors is not None  # of the fine tables


def test_the_last_look_bounds_coarse_tables_too():
    """False alarms: a look covers its table with 97.5%; of 60 tables more than 8 are missed with less than 0.1%."""
    design, missed = planned("s*t,s@l1*t@l1,s@l2*u,t*u", rho="0.05"), 0
    codes = random_people(design.schema, 600, 2)
    counts, seen = counted(design, codes), Finest(design.schema)
    for seed in range(15):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        face = make_face(made, measurement, FaceValue("nonnegative"), Clock())
        told = face.report["measured_errors"]["tables"]
        for m, table in tables_of(made, face.tables).items():
            exact = counts.tables(np.array([m], np.int32))[0]
            fine = made.schema.finest
            bound = told[fine.describe(seen.table(m))]["at_most"] + fine.cells(seen.table(m)) / 2
            missed += np.abs(table - exact.reshape(table.shape)).sum() > bound
    assert missed <= 8


class Held:
    """The fine tables of people, those that have given attributes, as an earlier edition."""

    def __init__(self, codes, known):
        self.codes, self.known = codes, known

    def within(self, schema, wanted):
        places, tables = [self.known.names.index(name) for name in schema.names], {}
        for m in filter(None, wanted):
            flat_codes = np.ravel_multi_index(tuple(self.codes[:, places[i]] for i in m), schema.shape(m))
            tables[m] = np.bincount(flat_codes, minlength=schema.cells(m)).reshape(schema.shape(m))
        return Edition.of(schema, tables, "0" * 64)


def like(codes, words="s*t@l1,s@l1*t@l1,s@l2*u,t@l1*u", **given):
    request = nested_request(words, **given)
    return Selective(like=Held(codes, request.schema)).plan(request, "optimal", "gls")


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_runs_from_an_edition_cost_no_more_and_are_plans(law, neighbours):
    schema = nested_request("s*t@l1,s@l1,s@l2,u", rho=1).schema
    design = like(random_people(schema, 300, 2), neighbours=neighbours, **law)
    assert [design.schema.finest.describe(m) for m in design.edition.marginals] == ["s*t@l1", "s*u", "t@l1*u"]
    made, measurement = done(design)
    allowed = calibrate.row_budget(made.privacy, made.proof)
    assert allowed * Fraction(9, 10) < made.row_cost(made.budgets) <= allowed
    below = made.underlying
    assert below.looks == [6, 3], "of three fine pairs, two guesses each, and the last look"
    looks = sum(misfit_cost(made.privacy, n, b) for n, b in zip(below.looks, below.misfit_budgets, strict=True))
    assert made.row_cost(made.budgets) == below.underlying.row_cost(below.underlying_budgets) + looks
    for own in (design, made):
        again = Plan.from_json(Plan.of_counts(own).to_json()).count
        assert again.digest == own.digest and again.edition == design.edition
        raw = json.loads(Plan.of_counts(own).to_json())
        raw["parts"]["count"]["under"]["like"]["plan_digest"] = "1" * 64
        with pytest.raises(PlanError, match="does not fit the plan"):
            Plan.from_json(json.dumps(raw))
    assert design.digest != planned("s*t@l1,s@l1*t@l1,s@l2*u,t@l1*u", neighbours=neighbours, **law).digest
    assert [np.shape(values) for values in measurement.values] == again.shapes
    second = below.misfit_shares(made.averaged(measurement)[1], second=True)
    assert (second[2] > 0).all()


def test_with_an_edition_at_levels_the_faces_are_those_of_the_run(monkeypatch):
    """The tables that the last look was at are those of the face, which needs no more than the outcome."""
    seen, check = [], selecting._Run.check
    monkeypatch.setattr(selecting._Run, "check", lambda run, fit: (seen.append(fit), check(run, fit))[1])
    words = "s*t,s@l1*t@l1,s@l2*u,t*u"
    codes = random_people(nested_request(words, rho=1).schema, 2_000, 2)
    made, measurement = done(like(codes, words, rho="0.002"), many=3_000)
    made = Plan.from_json(Plan.of_counts(made).to_json()).count
    face = make_face(made, measurement, FaceValue("nonnegative"), Clock())
    finest = Finest(made.schema)
    for m, table in tables_of(made, face.tables).items():
        own = finest.table(m)
        row = np.array([own], np.int32)
        fit = np.maximum(seen[0].tables.tables(row, made.schema.finest.shape(own))[0], 0.0)
        assert np.abs(table - finest.summed(m, fit)).sum() < 0.05 * fit.sum()


def test_a_near_edition_lowers_the_error_of_tables_at_levels():
    """t follows s. The near edition is of other people of the same kind; the wrong one has other names for s."""
    schema = nested_request("s*t,s@l1,t@l1", rho=1).schema
    fine = [chain[-1] for chain in schema.chains]

    def made_up(seed, *, wrong=False):
        rng, codes = np.random.default_rng(seed), random_people(schema, 4_000, seed)
        s = codes[:, fine[0]]
        t = np.where(rng.random(4_000) < 0.8, s % 4, codes[:, fine[1]])
        s = rng.permutation(7)[s] if wrong else s
        for chain, values in zip(schema.chains, (s, t), strict=False):
            for position in chain:
                codes[:, position] = schema.coarsening(chain[-1], position)[values]
        return codes

    words, rho = "s*t,s@l1*t@l1", "0.0005"
    designs = {
        "none": planned(words, rho=rho),
        "near": like(made_up(2), words, rho=rho),
        "wrong": like(made_up(3, wrong=True), words, rho=rho),
    }
    counts, errors = counted(designs["none"], made_up(1)), {}
    for name, design in designs.items():
        errors[name] = 0.0
        for seed in range(8):
            made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
            face = make_face(made, measurement, FaceValue("nonnegative"), Clock())
            for m, table in tables_of(made, face.tables).items():
                exact = counts.tables(np.array([m], np.int32))[0].reshape(table.shape)
                errors[name] += np.abs(table - exact).sum()
    assert errors["near"] < 0.8 * errors["none"]
    assert errors["wrong"] < 1.2 * errors["none"]


def test_weights_of_coarse_tables_are_carried_to_the_fine_ones():
    request = nested_request("s*u=2,s@l1*u=3,s@l2,t@l1*u", rho=1)
    weights = {
        objective: dict(zip(found.workload.marginals, found.workload.weights, strict=True))
        for objective in OBJECTIVES
        for found in [fine_request(request, objective)]
    }
    assert weights["total"] == {(0, 2): 5.0, (0,): 1.0, (1, 2): 1.0}
    assert weights["max"] == {(0, 2): 3.0, (0,): 1.0, (1, 2): 1.0}
    assert fine_request(request, "total").schema.names == ("s", "t@l1", "u")


def test_a_file_that_is_changed_is_refused():
    raw = json.loads(Plan.of_counts(planned(rho=1)).to_json())
    raw["parts"]["count"]["under"]["design"] = "lattice"
    with pytest.raises(PlanError):
        Plan.from_json(json.dumps(raw))


def test_plans_for_face_values_hold_levels_together():
    asked = {"neighbours": "add-remove", "purpose": "face-valid"}
    made = plan(SCHEMA, "s*t*u,s@l1*t@l1", rho=1, **asked)
    assert made.strategy == "selective"
    assert face_for(made) == "integral:method=entropy"
    assert plan(SCHEMA, "s*t*u,s@l1*t@l1", rho=1, objective="max", **asked).strategy == "selective"
    assert plan(SCHEMA, "s*t*u,s@l1*t@l1", epsilon=1, **asked).strategy == "levels"


def test_what_is_refused():
    halves = ({"name": "l1", "starts": [0, 6_000]},)
    wide = Schema(tuple(Attribute(name=name, range=(0, 11_999), levels=halves) for name in ("s", "t")))
    with pytest.raises(NotApplicable, match="finest levels"):
        plan(wide, "s*t@l1,s@l1*t", rho=1, neighbours="add-remove", strategy="selective")
    design = planned(rho=1)
    known = Facts(design.schema, (Fact((), (), 100),))
    with pytest.raises(BadInput, match="facts are held at one"):
        check_face(design, FaceValue("integral", facts=known), Clock())
    with pytest.raises(BadInput, match="selective"):
        other = plan(SCHEMA, "s,s@l1", rho=1, neighbours="add-remove").count
        check_face(other, FaceValue("integral"), Clock())


def coded_people(seed=1):
    """2,000 people of the schema of `nested`, as a table."""
    codes = random_people(SCHEMA, 2_000, seed)
    pairs = zip(SCHEMA.attributes, codes.T.tolist(), strict=True)
    return pa.table({attribute.name: [attribute.coded[v] for v in column] for attribute, column in pairs})


def test_a_release_is_published_verified_and_rolled_up(tmp_path):
    made = plan(SCHEMA, "s*u,s@l1*t@l1,t*u", rho=1, neighbours="add-remove", strategy="selective")
    release(made, coded_people(), out=tmp_path / "out", face=read_face("integral", made.schema))
    recover(tmp_path / "out", "nonnegative")
    assert verify(tmp_path / "out").holds
    published = open_release(tmp_path / "out")
    for face in ("unbiased", "face-valid", "nonnegative"):
        rolled = published.table("s@l2*t@l1", face=face)
        whole = published.table("t@l1", face=face)
        np.testing.assert_allclose(rolled.values.sum(axis=0), whole.values, atol=1e-3)


def test_a_release_from_an_edition_is_whole_without_it(tmp_path):
    asked = {"rho": 1, "neighbours": "add-remove", "strategy": "selective"}
    before = plan(SCHEMA, "s*u,s@l1*t@l1", **asked)
    before = release(before, coded_people(), out=tmp_path / "before", face="integral").plan
    words = "s*t*u,s@l1*t,t@l1*u"
    made = plan(SCHEMA, words, like=tmp_path / "before", **asked)
    assert made.count.edition.marginals == ((0, 2),), "the edition has t at a coarser level alone"
    valued = plan(SCHEMA, words, like=tmp_path / "before", purpose="face-valid", rho=1, neighbours="add-remove")
    assert valued.digest == made.digest
    rmtree(tmp_path / "before")
    published = release(made, coded_people(2), out=tmp_path / "after", face="integral")
    assert isinstance(published.plan.count, SelectedLevels)
    assert verify(tmp_path / "after").holds
    again = recover(open_release(tmp_path / "after"), "nonnegative")
    same = recover(published, "nonnegative")
    assert (again.table("s*u", face="nonnegative").values == same.table("s*u", face="nonnegative").values).all()
    text = (tmp_path / "after" / "PRIVACY.md").read_text()
    assert f"guessed from an earlier edition, the release of the plan `{before.digest}`" in text
    recover(tmp_path / "after", "nonnegative")
    assert verify(tmp_path / "after").holds


def test_editions_that_are_refused(tmp_path):
    asked = {"rho": 1, "neighbours": "add-remove"}
    words = "s*u,s@l1*t@l1"
    before = plan(SCHEMA, words, strategy="selective", **asked)
    seeded = release(before, coded_people(), seed=1)
    with pytest.raises(BadInput, match="like: is stamped NOT PRIVATE"):
        plan(SCHEMA, words, strategy="selective", like=seeded, **asked)
    other = Schema((Attribute("s", values=("s0", "s1", "s2")), attribute("t", [[0, 1, 0, 0]])))
    wrong = release(plan(other, "s*t", strategy="residual", **asked), pa.table({"s": ["s0"], "t": ["t1"]}))
    with pytest.raises(BadInput, match="like: there the attribute 's' has other values"):
        plan(SCHEMA, words, strategy="selective", like=wrong, **asked)
    published = release(before, coded_people())
    for strategy, problem in (("selective", "like: the plan is selective.*--like"), ("levels", "face: .*face-valid")):
        design = plan(SCHEMA, words, strategy=strategy, **asked).count
        value = face_with_edition(FaceValue("integral", method="entropy", like=published), design)
        with pytest.raises(BadInput, match=problem):
            check_face(design, value, Clock())
    with pytest.raises(BadInput, match=r"like: only selective plans.*Fix: use the strategy `selective`\.$"):
        plan(SCHEMA, words, strategy="levels", like=published, **asked)


def test_tables_with_an_attribute_of_one_value_are_counted_too():
    """The last look is at them, although no set is about that attribute."""
    age = Attribute("age", range=[0, 9], levels=[{"name": "band", "starts": [0, 5]}])
    schema = Schema([Attribute("one", values=["x"]), Attribute("sex", values=["F", "M"]), age])
    rng = np.random.default_rng(1)
    rows = pa.table({"one": ["x"] * 400, "sex": rng.choice(["F", "M"], 400), "age": rng.integers(0, 10, 400)})
    asked = plan(
        schema, ["one*sex", "sex*age", "sex*age@band"], rho="0.1", neighbours="add-remove", strategy="selective"
    )
    published = release(asked, rows, seed=1)
    assert published.table("one*sex").values.shape == (1, 2)
