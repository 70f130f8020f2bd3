"""Pairs of attributes that a third one explains.

Two attributes i and j that are independent given a third one, m, have the table

    q_ij = sum_m P_im P_mj / P_m

of the pairs' own tables: income by education follows from income by years of schooling and years by education. It has
the margins of its parts, so that it is a guess that needs no smaller table than pairs. For each pair that m is taken
whose guess is farthest from the one before, independence: how far, e_m = ||q_ij - p_i p_j||_1 / n, is what m explains.
By the inequality of data processing,

    e_m <= min(s_im, s_mj),         s the distance of a table from independence,

since a channel from m to j brings tables over (i, m) no farther apart. So few m have to be tried for each pair, those
with the largest bounds. Of the misfit s_ij that a pair has from independence, sqrt(s_ij² - e²) is expected to be left,
and half of it at least.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints

_TRIED: Final = 4  # attributes for each pair
_LEFT: Final = 0.5  # of a misfit: what no other attribute is trusted to explain
_TOGETHER: Final = 2**20  # cells of pairs at a time
_LEAST: Final = 1e-4  # of a table's mean cell: what a guess is at least, as all guesses


class Tables(Protocol):
    """Where the tables of smaller marginals come from."""

    def tables(self, rows: NDArray[np.int32], shape: tuple[int, ...]) -> Floats:
        """The tables of marginals (rows of positions) of one shape; (marginals, *shape)."""


def apart(pairs: Family, guess: Sequence[Floats], found: Tables) -> Floats:
    """How far tables are from their guesses: the sum of absolute differences as a share of all people."""
    off = np.zeros(len(pairs))
    for batch, q in zip(pairs.batches, guess, strict=True):
        lines = (len(q), -1)
        apart = np.abs(found.tables(batch.rows, batch.shape) - q).reshape(lines).sum(axis=1)
        off[batch.ids] = apart / q.reshape(lines).sum(axis=1)
    return off


def by_mediators(
    pairs: Family, guess: Sequence[Floats], found: Tables, misfits: Floats
) -> tuple[tuple[Floats, ...], Floats]:
    """The guesses of pairs by the attribute that explains most of each, and how much it explains (a share of people).

    `guess` is the one by independence, `found` has the fitted tables, `misfits` the shares s.
    """
    tried = _likely(pairs, misfits)
    better, explained = [q.copy() for q in guess], np.zeros(len(pairs))
    for batch, q in zip(pairs.batches, better, strict=True):
        for part in batch.parts(_TOGETHER):
            own, first = q[part], q[part].copy()
            people = first.sum(axis=(1, 2))
            most = np.zeros(len(own))
            for by in tried[batch.ids[part]].T:
                for n in np.unique(pairs.sizes[by[by >= 0]]).tolist():
                    lines = np.flatnonzero((by >= 0) & (pairs.sizes[by] == n))
                    x = _through(batch.rows[part][lines], by[lines], (*batch.shape, n), found)
                    e = np.abs(x - first[lines]).sum(axis=(1, 2)) / people[lines]
                    more = e > most[lines]
                    own[lines[more]], most[lines[more]] = x[more], e[more]
            least = _LEAST * people / batch.cells
            q[part], explained[batch.ids[part]] = np.maximum(own, least[:, None, None]), most
    return tuple(better), explained


def unexplained(explained: Floats, misfits: Floats) -> Floats:
    """What is expected to be left of misfits, as a share of each."""
    share = np.divide(explained, misfits, out=np.zeros_like(explained), where=misfits > 0)
    return np.asarray(np.sqrt(np.maximum(1 - share**2, _LEFT**2)))


def _likely(pairs: Family, misfits: Floats) -> Ints:
    """For each pair the attributes m of the largest min(s_im, s_mj), best first; -1 where there is none."""
    s = np.full((len(pairs.sizes), len(pairs.sizes)), -1.0)
    rows, ids = pairs.levels[2], np.arange(len(pairs))
    s[rows[:, 0], rows[:, 1]] = s[rows[:, 1], rows[:, 0]] = misfits
    found = np.full((len(pairs), _TRIED), -1, np.int64)
    for at in range(0, len(pairs), step := max(1, _TOGETHER // len(pairs.sizes))):
        part = ids[at : at + step]
        bound = np.minimum(s[rows[part, 0]], s[rows[part, 1]])
        best = np.argsort(-bound, axis=1, kind="stable")[:, :_TRIED]
        found[part, : best.shape[1]] = np.where(np.take_along_axis(bound, best, axis=1) >= 0, best, -1)
    return found


def _through(rows: NDArray[np.int32], by: Ints, shape: tuple[int, int, int], found: Tables) -> Floats:
    """sum_m P_im P_mj / P_m for pairs (i, j) of one shape, each with an attribute of n values."""
    a, b, n = shape
    one, other = rows.T.astype(np.int64)
    left, right = _pair(one, by, (a, n), found), _pair(by, other, (n, b), found)
    total = left.sum(axis=1, keepdims=True)
    given = np.divide(left, total, out=np.zeros_like(left), where=total > 0)
    return np.asarray(given @ right)


def _pair(one: Ints, other: Ints, shape: tuple[int, int], found: Tables) -> Floats:
    """Fitted tables of pairs with the first attribute along the rows, whatever their order in the schema."""
    tables = np.empty((len(one), *shape))
    turned = one > other
    for back, lines in ((False, np.flatnonzero(~turned)), (True, np.flatnonzero(turned))):
        if not len(lines):
            continue
        rows = np.stack([one[lines], other[lines]], axis=1).astype(np.int32)
        if back:
            tables[lines] = found.tables(rows[:, ::-1], shape[::-1]).transpose(0, 2, 1)
        else:
            tables[lines] = found.tables(rows, shape)
    return np.maximum(tables, 0.0)
