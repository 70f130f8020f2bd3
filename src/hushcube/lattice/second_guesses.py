"""Second guesses, from an earlier edition of the tables: its interactions, with the margins of now.

A table of k attributes is guessed from the smaller ones [lattice/guesses.py]. Where an earlier edition e has it too, it
is guessed a second time: proportional fitting to the same smaller tables starts not from ones but from

    (1 - SHARE) e + SHARE q,            both as shares of people, q the guess without the edition

so that what only tables of k attributes show is that of the edition, and what smaller ones show is that of now. The
part of q allows for cells in which the edition had nobody. A table of one attribute has the edition's shares, with a
part of the even ones.

Guesses from smaller tables deviate in proportion to cells. An edition is another sample of much the same people, so
that its cells deviate as those of samples do, in proportion to their roots:

    variance_c = phi q_c,    phi = ( d n / sum_c sqrt(q_c) )²     stiffness = m / cells(A) / (FREEDOM² phi)

with d the misfit as a share of people, or phi = what is seen of the table's own residual space / n. Such deviations
have lighter tails, so that FREEDOM is smaller; and fixed margins leave about the same part of them in every cell.

Which of two guesses is believed is decided table by table: the one with the smaller noisy misfit, where both were
looked at; else the one that is nearer to the noisy coefficients of the table's own residual space, whose noise is the
same for both. Pairs that are not taken from the edition are guessed from other pairs as ever [lattice/mediators.py]; a
pair keeps the edition's guess where its misfit is no larger than what the third attribute is expected to leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.lattice.coefficients import Coefficients, combine
from hushcube.lattice.family import Family, Rows
from hushcube.lattice.mediators import Tables
from hushcube.lattice.proportional import proportional
from hushcube.model.arrays import Bools, Floats

SHARE: Final = 0.01
"""Of people: those that a second guess takes from the guess without the edition."""
_LEAST: Final = 1e-4  # of a table's mean cell: what a guess is at least, as all guesses
_TOGETHER: Final = 2**20  # cells that are fitted in proportion at a time


@dataclass(frozen=True, eq=False)
class Earlier:
    """The tables of an earlier edition, and all smaller ones inside them."""

    coefficients: Coefficients

    @classmethod
    def of(cls, tables: Family, values: Sequence[Floats]) -> Earlier:
        """From an array for each batch of tables; where tables disagree, the nearest ones that add up."""
        return cls(combine(tables, values, np.ones(len(tables)), tables.closure))

    def has(self, rows: Rows) -> Bools:
        """Which tables, rows of positions, are known."""
        return np.asarray(self.coefficients.spaces.find(rows) >= 0)

    def shares(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """Tables of one shape as shares of people."""
        found = np.maximum(self.coefficients.tables(rows, shape), 0.0)
        total = found.reshape(len(rows), -1).sum(axis=1).reshape(-1, *[1] * len(shape))
        even = np.full_like(found, 1 / max(found[:1].size, 1))
        return np.asarray(np.divide(found, total, out=even, where=total > 0))

    def second(self, wanted: Family, guess: Sequence[Floats], smaller: Tables) -> Second:
        """The second guesses of tables that all have k attributes; a table that is not known keeps its first one."""
        found, has = [], np.zeros(len(wanted), bool)
        for batch, q in zip(wanted.batches, guess, strict=True):
            own = q.copy()
            known = np.flatnonzero(self.has(batch.rows))
            has[batch.ids[known]] = True
            step = max(1, _TOGETHER // max(batch.cells, 1))
            for at in range(0, len(known), step):
                part = known[at : at + step]
                own[part] = self._fitted(batch.rows[part], batch.shape, q[part], smaller)
            found.append(own)
        return Second(tuple(found), has)

    def _fitted(self, rows: Rows, shape: tuple[int, ...], q: Floats, smaller: Tables) -> Floats:
        people = q.reshape(len(q), -1).sum(axis=1).reshape(-1, *[1] * len(shape))
        start = (1 - SHARE) * people * self.shares(rows, shape) + SHARE * q
        if len(shape) < 2:
            return np.asarray(start)
        margins = []
        for axis in range(len(shape)):
            left = tuple(n for at, n in enumerate(shape) if at != axis)
            margins.append(np.maximum(smaller.tables(np.delete(rows, axis, axis=1), left), 0.0))
        return np.asarray(np.maximum(proportional(shape, margins, start), _LEAST * people / math.prod(shape)))


@dataclass(frozen=True, eq=False)
class Second:
    """Guesses from an earlier edition beside those without it, which tables have one, and their noisy misfits."""

    guess: tuple[Floats, ...]
    has: Bools
    misfits: Floats | None = None
    """As shares of people, where they were looked at."""


def spread(q: Floats) -> Floats:
    """In which proportions the cells of tables deviate from guesses by an edition: roots, for as many people in all."""
    roots, axes = np.sqrt(q), tuple(range(1, q.ndim))
    return np.asarray(roots * (q.sum(axis=axes, keepdims=True) / roots.sum(axis=axes, keepdims=True)))


def instead(wanted: Family, guess: Sequence[Floats], others: Sequence[Floats], taken: Bools) -> tuple[Floats, ...]:
    """Guesses, an array for each batch, of which some are replaced by others."""
    found = []
    for batch, first, other in zip(wanted.batches, guess, others, strict=True):
        found.append(np.where(taken[batch.ids].reshape(-1, *[1] * len(batch.shape)), other, first))
    return tuple(found)
