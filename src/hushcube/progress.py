"""How a long job says where it is, and how long it may take."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from hushcube.errors import TimeLimitReached

Progress = Callable[[str, float], None]
"""Called now and then with the stage, in words, and the share of it that is done."""


def silent(_stage: str, _share: float) -> None:
    """Progress that nobody watches."""


@dataclass(frozen=True)
class Clock:
    """A time limit (None: no limit) that began when the clock was made, and where progress is reported."""

    seconds: float | None = None
    progress: Progress = silent
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """The seconds that are left; infinite without a limit."""
        return float("inf") if self.seconds is None else self.started + self.seconds - time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return self.left <= 0

    def check(self, stage: str, needed: float = 0.0) -> None:
        """Raise where the time is up, or where what comes next is known to need more seconds than are left."""
        if self.left <= needed:
            raise TimeLimitReached(self.seconds or 0.0, stage)

    def tick(self, stage: str, share: float) -> None:
        """Say how far a stage is; raises where the time is up."""
        self.check(stage)
        self.show(stage, share)

    def show(self, stage: str, share: float) -> None:
        """Say how far a stage is, for work that ends by itself where the time is up."""
        self.progress(stage, min(max(share, 0.0), 1.0))

    def approach(self, stage: str, gap: float, tolerance: float) -> None:
        """Say how near a gap is to its tolerance; on a logarithmic scale, since gaps fall by orders of magnitude."""
        known = math.isfinite(gap) and tolerance > 0
        self.show(stage, 1 - math.log10(max(2 * gap / tolerance, 1.0)) / 6 if known else 0.0)
