"""Exact discrete Gaussian draws by rejection under a hat of 256 boxes of equal area, filtered in floating point.

Let f(t) = exp(-t**2 / 2). Box i = 0 .. 255 spans the heights BOTTOM[i] .. BOTTOM[i] + HEIGHT[i] (the next
box's bottom; the last top is at least 1) and the widths 0 .. A / HEIGHT[i], and covers the curve:

    f(A / HEIGHT[i]) <= BOTTOM[i]       (i >= 1; box 0 has bottom 0, width 8 and a tail, see below)

One table serves every parameter. To draw k with weight f(k / sigma), stretch the hat by any s >= sigma. Cut
the half line into cells k - 1 .. k, k = 1, 2, ..., and keep a point of cell k if its height is below
f(k / sigma). The curve falls, so f(k / sigma) <= f(z / s) for z in the cell: what is kept lies under the hat,
and its area is f(k / sigma). Zero gets 1/2, a strip of width 1/512 from each box: the random sign halves the
others as well.

So choose G = s A + 1/512, a box i, and U, V uniform. U G < 1/512 means zero; otherwise

    k = floor((U G - 1/512) / HEIGHT[i]) + 1   kept if   BOTTOM[i] + HEIGHT[i] V < exp(-k**2 / (2 variance)).

In box i >= 1 every cell that can be kept is complete, as k / sigma < A / HEIGHT[i] there. Box 0 has no end:
its complete cells 1 .. K count as above, and the length r = G - 1/512 - K HEIGHT[0] left over stands for
all k > K. K leaves r >= c / 2**40, c = ceil(s). With probability 2**-(b+1) take the b-th run of c numbers
after K, then one of them at random, kept with probability exp(-k**2 / (2 variance)) c 2**(b+1) / r. This is
at most 1: by the choice of K, k / s >= 8 - 2**-28 + b (for s >= 1), so the exponential is < 2**-(41 + b).

A word holds the box (8 bits), the sign (1 bit) and the first digits of U (the rest). In floating point it is decided

1. in which cell k the point lies. Where that is not certain, 32 more digits of U are read; where it still is
   not, `Hat` decides in rational numbers;
2. whether the whole box is under the curve at k, which needs no height V: nearly always, at large variance;
3. otherwise, whether 32 digits of V put the point under the curve; where they leave it open, or the tail is
   reached, `Hat` decides again, with the same digits.

What is rejected is drawn anew. No outcome depends on a rounded number.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.model.arrays import Bools, Floats
from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import Bounds, LazyUniform, exp_bounds

Variance = Callable[[int], Fraction]
"""The variance of each entry, exactly."""

BOXES = 256
UNIT = 1 << 32  # heights and the area are integers over this, so every box is an exact rational
AREA = 21_211_664  # the least multiple of 8 for which 256 boxes reach the top: 0.9 % above the area under f
BASE_WIDTH = 8
ZERO = Fraction(1, 2 * BOXES)
REJECTED = -1
_TAIL = Fraction(1, 1 << 40)


def _build() -> tuple[list[int], list[int]]:
    """Return the bottoms and heights: each height the largest whose box, a little wider, covers the curve."""
    bottoms, heights = [0], [AREA // BASE_WIDTH]
    while len(heights) < BOXES:
        bottoms.append(bottoms[-1] + heights[-1])
        width = math.sqrt(-2 * math.log(bottoms[-1] / UNIT))
        # The margin is far above the rounding of log and sqrt; the tests prove the cover in rationals.
        heights.append(math.floor(AREA / (width * (1 + 2.0**-32))))
    return bottoms, heights


BOTTOM, HEIGHT = _build()

_FLAG_BITS = 9  # of a word: box and sign
SHORT_BITS, LONG_BITS = 32 - _FLAG_BITS, 64 - _FLAG_BITS  # digits of U in a word of 32 or 64 bits
TEST_BITS = 32  # digits of V
_LONG_SIGMA = 2.0**18  # above, the digits in 32 bits would leave too many cells open

_ZERO = float(ZERO)
_BOTTOM = np.array(BOTTOM) / UNIT
_INVERSE = UNIT / np.array(HEIGHT)
# Up to this t the curve is above the top of the box. The margin covers the rounding of log, sqrt and sigma.
_TOPS = [(bottom + height) / UNIT for bottom, height in zip(BOTTOM, HEIGHT, strict=True)]
_UNDER = np.array([math.sqrt(max(0.0, -2 * math.log(top))) * (1 - 2.0**-20) for top in _TOPS])
# G = s A + 1/512 as a float *is* the G of the draw: s follows from it, and any s >= sigma will do. The factor
# covers the rounding in sigma and G, a few times 2**-53.
_STRETCH = AREA / UNIT * (1 + 2.0**-40)


@dataclass(frozen=True)
class Hat:
    """One box of the stretched hat, with the exact decisions about a point in it."""

    box: int
    stretched: Fraction  # G
    variance: Fraction

    @property
    def height(self) -> Fraction:
        """Return the height of the box."""
        return Fraction(HEIGHT[self.box], UNIT)

    @property
    def run(self) -> int:
        """Return c, the numbers in one run of the tail."""
        return math.ceil((self.stretched - ZERO) * UNIT / AREA)

    @property
    def complete(self) -> int:
        """Return K, the number of complete cells in box 0."""
        return math.floor((self.stretched - ZERO - _TAIL * self.run) * UNIT / HEIGHT[0])

    def cell(self, u: LazyUniform) -> int:
        """Return the cell in which U lies, reading it as far as needed."""

        def at(place: Fraction) -> int:
            return max(0, math.floor((place * self.stretched - ZERO) / self.height) + 1)

        while True:
            start, end = u.enclosure()
            if (k := at(start)) == at(end):
                return k
            u.read()

    def judge(self, k: int, v: LazyUniform, entropy: Entropy) -> int:
        """Return the magnitude drawn from cell k, or `REJECTED`; V is the place in the height of the box."""
        if k == 0:
            return 0
        if self.box == 0 and k > self.complete:
            return self._tail(entropy)
        return k if v.is_below(self.kept(k)) else REJECTED

    def kept(self, k: int) -> Bounds:
        """Return the enclosures of the part of cell k, within this box, that lies under the curve."""
        return self._curve(k, Fraction(BOTTOM[self.box], UNIT), 1 / self.height)

    def tail_kept(self, k: int, halvings: int) -> Bounds:
        """Return the enclosures of the probability of keeping k, from the run after `halvings` others."""
        rest = self.stretched - ZERO - self.complete * Fraction(HEIGHT[0], UNIT)
        return self._curve(k, Fraction(0), self.run * (2 << halvings) / rest)

    def _tail(self, entropy: Entropy) -> int:
        """Return a magnitude above K, or `REJECTED`."""
        halvings = LazyUniform(entropy).leading_zeros()
        k = self.complete + 1 + halvings * self.run + LazyUniform(entropy).below(self.run)
        if not LazyUniform(entropy).is_below(self.tail_kept(k, halvings)):
            return REJECTED
        if k >> 53:  # has happened to nobody: more than 2**12 standard deviations
            raise OverflowError("a draw does not fit in int64")
        return k

    def _curve(self, k: int, shift: Fraction, factor: Fraction) -> Bounds:
        """Return the enclosures of (exp(-k**2 / (2 variance)) - shift) * factor."""
        exponent = Fraction(k * k) / (2 * self.variance)

        def bounds(bits: int) -> tuple[Fraction, Fraction]:
            low, high = exp_bounds(exponent, bits)
            return (low - shift) * factor, (high - shift) * factor

        return bounds


def stretched(sigma: Floats) -> Floats:
    """Return G."""
    return np.asarray(sigma * _STRETCH + _ZERO)


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


def _propose(sigma: Floats, variance: Variance, entropy: Entropy) -> tuple[Floats, NDArray[np.intp]]:
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


def among(variance: Variance, entries: NDArray[np.intp]) -> Variance:
    """Return the variance of an entry counted among these."""
    return lambda i: variance(int(entries[i]))


def draw_large(sigma: Floats, variance: Variance, entropy: Entropy) -> Floats:
    """Return one draw for each entry: entry i of variance(i), whose root is nearly sigma[i] >= 1."""
    noise, pending = _propose(sigma, variance, entropy)
    while pending.size:
        noise[pending], rejected = _propose(sigma[pending], among(variance, pending), entropy)
        pending = pending[rejected]
    return noise
