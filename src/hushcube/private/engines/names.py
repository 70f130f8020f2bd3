"""Finding columns: a name must match exactly and once, whatever a database takes for one name."""

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
