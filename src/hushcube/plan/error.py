"""Predicted errors of a plan, before any data exists: variances of sets, residual spaces, cells and sums of cells.

Each kind of plan registers its own [plan/kinds/*_errors.py]; totals and maxima follow here for all of them.

`exact=False` uses the continuous formulas 2/beta² and 1/(2 beta) (under `smoothing`, of the continuous mechanism);
`exact=True` the true variances of the discrete noise that is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import singledispatch
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.noise import gaussian_variance, laplace_variance
from hushcube.plan.plan import Plan

Floats = NDArray[np.float64]
Result = TypeVar("Result")


@singledispatch
def cell_variances(plan: Plan, *, exact: bool) -> Floats:
    """The mean cell variance of each of `plan.request.marginals`."""
    raise NotImplementedError(type(plan).__name__)


@singledispatch
def form_variances(plan: Plan, form: Form, *, exact: bool) -> Floats:
    """The variance of each answer of a form; shape of the form."""
    raise NotImplementedError(type(plan).__name__)


@singledispatch
def form_total(plan: Plan, form: Form, *, exact: bool) -> float:
    """The sum of the variances of all answers of a form; kinds that know it without listing them register."""
    return float(form_variances(plan, form, exact=exact).sum())


@singledispatch
def sum_variance(plan: Plan, marginal: Marginal, weights: Floats) -> float:
    """The exact variance of a weighted sum of the cells of one published marginal; weights of the table's shape."""
    raise NotImplementedError(type(plan).__name__)


@singledispatch
def cell_variance_table(plan: Plan, marginal: Marginal) -> Floats:
    """The exact variance of each cell of a published marginal, or, after least squares, of any subset of one.

    Broadcast to the table where cells are alike: a single number, shape (), where all of them are.
    """
    raise NotImplementedError(type(plan).__name__)


def drawn_variances(plan: Plan, *, exact: bool) -> Floats:
    """The noise variance of the numbers of each set, where budgets are those of the noise as drawn; public: zero."""
    noisy = np.isfinite(plan.budgets)
    budgets = np.where(noisy, plan.budgets, 1.0)
    if plan.law == "laplace":
        drawn = laplace_variance(budgets) if exact else 2 / budgets**2
    else:
        drawn = gaussian_variance(0.5 / budgets) if exact else 0.5 / budgets - plan.smoothing
    return np.where(noisy, drawn, 0.0)


def total_variance(plan: Plan, *, exact: bool) -> float:
    """The expected sum of squared errors over all cells of the workload, all tables alike."""
    variances = exact_cell_variances(plan) if exact else cell_variances(plan, exact=False)
    marginals, asked = plan.request.marginals, plan.request.weights > 0
    return math.fsum((variances * marginals.cells)[asked].tolist()) + math.fsum(form_totals(plan, exact=exact))


def weighted_variance(plan: Plan) -> float:
    """The same, exact and with the workload's weights: what strategies are compared by."""
    energies = exact_cell_variances(plan) * plan.request.marginals.cells * plan.request.weights
    forms = zip(form_totals(plan, exact=True), plan.workload.form_weights, strict=True)
    return math.fsum(energies[plan.request.weights > 0].tolist()) + math.fsum(total * w for total, w in forms)


def max_variance(plan: Plan, *, exact: bool = True, weighted: bool = True) -> float:
    """The largest cell variance of the tables asked for, times their weights unless told otherwise."""
    weights = plan.request.weights
    asked = weights > 0
    variances = exact_cell_variances(plan) if exact else cell_variances(plan, exact=False)
    tables = (variances * weights if weighted else variances)[asked]
    forms = zip(plan.workload.forms, plan.workload.form_weights, strict=True)
    largest = [float(form_variances(plan, f, exact=exact).max()) * (w if weighted else 1.0) for f, w in forms]
    return max([float(tables.max(initial=0.0)), *largest])


def form_totals(plan: Plan, *, exact: bool) -> list[float]:
    """The expected sum of squared errors over the answers of each form."""
    return once(
        plan,
        f"_form_totals_{exact}",
        lambda: [form_total(plan, form, exact=exact) for form in plan.workload.forms],
    )


def exact_cell_variances(plan: Plan) -> Floats:
    """`cell_variances(plan, exact=True)`, computed once."""
    return once(plan, "_cell_variances", lambda: cell_variances(plan, exact=True))


def once(plan: Plan, name: str, compute: Callable[[], Result]) -> Result:
    """Plans are frozen, so what follows from one is kept beside it."""
    if name not in plan.__dict__:
        plan.__dict__[name] = compute()
    result: Result = plan.__dict__[name]
    return result
