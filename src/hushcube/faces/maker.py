"""How faces are made: tables that keep a promise, from a measurement alone.

consistent    the tables nearest to the noisy ones that add up: l1, linf (linear programs), l2 (least squares)
nonnegative   also without negative cells: the full table where it fits, else table by table
integral      also whole numbers: counted from synthetic people
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushcube.designs import LatticeDesign, MatrixDesign
from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.designs.matrix.design import least_squares
from hushcube.errors import HushcubeError
from hushcube.faces import barak, facts as public, norms
from hushcube.faces.atoms import atoms, fixed_cells
from hushcube.faces.barak_shift import kept_share, shift, shifted
from hushcube.faces.cell_errors import CellErrors
from hushcube.faces.checking import FULL_TABLE, fitting_objective
from hushcube.faces.crowd import Codes
from hushcube.faces.entropy import entropy_tables
from hushcube.faces.full_table import SummedTable, nonnegative_table
from hushcube.faces.local import LocalTables, NonNegative, nonnegative_marginals
from hushcube.faces.people import PeopleTables, from_table, match, require_room, within_atoms
from hushcube.faces.query_rows import nearest_rows
from hushcube.faces.rounding import round_parts, round_table
from hushcube.faces.target import Target, observe
from hushcube.faces.value import PROMISES, FaceValue
from hushcube.lattice.coefficients import Weighed
from hushcube.lattice.second_guesses import Earlier
from hushcube.model.arrays import Floats, position_rows
from hushcube.model.facts import Fact, Facts
from hushcube.model.noise import Measurement
from hushcube.planning.bounds import DELTA, theorem_7, theorem_8
from hushcube.progress import Clock

_TABLES_LEFT: Final = 1e-4
_FULL_TABLE_LEFT: Final = 1e-5
"""Of the predicted total variance: the squared distance from the exact projection at which the solvers are content."""
_FULL_TABLE_FALL: Final = 1e-4
"""Of the predicted total variance: how much f must fall in ten steps for the full table to go on."""
_SMALL_TABLE: Final = 2**18
"""Cells up to which steps cost so little that the fit goes on for longer, and that tables with an opinion are held
together by one too."""
_ENOUGH: Final = 1e-3
"""Of the predicted variance of the largest tables: how far whole numbers may be from the real ones they follow."""
_CLOSE: Final = 0.05  # the mean square of whole numbers' distances, in people, that tables with an opinion allow
_NOBODY: Final = 1e-6  # tables of fewer people hold rounding errors and nothing else


@dataclass(frozen=True, eq=False)
class Face:
    """Tables that keep a promise, what was done to get them, and the synthetic people they count, if any."""

    value: FaceValue
    tables: Answers
    report: dict[str, Any]
    people: Codes | None = None
    errors: CellErrors | None = None
    """Estimated errors of its cells, where a last look of the run tells how large they are."""

    @property
    def name(self) -> str:
        """What the face is called in a release."""
        return self.value.name


class FaceMaker:
    """What all faces of one measurement share."""

    def __init__(
        self,
        design: Design,
        measurement: Measurement,
        value: FaceValue,
        clock: Clock,
        misfits: Mapping[int, Floats] | None = None,
    ) -> None:
        """`misfits` of tables from their guesses, by order, are known where a selective run looked at them."""
        self.plan, self.measurement, self.value, self.clock = design, measurement, value, clock
        self.misfits = misfits
        self.earlier: Earlier | None = None
        self.second: Mapping[int, Floats] | None = None  # misfits of guesses by the earlier edition
        self.fitted: Answers | None = None  # with an opinion
        self.answers: Answers = design.answers(measurement)
        if isinstance(design, MatrixDesign):  # also cells that are not published have to be near something
            self.answers = least_squares(design, measurement.values[0].astype(np.float64))
        self.facts = value.public_facts or Facts.none(design.schema)
        if self._public_total is not None and value.rows is None:
            self.facts = Facts(design.schema, (*self.facts.facts, Fact((), (), self._public_total)))
            public.check(self.facts, self._closing)

    def face(self) -> Face:
        """The face of one of the kinds that are here, by the method that was asked for."""
        value = self.value
        if isinstance(self.plan, LatticeDesign) and value.method in ("barak", "shift"):
            return (self._barak if value.method == "barak" else self._shift)(self.plan)
        if value.kind == "consistent" or value.norm != "l2":
            tables, report = self._nearest()
            return Face(value, tables, report) if value.kind != "integral" else self._integral(tables, report, None)
        tables, report, full = self._opinionated() if self._has_opinion else self._nonnegative()
        return Face(value, tables, report) if value.kind == "nonnegative" else self._integral(tables, report, full)

    @property
    def _has_opinion(self) -> bool:
        """Tables that a selective run hardly measured need one."""
        return self.value.method == "entropy" or (self.value.method == "auto" and self.misfits is not None)

    @property
    def _closing(self) -> Clock:
        """For what makes a face valid in the end: a public total alone takes no time that a limit could save."""
        return self.clock if self.value.public_facts else Clock(progress=self.clock.progress)

    @cached_property
    def _public_total(self) -> int | None:
        """The number of people, where it was published exactly."""
        if not self.plan.publishes_total:
            return None
        if isinstance(self.plan, LatticeDesign):
            return int(self.measurement.values[0].reshape(-1)[0])  # the table of no attributes comes first
        return round(float(self.answers.tables(position_rows(()), ()).reshape(-1)[0]))

    def _nearest(self) -> tuple[Answers, dict[str, Any]]:
        """The consistent tables nearest to the measured ones, or to the answers where no tables were measured."""
        if isinstance(self.plan, MatrixDesign):
            value = self.value
            table, distance = nearest_rows(self.plan, self.measurement, value.norm, value.weights, self.clock)
            return table, {"found_by": "the rank-revealing form of the rows", "distance": distance}
        seen = observe(self.plan, self.measurement, self.answers, self.value.weights, self.value.near)
        if self.value.norm == "l2":
            found = seen.least_squares(seen.tables.closure)
            if self._public_total is not None:  # of no other space's concern
                found.blocks[0][...] = self._public_total
            return found, {"found_by": "least squares"}
        if self.facts:
            seen = seen.with_facts(self.facts)
        nonnegative = self.value.kind != "consistent"
        near, distance = norms.nearest(seen, self.value.norm, self.clock, nonnegative=nonnegative)
        report = {"found_by": "linear program over coefficients", "distance": distance}
        return NonNegative(near) if nonnegative else near, report

    def _nonnegative(self) -> tuple[Answers, dict[str, Any], Floats | None]:
        target = Target.of(self.plan, self.answers, tuple(self.facts.by_marginal))
        fixed = fixed_cells(self.facts, target.largest).batches if self.facts else None
        variance = max(self.plan.errors.total_variance(exact=True), 1e-6)
        local = nonnegative_marginals(target, self.clock, fixed=fixed, tolerance=_TABLES_LEFT * variance)
        wide = self.value.method == "local" or math.prod(self.plan.schema.sizes) > FULL_TABLE
        if wide or self.clock.over:  # out of time, they serve in place of the full table
            report = {"found_by": "local", "distance": math.sqrt(2 * local.objective), "steps": local.steps}
            late = {} if wide and local.in_time else {"stopped": "time"}
            return local, {**report, **late, **_certificate(local.gap, variance)}, None
        table, report = self._held_together(target, local, variance)
        return SummedTable(table), {"found_by": "full-table", **report}, table

    def _held_together(self, target: Target, local: LocalTables, variance: float) -> tuple[Floats, dict[str, Any]]:
        """The full table nearest to a target, so that one data set has all tables, and what is reported of it."""
        kinds = atoms(self.facts) if self.facts else None
        allowed = None if kinds is None else kinds.spread(kinds.allowed)
        shape = self.plan.schema.sizes
        least_fall = _FULL_TABLE_FALL * min(math.prod(shape) / _SMALL_TABLE, 1.0) * variance
        ends = {"tolerance": _FULL_TABLE_LEFT * variance, "least_fall": least_fall}
        fit = nonnegative_table(target, shape, self.clock, start=local, allowed=allowed, **ends)
        table, gap = fit.table, fit.gap
        if self.facts:  # scaled to them at the end: what was proved does not bound the scaled table
            table, gap = public.rake(fit.table, self.facts, self._closing), math.inf
        distance = math.sqrt(target.distance(SummedTable(table)))
        report = {"distance": distance, "steps": fit.steps, "stopped": fit.stopped}
        return table, {**report, **_certificate(gap, variance)}

    def _opinionated(self) -> tuple[Answers, dict[str, Any], Floats | None]:
        if not isinstance(self.plan, LatticeDesign):
            raise NotImplementedError(type(self.plan).__name__)
        about = tuple(self.facts.by_marginal)
        largest = Target.of(self.plan, self.answers, about).largest
        fixed = fixed_cells(self.facts, largest).batches if self.facts else None
        local, report = entropy_tables(
            self.plan,
            self.answers,
            self.clock,
            facts_about=about,
            fixed=fixed,
            known=self.misfits,
            earlier=self.earlier,
            known_second=self.second,
        )
        self.fitted = local
        if math.prod(self.plan.schema.sizes) > _SMALL_TABLE or self.clock.over:
            return local, report, None
        target = Target.of(self.plan, local, about)
        variance = max(self.plan.errors.total_variance(exact=True), 1e-6)
        table, held = self._held_together(target, local, variance)
        late = {"stopped": "time"} if held["stopped"] == "time" else {}
        return SummedTable(table), {**report, **late, "full_table": held}, table

    def _integral(self, tables: Answers, report: dict[str, Any], full: Floats | None) -> Face:
        """People whose tables are near the given ones; all face-valid tables are counted from them."""
        schema, facts = self.plan.schema, self.facts
        family = Target.of(self.plan, self.answers).largest
        wanted = [tables.tables(batch.rows, batch.shape) for batch in family.batches]
        found = float(wanted[0][0].sum())
        known = next((fact.count for fact in facts.facts if not fact.marginal), max(round(found), 0))
        total = known if self.value.rows is None else self.value.rows
        require_room(total, len(schema), self.clock)
        scale = total / found if found > _NOBODY else 0.0  # tables of nobody say nothing: people go anywhere
        wanted = [values * scale for values in wanted]
        start, classes = None, facts.classes()
        if any(of.any() for of in classes):
            kinds = atoms(facts)
            if full is not None:
                parts = public.whole_totals(kinds, kinds.sums(full * scale), total, self.clock)
                start = from_table(round_parts(full * scale, kinds.labels(schema.sizes), parts.reshape(-1)))
            else:
                ones = [tables.tables(position_rows((i,)), (n,))[0] for i, n in enumerate(schema.sizes)]
                start = within_atoms(kinds, ones, total, self.clock)
        elif full is not None:
            start = from_table(round_table(full * scale, total))
        variance = float(self.plan.errors.exact_cell_variances[self.plan.request.marginals.ids(family)] @ family.cells)
        enough = _ENOUGH * scale**2 * variance if math.isfinite(variance) else 0.0  # carriers of queries may lack one
        if self.fitted is not None:  # that has errors far below those of the unbiased tables
            enough = min(enough, _CLOSE * float(family.cells.sum()))
        targets = Weighed(family, wanted, np.ones(len(family)))
        codes = match(targets, total, schema.sizes, self.clock, start=start, classes=classes, enough=enough)
        if self.clock.over:
            report = {**report, "stopped": "time"}
        counted = PeopleTables(codes, schema.sizes)
        apart = [counted.tables(b.rows, b.shape) - y for b, y in zip(family.batches, wanted, strict=True)]
        rms = math.sqrt(sum(float((a**2).sum()) for a in apart) / sum(a.size for a in apart))
        return Face(self.value, counted, {**report, "people": total, "rms_from_rounding": rms}, codes)

    def _barak(self, design: LatticeDesign) -> Face:
        value = replace(self.value, minimise=fitting_objective(design, self.value))
        found = barak.nonnegative_table(design, self.measurement, value.minimise, self.clock, weights=value.weights)
        report: dict[str, Any] = {"found_by": "linear program over the full table", "distance": found.distance}
        report |= {"support": found.support, "numbers_fitted": found.rows, **_bounds(design, value)}
        if value.kind == "nonnegative":
            return Face(value, SummedTable(found.table), report)
        total = self._public_total
        rounded = found.rounded if total is None else round_table(found.table, total)
        require_room(int(rounded.sum()), len(design.schema), self.clock)
        report |= {"people": int(rounded.sum()), "moved_by_rounding": float(np.abs(rounded - found.table).sum())}
        return Face(value, SummedTable(rounded.astype(np.float64)), report, from_table(rounded))

    def _shift(self, design: LatticeDesign) -> Face:
        tables = shifted(design, self.measurement, self.value.probability)
        lowest = min(float(tables.tables(b.rows, b.shape).min()) for b in design.request.marginals.batches)
        if lowest < 0:
            raise HushcubeError(
                "method: the shift left a negative cell, as it does with the chance of 1 - probability. "
                "Fix: raise `probability`, or use the method full-table."
            )
        added, total = shift(design, self.value.probability), self._public_total
        report: dict[str, Any] = {"found_by": "shift of the total", "phantom_people": added}
        if total is not None:
            report |= {"phantom_people": 0, "shift": added, "shrunk_to": kept_share(total, added)}
        return Face(self.value, tables, report)


MAKERS: Final[dict[str, Callable[[FaceMaker], Face]]] = dict.fromkeys(PROMISES, FaceMaker.face)
"""How the tables of each kind of face are made. A new kind is added here, and to the promises of `value.py`."""


def _certificate(gap: float, variance: float) -> dict[str, Any]:
    """How far, at most, the tables are from the exact projection; as a share of what the noise alone does."""
    if not math.isfinite(gap):
        return {"certificate": None}
    left = math.sqrt(max(2 * gap, 0.0))
    return {"certificate": {"distance_left": left, "share_of_noise": left / math.sqrt(variance)}}


def _bounds(design: LatticeDesign, value: FaceValue) -> dict[str, Any]:
    """What the theorems of Barak et al. promise for the L1 error of each table."""
    theorems = {("fourier", "max-coefficient"): (7, theorem_7), ("marginal", "max-marginal"): (8, theorem_8)}
    if (key := (design.basis.name, value.minimise)) not in theorems:
        return {}
    number, theorem = theorems[key]
    bound = theorem(design, DELTA, weights=value.weights)
    errors = {"largest_l1_error": bound.error, "largest_l1_error_sharper": bound.sharper_error}
    largest = {name: float(error.max()) for name, error in errors.items()}
    return {"bound": {"theorem": number, "probability": 1 - DELTA, **largest}}
