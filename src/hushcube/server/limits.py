"""How much one may ask for at a time: a bucket for every token that fills at a constant rate, and work under way."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hushcube.web.refusals import Refusal


class Rate:
    """Each has a bucket that holds a second's worth of requests and fills steadily; a request takes its weight.

    >>> clock = iter([0.0, 0.0, 0.0, 0.4, 0.5]).__next__
    >>> rate = Rate(2, clock=clock)
    >>> rate.take("dana"), rate.take("dana"), rate.take("dana"), rate.take("dana"), rate.take("dana")
    (0.0, 0.0, 0.5, 0.1, 0.0)
    """

    def __init__(self, per_second: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, who: str, weight: float = 1.0) -> float:
        """0 if the request is granted, else the seconds to wait."""
        now = self._clock()
        full = max(self._per_second, weight)
        level, then = self._buckets.get(who, (full, now))
        level = min(full, level + (now - then) * self._per_second)
        granted = level >= weight
        self._buckets[who] = (level - weight if granted else level, now)
        return 0.0 if granted else round((weight - level) / self._per_second, 9)

    def check(self, who: str, weight: float = 1.0) -> None:
        """Refuse what comes too early."""
        if wait := self.take(who, weight):
            fix = f"wait {wait:.3g} seconds"
            headers = {"Retry-After": str(int(wait) + 1)}
            raise Refusal(429, "rate", "too many requests of this token", fix, headers=headers)


class UnderWay:
    """Work that takes a while: of each token only so much at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._now: dict[str, int] = {}

    @contextmanager
    def one_more(self, who: str) -> Iterator[None]:
        """Refused where the token has enough under way."""
        if self._now.get(who, 0) >= self._most:
            fix = "wait for an answer before asking again"
            problem = f"{self._most} questions of this token are being answered"
            raise Refusal(429, "rate", problem, fix, headers={"Retry-After": "1"})
        self._now[who] = self._now.get(who, 0) + 1
        try:
            yield
        finally:
            self._now[who] -= 1
