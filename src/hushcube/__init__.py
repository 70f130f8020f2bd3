"""hushcube: differentially private data cubes and contingency tables that add up, with an error bar on every cell.

    import hushcube as hc

    schema = hc.Schema.read("people.yaml")
    plan = hc.plan(schema, "<=2-way", epsilon=1, neighbours="add-remove")      # no data is read: this costs nothing
    print(plan)                                                                # the expected error of every table
    release = hc.release(plan, "people.csv", out="published")                  # once
    print(release["age*sex"])

Verbs are functions, in the words of the command line; nouns are classes; errors are the tree of `hushcube.errors`.
Each is imported when it is first used, so that `import hushcube` and `hushcube --help` are fast.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` would be most of what the import of this module costs
    from typing import Any

    from hushcube import errors as errors
    from hushcube import samples as samples
    from hushcube.bundle.checks.verdict import Verdict
    from hushcube.bundle.published_table import Table
    from hushcube.bundle.release import Estimate, Release
    from hushcube.bundle.verify import verify
    from hushcube.designs.request import Request
    from hushcube.errors import (
        BadInput,
        BudgetExceeded,
        BundleError,
        DataError,
        FactsError,
        HushcubeError,
        MissingDependency,
        NotApplicable,
        OutputError,
        PlanError,
        PrivacyError,
        QueryError,
        ResourceError,
        SchemaError,
        TimeLimitReached,
        TooLarge,
        WorkloadError,
    )
    from hushcube.faces.value import FaceValue
    from hushcube.model.attribute import Attribute
    from hushcube.model.facts import Facts
    from hushcube.model.level import Level
    from hushcube.model.measure import Measure
    from hushcube.model.privacy import Privacy, Unit
    from hushcube.model.schema import Schema
    from hushcube.model.workload import Workload
    from hushcube.planning.inverse import Found
    from hushcube.planning.plan import Plan
    from hushcube.planning.question import Comparison
    from hushcube.planning.what_if import Scenario, Scenarios
    from hushcube.strategies.adaptive import Dwork, IReduct, IResamp, TwoPhase
    from hushcube.strategies.hierarchy import Hierarchy
    from hushcube.strategies.matrix import Matrix
    from hushcube.strategies.pmost import PMost
    from hushcube.strategies.sketch import Sketch
    from hushcube.verbs.charting import chart
    from hushcube.verbs.evaluating import Evaluation, evaluate
    from hushcube.verbs.planning import compare, find_budget, plan, what_if
    from hushcube.verbs.releasing import SyntheticPeople, recover, release, synthesize
    from hushcube.verbs.releasing import open as open  # noqa: A004 - what a reader does with a folder
    from hushcube.verbs.schemas import SchemaCheck, SchemaDraft, check_schema, draft_schema

__version__ = "0.1.0"

__all__ = [
    "Attribute",
    "BadInput",
    "BudgetExceeded",
    "BundleError",
    "Comparison",
    "DataError",
    "Dwork",
    "Estimate",
    "Evaluation",
    "FaceValue",
    "Facts",
    "FactsError",
    "Found",
    "Hierarchy",
    "HushcubeError",
    "IReduct",
    "IResamp",
    "Level",
    "Matrix",
    "Measure",
    "MissingDependency",
    "NotApplicable",
    "OutputError",
    "PMost",
    "Plan",
    "PlanError",
    "Privacy",
    "PrivacyError",
    "QueryError",
    "Release",
    "Request",
    "ResourceError",
    "Scenario",
    "Scenarios",
    "Schema",
    "SchemaCheck",
    "SchemaDraft",
    "SchemaError",
    "Sketch",
    "SyntheticPeople",
    "Table",
    "TimeLimitReached",
    "TooLarge",
    "TwoPhase",
    "Unit",
    "Verdict",
    "Workload",
    "WorkloadError",
    "chart",
    "check_schema",
    "compare",
    "draft_schema",
    "evaluate",
    "find_budget",
    "open",
    "plan",
    "recover",
    "release",
    "synthesize",
    "verify",
    "what_if",
]

_HOMES = {
    "bundle.checks.verdict": "Verdict",
    "bundle.published_table": "Table",
    "bundle.release": "Estimate Release",
    "bundle.verify": "verify",
    "designs.request": "Request",
    "errors": "BadInput BudgetExceeded BundleError DataError FactsError HushcubeError MissingDependency NotApplicable"
    " OutputError PlanError PrivacyError QueryError ResourceError SchemaError TimeLimitReached TooLarge WorkloadError",
    "faces.value": "FaceValue",
    "model.attribute": "Attribute",
    "model.facts": "Facts",
    "model.level": "Level",
    "model.measure": "Measure",
    "model.privacy": "Privacy Unit",
    "model.schema": "Schema",
    "model.workload": "Workload",
    "planning.inverse": "Found",
    "planning.plan": "Plan",
    "planning.question": "Comparison",
    "planning.what_if": "Scenario Scenarios",
    "strategies.adaptive": "Dwork IReduct IResamp TwoPhase",
    "strategies.hierarchy": "Hierarchy",
    "strategies.matrix": "Matrix",
    "strategies.pmost": "PMost",
    "strategies.sketch": "Sketch",
    "verbs.charting": "chart",
    "verbs.evaluating": "Evaluation evaluate",
    "verbs.planning": "compare find_budget plan what_if",
    "verbs.releasing": "SyntheticPeople open recover release synthesize",
    "verbs.schemas": "SchemaCheck SchemaDraft check_schema draft_schema",
}
"""Where the names at the door are from."""
_PLACES = {name: home for home, names in _HOMES.items() for name in names.split()}
_SUBMODULES = ("errors", "samples")
"""Modules that a reader may use."""


def __getattr__(name: str) -> Any:
    """Import what is asked for, and keep it."""
    if name not in _PLACES and name not in _SUBMODULES:
        raise AttributeError(f"module 'hushcube' has no attribute {name!r}")
    from importlib import import_module

    found = import_module(f"hushcube.{_PLACES.get(name, name)}")
    globals()[name] = found = getattr(found, name) if name in _PLACES else found
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
