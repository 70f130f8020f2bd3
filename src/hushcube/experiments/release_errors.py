"""How far a release is from the truth, cell by cell: errors, intervals that hold it, and the worst cells. NOT private.

    error           published - exact
    standardised    error / the stated standard error
                    of an average t = s/c:  (S - t C) / sqrt(σ_S² + t² σ_C²)    [Fieller 1954; docs/maths.md, 13]
    covered         whether the published 95% interval holds the exact number

Every published number is combined from its parts as the release does it, and so is the exact one, from exact parts
without errors. Averages of nobody, and those that the release does not know, are not compared. Tables of one shape are
compared together, in bounded memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import numpy as np

from hushcube.bundle.release import Release
from hushcube.bundle.tables import (
    Estimates,
    Rows,
    Values,
    cell_margins,
    combined,
    published_family,
    std_errors,
    written,
)
from hushcube.experiments.truth import exact_values, wanted
from hushcube.faces.value import UNBIASED
from hushcube.model.arrays import Bools, Floats, Ints, Marginal
from hushcube.model.form import Form
from hushcube.model.schema import COUNT
from hushcube.model.workload import COUNTED, Quantity
from hushcube.private.boundary import guarded
from hushcube.private.engines import Engine, ExactCounts
from hushcube.progress import Progress, silent

EDGES: Final = np.arange(-6.0, 6.01, 0.25)
"""Of the histogram of standardised errors; those beyond count at its ends."""
_CHUNK: Final = 1 << 20  # cells that are compared at a time
_DRAWN: Final = 2_000  # cells of which a picture shows what was published and what is true
_SLACK: Final = 1e-9  # what floats may be off by, of numbers above one relatively


@dataclass(frozen=True)
class ComparedCells:
    """The cells of several tables of one quantity and face: arrays (tables, cells)."""

    values: Floats
    truth: Floats
    std_errors: Floats
    errors: Floats
    """Published less exact; no number where either is unknown."""
    standardised: Floats
    covered: Bools | None
    """None where no interval is published."""

    @classmethod
    def of(
        cls,
        release: Release,
        quantity: Quantity,
        published: Mapping[str, Estimates],
        exact: Mapping[str, Floats],
        *,
        intervals: bool,
    ) -> ComparedCells:
        """The numbers of a quantity, from its parts as they were published and as they are."""
        (C, C_error, _), (S, S_error, _) = published[COUNT], published[quantity.part]
        c, s = exact[COUNT], exact[quantity.part]
        values, deviations, margins, ends = combined(
            quantity, release.schema, published[COUNT], published[quantity.part]
        )
        truth = combined(quantity, release.schema, (c, 0.0, 0.0), (s, 0.0, 0.0))[0]
        slack = _SLACK * np.maximum(1.0, np.abs(truth))
        errors = values - truth
        errors = np.where(np.abs(errors) <= slack, 0.0, errors)
        if quantity.kind == "avg":
            t = np.divide(s, c, out=np.full(c.shape, np.nan), where=c > 0)
            off, deviation = np.where(np.isnan(errors), np.nan, S - t * C), np.hypot(S_error, t * C_error)
        else:
            off, deviation = errors, deviations
        with np.errstate(divide="ignore", invalid="ignore"):
            standardised = np.where(off == 0, 0.0, off / deviation)
        low, high = (values - margins, values + margins) if ends is None else ends
        covered = (low - slack <= truth) & (truth <= high + slack) if intervals else None
        return cls(values, truth, np.broadcast_to(deviations, values.shape), errors, standardised, covered)


@dataclass(frozen=True, kw_only=True)
class CheckedPart:
    """One quantity of some tables against the truth; NOT private."""

    face: str
    what: str
    table: str | None
    """Its word; None for several."""
    attributes: int | None
    """How many a table has; None for all tables together."""
    tables: int
    cells: int
    compared: int
    """Cells of which both numbers are known; all but for averages."""
    std_error: float
    """As stated: the root of the mean variance of a cell; no number for averages, which have intervals alone."""
    root_mean_square: float
    """Of published less exact, as are the next two."""
    mean_error: float
    worst_cell: float
    coverage: float | None
    """The share of published 95% intervals that hold the truth; None beside other faces than the unbiased one."""


@dataclass
class Tally:
    """What the cells of each table of one quantity and face add up to."""

    face: str
    quantity: Quantity
    cells: Ints
    """Of each table."""
    compared: Ints = field(init=False)
    """Cells of which both numbers are known."""
    absolute: Floats = field(init=False)
    squared: Floats = field(init=False)
    largest: Floats = field(init=False)
    variance: Floats = field(init=False)
    """The sum of the stated ones."""
    covered: Ints = field(init=False)
    histogram: Ints = field(init=False)
    """Standardised errors of all cells."""
    sample: list[Floats] = field(default_factory=list)
    """Pairs of published and exact numbers, of evenly chosen cells."""

    def __post_init__(self) -> None:
        for name in ("compared", "covered"):
            setattr(self, name, np.zeros(len(self.cells), np.int64))
        for name in ("absolute", "squared", "largest", "variance"):
            setattr(self, name, np.zeros(len(self.cells)))
        self.histogram = np.zeros(len(EDGES) - 1, np.int64)

    @property
    def has_intervals(self) -> bool:
        """Whether intervals are of these numbers: they are those of the unbiased face."""
        return self.face == UNBIASED

    def part(self, at: Any = slice(None), *, table: str | None = None, attributes: int | None = None) -> CheckedPart:
        """What some of the tables come to."""
        cells, compared = self.cells[at], int(self.compared[at].sum())
        known = max(compared, 1)
        return CheckedPart(
            face=self.face,
            what=str(self.quantity),
            table=table,
            attributes=attributes,
            tables=len(cells),
            cells=int(cells.sum()),
            compared=compared,
            std_error=math.sqrt(self.variance[at].sum() / cells.sum()),
            root_mean_square=math.sqrt(self.squared[at].sum() / known) if compared else math.nan,
            mean_error=float(self.absolute[at].sum()) / known if compared else math.nan,
            worst_cell=float(self.largest[at].max()) if compared else math.nan,
            coverage=int(self.covered[at].sum()) / known if compared and self.has_intervals else None,
        )

    def add(self, at: Ints, cells: ComparedCells, every: int) -> None:
        """Count the cells of the tables `at`; one cell in so many is kept for a picture."""
        known = ~np.isnan(cells.errors)
        off = np.where(known, np.abs(cells.errors), 0.0)
        self.compared[at] = known.sum(axis=1)
        self.absolute[at], self.squared[at] = off.sum(axis=1), np.square(off).sum(axis=1)
        self.largest[at] = off.max(axis=1)
        self.variance[at] = np.square(cells.std_errors).sum(axis=1)
        if cells.covered is not None:
            self.covered[at] = (cells.covered & known).sum(axis=1)
        within = np.clip(cells.standardised[known], EDGES[0], EDGES[-1])
        self.histogram += np.histogram(within, EDGES)[0]
        pairs = np.stack([cells.values, cells.truth], axis=-1).reshape(-1, 2)
        self.sample.append(pairs[::every][known.ravel()[::every]])


@dataclass(frozen=True, kw_only=True)
class WorstCell:
    """A cell far from the truth, in standard errors; NOT private."""

    face: str
    what: str
    table: str
    labels: tuple[str, ...]
    published: float
    truth: float
    std_error: float
    """As stated; no number for averages."""
    standardised: float
    """The error in standard errors."""


class _Worst:
    """The cells whose standardised errors are the largest so far: columns of numbers."""

    def __init__(self, most: int) -> None:
        self._most, self._columns = most, np.zeros((7, 0))

    def add(self, tally: int, at: Ints, cells: ComparedCells) -> None:
        size = np.where(np.isnan(cells.standardised), -1.0, np.abs(cells.standardised)).ravel()
        found = np.argsort(-size, kind="stable")[: self._most]
        found = found[size[found] >= 0]
        table, cell = np.divmod(found, cells.values.shape[1])
        numbers = (cells.values, cells.truth, cells.std_errors, cells.standardised)
        columns = (np.full(len(found), tally), at[table], cell, *(own[table, cell] for own in numbers))
        both = np.concatenate([self._columns, np.array(columns, np.float64).reshape(7, -1)], axis=1)
        self._columns = both[:, np.argsort(-np.abs(both[6]), kind="stable")[: self._most]]

    def named(self, release: Release, tallies: Sequence[Tally]) -> Iterator[WorstCell]:
        words = list(release)
        tables: list[Marginal | Form] = [*release.plan.workload.published, *release.plan.workload.forms]
        attributes = release.schema.attributes
        for tally, table, cell, published, truth, std_error, standardised in self._columns.T.tolist():
            axes, own = tables[int(table)], tallies[int(tally)]
            labels = axes.labels if isinstance(axes, Form) else [attributes[i].labels for i in axes]
            at = np.unravel_index(int(cell), [len(along) for along in labels]) if labels else ()
            yield WorstCell(
                face=own.face,
                what=str(own.quantity),
                table=words[int(table)],
                labels=tuple(along[int(i)] for along, i in zip(labels, at, strict=True)),
                published=published,
                truth=truth,
                std_error=std_error,
                standardised=standardised,
            )


@guarded
def compare_release(
    release: Release, data: Engine, faces: Sequence[str], worst: int, progress: Progress = silent
) -> tuple[ExactCounts, list[Tally], list[WorstCell]]:
    """Count the data as the release did, and compare every published cell of some faces with it.

    With the counts come tallies, of every face and quantity, whose tables are in the order of the release, and so many
    of the worst cells of each face.
    """
    plan, workload = release.plan, release.plan.workload
    measures = [plan.schema.measure(name) for name in plan.sums]
    progress("counting", 0.0)
    levels = wanted(workload).levels
    counts = data.count(plan.schema, levels, measures=measures, progress=lambda share: progress("counting", share))
    cells = np.array([*map(plan.schema.cells, workload.published), *(form.cells for form in workload.forms)])
    tallies = [
        Tally(face, quantity, cells)
        for face in faces
        for quantity in (written(plan) if face == UNBIASED else (COUNTED,))
    ]
    found = {face: _Worst(worst) for face in faces}
    done, every = 0, math.ceil(int(cells.sum()) / _DRAWN)
    for at, published, exact in _batches(release, counts, faces):
        for number, tally in enumerate(tallies):
            compared = ComparedCells.of(
                release, tally.quantity, published[tally.face], exact, intervals=tally.has_intervals
            )
            tally.add(at, compared, every)
            found[tally.face].add(number, at, compared)
        done += int(cells[at].sum())
        progress("comparing", done / int(cells.sum()))
    return counts, tallies, [cell for own in found.values() for cell in own.named(release, tallies)]


_Batch = tuple[Ints, dict[str, dict[str, Estimates]], dict[str, Floats]]
"""The places of some tables in the release; of every face the parts' numbers, and the exact ones: (tables, cells)."""


def _batches(release: Release, counts: ExactCounts, faces: Sequence[str]) -> Iterator[_Batch]:
    """All tables, those of one shape together as far as memory is bounded."""
    plan, workload = release.plan, release.plan.workload
    exact = {name: exact_values(own) for name, own in {COUNT: counts, **counts.sums}.items()}
    parts = {name: part.source for name, part in release.parts.items()}
    sources = {face: parts if face == UNBIASED else {COUNT: release.face(face).source} for face in faces}

    def gathered(at: Ints, read: Callable[[Values], Floats], stated: Mapping[str, tuple[Floats, Floats]]) -> _Batch:
        def flat(numbers: Floats, like: Floats) -> Floats:
            return np.broadcast_to(numbers, like.shape).reshape(len(at), -1)

        published: dict[str, dict[str, Estimates]] = {}
        for face, own in sources.items():
            values = {name: read(source) for name, source in own.items()}
            published[face] = {n: (flat(v, v), flat(stated[n][0], v), flat(stated[n][1], v)) for n, v in values.items()}
        return at, published, {name: read(source).reshape(len(at), -1) for name, source in exact.items()}

    family = published_family(plan)
    places = np.argsort(family.ids(workload.published))
    for batch in family.batches:
        for part in batch.parts(_CHUNK):
            rows, shape = batch.rows[part], batch.shape
            designs = plan.designs.items()
            stated = {name: (std_errors(own, rows, shape), cell_margins(own, rows, shape)) for name, own in designs}
            yield gathered(places[batch.ids[part]], partial(_tables, rows=rows, shape=shape), stated)
    for at, form in enumerate(workload.forms, len(workload.published)):
        deviations = {n: np.sqrt(own.errors.form_variances(form, exact=True)) for n, own in plan.designs.items()}
        stated = {name: (own, plan.designs[name].errors.any_margin(own)) for name, own in deviations.items()}
        yield gathered(np.array([at]), partial(_form, form=form), stated)


def _tables(source: Values, rows: Rows, shape: tuple[int, ...]) -> Floats:
    return source.tables(rows, shape)


def _form(source: Values, form: Form) -> Floats:
    return source.form(form)
