"""What an engine promises: it turns rows into exact tables of integers, and does nothing else.

What an engine returns is exact, hence secret: it never leaves `hushcube.private`. Columns are found by exact names, and
what does not fit the schema is refused. A refusal names the attribute, unit or measure and the kind of value, never the
value itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import DataError
from hushcube.model.arrays import Ints
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import base_of
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema

ReadShare = Callable[[float], None]
"""Called now and then with the fraction of the rows that has been read."""
BadRows = Literal["refuse", "missing"]
"""What to do about rows that cannot be read or do not fit the schema."""
Wanted = Sequence[NDArray[np.int32]]
"""All marginals that will be asked for: an (m, k) array for each k."""
Measures = Sequence[Measure]
_MAPPING_FIX: Final = "write a file that lists each value once, with the names of its groups"


class ExactCounts(ABC):
    """The exact tables of one data set; counted already, or counted when asked for."""

    rows: int
    """How many rows were counted."""
    dropped: int = 0
    """How many rows were left out because a person had more than counts; for the owner of the data only."""
    bad: int = 0
    """How many rows could not be read and count as missing in every attribute; for the owner of the data only."""
    sums: Mapping[str, ExactCounts] = MappingProxyType({})
    """Of each measure asked for: tables of the sums of its integers over the same rows."""

    @abstractmethod
    def tables(self, marginals: NDArray[np.int32]) -> Ints:
        """The tables of (m, k) marginals of one shape, as (m, *shape); k = 0 gives (m, 1), the total."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: exact, not shown>"


class Engine(Protocol):
    """Whatever can count."""

    def count(
        self, schema: Schema, wanted: Wanted, *, measures: Measures = (), progress: ReadShare | None = None
    ) -> ExactCounts:
        """Read the rows once, and count what is wanted; measures are summed over the same rows."""
        ...


def attributes_of(wanted: Wanted) -> list[int]:
    """The attributes of wanted marginals, in the order of the schema."""
    return sorted({int(i) for marginals in wanted for i in np.unique(marginals)})


def position(names: Sequence[str], column: str, field: str) -> int:
    """Where a column stands among the names of the data; `field` is what asks for it.

    >>> position(("age", "Age"), "Age", "attribute 'age'")
    1
    """
    found = [i for i, name in enumerate(names) if name == column]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(field, f"the data has several columns {column!r}", "give each column its own name")
    if any(name.casefold() == column.casefold() for name in names):
        fix = "upper and lower case differ: write it as the data does, or give the data's name as `column:`"
    else:
        fix = "correct the name, or name the data's column with `column:`"
    raise DataError(field, f"the data has no column {column!r}", fix)


def needed(names: Sequence[str], columns: Sequence[str] | None) -> list[int]:
    """Where the columns stand that have to be read, with those that differ by case only; at least one, if there is any.

    DuckDB has no tables without columns, but rows may still be counted.

    >>> needed(("id", "Age", "age"), ["age"]), needed(("id", "age"), []), needed(("id", "age"), None)
    ([1, 2], [0], [0, 1])
    """
    if columns is None:
        return list(range(len(names)))
    wanted = {column.casefold() for column in columns}
    found = [i for i, name in enumerate(names) if name.casefold() in wanted]
    return found or list(range(min(1, len(names))))


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
    fix = "correct the data, or say what they count as, for example `missing: 0`"
    return DataError(where, "holds missing values, or texts that are not numbers", fix)


def no_equality(unit: Unit) -> DataError:
    """Ids that cannot be compared."""
    fix = "name a column of texts or numbers, or let a view make one of it"
    return DataError(f"unit, column {unit.column!r}", "its type has no equality, so people cannot be told apart", fix)


def without_unit(unit: Unit) -> DataError:
    """Rows that belong to nobody."""
    fix = "correct the data, or declare `unit_missing: own`: each such row is then a person of its own"
    return DataError(f"unit, column {unit.column!r}", "holds missing values", fix)


def refuse_data(schema: Schema, names: Sequence[str], files: Sequence[str | Path] = ()) -> None:
    """Refuse labels that were read from the data itself; `names` are its columns, `files` where it is, if in files.

    The values of an attribute and one of its levels may be columns of the data, such as city and state; with more of
    them, the mapping is a table of the data.
    """
    for attribute in schema.declared.attributes:
        where = f"attribute {attribute.name!r}, mapping"
        sources = [source for source in (attribute.values_from, attribute.levels_from) if source is not None]
        if any(source.is_copied(Path(file)) for source in sources for file in files):
            raise DataError(where, "is the data, which would be published with the schema", _MAPPING_FIX)
        shared = [level.name for level in attribute.grouped if level.name in names]
        if sources and len(shared) > 1:
            problem = f"has more than two columns of the data: {attribute.source_column!r} and {len(shared)} others"
            raise DataError(where, problem, "name its levels differently, if it is not part of the data")
