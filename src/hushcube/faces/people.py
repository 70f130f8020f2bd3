"""Whole-number tables as synthetic people: whatever is counted from people is non-negative and adds up.

People are held as codes: an array (people, attributes) of positions. A start near the targets comes from a full table
(`round_table`, then `from_table`), or from a tree of attributes:      [Chow and Liu 1968]

    I(i, j) = sum_{a, b} P_ij(a, b) log(P_ij(a, b) / (P_i(a) P_j(b)))

The tree of greatest total mutual information is grown from the two-way targets; each attribute is drawn given its
parent by systematic rounding, so that the tables on the tree's edges are met to within a person or so a cell. Other
tables start from conditional independence. `match` does the rest.

People are then brought nearer to the target tables, a move at a time:

    minimise   f = sum_A w_A ||counts_A - target_A||²,      r_A = counts_A - target_A

over the people, so that the counts stay non-negative, whole and consistent by construction. Two kinds of moves:

* one person's value of j goes from a to b:   change = sum_{A with j} 2 w_A (r_A[with b] - r_A[with a] + 1)
* two people exchange their values of j: four cells of each table in which they differ elsewhere; the one-way tables
  stay, and so does every table on which the two agree. Such moves disturb few cells, and help where the first kind is
  stuck. People who agree on many attributes are paired by sorting them in a random order of attributes.

People compete for the same cells. So the promising moves are taken in order of their gain, a chunk at a time, and in
a chunk the change of each is computed as if all before it were done:

    change_i = first_i + sum_A w_A sum_{cells c of i} 2 sign_ic sum_{k < i} sign_kc

Those that no longer help are dropped until all that are left do: f falls by the sum of what was computed, exactly. In
large chunks the sum over those before i is taken as i / m of that over all m: what each move gains is not exact then,
but what all of them do together is, and fewer are done where that is no gain.

Many people begin as few: a quarter of them (a quarter of those, ...) come near to a quarter of the targets, and four
copies of each go on from there. Most of the way is thus gone by few people, at a fraction of the cost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput, TooLarge
from hushcube.faces.atoms import Atoms
from hushcube.faces.crowd import STAGE, Classes, Codes, Crowd, cell_numbers, narrow
from hushcube.faces.facts import whole_totals
from hushcube.faces.rounding import round_parts, round_table
from hushcube.faces.value import MOST_PEOPLE
from hushcube.lattice.coefficients import Weighed
from hushcube.model.arrays import Floats, Ints
from hushcube.planning import memory
from hushcube.progress import Clock

Rows = NDArray[np.int32]
_STAGE: Final = "synthetic people"
_BYTES: Final = (64, 16)  # that a person takes at least, and for each attribute
_SECONDS: Final = 5e-8  # that a person takes at least, for each attribute
_GRACE: Final = 2.0  # seconds that people may take also where the time is up: tables in whole numbers need them
_MOST_SWEEPS: Final = 500
_LITTLE: Final = 5e-3  # people stay where a sweep lowers f by less than this share
_LITTLE_OF_FEW: Final = 0.05  # the same for few people who stand for many
_SLOW: Final = 5.0  # or by less than so many times what is enough
_SLOW_IF_NEAR: Final = 0.3  # the same for people who start from a fitted table
_COPIES: Final = 4  # of each of few people
_FEWEST: Final = 20_000  # people who stand for others
_SHARE_OF_FEW: Final = 0.5  # of the work, for showing how far it is
_NEXT: Final = 0.1  # of what is left: the least that a sweep is shown to do
_NEARLY: Final = 0.95


def require_room(people: int, attributes: int, clock: Clock | None = None) -> None:
    """Refuse more people than a face may have, or than there is memory or time for; before any of them is made."""
    most = min(MOST_PEOPLE, memory.available() // (_BYTES[0] + _BYTES[1] * attributes))
    if people > most:
        fix = "ask for nonnegative, which needs no people, or spend a larger budget"
        raise TooLarge("face", people, most, fix, unit=_STAGE)
    needed = people * attributes * _SECONDS
    if clock is not None and needed > max(clock.left, _GRACE):
        clock.check(_STAGE, needed)


@dataclass(frozen=True, eq=False)
class PeopleTables:
    """Answers counted from people: every table of every marginal, whole and consistent."""

    codes: Codes
    sizes: tuple[int, ...]

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The tables of marginals (rows of positions) of one shape; (marginals, *shape)."""
        return count(self.codes, self.sizes, rows, shape).astype(np.float64)


def match(
    targets: Weighed,
    total: int,
    sizes: Sequence[int],
    clock: Clock,
    *,
    start: NDArray[np.integer] | None = None,
    classes: Classes = None,
    seed: int = 0,
    enough: float = 0.0,
) -> Codes:
    """`total` people whose tables are as near as possible to the targets: f = sum_A weights_A ||counts_A - values_A||².

    `start` are people to begin with; else they are grown from the two-way targets. With `classes` people stay in those
    in which they start, so that the totals of classes are those of the start. It stops when a sweep over all attributes
    lowers f by a small share of it, or of what f is where every cell is wrong by one person, or by a few times what is
    `enough`; when f is enough; and where the time of the clock is up.
    """
    rng, begun, slow = np.random.default_rng(seed), 0.0, _SLOW_IF_NEAR * enough
    if start is None:
        slow = _SLOW * enough
        begun = _SHARE_OF_FEW if total >= _FEWEST * _COPIES else 0.0
        start = _grown(targets, total, sizes, clock, rng, enough)
    if len(start) != total:
        raise BadInput("start", f"it has {len(start)} people, not {total}", "give as many people as the total says")
    people = Crowd(start, sizes, targets, classes, clock)
    _settle(people, rng, Ends(enough, slow, _LITTLE), (begun, 1.0), swaps=True)
    return people.codes()


def _grown(
    targets: Weighed, total: int, sizes: Sequence[int], clock: Clock, rng: np.random.Generator, enough: float
) -> Codes:
    """People near the targets: a few grown from the two-way targets and moved, then as many copies of each as it takes.

    One of few stands for many, so that its moves cost little and do much. What copies cannot do is left to `match`.
    """
    numbers = [total]
    while numbers[-1] >= _FEWEST * _COPIES:
        numbers.append(-(-numbers[-1] // _COPIES))
    codes = chained(targets, sizes, numbers[-1], clock, rng)
    begun, part = 0.0, _SHARE_OF_FEW / max(len(numbers) - 1, 1)
    for number, more in zip(numbers[:0:-1], numbers[-2::-1], strict=True):
        share = number / total
        fewer = Weighed(targets.tables, [values * share for values in targets.values], targets.weights)
        people = Crowd(codes, sizes, fewer, None, clock)
        ends = Ends(enough * share**2, _SLOW * enough * share**2, _LITTLE_OF_FEW)
        _settle(people, rng, ends, (begun, begun + part), swaps=False)
        begun += part
        codes = np.repeat(people.codes(), _COPIES, axis=0)[:more]
    return codes


class Ends(NamedTuple):
    """Where sweeps end: f is enough, or falls by less than `slow`, or by less than a little share of it."""

    enough: float
    slow: float
    little: float


def _settle(people: Crowd, rng: np.random.Generator, ends: Ends, shares: tuple[float, float], *, swaps: bool) -> None:
    """Sweeps over all attributes until f is enough or hardly falls, or the time is up.

    `shares` says which part of the whole work this is. How far it is: falls of f get smaller until they are too small,
    and each tenfold one counts alike.
    """
    first = before = people.distance()
    person = float(people.weight.sum())  # f where every cell is wrong by one person
    floor = max(1e-12 * (first + person), ends.enough)  # below the first, f is the error of the arithmetic
    swapping, greatest, done = False, 0.0, 0.0
    for _ in range(_MOST_SWEEPS):
        for number, j in enumerate(people.movable):
            if people.clock.over:
                return
            now = done + _NEXT * (1 - done) * number / len(people.movable)
            people.clock.show(STAGE, shares[0] + (shares[1] - shares[0]) * now)
            people.move(j, rng)
            if swapping:
                people.swap(j, rng)
        after = people.distance()
        fall, least = before - after, max(ends.little * (before + person), ends.slow)
        if after <= floor or fall <= least:
            if after <= floor or swapping or not swaps or fall <= ends.slow:
                return
            swapping = True
        greatest, before = max(greatest, fall), after
        near = math.log(greatest / max(fall, least)) / math.log(greatest / least) if greatest > least else 1.0
        done = max(done + _NEXT * (1 - done), min(near, _NEARLY))


def from_table(table: NDArray[np.integer]) -> Codes:
    """The people that a full table of whole numbers counts, in the order of its cells."""
    if table.size and table.min() < 0:
        raise BadInput("table", "a cell is negative", "give counts of people")
    filled = np.flatnonzero(table)
    positions = np.stack(np.unravel_index(filled, table.shape), axis=1) if table.ndim else np.zeros((len(filled), 0))
    return narrow(np.repeat(positions.astype(np.int64), table.reshape(-1)[filled], axis=0), table.shape)


def chained(targets: Weighed, sizes: Sequence[int], total: int, clock: Clock, rng: np.random.Generator) -> Codes:
    """People grown attribute after attribute, each from the earlier one that tells most about it."""
    ones, pairs = _margins(targets, sizes)
    codes = np.zeros((total, len(sizes)), np.int64)
    for child, parent in _tree(len(sizes), pairs):
        clock.show(_STAGE, 0.0)
        if parent < 0:
            codes[:, child] = rng.permutation(_shared_out(ones[child], total))
            continue
        joint = pairs[parent, child] if parent < child else pairs[child, parent].T
        joint = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, ones[child])  # a value that no target foresaw
        joint = np.where(joint.sum(axis=1, keepdims=True) > 0, joint, 1.0)
        have = np.bincount(codes[:, parent], minlength=sizes[parent])
        label = np.broadcast_to(np.arange(sizes[parent])[:, None], joint.shape)
        parts = round_parts(joint * (have / joint.sum(axis=1))[:, None], label, have)
        shuffled = rng.permutation(total)
        order = shuffled[np.argsort(codes[shuffled, parent], kind="stable")]
        codes[order, child] = np.repeat(np.tile(np.arange(sizes[child]), sizes[parent]), parts.reshape(-1))
    return narrow(codes, sizes)


def within_atoms(atoms: Atoms, ones: Sequence[Floats], total: int, clock: Clock, *, seed: int = 0) -> Codes:
    """People who satisfy all public facts: atoms as near to independence as they allow, values by one-way tables."""
    rng = np.random.default_rng(seed)
    shares = [np.bincount(of, np.maximum(one, 0.0)) + 1e-12 for of, one in zip(atoms.classes, ones, strict=True)]
    wanted: Floats = atoms.allowed.astype(np.float64) * total
    for axis, share in enumerate(shares):
        inner = math.prod(atoms.shape[axis + 1 :])
        wanted = (wanted.reshape(-1, len(share), inner) * (share / share.sum())[:, None]).reshape(-1)
    left = np.repeat(np.arange(len(atoms)), whole_totals(atoms, wanted, total, clock))
    codes = np.zeros((total, len(ones)), np.int64)
    for axis in reversed(range(len(ones))):
        left, own = np.divmod(left, atoms.shape[axis])
        for number in range(atoms.shape[axis]):
            members, people = np.flatnonzero(atoms.classes[axis] == number), np.flatnonzero(own == number)
            weights = np.maximum(ones[axis][members], 0.0) + 1e-12
            codes[rng.permutation(people), axis] = members[_shared_out(weights, len(people))]
    return narrow(codes, tuple(map(len, ones)))


def count(codes: NDArray[np.integer], sizes: Sequence[int], rows: Rows, shape: tuple[int, ...]) -> Ints:
    """The people in every cell of marginals of one shape; (marginals, *shape)."""
    counts = np.empty((len(rows), math.prod(shape)), np.int64)
    columns = np.asfortranarray(codes).T
    for k, row in enumerate(rows.tolist()):
        counts[k] = np.bincount(cell_numbers(columns, sizes, row), minlength=counts.shape[1])
    return counts.reshape(len(rows), *shape)


def _shared_out(one: Floats, total: int) -> Ints:
    """One value for each person, as often as a one-way table says."""
    return np.repeat(np.arange(len(one)), round_table(np.maximum(one, 0.0), total))


def _margins(targets: Weighed, sizes: Sequence[int]) -> tuple[list[Floats], dict[tuple[int, ...], Floats]]:
    """One-way and two-way targets, each from the smallest table that has it; negative cells count as none."""
    found: dict[tuple[int, ...], Floats] = {}
    pairs = zip(targets.tables.batches, targets.values, strict=True)
    for batch, given in sorted(pairs, key=lambda pair: (len(pair[0].shape), pair[0].cells)):
        for row, value in zip(batch.rows.tolist(), given, strict=True):
            for part in (*combinations(row, 1), *combinations(row, 2)):
                if part not in found:
                    found[part] = np.maximum(value.sum(axis=tuple(k for k, j in enumerate(row) if j not in part)), 0.0)
    ones = [found.get((j,), np.ones(size)) for j, size in enumerate(sizes)]
    return ones, {part: joint for part, joint in found.items() if len(part) == 2}


def _tree(attributes: int, pairs: dict[tuple[int, ...], Floats]) -> list[tuple[int, int]]:
    """(child, parent) in the order of growth, parent -1 for a root: a spanning forest of greatest information."""
    information = np.zeros((attributes, attributes))
    for (i, j), joint in pairs.items():
        information[i, j] = information[j, i] = _information(joint)
    grown: list[tuple[int, int]] = []
    best, parent = np.full(attributes, -1.0), np.full(attributes, -1)
    waiting = np.ones(attributes, np.bool_)
    while waiting.any():
        child = int(np.argmax(np.where(waiting, best, -2.0)))
        if best[child] <= 0:  # nothing is known: the waiting attribute that tells most about others is a root
            child = int(np.argmax(np.where(waiting, information.sum(axis=1), -1.0)))
            parent[child] = -1
        grown.append((child, int(parent[child])))
        waiting[child] = False
        better = information[child] > best
        best, parent = np.where(better, information[child], best), np.where(better, child, parent)
    return grown


def _information(joint: Floats) -> float:
    """The mutual information of a non-negative table."""
    total = joint.sum()
    if total <= 0:
        return 0.0
    p = joint / total
    apart = p.sum(axis=1, keepdims=True) * p.sum(axis=0, keepdims=True)
    some = p > 0
    return max(0.0, float(np.sum(p[some] * np.log(p[some] / apart[some]))))
