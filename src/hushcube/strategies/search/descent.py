"""Limited-memory BFGS for many independent problems at once: one row of the array is one starting point.

Restarts are what finds good supports, and a few hundred of them as one array operation cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints

Objective = Callable[[Floats], tuple[Floats, Floats]]
"""Points (starts, variables) to values (starts,) and gradients (starts, variables)."""
Narrowed = Callable[[Ints], Objective]
"""The objective of some of the starts, given by their numbers."""
Pair = tuple[Floats, Floats, Floats]
"""A step of each start, the change of its gradient, and the inverse of their product; zero where it was not taken."""
_PATIENCE: Final = 5  # steps without progress after which a start has arrived
_SHORTEST: Final = 10  # how often a step is cut to 0.3 of its length before the start forgets its curvature


def minimise(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    memory: int = 8,
    tolerance: float = 1e-9,
    narrowed: Narrowed | None = None,
) -> tuple[Floats, Floats]:
    """The points reached from each start with so many evaluations, and their values; each stops when it has arrived.

    A step that is too long is tried shorter in the next evaluation, while other starts go on: there is one evaluation
    of all starts at a time. Give `narrowed` where the objective is not the same for all starts.

    >>> values = minimise(lambda x: ((x**2).sum(axis=1), 2 * x), np.array([[3.0, -1.0], [1.0, 1.0]]), steps=20)[1]
    >>> bool((values < 1e-12).all())
    True
    """
    points, values, rows = start.copy(), np.empty(len(start)), np.arange(len(start))
    x, (f, g) = start, objective(start)
    pairs: list[Pair] = []
    length = 1 / np.maximum(1.0, np.abs(g).sum(axis=1))
    scale = np.ones(len(x))
    idle, cuts = np.zeros((2, len(x)), np.int64)
    for _ in range(steps):
        direction = _two_loops(g, pairs, scale)
        slope = np.einsum("sv,sv->s", direction, g)
        uphill = slope >= 0
        direction[uphill], slope[uphill] = -g[uphill], -np.einsum("sv,sv->s", g[uphill], g[uphill])
        moved = x + length[:, None] * direction
        value, gradient = objective(moved)
        taken = value <= f + 1e-4 * length * slope
        idle = np.where(taken, (idle + 1) * (f - value < tolerance), idle)
        cuts = np.where(taken, 0, cuts + 1)
        difference, change = taken[:, None] * (moved - x), taken[:, None] * (gradient - g)
        curvature = np.einsum("sv,sv->s", difference, change)
        curved = curvature > 1e-14
        inverse = np.divide(1.0, curvature, out=np.zeros(len(x)), where=curved)
        np.divide(np.einsum("sv,sv->s", change, change), curvature, out=scale, where=curved)
        if taken.any():
            pairs = [*pairs[-(memory - 1) :], (difference, change, inverse)]
            x, g = np.where(taken[:, None], moved, x), np.where(taken[:, None], gradient, g)
            f = np.where(taken, value, f)
        length = np.where(taken, 1.0, 0.3 * length)
        if (lost := cuts > _SHORTEST).any():
            for _, _, inverse in pairs:
                inverse[lost] = 0.0
            scale[lost], cuts[lost] = 1.0, 0
            length[lost], idle[lost] = 1 / np.maximum(1.0, np.abs(g[lost]).sum(axis=1)), idle[lost] + 2
        arrived = idle >= _PATIENCE
        if arrived.all():
            break
        if arrived.sum() > len(x) / 4:  # a copy of the rest of the problem is worth it
            points[rows], values[rows] = x, f
            left = np.flatnonzero(~arrived)
            rows, idle, cuts = rows[left], idle[left], cuts[left]
            x, f, g, length, scale = (a[left] for a in (x, f, g, length, scale))
            pairs = [(difference[left], change[left], inverse[left]) for difference, change, inverse in pairs]
            objective = narrowed(rows) if narrowed else objective
    points[rows], values[rows] = x, f
    return points, values


def _two_loops(g: Floats, pairs: list[Pair], scale: Floats) -> Floats:
    """The quasi-Newton direction of each row."""
    q = -g
    shares = []
    for s, y, inverse in reversed(pairs):
        share = inverse * np.einsum("sv,sv->s", s, q)
        q -= share[:, None] * y
        shares.append(share)
    q /= scale[:, None]
    for (s, y, inverse), share in zip(pairs, reversed(shares), strict=True):
        q += (share - inverse * np.einsum("sv,sv->s", y, q))[:, None] * s
    return q
