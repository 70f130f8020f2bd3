"""What every export says about the release as a whole, in plain words: what it is, how to read it, what it protects."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from hushcube.bundle.release import Release
from hushcube.bundle.statement import NOT_PRIVATE, in_plain_words
from hushcube.faces.value import HALF_WIDTH, UNBIASED, published_promises

_NOISE: Final = (
    "Random noise was added before anything was published, so that these tables depend only slightly on any one "
    "person's data. A value is therefore an estimate, and not exactly what was counted."
)
_COLUMNS: Final = (
    'The column "value" is the estimate, right on average. "std_error" is its standard error: how far it typically is '
    'from the exact number. "low_95" and "high_95" are the ends of an interval that holds the exact number in about 95 '
    "of 100 cases."
)
_QUALITY: Final = (
    'The column "quality" says how far a value can be relied on, by its coefficient of variation (the standard error '
    'divided by the value): "reliable", "use with caution" above {caution}, and "do not use" above {unreliable}, or '
    "where the value is no more than noise."
)
_NEGATIVE: Final = (
    "Cells can be negative or fractional, since noise can be larger than a small count: do not set them to zero before "
    "you add them up, for sums would no longer be right on average. Numbers can differ from those of other sources."
)
_SUMS: Final = (
    'Columns that begin with "sum_" and "avg_" hold sums and averages. An average has an interval in place of a '
    "standard error; where its count is no more than noise, it is left empty."
)
_FACE: Final = 'The column "std_error" is the standard error of the unbiased estimate from which the value was made'
_NO_INTERVALS: Final = "beside the values of this face there are no intervals."
_ESTIMATED: Final = (
    'The column "estimated_error" says how far the value itself is expected to be from the exact number. '
    f'"estimated_low" and "estimated_high" are the ends of the estimated interval, the value give or take '
    f"{HALF_WIDTH:.2f} estimated errors, and not below zero. It should hold the exact number in about 95 of 100 cases. "
    "That is estimated, not promised: how large errors are was measured, how they are spread over cells is a model. "
    "Tables that were added up from published ones have no such columns."
)
_FACTS: Final = (
    "The values also satisfy these facts, which the publisher declares to be public knowledge; they were not measured, "
    "and the guarantee does not cover them:"
)


@dataclass(frozen=True)
class About:
    """The words that go with exported tables."""

    name: str
    title: str
    face: str
    private: bool
    source: str
    """Who publishes, or what."""
    remark: str
    """What stands below the title of every table where there is room for one line."""
    sections: tuple[tuple[str, tuple[str, ...]], ...]
    """Headings, each with its paragraphs."""

    @classmethod
    def of(cls, release: Release, face: str) -> About:
        """What is to be said of one face of a release."""
        schema = release.schema
        return cls(
            schema.name,
            schema.shown_name,
            face,
            release.private,
            schema.source or schema.shown_name,
            f"{schema.name}, {face}" if schema.caveat is None else _bounded(schema.caveat),
            tuple((heading, tuple(paragraphs)) for heading, paragraphs in _sections(release, face) if paragraphs),
        )

    @property
    def stamp(self) -> str | None:
        """What must be said before anything else, if the noise came from a seed."""
        return None if self.private else NOT_PRIVATE

    @property
    def text(self) -> str:
        """All of it as plain text."""
        told = [self.title, *([] if self.stamp is None else [self.stamp])]
        for heading, paragraphs in self.sections:
            told += [f"{heading}\n{'-' * len(heading)}", *paragraphs]
        return "\n\n".join(told) + "\n"


def _sections(release: Release, face: str) -> Iterator[tuple[str, list[str]]]:
    schema = release.schema
    words = {key: getattr(schema, key) for key in ("source", "period", "licence", "contact")}
    told = [f"{key.capitalize()}: {word}" for key, word in words.items() if word is not None]
    yield "About these tables", [*filter(None, (schema.description or "").split("\n\n")), *told]
    yield "How to read the numbers", list(_reading(release, face))
    yield "Privacy", in_plain_words(release.plan)


def _bounded(caveat: str) -> str:
    return f"Bounded: {caveat}."


def _reading(release: Release, face: str) -> Iterator[str]:
    yield _NOISE
    if release.schema.caveat is not None:
        yield _bounded(release.schema.caveat)
    if face == UNBIASED:
        yield _COLUMNS
        quality = release.schema.quality
        yield _QUALITY.format(caution=f"{quality.caution:.4g}", unreliable=f"{quality.unreliable:.4g}")
        yield _NEGATIVE
        if release.plan.sums:
            yield _SUMS
    else:
        promise = published_promises()[face].of(release.schema.unit_noun).replace("`", "")
        estimated = release.face(face).is_estimated
        told = f"{_FACE}." if estimated else f"{_FACE}; {_NO_INTERVALS}"
        yield f'These are the tables of the face "{face}", which {promise} {told}'
        if estimated:
            yield _ESTIMATED
        facts = release.face(face).facts(release.schema).describe()
        if facts:
            yield f"{_FACTS} {' '.join(f'({at}) {fact}.' for at, fact in enumerate(facts, 1))}"
