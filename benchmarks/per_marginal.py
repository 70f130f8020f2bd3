"""The expected noise per marginal of each strategy on d binary attributes, all k-way: Table I of the main paper.

The paper's measure is E ||C x - C~ x||_1, the sum over the cells of a marginal of the expected absolute error, here
averaged over the marginals. It gives bounds without constants; these are the numbers, at epsilon = 1, add-remove.

A cell's error is a sum of independent Laplace terms of scales s_i, so that exactly

    E |X| = (2/pi) int_0^inf (1 - prod_i 1 / (1 + s_i² t²)) / t² dt,

and of Gaussian noise E |X| = sqrt(2/pi) times its standard deviation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from benchmarks.totals import make_plan
from hushcube.designs.request import Request
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

DIMENSIONS = (8, 10, 12, 14, 16)
ORDERS = (1, 2, 3)
DELTA = "1e-6"
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


@dataclass(frozen=True)
class Row:
    """A strategy, and the bound of Table I without its constant and its factors in epsilon and delta."""

    name: str
    variant: tuple[str, str, str]
    bound: Callable[[int, int], float] | None = None
    symmetric: bool = True
    """Whether all marginals are treated alike."""


def coefficients(d, k):
    """How many Fourier coefficients all k-way marginals need. The paper's caption has C(d, k) in the summand."""
    return sum(math.comb(d, i) for i in range(k + 1))


PURE = (
    Row("I", ("identity", "optimal", "gls"), lambda d, k: 2 ** ((d + k) / 2)),
    Row("Q", ("workload", "optimal", "none"), lambda d, k: 2**k * math.comb(d, k)),
    Row("F", ("fourier", "uniform", "none"), lambda d, k: coefficients(d, k) * 2 ** (k / 2)),
    Row("F+", ("fourier", "optimal", "none"), lambda d, k: k * math.sqrt(math.comb(d, k) * math.comb(d + k, k))),
    Row("residual", ("residual", "optimal", "none")),
    Row("bmax", ("bmax", "uniform", "gls"), symmetric=False),
    Row("covering", ("covering", "optimal", "gls"), symmetric=False),
)
GAUSSIAN = (
    Row("I", ("identity", "optimal", "gls"), lambda d, k: 2 ** ((d + k) / 2)),
    Row("Q", ("workload", "optimal", "none"), lambda d, k: 2**k * math.sqrt(math.comb(d, k))),
    Row("F", ("fourier", "uniform", "none"), lambda d, k: math.sqrt(2**k * coefficients(d, k))),
    Row("F+", ("fourier", "optimal", "none"), lambda d, k: math.sqrt(k * math.comb(d + k, k))),
    Row("residual", ("residual", "optimal", "none")),
)


def lower_bound(d, k):
    """Omega~(sqrt(C(d, k)) / epsilon) for every private algorithm, without its constant and logarithms."""
    return math.sqrt(math.comb(d, k))


def noise(row, d, k, delta=None):
    """The expected noise per marginal, all k-way of d binary attributes."""
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=2) for i in range(d)))
    privacy = Privacy.of(epsilon=1, delta=delta, neighbours="add-remove")
    request = Request(Workload.parse(f"{k}-way", schema), privacy, effort="low")
    plan = make_plan(request, *row.variant)
    variances = plan.errors.cell_variances(exact=False)
    if not privacy.is_pure:
        return 2**k * math.sqrt(2 / math.pi) * float(np.sqrt(variances).mean())
    marginals = list(request.marginals)[: 1 if row.symmetric else None]
    return float(np.mean([2**k * absolute(*terms(plan, m)) for m in marginals]))


def absolute(counts, scales):
    """E |X| of a sum of Laplace terms; with t = tan u the integrand is (1 - phi) / sin² u, smooth on (0, pi/2).

    >>> round(absolute(np.array([1.0]), np.array([3.0])), 9)
    3.0
    """
    deviation = math.sqrt(float((counts * 2 * scales**2).sum()))
    u = (_NODES + 1) * math.pi / 4
    squares = (scales / deviation)[:, None] ** 2 * np.tan(u) ** 2
    phi = np.exp(-(counts[:, None] * np.log1p(squares)).sum(axis=0))
    return deviation * float(_WEIGHTS @ ((1 - phi) / np.sin(u) ** 2)) / 2


def terms(plan, marginal):
    """The Laplace terms of a cell of a marginal of binary attributes: how many of which scale."""
    k = len(marginal)
    scales = 1 / plan.budgets
    if plan.basis.name == "marginal" and plan.recovery == "none":
        return np.ones(1), scales[plan.measured.ids([marginal])]
    if plan.basis.name != "marginal":  # coefficients, or the cells of centred tables: each set inside counts 2^-k
        inside = plan.measured.ids(subsets(marginal))
        rows = plan.measured.product(plan.basis.per_axis(plan.basis.rows, plan.measured.sizes))
        return rows[inside], scales[inside] / 2**k
    return _least_squares(plan, marginal)


def _least_squares(plan, marginal):
    """A cell of table C that agrees with the answer's cell on M, shared = both's attributes, has the weight

    w_M = 2^-k sum_{B <= shared} share_CB (-1)^|B - M|,   share_CB = (e_C² / cells(C)) / sum_{C' >= B} (the same of C')
    """
    k, measured = len(marginal), plan.measured
    precision = plan.budgets**2 / measured.cells
    spaces = plan.request.spaces
    totals = dict(zip(spaces, measured.sum_over_supersets(spaces, precision).tolist(), strict=True))
    counts, scales = [], []
    for c, table in enumerate(measured):
        shared = tuple(i for i in marginal if i in table)
        w = np.array([precision[c] / totals[B] for B in subsets(shared)])
        for axis in range(len(shared)):
            pairs = w.reshape(-1, 2, 1 << axis)
            w = np.stack((pairs[:, 0] - pairs[:, 1], pairs[:, 0] + pairs[:, 1]), axis=1).ravel()
        scales.append(np.abs(w) / 2**k / plan.budgets[c])
        counts.append(np.full(len(w), 2.0 ** (len(table) - len(shared))))
    return np.concatenate(counts), np.concatenate(scales)


def subsets(items):
    """In the order of bit masks."""
    return [tuple(item for at, item in enumerate(items) if mask >> at & 1) for mask in range(1 << len(items))]


def growth(values):
    return f"{values[-1] / values[0]:.3g}×"


def show(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main():
    """For each guarantee and order, a list of rows."""
    result = {}
    for law, rows, delta in (("epsilon = 1", PURE, None), (f"epsilon = 1, delta = {DELTA}", GAUSSIAN, DELTA)):
        for k in ORDERS:
            table = result[f"{law}, {k}-way"] = []
            for row in rows:
                values = [noise(row, d, k, delta) for d in DIMENSIONS]
                bounds = [row.bound(d, k) for d in DIMENSIONS] if row.bound else None
                table.append(_line(row.name, values, growth(bounds) if bounds else ""))
                print(law, k, table[-1], flush=True)
            limits = [lower_bound(d, k) for d in DIMENSIONS]
            table.append(_line("lower bound, up to a constant", limits, growth(limits)))
    return result


def _line(name, values, bound):
    cells = {f"d = {d}": show(value) for d, value in zip(DIMENSIONS, values, strict=True)}
    return {"strategy": name, **cells, "grows by": growth(values), "bound grows by": bound}
