"""Reading YAML that people write: what they mean, and nothing that YAML can do besides."""

from __future__ import annotations

import re
from typing import Any

import yaml

from hushcube.errors import BadInput


def read_yaml(text: str, field: str, kind: type[BadInput], plain: str) -> Any:
    """The content of a file; `plain` says what to write in place of what cannot be read."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 - a SafeLoader with fewer truth values
    except _NotPlain as found:
        raise kind(field, *found.args) from None
    except yaml.YAMLError as found:
        mark = getattr(found, "problem_mark", None)
        place = f"{field}, line {mark.line + 1}" if mark is not None else field
        raise kind(place, "is not valid YAML", f"see the page on the {field} in the documentation") from None
    except (ValueError, LookupError, AttributeError, RecursionError):  # `!!bool x`, thousands of digits or brackets
        problem = "holds a number that is too long, a tag that does not fit, or lists that are too deep"
        raise kind(field, problem, plain) from None


class _NotPlain(Exception):
    """Valid YAML that is refused: the problem and the fix."""


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
            raise _NotPlain("has the unknown key '<<'", "write each item out")
        if len(set(keys)) != len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise _NotPlain(f"the key {twice[:40]!r} occurs twice in one mapping", "keep one of them")
        return super().construct_mapping(node, deep=deep)
