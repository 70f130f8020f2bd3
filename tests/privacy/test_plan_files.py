"""A plan file cannot spend more than its guarantee: edits are noticed, and honest-looking ones are re-costed."""

import copy
import hashlib
import json

import pytest

from helpers import LAWS, NEIGHBOURS, applicable, every_plan, label, make_plan, make_request
from hushcube.errors import BadInput, BudgetExceeded, PlanError
from hushcube.planning.plan import read_design


def sealed(raw):
    """The text of a plan with a digest that fits it."""
    raw = {key: value for key, value in raw.items() if key != "digest"}
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps({**raw, "digest": hashlib.sha256(canonical.encode()).hexdigest()})


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_round_trip_is_identical(law, neighbours):
    for plan in every_plan(make_request((2, 3, 1), "2-way,a0=2.5", neighbours=neighbours, **law)):
        again = read_design(plan.to_json())
        assert again.to_json() == plan.to_json(), label(plan)
        assert again.digest == plan.digest
        assert again.budgets.tolist() == plan.budgets.tolist()
        assert again.request == plan.request
        assert sealed(plan.to_dict()) == json.dumps(json.loads(plan.to_json())), (
            "this file seals plans as hushcube does"
        )


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize(("law", "strategy"), [(law, s) for law in LAWS for s in applicable(law)], ids=str)
def test_budgets_a_billionth_higher_are_refused(strategy, law, neighbours):
    raw = make_plan(make_request((2, 3, 2), "2-way", neighbours=neighbours, **law), strategy).to_dict()
    raw["budget"] = [b if b is None else b * (1 + 1e-9) for b in raw["budget"]]
    with pytest.raises(BudgetExceeded):
        read_design(sealed(raw))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("strategy", [*applicable({"epsilon": 1}), "sketch"])  # others have tests of their own
def test_noise_cannot_be_switched_off(strategy, neighbours):
    raw = make_plan(make_request((2, 3, 1), "cube", neighbours=neighbours, epsilon=1), strategy).to_dict()
    for at, b in enumerate(raw["budget"]):
        if b is not None:
            changed = copy.deepcopy(raw)
            changed["budget"][at] = None
            with pytest.raises(BudgetExceeded):
                read_design(sealed(changed))


def plan_json():
    return json.loads(make_plan(make_request((2, 3), "2-way,a0", epsilon=1), "workload").to_json())


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["privacy"].update(epsilon="2"),
        lambda raw: raw["privacy"].update(rows_per_person=2),
        lambda raw: raw["privacy"].update(neighbours="replace-one"),
        lambda raw: raw.update(recovery="ols"),
        lambda raw: raw.update(strategy="identity"),
        lambda raw: raw.update(workload=["2-way"]),
        lambda raw: raw["budget"].__setitem__(0, raw["budget"][0] / 2),
        lambda raw: raw["schema"]["attributes"][0].update(size=3),
        lambda raw: raw.update(digest="0" * 64),
        lambda raw: raw.pop("digest"),
        lambda raw: raw.update(noise="none"),
    ],
)
def test_a_changed_plan_without_a_new_digest_is_refused(change):
    raw = plan_json()
    change(raw)
    with pytest.raises(BadInput):
        read_design(json.dumps(raw))


FIELDS = ["schema", "workload", "privacy", "strategy", "budgets", "recovery"]
FIELDS += ["proof", "basis", "measured", "budget", "format"]
DAMAGES = ["missing", None, 7, "x", [], {}, [[]], [["x"]], [[[5]]], [[[1, 0]]], float("1e400")]


@pytest.mark.parametrize(("field", "damage"), [(field, damage) for field in FIELDS for damage in DAMAGES])
def test_damaged_fields_are_refused(field, damage):
    raw = plan_json()
    if damage == "missing":
        del raw[field]
    else:
        raw[field] = damage
    with pytest.raises(BadInput):
        read_design(sealed(raw))


@pytest.mark.parametrize(
    "budgets", [[-1, 0.5], [0, 0.5], ["nan", 0.5], [0.5], [0.1, 0.1, 0.1], [True, "x"], [1e-400, 0.5]]
)
def test_budgets_that_are_not_positive_numbers_are_refused(budgets):
    raw = plan_json()
    raw["budget"] = budgets
    with pytest.raises(BadInput):
        read_design(sealed(raw))


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "7", '"x"', "{}", '{"format": 1}', '{"format": 99}'])
def test_what_is_no_plan_is_refused(text):
    with pytest.raises(PlanError):
        read_design(text)


@pytest.mark.parametrize("proof", ["direct", "smoothing", "zcdp", "exact", "none"])
def test_a_proof_that_does_not_apply_is_refused(proof):
    """Replace-one moves two numbers; the pure and zCDP guarantees need no conversion."""
    for law in LAWS:
        raw = make_plan(make_request((2, 3), "2-way", neighbours="replace-one", **law), "workload").to_dict()
        allowed = ("smoothing", "zcdp") if "delta" in law else ("direct",)
        if proof not in allowed:
            raw["proof"] = proof
            with pytest.raises(PlanError):
                read_design(sealed(raw))


@pytest.mark.parametrize(("basis", "law"), [("helmert", {"epsilon": 1}), ("centred", {"rho": "1/2"})])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_a_basis_under_the_wrong_law_is_refused(basis, law, neighbours):
    """Helmert rows are costed for Gaussian noise, centred ones (stretched to integers) for Laplace noise."""
    raw = make_plan(make_request((2, 3), "2-way", neighbours=neighbours, **law), "workload", "uniform").to_dict()
    raw["basis"] = basis
    raw["budget"] = [b if b is None else b / 100 for b in raw["budget"]]
    with pytest.raises(BadInput):
        read_design(sealed(raw))
