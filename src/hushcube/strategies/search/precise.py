"""Which cuboids to measure so that most tables are precise: noise(A, R) <= theta.      [strategies/search/cuboids.py]

    publish_most       ... and every other table is answered as well: a table for what is missing is one of the s
                                                                                               [docs/maths.md, P6]
    publish_precise    ... and nothing else is published            [Ding et al. 2011, Problem 2, Algorithm 2]

Both are greedy for each number of tables: numbers between which the precise magnification does not change share a run.
Ties go to fewer tables, and between tables to the lowest mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby, takewhile

import numpy as np

from hushcube.model.arrays import Ints
from hushcube.strategies.search.coverage import FAR, Coverage
from hushcube.strategies.search.cuboids import Greedy, Selection, select

Precise = Callable[[int], int]
"""The largest magnification that is precise when so many tables are measured; it falls with them."""


def publish_precise(coverage: Coverage, weights: Ints, precise: Precise, known: Selection) -> list[int]:
    """The tables, by their numbers, that answer the most weight precisely; none where nothing can be precise.

    At least 1 - 1/e of the most: of all sets of s tables the greedy one serves at least 1 - (1 - 1/s)^s of what the
    best one serves [Theorem 7]. The answer is never worse than the `known` selection.

    >>> from hushcube.strategies.search.coverage import coverage_of
    >>> cube = coverage_of([0b00011, 0b00101, 0b00110, 0b11000], sizes=(2, 2, 2, 50, 50), most_cells=10**6)
    >>> everything = select(cube, [cube.number(0b111), cube.number(0b11000)])
    >>> [bin(table) for table in publish_precise(cube, np.ones(4, np.int64), lambda s: 5 // (2 * s**2), everything)]
    ['0b111']
    """
    best, found = (0, 0), list[int]()
    if served := _precise_weight(weights, known.magnification, precise(len(known.tables))):
        best, found = (served, -len(known.tables)), [coverage.number(mask) for mask in known.tables]
    levels = _levels(coverage, precise)
    for (_, gains), (threshold, counts) in zip(
        coverage.falling_gains(weights, (t for t, _ in levels)), levels, strict=True
    ):
        run = Greedy(coverage, threshold, gains, weights, np.flatnonzero(weights))
        tables: list[int] = []
        served = 0
        while (left := counts.stop - 1 - len(tables)) and (gain := run.gain(table := run.best())):
            if served + left * gain < best[0]:  # even if each of them gained as much
                break
            run.take(table)
            tables.append(table)
            served += gain
        if (served, -len(tables)) > best:
            best, found = (served, -len(tables)), tables
    return found


def publish_most(coverage: Coverage, weights: Ints, precise: Precise, known: Selection) -> Selection:
    """Tables that answer every cuboid, and answer the most weight precisely.

    The answer is never worse than the `known` selection.
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
    heaviest = min(range(len(coverage)), key=lambda i: (-int(weights[i]), coverage.masks[i]))
    for first in ([], [coverage.number(coverage.masks[heaviest])]):
        start = _smallest(coverage, first, np.full(len(coverage), FAR))
        tables = _completed(coverage, None, first, start)
        ways.append((len(tables), _smallest(coverage, tables[len(first) :], start)))
    return [(count, int(magnification[weights > 0].min())) for count, magnification in ways]


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


def _levels(coverage: Coverage, precise: Precise) -> list[tuple[int, range]]:
    """The numbers of tables at which something is precise, with the magnification; equal ones together."""
    rising = coverage.thresholds[::-1]

    def level(count: int) -> int:
        return int(rising[np.searchsorted(rising, precise(count), side="right") - 1])

    counts = takewhile(lambda s: precise(s) >= 1, range(1, len(coverage) + 1))
    grouped = [(threshold, list(members)) for threshold, members in groupby(counts, level)]
    return [(threshold, range(members[0], members[-1] + 1)) for threshold, members in grouped]
