"""A plan: counts, and sums and averages of measures, of one workload under one guarantee; a plan file is one.

Each part, the count and every measure's sums, is a design of its own with a share of the guarantee. A plan of counts
has one part, which has all of it.

A sum over rows of integers q, |q| <= Q, is a count in which a row may count up to Q times. So what is measured, its
noise and its errors are those of a design for counts of people who have k Q rows where they had k: [model/measure.py]

    add-remove                  k Q rows come or go; with both signs no more, since |sum q| <= k Q
    replace-one, one sign       up to k Q rows go and up to k Q others come; the total is not public
    replace-one, both signs     +Q may become -Q in one cell: 2 k Q rows come or go

Parts compose: their epsilons (rhos, deltas) add up to the whole.

When a plan file is read, the whole of it is checked: every field, the strategy's name, the cost and the digest. A file
that does not say exactly what hushcube would write for the plan it describes is refused: true for 1, "1" for 1 and
[[1]] for [1] are damage, as are fields that nobody knows.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, get_args

import numpy as np

import hushcube.designs  # noqa: F401 - the kinds of plans make themselves known
from hushcube.designs.design import EVERY_RECOVERY, FORMAT as DESIGN_FORMAT, Budgets, Design, digest_of, read_recovery
from hushcube.designs.request import Request
from hushcube.durable import new_file
from hushcube.errors import BadInput, BudgetExceeded, NotApplicable, PlanError
from hushcube.model.files import read_json, read_text
from hushcube.model.measure import Measure
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows, query_table
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import COUNTED, Quantity, Workload
from hushcube.planning.bounds import ErrorBound, error_bounds
from hushcube.planning.summary import MORE, TABLES, asked_for, parts_page, tables_page
from hushcube.shown import Page, Shown
from hushcube.strategies import check_strategy
from hushcube.text import visible

AGAIN: Final = "plan again with `hushcube plan --out`"
FORMAT: Final = 2
"""Of plan files. In format 1 a plan of counts was its design alone, and one with measures had its designs as parts."""
_SHARED: Final = ("format", "schema", "workload", "queries")  # what a plan file says once for all its parts


@dataclass(frozen=True, eq=False, repr=False)
class Plan(Shown):
    """The design of the counts, and one for the sums of each measure; together they keep the guarantee."""

    schema: Schema
    privacy: Privacy
    asked: tuple[Quantity, ...]
    """The sums and averages asked for; counts always are."""
    designs: Mapping[str, Design]

    def __post_init__(self) -> None:
        object.__setattr__(self, "designs", MappingProxyType(dict(self.designs)))
        self.schema.check_unit(self.privacy.rows_per_person)
        if list(self.designs) != [COUNT, *dict.fromkeys(quantity.measure for quantity in self.asked)]:
            raise PlanError("plan, parts", "are not the count and the measures asked for", "plan again")
        if not self.asked:
            if self.count.privacy != self.privacy or self.count.schema != self.schema:
                raise PlanError("plan, count", "is for another guarantee or schema than the plan", "plan again")
            return
        self.check_cost()
        for name, design in self.designs.items():
            if design.adapts or design.is_outcome:
                raise NotApplicable(design.strategy, "it adapts to noisy counts, and cubes also hold sums")
            if design.left_out:
                raise NotApplicable(design.strategy, "it leaves tables out, and sums need the tables of the counts")
            if design.schema.declared != plain(self.schema) or design.workload.words != self.workload.words:
                raise PlanError(f"plan, {name}", "is for other tables than the count", "plan again")
            expected = part_privacy(
                self.privacy, _share(design.privacy, self.privacy), None if name == COUNT else self.schema.measure(name)
            )
            if design.privacy != expected:
                raise PlanError(f"plan, {name}", "protects people with another number of rows", "plan again")

    def __repr__(self) -> str:
        words = "".join(f", {quantity}" for quantity in self.asked[:8])
        tables = f"{len(self.workload):,} tables of count{words}"
        return f"Plan({visible(self.schema.name)!r}: {tables}, {self.strategy}, {self.privacy})"

    def page(self, rows: int = TABLES, more: str = MORE) -> Page:
        """The expected error of each table, as it is printed; `more` says where those beyond some rows are."""
        return (parts_page(self) if self.asked else Page((asked_for(self),))) + tables_page(self, rows, more)

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read a plan file; its cost is checked again."""
        return cls.from_json(read_text(path, PlanError, "plan"))

    def save(self, path: str | Path) -> None:
        """Write a new plan file."""
        with new_file(Path(path)) as file:
            file.write_text(self.to_json(), encoding="utf-8")

    @classmethod
    def of_counts(cls, design: Design) -> Plan:
        """The plan that is one design of counts."""
        return cls(design.schema, design.privacy, (), {COUNT: design})

    def check_cost(self) -> None:
        """Refuse parts that together cost more than the whole allows; each is held against its own share."""
        for name in ("epsilon", "rho", "delta"):
            whole = getattr(self.privacy, name) or Fraction(0)
            given = sum((getattr(part.privacy, name) or Fraction(0) for part in self.designs.values()), Fraction(0))
            if given > whole:
                raise BudgetExceeded(given, whole, f"{name} for all parts")

    @property
    def count(self) -> Design:
        """The design of the counts."""
        return self.designs[COUNT]

    @property
    def sums(self) -> dict[str, Design]:
        """The designs of the measures' sums."""
        return {name: design for name, design in self.designs.items() if name != COUNT}

    @property
    def workload(self) -> Workload:
        """The tables asked for."""
        return self.count.workload

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What every table holds: the count, and what else was asked for."""
        return COUNTED, *self.asked

    @property
    def measured(self) -> dict[str, Quantity]:
        """What the noisy numbers of each part are of: the count, and sums."""
        return {name: Quantity("sum", name) if name != COUNT else COUNTED for name in self.designs}

    @property
    def strategy(self) -> str:
        """The strategies of the parts, each once."""
        return ", ".join(dict.fromkeys(design.strategy for design in self.designs.values()))

    @property
    def details(self) -> Mapping[str, Any]:
        """What the count's strategy has to say about its decision."""
        return self.count.details

    @cached_property
    def bounds(self) -> tuple[ErrorBound, ...]:
        """What theorems promise for the faces of the counts."""
        return tuple(error_bounds(self.count))

    def carried_out(self, designs: Mapping[str, Design]) -> Plan:
        """The plan with the designs that were carried out: an adaptive one ends with another than it began with."""
        same = all(designs[name] is design for name, design in self.designs.items())
        return self if same else replace(self, designs=designs)

    @cached_property
    def digest(self) -> str:
        """Any change of any part changes it."""
        return _digest(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, without the digest."""
        told = {name: {**design.to_dict(), "digest": design.digest} for name, design in self.designs.items()}
        return {
            **{name: value for name, value in told[COUNT].items() if name in _SHARED},
            "format": FORMAT,
            "schema": self.schema.to_dict(),
            "privacy": self.privacy.to_dict(),
            "measures": [str(quantity) for quantity in self.asked],
            "parts": {
                part: {name: value for name, value in own.items() if name not in _SHARED} for part, own in told.items()
            },
        }

    def to_json(self) -> str:
        """The file's text: the JSON form with its digest."""
        told = self.to_dict()
        return json.dumps({**told, "digest": _digest(told)}, ensure_ascii=False, allow_nan=False)

    @staticmethod
    def from_json(text: str) -> Plan:
        """Read a plan file: every part, and all of them together, are checked."""
        raw = read_json(text, "plan", PlanError, AGAIN)
        if not isinstance(raw, dict) or type(raw.get("format")) is not int or raw["format"] not in (1, FORMAT):
            raise PlanError("plan", "is not a plan of this version of hushcube", AGAIN)
        try:
            if raw["format"] == FORMAT:
                return _read(raw)
            return _earlier_cube(raw) if "cube" in raw else Plan.of_counts(design_of(raw))
        except BadInput:
            raise
        except (KeyError, TypeError, ValueError, AttributeError):
            raise PlanError("plan", "a field is missing or damaged", AGAIN) from None


def read_design(text: str) -> Design:
    """The design in a file's text."""
    return design_of(read_json(text, "plan", PlanError, AGAIN))


def design_of(raw: Any) -> Design:
    """The design of a JSON document."""
    if not isinstance(raw, dict) or type(raw.get("format")) is not int or raw["format"] != DESIGN_FORMAT:
        raise PlanError("plan", "is not a plan of this version of hushcube", AGAIN)
    try:
        schema = Schema.from_dict(raw["schema"])
        asked = raw.get("queries")
        rows = None if asked is None else SparseRows.from_dict(asked)
        queries = None if asked is None else query_table(schema, asked["attributes"], rows)
        workload = Workload.parse(raw["workload"], schema, queries)
        request = Request(workload, Privacy.from_dict(raw["privacy"]))
        if raw["budgets"] not in get_args(Budgets):
            raise ValueError
        told = raw["recovery"]
        if not isinstance(told, dict) and told not in EVERY_RECOVERY:
            raise ValueError
        kind = Design.kinds[raw["design"]]
        own = kind.from_specification(raw, workload.schema)
        budgets = np.array([np.inf if budget is None else budget for budget in raw["budget"]], np.float64)
        decision = (raw["strategy"], raw["budgets"], read_recovery(told), raw["proof"], budgets)
        plan = kind(request, *decision, details=raw["details"], **own)
        check_strategy(plan)
        digest = digest_of({key: value for key, value in raw.items() if key != "digest"})
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise PlanError("plan", "a field is missing or damaged", AGAIN) from None
    if not plan.digest == digest == raw.get("digest"):
        raise PlanError("plan, digest", "does not fit the plan: the file was changed", AGAIN)
    return plan


def _digest(told: dict[str, Any]) -> str:
    """Of the JSON form; its parts are long, and each has a digest that covers it and what it shares with the others."""
    return digest_of({**told, "parts": {name: part["digest"] for name, part in told["parts"].items()}})


def _read(raw: dict[str, Any]) -> Plan:
    """A plan from its JSON form, which must be to the letter what is written for it."""
    schema = Schema.from_dict(raw["schema"])
    asked = tuple(Quantity.parse(word, schema) for word in raw["measures"])
    shared = {name: raw[name] for name in _SHARED if name in raw}
    shared |= {"format": 1, "schema": plain(schema).to_dict() if asked else raw["schema"]}
    if any(part.keys() & shared.keys() for part in raw["parts"].values()):
        raise ValueError
    designs = {name: design_of({**shared, **part}) for name, part in raw["parts"].items()}
    workload = designs[COUNT].workload
    plan = Plan(
        seen_by(workload, schema) if asked else workload.schema, Privacy.from_dict(raw["privacy"]), asked, designs
    )
    if not plan.digest == _digest({k: v for k, v in raw.items() if k != "digest"}) == raw.get("digest"):
        raise PlanError("plan, digest", "does not fit the plan: the file was changed", AGAIN)
    return plan


def _earlier_cube(raw: dict[str, Any]) -> Plan:
    """A plan with measures from a file of format 1, whose parts say all that a plan of counts says."""
    schema = Schema.from_dict(raw["schema"])
    asked = tuple(q for word in raw["cube"] if (q := Quantity.parse(word, schema)).measure)
    designs = {name: design_of(part) for name, part in raw["parts"].items()}
    if not asked or raw.keys() != {"format", "cube", "schema", "privacy", "parts"}:
        raise ValueError
    plan = Plan(seen_by(designs[COUNT].workload, schema), Privacy.from_dict(raw["privacy"]), asked, designs)
    if (raw["schema"], raw["privacy"]) != (plan.schema.to_dict(), plan.privacy.to_dict()):
        raise ValueError
    return plan


def _share(part: Privacy, whole: Privacy) -> Fraction:
    """Which share of a guarantee a part of it is, as its epsilon or rho says."""
    amount = "epsilon" if whole.rho is None else "rho"
    return Fraction(getattr(part, amount) or 0) / Fraction(getattr(whole, amount))


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


def plain(schema: Schema) -> Schema:
    """The attributes alone: whose rows count, and what is summed, is the plan's concern."""
    return replace(schema.declared, unit=None, measures=())


def seen_by(workload: Workload, schema: Schema) -> Schema:
    """A plan's schema at the levels that its workload asks for."""
    return replace(schema.declared, attributes=workload.schema.attributes, whole=schema.declared)
