"""Reading a plan file. The whole of it is checked: every field, the strategy's name, the cost and the digest.

A file that does not say exactly what hushcube would write for the plan it describes is refused: true for 1, "1" for 1
and [[1]] for [1] are damage, as are fields that nobody knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import hushcube.designs  # noqa: F401 - the kinds of plans make themselves known
from hushcube.designs.design import BUDGETS, FORMAT, RECOVERIES, Design, digest_of
from hushcube.designs.request import Request
from hushcube.errors import BadInput, PlanError
from hushcube.model.arrays import Floats
from hushcube.model.files import read_json
from hushcube.model.privacy import Privacy
from hushcube.model.queries import SparseRows, query_table
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.strategies import check_strategy

AGAIN: Final = "plan again with `hushcube plan --out`"


def read_design(text: str) -> Design:
    """The plan in a file's text."""
    return design_of(read_json(text, "plan", PlanError, AGAIN))


def design_of(raw: Any) -> Design:
    """The plan of a JSON document."""
    if not isinstance(raw, dict) or type(raw.get("format")) is not int or raw["format"] != FORMAT:
        raise PlanError("plan", "is not a plan of this version of hushcube", AGAIN)
    try:
        schema = Schema.from_dict(raw["schema"])
        asked = raw.get("queries")
        rows = None if asked is None else SparseRows.from_dict(asked)
        queries = None if asked is None else query_table(schema, asked["attributes"], rows)
        workload = Workload.parse(raw["workload"], schema, queries)
        request = Request(workload, Privacy.from_dict(raw["privacy"]))
        if raw["budgets"] not in BUDGETS or raw["recovery"] not in RECOVERIES:
            raise ValueError
        kind = Design.kinds[raw["design"]]
        own = kind.from_specification(raw, workload.schema)
        decision = (raw["strategy"], raw["budgets"], raw["recovery"], raw["proof"], _budgets(raw["budget"]))
        plan = kind(request, *decision, details=raw["details"], **own)
        check_strategy(plan)
        digest = digest_of({key: value for key, value in raw.items() if key != "digest"})
    except BadInput:
        raise
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError):
        raise PlanError("plan", "a field is missing or damaged", AGAIN) from None
    if not plan.digest == digest == raw.get("digest"):
        raise PlanError("plan, digest", "does not fit the plan: the file was changed", AGAIN)
    return plan


def _budgets(raw: Sequence[Any]) -> Floats:
    return np.array([np.inf if budget is None else budget for budget in raw], dtype=np.float64)
