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

    from hushcube import errors as errors, samples as samples
    from hushcube.bundle.checks.verdict import Verdict as Verdict
    from hushcube.bundle.comparing import Compared as Compared
    from hushcube.bundle.crossing import Cross as Cross
    from hushcube.bundle.estimate import Estimate as Estimate
    from hushcube.bundle.export.csv_tables import read_csv as read_csv
    from hushcube.bundle.published_table import Table as Table
    from hushcube.bundle.release import Release as Release
    from hushcube.bundle.verify import verify as verify
    from hushcube.designs.request import Request as Request
    from hushcube.errors import (
        BadInput as BadInput,
        BudgetExceeded as BudgetExceeded,
        BundleError as BundleError,
        DataError as DataError,
        FactsError as FactsError,
        HushcubeError as HushcubeError,
        LedgerError as LedgerError,
        LedgerUnavailable as LedgerUnavailable,
        MissingDependency as MissingDependency,
        NoLedger as NoLedger,
        NotApplicable as NotApplicable,
        NotEnoughBudget as NotEnoughBudget,
        OutOfReach as OutOfReach,
        OutputError as OutputError,
        PlanError as PlanError,
        PrivacyError as PrivacyError,
        QueryError as QueryError,
        ResourceError as ResourceError,
        SchemaError as SchemaError,
        ServerError as ServerError,
        SessionError as SessionError,
        TimeLimitReached as TimeLimitReached,
        TooLarge as TooLarge,
        UnknownAccount as UnknownAccount,
        WorkloadError as WorkloadError,
    )
    from hushcube.faces.value import FaceValue as FaceValue
    from hushcube.ledger.account import Account as Account
    from hushcube.ledger.charge import Charge as Charge
    from hushcube.ledger.ledger import Ledger as Ledger
    from hushcube.model.attribute import Attribute as Attribute
    from hushcube.model.facts import Facts as Facts
    from hushcube.model.level import Level as Level
    from hushcube.model.measure import Measure as Measure
    from hushcube.model.privacy import Privacy as Privacy, Unit as Unit
    from hushcube.model.schema import Schema as Schema
    from hushcube.model.workload import Workload as Workload
    from hushcube.planning.inverse import Found as Found
    from hushcube.planning.plan import Plan as Plan
    from hushcube.planning.question import Comparison as Comparison, Scenario as Scenario, Scenarios as Scenarios
    from hushcube.server.serving import serve as serve
    from hushcube.server.tokens import Token as Token, Tokens as Tokens
    from hushcube.session.answer import Answer as Answer, Answered as Answered, Offer as Offer
    from hushcube.session.policy import Policy as Policy
    from hushcube.session.session import Session as Session
    from hushcube.strategies.adaptive import (
        Dwork as Dwork,
        IReduct as IReduct,
        IResamp as IResamp,
        TwoPhase as TwoPhase,
    )
    from hushcube.strategies.bmax import BMax as BMax
    from hushcube.strategies.given import Given as Given
    from hushcube.strategies.hierarchy import Hierarchy as Hierarchy
    from hushcube.strategies.matrix import Matrix as Matrix
    from hushcube.strategies.pmost import PMost as PMost
    from hushcube.strategies.sketch import Sketch as Sketch
    from hushcube.verbs.advising import Advice as Advice, Advised as Advised, advise as advise
    from hushcube.verbs.charting import chart as chart
    from hushcube.verbs.evaluating import Evaluation as Evaluation, evaluate as evaluate
    from hushcube.verbs.exporting import export as export
    from hushcube.verbs.owner_check import ReleaseCheck as ReleaseCheck, evaluate_release as evaluate_release
    from hushcube.verbs.planning import compare as compare, find_budget as find_budget, plan as plan, what_if as what_if
    from hushcube.verbs.releasing import (
        SyntheticPeople as SyntheticPeople,
        open as open,  # noqa: A004 - what a reader does with a folder
        recover as recover,
        release as release,
        synthesize as synthesize,
    )
    from hushcube.verbs.reporting import explore as explore, report as report
    from hushcube.verbs.schemas import (
        SchemaCheck as SchemaCheck,
        SchemaDraft as SchemaDraft,
        check_schema as check_schema,
        draft_schema as draft_schema,
    )

__version__ = "0.1.0"

_HOMES = {
    "bundle.checks.verdict": "Verdict",
    "bundle.export.csv_tables": "read_csv",
    "bundle.published_table": "Table",
    "bundle.comparing": "Compared",
    "bundle.crossing": "Cross",
    "bundle.estimate": "Estimate",
    "bundle.release": "Release",
    "bundle.verify": "verify",
    "designs.request": "Request",
    "errors": "BadInput BudgetExceeded BundleError DataError FactsError HushcubeError LedgerError LedgerUnavailable"
    " MissingDependency NoLedger NotApplicable NotEnoughBudget OutOfReach OutputError PlanError PrivacyError QueryError"
    " ResourceError SchemaError ServerError SessionError TimeLimitReached TooLarge UnknownAccount WorkloadError",
    "faces.value": "FaceValue",
    "ledger.account": "Account",
    "ledger.charge": "Charge",
    "ledger.ledger": "Ledger",
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
    "server.serving": "serve",
    "server.tokens": "Token Tokens",
    "session.answer": "Answer Answered Offer",
    "session.policy": "Policy",
    "session.session": "Session",
    "strategies.adaptive": "Dwork IReduct IResamp TwoPhase",
    "strategies.bmax": "BMax",
    "strategies.given": "Given",
    "strategies.hierarchy": "Hierarchy",
    "strategies.matrix": "Matrix",
    "strategies.pmost": "PMost",
    "strategies.sketch": "Sketch",
    "verbs.advising": "Advice Advised advise",
    "verbs.charting": "chart",
    "verbs.evaluating": "Evaluation evaluate",
    "verbs.exporting": "export",
    "verbs.owner_check": "ReleaseCheck evaluate_release",
    "verbs.planning": "compare find_budget plan what_if",
    "verbs.releasing": "SyntheticPeople open recover release synthesize",
    "verbs.reporting": "explore report",
    "verbs.schemas": "SchemaCheck SchemaDraft check_schema draft_schema",
}
"""Where the names at the door are from."""
_PLACES = {name: home for home, names in _HOMES.items() for name in names.split()}
__all__ = sorted(_PLACES)
_SUBMODULES = ("errors", "samples")  # modules that a reader may use


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
