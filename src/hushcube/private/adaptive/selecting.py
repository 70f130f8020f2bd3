"""A selective run: look, divide, measure, fit, from small tables to large ones.     [designs/selective/design.py]

The exact counts are used for two things: a misfit, to which noise is added before anything looks at it, and the
measured sets, to which noise is added too. Guesses, budgets and fits are functions of what is noisy already, and of
public numbers.

    misfit_A = sum_c |x_c - g_c|,  g whole numbers that follow from earlier noisy answers: a row that comes or goes
               moves one x_c by 1, and so the misfit by 1 at most; a row that changes moves two, by 2 at most

What a run may spend is one number. Each step is charged its exact cost before its noise is drawn; where budgets follow
from noisy answers, their sum never passes that number, whatever the answers are.    [docs/privacy.md, 6: filters]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube.costs import calibrate
from hushcube.designs.design import Design
from hushcube.designs.grid import BELOW
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.selective.design import (
    SelectedDesign,
    SelectiveDesign,
    basis_of,
    misfit_cost,
    noisy_spaces,
    of_order,
    shares_of,
)
from hushcube.designs.selective.dividing import Dividing, Known, falling_off
from hushcube.designs.selective.rolled import Finest, SelectedLevels, SelectiveLevels
from hushcube.lattice.entropy import Noisy
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import Fitted, fit_order, fitted, guesses, nearer, order
from hushcube.lattice.second_guesses import Second, instead, spread
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import LAPLACE, Law, Measurement
from hushcube.private.blocks import EXACT, drawn
from hushcube.private.engines import ExactCounts
from hushcube.private.noise import Entropy, discrete_gaussian, discrete_laplace
from hushcube.progress import Progress

_TOTAL: Final = Fraction(3, 100)  # of the budget: for the number of people
_TOGETHER: Final = 2**20  # cells of tables whose misfits are summed at a time
_DETAIL: Final = 0.004  # of all people: looks with less noise than this would say nothing more


def run_selective(
    design: SelectiveDesign, counts: ExactCounts, entropy: Entropy, report: Progress, *, private: bool
) -> tuple[Design, Measurement]:
    """Carry a plan out, and describe the result."""
    run = _Run(design, counts, entropy, report)
    for k in range(len(design.measured.levels)):
        fit = run.round(k)
    run.check(fit)
    budgets = np.concatenate([run.budgets, list(run.misfit_budgets.values())])
    own = (design.request, design.strategy, design.budget_rule, design.recovery, design.proof, budgets)
    made: Design = SelectedDesign(*own, LatticeDesign, design.measured_by, like=design.like)
    told = {
        "method": design.strategy,
        "asked": design.asked,
        "shares": {str(k): float(spent / run.allowed) for k, spent in run.spent.items()},
        "spent": float(made.person_cost),
        "left": float(made.person_rest),
    }
    made = replace(made, details={"adaptive": told})
    return made, Measurement(made.digest, (*run.values, *run.misfits.values()), private)


def run_at_finest_levels(
    design: SelectiveLevels, counts: ExactCounts, entropy: Entropy, report: Progress, *, private: bool
) -> tuple[Design, Measurement]:
    """Carry a plan over levels out: the run over the fine tables is all there is."""
    below = design.underlying
    if not isinstance(below, SelectiveDesign):
        raise TypeError(type(below).__name__)
    done, measurement = run_selective(below, _Fine(counts, design.finest), entropy, report, private=private)
    if not isinstance(done, SelectedDesign):
        raise TypeError(type(done).__name__)
    fields = {"base": done.base, "measured_by": done.measured_by, "like": done.like}
    own = (design.request, design.strategy, design.budget_rule, design.recovery, design.proof, done.budgets)
    made = SelectedLevels(*own, SelectedDesign, fields, details=done.details)
    return made, Measurement(made.digest, measurement.values, private)


class _Fine(ExactCounts):
    """Exact counts of the fine tables."""

    def __init__(self, counts: ExactCounts, finest: Finest) -> None:
        self._counts, self._finest, self.rows = counts, finest, counts.rows

    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        return self._counts.tables(self._finest.places[marginals])


@dataclass(eq=False)
class _Run:
    """What is known so far: budgets and noisy values of sets, noisy misfits, and the last fit."""

    design: SelectiveDesign
    counts: ExactCounts
    entropy: Entropy
    report: Progress
    misfits: dict[int, Ints] = field(default_factory=dict)
    misfit_budgets: dict[int, float] = field(default_factory=dict)
    spent: dict[int, Fraction] = field(default_factory=dict)
    fit: Fitted | None = None

    def __post_init__(self) -> None:
        design = self.design
        self.request, self.under = design.request, design.underlying
        self.measured, self.tables = design.measured, self.request.marginals
        self.earlier = design.earlier
        self.top = len(self.measured.levels) - 1
        self.allowed = calibrate.row_budget(design.privacy, design.proof)
        self.sure = design.budgets
        self.budgets = np.zeros(len(self.measured))
        self.values = [np.zeros(shape, np.int64) for shape in self.under.shapes]
        self.dividing = Dividing(design)
        self.people = 1.0
        # what is left for choosing: without what every set is sure to get, the total and the last look
        self.free = self.allowed * (1 - _TOTAL - self.design.check_share) - self.under.row_cost(self.sure)

    def round(self, k: int) -> Fitted:
        """Guess, look, divide, measure and fit the tables of k attributes."""
        sets = self.dividing.ids(k)
        self._tell(k, 0.0)
        extra, paid = np.zeros(len(sets)), Fraction(0)
        known: Floats | None = None
        guess: Sequence[Floats] = ()
        second: Second | None = None
        if self.fit is None:
            extra[:] = float(_TOTAL * self.allowed) / self.dividing.costs[sets] * BELOW
        else:
            wanted = order(self.tables, k)
            guess = guesses(wanted, self.fit.tables, self.people)
            second = None if self.earlier is None else self.earlier.second(wanted, guess, self.fit.tables)
            known, second = self._look(k, wanted, guess, second) if k >= 2 else (None, second)
            paid = self._misfit_cost(k)
            extra = self._divide(k, wanted, *_nearest(wanted, guess, known, second)) if len(sets) else extra
        self._grant(sets, extra)
        self._measure(k)
        own = np.where(np.isin(np.arange(len(self.budgets)), sets), self.budgets, 0.0)
        self.spent[k] = self.under.row_cost(own) + paid
        self.fit = self._fitted(k, known, guess, second)
        return self.fit

    def _tell(self, k: int, share: float) -> None:
        """How far the run is: the fit of an order takes nearly all of its time."""
        self.report("choosing what to measure", (k + min(share, 1.0)) / (self.top + 1))

    def _grant(self, sets: Ints, extra: Floats) -> None:
        """Give sets what they are sure to get and more; with what later ones are sure to get, within the guarantee."""
        less = 2.0**-50  # sums of floats are rounded, and so are costs, each against ourselves
        while True:
            self.budgets[sets] = np.where(np.isinf(self.sure[sets]), np.inf, self.sure[sets] + extra)
            every = np.where(self.budgets > 0, self.budgets, self.sure)
            looks = sum(map(self._misfit_cost, self.misfit_budgets), self.design.check_share * self.allowed)
            if self.under.row_cost(every) + looks <= self.allowed:
                return
            extra, less = extra * (1 - less), min(2 * less, 0.5)

    def _misfit_cost(self, k: int) -> Fraction:
        if k not in self.misfit_budgets:
            return Fraction(0)
        return misfit_cost(self.design.privacy, len(self.misfits[k]), self.misfit_budgets[k])

    def _look(
        self, k: int, wanted: Family, guess: Sequence[Floats], second: Second | None
    ) -> tuple[Floats, Second | None]:
        """The misfits of tables from their guesses, noisy, as shares of all people; those of second guesses in them."""
        own, twice = of_order(self.measured, k), self.design.twice(k)
        noise = self._misfits(k, own, wanted, guess, self._look_budget(k), (second, twice))
        self.free -= self._misfit_cost(k)
        seen, others = np.split(shares_of(self.misfits[k], noise, self.people), [len(own)])
        at = own.find(wanted.levels[k])

        def of_wanted(shares: Floats) -> Floats:
            found = np.zeros(len(wanted))
            found[at >= 0] = shares[at[at >= 0]]
            return found

        if second is None:
            return of_wanted(seen), None
        every = np.zeros(len(own))
        every[twice] = others
        return of_wanted(seen), replace(second, misfits=of_wanted(every))

    def check(self, fit: Fitted) -> None:
        """The last look: how far the fitted tables asked for are from the true ones."""
        values = [np.maximum(fit.tables.tables(batch.rows, batch.shape), 0.0) for batch in self.tables.batches]
        budget = self._budget_of(len(self.tables), self.design.check_share)
        self._misfits(self.top + 1, self.tables, self.tables, values, budget)

    def _look_budget(self, k: int) -> float:
        """That of the misfits of k attributes: their share, or what brings their noise down to a detail, if less."""
        law, share = self.design.law, self._budget_of(self._looked_at(k), self.design.misfit_share)
        enough = float(law.formula(np.asarray(1.0))) / (_DETAIL * self.people) ** 2
        return min(share, math.pow(enough, 1 / law.power))

    def _budget_of(self, tables: int, share: Fraction) -> float:
        """The budget under which the misfits of so many tables cost a share of everything."""
        unit = misfit_cost(self.design.privacy, tables, 1.0)
        return float(share * self.allowed / unit) * BELOW if unit else 1.0

    def _looked_at(self, k: int) -> int:
        """How many misfits a look at the tables of k attributes has."""
        return len(of_order(self.measured, k)) + int(self.design.twice(k).sum())

    def _misfits(
        self,
        look: int,
        own: Family,
        wanted: Family,
        guess: Sequence[Floats],
        budget: float,
        again: tuple[Second | None, Bools] | None = None,
    ) -> float:
        """Measure the misfits of tables from guesses, those of a family that are also in another; their noise.

        After them those of some tables from second guesses.
        """
        exact = self._exact_misfits(own, wanted, guess)
        if again is not None and again[0] is not None:
            exact = np.concatenate([exact, self._exact_misfits(own, wanted, again[0].guess)[again[1]]])
        self.misfit_budgets[look] = budget
        self.misfits[look] = with_noise(exact, budget, self.design.law, self.entropy)
        return float(np.sqrt(self.design.law.formula(np.asarray(budget))))

    def _exact_misfits(self, own: Family, wanted: Family, guess: Sequence[Floats]) -> Ints:
        exact = np.zeros(len(own), np.int64)
        for batch, q in zip(wanted.batches, guess, strict=True):
            ids = own.find(batch.rows)
            for part in batch.parts(_TOGETHER):
                if (ids[part] < 0).any():  # a shape that varies with nothing is not measured
                    continue
                x = self.counts.tables(batch.rows[part]).reshape(q[part].shape)
                exact[ids[part]] = misfits_of(x, q[part])
        return exact

    def _divide(self, k: int, wanted: Family, guess: Sequence[Floats], known: Floats | None) -> Floats:
        """The budgets of the sets of this order beyond what is sure, given what later orders may be worth."""
        later = range(max(k, 1) + 1, self.top + 1)
        looks = (misfit_cost(self.design.privacy, self._looked_at(j), self._look_budget(j)) for j in later)
        budget = float(self.free - sum(looks, Fraction(0))) * BELOW
        sets = self.dividing.ids(k)
        shares = {i: self._one_way(i, is_known=known is not None) for i in self.tables.attributes.tolist()}
        found = self.dividing.divided(k, Known(wanted, guess, known, shares, self.people), budget)
        extra = np.where(np.isinf(self.sure[sets]), 0.0, found)
        # the exact cost of what is added: never more than what is left
        whole = np.zeros(len(self.budgets))
        whole[sets] = extra
        if (cost := self.under.row_cost(whole)) > Fraction(budget):
            extra = extra * (float(Fraction(budget) / cost) * BELOW)
            whole[sets] = extra
            cost = self.under.row_cost(whole)
        self.free -= cost
        self.dividing.done(k, self.sure[sets] + extra)
        return extra

    def _one_way(self, i: int, *, is_known: bool) -> Floats:
        """How people divide over the values of an attribute."""
        n = int(self.measured.sizes[i])
        if self.fit is None or not is_known:
            return falling_off(n)
        one = np.maximum(self.fit.tables.tables(np.array([[i]], np.int32), (n,))[0], 0.0)
        return np.asarray(one / max(float(one.sum()), 1e-300))

    def _measure(self, k: int) -> None:
        """Draw the noise of the sets of k attributes, and add it to their exact numbers."""
        first, last = self.measured.starts[k], self.measured.starts[k + 1]
        for block in self.under.blocks():
            if not (len(block.sets) and first <= block.sets[0] < last):
                continue
            shape = self.design.schema.shape(tuple(block.marginals[0].tolist()))
            tables = self.counts.tables(block.marginals).reshape(len(block.marginals), *shape)
            exact = block.transform.apply(tables).reshape(len(block.budgets), block.columns)
            paid = replace(block, budgets=self.budgets[block.sets])
            noisy = exact + drawn(self.design, paid, self.entropy, EXACT)
            place = np.atleast_1d(self.values[block.array])[block.lines]
            place[...] = noisy.reshape(place.shape)
        if k == 0:
            self.people = max(float(np.asarray(self.values[0]).reshape(-1)[0]), 1.0)

    def _fitted(self, k: int, misfits: Floats | None, guess: Sequence[Floats], second: Second | None) -> Fitted:
        """The tables of up to k attributes, from everything that is noisy so far."""
        noisy = self._noisy(k)

        def goes_on(share: float) -> bool:
            self._tell(k, max(share, 0.0))
            return True

        if self.fit is None:
            return fitted(self.tables, k, noisy, {}, self.people, goes_on)
        return fit_order(self.tables, noisy, self.fit, guess, misfits, goes_on, second)

    def _noisy(self, k: int) -> Noisy:
        spaces = Family(self.measured.sizes, self.tables.closure.levels[: k + 1])
        sets = Family(self.measured.sizes, self.measured.levels[: k + 1])
        budgets = self.budgets[: len(sets)]
        public = np.isinf(budgets)
        variances = np.where(public, 0.0, self.design.law.formula(np.where(public, 1.0, budgets)))
        values = [np.asarray(v, np.float64) for v in self.values[: len(sets.batches)]]
        return noisy_spaces(basis_of(self.design.privacy), sets, values, variances, spaces)


def with_noise(exact: Ints, budget: float, law: Law, entropy: Entropy) -> Ints:
    """Misfits, each with the noise that a change by 1 costs the budget under."""
    parameter = law.parameter(Fraction(budget))
    if law is LAPLACE:
        return np.asarray(exact + discrete_laplace([parameter], len(exact), entropy)[0])
    return np.asarray(exact + discrete_gaussian([parameter], np.ones(len(exact), np.int64), entropy)[0])


def misfits_of(exact: Ints, guess: Floats) -> Ints:
    """sum_c |x_c - round(q_c)| of tables (tables, *shape): whole numbers.

    >>> misfits_of(np.array([[3, 0], [1, 1]]), np.array([[2.4, 0.6], [1.0, 1.0]])).tolist()
    [2, 0]
    """
    apart = np.abs(exact - np.rint(guess).astype(np.int64))
    return np.asarray(apart.reshape(len(exact), -1).sum(axis=1), np.int64)


def _nearest(
    wanted: Family, guess: Sequence[Floats], known: Floats | None, second: Second | None
) -> tuple[Sequence[Floats], Floats | None]:
    """Of each table how far its cells are expected from the nearer guess, in proportion, and the misfit of that."""
    if second is None or known is None or second.misfits is None:
        return guess, known
    taken = nearer(wanted, guess, second, known)
    return instead(wanted, guess, [spread(q) for q in second.guess], taken), np.where(taken, second.misfits, known)
