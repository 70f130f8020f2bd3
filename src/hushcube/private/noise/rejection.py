"""Exact discrete Gaussian draws by rejection under a ziggurat, filtered in floating point.

`ziggurat` says why the proposals have the law. A word holds the box (8 bits), the sign (1 bit) and the first
digits of U (the rest). In floating point it is decided

1. in which cell k the point lies. Where that is not certain, 32 more digits of U are read; where it still is
   not, `ziggurat.Hat` decides in rational numbers;
2. whether the whole box is under the curve at k, which needs no height V: nearly always, at large variance;
3. otherwise, whether 32 digits of V put the point under the curve; where they leave it open, or the tail is
   reached, `ziggurat.Hat` decides again, with the same digits.

What is rejected is drawn anew. No outcome depends on a rounded number.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats
from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import LazyUniform
from hushcube.private.noise.ziggurat import AREA, BOTTOM, BOXES, HEIGHT, REJECTED, UNIT, ZERO, Hat

_FLAG_BITS = 9  # of a word: box and sign
SHORT_BITS, LONG_BITS = 32 - _FLAG_BITS, 64 - _FLAG_BITS  # digits of U in a word of 32 or 64 bits
TEST_BITS = 32  # digits of V
_LONG_SIGMA = 2.0**18  # above, the digits in 32 bits would leave too many cells open

_ZERO = float(ZERO)
_BOTTOM = np.array(BOTTOM) / UNIT
_INVERSE = UNIT / np.array(HEIGHT)
# Up to this t the curve is above the top of the box. The margin covers the rounding of log, sqrt and sigma.
_UNDER = np.array(
    [
        math.sqrt(max(0.0, -2 * math.log((bottom + height) / UNIT))) * (1 - 2.0**-20)
        for bottom, height in zip(BOTTOM, HEIGHT, strict=True)
    ]
)
# G = s A + 1/512 as a float *is* the G of the draw: s follows from it, and any s >= sigma will do. The factor
# covers the rounding in sigma and G, a few times 2**-53.
_STRETCH = AREA / UNIT * (1 + 2.0**-40)


def stretched(sigma: Floats) -> Floats:
    """Return G."""
    area = sigma * _STRETCH
    area += _ZERO
    return area


def cells(digits: NDArray[Any], bits: int, box: NDArray[np.intp], area: Floats) -> tuple[Floats, Bools]:
    """Return the cell k for U with these first digits, and where that is certain.

    z = (U G - 1/512) / height is computed from the middle of the interval that the digits leave, half of
    2**-bits away from its ends. Relative to U G <= G, rounding costs 2**-52 for U (beyond 53 digits), 2**-53
    for the product, the same for the difference, and 2**-52 for the inverse height and its product: < 2**-50.
    """
    inverse = _INVERSE[box]
    z = digits + 0.5
    z *= 2.0**-bits
    z *= area
    z -= _ZERO
    z *= inverse
    np.maximum(z, -0.5, out=z)  # the whole strip of zero becomes one cell
    k = np.floor(z)
    z -= k
    z -= 0.5
    np.abs(z, out=z)
    inverse *= area
    inverse *= 2.0 ** -(bits + 1) + 2.0**-50
    z += inverse
    k += 1
    return k, z < 0.5


def under(k: Floats, box: NDArray[np.intp], sigma: Floats) -> Bools:
    """Return where the box is certainly under the curve at k, over all its height."""
    return np.asarray(k <= sigma * _UNDER[box])


def verdicts(v: NDArray[np.uint32], k: Floats, box: NDArray[np.intp], sigma: Floats) -> tuple[Bools, Bools]:
    """Return where V with these 32 first digits is certainly under the curve at k, and certainly above.

    The exponent x is within 2**-49 x (sigma, the quotient, its square), which moves exp(-x) by at most
    2**-49 x exp(-x) < 2**-50, and np.exp by 8 ulp, 2**-49; so the curve is within 2**-48. Divided by a height
    of at least 2**-11 and in units of 2**-32 that is 2**-5; the digits not read are 1/2 from the middle.
    """
    margin = k / sigma
    margin *= margin
    margin *= -0.5
    np.exp(margin, out=margin)
    margin -= _BOTTOM[box]
    margin *= _INVERSE[box] * 2.0**TEST_BITS
    margin -= v + 0.5
    return margin > 0.6, margin < -0.6


def may_be_tail(k: Floats, box: NDArray[np.intp], area: Floats) -> Bools:
    """Return where k may be beyond the complete cells of box 0: c / 2**40 is far below 2**-9 of its width."""
    return np.asarray((box == 0) & (k > (area - _ZERO) * (1 - 2.0**-9) * _INVERSE[0]))


def _propose(sigma: Floats, variance: Callable[[int], Fraction], entropy: Entropy) -> tuple[Floats, NDArray[np.intp]]:
    """Return one signed proposal for each entry, and which of them are rejected."""
    long = bool(sigma.max() > _LONG_SIGMA)
    words: NDArray[Any] = entropy.words(sigma.size) if long else entropy.half_words(sigma.size)
    of = words.dtype.type
    box = (words & of(BOXES - 1)).astype(np.intp)
    digits = words >> of(_FLAG_BITS)
    if long:
        digits = digits.view(np.int64)  # signed integers become floats several times faster
    area = stretched(sigma)

    def hat(i: int) -> Hat:
        return Hat(int(box[i]), Fraction(float(area[i])), variance(i))

    k, sure = cells(digits, LONG_BITS if long else SHORT_BITS, box, area)
    if not sure.all():
        open_ = np.flatnonzero(~sure)
        digits = digits[open_].astype(np.int64)
        if not long:
            digits = digits << 32 | entropy.half_words(open_.size)
            k[open_], sure = cells(digits, LONG_BITS, box[open_], area[open_])
            open_, digits = open_[~sure], digits[~sure]
        for i, known in zip(open_.tolist(), digits.tolist(), strict=True):
            k[i] = hat(i).cell(LazyUniform(entropy, known, LONG_BITS))

    tested = np.flatnonzero(~under(k, box, sigma))
    if tested.size:
        v = entropy.half_words(tested.size)
        its_box, its_k = box[tested], k[tested]
        below, above = verdicts(v, its_k, its_box, sigma[tested])
        k[tested[above]] = REJECTED
        for j in np.flatnonzero(may_be_tail(its_k, its_box, area[tested]) | ~(below | above)).tolist():
            i = int(tested[j])
            k[i] = hat(i).judge(int(its_k[j]), LazyUniform(entropy, int(v[j]), TEST_BITS), entropy)
    rejected = np.flatnonzero(k == REJECTED)
    k *= 1.0 - 2.0 * ((words >> of(8)) & of(1)).astype(np.int8)
    return k, rejected


def _at(variance: Callable[[int], Fraction], entries: NDArray[np.intp], i: int) -> Fraction:
    """Return the variance of the i-th of these entries."""
    return variance(int(entries[i]))


def draw_large(sigma: Floats, variance: Callable[[int], Fraction], entropy: Entropy) -> Floats:
    """Return one draw for each entry: entry i of variance(i), whose root is nearly sigma[i] >= 1."""
    noise, pending = _propose(sigma, variance, entropy)
    while pending.size:
        its_variance = partial(_at, variance, pending)
        noise[pending], rejected = _propose(sigma[pending], its_variance, entropy)
        pending = pending[rejected]
    return noise
