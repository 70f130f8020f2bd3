"""Count, transform, add noise: the one way from rows to a Measurement.

Every measured number is an exact integer until its noise is in. The plan has been checked to cost what it promises
(`Plan` refuses to exist otherwise), and decides alone which noise is drawn: nothing here depends on the data but the
counts themselves.
"""

from __future__ import annotations

from typing import Final

from hushcube.errors import DataError
from hushcube.model.measurement import Measurement
from hushcube.plan.plan import Plan
from hushcube.private.engines import Engine
from hushcube.private.kinds import Report, noisy_values
from hushcube.private.noise import Entropy, SystemEntropy

MAX_ROWS: Final = 2**34
"""Tables have at most 10^8 cells, so no transform of this many rows can overflow 64 bits."""


def measure(
    plan: Plan, engine: Engine, *, entropy: Entropy | None = None, progress: Report | None = None
) -> Measurement:
    """The noisy answers of a plan on the data behind an engine, with noise from the operating system unless given."""
    entropy = SystemEntropy() if entropy is None else entropy
    report = progress or (lambda _stage, _share: None)
    report("counting", 0.0)
    counts = engine.count(plan.schema, plan.counted, progress=lambda share: report("counting", share))
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "release parts of the data separately")
    values = noisy_values(plan, counts, entropy, report)
    return Measurement(plan.digest, values, private=entropy.private)
