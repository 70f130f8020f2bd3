"""Limited-memory quasi-Newton directions for long vectors, in the compact form.

With the last m steps S and differences of gradients Y (rows), R the upper triangle of S Yᵀ, D its diagonal and
gamma = s·y / y·y of the newest pair,

    H g = gamma g + [Sᵀ, gamma Yᵀ] M [S g; gamma Y g],      M = [[R⁻ᵀ (D + gamma Y Yᵀ) R⁻¹, -R⁻ᵀ], [-R⁻¹, 0]]

(Byrd, Nocedal and Schnabel 1994, theorem 2.2): products of small matrices and a few passes over S and Y. They are kept
in single precision: they only suggest a direction, and the line search judges it.

Steps may be so short that nothing of them is left in single precision. So all vectors are kept at unit length, and of
the lengths only the ratios ||s|| / ||y|| =: tau matter: with unit rows, and tau beside D,

    H g = gamma (g + Sᵀ p - Yᵀ q),      q = R⁻¹ S g,      p = R⁻ᵀ ((tau / gamma) D q + Y Yᵀ q - Y g),      gamma = tau D
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hushcube.model.arrays import Floats

_CURVED: Final = 1e-5
"""The least cosine of the angle between a step and its difference of gradients; single precision knows no smaller."""


class Memory:
    """The last pairs (step, difference of gradients) of a minimisation, at unit length."""

    def __init__(self, length: int, most: int) -> None:
        self._steps = np.zeros((most, length), np.float32)
        self._changes = np.zeros((most, length), np.float32)
        self._ratios = np.ones(most)  # ||s_i|| / ||y_i||
        self._products = np.zeros((most, most))  # s_i · y_j
        self._squares = np.zeros((most, most))  # y_i · y_j
        self._order: list[int] = []

    def forget(self) -> None:
        """Start anew: the next direction is the steepest."""
        self._order = []

    def add(self, step: Floats, change: Floats) -> None:
        """Keep a pair, in place of the oldest where there is no room; left out where it has no curvature."""
        lengths = np.sqrt(float(step @ step)), np.sqrt(float(change @ change))
        if not float(step @ change) > _CURVED * lengths[0] * lengths[1]:
            return
        most = len(self._steps)
        at = len(self._order) if len(self._order) < most else self._order.pop(0)
        np.divide(step, lengths[0], out=self._steps[at], casting="same_kind")
        np.divide(change, lengths[1], out=self._changes[at], casting="same_kind")
        self._ratios[at] = lengths[0] / lengths[1]
        self._order.append(at)
        change32, step32 = self._changes[at], self._steps[at]
        self._products[:, at] = self._steps @ change32
        self._products[at, :] = self._changes @ step32
        self._squares[:, at] = self._squares[at, :] = self._changes @ change32

    def direction(self, gradient: Floats) -> Floats:
        """-H times the gradient."""
        length = np.sqrt(float(gradient @ gradient))
        if not self._order or not length > 0:
            return -gradient
        order = np.array(self._order)
        short = np.divide(gradient, length, out=np.empty(len(gradient), np.float32), casting="same_kind")
        a, b = (self._steps @ short).astype(np.float64)[order], (self._changes @ short).astype(np.float64)[order]
        R = np.triu(self._products[np.ix_(order, order)])
        YY = self._squares[np.ix_(order, order)]
        curved = np.diag(R) * self._ratios[order]
        gamma = curved[-1]
        q = np.linalg.solve(R, a)
        p = np.linalg.solve(R.T, curved / gamma * q + YY @ q - b)
        weights = np.zeros((2, len(self._steps)), np.float32)
        weights[0, order], weights[1, order] = p, -q
        short += weights[0] @ self._steps
        short += weights[1] @ self._changes
        result: Floats = short.astype(np.float64)
        result *= -gamma * length
        return result
