"""hushcube: differentially private data cubes and contingency tables that add up, with an error bar on every cell.

The verbs are in `hushcube.api`: plan, compare, release, recover, synthesize, open_release. The nouns are here, imported
when they are used, so that `import hushcube` and `hushcube --help` are fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would be most of what the import of this module costs
    from typing import Any

    from hushcube.api import open_release
    from hushcube.bundle.published_table import Table
    from hushcube.bundle.release import Estimate, Release
    from hushcube.faces.value import FaceValue
    from hushcube.model.attribute import Attribute
    from hushcube.model.facts import Facts
    from hushcube.model.privacy import Privacy
    from hushcube.model.schema import Schema
    from hushcube.model.workload import Workload
    from hushcube.planning.plan import Plan

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "Estimate",
    "FaceValue",
    "Facts",
    "Plan",
    "Privacy",
    "Release",
    "Schema",
    "Table",
    "Workload",
    "open_release",
]

_HOMES = {
    "Attribute": "model.attribute",
    "Estimate": "bundle.release",
    "FaceValue": "faces.value",
    "Facts": "model.facts",
    "Table": "bundle.published_table",
    "Plan": "planning.plan",
    "Privacy": "model.privacy",
    "Release": "bundle.release",
    "Schema": "model.schema",
    "Workload": "model.workload",
    "open_release": "api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hushcube' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"hushcube.{_HOMES[name]}"), name)
