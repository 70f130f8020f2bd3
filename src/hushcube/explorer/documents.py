"""A release as documents for a page: what there is, which tables fit, one table, one sum of cells.

    catalogue    what a reader sees first: whose data, which guarantee, attributes, quantities, faces, tables
    search       tables by words and attributes, some at a time
    table        the numbers of one table, or of a roll-up of one
    estimate     a sum of cells, or two of them compared

Everything is JSON: numbers that are not known are null. Texts are the publisher's own; they are escaped where they are
shown.

The covariance of two cells often depends only on the attributes in which they agree [designs/errors.py]. Then a table
has one number for each set of its attributes: number m is for cells that agree in attribute i exactly if m has the bit
2^i. Where it depends on more, a table that stands alone carries the relations of its values, if they are few
[covariances.py], or else the errors of its totals. The variance of a sum of cells is the sum of covariances over all
pairs, so that a page can compute it. The 95% interval is then value ± (spread * std_error + step): exactly as
`Release.estimate` has it, except that sums of independent cells of one measured table are given the shorter interval of
their own law there. Totals over whole axes have margins of their own, `total_margins`: where tables agree, those of the
table that they are cells of.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushcube.bundle.comparing import BOTH, factors
from hushcube.bundle.export.choosing import Chosen
from hushcube.bundle.part import attributes_of
from hushcube.bundle.published_table import Table
from hushcube.bundle.release import Release
from hushcube.bundle.statement import NOT_PRIVATE
from hushcube.bundle.tables import quantised_sums
from hushcube.explorer.comparing import compared
from hushcube.explorer.covariances import Joint, most_paired
from hushcube.explorer.guarantee import for_you
from hushcube.explorer.index import Index
from hushcube.explorer.shapes import Shapes, read_shapes
from hushcube.faces.value import HALF_WIDTH, UNBIASED, published_promises
from hushcube.model.arrays import Floats
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import at_level, coarsening
from hushcube.model.level import Level
from hushcube.model.quality import QUALITY_WORDS
from hushcube.model.schema import COUNT
from hushcube.model.words import OF_SCHEMA
from hushcube.model.workload import Quantity
from hushcube.planning.targets import resolve

Document = dict[str, Any]
FORMAT: Final = 1
MOST_LISTED: Final = 10_000
"""Tables that a catalogue lists; of more, only searches tell."""
PAGE: Final = 50
"""Tables that a search tells at a time."""
MOST_LABELS: Final = 20_000
"""Labels of an attribute that a catalogue lists."""


class Documents:
    """The documents of one release."""

    def __init__(self, release: Release, targets: Sequence[str] = (), shapes: Shapes = ()) -> None:
        """`targets` are what the publisher required of errors, such as `age*sex: stderr<=20`.

        `shapes` are files of shapes of attributes, to draw maps with.
        """
        self.release = release
        self._shapes = read_shapes(shapes, release.schema)
        self._goals = resolve(targets, release.plan) if targets else []

    # ------------------------------------------------------------------------------------------------------ catalogue

    def catalogue(self) -> Document:
        """What there is."""
        from hushcube import __version__

        release, plan, schema = self.release, self.release.plan, self.release.schema.declared
        listed = len(self.index) <= MOST_LISTED
        return {
            "format": FORMAT,
            "name": schema.name,
            **{word: getattr(schema, word) for word in OF_SCHEMA},
            "stamp": None if release.private else NOT_PRIVATE,
            "version": __version__,
            "privacy": {"short": str(plan.privacy), "paragraphs": for_you(plan.privacy, schema)},
            "attributes": [_attribute(attribute) for attribute in schema.attributes],
            "quantities": [self._quantity(quantity) for quantity in plan.quantities],
            "faces": list(self._faces()),
            "tables": [self.index.entry(at) for at in range(len(self.index))] if listed else None,
            "table_count": len(self.index),
            "cell_count": int(self.index.cells.sum()),
            "largest": {"attributes": self.index.widest},
            "quality": {**asdict(schema.quality), "words": QUALITY_WORDS},
            "notes": self._notes(),
            "errors": self._errors(),
            "shapes": self._shapes,
        }

    def _quantity(self, quantity: Quantity) -> Document:
        measure = None if quantity.kind == "count" else self.release.schema.measure(quantity.measure)
        return {
            "word": str(quantity),
            "title": None if measure is None else measure.title,
            "kind": quantity.kind,
            "measure": quantity.measure or None,
            "unit": None if measure is None else measure.unit_of_measure,
        }

    def _faces(self) -> Iterator[Document]:
        promise = "right on average; cells can be negative or fractional"
        yield {"name": UNBIASED, "promise": promise, "estimated": False}
        for name, face in self.release.faces.items():
            yield {"name": name, "promise": published_promises()[name].summary, "estimated": face.is_estimated}

    def _notes(self) -> list[str]:
        """What readers must know."""
        plan = self.release.plan
        notes = dict.fromkeys(design.note for design in plan.designs.values() if design.note is not None)
        return [*([] if self.release.schema.caveat is None else [self.release.schema.caveat]), *notes]

    def _errors(self) -> list[Document]:
        """What the publisher required, and what is expected of the noise that was drawn."""
        plan = self.release.plan
        return [
            {
                "word": f"{goal.quantity} {goal.target.words}",
                "error": goal.target.error,
                "expected": float(f"{goal.reached(plan):.4g}"),
                "required": goal.target.bound,
            }
            for goal in self._goals
        ]

    # --------------------------------------------------------------------------------------------------------- search

    @cached_property
    def index(self) -> Index:
        """Where tables are looked up."""
        return Index(self.release)

    def search(self, text: str = "", attributes: Sequence[str] = (), offset: int = 0) -> Document:
        """Tables whose attributes match every word of a text and include the named ones, from some place on."""
        found = self.index.find(text, attributes)
        return {"tables": [self.index.entry(at) for at in found[offset : offset + PAGE]], "total": len(found)}

    # ---------------------------------------------------------------------------------------------------------- table

    def table(self, word: str, quantity: str = COUNT, face: str = UNBIASED) -> Document:
        """The numbers of a table, or of a roll-up of one; as many digits as the noise leaves."""
        return self._document(word, self.release.table(word, quantity, face=face))

    def _document(self, word: str, table: Table) -> Document:
        errors = _one_or_all(table.std_errors)
        digits = _digits(table.std_errors if table.estimated is None else np.minimum(table.std_errors, table.estimated))
        joint = self._joint(table)
        ends: Document = {"margins": None, "low": _numbers(table.low, 6), "high": _numbers(table.high, 6)}
        if not table.is_average:
            margins = _one_or_all(table.margins)
            ends = {"margins": margins, "low": _numbers(table.low, digits), "high": _numbers(table.high, digits)}
        spread, both, step = (None, None, None) if table.is_average else self._spread(self._factors(table))
        return {
            "word": word,
            "attributes": list(table.attributes),
            "labels": None if self.release.plan.workload.form(word) is None else list(map(list, table.labels)),
            "quantity": table.what,
            "face": table.face,
            "shape": list(table.values.shape),
            "values": _numbers(table.values, 6 if table.is_average else digits),
            "std_errors": None if table.is_average else errors,
            **ends,
            "estimated": _estimated(table),
            "quality": _graded(table).quality.ravel().tolist(),
            **_sums(joint, table.attributes),
            "spread": spread,
            "spread_both": both,
            "step": step,
            "may_be_negative": table.may_be_negative,
            "average": None,
        }

    def cells(self, word: str) -> int:
        """How many cells a table has, before any of them is computed."""
        form = self.release.plan.workload.form(word)
        asked = attributes_of(self.release.schema, word) if form is None else ()
        return math.prod(attribute.size for attribute in asked) if form is None else form.cells

    def every(self) -> Iterator[tuple[str, list[Document]]]:
        """Each published table in all quantities and faces, to stand alone: with all that its sums need.

        The files are read once, in the order of their rows.
        """
        faces = [Chosen.of(self.release, face=face) for face in (UNBIASED, *self.release.faces)]
        for word, unbiased, *others in zip(faces[0].words, *faces, strict=True):
            known = {table.what: table for table in (unbiased, *unbiased.others)}
            own = (known[str(quantity)] for quantity in self.release.plan.quantities)
            yield word, [self._alone(word, table, known) for table in (*own, *others)]

    @cached_property
    def _most_paired(self) -> int:
        return most_paired(self.index.cells)

    def _alone(self, word: str, table: Table, known: Mapping[str, Table]) -> Document:
        """A published table, with relations of its values or errors of its totals where agreement is not enough.

        An average has with it what is divided by the count; `known` are the quantities of the same cells.
        """
        found, joint = self._document(word, table), self._joint(table)
        if table.is_average:
            return found | {"average": self._average(table, known)}
        return found if joint is None else found | self._related(found, joint)

    def _related(self, found: Document, joint: Joint) -> Document:
        if found["covariances"] is not None:
            return {}
        pairs = joint.relations() if math.prod(found["shape"]) <= self._most_paired else None
        if pairs is not None:
            return {"covariances": _covariances(pairs.numbers.T), "relations": pairs.relations}
        totals = joint.totals()
        return {"total_errors": None if totals is None else [_one_or_all(errors) for errors in totals]}

    def _average(self, table: Table, known: Mapping[str, Table]) -> Document | None:
        """The whole numbers whose sum is divided by a count, center + step * sum / count, with all that sums need."""
        quantity = Quantity.parse(table.what, self.release.schema)
        measure, part = self.release.schema.measure(quantity.measure), self.release.parts[quantity.part]
        joint = self._joint(table, {quantity.part: 1.0})
        if joint is None:
            return None
        values = quantised_sums(measure, known[COUNT].values, known[f"sum({measure.name})"].values)
        variances = part.design.errors.cell_variance_table(joint.marginal)
        errors = np.broadcast_to(np.sqrt(variances), values.shape)
        widths = np.broadcast_to(part.design.errors.cell_margin(joint.marginal, np.sqrt(variances)), values.shape)
        spread, both, step = self._spread({quantity.part: 1.0})
        own = {
            "shape": list(values.shape),
            "values": _numbers(values, _digits(errors)),
            "std_errors": _one_or_all(errors),
            "margins": _one_or_all(widths),
            **_sums(joint, table.attributes),
            "spread": spread,
            "spread_both": both,
            "step": step,
        }
        least, most = map(float, measure.bounds)
        line = {"center": float(measure.center), "step": float(measure.resolution), "least": least, "most": most}
        return {**line, "sums": own | self._related(own, joint)}

    def _factors(self, table: Table) -> Mapping[str, float]:
        return factors(Quantity.parse(table.what, self.release.schema), self.release.schema)

    def _joint(self, table: Table, made_of: Mapping[str, float] | None = None) -> Joint | None:
        """What is known of the cells of a published table together; None for roll-ups, averages and sums of cells."""
        schema = self.release.plan.count.schema
        if (table.is_average and made_of is None) or not set(table.attributes) <= set(schema.names):
            return None
        marginal = schema.marginal(table.attributes)
        if marginal not in self.index.published:
            return None
        return Joint(self.release, marginal, made_of or self._factors(table))

    # ------------------------------------------------------------------------------------------------------- estimate

    def estimate(
        self, word: str, quantity: str = COUNT, cells: Sequence[int] = (), versus: Sequence[int] = ()
    ) -> Document:
        """The sum of some cells of a table (by their numbers, row by row), and others to compare it with."""
        return compared(self.release, word, Quantity.parse(quantity, self.release.schema), cells, versus)

    def _spread(self, made_of: Mapping[str, float]) -> tuple[float, float, float]:
        """Half of a sum's interval over its standard error, and what is added to it: for any sum of the cells.

        Between them, the same of intervals two of which hold at once.
        """
        spreads, both, steps = [], [], []
        # margins are a line in the deviation: those of deviations 1 and 2 say all of it
        for part, factor in made_of.items():
            errors = self.release.parts[part].design.errors
            one, two = errors.any_margin(np.array([1.0, 2.0])).tolist()
            spreads.append(two - one)
            both.append(two - one + errors.any_quantile(BOTH) - errors.any_quantile())
            steps.append(factor * (2 * one - two))
        return max(spreads), max(both), math.hypot(*steps)


def _estimated(table: Table) -> Document | None:
    """Estimated errors at face value, and half of the 95% interval in these: no promise."""
    return None if table.estimated is None else {"errors": _one_or_all(table.estimated), "half_width": HALF_WIDTH}


def _graded(table: Table) -> Table:
    """With the errors that say how far a value can be relied on: its own, where these are estimated."""
    return table if table.estimated is None else replace(table, std_errors=table.estimated)


def _sums(joint: Joint | None, names: Sequence[str]) -> Document:
    """What the errors of sums follow from, where it only matters in which attributes cells agree."""
    agreement = None if joint is None else joint.agreement()
    axes = [] if joint is None else [joint.axis(name) for name in reversed(names)]
    widths = None if joint is None else joint.total_margins(names)
    return {
        "covariances": None if agreement is None else _covariances(agreement.numbers.transpose(axes)),
        "relations": None,
        "total_errors": None,
        "total_margins": None if widths is None else [_one_or_all(each) for each in widths],
    }


def _attribute(attribute: Attribute) -> Document:
    """An attribute with its levels, from fine to coarse."""
    few = attribute.size <= MOST_LABELS
    return {
        "name": attribute.name,
        "title": attribute.title,
        "description": attribute.description,
        "unit": attribute.unit_of_measure,
        "ordered": attribute.is_ordered,
        "size": attribute.size,
        "labels": list(attribute.labels) if few else None,
        "codes": list(attribute.coded) if few and attribute.coded != attribute.labels else None,
        "levels": [_level(attribute, level) for level in attribute.grouped],
    }


def _level(attribute: Attribute, level: Level) -> Document:
    seen: Attribute = at_level(attribute, level.name)
    return {
        "name": seen.name,
        "title": level.title or level.name,
        "labels": list(seen.labels),
        "parents": coarsening(attribute, seen).tolist() if attribute.size <= MOST_LABELS else None,
    }


def _digits(errors: Floats) -> int | None:
    """Decimals after which digits say nothing: beyond a hundredth of the smallest standard error; None without any."""
    smallest = float(np.min(errors, initial=math.inf, where=errors > 0))
    return 2 - math.floor(math.log10(smallest)) if math.isfinite(smallest) else None


def _numbers(values: Floats, digits: int | None) -> list[float | None]:
    """Numbers in the order of the cells, to some decimals; whole ones without a point, unknown ones as null.

    >>> _numbers(np.array([1.25, 2.0, np.nan]), 1), _numbers(np.array([3, 4]), None)
    ([1.2, 2, None], [3, 4])
    """
    given = np.asarray(values, np.float64).ravel()  # counts of people are integers, which have no `is_integer`
    rounded = given if digits is None else np.round(given, digits)
    return [None if math.isnan(x) else int(x) if x.is_integer() else x for x in rounded.tolist()]


def _one_or_all(numbers: Floats) -> float | list[float]:
    """One number, where all cells have the same."""
    told = [float(f"{number:.7g}") for number in (numbers.ravel()[:1] if _alike(numbers) else numbers.ravel())]
    return told[0] if _alike(numbers) else told


def _covariances(numbers: Floats) -> list[float]:
    return [float(f"{number:.10g}") for number in numbers.ravel()]


def _alike(numbers: Floats) -> bool:
    return bool(numbers.size and (numbers == numbers.ravel()[0]).all())
