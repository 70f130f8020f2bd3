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
"""

from __future__ import annotations

import math

import numpy as np

from hushcube.costs import calibrate
from hushcube.designs.request import Request
from hushcube.lattice.variances import dimensions
from hushcube.model.noise import gaussian_variance, laplace_variance
from hushcube.model.privacy import Privacy


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
    if request.options.objective != "total" or request.workload.forms or request.schema.is_nested:
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


def one_number(privacy: Privacy) -> float:
    """The variance of a number that one row moves by 1 and that has the whole budget of a row, by the best proof."""
    allowed = max(calibrate.row_budget(privacy, proof) for proof in calibrate.proofs(privacy, tables=1))
    if privacy.is_pure:
        return float(laplace_variance(np.array(float(allowed))))
    return float(gaussian_variance(np.array(0.5 / float(allowed))))
