"""Counts, sums and averages of one workload under one guarantee: each part is a plan of its own with a share of it.

A sum over rows of integers q, |q| <= Q, is a count in which a row may count up to Q times. So what is measured, its
noise and its errors are those of a plan for counts of people who have k Q rows where they had k:   [model/measure.py]

    add-remove                  k Q rows come or go; with both signs no more, since |sum q| <= k Q
    replace-one, one sign       up to k Q rows go and up to k Q others come; the total is not public
    replace-one, both signs     +Q may become -Q in one cell: 2 k Q rows come or go

Parts compose: their epsilons (rhos, deltas) add up to the whole. The average of a cell of n people with mean m errs by
about (Var S + (m - center)² Var C) / n². With |m - center| taken as a quarter of the range, the sum of these errors
over the measures, each relative to its range, is least for shares in proportion to

    w^(1/3) under Laplace, w^(1/2) under Gaussian noise,      w = (Q resolution / range)²; for the count, 1/16 a measure
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Final, Literal

from hushcube.designs import AdaptiveDesign
from hushcube.designs.design import Design, digest_of
from hushcube.errors import BadInput, BudgetExceeded, NotApplicable, PlanError, SchemaError, WorkloadError
from hushcube.model.files import read_json
from hushcube.model.measure import Measure
from hushcube.model.privacy import Privacy
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import Workload
from hushcube.planning.loading import AGAIN, design_of

_WORD: Final = re.compile(r"(?P<kind>sum|avg)\((?P<name>.+)\)")
Kind = Literal["count", "sum", "avg"]


@dataclass(frozen=True)
class Asked:
    """A kind of number: how many people, or the sum or the average of a measure."""

    kind: Kind
    measure: str = ""

    @classmethod
    def parse(cls, word: str, schema: Schema) -> Asked:
        """Read `count`, `sum(wage)` or `avg(wage)`."""
        text = word.strip()
        if text == COUNT:
            return cls("count")
        match = _WORD.fullmatch(text)
        if match is None:
            raise WorkloadError("measure", f"{text[:40]!r} cannot be read", "write count, sum(NAME) or avg(NAME)")
        name = match["name"].strip()
        schema.measure(name)
        return cls("sum" if match["kind"] == "sum" else "avg", name)

    @property
    def columns(self) -> tuple[str, ...]:
        """What its numbers are called in a table: the estimate first, then what says how wrong it may be."""
        errors = ("low_95", "high_95") if self.kind == "avg" else ("std_error",)
        return str(self), *(f"{self} {error}" for error in errors)

    def __str__(self) -> str:
        return self.kind if self.kind == "count" else f"{self.kind}({self.measure})"


@dataclass(frozen=True, eq=False)
class Plan:
    """The plan of the counts, and one for the sums of each measure; together they keep the guarantee."""

    schema: Schema
    privacy: Privacy
    asked: tuple[Asked, ...]
    count: Design
    sums: Mapping[str, Design]

    def __post_init__(self) -> None:
        object.__setattr__(self, "sums", MappingProxyType(dict(self.sums)))
        self.schema.check_unit(self.privacy.rows_per_person)
        if {asked.measure for asked in self.asked if asked.measure} != self.sums.keys() or not self.sums:
            raise PlanError("plan, parts", "are not the count and the measures asked for", "plan again")
        self._check_columns()
        self.check_cost()
        for name, plan in self.parts.items():
            if isinstance(plan, AdaptiveDesign) or plan.is_outcome:
                raise NotApplicable(plan.strategy, "it adapts to noisy counts, and cubes also hold sums")
            if plan.schema.declared != plain(self.schema) or plan.workload.words != self.workload.words:
                raise PlanError(f"plan, {name}", "is for other tables than the count", "plan again")
            share = next(Fraction(getattr(plan.privacy, n)) for n in ("epsilon", "rho") if getattr(plan.privacy, n))
            whole = next(Fraction(getattr(self.privacy, n)) for n in ("epsilon", "rho") if getattr(self.privacy, n))
            expected = part_privacy(self.privacy, share / whole, None if name == COUNT else self.schema.measure(name))
            if plan.privacy != expected:
                raise PlanError(f"plan, {name}", "protects people with another number of rows", "plan again")

    def _check_columns(self) -> None:
        """Refuse attributes that are called like a column of numbers: tables could not hold both."""
        numbers = {column.casefold() for asked in (Asked(COUNT), *self.asked) for column in asked.columns}
        taken = next((name for name in self.schema.names if name.casefold() in numbers), None)
        if taken is not None:
            problem = "a table of the cube has a column of numbers of that name"
            raise SchemaError(f"attribute {taken!r}", problem, "rename it, and give `column:`")

    def check_cost(self) -> None:
        """Refuse parts that together cost more than the whole allows; each is held against its own share."""
        for name in ("epsilon", "rho", "delta"):
            whole = getattr(self.privacy, name) or Fraction(0)
            given = sum((getattr(plan.privacy, name) or Fraction(0) for plan in self.parts.values()), Fraction(0))
            if given > whole:
                raise BudgetExceeded(given, whole, f"{name} for all parts")

    @property
    def workload(self) -> Workload:
        """The tables asked for."""
        return self.count.workload

    @property
    def parts(self) -> dict[str, Design]:
        """The plan of the counts, and those of the sums."""
        return {COUNT: self.count, **self.sums}

    @property
    def digests(self) -> dict[str, str]:
        """What each part decided."""
        return {name: plan.digest for name, plan in self.parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "format": 1,
            "cube": [str(asked) for asked in self.asked],
            "schema": self.schema.to_dict(),
            "privacy": self.privacy.to_dict(),
            "parts": {name: {**plan.to_dict(), "digest": plan.digest} for name, plan in self.parts.items()},
        }

    def to_json(self) -> str:
        """The file's text."""
        return json.dumps(self.to_dict(), ensure_ascii=False, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> Plan:
        """Read a plan file of a cube: every part and their sum are checked."""
        raw = read_json(text, "plan", PlanError, AGAIN)
        try:
            parts = {name: design_of(part) for name, part in raw["parts"].items()}
            schema = Schema.from_dict(raw["schema"])
            asked = tuple(Asked.parse(word, schema) for word in raw["cube"])
            count = parts.pop(COUNT)
            cube = Plan(seen_by(count.workload, schema), Privacy.from_dict(raw["privacy"]), asked, count, parts)
            if digest_of(cube.to_dict()) != digest_of(raw):
                raise ValueError
            return cube
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise PlanError("plan", "a field is missing or damaged", AGAIN) from None


def is_cube_plan(text: str) -> bool:
    """Whether a plan file is one of a cube."""
    raw = read_json(text, "plan", PlanError, AGAIN)
    return isinstance(raw, dict) and "cube" in raw


def part_privacy(privacy: Privacy, share: Fraction, measure: Measure | None) -> Privacy:
    """What a part must keep: its share of the guarantee, for people whose rows may count as often as a sum says."""
    amounts = {name: value * share for name in ("epsilon", "rho", "delta") if (value := getattr(privacy, name))}
    neighbours, rows = privacy.neighbours, privacy.rows_per_person
    if measure is not None:
        rows *= measure.largest
        if neighbours == "replace-one" and measure.is_signed:
            neighbours, rows = "add-remove", 2 * rows
        elif neighbours == "replace-one" and rows == 1:  # 0 may become 1 in its cell, so the total is not public
            neighbours, rows = "add-remove", 2
    return Privacy.of(**amounts, neighbours=neighbours, rows_per_person=rows)


def shares_of(privacy: Privacy, measures: Sequence[Measure]) -> dict[str, Fraction]:
    """The shares that make the asked averages' errors least; they sum to one, exactly."""
    power = 1 / 3 if privacy.is_pure else 1 / 2
    weights = {COUNT: (len(measures) / 16) ** power}
    for measure in measures:
        low, high = measure.bounds
        weights[measure.name] = float(measure.largest * measure.resolution / (high - low)) ** (2 * power)
    total = sum(weights.values())
    shares = {m.name: Fraction(round(10_000 * weights[m.name] / total), 10_000) for m in measures}
    return {COUNT: 1 - sum(shares.values(), Fraction(0)), **shares}


def make_cube(
    privacy: Privacy,
    schema: Schema,
    words: Sequence[str],
    shares: Mapping[str, Fraction] | None,
    make: Callable[[Privacy], Design],
) -> Plan:
    """Plan every part with its share; `make` plans the workload for a guarantee."""
    asked = tuple(dict.fromkeys(Asked.parse(word, schema) for text in words for word in text.split(",")))
    names = tuple(dict.fromkeys(one.measure for one in asked if one.measure))
    if not names:
        raise BadInput("measure", "no measure is asked for", "write for example `--measure avg(wage)`")
    measures = [schema.measure(name) for name in names]
    parts = dict(shares_of(privacy, measures) if shares is None else shares)
    if parts.keys() != {COUNT, *names}:
        fix = f"name {COUNT}, {', '.join(names)}"
        raise BadInput("shares", "do not name the count and every measure asked for", fix)
    if any(share <= 0 for share in parts.values()) or sum(parts.values()) > 1:
        raise BadInput("shares", "must be positive and sum to at most 1", "give for example count=0.3, wage=0.7")
    count = make(part_privacy(privacy, parts[COUNT], None))
    sums = {m.name: make(part_privacy(privacy, parts[m.name], m)) for m in measures}
    return Plan(seen_by(count.workload, schema), privacy, asked, count, sums)


def plain(schema: Schema) -> Schema:
    """The attributes alone: whose rows count, and what is summed, is the cube's concern."""
    return replace(schema.declared, unit=None, measures=())


def seen_by(workload: Workload, schema: Schema) -> Schema:
    """A cube's schema at the levels that its workload asks for."""
    return replace(schema.declared, attributes=workload.schema.attributes, whole=schema.declared)
