"""Counting in which no row can refuse: what does not fit counts as missing.

A refusal depends on the data, and one row is enough for it. Where every attribute used has a category for missing
values, nothing has to be refused: a line that cannot be read is missing in every attribute, and a value outside the
domain goes to `other:`, or to `missing:` where no other category is declared. Whether that can be done is decided by
the schema alone, before anything is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hushcube.errors import SchemaError
from hushcube.model.at_level import AtLevel, at_level, base_of
from hushcube.model.attribute import ERROR, Attribute
from hushcube.model.measure import Measure
from hushcube.model.schema import Schema
from hushcube.private.engines import Engine, ExactCounts, Progress


@dataclass(frozen=True)
class Tolerant:
    """An engine that refuses no row."""

    engine: Engine

    def count(
        self,
        schema: Schema,
        wanted: Sequence[NDArray[np.int32]],
        *,
        measures: Sequence[Measure] = (),
        progress: Progress | None = None,
    ) -> ExactCounts:
        """Count under the same domains, with a place for everything."""
        used = {int(i) for marginals in wanted for i in np.unique(marginals)}
        attributes = tuple(_open(each) if i in used else each for i, each in enumerate(schema.attributes))
        for measure in measures:
            if measure.missing is None:
                raise _undeclared(f"measure {measure.name!r}", "missing: 0")
        if schema.unit is not None and schema.unit.missing == "error":
            raise _undeclared("unit", "unit_missing: own")
        return self.engine.count(replace(schema, attributes=attributes), wanted, measures=measures, progress=progress)


def _open(attribute: Attribute) -> Attribute:
    """The same attribute, whose other values are missing if they are nothing else."""
    base = base_of(attribute)
    if base.missing == ERROR:
        raise _undeclared(f"attribute {base.name!r}", "missing: unknown")
    if base.other != ERROR:
        return attribute
    opened = replace(base, other=base.missing)
    return at_level(opened, base.grouped[attribute.depth - 1].name) if isinstance(attribute, AtLevel) else opened


def _undeclared(where: str, example: str) -> SchemaError:
    problem = "says nothing of missing values, and bad rows are to count as missing"
    return SchemaError(where, problem, f"declare for example `{example}`, or let bad rows be refused")
