"""Tagged draws: samplers that return a mark of each draw in place of noise, and note the law that was asked for.

A published integer is an exact integer plus noise. With tags for noise it can be taken apart again: which draw it
holds, and which exact integer. So the privacy loss can be computed from what was really drawn and where it really
went, not from a plan that says so.
"""

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from hushcube.private.blocks import Noise

_STEP = 2**24
"""Tags are multiples of it; exact integers stay below half of it."""


class Violation(AssertionError):
    """A promise is broken."""


@dataclass(frozen=True)
class Law:
    """Discrete Laplace noise of a rate, or discrete Gaussian noise of a variance parameter."""

    kind: str
    parameter: Fraction

    def loss(self, shift: int) -> Fraction:
        """What a shift of one number by so much costs, in epsilon or in rho."""
        if self.kind == "laplace":
            return abs(shift) * self.parameter
        return Fraction(shift * shift) / (2 * self.parameter)


@dataclass
class Tags:
    """The tags handed out in one run, with their laws; every run hands out the same ones in the same order."""

    laws: list[Law] = field(default_factory=list)
    values: list[int] = field(default_factory=list)

    def __post_init__(self):
        self._rng = np.random.default_rng(20261117)

    def _hand_out(self, laws, shape):
        tags = self._rng.integers(1, 2**36, len(laws)) * _STEP  # sums of two are other tags with a chance of 2^-36
        self.laws += laws
        self.values += tags.tolist()
        return tags.reshape(shape)

    def laplace(self, rates, columns, entropy):
        return self._hand_out([Law("laplace", rate) for rate in rates for _ in range(columns)], (len(rates), columns))

    def gaussian(self, variances, multipliers, entropy):
        laws = [Law("gaussian", variance * int(m)) for variance in variances for m in multipliers]
        return self._hand_out(laws, (len(variances), len(multipliers)))

    @property
    def noise(self):
        """For plans that decide beforehand; adaptive methods draw for themselves.                     [tape.py]"""
        return Noise(self.laplace, self.gaussian)

    def read(self, published):
        """The exact integers, and for each the number of the draw that is in it; -1 where there is none."""
        published = np.concatenate([np.asarray(values, np.int64).ravel() for values in published])
        tags = (published + _STEP // 2) // _STEP * _STEP
        place = {tag: at for at, tag in enumerate(self.values)} | {0: -1}
        try:
            draws = [place[tag] for tag in tags.tolist()]
        except KeyError:
            raise Violation("a published number holds noise that is no single draw") from None
        used = [at for at in draws if at >= 0]
        if len(used) != len(set(used)):
            raise Violation("a draw is used twice")
        return Seen((published - tags).tolist(), draws, tuple(self.laws))


@dataclass(frozen=True)
class Seen:
    """What a run published: exact integers, the draw in each, and the laws of all draws."""

    exact: list[int]
    draws: list[int]
    laws: tuple[Law, ...]

    def shift(self, other):
        """By how much the numbers of another run differ, with the law of each: all there is to a privacy loss."""
        if self.draws != other.draws or self.laws != other.laws:
            raise Violation("the noise depends on the data")
        moved = []
        for one, two, draw in zip(self.exact, other.exact, self.draws, strict=True):
            if one != two and draw < 0:
                raise Violation("a number without noise changes")
            if one != two:
                moved.append((abs(one - two), draw))
        return frozenset(moved)

    def loss(self, shift):
        """The privacy loss of a shift: epsilon for Laplace noise, rho for Gaussian noise."""
        return sum((self.laws[draw].loss(by) for by, draw in shift), Fraction(0))
