"""The shift: add so much to the total that a non-negative table fits.                 [Barak et al. 2007, section 4.3]

If the coefficients are off by e_b, then  x + 2^-k sum_b e_b chi_b + 2^-k ||e||_1  is nowhere negative, and differs from
the noisy coefficients only in the total, which grows by ||e||_1 (Theorem 9). ||e||_1 tells about the data and must
never be added itself. A quantile of its law may: the law is public.                              [planning/bounds.py]

The paper takes ||e||_1 for exponential; it is Gamma(|B|, s). Its mean |B| s = 2 |B|²/epsilon is half of what Corollary
1 adds at t = 1, but its deviation sqrt(|B|) s is small: the corollary's proof fails for t < 1/2 (|B| = 137, t = 0.45:
the norm exceeds the shift with probability 0.88, and 0.64 is allowed), and it wastes for t > 1/2.

Under replace-one the total n is public, and stays: the shifted table times n / (n + shift) is nowhere negative either,
and has n people. That is to mix the noisy table with the even one, shift / (n + shift) parts of it: every other
coefficient shrinks by n / (n + shift).

This is a curiosity. It adds that many people who do not exist: by the corollary 4 t |B|²/epsilon, 75,076 for all 2-way
tables of 16 bits at t = epsilon = 1. Use a non-negative fit instead. Where a size is not a power of two, the table that
exists is one over the codes: phantom codes get their share of the people.
"""

from __future__ import annotations

import numpy as np

from hushcube.designs.lattice.design import InverseFourier, LatticeDesign
from hushcube.errors import BadInput
from hushcube.lattice.coefficients import Coefficients
from hushcube.model.noise import Measurement
from hushcube.planning.bounds import noise_norm


def shift(design: LatticeDesign, probability: float) -> int:
    """How many people to add so that, with the given probability, a non-negative table has these coefficients."""
    if not 0 < probability < 1:
        raise BadInput("probability", "is not between 0 and 1", "use 0.95, say")
    if not design.basis.has_inverse:
        raise BadInput("strategy", "only Fourier coefficients can be shifted", "plan with the strategy `fourier`")
    return noise_norm(design, probability)


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
