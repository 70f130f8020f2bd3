"""A published release as an earlier edition, from which new tables are guessed.

Its attributes are those of the new tables by name, each with the same values in any order; it may lack some of them.
Its tables without negative cells are taken: those of whole numbers, or else non-negative ones; where it has neither,
non-negative tables are made of its measurement, with an opinion where its plan allows one. All of that is public.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from hushcube.bundle.folder import open_bundle
from hushcube.bundle.release import Release
from hushcube.bundle.tables import Values
from hushcube.designs.design import Design
from hushcube.errors import BadInput
from hushcube.faces.value import FaceValue, published_promises
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import largest
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.edition import Edition, check_size
from hushcube.model.schema import Schema
from hushcube.progress import Clock
from hushcube.strategies.selective import Selective
from hushcube.strategies.strategy import Strategy

_FACES: Final = tuple(name for name, promise in reversed(published_promises().items()) if promise.nonnegative)
"""Those without negative cells, the best first."""


@dataclass(frozen=True, eq=False, repr=False)
class EarlierEdition:
    """A release of an earlier year, say: `within` has what it says of tables asked for now."""

    release: Release

    def __post_init__(self) -> None:
        if not self.release.private:
            problem = "is stamped NOT PRIVATE: its noise is from a seed, and whatever is made of it would be no better"
            raise BadInput("like", problem, "name an edition that was released without a seed")

    def __repr__(self) -> str:
        return f"EarlierEdition({self.release!r})"

    def __str__(self) -> str:
        return self.release.plan.digest[:12]

    def within(self, schema: Schema, wanted: Iterable[Marginal]) -> Edition:
        """The largest parts of tables asked for that the release has, with the values in the order of the schema."""
        own = self.release.plan.count.schema
        places = _places(own, schema)
        asked = Family.of(wanted, schema.sizes).closure
        published = self.release.plan.workload.published
        has = Family.of({tuple(sorted(places[i] for i in m if i in places)) for m in published}, schema.sizes).closure
        both = Family(schema.sizes, [rows[has.find(rows) >= 0] for rows in asked.levels])
        known = [m for m in largest(both, len(both.levels) - 1) if m]
        if not known:
            fix = "name a release whose tables have attributes of this one"
            raise BadInput("like", "has none of the tables asked for, nor smaller ones inside them", fix)
        check_size(schema, known)
        return Edition.of(schema, {m: self._table(m, schema, places) for m in known}, self.release.plan.digest)

    def _table(self, marginal: Marginal, schema: Schema, places: dict[int, int]) -> Floats:
        """A table over a schema, from the smallest published one that contains it."""
        own = self.release.plan.count.schema
        back = {place: i for i, place in places.items()}
        kept = [back[place] for place in marginal]
        able = (m for m in self.release.plan.workload.published if set(kept) <= set(m))
        whole = min(able, key=lambda m: (own.cells(m), m))
        values = np.maximum(self._source.tables(position_rows(whole), own.shape(whole))[0], 0.0)
        summed = values.sum(axis=tuple(at for at, i in enumerate(whole) if i not in kept))
        order = [i for i in whole if i in kept]
        turned = summed.transpose([order.index(i) for i in kept])
        labels = [own.attributes[i].labels for i in kept]
        at = [
            [named.index(label) for label in schema.attributes[place].labels]
            for named, place in zip(map(list, labels), marginal, strict=True)
        ]
        return np.asarray(turned[np.ix_(*at)], np.float64)

    @cached_property
    def _source(self) -> Values:
        """Tables without negative cells."""
        for name in _FACES:
            if name in self.release.faces:
                return self.release.faces[name].source
        from hushcube.faces.face import make_face

        counts, measurement = self.release.plan.count, self.release.source.measurement()
        value = FaceValue("nonnegative", method="entropy")
        try:
            return make_face(counts, measurement, value, Clock()).tables  # type: ignore[return-value]
        except BadInput:
            value = FaceValue("nonnegative", method="local")
            return make_face(counts, measurement, value, Clock()).tables  # type: ignore[return-value]


def read_edition(given: object, field: str = "like") -> EarlierEdition:
    """A release as an earlier edition: the release itself, or the path of its folder."""
    if isinstance(given, EarlierEdition):
        return given
    if isinstance(given, str | Path):
        return EarlierEdition(open_bundle(Path(given)))
    if not isinstance(given, Release):
        raise BadInput(field, "is no release", "give a release, or the path of its folder")
    return EarlierEdition(given)


def with_edition(strategy: Strategy) -> Strategy:
    """A strategy with the earlier edition read that its options name."""
    if isinstance(strategy, Selective) and strategy.like is not None:
        return replace(strategy, like=read_edition(strategy.like))
    return strategy


def face_with_edition(value: FaceValue, design: Design) -> FaceValue:
    """A face with the earlier edition read that its options name: what it has of the tables of a design."""
    if value.like is None or isinstance(value.like, Edition):
        return value
    edition = read_edition(value.like).within(design.schema, design.request.marginals)
    return replace(value, like=edition)


def _places(own: Schema, schema: Schema) -> dict[int, int]:
    """Where attributes of one schema are in another; refuses attributes of one name and different values."""
    found = {}
    for i, attribute in enumerate(own.attributes):
        if attribute.name not in schema.names:
            continue
        place = schema.names.index(attribute.name)
        if set(attribute.labels) != set(schema.attributes[place].labels):
            problem = f"there the attribute {attribute.name!r} has other values than here"
            fix = "name an edition with the same values, or give the attribute another name in one of the schemas"
            raise BadInput("like", problem, fix)
        found[i] = place
    if not found:
        fix = "name a release of (some of) the same attributes"
        raise BadInput("like", "has no attribute in common with the schema", fix)
    return found
