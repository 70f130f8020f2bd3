"""The least rho that serves all questions of a stream at once, by whoever knows them beforehand.

    minimise    rho = 1/2 sum_B m_B kappa_B      such that  sum_{B <= A} m_B / kappa_B <= t_A cells(A)²  for each A

With a multiplier for each question, Lambda_B the sum of those of the questions above B, the best kappa_B is
sqrt(2 Lambda_B), and every choice of multipliers bounds rho from below by

    sum_B m_B sqrt(2 Lambda_B) - sum_A lambda_A t_A cells(A)²        at the best scale:  (sum_B m_B kappa_B)² / (4 ...)

Multipliers grow where a question misses its target and shrink where it is met. Scaled to meet all targets, the kappa
are a plan; the distance to the bound is its gap. The bound holds for every linear strategy and Gaussian noise, because
for given multipliers the residual spaces are the best there is.                                    [docs/maths.md, 7]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from hushcube.model.arrays import Marginal, subsets

STEPS = 2000
POWER = 1.5  # of the missed ratio: more than 1 is faster, from 2 on it swings


@dataclass(frozen=True)
class Least:
    """What a plan needs that meets all targets, and what every plan needs."""

    rho: float
    bound: float


def least_rho(sizes: Sequence[int], targets: Mapping[Marginal, float], gap: float = 1e-3) -> Least:
    """The least rho under which each cell of each table has at most its target variance.

    >>> f"{least_rho((3, 4), {(0,): 1.0, (0, 1): 2.0}, 1e-9).rho:.7f}"  # 20/31
    '0.6451613'
    """
    spaces: dict[Marginal, int] = {}
    inside = [[spaces.setdefault(B, len(spaces)) for B in subsets(A)] for A in targets]
    starts = np.cumsum([0, *map(len, inside)])
    ones = np.ones(starts[-1])
    S = sparse.csr_matrix((ones, np.concatenate(inside), starts), (len(inside), len(spaces)))
    m = np.array([float(math.prod(sizes[i] - 1 for i in B)) for B in spaces])
    T = np.array([t * float(math.prod(sizes[i] for i in A)) ** 2 for A, t in targets.items()])
    best, bound, multipliers = math.inf, 0.0, 1 / T
    for _ in range(STEPS):
        kappa = np.sqrt(2 * (S.T @ multipliers))
        missed = (S @ (m / kappa)) / T
        cost = float(m @ kappa)
        best, bound = min(best, missed.max() * cost / 2), max(bound, cost**2 / (4 * float(multipliers @ T)))
        if best <= bound * (1 + gap):
            break
        multipliers = multipliers * missed**POWER
        multipliers /= float(multipliers @ T)
    return Least(best, bound)
