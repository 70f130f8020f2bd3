"""A route: everything about it in one place, read by the gate that checks requests and by the OpenAPI document."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.responses import Response

from hushcube.server.fields import Field, Text, Value
from hushcube.server.shapes import Schema

if TYPE_CHECKING:
    from hushcube.server.desk import Desk
    from hushcube.server.served import Served
    from hushcube.server.tokens import Token

JSON: Final = "application/json"
KEY: Final = Text(
    "Idempotency-Key",
    "a name that you choose for the question: asked again under it, nothing is charged twice",
    required=True,
    pattern="[A-Za-z0-9._-]{1,100}",
)


@dataclass
class Call:
    """A request that passed the gate."""

    desk: Desk
    token: Token
    account: str
    """Empty where the route is about no account; so is `key` where it takes none."""
    given: dict[str, Value]
    key: str = ""
    session: Served | None = None
    path: dict[str, str] = field(default_factory=dict)
    noted: dict[str, Any] = field(default_factory=dict)
    """What the audit log gets to know: the question and its price, and never a number of the answer."""

    @property
    def served(self) -> Served:
        """The session that the route is about."""
        if self.session is None:
            raise LookupError("the route is about no session")
        return self.session


@dataclass(frozen=True)
class Route:
    """What a method on a path does, who may use it, what it takes and what it gives."""

    method: str
    path: str
    role: str | None
    """The least role that may use it; None: anybody, without a token."""
    says: str
    answer: Callable[[Call], Awaitable[Response]] = field(repr=False)
    gives: dict[str, Schema] = field(repr=False)
    """The schema of the answer by media type."""
    weight: int = 1
    """How many plain requests it counts for; what weighs more is work, of which a token has little under way."""
    query: tuple[Field, ...] = ()
    body: tuple[Field, ...] = ()
    takes_key: bool = False

    @property
    def name(self) -> str:
        """Method and path."""
        return f"{self.method} {self.path}"

    @property
    def is_work(self) -> bool:
        """Whether it keeps a thread busy."""
        return self.weight > 1

    @property
    def problems(self) -> tuple[int, ...]:
        """The statuses of its refusals."""
        found = {429, 503}
        found |= {401, 403} if self.role else set()
        found |= {404} if "{" in self.path or self.query else set()
        found |= {400}
        found |= {409} if self.method == "POST" else set()
        found |= {408, 413, 415} if self.body else set()
        return tuple(sorted(found))
