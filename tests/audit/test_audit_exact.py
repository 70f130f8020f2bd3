"""The exact audit in its short form, and that it would find what it looks for."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from audit import tags
from audit.delta import delta
from audit.exact import ADAPTIVE, attacks, worst
from audit.mechanisms import FAMILIES, in_memory
from audit.tags import Tags, Violation
from helpers import every_plan, make_request
from hushcube.private.blocks import Noise


@pytest.mark.parametrize("family", [*FAMILIES, ADAPTIVE])
def test_no_loss_exceeds_its_claim(family):
    tried = 0
    for _, name, attack in attacks("short", family):
        loss, claim, pairs = attack()
        assert loss <= claim and pairs, name
        tried += 1
    assert tried >= 4


# ------------------------------------------------------------------------------------------------ the judge has teeth


def workload_plan(**privacy):
    return next(every_plan(make_request((2, 3), "cube", **privacy), ["workload"], ["gls"]))


def spoiled(spoil, **privacy):
    """The same tables of a plan, with other noise than it asks for."""
    return replace(in_memory("", "", workload_plan(**privacy)), spoil=spoil)


def test_a_little_too_little_noise_is_found():
    def fainter(noise):
        return Noise(lambda rates, *rest: noise.laplace([r * Fraction("1.001") for r in rates], *rest))

    loss, claim, _ = worst(spoiled(fainter, epsilon=1), 3)
    assert claim < loss < claim * Fraction(1002, 1000)


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (lambda rows: np.repeat(rows[:, :1], rows.shape[1], axis=1), "a draw is used twice"),
        (lambda rows: np.zeros_like(rows), "a number without noise changes"),
        (lambda rows: rows // 2, "noise that is no single draw"),
        (lambda rows: rows + np.roll(rows, 1, axis=1), "noise that is no single draw"),
    ],
)
def test_noise_that_is_shared_left_out_or_changed_is_found(broken, found):
    with pytest.raises(Violation, match=found):
        worst(spoiled(lambda noise: Noise(lambda *asked: broken(noise.laplace(*asked))), epsilon=1), 3)


def test_noise_that_depends_on_the_data_is_found():
    seen = iter(range(10**6))

    def other(noise):
        changed = lambda variances: [v * (1 + Fraction(next(seen), 10**9)) for v in variances]  # noqa: E731
        return Noise(gaussian=lambda variances, *rest: noise.gaussian(changed(variances), *rest))

    with pytest.raises(Violation, match="the noise depends on the data"):
        worst(spoiled(other, rho=1), 3)


def test_tags_are_told_from_exact_integers():
    one = Tags()
    numbers = one.laplace([Fraction(1), Fraction(2)], 3, None) + np.arange(-3, 3).reshape(2, 3)
    seen = one.read([numbers, np.array([5])])
    assert seen.exact == [-3, -2, -1, 0, 1, 2, 5] and seen.draws == [0, 1, 2, 3, 4, 5, -1]
    assert [law.parameter for law in seen.laws] == [1, 1, 1, 2, 2, 2]
    other = Tags()
    assert other.noise.laplace([Fraction(1)], 2, None).ravel().tolist() == one.values[:2] == other.values
    assert tags.Law("gaussian", Fraction(2)).loss(3) == Fraction(9, 4)


def test_delta_is_that_of_its_definition():
    """For one number by its sum, for two by the sum over all pairs of outcomes; on the grid slightly more."""
    variance, epsilon = 3.0, 1.0
    k = np.arange(-80, 81)
    p = np.exp(-(k**2) / (2 * variance))
    p /= p.sum()
    single = np.maximum(p[1:] - np.exp(epsilon) * p[:-1], 0).sum()
    assert delta(epsilon, [(1, variance)]) == pytest.approx(single, rel=1e-12)
    both = np.multiply.outer(p, p)
    pair = np.maximum(both[1:, 2:] - np.exp(epsilon) * both[:-1, :-2], 0).sum()
    assert pair <= delta(epsilon, [(1, variance), (2, variance)]) <= pair * 1.002
