"""Predicted errors of a design, before any data exists: variances of cells, of forms and of sums of cells; margins.

Each kind of design has its own; totals and maxima follow here for all of them.

`exact=False` uses the continuous formulas 2/beta² and 1/(2 beta) (under `smoothing`, of the continuous mechanism);
`exact=True` the true variances of the discrete noise that is drawn.

Covariances are exact too: of any two weighted sums, and of all cells of a table with sums that they are part of.

Margins are the half-widths of 95% intervals, from the law of the noise and not only its variance. Answers combine many
numbers: the normal quantile under Gaussian noise; under Laplace noise that of a single Laplace term, which is safe for
every combination.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

import numpy as np

from hushcube.errors import QueryError
from hushcube.model.arrays import Bools, Floats, Marginal
from hushcube.model.form import Form
from hushcube.model.noise import GAUSSIAN, standard_margin

if TYPE_CHECKING:
    from hushcube.designs.design import Design

Own = TypeVar("Own", bound="Errors")
Given = ParamSpec("Given")
Result = TypeVar("Result")
COVERAGE: Final = 0.95
Along = Sequence[Floats | None]
"""For each axis of a table something along it, or nothing."""


def kept(method: Callable[Concatenate[Own, Given], Result]) -> Callable[Concatenate[Own, Given], Result]:
    """A method of Errors that computes each of its results once, for designs are frozen."""

    @wraps(method)
    def once(self: Own, /, *args: Given.args, **named: Given.kwargs) -> Result:
        key = (method.__qualname__, args, *named.items())
        if key not in self.results:
            self.results[key] = method(self, *args, **named)
        result: Result = self.results[key]
        return result

    return once


class Errors(ABC):
    """What the answers of a design are off by."""

    slabs_are_alike: bool = False
    """Whether sums of equally many cells of a table have one margin, so that one stands for a roll-up."""

    def __init__(self, design: Design) -> None:
        self.design = design
        self.results: dict[Any, Any] = {}

    # ---------------------------------------------------------------------------------- what every kind of design says

    @abstractmethod
    def cell_variances(self, *, exact: bool) -> Floats:
        """The mean cell variance of each of `design.request.marginals`."""

    @abstractmethod
    def form_variances(self, form: Form, *, exact: bool) -> Floats:
        """The variance of each answer of a form; shape of the form."""

    @abstractmethod
    def sum_variance(self, marginal: Marginal, weights: Floats) -> float:
        """The exact variance of a weighted sum of the cells of one published marginal; weights of the table's shape."""

    @abstractmethod
    def cell_variance_table(self, marginal: Marginal) -> Floats:
        """The exact variance of each cell of a published marginal, or, after least squares, of any subset of one.

        Broadcast to the table where cells are alike: a single number, shape (), where all of them are.
        """

    # --------------------------------------------------------------------------- what a kind of design may know better

    def covariances(self, marginal: Marginal, rows: Along, totals: Along) -> Floats:  # noqa: ARG002 - others know them
        """The exact covariances of products of sums along the axes of a published marginal with certain other ones.

        Along each axis the sums are `rows`, of zeros, ones or any weights; None: the cells. Each of their products has
        a partner. Along axes without `totals` it is the same sum; elsewhere these weights, whatever the product is.
        Rows and totals of one axis exclude each other. So without totals the result are variances, and with totals
        along some axes covariances of cells with the sums over these axes. One axis each, as many answers as there.
        """
        problem = "the answers of this design have errors without exact covariances"
        raise QueryError("marginal", problem, "look at single tables; ratios need another strategy")

    def sum_covariance(self, marginal: Marginal, first: Floats, second: Floats) -> float:
        """The exact covariance of two weighted sums of the cells of one published marginal."""
        sizes = [math.sqrt(self.sum_variance(marginal, weights)) for weights in (first, second)]
        if not all(sizes):
            return 0.0
        # Var(a + s b) - Var(a - s b) = 4 s Cov(a, b); s makes both of one size, so that little is lost to rounding
        s = sizes[0] / sizes[1]
        more, less = (self.sum_variance(marginal, first + sign * s * second) for sign in (1, -1))
        return (more - less) / (4 * s)

    def form_total(self, form: Form, *, exact: bool) -> float:
        """The sum of the variances of all answers of a form."""
        return float(self.form_variances(form, exact=exact).sum())

    @property
    def cells_are_alike(self) -> bool:
        """Whether all cells of each table have one variance and one margin."""
        return False

    @cached_property
    def margins(self) -> Floats:
        """The margin of a cell of each marginal (the mean where cells differ)."""
        return self.any_margin(np.sqrt(self.exact_cell_variances))

    def cell_margin(self, marginal: Marginal, deviations: Floats) -> Floats:  # noqa: ARG002 - others look at it
        """The margins of the cells of one workload marginal, given their standard deviations."""
        return self.any_margin(deviations)

    def sum_margin(self, marginal: Marginal, weights: Floats) -> float:
        """The margin of a weighted sum of cells of one table."""
        return float(self.any_margin(np.sqrt(self.sum_variance(marginal, weights))))

    def cell_covariances(self, marginal: Marginal) -> Floats | None:  # noqa: ARG002 - others look at it
        """The covariances of the cells of a published marginal, where it only matters in which attributes they agree.

        Shape (2, ..., 2): along each axis, cells with different values (0) or the same (1). None where more matters.
        """
        return None

    # ------------------------------------------------------------------------------------------- what follows for all

    @cached_property
    def exact_cell_variances(self) -> Floats:
        """The mean cell variance of each marginal, with the noise that is drawn."""
        return self.cell_variances(exact=True)

    @property
    def noisy(self) -> Bools:
        """The sets that get noise; the others are public."""
        return np.isfinite(self.design.budgets)

    def drawn_variances(self, *, exact: bool) -> Floats:
        """The noise variance of the numbers of each set, budgets being those of the noise as drawn; public: zero."""
        design, noisy = self.design, self.noisy
        budgets = np.where(noisy, design.budgets, 1.0)
        drawn = design.law.variance(budgets) if exact else design.law.formula(budgets) - design.smoothing
        return np.where(noisy, drawn, 0.0)

    def least_squares_weights(self, variances: Floats) -> Floats:
        """The weights with which least squares combines sets of given variances, at most 1; zero for what is public."""
        noisy = self.noisy
        if self.design.recovery == "ols":
            return noisy.astype(np.float64)
        variances = np.where(noisy, variances, 1.0)
        return np.where(noisy, variances[noisy].min(initial=np.inf) / variances, 0.0)

    def total_variance(self, *, exact: bool) -> float:
        """The expected sum of squared errors over all cells of the workload, all tables alike."""
        request = self.design.request
        energies = (self._variances(exact=exact) * request.marginals.cells)[request.weights > 0]
        return math.fsum(energies.tolist()) + math.fsum(self.form_totals(exact=exact))

    def weighted_variance(self) -> float:
        """The same, exact and with the workload's weights: what strategies are compared by."""
        request = self.design.request
        energies = self.exact_cell_variances * request.marginals.cells * request.weights
        forms = zip(self.form_totals(exact=True), request.workload.form_weights, strict=True)
        return math.fsum(energies[request.weights > 0].tolist()) + math.fsum(total * w for total, w in forms)

    def max_variance(self, *, exact: bool = True, weighted: bool = True) -> float:
        """The largest cell variance of the tables asked for, times their weights if `weighted`."""
        request, variances = self.design.request, self._variances(exact=exact)
        tables = (variances * request.weights if weighted else variances)[request.weights > 0]
        forms = request.weighted_forms
        largest = [float(self.form_variances(f, exact=exact).max()) * (w if weighted else 1.0) for f, w in forms]
        return max([float(tables.max(initial=0.0)), *largest])

    @kept
    def form_totals(self, *, exact: bool) -> list[float]:
        """The expected sum of squared errors over the answers of each form."""
        return [self.form_total(form, exact=exact) for form in self.design.workload.forms]

    def any_margin(self, deviations: Floats) -> Floats:
        """The margins of any combinations of measured numbers: under Laplace noise, safe for every combination.

        Half a step is added to them, whatever their noise: without it a single count would be covered in 79% to 95% of
        cases, depending on where its quantile falls between two integers.
        """
        if self.design.law is GAUSSIAN:
            return self.normal_margin(deviations)
        return deviations * self.any_quantile() + 0.5 * (deviations > 0)

    def any_quantile(self, coverage: float = COVERAGE) -> float:
        """How many standard deviations the noise of any combination of measured numbers stays within."""
        return standard_margin(self.design.law.tail_kurtosis, coverage)

    def normal_margin(self, deviations: Floats) -> Floats:
        """The normal quantile; half a step more where the noise is coarse, nothing where the answer is public."""
        return deviations * standard_margin(0.0, COVERAGE) + 0.5 * self.is_coarse * (deviations > 0)

    @property
    def is_coarse(self) -> bool:
        """Whether some noise is so small that its steps show: half a step is then added to margins."""
        budgets = self.design.budgets
        return self.design.law.is_coarse(budgets[np.isfinite(budgets)])

    def roll_up(self, wanted: Marginal, published: Marginal) -> tuple[Floats, Floats]:
        """Variances and margins of the cells of a table that is summed from a published one."""
        if not self.slabs_are_alike:
            variances = self.cell_variance_table(wanted)
            return variances, self.any_margin(np.sqrt(variances))
        slab = np.zeros(self.design.schema.shape(published))
        slab[tuple(0 if i in wanted else slice(None) for i in published)] = 1.0
        margin = self.sum_margin(published, slab)
        if not self.design.is_consistent:
            return np.asarray(self.sum_variance(published, slab)), np.asarray(margin)
        variances = self.cell_variance_table(wanted)
        first = math.sqrt(self.sum_variance(published, slab))
        return variances, np.sqrt(variances) * (margin / first if first else 0.0)

    def _variances(self, *, exact: bool) -> Floats:
        return self.exact_cell_variances if exact else self.cell_variances(exact=False)
