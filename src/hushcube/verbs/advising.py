"""The verb before a budget is agreed on: what several budgets would bring, for headline tables and for single cells.

No data is read, unless its owner asks what bounds on the rows of a person would leave out (verbs/bounding.py), and
nothing is spent. A cell of n people is within a share x of its count where its margin, the half-width of the 95%
interval, is at most x n: with 95% probability the published number is that near. What n is nobody may know yet: the
people are spread evenly over the cells of each table, or as in an earlier, published edition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import numpy as np

from hushcube.bundle.release import Release
from hushcube.designs.request import Effort
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.privacy import Number
from hushcube.model.schema import Schema
from hushcube.planning.plan import Plan
from hushcube.planning.question import amount, checked
from hushcube.planning.summary import table_errors, typical_error
from hushcube.progress import Progress, silent
from hushcube.shown import Column, Grid, Page, Part, Remark, Shown, columns, number
from hushcube.text import visible
from hushcube.verbs.bounding import WARNING, Bounded, Bounding, bounds_grid, bounds_panels
from hushcube.verbs.charting import STAMP, framed, looks, saved
from hushcube.verbs.planning import plan as planned
from hushcube.verbs.releasing import open as opened
from hushcube.verbs.schemas import schema_of

SHARES: Final = (0.05, 0.1, 0.2)
"""How near to its count a cell should be."""
_BUDGETS: Final = ("0.1", "0.3", "1", "3")  # looked at unless others are named; nothing is spent
_DELTA: Final = "1e-9"  # likewise
_PLAIN: Final = "as it is"


@dataclass(frozen=True)
class Advised:
    """One budget, and one way to plan for it."""

    budget: str
    way: str
    plan: Plan
    total: float | None
    """The standard error of the total, where it is asked for."""
    one_way: float | None
    """That of a cell of the least precise table of one attribute."""
    typical: float
    within: tuple[float, ...] | None
    """The shares of cells near to their counts, one for each of SHARES; None where the people are not counted."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        near = (
            None if self.within is None else {f"{share:g}": own for share, own in zip(SHARES, self.within, strict=True)}
        )
        return {
            amount(self.plan.privacy): self.budget,
            "way": self.way,
            "strategy": self.plan.strategy,
            "total_std_error": self.total,
            "one_way_std_error": self.one_way,
            "rmse": self.typical,
            "cells_within": near,
        }


@dataclass(frozen=True, repr=False)
class Advice(Shown):
    """What several budgets would bring."""

    lines: tuple[Advised, ...]
    people: int | None
    spread: str
    """How the people are taken to be spread, in words."""
    bounds: tuple[Bounded, ...] = ()
    """What bounds on the rows of a person would leave out of the data; with it, the advice is NOT private."""

    @property
    def private(self) -> bool:
        """Whether no data was read for it."""
        return not self.bounds

    def __repr__(self) -> str:
        return f"Advice({len(self.lines)} lines, {self.spread}{'' if self.private else '; NOT PRIVATE'})"

    def page(self) -> Page:
        """A line for each budget and way; with data, another table with a line for each bound."""
        schema, workload = self.lines[0].plan.schema, self.lines[0].plan.workload
        near = [f"within {share:.0%}" for share in SHARES] if self.people is not None else []
        headings = [Column(amount(self.lines[0].plan.privacy), right=True)]
        errors: dict[str, list[float | None]] = {
            "total": [line.total for line in self.lines],
            "one-way": [line.one_way for line in self.lines],
            "typical cell": [line.typical for line in self.lines],
        }
        known = {name: told for name, told in errors.items() if any(error is not None for error in told)}
        headings += columns(("way", "strategy"), (*(f"std error, {name}" for name in known), *near))
        rows = []
        for at, line in enumerate(self.lines):
            told = (number(each[at] or 0.0) for each in known.values())
            rows.append([line.budget, line.way, line.plan.strategy, *told, *(f"{s:.1%}" for s in line.within or ())])
        title = f"{schema.name}: {len(workload):,} tables, {workload.cells:,} cells"
        chosen = frozenset(at for at, line in enumerate(self.lines) if line.way == _PLAIN)
        parts: list[Part] = [Grid(title, headings, rows, chosen), *self._ways()]
        if self.people is None:
            parts.append(Remark("give the number of people to see how many cells would be near to their counts"))
        else:
            parts.append(f"within 5%: the cells whose 95% margin is at most 5% of their count; {self.spread}")
        return Page((*parts, *((WARNING, bounds_grid(self.bounds)) if self.bounds else ())))

    def _ways(self) -> list[str]:
        """What the ways are, in the words of `plan`."""
        told = {_PLAIN: "what `plan` does by itself", "balance": "with `--balance`", "max": "with `--objective max`"}
        ways = dict.fromkeys(line.way for line in self.lines)
        others = {way: f"epsilon with `--{way}`" for way in ways if way.startswith("delta ")}
        return ["; ".join(f"{way}: {(told | others)[way]}" for way in ways)]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        exact = {"private": False, "warning": WARNING, "bounds": [line.to_dict() for line in self.bounds]}
        told = {"people": self.people, "spread": self.spread, "advice": [line.to_dict() for line in self.lines]}
        return told if self.private else {**told, **exact}

    def picture(self, path: Path, by: str = "budget") -> bytes:  # noqa: ARG002 - there is one way to draw it
        """The chart, in the form that a file's name asks for."""
        return saved(self.draw(), path)

    def draw(self) -> Any:
        """The share of cells within 10%, or the typical error, by the budget: a line for each way; bounds beside it."""
        import altair as alt

        share = self.people is not None
        axis = f"cells within {SHARES[1]:.0%} of their count" if share else "standard error of a typical cell"
        rows = [
            {
                "budget": float(Fraction(line.budget)),
                "way": line.way,
                "value": line.within[1] if line.within else line.typical,
            }
            for line in self.lines
        ]
        scales = looks(ways := list(dict.fromkeys(line.way for line in self.lines)), range(len(ways)))
        scale = alt.Scale(domain=[0, 1]) if share else alt.Scale(type="log")
        picture = (
            alt.Chart({"values": rows})
            .mark_line(point=True)
            .encode(
                x=alt.X("budget:Q", scale=alt.Scale(type="log"), title=amount(self.lines[0].plan.privacy)),
                y=alt.Y("value:Q", scale=scale, title=axis, axis=alt.Axis(format="%" if share else "~g")),
                color=alt.Color("way:N", scale=scales["color"], title=None),
                shape=alt.Shape("way:N", scale=scales["shape"], title=None),
            )
            .properties(width=420, height=280)
        )
        workload = self.lines[0].plan.workload
        title = f"{visible(self.lines[0].plan.schema.name)}: {len(workload):,} tables"
        if self.private:
            return framed(picture, title, self.spread)
        panels = alt.hconcat(picture, *bounds_panels(self.bounds), spacing=30)
        apart = panels.resolve_scale(color="independent", shape="independent")
        return framed(apart, f"{STAMP}. {title}", self.spread)


def advise(
    schema: Schema | str | Path,
    workload: str | Sequence[str],
    *,
    neighbours: str,
    epsilon: Sequence[Number] | None = None,
    rho: Sequence[Number] | None = None,
    delta: Number | None = None,
    rows_per_person: int | None = None,
    people: int | None = None,
    like: Release | str | Path | None = None,
    effort: Effort = "default",
    data: object = None,
    query: str | None = None,
    max_rows: Sequence[int] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """What budgets, balance, the largest variance and delta would bring; nothing is spent, and no data is needed.

    `people` says how many there are, spread evenly over the cells of each table; `like` is an earlier release whose
    published tables say how they are spread, and how many they are unless `people` does.

    With `data` (a path, a frame or a database's table as in `release`) or a `query`, its owner also sees how many rows
    and people each bound of `max_rows` would cost, beside the noise under it. These are exact numbers, NOT private.
    """
    if epsilon is not None and rho is not None:
        raise BadInput("rho", "cannot be combined with epsilon", "look at budgets of one kind")
    if rho is not None and delta is not None:
        raise BadInput("delta", "cannot be combined with rho", "give epsilon with it")
    if people is not None and (isinstance(people, bool) or not isinstance(people, int) or people < 1):
        raise BadInput("people", f"{people!r} is not a number of people", "give a whole number above 0")
    given = schema_of(schema)
    bounding = Bounding.of(given, data, query, max_rows)
    if bounding is not None and rows_per_person is not None:
        problem = "cannot be combined with data: every bound of max_rows is looked at"
        raise BadInput("rows_per_person", problem, "leave it out")
    kind, values = ("epsilon", epsilon or _BUDGETS) if rho is None else ("rho", rho)
    ways: dict[str, dict[str, Any]] = {_PLAIN: {}, "balance": {"balance": True}, "max": {"objective": "max"}}
    if rho is None:
        small = _DELTA if delta is None else delta
        ways[f"delta {small}"] = {"delta": small}
    budgets = checked(list(values), kind)
    pairs = [(value, way, more) for value in budgets for way, more in ways.items()]
    spread = _Spread.of(people, like)
    asked: dict[str, Any] = {"neighbours": neighbours, "rows_per_person": rows_per_person, "effort": effort}
    lines = []
    for done, (value, way, more) in enumerate(pairs):
        (progress or silent)(way, done / len(pairs))
        told = {**asked, kind: value, **more}
        lines.append(_advised(str(value), way, planned(given, workload, **told), spread))
    bounds: tuple[Bounded, ...] = ()
    if bounding is not None:

        def plans(bounded: Schema) -> dict[str, Plan]:
            return {str(value): planned(bounded, workload, **{**asked, kind: value}) for value in budgets}

        bounds = bounding.look(plans, progress or silent)
    return Advice(tuple(lines), spread.people, spread.in_words, bounds)


def _advised(budget: str, way: str, plan: Plan, spread: _Spread) -> Advised:
    marginals = plan.workload.marginals
    errors = [error for error in table_errors(plan) if not error.is_form]
    short = {k: [e.std_error for m, e in zip(marginals, errors, strict=True) if len(m) == k] for k in (0, 1)}
    within = None
    if spread.people is not None and errors:
        near = np.zeros(len(SHARES))
        for marginal, error in zip(marginals, errors, strict=True):
            counts = spread.counts(plan.workload.schema, marginal)
            near += [error.cells * float((error.margin <= share * counts).mean()) for share in SHARES]
        within = tuple((near / sum(error.cells for error in errors)).tolist())
    total, one_way = (max(short[k], default=None) for k in (0, 1))
    return Advised(budget, way, plan, total, one_way, typical_error(plan, "count"), within)


@dataclass(frozen=True, eq=False)
class _Spread:
    """How many people are expected in each cell."""

    people: int | None
    release: Release | None
    scale: float

    @classmethod
    def of(cls, people: int | None, like: Release | str | Path | None) -> _Spread:
        if like is None:
            return cls(people, None, 1.0)
        release = like if isinstance(like, Release) else opened(like)
        total = float(np.asarray(release.table("total").values))
        if not total > 0:
            problem = "its published total is not above 0, so that it does not say how people are spread"
            raise BadInput("like", problem, "leave it out, and give people")
        return cls(round(total) if people is None else people, release, 1.0 if people is None else people / total)

    @property
    def in_words(self) -> str:
        if self.people is None:
            return "how many people there are is not said"
        even = self.release is None
        return f"{self.people:,} people, spread " + (
            "evenly over the cells of each table" if even else "as published before"
        )

    def counts(self, schema: Schema, marginal: Marginal) -> Floats:
        """Of the cells of a table, negative ones taken as 0; one number where all are alike."""
        if self.release is None:
            return np.asarray((self.people or 0) / schema.cells(marginal))
        names = [schema.names[i] for i in marginal]
        for i in marginal:
            own, known = schema.attributes[i], self.release.schema
            if own.name not in known.names or tuple(known[own.name].labels) != tuple(own.labels):
                raise BadInput(
                    "like", f"has no attribute {own.name!r} with the same values", "leave it out, and give people"
                )
        try:
            published = self.release.table(names or "total")
        except BadInput as problem:
            table = "*".join(names)
            raise BadInput(
                "like", f"does not hold {table}: {problem.problem}", "ask for fewer tables, or leave it out"
            ) from None
        return np.maximum(np.asarray(published.values, np.float64) * self.scale, 0.0)
