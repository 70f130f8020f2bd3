"""The next step of a session, by closed forms: vectors of the notes, and what is known already."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from helpers import make_schema
from hushcube.errors import BadInput, TooLarge
from hushcube.lattice.basis import FOURIER
from hushcube.model.arrays import subsets
from hushcube.model.privacy import Privacy
from hushcube.session.cube import chooser_for
from hushcube.session.knowledge import MOST_ATTRIBUTES, Knowledge
from hushcube.session.policy import Outlook, Policy

RHO = Privacy.of(rho=1, neighbours="add-remove")
PURE = Privacy.of(epsilon=1, neighbours="add-remove")


def chooser(sizes, account=RHO, **policy):
    policy = Policy(**{"ahead": False, **policy})
    return chooser_for(tuple(sizes), account, Outlook(policy, make_schema(sizes)))


def test_with_nothing_known_a_question_costs_its_own_table():
    step = chooser((2, 3)).for_variance(Knowledge((2, 3)), (0, 1), 2.0, Fraction(1))
    assert float(step.price((2, 3), RHO)) == pytest.approx(1 / 4, rel=1e-9)
    assert step.price((2, 3), RHO).denominator <= 10**15


def test_a_known_marginal_lowers_the_price_of_a_finer_table():
    """kappa is 1/(2t) on the known spaces, above the level s of the others: 2 (2t) + 4/s = 36 t."""
    known, plan = Knowledge((2, 3)), chooser((2, 3))
    known.add(plan.for_variance(known, (0,), 100.0, Fraction(1)).information((2, 3)))
    step = plan.for_variance(known, (0, 1), 100.0, Fraction(1))
    level = 4 / (3600 - 400)
    assert float(step.price((2, 3), RHO)) == pytest.approx(4 * level / 2, rel=1e-5)
    known.add(step.information((2, 3)))
    assert known.variance((0, 1)) == pytest.approx(100.0)


def test_laplace_measures_only_the_part_that_lacks():
    """With the full table known well, it is the one-way table that makes a one-way question sharper."""
    sizes = (2, 50)
    known, plan = Knowledge(sizes), chooser(sizes, PURE)
    known.add(plan.for_variance(known, (0, 1), 10.0, Fraction(1)).information(sizes))
    assert known.variance((0,)) == pytest.approx(500.0)
    step = plan.for_variance(known, (0,), 100.0, Fraction(1))
    assert set(step.budgets) == {(0,)}
    assert float(step.price(sizes, PURE)) < plan.alone(100.0)
    # and a question of which only a coarse part is poor has that part measured
    known = Knowledge(sizes)
    known.add({(): 1e-9, (0,): 1.0, (1,): 1.0, (0, 1): 1.0})
    assert set(plan.for_variance(known, (0, 1), 1.0, Fraction(1)).budgets) == {()}


@pytest.mark.parametrize("question", [(0, 1), (0, 1, 2)], ids=str)
def test_laplace_measures_one_coefficient_where_the_rest_is_known(question):
    """With all other spaces known, the one that lacks costs 1/cells of the table, where the table costs 1/sqrt."""
    sizes, t = (2, 2, 2), 1e6
    known, plan = Knowledge(sizes), chooser(sizes, PURE)
    known.add({B: 0.0 if question == B else 1e6 for B in subsets(question)})
    step = plan.for_variance(known, question, t, Fraction(1))
    cells = 2 ** len(question)
    assert step.basis is FOURIER and step.raised == [question] and step.answers == question
    assert float(step.price(sizes, PURE)) == pytest.approx(plan.alone(t) / cells, rel=1e-4)
    known.add(step.information(sizes))
    assert known.variance(question) == pytest.approx(t, rel=1e-6)
    # and all that a price can buy is best spent on it
    known = Knowledge(sizes)
    known.add({B: 1e-6 if question == B else 1e6 for B in subsets(question)})
    assert plan.for_price(known, question, Fraction(1, 100)).raised == [question]


def test_laplace_raises_several_coefficients_to_one_level():
    """Three pairs of bits known and two of three attributes poor: what lacks is less than a table."""
    sizes, t = (2,) * 4, 1e4
    question, poor = (0, 1, 2, 3), [(0, 1, 2), (0, 1, 2, 3)]
    known, plan = Knowledge(sizes), chooser(sizes, PURE)
    known.add({B: 1e-9 if B in poor else 1.0 for B in subsets(question)})
    step = plan.for_variance(known, question, t, Fraction(1))
    level = 2 / (t * 16**2 - 14)
    assert sorted(step.raised) == sorted(poor)
    assert float(step.price(sizes, PURE)) == pytest.approx(2 * np.sqrt(2 * level), rel=1e-3)
    assert step.information(sizes)[question] == pytest.approx(level - 1e-9, rel=1e-9)


def test_laplace_measures_a_wider_table_for_questions_that_are_expected():
    """Three pairs of three bits: one table of eight cells costs sqrt(2) of a pair, and answers all of them."""
    sizes, t = (2, 2, 2), 100.0
    pairs = [(0, 1), (0, 2), (1, 2)]
    spent, measured = {}, {}
    ways = {"plain": {"ahead": False}, "ahead": {}, "declared": {"expected": ("a0*a1", "a0*a2", "a1*a2")}}
    for way, policy in ways.items():
        known, plan = Knowledge(sizes), chooser(sizes, PURE, **{"ahead": True, **policy})
        spent[way], measured[way] = Fraction(0), []
        for pair in pairs:
            if known.variance(pair) > t * (1 + 1e-9):
                step = plan.for_variance(known, pair, t, Fraction(10))
                spent[way] += step.price(sizes, PURE)
                measured[way].append(step.answers)
                known.add(step.information(sizes))
            assert known.variance(pair) <= t * (1 + 1e-9)
    assert measured["ahead"] == measured["declared"] == [(0, 1, 2)]
    assert float(spent["ahead"]) == pytest.approx(np.sqrt(2) * plan.alone(t), rel=1e-2)
    assert spent["ahead"] == spent["declared"] < spent["plain"] * Fraction(2, 3)
    for way, policy in ways.items():
        plan = chooser(sizes, PURE, **{"ahead": True, **policy})
        poor = plan.for_variance(Knowledge(sizes), (0, 1), t, Fraction(plan.alone(t)) * Fraction(11, 10))
        assert set(poor.budgets) == {(0, 1)}, way  # nothing is left for later
        largest = Fraction(plan.alone(t)) * Fraction(11, 10)
        assert set(plan.for_variance(Knowledge(sizes), (0, 1), t, Fraction(10), largest).budgets) == {(0, 1)}, way


def test_under_epsilon_too_looking_ahead_pays_off():
    """All pairs of 12 bits: each is as precise as asked, and all of them cost less than plain steps."""
    sizes, t, total = (2,) * 12, 100.0, Fraction(5)
    spent = {}
    for ahead in (False, True):
        known, plan, spent[ahead] = Knowledge(sizes), chooser(sizes, PURE, ahead=ahead), Fraction(0)
        for pair in combinations(range(12), 2):
            if known.variance(pair) > t * (1 + 1e-9):
                step = plan.for_variance(known, pair, t, total - spent[ahead])
                spent[ahead] += step.price(sizes, PURE)
                known.add(step.information(sizes))
            assert known.variance(pair) <= t * (1 + 1e-9)
    assert spent[True] < spent[False] * Fraction(3, 4)
    assert float(spent[False]) < 40 * plan.alone(t)  # of 66 tables


def test_looking_ahead_meets_the_target_and_pays_off():
    """All pairs of 12 bits: each is as precise as asked, and all of them cost less than plain steps."""
    sizes, t, total = (2,) * 12, 100.0, Fraction(66, 200)
    spent = {}
    for ahead in (False, True):
        known, plan, spent[ahead] = Knowledge(sizes), chooser(sizes, ahead=ahead), Fraction(0)
        for i in range(12):
            for j in range(i):
                if known.variance((j, i)) > t * (1 + 1e-9):
                    step = plan.for_variance(known, (j, i), t, total - spent[ahead])
                    spent[ahead] += step.price(sizes, RHO)
                    known.add(step.information(sizes))
                assert known.variance((j, i)) <= t * (1 + 1e-9)
    assert spent[True] < spent[False] * Fraction(3, 4)
    least = (1 + np.sqrt(2 * 12) + np.sqrt(66)) ** 2 / 16 / t / 2  # the optimum that knows all of them
    assert least < spent[True] < 1.1 * least


def test_a_step_that_looks_ahead_never_costs_more_than_is_left():
    sizes = (2, 2, 2)
    plan = chooser(sizes, ahead=True)
    for share in (1, 1.01, 1.5, 3, 50):
        left = Fraction(share * plan.alone(100.0)) + Fraction(1, 10**12)
        assert plan.for_variance(Knowledge(sizes), (0, 1), 100.0, left).price(sizes, RHO) <= left


def test_expected_questions_say_what_is_shared():
    outlook = Outlook(Policy(expected=("a0*a1=3", "a2")), make_schema((2, 2, 2)))
    assert outlook.uses(((), (0,), (2,), (0, 2)), 8.0).tolist() == [9.0, 7.0, 3.0, 1.0]
    undeclared = Outlook(Policy(), make_schema((2, 2, 2, 1)))  # an attribute of one value is no choice
    assert undeclared.uses(((), (0,), (1,), (0, 1)), 3.0).tolist() == [4.0, 3.0, 3.0, 2.0]


@pytest.mark.parametrize("shares", [{"kept": 1}, {"kept": "-0.1"}, {"largest": 0}, {"largest": 2}, {"largest": "x"}])
def test_a_share_that_is_none_is_refused(shares):
    with pytest.raises(BadInput, match=next(iter(shares))):
        Policy(**shares)


def test_what_may_be_spent_under_a_policy():
    policy = Policy(kept="0.25", largest="0.5")
    assert policy.allowed(Fraction(4), Fraction(4)) == 2
    assert policy.allowed(Fraction(4), Fraction(2)) == 1
    assert policy.allowed(Fraction(4), Fraction(1)) == 0
    assert Policy.from_dict(policy.to_dict()) == policy


def test_a_target_that_integer_noise_cannot_meet_in_a_step_has_none():
    assert chooser((2, 3)).for_variance(Knowledge((2, 3)), (0, 1), 0.01, Fraction(1)) is None


@pytest.mark.parametrize("law", [{"rho": 1}, {"epsilon": 1}], ids=str)
@pytest.mark.parametrize("question", [(), (1,)], ids=str)
def test_a_public_total_is_looked_at_for_next_to_nothing(law, question):
    account = Privacy.of(**law, neighbours="replace-one")
    known, plan = Knowledge((3, 1)), chooser((3, 1), account)
    step = plan.for_variance(known, question, 4.0, Fraction(1))
    design = step.design(make_schema((3, 1)), account)
    assert design.publishes_total and step.price((3, 1), account) == Fraction(1, 10**9)
    known.add(step.information((3, 1)))
    assert known.variance(question) == 0


def test_a_question_of_too_many_attributes_is_refused():
    with pytest.raises(TooLarge, match="fewer attributes"):
        Knowledge((2,) * 30).spaces(tuple(range(MOST_ATTRIBUTES + 1)))
