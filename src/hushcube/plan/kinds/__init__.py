"""The kinds of plans: what can be measured, what it costs, and whether it answers a workload."""

from __future__ import annotations

from hushcube.plan.kinds.lattice import LatticePlan

__all__ = ["LatticePlan"]
