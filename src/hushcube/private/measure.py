"""Count, transform, add noise: the one way from rows to a Measurement.

Every measured number is an exact integer until its noise is in. The plan has been checked to cost what it promises
(`Plan` refuses to exist otherwise), and decides alone which noise is drawn: nothing here depends on the data but the
counts themselves. An adaptive plan decides the rest as its noisy answers come in, and from nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from hushcube import interrupts
from hushcube.designs import AdaptiveDesign, SelectiveDesign, SelectiveLevels
from hushcube.designs.design import Design
from hushcube.errors import DataError, PlanError
from hushcube.model.measure import Measure
from hushcube.model.noise import Measurement
from hushcube.model.queries import LARGEST_ENTRY
from hushcube.model.schema import COUNT, Schema
from hushcube.planning import memory
from hushcube.planning.plan import Plan
from hushcube.private.adaptive.run import run
from hushcube.private.adaptive.selecting import run_at_finest_levels, run_selective
from hushcube.private.blocks import Noise, noisy_values
from hushcube.private.boundary import guarded
from hushcube.private.engines import Engine, ExactCounts
from hushcube.private.engines.contract import Measures
from hushcube.private.noise import Entropy, SystemEntropy
from hushcube.progress import Progress, silent
from hushcube.text import share

MAX_ROWS: Final = 2**34  # tables have at most 10^8 cells, so no transform of this many rows can overflow 64 bits


@guarded
def carry_out(
    plan: Plan,
    engine: Engine,
    *,
    entropy: Entropy | None = None,
    noise: Noise | None = None,
    progress: Progress | None = None,
    tell_owner: Callable[[str], None] | None = None,
    before_noise: Callable[[], None] | None = None,
) -> tuple[Plan, dict[str, Measurement]]:
    """The noisy answers of each part of a plan on the data behind an engine: one scan, so all are of the same rows.

    The noise is the operating system's unless given; `before_noise` is called when everything is counted, just before
    the first of it is drawn. With the answers comes the plan as it was carried out: the plan itself, unless a part
    adapts to its noisy answers.
    """
    check(plan)
    measures = [plan.schema.measure(name) for name in plan.sums]
    counts = count(plan.designs.values(), plan.schema, engine, measures=measures, progress=progress)
    for measure in measures:
        _check_sums(plan.designs[measure.name], measure, counts.rows)
    if tell_owner is not None:
        _tell(plan.schema, counts, tell_owner)
    if before_noise is not None:
        before_noise()
    exact = {COUNT: counts, **counts.sums}
    drawn = {
        name: draw(design, exact[name], entropy=entropy, noise=noise, progress=progress)
        for name, design in plan.designs.items()
    }
    done = plan.carried_out({name: design for name, (design, _) in drawn.items()})
    return done, {name: measurement for name, (_, measurement) in drawn.items()}


def check(plan: Plan) -> None:
    """Refuse, before anything is read, a plan that costs too much, cannot fit, or records what a run ended with."""
    plan.check_cost()
    _require_memory(*plan.designs.values())
    for design in plan.designs.values():
        _refuse_outcome(design)


@guarded
def measure(
    design: Design, engine: Engine, *, entropy: Entropy | None = None, noise: Noise | None = None
) -> Measurement:
    """The noisy answers of one design of counts that decides everything beforehand."""
    _require_memory(design)
    return draw(design, count([design], design.schema, engine), entropy=entropy, noise=noise)[1]


def count(
    designs: Iterable[Design], schema: Schema, engine: Engine, measures: Measures = (), progress: Progress | None = None
) -> ExactCounts:
    """The exact counts, and sums of measures, that designs need."""
    wanted: dict[bytes, NDArray[np.int32]] = {}
    for design in designs:
        _refuse_outcome(design)
        wanted |= {group.tobytes(): group for group in design.counted}
    report = progress or silent
    report("counting", 0.0)
    asked = list(wanted.values())
    counts = engine.count(schema, asked, measures=measures, progress=lambda share: report("counting", share))
    _check_rows(counts)
    return counts


def draw(
    plan: Design,
    counts: ExactCounts,
    *,
    entropy: Entropy | None = None,
    noise: Noise | None = None,
    progress: Progress | None = None,
) -> tuple[Design, Measurement]:
    """The noisy answers of a plan from exact counts, and the plan as it was carried out.

    They are private if nobody can foresee or repeat their noise: neither its entropy nor how it is drawn is given.
    """
    interrupts.check()
    plan.check_cost()
    entropy = SystemEntropy() if entropy is None else entropy
    private = entropy.private and noise is None
    report = progress or silent
    if isinstance(plan, AdaptiveDesign):
        return run(plan, counts, entropy, report, private=private)
    if isinstance(plan, SelectiveDesign):
        return run_selective(plan, counts, entropy, report, private=private)
    if isinstance(plan, SelectiveLevels):
        return run_at_finest_levels(plan, counts, entropy, report, private=private)
    return plan, Measurement(plan.digest, noisy_values(plan, counts, entropy, report, noise), private=private)


def _require_memory(*plans: Design) -> None:
    """Refuse what cannot fit before anything is read."""
    if (excess := memory.problem(plans)) is not None:
        raise excess


def _refuse_outcome(design: Design) -> None:
    if design.is_outcome:
        fix = f"plan again: a run of {design.strategy} decides its noise anew"
        raise PlanError("plan", "records what a run ended with, and cannot be carried out again", fix)


def _check_rows(counts: ExactCounts) -> None:
    if counts.rows > MAX_ROWS:
        raise DataError("data", "there are more than 2^34 rows", "release parts of the data separately")


def _check_sums(part: Design, measure: Measure, rows: int) -> None:
    """Transforms multiply a sum by at most the cells of its table, or by the entries of a matrix."""
    cells = max(part.schema.cells(tuple(m)) for group in part.counted for m in group.tolist())
    if rows * measure.largest * max(cells, LARGEST_ENTRY) >= 2**63:
        fix = "give the measure a larger resolution, or ask for smaller tables"
        raise DataError(f"measure {measure.name!r}", "its sums might not fit 64-bit integers", fix)


def _tell(schema: Schema, counts: ExactCounts, tell_owner: Callable[[str], None]) -> None:
    """How many rows there were, and how many of them the tables are of."""
    told = f"{counts.rows:,} rows were read and counted"
    if schema.unit is not None:
        read = counts.rows + counts.dropped
        told = f"{read:,} rows were read and {counts.rows:,} counted; {counts.dropped:,} rows were left out"
        if counts.dropped:
            most = f"more than {schema.unit.max_rows} of one {schema.unit.column!r}"
            told += f": {most}, {share(counts.dropped, read)} of all"
    remarks = [told]
    if counts.bad:
        remarks.append(f"{counts.bad:,} rows cannot be read and count as missing in every attribute")
    for remark in remarks:
        tell_owner(f"{remark} (exact, for the owner of the data only)")
