"""What the noise alone says, before any is drawn: Theorems 7 and 8 of Barak et al. 2007, corrected, and their shift.

How far can the marginals of the rounded table be from the truth? With probability 1 - delta no noisy number is off by
more than its reach: sum_r P(|noise_r| > u d_r) <= delta, with d_r = 1 or the noise's deviation. The true table is a
solution at a distance of at most u, so the program's own is too, and the two differ by at most 2 u d_r in each measured
number. For every marginal A, at once:

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

The shift: add so much to the total that a non-negative table fits.                  [Barak et al. 2007, section 4.3]

If the coefficients are off by e_b, then  x + 2^-k sum_b e_b chi_b + 2^-k ||e||_1  is nowhere negative, and differs from
the noisy coefficients only in the total, which grows by ||e||_1 (Theorem 9). ||e||_1 tells about the data and must
never be added itself. A quantile of its law may: the law is public.

The paper takes ||e||_1 for exponential; it is a sum of |B| exponentials, Gamma(|B|, s). Its mean |B| s = 2 |B|²/epsilon
is half of what Corollary 1 adds at t = 1, but its deviation sqrt(|B|) s is small: the corollary's proof fails for
t < 1/2 (|B| = 137, t = 0.45: the norm exceeds the shift with probability 0.88, and 0.64 is allowed), and it wastes for
t > 1/2. The quantile is used here, of

    equal Laplace rates r      Gamma(|B|, 1/r) + |B|/2      (a discrete |X| is never above an exponential plus a half)
    unequal Laplace rates      the least of that for the smallest rate, and of Chernoff's bound:
                               P(sum > x) <= exp(-h x) prod_b r_b/(r_b - h), any h below all rates
    Gaussian noise             sqrt(2 V (|B| ln 2 + ln(1/delta))), V the sum of the variances   (Chernoff, |X|)

Under replace-one the total n is public, and stays: the shifted table times n / (n + shift) is nowhere negative either,
and has n people. That is to mix the noisy table with the even one, shift / (n + shift) parts of it: every other
coefficient shrinks by n / (n + shift).

This is a curiosity. It adds that many people who do not exist: by the corollary 4 t |B|²/epsilon, 75,076 for all 2-way
tables of 16 bits at t = epsilon = 1. Use a non-negative fit instead. Where a size is not a power of two, the table that
exists is one over the codes: phantom codes get their share of the people.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hushcube.designs.lattice.design import InverseFourier, LatticeDesign
from hushcube.errors import BadInput
from hushcube.faces.barak_rows import numbers, rank
from hushcube.faces.value import Weights
from hushcube.lattice.basis import FOURIER, MARGINAL, Basis
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Floats
from hushcube.model.noise import GAUSSIAN, Measurement


@dataclass(frozen=True, eq=False)
class Bound:
    """With the chosen probability, all marginals' errors (sums of absolute errors of cells) are within `error`."""

    reach: float  # u: no noisy number is further off than this many units; nor is the program's distance larger
    noise: Floats  # the part of the noise, for each marginal
    sharper: Floats  # the same by Cauchy-Schwarz, never larger
    rounding: float  # how many people rounding moves at most

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
    marginals, rows = design.request.marginals, numbers(design)
    reach, off = _reach(design, delta, weights)
    shares = marginals.cells / marginals.product([padded(n) for n in design.schema.sizes])
    noise = shares * marginals.sum_over_subsets(design.measured, rows * off)
    sharper = np.sqrt(shares * marginals.sum_over_subsets(design.measured, rows * off**2))
    return Bound(reach, noise, sharper, rank(design.measured) / 2)


def theorem_8(design: LatticeDesign, delta: float, *, weights: Weights = "equal") -> Bound:
    """For the objective `max-marginal`, on measured tables."""
    _check(design, delta, MARGINAL, "theorem 8", "workload")
    marginals, measured = design.request.marginals, design.measured
    reach, off = _reach(design, delta, weights)
    noise = np.full(len(marginals), np.inf)
    for pair in measured.inclusions(marginals):
        np.minimum.at(noise, pair.small, (measured.cells * off)[pair.big])
    return Bound(reach, noise, noise, rank(measured) / 2)


def _check(design: LatticeDesign, delta: float, basis: Basis, name: str, strategy: str) -> None:
    if not 0 < delta < 1:
        raise BadInput("delta", "is not a probability between 0 and 1", "use 0.05, say")
    if design.basis is not basis:
        raise BadInput("strategy", f"{name} is about {basis.name} plans", f"plan with the strategy `{strategy}`")


def _reach(design: LatticeDesign, delta: float, weights: Weights) -> tuple[float, Floats]:
    """u, and 2 u d for each measured set, zero where the set is public."""
    noisy = np.isfinite(design.budgets)
    units = np.sqrt(design.errors.set_variances(exact=True)) if weights == "deviation" else np.ones(len(noisy))
    units = np.where(noisy, np.maximum(units, 1e-6 * units.max(initial=1e-6)), 0.0)
    if not noisy.any():
        return 0.0, units
    budgets, d, counts = design.budgets[noisy], units[noisy], numbers(design)[noisy]
    # the expected number of noisy numbers that are further off than u units
    reach = _quantile(lambda u: float(counts @ design.law.tail(budgets, np.floor(u * d) + 1)), delta, 1.0)
    reach = float(math.floor(reach)) if weights == "equal" else reach  # noise is whole numbers
    return reach, 2 * reach * units


def _quantile(tail: Callable[[float], float], most: float, guess: float) -> float:
    """The least x at which a falling function is at most `most`, rounded up."""
    low, high = 0.0, guess
    while tail(high) > most:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > most else (low, middle)
    return high


def shift(design: LatticeDesign, probability: float) -> int:
    """How many people to add so that, with the given probability, a non-negative table has these coefficients."""
    if not 0 < probability < 1:
        raise BadInput("probability", "is not between 0 and 1", "use 0.95, say")
    if not design.basis.has_inverse:
        raise BadInput("strategy", "only Fourier coefficients can be shifted", "plan with the strategy `fourier`")
    noisy = np.isfinite(design.budgets)
    rows = numbers(design)[noisy]
    if not len(rows):
        return 0
    number, delta = round(float(rows.sum())), 1 - probability
    if design.law is GAUSSIAN:
        variance = float(rows @ np.maximum(design.errors.set_variances(exact=True), 0.5 / design.budgets)[noisy])
        return math.ceil(math.sqrt(2 * variance * (number * math.log(2) - math.log(delta))))
    rates = design.budgets[noisy]
    smallest = float(rates.min())
    amount = gamma_quantile(number, probability) / smallest
    if rates.max() > smallest:  # Chernoff: any h gives a valid bound
        tried = (smallest * np.linspace(0.001, 0.999, 999)).tolist()
        bounds = ((-math.log(delta) - float(rows @ np.log1p(-h / rates))) / h for h in tried)
        amount = min(amount, *bounds)
    return math.ceil(amount + number / 2)


def shifted(design: LatticeDesign, measurement: Measurement, probability: float) -> InverseFourier:
    """The tables of the noisy coefficients with the total raised by `shift`, and shrunk to it where it is public."""
    total, *others = measurement.values  # the empty set comes first
    added = shift(design, probability)
    if not design.publishes_total:
        return InverseFourier(Coefficients(design.measured, (total + added, *others)))
    kept = kept_share(int(total.reshape(-1)[0]), added)
    shrunk = (np.asarray(kept * values, np.float64) for values in others)
    return InverseFourier(Coefficients(design.measured, (total, *shrunk)))


def kept_share(people: int, added: int) -> float:
    """By how much a table of so many people and as many phantoms shrinks to the people alone."""
    return people / (people + added) if people > 0 else 0.0


def gamma_tail(shape: int, x: float) -> float:
    """P(Gamma(shape, 1) > x) for a whole shape: fewer than `shape` events of a Poisson process by time x."""
    if x <= 0:
        return 1.0
    logs = np.append(0.0, np.cumsum(math.log(x) - np.log(np.arange(1.0, shape)))) - x
    top = float(logs.max())
    return min(math.exp(top) * float(np.exp(logs - top).sum()), 1.0) if top > -700 else 0.0


def gamma_quantile(shape: int, probability: float) -> float:
    """The x with P(Gamma(shape, 1) <= x) = probability, rounded up."""
    return _quantile(lambda x: gamma_tail(shape, x), 1 - probability, 2.0 * shape)
