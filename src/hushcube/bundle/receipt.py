"""The receipt of a release that was charged to an account of a ledger: what anyone may know of the charge.

It stands in the manifest and, in words, in PRIVACY.md. The ledger itself stays with the owner of the data; what can be
checked without it is that the charge covers what the plan costs on an account of that kind.       [bundle/verify.py]
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

from hushcube.errors import BadInput
from hushcube.model.privacy import Privacy
from hushcube.text import at_most, code

_TEXTS: Final = ("account", "part", "key")


@dataclass(frozen=True)
class Receipt:
    """Which account was charged how much, under which key; `total` is the guarantee that the whole account keeps."""

    account: str
    part: str | None
    """The part of a partition that the account is for."""
    key: str
    amount: Fraction
    total: Privacy

    @property
    def currency(self) -> str:
        """What the account counts: epsilon on a pure one, rho on the others."""
        return "epsilon" if self.total.is_pure else "rho"

    @property
    def charged(self) -> str:
        """How much, rounded up."""
        return f"{self.currency} = {at_most(self.amount)}"

    def __str__(self) -> str:
        part = "" if self.part is None else f", part {self.part!r}"
        return f"charged {self.charged} to the account {self.account!r}{part} (in all {self.total}), key {self.key}"

    @property
    def statement(self) -> str:
        """The paragraph of PRIVACY.md."""
        part = "" if self.part is None else f", part {code(self.part)}"
        return (
            f"Charged: **{self.charged}** to the account {code(self.account)}{part} of a ledger, before anything was "
            f"measured, under the key {code(self.key)}. The account has a total: all that is charged to it, this "
            f"release and every other, keeps together to {self.total}. What is released about the same people without "
            "being charged there is not counted."
        )

    def to_dict(self) -> dict[str, Any]:
        """The field of the manifest; the amount as an exact text."""
        told = {name: value for name in _TEXTS if (value := getattr(self, name)) is not None}
        return {**told, "currency": self.currency, "charged": str(self.amount), "total": self.total.to_dict()}

    @classmethod
    def from_dict(cls, raw: Any) -> Receipt | None:
        """Read the field of a manifest, which other releases do not have; raises ValueError for anything else.

        >>> Receipt.from_dict(None)
        >>> Receipt.from_dict({"account": "people", "charged": 1})
        Traceback (most recent call last):
        ValueError: not a receipt
        """
        if raw is None:
            return None
        try:
            texts = {name: raw.get(name) for name in _TEXTS}
            read = cls(amount=Fraction(raw["charged"]), total=Privacy.from_dict(raw["total"]), **texts)
        except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError, BadInput):
            raise ValueError("not a receipt") from None
        if any(not isinstance(text, str) for text in (read.account, read.key)) or read.to_dict() != raw:
            raise ValueError("not a receipt")
        return read
