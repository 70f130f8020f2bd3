"""Reading what people write and change, as they mean it: JSON, YAML, and the mapping files that a schema names.

Each text has one meaning, or none: a key that occurs twice is refused, and so is whatever else YAML can do.
"""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, Final

import yaml

from hushcube.errors import BadInput, SchemaError
from hushcube.text import short

LARGEST_MAPPING: Final = 2**26


def read_mapping_file(folder: Path, name: str) -> str:
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


def read_text(path: str | Path, error: type[BadInput], field: str) -> str:
    """A file's text; a missing, unreadable or non-UTF-8 file is the caller's to fix."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise error(field, f"the file {str(path)!r} is not UTF-8 text", "save it as UTF-8") from None
    except (OSError, ValueError):
        raise error(field, f"the file {str(path)!r} cannot be read", "give the path of an existing file") from None


def read_json(text: str, field: str, error: type[BadInput], fix: str) -> Any:
    """The content of a file; a key that occurs twice or a number that is not finite is refused."""
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
    except _Refused as found:
        raise error(field, str(found), fix) from None
    except (ValueError, RecursionError):  # thousands of digits or brackets, too
        raise error(field, "is not valid JSON", fix) from None


class _Refused(Exception):
    """What Python would read, and JSON does not mean; or valid YAML that is not plain, with what to do about it."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise _Refused(f"the key {short(_repeated([key for key, _ in pairs]))} occurs twice")
    return result


def _repeated(keys: list[str]) -> str:
    return next(key for key in keys if keys.count(key) > 1)


def _constant(name: str) -> float:
    raise _Refused(f"{name} is not a number")


def _float(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _Refused("a number is too large")
    return value


def read_yaml(text: str, field: str, error: type[BadInput], plain: str) -> Any:
    """The content of a file; `plain` says what to write in place of what cannot be read."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with fewer truth values
    except _Refused as found:
        raise error(field, *found.args) from None
    except yaml.YAMLError as found:
        mark = getattr(found, "problem_mark", None)
        place = f"{field}, line {mark.line + 1}" if mark is not None else field
        raise error(place, "is not valid YAML", f"see the page on the {field} in the documentation") from None
    except (ValueError, LookupError, AttributeError, RecursionError):  # `!!bool x`, thousands of digits or brackets
        problem = "holds a number that is too long, a tag that does not fit, or lists that are too deep"
        raise error(field, problem, plain) from None


_NUMBERS = {
    "tag:yaml.org,2002:int": re.compile(r"[-+]?(0|[1-9][0-9]*)$"),
    "tag:yaml.org,2002:float": re.compile(
        r"([-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"
    ),
}


class _Loader(yaml.SafeLoader):
    """YAML as people mean it: yes, no, 010, 12:30 and 2020-01-01 are labels; duplicate keys are errors.

    YAML 1.1 reads them as true, false, 8, 750 and a date. Only numbers written the one usual way are numbers here.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - as the base class declares it
        first: [
            (tag, _NUMBERS.get(tag, regexp))
            for tag, regexp in resolvers
            if tag != "tag:yaml.org,2002:timestamp" and (tag != "tag:yaml.org,2002:bool" or first in "tTfF")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are not repeated."""
        keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if "<<" in keys:  # merged mappings can grow without bound
            raise _Refused("has the unknown key '<<'", "write each item out")
        if len(set(keys)) != len(keys):
            raise _Refused(f"the key {short(_repeated(keys))} occurs twice in one mapping", "keep one of them")
        return super().construct_mapping(node, deep=deep)
