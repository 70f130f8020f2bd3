"""The Python verbs: the same steps and the same refusals as the command line's."""

import pickle

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import hushcube
import hushcube as hc
from hushcube import Attribute, Schema, compare, plan, release
from hushcube.designs import LatticeDesign
from hushcube.errors import (
    BadInput,
    BudgetExceeded,
    DataError,
    HushcubeError,
    NotApplicable,
    OutputError,
    PrivacyError,
    QueryError,
    TooLarge,
    WorkloadError,
)
from hushcube.planning.plan import Plan
from hushcube.samples import TITANIC, titanic

BUDGET = {"epsilon": 1, "neighbours": "add-remove"}


@pytest.fixture(scope="module")
def published():
    return release(plan(TITANIC, "<=2-way", **BUDGET), titanic())


def test_public_names_are_there():
    assert hushcube.__all__ == sorted(hushcube.__all__)
    for name in hushcube.__all__:
        assert getattr(hushcube, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = hushcube.nothing


def test_a_release_in_memory(published):
    assert published.private
    assert len(published) == 11 and "class*survived" in list(published)
    table = published.table("class*survived")
    assert table.attributes == ("class", "survived") and table.values.shape == (4, 2)
    truth = [[122, 203], [167, 118], [528, 178], [673, 212]]
    assert (abs(table.values - truth) < 12 * table.std_errors).all()  # one failure in thousands of millions
    assert published.table("class").values == pytest.approx(table.values.sum(axis=1))
    women = published.estimate("sex*survived", {"sex": "female", "survived": "yes"})
    assert women.low < women.value < women.high
    assert women.value == pytest.approx(
        published.table("sex*survived", where={"sex": "female", "survived": "yes"}).values.item()
    )


def test_a_release_on_disk_can_be_opened(tmp_path):
    p = plan(TITANIC, "<=2-way", **BUDGET)
    first = release(p, titanic(), out=tmp_path / "out")
    again = hc.open(str(tmp_path / "out"))
    assert np.array_equal(first.table("class*sex").values, again.table("class*sex").values)
    assert first.plan.digest == again.plan.digest == p.digest
    with pytest.raises(OutputError, match="exists already"):
        release(p, titanic(), out=tmp_path / "out")


def test_every_frame_gives_the_same_release():
    p = plan(TITANIC, "2-way", **BUDGET)
    people = titanic()
    frames = [
        people,
        people.to_pandas(),
        pl.from_arrow(people),
        pl.from_arrow(people).lazy(),
        duckdb.from_arrow(people),
    ]
    found = [release(p, frame, seed=3).table("class*sex").values for frame in frames]
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_a_seed_repeats_and_is_not_private():
    p = plan(TITANIC, "2-way", **BUDGET)
    first, again, other = (release(p, titanic(), seed=seed) for seed in (1, 1, 2))
    assert not first.private
    assert np.array_equal(first.table("class").values, again.table("class").values)
    assert not np.array_equal(first.table("class").values, other.table("class").values)


@pytest.mark.parametrize("seed", [-1, True, 1.5, "1"])
def test_seeds_are_whole_numbers(seed):
    with pytest.raises(BadInput, match="seed"):
        release(plan(TITANIC, "1-way", **BUDGET), titanic(), seed=seed)


def test_compare_offers_every_variant_and_chooses_the_best():
    found = compare(TITANIC, "<=2-way", **BUDGET)
    assert found.chosen in found.plans
    assert {plan.strategy for plan in found.plans} | found.skipped.keys() >= {"identity", "workload", "fourier"}
    assert plan(TITANIC, "<=2-way", **BUDGET).digest == found.chosen.digest


def test_plans_go_through_json():
    p = plan(TITANIC, ["1-way", "class*sex=3"], rho="1/2", neighbours="replace-one", rows_per_person=2)
    again = Plan.from_json(p.to_json())
    assert again.digest == p.digest and again.to_json() == p.to_json()
    assert again.workload == p.workload and again.privacy == p.privacy


def test_progress_is_told(tmp_path):
    told = []
    p = plan(TITANIC, "2-way", **BUDGET)
    release(p, titanic(), out=tmp_path / "out", progress=lambda stage, share: told.append((stage, share)))
    stages = list(dict.fromkeys(stage for stage, _ in told))
    assert stages == ["counting", "measuring", "writing"]
    assert all(0 <= share <= 1 for _, share in told)
    assert [share for stage, share in told if stage == "writing"][-1] == 1.0


def test_budgets_mean_what_is_written():
    """0.1 is one tenth, as a float, a text, or a fraction."""
    digests = {plan(TITANIC, "1-way", epsilon=e, neighbours="add-remove").digest for e in (0.1, "0.1", "1/10", "1e-1")}
    assert len(digests) == 1


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"epsilon": 0}, PrivacyError),
        ({"epsilon": float("nan")}, PrivacyError),
        ({"epsilon": True}, PrivacyError),
        ({"epsilon": 1, "rho": 1}, PrivacyError),
        ({"epsilon": 1, "neighbours": "swap"}, PrivacyError),
        ({"epsilon": 1, "rows_per_person": 0}, PrivacyError),
        ({"epsilon": 1, "rows_per_person": True}, PrivacyError),
        ({"epsilon": 1, "workload": "9-way"}, WorkloadError),
        ({"epsilon": 1, "workload": []}, WorkloadError),
        ({"epsilon": 1, "workload": [3]}, WorkloadError),
        ({"epsilon": 1, "strategy": "magic"}, BadInput),
    ],
    ids=str,
)
def test_refusals(options, kind):
    options = {"workload": "1-way", "neighbours": "add-remove", **options}
    with pytest.raises(kind) as caught:
        plan(TITANIC, **options)
    assert isinstance(caught.value, HushcubeError) and caught.value.field and caught.value.fix


def test_neighbours_have_no_default():
    with pytest.raises(TypeError, match="neighbours"):
        plan(TITANIC, "1-way", epsilon=1)


def test_errors_carry_their_values():
    wide = Schema(tuple(Attribute(name=f"a{i}", codes=10) for i in range(12)))
    with pytest.raises(TooLarge) as large:
        plan(wide, "12-way", **BUDGET)
    assert (large.value.cells, large.value.limit) == (10**12, 10**8)
    with pytest.raises(NotApplicable) as skipped:
        plan(wide, "1-way", strategy="identity", **BUDGET)
    assert skipped.value.strategy == "identity" and "1,000,000,000,000" in skipped.value.reason
    p = plan(TITANIC, "1-way", strategy="workload", **BUDGET).count
    with pytest.raises(BudgetExceeded) as raised:
        LatticeDesign(p.request, p.strategy, p.budget_rule, p.recovery, p.proof, 2 * p.budgets, p.basis, p.measured)
    assert raised.value.requested > raised.value.remaining == 1


def test_questions_that_cannot_be_answered(published):
    with pytest.raises(QueryError, match="not published"):
        published.table("class*sex*age")
    with pytest.raises(QueryError, match="'shoe'"):
        published.table("shoe")
    with pytest.raises(QueryError, match="where, sex"):
        published.table("sex", where={"sex": "unknown"})
    with pytest.raises(QueryError, match="names no label"):
        published.estimate("sex", {"sex": []})


def test_data_that_does_not_fit_is_refused_without_showing_it(tmp_path):
    frame = pd.DataFrame({"class": ["1st"], "sex": ["qz7731"], "age": ["adult"], "survived": ["no"]})
    with pytest.raises(DataError, match="attribute 'sex'") as caught:
        release(plan(TITANIC, "2-way", **BUDGET), frame, out=tmp_path / "out")
    assert "qz7731" not in str(caught.value) and caught.value.__cause__ is None
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match="type list"):
        release(plan(TITANIC, "2-way", **BUDGET), [1, 2])


def test_plans_and_schemas_can_be_copied():
    assert pickle.loads(pickle.dumps(TITANIC)) == TITANIC
    assert Schema.from_yaml(TITANIC.to_yaml()) == TITANIC
