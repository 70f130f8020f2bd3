"""How the rounds of a selective run divide their budget: what is expected of tables, seen or not.

Before the sets of k attributes are measured, what is left of the budget is divided among them and all larger ones, as
if these were measured with what is known now; then the first ones get their part, and the next round divides the rest.
How far tables are from their guesses is known from the look at this order. Of what nobody has looked at,

    single attributes    fall off as 1, 1/2, 1/3 ..., and are off by all of that
    pairs                deviate by one of `_UNSEEN_PAIRS`, each as likely: some attributes have much to do with each
                         other, some nothing; budgets of pairs may differ from case to case, for a look will tell
    larger tables        deviate by `_FADING` of the mean of the tables with one attribute less inside them

Nothing here can reach counts: guesses and misfits are noisy, the rest is public.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from hushcube.designs.selective.allocation import Division, Inside, least_total
from hushcube.designs.selective.design import SelectiveDesign, of_order, unit_costs
from hushcube.designs.selective.expected import Expected, shares_above
from hushcube.designs.selective.largest import least_largest
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import believed
from hushcube.lattice.proportional import independent
from hushcube.model.arrays import Floats, Ints

_UNSEEN: Final = 1.0
_UNSEEN_PAIRS: Final = (0.02, 0.06, 0.2, 0.6)
_FADING: Final = 0.2


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of the tables of one order before they are measured: their guesses and, if seen, misfits.

    Misfits are shares of all people; `shares` says how people divide over the values of each attribute.
    """

    tables: Family
    guess: Sequence[Floats]
    misfits: Floats | None
    shares: Mapping[int, Floats]
    people: float


@dataclass(eq=False)
class Dividing:
    """The budgets of one run; remembers what sets that are measured are expected to be off by."""

    design: SelectiveDesign

    def __post_init__(self) -> None:
        request = self.design.request
        self.tables, self.measured = request.marginals, self.design.measured
        self.weights = request.as_asked.weights
        self.costs = unit_costs(request, self.measured)
        self.past = np.zeros(len(self.measured))
        self._above = np.ones(len(self.tables))  # the share of their cells above the sanity bound
        self._now = self._nothing = Expected.of(Family(self.measured.sizes, []), [], np.zeros(0))

    def ids(self, k: int) -> Ints:
        """The numbers of the measured sets of k attributes."""
        return np.arange(self.measured.starts[k], self.measured.starts[k + 1])

    def divided(self, k: int, known: Known, budget: float) -> Floats:
        """The budgets of the sets of k attributes, given what later orders may be worth."""
        self._now = now = self._of_order(k, known)
        later, cases = self._later(k, known), self._cases(known)
        expected = sum((later.times(deviation) for deviation in cases), now)
        every = np.arange(self.measured.starts[k], len(self.measured))
        first, rest = np.split(self.costs[every], [len(now)])
        program = Division(expected, np.append(first, np.tile(rest / len(cases), len(cases))), self.design.law, budget)
        inside = Inside.of(self.tables, self.measured, every, self.weights * self._above, self.past)
        inside = inside.supposing(len(now), len(cases))
        found = least_total(program, inside) if self._is_total else least_largest(program, inside).budgets
        return found[: len(now)]

    def done(self, k: int, budgets: Floats) -> None:
        """Remember what the sets of k attributes are expected to be off by, measured under budgets."""
        self.past[self.ids(k)] = self._now.left(self.design.law.formula(budgets))

    @property
    def _is_total(self) -> bool:
        return self.design.objective == "total"

    def _cases(self, known: Known) -> Sequence[float]:
        """What pairs may deviate by, where nothing is known of them; a factor of 1 where something is."""
        if known.misfits is not None:
            return (1.0,)
        return _UNSEEN_PAIRS if self._is_total else (float(np.mean(_UNSEEN_PAIRS)),)

    def _of_order(self, k: int, known: Known) -> Expected:
        guess, d = known.guess, known.misfits
        if d is None:
            guess, d = independent(known.tables, known.shares, known.people), np.full(len(known.tables), _UNSEEN)
        found = self._expected(known.tables, guess, d, is_seen=known.misfits is not None)
        return found.of_sets(known.tables.find(of_order(self.measured, k).levels[k]))

    def _later(self, k: int, known: Known) -> Expected:
        """Of all measured sets of more attributes; where nothing is known of pairs, as if they deviated by 1."""
        is_seen = known.misfits is not None
        seen = [] if known.misfits is None else known.misfits.tolist()
        smaller = dict(zip(map(tuple, known.tables.levels[k].tolist()), seen, strict=is_seen))
        found = []
        for j in range(k + 1, len(self.measured.levels)):
            larger = of_order(self.measured, j)
            if not len(larger):
                continue
            d = np.full(len(larger), _FADING ** (j - 2))
            if is_seen:
                rows = [tuple(row) for row in larger.levels[j].tolist()]
                d = _FADING * np.array([np.mean([smaller.get(b, 0.0) for b in combinations(r, j - 1)]) for r in rows])
                smaller = dict(zip(rows, d.tolist(), strict=True))
            guess = independent(larger, known.shares, known.people)
            found.append(self._expected(larger, guess, d, is_seen=is_seen))
        return sum(found, self._nothing)

    def _expected(self, family: Family, guess: Sequence[Floats], d: Floats, *, is_seen: bool) -> Expected:
        """What tables are expected to be off by, given deviations, which were seen or are only assumed."""
        if self.design.sanity_bound is None:
            return Expected.of(family, guess, d)
        bound = float(self.design.sanity_bound)
        at = np.concatenate([self.tables.find(batch.rows) for batch in family.batches])
        ids = np.concatenate([batch.ids for batch in family.batches])
        self._above[at[at >= 0]] = shares_above(family, guess, bound)[ids[at >= 0]]
        return Expected.of(family, guess, believed(family, guess, d) if is_seen else d, bound)


def falling_off(n: int) -> Floats:
    """How people divide over values of which nothing is known: as 1, 1/2, 1/3 ..."""
    shares = 1 / np.arange(1, n + 1)
    return np.asarray(shares / shares.sum())
