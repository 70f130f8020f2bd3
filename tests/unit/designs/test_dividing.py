"""The rounds of a selective run divide what is left: within it, by what is known, and remember what is past."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import make_request
from hushcube.designs.selective.dividing import Dividing, Known, falling_off
from hushcube.lattice.guesses import order
from hushcube.lattice.proportional import independent
from hushcube.strategies.selective import Selective

SIZES = (3, 4, 2, 5)
AIMS = [("total", None), ("max", None), ("total", 5)]


def dividing(words="3-way", aim=("total", None), **law):
    request = replace(make_request(SIZES, words, **(law or {"rho": "0.1"})), objective=aim[0])
    return Dividing(Selective(sanity_bound=aim[1]).plan(request, "optimal", "gls"))


def known(own, k, misfits=None, people=1000.0):
    tables = order(own.tables, k)
    shares = {i: falling_off(SIZES[i]) for i in range(len(SIZES))}
    return Known(tables, independent(tables, shares, people), misfits, shares, people)


@given(
    aim=st.sampled_from(AIMS),
    law=st.sampled_from([{"rho": "0.1"}, {"epsilon": 1}]),
    log_budget=st.floats(-5, 0),
    seed=st.integers(0, 99),
)
@settings(max_examples=30)
def test_no_round_divides_more_than_there_is(aim, law, log_budget, seed):
    own, left = dividing("3-way", aim, **law), 10**log_budget
    for k in (1, 2, 3):
        misfits = np.random.default_rng(seed).uniform(0, 1, len(order(own.tables, k))) if k > 1 else None
        found = own.divided(k, known(own, k, misfits), left)
        spent = own.costs[own.ids(k)] @ found
        assert (found >= 0).all()
        assert spent <= left * (1 + 1e-9)
        if k == 3:
            assert spent == pytest.approx(left), "nothing comes after the last round"
        left -= spent * 0.999
        own.done(k, found + 1e-9)
        assert (own.past[own.ids(k)] > 0).all()
    assert own.past[0] == 0, "the number of people is held"


def test_pairs_that_smaller_tables_explain_get_less():
    own = dividing("2-way")
    misfits = np.full(6, 0.3)
    misfits[2] = 0.001
    own.divided(1, known(own, 1), 0.01)
    own.done(1, np.full(4, 1e-3))
    found = own.divided(2, known(own, 2, misfits), 1e-3)
    assert found[2] < 0.1 * np.delete(found, 2).min()


def test_what_is_known_to_be_explained_leaves_more_for_single_attributes():
    """The cases of unseen pairs: were all of them far from their guesses, single attributes would get less."""
    own = dividing("2-way")
    unseen = own.divided(1, known(own, 1), 1e-3)
    far = own.divided(1, known(own, 1, np.full(4, 5.0)), 1e-3)
    assert own.costs[own.ids(1)] @ unseen > own.costs[own.ids(1)] @ far
