from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from hushcube import Attribute, Schema
from hushcube.api import plan_cube, release_cube
from hushcube.errors import BadInput, BudgetExceeded, DataError, PlanError
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.planning.plan import COUNT, Plan

SCHEMA = Schema(
    (Attribute(name="a", codes=2), Attribute(name="b", codes=3)),
    "x",
    measures=(Measure(name="v", bounds=(0, 10)), Measure(name="w", bounds=(-5, 5))),
)


def cube(words="avg(v),sum(w)", **given):
    return plan_cube(SCHEMA, "<=2-way", words, **{"epsilon": 1, "neighbours": "add-remove", **given})


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
        Plan(made.schema, made.count.privacy, made.asked, made.count, made.sums)
    with pytest.raises(PlanError, match="another number of rows"):
        Plan(made.schema, made.privacy, made.asked, made.count, {"v": made.sums["w"], "w": made.sums["v"]})


def test_values_are_clipped_rounded_and_summed_exactly():
    """At an epsilon that drowns no unit, sums are those of the clipped values."""
    made = cube("sum(v),sum(w)", epsilon=500)
    found = release_cube(made, table([1, 2.4, 99, -3, np.inf, 2.5, 3.5], w=[5, -5, 1, 99, 0, 0, -99]), seed=1)
    assert found.table("total", "sum(v)").values == pytest.approx(1 + 2 + 10 + 0 + 10 + 2 + 4)
    assert found.table("total", "sum(w)").values == pytest.approx(1)
    assert found.table("total").values == pytest.approx(7)


@pytest.mark.parametrize("values", [[1.0, None], [1.0, float("nan")], ["1", "many"]])
def test_missing_values_are_refused_or_count_as_declared(values):
    with pytest.raises(DataError, match="measure 'v'"):
        release_cube(cube(), table(values), seed=1)
    kind = Measure(name="v", bounds=(0, 10), missing=4)
    schema = Schema(SCHEMA.attributes, "x", measures=(kind,))
    made = plan_cube(schema, "1-way", "sum(v)", epsilon=500, neighbours="add-remove")
    assert release_cube(made, table(values), seed=1).table("total", "sum(v)").values == pytest.approx(5)


def test_sums_that_might_not_fit_64_bits_are_refused():
    schema = Schema(
        (Attribute(name="a", codes=1_000), Attribute(name="b", codes=1_000)),
        "x",
        measures=(Measure(name="v", bounds=(0, 2**31)),),
    )
    made = plan_cube(schema, "2-way", "sum(v)", epsilon=1, neighbours="add-remove", strategy="workload")
    few = pa.table({"a": [0] * 4_000, "b": [0] * 4_000, "v": [1] * 4_000})
    release_cube(made, few, seed=1)
    with pytest.raises(DataError, match="might not fit"):
        release_cube(made, pa.concat_tables([few, few]), seed=1)


def test_sums_are_of_the_rows_that_count():
    schema = Schema(SCHEMA.attributes, "x", Unit("id", 3), (Measure(name="v", bounds=(0, 10)),))
    made = plan_cube(schema, "1-way", "avg(v)", epsilon=500, neighbours="add-remove")
    data = table([7] * 1_000).append_column("id", pa.array(["one"] * 1_000))
    heard = []
    found = release_cube(made, data, seed=1, tell_owner=heard.append)
    assert found.table("total").values == pytest.approx(3) and found.table("total", "sum(v)").values == pytest.approx(
        21
    )
    assert found.table("total", "avg(v)").values == pytest.approx(7) and len(heard) == 1


def test_sums_add_up():
    rng = np.random.default_rng(3)
    n = 500
    data = pa.table({"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n), "v": rng.random(n), "w": rng.random(n)})
    found = release_cube(cube(strategy="workload"), data, seed=2)
    for what in (COUNT, "sum(v)", "sum(w)"):
        both, one = found.table("a*b", what).values, found.table("a", what).values
        assert both.sum(axis=1) == pytest.approx(one)
        assert one.sum() == pytest.approx(float(found.table("total", what).values))
