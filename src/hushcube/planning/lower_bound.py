"""The least total variance that any plan could have: how far a plan is from the best possible one.

Measure integer rows s_i with noise of variance v_i, and answer by unbiased linear recovery. Whiten the rows: the Gram
matrix of t_i = s_i / sqrt(v_i) has a mean eigenvalue mu_B on the residual space V_B, and the error of a workload of
marginals is at least sum_B c_B / mu_B, c_B = N k_B, by Jensen's inequality.                         [docs/maths.md, 7]
What the guarantee allows bounds the trace. With a row's whole budget on a single number, that number has the variance

    v = laplace_variance(epsilon)    or    gaussian_variance(1 / 2 rho),

and any other row has at least v for each unit of squared norm that it spends: an L1 norm is at least the L2 norm, and
the discrete laws, whose variances fall below the continuous ones as they become narrow, are never narrower than that.

    add-remove     every column of the t_i has a squared norm of at most 1/v, so sum_B mu_B m_B / N <= 1/v
    replace-one    so has every difference of two columns; the mean over all pairs is 2 sum_{B != 0} mu_B m_B / (N - 1)

and Cauchy-Schwarz gives, with G = (sum_B sqrt(k_B m_B))² over the spaces that are not public,

    total variance >= v G            total variance >= v G 2N / (N - 1)

N counts the cells over the attributes of the workload alone: other columns only add constraints. Under add-remove and
rho, `residual` with optimal budgets reaches the bound; for pure epsilon it is far below what any known plan has.

A sharper bound holds among plans that measure tables of counts, which is what nearly all good plans for pure epsilon
do. Give the table A the share p_A of the budget, sum_A p_A = 1; no discrete law is narrower than v / p_A², so

    total variance >= v sum_B k_B / K_B,    K_B = sum_{A >= B} p_A² / cells(A) <= (sum_{A >= B} p_A / sqrt(cells(A)))²

again because an L2 norm is at most the L1 norm; here it costs little, since good plans see most spaces in few tables.
The right side is convex in p, and so has a certificate. As 1/x² >= 3/y² - 2x/y³, every y > 0 gives, at its best scale,

    total variance >= v (sum_B k_B / y_B²)³ / (max_A cells(A)^-1/2 sum_{B <= A} k_B / y_B³)²

The maximum is over all sets A of the workload's attributes, by subset sums; other attributes only make tables larger.
By Cauchy-Schwarz the best of these is never below the first bound. v is that of epsilon, or of epsilon / 2 under
replace-one, where a row leaves one cell of every table and enters another.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hushcube.costs import calibrate
from hushcube.designs.request import Request
from hushcube.lattice.basis import dimensions
from hushcube.model.arrays import Floats, Ints
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy
from hushcube.strategies.search.coverage import MOST_ATTRIBUTES, cells_of_all, sums_inside

_MOST_STEPS: Final = 1000
_MOST_NUMBERS: Final = 2**24  # tables times steps: some tenths of a second
_CLOSE: Final = 1e-3  # a bound this near to the best of its kind will do
_ROUNDING: Final = 1e-9  # what floats may lose in the sums


def least_total(request: Request) -> float | None:
    """No plan for a workload of marginals has less (weighted) total variance; None where no bound is known.

    >>> from hushcube.model.attribute import Attribute
    >>> from hushcube.model.schema import Schema
    >>> from hushcube.model.workload import Workload
    >>> schema = Schema(tuple(Attribute(name=name, codes=n) for name, n in (("a", 2), ("b", 3), ("c", 4))))
    >>> asked = Workload.parse("2-way", schema)
    >>> privacy = Privacy.of(rho="0.5", neighbours="add-remove")
    >>> round(least_total(Request(asked, privacy)), 4)  # 50.8504 times the variance of a single number
    50.8504
    """
    if request.objective != "total" or request.workload.forms or request.schema.is_nested:
        return None
    privacy, spaces = request.privacy, request.spaces
    roots = np.sqrt(request.space_weights * dimensions(spaces))
    if not privacy.total_is_public:
        return one_number(privacy) * math.fsum(roots.tolist()) ** 2
    roots[: len(spaces.levels[0])] = 0.0  # the total is known
    asked = {i for marginal in request.workload.marginals for i in marginal}
    cells = math.prod(request.schema.sizes[i] for i in asked)
    pairs = 2 * (cells / (cells - 1)) if cells > 1 else 0.0
    return one_number(privacy) * pairs * math.fsum(roots.tolist()) ** 2


def least_total_of_tables(request: Request) -> float | None:
    """No plan that measures tables of counts has less (weighted) total variance; None where no such bound is known.

    It is known for pure epsilon and workloads of marginals over at most 16 attributes.

    >>> from hushcube.model.attribute import Attribute
    >>> from hushcube.model.schema import Schema
    >>> from hushcube.model.workload import Workload
    >>> schema = Schema(tuple(Attribute(name=f"a{i}", codes=2) for i in range(16)))
    >>> request = Request(Workload.parse("2-way", schema), Privacy.of(epsilon="0.01", neighbours="add-remove"))
    >>> round(least_total_of_tables(request) / 1e4, -3)  # at epsilon 1; 510,924 is reached
    304000.0
    """
    if least_total(request) is None or not request.privacy.is_pure:
        return None
    public = request.privacy.total_is_public
    v = one_number(request.privacy, moved=2 if public else 1)
    weights = {B: k for B, k in zip(request.spaces, request.space_weights.tolist(), strict=True) if k > 0}
    if public:
        weights.pop((), None)
    if not weights:
        return 0.0
    attributes = sorted({i for B in weights for i in B})
    if len(attributes) > MOST_ATTRIBUTES:
        return None
    bit = {i: 1 << place for place, i in enumerate(attributes)}
    masks = np.array([sum(bit[i] for i in B) for B in weights], np.int64)
    cells = cells_of_all([request.schema.sizes[i] for i in attributes])
    return v * _least_of_tables(masks, np.array(list(weights.values())), 1 / np.sqrt(cells))


def _least_of_tables(spaces: Ints, k: Floats, roots: Floats) -> float:
    """The best certificate found on the way to the least of sum_B k_B / (sum_{A >= B} p_A roots_A)².

    Shares of tables that help more than the average grow; y is what they come to.
    """
    p = np.full(len(roots), 1 / len(roots))
    best = 0.0
    for _ in range(min(_MOST_STEPS, _MOST_NUMBERS // len(roots))):
        y = sums_inside((p * roots)[::-1])[::-1][spaces]  # over supersets
        error = float((k / y**2).sum())
        help_of = np.zeros(len(roots))
        help_of[spaces] = k / y**3
        help_of = sums_inside(help_of) * roots / error  # sum_A p_A help_A = 1
        most = float(help_of.max(initial=1.0))
        best = max(best, error / most**2)
        if best >= error * (1 - _CLOSE):
            break
        p *= np.cbrt(help_of**2)
        p /= p.sum()
    return best * (1 - _ROUNDING)


def one_number(privacy: Privacy, *, moved: int = 1) -> float:
    """The variance of as many numbers as one row moves by 1, which have its whole budget, by the best proof."""
    allowed = max(calibrate.row_budget(privacy, proof) for proof in calibrate.proofs(privacy, tables=1)) / moved
    return float(law_of(privacy).variance(np.array(float(allowed))))
