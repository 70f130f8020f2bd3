"""How a guarantee is divided among the measured sets.

The error is sum_B s_B variance_B, the cost sum_B C_B beta_B.                      [Yaroslavtsev et al. 2013, (1)-(3)]

    Laplace    variance = 2/beta²      optimum  beta_B ∝ (s_B / C_B)^(1/3)        [Corollary 3.3]
    Gaussian   variance = 1/(2 beta)   optimum  beta_B ∝ (s_B / C_B)^(1/2)   [Corollary 3.3; its factor 2 is corrected]

Under replace-one C_B is the largest change of set B, and the result is scaled to what all sets together really cost.

The closed form is the optimum for answers that are read from single sets, and for continuous noise. After least squares
even budgets may be better, and so they may be where noise is narrow: they are always looked at beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.costs import calibrate, row_cost as cost
from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy

_ALIKE: Final = 1e-12  # budgets are even that differ by no more, in units of the largest: closed forms are rounded


def closed_form(basis: Basis, measured: Family, s: Floats, privacy: Privacy) -> Floats:
    """The optimum above, up to scale."""
    return law_of(privacy).best_budgets(s, columns_of(basis, measured, privacy))


def without_public(shape: Floats, measured: Family, privacy: Privacy) -> Floats:
    """The same, infinite for sets whose answers are public: they cost nothing."""
    public = cost.unchanged_by_replacing(measured) & privacy.total_is_public
    return np.where(public, np.inf, shape)


def with_even(shapes: Sequence[Floats]) -> list[Floats]:
    """The shapes, and even budgets after them, unless one of them is even; infinite entries are public and stay.

    >>> [shape.tolist() for shape in with_even([np.array([np.inf, 1.0, 4.0])])]
    [[inf, 1.0, 4.0], [inf, 1.0, 1.0]]
    >>> len(with_even([np.array([np.inf, 3.0, 3.0])]))
    1
    """
    noisy = [shape[np.isfinite(shape)] for shape in shapes]
    if any(np.ptp(own) <= _ALIKE * own.max() if len(own) else True for own in noisy):
        return list(shapes)
    return [*shapes, np.where(np.isfinite(shapes[0]), 1.0, np.inf)]


def columns_of(basis: Basis, measured: Family, privacy: Privacy) -> Floats:
    """C_B, what a unit of each budget costs under add-remove."""
    result = np.empty(len(measured))
    for batch in measured.batches:
        result[batch.ids] = float(cost.column(basis, batch.shape, pure=privacy.is_pure))
    return result


def fitted(
    shape: Floats, spent: cost.Cost, privacy: Privacy, proof: calibrate.Proof, proof_variance: Floats | float | None
) -> Floats:
    """`shape` times the largest float factor found that keeps the exact cost within what the proof allows.

    Infinite entries are public. Under the proof by smoothing each set's variance then grows by `proof_variance`.
    """
    allowed = calibrate.row_budget(privacy, proof)
    if proof_variance is None:
        return _scaled(shape, spent, allowed)
    # the drawn variance is the continuous one plus t²; turning it to and fro rounds more the larger t² is beside it
    continuous, less = _scaled(shape, spent, allowed), 1e-13
    while True:
        continuous = np.where(np.isfinite(continuous), continuous * (1 - less), np.inf)
        drawn = np.where(np.isfinite(continuous), 0.5 / (0.5 / continuous + proof_variance), np.inf)
        with suppress(OverflowError):  # nothing was left of a variance
            if spent(calibrate.without_smoothing(drawn, proof_variance)) <= allowed:
                return drawn
        less = min(2 * less, 0.5)


def _scaled(shape: Floats, spent: cost.Cost, allowed: Fraction) -> Floats:
    unit = spent(shape)
    if unit == 0:
        return np.full(len(shape), np.inf) if np.isinf(shape).any() else shape
    budgets = shape * float(allowed / unit)
    while spent(budgets) > allowed:  # rounded against ourselves
        budgets = budgets * (1 - 2.0**-50)
    return budgets
