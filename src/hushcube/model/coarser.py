"""An attribute seen at one of its levels: an attribute of its own, whose values are groups of another's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from hushcube.errors import WorkloadError
from hushcube.model.arrays import Ints, frozen
from hushcube.model.attribute import ERROR, Attribute
from hushcube.model.level import Level

MARK: Final = "@"  # stands between the names of an attribute and of its level


@dataclass(frozen=True, kw_only=True, repr=False)
class AtLevel(Attribute):
    """The groups of a level as values; the categories for missing and other values stay what they are.

    >>> age = Attribute(name="age", range=(0, 99), missing="unknown", levels=({"name": "band", "starts": [0, 18, 65]},))
    >>> band = at_level(age, "band")
    >>> band.name, band.labels, band.places[[17, 18, 100]].tolist()
    ('age@band', ('0-17', '18-64', '65-99', 'unknown'), [0, 1, 3])
    """

    base: Attribute
    depth: int
    """How many levels it is above the values: 1 for the finest level."""

    def _check_name(self) -> None:
        """The parts of the name were checked."""

    @cached_property
    def places(self) -> Ints:
        """For each position of the base attribute, categories included, the position here."""
        level = self.base.grouped[self.depth - 1]
        categories = [self._index[code] for code in self.base.coded[self.base.domain_size :]]
        return frozen([*level.places, *categories], np.int64)


def at_level(attribute: Attribute, name: str) -> AtLevel:
    """An attribute at the level with a name."""
    for depth, level in enumerate(attribute.grouped, 1):
        if level.name == name:
            return AtLevel(
                name=f"{attribute.name}{MARK}{name}",
                values=level.coded,
                labels=attribute.labels_at(level),
                title=level.title or (attribute.title and f"{attribute.title} ({level.name})"),
                unit_of_measure=attribute.unit_of_measure,
                ordered=attribute.is_ordered and list(level.places) == sorted(level.places),
                missing=_category(attribute, level, attribute.missing),
                other=_category(attribute, level, attribute.other),
                column=attribute.source_column,
                base=attribute,
                depth=depth,
            )
    known = ", ".join(level.name for level in attribute.grouped) or "none; declare it under `levels:`"
    raise WorkloadError("attribute", f"{attribute.name!r} has no level {name!r}", f"use one of: {known}")


def base_of(attribute: Attribute) -> Attribute:
    """The declared attribute: itself, or what it is a level of."""
    return attribute.base if isinstance(attribute, AtLevel) else attribute


def depth_of(attribute: Attribute) -> int:
    """How many levels it is above the declared values."""
    return attribute.depth if isinstance(attribute, AtLevel) else 0


def places_of(attribute: Attribute) -> Ints:
    """For each position of the declared attribute, the position here."""
    return attribute.places if isinstance(attribute, AtLevel) else np.arange(attribute.size)


def is_finer(attribute: Attribute, other: Attribute) -> bool:
    """Whether one attribute is the other, or seen at a finer level of the same."""
    return base_of(attribute) == base_of(other) and depth_of(attribute) <= depth_of(other)


def coarsening(fine: Attribute, coarse: Attribute) -> Ints:
    """For every value of an attribute, its group at a coarser level of the same."""
    if not is_finer(fine, coarse):
        raise ValueError("not a finer and a coarser level of one attribute")
    groups = np.zeros(fine.size, dtype=np.int64)
    groups[places_of(fine)] = places_of(coarse)
    return groups


def _category(attribute: Attribute, level: Level, label: str) -> str:
    """Where missing or other values go: their own category, or the group of the value that they count as."""
    place = None if label == ERROR else attribute.position(label)
    return label if place is None or place >= attribute.domain_size else level.coded[level.places[place]]
