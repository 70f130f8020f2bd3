"""What a question asks for: an error of at most so much, or the most that a price can buy.

std_error               the standard error of every cell is at most that
relative_error, above   cells whose count is at least `above` have a relative standard error of at most that:
                        std_error = relative_error * above, which depends on no data
epsilon, rho            spend that much, in the account's own currency
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from hushcube.errors import BadInput
from hushcube.ledger.account import Account
from hushcube.model.privacy import LARGEST_BUDGET, SMALLEST_BUDGET, Number, exact_number


@dataclass(frozen=True)
class Target:
    """A standard error that must be met, or a price that is to be spent."""

    std_error: float = math.inf
    price: Fraction | None = None

    @property
    def variance(self) -> float:
        """The largest variance of a cell that meets it."""
        return self.std_error**2

    @classmethod
    def read(
        cls,
        account: Account,
        *,
        std_error: Number | None = None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        relative_error: Number | None = None,
        above: Number | None = None,
    ) -> Target:
        """Check what is asked for: one target, and one that the account knows."""
        if above is not None and relative_error is None:
            raise BadInput("above", "says for which counts a relative error is wanted, and none is", "add it")
        named = {"std_error": std_error, "epsilon": epsilon, "rho": rho, "relative_error": relative_error}
        given = {name: value for name, value in named.items() if value is not None}
        if len(given) != 1:
            problem = "no target is given" if not given else f"cannot be combined with {list(given)[1]}"
            fix = f"give one of std_error, relative_error with above, or {account.currency}"
            raise BadInput(next(iter(given), "std_error"), problem, fix)
        ((name, value),) = given.items()
        amount = _positive(name, value)
        if name == "std_error":
            return cls(std_error=float(amount))
        if name == "relative_error":
            if above is None:
                raise BadInput("above", "is not given", "say from which count on the relative error is wanted")
            return cls(std_error=float(amount * _positive("above", above)))
        if name != account.currency:
            fix = f"give {account.currency}, or a standard error"
            raise BadInput(name, f"the account counts {account.currency}", fix)
        if not SMALLEST_BUDGET <= amount <= LARGEST_BUDGET:
            raise BadInput(name, f"is not between 1e-9 and {LARGEST_BUDGET}", "give another amount")
        return cls(price=amount)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"std_error": self.std_error} if self.price is None else {"price": str(self.price)}


def _positive(name: str, value: Any) -> Fraction:
    amount = exact_number(name, value, BadInput)
    if not Fraction(1, 10**15) <= amount <= 10**15:
        raise BadInput(name, "is not above 0, or out of range", "give a positive number that a count could have")
    return amount
