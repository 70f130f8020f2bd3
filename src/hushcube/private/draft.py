"""Tools for the owner who looks at their own data: draft a schema, and check data against a schema.

Neither is private. A draft's domains come from the data, and domains are published: somebody who knows the
subject has to replace what was found by what could be.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from hushcube.errors import DataError, SchemaError
from hushcube.model.attribute import MAX_LABEL, Attribute
from hushcube.model.schema import Schema
from hushcube.private.engines.coding import FLOATS, INTEGERS, NUMBERS, coder
from hushcube.private.engines.duckdb import coded, refused
from hushcube.private.engines.source import Opened, recognise

REVIEW: Final = (
    "This draft was read from the data, but a schema is public: check every domain, "
    "add values that could occur and remove what only one person would have"
)
_TEXTS: Final = frozenset(("varchar", "enum", "boolean", "uuid", "date"))
_FEW_NUMBERS: Final = 20
"""So many distinct numbers are taken for codes; more of them are binned."""
_BINS: Final = 10
_WHOLE: Final = "-?(0|[1-9][0-9]{0,17})"
"""A text that is an integer; the code 01 is not one."""
EXAMPLES: Final = 5


@dataclass(frozen=True)
class Finding:
    """One way in which the data does not fit the schema; `examples` are values of the data, for its owner."""

    attribute: str
    column: str
    kind: Literal["absent", "missing", "outside"]
    message: str
    fix: str
    examples: tuple[str, ...] = field(default=(), repr=False)


def check_data(schema: Schema, source: object, *, query: str | None = None) -> list[Finding]:
    """Everything that would make counting this data fail."""
    findings: dict[str, Finding] = {}
    columns = [attribute.source_column for attribute in schema.attributes]
    with recognise(source, query=query).open() as data:
        present = []
        for attribute, column in zip(schema.attributes, columns, strict=True):
            try:
                data.position(column, f"attribute {attribute.name!r}")
                present.append(attribute)
            except DataError as error:
                findings[attribute.name] = _finding(attribute, "absent", error)
        worst = np.zeros((len(present), 2), dtype=bool)
        for batch in coded(data, present) if present else ():
            for i, (attribute, codes) in enumerate(zip(present, batch, strict=True)):
                worst[i] |= [(codes == attribute.size).any(), (codes == attribute.size + 1).any()]
        found = list(findings.values())
        for attribute, (missing, outside) in zip(present, worst.tolist(), strict=True):
            if missing:
                found.append(_finding(attribute, "missing", refused(attribute, missing=True)))
            if outside:
                examples = _outside(data, attribute)
                found.append(_finding(attribute, "outside", refused(attribute, missing=False), examples))
    return sorted(found, key=lambda finding: schema.position(finding.attribute))


def _finding(attribute: Attribute, kind: Any, error: DataError, examples: tuple[str, ...] = ()) -> Finding:
    message = f"{error.field} {error.problem}" if kind != "absent" else f"{error.field}: {error.problem}"
    return Finding(attribute.name, attribute.source_column, kind, message, error.fix, examples)


def _outside(data: Opened, attribute: Attribute) -> tuple[str, ...]:
    """The first few values outside the domain, in the order of their texts."""
    place = data.position(attribute.source_column, "data")
    each = coder(attribute, "#1", str(data.relation.types[place].id))
    distinct = data.relation.project(f"#{place + 1} AS v").distinct()
    examples: set[str] = set()
    for batch in distinct.project(f"{each.sql} AS k, CAST(#1 AS VARCHAR) AS t").to_arrow_reader():
        refusals = each.positions(batch.column(0)) == attribute.size + 1
        texts = batch.column(1).to_pylist()
        examples.update(texts[i] for i in np.flatnonzero(refusals))
        examples = set(sorted(examples)[:EXAMPLES])
    return tuple(sorted(examples))


def draft_schema(
    source: object, *, query: str | None = None, name: str = "data", max_values: int = 100
) -> tuple[Schema, list[str]]:
    """A first schema for some data, and notes on what was decided and left out."""
    attributes: dict[str, Attribute] = {}
    notes = [REVIEW]
    with recognise(source, query=query).open() as data:
        for place, column in enumerate(data.names):
            if data.names.count(column) > 1:
                notes.append(f"{column!r} left out: several columns have this name")
                continue
            facts = _Facts.read(data, place)
            declared, note = _declare(data, place, facts, max_values)
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
    """What one pass over a column tells; numbers are its finite ones, where all its values are numbers."""

    kind: str
    rows: int
    missing: bool
    distinct: int
    whole: bool
    low: float | None
    high: float | None
    infinite: bool

    @classmethod
    def read(cls, data: Opened, place: int) -> _Facts:
        kind = str(data.relation.types[place].id)
        x = f"#{place + 1}"
        text = x if kind == "varchar" else f"CAST({x} AS VARCHAR)"
        number = f"TRY_CAST({text if kind not in NUMBERS else x} AS DOUBLE)"
        if kind in NUMBERS:
            whole = "true" if kind in INTEGERS else "bool_and(n = trunc(n)) FILTER (isfinite(n))"
        else:
            whole = f"bool_and(regexp_full_match(t, '{_WHOLE}'))"
        shown = data.relation.project(f"{x} AS x, {text} AS t, {number} AS n")
        facts = shown.aggregate(
            "count(*), COALESCE(bool_or(x IS NULL OR isnan(n)), false), approx_count_distinct(t), "
            f"COALESCE({whole}, false), bool_or(x IS NOT NULL AND n IS NULL), "
            "min(n) FILTER (isfinite(n)), max(n) FILTER (isfinite(n)), COALESCE(bool_or(isinf(n)), false)"
        ).fetchall()[0]
        rows, missing, distinct, whole_found, words, low, high, infinite = facts
        if words or kind not in NUMBERS | {"varchar"}:
            missing, low, high, infinite = _has_nulls(data, place), None, None, False
        return cls(kind, rows, bool(missing), distinct, bool(whole_found), low, high, bool(infinite))


def _has_nulls(data: Opened, place: int) -> bool:
    """Whether a column holds nulls, where a text NaN is a text."""
    return bool(data.relation.project(f"#{place + 1} IS NULL AS m").aggregate("bool_or(m)").fetchall()[0][0])


def _declare(data: Opened, place: int, facts: _Facts, max_values: int) -> tuple[dict[str, Any] | None, str]:
    """The declaration of one column, or None; and why."""
    if facts.kind not in NUMBERS | _TEXTS:
        return None, f"its type {facts.kind} is not supported; turn it into texts or numbers in a query"
    coded_text = facts.kind == "varchar" and not facts.whole
    values = _distinct(data, place, max_values) if facts.distinct <= 2 * max_values else None
    if values == []:
        return None, "it has no values"
    few = values is not None and len(values) <= _FEW_NUMBERS
    if facts.low is None or facts.high is None or (coded_text and few):
        return _as_values(values, facts)
    span = facts.high - facts.low + 1
    if facts.whole and facts.distinct > max(0.95 * facts.rows, max_values):
        return None, "nearly every row has its own value: it looks like an identifier"
    extra = {"missing": "missing"} if facts.missing else {}
    extra |= {"other": "other"} if facts.infinite else {}
    if facts.whole and span <= max_values and (values is None or 2 * len(values) >= span):
        return {"range": (int(facts.low), int(facts.high)), **extra}, ""
    if few and facts.kind not in FLOATS:
        return _as_values(values, facts)
    if max(abs(facts.low), abs(facts.high)) >= 2**52:
        return None, "its numbers are too large to be binned"
    return {"bins": round_edges(facts.low, facts.high), **extra}, "binned at round edges; choose the edges that matter"


def _as_values(values: list[str] | None, facts: _Facts) -> tuple[dict[str, Any] | None, str]:
    if values is None:
        return None, "it has too many values: an identifier or free text"
    if max(map(len, values)) > MAX_LABEL:
        return None, "it holds texts too long for labels"
    labels = tuple(sorted((value for value in values if value), key=_natural))
    if not labels:
        return None, "it has no values"
    declared: dict[str, Any] = {"values": labels}
    note = ""
    if facts.missing:
        declared["missing"] = "missing" if "missing" not in labels else "no value"
    if "" in values:
        declared["other"] = "other"
        note = "empty texts go to `other`"
    return declared, note


def _distinct(data: Opened, place: int, most: int) -> list[str] | None:
    """The texts of the distinct values, or None when there are more than `most`."""
    texts = data.relation.project(f"CAST(#{place + 1} AS VARCHAR) AS t").filter("t IS NOT NULL").distinct()
    found = [row[0] for row in texts.limit(most + 1).fetchall()]
    return None if len(found) > most else found


def _natural(text: str) -> list[tuple[int, float, str]]:
    """Numbers within labels in the order of their size: 5-9 before 10-14."""
    parts = re.split(r"([0-9]+(?:\.[0-9]+)?)", text)
    start = re.fullmatch(r"-[0-9]+(\.[0-9]+)?", text)
    if start:
        return [(0, float(text), "")]
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
    if column not in taken:
        try:
            return Attribute(name=column, **declared)
        except SchemaError:
            pass
    plain = re.sub(r"[^\w .-]+", "_", column).strip()[:150] or "column"
    names = (plain if i == 0 else f"{plain}_{i + 1}" for i in range(len(taken) + 2))
    for name in names:
        if name not in taken:
            try:
                return Attribute(name=name, column=column, **declared)
            except SchemaError:
                continue
    raise DataError("data", f"no name was found for the column {column!r}", "rename it in a query")
