import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from datasets import EARLIER
from hushcube import Attribute, Schema, compare, plan, release
from hushcube.errors import BadInput, BudgetExceeded, DataError, PlanError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.planning.plan import COUNT, Plan
from hushcube.strategies.strategy import objective_value

SCHEMA = Schema(
    (Attribute(name="a", codes=2), Attribute(name="b", codes=3)),
    "x",
    measures=(Measure(name="v", bounds=(0, 10)), Measure(name="w", bounds=(-5, 5))),
)


def cube(words="avg(v),sum(w)", **given):
    return plan(SCHEMA, "<=2-way", measures=words, **{"epsilon": 1, "neighbours": "add-remove", **given})


def table(values, w=None):
    n = len(values)
    return pa.table({"a": [0] * n, "b": [1] * n, "v": values, "w": [0] * n if w is None else w})


def test_parts_share_the_guarantee_and_read_back():
    for privacy in ({"epsilon": 1}, {"epsilon": None, "rho": "1/3"}, {"epsilon": 1, "delta": "1e-6"}):
        made = cube(**privacy)
        for name in ("epsilon", "rho", "delta"):
            whole = getattr(made.privacy, name)
            parts = [getattr(part.privacy, name) for part in (made.count, *made.sums.values())]
            assert whole is None or sum(parts) == whole
        assert Plan.from_json(made.to_json()).to_json() == made.to_json()
    assert [part.privacy.rows_per_person for part in made.sums.values()] == [10, 5]


@pytest.mark.parametrize("name", ["counts-plan-1.json", "cube-plan-1.json"])
def test_plan_files_of_format_1_are_read(name):
    """They are those of the releases beside them, and are written anew in the present format."""
    text = (EARLIER / name).read_text()
    found = Plan.from_json(text)
    beside = hc.open(EARLIER / ("cube-3" if "cube" in name else "counts-3"))
    assert found.digest == beside.plan.digest and "measures" in json.loads(found.to_json())
    assert Plan.from_json(found.to_json()).to_json() == found.to_json()
    assert [design.digest for design in found.designs.values()] == [
        part["digest"] for part in json.loads(text).get("parts", {"count": json.loads(text)}).values()
    ]
    for change in ({"surplus": 1}, {"privacy": {**json.loads(text)["privacy"], "epsilon": "19"}}, {"format": True}):
        with pytest.raises((PlanError, BudgetExceeded)):
            Plan.from_json(json.dumps({**json.loads(text), **change}))


def test_counts_alone_are_a_plan_without_measures():
    made = plan(SCHEMA, "<=2-way", rho=1, neighbours="add-remove")
    assert list(made.designs) == [COUNT] and not made.asked and made.count.privacy == made.privacy
    assert Plan.from_json(made.to_json()).digest == made.digest
    for wrong in (replace(made.privacy, rows_per_person=2), cube().privacy):
        with pytest.raises(PlanError, match="another guarantee"):
            Plan(made.schema, wrong, (), made.designs)


def test_every_strategy_is_compared_for_all_parts():
    found = compare(SCHEMA, "<=2-way", measures="avg(v)", epsilon=1, neighbours="add-remove", strategy="all")
    assert found.chosen in found.plans and len(found.plans) > 5
    for one in found.plans:
        assert len({(d.strategy, d.budget_rule, d.recovery) for d in one.designs.values()}) == 1
    best = compare(SCHEMA, "<=2-way", measures="avg(v)", epsilon=1, neighbours="add-remove", strategy="auto").chosen
    for name, ranking in found.parts.items():
        assert objective_value(best.designs[name]) <= min(objective_value(c.plan) for c in ranking.candidates) * 1.001


def test_shares_may_be_given():
    made = cube(shares={"count": "0.5", "v": "0.25", "w": "0.25"})
    assert made.count.privacy.epsilon == Fraction(1, 2)
    for wrong in ({"count": 1}, {"count": "0.9", "v": "0.1", "w": "0.1"}, {"count": 0, "v": "0.5", "w": "0.5"}):
        with pytest.raises(BadInput, match="shares"):
            cube(shares=wrong)


@pytest.mark.parametrize("words", ["avg(x)", "mean(v)", "avg(v", "count", ""])
def test_words_that_ask_for_nothing_known_are_refused(words):
    with pytest.raises(BadInput, match="measure"):
        cube(words)


def test_parts_that_cost_more_than_the_whole_are_refused():
    made = cube()
    with pytest.raises(BudgetExceeded):
        Plan(made.schema, made.count.privacy, made.asked, made.designs)
    with pytest.raises(PlanError, match="another number of rows"):
        Plan(made.schema, made.privacy, made.asked, {**made.designs, "v": made.sums["w"], "w": made.sums["v"]})


def test_values_are_clipped_rounded_and_summed_exactly():
    """At an epsilon that drowns no unit, sums are those of the clipped values."""
    made = cube("sum(v),sum(w)", epsilon=500)
    found = release(made, table([1, 2.4, 99, -3, np.inf, 2.5, 3.5], w=[5, -5, 1, 99, 0, 0, -99]), seed=1)
    assert found.table("total", "sum(v)").values == pytest.approx(1 + 2 + 10 + 0 + 10 + 2 + 4)
    assert found.table("total", "sum(w)").values == pytest.approx(1)
    assert found.table("total").values == pytest.approx(7)


@pytest.mark.parametrize("values", [[1.0, None], [1.0, float("nan")], ["1", "many"]])
def test_missing_values_are_refused_or_count_as_declared(values):
    with pytest.raises(DataError, match="measure 'v'"):
        release(cube(), table(values), seed=1)
    kind = Measure(name="v", bounds=(0, 10), missing=4)
    schema = Schema(SCHEMA.attributes, "x", measures=(kind,))
    made = plan(schema, "1-way", measures="sum(v)", epsilon=500, neighbours="add-remove")
    assert release(made, table(values), seed=1).table("total", "sum(v)").values == pytest.approx(5)


def test_sums_that_might_not_fit_64_bits_are_refused():
    schema = Schema(
        (Attribute(name="a", codes=1_000), Attribute(name="b", codes=1_000)),
        "x",
        measures=(Measure(name="v", bounds=(0, 2**31)),),
    )
    made = plan(schema, "2-way", measures="sum(v)", epsilon=1, neighbours="add-remove", strategy="workload")
    few = pa.table({"a": [0] * 4_000, "b": [0] * 4_000, "v": [1] * 4_000})
    release(made, few, seed=1)
    with pytest.raises(DataError, match="might not fit"):
        release(made, pa.concat_tables([few, few]), seed=1)


def test_sums_are_of_the_rows_that_count():
    schema = Schema(SCHEMA.attributes, "x", Unit("id", 3), (Measure(name="v", bounds=(0, 10)),))
    made = plan(schema, "1-way", measures="avg(v)", epsilon=500, neighbours="add-remove")
    data = table([7] * 1_000).append_column("id", pa.array(["one"] * 1_000))
    heard = []
    found = release(made, data, seed=1, tell_owner=heard.append)
    assert found.table("total").values == pytest.approx(3) and found.table("total", "sum(v)").values == pytest.approx(
        21
    )
    assert found.table("total", "avg(v)").values == pytest.approx(7) and len(heard) == 1


def test_sums_add_up():
    rng = np.random.default_rng(3)
    n = 500
    data = pa.table({"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n), "v": rng.random(n), "w": rng.random(n)})
    found = release(cube(strategy="workload"), data, seed=2)
    for what in (COUNT, "sum(v)", "sum(w)"):
        both, one = found.table("a*b", what).values, found.table("a", what).values
        assert both.sum(axis=1) == pytest.approx(one)
        assert one.sum() == pytest.approx(float(found.table("total", what).values))
