"""The guarantee: how much, between which neighbours, for which unit. Nothing has a default.

    pure epsilon         every outcome's probability changes by a factor of at most exp(epsilon)
    rho-zCDP             Renyi divergences of order alpha are at most rho * alpha   [Bun and Steinke 2016]
    (epsilon, delta)     as pure epsilon, up to a probability delta

Budgets are Fractions: a decimal text or a float stands for the decimal number that is written.

Whose data is protected: the rows of one person, found by a column, of which at most so many count.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Literal, get_args

from hushcube.errors import BadInput, PrivacyError, SchemaError
from hushcube.model.label import is_label
from hushcube.text import at_most, short

Neighbours = Literal["add-remove", "replace-one"]
NEIGHBOURS: Final[tuple[Neighbours, ...]] = ("add-remove", "replace-one")
Number = int | float | str | Fraction | Decimal

LARGEST_BUDGET: Final = 500
SMALLEST_BUDGET: Final = Fraction(1, 10**9)
SMALLEST_DELTA: Final = Fraction(1, 10**200)
MAX_ROWS_PER_PERSON: Final = 2**52  # sums count a row as often as its value says, so that this may be large
_DECIMAL: Final = re.compile(r"[+-]?(\d{1,40}(\.\d{0,400})?|\.\d{1,400})([eE][+-]?\d{1,4})?")
_RATIO: Final = re.compile(r"\d{1,2000}/0*[1-9]\d{0,1999}")
"""As long as the exact form of any decimal in range, and of a part of it; plan files hold budgets in that form."""
Missing = Literal["error", "own"]
MISSING: Final[tuple[Missing, ...]] = get_args(Missing)
MAX_ROWS: Final = 1_000_000
KEYS: Final = ("unit", "max_rows", "unit_missing")


@dataclass(frozen=True, kw_only=True, repr=False)
class Privacy:
    """What is promised to one person; exactly one of epsilon, rho, (epsilon, delta).

    >>> Privacy.of(epsilon="0.1", neighbours="add-remove").epsilon
    Fraction(1, 10)
    >>> print(Privacy.of(epsilon=1, delta="1e-6", neighbours="replace-one", rows_per_person=4))
    epsilon = 1, delta = 1e-06, replace-one, at most 4 rows per person
    """

    epsilon: Fraction | None
    rho: Fraction | None
    delta: Fraction | None
    neighbours: Neighbours
    rows_per_person: int

    @classmethod
    def of(
        cls,
        *,
        neighbours: str | None,
        epsilon: Number | None = None,
        rho: Number | None = None,
        delta: Number | None = None,
        rows_per_person: int = 1,
    ) -> Privacy:
        """Check and build a guarantee; a row is a person unless `rows_per_person` says otherwise."""
        if neighbours is None:
            raise PrivacyError("neighbours", "is not given", "choose add-remove or replace-one: there is no default")
        if neighbours not in NEIGHBOURS:
            raise PrivacyError("neighbours", f"{neighbours!r} is unknown", "choose add-remove or replace-one")
        if epsilon is None and rho is None:
            raise PrivacyError("epsilon", "no budget is given", "give epsilon, rho, or epsilon and delta")
        if rho is not None and (epsilon is not None or delta is not None):
            fix = "give rho alone, or epsilon with or without delta"
            raise PrivacyError("rho", "cannot be combined with epsilon or delta", fix)
        if isinstance(rows_per_person, bool) or not isinstance(rows_per_person, int) or rows_per_person < 1:
            fix = "give the most rows one person may have"
            raise PrivacyError("rows_per_person", "must be a positive integer", fix)
        if rows_per_person > MAX_ROWS_PER_PERSON:
            raise PrivacyError("rows_per_person", f"is above {MAX_ROWS_PER_PERSON:,}", "bound the rows of a person")
        return cls(
            epsilon=None if epsilon is None else _budget("epsilon", epsilon),
            rho=None if rho is None else _budget("rho", rho),
            delta=None if delta is None else _delta(delta),
            neighbours=neighbours,
            rows_per_person=rows_per_person,
        )

    @property
    def is_pure(self) -> bool:
        """Whether the guarantee is pure epsilon, which needs Laplace noise; the others use Gaussian noise."""
        return self.rho is None and self.delta is None

    @property
    def total_is_public(self) -> bool:
        """Whether no neighbour has another number of rows: one row is replaced by one row."""
        return self.neighbours == "replace-one" and self.rows_per_person == 1

    @property
    def row_changes(self) -> tuple[Neighbours, ...]:
        """The changes of single rows whose larger cost, times the rows of a person, covers any change of a person.

        A person of up to k rows who is replaced takes some rows away and brings others, not necessarily as many: the
        change is a sum of at most k columns less a sum of at most k columns. Norms are convex, so the largest change is
        k times one column, or k times a difference of two.
        """
        if self.neighbours == "replace-one" and self.rows_per_person > 1:
            return "add-remove", "replace-one"
        return (self.neighbours,)

    def __repr__(self) -> str:
        return f"Privacy({self})"

    def __str__(self) -> str:
        unit = "one row per person" if self.rows_per_person == 1 else f"at most {self.rows_per_person} rows per person"
        return ", ".join([self.amounts, self.neighbours, unit])

    @property
    def amounts(self) -> str:
        """How much is promised, never less than it is: rounded up."""
        return ", ".join(f"{name} = {at_most(value)}" for name, value in self._given.items())

    @property
    def _given(self) -> dict[str, Fraction]:
        return {name: value for name in ("epsilon", "rho", "delta") if (value := getattr(self, name)) is not None}

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; budgets as exact texts."""
        amounts = {name: str(value) for name, value in self._given.items()}
        return {**amounts, "neighbours": self.neighbours, "rows_per_person": self.rows_per_person}

    @classmethod
    def from_dict(cls, raw: Any) -> Privacy:
        """Read the JSON form."""
        known = {"epsilon", "rho", "delta", "neighbours", "rows_per_person"}
        if not isinstance(raw, Mapping) or not raw.keys() <= known or "rows_per_person" not in raw:
            raise PrivacyError("privacy", "is not a guarantee", "give epsilon, rho, delta, neighbours, rows_per_person")
        return cls.of(**{"neighbours": None, **raw})


def _budget(field: str, raw: Any) -> Fraction:
    value = exact_number(field, raw)
    if value <= 0:
        raise PrivacyError(field, "must be above zero", f"give a positive {field}, for example 1")
    if value > LARGEST_BUDGET:
        raise PrivacyError(field, f"is above {LARGEST_BUDGET:,}, which protects nobody", f"give a smaller {field}")
    if value < SMALLEST_BUDGET:
        raise PrivacyError(field, "is below 1e-9: the noise would drown any table", f"give a larger {field}")
    return value


def _delta(raw: Any) -> Fraction:
    value = exact_number("delta", raw)
    if not 0 < value < 1:
        fix = "give a small probability such as 1e-9, or leave it out"
        raise PrivacyError("delta", "must lie between 0 and 1", fix)
    if value < SMALLEST_DELTA:
        raise PrivacyError("delta", "is below 1e-200", "leave delta out: that is pure epsilon")
    return value


def exact_number(field: str, raw: Any, error: type[BadInput] = PrivacyError) -> Fraction:
    """Decimal meaning for texts and floats: "0.1" and 0.1 both are one tenth."""
    if isinstance(raw, Fraction):
        return raw
    if isinstance(raw, int) and not isinstance(raw, bool):
        return Fraction(raw)
    text = repr(raw) if isinstance(raw, float) else str(raw).strip() if isinstance(raw, str | Decimal) else ""
    if _RATIO.fullmatch(text):
        return Fraction(text)
    if not _DECIMAL.fullmatch(text):
        raise error(field, f"{str(raw)[:40]!r} is not a finite number", "write a decimal number such as 0.5")
    return Fraction(text)


@dataclass(frozen=True, repr=False)
class Unit:
    """A person is all rows with one value in `column`; of more than `max_rows` rows some are left out at random.

    Rows without a value are refused (`error`), or each is a person of its own (`own`).
    """

    column: str
    max_rows: int
    missing: Missing = "error"

    def __repr__(self) -> str:
        return f"Unit(column={short(self.column)}, max_rows={self.max_rows}, missing={self.missing!r})"

    def __post_init__(self) -> None:
        if not is_label(self.column):
            raise SchemaError("unit", "must be a column name", "write for example `unit: patient_id`")
        most = self.max_rows
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= MAX_ROWS:
            fix = f"give a whole number from 1 to {MAX_ROWS:,}: the noise grows with it"
            raise SchemaError("max_rows", f"{short(most)} is not a number of rows", fix)
        if self.missing not in MISSING:
            raise SchemaError("unit_missing", f"{short(self.missing)} is unknown", "write `error` or `own`")

    @property
    def caveat(self) -> str:
        """What a reader of any number must know: it is not about all rows."""
        rows = "row" if self.max_rows == 1 else "rows"
        return (
            f"tables are of bounded contributions, at most {self.max_rows:,} {rows} of each {self.column!r}: "
            "standard errors and margins do not cover the rows that were left out"
        )

    def to_dict(self) -> dict[str, Any]:
        """The keys of the schema's YAML form."""
        told = {} if self.missing == "error" else {"unit_missing": self.missing}
        return {"unit": self.column, "max_rows": self.max_rows, **told}

    @classmethod
    def from_dict(cls, raw: Mapping[str, Any]) -> Unit | None:
        """Read the keys of a schema; None where it declares no unit."""
        given = [key for key in KEYS if key in raw]
        if not given:
            return None
        for key, example in (("unit", "unit: patient_id"), ("max_rows", "max_rows: 4")):
            if key not in raw:
                raise SchemaError(key, f"is missing: {given[0]} needs it", f"add it, for example `{example}`")
        return cls(raw["unit"], raw["max_rows"], raw.get("unit_missing", "error"))
