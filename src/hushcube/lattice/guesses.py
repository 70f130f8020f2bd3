"""What tables are expected to be, given the smaller ones: order by order, and how far they are expected from it.

A table of k attributes is guessed from its margins of k - 1 attributes: the table of greatest entropy among those that
have them, found by proportional fitting. Of two attributes that is independence; of three, no interaction of all three;
a table of one attribute is guessed to be even. So nothing is guessed that smaller tables do not show.

How far a table is from its guess q is a relative deviation d of its cells. It follows from a noisy misfit ||x - q||_1,
where one was measured as a share of all people [designs/selective]; else it is estimated from the noisy coefficients of
the table's own residual space,

    d² = max( ||residual(z) - residual(q)||² - m v,  sqrt(m / 2) v )  /  ( sqrt(R) sum_c q_c² )
    d  = misfit / n / sqrt(L)

m the dimension of the space and v the variance of its noise: what is left of the squares when those of the noise are
taken away, and where that is little, half of its standard deviation. A table of few numbers may be near its guess by
chance, so that in this case d² is (m d² + 2 mean) / (m + 2), the mean over all numbers of all tables of the order: as
if each table had two numbers more, of the usual deviation.

A misfit of three attributes and more is in part an error of the smaller tables that the guess is made of. What is the
table's own of it is sqrt(misfit² - past²), with

    past_A² = 2 sum_{B < A} left_B²
    left_B = sqrt(2/pi) / n sum_c tau_c / sqrt(1 + tau_c² / u),     tau = d q sqrt(pi/2),     u = v prod_i (1 - 1/n_i)

left_B the part of all people by which a set B is expected to be off after it was measured with noise of the variance u
in a cell; fits are found to err by more than that, by about the root of 2. Misfits are noisy, so that a table's own is
at least `_OWN` of one. Of pairs nearly everything is their own, for single attributes are known well.

R and L are what fixed margins leave of deviations. Cells that deviate on their own by normal d q_c have squares of
d² sum q² in all and a misfit in proportion to d n. Given that the margins hold, the covariance of an independent table
with shares a_i of its attributes is the product over i of D_i - D_i 1 1' D_i / S2, D_i = diag(a_i²), S2 = sum a_i², and

    R = prod_i n_i / (n_i - 1) (1 - sum_c a_ic⁴ / S2²)
    L = prod_i sqrt(n_i / (n_i - 1)) sum_c a_ic sqrt(1 - a_ic² / S2)

which are 1 where values are even and small where one value has nearly everybody: there the largest cell cannot deviate,
and what is seen belongs to the small ones. Of the two extremes, cells on their own and an independent table, the
geometric mean is taken, whence the roots. A table of few numbers that stand out of their noise needs no guess, so that
d² is multiplied by 1 + (||residual(z) - residual(q)||² - m v) / 2 m² v. The deviations of real tables have heavy tails:
the entropy is told FREEDOM times as much; and m of cells(A) numbers are free, so that each cell counts for that share:

    stiffness = m / cells(A) / (FREEDOM² d² q)                                                    [lattice/entropy.py]

Pairs are guessed a second time when all of them have been fitted, from other pairs             [lattice/mediators.py].
Tables of which an earlier edition is known are guessed from that, too; the nearer guess is taken
[lattice/second_guesses.py].
The number of people is held where it was measured: tables without negative cells would push it up, all together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushcube.lattice import helmert
from hushcube.lattice.coefficients import Coefficients
from hushcube.lattice.entropy import EntropyFit, Noisy, Tick, entropic
from hushcube.lattice.family import Batch, Family
from hushcube.lattice.mediators import Tables, apart, by_mediators, unexplained
from hushcube.lattice.proportional import proportional
from hushcube.lattice.second_guesses import Earlier, Second, instead, spread
from hushcube.model.arrays import Bools, Floats

FREEDOM: Final = 2.0
_OWN: Final = 0.7
_EDITION_FREEDOM: Final = 1.4  # the same of guesses by an earlier edition
_FIRMEST: Final = 1e-6  # the least relative deviation that is expected
_BORROWED: Final = 2.0  # numbers of the usual deviation that each table is taken to have beside its own
_SURE: Final = 1e4  # what is seen of a table at most, in units of its noise, when its guess is believed less for it
_ALL: Final = 1e-12  # what is left by margins at least, where one value has everybody
_TOGETHER: Final = 2**20  # cells that are fitted in proportion at a time
_LEAST: Final = 1e-4  # of a table's mean cell: what a guess is at least; a cell of less is as good as empty


def order(tables: Family, k: int) -> Family:
    """The sets of k attributes inside tables of a family."""
    levels = tables.closure.levels
    return Family(tables.sizes, [*(np.zeros((0, j), np.int32) for j in range(k)), levels[k]])


def guesses(wanted: Family, smaller: Tables, people: float) -> tuple[Floats, ...]:
    """The guesses of tables that all have k attributes, from those of k - 1; an array for each batch."""
    found = ((_guess(batch, smaller, people), batch.cells) for batch in wanted.batches)
    return tuple(np.maximum(guess, _LEAST * people / cells) for guess, cells in found)


def _guess(batch: Batch, smaller: Tables, people: float) -> Floats:
    if len(batch.shape) <= 1:
        return np.full((len(batch.ids), *batch.shape), people / batch.cells)
    found = np.empty((len(batch.ids), *batch.shape))
    for part in batch.parts(_TOGETHER):
        margins = []
        for axis in range(len(batch.shape)):
            shape = tuple(n for at, n in enumerate(batch.shape) if at != axis)
            margins.append(np.maximum(smaller.tables(np.delete(batch.rows[part], axis, axis=1), shape), 0.0))
        found[part] = proportional(batch.shape, margins)
    return found


def deviations(
    wanted: Family, guess: Sequence[Floats], noisy: Noisy, misfits: Floats | None = None, *, by_edition: bool = False
) -> Floats:
    """d of each table: from its misfit as a share of all people, or from the coefficients of its own residual space."""
    found, free = np.zeros(len(wanted)), np.zeros(len(wanted))
    for batch, given in zip(wanted.batches, guess, strict=True):
        q = spread(given) if by_edition else given
        squares, absolute = (np.ones(len(q)), np.ones(len(q))) if by_edition else _left_by_margins(q)
        if misfits is not None:
            found[batch.ids] = misfits[batch.ids] / np.sqrt(absolute)
            continue
        seen, m, v = _seen(batch, given, noisy)
        energy = np.maximum(seen, math.sqrt(m / 2) * v)
        found[batch.ids] = energy / (np.sqrt(squares) * (q**2).reshape(len(q), -1).sum(axis=1))
        free[batch.ids] = m
    if misfits is not None or not free.any():
        return found
    usual = (free @ found) / free.sum()
    return np.asarray(np.sqrt((free * found + _BORROWED * usual) / (free + _BORROWED)))


def believed(wanted: Family, guess: Sequence[Floats], misfits: Floats) -> Floats:
    """The relative deviations of cells that the entropy is told of, from misfits as shares of all people."""
    found = np.zeros(len(wanted))
    for batch, q in zip(wanted.batches, guess, strict=True):
        found[batch.ids] = FREEDOM * misfits[batch.ids] / np.sqrt(_left_by_margins(q)[1])
    return found


def own_misfits(wanted: Family, misfits: Floats, noisy: Noisy, before: Fitted) -> Floats:
    """What of the misfits of tables is their own, and not an error of the smaller tables they were guessed from."""
    past = np.zeros(len(wanted))
    for smaller in before.guessed.values():
        past += 2 * wanted.sum_over_subsets(smaller.family, smaller.left(noisy, before.people) ** 2)
    return np.asarray(np.sqrt(np.maximum(misfits**2 - past, (_OWN * misfits) ** 2)))


def loosened(wanted: Family, guess: Sequence[Floats], noisy: Noisy) -> Floats:
    """What d of each table is multiplied by: more than 1 where its numbers stand out of their noise."""
    found = np.ones(len(wanted))
    for batch, q in zip(wanted.batches, guess, strict=True):
        seen, m, v = _seen(batch, q, noisy)
        ratio = np.divide(seen, 2 * m**2 * v, out=np.full_like(seen, _SURE), where=(v > 0) & (m > 0))
        found[batch.ids] = np.sqrt(1 + np.minimum(ratio, _SURE))
    return found


def _seen(batch: Batch, q: Floats, noisy: Noisy) -> tuple[Floats, int, Floats]:
    """||residual(z) - residual(q)||² - m v of tables, zero at least; m; and v."""
    v, m = noisy.variances[noisy.spaces.find(batch.rows)], math.prod(n - 1 for n in batch.shape)
    return np.maximum(_apart(batch, q, noisy) - m * v, 0.0), m, v


def _apart(batch: Batch, q: Floats, noisy: Noisy) -> Floats:
    """||residual(z) - residual(q)||² of tables."""
    z = np.asarray(noisy.coefficients.gather(batch.rows), np.float64)
    h = helmert.residual_norms(batch.shape)
    square = (z - helmert.residual(q, range(1, q.ndim))) ** 2 / h
    return np.asarray(square.reshape(len(q), -1).sum(axis=1))


def nearer(
    wanted: Family, guess: Sequence[Floats], second: Second, misfits: Floats | None, noisy: Noisy | None = None
) -> Bools:
    """Which tables have a second guess that is nearer than the first: by their misfits, or else by what is noisy."""
    if misfits is not None and second.misfits is not None:
        return np.asarray(second.has & (second.misfits < misfits))
    if noisy is None:
        return np.zeros(len(wanted), bool)
    found = np.zeros(len(wanted), bool)
    for batch, first, other in zip(wanted.batches, guess, second.guess, strict=True):
        found[batch.ids] = _apart(batch, other, noisy) < _apart(batch, first, noisy)
    return np.asarray(second.has & found)


def _free(batch: Batch) -> float:
    """m / cells of tables of a shape: how many of their numbers are free, given their margins."""
    return math.prod(1 - 1 / n for n in batch.shape if n > 1)


def _left_by_margins(q: Floats) -> tuple[Floats, Floats]:
    """R and L of guessed tables (tables, *shape), all of whose cells are positive."""
    squares, absolute = np.ones(len(q)), np.ones(len(q))
    for axis, n in enumerate(q.shape[1:], start=1):
        if n == 1:
            continue
        a = q.sum(axis=tuple(other for other in range(1, q.ndim) if other != axis))
        a /= a.sum(axis=1, keepdims=True)
        s2 = (a**2).sum(axis=1, keepdims=True)
        squares *= n / (n - 1) * (1 - (a**4).sum(axis=1) / s2[:, 0] ** 2)
        absolute *= math.sqrt(n / (n - 1)) * (a * np.sqrt(np.maximum(1 - a**2 / s2, 0.0))).sum(axis=1)
    return np.maximum(squares, _ALL), np.maximum(absolute, _ALL)


@dataclass(frozen=True, eq=False)
class Guessed:
    """Tables of k attributes as they are guessed, and d of each."""

    family: Family
    guess: tuple[Floats, ...]
    deviations: Floats
    by_edition: Bools | None = None
    """Which of them are guessed by an earlier edition."""

    def stiffness(self, batch: Batch, q: Floats) -> Floats:
        """Of the cells of some of these tables with guesses q."""
        ids, ones = self.family.find(batch.rows), [1] * len(batch.shape)
        d = self.deviations[ids].reshape(-1, *ones)
        free = _free(batch)
        if self.by_edition is not None:
            other = (_EDITION_FREEDOM / FREEDOM * spread(q)) ** 2 / q
            q = np.where(self.by_edition[ids].reshape(-1, *ones), other, q)
        return np.asarray(free / (FREEDOM**2 * np.maximum(d, _FIRMEST) ** 2 * q))

    def left(self, noisy: Noisy, people: float) -> Floats:
        """The part of all people by which each set is expected to be off after it was measured."""
        found = np.zeros(len(self.family))
        for batch, q in zip(self.family.batches, self.guess, strict=True):
            free = _free(batch)
            ones = [1] * len(batch.shape)
            noise = free * noisy.variances[noisy.spaces.find(batch.rows)].reshape(-1, *ones)
            tau = self.deviations[batch.ids].reshape(-1, *ones) * q * math.sqrt(math.pi / 2)
            off = tau * np.sqrt(noise / np.maximum(noise + tau**2, 1e-300))
            found[batch.ids] = off.reshape(len(q), -1).sum(axis=1) * math.sqrt(2 / math.pi) / people
        return found

    def or_instead(self, other: Guessed, taken: Bools) -> Guessed:
        """These, but for some tables other guesses of the same tables."""
        guess = instead(self.family, self.guess, other.guess, taken)
        return Guessed(self.family, guess, np.where(taken, other.deviations, self.deviations), taken)

    def mediated(self, found: Tables, misfits: Floats | None) -> Guessed:
        """Pairs as a third attribute explains them, given their fit; misfits are shares of all people."""
        if misfits is None:
            misfits = apart(self.family, self.guess, found)
        guess, explained = by_mediators(self.family, self.guess, found, misfits)
        return Guessed(self.family, guess, self.deviations * unexplained(explained, misfits))


@dataclass(frozen=True, eq=False)
class Fitted:
    """Tables up to k attributes: what was guessed of each order, and the fit of all of them together."""

    guessed: Mapping[int, Guessed]
    fit: EntropyFit
    people: float

    @property
    def tables(self) -> Coefficients:
        """The tables that were found; rounding may leave cells a little below zero."""
        return self.fit.coefficients


def largest(tables: Family, k: int) -> Family:
    """The sets of k attributes inside tables of a family, and the smaller ones that lie in none of these."""
    closure = tables.closure
    inside = Family(tables.sizes, closure.levels[: k + 1])
    covered = {tuple(row) for level in inside.levels[1:] for c in range(level.shape[1])
               for row in np.delete(level, c, axis=1).tolist()}  # fmt: skip
    return Family.of([m for m in inside if m not in covered], tables.sizes)


def fitted(tables: Family, k: int, noisy: Noisy, guessed: Mapping[int, Guessed], people: float, tick: Tick) -> Fitted:
    """The fit of all tables of up to k attributes, given the guesses of each order; the number of people is held."""
    wanted = largest(tables, k)
    held = Noisy(noisy.coefficients, np.append(0.0, noisy.variances[1:]))  # the first space is the total
    q, s = [], []
    for batch in wanted.batches:
        if not batch.shape:
            q.append(np.full(1, people))
            s.append(np.full(1, 1e-9))
            continue
        own = guessed[len(batch.shape)]
        guess = np.asarray(Coefficients(own.family, own.guess).gather(batch.rows))
        q.append(guess.ravel())
        s.append(own.stiffness(batch, guess).ravel())
    return Fitted(dict(guessed), entropic(wanted, held, np.concatenate(q), np.concatenate(s), tick), people)


def fit_order(
    tables: Family,
    noisy: Noisy,
    before: Fitted,
    guess: Sequence[Floats],
    misfits: Floats | None,
    tick: Tick,
    second: Second | None = None,
) -> Fitted:
    """The fit of tables with one more attribute than before, given their guesses, and misfits as shares of people.

    Some may have a `second` guess, which is taken where it is nearer.
    """
    k, people = len(before.guessed) + 1, before.people
    wanted = order(tables, k)

    def guessed(guess: Sequence[Floats], misfits: Floats | None, *, by_edition: bool = False) -> Guessed:
        d = deviations(wanted, guess, noisy, misfits, by_edition=by_edition) * loosened(wanted, guess, noisy)
        return Guessed(wanted, tuple(guess), d)

    alone = misfits if misfits is None or k < 3 else own_misfits(wanted, misfits, noisy, before)
    first = own = guessed(guess, alone)
    taken = np.zeros(len(wanted), bool) if second is None else nearer(wanted, guess, second, misfits, noisy)
    if second is not None and taken.any():
        own = first.or_instead(guessed(second.guess, second.misfits, by_edition=True), taken)
    found = fitted(tables, k, noisy, {**before.guessed, k: own}, people, tick)
    if k != 2:
        return found
    near = first.mediated(found.tables, misfits)
    if second is not None and taken.any():
        near = near.or_instead(own, taken & _holds(first, near, second, found.tables, misfits))
    return fitted(tables, k, noisy, {**before.guessed, k: near}, people, tick)


def _holds(first: Guessed, near: Guessed, second: Second, found: Tables, misfits: Floats | None) -> Bools:
    """Whether second guesses of pairs are expected to be nearer than those by mediators."""
    if misfits is None or second.misfits is None:
        misfits, others = (apart(first.family, guess, found) for guess in (first.guess, second.guess))
    else:
        others = second.misfits
    left = np.divide(near.deviations, first.deviations, out=np.ones(len(misfits)), where=first.deviations > 0)
    return np.asarray(others <= misfits * left)


def fit_by_orders(
    tables: Family,
    noisy: Noisy,
    tick: Tick,
    known: Mapping[int, Floats] | None = None,
    earlier: Earlier | None = None,
    known_second: Mapping[int, Floats] | None = None,
) -> Fitted:
    """Guess and fit order after order; `known` has misfits as shares of all people, for the tables of some orders.

    Those of second guesses, from an `earlier` edition, are in `known_second`.
    """
    people = max(float(np.asarray(noisy.coefficients.blocks[0]).reshape(-1)[0]), 1.0)
    top = len(tables.closure.levels) - 1
    found = fitted(tables, 0, noisy, {}, people, tick)
    for k in range(1, top + 1):
        wanted = order(tables, k)
        guess = guesses(wanted, found.tables, people)
        misfits = known.get(k) if known else None
        second = None if earlier is None else earlier.second(wanted, guess, found.tables)
        if second is not None and known_second:
            second = replace(second, misfits=known_second.get(k))
        found = fit_order(
            tables,
            noisy,
            found,
            guess,
            misfits,
            lambda share, k=k: tick((k - 1 + share) / top),  # type: ignore[misc]
            second,
        )
    return found
