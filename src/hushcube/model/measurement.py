"""The noisy results of a plan: everything that left the private side, and all that later steps may use."""

from __future__ import annotations

from dataclasses import dataclass

from hushcube.model.arrays import Ints


@dataclass(frozen=True, eq=False, repr=False)
class Measurement:
    """Noisy integers, one array for each batch of equal-shaped measured sets, in the plan's order.

    `private` is False where the noise came from a seed: such a measurement is for experiments and protects nobody.
    """

    plan_digest: str
    values: tuple[Ints, ...]
    private: bool

    def __repr__(self) -> str:
        told = f"{sum(batch.size for batch in self.values):,} noisy integers of the plan {self.plan_digest[:12]}"
        return f"Measurement({told}{'' if self.private else ', NOT PRIVATE'})"
