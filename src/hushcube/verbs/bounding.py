"""Advice about the rows of a person that count: what several bounds leave out, beside the noise that each needs.

A small bound leaves out more rows, which no interval covers; a large one needs more noise, about in proportion. What is
left out is an exact number of the data: it is for its owner alone, and NOT private.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from hushcube.errors import BadInput
from hushcube.model.privacy import MAX_ROWS, Unit
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.planning.question import amount
from hushcube.planning.summary import typical_error
from hushcube.progress import Progress
from hushcube.shown import Grid, columns, number
from hushcube.text import short
from hushcube.verbs.charting import Rows, logarithmic, looks

if TYPE_CHECKING:
    from hushcube.private.bounds import Bound
    from hushcube.private.engines import Engine

WARNING: Final = (
    "NOT PRIVATE: what bounds leave out are exact numbers of the data, for its owner only; do not publish any of it."
)
BOUNDS: Final = (1, 2, 5, 10)
"""Looked at unless others are named, with the declared one."""
_BLACK: Final = "#000000"


@dataclass(frozen=True)
class Bounded:
    """One bound: what it leaves out, exactly, and the plan under each budget, as it is."""

    bound: Bound
    plans: dict[str, Plan]
    """By the budget, as it was written."""

    @property
    def errors(self) -> dict[str, float]:
        """The standard error of a typical cell under each budget."""
        return {budget: typical_error(plan, "count") for budget, plan in self.plans.items()}

    @property
    def share(self) -> float:
        """The part of the rows that is left out."""
        return self.bound.left_out / max(1, self.bound.counted + self.bound.left_out)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**asdict(self.bound), "rmse": self.errors}


@dataclass(frozen=True)
class Bounding:
    """Bounds to look at, and the data to look at: checked, and not read yet."""

    schema: Schema
    unit: Unit
    bounds: Sequence[int]
    engine: Engine

    @classmethod
    def of(cls, schema: Schema, data: object, query: str | None, asked: Sequence[int] | None) -> Bounding | None:
        """What is asked for, all of it possible; None where there is no data."""
        if data is None and query is None:
            if asked is not None:
                problem = "what bounds leave out is read from data, and none is given"
                raise BadInput("max_rows", problem, "give the data too, or leave it out")
            return None
        if schema.unit is None:
            problem = "the schema declares no unit, so that every row counts and none can be left out"
            raise BadInput("data", problem, "declare its `unit:`, or leave the data out")
        from hushcube.private.engines import open_source

        bounds = _checked(BOUNDS if asked is None else asked, schema.unit)
        return cls(schema, schema.unit, bounds, open_source(data, query=query))

    def look(self, plans: Callable[[Schema], dict[str, Plan]], progress: Progress) -> tuple[Bounded, ...]:
        """Plan under every bound, and only then read the data."""
        from hushcube.private.bounds import count_bounds

        planned = {}
        for done, most in enumerate(self.bounds):
            progress("bounds", done / len(self.bounds))
            planned[most] = plans(replace(self.schema, unit=replace(self.unit, max_rows=most)))
        found = count_bounds(self.schema, self.engine, self.bounds, lambda share: progress("reading", share))
        return tuple(Bounded(own, planned[own.max_rows]) for own in found)


def _checked(bounds: Sequence[int], unit: Unit) -> list[int]:
    """Bounds in their order, the declared one among them."""
    most = MAX_ROWS - 1  # people who lose rows are those whom a larger bound gives more
    fix = f"list whole numbers from 1 to {most:,}, for example `1,2,5,10`"
    if isinstance(bounds, str) or not isinstance(bounds, Sequence) or not bounds:
        raise BadInput("max_rows", "there is no list of bounds", fix)
    for bound in bounds:
        if isinstance(bound, bool) or not isinstance(bound, int) or not 1 <= bound <= most:
            raise BadInput("max_rows", f"{short(bound)} is not a number of rows to look at", fix)
    return sorted({*bounds, min(unit.max_rows, most)})


def bounds_grid(lines: Sequence[Bounded]) -> Grid:
    """A row for each bound."""
    plan = next(iter(lines[0].plans.values()))
    noise = [f"{amount(plan.privacy)} {budget}" for budget in lines[0].plans]
    headings = columns(right=("max_rows", "left out", "share", "people who lose rows", *noise))
    rows = []
    for line in lines:
        own = line.bound
        errors = (number(error) for error in line.errors.values())
        rows.append([f"{own.max_rows:,}", f"{own.left_out:,}", own.share, f"{own.people:,}", *errors])
    title = (
        f"NOT PRIVATE: rows that bounds leave out of {plan.schema.name}, beside the standard error of a typical cell"
    )
    return Grid(title, headings, rows)


def bounds_panels(lines: Sequence[Bounded]) -> list[Any]:
    """Over the bounds: the share that is left out, and the standard error of a typical cell under each budget."""
    import altair as alt

    kind = amount(next(iter(lines[0].plans.values())).privacy)
    order = [f"{kind} {budget}" for budget in lines[0].plans]
    scales = looks(order, range(len(order)))
    left: Rows = [{"bound": line.bound.max_rows, "value": line.share} for line in lines]
    noise: Rows = [
        {"bound": line.bound.max_rows, "value": error, "budget": word}
        for line in lines
        for word, error in zip(order, line.errors.values(), strict=True)
        if error > 0  # a public answer has no error, and no place on a logarithmic scale
    ]
    x = alt.X("bound:O", title="max_rows", axis=alt.Axis(labelAngle=0))
    share = alt.Y("value:Q", title="rows left out", scale=alt.Scale(domain=[0, 1]), axis=alt.Axis(format="%"))
    panels = [alt.Chart({"values": left}).mark_line(point={"color": _BLACK}, color=_BLACK).encode(x=x, y=share)]
    if noise:
        axis = logarithmic([row["value"] for row in noise])
        colour = alt.Color("budget:N", scale=scales["color"], title=None)
        shape = alt.Shape("budget:N", scale=scales["shape"], title=None)
        error = alt.Y("value:Q", title="standard error of a typical cell", **axis)
        drawn = alt.Chart({"values": noise}).mark_line(point=True)
        panels.append(drawn.encode(x=x, y=error, color=colour, shape=shape))
    return [panel.properties(width=260, height=280) for panel in panels]
