"""Which cuboids to measure, if each of the others is read from the measured one that magnifies its noise least.

Tables R, |R| = s, share the budget evenly, so that a cell of cuboid A has variance              [Ding et al. 2011, (2)]

    noise(A, R) = u s^p min_{C in R, C >= A} mag(A, C),     p = 2 (Laplace) or 1 (Gaussian), u = variance of one table

    bound_maximum    minimise the largest noise(A, R)                                          [Problem 1, Algorithm 1]
    least_total      minimise sum_A energy_A noise(A, R), the main paper's error          [Yaroslavtsev et al. 2013, C]
    publish_most     maximise the weight of the A with noise(A, R) <= theta                    [Problem 2, Algorithm 2]

Departs from the paper. Its search for the least threshold is not monotone [docs/maths.md, 6]: here every distinct
magnification t is tried once, R is the greedy cover that stops when all is served, and s = |R|; the largest
magnification in use counts, not t. A run ends as soon as it cannot win. Of very many magnifications some are tried.
The tables of publish_most answer every cuboid: a table for what is missing is one of the s.    [docs/maths.md, P6]
Ties: in a cover to the table with the lowest mask, between covers to the smaller threshold; in publish_most to fewer
tables. Values are compared as integers, without epsilon.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby, takewhile
from typing import Final

import numpy as np

from hushcube.model.arrays import Floats, Ints
from hushcube.strategies.search.coverage import FAR, Coverage
from hushcube.strategies.search.selection import Greedy, Limit, Selection, covers, own_tables, select

_BITS: Final = 30
"""Of weights, which are compared as integers so that ties are exact."""


def bound_maximum(coverage: Coverage, power: int) -> Selection:
    """The cover with the least maximum variance.

    >>> from hushcube.strategies.search.selection import coverage_of
    >>> cube = coverage_of(range(8), sizes=(5, 7, 2), most_cells=1000)  # Example 4.1: bits are Salary, Age, Sex
    >>> found = bound_maximum(cube, power=2)
    >>> [f"{mask:03b}" for mask in found.tables], 2 * found.worst(2)
    (['100', '101', '110', '111'], 64)
    """
    found = own_tables(coverage)
    if not len(coverage):
        return found
    fewest = _fewest(coverage)
    least = found.worst(power)
    limit = Limit(_affordable(fewest, least, power))
    for candidate in covers(coverage, limit):
        if candidate.worst(power) <= least:
            found, least = candidate, candidate.worst(power)
            limit.tables = _affordable(fewest, least, power)
    return found


def least_total(coverage: Coverage, energies: Floats, power: int, total: Callable[[Selection], float]) -> Selection:
    """The cover with the least total variance, as told by `total`.

    Covers are given up where s^p sum_A energy_A, the least that even budgets can come to, is above what they have
    come to already; `total` may know better budgets.
    """
    found = own_tables(coverage)
    least = total(found)
    floor = float(energies.sum())
    limit = Limit(len(coverage))
    for candidate in covers(coverage, limit):
        even = float(len(candidate.tables)) ** power * float(candidate.magnification @ energies)
        limit.tables = min(limit.tables, int((even / floor * (1 + 1e-9)) ** (1 / power)))
        value = total(candidate)
        if value <= least:
            found, least = candidate, value
    return found


def _fewest(coverage: Coverage) -> list[tuple[int, int]]:
    """For each magnification m the fewest tables that might do with it: none serves more than the best at m."""
    ones = np.ones(len(coverage), np.int64)
    pairs = coverage.falling_gains(ones, coverage.thresholds.tolist())
    return [(-(-len(coverage) // int(gains.max())), m) for m, gains in pairs]


def _affordable(fewest: list[tuple[int, int]], worst: int, power: int) -> int:
    """The most tables s with which s^p m <= worst can be had at all."""
    most = max(worst // m for tables, m in fewest if tables**power * m <= worst)
    return most if power == 1 else math.isqrt(most)


def whole(weights: Floats) -> Ints:
    """Weights as integers in proportion: exactly where their sum is then below 2^53, else the largest is 2^30.

    >>> whole(np.array([0.0, 1.5, 0.25])).tolist()
    [0, 6, 1]
    >>> whole(np.array([0.0, 0.1, 0.05])).tolist() == [0, 2**30, 2**29]
    True
    """
    scale = max((Fraction(weight).denominator for weight in weights.tolist()), default=1)
    if scale * math.fsum(weights.tolist()) < 2**53:
        return (weights * scale).astype(np.int64)
    rounded: Ints = np.ceil(weights / weights.max() * 2**_BITS).astype(np.int64)
    return rounded


def publish_most(coverage: Coverage, weights: Ints, precise: Callable[[int], int], known: Selection) -> Selection:
    """Tables that answer every cuboid, and answer the most weight precisely.

    `precise(s)` is the largest magnification that is precise when s tables are measured; it falls with s. Equal
    weight is taken from the fewest tables. The answer is never worse than the `known` selection.
    """
    best = _precise_weight(weights, known.magnification, precise(len(known.tables))), -len(known.tables)
    found: list[int] = []
    everything = int(weights.sum())
    levels = _levels(coverage, precise)
    at_once = len(_completed(coverage, None, [], np.full(len(coverage), FAR)))
    for (_, gains), (threshold, counts) in zip(
        coverage.falling_gains(weights, (t for t, _ in levels)), levels, strict=True
    ):
        run = Greedy(coverage, threshold, gains, weights, np.flatnonzero(weights))
        tables: list[int] = []
        magnification = np.full(len(coverage), FAR)
        served = 0
        due = counts.stop - 1 - at_once  # with so many tables the rest can still be answered
        while True:
            table = run.best()
            gain, left = run.gain(table), counts.stop - 1 - len(tables)
            if len(tables) == due or not gain or not left or (at_once == 1 and len(tables) + 1 >= counts.start):
                candidate = _completed(coverage, run, tables, magnification)
                least = _smallest(coverage, candidate[len(tables) :], magnification)
                value = _precise_weight(weights, least, precise(len(candidate))), -len(candidate)
                if len(candidate) < counts.stop and value > best:
                    best, found = value, candidate
                due = max(len(tables) + 1, counts.stop - 1 - len(candidate) + len(tables))
            if not gain or not left or served + left * gain < best[0]:
                break
            if best[0] == everything and len(tables) + 1 >= -best[1]:  # only fewer tables would be better
                break
            run.take(table)
            tables.append(table)
            served += gain
            magnification = _smallest(coverage, [table], magnification)
    return select(coverage, found) if found else known


def easiest(coverage: Coverage, weights: Ints, known: Selection) -> list[tuple[int, int]]:
    """How the first cuboid becomes precise: numbers of tables, each with the least magnification it gives a cuboid.

    With the tables that answer everything, with the heaviest cuboid before them, or with a `known` selection.
    """
    ways = [(len(known.tables), known.magnification)]
    for first in ([], [coverage.number(coverage.masks[_heaviest(coverage, weights)])]):
        start = _smallest(coverage, first, np.full(len(coverage), FAR))
        tables = _completed(coverage, None, first, start)
        ways.append((len(tables), _smallest(coverage, tables[len(first) :], start)))
    return [(count, int(magnification[weights > 0].min())) for count, magnification in ways]


def _heaviest(coverage: Coverage, weights: Ints) -> int:
    return min(range(len(coverage)), key=lambda i: (-int(weights[i]), coverage.masks[i]))


def _precise_weight(weights: Ints, magnification: Ints, most: int) -> int:
    return int(weights[magnification <= most].sum())


def _smallest(coverage: Coverage, tables: Sequence[int], magnification: Ints) -> Ints:
    """The magnifications with some tables more."""
    for table in tables:
        magnification = np.minimum(magnification, coverage.magnifications(table))
    return magnification


def _completed(coverage: Coverage, run: Greedy | None, tables: list[int], magnification: Ints) -> list[int]:
    """With a table for the cuboids that none holds, the one that serves the most beside; or several, if too large."""
    missing = np.flatnonzero(magnification == FAR)
    if not len(missing):
        return list(tables)
    above = coverage.above(missing)
    if above.any():
        return [*tables, run.best(above) if run else int(above.argmax())]
    ones, threshold = np.ones(len(coverage), np.int64), int(coverage.thresholds[0])
    cover = Greedy(coverage, threshold, coverage.gains(missing, ones, threshold), ones, missing)
    result = list(tables)
    while len(cover.open):
        result.append(cover.best())
        cover.take(result[-1])
    return result


def _levels(coverage: Coverage, precise: Callable[[int], int]) -> list[tuple[int, range]]:
    """The numbers of tables at which something is precise, with the magnification; equal ones together."""
    rising = coverage.thresholds[::-1]

    def level(count: int) -> int:
        return int(rising[np.searchsorted(rising, precise(count), side="right") - 1])

    counts = takewhile(lambda s: precise(s) >= 1, range(1, len(coverage) + 1))
    grouped = [(threshold, list(members)) for threshold, members in groupby(counts, level)]
    return [(threshold, range(members[0], members[-1] + 1)) for threshold, members in grouped]
