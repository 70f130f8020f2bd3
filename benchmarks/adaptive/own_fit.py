"""AIM on hushcube's own fit: `python -m benchmarks.adaptive.own_fit FOLDER METHOD SEED`                 [one_run.py]

The algorithm is the one that runs on mbi's graphical models [aim.py]; only the model differs:

    measured tables, and all inside them   fitted to all measurements together, with an opinion  [lattice/guesses.py]
    other pairs                            as the attribute that explains most of them has it  [lattice/mediators.py],
                                           from measured pairs first, then from pairs that were found so
    other triples                          of greatest entropy given their pairs

Spaces that nothing measured sees are no part of the fit, so that they have no say in it. Where the domain has few
cells, tables outside the measured ones are those of the full table of greatest entropy that has the fitted ones, found
by proportional fitting: what a graphical model of them would say, all paths between attributes together.

No junction tree is made, and so AIM's limit of its size is not needed: every table may be selected in every round.
In rounds the fit stops early; the answers are from a last one that does not.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

import hushcube
from benchmarks.adaptive.aim import Clique, Measured, aim
from benchmarks.adaptive.one_run import About, Method, Tables, serve
from benchmarks.peers.one_job import Job
from hushcube.designs.selective.design import noisy_spaces
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import fit_by_orders, guesses, order
from hushcube.lattice.mediators import apart, by_mediators

FEW_CELLS = 2**18
"""Of a domain whose full table is fitted, as for hushcube's own faces. NLTCS needs it: without, the error of its pairs
at epsilon 0.1 is 1.8 times as large (one seed). Adult-8, whose domain has 1.8 million cells, gains 1 to 3% at epsilon
0.1 and nothing for pairs at epsilon 1 (two seeds), and a run takes more than ten times as long."""
PASSES = 3
"""In how many steps pairs are explained by pairs: the first goes through measured ones only."""
LOOSE = 0.8
"""The share of its way after which a fit stops in a round [hushcube.lattice.entropy]."""
SWEEPS = 10
CLOSE = 1e-3
"""Proportional fitting of a full table stops when all tables are as near as this share of all people, or after SWEEPS;
it goes on in the next round."""
LEAST = 1e-4
"""Of the mean cell: what a table has in each cell at least when a full table is fitted to it."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """Consistent tables that were fitted to what was measured, and what they say of others."""

    asked: Family
    found: Coefficients
    people: float
    full: np.ndarray | None
    """The full table of greatest entropy, where the domain has few cells."""

    def tables(self, cliques: Iterable[Clique]) -> dict[Clique, np.ndarray]:
        """Tables of up to three attributes inside those asked for."""
        return {r: self._every[r] for r in cliques}

    @cached_property
    def _every(self) -> dict[Clique, np.ndarray]:
        every = dict[Clique, np.ndarray]()
        for batch in self.asked.closure.batches:
            known = batch.rows[self.found.spaces.find(batch.rows) >= 0]
            if len(known):
                every |= _by_clique(known, np.maximum(self.found.tables(known, batch.shape), 0.0))
        others = [r for r in self.asked.closure if r not in every]
        if self.full is not None:
            return every | margins(self.full, tuple(range(self.full.ndim)), others)
        if others:
            pairs = explained(order(self.asked, 2), self.found, self.people)
            for batch in (own := Family.of([r for r in others if len(r) == 2], self.asked.sizes)).batches:
                every |= _by_clique(batch.rows, pairs.tables(batch.rows, batch.shape))
            own = Family.of([r for r in others if len(r) == 3], self.asked.sizes)
            for batch, tables in zip(own.batches, guesses(own, pairs, self.people), strict=True):
                every |= _by_clique(batch.rows, tables)
        return every


def fitted(asked: Family, measured: Measured, before: Fitted | None, enough: float) -> Fitted:
    """The fit to all measurements; it stops when `enough` of its way is done."""
    given = Family.of(measured.tables, asked.sizes)
    values = [np.stack([measured.tables[tuple(r)][0] for r in batch.rows.tolist()]) for batch in given.batches]
    variances = np.array([measured.tables[r][1] ** 2 for r in given])
    noisy = noisy_spaces(MARGINAL, given, values, variances, given.closure)
    found = fit_by_orders(given, noisy, lambda share: share < enough)
    full = None
    if math.prod(asked.sizes.tolist()) <= FEW_CELLS:
        full = joint(given, found.tables, found.people, None if before is None else before.full)
    return Fitted(asked, found.tables, found.people, full)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs, whether fitted or guessed, over fitted tables of one attribute."""

    ones: Coefficients
    held: Coefficients

    def tables(self, rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        return self.ones.tables(rows, shape) if len(shape) < 2 else np.asarray(self.held.gather(rows))


def explained(pairs: Family, found: Coefficients, people: float) -> _Pairs:
    """Pairs as they were fitted; the others by independence, and then as other pairs explain them."""

    def with_known(guess: Sequence[np.ndarray]) -> _Pairs:
        for batch, values in zip(pairs.batches, guess, strict=True):
            if len(at := np.flatnonzero(found.spaces.find(batch.rows) >= 0)):
                values[at] = np.maximum(found.tables(batch.rows[at], batch.shape), 0.0)
        return _Pairs(found, Coefficients(pairs, tuple(guess)))

    alone = guesses(pairs, found, people)
    now = with_known([guess.copy() for guess in alone])
    for _ in range(PASSES):
        now = with_known(by_mediators(pairs, alone, now, apart(pairs, alone, now))[0])
    return now


def joint(measured: Family, found: Coefficients, people: float, start: np.ndarray | None) -> np.ndarray:
    """The full table of greatest entropy with the fitted tables of measured sets, by proportional fitting.

    An earlier one for some of the sets may be where it starts: it is such a table times factors of the sets.
    """
    sizes = tuple(measured.sizes.tolist())
    full: np.ndarray = np.ones(sizes) if start is None else start.copy()
    full *= people / full.sum()
    wanted = []
    for batch in Family.of([r for r in measured if not any({*r} < {*other} for other in measured)], sizes).batches:
        for row, table in zip(batch.rows.tolist(), found.tables(batch.rows, batch.shape), strict=True):
            positive = np.maximum(table, LEAST * people / table.size)
            wanted.append((row, positive * (people / positive.sum())))
    for _ in range(SWEEPS):
        worst = 0.0
        for row, table in wanted:
            now = full.sum(axis=tuple(i for i in range(full.ndim) if i not in row))
            worst = max(worst, float(np.abs(now - table).sum()))
            full *= (table / np.maximum(now, 1e-300)).reshape([n if i in row else 1 for i, n in enumerate(sizes)])
        if worst <= CLOSE * people:
            break
    return full


def margins(
    table: np.ndarray, attributes: tuple[int, ...], cliques: Sequence[Clique], kept: int = 0
) -> dict[Clique, np.ndarray]:
    """Many margins of one table: attribute after attribute is kept or summed out, and what is summed out is so once.

    >>> {r: m.tolist() for r, m in margins(np.array([[1, 2], [3, 4]]), (0, 1), [(0,), (1,)]).items()}
    {(0,): [3, 7], (1,): [4, 6]}
    """
    if kept == len(attributes):
        return {attributes: table} if cliques else {}
    own = [r for r in cliques if attributes[kept] in r]
    found = margins(table, attributes, own, kept + 1) if own else {}
    if len(own) < len(cliques):
        others, left = [r for r in cliques if attributes[kept] not in r], attributes[:kept] + attributes[kept + 1 :]
        found |= margins(table.sum(axis=kept), left, others, kept)
    return found


def _by_clique(rows: np.ndarray, tables: np.ndarray) -> dict[Clique, np.ndarray]:
    return dict(zip(map(tuple, rows.tolist()), tables, strict=True))


def aim_on_our_fit(job: Job, seed: int) -> tuple[Tables, About]:
    """All tables asked for, from the fit to what AIM measured."""
    asked = Family.of(job.tables, job.sizes)
    measured, model, about = aim(job, seed, lambda measured, before: fitted(asked, measured, before, LOOSE))
    last = fitted(asked, measured, model, math.inf)
    return last.tables(job.tables), {"version": hushcube.__version__, **about}


METHODS: dict[str, Method] = {"AIM on our fit": aim_on_our_fit}


if __name__ == "__main__":
    serve(METHODS)
