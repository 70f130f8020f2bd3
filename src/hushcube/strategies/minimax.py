"""Budgets that make the largest variance of a cell least: the objective `max`.

minimise over budgets e of a given cost    max_A a_A Var(cell of A)        over the marginals A asked for, weights a_A

A weight multiplies the variance, as in the total: weight 4 asks for half the standard error. A form counts by its worst
answer q, of variance sum_{C <= A} ||P_C q||² phi_C / cells(A); for a cell of A, ||P_C q||² = m_C / cells(A).
With K_CB, the numbers of lattice/basis.py, phi and so the error are one of                [strategies/search/saddle.py]

    each space measured once       phi_C = variance_C / K_CC                         separable
    ordinary least squares         phi_C = sum_B K_CB variance_B / (sum_B K_CB)²     separable
    generalised least squares      phi_C = 1 / sum_B K_CB / variance_B               pooled
    weights of the user's own      phi_A = sum_B of_cells_AB variance_B, one for each answer   separable
    Fourier without recovery       sum_{B <= A} rows_B variance_B / codes(A)²        separable
    tables without recovery        variance_B cells(B) / cells(A), B the smallest table that holds A: all are made
                                   equal, 1 / variance_B ∝ max_{A from B} a_A cells(B) / cells(A)

where variance = 1/(2e) (Gaussian) or 2/e² (Laplace). All but pooled Laplace noise is convex; that is descended on from
several starts. Under replace-one the columns are those of add-remove, as in designs/budgets.py; what is public drops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from hushcube.costs import row_cost as cost
from hushcube.designs.budgets import columns_of
from hushcube.designs.design import Recovery
from hushcube.designs.lattice.weighted import Weighting
from hushcube.designs.request import Request, one_hot, projected
from hushcube.designs.weights import Weights
from hushcube.lattice.basis import Basis, dimensions, kernel
from hushcube.lattice.family import Family
from hushcube.lattice.hadamard import padded
from hushcube.model.arrays import Bools, Floats, Ints
from hushcube.model.form import Form
from hushcube.model.noise import law_of
from hushcube.strategies.search.saddle import Problem, Solution, Sparse, solve

_ROUNDS: Final = 20  # how often the worst answers of forms are added to the problem
_LEAST_SHARE: Final = 1e-6  # of the cost, for the sets that the optimum would leave out: every set must have a budget


def least_maximum(
    request: Request, basis: Basis, measured: Family, recovery: Recovery, s: Floats, start: Floats | None = None
) -> Solution:
    """Budgets for the measured sets (cost 1) whose largest weighted variance is least.

    Descends from the given start, from the optimum for the total (weights s_B on the sets' variances) and from uniform
    budgets, and is worse than none of them, but for a millionth; a convex problem needs only the first.
    """
    public = cost.unchanged_by_replacing(measured) & request.privacy.total_is_public
    budgets = np.ones(len(measured))
    if public.all():
        return Solution(budgets, 0.0, 0.0)
    noisy = measured
    if public.any():
        kept = np.split(~public, measured.starts[1:-1])
        noisy = Family(measured.sizes, [level[keep] for level, keep in zip(measured.levels, kept, strict=True)])
    one_by_one = recovery in ("none", "answers")  # as printed: budgets are for the answers before these agree
    if one_by_one and basis.holds_cells:
        found = _equalised(request, noisy)
    else:
        columns = columns_of(basis, noisy, request.privacy)
        shapes = [law_of(request.privacy).best_budgets(s[~public], columns), np.ones(len(noisy))]
        starts = [shape for shape in (shapes if start is None else [start[~public], *shapes]) if shape.any()]
        starts = [np.maximum(shape, 1e-6 * shape.max()) for shape in starts]
        if isinstance(recovery, Weights):
            of_cells = Weighting(request, measured, recovery).of_cells()[:, ~public]
            found = _best(_weighted(request, of_cells, columns), starts)
        elif one_by_one and basis.has_inverse:
            found = _best(_fourier(request, basis, noisy, columns), starts)
        else:
            known = kernel(basis, measured, public.astype(np.float64), request.spaces)
            live = dimensions(request.spaces) * (known == 0)
            problem = _least_squares(request, basis, noisy, recovery, columns, live)
            found = _with_forms(request, problem, live > 0, starts)
    budgets[~public] = found.budgets
    return replace(found, budgets=budgets)


def _equalised(request: Request, measured: Family) -> Solution:
    """Tables without recovery: every table's worst answer gets the same variance."""
    marginals = request.marginals
    source, fewest = measured.cheapest_holders(marginals, lambda pair: measured.cells[pair.big])
    answered = source >= 0
    needs = np.zeros(len(measured))
    np.maximum.at(needs, source[answered], (cell_weights(request) * fewest / marginals.cells)[answered])
    law = law_of(request.privacy)
    k, unit = law.power, law.formula(np.ones(()))
    budgets = needs ** (1 / k) if needs.any() else np.ones(len(measured))
    value = float(unit * budgets.sum() ** k)
    is_own = bool((fewest == marginals.cells)[answered].all())  # another choice of sources might be better
    return Solution(_floored(budgets, np.ones(len(budgets))), value, value if is_own else 0.0)


def _fourier(request: Request, basis: Basis, measured: Family, columns: Floats) -> Problem:
    """Fourier coefficients without recovery; a form counts as its carrier's cells, with the longest row's weight."""
    marginals = request.marginals
    codes = marginals.product([padded(int(n)) for n in marginals.sizes])
    rows = measured.product(basis.per_axis(basis.rows, measured.sizes))
    law, numbers = law_of(request.privacy), np.arange(len(measured))
    H = Sparse(numbers, numbers, law.formula(np.ones(len(measured))), (len(measured), len(measured)))
    return Problem(_sums(marginals, measured, cell_weights(request) / codes**2, rows), H, columns, law.power)


def _weighted(request: Request, of_cells: Floats, columns: Floats) -> Problem:
    """Weights of the user's own; a form counts as its carrier's cells, with the longest row's weight.

    [designs/lattice/weighted.py]
    """
    law, weights = law_of(request.privacy), cell_weights(request)
    asked = np.flatnonzero((weights > 0) & of_cells.any(axis=1))
    rows, tables = np.nonzero(of_cells[asked])
    each, unit = np.arange(len(asked)), float(law.formula(np.ones(())))
    P = Sparse(each, each, weights[asked], (len(asked), len(asked)))
    H = Sparse(rows, tables, unit * of_cells[asked][rows, tables], (len(asked), len(columns)))
    return Problem(P, H, columns, law.power)


def _least_squares(
    request: Request, basis: Basis, measured: Family, recovery: Recovery, columns: Floats, live: Floats
) -> Problem:
    """The errors of the marginals asked for after least squares; `live`: the dimensions of spaces not known exactly."""
    marginals, spaces = request.marginals, request.spaces
    P = _sums(marginals, spaces, request.weights / marginals.cells**2, live)
    G = _kernel(basis, measured, spaces)
    law = law_of(request.privacy)
    k, unit = law.power, law.formula(np.ones(()))
    if (np.bincount(G.rows) <= 1).all():
        return Problem(P, replace(G, values=unit / G.values), columns, k)
    if recovery == "ols":
        total = G @ np.ones(len(measured))
        return Problem(P, replace(G, values=unit * G.values / total[G.rows] ** 2), columns, k)
    return Problem(P, replace(G, values=G.values / unit), columns, k, live)


def _with_forms(request: Request, problem: Problem, live: Bools, starts: Sequence[Floats]) -> Solution:
    """The worst answer of each form joins the problem until none stands out."""
    forms = list(request.weighted_forms)
    found = _best(problem, starts) if problem.P.shape[0] else Solution(starts[0], 0.0, 0.0)
    for _ in range(_ROUNDS if forms else 0):
        phi = np.where(live, problem.spaces(found.budgets), 0.0)
        worst = [_worst(request, form, weight, phi) for form, weight in forms]
        largest = max(value for value, _, _ in worst) * float(problem.c @ found.budgets) ** problem.k
        if largest <= found.value * (1 + 1e-6):
            break
        for value, columns, values in worst:
            problem = replace(problem, P=problem.P.with_row(columns, values)) if value > 0 else problem
        found = _best(problem, [found.budgets, *starts])
    return found


def _worst(request: Request, form: Form, weight: float, phi: Floats) -> tuple[float, Ints, Floats]:
    """The largest weighted variance of a form's answers, and that answer as a row: the spaces C, ||P_C q||² / cells."""
    shape = form.carrier_shape
    patterns = list(np.ndindex((2,) * len(shape)))
    columns = request.spaces.ids(
        tuple(i for i, kept in zip(form.marginal, inside, strict=True) if kept) for inside in patterns
    )
    scale = weight / math.prod(shape)
    variances = form.combine(projected(scale * phi[columns].reshape((2,) * len(shape)), shape))
    at = int(np.argmax(variances))
    values = [scale * form.combine(projected(one_hot(inside), shape)).flat[at] for inside in patterns]
    keep = phi[columns] > 0
    return float(variances.flat[at]), columns[keep], np.maximum(values, 0.0)[keep]


def _best(problem: Problem, starts: Sequence[Floats]) -> Solution:
    """The best from all starts; a convex problem needs one. Sets that are left out get a little."""
    tried = starts[:1] if problem.has_bound else starts
    found = min((solve(problem, start) for start in tried), key=lambda solution: solution.value)
    budgets = _floored(found.budgets, problem.c)
    return Solution(budgets, problem.value(budgets), found.bound)


def _floored(budgets: Floats, columns: Floats) -> Floats:
    """Budgets of cost 1, or a millionth more, without zeros."""
    return np.maximum(budgets / (columns @ budgets), _LEAST_SHARE / (len(budgets) * columns))


def cell_weights(request: Request) -> Floats:
    """The weights of marginals; a carrier has the weight of its form's longest row, w max ||q||²."""
    result = np.maximum(request.weights, request.least_weights)
    for form, weight in request.weighted_forms:
        at = request.marginals.ids([form.marginal])[0]
        longest = float(form.combine(one_hot((1,) * len(form.marginal))).max())
        result[at] = max(result[at], weight * longest)
    return result


def _sums(marginals: Family, parts: Family, of_marginal: Floats, of_part: Floats) -> Sparse:
    """The matrix of x -> of_marginal_A sum_{C <= A} of_part_C x_C, without rows of zeros."""
    pairs = [(pair.big, pair.small) for pair in marginals.inclusions(parts)]
    rows, columns = (np.concatenate(ids) for ids in zip(*pairs, strict=True))
    values = of_marginal[rows] * of_part[columns]
    keep = values > 0
    present, renumbered = np.unique(rows[keep], return_inverse=True)
    return Sparse(renumbered, columns[keep], values[keep], (len(present), len(parts)))


def _kernel(basis: Basis, measured: Family, spaces: Family) -> Sparse:
    """K_CB as a matrix (spaces, measured).                                                        [lattice/basis.py]"""
    inside, outside = (basis.per_axis(f, measured.sizes) for f in (basis.inside, basis.outside))
    if not outside.any():  # a set sees its own space alone
        own = np.concatenate([spaces.find(level) for level in measured.levels])
        pairs = [(own, np.arange(len(measured)), measured.product(inside))]
    else:
        pairs = [(p.small, p.big, measured.pair_products(p, inside, outside)) for p in measured.inclusions(spaces)]
    rows, columns, values = (np.concatenate(parts) for parts in zip(*pairs, strict=True))
    keep = (values > 0) & (rows >= 0)
    rows, columns, values = rows[keep], columns[keep], values[keep]
    return Sparse(rows, columns, values / measured.cells[columns], (len(spaces), len(measured)))
