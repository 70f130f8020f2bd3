"""Reading what people write: a schema file with the mapping files that it names, and other texts."""

from __future__ import annotations

from pathlib import Path

from hushcube.errors import BadInput, SchemaError
from hushcube.model.schema import Schema


def read_schema(path: str | Path) -> Schema:
    """The schema in a file; mapping files are found beside it."""
    beside = Path(path).absolute().parent
    text = read_text(path, SchemaError, "schema")
    return Schema.from_yaml(text, lambda name: read_text(beside / name, SchemaError, "mapping"))


def read_text(path: str | Path, kind: type[BadInput], field: str) -> str:
    """A file's text; a missing, unreadable or non-UTF-8 file is the caller's to mend."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise kind(field, f"the file {str(path)!r} is not UTF-8 text", "save it as UTF-8") from None
    except (OSError, ValueError):
        raise kind(field, f"the file {str(path)!r} cannot be read", "give the path of an existing file") from None
