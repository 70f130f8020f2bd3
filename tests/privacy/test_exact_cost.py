"""The privacy loss of what is really drawn, by exhaustion: all databases of a row or two, all their neighbours.

`measure` itself is run, with samplers that write down their parameters and draw nothing: what it returns are the exact
integers, what it asked for are the exact laws. The worst loss over all neighbours is then a sum of Fractions.
"""

from copy import copy
from fractions import Fraction

import numpy as np
import pytest

from audit.costs import PRIVACY, check_worst_cases, claimed, worst_cases, worst_loss
from helpers import NEIGHBOURS, Silence, all_subsets, every_plan, make_request
from hushcube.costs import calibrate, row_cost as cost
from hushcube.designs import LatticeDesign
from hushcube.errors import HushcubeError
from hushcube.lattice.basis import BASES
from hushcube.lattice.family import Family


@pytest.fixture
def drawn():
    return Silence()


@pytest.mark.slow
@pytest.mark.parametrize(("sizes", "privacy", "neighbours"), list(worst_cases()), ids=str)
def test_worst_case_over_all_small_databases_is_the_stated_cost_and_the_guarantee(sizes, privacy, neighbours):
    """Databases of up to two rows; of one row on more than six cells, where the audit tries two."""
    assert check_worst_cases(sizes, privacy, neighbours, "short")


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("privacy", PRIVACY[::2], ids=str)
@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("sizes", [(2, 3), (2, 1, 3)], ids=str)
def test_a_plan_by_hand_costs_what_it_claims_or_is_refused(sizes, name, privacy, neighbours, drawn):
    """Whatever a plan file says: any basis under any law, any measured sets."""
    request = make_request(sizes, "cube", neighbours=neighbours, **privacy)
    everything = all_subsets(range(len(sizes)))
    for sets in (everything, everything[1:], everything[-1:]):
        measured = Family.of(sets, sizes)
        budgets = (
            np.where(cost.unchanged_by_replacing(measured), np.inf, 0.01)
            if neighbours == "replace-one"
            else np.full(len(measured), 0.01)
        )
        try:
            plan = LatticeDesign(request, "by hand", "optimal", "gls", "direct", budgets, BASES[name], measured)
        except (HushcubeError, ValueError, KeyError):
            continue
        assert worst_loss(plan, drawn) <= claimed(plan)


@pytest.mark.parametrize("privacy", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize("strategy", ["workload", "fourier", "residual"])
def test_replace_one_with_many_attributes_is_a_bound(strategy, privacy):
    """Above 20 attributes the sum of each set's largest change is taken: never below the cost found by trying pairs."""
    sizes = (2, 3) * 11
    request = make_request(sizes, "<=2-way", neighbours="replace-one", **privacy)
    plan = next(every_plan(request, [strategy], ["gls"]))
    rng = np.random.default_rng(0)
    tried = []
    for differing in [0, 1, 5, 11, 22] * 3:
        one = rng.integers(0, sizes)
        other = np.where(rng.permutation(22) < differing, (one + 1) % sizes, one)
        tried.append(replacement_loss(plan, one, other))
    assert max(tried) <= claimed(plan) <= calibrate.row_budget(request.privacy, "direct")
    assert max(tried) > claimed(plan) / 4


def replacement_loss(plan, one, other):
    total = Fraction(0)
    for batch in plan.measured.batches:
        for number, row in zip(batch.ids.tolist(), batch.rows.tolist(), strict=True):
            if not np.isfinite(plan.budgets[number]):
                continue
            table = np.zeros((1, *batch.shape), np.int64)
            table[(0, *(one[i] for i in row))] += 1
            table[(0, *(other[i] for i in row))] -= 1
            change = plan.basis.forward(table, range(1, len(row) + 1)).ravel().tolist()
            budget = Fraction(float(plan.budgets[number]))
            stretch = int(np.prod([plan.basis.stretch(n) for n in batch.shape], dtype=int))
            norms = np.ones(len(change), int)
            if plan.basis.name == "helmert":
                norms = BASES["helmert"].forward(
                    np.eye(int(np.prod(batch.shape)), dtype=np.int64).reshape(-1, *batch.shape), range(1, len(row) + 1)
                )
                norms = (norms.reshape(len(norms), -1) ** 2).sum(axis=0)
            if plan.law.name == "laplace":
                total += budget / stretch * sum(map(abs, change))
            else:
                total += sum(
                    (budget * Fraction(c * c, int(n)) for c, n in zip(change, norms, strict=True)), Fraction(0)
                )
    return total


@pytest.mark.parametrize(("privacy", "power"), [({"epsilon": 1}, 1), ({"rho": "1/2"}, 2)], ids=str)
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
def test_rows_per_person_divide_the_budget_of_a_row(privacy, power, neighbours):
    """k rows move the numbers k times as far: epsilon / k, rho / k²."""
    for k in (2, 7):
        request = make_request((2, 3), "cube", neighbours=neighbours, rows_per_person=k, **privacy)
        allowed = request.privacy.epsilon or request.privacy.rho
        assert calibrate.row_budget(request.privacy, "direct") == allowed / k**power
        for plan in every_plan(request, recoveries=["gls"]):
            assert allowed * (1 - Fraction(1, 10**9)) <= claimed(plan) * k**power <= allowed


def test_the_judge_catches_noise_that_is_too_small(drawn, monkeypatch):
    """The same exhaustion on a mechanism with 1% too little noise finds more than the claim."""
    plan = copy(next(every_plan(make_request((2, 3), "cube", epsilon=1), ["workload"], ["gls"])))  # others share it
    object.__setattr__(plan, "budgets", plan.budgets * 1.01)
    monkeypatch.setattr(type(plan), "check_cost", lambda _plan: None)  # which would refuse to draw
    assert worst_loss(plan, drawn) > calibrate.row_budget(plan.privacy, "direct")
