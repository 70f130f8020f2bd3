"""What a figure is, and how what a paper says about it is judged."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
"""A job, or a job and what it came to."""

CONFIRMED, CORRECTED, NOT_CONFIRMED = "confirmed", "confirmed with a correction", "not confirmed"
ROUNDED = 0.025
"""How far outside a range of percentages a figure may be: papers round theirs to 5%."""


@dataclass(frozen=True)
class Claim:
    """What a paper says, and what was measured."""

    says: str
    verdict: str
    measured: str


@dataclass(frozen=True)
class Figure:
    """A figure or table of a paper: how to measure it, draw it and judge what the paper says about it."""

    name: str
    title: str
    about: str
    jobs: Callable[[bool], Iterable[Row]]
    """All points; a few tiny ones if quick."""
    measure: Callable[[Row], Row]
    pictures: Callable[[Sequence[Row]], Mapping[str, Any]] = lambda _: {}
    """Charts by the last part of their files' names."""
    tables: Callable[[Sequence[Row]], Sequence[tuple[str, Sequence[Row]]]] = lambda _: []
    claims: Callable[[Sequence[Row]], Sequence[Claim]] = lambda _: []
    alone: bool = False
    """Whether it measures time or memory, so that nothing else may run, and each job needs a process of its own."""


def seed_of(job: Row) -> int:
    """A seed of its own for every point, the same each time."""
    return zlib.crc32(json.dumps(job, sort_keys=True).encode())


def judged(says: str, gains: Mapping[str, Sequence[float]], low: float, high: float, *, of: str = "lower") -> Claim:
    """Whether shares that something gains are from `low` to `high`; any gain else confirms it with a correction.

    Each case has one share or several, such as one for each epsilon: what counts is their mean. It is shown as so much
    `lower` or `higher`, or as the `share` that is left.

    >>> judged("B is 20 to 25% below A", {"Q1": [0.2, 0.24], "Q2": [0.1]}, 0.2, 0.25)
    Claim(says='B is 20 to 25% below A', verdict='confirmed with a correction', measured='Q1: 22% lower; Q2: 10% lower')
    >>> judged("B has 75 to 80% of A", {"Q1": [0.2]}, 0.2, 0.25, of="share").measured
    'Q1: 80%'
    """
    means = {name: sum(each) / len(each) for name, each in gains.items() if each}
    if all(low - ROUNDED <= mean <= high + ROUNDED for mean in means.values()):
        verdict = CONFIRMED
    else:
        verdict = CORRECTED if all(mean > 0 for mean in means.values()) else NOT_CONFIRMED
    told = (f"{name}: {_told(mean, of)}".removeprefix(": ") for name, mean in means.items())
    return Claim(says, verdict, "; ".join(told))


def _told(gain: float, of: str) -> str:
    if of == "share":
        return f"{1 - gain:.0%}"
    return f"{abs(gain):.0%} {of if gain >= 0 else {'lower': 'higher', 'higher': 'lower'}[of]}"


def held(says: str, measured: str, *, holds: bool, correction: bool = False) -> Claim:
    """Whether something holds; with a correction where it holds in other words than the paper's."""
    return Claim(says, (CORRECTED if correction else CONFIRMED) if holds else NOT_CONFIRMED, measured)
