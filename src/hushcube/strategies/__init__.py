"""One strategy, one file. Each says whether it applies (`accepts`) and what to measure (`plan`).

`REGISTRY` is what `--strategy all` compares; a new strategy is added there and tested by the suite that is in place.
`ADAPTIVE` are the methods for small relative errors, which decide while answers come in; `ALL` are both.
"""

from __future__ import annotations

from typing import Final

from hushcube.designs.design import Design
from hushcube.errors import PlanError
from hushcube.strategies import (
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
from hushcube.strategies.adaptive import ADAPTIVE
from hushcube.strategies.strategy import Strategy

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


def check_strategy(design: Design) -> None:
    """Refuse a plan whose strategy does not exist, or does not make such plans."""
    strategy = ALL.get(design.strategy)
    if strategy is None:
        raise PlanError("plan, strategy", f"{design.strategy[:40]!r} is unknown", "plan again with a known strategy")
    if not isinstance(design, strategy.makes) or (design.is_outcome and not design.privacy.is_pure):
        raise PlanError("plan, strategy", f"{design.strategy} makes no such plans", "plan again")
