"""Synthetic people brought nearer to target tables, a move at a time.

    minimise   f = sum_A w_A ||counts_A - target_A||²,      r_A = counts_A - target_A

over the people, so that the counts stay non-negative, whole and consistent by construction. Two kinds of moves:

* one person's value of j goes from a to b:   change = sum_{A with j} 2 w_A (r_A[with b] - r_A[with a] + 1)
* two people exchange their values of j: four cells of each table in which they differ elsewhere; the one-way tables
  stay, and so does every table on which the two agree. Such moves disturb few cells, and help where the first kind is
  stuck. People who agree on many attributes are paired by sorting them in a random order of attributes.

People compete for the same cells. So the promising moves are taken in order of their gain, a chunk at a time, and in
a chunk the change of each is computed as if all before it were done:

    change_i = first_i + sum_A w_A sum_{cells c of i} 2 sign_ic sum_{k < i} sign_kc

Those that no longer help are dropped until all that are left do: f falls by the sum of what was computed, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.faces.crowd import STAGE, Codes, Crowd, Targets
from hushcube.model.arrays import Ints
from hushcube.progress import Clock

_MOST_SWEEPS: Final = 500


def improve(
    codes: NDArray[np.integer],
    sizes: Sequence[int],
    targets: Targets,
    clock: Clock,
    *,
    classes: Sequence[Ints] | None = None,
    seed: int = 0,
    tolerance: float = 5e-3,
    enough: float = 0.0,
) -> Codes:
    """People nearer to the targets than the given ones (rows of values' positions); never farther.

    It stops when a sweep over all attributes lowers f by less than that share of it, or of what f is where every cell
    is wrong by one person; or when f is `enough`.
    `classes` maps each attribute's values to classes: a person's values stay in their classes.
    """
    people = Crowd(codes, sizes, targets, classes, clock)
    rng = np.random.default_rng(seed)
    first = before = people.distance()
    floor = max(people.noise_floor(first), enough)
    person = float(people.weight.sum())  # f where every cell is wrong by one person
    swapping = False
    for _ in range(_MOST_SWEEPS):
        for j in people.movable:
            clock.tick(STAGE, _share(first, before, tolerance))
            people.move(j, rng)
            if swapping:
                people.swap(j, rng)
        after = people.distance()
        if after <= floor or before - after <= tolerance * (before + person):
            if swapping or after <= floor:
                break
            swapping = True
        before = after
    return people.codes()


def distance(codes: NDArray[np.integer], sizes: Sequence[int], targets: Targets) -> float:
    """The weighted sum of squares f between the people's tables and the targets."""
    return Crowd(codes, sizes, targets, None).distance()


def _share(first: float, now: float, tolerance: float) -> float:
    """How far the work is, told from how far f fell: each tenfold fall counts alike."""
    return (
        0.0
        if first <= 0 or now >= first
        else min(0.99, math.log(first / max(now, 1e-300)) / math.log(1 / tolerance) / 2)
    )
