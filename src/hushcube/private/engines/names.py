"""Finding a column: its name must match exactly and once, whatever a database takes for one name."""

from __future__ import annotations

from collections.abc import Sequence

from hushcube.errors import DataError


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
