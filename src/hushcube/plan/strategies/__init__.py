"""One strategy, one file. Each says whether it applies (`accepts`) and what to measure (`plan`).

`REGISTRY` is what `--strategy all` compares; a new strategy is added there and tested by the suite that is in place.
`ADAPTIVE` are the methods for small relative errors, which decide while answers come in; `ALL` are both.
"""

from __future__ import annotations

from typing import Final

from hushcube.errors import PlanError
from hushcube.plan.plan import Plan
from hushcube.plan.strategies import (
    all_cuboids,
    base,
    bmax,
    cluster,
    covering,
    fourier,
    hierarchy,
    identity,
    levels,
    matrix,
    pmost,
    residual,
    sketch,
    wavelet,
    workload,
)
from hushcube.plan.strategies.adaptive import ADAPTIVE
from hushcube.plan.strategies.strategy import Strategy

REGISTRY: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        identity.Identity(),
        workload.WorkloadTables(),
        base.Base(),
        all_cuboids.AllCuboids(),
        bmax.BMax(),
        pmost.PMost(),
        cluster.Cluster(),
        fourier.Fourier(),
        residual.Residual(),
        wavelet.Wavelet(),
        hierarchy.Hierarchy(),
        matrix.Matrix(),
        sketch.Sketch(),
        covering.Covering(),
        levels.Levels(),
    )
}

ALL: Final[dict[str, Strategy]] = {**REGISTRY, **ADAPTIVE}


def check_strategy(plan: Plan) -> None:
    """Refuse a plan under the name of a strategy that there is not, or that makes no such plans."""
    strategy = ALL.get(plan.strategy)
    if strategy is None:
        raise PlanError(
            "plan, strategy", f"{plan.strategy[:40]!r} is unknown", "plan again with a strategy that there is"
        )
    if not isinstance(plan, strategy.makes) or (plan.is_outcome and not plan.privacy.is_pure):
        raise PlanError("plan, strategy", f"{plan.strategy} makes no such plans", "plan again")
