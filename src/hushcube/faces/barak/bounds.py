"""How far the marginals of the rounded table can be from the truth: Theorems 7 and 8 of Barak et al. 2007, corrected.

With probability 1 - delta no noisy number is off by more than its reach: sum_r P(|noise_r| > u d_r) <= delta, with
d_r = 1 or the noise's deviation. The true table is a solution at a distance of at most u, so the program's own is too,
and the two differ by at most 2 u d_r in each measured number. For every marginal A, at once:

    Theorem 7    ||C^A (x - w')||_1 <= cells(A)/codes(A)  sum_{b inside A} 2 u d_b    +    rank/2                  (12)
    Theorem 8    ||C^A (x - w')||_1 <= min_{measured S >= A}  cells(S) 2 u d_S        +    rank/2                  (13)

On bits with equal budgets and continuous noise of scale s, u = s ln(|B|/delta) and (12) reads

    2^|A| 4 |B| ln(|B|/delta) / epsilon + |B|/2          replace-one, s = 2|B|/epsilon; half the noise for add-remove.

The printed theorems have 8 for 4 (the noise already keeps to s ln(|B|/delta)) and |B| for |B|/2 (a nearest whole number
is never more than a half away). Theorem 8's sum of cells in the rounding is corrected to the rank of the marginals:
columns of non-zero cells at a vertex are independent. |B| is the closure's; the introduction's |C| is too small.
The noise is the plan's own: rates may differ, and P(|X| > t) is that of discrete Laplace noise, exactly,

    P(|X| >= m) = 2 p^m / (1 + p),  p = exp(-rate),       at most exp(-rate (m - 1/2)),

or 2 exp(-m²/2 variance) for discrete Gaussian noise, which is sub-Gaussian     [Canonne, Kamath, Steinke 2020, 17].

`sharper` is not in the paper: by Parseval and Cauchy-Schwarz the noise's part of (12) falls to

    sqrt(cells(A)/codes(A) sum_{b inside A} (2 u d_b)²),      2^(|A|/2) 2 u on bits in place of 2^|A| 2 u.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput
from hushcube.faces.barak.table import Weights
from hushcube.lattice.basis import FOURIER, MARGINAL, Basis
from hushcube.lattice.family import Family
from hushcube.lattice.hadamard import padded
from hushcube.lattice.variances import dimensions
from hushcube.model.arrays import Floats


@dataclass(frozen=True, eq=False)
class Bound:
    """With probability 1 - delta, all marginals' errors (sums of absolute errors of their cells) are within `error`."""

    marginals: Family
    delta: float
    reach: float
    """u: no noisy number is further off than this many units; nor is the program's distance larger."""
    noise: Floats
    """The part of the noise, for each marginal."""
    sharper: Floats
    """The same by Cauchy-Schwarz, never larger."""
    rounding: float
    """How many people rounding moves at most."""

    @property
    def error(self) -> Floats:
        """The theorem's bound for each marginal."""
        return self.noise + self.rounding

    @property
    def sharper_error(self) -> Floats:
        """The smaller bound for each marginal."""
        return self.sharper + self.rounding


def theorem_7(design: LatticeDesign, delta: float, *, weights: Weights = "equal") -> Bound:
    """For the objective `max-coefficient`, on Fourier coefficients."""
    _check(design, delta, FOURIER, "theorem 7", "fourier")
    marginals = design.request.marginals
    rows = design.measured.product(design.basis.per_axis(design.basis.rows, design.measured.sizes))
    reach, off = _reach(design, rows, delta, weights)
    shares = marginals.cells / marginals.product([padded(n) for n in design.schema.sizes])
    noise = shares * marginals.sum_over_subsets(design.measured, rows * off)
    sharper = np.sqrt(shares * marginals.sum_over_subsets(design.measured, rows * off**2))
    return Bound(marginals, delta, reach, noise, sharper, _rounding(design))


def theorem_8(design: LatticeDesign, delta: float, *, weights: Weights = "equal") -> Bound:
    """For the objective `max-marginal`, on measured tables."""
    _check(design, delta, MARGINAL, "theorem 8", "workload")
    marginals, measured = design.request.marginals, design.measured
    reach, off = _reach(design, measured.cells, delta, weights)
    noise = np.full(len(marginals), np.inf)
    for pair in measured.inclusions(marginals):
        np.minimum.at(noise, pair.small, (measured.cells * off)[pair.big])
    return Bound(marginals, delta, reach, noise, noise, _rounding(design))


def _rounding(design: LatticeDesign) -> float:
    return float(dimensions(design.measured.closure).sum()) / 2


def _reach(design: LatticeDesign, rows: Floats, delta: float, weights: Weights) -> tuple[float, Floats]:
    """u, and 2 u d for each measured set, zero where the set is public."""
    noisy = np.isfinite(design.budgets)
    units = np.sqrt(design.errors.set_variances(exact=True)) if weights == "deviation" else np.ones(len(noisy))
    units = np.where(noisy, np.maximum(units, 1e-6 * units.max(initial=1e-6)), 0.0)
    if not noisy.any():
        return 0.0, units
    budgets, d, counts = design.budgets[noisy], units[noisy], rows[noisy]

    def outside(u: float) -> float:
        """The expected number of noisy numbers that are further off than u units."""
        return float(counts @ design.law.tail(budgets, np.floor(u * d) + 1))

    low, high = 0.0, 1.0
    while outside(high) > delta:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if outside(middle) > delta else (low, middle)
    reach = float(math.floor(high)) if weights == "equal" else high  # noise is whole numbers
    return reach, 2 * reach * units


def _check(design: LatticeDesign, delta: float, basis: Basis, name: str, strategy: str) -> None:
    if not 0 < delta < 1:
        raise BadInput("delta", "is not a probability between 0 and 1", "use 0.05, say")
    if design.basis is not basis:
        raise BadInput("strategy", f"{name} is about {basis.name} plans", f"plan with the strategy `{strategy}`")
