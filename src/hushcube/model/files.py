"""Reading texts that people write: schemas, the mapping files that they name, plans."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from hushcube.errors import BadInput, SchemaError

LARGEST_MAPPING: Final = 2**26


def mapping_reader(folder: Path) -> Callable[[str], str]:
    """Reads the mapping files that a schema in a folder names."""
    return lambda name: _read_mapping(folder, name)


def _read_mapping(folder: Path, name: str) -> str:
    """A regular file inside the folder of a schema; a schema must not publish any file that it can name."""
    fix = "put the file beside the schema, or into a folder below"
    pure = Path(name)
    if pure.is_absolute() or ".." in pure.parts:
        raise SchemaError("mapping", f"{name!r} is outside the folder of the schema", fix)
    try:
        root = folder.resolve(strict=True)
        path = (root / pure).resolve(strict=True)
        if not path.is_relative_to(root):
            raise SchemaError("mapping", f"{name!r} is a link to a place that is outside the folder of the schema", fix)
        if not path.is_file():
            raise SchemaError("mapping", f"{name!r} is not a regular file", fix)
        with path.open("rb") as file:
            content = file.read(LARGEST_MAPPING + 1)
        if len(content) > LARGEST_MAPPING:
            raise SchemaError("mapping", f"{name!r} is larger than 64 MB", "map fewer values")
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError("mapping", f"the file {name!r} is not UTF-8 text", "save it as UTF-8") from None
    except (OSError, ValueError, RuntimeError):  # a loop of links is a RuntimeError
        raise SchemaError("mapping", f"the file {name!r} cannot be read", fix) from None


def read_text(path: str | Path, kind: type[BadInput], field: str) -> str:
    """A file's text; a missing, unreadable or non-UTF-8 file is the caller's to fix."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise kind(field, f"the file {str(path)!r} is not UTF-8 text", "save it as UTF-8") from None
    except (OSError, ValueError):
        raise kind(field, f"the file {str(path)!r} cannot be read", "give the path of an existing file") from None
