"""Coded rows: for classifiers, which have to see people one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.model.schema import Schema
from hushcube.private.boundary import guarded
from hushcube.private.engines.coding import code_type
from hushcube.private.engines.duckdb import coded, recognise
from hushcube.private.engines.fit import refused
from hushcube.progress import Progress

Codes = NDArray[Any]


@guarded
def coded_rows(
    schema: Schema, data: object, *, query: str | None = None, progress: Progress | None = None
) -> dict[int, Codes]:
    """The columns of a source by schema position, as codes of one or two bytes where sizes allow.

    Rows come in the order of their codes: databases hand them out in any order, and a seed shall mean one division.
    """
    attributes = schema.attributes
    batches: list[list[Codes]] = []
    seen = 0
    with recognise(data, query=query).open([attribute.source_column for attribute in attributes]) as opened:
        for batch in coded(opened, attributes):
            batches.append(batch)
            seen += len(batch[0])
            if progress and opened.rows:
                progress("reading", min(1.0, seen / opened.rows))
    columns = [
        np.concatenate([np.zeros(0, code_type(attribute.size)), *(batch[at] for batch in batches)])
        for at, attribute in enumerate(attributes)
    ]
    for attribute, column in zip(attributes, columns, strict=True):
        top = int(column.max(initial=0))
        if top >= attribute.size:
            raise refused(attribute, missing=top == attribute.size)
    order = np.lexsort(columns[::-1])
    return {at: column[order] for at, column in enumerate(columns)}
