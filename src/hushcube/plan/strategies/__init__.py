"""One strategy, one file. Each says whether it applies (`accepts`) and what to measure (`plan`).

`REGISTRY` is what `--strategy all` compares; a new strategy is added there and tested by the suite that is in place.
"""

from __future__ import annotations

from typing import Final

from hushcube.plan.strategies import covering, fourier, identity, residual, workload
from hushcube.plan.strategies.strategy import Strategy

REGISTRY: Final[dict[str, Strategy]] = {
    strategy.name: strategy
    for strategy in (
        identity.Identity(),
        workload.WorkloadTables(),
        fourier.Fourier(),
        residual.Residual(),
        covering.Covering(),
    )
}
