"""Theorems 8 and 9 of Ding et al. and 7 of Barak et al. before any data exists: formulas, draws, files."""

import json
import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from helpers import MemoryEngine, all_tables, exact_table, make_plan, make_request, random_codes, released
from hushcube.bundle.folder import open_bundle
from hushcube.bundle.manifest import manifest_text
from hushcube.bundle.verify import verify
from hushcube.bundle.writing import write
from hushcube.errors import BadInput
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.planning.bounds import DELTA, ding_8, ding_9, error_bounds, gamma_quantile, noise_norm, theorem_7
from hushcube.planning.plan import Plan
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock

SIZES = (2, 3, 4)


def planned(strategy="workload", budgets="uniform", words="2-way", sizes=SIZES, **privacy):
    return make_plan(make_request(sizes, words, **(privacy or {"epsilon": "1/10"})), strategy, budgets)


def noise_of(plan, seed):
    """The noise of each measured number: that of a release of nobody."""
    found = measure(plan, MemoryEngine(np.zeros((0, len(plan.schema))), len(plan.schema)), entropy=SeededEntropy(seed))
    return np.concatenate([values.ravel() for values in found.values])


def test_equal_budgets_have_the_printed_bounds():
    """Of scale s = |L|/epsilon = 30 and E = 26 cells: discrete noise moves them by next to nothing."""
    plan, E, s = planned(), 26, 30.0
    assert ding_8(plan, DELTA) == pytest.approx(2 * E * s * math.log(E / DELTA), rel=0.01)
    eta = brentq(lambda x: E * (math.log(x / 2) + 1 - x / 2) - math.log(DELTA), 2 + 1e-9, 50)
    assert 2 * E * s < ding_9(plan, DELTA) < E * s * eta + E + 1 < ding_8(plan, DELTA)
    assert ding_9(plan, DELTA) == pytest.approx(2 * s * stats.gamma(E).ppf(1 - DELTA) + E, abs=2)


@pytest.mark.parametrize(("budgets", "privacy"), [
    ("uniform", {"epsilon": 1}),
    ("optimal", {"epsilon": 1}),
    ("optimal", {"epsilon": 2, "neighbours": "replace-one"}),
], ids=str)  # fmt: skip
def test_the_noise_keeps_within_its_norm_as_often_as_promised(budgets, privacy):
    """And the bounds say something: within 0.6 of the norm's there are too few; false alarms below 1e-6."""
    plan, draws = planned(budgets=budgets, words="1-way,a0*a1*a2", **privacy), 200
    noise = [np.abs(noise_of(plan, seed)) for seed in range(draws)]
    norms = np.array([each.sum() for each in noise])
    most = noise_norm(plan, 1 - DELTA)
    assert (norms <= most).sum() >= stats.binom.ppf(1e-6, draws, 1 - DELTA)
    assert (norms <= 0.6 * most).sum() < stats.binom.ppf(1e-6, draws, 1 - DELTA)
    largest = ding_8(plan, DELTA) / 2 / plan.numbers[np.isfinite(plan.budgets)].sum()
    within = [each.max() <= largest for each in noise]
    assert sum(within) >= stats.binom.ppf(1e-6, draws, 1 - DELTA)


@pytest.mark.parametrize(("norm", "bound"), [("linf", ding_8), ("l1", ding_9)])
def test_the_faces_keep_what_the_theorems_promise(norm, bound):
    plan, codes, draws = planned(epsilon=1), random_codes(SIZES, 50), 25
    kept = 0
    for seed in range(draws):
        found = measure(plan, MemoryEngine(codes), entropy=SeededEntropy(seed))
        tables = all_tables(plan, make_face(plan, found, FaceValue("consistent", norm=norm), Clock()).tables)
        off = sum(np.abs(table - exact_table(plan.schema, codes, A)).sum() for A, table in tables.items())
        kept += off <= bound(plan, DELTA)
    assert kept >= stats.binom.ppf(1e-6, draws, 1 - DELTA)


def test_theorem_7_is_told_for_every_sub_marginal():
    """On bits with equal budgets 2^|A| 2 u + |B|/2, whether A is asked for or lies inside a table that is."""
    plan = planned("fourier", sizes=(2,) * 5, epsilon=1)
    (told,) = error_bounds(plan)
    whole = theorem_7(plan, DELTA)
    assert len(told.tables) == 1 + 5 + 10 == len(plan.request.spaces)
    assert told.tables == {
        plan.schema.describe(A): math.ceil(2 ** len(A) * 2 * whole.reach + 16 / 2) for A in plan.request.spaces
    }
    assert list(told.most.values()) == sorted({*told.tables.values()})
    assert told.most["a 2-way table"] == math.ceil(whole.error.max())
    assert "a 1-way table" in str(told) and "Theorem 7" in str(told)


def test_many_tables_are_told_by_their_number_of_attributes():
    (told,) = error_bounds(planned("fourier", words="2-way", sizes=(2,) * 46, epsilon=1))
    assert not told.tables and set(told.most) == {"a 0-way table", "a 1-way table", "a 2-way table"}


def test_a_huge_plan_is_bounded_at_once():
    """Tails of Gamma laws of very many terms are not summed."""
    assert gamma_quantile(20_001, 0.95) == pytest.approx(stats.gamma(20_001).ppf(0.95), rel=0.01)
    assert gamma_quantile(20_001, 0.95) >= stats.gamma(20_001).ppf(0.95)
    assert gamma_quantile(10**8, 0.95) == pytest.approx(10**8, rel=1e-3)


@pytest.mark.parametrize(("strategy", "privacy"), [
    ("workload", {"rho": 1}), ("residual", {"rho": 1}), ("residual", {"epsilon": 1}),
], ids=str)  # fmt: skip
def test_other_plans_have_none(strategy, privacy):
    assert Plan.of_counts(planned(strategy, **privacy)).bounds == ()


def test_ding_needs_tables():
    with pytest.raises(BadInput, match="Theorem 9"):
        ding_9(planned("fourier"), DELTA)


def test_the_manifest_states_them_and_earlier_ones_need_not(tmp_path):
    plan = planned(epsilon=1)
    found = measure(plan, MemoryEngine(random_codes(SIZES, 50)), entropy=SeededEntropy(1))
    write(released(plan, found), tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [told["theorem"][-9:] for told in manifest["bounds"]] == ["Theorem 8", "Theorem 9"]
    most = [bound for told in manifest["bounds"] for bound in told["most"].values()]
    assert most == [ding_8(plan, DELTA), ding_9(plan, DELTA)]
    assert verify(tmp_path / "out", allow_seeded=True).holds
    del manifest["bounds"]
    (tmp_path / "out" / "manifest.json").write_text(manifest_text(manifest))
    assert verify(tmp_path / "out", allow_seeded=True).holds
    assert open_bundle(tmp_path / "out").plan.bounds
