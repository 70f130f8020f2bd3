"""Simple non-negativity: add so much to the total that a non-negative table fits.      [Barak et al. 2007, section 4.3]

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

This is a curiosity. It adds that many people who do not exist: by the corollary 4 t |B|²/epsilon, 75,076 for all 2-way
tables of 16 bits at t = epsilon = 1. Use a non-negative fit instead. Where a size is not a power of two, the table that
exists is one over the codes: phantom codes get their share of the people.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hushcube.designs.lattice.answers import InverseFourier
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats
from hushcube.model.noise import GAUSSIAN, Measurement


def shift(design: LatticeDesign, probability: float) -> int:
    """How many people to add so that, with the given probability, a non-negative table has these coefficients."""
    if not 0 < probability < 1:
        raise BadInput("probability", "is not between 0 and 1", "use 0.95, say")
    if not design.basis.has_inverse:
        raise BadInput("strategy", "only Fourier coefficients can be shifted", "plan with the strategy `fourier`")
    noisy = np.isfinite(design.budgets)
    rows = design.measured.product(design.basis.per_axis(design.basis.rows, design.measured.sizes))[noisy]
    if not len(rows):
        return 0
    number, delta = round(float(rows.sum())), 1 - probability
    if design.law is GAUSSIAN:
        variance = float(rows @ np.maximum(design.errors.set_variances(exact=True), 0.5 / design.budgets)[noisy])
        return math.ceil(math.sqrt(2 * variance * (number * math.log(2) - math.log(delta))))
    rates = design.budgets[noisy]
    amount = gamma_quantile(number, probability) / float(rates.min())
    if rates.max() > rates.min():
        amount = min(amount, _chernoff(rates, rows, delta))
    return math.ceil(amount + number / 2)


def shifted(design: LatticeDesign, measurement: Measurement, probability: float) -> InverseFourier:
    """The tables of the noisy coefficients with the total raised by `shift`: answers of marginals on demand."""
    amount = shift(design, probability)
    total = np.asarray(measurement.values[0]) + amount  # the empty set comes first
    return InverseFourier(design, replace(measurement, values=(total, *measurement.values[1:])))


def gamma_tail(shape: int, x: float) -> float:
    """P(Gamma(shape, 1) > x) for a whole shape: fewer than `shape` events of a Poisson process by time x.

    >>> round(gamma_tail(1, 2.0), 9) == round(math.exp(-2.0), 9)
    True
    >>> round(gamma_tail(137, 2 * 0.45 * 137), 2), round(math.exp(-0.45), 2)
    (0.88, 0.64)
    """
    if x <= 0:
        return 1.0
    j = np.arange(1, shape, dtype=np.float64)
    logs = np.concatenate([[0.0], np.cumsum(math.log(x) - np.log(j))]) - x
    top = float(logs.max())
    return min(math.exp(top) * float(np.exp(logs - top).sum()), 1.0) if top > -700 else 0.0


def gamma_quantile(shape: int, probability: float) -> float:
    """The x with P(Gamma(shape, 1) <= x) = probability, rounded up.

    >>> round(gamma_quantile(1, 0.5), 9) == round(math.log(2), 9)
    True
    """
    low, high = 0.0, 2.0 * shape
    while gamma_tail(shape, high) > 1 - probability:
        low, high = high, 2 * high
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if gamma_tail(shape, middle) > 1 - probability else (low, middle)
    return high


def _chernoff(rates: Floats, rows: Floats, delta: float) -> float:
    """min over h of (ln(1/delta) - sum rows ln(1 - h/rates)) / h; any h gives a valid bound."""
    smallest = float(rates.min())

    def bound(share: float) -> float:
        h = share * smallest
        return (-math.log(delta) - float(rows @ np.log1p(-h / rates))) / h

    return min(bound(share) for share in np.linspace(0.001, 0.999, 999).tolist())
