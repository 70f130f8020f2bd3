"""The error tree.

HushcubeError                 anything hushcube raises on purpose
├── BadInput                  the caller can fix it: names the field and the fix; exit code 2, nothing spent or written
│   ├── SchemaError           the declared attributes
│   ├── WorkloadError         the tables asked for
│   ├── PrivacyError          epsilon, rho, delta, neighbours, rows per person
│   │   └── BudgetExceeded    a plan that costs more than its guarantee allows
│   ├── NotApplicable         a strategy that cannot serve this schema, workload or guarantee
│   ├── TooLarge              more cells, or memory, than can be held
│   ├── DataError             the source: missing column, value outside its domain, unreadable file
│   ├── PlanError             a plan file that is damaged or was changed
│   ├── OutputError           the folder to write to
│   ├── BundleError           a release that is damaged, was changed, or is not one
│   ├── FactsError            public facts that cannot be read, or that contradict each other
│   ├── QueryError            a question that a release cannot answer
│   ├── SessionError          a session that cannot be opened, or a question that it cannot take
│   ├── ServerError           what a server is started with: tokens, addresses, certificates
│   └── LedgerError           a ledger, an account or a charge that is refused; nothing is charged
│       ├── NotEnoughBudget   a charge of more than is left
│       ├── OutOfReach        a question of a session whose target costs more than may be spent
│       ├── UnknownAccount    an account that the ledger does not have
│       ├── NoLedger          a place where no ledger is
│       └── LedgerUnavailable a ledger that cannot be written now: others hold it, the disk is full, no connection
├── ResourceError             memory, a disk or open files ran out: the machine's fault, not the input's
├── TimeLimitReached          post-processing that took longer than it was allowed; what was there is untouched
└── MissingDependency         an optional package that is not installed

Messages never hold data: a value found in a row is not repeated in an error.
"""

from __future__ import annotations

import copyreg
import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction

from hushcube.text import at_least, at_most


class HushcubeError(Exception):
    """Anything hushcube raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Another process gets it whole: as it is, and not made again from its message."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined] # undocumented


class BadInput(HushcubeError):
    """Input that its owner can fix; `field` says where, `fix` says how."""

    def __init__(self, field: str, problem: str, fix: str) -> None:
        super().__init__(f"{field}: {problem}. Fix: {fix}.")
        self.field = field
        self.problem = problem
        self.fix = fix


class SchemaError(BadInput):
    """A schema that does not describe a finite public domain."""


class WorkloadError(BadInput):
    """Workload words that cannot be read, or that ask for nothing."""


class PrivacyError(BadInput):
    """A guarantee that is incomplete, contradictory or out of range."""


class BudgetExceeded(PrivacyError):
    """A plan that would spend more than its guarantee allows."""

    def __init__(self, requested: Fraction | float, remaining: Fraction | float, unit: str) -> None:
        super().__init__(
            "budget",
            f"the plan costs {float(requested):.12g} {unit}, but only {float(remaining):.12g} is allowed",
            "plan again with `hushcube plan`; a plan's budgets may not be edited upwards",
        )
        self.requested = requested
        self.remaining = remaining


class NotApplicable(BadInput):
    """A strategy that cannot serve this schema, workload or guarantee."""

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__("strategy", f"{strategy} cannot be used here: {reason}", "choose another strategy, or `auto`")
        self.strategy = strategy
        self.reason = reason


class TooLarge(BadInput):
    """More cells, or bytes, than can be held; counted in Python integers before any memory is taken."""

    _fix = "ask for smaller marginals, or declare coarser values or bins"

    def __init__(self, field: str, cells: int, limit: int, fix: str = _fix, unit: str = "cells") -> None:
        super().__init__(field, f"{readable(cells)} {unit} are more than the {readable(limit)} that can be held", fix)
        self.cells = cells
        self.limit = limit


class DataError(BadInput):
    """A data source that is missing, unreadable or does not fit the schema."""


class PlanError(BadInput):
    """A plan file that is damaged or was changed."""


class OutputError(BadInput):
    """An output folder that cannot be written."""


class BundleError(BadInput):
    """A release folder that is damaged, was changed, or is not one."""


class QueryError(BadInput):
    """A question that a release cannot answer."""


class ServerError(BadInput):
    """Tokens, addresses or certificates that a server cannot be started with."""


class FactsError(BadInput):
    """Public facts that cannot be read, or that no table can satisfy."""


class SessionError(BadInput):
    """A session that cannot be opened or resumed, or a question that it cannot take."""


class LedgerError(BadInput):
    """A ledger, an account or a charge that is refused."""


class NotEnoughBudget(LedgerError):
    """A charge of more than is left of an account, or of a share in it."""

    def __init__(self, account: str, requested: Fraction, left: Fraction, currency: str) -> None:
        problem = f"{account} has {at_least(left)} {currency} left, and this costs {at_most(requested)}"
        fix = "plan with a smaller budget: what was spent cannot be had again"
        super().__init__("account", f"{problem}; nothing is charged", fix)
        self.requested = requested
        self.left = left


class OutOfReach(LedgerError):
    """A question whose target costs more than may be spent; says what could be had, and nothing is charged."""

    def __init__(self, question: str, price: Fraction, allowed: Fraction, currency: str, could: float) -> None:
        costs = f"costs {at_most(price)} {currency}" if price else "is finer than whole-number noise can be"
        told = f"{question!r}, as precise as that, {costs}, and {at_least(allowed)} may be spent on it"
        had = f"; all of that would give a standard error of {could:.4g}" if math.isfinite(could) else ""
        super().__init__("question", f"{told}{had}; nothing is charged", "ask for a larger error, or a smaller table")
        self.price, self.allowed, self.std_error = price, allowed, could


class UnknownAccount(LedgerError):
    """An account that the ledger does not have."""

    def __init__(self, account: str) -> None:
        fix = "see `hushcube ledger show` for those that there are, or make it with `hushcube ledger create`"
        super().__init__("account", f"there is no account {account!r} in the ledger", fix)


class NoLedger(LedgerError):
    """A place where no ledger is."""

    def __init__(self, place: str) -> None:
        fix = "make one with `hushcube ledger create`, or check the place"
        super().__init__("ledger", f"there is no ledger {place[:200]!r}", fix)


class LedgerUnavailable(LedgerError):
    """A ledger that cannot be read or written now, and may be later."""


class ResourceError(HushcubeError):
    """Something that the machine has no more of: `resource` says what, `fix` where more could come from."""

    def __init__(self, resource: str, problem: str, fix: str) -> None:
        super().__init__(f"{resource} {problem}. Fix: {fix}.")
        self.resource = resource
        self.fix = fix


class TimeLimitReached(HushcubeError):
    """Post-processing that took longer than it was allowed."""

    def __init__(self, seconds: float, work: str) -> None:
        super().__init__(
            f"time_limit: {work} did not finish within {seconds:g} seconds; nothing was changed. "
            "Fix: allow more time, or choose a faster method."
        )
        self.seconds = seconds


class MissingDependency(HushcubeError):
    """An optional package that is not installed."""

    def __init__(self, package: str, purpose: str, extra: str) -> None:
        super().__init__(f"{purpose} needs {package}. Fix: pip install 'hushcube[{extra}]'.")


@contextmanager
def after(done: str) -> Iterator[None]:
    """Whatever fails inside also says, as a note of its exception, what has been done for good before."""
    try:
        yield
    except BaseException as problem:
        problem.add_note(done)
        raise


def readable(count: int) -> str:
    """A count as people read it, however many digits it has.

    >>> readable(12345), readable(10**40)
    ('12,345', 'about 10^40')
    """
    return f"{count:,}" if count < 10**15 else f"about 10^{math.log10(count):.0f}"
