"""What is refused, in one form: `{"field": ..., "problem": ..., "fix": ...}`, and a status that says of which kind.

Bad input is the analyst's to fix and is repeated as it is. Whatever else fails is the owner's: its text may name files,
or hold what a library said, so that the analyst learns only that it failed, and the owner finds its kind in the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hushcube.errors import (
    BadInput,
    BundleError,
    DataError,
    HushcubeError,
    LedgerError,
    LedgerUnavailable,
    OutputError,
    PlanError,
    ServerError,
    SessionError,
    UnknownAccount,
)

SHAPE: Final = ("field", "problem", "fix")
_OWNERS: Final = (DataError, PlanError, BundleError, OutputError, ServerError, LedgerUnavailable)
"""Bad input that is not the analyst's: the data, and what is stored on the server."""


class Refusal(Exception):
    """A request that gets no answer."""

    def __init__(
        self, status: int, field: str, problem: str, fix: str, *, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(f"{field}: {problem}. Fix: {fix}.")
        self.status = status
        self.field, self.problem, self.fix = field, problem, fix
        self.headers = dict(headers or {})
        self.cause: str | None = None
        """For the owner: what went wrong."""

    def to_dict(self) -> dict[str, Any]:
        """The document that is sent."""
        return {name: getattr(self, name) for name in SHAPE}


def refusal(problem: BaseException) -> Refusal:
    """What an analyst is told about an exception.

    >>> from hushcube.errors import QueryError
    >>> refusal(QueryError("question", "'agee' is not an attribute", "use one of: age, sex")).status
    400
    >>> refused = refusal(ValueError("row 17 has 'secret'"))
    >>> refused.status, refused.problem, refused.cause
    (500, 'the server failed', 'ValueError')
    """
    if isinstance(problem, Refusal):
        return problem
    if isinstance(problem, BadInput) and not isinstance(problem, _OWNERS):
        return Refusal(_status(problem), problem.field, problem.problem, problem.fix)
    if isinstance(problem, TimeoutError):
        problem_text = "took longer than the server allows; what was begun goes on"
        fix = "ask again with the same Idempotency-Key: nothing is charged twice"
        return Refusal(503, "time", problem_text, fix, headers={"Retry-After": "10"})
    if isinstance(problem, HushcubeError):
        known = Refusal(503, "server", "cannot do this at present", "tell the owner, who finds why in the audit log")
        known.cause = str(problem)
        return known
    unknown = Refusal(500, "server", "the server failed", "tell the owner, who finds its kind in the audit log")
    unknown.cause = type(problem).__name__
    return unknown


def _status(problem: BadInput) -> int:
    """Of bad input: wrong in itself, or only now."""
    if isinstance(problem, UnknownAccount):
        return 404
    used = isinstance(problem, SessionError) and problem.field == "key"
    return 409 if used or isinstance(problem, LedgerError) else 400
