"""Limited-memory BFGS for many independent problems at once: one row of the array is one starting point.

Restarts are what finds good supports, and a few hundred of them as one array operation cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hushcube.model.arrays import Floats

Objective = Callable[[Floats], tuple[Floats, Floats]]
"""Points (starts, variables) to values (starts,) and gradients (starts, variables)."""


def minimise(
    objective: Objective, start: Floats, *, steps: int, memory: int = 8, tolerance: float = 1e-9
) -> tuple[Floats, Floats]:
    """The points reached from each start, and their values.

    >>> values = minimise(lambda x: ((x**2).sum(axis=1), 2 * x), np.array([[3.0, -1.0], [1.0, 1.0]]), steps=20)[1]
    >>> bool((values < 1e-12).all())
    True
    """
    x = start.copy()
    f, g = objective(x)
    pairs: list[tuple[Floats, Floats, Floats]] = []
    idle = 0
    for _ in range(steps):
        direction = _two_loops(g, pairs)
        slope = np.einsum("sv,sv->s", direction, g)
        uphill = slope >= 0
        direction[uphill], slope[uphill] = -g[uphill], -np.einsum("sv,sv->s", g[uphill], g[uphill])
        step = np.ones(len(x)) if pairs else 1 / np.maximum(1.0, np.abs(g).sum(axis=1))
        for _halving in range(20):
            moved = x + step[:, None] * direction
            value, gradient = objective(moved)
            worse = ~(value <= f + 1e-4 * step * slope)
            if not worse.any():
                break
            step[worse] *= 0.3
        moved[worse], value[worse], gradient[worse] = x[worse], f[worse], g[worse]
        difference, change = moved - x, gradient - g
        curvature = np.einsum("sv,sv->s", difference, change)
        inverse = np.where(curvature > 1e-14, 1 / np.where(curvature > 1e-14, curvature, 1.0), 0.0)
        pairs = [*pairs[-(memory - 1) :], (difference, change, inverse)]
        idle = idle + 1 if float((f - value).max()) < tolerance else 0
        x, f, g = moved, value, gradient
        if idle >= 5:
            break
    return x, f


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
