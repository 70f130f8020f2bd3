"""Levels, dates and cut texts from rows to releases: counted as declared, rolled up with exact errors."""

from datetime import date, datetime

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from helpers import released
from hushcube.bundle.checks.sums import add_up_levels
from hushcube.bundle.checks.tables import Block, FaceTables
from hushcube.bundle.checks.verdict import Check
from hushcube.bundle.part import attributes_of, rolled_up
from hushcube.bundle.verify import verify
from hushcube.errors import BadInput, DataError, QueryError
from hushcube.faces.value import FaceValue
from hushcube.lattice.family import Family
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import at_level
from hushcube.model.queries import query_table
from hushcube.model.schema import Schema
from hushcube.private.engines import open_source
from hushcube.strategies import Matrix

STATE = Attribute(
    name="state",
    values=("CA", "OR", "NY", "MA", "PR"),
    missing="unknown",
    levels=(
        {"name": "division", "groups": {"Pacific": ["CA", "OR"], "Atlantic": ["NY", "PR"], "New England": ["MA"]}},
        {"name": "region", "groups": {"West": ["Pacific"], "East": ["Atlantic", "New England"]}},
    ),
)
AGE = Attribute(name="age", range=(0, 9), levels=({"name": "band", "starts": [0, 2, 5]},))
SEX = Attribute(name="sex", values=("F", "M"))
SCHEMA = Schema((STATE, AGE, SEX))


def people(n=3_000, seed=5):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "state": pa.array(rng.choice([*STATE.values, None], n)),
            "age": pa.array(rng.integers(0, 10, n)),
            "sex": pa.array(rng.choice(["F", "M"], n)),
        }
    )


def one_way(attribute, column):
    """The table of one attribute counted from one Arrow column, or from what DuckDB has."""
    data = pa.table({attribute.name: column}) if isinstance(column, pa.Array | pa.ChunkedArray) else column
    counts = open_source(data).count(Schema((attribute,)), [np.zeros((0, 0), np.int32), np.array([[0]], np.int32)])
    return counts.tables(np.array([[0]], np.int32))[0].tolist()


def test_levels_are_counted_as_sums_of_their_values():
    table = people()
    base = one_way(STATE, table["state"])
    for name in ("division", "region"):
        level = at_level(STATE, name)
        expected = np.bincount(level.places, weights=base).tolist()
        plan = hc.plan(Schema((STATE,)), f"state@{name}", epsilon=1, neighbours="add-remove")
        counted = open_source(table).count(plan.schema, plan.count.counted).tables(np.array([[0]], np.int32))[0]
        assert counted.tolist() == expected


def test_refusals_name_the_declared_attribute():
    strict = Attribute(name="a", range=(0, 3), levels=({"name": "half", "starts": [0, 2]},))
    plan = hc.plan(Schema((strict,)), "a@half", epsilon=1, neighbours="add-remove")
    for column, what in ((pa.array([0, None]), "missing values"), (pa.array([0, 7]), "outside the declared domain")):
        with pytest.raises(DataError, match=rf"attribute 'a', column 'a'.*{what}"):
            open_source(pa.table({"a": column})).count(plan.schema, plan.count.counted)


def test_texts_are_cut_before_a_mark():
    code = Attribute(name="a", values=("250", "V57"), before=".", missing="unknown", other="other")
    texts = ["250.83", "250", "250.", "V57", "V57.1.2", ".250", "25", "", None, "other", "unknown"]
    assert one_way(code, pa.array(texts)) == [3, 2, 2, 4]
    assert one_way(code, pa.array([250.83, 250.0, 25.0, None])) == [2, 0, 1, 1]
    quoted = Attribute(name="a", values=("x",), before="';--", other="other")
    assert one_way(quoted, pa.array(["x';--y", "x", "y"])) == [2, 1]


DAYS = Attribute(name="a", dates=("2023-12-30", "2024-01-02"), missing="unknown", other="other")
MOMENTS = [
    datetime(2023, 12, 29, 23, 59, 59), datetime(2023, 12, 30), datetime(2023, 12, 31, 23, 59, 59, 999_999),
    datetime(2024, 1, 1), datetime(2024, 1, 2, 12), datetime(2024, 1, 3), None,
]  # fmt: skip


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.timestamp("us"), pa.timestamp("us", tz="UTC"), pa.date32()])
def test_dates_and_times_fall_into_days(kind):
    values = [None if m is None else m if pa.types.is_timestamp(kind) else m.date() for m in MOMENTS]
    if kind == pa.timestamp("s"):
        values = [None if m is None else m.replace(microsecond=0) for m in values]
    assert one_way(DAYS, pa.array(values, kind)) == [1, 1, 1, 1, 1, 2]


def test_texts_in_iso_form_are_dates_and_others_are_not():
    texts = ["2023-12-30", "2024-01-02 13:00:00", "2024-01-01T08:00:00", "31.12.2023", "soon", "2023-12", "", None]
    assert one_way(DAYS, pa.array(texts)) == [1, 0, 1, 1, 1, 4]
    months = Attribute(name="a", dates=("2023-11-30", "2024-01-02"), by="month", other="other")
    assert one_way(months, pa.array(["2023-11", "2023-11-30", "2023-11-01", "2024-01", "2024", "2024-01-03"])) == [
        1,
        0,
        1,
        4,
    ]


def test_numbers_are_no_dates_and_infinity_is_outside():
    assert one_way(DAYS, pa.array([20231230, 1])) == [0, 0, 0, 0, 0, 2]
    endless = duckdb.sql("SELECT CAST(x AS DATE) AS a FROM (VALUES ('infinity'), ('-infinity'), ('2024-01-01')) t(x)")
    assert one_way(DAYS, endless) == [0, 0, 1, 0, 0, 2]


def test_months_quarters_and_years():
    year = Attribute(name="a", dates=("2023-01-01", "2024-12-31"))
    column = pa.array([date(2023, 3, 31), date(2023, 4, 1), date(2024, 12, 31), date(2024, 2, 29)])
    schema = Schema((year,))
    for step, expected in (("year", [2, 2]), ("quarter", [1, 1, 0, 0, 1, 0, 0, 1])):
        plan = hc.plan(schema, f"a@{step}", epsilon=1, neighbours="add-remove")
        table = open_source(pa.table({"a": column})).count(plan.schema, plan.count.counted)
        assert table.tables(np.array([[0]], np.int32))[0].tolist() == expected
    by_year = Attribute(name="a", dates=("2023-01-01", "2024-12-31"), by="year")
    assert one_way(by_year, column) == [2, 2]


def published(strategy, words="state*age*sex", recovery="gls", **privacy):
    plan = hc.plan(
        SCHEMA, words, strategy=strategy, recovery=recovery, neighbours="add-remove", **(privacy or {"rho": "0.5"})
    )
    return hc.release(plan, people(), seed=3)


def schema_order(name):
    return SCHEMA.names.index(name.partition("@")[0])


PLANS = [
    ("workload", {}), ("residual", {}), ("residual", {"rho": 50}), ("fourier", {}), ("identity", {"epsilon": 1}),
    ("workload", {"epsilon": 1, "recovery": "none"}), ("workload", {"recovery": "ols"}),
]  # fmt: skip


@pytest.mark.parametrize(("strategy", "knobs"), PLANS)
def test_roll_ups_are_sums_with_exact_errors(strategy, knobs):
    release = published(strategy, "state*age*sex,age*sex,state", **knobs)
    cells = release.table("state*age*sex")
    plan = release.plan.count
    for word in ("state@division*age@band*sex", "state@region*sex", "age@band*state@region", "age@band"):
        table = release.table(word)
        assert table.attributes == tuple(word.split("*"))
        table = table.ordered(sorted(word.split("*"), key=schema_order))
        form = rolled_up(plan.schema, attributes_of(plan.schema, word.split("*")), plan.workload.published)
        carrier = form.marginal
        source = release.table([plan.schema.names[i] for i in carrier])
        for place in np.ndindex(table.values.shape):
            kept = iter(place)
            weights = np.ones(())
            for groups, level in zip(form.groups, form.seen_at, strict=True):
                row = np.ones(len(groups)) if level is None else 1.0 * (groups == next(kept))
                weights = np.multiply.outer(weights, row)
            assert table.values[place] == pytest.approx((weights * source.values).sum())
            exact = plan.errors.sum_variance(carrier, weights)
            assert table.std_errors[place] ** 2 == pytest.approx(exact, rel=1e-9)
            where = {name: labels[at] for name, labels, at in zip(table.attributes, table.labels, place, strict=True)}
            estimate = release.estimate(word, where)
            assert estimate.value == pytest.approx(table.values[place])
            assert estimate.std_error == pytest.approx(table.std_errors[place])
    assert cells.values.shape == (6, 10, 2)


@pytest.mark.parametrize("strategy", ["wavelet", "hierarchy"])
def test_roll_ups_of_tree_plans(strategy):
    plan = hc.plan(SCHEMA, "prefix(age)*sex", strategy=strategy, epsilon=1, neighbours="add-remove")
    release = hc.release(plan, people(), seed=3)
    table = release.table("age@band*sex")
    for band, sex in np.ndindex(3, 2):
        weights = np.zeros((10, 2))
        weights[at_level(AGE, "band").places == band, sex] = 1.0
        exact = plan.count.errors.sum_variance(plan.schema.marginal(["age", "sex"]), weights)
        assert table.std_errors[band, sex] ** 2 == pytest.approx(exact)


@pytest.mark.parametrize("recovery", ["gls", "none"])
def test_roll_ups_of_matrix_plans(recovery):
    matrix = Matrix(rows=query_table(SCHEMA, ["age"], np.eye(10, dtype=int)))
    plan = hc.plan(SCHEMA, "age", strategy=matrix, recovery=recovery, epsilon=1, neighbours="add-remove")
    table = hc.release(plan, people(), seed=3).table("age@band")
    single = plan.count.errors.cell_variance_table((1,))
    assert table.std_errors**2 == pytest.approx(
        np.bincount(at_level(AGE, "band").places, weights=np.broadcast_to(single, 10))
    )


def test_up_and_down_the_levels():
    release = published("residual", "state*sex")
    assert release.roll_up("state*sex", "state").attributes == ("state@division", "sex")
    assert release.roll_up("state@division*sex", "state").attributes == ("state@region", "sex")
    assert release.roll_up("state@region*sex", "state").attributes == ("sex",)
    assert release.drill_down("sex", "state").attributes == ("state@region", "sex")
    down = release.drill_down("state@division*sex", "state")
    assert down.attributes == ("state", "sex") and np.array_equal(down.values, release.table("state*sex").values)
    for move, word, problem in (
        (release.drill_down, "state*sex", "finest level already"),
        (release.roll_up, "sex", "summed out already"),
    ):
        with pytest.raises(QueryError, match=problem):
            move(word, "state")
    with pytest.raises(QueryError, match="age@band\\*sex is not published"):
        release.drill_down("sex", "age")


def test_what_is_not_published_is_refused():
    release = published("residual", "state@division*sex,age@band")
    assert release.table("state@region").values.shape == (3,)
    for word in ("state*sex", "age", "state@division*age@band"):
        with pytest.raises(QueryError, match="is not published"):
            release.table(word)
    with pytest.raises(QueryError, match="no level 'town'"):
        release.table("state@town")
    with pytest.raises(QueryError, match="twice"):
        release.table("state@division*state@region")


def test_slices_of_roll_ups():
    release = published("residual", "state*sex")
    west = release.table("state@region*sex", where={"state@region": "West"})
    assert west.values.shape == (1, 2) and west.labels[0] == ("West",)
    with pytest.raises(QueryError, match="'North' is not one of its labels"):
        release.table("state@region*sex", where={"state@region": "North"})


def nested_release(folder):
    plan = hc.plan(SCHEMA, "state*sex,state@region*age,state@division", epsilon=1, neighbours="add-remove")
    return hc.release(plan, people(), out=folder, seed=3)


def test_tables_of_several_levels_agree_on_disk_and_verify_sees_it_if_not(tmp_path):
    release = nested_release(tmp_path / "out")
    assert release.plan.strategy == "levels"
    states = release.table("state*sex")
    coarse = np.zeros((3, 2))
    np.add.at(coarse, at_level(STATE, "region").places, states.values)
    assert coarse == pytest.approx(release.table("state@region*sex").values)
    assert coarse.sum(axis=1) == pytest.approx(release.table("state@region*age").values.sum(axis=1))
    assert verify(tmp_path / "out", allow_seeded=True).holds

    tables = released(release.plan.count, release.source.measurement())
    wrong = tables.table("state@division").values + np.array([3.0, 0.0, 0.0, 0.0])
    findings = Check("sums", "tables agree")
    family = Family.of(release.plan.workload.published, release.schema.sizes)

    def blocks(order):
        for marginal in family:
            if len(marginal) == order:
                values = tables.table([release.schema.names[i] for i in marginal]).values
                values = wrong if marginal == release.schema.marginal(["state@division"]) else values
                yield Block(np.array([marginal], np.int32), values.shape, values[None], values[None])

    add_up_levels(_Named(release.schema, family), blocks, findings)
    assert any("state@division = Pacific" in problem for problem in findings.problems)


class _Named:
    """As much of FaceTables as the comparison of levels needs."""

    def __init__(self, schema, family):
        self.schema, self.family = schema, family
        self.noise = 1.0

    def place(self, marginal):
        return self.schema.describe(marginal)

    cell = FaceTables.cell


def test_faces_of_several_levels_are_refused_before_anything_is_measured(tmp_path):
    plan = hc.plan(SCHEMA, "state*sex,state@region", epsilon=1, neighbours="add-remove")
    with pytest.raises(BadInput, match="several levels"):
        hc.release(plan, people(), out=tmp_path / "out", face=FaceValue())
    assert not (tmp_path / "out").exists()


def test_faces_roll_up_along_levels():
    plan = hc.plan(SCHEMA, "state*sex", epsilon="0.05", neighbours="add-remove")
    release = hc.release(plan, people(300), seed=3, face=FaceValue())
    (name,) = release.faces
    cells = release.table("state*sex", face=name).values
    region = release.table("state@region*sex", face=name).values
    expected = np.zeros((3, 2))
    np.add.at(expected, at_level(STATE, "region").places, cells)
    assert np.array_equal(region, expected) and (region >= 0).all()
