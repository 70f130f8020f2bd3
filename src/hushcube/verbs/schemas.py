"""The verbs about schemas, for the owner of the data: draft one from data, and check one against data. NOT private."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hushcube.durable import check_file, new_file
from hushcube.model.attribute import Attribute
from hushcube.model.schema import Schema
from hushcube.model.words import OF_COLUMN, OF_SCHEMA, UNIT_NOUN
from hushcube.shown import Column, Grid, Page, Part, Remark, Shown, columns, number

if TYPE_CHECKING:
    from hushcube.private.bounds import Bound
    from hushcube.private.draft import Finding

_HEADING: Final = (
    "# A draft made from the data. Review every value before use: a schema is public.\n"
    "# In your own words: title, description, source, licence, contact, period, unit_noun; labels for codes.\n"
)
_LARGEST_JSON: Final = 10**300  # readers of JSON hold numbers in floats; a full table beyond that is null


@dataclass(frozen=True)
class SchemaDraft(Shown):
    """A schema that was read from data, and what its owner has to look at before it is used."""

    schema: Schema
    remarks: tuple[str, ...]

    @property
    def text(self) -> str:
        """The schema file, under a line that says where it comes from."""
        return _HEADING + self.schema.to_yaml()

    def save(self, path: str | Path) -> None:
        """Write the schema as a new file."""
        with new_file(Path(path)) as file:
            file.write_text(self.text, encoding="utf-8")

    def page(self) -> Page:
        """The schema's attributes, and the remarks."""
        return schema_page(self.schema) + Page(tuple(Remark(remark) for remark in self.remarks))

    def __repr__(self) -> str:
        return f"SchemaDraft({self.schema!r}, {len(self.remarks):,} remarks)"

    def __str__(self) -> str:
        return self.text + "".join(f"# {remark}\n" for remark in self.remarks)


def draft_schema(
    data: object = None,
    *,
    query: str | None = None,
    name: str = "data",
    max_values: int = 100,
    out: str | Path | None = None,
) -> SchemaDraft:
    """Read data and draft a schema for it, which somebody who knows the subject has to review: a schema is public.

    `data` is a path, a frame or a database's table as in `release`; columns with more than `max_values` values are
    left out, or binned. With `out` the draft is written as a new file.

    >>> import pyarrow as pa
    >>> draft_schema(pa.table({"sex": ["F", "M", "F"], "age": [30, 31, 70]})).schema
    Schema('data': sex 2, age 3)
    """
    from hushcube.private.draft import draft_schema as draft

    if out is not None:
        check_file(Path(out))
    schema, remarks = draft(data, query=query, name=name, max_values=max_values)
    made = SchemaDraft(schema, tuple(remarks))
    if out is not None:
        made.save(out)
    return made


@dataclass(frozen=True)
class SchemaCheck(Shown):
    """What a schema declares, and how data fits it: exact numbers and labels of the data, for its owner only."""

    schema: Schema
    findings: tuple[Finding, ...] = ()
    """What would make a release of the data fail."""
    bounds: tuple[Bound, ...] = ()
    """How many rows count under several bounds on the rows of a person, where a unit is declared."""

    @property
    def fits(self) -> bool:
        """Whether nothing was found that would make a release fail."""
        return not self.findings

    def page(self) -> Page:
        """The attributes, the bounds and the findings."""
        parts: list[Part] = []
        if self.bounds:
            parts.append(Remark("Rows that count under several bounds (exact, for the owner of the data only):"))
            parts.append(self._bounds())
        for finding in self.findings:
            examples = f" ({', '.join(finding.examples)})" if finding.examples else ""
            parts.append(Remark(f"{finding.message}{examples}. Fix: {finding.fix}."))
        return schema_page(self.schema) + Page(tuple(parts))

    def _bounds(self) -> Grid:
        declared = None if self.schema.unit is None else self.schema.unit.max_rows
        rows = []
        for bound in self.bounds:
            most = f"{bound.max_rows:,}{' (declared)' if bound.max_rows == declared else ''}"
            rows.append([most, f"{bound.counted:,}", f"{bound.left_out:,}", bound.share, f"{bound.people:,}"])
        headings = columns(right=("max_rows", "counted", "left out", "share", "people who lose rows"))
        return Grid("", headings, rows, is_remark=True)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document of `hushcube schema check`."""
        cells = math.prod(self.schema.sizes)
        attributes = [
            {
                "name": a.name,
                "size": a.size,
                "kind": a.declared_by,
                "ordered": a.is_ordered,
                "levels": {level.name: len(level.labels) for level in a.grouped},
                "missing": a.missing,
                "other": a.other,
                **_words(a, OF_COLUMN),
                **({"labels": dict(zip(a.coded, a.labels, strict=True))} if a.has_labels else {}),
            }
            for a in self.schema.attributes
        ]
        return {
            "name": self.schema.name,
            **_words(self.schema, OF_SCHEMA),
            "attributes": attributes,
            "cells": cells if cells < _LARGEST_JSON else None,
            "findings": [asdict(finding) for finding in self.findings],
            **({"bounds": [asdict(bound) for bound in self.bounds]} if self.bounds else {}),
        }

    def __repr__(self) -> str:
        return f"SchemaCheck({self.schema!r}, {len(self.findings):,} findings)"


def check_schema(schema: Schema | str | Path, data: object = None, *, query: str | None = None) -> SchemaCheck:
    """Read a schema, or the file of one, and say what it declares; with data, whether that fits.

    >>> import pyarrow as pa
    >>> from hushcube.model.attribute import Attribute
    >>> sexes = Schema([Attribute("sex", values=["F", "M"])])
    >>> check_schema(sexes, pa.table({"sex": ["F", "x"]})).fits
    False
    """
    declared = schema_of(schema)
    if data is None and query is None:
        return SchemaCheck(declared)
    from hushcube.private.bounds import compare_bounds
    from hushcube.private.draft import check_data

    findings = check_data(declared, data, query=query)
    return SchemaCheck(declared, tuple(findings), tuple(compare_bounds(declared, data, query=query)))


def schema_of(given: Schema | str | Path) -> Schema:
    """A schema, or that of a file."""
    return given if isinstance(given, Schema) else Schema.read(given)


def _words(declared: Schema | Attribute, keys: Iterable[str]) -> dict[str, str]:
    """What the publisher says of it."""
    return {key: word for key in keys if (word := getattr(declared, key)) not in (None, UNIT_NOUN)}


def _values(attribute: Attribute) -> str:
    """The first values, with their codes where these are something else."""
    shown = list(islice(zip(attribute.coded, attribute.labels, strict=True), 4))
    told = (label if code == label else f"{code}: {label}" for code, label in shown)
    return ", ".join(told) + (", ..." if attribute.size > 4 else "")


def schema_page(schema: Schema) -> Page:
    """What a schema declares: a line for each attribute, and what its publisher says of it."""
    headings = ("attribute", "size", "values", "levels", "ordered", "missing", "other")
    rows = [
        [
            a.name,
            f"{a.size:,}",
            _values(a),
            ", ".join(f"{level.name} ({len(level.labels):,})" for level in a.grouped),
            "yes" if a.is_ordered else "no",
            a.missing,
            a.other,
        ]
        for a in schema.attributes
    ]
    title = f"{schema.name}: {len(schema)} attributes, {number(math.prod(schema.sizes))} cells in the full table"
    grid = Grid(title, [Column(name, right=name == "size") for name in headings], rows)
    return Page((grid, *(f"{key}: {word}" for key, word in _words(schema, OF_SCHEMA).items())))
