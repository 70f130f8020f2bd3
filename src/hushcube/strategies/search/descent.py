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
_PATIENCE: Final = 5
"""Steps without progress after which a start has arrived."""
_SHORTEST: Final = 19
_SHORTEST_OF_MANY: Final = 8
"""How often a step is cut to 0.3 of its length; of many starts, one that still finds no progress has arrived."""


def minimise(
    objective: Objective,
    start: Floats,
    *,
    steps: int,
    memory: int = 8,
    tolerance: float = 1e-9,
    narrowed: Narrowed | None = None,
) -> tuple[Floats, Floats]:
    """The points reached from each start, and their values.

    Without `narrowed`, all starts go on until none improves any more. With it, which gives the objective of some of
    the starts, each stops when it has arrived: the way for hundreds of starts, of which most arrive early.

    >>> values = minimise(lambda x: ((x**2).sum(axis=1), 2 * x), np.array([[3.0, -1.0], [1.0, 1.0]]), steps=20)[1]
    >>> bool((values < 1e-12).all())
    True
    """
    points, values = start.copy(), np.empty(len(start))
    rows = np.arange(len(start))
    some = narrowed or (lambda _: objective)
    x = start
    f, g = objective(x)
    pairs: list[tuple[Floats, Floats, Floats]] = []
    idle = np.zeros(len(x), np.int64)
    for _ in range(steps):
        direction = _two_loops(g, pairs)
        slope = np.einsum("sv,sv->s", direction, g)
        uphill = slope >= 0
        direction[uphill], slope[uphill] = -g[uphill], -np.einsum("sv,sv->s", g[uphill], g[uphill])
        step = np.ones(len(x)) if pairs else 1 / np.maximum(1.0, np.abs(g).sum(axis=1))
        moved = x + step[:, None] * direction
        value, gradient = objective(moved)
        worse = np.flatnonzero(~(value <= f + 1e-4 * step * slope))
        for _shorter in range(_SHORTEST_OF_MANY if narrowed else _SHORTEST):
            if not len(worse):
                break
            step[worse] *= 0.3
            moved[worse] = x[worse] + step[worse, None] * direction[worse]
            value[worse], gradient[worse] = some(rows[worse])(moved[worse])
            worse = worse[~(value[worse] <= f[worse] + 1e-4 * step[worse] * slope[worse])]
        moved[worse], value[worse], gradient[worse] = x[worse], f[worse], g[worse]
        difference, change = moved - x, gradient - g
        curvature = np.einsum("sv,sv->s", difference, change)
        inverse = np.where(curvature > 1e-14, 1 / np.where(curvature > 1e-14, curvature, 1.0), 0.0)
        pairs = [*pairs[-(memory - 1) :], (difference, change, inverse)]
        still = f - value < tolerance
        idle = np.where(still, idle + 1, 0) if narrowed else (idle + 1) * still.all()
        if narrowed:
            idle[worse] = _PATIENCE
        x, f, g = moved, value, gradient
        arrived = idle >= _PATIENCE
        if arrived.all():
            break
        if arrived.sum() > len(x) / 4:  # a copy of the rest of the problem is worth it
            points[rows], values[rows] = x, f
            left = np.flatnonzero(~arrived)
            rows, idle, x, f, g = rows[left], idle[left], x[left], f[left], g[left]
            pairs = [(difference[left], change[left], inverse[left]) for difference, change, inverse in pairs]
            objective = some(rows)
    points[rows], values[rows] = x, f
    return points, values


def _two_loops(g: Floats, pairs: list[tuple[Floats, Floats, Floats]]) -> Floats:
    """The quasi-Newton direction of each row."""
    q = -g
    shares = []
    for s, y, inverse in reversed(pairs):
        share = inverse * np.einsum("sv,sv->s", s, q)
        q = q - share[:, None] * y
        shares.append(share)
    if pairs:
        s, y, inverse = pairs[-1]
        scale = np.einsum("sv,sv->s", y, y) * inverse
        q = q / np.where(scale > 0, scale, 1.0)[:, None]
    for (s, y, inverse), share in zip(pairs, reversed(shares), strict=True):
        q = q + (share - inverse * np.einsum("sv,sv->s", y, q))[:, None] * s
    return q
