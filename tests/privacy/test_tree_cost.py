"""The privacy loss of plans over trees, by exhaustion in Fractions: all single rows, all pairs, all their neighbours.

As in `test_exact_cost`, `measure` itself is run with samplers that write down their parameters and draw nothing.
"""

import copy
import hashlib
import json
from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from helpers import NEIGHBOURS, MemoryEngine, Silence, label
from hushcube.costs import calibrate
from hushcube.designs import TreeDesign
from hushcube.designs.tree import design as tree
from hushcube.errors import BadInput, BudgetExceeded, PlanError
from hushcube.lattice.trees import Tree
from hushcube.planning.plan import read_design
from hushcube.private.measure import measure
from hushcube.strategies import Hierarchy
from ranged import every_variant, ordered_schema, ranged_request

PRIVACY = [{"epsilon": 1}, {"rho": "1/2"}, {"rho": 20}]
REQUESTS = {
    (9,): ("ranges(a0)", None),
    (5, 2): ("prefix(a0)*a1", 2),
    (4, 3): ("prefix(a0)*ranges(a1),a1", 3),
    (3, 2, 2): ("prefix(a0)*a1,ranges(a2)*a1", 2),
}
NEARLY = 1 + Fraction(1, 2**39)


@pytest.fixture
def drawn():
    return Silence()


def make_plans(sizes, privacy, neighbours):
    words, fan_out = REQUESTS[sizes]
    request = ranged_request(ordered_schema(sizes), words, neighbours=neighbours, **privacy)
    return list(every_variant(request, ["wavelet", Hierarchy(fan_out=fan_out)], recoveries=["gls"]))


def worst_loss(plan, drawn):
    """The largest privacy loss (epsilon, or rho) between neighbours of up to two rows, as a Fraction."""
    cells = list(product(*map(range, plan.schema.sizes)))
    databases = [rows for k in range(3) for rows in combinations_with_replacement(cells, k)]
    numbers, laws = {}, None
    for rows in databases:
        drawn.parameters.clear()
        values = measure(plan, MemoryEngine(rows, len(plan.schema)), noise=drawn).values
        assert laws is None or laws == drawn.parameters, "the noise depends on the data"
        laws, numbers[rows] = list(drawn.parameters), values
    noisy = [np.isfinite(budget) for budget in plan.budgets]
    changes = set()
    for rows in databases:
        if plan.privacy.neighbours == "add-remove":
            others = [(*rows, cell) for cell in cells if len(rows) < 2]
        else:
            others = [(*rows[:i], cell, *rows[i + 1 :]) for i in range(len(rows)) for cell in cells]
        for other in others:
            away = [np.abs(a - b).ravel() for a, b in zip(numbers[rows], numbers[tuple(sorted(other))], strict=True)]
            assert not any(a.any() for a, is_noisy in zip(away, noisy, strict=True) if not is_noisy), "exact, but moved"
            changes.add(tuple(np.concatenate([a for a, n in zip(away, noisy, strict=True) if n] or [[]]).tolist()))
    # samplers are called for one set after the other in the order of counting, which may not be the plan's
    laws = ordered_laws(plan, laws)
    return max(loss(plan.law.name, laws, change) for change in changes)


def ordered_laws(plan, laws):
    """One law a number, in the plan's order; what was drawn is the same multiset."""
    expected = []
    for shape, budget in zip(plan.shapes, plan.budgets.tolist(), strict=True):
        if np.isfinite(budget):
            law = Fraction(budget) if plan.law.name == "laplace" else 1 / (2 * Fraction(budget))
            expected += [law] * int(np.prod(shape, dtype=int))
    assert sorted(expected) == sorted(laws), "noise of another scale was drawn"
    return expected


def loss(law, laws, change):
    if law == "laplace":
        return sum((rate * int(c) for rate, c in zip(laws, change, strict=True) if c), Fraction(0))
    return sum((int(c) ** 2 / (2 * variance) for variance, c in zip(laws, change, strict=True) if c), Fraction(0))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", PRIVACY, ids=str)
@pytest.mark.parametrize("sizes", REQUESTS, ids=str)
def test_worst_case_over_all_small_databases_is_the_stated_cost_and_the_guarantee(sizes, privacy, neighbours, drawn):
    for plan in make_plans(sizes, privacy, neighbours):
        allowed = calibrate.row_budget(plan.privacy, "direct")
        worst, claimed = worst_loss(plan, drawn), plan.row_cost(plan.budgets)
        assert worst <= claimed <= allowed, label(plan)
        if neighbours == "add-remove":
            assert claimed == worst, label(plan)
        else:
            assert claimed <= worst * NEARLY, label(plan)
        assert worst >= allowed * (1 - Fraction(1, 10**9)), label(plan)


def by_hand(request, trees, wavelet, budgets=None):
    levels = np.array(list(product(*(range(tree.depth + 1) for tree in trees))))
    if budgets is None:
        budgets = np.random.default_rng(2).integers(1, 99, len(levels)) / 2.0**20
        if request.privacy.neighbours == "replace-one":
            budgets[(levels == 0).all(axis=1)] = np.inf
    return TreeDesign(request, "by hand", "optimal", "gls", "direct", budgets, trees, wavelet, levels)


UNEVEN_TREES = [
    ((4, 2), (Tree(4, (2, 2)), Tree(2, (2,))), (True, True)),
    ((4, 2), (Tree(4, (2, 2)), Tree(2, (2,))), (True, False)),
    ((3, 2), (Tree(3, (2, 3)), Tree(2, (2, 2))), (False, True)),  # cells of one node only: they part at no higher level
    ((3, 2), (Tree(3, (1, 3, 1)), Tree(2, (3,))), (False, False)),
    ((1, 3), (Tree(1, (2,)), Tree(3, (2, 2))), (True, True)),
]


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", PRIVACY[:2], ids=str)
@pytest.mark.parametrize(("sizes", "trees", "wavelet"), UNEVEN_TREES, ids=str)
def test_any_trees_cost_at_most_what_is_claimed(sizes, trees, wavelet, privacy, neighbours, drawn):
    """Whatever a plan file says: products of wavelets, trees wider than the cells, levels where nothing parts."""
    plan = by_hand(
        ranged_request(ordered_schema(sizes), "prefix(a0)*prefix(a1)", neighbours=neighbours, **privacy), trees, wavelet
    )
    worst, claimed = worst_loss(plan, drawn), plan.row_cost(plan.budgets)
    assert worst <= claimed
    if neighbours == "add-remove":
        assert claimed == worst
    elif all(t.size == t.leaves for t in trees):
        assert claimed <= worst * NEARLY


@pytest.mark.parametrize("wavelet", [True, False])
@pytest.mark.parametrize("privacy", PRIVACY[:2], ids=str)
def test_with_too_many_partings_the_sum_of_largest_changes_is_a_bound(privacy, wavelet, monkeypatch):
    plan = by_hand(
        ranged_request(ordered_schema((4, 4)), "prefix(a0)*prefix(a1)", neighbours="replace-one", **privacy),
        (Tree(4, (2, 2)), Tree(4, (2, 2))),
        (wavelet, False),
    )
    exact = plan.row_cost(plan.budgets)
    monkeypatch.setattr(tree, "_MOST_PARTINGS", 1)
    assert exact <= plan.row_cost(plan.budgets) <= 2 * exact


@pytest.mark.parametrize("privacy", PRIVACY, ids=str)
@pytest.mark.parametrize("sizes", REQUESTS, ids=str)
def test_the_total_is_public_when_rows_are_replaced_and_nothing_is_when_they_come_and_go(sizes, privacy):
    for plan in make_plans(sizes, privacy, "replace-one"):
        public = ~np.isfinite(plan.budgets)
        np.testing.assert_array_equal(public, (plan.levels == 0).all(axis=1), err_msg=label(plan))
        assert public.sum() == 1
        (total,) = (
            v for v, p in zip(measure(plan, MemoryEngine([[0] * len(sizes)] * 7)).values, public, strict=True) if p
        )
        assert int(total) == 7
    assert all(np.isfinite(plan.budgets).all() for plan in make_plans(sizes, privacy, "add-remove"))


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_rows_per_person_divide_the_budget_of_a_row(neighbours):
    for privacy, power in (({"epsilon": 1}, 1), ({"rho": "1/2"}, 2)):
        for plan in make_plans((5, 2), {**privacy, "rows_per_person": 7}, neighbours):
            allowed = plan.privacy.epsilon or plan.privacy.rho
            assert allowed * (1 - Fraction(1, 10**9)) <= plan.row_cost(plan.budgets) * 7**power <= allowed


def test_the_judge_catches_noise_that_is_too_small(drawn, monkeypatch):
    plan = copy.copy(make_plans((5, 2), {"epsilon": 1}, "add-remove")[0])  # others share it
    object.__setattr__(plan, "budgets", plan.budgets * 1.01)
    monkeypatch.setattr(type(plan), "check_cost", lambda _plan: None)  # which would refuse to draw
    assert worst_loss(plan, drawn) > calibrate.row_budget(plan.privacy, "direct")


# --------------------------------------------------------------------------------------------------------- plan files

LAWS = [*PRIVACY[:2], {"epsilon": 1, "delta": "1e-6"}]
files = pytest.mark.parametrize(
    ("law", "neighbours"), [(law, neighbours) for law in LAWS for neighbours in NEIGHBOURS], ids=str
)


def sealed(raw):
    """The text of a plan with a digest that fits it."""
    raw = {key: value for key, value in raw.items() if key != "digest"}
    canonical = json.dumps(raw, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps({**raw, "digest": hashlib.sha256(canonical.encode()).hexdigest()})


@files
def test_plan_files_read_back_and_higher_budgets_are_refused(law, neighbours):
    for sizes in REQUESTS:
        for plan in make_plans(sizes, law, neighbours):
            again = read_design(plan.to_json())
            assert again.to_json() == plan.to_json() == read_design(sealed(plan.to_dict())).to_json()
            np.testing.assert_array_equal(again.budgets, plan.budgets)
            np.testing.assert_array_equal(again.levels, plan.levels)
            assert (again.trees, again.wavelet, again.request) == (plan.trees, plan.wavelet, plan.request)
            raw = plan.to_dict()
            raw["budget"] = [b if b is None else b * (1 + 1e-9) for b in raw["budget"]]
            with pytest.raises(BudgetExceeded):
                read_design(sealed(raw))


@files
def test_noise_cannot_be_switched_off_nor_measured_for_nothing(law, neighbours):
    for plan in make_plans((5, 2), law, neighbours):
        raw = plan.to_dict()
        for at, budget in enumerate(raw["budget"]):
            changed = copy.deepcopy(raw)
            if budget is not None:
                changed["budget"][at] = None
            else:  # the public set, moved to a level that changes
                changed["measured"][at] = [0, 1]
            with pytest.raises(BadInput):
                read_design(sealed(changed))
        unmeasured = [list(row) for row in product(range(4), range(2)) if list(row) not in raw["measured"]]
        if unmeasured:
            more = copy.deepcopy(raw)
            more["measured"].append(unmeasured[0])
            more["budget"].append(max(b for b in raw["budget"] if b is not None))
            with pytest.raises(BadInput):
                read_design(sealed(more))


def tampered(change):
    raw = make_plans((5, 2), {"epsilon": 1}, "replace-one")[0].to_dict()
    change(raw)
    return raw


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["measured"].__setitem__(1, [9, 1]),
        lambda raw: raw["measured"].__setitem__(1, [-1, 1]),
        lambda raw: raw["measured"].__setitem__(1, raw["measured"][2]),
        lambda raw: raw["measured"].__setitem__(1, [0.5, 1]),
        lambda raw: raw["measured"].__setitem__(1, ["x", 1]),
        lambda raw: raw["measured"].__setitem__(1, [1]),
        lambda raw: raw["measured"].pop(),
        lambda raw: raw.update(measured=[]),
        lambda raw: raw.update(fan_outs=[[2, 2, 2]]),
        lambda raw: raw.update(fan_outs=[[2, 2], [2]]),
        lambda raw: raw.update(fan_outs=[[2, 2, 2], [0]]),
        lambda raw: raw.update(fan_outs=[[2, 4], [2]]),
        lambda raw: raw.update(fan_outs=[[2] * 60, [2]]),
        lambda raw: raw.update(fan_outs=[[2, 2, 2], ["x"]]),
        lambda raw: raw.update(fan_outs=[[2, 2, 2], 2]),
        lambda raw: raw.update(fan_outs=7),
        lambda raw: raw.update(wavelet=[True]),
        lambda raw: raw.update(wavelet=["x", False]),
        lambda raw: raw.update(wavelet=None),
        lambda raw: raw.pop("wavelet"),
        lambda raw: raw.pop("fan_outs"),
        lambda raw: raw.pop("measured"),
        lambda raw: raw.update(design="lattice"),
        lambda raw: raw.update(design="treee"),
        lambda raw: raw.update(workload=["a1"]),
        lambda raw: raw.update(workload=["prefix(a0)"]),
        lambda raw: raw.update(workload=["prefix(a0)*b"]),
        lambda raw: raw["schema"]["attributes"][0].update(range=[0, 99]),
        lambda raw: raw["schema"]["attributes"][0].update(ordered=False),
    ],
)
def test_a_tampered_plan_is_refused_even_with_a_digest_that_fits(change):
    with pytest.raises(BadInput):
        read_design(sealed(tampered(change)))


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["measured"].reverse(),
        lambda raw: raw["budget"].__setitem__(1, raw["budget"][1] / 2),
        lambda raw: raw.update(recovery="ols"),
        lambda raw: raw.update(workload=["ranges(a0)*a1"]),
    ],
)
def test_a_changed_plan_without_a_new_digest_is_refused(change):
    raw = json.loads(make_plans((5, 2), {"epsilon": 1}, "add-remove")[0].to_json())
    change(raw)
    with pytest.raises(PlanError, match="the file was changed"):
        read_design(json.dumps(raw))
