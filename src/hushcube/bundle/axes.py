"""The columns beside the numbers of a table: of each axis the labels, and the codes in a type of their own.

Labels are texts, which sort as texts: 10 before 2. Where codes are whole numbers or days, and where labels are
declared, a column such as `age_code` holds the codes as integers, dates or texts. It is null in a category, such as
`unknown`, that is no such thing. Tables of ranges and queries, whose cells are no single values, have labels alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property

import pyarrow as pa

from hushcube.bundle.published_table import beside
from hushcube.model.attribute import WHOLE_CODE, Attribute
from hushcube.model.form import Form


@dataclass(frozen=True, eq=False)
class Axis:
    """One axis of a table as its file has it."""

    name: str
    labels: Sequence[str]
    code_name: str = ""
    """The name of the column of codes; empty where there is none."""
    attribute: Attribute | None = None
    """What has the codes."""

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return [self.name, self.code_name] if self.code_name else [self.name]

    @cached_property
    def codes(self) -> pa.Array:
        """The code of each label."""
        attribute = self.attribute
        if attribute is None:
            return pa.nulls(len(self.labels))
        coded, domain = attribute.coded, attribute.domain_size
        if attribute.code_type == "whole number":
            return pa.array([int(code) if WHOLE_CODE.fullmatch(code) else None for code in coded], pa.int64())
        if attribute.code_type == "date":
            days = [date.fromisoformat(code) for code in coded[:domain]]
            return pa.array([*days, *[None] * (len(coded) - domain)], pa.date32())
        return pa.array(coded, pa.string())


def cell_axes(attributes: Sequence[Attribute]) -> list[Axis]:
    """The axes of a table of cells.

    >>> [axis] = cell_axes([Attribute("age", range=[8, 10], missing="unknown")])
    >>> axis.columns, axis.codes.to_pylist()
    (['age', 'age_code'], [8, 9, 10, None])
    """
    coded = [each.name for each in attributes if each.has_labels or each.code_type != "text"]
    names = beside([each.name for each in attributes], *(f"{name}_code" for name in coded))
    code_names = dict(zip(coded, names, strict=True))
    return [Axis(each.name, each.labels, code_names.get(each.name, ""), each) for each in attributes]


def form_axes(form: Form) -> list[Axis]:
    """The axes of a form."""
    return [Axis(name, labels) for name, labels in zip(form.axes, form.labels, strict=True)]


def axis_columns(axes: Sequence[Axis]) -> list[str]:
    """The names of all their columns, in order."""
    return [name for axis in axes for name in axis.columns]
