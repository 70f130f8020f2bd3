"""What a session says: what an answer would cost, and the answer itself."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from hushcube.bundle.published_table import Table, beside
from hushcube.errors import OutOfReach
from hushcube.ledger.account import Account, Currency
from hushcube.ledger.amounts import exactly
from hushcube.shown import Column, Page, Shown, columns, number
from hushcube.text import at_most, visible


@dataclass(frozen=True, kw_only=True, repr=False)
class Offer(Shown):
    """What a question would be answered with, before anything is spent."""

    question: str
    version: int
    """How many steps the session knows."""
    currency: Currency
    price: Fraction
    """What it would be charged; 0 where it is free."""
    std_error: float
    """The standard error of its worst cell then; infinite where no step can meet the target."""
    known: float
    """The standard error of its worst cell from what is known already; infinite where that says nothing."""
    allowed: Fraction
    """What one question may be charged now."""
    could: float
    """The standard error that all that is allowed would buy."""
    measures: str = ""
    """What would be measured, in words."""

    @property
    def free(self) -> bool:
        """Whether what is known meets the target."""
        return self.price == 0 and math.isfinite(self.std_error)

    @property
    def granted(self) -> bool:
        """Whether the question can be asked."""
        return math.isfinite(self.std_error) and self.price <= self.allowed

    def check(self) -> None:
        """Refuse a target that is out of reach, and say what could be had."""
        if not self.granted:
            raise OutOfReach(self.question, self.price, self.allowed, self.currency, self.could)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; errors that are not known are null."""
        return {
            "question": self.question,
            "version": self.version,
            "free": self.free,
            "granted": self.granted,
            "price": exactly(self.price),
            "currency": self.currency,
            "std_error": _finite(self.std_error),
            "known": _finite(self.known),
            "allowed": exactly(self.allowed),
            "could": _finite(self.could),
            "measures": self.measures,
        }

    def __repr__(self) -> str:
        return f"Offer({visible(self.question)!r}: {self._told})"

    @property
    def _told(self) -> str:
        if self.free:
            return f"free, with a standard error of {number(self.std_error)}"
        if not self.granted:
            return str(OutOfReach(self.question, self.price, self.allowed, self.currency, self.could).problem)
        return f"{at_most(self.price)} {self.currency} for a standard error of {number(self.std_error)}"

    def page(self) -> Page:
        """One sentence."""
        measured = f"; would measure {self.measures}" if self.granted and not self.free else ""
        return Page((f"{self.question}: {self._told}{measured}",))


@dataclass(frozen=True, kw_only=True, repr=False)
class Answer(Shown):
    """A table with its errors, from everything that is known at a version."""

    question: str
    table: Table
    version: int
    """How many steps it was made from: a later version is more precise, never less."""
    charged: Fraction
    """What was charged for it; 0 where it was free."""
    currency: Currency

    @property
    def free(self) -> bool:
        """Whether it cost nothing."""
        return self.charged == 0

    @property
    def std_error(self) -> float:
        """The largest standard error of a cell."""
        return float(np.max(self.table.std_errors, initial=0.0))

    def cells(self) -> Iterator[dict[str, Any]]:
        """One document a cell."""
        table = self.table
        names = (*table.attributes, *beside(table.attributes, "value", "std_error", "low_95", "high_95"))
        numbers = (each.ravel().tolist() for each in (table.values, table.std_errors, table.low, table.high))
        for labels, *found in zip(product(*table.labels), *numbers, strict=True):
            yield dict(zip(names, (*labels, *found), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "question": self.question,
            "version": self.version,
            "free": self.free,
            "charged": exactly(self.charged),
            "currency": self.currency,
            "std_error": self.std_error,
            "attributes": list(self.table.attributes),
            "cells": list(self.cells()),
        }

    def __repr__(self) -> str:
        return f"Answer({visible(self.question)!r}: {self._told})"

    @property
    def _told(self) -> str:
        paid = (
            "free, from what was measured before" if self.free else f"charged {at_most(self.charged)} {self.currency}"
        )
        return f"{paid}; standard error {number(self.std_error)}; version {self.version}"

    def page(self, rows: int = 60) -> Page:
        """The table, and below it what it cost."""
        return Page((*self.table.page(rows).parts, f"{self.question}: {self._told}"))


@dataclass(frozen=True, kw_only=True)
class Answered:
    """A question that was answered: how precisely then and now, from how many steps, and what it was charged."""

    question: str
    version: int
    std_error: float
    charged: str
    now: float

    @staticmethod
    def heads(account: Account) -> list[Column]:
        """The columns of a list of them."""
        return columns(["question"], ["version", "std_error then", "now", f"charged ({account.currency})"])

    @property
    def cells(self) -> list[str]:
        """A line of such a list."""
        paid = "free" if self.charged == "0" else at_most(Fraction(self.charged))
        return [self.question, str(self.version), number(self.std_error), number(self.now), paid]

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return dict(vars(self))


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
