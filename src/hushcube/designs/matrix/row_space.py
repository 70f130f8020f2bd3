"""Least squares for any matrix on a small domain, by dense algebra; its rows may depend on each other.

S = C E, E of full row rank (a basis of S's row space) and C of full column rank. With z = S x + noise of weights W,

    H = E^+ (C^T W C)^-1 C^T W          x = H z is the least-squares solution of least norm,

and q·x has a value if q lies in E's row space: then q H S = q.         [Yaroslavtsev et al. 2013, III-B, any rank]

Under replace-one the number of people n is public. Then x = n/N + a vector that sums to zero, and what is solved for is
that vector, from the rows less their means.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from hushcube.model.arrays import Bools, Floats
from hushcube.model.queries import SparseRows

_DEPENDENT: Final = 1e-11
"""A row (or column) of unit length whose squared distance from the others' span is less depends on them."""
_OUTSIDE: Final = 1e-12
"""The share of a query's squared length that may lie outside the row space: rounding, nothing else."""


class RowSpace:
    """What a matrix can answer, and its least-squares answers; `public` are rows known exactly (constant ones)."""

    def __init__(self, S: Floats, public: Bools) -> None:
        self.S, self.public = S, public
        self._total = np.flatnonzero(public & (S[:, 0] != 0))[:1]  # a row that gives the number of people, if any
        noisy = S[~public]
        self._means = noisy.mean(axis=1) if len(self._total) else np.zeros(len(noisy))
        self.C, self.E = _factors(noisy - self._means[:, None])

    @cached_property
    def _basis(self) -> Floats:
        """(E E^T)^-1."""
        return np.asarray(np.linalg.inv(self.E @ self.E.T), dtype=np.float64)

    @property
    def _is_everything(self) -> bool:
        """Whether every cell has a value: then E = 1."""
        return bool(self.E.shape[0] == self.E.shape[1])

    def outside(self, Q: Floats) -> Bools:
        """Which rows of Q the matrix cannot answer."""
        if self._is_everything:
            return np.zeros(len(Q), dtype=bool)
        lengths = (Q**2).sum(axis=1)
        if len(self._total):
            Q = Q - Q.mean(axis=1, keepdims=True)
        inside = Q @ self.E.T
        left = (Q**2).sum(axis=1) - np.einsum("qi,qi->q", inside @ self._basis, inside)
        return np.asarray(left > _OUTSIDE * lengths)

    def inverse(self, weights: Floats) -> Floats:
        """H for weights of the noisy rows; shape (cells, rows)."""
        cells = self.S.shape[1]
        W = (weights / weights.max(initial=1e-300))[:, None]
        if self.C.shape[0] == self.C.shape[1]:  # independent rows: no choice
            noisy = np.linalg.inv(self.C)
        else:
            noisy = np.linalg.solve(self.C.T @ (W * self.C), (W * self.C).T)
        if not self._is_everything:
            noisy = self.E.T @ (self._basis @ noisy)
        result = np.zeros((cells, len(self.S)))
        result[:, ~self.public] = noisy
        for at in self._total.tolist():
            result[:, at] = (1 - noisy @ (self._means * cells)) / (cells * self.S[at, 0])
        return result


@lru_cache(maxsize=4)
def row_space(rows: SparseRows, public: tuple[bool, ...]) -> RowSpace:
    """The row space of a sparse matrix; kept for the next plan on the same matrix."""
    return RowSpace(rows.dense(), np.array(public))


def _factors(S: Floats) -> tuple[Floats, Floats]:
    """C and E with S = C E, from independent rows or independent columns, whichever are fewer."""
    m, n = S.shape
    if m <= n:
        chosen = _independent(S)
        E = S[chosen]
        if len(chosen) == n:
            return S, np.eye(n)
        return (np.eye(m) if len(chosen) == m else np.asarray(np.linalg.solve(E @ E.T, E @ S.T).T, np.float64)), E
    chosen = _independent(S.T)
    C = S[:, chosen]
    return C, (np.eye(n) if len(chosen) == n else np.asarray(np.linalg.solve(C.T @ C, C.T @ S), np.float64))


def _independent(rows: Floats) -> list[int]:
    """Rows that span all rows and are independent; all of them where a Cholesky factor says so, else by pivoting."""
    lengths = np.sqrt((rows**2).sum(axis=1))
    unit = rows / np.maximum(lengths, 1e-300)[:, None]
    gram = unit @ unit.T
    try:
        if float((np.diag(np.linalg.cholesky(gram)) ** 2).min(initial=np.inf)) > _DEPENDENT:
            return list(range(len(rows)))
    except np.linalg.LinAlgError:
        pass
    left = np.diag(gram).copy()  # the squared distance of each row from the span of the chosen ones
    factor = np.zeros((len(rows), len(rows)))
    chosen: list[int] = []
    while len(chosen) < len(rows):
        at = int(np.argmax(left))
        if left[at] <= _DEPENDENT:
            break
        done = len(chosen)
        column = (gram[:, at] - factor[:, :done] @ factor[at, :done]) / np.sqrt(left[at])
        factor[:, done] = column
        left -= column**2
        chosen.append(at)
        left[chosen] = 0.0
    return sorted(chosen)
