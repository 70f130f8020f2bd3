"""The list of a release's tables, in which readers search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.bundle.release import Release
from hushcube.errors import QueryError
from hushcube.model.arrays import Ints
from hushcube.model.attribute import Attribute


class Index:
    """The published tables as rows of positions, so that a hundred thousand are searched in a moment."""

    def __init__(self, release: Release) -> None:
        design, workload = release.plan.count, release.plan.workload
        self._schema, self._forms = design.schema, workload.forms
        self._words = [_searched(attribute) for attribute in self._schema.attributes]
        tables = [*workload.published, *(form.marginal for form in workload.forms)]
        self.published = frozenset(workload.published)
        self._plain = len(workload.published)
        self.widest = max(map(len, tables), default=0)
        self._rows = np.full((len(tables), self.widest), len(self._schema), np.int32)  # one beyond all: no attribute
        for at, marginal in enumerate(tables):
            self._rows[at, : len(marginal)] = marginal
        self._tables = tables
        sizes = np.array([*self._schema.sizes, 1], np.int64)
        self.cells: Ints = np.prod(sizes[self._rows], axis=1, dtype=np.int64)
        self.cells[self._plain :] = [form.cells for form in workload.forms]
        ids = design.request.marginals.ids(workload.published)
        totals = (
            total / form.cells for total, form in zip(design.errors.form_totals(exact=True), self._forms, strict=True)
        )
        self._errors = np.sqrt(np.concatenate([design.errors.exact_cell_variances[ids], [*totals]]))

    def __len__(self) -> int:
        return len(self._tables)

    def entry(self, at: int) -> dict[str, Any]:
        """One table, as a list has it."""
        names = [self._schema.names[i] for i in self._tables[at]]
        word = "*".join(names) or "total"
        return {
            "word": word if at < self._plain else self._forms[at - self._plain].word,
            "attributes": names,
            "cells": int(self.cells[at]),
            "std_error": float(f"{self._errors[at]:.4g}"),
            "key": int(at),
        }

    def find(self, text: str, attributes: Sequence[str]) -> NDArray[np.intp]:
        """The numbers of the tables that match: each word is in the name or title of one of their attributes."""
        fits = np.ones(len(self), np.bool_)
        for word in text.casefold().replace("*", " ").split():
            fits &= self._have([word in searched for searched in self._words])
        for name in attributes:
            if name not in self._schema.names:
                raise QueryError("attributes", f"{name[:80]!r} is in no table", "name attributes of the catalogue")
            fits &= self._have([name == own for own in self._schema.names])
        return np.flatnonzero(fits)

    def _have(self, wanted: Sequence[bool]) -> NDArray[np.bool_]:
        return np.asarray(np.array([*wanted, False])[self._rows].any(axis=1))


def _searched(attribute: Attribute) -> str:
    return f"{attribute.name} {attribute.title or ''}".casefold()
