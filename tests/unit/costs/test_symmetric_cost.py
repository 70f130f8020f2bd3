"""Replace-one costs with many attributes: counting by sizes agrees with trying every set of differing attributes."""

from fractions import Fraction

import numpy as np
import pytest

from helpers import make_plan, make_request
from hushcube.costs import calibrate, row_cost as cost


def symmetric_and_joint(monkeypatch, plan):
    budgets = np.where(np.isfinite(plan.budgets), plan.budgets, 0.0)
    pure = plan.privacy.is_pure
    joint = cost._largest_change(plan.basis, plan.measured, budgets, pure=pure)
    monkeypatch.setattr(cost, "_MOST_DIFFERENCES", 2 ** (len(plan.schema) - 1))
    monkeypatch.setattr(cost, "_sum_of_largest", lambda *_, **__: pytest.fail("the symmetric count must serve"))
    return cost._largest_change(plan.basis, plan.measured, budgets, pure=pure), joint


@pytest.mark.parametrize("strategy", ["fourier", "residual"])
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize(
    ("sizes", "words"),
    [((3,) * 6 + (2,) * 4, "<=2-way"), ((4,) * 5 + (2, 2, 3), "1..3-way"), ((2,) * 11, "2-way")],
    ids=str,
)
def test_counting_by_sizes_is_the_joint_maximum(monkeypatch, strategy, law, sizes, words):
    plan = make_plan(make_request(sizes, words, neighbours="replace-one", **law), strategy)
    symmetric, joint = symmetric_and_joint(monkeypatch, plan)
    assert symmetric == pytest.approx(joint, rel=1e-12)


def test_unequal_budgets_of_one_shape_are_not_counted_by_sizes():
    request = make_request((3,) * 21, ["1-way", "a0=50"], neighbours="replace-one", rho="1/2")
    plan = make_plan(request, "residual")
    budgets = np.where(np.isfinite(plan.budgets), plan.budgets, 0.0)
    attributes = list(range(21))
    assert cost._symmetric_largest(plan.basis, plan.measured, budgets, pure=False, attributes=attributes) is None


@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
def test_many_attributes_use_the_whole_budget(law):
    """30 attributes: the cost is tight; under Gaussian noise the sum of each set's own maximum would be more."""
    plan = make_plan(make_request((10,) * 30, "<=2-way", neighbours="replace-one", **law), "residual")
    allowed = calibrate.row_budget(plan.privacy, plan.proof)
    assert allowed * (1 - Fraction(1, 2**39)) <= plan.row_cost(plan.budgets) <= allowed
    assert np.isfinite(plan.errors.total_variance(exact=True))
    alone = sum(
        float(cost._changes(plan.basis, b.shape, pure=plan.privacy.is_pure).max() * plan.budgets[b.ids].sum())
        for b in plan.measured.batches
        if b.shape
    )
    assert alone > (1 - 1e-9 if plan.privacy.is_pure else 1.01) * float(allowed)
