"""The hat covers the curve, and what is kept under it has exactly the discrete Gaussian's weights."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scripted import DigitsReadError, SilentEntropy, close, exp_fraction, sharp

from hushcube.private.noise import SeededEntropy
from hushcube.private.noise.exact import LazyUniform, exp_bounds
from hushcube.private.noise.ziggurat import (
    AREA,
    BASE_WIDTH,
    BOTTOM,
    BOXES,
    HEIGHT,
    REJECTED,
    UNIT,
    ZERO,
    Hat,
    stretched,
)

VARIANCES = [
    Fraction(1),
    Fraction(2.3),
    Fraction(37),
    Fraction(10**6, 7),
    Fraction(10**20),
    Fraction(1 << 80),
]


def area_of(variance):
    """G as the sampler chooses it."""
    return Fraction(float(stretched(np.sqrt(np.array([float(variance)])))[0]))


def test_boxes_are_stacked_without_gaps_up_to_the_top():
    assert len(BOTTOM) == len(HEIGHT) == BOXES
    assert BOTTOM[0] == 0
    assert all(b + h == above for b, h, above in zip(BOTTOM, HEIGHT, BOTTOM[1:], strict=False))
    assert BOTTOM[-1] < UNIT <= BOTTOM[-1] + HEIGHT[-1]


def test_every_box_covers_the_curve_above_its_bottom():
    for bottom, height in zip(BOTTOM[1:], HEIGHT[1:], strict=True):
        width = Fraction(AREA, height)
        assert exp_bounds(width * width / 2, 100)[1] <= Fraction(bottom, UNIT)
    assert BASE_WIDTH * HEIGHT[0] == AREA


def test_no_box_is_flatter_than_the_filter_takes_for_granted():
    assert min(HEIGHT) * 2**11 > UNIT


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_stretch_is_at_least_sigma(variance):
    s = (area_of(variance) - ZERO) * UNIT / AREA
    assert variance <= s * s <= variance * (1 + Fraction(1, 1 << 30))


def kept_mass(k, area, variance):
    """The probability that one proposal is k (k >= 1), times 256 G: added up over boxes, cells and tail."""
    total = Fraction(0)
    for box in range(BOXES):
        hat = Hat(box, area, variance)
        if box == 0 and k > hat.complete:
            halvings = (k - hat.complete - 1) // hat.run
            share = sharp(hat.tail_kept(k, halvings))
            assert share <= 1
            rest = area - ZERO - hat.complete * hat.height
            total += rest / (2 << halvings) / hat.run * share
            continue
        cell = max(Fraction(0), min(k * hat.height, area - ZERO) - (k - 1) * hat.height)
        total += cell * min(Fraction(1), max(Fraction(0), sharp(hat.kept(k))))
    return total


@pytest.mark.parametrize("variance", VARIANCES)
def test_kept_proposals_have_exactly_the_weights(variance):
    """Zero has probability 1/(512 G), k >= 1 has exp(-k**2 / (2 variance)) / (256 G), before the sign."""
    area = area_of(variance)
    base = Hat(0, area, variance)
    sigma = math.isqrt(math.ceil(variance))
    edges = [base.complete, base.complete + 1, base.complete + base.run + 1, base.complete + 3 * base.run]
    for k in {1, 2, max(1, sigma // 3), sigma, 3 * sigma + 1, *edges}:
        if k > 0:
            assert close(kept_mass(k, area, variance), exp_fraction(Fraction(k * k) / (2 * variance)))
    assert Fraction(1, 2) / BOXES == ZERO


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_tail_keeps_with_a_probability(variance):
    """At the first number of each run, where the curve is highest."""
    hat = Hat(0, area_of(variance), variance)
    for halvings in range(20):
        k = hat.complete + 1 + halvings * hat.run
        assert hat.tail_kept(k, halvings)(200)[1] <= 1


@pytest.mark.parametrize("box", [0, 1, 100, 255])
@pytest.mark.parametrize("variance", VARIANCES[:3])
def test_cells_over_every_word(box, variance):
    """All uniforms of 10 digits: each cell is told for exactly the words inside it."""
    bits = 10
    hat = Hat(box, area_of(variance), variance)
    told = {}
    for digits in range(1 << bits):
        try:
            k = hat.cell(LazyUniform(SilentEntropy(), digits, bits))
        except DigitsReadError:
            continue
        told[k] = told.get(k, 0) + 1
    for k, count in told.items():
        start = ZERO + (k - 1) * hat.height if k else Fraction(0)
        length = (ZERO + k * hat.height - start) / hat.stretched * (1 << bits)
        assert count <= length
        if k < max(told):
            assert count > length - 3


@pytest.mark.slow
def test_the_tail_is_drawn_with_its_weights(monkeypatch):
    """Kept tail draws follow the curve: the distribution function within 5 / sqrt(n), 10 standard errors."""
    variance = Fraction(400)
    hat = Hat(0, area_of(variance), variance)
    # Here the curve is too low to be met by chance: raise it by a factor, to 1 at the first number.
    factor = 1 / sharp(hat.tail_kept(hat.complete + 1, 0))
    monkeypatch.setattr(
        Hat,
        "tail_kept",
        lambda self, k, halvings, kept=Hat.tail_kept: (
            lambda bits: tuple(factor * end for end in kept(self, k, halvings)(bits))
        ),
    )
    entropy = SeededEntropy(4)
    draws = [hat.judge(hat.complete + 1, LazyUniform(entropy), entropy) for _ in range(8000)]
    kept = [k for k in draws if k != REJECTED]
    assert min(kept) > hat.complete
    shares = [math.exp(-k * k / 800) for k in range(hat.complete + 1, hat.complete + 41)]
    total = sum(shares)
    for cut, below in enumerate(itertools.accumulate(shares)):
        seen = sum(k <= hat.complete + 1 + cut for k in kept) / len(kept)
        assert abs(seen - below / total) < 5 / math.sqrt(len(kept))
