"""What tables that are near a guess are expected to be off by, once they are measured with noise.

A cell with the guess q is expected to be off by a normal deviation tau = d q sqrt(pi/2), so that the table is off by
d times its people. What a set B adds to smaller ones is m_B = prod (n_i - 1) numbers over cells(B) = prod n_i cells.
Where they are measured with noise of variance v, that of a cell is v m_B / cells(B); what is left of its deviation has
variance 1 / (1/tau² + cells(B) / (m_B v)), and

    error_B(v) = sqrt(2/pi) sum_c tau_c / sqrt(1 + tau_c² cells(B) / (m_B v))

which is what the guess is off by where noise is large, and what noise does where it is small; cells far below the
noise cost nothing, so that large tables are no dearer than what is in them.

For relative errors, with a sanity bound, a table's error is the mean of |error| / max(count, bound) over its cells. If
all cells of B are off by the same part of their guess, the cells of a table A that holds B are off by that part too,
and its mean is the part times s_A, the mean of min(1, q_c / bound) over its own cells. So B counts for A by s_A / s_B:

    error_B(v) = sqrt(2/pi) sum_c left_c / max(q_c, bound) / sum_c min(1, q_c / bound),   left_c as above,

and the weight of A is w_A s_A in place of w_A.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints

_BINS: Final = 32
_OCTAVES: Final = 20  # deviations below the largest one by more factors of two are taken together
_TOGETHER: Final = 2**21
_HALF: Final = np.sqrt(np.pi / 2)


@dataclass(frozen=True, eq=False)
class Expected:
    """For each of some sets the deviations tau that its cells are expected to have, and how many have each.

    `free` is m_B / cells(B): what the noise of a set has in one of its cells, over the variance of the noise.
    """

    taus: Floats
    counts: Floats
    free: Floats

    @classmethod
    def of(cls, family: Family, guess: Sequence[Floats], deviations: Floats, bound: float | None = None) -> Expected:
        """Of the tables of a family, an array for each batch, with relative deviations d.

        With a sanity bound `counts` says for how much the errors of cells count, in proportion to the cells.
        """
        taus, counts = np.zeros((len(family), _BINS)), np.zeros((len(family), _BINS))
        for batch, q in zip(family.batches, guess, strict=True):
            for part in batch.parts(_TOGETHER):
                ids, lines = batch.ids[part], q[part].reshape(len(batch.ids[part]), -1)
                top = np.maximum(lines.max(axis=1, keepdims=True), 1e-300)
                depth = np.log2(np.maximum(lines, 1e-300) / top) / -_OCTAVES * _BINS
                bins = np.minimum(depth, _BINS - 1).astype(np.int64)
                places = np.arange(len(ids))[:, None] * _BINS + bins
                shape = (len(ids), _BINS)
                counts[ids] = np.bincount(places.ravel(), minlength=shape[0] * _BINS).reshape(shape)
                sums = np.bincount(places.ravel(), lines.ravel(), minlength=shape[0] * _BINS).reshape(shape)
                mean = np.divide(sums, counts[ids], out=np.zeros(shape), where=counts[ids] > 0)
                taus[ids] = mean * deviations[ids, None] * _HALF
                if bound is not None:
                    scale = 1 / np.maximum(lines, bound)
                    scale /= np.maximum(np.minimum(lines / bound, 1.0).sum(axis=1, keepdims=True), 1e-300)
                    counts[ids] = np.bincount(places.ravel(), scale.ravel(), minlength=shape[0] * _BINS).reshape(shape)
        return cls(taus, counts, free_shares(family))

    def __add__(self, other: Expected) -> Expected:
        pairs = ((self.taus, other.taus), (self.counts, other.counts), (self.free, other.free))
        return Expected(*map(np.concatenate, pairs))

    def __len__(self) -> int:
        return len(self.taus)

    def of_sets(self, chosen: Ints | slice) -> Expected:
        """Those of some of the sets."""
        return Expected(self.taus[chosen], self.counts[chosen], self.free[chosen])

    def times(self, factors: Floats | float) -> Expected:
        """With deviations that are larger by a factor, one for each set."""
        return Expected(self.taus * np.reshape(factors, (-1, 1)), self.counts, self.free)

    def left(self, variances: Floats) -> Floats:
        """error_B of each set at a variance of its own."""
        left = self.taus / np.sqrt(1 + self.taus**2 / (self.free * variances)[:, None])
        return np.asarray((self.counts * left).sum(axis=1) / _HALF)

    def errors(self, variances: Floats) -> Iterator[tuple[slice, Floats]]:
        """error_B at each of some variances (infinite: not measured), for a few sets at a time; (sets, variances)."""
        step = max(1, _TOGETHER // (_BINS * len(variances)))
        for start in range(0, len(self), step):
            part = slice(start, start + step)
            t, free = self.taus[part][:, :, None], self.free[part][:, None, None]
            left = t / np.sqrt(1 + t**2 / (free * variances))
            yield part, np.einsum("sb,sbv->sv", self.counts[part], left) / _HALF


def free_shares(family: Family) -> Floats:
    """m_B / cells(B) of sets, the product of 1 - 1/n over their attributes; those of one value count for nothing."""
    return family.product(np.where(family.sizes > 1, 1 - 1 / family.sizes, 1.0))


def shares_above(family: Family, guess: Sequence[Floats], bound: float) -> Floats:
    """s of each table: the share of its cells that are not below a sanity bound, those below by their part of it."""
    found = np.zeros(len(family))
    for batch, q in zip(family.batches, guess, strict=True):
        found[batch.ids] = np.minimum(q / bound, 1.0).reshape(len(q), -1).mean(axis=1)
    return found
