"""TwoPhase's second rates: the best proportions for what was seen, within the budget, found quickly."""

import numpy as np
import pytest
from adaptive_runs import exact_cost, make_subject
from hypothesis import given, strategies as st

from helpers import NEIGHBOURS
from hushcube.designs.grid import mean_size
from hushcube.private.adaptive.picking import square
from hushcube.private.adaptive.resampling import best_rates, rescale, second_rates
from hushcube.private.adaptive.subject import Subject

tables = st.lists(st.lists(st.integers(-50, 500), min_size=1, max_size=5), min_size=2, max_size=4)


@given(tables, st.sampled_from([0.5, 3.0, 40.0]), st.integers(0, 10**6))
def test_no_other_rates_have_a_smaller_mean_error(seen, delta, seed):
    """sum_A w_A c_A / r_A over rates of the same sum, against random ones."""
    rng = np.random.default_rng(seed)
    worth = rng.uniform(0.2, 3.0, len(seen))
    means = np.array([np.mean([1 / max(y, delta) for y in table]) for table in seen])
    best = best_rates([np.array(table) for table in seen], delta, worth)
    for other in rng.dirichlet(np.ones(len(seen)), 20):
        assert (worth * means / (best / best.sum())).sum() <= (worth * means / other).sum() * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_for_the_worst_cell_no_other_rates_have_smaller_squares(seed):
    """sum_A w_A c_A / r_A² over rates of the same sum, c_A from the noise of the first phase."""
    rng = np.random.default_rng(seed)
    rule = {"sanity_bound": 5, "pick": "worst"}
    subject = make_subject((3, 4, 2), "a0=2,a1,a2=0.5", rule, strategy="twophase", epsilon="0.5")
    seen = [rng.integers(-200, 500, len(subject.truth[at])) for at in subject.chosen]
    scales, worth = mean_size(subject.rates[subject.chosen]), subject.worth[subject.chosen]
    squares = np.array(
        [square(y.astype(float), s, 5.0).sum() / np.sqrt(len(y)) / s**2 for y, s in zip(seen, scales, strict=True)]
    )
    best = rescale(subject, seen)
    for other in rng.dirichlet(np.ones(len(seen)), 20):
        error, least = ((worth * squares / r**2).sum() for r in (other, best / best.sum()))
        assert least <= error * (1 + 1e-12)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("queries", [None, [[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 2]]])
def test_both_phases_cost_what_is_allowed(queries, neighbours):
    words = "1-way,2-way" if queries is None else "queries"
    subject = make_subject(
        (2, 2), words, {"sanity_bound": 1}, strategy="twophase", queries=queries, neighbours=neighbours
    )
    seen = [subject.truth[at] for at in subject.chosen]
    both = subject.rates.copy()
    both[subject.chosen] += second_rates(subject, seen)
    assert subject.allowed * (1 - 1e-12) < exact_cost(subject.start, both) <= subject.allowed


@pytest.mark.parametrize("rule", [{"people_epsilon": "0.998"}, {"first_share": "0.99999"}, {}], ids=str)
def test_a_small_rest_is_not_fitted_by_ever_so_small_steps(monkeypatch, rule):
    """The sums of rates are rounded by a unit of the larger part, which is many units of a small rest."""
    share = {"sanity_bound": "1%"} if "people_epsilon" in rule else {"sanity_bound": 1}
    subject = make_subject((2, 3), "1-way", {**share, **rule}, strategy="twophase")
    asked, cost = [], Subject.cost
    monkeypatch.setattr(Subject, "cost", lambda self, rates: asked.append(rates) or cost(self, rates))
    rates = second_rates(subject, [subject.truth[at] for at in subject.chosen])
    assert (rates > 0).all()
    assert len(asked) < 100
