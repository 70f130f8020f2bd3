"""What a guarantee means for somebody whose data may be in a release, in words that need no mathematics."""

from __future__ import annotations

import math
from fractions import Fraction

from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.text import at_most, visible


def for_you(privacy: Privacy, schema: Schema) -> list[str]:
    """A few sentences, each a paragraph."""
    return [
        "Random noise was added to every number before it was published, so that nobody can tell from these tables "
        "whether you are in the data, or what it says about you. This also holds for somebody who knows everything "
        "about everybody else, and it will still hold in the future, whatever else is published.",
        _odds(privacy),
        _whom(privacy, schema),
        "What the tables say about people like you is not hidden: if a group has more of something, that shows, "
        "whether you are in the data or not.",
        "The noise is why cells have margins, can be negative, and need not match other sources.",
    ]


def _odds(privacy: Privacy) -> str:
    """How far a guess can be improved.

    From odds of 1 an outcome whose probability changes by a factor of at most exp(epsilon) leads to odds of at most
    exp(epsilon).
    """
    if privacy.rho is not None:
        return (
            f"How much is promised is written as rho = {at_most(privacy.rho)} (zero-concentrated differential "
            "privacy): the smaller the number, the less any one person's data can change what is published."
        )
    epsilon = privacy.epsilon or Fraction(0)
    percent = 100 / (1 + math.exp(-float(epsilon)))
    sure = "more than 99.9%" if percent > 99.9 else f"at most {math.ceil(10 * percent) / 10:g}%"
    told = (
        f"How much is promised is written as epsilon = {at_most(epsilon)}. Suppose that somebody gives even odds to "
        f"two possibilities about you. After reading everything here, that person can be {sure} sure of one of them."
    )
    if privacy.delta is None:
        return told
    return f"{told} The promise may fail with a probability of at most {at_most(privacy.delta)}."


def _whom(privacy: Privacy, schema: Schema) -> str:
    if privacy.neighbours == "add-remove":
        compared = "Whether you are in the data at all is protected."
    else:
        compared = "What the data says about you is protected; how many people it holds is public."
    if schema.unit is not None:
        column, most = visible(schema.unit.column), schema.unit.max_rows
        return (
            f"{compared} Everything under one value of {column} is protected together; at most {most:,} of its rows, "
            "chosen at random, were counted."
        )
    if privacy.rows_per_person == 1:
        return f"{compared} One row of the data was taken as one person; with several rows you are protected less."
    return (
        f"{compared} All rows of a person are protected together, if there are at most {privacy.rows_per_person:,}; "
        "with more you are protected less."
    )
