"""The hat under which discrete Gaussian proposals are drawn: 256 boxes of equal area, in rational numbers.

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
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import Bounds, LazyUniform, exp_bounds

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
