"""A mapping file is published with the schema: it must not be the data, nor a part of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hushcube.errors import DataError
from hushcube.model.schema import Schema

_FIX = "write a file that lists each value once, with the names of its groups"


def refuse_data(schema: Schema, names: Sequence[str], files: Sequence[str | Path] = ()) -> None:
    """Refuse labels that were read from the data itself; `names` are its columns, `files` where it is, if in files.

    The values of an attribute and one of its levels may be columns of the data, such as city and state; with more of
    them, the mapping is a table of the data.
    """
    for attribute in schema.declared.attributes:
        where = f"attribute {attribute.name!r}, mapping"
        sources = [source for source in (attribute.values_from, attribute.levels_from) if source is not None]
        if any(source.is_copied(Path(file)) for source in sources for file in files):
            raise DataError(where, "is the data, which would be published with the schema", _FIX)
        shared = [level.name for level in attribute.grouped if level.name in names]
        if sources and len(shared) > 1:
            problem = f"has more than two columns of the data: {attribute.source_column!r} and {len(shared)} others"
            raise DataError(where, problem, "name its levels differently, if it is no part of the data")
