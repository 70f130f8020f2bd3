"""A published release as an earlier edition, from which new tables are guessed.

Its attributes are those of the new tables by name and level, each with the same values in any order; it may lack some
of them. What it has at finer levels is summed up; what it has only at coarser ones says nothing about cells.
Its tables without negative cells are taken: those of whole numbers, or else non-negative ones; where it has neither,
non-negative tables are made of its measurement, with an opinion where its plan allows one. Of attributes at several
levels a selective run measured fine tables: these are taken, published or not, from its synthetic people or made again.
No other plan over levels has such a face: its unbiased tables are summed up to the levels asked for, and the nearest
ones without negative cells are taken. All of that is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from hushcube.bundle.folder import open_bundle
from hushcube.bundle.part import rolled_up
from hushcube.bundle.release import Release
from hushcube.bundle.tables import Values
from hushcube.designs import SelectedLevels
from hushcube.designs.answers import Answers
from hushcube.designs.design import Design
from hushcube.errors import BadInput, WorkloadError
from hushcube.faces.value import FaceValue, published_promises
from hushcube.lattice.family import Family
from hushcube.lattice.guesses import largest
from hushcube.model.arrays import Floats, Marginal, position_rows
from hushcube.model.attribute import Attribute
from hushcube.model.coarser import is_finer
from hushcube.model.edition import Edition, check_size
from hushcube.model.form import GroupTable
from hushcube.model.schema import Schema
from hushcube.progress import Clock
from hushcube.strategies.selective import Selective
from hushcube.strategies.strategy import Strategy

_FACES: Final = tuple(name for name, promise in reversed(published_promises().items()) if promise.nonnegative)
"""Those without negative cells, the best first."""
_LEFT: Final = 1e-4  # of the noise: the squared distance of the projection at which it is content


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
        """The largest parts of tables asked for that the release has, with the values in the order of the schema.

        The schema has each attribute at one level.
        """
        seen = _Seen.of(self._design, schema)
        asked = Family.of(wanted, schema.sizes).closure
        has = Family.of(seen.published, schema.sizes).closure
        both = Family(schema.sizes, [rows[has.find(rows) >= 0] for rows in asked.levels])
        known = [m for m in largest(both, len(both.levels) - 1) if m]
        if not known:
            fix = "name a release whose tables have attributes of this one, at the levels asked for or finer ones"
            raise BadInput("like", "has none of the tables asked for, nor smaller ones inside them", fix)
        check_size(schema, known)
        if self._has_no_face:
            return Edition.of(schema, _nonnegative(seen, known, self._source), self.release.plan.digest)
        return Edition.of(schema, {m: seen.table(m, self._source) for m in known}, self.release.plan.digest)

    @property
    def _design(self) -> Design:
        """What its tables are of: those of a run over levels are sums of fine ones."""
        counts = self.release.plan.count
        return counts.underlying if isinstance(counts, SelectedLevels) else counts

    @property
    def _has_no_face(self) -> bool:
        """Whether its tables are at several levels, and nothing holds these together."""
        return self._design.schema.is_nested

    @cached_property
    def _source(self) -> Values | Answers:
        """Tables without negative cells, or unbiased ones if there is no such face."""
        from hushcube.faces.crowd import narrow
        from hushcube.faces.face import make_face
        from hushcube.faces.people import PeopleTables

        counts, sizes = self.release.plan.count, self._design.schema.sizes
        for face in (self.release.faces[name] for name in _FACES if name in self.release.faces):
            if not isinstance(counts, SelectedLevels):
                return face.source
            if face.read_people is not None:
                return PeopleTables(narrow(face.read_people()[:, counts.finest.places], sizes), sizes)
        measurement = self.release.source.measurement()
        if self._has_no_face:
            return counts.answers(measurement)
        if isinstance(counts, SelectedLevels):
            counts, measurement = counts.averaged(measurement)
        value = FaceValue("nonnegative", method="entropy")
        try:
            return make_face(counts, measurement, value, Clock()).tables
        except BadInput:
            value = FaceValue("nonnegative", method="local")
            return make_face(counts, measurement, value, Clock()).tables


@dataclass(frozen=True, eq=False)
class _Seen:
    """The tables of a design over another schema."""

    design: Design
    schema: Schema
    attributes: dict[int, Attribute]
    """By their places in the schema, as the design has them at their levels, or at finer ones."""

    @classmethod
    def of(cls, design: Design, schema: Schema) -> _Seen:
        """Refuses attributes of one name and level with different values."""
        own, found = design.schema, {}
        for place, attribute in enumerate(schema.attributes):
            try:
                there = own.seen(attribute.name)
            except WorkloadError:  # no such attribute, or no such level
                continue
            if not any(is_finer(one, there) for one in own.attributes):
                continue
            if set(there.labels) != set(attribute.labels):
                problem = f"there the attribute {attribute.name!r} has other values than here"
                fix = "name an edition with the same values, or give the attribute another name in one of the schemas"
                raise BadInput("like", problem, fix)
            found[place] = there
        if not found:
            fix = "name a release of (some of) the same attributes, at the levels asked for or finer ones"
            raise BadInput("like", "has no attribute in common with the schema", fix)
        return cls(design, schema, found)

    @property
    def published(self) -> Iterator[Marginal]:
        """The published tables, with the attributes that the schema has, too."""
        own = list(enumerate(self.design.schema.attributes))
        able = {place: {i for i, one in own if is_finer(one, there)} for place, there in self.attributes.items()}
        for marginal in self.design.workload.published:
            yield tuple(place for place, finer in able.items() if not finer.isdisjoint(marginal))

    def form(self, marginal: Marginal) -> GroupTable:
        """The smallest published table that a table is summed up from, and how."""
        wanted = [self.attributes[i] for i in marginal]
        return rolled_up(self.design.schema, wanted, self.design.workload.published)

    def table(self, marginal: Marginal, source: Values | Answers) -> Floats:
        """A table, with the values in the order of the schema."""
        form = self.form(marginal)
        summed = form.evaluate(source.tables(position_rows(form.marginal), form.carrier_shape)[0])
        turned = summed.transpose([form.axes.index(self.schema.names[i]) for i in marginal])
        for axis, i in enumerate(marginal):
            places = {label: place for place, label in enumerate(self.attributes[i].labels)}
            turned = turned.take([places[label] for label in self.schema.attributes[i].labels], axis=axis)
        return np.asarray(turned, np.float64)


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
    if value.like is None or isinstance(value.like, Edition) or design.schema.is_nested:
        return value  # at several levels it is refused, whatever the edition has                  [faces/checking.py]
    edition = read_edition(value.like).within(design.schema, design.request.marginals)
    return replace(value, like=edition)


def _nonnegative(seen: _Seen, wanted: list[Marginal], unbiased: Values | Answers) -> dict[Marginal, Floats]:
    """The nearest tables that add up and have no negative cell.

    Smaller tables inside those wanted count too, each by its precision: noise in many empty cells makes no people.
    """
    from hushcube.faces.local import nonnegative_marginals
    from hushcube.faces.target import Target

    family, errors = Family.of(wanted, seen.schema.sizes).closure, seen.design.errors
    variances = np.array([errors.form_total(seen.form(m), exact=True) for m in family]) / family.cells
    variances = np.maximum(variances, 1e-9 * variances.max())  # those of a public total are zero
    rows = (batch.rows.tolist() for batch in family.batches)
    values = [np.stack([seen.table(tuple(row), unbiased) for row in own]) for own in rows]
    target = Target(family, values, 1 / variances)
    near = nonnegative_marginals(target, Clock(), tolerance=_LEFT * float(family.cells.sum()))
    return {m: near.tables(position_rows(m), seen.schema.shape(m))[0] for m in wanted}
