"""The parts of a release, counts and the whole numbers that a measure's values are summed as, and its other faces.

Up and down the levels: tables that were not asked for, as sums of groups of cells of one that was published.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.published_table import Table, Where, positions
from hushcube.bundle.tables import ESTIMATED, Rows, Values
from hushcube.designs.answers import Answers, FormAnswers
from hushcube.designs.design import Design
from hushcube.errors import QueryError, WorkloadError
from hushcube.faces.value import HALF_WIDTH
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import base_of, coarsening, depth_of, is_finer
from hushcube.model.edition import Edition
from hushcube.model.facts import Facts
from hushcube.model.form import Form, GroupTable, members, sum_groups
from hushcube.model.noise import Measurement
from hushcube.model.schema import Schema

if TYPE_CHECKING:
    from hushcube.faces.maker import Face


class Tables(Values, Protocol):
    """Where the unbiased values come from: memory or a folder."""

    def measurement(self) -> Measurement:
        """The noisy measurements behind them."""


class FormsFromCells:
    """Answers, and forms as sums of their carriers' cells: all of it adds up."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def tables(self, rows: Rows, shape: tuple[int, ...]) -> Floats:
        """The values of marginals of one shape."""
        return self._answers.tables(rows, shape)

    def form(self, form: Form) -> Floats:
        """The values of a form, unless the answers have a way of their own."""
        if isinstance(self._answers, FormAnswers):
            return self._answers.form(form)
        return form.evaluate(self._answers.tables(position_rows(form.marginal), form.carrier_shape)[0])


class RecoveredTables(FormsFromCells):
    """Values computed from a measurement when asked for."""

    def __init__(self, plan: Design, measurement: Measurement) -> None:
        super().__init__(plan.answers(measurement))
        self._measurement = measurement

    def measurement(self) -> Measurement:
        """The measurement itself."""
        return self._measurement


@dataclass(frozen=True, eq=False)
class WithTotals:
    """Some cells, and the totals that each is a part of: shapes broadcast."""

    cells: Table
    totals: Floats
    total_errors: Floats
    covariances: Floats
    """Of each cell with its total."""


@dataclass(frozen=True, eq=False)
class Part:
    """What was measured for one quantity, and where its values come from."""

    design: Design
    source: Tables
    private: bool

    @property
    def schema(self) -> Schema:
        """The attributes as the workload sees them."""
        return self.design.schema

    def table(self, marginal: str | Sequence[str], source: Values | None = None) -> Table:
        """A published marginal or form, or a roll-up; its values may be another `source`'s. Its axes are as asked."""
        values = self.source if source is None else source
        form = self.design.workload.form(marginal) if isinstance(marginal, str) else None
        if form is not None:
            return self._form_table(form, values.form(form)).ordered(_in_order(form.axes, str(marginal)))
        asked = attributes_of(self.schema, marginal)
        return self._cells(asked, values).ordered([attribute.name for attribute in asked])

    def weighted(self, marginal: str | Sequence[str], where: Where | None = None) -> tuple[float, float, float]:
        """The sum of the cells that `where` keeps, its standard error and the half-width of its 95% interval."""
        return self.sum_of(*self.weights(marginal, where))

    def weights(self, marginal: str | Sequence[str], where: Where | None) -> tuple[Marginal, Floats]:
        """The published table that answers a marginal, and ones for those of its cells that `where` keeps."""
        form = self._roll_up(marginal)
        kept = kept_along(form, where or {})
        return form.marginal, np.asarray(reduce(np.multiply.outer, kept, np.ones(())))

    def sum_of(self, marginal: Marginal, weights: Floats) -> tuple[float, float, float]:
        """A weighted sum of the cells of a published table, its standard error and the half-width of its interval.

        Where tables agree, a total over whole axes is a cell of a coarser table, and has the interval of that cell.
        """
        value, errors = float((weights * self._values(marginal, self.source)).sum()), self.design.errors
        deviation = math.sqrt(errors.sum_variance(marginal, weights))
        kept = kept_axes(weights)
        margins = None if kept is None else self.total_margins([marginal[axis] for axis in kept])
        if margins is None or kept is None:
            return value, deviation, errors.sum_margin(marginal, weights)
        return value, deviation, float(margins[tuple(kept.values())] if margins.ndim else margins)

    def total_margins(self, wanted: Sequence[int]) -> Floats | None:
        """Half-widths of the intervals of the totals of any published table over all attributes but the wanted ones.

        Those of the table on these attributes, of shape () where all are the same; None where tables do not agree, so
        that totals are no cells of it.
        """
        own, errors = tuple(wanted), self.design.errors
        published = self._published(own)
        if not self.design.is_consistent or published is None or not (own == published or errors.slabs_are_alike):
            return None
        key = ("total_margins", own)
        if key not in errors.results:  # which releases of one plan share
            is_own = own == published
            found = errors.cell_margin(own, np.sqrt(errors.cell_variance_table(own))) if is_own else None
            widths = np.asarray(errors.roll_up(own, published)[1] if found is None else found)
            # along axes on which cells are alike there may be one number
            errors.results[key] = np.broadcast_to(widths, self.design.schema.shape(own)) if widths.ndim else widths
        return np.asarray(errors.results[key])

    def with_totals(self, marginal: str | Sequence[str], where: Where, summed: Collection[str]) -> WithTotals:
        """The cells that `where` keeps, beside their totals over some of the attributes."""
        form, own = self._roll_up(marginal), self.table(marginal).slice(where)
        kept = kept_along(form, where)
        # covariances with the totals; an axis that is rolled up to groups, or summed out, comes cell by cell first
        rows: list[Floats | None] = []
        totals: list[Floats | None] = []
        for groups, level, along in zip(form.groups, form.seen_at, kept, strict=True):
            is_summed = level is None or level.name in summed
            is_whole = level is not None and np.array_equal(groups, np.arange(level.size))
            rows.append(None if is_summed or is_whole else members(groups))
            totals.append(along if is_summed else None)
        found = self.design.errors.covariances(form.marginal, rows, totals)
        for axis, (groups, total) in enumerate(zip(form.groups, totals, strict=True)):
            found = found if total is None else sum_groups(found, groups, axis)
        whole = Table.of(self.schema, form, found.reshape(form.shape), np.zeros(()), np.zeros(()))
        covariances = whole.ordered(own.attributes).slice(where).values
        axes = tuple(axis for axis, name in enumerate(own.attributes) if name in summed)
        variances = np.maximum(covariances.sum(axis=axes, keepdims=True), 0.0)
        return WithTotals(own, own.values.sum(axis=axes, keepdims=True), np.sqrt(variances), covariances)

    def _roll_up(self, marginal: str | Sequence[str]) -> GroupTable:
        if isinstance(marginal, str) and self.design.workload.form(marginal) is not None:
            fix = "name a table of cells, such as age*sex, and what to add up"
            raise QueryError("marginal", f"{marginal!r} holds sums already", fix)
        return rolled_up(self.schema, attributes_of(self.schema, marginal), self.design.workload.published)

    def of_cells(self, marginal: str | Sequence[str], weights: Floats) -> tuple[Marginal, Floats]:
        """The published table that answers a marginal, and on its cells the weights of the cells as they were asked."""
        asked, form = attributes_of(self.schema, marginal), self._roll_up(marginal)
        axes = [asked.index(level) for level in form.seen_at if level is not None]
        places = [groups for groups, level in zip(form.groups, form.seen_at, strict=True) if level is not None]
        own = weights.transpose(axes)[np.ix_(*places)] if places else weights
        pairs = zip(form.carrier_shape, form.seen_at, strict=True)
        shape = [1 if level is None else size for size, level in pairs]
        return form.marginal, np.broadcast_to(own.reshape(shape), form.carrier_shape)

    def _cells(self, asked: Sequence[Attribute], source: Values) -> Table:
        """A marginal of the plan, or a sum of one; at levels that the plan does not see, sums of groups of cells."""
        schema, errors = self.schema, self.design.errors
        names = [attribute.name for attribute in asked]
        wanted = schema.marginal(names) if set(names) <= set(schema.names) else None
        published = None if wanted is None else self._published(wanted)
        if wanted is None or published is None:
            form = rolled_up(schema, asked, self.design.workload.published)
            return self._form_table(form, form.evaluate(self._values(form.marginal, source)))
        values = self._values(published, source)
        if published == wanted:  # variances and margins of shape () are those of all cells
            variances = errors.cell_variance_table(wanted)
            return Table.of(schema, wanted, values, np.sqrt(variances), errors.cell_margin(wanted, np.sqrt(variances)))
        values = values.sum(axis=tuple(axis for axis, i in enumerate(published) if i not in wanted))
        variances, widths = errors.roll_up(wanted, published)
        return Table.of(schema, wanted, values, np.sqrt(variances), widths)

    def _form_table(self, form: Form, values: Floats) -> Table:
        """Sums over groups of the cells of a published table, with their exact errors."""
        deviations = np.sqrt(self.design.errors.form_variances(form, exact=True))
        return Table.of(self.schema, form, values, deviations, self.design.errors.any_margin(deviations))

    def _values(self, published: Marginal, source: Values) -> Floats:
        found = source.tables(position_rows(published), self.schema.shape(published))
        return np.asarray(found[0], dtype=np.float64)

    @cached_property
    def _published_set(self) -> frozenset[Marginal]:
        return frozenset(self.design.workload.published)

    def is_published(self, marginal: str | Sequence[str]) -> bool:
        """Whether a marginal is published itself, in whatever order its attributes are named."""
        names = [attribute.name for attribute in attributes_of(self.schema, marginal)]
        return set(names) <= set(self.schema.names) and self.schema.marginal(names) in self._published_set

    def _published(self, wanted: Marginal) -> Marginal | None:
        """The published table that answers a marginal: itself, or the smallest one that contains it."""
        if wanted in self._published_set:
            return wanted
        containing = (m for m in self.design.workload.published if set(wanted) <= set(m))
        return min(containing, key=lambda m: (self.schema.cells(m), m), default=None)


@dataclass(frozen=True, eq=False, repr=False)
class PublishedFace:
    """A face of a release: its values, what was done to get them, and the synthetic people behind them, if any."""

    name: str
    description: dict[str, Any]
    """For the manifest: `asked` (the choices), `report` (what came out), `facts` (in the form of a facts file), and
    `like` (the earlier edition that tables were guessed from)."""
    source: Values
    read_people: Callable[[], NDArray[np.integer]] | None = None
    estimated: Values | None = None
    """The estimated errors of its cells, where it has any."""

    def __repr__(self) -> str:
        return f"PublishedFace({self.name!r}, found by {self.description.get('report', {}).get('found_by')})"

    @classmethod
    def of(cls, face: Face) -> PublishedFace:
        """A face that has just been made."""
        people, facts, like = face.people, face.value.public_facts, face.value.edition
        description = {
            "asked": face.value.to_dict(),
            "report": face.report,
            "facts": facts.to_dict() if facts else None,
            **({} if like is None else {"like": like.to_dict()}),
            "std_error": "of the unbiased estimate",
        }
        estimated = None if face.errors is None else FormsFromCells(face.errors)
        if face.errors is not None:
            description[ESTIMATED] = {"half_width_95": HALF_WIDTH, "factor": face.errors.common}
        codes = None if people is None else lambda: people
        return cls(face.name, description, FormsFromCells(face.tables), codes, estimated)

    @property
    def is_estimated(self) -> bool:
        """Whether its tables have a column of estimated errors."""
        return ESTIMATED in self.description

    def facts(self, schema: Schema) -> Facts:
        """The public facts that the face satisfies: the publisher's claims, not measured."""
        raw = self.description.get("facts")
        return Facts.from_dict(raw, schema) if raw else Facts.none(schema)

    def edition(self, schema: Schema) -> Edition | None:
        """The earlier edition that its tables were guessed from."""
        raw = self.description.get("like")
        return None if raw is None else Edition.from_dict(raw, schema)

    @property
    def told(self) -> dict[str, Any]:
        """The description without the cells of an earlier edition, for readers."""
        like = self.description.get("like")
        short = {} if like is None else {"like": {name: value for name, value in like.items() if name != "tenths"}}
        return {**self.description, **short}


def _in_order(axes: Sequence[str], word: str) -> tuple[str, ...]:
    """The axes of a form in the order in which a word names them; a matrix of queries names none."""
    parts = ["".join(part.split()) for part in word.split("*")]
    places = {axis: "".join(axis.split()) for axis in axes}
    return tuple(sorted(axes, key=lambda axis: parts.index(places[axis]) if places[axis] in parts else 0))


def names_of(schema: Schema, marginal: str | Sequence[str]) -> list[str]:
    """The names in a word such as `age*sex`, or in a sequence; `total` has none."""
    names = [name.strip() for name in (marginal.split("*") if isinstance(marginal, str) else marginal)]
    return [] if names == ["total"] and "total" not in schema.names else names


def attributes_of(schema: Schema, marginal: str | Sequence[str]) -> tuple[Attribute, ...]:
    """What a reader asks for: attributes, each once and at any of its levels, in the order asked."""
    names = names_of(schema, marginal)
    try:
        found = [schema.seen(name) for name in names]
    except WorkloadError as problem:
        raise QueryError("marginal", problem.problem, problem.fix) from None
    if len({base_of(attribute).name for attribute in found}) != len(found):
        raise QueryError("marginal", f"{'*'.join(names)} names an attribute twice", "name each attribute once")
    return tuple(found)


def kept_axes(weights: Floats) -> dict[int, int] | None:
    """Of a total over whole axes, at one place along the others, these axes and places; None for any other sum.

    >>> kept_axes(np.array([[0, 0, 0], [1, 1, 1]])), kept_axes(np.ones((2, 3))), kept_axes(np.array([1, 1, 0]))
    ({0: 1}, {}, None)
    """
    taken = [np.unique(at) for at in np.nonzero(weights)]
    axes = {axis: int(at[0]) for axis, at in enumerate(taken) if len(at) and len(at) < weights.shape[axis]}
    is_total = all(len(taken[axis]) == 1 for axis in axes) and (weights[np.ix_(*taken)] == 1).all()
    return axes if is_total and np.count_nonzero(weights) == math.prod(map(len, taken)) > 0 else None


def kept_along(form: GroupTable, where: Where) -> list[Floats]:
    """Ones for the cells that a condition keeps, along each axis of the published table."""
    chosen = iter(positions(form.axes, form.labels, form.coded, where))
    pairs = zip(form.groups, form.seen_at, strict=True)
    return [np.ones(len(g)) if level is None else np.isin(g, next(chosen)).astype(np.float64) for g, level in pairs]


def rolled_up(schema: Schema, wanted: Sequence[Attribute], published: Iterable[Marginal]) -> GroupTable:
    """The smallest published table that knows all wanted attributes at their levels or finer, and its groups."""
    words = "*".join(attribute.name for attribute in wanted) or "total"
    finer = [frozenset(i for i, a in enumerate(schema.attributes) if is_finer(a, w)) for w in wanted]
    able = [m for m in published if not any(known.isdisjoint(m) for known in finer)]
    if not able:
        fix = "ask for one of the published marginals (`hushcube show` lists them), or a subset or coarser level of one"
        raise QueryError("marginal", f"{words} is not published, nor is any table that contains it", fix)
    marginal = min(able, key=lambda m: (schema.cells(m), m))
    attributes = tuple(schema.attributes[i] for i in marginal)
    seen_at = tuple(next((w for w in wanted if is_finer(a, w)), None) for a in attributes)
    pairs = zip(attributes, seen_at, strict=True)
    groups = tuple(np.zeros(a.size, np.int64) if w is None else coarsening(a, w) for a, w in pairs)
    return GroupTable(marginal, attributes, seen_at, groups)


def moved(schema: Schema, marginal: str | Sequence[str], name: str, step: int) -> list[str]:
    """The names of a table with one attribute a level coarser (step 1) or finer (-1).

    Above its coarsest level an attribute is summed out; below that, one that was summed out comes back.
    """
    attributes = attributes_of(schema, marginal)
    declared = schema.seen(name.partition("@")[0])
    present = next((a for a in attributes if base_of(a) == declared), None)
    top = len(declared.grouped) + 1  # summed out
    depth = (top if present is None else depth_of(present)) + step
    if not 0 <= depth <= top:
        problem = "is at its finest level already" if step < 0 else "is summed out already"
        raise QueryError("attribute", f"{declared.name!r} {problem}", "ask for another attribute")
    names = [a.name for a in attributes if a is not present]
    if depth == top:
        return names
    if present is None:  # it comes back where the schema has it
        later = schema.declared.names[schema.declared.position(declared.name) + 1 :]
        place = next((at for at, a in enumerate(attributes) if base_of(a).name in later), len(attributes))
    else:
        place = attributes.index(present)
    changed = declared.name if depth == 0 else f"{declared.name}@{declared.grouped[depth - 1].name}"
    return [*names[:place], changed, *names[place:]]
