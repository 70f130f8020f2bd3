"""Estimated errors of cells at face value: formula by formula, and against the errors of many runs."""

import math
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from hushcube import Attribute, Facts, Schema, plan
from hushcube.experiments.truth import HeldTables, wanted
from hushcube.faces.cell_errors import CellErrors, scales
from hushcube.faces.face import make_face
from hushcube.faces.people import PeopleTables
from hushcube.faces.value import HALF_WIDTH, FaceValue
from hushcube.model.arrays import position_rows
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

MEAN = math.sqrt(2 / math.pi)
KINDS = ((0, 10), (10, 100), (100, 1_000), (1_000, math.inf))


def schema_of(sizes):
    return Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(sizes)))


def people(sizes, number):
    """Made-up people: skewed attributes that all hang on something hidden."""
    rng = np.random.default_rng(4)
    hidden = rng.random(number)
    mixed = [(0.55 * hidden**1.5 + 0.45 * rng.random(number) ** 2) * n for n in sizes]
    return np.stack([np.minimum(each.astype(np.int64), n - 1) for each, n in zip(mixed, sizes, strict=True)], axis=1)


def smooth_people(sizes, number):
    """Made-up people whose numbers change little from one value to the next, as they do along ages."""
    rng = np.random.default_rng(4)
    hidden = rng.normal(size=number)
    signs = [-1, 1] * len(sizes)
    mixed = [0.7 * sign * hidden + 0.7 * rng.normal(size=number) for sign, _ in zip(signs, sizes, strict=False)]
    return np.stack(
        [np.clip((x + 2.5) / 5 * n, 0, n - 1).astype(np.int64) for x, n in zip(mixed, sizes, strict=True)], 1
    )


def rough_people(sizes, number):
    """Made-up people of six kinds, each with favourite values anywhere."""
    rng = np.random.default_rng(5)
    kinds = rng.integers(0, 6, number)
    favourites = [rng.integers(0, n, 6)[kinds] for n in sizes]
    others = [rng.integers(0, n, number) for n in sizes]
    return np.stack([np.where(rng.random(number) < 0.5, *pair) for pair in zip(favourites, others, strict=True)], 1)


@cache
def case(sizes, words, number=20_000, neighbours="add-remove", made_up=people, **law):
    law = law or {"rho": "0.01"}
    design = plan(schema_of(sizes), words, neighbours=neighbours, strategy="selective", **law).count
    counted = PeopleTables(made_up(sizes, number), sizes)
    batches = wanted(design.workload, [design]).batches
    exact = {
        tuple(row): table.astype(np.int64)
        for batch in batches
        for row, table in zip(batch.rows.tolist(), counted.tables(batch.rows, batch.shape), strict=True)
    }
    return design, exact, HeldTables(number, exact)


def faces(given, runs, kind="nonnegative", facts=None):
    design, _, counts = given
    for seed in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(seed))
        yield make_face(made, measurement, FaceValue(kind, facts=facts), Clock()), made, measurement


def by_hand(face, made, measurement, table):
    """e of a table before it is scaled, cell by cell."""
    spaces, schema = made.request.spaces, made.schema
    noise = dict(zip(spaces, made.underlying.errors.space_variances(exact=True).tolist(), strict=True))
    shares = {
        row: share
        for k, own in made.misfit_shares(measurement).items()
        for row, share in zip(map(tuple, spaces.levels[k].tolist()), own.tolist(), strict=True)
    }
    y = face.tables.tables(position_rows(table), schema.shape(table))[0]
    n = y.sum()

    def margin(own):
        return y.sum(axis=tuple(axis for axis, i in enumerate(table) if i not in own))

    def cells(own):
        own_y = margin(own)
        if len(own) < 2:
            return np.maximum(own_y, 0.01)
        g = np.full(own_y.shape, n)
        for at in np.ndindex(own_y.shape):
            for place, i in zip(at, own, strict=True):
                g[at] *= margin((i,))[place] / n
        return np.maximum((own_y + 0.1 * g) / 1.1, 1e-6 * n / own_y.size)

    squares = np.zeros(y.shape)
    for k in range(len(table) + 1):
        for own in combinations(table, k):
            q = cells(own)
            w = noise[own] * math.prod(n - 1 for n in q.shape) / q.size
            for at in np.ndindex(y.shape):
                place = tuple(at[table.index(i)] for i in own)
                error = w
                if k >= 2:
                    t = shares[own] * n * math.sqrt(q[place]) / (MEAN * np.sqrt(q).sum())
                    error = 1 / (1 / t**2 + 1 / w)
                squares[at] += error / q[place] ** 2
    shares_of_noise = (
        w * math.prod(made.schema.sizes[i] - 1 for i in own) / math.prod(made.schema.sizes[i] for i in own)
        * (math.prod(made.schema.shape(own)) / y.size) ** 2
        for own, w in noise.items()
        if set(own) <= set(table)
    )  # fmt: skip
    return np.minimum(cells(table) * np.sqrt(squares), math.sqrt(sum(shares_of_noise)))


@pytest.mark.parametrize(("sizes", "words"), [((2, 3, 4), "2-way"), ((2, 3, 4), "3-way"), ((3, 4, 5), "a0*a1,a1*a2")])
def test_the_shape_is_that_of_the_formula(sizes, words):
    for face, made, measurement in faces(case(sizes, words), 2):
        found = face.errors
        for table, factor in zip(made.request.marginals, found.factors.tolist(), strict=True):
            rows, shape = position_rows(table), made.schema.shape(table)
            assert found.shape.errors(rows, shape)[0] == pytest.approx(by_hand(face, made, measurement, table))
            scaled = np.hypot(factor * found.shape.errors(rows, shape), 0.5)
            assert found.tables(rows, shape) == pytest.approx(scaled)


def test_attributes_of_one_value_add_nothing():
    face, _, _ = next(faces(case((2, 3, 1), "<=2-way"), 1))
    rows = position_rows((0, 2))
    own, one = face.errors.shape.errors(rows, (2, 1))[0], face.errors.shape.errors(position_rows((0,)), (2,))[0]
    assert np.isfinite(own).all()
    assert own[:, 0] == pytest.approx(one)


def test_no_error_is_expected_to_pass_that_of_the_unbiased_cell():
    face, made, _ = next(faces(case((2, 3, 4), "<=2-way"), 1))
    shown = [
        (face.errors.shape.errors(batch.rows, batch.shape).reshape(len(batch.ids), -1).max(axis=1), batch.ids)
        for batch in made.request.marginals.batches
    ]
    most = np.sqrt(made.errors.exact_cell_variances)
    assert all((own <= most[ids] * (1 + 1e-12)).all() for own, ids in shown)
    assert any((own >= most[ids]).any() for own, ids in shown[1:])


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_the_total_has_the_error_of_its_noise(neighbours):
    face, made, _ = next(faces(case((2, 3, 4), "<=2-way", neighbours=neighbours), 1))
    own = face.errors.tables(position_rows(()), ())
    assert own == pytest.approx(np.sqrt(made.underlying.errors.space_variances(exact=True)[:1]))
    assert (own == 0).all() == (neighbours == "replace-one")


def test_cells_that_public_facts_fix_have_none():
    given = case((2, 3, 4), "<=2-way")
    known = Facts.of(given[0].schema, zeros=[{"a0": "1", "a1": "0"}], totals=[({"a2": "3"}, 700)])
    face, _, _ = next(faces(given, 1, facts=known))
    errors = face.errors.tables(position_rows((0, 1)), (2, 3))[0]
    assert errors[1, 0] == 0
    assert np.count_nonzero(errors) == 5
    assert face.errors.tables(position_rows((2,)), (4,))[0][3] == 0


def test_other_faces_have_none():
    _, made, measurement = next(faces(case((2, 3, 4), "2-way"), 1))
    for value in (FaceValue("nonnegative", method="local"), FaceValue("consistent"), FaceValue("integral", rows=99)):
        assert make_face(made, measurement, value, Clock()).errors is None
    plain = plan(schema_of((2, 3)), "2-way", rho=1, neighbours="add-remove", strategy="residual").count
    drawn, found = draw(plain, case((2, 3, 4), "2-way")[2], entropy=SeededEntropy(1))
    assert make_face(drawn, found, FaceValue("nonnegative", method="entropy"), Clock()).errors is None


@pytest.mark.parametrize(("made_up", "alike"), [(smooth_people, True), (rough_people, False)])
def test_errors_of_coarser_cells_do_not_follow_from_those_of_their_cells(made_up, alike):
    """Why tables at several levels have none: errors of neighbouring cells add up in smooth data, and cancel in others.

    With groups of four by four values, what is too little by far for the one is right for the other. The shares and
    ratios of seeded runs are the same each time.
    """
    sizes, given = (12, 12, 16, 8), []
    for face, made, _ in faces(drawn := case(sizes, "2-way", made_up=made_up, rho="0.001"), 3):
        for table in made.request.marginals:
            rows, shape = position_rows(table), made.schema.shape(table)
            e = face.errors.tables(rows, shape)[0]
            off = face.tables.tables(rows, shape)[0] - drawn[1][table]
            fold = [n for size in shape for n in (size // 4, 4)]
            off, e, squares = (x.reshape(fold).sum(axis=(1, 3)) for x in (off, e, e**2))
            given.append((abs(off).ravel(), np.sqrt(squares).ravel(), e.ravel()))
    off, independent, together = map(np.concatenate, zip(*given, strict=True))
    held = [np.mean(off <= HALF_WIDTH * e) for e in (independent, together)]
    ratios = [off.mean() / (MEAN * e).mean() for e in (independent, together)]
    assert held[0] < 0.8 if alike else held[0] > 0.95
    assert ratios[0] > 1.8 if alike else ratios[0] < 1.1
    assert held[1] == 1
    assert ratios[1] > 0.4 if alike else ratios[1] < 0.3  # three times wider than they need to be, and more


def test_the_common_factor_is_the_one_that_was_planted():
    """Of 400 looks at 60 tables of 30 normal errors: a scale that is wrong by 30% would be seen each time."""
    rng = np.random.default_rng(1)
    expected = rng.uniform(200, 2_000, 60)
    for planted in (0.6, 1.0, 1.8):
        errors = np.abs(rng.normal(size=(400, 60, 30))).mean(axis=2) / MEAN
        seen = planted * expected * errors + rng.normal(scale=100, size=(400, 60))
        common = np.array([scales(expected, np.full(60, 30.0), one, noise=100.0)[1] for one in seen])
        assert common.mean() == pytest.approx(planted, rel=0.03)
        assert (np.abs(common / planted - 1) < 0.2).all()
        assert not (np.abs(1.3 * common / planted - 1) < 0.2).any()


def test_a_table_that_the_look_sees_well_has_its_own_factor():
    expected, many = np.full(40, 1_000.0), np.full(40, 1e4)
    seen = np.append(np.full(39, 1_000.0), 5_000.0)
    clear, _ = scales(expected, many, seen, noise=20.0)
    assert clear[-1] == pytest.approx(5, rel=0.05)
    assert clear[:-1] == pytest.approx(np.ones(39), rel=0.1)
    drowned, common = scales(expected, many, seen, noise=1e5)
    assert drowned == pytest.approx(np.full(40, drowned[0]), rel=0.02)
    assert common == pytest.approx(1, rel=0.02)


def test_a_single_table_can_be_scaled():
    factors, common = scales(np.array([100.0]), np.array([50.0]), np.array([300.0]), noise=1.0)
    assert 1 < common <= 3
    assert 2 < factors[0] < 3.2
    assert scales(np.ones(0), np.ones(0), np.ones(0), 1.0)[1] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "law", "runs", "kind"),
    [
        ("2-way", {"rho": "0.01"}, 16, "nonnegative"),
        ("2-way", {"rho": "0.001"}, 16, "integral"),
        ("<=3-way", {"rho": "0.01"}, 5, "nonnegative"),
    ],
)
def test_estimates_are_of_the_size_of_the_errors(words, law, runs, kind):
    """Over many runs on made-up people that nothing was chosen on, by the size of the count.

    The runs are seeded, so that nothing is left to chance; with estimates that are wrong by 30% it fails either way.
    """
    given = case((3, 4, 5, 6, 8), words, **law)
    found = [
        np.stack([estimates.ravel(), np.abs(values - truth).ravel(), truth.ravel()])
        for face, made, _ in faces(given, runs, kind)
        for batch in made.request.marginals.batches
        if batch.shape
        for estimates, values, truth in zip(
            face.errors.tables(batch.rows, batch.shape),
            face.tables.tables(batch.rows, batch.shape),
            (given[1][tuple(row)] for row in batch.rows.tolist()),
            strict=True,
        )
    ]
    e, errors, truth = np.concatenate(found, axis=1)

    def holds(e):
        sizes = [e[(truth >= low) & (truth < high)] for low, high in KINDS]
        rms = [math.sqrt((errors[(truth >= low) & (truth < high)] ** 2).mean()) for low, high in KINDS]
        ratios = [math.sqrt((own**2).mean()) / true for own, true in zip(sizes, rms, strict=True)]
        return abs(MEAN * e.mean() / errors.mean() - 1) < 0.12 and all(0.8 < ratio < 1.3 for ratio in ratios)

    assert holds(e)
    assert not holds(1.3 * e)
    assert not holds(e / 1.3)
    for low, high in KINDS:
        own = (truth >= low) & (truth < high)
        assert (errors[own] <= HALF_WIDTH * e[own]).mean() > 0.93


def test_they_can_be_computed_again_from_the_published_tables():
    face, made, measurement = next(faces(case((2, 3, 4), "2-way"), 1))

    class Published:
        """The tables that were asked for, and no others."""

        def tables(self, rows, shape):
            assert (made.request.marginals.find(rows) >= 0).all()
            return face.tables.tables(rows, shape)

    again = CellErrors.of(made, measurement, Published(), Facts.none(made.schema))
    for batch in made.request.marginals.batches:
        assert (again.tables(batch.rows, batch.shape) == face.errors.tables(batch.rows, batch.shape)).all()
    assert again.common == face.errors.common
