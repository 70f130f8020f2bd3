"""The guarantee from the probabilities themselves: pmfs of the drawn noise, enumerated on neighbouring tables."""

import math
from fractions import Fraction
from functools import cache
from itertools import product

import numpy as np
import pytest

from helpers import applicable, make_plan, make_request


def laws_and_shift(plan, one, other):
    """For each drawn number: its parameter, and by how much it moves from one row's presence to the other's.

    `one` or `other` may be None: nobody.
    """
    found = []
    for batch in plan.measured.batches:
        for number, row in zip(batch.ids.tolist(), batch.rows.tolist(), strict=True):
            if not np.isfinite(plan.budgets[number]):
                continue
            budget = Fraction(float(plan.budgets[number]))
            table = np.zeros((1, *batch.shape), np.int64)
            for cell, sign in ((one, 1), (other, -1)):
                if cell is not None:
                    table[(0, *(cell[i] for i in row))] += sign
            axes = range(1, len(row) + 1)
            shifts = plan.basis.forward(table, axes).ravel().tolist()
            stretch = math.prod(plan.basis.stretch(n) for n in batch.shape)
            unit = np.eye(math.prod(batch.shape), dtype=np.int64).reshape(-1, *batch.shape)
            norms = (plan.basis.forward(unit, axes).reshape(len(unit), -1) ** 2).sum(axis=0).tolist()
            for shift, norm in zip(shifts, norms, strict=True):
                if plan.law.name == "laplace":
                    found.append((budget / stretch, shift))
                else:
                    found.append(((norm if plan.basis.name == "helmert" else 1) / (2 * budget), shift))
    return found


@pytest.mark.parametrize("strategy", applicable({"epsilon": 1}))
@pytest.mark.parametrize("sizes", [(1,), (2,)], ids=str)
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(1, 3)])
def test_largest_probability_ratio_of_discrete_laplace_is_exactly_epsilon(strategy, sizes, epsilon):
    """Joint outputs of all numbers over a window; ln P(y | x) - ln P(y | x') is a Fraction, its maximum epsilon."""
    plan = make_plan(make_request(sizes, "cube", epsilon=epsilon), strategy)
    laws = laws_and_shift(plan, (0,) * len(sizes), None)
    ratios = [
        sum((rate * (abs(y - shift) - abs(y)) for y, (rate, shift) in zip(output, laws, strict=True)), Fraction(0))
        for output in product(range(-4, 5), repeat=len(laws))
    ]
    assert epsilon * (1 - Fraction(1, 10**12)) <= max(ratios) <= epsilon
    assert max(ratios) == -min(ratios)


def gaussian_pmf(variance, reach):
    k = np.arange(-reach, reach + 1, dtype=float)
    weights = np.exp(-(k**2) / (2 * float(variance)))
    return k, weights / weights.sum()


@cache
def renyi(variance, shift, order):
    """Divergence of order a between discrete Gaussians whose centres are `shift` apart."""
    reach = math.ceil(30 * math.sqrt(float(variance))) + 40
    k = np.arange(-reach, reach + 1, dtype=float)
    log_p, log_q = -(k**2) / (2 * float(variance)), -((k - shift) ** 2) / (2 * float(variance))
    logs = order * log_p + (1 - order) * log_q
    top = logs.max()
    log_mass = math.log(math.fsum(np.exp(log_p).tolist()))
    return (top + math.log(math.fsum(np.exp(logs - top).tolist())) - log_mass) / (order - 1)


@pytest.mark.parametrize("strategy", applicable({"rho": 1}))
@pytest.mark.parametrize("rho", ["1/2", "1/50", 5])
@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_renyi_divergences_of_discrete_gaussian_are_at_most_rho_times_order(strategy, rho, neighbours):
    plan = make_plan(make_request((2, 3), "cube", rho=rho, neighbours=neighbours), strategy)
    cells = list(product(range(2), range(3)))
    for order in (1.001, 1.5, 2, 3, 7, 20):
        worst = max(
            math.fsum(renyi(v, s, order) for v, s in laws_and_shift(plan, one, other))
            for one in cells
            for other in (cells if neighbours == "replace-one" else [None])
        )
        allowed = float(plan.privacy.rho) * order
        assert worst <= allowed * (1 + 1e-9)
        if order in (2, 3, 7, 20):  # whole orders shift the lattice onto itself: equality
            assert worst >= allowed * (1 - 1e-6)


def exact_delta(laws, epsilon):
    """sum over outputs of max(0, P - e^eps Q) for a product of discrete Gaussians, by full enumeration.

    Reach: 9 deviations of each; what lies beyond has probability below 1e-18.
    """
    moved = [(float(v), s) for v, s in laws if s]
    p, q = np.ones(1), np.ones(1)
    for variance, shift in moved:
        reach = math.ceil(9 * math.sqrt(variance)) + abs(shift) + 2
        k, first = gaussian_pmf(variance, reach + abs(shift))
        second = np.interp(k - shift, k, first, left=0.0, right=0.0)
        p, q = np.multiply.outer(p, first).ravel(), np.multiply.outer(q, second).ravel()
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


@pytest.mark.parametrize(
    ("sizes", "words", "strategy", "neighbours", "one", "other"),
    [
        ((2,), "1-way", "workload", "add-remove", (0,), None),  # one number moves
        ((2,), "1-way", "workload", "replace-one", (0,), (1,)),  # two
        ((2,), "<=1-way", "workload", "add-remove", (0,), None),  # two: the total and a cell
        ((2, 2), "a0,a1,a0*a1", "workload", "add-remove", (0, 0), None),  # three
        ((2,), "1-way", "residual", "add-remove", (0,), None),  # the total and a difference
        ((3,), "1-way", "residual", "replace-one", (0,), (1,)),
        ((2,), "1-way", "fourier", "add-remove", (0,), None),
        ((2, 2), "2-way", "fourier", "replace-one", (0, 0), (1, 0)),
        ((2,), "1-way", "identity", "add-remove", (1,), None),
    ],
)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, "1e-6"), (0.5, "1e-4"), (3.0, "1e-9")])
def test_exact_delta_of_the_drawn_noise(sizes, words, strategy, neighbours, one, other, epsilon, delta):
    """At most delta, and not wastefully less: all of it by the exact proof, a third by smoothing, an eighth by zCDP."""
    request = make_request(sizes, words, epsilon=epsilon, delta=delta, neighbours=neighbours)
    plan = make_plan(request, strategy)
    found = max(exact_delta(laws_and_shift(plan, a, b), epsilon) for a, b in ((one, other), (other, one)))
    assert found <= float(delta)
    assert found >= float(delta) * {"exact": 0.99, "smoothing": 1 / 3, "zcdp": 1 / 8}[plan.proof]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("strategy", ["workload", "identity"])
def test_delta_is_kept_by_every_row_of_a_larger_table(strategy, epsilon):
    plan = make_plan(make_request((3, 4), "2-way", epsilon=epsilon, delta="1e-7"), strategy)
    for cell in product(range(3), range(4)):
        assert exact_delta(laws_and_shift(plan, cell, None), epsilon) <= 1e-7


def test_the_judge_catches_noise_that_is_too_small():
    """A tenth less variance than the exact proof's is caught by the enumeration."""
    plan = make_plan(make_request((2,), "1-way", epsilon=1, delta="1e-6"), "workload")
    laws = laws_and_shift(plan, (0,), None)
    assert exact_delta([(v * Fraction(9, 10), s) for v, s in laws], 1.0) > 1e-6
