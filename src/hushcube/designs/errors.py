"""Predicted errors of a plan, before any data exists: variances of sets, residual spaces, cells and sums of cells.

Each kind of plan registers its own [designs/*/errors.py]; totals and maxima follow here for all of them.

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

from hushcube.designs.design import Design
from hushcube.model.form import Form
from hushcube.model.marginal import Marginal
from hushcube.model.noise import gaussian_variance, laplace_variance

Floats = NDArray[np.float64]
Result = TypeVar("Result")


@singledispatch
def cell_variances(design: Design, *, exact: bool) -> Floats:
    """The mean cell variance of each of `plan.request.marginals`."""
    raise NotImplementedError(type(design).__name__)


@singledispatch
def form_variances(design: Design, form: Form, *, exact: bool) -> Floats:
    """The variance of each answer of a form; shape of the form."""
    raise NotImplementedError(type(design).__name__)


@singledispatch
def form_total(design: Design, form: Form, *, exact: bool) -> float:
    """The sum of the variances of all answers of a form; kinds that know it without listing them register."""
    return float(form_variances(design, form, exact=exact).sum())


@singledispatch
def sum_variance(design: Design, marginal: Marginal, weights: Floats) -> float:
    """The exact variance of a weighted sum of the cells of one published marginal; weights of the table's shape."""
    raise NotImplementedError(type(design).__name__)


@singledispatch
def cell_variance_table(design: Design, marginal: Marginal) -> Floats:
    """The exact variance of each cell of a published marginal, or, after least squares, of any subset of one.

    Broadcast to the table where cells are alike: a single number, shape (), where all of them are.
    """
    raise NotImplementedError(type(design).__name__)


def drawn_variances(design: Design, *, exact: bool) -> Floats:
    """The noise variance of the numbers of each set, where budgets are those of the noise as drawn; public: zero."""
    noisy = np.isfinite(design.budgets)
    budgets = np.where(noisy, design.budgets, 1.0)
    if design.law == "laplace":
        drawn = laplace_variance(budgets) if exact else 2 / budgets**2
    else:
        drawn = gaussian_variance(0.5 / budgets) if exact else 0.5 / budgets - design.smoothing
    return np.where(noisy, drawn, 0.0)


def total_variance(design: Design, *, exact: bool) -> float:
    """The expected sum of squared errors over all cells of the workload, all tables alike."""
    variances = exact_cell_variances(design) if exact else cell_variances(design, exact=False)
    marginals, asked = design.request.marginals, design.request.weights > 0
    return math.fsum((variances * marginals.cells)[asked].tolist()) + math.fsum(form_totals(design, exact=exact))


def weighted_variance(design: Design) -> float:
    """The same, exact and with the workload's weights: what strategies are compared by."""
    energies = exact_cell_variances(design) * design.request.marginals.cells * design.request.weights
    forms = zip(form_totals(design, exact=True), design.workload.form_weights, strict=True)
    return math.fsum(energies[design.request.weights > 0].tolist()) + math.fsum(total * w for total, w in forms)


def max_variance(design: Design, *, exact: bool = True, weighted: bool = True) -> float:
    """The largest cell variance of the tables asked for, times their weights unless told otherwise."""
    weights = design.request.weights
    asked = weights > 0
    variances = exact_cell_variances(design) if exact else cell_variances(design, exact=False)
    tables = (variances * weights if weighted else variances)[asked]
    forms = zip(design.workload.forms, design.workload.form_weights, strict=True)
    largest = [float(form_variances(design, f, exact=exact).max()) * (w if weighted else 1.0) for f, w in forms]
    return max([float(tables.max(initial=0.0)), *largest])


def form_totals(design: Design, *, exact: bool) -> list[float]:
    """The expected sum of squared errors over the answers of each form."""
    return once(
        design,
        f"_form_totals_{exact}",
        lambda: [form_total(design, form, exact=exact) for form in design.workload.forms],
    )


def exact_cell_variances(design: Design) -> Floats:
    """`cell_variances(plan, exact=True)`, computed once."""
    return once(design, "_cell_variances", lambda: cell_variances(design, exact=True))


def once(design: Design, name: str, compute: Callable[[], Result]) -> Result:
    """Plans are frozen, so what follows from one is kept beside it."""
    if name not in design.__dict__:
        design.__dict__[name] = compute()
    result: Result = design.__dict__[name]
    return result
