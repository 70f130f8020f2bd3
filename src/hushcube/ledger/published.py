"""What was published for a charge, looked at again where it is: a bundle, or a step of a session.

Both have a `plan.json`, and noisy integers in `measurements/` or `measurement.parquet`. Their digest is what a charge
records: tables and faces are computed from these and may be added later.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final

from hushcube.errors import LedgerError
from hushcube.ledger.chain import canonical
from hushcube.planning.plan import Plan

_PLAN: Final = "plan.json"
_MEASURED: Final = ("measurement.parquet", "measurements/*.parquet")


def published_digest(folder: str | Path) -> str:
    """The SHA-256 of the canonical JSON of name and SHA-256 of the plan and of each file of measurements."""
    root = Path(folder)
    measured = sorted(path for pattern in _MEASURED for path in root.glob(pattern))
    if not measured:
        raise LedgerError("place", "has no measurements", "give the folder that was published")
    sums = {path.relative_to(root).as_posix(): _sha256(path) for path in (root / _PLAN, *measured)}
    return hashlib.sha256(canonical(sums).encode()).hexdigest()


def published_plan(folder: str | Path) -> Plan:
    """The plan of what was published."""
    return Plan.read(Path(folder) / _PLAN)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
