"""Public facts as constraints: structural zeros and known totals, which a publisher declares and nobody measured.

check          is there x >= 0 in whole numbers?   A linear program, then an integer one.
               A smallest contradictory set by divide and conquer             [Junker 2004, QuickXplain]
whole_totals   minimise sum_a |x_a - w_a|,   x whole numbers
rake           x_a = w_a exp(sum_{f: a in R_f} l_f): cyclic scaling of the boxes [Deming, Stephan 1940], the nearest
               table in relative entropy [Csiszár 1975, Theorem 3.2]; Newton steps on l where they help
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import FactsError, TimeLimitReached
from hushcube.faces.atoms import STAGE, Atoms, System, add, atoms
from hushcube.faces.programs import Infeasible, Program, solve, stacked
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.facts import Facts
from hushcube.progress import Clock

_NAMED: Final = 5  # how many of the facts that contradict each other are named
_FEW: Final = 1_000  # columns of the integer programs that are tried first
_DENSE: Final = 4_000_000  # entries of a matrix that is written out
_GAP: Final = 1e-4  # how much farther than the nearest whole numbers may be: the tolerance of the solver
_TOLERANCE: Final = 1e-12  # how near a scaled table is to its facts, as a share of their counts
_ROUNDS, _SWEEPS = 100, 20
"""Rounds of sweeps, each followed by a Newton step where its matrix is not too large."""
_NO_WHOLE: Final = "facts", "no table in whole numbers satisfies them and the total", "correct or remove one"


def check(facts: Facts, clock: Clock) -> None:
    """Raise unless some table of whole numbers satisfies all facts; a few that contradict each other are named."""
    table = atoms(facts)
    every = System.of(table, np.ones(len(facts.facts), bool))
    if _can_hold(every, clock, whole=True):
        return
    whole = _can_hold(every, clock, whole=False)
    problem = "they contradict each other"
    try:
        found = _smallest(len(facts.facts), lambda kept: _can_hold(System.of(table, kept), clock, whole=whole))
        named = [facts.sentence(facts.facts[i])[:-1] for i in found[::-1][:_NAMED]]
        more = [f"and {len(found) - _NAMED:,} more"] * (len(found) > _NAMED)
        problem = f"these contradict each other: {'; '.join(named + more)}"
    except TimeLimitReached:  # that they do is known, and worth more than the names
        pass
    in_words = " (fractions of people would satisfy them, whole numbers do not)" if whole else ""
    raise FactsError("facts", problem + in_words, "correct or remove one of them")


def _can_hold(system: System, clock: Clock, *, whole: bool) -> bool:
    clock.tick(STAGE, 0.0)
    system, _ = system.merged()
    if system.is_total:
        return len(system.counts) == 0 or (system.columns > 0 and len(np.unique(system.counts)) == 1)
    if not system.times(np.ones(system.columns)).all():
        return False
    zero, counts = np.zeros(system.columns), np.append(system.counts, system.counts.max())
    most = np.minimum.reduce([counts[box] for box in system.boxes])
    try:
        x = system.solve(zero, zero, most, clock)
    except Infeasible:
        return False
    if not whole or system.holds(np.rint(x)):
        return True
    base = np.floor(x + 1e-6)  # what is left to find is small numbers
    room = np.maximum(most - base, 0)
    mixed = (x - base < 1e-6) + np.arange(len(x)) * 0.6180339887 % 1  # the fractions first, then columns far apart
    few = _open(mixed)[0]
    for lower, upper in ((-np.minimum(base, 1) * few, np.minimum(room, 3) * few), (-base, room)):
        try:  # small changes of few columns are quickly decided, and mostly enough
            z = system.solve(zero, lower, upper, clock, base=base, whole=True)
        except Infeasible:
            continue
        if system.holds(base + np.rint(z)):
            return True
    return False


def _open(order: NDArray[Any]) -> list[Bools]:
    """The first columns by some order, and all of them: what an integer program may change."""
    first = np.zeros(len(order), bool)
    first[np.argsort(order, kind="stable")[:_FEW]] = True
    return [first] if first.all() else [first, np.ones(len(order), bool)]


def _smallest(count: int, holds: Callable[[Bools], bool]) -> tuple[int, ...]:
    """The numbers of facts that contradict each other, of which none can be left out."""

    def explain(given: tuple[int, ...], grown: bool, open_: tuple[int, ...]) -> tuple[int, ...]:
        if grown:
            kept = np.zeros(count, bool)
            kept[list(given)] = True
            if not holds(kept):
                return ()
        if len(open_) == 1:
            return open_
        left, right = open_[: len(open_) // 2], open_[len(open_) // 2 :]
        needed = explain(given + left, True, right)
        return explain(given + needed, bool(needed), left) + needed

    return explain((), False, tuple(range(count)))


def whole_totals(table: Atoms, wanted: Floats, total: int | None, clock: Clock) -> Ints:
    """The whole numbers of people of the atoms that satisfy all facts, and add up to `total`, nearest to the wanted.

    |x - w| is linear between whole numbers: with base = floor(w) and f = w - base, x = base + t + u - d costs
    (1 - 2f) t + u + d for t in {0, 1}, u >= 0, 0 <= d <= base. So a vertex in whole numbers, if the linear program
    finds one, is the answer. If not, its solution is rounded up or down as the facts allow; only where that is farther
    by more than one part in 10,000 is the integer program solved in full, to the solver's tolerance, which is the same.
    """
    system = System.of(table, np.ones(len(table.facts.facts), bool))
    system = system if total is None else system.with_total(total)
    near = np.maximum(np.ravel(wanted)[table.allowed], 0.0)
    result = np.zeros(len(table), np.int64)
    result[table.allowed] = _shared(system, near) if system.is_total else _nearest(system, near, clock)
    return result


def _shared(system: System, near: Floats) -> Ints:
    """The nearest whole numbers with at most a known sum; no program is needed."""
    base = np.floor(near).astype(np.int64)
    part = near - base
    if not len(system.counts):
        return np.asarray(base + (part > 0.5), np.int64)
    if len(np.unique(system.counts)) > 1 or system.counts[0] < 0 or (system.counts[0] > 0 and not len(base)):
        raise FactsError(*_NO_WHOLE)
    missing = int(system.counts[0] - base.sum())
    if missing > 0:  # the largest parts are rounded up; what is left is shared in proportion, as its cost is the same
        up = min(missing, len(base))
        base[np.argsort(-part, kind="stable")[:up]] += 1
        return base + _proportional(missing - up, base + 1)
    return base - _proportional(-missing, base)


def _proportional(count: int, shares: Ints) -> Ints:
    """A number shared out; each gets its proportion, rounded up or down. Python integers: products pass 2^64."""
    edges = np.cumsum(shares.astype(object)) * count // (int(shares.sum()) or 1)
    return np.diff(np.append(0, edges)).astype(np.int64)


def _nearest(system: System, near: Floats, clock: Clock) -> Ints:
    base, n = np.floor(near), len(near)
    cost = np.concatenate([1 - 2 * (near - base), np.ones(2 * n)])  # t, u, d
    zero, upper = np.zeros(3 * n), np.concatenate([np.ones(n), np.full(n, np.inf), base])

    def program(whole: bool) -> Floats:
        t, u, d = system.solve(cost, zero, upper, clock, base=base, signs=(1, 1, -1), whole=whole).reshape(3, n)
        return base + t + u - d

    try:
        real = program(whole=False)
        if system.holds(np.rint(real)) and np.abs(real - np.rint(real)).max() < 1e-6:
            return np.rint(real).astype(np.int64)
        found = _rounded(system, real, near, clock)
        if found is None:
            found = np.rint(program(whole=True)).astype(np.int64)
    except Infeasible:
        raise FactsError(*_NO_WHOLE) from None
    if not system.holds(found):
        raise FactsError(*_NO_WHOLE)
    return found


def _rounded(system: System, real: Floats, near: Floats, clock: Clock) -> Ints | None:
    """A solution rounded up or down, if that takes it no farther from `near` than the tolerance."""
    base = np.floor(near)  # between base and base + 1 the cost is small, so that both stay open
    down = np.where((real > base - 1e-6) & (real < base + 1 + 1e-6), base, np.floor(real + 1e-6))
    below, above = np.abs(down - near), np.abs(down + 1 - near)
    bound = (below + (above - below) * (real - down)).sum()  # the distance of the linear program
    for many in _open(_reduced(system, above - below, real)):
        start = np.where(many, down, np.rint(real))
        try:
            up = np.rint(system.solve((above - below) * many, 0 * real, many, clock, base=start, whole=True))
        except Infeasible:
            continue
        if np.abs(start + up - near).sum() <= bound + _GAP * bound and system.holds(start + up):
            return (start + up).astype(np.int64)
    return None


def _reduced(system: System, cost: Floats, real: Floats) -> Floats:
    """How much a column costs beyond the prices of its equations, which the columns in use tell: theirs is nothing."""
    used = np.flatnonzero(np.abs(real - np.rint(real)) > 1e-6)
    prices = np.zeros(len(system.counts) + 1)
    if len(used) * len(system.counts) <= _DENSE:
        rows = np.zeros((len(used), len(prices)))
        for box in system.boxes:
            rows[np.arange(len(used)), box[used]] = 1.0
        prices[:-1] = np.linalg.lstsq(rows[:, :-1], cost[used], rcond=None)[0]
    return np.abs(cost - sum((prices[box] for box in system.boxes), np.zeros(len(cost))))


def rake(table: Floats, facts: Facts, clock: Clock) -> Floats:
    """Scale a non-negative full table until it satisfies all facts; cells declared empty become 0.

    Where the facts need people in cells that have no mass, a uniform mass is put there first.
    """
    fine = atoms(facts)
    system, group = System.of(fine, np.ones(len(facts.facts), bool)).merged()
    start = add(group, fine.sums(table)[fine.allowed], system.columns)
    target = _scaled(system, start, clock)
    if target is None:
        target = _scaled(system, _support(system, start, clock), clock)
    if target is None:
        raise FactsError("facts", "the table could not be scaled to them", "correct or remove one of them")
    has_mass = start > 0
    cells = add(group, fine.cells[fine.allowed], system.columns)
    factors, added = np.zeros(len(fine)), np.zeros(len(fine))
    factors[fine.allowed] = np.divide(target, start, out=np.zeros(len(start)), where=has_mass)[group]
    added[fine.allowed] = np.where(has_mass, 0.0, target / cells)[group]
    scaled: Floats = table * fine.spread(factors)
    return scaled + fine.spread(added) if added.any() else scaled


def _scaled(system: System, start: Floats, clock: Clock) -> Floats | None:
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
            if _miss(system, x) <= _TOLERANCE:
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
    every, totals = np.arange(n), (np.arange(m), 2 * n, -system.counts)
    program = Program(
        cost=np.r_[np.zeros(n), -np.ones(n), 0.0],  # y, t, s
        lower=np.r_[np.zeros(2 * n), 1.0],
        upper=np.r_[np.where(mass > 0, np.inf, 0.0), np.ones(n), np.inf],
        row_lower=np.zeros(m + n),
        row_upper=np.r_[np.zeros(m), np.full(n, np.inf)],
        matrix=stacked((*system.triplets(), 1.0), totals, (m + every, every, 1.0), (m + every, n + every, -1.0)),
    )
    used = solve(program, clock, STAGE, vertex=True).x[n : 2 * n]
    return np.where(used > 0.5, mass, 0.0)
