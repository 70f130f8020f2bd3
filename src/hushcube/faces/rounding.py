"""Whole numbers near a full table: controlled rounding that keeps totals exact and margins near.

Systematic rounding, over cells x_1, x_2, ... in a fixed order and a phase 0 <= u < 1:

    c_i = x_1 + ... + x_i,      y_i = floor(c_i + u) - floor(c_{i-1} + u)

Every cell moves by less than 1, and so does the sum over any run of cells in the order. In lexicographic order the
margins over leading attributes are sums over runs; the order puts the attributes with the fewest values first. On a
fitted table of Adult that was the best of nine orders (plain, serpentine, bit-interleaved); on NLTCS, all binary, the
orders differ little and a serpentine one is slightly better in three-way margins. Either way 0.4 to 0.7 of the error
of one independent random rounding is left in the one- to three-way margins. `match` in people.py repairs the rest.
"""

from __future__ import annotations

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats, Ints

Kind = TypeVar("Kind", bound=np.generic)

_CELL_SLACK: Final = 1e-9  # a cell this near to a whole number is one: sums of floats carry that much noise
_SUM_SLACK: Final = 1e-6  # the same for a total; far more than the error of a running sum over 10^7 cells
_NOTHING: Final = 1e-100


def round_table(table: Floats, total: int) -> Ints:
    """Non-negative whole numbers near a non-negative table, with the given sum.

    No cell moves by 1 or more where the total is the table's sum, rounded up or down; else the table is scaled first.

    >>> round_table(np.array([[0.4, 0.4], [0.4, 1.8]]), 3)
    array([[0, 1],
           [0, 2]])
    """
    values = np.asarray(table, np.float64)
    rounded = _systematic(_in_order(values), np.zeros(1, np.int64), np.array([total], np.int64))
    return _back(rounded, values.shape)


def round_parts(table: Floats, labels: Ints, totals: Ints) -> Ints:
    """The same, where every cell belongs to the part that `labels` says, and every part has its own total.

    >>> round_parts(np.array([0.5, 0.5, 0.5, 0.5]), np.array([0, 1, 0, 1]), np.array([1, 1]))
    array([1, 1, 0, 0])
    """
    values, part = np.asarray(table, np.float64), np.asarray(labels, np.int64)
    wanted = np.asarray(totals, np.int64)
    if part.shape != values.shape or (part.size and (part.min() < 0 or part.max() >= len(wanted))):
        raise BadInput("labels", "every cell needs the number of a part", "give one label below len(totals) a cell")
    ordered = _in_order(part)
    order = np.argsort(ordered, kind="stable")
    counts = np.bincount(ordered, minlength=len(wanted))
    if (wanted[counts == 0] != 0).any():
        raise BadInput("totals", "a part without cells has people", "make its total 0")
    filled = np.flatnonzero(counts)
    starts = (np.cumsum(counts) - counts)[filled]
    rounded = np.empty(values.size, np.int64)
    if values.size:
        rounded[order] = _systematic(_in_order(values)[order], starts, wanted[filled])
    return _back(rounded, values.shape)


def _systematic(cells: Floats, starts: Ints, totals: Ints) -> Ints:
    """Systematic rounding of parts that are runs of cells, each from its start to the next."""
    if not np.isfinite(cells).all() or (cells < 0).any():
        raise BadInput("table", "a cell is negative or not a number", "make the table non-negative first")
    if (totals < 0).any():
        raise BadInput("total", "it is negative", "give the number of people")
    if not cells.size:
        raise BadInput("table", "it has no cells", "give a table with at least one cell")
    ends = np.append(starts[1:], len(cells)) - 1
    lengths = ends - starts + 1
    sums = np.add.reduceat(cells, starts)
    near = np.abs(sums - totals) < 1 - _SUM_SLACK
    if not near.all():
        empty = ~near & (sums < _NOTHING)  # nothing to scale: spread the total evenly
        cells = np.where(np.repeat(empty, lengths), 1.0, cells)
        sums = np.where(empty, lengths, sums)
        cells = cells * np.repeat(np.where(near, 1.0, totals / np.maximum(sums, _NOTHING)), lengths)
    whole = np.floor(cells + _CELL_SLACK)
    fraction = np.maximum(cells - whole, 0.0)
    fraction[fraction < _CELL_SLACK] = 0.0
    left = totals - np.add.reduceat(whole, starts)  # how many cells of the part are rounded up
    running = np.cumsum(fraction)
    before = np.append(0.0, running)[starts]
    rests = running[ends] - before
    # the phase in the middle of those that give the part its total: left <= rest + phase < left + 1
    phase = (np.maximum(left - rests, 0.0) + np.minimum(left + 1 - rests, 1.0)) / 2
    steps = np.floor(running - np.repeat(before - phase, lengths))
    steps[ends] = left  # already so, but for the noise of the sums
    previous = np.append(0.0, steps[:-1])
    previous[starts] = 0.0
    return np.asarray((whole + steps - previous).astype(np.int64))


def _axes(shape: tuple[int, ...]) -> Ints:
    return np.argsort(np.array(shape, np.int64), kind="stable").astype(np.int64)


def _in_order(table: NDArray[Kind]) -> NDArray[Kind]:
    """The cells in the order of rounding: lexicographic, small attributes first."""
    return np.ascontiguousarray(table.transpose(_axes(table.shape).tolist())).reshape(-1)


def _back(cells: Ints, shape: tuple[int, ...]) -> Ints:
    axes = _axes(shape)
    return np.ascontiguousarray(cells.reshape([shape[a] for a in axes]).transpose(np.argsort(axes).tolist()))
