"""A full table scaled until it satisfies public facts.

x_a = w_a exp(sum_{f: a in R_f} l_f): cyclic scaling of the boxes [Deming, Stephan 1940], the nearest table in
relative entropy [Csiszár 1975, Theorem 3.2]; Newton steps on l where they help
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hushcube.errors import FactsError
from hushcube.faces.facts.atoms import STAGE, System, add, atoms
from hushcube.faces.programs import Infeasible, Program, solve
from hushcube.model.arrays import Floats
from hushcube.model.facts import Facts
from hushcube.progress import Clock

TOLERANCE: Final = 1e-12
_ROUNDS, _SWEEPS, _DENSE = 100, 20, 4_000_000
"""Rounds of sweeps, each followed by a Newton step where its matrix is not too large."""


def rake(table: Floats, facts: Facts, clock: Clock) -> Floats:
    """Scale a non-negative full table until it satisfies all facts; cells declared empty become 0.

    Where the facts need people in cells that have no mass, a uniform mass is put there first.
    """
    fine = atoms(facts)
    system, group = System.of(fine, np.ones(len(facts.facts), bool)).merged()
    start = add(group, fine.sums(table)[fine.allowed], system.columns)
    target = _fit(system, start, clock)
    if target is None:
        target = _fit(system, _support(system, start, clock), clock)
    if target is None:
        raise FactsError("facts", "the table could not be scaled to them", "correct or remove one of them")
    has_mass = start > 0
    cells = add(group, fine.cells[fine.allowed], system.columns)
    factors, added = np.zeros(len(fine)), np.zeros(len(fine))
    factors[fine.allowed] = np.divide(target, start, out=np.zeros(len(start)), where=has_mass)[group]
    added[fine.allowed] = np.where(has_mass, 0.0, target / cells)[group]
    scaled: Floats = table * fine.spread(factors)
    return scaled + fine.spread(added) if added.any() else scaled


def _fit(system: System, start: Floats, clock: Clock) -> Floats | None:
    """Cyclic scaling; None where it does not converge."""
    x, m = start.copy(), len(system.counts)
    counts = np.append(system.counts, 0.0)
    dense = None
    if m * system.columns <= _DENSE and m <= 500:
        dense = np.zeros((m, system.columns))
        dense[system.triplets()] = 1.0
    for round_ in range(_ROUNDS):
        clock.tick(STAGE, round_ / _ROUNDS)
        for _ in range(_SWEEPS):
            if _miss(system, x) <= TOLERANCE:
                return x
            for box in system.boxes:
                sums = add(box, x, m + 1)
                factors = np.divide(counts, sums, out=np.ones(m + 1), where=sums > 0)
                factors[m] = 1.0
                x = x * factors[box]
        if dense is not None:
            step = np.linalg.lstsq((dense * x) @ dense.T, system.counts - dense @ x, rcond=None)[0]
            tried = x * np.exp(np.clip(step @ dense, -50, 50))
            x = tried if _miss(system, tried) < _miss(system, x) else x
    return None


def _miss(system: System, x: Floats) -> float:
    return float(np.max(np.abs(system.times(x) / system.counts - 1), initial=0.0))


def _support(system: System, start: Floats, clock: Clock) -> Floats:
    """Where scaling stalls: mass where the facts need it and there is none; none where they force it to vanish.

    Second program: maximise sum t,  0 <= t <= 1,  t <= y,  boxes · y = s counts,  s >= 1. Its t is 1 on every column
    that some solution x = y / s uses, else 0.
    """
    n, m = system.columns, len(system.counts)
    try:
        x = system.solve((start == 0).astype(np.float64), np.zeros(n), np.full(n, np.inf), clock)
    except Infeasible:
        raise FactsError("facts", "no table satisfies them", "correct or remove one of them") from None
    mass = np.where((start == 0) & (x > 1e-6), x, start)
    rows, columns = system.triplets()
    every = np.arange(n)
    program = Program(
        cost=np.concatenate([np.zeros(n), -np.ones(n), [0.0]]),  # y, t, s
        lower=np.append(np.zeros(2 * n), 1.0),
        upper=np.concatenate([np.where(mass > 0, np.inf, 0.0), np.ones(n), [np.inf]]),
        row_lower=np.zeros(m + n),
        row_upper=np.append(np.zeros(m), np.full(n, np.inf)),
        rows=np.concatenate([rows, np.arange(m), m + every, m + every]),
        columns=np.concatenate([columns, np.full(m, 2 * n), every, n + every]),
        entries=np.concatenate([np.ones(len(rows)), -system.counts, np.ones(n), -np.ones(n)]),
    )
    used = solve(program, clock, STAGE, vertex=True).x[n : 2 * n]
    return np.where(used > 0.5, mass, 0.0)
