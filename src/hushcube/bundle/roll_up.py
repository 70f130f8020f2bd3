"""Up and down the levels: tables that were not asked for, as sums of groups of cells of one that was published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hushcube.errors import QueryError, WorkloadError
from hushcube.model.at_level import base_of, coarsening, depth_of, is_finer
from hushcube.model.attribute import Attribute
from hushcube.model.groups import GroupTable
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema


def attributes_of(schema: Schema, names: Sequence[str]) -> tuple[Attribute, ...]:
    """What a reader asks for: attributes, each once and at any of its levels, in the order asked."""
    try:
        found = [schema.seen(name) for name in names]
    except WorkloadError as problem:
        raise QueryError("marginal", problem.problem, problem.fix) from None
    if len({base_of(attribute).name for attribute in found}) != len(found):
        raise QueryError("marginal", f"{'*'.join(names)} names an attribute twice", "name each attribute once")
    return tuple(found)


def rolled_up(schema: Schema, wanted: Sequence[Attribute], published: Iterable[Marginal]) -> GroupTable:
    """The smallest published table that knows all wanted attributes at their levels or finer, and its groups."""
    words = "*".join(attribute.name for attribute in wanted) or "total"
    able = [m for m in published if all(any(is_finer(schema.attributes[i], w) for i in m) for w in wanted)]
    if not able:
        raise QueryError(
            "marginal",
            f"{words} is not published, nor is any table that contains it",
            "ask for one of the published marginals (`hushcube show` lists them), or a subset or coarser level of one",
        )
    marginal = min(able, key=lambda m: (schema.cells(m), m))
    attributes = tuple(schema.attributes[i] for i in marginal)
    seen_at = tuple(next((w for w in wanted if is_finer(a, w)), None) for a in attributes)
    groups = tuple(
        np.zeros(a.size, np.int64) if w is None else coarsening(a, w) for a, w in zip(attributes, seen_at, strict=True)
    )
    return GroupTable(marginal, attributes, seen_at, groups)


def moved(schema: Schema, names: Sequence[str], name: str, step: int) -> list[str]:
    """The names of a table with one attribute a level coarser (step 1) or finer (-1).

    Above its coarsest level an attribute is summed out; below that, one that was summed out comes back.
    """
    attributes = attributes_of(schema, names)
    declared = schema.seen(name.partition("@")[0])
    present = next((a for a in attributes if base_of(a) == declared), None)
    top = len(declared.grouped) + 1  # summed out
    depth = (top if present is None else depth_of(present)) + step
    if not 0 <= depth <= top:
        problem = "is at its finest level already" if step < 0 else "is summed out already"
        raise QueryError("attribute", f"{declared.name!r} {problem}", "ask for another attribute")
    if depth == top:
        return [a.name for a in attributes if a is not present]
    changed = declared.name if depth == 0 else f"{declared.name}@{declared.grouped[depth - 1].name}"
    if present is None:  # it comes back where the schema has it
        later = schema.declared.names[schema.declared.position(declared.name) + 1 :]
        place = next((at for at, a in enumerate(attributes) if base_of(a).name in later), len(attributes))
        return [a.name for a in attributes[:place]] + [changed] + [a.name for a in attributes[place:]]
    return [changed if a is present else a.name for a in attributes]
