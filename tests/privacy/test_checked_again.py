"""A plan stays what was checked: its arrays are read-only and shared with nobody, and its cost is checked again."""

import dataclasses
import json
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pytest

from helpers import adaptive
from hushcube import Attribute, Schema, plan, release
from hushcube.designs.design import digest_of
from hushcube.errors import BadInput, BudgetExceeded, PlanError
from hushcube.lattice.family import Family
from hushcube.model.measure import Measure
from hushcube.model.queries import SparseRows, query_table
from hushcube.planning.plan import Plan, read_design
from hushcube.strategies import Matrix

SCHEMA = Schema((Attribute(name="x", values=("a", "b")), Attribute(name="y", codes=4, ordered=True)))
MEASURED = dataclasses.replace(SCHEMA, measures=(Measure(name="w", bounds=(0, 3)),))
PEOPLE = pa.table({"x": ["a", "b"] * 30, "y": [0, 1, 2] * 20, "w": [1, 2] * 30})
STRATEGIES = ["workload", "fourier", "covering", "residual", "hierarchy", "wavelet", "matrix", "sketch", "levels"]
STRATEGIES += ["twophase", "iresamp", "ireduct"]
BANDED = Attribute(name="z", range=(0, 5), levels=({"name": "band", "starts": [0, 3]},))


def made(strategy, epsilon="0.01"):
    law = {"rho": "0.01"} if strategy == "residual" else {"epsilon": epsilon}
    schema = Schema((BANDED,)) if strategy == "levels" else SCHEMA
    ranges = ["1-way", "prefix(y)"]
    words = {"levels": ["z@band", "z"], "matrix": [], "hierarchy": ranges, "wavelet": ranges}.get(strategy, "1-way")
    queries = query_table(SCHEMA, None, [[1] * 8, [1, 0] * 4]) if strategy == "matrix" else None
    chosen = Matrix(rows=queries) if strategy == "matrix" else adaptive(strategy, sanity_bound=10)
    return plan(schema, words, queries=queries, strategy=chosen, neighbours="add-remove", **law).count


def arrays(value):
    """Every array in the fields of a plan, and in the sets of marginals and the matrices among them."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from arrays(each)
    elif isinstance(value, Mapping):
        yield from arrays(list(value.values()))
    elif isinstance(value, Family):
        yield from arrays([value.sizes, value.levels, value.starts, value.cells, value.batches])
    elif isinstance(value, SparseRows):
        yield from arrays(value.arrays)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        yield from arrays([getattr(value, field.name) for field in dataclasses.fields(value)])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_no_array_of_a_plan_can_be_written_to(strategy):
    one = made(strategy)
    found = [*arrays(one), one.smoothing, *arrays(one.request.marginals)]
    assert any(array is one.budgets for array in found)
    for array in found:
        assert not array.flags.writeable
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.setflags(write=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_budgets_are_not_shared_with_whoever_made_them(strategy):
    one = made(strategy)
    mine = one.budgets.copy()
    view = mine[:]
    made_again = dataclasses.replace(one, budgets=mine)
    view *= 2000
    assert made_again.budgets.tolist() == one.budgets.tolist()
    with pytest.raises(ValueError, match="read-only"):
        made_again.budgets[0] = 20.0


def test_what_is_told_cannot_be_changed_after_the_digest():
    mine = {"measured": ["x"]}
    one = dataclasses.replace(made("workload"), details=mine)
    text = one.to_json()
    mine["measured"].append("y")
    one.details["measured"].append("y")
    one.details["adaptive"] = {"spent": 0}
    assert one.to_json() == text and read_design(text).digest == one.digest


def test_rows_of_a_matrix_and_parts_of_a_plan_cannot_be_exchanged():
    rows = SparseRows.of([[1, 0], [0, 1]])
    with pytest.raises(ValueError, match="read-only"):
        rows.arrays[1][0] = 9
    adaptive = made("ireduct")
    with pytest.raises(TypeError):
        adaptive.measured_by["measured"] = None
    cube = plan(MEASURED, "1-way", measures="avg(w)", epsilon=1, neighbours="add-remove")
    with pytest.raises(TypeError):
        cube.designs["w"] = cube.count


@pytest.mark.parametrize("strategy", [s for s in STRATEGIES if s != "levels"])
def test_the_cost_is_checked_again_where_noise_is_drawn(strategy, tmp_path):
    """Whoever gets around all that, with Python's own tools, still draws nothing."""
    one = made(strategy)
    object.__setattr__(one, "budgets", one.budgets * 2000)
    with pytest.raises(BudgetExceeded):
        release(Plan.of_counts(one), PEOPLE, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_parts_of_a_cube_are_checked_again(tmp_path):
    cube = plan(MEASURED, "1-way", measures="avg(w)", epsilon=1, neighbours="add-remove")
    object.__setattr__(cube.sums["w"], "budgets", cube.sums["w"].budgets * 2000)
    with pytest.raises(BudgetExceeded):
        release(cube, PEOPLE, out=tmp_path / "out")
    cube = plan(MEASURED, "1-way", measures="avg(w)", epsilon=1, neighbours="add-remove")
    larger = plan(MEASURED, "1-way", measures="avg(w)", epsilon=2, neighbours="add-remove")
    object.__setattr__(cube, "designs", {**larger.designs, "count": cube.count})
    with pytest.raises(BudgetExceeded):
        release(cube, PEOPLE, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


# -------------------------------------------------------------------------------------------------- strict plan files


def text_of(raw):
    return json.dumps({**raw, "digest": digest_of(raw)})


@pytest.mark.parametrize("budget", [[[1.0]], [[0.5]], [True], ["0.5"], [0.5, []], {"0": 0.5}, 0.5, [1], "1"])
def test_budgets_are_a_flat_list_of_numbers(budget):
    raw = plan(SCHEMA, "x", epsilon=1, neighbours="add-remove", strategy="workload").count.to_dict()
    assert raw["budget"] == [1.0]
    read_design(text_of(raw))
    with pytest.raises(PlanError):
        read_design(text_of(raw | {"budget": budget}))


@pytest.mark.parametrize(
    ("strategy", "change"),
    [
        ("workload", lambda raw: raw.update(format=True)),
        ("workload", lambda raw: raw.update(format=1.0)),
        ("workload", lambda raw: raw.update(surplus=1)),
        ("workload", lambda raw: raw["measured"].__setitem__(1, [["0"], [1]])),
        ("workload", lambda raw: raw["measured"].__setitem__(1, [[False], [True]])),
        ("workload", lambda raw: raw["privacy"].update(rows_per_person=True)),
        ("workload", lambda raw: raw["privacy"].update(rows_per_person="1")),
        ("workload", lambda raw: raw["privacy"].update(epsilon=0.01)),
        ("workload", lambda raw: raw["schema"]["attributes"][1].update(size=4.0)),
        ("workload", lambda raw: raw.update(workload="1-way")),
        ("workload", lambda raw: raw.update(details=[["a", 1]])),
        ("wavelet", lambda raw: raw.update(wavelet=[1, 1])),
        ("wavelet", lambda raw: raw["measured"][1].__setitem__(0, "1")),
        ("hierarchy", lambda raw: raw["fan_outs"].__setitem__(0, [2.0])),
        ("sketch", lambda raw: raw.update(seed=float(raw["seed"]))),
        ("sketch", lambda raw: raw.update(buckets=str(raw["buckets"]))),
        ("matrix", lambda raw: raw["rows"]["values"].__setitem__(0, "1")),
        ("matrix", lambda raw: raw["rows"]["columns"].__setitem__(0, False)),
        ("matrix", lambda raw: raw["queries"].update(width=8.0)),
    ],
)
def test_every_field_has_its_type(strategy, change):
    raw = json.loads(json.dumps(made(strategy).to_dict()))
    read_design(text_of(raw))
    change(raw)
    with pytest.raises(BadInput):
        read_design(text_of(raw))


@pytest.mark.parametrize("place", ['"format": 1', '"epsilon": "1/100"', '"name": "x"', '"design": "lattice"'])
def test_a_key_that_stands_twice_is_refused(place):
    text = made("workload").to_json()
    assert text.count(place) == 1
    with pytest.raises(PlanError, match="occurs twice"):
        read_design(text.replace(place, f"{place}, {place}"))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999"])
def test_numbers_that_are_not_finite_are_refused_everywhere(number):
    text = made("workload").to_json()
    with pytest.raises(PlanError, match=r"plan: .*(not a number|too large)"):
        read_design(text.replace('"details": {', f'"details": {{"bound": {number}', 1))


@pytest.mark.parametrize("details", [{"bound": float("inf")}, {"bound": np.float64("nan")}, {"x": object()}])
def test_details_are_json_before_anything_is_measured(details):
    with pytest.raises(PlanError, match="details: are not JSON"):
        dataclasses.replace(made("workload"), details=details)


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["parts"].pop("w"),
        lambda raw: raw["parts"].pop("count"),
        lambda raw: raw.update(measures=[]),
        lambda raw: raw.update(measures=["sum(w)", "sum(v)"]),
        lambda raw: raw.update(format=7),
        lambda raw: raw.update(surplus=1),
        lambda raw: raw["parts"].update(v=raw["parts"]["w"]),
    ],
)
def test_a_cube_plan_without_one_of_its_parts_is_refused(change):
    measures = (*MEASURED.measures, Measure(name="v", bounds=(0, 3)))
    schema = dataclasses.replace(MEASURED, measures=measures)
    cube = plan(schema, "1-way", measures="avg(w)", epsilon=1, neighbours="add-remove")
    raw = json.loads(cube.to_json())
    assert Plan.from_json(json.dumps(raw)).to_json() == cube.to_json()
    change(raw)
    with pytest.raises(PlanError):
        Plan.from_json(json.dumps(raw))
