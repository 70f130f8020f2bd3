"""Which tables are exported, and reading them: published tables stream past in the order of the bundle's files."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from hushcube.bundle.part import attributes_of, rolled_up
from hushcube.bundle.published_table import Table
from hushcube.bundle.release import Release
from hushcube.bundle.tables import Combined, Numbers, Values, written
from hushcube.errors import BadInput, QueryError
from hushcube.faces.value import UNBIASED
from hushcube.lattice.family import Family
from hushcube.model.arrays import Marginal
from hushcube.model.attribute import Attribute
from hushcube.model.schema import COUNT, Schema
from hushcube.model.workload import COUNTED, Quantity, tables_of

_CHUNK: Final = 2**18  # cells that are read at once


@dataclass(frozen=True, eq=False)
class Chosen:
    """Tables of one face of a release: published marginals, and others by their words, each with its cells."""

    release: Release
    face: str
    marginals: Family
    others: dict[str, int]

    @classmethod
    def of(cls, release: Release, words: str | Sequence[str] | None = None, face: str = UNBIASED) -> Chosen:
        """The tables that words name: all, families of them such as `2-way`, or single ones, roll-ups among them."""
        if face != UNBIASED:
            release.face(face)
        workload = release.plan.workload
        published = dict.fromkeys(workload.published)
        if words is None:
            marginals, others = published, {form.word: form.cells for form in workload.forms}
        else:
            marginals, others = {}, {}
            for word in _split(words):
                found = _named(release, word, published)
                if isinstance(found, int):
                    others[word] = found
                else:
                    marginals |= dict.fromkeys(found)
        return cls(release, face, Family.of(marginals, release.schema.sizes), others)

    def __len__(self) -> int:
        return len(self.marginals) + len(self.others)

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What is known of every cell: of the unbiased face all that is published, of others the counts."""
        return written(self.release.plan) if self.face == UNBIASED else (COUNTED,)

    @property
    def words(self) -> list[str]:
        """What names every table, in the order in which they come."""
        rows = (row for batch in self.marginals.batches for row in batch.rows.tolist())
        return [*map(self.release.schema.describe, rows), *self.others]

    @property
    def sizes(self) -> list[int]:
        """The cells of every table, in the order in which they come."""
        return [*(batch.cells for batch in self.marginals.batches for _ in batch.ids), *self.others.values()]

    def __iter__(self) -> Iterator[Table]:
        """The tables with all of their quantities, a few of them in memory at once."""
        yield from self._marginals()
        for word in self.others:
            first, *others = (self.release.table(word, str(quantity), face=self.face) for quantity in self.quantities)
            yield replace(first, others=tuple(others))

    def _marginals(self) -> Iterator[Table]:
        release = self.release
        sources: dict[str, Values] = {name: part.source for name, part in release.parts.items()}
        estimated: Values | None = None
        if self.face != UNBIASED:
            face = release.face(self.face)
            sources, estimated = {COUNT: face.source}, face.estimated
        numbers = Numbers(release.plan, sources, self.quantities, intervals=True)
        for batch in self.marginals.batches:
            for part in batch.parts(_CHUNK):
                rows = batch.rows[part]
                found = numbers.estimates(rows, batch.shape)
                errors = None if estimated is None else estimated.tables(rows, batch.shape)
                for at, marginal in enumerate(map(tuple, rows.tolist())):
                    tables = (_table(release.schema, marginal, at, *own) for own in found.items())
                    first, *others = (replace(table, face=self.face, private=release.private) for table in tables)
                    yield replace(first, others=tuple(others), estimated=None if errors is None else errors[at])


def _table(schema: Schema, marginal: Marginal, at: int, quantity: Quantity, found: Combined) -> Table:
    """One of several marginals of one shape."""
    *numbers, ends = found
    values, errors, margins = (each[at] if np.ndim(each) else np.asarray(each) for each in numbers)
    own = None if ends is None else (ends[0][at], ends[1][at])
    return Table.of(schema, marginal, values, errors, margins, ends=own, what=str(quantity))


def _split(words: str | Sequence[str]) -> list[str]:
    texts = [words] if isinstance(words, str) else list(words)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise QueryError("tables", "must be words", "write for example `1-way,age*sex`, or leave them out")
    return [word.strip() for text in texts for word in text.split(",")]


def _named(release: Release, word: str, published: Collection[Marginal]) -> list[Marginal] | int:
    """The published marginals that a word names; or the cells of a form, or of a table that is rolled up or turned."""
    schema, workload = release.schema, release.plan.workload
    if (form := workload.form(word)) is not None:
        return form.cells
    try:
        wanted = attributes_of(schema, word)
    except QueryError:  # a family of tables, or nothing at all
        wanted = None
    try:
        if wanted is not None:
            return _single(schema, wanted, published)
        found = [marginal for marginal in tables_of(word, schema) if marginal in published]
    except BadInput as problem:
        raise QueryError("tables", problem.problem, problem.fix) from None
    if not found:
        raise QueryError("tables", f"no table of {word!r} is published", "`hushcube show` lists those that are")
    return found


def _single(schema: Schema, wanted: Sequence[Attribute], published: Collection[Marginal]) -> list[Marginal] | int:
    names = [attribute.name for attribute in wanted]
    if set(names) <= set(schema.names):
        marginal = schema.marginal(names)
        if marginal in published and names == [schema.names[i] for i in marginal]:
            return [marginal]
    rolled_up(schema, wanted, published)  # refuses what cannot be
    return math.prod(attribute.size for attribute in wanted)
