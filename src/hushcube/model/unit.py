"""Whose data is protected: the rows of one person, found by a column, of which at most so many count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from hushcube.errors import SchemaError
from hushcube.model.label import is_label, short

Missing = Literal["error", "own"]
MISSING: Final[tuple[Missing, ...]] = get_args(Missing)
MAX_ROWS: Final = 1_000_000
KEYS: Final = ("unit", "max_rows", "unit_missing")


@dataclass(frozen=True)
class Unit:
    """A person is all rows with one value in `column`; of more than `max_rows` rows some are left out at random.

    Rows without a value are refused (`error`), or each is a person of its own (`own`).

    >>> Unit.from_dict({"unit": "patient", "max_rows": 4})
    Unit(column='patient', max_rows=4, missing='error')
    """

    column: str
    max_rows: int
    missing: Missing = "error"

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
