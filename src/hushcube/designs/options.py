"""What a planner may be told besides the request: how to search, what to optimise, and the strategies' own knobs.

None of it is needed to read a plan again: the decision that follows from it is in the plan.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Final, Literal, get_args

from hushcube.designs.refinement import Rule
from hushcube.errors import BadInput
from hushcube.model.form import QueryTable
from hushcube.model.queries import integer_problem

Effort = Literal["low", "default", "high"]
Objective = Literal["total", "max"]
Estimate = Literal["average", "median"]
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
ESTIMATES: Final[tuple[Estimate, ...]] = get_args(Estimate)


@dataclass(frozen=True)
class Threshold:
    """A bound on the variance of a cell: absolute, or a share of the least maximum that `bmax` finds.

    >>> Threshold.parse("80"), Threshold.parse("50%")
    (Threshold(value=80.0, is_share=False), Threshold(value=0.5, is_share=True))
    """

    value: float
    is_share: bool = False

    @classmethod
    def parse(cls, text: str) -> Threshold:
        """Read `80` (a variance) or `50%` (of bmax's)."""
        body = text.strip()
        is_share = body.endswith("%")
        try:
            value = float(body.removesuffix("%"))
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            raise BadInput("threshold", f"{text!r} is not a positive number", "write a variance, or `50%` of bmax's")
        return cls(value / 100 if is_share else value, is_share)


@dataclass(frozen=True)
class Options:
    """The knobs; each strategy looks at its own."""

    effort: Effort = "default"
    """How long strategies that search may search."""
    objective: Objective = "total"
    """Least total variance over the workload (weights count), or least maximum variance of a cell."""
    threshold: Threshold | None = None
    """pmost: the variance up to which a cuboid is precise."""
    fan_out: int | None = None
    """hierarchy: children of a node; the best is searched where it is not given."""
    buckets: int | None = None
    """sketch: buckets of one repetition."""
    repetitions: int | None = None
    """sketch: how often cells are thrown into buckets."""
    estimate: Estimate = "average"
    """sketch: how repetitions are combined."""
    matrix: QueryTable | None = None
    """matrix: the rows to measure, over the cells of a table."""
    rule: Rule = dataclasses.field(default=Rule(), kw_only=True)
    """dwork, twophase, iresamp, ireduct: how scales are chosen."""

    def __post_init__(self) -> None:
        _check("effort", self.effort, EFFORTS)
        _check("objective", self.objective, OBJECTIVES)
        _check("estimate", self.estimate, ESTIMATES)
        for field, least in (("fan_out", 2), ("buckets", 1), ("repetitions", 1)):
            given = getattr(self, field)
            if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < least):
                raise BadInput(field.replace("_", "-"), f"{given!r} is too small", f"give a whole number from {least}")
        if self.matrix is not None and (problem := integer_problem(self.matrix.rows)):
            raise BadInput("matrix", *problem)


def _check(field: str, given: str, known: tuple[str, ...]) -> None:
    if given not in known:
        raise BadInput(field, f"{given!r} is unknown", f"choose one of {', '.join(known)}")
