"""Tools for the owner who looks at their own data: draft a schema, check data against one.

Neither is private. A draft's domains come from the data, and domains are published: somebody who knows the subject has
to replace what was found by what could be.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from hushcube.errors import DataError, SchemaError
from hushcube.model.attribute import Attribute
from hushcube.model.label import MAX_LABEL
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import FLOATS, INTEGERS, NUMBERS, coder, fetched_measure
from hushcube.private.engines.contract import missing_values, refuse_data, refused, without_unit
from hushcube.private.engines.duckdb import coded, recognise
from hushcube.private.engines.source import Opened

REVIEW: Final = (
    "This draft was read from the data, but a schema is public: check every domain, "
    "add values that could occur and remove what only one person would have"
)
_TEXTS: Final = frozenset(("varchar", "enum", "boolean", "uuid", "date"))
_FEW_NUMBERS: Final = 20  # so many distinct numbers are taken for codes; more of them are binned
_BINS: Final = 10
_WHOLE: Final = "-?(0|[1-9][0-9]{0,17})"  # a text that is an integer; the code 01 is not one
EXAMPLES: Final = 5
Kind = Literal["absent", "missing", "outside"]


@dataclass(frozen=True)
class Finding:
    """One way in which the data does not fit the schema; `examples` are values of the data, for its owner."""

    attribute: str
    """The attribute or measure; `unit` for the column that says whose row it is."""
    column: str
    kind: Kind
    message: str
    fix: str
    examples: tuple[str, ...] = field(default=(), repr=False)


@guarded
def check_data(schema: Schema, source: object, *, query: str | None = None) -> list[Finding]:
    """Everything that would make counting this data fail: attributes in their order, then the unit and measures."""
    found: list[Finding] = []
    opened = recognise(source, query=query)
    with opened.open() as data:
        refuse_data(schema, data.names, opened.own_files())
        present = []
        for attribute in schema.attributes:
            try:
                data.reference(attribute.source_column, f"attribute {attribute.name!r}")
                present.append(attribute)
            except DataError as error:
                found.append(_finding(attribute, "absent", error))
        worst = np.zeros((len(present), 2), dtype=bool)
        for batch in coded(data, present) if present else ():
            for i, (attribute, codes) in enumerate(zip(present, batch, strict=True)):
                worst[i] |= [(codes == attribute.size).any(), (codes == attribute.size + 1).any()]
        for attribute, (missing, outside) in zip(present, worst.tolist(), strict=True):
            if missing:
                found.append(_finding(attribute, "missing", refused(attribute, missing=True)))
            if outside:
                examples = _outside(data, attribute)
                found.append(_finding(attribute, "outside", refused(attribute, missing=False), examples))
        found.sort(key=lambda finding: schema.position(finding.attribute))
        found.extend(_beside_attributes(schema, data))
    return found


def _beside_attributes(schema: Schema, data: Opened) -> Iterator[Finding]:
    """What would fail about the unit and the measures."""
    if (unit := schema.unit) is not None:
        try:
            place, _ = data.reference(unit.column, f"unit {unit.column!r}")
            if unit.missing == "error" and _any(data, f"{place} IS NULL"):
                yield _finding(unit, "missing", without_unit(unit))
        except DataError as error:
            yield _finding(unit, "absent", error)
    for measure in schema.measures:
        try:
            fetched = fetched_measure(*data.reference(measure.source_column, f"measure {measure.name!r}"))
            if measure.missing is None and _any(data, f"isnan({fetched})"):
                yield _finding(measure, "missing", missing_values(measure))
        except DataError as error:
            yield _finding(measure, "absent", error)


def _any(data: Opened, condition: str) -> bool:
    return bool(data.relation.aggregate(f"coalesce(bool_or({condition}), false)").fetchall()[0][0])


def _finding(what: Attribute | Measure | Unit, kind: Kind, error: DataError, examples: tuple[str, ...] = ()) -> Finding:
    name, column = ("unit", what.column) if isinstance(what, Unit) else (what.name, what.source_column)
    message = f"{error.field}{':' if kind == 'absent' else ''} {error.problem}"
    return Finding(name, column, kind, message, error.fix, examples)


def _outside(data: Opened, attribute: Attribute) -> tuple[str, ...]:
    """The first few values outside the domain, in the order of their texts."""
    place, duckdb_type = data.reference(attribute.source_column, "data")
    each = coder(attribute, "#1", duckdb_type)
    distinct = data.relation.project(f"{place} AS v").distinct()
    examples: list[str] = []
    for batch in distinct.project(f"{each.sql} AS k, CAST(#1 AS VARCHAR) AS t").to_arrow_reader():
        texts = batch.column(1).filter(pa.array(each.positions(batch.column(0)) == attribute.size + 1))
        examples = sorted({*examples, *texts.to_pylist()})[:EXAMPLES]
    return tuple(examples)


@guarded
def draft_schema(
    source: object, *, query: str | None = None, name: str = "data", max_values: int = 100
) -> tuple[Schema, list[str]]:
    """A first schema for some data, and notes on what was decided and left out; the data is read twice."""
    attributes: dict[str, Attribute] = {}
    notes = [REVIEW]
    with recognise(source, query=query).open() as data:
        facts = _read_facts(data, max_values)
    for column, fact in zip(data.names, facts, strict=True):
        declared, note = _declare(fact, max_values)
        if data.names.count(column) > 1:
            declared, note = None, "several columns have this name"
        if declared is None:
            notes.append(f"{column!r} left out: {note}")
            continue
        attribute = _named(column, declared, set(attributes))
        attributes[attribute.name] = attribute
        renamed = f"; renamed to {attribute.name!r}" if attribute.name != column else ""
        if note or renamed:
            notes.append(f"{column!r}: {note or 'kept'}{renamed}")
    if not attributes:
        raise DataError("data", "no column can be drafted", "declare a schema by hand")
    return Schema(tuple(attributes.values()), name), notes


@dataclass(frozen=True)
class _Facts:
    """What is known of a column; low and high only where all its values are numbers, values only where few."""

    kind: str
    rows: int
    missing: bool
    distinct: int
    whole: bool
    low: float | None
    high: float | None
    infinite: bool
    values: tuple[str, ...] | None = None


def _read_facts(data: Opened, max_values: int) -> list[_Facts]:
    """One pass for the facts of all columns, a second one for the values of those that have few."""
    kinds = [str(kind.id) for kind in data.relation.types]
    columns = [f"#{i + 1}" if kind in NUMBERS else f"CAST(#{i + 1} AS VARCHAR)" for i, kind in enumerate(kinds)]
    shown = ", ".join(f"{column} AS x{i}, TRY_CAST({column} AS DOUBLE) AS n{i}" for i, column in enumerate(columns))
    asked = ", ".join(_questions(i, kind) for i, kind in enumerate(kinds))
    rows, *answers = data.relation.project(shown).aggregate(f"count(*), {asked}").fetchall()[0]
    facts = []
    for i, kind in enumerate(kinds):
        null, nan, distinct, whole, words, low, high, infinite = answers[8 * i : 8 * i + 8]
        if words or kind not in NUMBERS | {"varchar"}:
            nan, low, high, infinite = False, None, None, False
        facts.append(_Facts(kind, rows, bool(null or nan), distinct, bool(whole), low, high, bool(infinite)))
    few = [i for i, fact in enumerate(facts) if fact.distinct <= 2 * max_values]
    if few:
        lists = ", ".join(f"CAST(list(DISTINCT #{i + 1}) FILTER (#{i + 1} IS NOT NULL) AS VARCHAR[])" for i in few)
        for i, values in zip(few, data.relation.aggregate(lists).fetchall()[0], strict=True):
            if len(values or ()) <= max_values:
                facts[i] = replace(facts[i], values=tuple(values or ()))
    return facts


def _questions(i: int, kind: str) -> str:
    """Nulls, NaNs, distinct values, all whole, any no number, smallest, largest, any infinite."""
    asked = f"count(x{i}) < count(*), {{}}, approx_count_distinct(x{i}), {{}}, {{}}, {{}}, {{}}, {{}}"
    if kind in INTEGERS:
        ends = f"CAST(min(x{i}) AS DOUBLE)", f"CAST(max(x{i}) AS DOUBLE)"
        return asked.format("false", "true", "false", *ends, "false")
    whole = f"n{i} = trunc(n{i}) OR NOT isfinite(n{i})" if kind in NUMBERS else f"regexp_full_match(x{i}, '{_WHOLE}')"
    finite = f"CASE WHEN isfinite(n{i}) THEN n{i} END"
    words = f"count(n{i}) < count(x{i})"
    ends = f"min({finite})", f"max({finite})"
    return asked.format(f"bool_or(isnan(n{i}))", f"bool_and({whole})", words, *ends, f"bool_or(isinf(n{i}))")


def _declare(facts: _Facts, max_values: int) -> tuple[dict[str, Any] | None, str]:
    """The declaration of one column, or None; and why."""
    if facts.kind not in NUMBERS | _TEXTS:
        return None, f"its type {facts.kind} is not supported; turn it into texts or numbers in a query"
    if facts.values == ():
        return None, "it has no values"
    few = facts.values is not None and len(facts.values) <= _FEW_NUMBERS
    if facts.low is None or facts.high is None or (facts.kind == "varchar" and not facts.whole and few):
        return _as_values(facts)
    span = facts.high - facts.low + 1
    if facts.whole and facts.distinct > max(0.95 * facts.rows, max_values):
        return None, "nearly every row has its own value: it looks like an identifier"
    extra = {"missing": "missing"} if facts.missing else {}
    extra |= {"other": "other"} if facts.infinite else {}
    if facts.whole and span <= max_values and (facts.values is None or 2 * len(facts.values) >= span):
        return {"range": (int(facts.low), int(facts.high)), **extra}, ""
    if few and (facts.kind not in FLOATS or (facts.whole and not facts.infinite)):
        return _as_values(facts)
    if max(abs(facts.low), abs(facts.high)) >= 2**52:
        return None, "its numbers are too large to be binned"
    own = facts.whole and facts.distinct > 0.3 * facts.rows
    note = "remove it if it is an identifier" if own else "choose the edges that matter"
    return {"bins": round_edges(facts.low, facts.high), **extra}, f"binned at round edges; {note}"


def _as_values(facts: _Facts) -> tuple[dict[str, Any] | None, str]:
    if facts.values is None:
        return None, "it has too many values: an identifier or free text"
    if max(map(len, facts.values)) > MAX_LABEL:
        return None, "it holds texts too long for labels"
    found = [value for value in facts.values if value]
    if facts.kind in FLOATS:  # whole numbers; a NaN is missing
        found = [str(int(float(value))) for value in found if value != "nan"]
    if not found:
        return None, "it has no values"
    declared: dict[str, Any] = {"values": tuple(sorted(found, key=_natural))}
    if facts.missing:
        declared["missing"] = "missing" if "missing" not in found else "no value"
    if "" not in facts.values:
        return declared, ""
    return {**declared, "other": "other"}, "empty texts go to `other`"


def _natural(text: str) -> list[tuple[int, float, str]]:
    """Numbers within labels in the order of their size: 5-9 before 10-14."""
    if re.fullmatch(r"-[0-9]+(\.[0-9]+)?", text):
        return [(0, float(text), "")]
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", text)
    return [(0, float(part), "") if i % 2 else (1, 0.0, part) for i, part in enumerate(parts) if part]


def round_edges(low: float, high: float) -> tuple[float, ...]:
    """About ten bins between round numbers, around all values.

    >>> round_edges(3, 97)
    (0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100)
    >>> round_edges(0.12, 0.13)
    (0.12, 0.121, 0.122, 0.123, 0.124, 0.125, 0.126, 0.127, 0.128, 0.129, 0.13)
    >>> round_edges(5, 5)
    (5, 6)
    """
    rough = (high - low) / _BINS or 1.0
    power = math.floor(math.log10(rough))
    factor = next(f for f in (1, 2, 5, 10) if f * 10.0**power >= rough * (1 - 1e-9))

    def edge(i: int) -> float:
        return i * factor * int(10**power) if power >= 0 else round(i * factor / int(10**-power), -power)

    step = factor * 10.0**power
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    while edge(first) > low:
        first -= 1
    while edge(last) < high or last <= first:
        last += 1
    return tuple(edge(i) for i in range(first, last + 1))


def _named(column: str, declared: dict[str, Any], taken: set[str]) -> Attribute:
    """The attribute under the column's name, or under a similar one where that cannot be a name."""
    plain = re.sub(r"[^\w .-]+", "_", column).strip()[:150] or "column"
    for name in (column, plain, *(f"{plain}_{i}" for i in range(2, len(taken) + 3))):
        if name not in taken:
            with suppress(SchemaError):
                return Attribute(name=name, column=None if name == column else column, **declared)
    raise DataError("data", f"no name was found for the column {column!r}", "rename it in a query")
