"""What the numbers of a table are: how many people, or the sum or the average of a measure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from hushcube.errors import WorkloadError
from hushcube.model.schema import COUNT, Schema

_WORD: Final = re.compile(r"(?P<kind>sum|avg)\((?P<name>.+)\)")
Kind = Literal["count", "sum", "avg"]


@dataclass(frozen=True)
class Quantity:
    """A kind of number: how many people, or the sum or the average of a measure."""

    kind: Kind
    measure: str = ""

    @classmethod
    def parse(cls, word: str, schema: Schema) -> Quantity:
        """Read `count`, `sum(wage)` or `avg(wage)`."""
        text = word.strip()
        if text == COUNT:
            return cls("count")
        match = _WORD.fullmatch(text)
        if match is None:
            raise WorkloadError("measure", f"{text[:40]!r} cannot be read", "write count, sum(NAME) or avg(NAME)")
        name = match["name"].strip()
        schema.measure(name)
        return cls("sum" if match["kind"] == "sum" else "avg", name)

    @property
    def part(self) -> str:
        """The part of a plan that is measured for it."""
        return self.measure or COUNT

    @property
    def width(self) -> int:
        """How many numbers say it: an estimate and its standard error, or an average and the ends of its interval."""
        return 3 if self.kind == "avg" else 2

    def __str__(self) -> str:
        return self.kind if self.kind == "count" else f"{self.kind}({self.measure})"


COUNTED: Final = Quantity(COUNT)
