"""The total variance of every strategy on four workloads: the table that the papers' claims are judged by.

Each row is computed by the product's own planners and stands beside the value that was published for it, in the digits
that were published. Rows with closed-form budgets must agree; rows whose budgets or tables are found by an optimiser
must be at least as good, since another optimiser may stop elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np
from scipy.optimize import minimize
from tests.populations import ADULT8

from hushcube.designs.request import Request
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.strategies import REGISTRY
from hushcube.strategies.search.local import affine_plane, known_designs
from hushcube.strategies.search.supports import UNSEEN, SupportProblem, evenly, optimise_own_tables

TOLERANCE = 1e-3
BINARY16 = Schema(tuple(Attribute(name=f"a{i}", codes=2) for i in range(16)), "16 binary attributes")
COLUMNS = {
    "Adult-8, 2-way": (ADULT8, "2-way"),
    "Adult-8, 1..3-way": (ADULT8, "1..3-way"),
    "16 binary, 2-way": (BINARY16, "2-way"),
    "16 binary, 1..3-way": (BINARY16, "1..3-way"),
}


@dataclass(frozen=True)
class Total:
    """A total variance, and how many sets are measured for it."""

    value: float
    sets: int


@dataclass(frozen=True)
class Row:
    """A strategy: the published totals, one for each column or none, and the function that finds ours."""

    name: str
    published: tuple[str | None, ...]
    find: Callable[[Request], Total]
    searched: bool = False
    """Found by an optimiser: ours must be at least as good, not equal."""
    slow: bool = False
    delta: str | None = None

    def ours(self, column):
        """Our total for a column, by its number."""
        return self.find(request(column, self.delta))

    def agrees(self, column, value):
        """Whether a total is what was published: within 0.1% and half a unit of the last printed digit."""
        printed = float(self.published[column])
        allowed = TOLERANCE * printed + half_unit(self.published[column])
        return value <= printed + allowed and (self.searched or value >= printed - allowed)


def half_unit(printed):
    """Half a unit of the last digit of a number such as 1.016e8."""
    mantissa, _, exponent = printed.partition("e")
    return 0.5 * 10.0 ** (int(exponent) - len(mantissa.partition(".")[2]))


@cache
def request(column, delta=None):
    schema, words = list(COLUMNS.values())[column]
    privacy = Privacy.of(epsilon=1, delta=delta, neighbours="add-remove")
    return Request(Workload.parse(words, schema), privacy)


def make_plan(request, strategy, budgets, recovery):
    """One variant of a strategy."""
    return REGISTRY[strategy].plan(request, budgets, recovery)


def planned(strategy, budgets, recovery):
    """The total of one variant, by the continuous formulas."""

    def find(request):
        plan = make_plan(request, strategy, budgets, recovery)
        return Total(plan.errors.total_variance(exact=False), plan.groups)

    return find


def of_support(support):
    return Total(support.error, len(support.sets))


def own_tables(request):
    """The workload's own tables, budgets by descent."""
    return of_support(optimise_own_tables(request, steps=400))


def bmax_tables(request):
    """The tables that bmax measures, budgets by descent."""
    plan = make_plan(request, "bmax", "uniform", "gls")
    return of_support(SupportProblem(request).optimise(evenly([tuple(plan.measured)]), steps=400)[0])


def one_start(request):
    """Descend once, from equal budgets on all marginals: where that stops depends on the optimiser, here scipy's."""
    problem = SupportProblem(request)
    d = len(problem.sizes)
    sets = [s for k in range(d + 1) for s in combinations(range(d), k)]
    M, k = problem.matrix(sets), problem.k

    def objective(
        t,
    ):  # log F and its gradient                                           [strategies/search/supports.py]
        e = np.exp(t - t.max())
        K = np.maximum(e**2 @ M, UNSEEN)  # steps that are much too long are tried too
        E = (k / K).sum()
        return math.log(2 * e.sum() ** 2 * E), 2 * e / e.sum() - 2 * e**2 * (M @ (k / K**2)) / E

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-14, "gtol": 1e-9}
    found = minimize(objective, np.zeros(len(sets)), jac=True, method="L-BFGS-B", options=options)
    return of_support(problem.optimise([(tuple(sets), found.x)], steps=0)[0])


def designed(request):
    """Equal budgets on a block design: the affine plane of order 4, or the planes of AG(3, 2) with points doubled."""
    if max(map(len, request.workload.marginals)) == 2:
        blocks = affine_plane(4).blocks
    else:
        planes = next(design for design in known_designs(3, 8) if design.name == "planes(3)")
        blocks = [tuple(sorted(i for p in block for i in (2 * p, 2 * p + 1))) for block in planes.blocks]
    return of_support(SupportProblem(request).optimise(evenly([tuple(blocks)]), steps=0)[0])


ROWS = (
    Row("I", ("1.016e8", "3.339e8", "1.573e7", "9.123e7"), planned("identity", "uniform", "none")),
    Row("Q uniform", ("2.481e6", "3.936e8", "1.382e7", "4.836e9"), planned("workload", "uniform", "none")),
    Row("Q uniform + GLS", ("1.930e6", "2.470e8", "3.946e6", "6.753e8"), planned("workload", "uniform", "gls")),
    Row("Q+", ("1.881e6", "2.144e8", "1.382e7", "4.712e9"), planned("workload", "optimal", "none")),
    Row("Q+ + GLS", ("1.337e6", "1.028e8", "3.946e6", "6.239e8"), planned("workload", "optimal", "gls")),
    Row("L1 weights on workload only + GLS", ("1.310e6", "6.182e7", "3.946e6", "4.520e8"), own_tables, searched=True),
    Row("F uniform", ("1.537e8", "1.079e11", "4.505e6", "6.762e8"), planned("fourier", "uniform", "none")),
    Row("F+", ("8.983e7", "3.185e10", "2.221e6", "2.176e8"), planned("fourier", "optimal", "none")),
    Row("native residual", ("1.301e7", "2.039e9", "7.365e6", "1.259e9"), planned("residual", "optimal", "none")),
    Row("D BMax, K_part", ("2.481e6", "1.167e8", "2.031e6", "1.253e8"), planned("bmax", "uniform", "none")),
    Row("D BMax + GLS", ("1.930e6", "6.903e7", "6.702e5", "2.551e7"), planned("bmax", "uniform", "gls")),
    Row("BMax sets, L1 weights, GLS", ("1.310e6", "4.412e7", "6.591e5", "2.425e7"), bmax_tables, searched=True),
    Row("L1 one start (uniform on all 256)", ("1.309e6", "4.831e7", None, None), one_start, searched=True),
    Row(
        "L1 multi-start supports + GLS: covering",
        ("1.026e6", "2.925e7", "6.35e5", "2.03e7"),
        planned("covering", "optimal", "gls"),
        searched=True,
        slow=True,
    ),
    Row("algebraic designs", (None, None, "5.568e5", "1.857e7"), designed),
    Row(
        "(1, 1e-6)-DP Gaussian: residual",
        ("4.20e5", "1.05e7", "1.66e5", "3.53e6"),
        planned("residual", "optimal", "gls"),
        delta="1e-6",
    ),
)


def show(value):
    """A total in six digits, as the published ones are written.

    >>> show(101606400.0)
    '1.01606e8'
    """
    mantissa, exponent = f"{value:.5e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def main(slow=True):
    """One list of rows for each column."""
    result = {}
    for column, title in enumerate(COLUMNS):
        result[title] = []
        for row in ROWS:
            if row.published[column] is None or (row.slow and not slow):
                continue
            found = row.ours(column)
            printed = row.published[column]
            result[title].append(
                {
                    "strategy": row.name,
                    "published": printed,
                    "ours": show(found.value),
                    "ours over published": f"{100 * (found.value / float(printed) - 1):+.2f}%",
                    "sets measured": found.sets,
                }
            )
            print(title, "|", *result[title][-1].values(), "" if row.agrees(column, found.value) else "!!!", flush=True)
    return result
