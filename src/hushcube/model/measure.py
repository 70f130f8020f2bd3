"""A number that rows carry: bounded, rounded to a public resolution, summed as exact integers.

    value -> q = round((clip(value, low, high) - center) / resolution)          an integer, |q| <= largest

Sums of q get integer noise; what is published is resolution * (sum of q) + center * (count). A row that comes
or goes moves a sum by as much as its value, so a sum costs like counts of rows that may count `largest` times. Values
in [100, 200] need 200, not their range of 100 [Ding et al. 2011, section 7.3, corrected] - but centred on 150, only 50.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

from hushcube.errors import SchemaError
from hushcube.model.label import check_column, check_keys, check_name
from hushcube.model.privacy import Number, exact_number
from hushcube.model.words import OF_COLUMN, check_given, checked_word
from hushcube.text import short

LARGEST: Final = 2**31
"""Of q: with 2^22 rows of a person, and 2^34 rows in all, no sum overflows 64 bits by more than can be checked."""
_KEYS: Final = ("name", "column", "bounds", "resolution", "center", "missing", *OF_COLUMN)


@dataclass(frozen=True, init=False, repr=False)
class Measure:
    """A bounded number; values beyond the bounds are clipped, a missing value counts as `missing` if that is given.

    >>> days = Measure("days", bounds=[1, 14])
    >>> days.low, days.high, days.largest
    (1, 14, 14)
    >>> wage = Measure("wage", bounds=[0, 200_000], resolution=100, center="middle")
    >>> wage.low, wage.high, wage.largest
    (-1000, 1000, 1000)
    >>> wage
    Measure('wage', bounds=[0, 200000], resolution=100, center=100000)
    """

    name: str
    bounds: tuple[Fraction, Fraction]
    resolution: Fraction
    center: Fraction
    missing: Fraction | None
    column: str | None
    title: str | None
    description: str | None
    unit_of_measure: str | None

    def __init__(
        self,
        name: str,
        *,
        bounds: Sequence[Number],
        resolution: Number = 1,
        center: Number = 0,
        missing: Number | None = None,
        column: str | None = None,
        title: str | None = None,
        description: str | None = None,
        unit_of_measure: str | None = None,
    ) -> None:
        """Numbers have the meaning of their decimal digits; the center `middle` is that of the bounds."""
        where = f"measure {short(name)}"
        if not isinstance(bounds, list | tuple) or len(bounds) != 2:
            raise SchemaError(f"{where}, bounds", "must be two numbers", "write for example `bounds: [0, 100]`")
        low, high = (exact_number(f"{where}, bounds", bound, SchemaError) for bound in bounds)
        given = {"resolution": resolution, "center": (low + high) / 2 if center == "middle" else center}
        given |= {} if missing is None else {"missing": missing}
        numbers = {key: exact_number(f"{where}, {key}", value, SchemaError) for key, value in given.items()}
        words = zip(OF_COLUMN, (title, description, unit_of_measure), strict=True)
        fields = {"name": name, "bounds": (low, high), "missing": None, "column": column, **numbers}
        fields |= {key: checked_word(where, key, word) for key, word in words}
        for key, value in fields.items():
            object.__setattr__(self, key, value)
        check_name(name, "measure")
        if low >= high:
            raise SchemaError(f"{where}, bounds", "the lower one is not below the upper one", "write the smaller first")
        if self.resolution <= 0:
            raise SchemaError(f"{where}, resolution", "must be above zero", "give a step such as 1 or 0.01")
        if self.missing is not None and not low <= self.missing <= high:
            raise SchemaError(f"{where}, missing", "lies outside the bounds", "give a number between them, or none")
        check_column(where, self.column)
        if self.largest > LARGEST:
            raise SchemaError(f"{where}, resolution", "is too fine for these bounds", "give a larger step")
        if self.largest == 0:
            raise SchemaError(f"{where}, resolution", "is so coarse that every value is zero", "give a smaller step")

    def __repr__(self) -> str:
        name, *rest = (f"{key}={short(value)}" for key, value in self.to_dict().items())
        return f"Measure({', '.join([name.removeprefix('name='), *rest])})"

    @property
    def shown_name(self) -> str:
        """What people read: the title, or the name."""
        return self.name if self.title is None else self.title

    @property
    def source_column(self) -> str:
        """The column of the data that holds it."""
        return self.name if self.column is None else self.column

    @property
    def low(self) -> int:
        """The smallest q."""
        return self.quantised(self.bounds[0])

    @property
    def high(self) -> int:
        """The largest q."""
        return self.quantised(self.bounds[1])

    @cached_property
    def largest(self) -> int:
        """The largest |q|: by how much one row may move a sum."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_signed(self) -> bool:
        """Whether values lie on both sides of the center."""
        return self.low < 0 < self.high

    def quantised(self, value: Fraction) -> int:
        """q of a value within the bounds; halves go to even."""
        return round((value - self.center) / self.resolution)

    def to_dict(self) -> dict[str, Any]:
        """The keys of the YAML form, defaults left out."""
        told: dict[str, Any] = {"name": self.name, "bounds": [_text(bound) for bound in self.bounds]}
        for key, usual in (("resolution", 1), ("center", 0), ("missing", None)):
            if (value := getattr(self, key)) != usual:
                told[key] = _text(value)
        return told | {key: text for key in ("column", *OF_COLUMN) if (text := getattr(self, key)) is not None}

    @classmethod
    def from_dict(cls, raw: Any, *, where: str = "measure") -> Measure:
        """Read the YAML form; the offending key is named."""
        check_keys(where, raw, _KEYS, "write for example {name: wage, bounds: [0, 200000]}")
        for key, example in (("name", "name: wage"), ("bounds", "bounds: [0, 200000]")):
            if key not in raw:
                raise SchemaError(where, f"has no {key}", f"add it, for example `{example}`")
        check_given(f"measure {short(raw['name'])}", raw, OF_COLUMN)
        return cls(**raw)


def _text(value: Fraction) -> int | float | str:
    """A number as YAML writes it: digits where they are exact."""
    if value.denominator == 1:
        return int(value)
    return float(value) if Fraction(repr(float(value))) == value else str(value)
