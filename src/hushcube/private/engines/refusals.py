"""Why data does not fit a schema: which attribute, unit or measure, and what kind of value; never which value."""

from __future__ import annotations

from hushcube.errors import DataError
from hushcube.model.at_level import base_of
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.unit import Unit


def refused(attribute: Attribute, *, missing: bool) -> DataError:
    """Missing values, or values outside the domain."""
    where = f"attribute {base_of(attribute).name!r}, column {attribute.source_column!r}"
    if missing:
        fix = "declare a category for them, for example `missing: unknown`"
        return DataError(where, "holds missing values", fix)
    fix = "declare them, or a category for all others, for example `other: other`"
    return DataError(where, "holds values outside the declared domain", fix)


def missing_values(measure: Measure) -> DataError:
    """Values of a measure that are missing, or no numbers."""
    where = f"measure {measure.name!r}, column {measure.source_column!r}"
    fix = "mend the data, or say what they count as, for example `missing: 0`"
    return DataError(where, "holds missing values, or texts that are no numbers", fix)


def no_equality(unit: Unit) -> DataError:
    """Ids that cannot be compared."""
    fix = "name a column of texts or numbers, or let a view make one of it"
    return DataError(f"unit, column {unit.column!r}", "its type has no equality: it tells nobody apart", fix)


def without_unit(unit: Unit) -> DataError:
    """Rows that belong to nobody."""
    fix = "mend the data, or declare `unit_missing: own`: each such row is then a person of its own"
    return DataError(f"unit, column {unit.column!r}", "holds missing values", fix)
