"""Why the sum is a promise: every analyst who chooses the next question by earlier answers, by enumeration.

Mechanisms are small enough to look at all outcomes. A `Bit` is randomised response. A `Refinement` is iReduct in
miniature: a coarse bit, made from a fine one by a flip that does not look at the data, and then perhaps the fine one.
Its allowance is that of the fine bit; what it turned out to cost is that of the bit at which the analyst stopped.

The analyst has an account of some total, and makes the most of it: in each state the value is the largest over all
choices that are left, so that no strategy is forgotten.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import pytest
from scipy.optimize import brentq

from hushcube.costs.exchange import pure_rho

UNIT = Fraction(1, 4)
"""Amounts of epsilon are multiples of it, so that sums of them are exact."""
ROUNDS = 3


def chance(epsilon, outcome):
    """Of an outcome that is as the data says (1) or not (0)."""
    return 1 / (1 + math.exp(-epsilon if outcome else epsilon))


@dataclass(frozen=True)
class Bit:
    epsilon: Fraction

    def play(self, value):
        """The outcomes: how likely under the data and under its neighbour, and what comes next."""
        return [(chance(self.epsilon, o), chance(self.epsilon, 1 - o), value(self.epsilon)) for o in (0, 1)]


@dataclass(frozen=True)
class Refinement:
    coarse: Fraction
    fine: Fraction

    @property
    def epsilon(self):
        """What it is allowed."""
        return self.fine

    @property
    def flip(self):
        """How often the coarse bit differs from the fine one, so that it is randomised response of its own rate."""
        p, q = chance(self.fine, 1), chance(self.coarse, 1)
        return (p - q) / (2 * p - 1)

    def histories(self, first):
        """Both bits, for a first one: their chances under the data and under its neighbour."""
        for second in (0, 1):
            kept = self.flip if first != second else 1 - self.flip
            yield kept * chance(self.fine, second), kept * chance(self.fine, 1 - second)


MENU = [Bit(UNIT), Bit(2 * UNIT), Bit(4 * UNIT), Refinement(UNIT, 4 * UNIT), Refinement(2 * UNIT, 6 * UNIT)]


def test_a_coarse_bit_is_randomised_response_and_so_is_a_fine_one():
    """The refinement is what it claims to be: its history is worth its last answer, on every path."""
    for one in MENU[3:]:
        for first in (0, 1):
            p, q = map(sum, zip(*one.histories(first), strict=True))
            assert math.isclose(p, chance(one.coarse, first))
            assert math.isclose(q, chance(one.coarse, 1 - first))
            assert all(math.isclose(abs(math.log(a / b)), one.fine) for a, b in one.histories(first))


# ------------------------------------------------------------------------------------------------------- pure epsilon


@cache
def worst_loss(left, rounds, settles):
    """The largest ln(P / P') of any transcript, in units of epsilon: exact fractions."""
    losses = [Fraction(0)]
    for one in MENU if rounds else []:
        if one.epsilon > left:
            continue
        losses.append(one.epsilon + worst_loss(left - one.epsilon, rounds - 1, settles))
        if isinstance(one, Refinement):  # stopped at the coarse bit
            losses.append(one.coarse + worst_loss(left - settles(one), rounds - 1, settles))
    return max(losses)


def to_what_was_spent(one):
    return one.coarse


def to_nothing(one):
    return Fraction(0)


@pytest.mark.parametrize("total", [k * UNIT for k in range(1, 17)], ids=str)
def test_no_transcript_loses_more_than_a_pure_account_holds_also_with_settled_amounts(total):
    assert worst_loss(total, ROUNDS, to_what_was_spent) <= total
    assert total > 8 * UNIT or worst_loss(total, 8, to_what_was_spent) == total, "and the whole total can be used"


def test_giving_back_more_than_was_left_is_found():
    assert worst_loss(4 * UNIT, ROUNDS, to_nothing) > 4 * UNIT


# --------------------------------------------------------------------------------------------------------------- rho


def as_bit(rho):
    """The epsilon of the bit that has this price: the best use of all that is left."""
    return brentq(lambda x: x * math.tanh(x / 2) - rho, 0.0, 60.0) if rho > 1e-12 else 0.0


@cache
def worst_divergence(left, rounds, order, gives_back):
    """ln of the largest mean of (P / P')^order under the neighbour; for order 1 the Kullback-Leibler divergence."""
    kullback = order == 1
    rest = as_bit(left)
    values = [rest * math.tanh(rest / 2) if kullback else _log_cosh((order - 0.5) * rest) - _log_cosh(rest / 2)]

    def after(amount):
        return worst_divergence(left - amount, rounds - 1, order, gives_back)

    def term(p, q, value):
        return p * (math.log(p / q) + value) if kullback else q * (p / q) ** order * math.exp(value)

    for one in MENU if rounds else []:
        allowed = price(one.epsilon)
        if allowed > left:
            continue
        if isinstance(one, Bit):
            found = [term(p, q, value) for p, q, value in one.play(lambda _, a=allowed: after(a))]
        else:
            stopped = price(one.coarse) if gives_back else allowed
            found = []
            for first in (0, 1):
                stop = term(chance(one.coarse, first), chance(one.coarse, 1 - first), after(stopped))
                found.append(max(stop, sum(term(p, q, after(allowed)) for p, q in one.histories(first))))
        values.append(sum(found) if kullback else math.log(sum(found)))
    return max(values)


@cache
def price(epsilon):
    return float(pure_rho(epsilon))


def _log_cosh(x):
    return x + math.log1p(math.exp(-2 * x)) - math.log(2)


TOTALS = [0.1, 0.5, 1.0, 2.0]
ORDERS = [1, 1.01, 1.5, 2, 4, 10, 40]


@pytest.mark.parametrize("total", TOTALS)
def test_no_analyst_passes_the_rho_of_an_account_that_charges_what_was_allowed(total):
    for order in ORDERS:
        allowed = total if order == 1 else order * (order - 1) * total
        assert worst_divergence(total, ROUNDS, order, False) <= allowed * (1 + 1e-9), order


@pytest.mark.parametrize("total", TOTALS[1:])
def test_an_account_of_rho_that_gives_back_is_passed(total):
    """The analyst refines where that tells more than on average, and spends elsewhere what was given back."""
    assert worst_divergence(total, ROUNDS, 1, True) > total * 1.01
