"""The expected error of each table asked for, in the order asked: what people look at before they spend a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from hushcube.designs import errors as error
from hushcube.designs.design import Design
from hushcube.designs.margins import any_margin, margins


@dataclass(frozen=True)
class TableError:
    """One table: its word, the root mean square of its cells' standard errors, and the margin that goes with it."""

    word: str
    attributes: tuple[str, ...]
    cells: int
    std_error: float
    margin: float
    is_form: bool = False


def table_errors(design: Design, *, published: bool = False) -> Iterator[TableError]:
    """The tables asked for, marginals first; or all that are published."""
    schema, workload = design.schema, design.workload
    listed = workload.published if published else workload.marginals
    ids = design.request.marginals.ids(listed)
    deviations, widths = np.sqrt(error.exact_cell_variances(design))[ids].tolist(), margins(design)[ids].tolist()
    for marginal, deviation, width in zip(listed, deviations, widths, strict=True):
        names = tuple(schema.names[i] for i in marginal)
        yield TableError(schema.describe(marginal), names, schema.cells(marginal), deviation, width)
    for form, total in zip(workload.forms, error.form_totals(design, exact=True), strict=True):
        deviation = math.sqrt(total / form.cells)
        names = tuple(schema.names[i] for i in form.marginal)
        width = float(any_margin(design, np.asarray(deviation)))
        yield TableError(form.word, names, form.cells, deviation, width, is_form=True)
