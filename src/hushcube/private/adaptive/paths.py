"""The noise of many cells at every rate of a grid, exactly: finest first, each coarser one by adding more.

    X_{k-1} = X_k + Z_k,    Z_k = 0 with probability c_k = S(r_{k-1}) / S(r_k), else discrete Laplace of rate r_{k-1}
    S(r) = cosh r - 1                                          [docs/maths.md, section 3; rates r_0 < r_1 < ... < r_top]

has X_k discrete Laplace of rate r_k for every k, and (X_0, ..., X_k) given the truth costs what X_k costs: coarser
values are made from finer ones without looking at the truth. So the answers may be revealed from coarse to fine.

The c_k telescope: nothing is added between the levels b and a < b with probability S(r_a) / S(r_b). One uniform U thus
finds the next change, between the levels k and k - 1 where S(r_{k-1}) <= U S(r_b) < S(r_k). A cell changes about
2 ln(r_top / r_0) times on the whole way, however many levels there are. Floats find k; where they might err, rational
enclosures decide.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hushcube.designs.grid import Grid
from hushcube.model.arrays import Floats, Ints
from hushcube.private.noise import Entropy, Laws, discrete_laplace
from hushcube.private.noise.exact import Bounds, LazyUniform, exp_bounds, largest_below

_BITS = 64
_DOUBT = 2.0**-45  # far above the relative error of S and of its product with U: a few times 2^-53 each


@dataclass(frozen=True, eq=False)
class Path:
    """Noisy answers at every level: those at the start, and every later change, in the order of levels."""

    start: Ints
    levels: Ints
    """Where a cell changes: it has the new value from this level on."""
    cells: Ints
    before: Ints
    after: Ints

    def at(self, level: int) -> Ints:
        """The answers at a level."""
        values = self.start.copy()
        seen = slice(0, int(np.searchsorted(self.levels, level, side="right")))
        values[self.cells[seen]] = self.after[seen]  # of several changes of a cell the last one counts
        return values

    def single(self) -> Iterator[Path]:
        """The path of each cell by itself."""
        order = np.argsort(self.cells, kind="stable")
        ends = np.cumsum(np.bincount(self.cells, minlength=len(self.start)))
        for cell, end in enumerate(ends.tolist()):
            own = order[0 if cell == 0 else ends[cell - 1] : end]
            zeros = np.zeros(len(own), np.int64)
            yield Path(self.start[cell : cell + 1], self.levels[own], zeros, self.before[own], self.after[own])


class NoisePaths:
    """Draws the paths of one grid."""

    def __init__(self, grid: Grid) -> None:
        self._rates = grid.rates
        self._S: Floats = 2 * np.sinh(grid.rates / 2) ** 2
        self._laws = Laws(grid.rates)

    def draw(self, truth: Ints, entropy: Entropy) -> Path:
        """Noisy versions of exact answers at every level."""
        top = len(self._rates) - 1
        noise = discrete_laplace([Fraction(self._rates[top])], len(truth), entropy)[0]
        level = np.full(len(truth), top)
        changes: list[tuple[Ints, Ints, Ints, Ints]] = []
        moving = np.arange(len(truth)) if top else np.arange(0)
        while moving.size:
            k = self._next_change(level[moving], entropy)
            moving, k = moving[k > 0], k[k > 0]
            fine = noise[moving].copy()
            noise[moving] += self._laws.each(k - 1, entropy)
            level[moving] = k - 1
            changed = noise[moving] != fine
            cells = moving[changed]
            changes.append((k[changed], cells, truth[cells] + noise[cells], truth[cells] + fine[changed]))
            moving = moving[k > 1]
        joined = [np.concatenate([c[part] for c in changes] or [np.zeros(0, np.int64)]) for part in range(4)]
        order = np.lexsort((joined[1], joined[0]))  # an order that tells nothing about what is not revealed yet
        levels, cells, before, after = (values[order] for values in joined)
        return Path(truth + noise, levels, cells, before, after)

    def _next_change(self, level: Ints, entropy: Entropy) -> Ints:
        """For cells at a level: the k at which something is added on the way to k - 1; 0 where nothing ever is."""
        words = entropy.words(len(level))
        u = (words + 0.5) * 2.0**-_BITS
        target = u * self._S[level]
        k = np.searchsorted(self._S, target, side="right")
        doubt = _DOUBT + 2.0**-_BITS / u
        near_upper = target * (1 + doubt) >= self._S[np.minimum(k, level)]
        near_lower = (k > 0) & (target * (1 - doubt) < self._S[np.maximum(k - 1, 0)])
        for i in np.flatnonzero(near_upper | near_lower).tolist():
            k[i] = self.change_of(LazyUniform(entropy, int(words[i]), _BITS), int(level[i]), int(k[i]))
        return k

    def change_of(self, uniform: LazyUniform, level: int, guess: int) -> int:
        """The same for one uniform, decided without rounding."""

        def tail(steps: int) -> Bounds:
            if steps > level:
                return lambda _bits: (Fraction(0), Fraction(0))
            return stay_bounds(Fraction(self._rates[level - steps]), Fraction(self._rates[level]))

        return level - largest_below(uniform, tail, max(0, level - guess))


def stay_bounds(coarse: Fraction, fine: Fraction) -> Bounds:
    """The enclosures of S(coarse) / S(fine), with S(r) = (1 - p)² / 2p and p = exp(-r)."""
    if coarse == fine:
        return lambda _bits: (Fraction(1), Fraction(1))
    # 1 - p has as many leading zeros as the rate
    extra = 8 + 3 * max(0, coarse.denominator.bit_length() - coarse.numerator.bit_length() + 1)

    def bounds(bits: int) -> tuple[Fraction, Fraction]:
        p_low, p_high = exp_bounds(coarse, bits + extra)
        q_low, q_high = exp_bounds(fine, bits + extra)
        low = (1 - p_high) ** 2 * q_low / ((1 - q_low) ** 2 * p_high)
        high = (1 - p_low) ** 2 * q_high / ((1 - q_high) ** 2 * p_low) if p_low else Fraction(1)
        return low, min(high, Fraction(1))

    return bounds
