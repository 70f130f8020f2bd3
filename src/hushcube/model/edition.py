"""An earlier edition: tables that were published before, of the same attributes, which new ones are guessed from.

They are public, as the schema is. A plan that uses them holds them, so that whoever has the plan can repeat what is
made of it: the largest tables that are used, each named by its attributes; their cells in tenths of people, as 32-bit
numbers (little-endian, one table after the other), compressed by zlib and written in base64.
"""

from __future__ import annotations

import base64
import binascii
import math
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Protocol

import numpy as np

from hushcube.errors import BadInput, TooLarge
from hushcube.model.arrays import Floats, Marginal, frozen
from hushcube.model.schema import Schema

MOST_CELLS: Final = 4_000_000
"""Of all tables together: a plan holds them."""
_STEP: Final = 10  # of a person: in which cells are held
_LARGEST: Final = 2**32 - 1


@dataclass(frozen=True, repr=False)
class Edition:
    """Tables without negative cells over the attributes of a schema, and the plan of the release they come from.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema([Attribute("sex", values=["F", "M"]), Attribute("age", range=[0, 2])])
    >>> edition = Edition.of(schema, {(0, 1): np.array([[3.0, 0.26, 1.0], [2.0, 5.0, 0.0]])}, "0" * 64)
    >>> edition, edition.tables[0, 1].tolist()
    (Edition(sex*age: 6 cells), [[3.0, 0.3, 1.0], [2.0, 5.0, 0.0]])
    >>> Edition.from_dict(edition.to_dict(), schema) == edition
    True
    """

    schema: Schema
    plan_digest: str
    """Of the release that the tables are from."""
    marginals: tuple[Marginal, ...]
    packed: str

    def __post_init__(self) -> None:
        if not (isinstance(self.plan_digest, str) and len(self.plan_digest) == 64 and self.marginals):
            raise damaged()
        if self.marginals != tuple(sorted(set(self.marginals), key=lambda m: (len(m), m))):
            raise damaged()
        self.tables  # noqa: B018 - whether they can be read

    def __repr__(self) -> str:
        words = ", ".join(map(self.schema.describe, self.marginals[:5])) + ", ..." * (len(self.marginals) > 5)
        return f"Edition({words}: {self.cells:,} cells)"

    def __str__(self) -> str:
        return self.plan_digest[:12]

    @classmethod
    def of(cls, schema: Schema, tables: Mapping[Marginal, Floats], plan_digest: str) -> Edition:
        """Hold tables, each for a marginal of the schema."""
        marginals = tuple(sorted(tables, key=lambda m: (len(m), m)))
        check_size(schema, marginals)
        cells = [np.clip(np.rint(tables[m].astype(np.float64) * _STEP), 0, _LARGEST).ravel() for m in marginals]
        whole = np.concatenate([np.zeros(0), *cells]).astype("<u4").tobytes()
        return cls(schema, plan_digest, marginals, base64.b64encode(zlib.compress(whole, 9)).decode())

    @property
    def cells(self) -> int:
        """How many cells all tables have."""
        return sum(map(self.schema.cells, self.marginals))

    @cached_property
    def tables(self) -> Mapping[Marginal, Floats]:
        """The tables, in people."""
        check_size(self.schema, self.marginals)
        size = 4 * self.cells
        try:
            opened = zlib.decompressobj()
            whole = opened.decompress(base64.b64decode(self.packed, validate=True), size + 1)
        except (binascii.Error, zlib.error, ValueError, TypeError):
            raise damaged() from None
        if len(whole) != size or not opened.eof or opened.unused_data:
            raise damaged()
        numbers, found, at = np.frombuffer(whole, "<u4") / _STEP, {}, 0
        for marginal in self.marginals:
            shape = self.schema.shape(marginal)
            found[marginal] = frozen(numbers[at : at + math.prod(shape)].reshape(shape))
            at += math.prod(shape)
        return found

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        names = [[self.schema.names[i] for i in marginal] for marginal in self.marginals]
        return {"plan_digest": self.plan_digest, "tables": names, "tenths": self.packed}

    @classmethod
    def from_dict(cls, raw: Any, schema: Schema) -> Edition:
        """Read the JSON form."""
        if not isinstance(raw, dict) or raw.keys() != {"plan_digest", "tables", "tenths"}:
            raise damaged()
        return cls(schema, raw["plan_digest"], tuple(map(schema.marginal, raw["tables"])), raw["tenths"])


class Like(Protocol):
    """Where the tables of an earlier edition come from."""

    def within(self, schema: Schema, wanted: Iterable[Marginal]) -> Edition:
        """What it has of some tables over a schema."""


def read_like(given: Any, field: str) -> Any:
    """An earlier edition as it is given: the path of a bundle, a release, or what was read of one."""
    if given is None or isinstance(given, bool | int | float | bytes | list | tuple | dict):
        raise BadInput(field, "is no earlier edition", "give a release, or the path of its folder")
    return given


def check_size(schema: Schema, marginals: Iterable[Marginal]) -> None:
    """Refuse more cells than a plan holds."""
    if (cells := sum(map(schema.cells, marginals))) > MOST_CELLS:
        fix = "plan for fewer or smaller tables, or without an earlier edition"
        raise TooLarge("like", cells, MOST_CELLS, fix)


def damaged() -> BadInput:
    """What is no edition."""
    return BadInput("like", "does not hold the tables of an earlier edition", "plan again with `--like`")
