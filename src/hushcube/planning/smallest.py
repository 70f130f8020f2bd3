"""The smallest budget for targets, over weights too: a convex program whose optimum is certified by duality.

A target bounds a combination of variances, which are sums over residual spaces. Under Gaussian noise each space B has a
budget beta_B of its own, and what is left is                             [strategies/residual.py; docs/maths.md, 7]

    minimise sum_B C_B beta_B    subject to    F_j = sum_B P_jB / (2 beta_B) <= 1    for every target j

    stderr, margin, variance of table A     P_jB = m_B cells(B) / (cells(A)² t),  t the variance that is allowed
    rmse of several tables                  the mean of the same over their cells

F is of degree -1 in beta, so that the least cost is the least of max_j F_j at cost 1.     [strategies/search/saddle.py]
For any weights l_j >= 0 of sum 1, max_j F_j >= sum_j l_j F_j: the total variance of a workload in which table A weighs
a_A = sum_j l_j / (cells(A) t_j). So the plan for the targets is `residual` for these weights, and what proves it is the
least total that any plan has for them: a budget under which that is above 1 is too small.    [planning/lower_bound.py]

Tables without a target get what the targets bring. If they need spaces that no target sees, these get `REST` of the
budget, divided by the workload's weights. For pure epsilon nothing is proven: there plans are made for the largest of
Var(A) / t_A; where no single variance is bounded, t_A is what the program for Gaussian noise gives the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Final

import numpy as np

from hushcube.designs.errors import COVERAGE
from hushcube.designs.request import Request, space_energies
from hushcube.lattice.basis import dimensions
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.noise import GAUSSIAN, standard_margin
from hushcube.model.privacy import Privacy
from hushcube.model.schema import COUNT
from hushcube.planning.lower_bound import least_total, one_number
from hushcube.planning.question import Question
from hushcube.planning.targets import Goal, Target, table_cells
from hushcube.strategies.search.saddle import Problem, Solution, Sparse, solve

REST: Final = 0.01
"""Of the budget: what spaces get that only tables without a target need."""
GAP: Final = 1e-4
"""The relative gap, at most, between the cost of the program's solution and what is proven to be needed."""
_MOST_PAIRS: Final = 2_000_000  # tables and spaces inside them, up to which the program is solved
_LITTLE: Final = 1e-12  # of the largest weight: what a table weighs that has no say
_LEAST: Final = 1e-60  # of the variances that targets allow: nobody gets there
_EXACT: Final = 200  # up to which margins of the total are inverted exactly
_HALVINGS: Final = 40


@dataclass(frozen=True, eq=False)
class Program:
    """The targets of a question as constraints on the variances of its tables."""

    question: Question
    goals: Sequence[Goal]

    @classmethod
    def of(cls, question: Question, goals: Sequence[Goal]) -> Program | None:
        """The program, where there is one: for counts, without nested levels, with budgets that may be chosen."""
        pairs = sum(2 ** len(marginal) for marginal in question.workload.marginals)
        is_nested = question.workload.schema.is_nested
        if question.asked or is_nested or question.budgets not in (None, "optimal") or pairs > _MOST_PAIRS:
            return None
        program = cls(question, goals)
        return program if len(program.seen) else None

    # ------------------------------------------------------------------------------------------------ the constraints

    @cached_property
    def request(self) -> Request:
        """What the counts are asked for, with the weights of the words."""
        return self.question.requests[COUNT].as_asked

    @cached_property
    def cells(self) -> Floats:
        """Of the tables, in the order asked for: marginals, then forms."""
        return table_cells(self.request.workload)

    @cached_property
    def tables(self) -> Sparse:
        """Var(A) = sum_B entry_AB v_B; a form's is the mean of its answers."""
        workload, marginals, spaces = self.request.workload, self.request.marginals, self.request.spaces
        live = dimensions(spaces)
        if self.request.privacy.total_is_public:
            live[: len(spaces.levels[0])] = 0.0
        place = np.full(len(marginals), -1)
        place[marginals.ids(workload.marginals)] = np.arange(len(workload.marginals))
        pairs = [(pair.big, pair.small) for pair in marginals.inclusions(spaces)]
        big, small = (np.concatenate(ids) for ids in zip(*pairs, strict=True))
        values = live[small] * spaces.cells[small] / marginals.cells[big] ** 2
        keep = (place[big] >= 0) & (values > 0)
        found = Sparse(place[big][keep], small[keep], values[keep], (len(workload.marginals), len(spaces)))
        for form in workload.forms:
            energies = space_energies(form)
            at = spaces.ids(energies)
            shares = np.array(list(energies.values())) / (math.prod(form.carrier_shape) * form.cells)
            shares *= spaces.cells[at] * (live[at] > 0)
            found = found.with_row(at[shares > 0], shares[shares > 0])
        return found

    @cached_property
    def columns(self) -> Floats:
        """C_B, what a unit of each budget costs."""
        return np.asarray(dimensions(self.request.spaces) / self.request.spaces.cells)

    def _allowed(self, variance: Callable[[Target, bool], float]) -> Floats:
        """The variance of each table that its own targets allow, by what a target says of the total or of others."""
        is_total = (self.cells == 1) & (np.arange(len(self.cells)) < len(self.request.workload.marginals))
        result = np.full(len(self.cells), np.inf)
        for goal in self.goals:
            if goal.target.error != "rmse":
                allowed = np.where(is_total[goal.tables], variance(goal.target, True), variance(goal.target, False))
                np.minimum.at(result, goal.tables, np.maximum(allowed, _LEAST))
        return result

    def _rows(self, allowed: Floats) -> Sparse:
        """F = rows @ Var: a row for each table with targets of its own, and one for each mean over several."""
        at = np.flatnonzero(np.isfinite(allowed))
        rows = Sparse(np.arange(len(at)), at, 1 / allowed[at], (len(at), len(allowed)))
        for goal in self.goals:
            if goal.target.error == "rmse":
                own = self.cells[goal.tables]
                rows = rows.with_row(goal.tables, own / own.sum() / max(goal.target.bound**2, _LEAST))
        return rows

    def _problem(self, rows: Sparse) -> Problem:
        """The least of the largest F at cost 1, over the spaces that targets see, for targets of what is not public."""
        P = rows.times(self.tables)
        seen, columns = np.unique(P.columns, return_inverse=True)
        noisy, targets = np.unique(P.rows, return_inverse=True)
        each = np.arange(len(seen))
        halves = Sparse(each, each, np.full(len(seen), 0.5), (len(seen), len(seen)))
        return Problem(Sparse(targets, columns, P.values, (len(noisy), len(seen))), halves, self.columns[seen], 1)

    @cached_property
    def allowed(self) -> Floats:
        """What `residual` must keep to: with half a step on margins, if its noise is coarse."""
        smooth = self._allowed(_for_residual)
        if self.request.privacy.is_pure or not any(goal.target.error == "margin" for goal in self.goals):
            return smooth
        found = _solved(self._problem(self._rows(smooth)))
        is_coarse = GAUSSIAN.is_coarse(found.budgets * found.value)
        return self._allowed(partial(_for_residual, half=0.5)) if is_coarse else smooth

    @cached_property
    def rows(self) -> Sparse:
        """The targets by tables."""
        return self._rows(self.allowed)

    @cached_property
    def seen(self) -> Ints:
        """The spaces that targets see."""
        return np.unique(self.rows.times(self.tables).columns)

    # --------------------------------------------------------------------------------------------------- the solution

    @cached_property
    def solution(self) -> Solution:
        """The optimum, and the weights of targets that prove it. Value and bound are a row's rho under add-remove."""
        return _solved(self._problem(self.rows))

    def _weighed(self, rows: Sparse) -> Floats:
        """a_A = sum_j l_j rows_jA / cells(A)."""
        multipliers = np.zeros(rows.shape[0])
        noisy = np.unique(self.rows.times(self.tables).rows)
        multipliers[noisy] = 0.0 if self.solution.weights is None else self.solution.weights
        return np.asarray((rows.transposed @ multipliers) / self.cells)

    @cached_property
    def rest(self) -> Bools:
        """The tables that need spaces which no target sees."""
        unseen = np.ones(len(self.request.spaces), np.bool_)
        unseen[self.seen] = False
        result = np.zeros(len(self.cells), np.bool_)
        result[self.tables.rows[unseen[self.tables.columns]]] = True
        return result

    @cached_property
    def weights(self) -> Floats:
        """Weights for which `residual` meets the targets at the least cost, and the rest has its share of it."""
        own: Floats = self._weighed(self.rows)
        own = np.maximum(own, _LITTLE * float(own.max()))
        if not self.rest.any():
            return np.asarray(own)
        asked = np.array((*self.request.workload.weights, *self.request.workload.form_weights))
        own, others = np.where(self.rest, 0.0, own), np.where(self.rest, asked, 0.0)
        roots, rest = (np.sqrt(self.columns * self._energies(weights)) for weights in (own, others))
        share = (REST * roots.sum() / np.delete(rest, self.seen).sum()) ** 2
        most = (1 + REST) * self.cost(own)
        for _ in range(_HALVINGS):  # what the rest sees besides may move the others
            if self.cost(own + share * others) <= most:
                break
            share /= 2
        return np.asarray(own + share * others)

    def _energies(self, weights: Floats) -> Floats:
        """s_B, what a unit of v_B adds to the total variance."""
        return np.asarray(self.tables.transposed @ (weights * self.cells))

    def variances(self, weights: Floats) -> Floats:
        """Of tables in the best plan for some weights, at cost 1; infinite where a space is not measured."""
        C, s = self.columns, self._energies(weights)
        beta = np.sqrt(np.divide(s, C, out=np.zeros_like(s), where=C > 0))
        with np.errstate(divide="ignore"):
            return np.asarray(self.tables @ (0.5 * float(C @ beta) / beta))

    def cost(self, weights: Floats) -> float:
        """What the best plan for some weights costs that meets all targets; never below `solution.bound`."""
        return float((self.rows @ self.variances(weights)).max())

    # ----------------------------------------------------------------------------------------------- what comes of it

    @cached_property
    def aims(self) -> list[Question]:
        """The same question with weights for the targets: of the total variance, and of the largest."""
        reached = self.variances(self.weights) / self.cost(self.weights)
        largest = 1 / np.where(np.isfinite(self.allowed), self.allowed, np.where(reached > 0, reached, 1.0))
        workload, question = self.request.workload, self.question
        most = replace(question, workload=workload.weighing(largest.tolist()), objective="max")
        if self.request.privacy.is_pure:
            return [most]
        return [replace(question, workload=workload.weighing(self.weights.tolist()), objective="total"), most]

    @cached_property
    def _least(self) -> float | None:
        """The least that the weighted targets come to, with a single number of variance 1 for the budget."""
        any_plan = partial(_for_any, alone=self.question.recovery in ("none", "answers"))
        weights = self._weighed(self._rows(self._allowed(any_plan)))
        least = least_total(Request(self.request.workload.weighing(weights.tolist()), self.request.privacy))
        return None if least is None else least / one_number(self.request.privacy)

    def is_too_small(self, privacy: Privacy) -> bool:
        """Whether no plan with unbiased linear answers meets the targets under a guarantee: that is proven."""
        return self._least is not None and self._least * one_number(privacy) > 1


def _solved(problem: Problem) -> Solution:
    return solve(problem, np.ones(len(problem.c)), tolerance=GAP)


def _for_residual(target: Target, is_total: bool, half: float = 0.0) -> float:
    """The variance for which `residual` meets a target: its total has a margin by the exact law."""
    if target.error != "margin":
        return target.bound if target.error == "variance" else target.bound**2
    if is_total:
        return largest_variance(target.bound)
    return (max(target.bound - half, target.bound / 2) / standard_margin(0.0, COVERAGE)) ** 2


def _for_any(target: Target, is_total: bool, *, alone: bool) -> float:
    """A variance that no plan exceeds which meets a target; `alone`: margins may be by the law of single draws."""
    return max(_for_residual(target, is_total or alone), _for_residual(target, False))


def largest_variance(margin: float) -> float:
    """The largest variance of Gaussian noise, but for a millionth, with which a single number has at most that margin.

    >>> round(largest_variance(10.7), 3), GAUSSIAN.margin(Fraction(1, 2) / Fraction(28.8), 1, COVERAGE)
    (28.783, 11)
    """
    steps = math.floor(margin)
    about = ((steps + 0.5) / standard_margin(0.0, COVERAGE)) ** 2
    if not 1 <= steps <= _EXACT:
        return about
    low, high = 0.5 * about, 1.5 * about
    while high - low > 1e-6 * about:
        middle = (low + high) / 2
        fits = GAUSSIAN.margin(Fraction(0.5 / middle), 1, COVERAGE) <= steps
        low, high = (middle, high) if fits else (low, middle)
    return low
