"""Supports for the objective `max` under pure epsilon: covers of the workload, alone and with its own tables.

As in supports.py, with the largest weighted variance instead of the total, softened to a p-norm over the marginals A:

    F_A(e) = 2 (sum e)² a_A / cells(A)² sum_{B <= A} m_B / K_B          log F = (1/p) log sum_A F_A^p
    dlog F / dt_C = 2 e_C / sum e - 2 e_C² (M (s/K²))_C                 s_B = m_B sum_{A >= B} w_A a_A / cells(A)² / f_A

with f = F / (2 (sum e)²) and w_A ∝ F_A^p of sum 1. This only finds promising supports; minimax.py finishes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from hushcube.designs.request import Request
from hushcube.lattice.basis import dimensions
from hushcube.model.arrays import Floats
from hushcube.strategies.search.descent import Objective
from hushcube.strategies.search.supports import NEGLIGIBLE, SupportProblem, Tables, covers_of, evenly

_P: Final = 30
_REPEATS: Final = 4
_STEPS: Final = 80
_KEPT: Final = 4
_MOST_CANDIDATES: Final = 1024
_MOST_NUMBERS: Final = 2**20  # marginals times spaces: beyond, no covers are tried
_BATCH: Final = 32


def promising(request: Request, weights: Floats, *, seed: int) -> list[tuple[Tables, Floats]]:
    """A few supports with small largest errors, and budgets for them; none where too many tables are to choose from."""
    d, marginals = len(request.schema), [m for m in request.marginals if m]
    if not marginals or 2**d > _MOST_CANDIDATES or len(marginals) * len(request.spaces) > _MOST_NUMBERS:
        return []
    problem = _Largest(request, weights)
    covers = covers_of(marginals, problem.sizes, _REPEATS, np.random.default_rng(seed))
    alone = [tuple(sorted(cover)) for group in covers for cover in group]
    joined = [tuple(sorted({*cover, *marginals})) for cover in alone]
    supports = sorted(dict.fromkeys((*alone, *joined)), key=len)
    batches = [supports[start : start + _BATCH] for start in range(0, len(supports), _BATCH)]
    found = [answer for batch in batches for answer in problem.answers(batch)]
    return [(sets, budgets) for _, sets, budgets in sorted(found, key=lambda answer: answer[0])[:_KEPT]]


class _Largest(SupportProblem):
    """The largest error of a request, given the weights of its marginals."""

    def __init__(self, request: Request, weights: Floats) -> None:
        super().__init__(request)
        inside = self.matrix(list(request.marginals)) > 0
        P = inside * dimensions(request.spaces) * (weights / request.marginals.cells**2)[:, None]
        self._P = P[P.any(axis=1)]

    def answers(self, supports: Sequence[Tables]) -> Iterator[tuple[float, Tables, Floats]]:
        """Minimise log F from equal budgets on each support: the value, the tables that matter, and their budgets."""
        M, t = self.padded(evenly(supports))
        t, values = self.descend(M, t, _STEPS)
        for i, support in enumerate(supports):
            e = np.exp(t[i, : len(support)] - t[i].max())
            keep = np.flatnonzero(e > NEGLIGIBLE)
            if not M[i, keep].any(axis=0)[self._P.any(axis=0)].all():  # a small table alone sees some space
                keep, e = np.arange(len(support)), np.maximum(e, NEGLIGIBLE)
            yield float(values[i]), tuple(support[j] for j in keep.tolist()), e[keep]

    def objective(self, M: Floats) -> Objective:
        """The log F above."""
        return partial(self._soft_maximum, M)

    def _soft_maximum(self, M: Floats, t: Floats) -> tuple[Floats, Floats]:
        P = self._P
        e = np.exp(t - t.max(axis=1, keepdims=True))
        total = e.sum(axis=1, keepdims=True)
        K = np.maximum((e[:, None, :] ** 2 @ M)[:, 0], 1e-140)
        f = (1 / K) @ P.T
        powers = _P * np.log(f)
        top = powers.max(axis=1, keepdims=True)
        w = np.exp(powers - top)
        norm = w.sum(axis=1, keepdims=True)
        value = np.log(2 * total**2) + (top + np.log(norm)) / _P
        s = (w / norm / f) @ P
        pull = ((s / K**2)[:, None, :] @ np.swapaxes(M, 1, 2))[:, 0]
        return value[:, 0], 2 * e / total - 2 * e**2 * pull
