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
    from hushcube.bundle.checks.verdict import Verdict as Verdict
    from hushcube.bundle.published_table import Table as Table
    from hushcube.bundle.release import Estimate as Estimate
    from hushcube.bundle.release import Release as Release
    from hushcube.bundle.verify import verify as verify
    from hushcube.designs.request import Request as Request
    from hushcube.errors import BadInput as BadInput
    from hushcube.errors import BudgetExceeded as BudgetExceeded
    from hushcube.errors import BundleError as BundleError
    from hushcube.errors import DataError as DataError
    from hushcube.errors import FactsError as FactsError
    from hushcube.errors import HushcubeError as HushcubeError
    from hushcube.errors import MissingDependency as MissingDependency
    from hushcube.errors import NotApplicable as NotApplicable
    from hushcube.errors import OutputError as OutputError
    from hushcube.errors import PlanError as PlanError
    from hushcube.errors import PrivacyError as PrivacyError
    from hushcube.errors import QueryError as QueryError
    from hushcube.errors import ResourceError as ResourceError
    from hushcube.errors import SchemaError as SchemaError
    from hushcube.errors import TimeLimitReached as TimeLimitReached
    from hushcube.errors import TooLarge as TooLarge
    from hushcube.errors import WorkloadError as WorkloadError
    from hushcube.faces.value import FaceValue as FaceValue
    from hushcube.model.attribute import Attribute as Attribute
    from hushcube.model.facts import Facts as Facts
    from hushcube.model.level import Level as Level
    from hushcube.model.measure import Measure as Measure
    from hushcube.model.privacy import Privacy as Privacy
    from hushcube.model.privacy import Unit as Unit
    from hushcube.model.schema import Schema as Schema
    from hushcube.model.workload import Workload as Workload
    from hushcube.planning.inverse import Found as Found
    from hushcube.planning.plan import Plan as Plan
    from hushcube.planning.question import Comparison as Comparison
    from hushcube.planning.question import Scenario as Scenario
    from hushcube.planning.question import Scenarios as Scenarios
    from hushcube.strategies.adaptive import Dwork as Dwork
    from hushcube.strategies.adaptive import IReduct as IReduct
    from hushcube.strategies.adaptive import IResamp as IResamp
    from hushcube.strategies.adaptive import TwoPhase as TwoPhase
    from hushcube.strategies.hierarchy import Hierarchy as Hierarchy
    from hushcube.strategies.matrix import Matrix as Matrix
    from hushcube.strategies.pmost import PMost as PMost
    from hushcube.strategies.sketch import Sketch as Sketch
    from hushcube.verbs.charting import chart as chart
    from hushcube.verbs.evaluating import Evaluation as Evaluation
    from hushcube.verbs.evaluating import evaluate as evaluate
    from hushcube.verbs.planning import compare as compare
    from hushcube.verbs.planning import find_budget as find_budget
    from hushcube.verbs.planning import plan as plan
    from hushcube.verbs.planning import what_if as what_if
    from hushcube.verbs.releasing import SyntheticPeople as SyntheticPeople
    from hushcube.verbs.releasing import open as open  # noqa: A004 - what a reader does with a folder
    from hushcube.verbs.releasing import recover as recover
    from hushcube.verbs.releasing import release as release
    from hushcube.verbs.releasing import synthesize as synthesize
    from hushcube.verbs.schemas import SchemaCheck as SchemaCheck
    from hushcube.verbs.schemas import SchemaDraft as SchemaDraft
    from hushcube.verbs.schemas import check_schema as check_schema
    from hushcube.verbs.schemas import draft_schema as draft_schema

__version__ = "0.1.0"

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
    "planning.question": "Comparison Scenario Scenarios",
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
__all__ = sorted(_PLACES)
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
