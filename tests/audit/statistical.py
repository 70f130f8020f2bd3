"""Lower bounds on epsilon from many releases with the noise of the operating system.

Two neighbouring tables, and an event that is likely on one and unlikely on the other. If it is seen in shares p' and p
of the releases, then epsilon >= ln((p' - delta) / p); with Clopper and Pearson's bounds in place of the shares this
holds but for a chance that is chosen. Cells of a table have independent noise: a release of many cells, each in the
first person's place, is as many releases of one.
"""

import math
import tempfile
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from scipy.optimize import brentq
from scipy.stats import beta

from audit.progress import tell
from hushcube import Attribute, Schema, plan, release
from hushcube.model.measure import Measure
from hushcube.private import blocks
from hushcube.private.adaptive.paths import NoisePaths
from hushcube.strategies.adaptive import IReduct

CELLS = 400_000
RELEASES = {"short": 2, "long": 4}
"""On each of the two tables; to folders in the long form."""
FALSE_ALARM = 1e-6
WEAKER = 0.95
"""What is left of the noise in the mechanism that must be caught."""

COLUMNS = ["guarantee", "pairs of cells", "claim", "lower bound", "lower bound with 5% less noise"]
ATTACKED = """\
The whole way from rows to the published folder, with noise from the operating system, in every way to count."""
HOW = """\
An event is looked for in releases of two neighbouring tables: the one whose probabilities differ by the factor that
the guarantee allows. Clopper and Pearson's bounds of the two shares bound epsilon from below (rho through the
discrete Gaussian noise that would explain the shares). The bound must lie between 0.9 of the claim and the claim.
The same on noise of 5% less scale must find more than the claim: so much would be noticed."""
ALARMS = """\
a bound above the claim has a chance of at most 10^-6 in each line. The other errors, a bound below 0.9 of the claim
and a weaker noise that is not found, are five or more standard deviations away: less than 10^-6 each."""


@dataclass(frozen=True)
class Case:
    """What is released on each of two neighbouring tables, and the event that tells them apart."""

    name: str
    guarantee: float
    """Epsilon, or rho."""
    publish: Callable
    """From a folder, if there is to be one, and who is in every cell's place (0 or 1), to noisy integers of cells."""
    event: Callable
    bound: Callable
    """From a lower bound of p' and an upper bound of p to a lower bound of the guarantee."""


def measured(decided, folder, data):
    """The noisy integers that a release holds, but for a public total."""
    published = release(decided, data, out=folder)
    return [values.ravel() for values in published.source.measurement().values if values.size > 1]


def parts_measured(decided, folder, data):
    """Those of a cube: of the counts, and of the sums."""
    published = release(decided, data, out=folder)
    parts = published.parts.values()
    return [values.ravel() for part in parts for values in part.source.measurement().values]


def rows(cells, repeated, *, value=None):
    """A table with so many rows in each cell."""
    codes = np.repeat(np.arange(cells), repeated)
    return pa.table({"a": codes} if value is None else {"a": codes, "v": np.full(len(codes), value)})


def ratio(delta=0.0):
    """ln((p' - delta) / p)."""
    return lambda high, low: math.log(max(high - delta, 1e-300) / low)


def gaussian_rho(high, low):
    """rho = 1/2v of the discrete Gaussian noise, on a number that moves by 1, of which P(X = 0) = p' - p."""

    def at_zero(v):
        reach = math.ceil(12 * math.sqrt(v)) + 1
        return 1 / np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * v)).sum()

    return 1 / (2 * brentq(lambda v: at_zero(v) - (high - low), 0.05, 1e4))


def cases():
    """Each guarantee and each way to count, with the event that shows the loss best."""
    schema = Schema((Attribute(name="a", codes=CELLS),), "cells")
    sums = Schema(schema.attributes, "sums", measures=(Measure(name="v", bounds=(0, 3)),))
    identity = {"neighbours": "add-remove", "strategy": "identity"}

    def count(decided, repeated):
        return lambda folder, people: measured(decided, folder, rows(CELLS, repeated * people))

    one = plan(schema, "1-way", epsilon=1, **identity)
    yield Case("epsilon, one row", 1, count(one, 1), lambda y: y[0] >= 1, ratio())

    three = plan(schema, "1-way", epsilon=1, rows_per_person=3, **identity)
    yield Case("epsilon, three rows per person", 1, count(three, 3), lambda y: y[0] >= 3, ratio())

    moved = plan(schema, "1-way", epsilon=1, neighbours="replace-one", strategy="identity")

    def replaced(folder, people):
        """The person is in the first cell of a pair, or in the second one."""
        return measured(moved, folder, pa.table({"a": np.arange(CELLS // 2) * 2 + people}))

    def in_second(y):
        pairs = y[0].reshape(-1, 2)
        return (pairs[:, 0] <= 0) & (pairs[:, 1] >= 1)

    yield Case("epsilon, replace-one", 1, replaced, in_second, ratio())

    cube = plan(sums, "1-way", measures="avg(v)", epsilon=1, **identity)

    def summed(folder, people):
        return parts_measured(cube, folder, rows(CELLS, people, value=9e9))  # clipped to 3

    yield Case("epsilon, count and sum", 1, summed, lambda y: (y[0] >= 1) & (y[1] >= 3), ratio())

    delta = 0.1
    approximate = plan(schema, "1-way", epsilon=1, delta=str(delta), **identity)
    least = math.floor(0.5 / float(approximate.count.budgets[0]) + 0.5) + 1  # from there on the loss is above epsilon
    yield Case("(epsilon, delta)", 1, count(approximate, 1), lambda y: y[0] >= least, ratio(delta))

    concentrated = plan(schema, "1-way", rho="0.5", **identity)
    yield Case("rho-zCDP", 0.5, count(concentrated, 1), lambda y: y[0] >= 1, gaussian_rho)

    ireduct = IReduct(sanity_bound=1, lambda_max=2, lambda_factor="0.99")
    careful = plan(schema, "1-way", epsilon=1, neighbours="add-remove", strategy=ireduct)
    yield Case("epsilon, ireduct", 1, count(careful, 1), lambda y: y[0] >= 1, ratio())


def lower_bound(case, scale):
    """What the guarantee is at least, but for a chance of a false alarm; and on how many pairs of cells it rests."""
    seen = [0, 0]
    trials = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(RELEASES[scale]):
            for people in (0, 1):
                out = None if scale == "short" else Path(folder) / f"{number}-{people}"
                happened = case.event(case.publish(out, people))
                seen[people] += int(happened.sum())
            trials += len(happened)
    half = FALSE_ALARM / 2  # for each of two shares
    high = beta.ppf(half, seen[1], trials - seen[1] + 1)
    low = beta.ppf(1 - half, seen[0] + 1, trials - seen[0])
    return case.bound(high, low), trials


@contextmanager
def weaker_noise():
    """Noise of 5% less scale than was asked for, drawn by the same samplers."""
    exact, init = blocks.EXACT, NoisePaths.__init__
    share = Fraction(str(WEAKER))
    weaker = blocks.Noise(
        lambda rates, *rest: exact.laplace([rate / share for rate in rates], *rest),
        lambda sizes, *rest: exact.gaussian([v * share**2 for v in sizes], *rest),
    )
    with (
        patch.object(blocks, "EXACT", weaker),
        patch.object(NoisePaths, "__init__", lambda self, grid: init(self, SimpleNamespace(rates=grid.rates / WEAKER))),
    ):
        yield


def figures(scale):
    """Bound every guarantee from below, as it is and with too little noise."""
    lines, broken = [], []
    for case in cases():
        found, trials = lower_bound(case, scale)
        with weaker_noise():
            weak, _ = lower_bound(case, scale)
        lines.append([case.name, trials, case.guarantee, found, weak])
        tell(scale, f"{case.name}: {found:.4f} of {case.guarantee}; with 5% less noise {weak:.4f}")
        if not 0.9 * case.guarantee <= found <= case.guarantee < weak:
            broken.append(case.name)
    return {
        "title": "Lower bounds on epsilon",
        "attacked": ATTACKED,
        "how": HOW,
        "false_alarms": ALARMS,
        "figures": {"draws of the event": sum(4 * line[1] for line in lines)},
        "table": {"columns": COLUMNS, "rows": lines},
        "broken": broken,
        "violations": len(broken),
    }
