"""What a stack costs, against brute force over all people; and stacks that cannot be, because they would cost more."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import MemoryEngine, hand_plan, make_plan, make_request, make_schema, random_codes
from hushcube.designs import StackedDesign
from hushcube.designs.design import digest_of
from hushcube.errors import BadInput, BudgetExceeded, BundleError, NotApplicable, PlanError
from hushcube.lattice.basis import BASES
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.planning.plan import Plan, read_design
from hushcube.planning.pricing import price
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from stacks import DenseStack, hand_layer, random_stack

CUBE = Workload.parse("cube", make_schema((2, 3)))


def largest_change(stack):
    """max over what one row may do of sum beta |change| (Laplace) or sum beta change² (Gaussian), row by row."""
    dense = DenseStack(stack)
    noisy, columns = ~dense.public, dense.S.T
    budgets = dense.budget[noisy] / (dense.stretch if stack.privacy.is_pure else dense.norms)[noisy]
    changes = []
    if "add-remove" in stack.privacy.row_changes:
        changes += list(columns)
    if "replace-one" in stack.privacy.row_changes:
        changes += [one - other for one, other in combinations(columns, 2)]
    assert not any(change[dense.public].any() for change in changes)
    power = 1 if stack.privacy.is_pure else 2
    return max((float(budgets @ np.abs(change[noisy]) ** power) for change in changes), default=0.0)


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_a_row_costs_what_brute_force_finds(seed):
    """Exactly where all columns are alike, or one basis was measured; elsewhere never less."""
    stack = random_stack(seed)
    brute, cost = largest_change(stack), float(stack.row_cost(stack.budgets))
    assert brute <= cost * (1 + 1e-12)
    assert cost <= float(sum(layer.row_cost(layer.budgets) for layer in stack.designs)) * (1 + 1e-12)
    if stack.privacy.row_changes == ("add-remove",) or len(stack.pools) == 1:
        assert cost == pytest.approx(brute, rel=1e-9)


@settings(max_examples=15)
@given(st.integers(0, 2**32))
def test_no_row_moves_a_number_farther_than_is_said(seed):
    """The price on an account of rho rests on it: Fourier rows change by 2 where a row is replaced."""
    stack = random_stack(seed)
    if not stack.privacy.is_pure:
        return
    dense = DenseStack(stack)
    columns = (dense.S / dense.stretch[:, None]).T
    both = "replace-one" in stack.privacy.row_changes
    moved = np.abs(columns[:, None] - columns if both else columns).reshape(-1, len(dense.S)).max(axis=0)
    assert (moved <= stack.moves()[dense.set_of] + 1e-12).all()


def test_the_price_of_a_stack_on_an_account_of_rho_is_at_most_that_of_its_layers():
    account = Privacy.of(rho=10, neighbours="replace-one")
    designs = [make_plan(make_request((2, 3), "cube", neighbours="replace-one", epsilon=1), "fourier")] * 2
    apart = [price(Plan.of_counts(each), account) for each in designs]
    whole = price(Plan.of_counts(StackedDesign.of(designs, CUBE)), account)
    assert max(apart) < whole <= sum(apart) * (1 + Fraction(1, 10**9))


def test_layers_of_one_basis_are_maximised_together():
    """One row of a changes one layer most, another the other: together they cost less than one after the other."""
    workload = Workload.parse("cube", make_schema((2, 2)))
    first, second = ({(0,): 0.1, (): 0.1}, {(0, 1): 0.1})
    layers = [hand_layer(workload, "helmert", each, pure=False, neighbours="replace-one") for each in (first, second)]
    seen = hand_layer(workload, "helmert", {(1,): 0.1}, pure=False, neighbours="replace-one")
    stack = StackedDesign.of([*layers, seen], workload)
    apart = sum(layer.row_cost(layer.budgets) for layer in stack.designs)
    assert stack.row_cost(stack.budgets) < apart
    assert float(stack.row_cost(stack.budgets)) == pytest.approx(largest_change(stack), rel=1e-9)


# ------------------------------------------------------------------------------------------- what is refused, and where


def two(law=None, neighbours="add-remove", **given):
    """Two layers of tables."""
    request = make_request((2, 3), "cube", neighbours=neighbours, **(law or {"rho": "1/4"}), **given)
    return [make_plan(request, "workload"), make_plan(request, "residual" if law is None else "workload")]


def test_the_guarantee_is_the_sum_of_what_was_spent():
    designs = two()
    little = hand_plan(make_request((2, 3), "0-way", rho="1e-9"), BASES["marginal"], [()], [1e-10])
    stack = StackedDesign.of([*designs, little], CUBE)
    assert stack.privacy == Privacy.of(rho=Fraction(1, 2) + Fraction(1, 10**9), neighbours="add-remove")
    assert stack.person_cost <= stack.privacy.rho
    less = replace(stack.request, privacy=Privacy.of(rho="0.5", neighbours="add-remove"))
    with pytest.raises(BudgetExceeded, match="rho for all layers"):
        replace(stack, request=less)


def test_a_layer_may_not_cost_more_than_its_own_guarantee():
    """Not even where the whole would allow it."""
    stack = StackedDesign.of(two(), CUBE)
    small, large = stack.layers
    less = replace(small, privacy=Privacy.of(rho="0.2", neighbours="add-remove"))
    more = replace(large, privacy=Privacy.of(rho="0.3", neighbours="add-remove"))
    with pytest.raises(BudgetExceeded):
        replace(stack, layers=(less, more))


@pytest.mark.parametrize(
    ("others", "told"),
    [
        ({"neighbours": "replace-one"}, "neighbours"),
        ({"law": {"epsilon": 1}}, "kind"),
        ({"law": {"epsilon": 1, "delta": "1e-6"}}, "kind"),
    ],
    ids=str,
)
def test_layers_protect_the_same_people_in_the_same_way(others, told):
    with pytest.raises(PlanError, match=told) as refused:
        StackedDesign.of([*two(), *two(**others)], CUBE)
    assert "Fix" in str(refused.value)


def test_what_cannot_be_a_layer_is_refused():
    deltas = two({"epsilon": 1, "delta": "1e-6"})
    with pytest.raises(PlanError, match="kind"):
        StackedDesign.of(deltas, CUBE)
    ranged = make_plan(make_request((2, 3), "cube", rho=1), "sketch")
    with pytest.raises(NotApplicable, match="layers of a stack"):
        StackedDesign.of([ranged], CUBE)
    with pytest.raises(PlanError, match="another schema"):
        StackedDesign.of(two(), Workload.parse("cube", make_schema((2, 4))))
    with pytest.raises(PlanError, match="none"):
        StackedDesign.of([], CUBE)
    only = hand_plan(make_request((2, 3), "a0", rho=1), BASES["marginal"], [(0,)], [0.5])
    with pytest.raises(PlanError, match="too little"):
        StackedDesign.of([only], CUBE)


def test_measurements_are_those_of_the_layers_and_of_the_same_people():
    designs = two({"epsilon": 1}, "replace-one")
    few, many = (MemoryEngine(random_codes((2, 3), rows)) for rows in (10, 11))
    first, second, other = (
        measure(design, engine, entropy=SeededEntropy(1))
        for design, engine in zip([*designs, designs[1]], [few, few, many], strict=True)
    )
    assert StackedDesign.join(designs, [first, second], CUBE)[1].private is False
    with pytest.raises(BundleError, match="not of the same people"):
        StackedDesign.join(designs, [first, other], CUBE)
    with pytest.raises(BundleError, match="another plan"):
        StackedDesign.join(designs, [first, Measurement("other", second.values, private=False)], CUBE)


def test_a_stack_in_a_file_is_checked_again():
    stack = StackedDesign.of(two(), CUBE)
    told = json.loads(stack.to_json())
    assert read_design(stack.to_json()).digest == stack.digest
    assert Plan.from_json(Plan.of_counts(stack).to_json()).count.digest == stack.digest

    def changed(change):
        raw = json.loads(json.dumps(told))
        change(raw)
        raw["digest"] = digest_of({key: value for key, value in raw.items() if key != "digest"})
        return json.dumps(raw)

    changes = [
        lambda raw: raw["layers"][0]["privacy"].update(rho="1/8"),
        lambda raw: raw["layers"][0]["privacy"].update(rho="9"),
        lambda raw: raw["layers"][1]["privacy"].update(neighbours="replace-one"),
        lambda raw: raw["layers"][1]["privacy"].update(rows_per_person=2),
        lambda raw: raw["layers"][0].update(basis="fourier2"),
        lambda raw: raw["layers"][0].update(more=1),
        lambda raw: raw["layers"].pop(),
        lambda raw: raw["layers"][0]["measured"][1].pop(),
        lambda raw: raw.update(layers=[]),
        lambda raw: raw["privacy"].update(rho="0.4"),
        lambda raw: raw["budget"].__setitem__(0, raw["budget"][0] * 2),
        lambda raw: raw.update(strategy="residual"),
        lambda raw: raw.update(recovery="none"),
    ]
    for number, change in enumerate(changes):
        with pytest.raises(BadInput):
            read_design(changed(change))
            pytest.fail(f"change {number} went unnoticed")
