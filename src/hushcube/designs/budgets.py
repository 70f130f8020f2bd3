"""How a guarantee is divided among the measured sets.

The error is sum_B s_B variance_B, the cost sum_B C_B beta_B.                      [Yaroslavtsev et al. 2013, (1)-(3)]

    Laplace    variance = 2/beta²      optimum  beta_B ∝ (s_B / C_B)^(1/3)        [Corollary 3.3]
    Gaussian   variance = 1/(2 beta)   optimum  beta_B ∝ (s_B / C_B)^(1/2)   [Corollary 3.3; its factor 2 is corrected]

Under replace-one C_B is the largest change of set B, and the result is scaled to what all sets together really cost.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from functools import partial

import numpy as np

from hushcube.costs import calibrate, row_cost as cost
from hushcube.designs.design import Budgets
from hushcube.designs.lattice.design import smoothing
from hushcube.lattice.basis import Basis
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy


def divide(
    basis: Basis,
    measured: Family,
    s: Floats,
    privacy: Privacy,
    rule: Budgets,
    proof: calibrate.Proof,
    proportions: Floats | None = None,
) -> Floats:
    """Budgets for the measured sets that cost at most what the guarantee allows, exactly."""
    if rule == "uniform":
        shape = np.ones(len(measured))
    elif proportions is not None:
        shape = proportions
    else:
        shape = law_of(privacy).best_budgets(s, columns_of(basis, measured, privacy))
    if privacy.total_is_public:
        shape = np.where(cost.unchanged_by_replacing(measured), np.inf, shape)

    spent = partial(cost.cost_of_sets, basis, measured, privacy=privacy)
    return fitted(shape, spent, privacy, proof, smoothing(basis, measured, privacy) if proof == "smoothing" else None)


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
