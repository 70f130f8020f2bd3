"""One contract for every face of every strategy: what is promised holds, whatever was measured."""

import math
from dataclasses import replace

import numpy as np
import pytest

from face_promises import check_promise
from helpers import (
    LAWS,
    NEIGHBOURS,
    MemoryEngine,
    all_tables,
    applicable,
    exact_table,
    make_plan,
    make_request,
    random_codes,
    released,
)
from hushcube.bundle.part import PublishedFace
from hushcube.designs import LatticeDesign
from hushcube.designs.design import RECOVERIES
from hushcube.errors import TooLarge
from hushcube.faces.checking import check_face
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.model.facts import Facts
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from hushcube.strategies import REGISTRY, Sketch
from ranged import every_variant, ordered_schema, random_queries, ranged_request

SIZES = (2, 3, 1, 4)
PEOPLE = 40
FACES = [
    FaceValue("consistent", norm="l1"),
    FaceValue("consistent", norm="linf", weights="deviation"),
    FaceValue("consistent"),
    FaceValue("nonnegative", method="local"),
    FaceValue("nonnegative", method="full-table"),
    FaceValue("nonnegative", norm="l1", weights="deviation"),
    FaceValue("integral", method="local"),
    FaceValue("integral"),
    FaceValue("nonnegative", method="entropy"),
    FaceValue("integral", method="entropy"),
]

everywhere = pytest.mark.parametrize(
    ("strategy", "law", "neighbours"),
    [(s, law, n) for law in LAWS for s in applicable(law) for n in NEIGHBOURS],
    ids=str,
)


def measured(plan, people=PEOPLE, seed=3):
    codes = random_codes(plan.schema.sizes, people, seed)
    return codes, measure(plan, MemoryEngine(codes), entropy=SeededEntropy(seed))


def applying(plan):
    """The faces that a plan can have: an opinion needs coefficients with known variances."""
    opinion = isinstance(plan.underlying, LatticeDesign) and plan.underlying.recovery == "gls"
    return [value for value in FACES if opinion or value.method != "entropy"]


@everywhere
def test_every_face_keeps_its_promise(strategy, law, neighbours):
    request = make_request(SIZES, "<=2-way", neighbours=neighbours, **law)
    plan = make_plan(request, strategy, recovery="none" if strategy == "workload" else "gls")
    codes, found = measured(plan)
    for value in applying(plan):
        check_promise(plan, make_face(plan, found, value, Clock()), len(codes))


@everywhere
def test_every_face_keeps_its_promise_where_the_time_is_up(strategy, law, neighbours):
    """Whatever the time limit, the best so far is a face; those of linear programs have none before their end."""
    plan = make_plan(make_request(SIZES, "<=2-way", neighbours=neighbours, **law), strategy)
    codes, found = measured(plan)
    for value in (v for v in applying(plan) if v.norm == "l2" and v.kind != "consistent"):
        face = make_face(plan, found, value, Clock(seconds=-1.0))
        check_promise(plan, face, len(codes))
        if face.report.get("stopped") != "time":  # one step was all it took
            assert face.report["certificate"]["share_of_noise"] <= 0.0101


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_a_public_total_is_kept_also_where_no_table_shows_it(recovery):
    request = make_request(SIZES, "2-way", neighbours="replace-one", epsilon=1)
    for strategy in ("workload", "fourier", "identity", "bmax"):
        plan = make_plan(request, strategy, recovery=recovery)
        codes, found = measured(plan)
        for value in applying(plan):
            check_promise(plan, make_face(plan, found, value, Clock()), len(codes))


@everywhere
def test_projections_never_move_away_from_the_truth(strategy, law, neighbours):
    """In the total squared error over all published cells, for every draw."""
    plan = make_plan(make_request(SIZES, "<=2-way", neighbours=neighbours, **law), strategy)
    for seed in range(3):
        codes, found = measured(plan, seed=seed)
        truth = {A: exact_table(plan.schema, codes, A) for A in plan.request.marginals}

        def error(answers, truth=truth):
            return sum(float(((t - truth[A]) ** 2).sum()) for A, t in all_tables(plan, answers).items())

        before = error(released(plan, found).source)
        for method in ("local", "full-table"):
            after = error(make_face(plan, found, FaceValue("nonnegative", method=method), Clock()).tables)
            assert after <= before * 1.02 + 1e-5  # the solvers stop within 3% of the noise


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("words", [["prefix(a0)*a1", "ranges(a2)"], ["ranges(a0)"]], ids=str)
def test_ranges_are_sums_of_the_cells_of_the_face(words, neighbours):
    schema = ordered_schema((5, 2, 4))
    request = ranged_request(schema, words, neighbours=neighbours, epsilon=1)
    for plan in every_variant(request, budgets=["optimal"], recoveries=["gls"]):
        codes, found = measured(plan)
        for value in (FaceValue("nonnegative"), FaceValue()):
            face = make_face(plan, found, value, Clock())
            check_promise(plan, face, len(codes))
            published = PublishedFace.of(face)
            for form in plan.workload.forms:
                carrier = all_tables(plan, face.tables)[form.marginal]
                assert published.source.form(form) == pytest.approx(form.evaluate(carrier))


@pytest.mark.parametrize("recovery", RECOVERIES)
def test_queries_of_ones_own(recovery):
    schema = ordered_schema((3, 2))
    queries = random_queries(schema, (0, 1), rows=4)
    request = ranged_request(schema, ["1-way"], queries=queries, epsilon=1)
    for plan in every_variant(request, budgets=["optimal"], recoveries=[recovery]):
        codes, found = measured(plan)
        for value in (FaceValue("consistent", norm="l1"), FaceValue("nonnegative"), FaceValue()):
            face = make_face(plan, found, value, Clock())
            check_promise(plan, face, len(codes))
            (form,) = plan.workload.forms
            assert PublishedFace.of(face).source.form(form).shape == form.shape


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_sketches_have_faces(neighbours):
    """They measure no total, also where it is public; one that is declared is kept."""
    for estimate in ("average", "median"):
        request = make_request(SIZES, "<=2-way", epsilon=1, neighbours=neighbours)
        plan = Sketch(estimate=estimate).plan(request, "uniform", "none")
        codes, found = measured(plan)
        total = Facts.of(plan.schema, totals=[({}, len(codes))])
        for value in (
            *(FaceValue("consistent", norm="linf"), FaceValue("nonnegative"), FaceValue()),
            *(FaceValue("nonnegative", facts=total), FaceValue(facts=total)),
        ):
            check_promise(plan, make_face(plan, found, value, Clock()), len(codes))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_more_people_than_can_be_made_are_refused_before_a_sketch_is_measured(neighbours):
    """Its noise decides how many people there are, also where their number is public."""
    plan = REGISTRY["sketch"].plan(make_request(SIZES, epsilon="1e-9", neighbours=neighbours), "uniform", "none")
    with pytest.raises(TooLarge, match=r"^face: "):
        check_face(plan, FaceValue(), Clock())
    check_face(plan, FaceValue(facts=Facts.of(plan.schema, totals=[({}, 9)])), Clock())


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("value", FACES, ids=lambda v: f"{v.kind}-{v.norm}-{v.method}")
def test_public_facts_hold(value, neighbours):
    plan = make_plan(make_request(SIZES, "<=2-way", neighbours=neighbours, epsilon=1), "workload")
    codes, found = measured(plan)
    names = plan.schema.names
    inside = codes[:, 0] == 1
    known = int(inside.sum()), int((inside & (codes[:, 1] == 1)).sum())
    facts = Facts.of(
        plan.schema,
        zeros=[{names[1]: "0", names[3]: "2"}],
        totals=[({names[0]: "1"}, known[0]), ({names[0]: "1", names[1]: "1"}, known[1])],
    )
    if value.kind == "consistent" and value.norm == "l2":
        return
    face = make_face(plan, found, FaceValue(**{**vars(value), "facts": facts}), Clock())
    check_promise(plan, face, len(codes))
    tables = all_tables(plan, face.tables)
    slack = {"abs": 0 if value.kind == "integral" else 1e-6 * PEOPLE}
    assert tables[1, 3][0, 2] == pytest.approx(0, **slack)
    assert tables[0,][1] == pytest.approx(known[0], **slack)
    assert tables[0, 1][1, 1] == pytest.approx(known[1], **slack)


def test_a_number_of_people_is_kept_and_proportions_stay():
    plan = make_plan(make_request(SIZES, "<=2-way", rho=1), "residual")
    codes, found = measured(plan, people=1000)
    many = make_face(plan, found, FaceValue(rows=5000), Clock())
    assert len(many.people) == 5000
    one = all_tables(plan, many.tables)[0,] / 5000
    assert one == pytest.approx(exact_table(plan.schema, codes, (0,)) / 1000, abs=0.05)


def test_nobody_at_all():
    """Noise may say that there is nobody: tables of zeros are an answer."""
    plan = make_plan(make_request(SIZES, "<=2-way", epsilon="0.01"), "identity")
    for seed in range(6):
        codes, found = measured(plan, people=1, seed=seed)
        for value in (FaceValue("nonnegative"), FaceValue(), FaceValue(method="local")):
            check_promise(plan, make_face(plan, found, value, Clock()), len(codes))


def test_the_certificate_is_small_where_the_domain_is():
    plan = make_plan(make_request(SIZES, "<=2-way", epsilon=1), "workload")
    _, found = measured(plan)
    for method in ("local", "full-table"):
        report = make_face(plan, found, FaceValue("nonnegative", method=method), Clock()).report
        assert 0 <= report["certificate"]["share_of_noise"] <= math.sqrt(1e-3) * 1.01


@pytest.mark.parametrize("kind", ["nonnegative", "integral"])
def test_one_data_set_has_all_tables_with_an_opinion_where_the_domain_is_small(kind):
    """Of three answers, yes or no, two are the same: tables of pairs that never are agree, but are nobody's."""
    plan = make_plan(make_request((2, 2, 2), "2-way", rho=1), "workload")
    never = np.tile(np.array([[0, 500], [500, 0]]), (3, 1, 1))
    noisy = replace(measured(plan)[1], values=(never,))

    def same(value):
        return sum(np.trace(t) for t in all_tables(plan, make_face(plan, noisy, value, Clock()).tables).values())

    assert same(FaceValue("nonnegative", method="local")) <= 5
    assert same(FaceValue(kind, method="entropy")) >= 995


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize("strategy", ["identity", "residual", "workload"])
def test_faces_stay_near_queries_that_leave_cells_unused(strategy, law):
    """Cells that no query needs have next to no budget, and their noise must not move the answers."""
    schema = ordered_schema((4, 2))
    matrix = np.array([[0.0, 0, 1, 1, 1, 1, 1, 1], [1, 0, 1, 0, 1, 0, 1, 0]])
    queries = QueryTable((0, 1), schema.attributes, SparseRows.of(matrix))
    request = ranged_request(schema, [], queries=queries, **law)
    plan = make_plan(request, strategy)
    (form,) = plan.workload.forms
    deviations = np.sqrt(plan.errors.form_variances(form, exact=True))
    for seed in range(3):
        _, found = measured(plan, people=2000, seed=seed)
        unbiased = released(plan, found).source.form(form)
        for value in (FaceValue("nonnegative", method="local"), FaceValue("nonnegative"), FaceValue()):
            published = PublishedFace.of(make_face(plan, found, value, Clock())).source.form(form)
            assert (np.abs(published - unbiased) <= 3 * deviations + 2).all()
