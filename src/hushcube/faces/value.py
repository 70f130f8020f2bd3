"""What is asked of a face: which promise the tables keep, and how they are found.

It is written in one word, as strategies are: `integral`, `nonnegative:norm=l1,method=local`.            [options.py]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

from hushcube.errors import BadInput, FactsError
from hushcube.model.edition import Edition, read_like
from hushcube.model.facts import Facts
from hushcube.model.files import read_text
from hushcube.model.schema import Schema
from hushcube.model.words import UNIT_NOUN
from hushcube.options import Configured, Option, check_choice, choice, option, read_word, whole
from hushcube.text import short

Norm = Literal["l2", "l1", "linf"]
Method = Literal["auto", "full-table", "local", "entropy", "barak", "shift"]
Weights = Literal["equal", "deviation"]
Near = Literal["measured", "answers"]
Objective = Literal["max-coefficient", "total-coefficient", "max-marginal", "total-marginal"]

UNBIASED: Final = "unbiased"
HALF_WIDTH: Final = math.log(20) * math.sqrt(2 / math.pi)
"""Of the 95% interval of a cell, in estimated errors: that of Laplace's law.               [faces/cell_errors.py]"""
MOST_PEOPLE: Final = 10**8  # of one face


@dataclass(frozen=True)
class Promise:
    """What the tables of one kind of face promise, and what the kind is called; how they are made is in `maker.py`."""

    name: str  # what such a face is called in a release
    summary: str  # what is promised, for a list of faces
    sentence: str  # what is promised, for PRIVACY.md: what the place of the face does; {people} is what is counted
    takes: tuple[str, ...] = ()  # the options of this kind
    nonnegative: bool = False
    whole: bool = False  # whether cells are whole numbers, which are counted from synthetic people

    def of(self, noun: str) -> str:
        """The sentence about tables that count people, calls or stays."""
        return self.sentence.format(people=noun, who="who" if noun == UNIT_NOUN else "which")


PROMISES: Final[dict[str, Promise]] = {
    "consistent": Promise(
        "consistent",
        "tables that add up, the nearest to the noisy ones in some norm",
        "holds the nearest tables that add up; cells can be negative or fractional.",
        ("norm", "near", "weights", "facts"),
    ),
    "nonnegative": Promise(
        "nonnegative",
        "also no negative cell",
        "holds tables that add up and have no negative cell; cells can be fractional.",
        ("norm", "near", "method", "weights", "minimise", "probability", "facts", "like"),
        nonnegative=True,
    ),
    "integral": Promise(
        "face-valid",
        "also whole numbers: the counts of synthetic people",
        "holds whole numbers that add up, without negative cells: the counts of synthetic {people} "
        "(`people.parquet`), {who} are made up and stand for nobody.",
        ("norm", "near", "method", "weights", "minimise", "facts", "like", "rows"),
        nonnegative=True,
        whole=True,
    ),
}
"""Every kind of face. A new one is added here, and to the makers of `maker.py`."""


def published_promises() -> dict[str, Promise]:
    """The promises by what their faces are called in a release."""
    return {promise.name: promise for promise in PROMISES.values()}


def _probability(given: object, name: str) -> float:
    try:
        value = float(given)  # type: ignore[arg-type] # whatever is no number is refused
    except (TypeError, ValueError):
        value = -1.0
    if not 0 < value < 1:
        raise BadInput(name, "is not between 0 and 1", "give a number such as 0.95")
    return value


def _people(given: object, name: str) -> int:
    try:
        value = whole(1)(given, name)
    except BadInput:
        value = MOST_PEOPLE + 1
    if value > MOST_PEOPLE:
        raise BadInput(name, f"{short(given)} is not a number of people", f"give a whole number up to {MOST_PEOPLE:,}")
    return int(value)


def _facts(given: Any, name: str) -> Facts | str:
    if not isinstance(given, Facts | str):
        raise FactsError(name, "are not public facts", "give `Facts`, or the path of a YAML file")
    return given


@dataclass(frozen=True)
class FaceValue(Configured):
    """A face that is wanted.

    >>> FaceValue("integral").name, str(FaceValue("nonnegative", norm="l1"))
    ('face-valid', 'nonnegative:norm=l1')
    """

    kind: str = "integral"
    norm: Norm = choice("l2", "the distance from the noisy tables that is least", get_args(Norm))
    near: Near = choice(
        "measured",
        "what the distance is from: the measured tables, or the answers that each table asked for has from one of them",
        get_args(Near),
    )
    method: Method = choice(
        "auto",
        "how it is found: from the full table, which auto takes where it fits, table by table (local), with an opinion "
        "where noise leaves many tables possible (entropy), or as in Barak et al. (barak, shift)",
        get_args(Method),
    )
    weights: Weights = choice(
        "equal", "for l1, linf and barak: tables weigh equally, or by the noise's standard deviation", get_args(Weights)
    )
    minimise: Objective = choice(
        "max-coefficient", "for barak: what its linear program makes least", get_args(Objective)
    )
    probability: float = option(0.95, "for shift: with which no cell is negative", takes="NUMBER", read=_probability)
    facts: Facts | str | None = option(
        None, "public facts (YAML): structural zeros and known totals", takes="FILE", read=_facts
    )
    like: Any = option(
        None,
        "for entropy: an earlier edition, a bundle of (some of) the same attributes, which tables are guessed from",
        takes="BUNDLE",
        read=read_like,
    )
    rows: int | None = option(
        None, "how many synthetic people; as many as the tables say unless given", takes="NUMBER", read=_people
    )

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", tuple(PROMISES))
        super().__post_init__()
        for name in (field.name for field in self._given() if field.name not in self.promise.takes):
            able = [kind for kind, promise in PROMISES.items() if name in promise.takes]
            raise BadInput(name, f"does not apply to `{self.kind}`", f"leave it out, or ask for {' or '.join(able)}")
        if self.rows is not None and self.facts:
            fix = "leave it out: the facts are about all people"
            raise BadInput("rows", "cannot be combined with public facts", fix)
        if self.norm != "l2" and self.method not in ("auto", "local"):
            raise BadInput("norm", f"{self.norm} is found by its own linear program", "leave `method` out")
        if self.near == "answers" and self.kind != "consistent" and self.norm == "l2":
            fix = "use l1 or linf, or make the plan with the recovery `answers`"
            raise BadInput("near", f"in l2, {self.kind} is near to the unbiased tables", fix)
        if self.method == "shift" and self.kind == "integral":
            raise BadInput("method", "shift gives no whole numbers", "ask for nonnegative, or use another method")
        if self.facts and self.kind == "consistent" and self.norm == "l2":
            raise BadInput("facts", "plain least squares takes no public facts", "use nonnegative or integral, or l1")
        if self.facts and self.method in ("barak", "shift"):
            raise BadInput("facts", f"{self.method} takes no public facts", "use the method full-table or local")

    @property
    def promise(self) -> Promise:
        """What its tables promise."""
        return PROMISES[self.kind]

    @property
    def head(self) -> str:
        """The kind of face."""
        return self.kind

    @property
    def summary(self) -> str:
        """What the tables promise."""
        return self.promise.summary

    def options(self) -> tuple[Option, ...]:
        """Those of its kind."""
        return tuple(own for own in super().options() if own.name in self.promise.takes)

    @property
    def name(self) -> str:
        """What the face is called in a release."""
        return self.promise.name

    @property
    def public_facts(self) -> Facts | None:
        """The facts, which `read_face` has read."""
        if isinstance(self.facts, str):
            raise TypeError("the file of facts is not read yet")
        return self.facts

    @property
    def edition(self) -> Edition | None:
        """The earlier edition, which was read for the release [bundle/earlier_edition.py]."""
        if self.like is None or isinstance(self.like, Edition):
            return self.like
        raise TypeError("the earlier edition is not read yet")

    def to_dict(self) -> dict[str, Any]:
        """What was asked for, for the manifest."""
        chosen: dict[str, Any] = {"kind": self.kind, "norm": self.norm, "method": self.method}
        if self.near != "measured":
            chosen["near"] = self.near
        if self.norm != "l2" or self.method == "barak":
            chosen["weights"] = self.weights
        if self.method == "barak":
            chosen["objective"] = self.minimise
        if self.method == "shift":
            chosen["probability"] = self.probability
        return chosen


def published_name(word: str) -> str:
    """What the face that a word makes is called in a release; a published name stays what it is."""
    return PROMISES[word].name if word in PROMISES else word


def faces() -> dict[str, FaceValue]:
    """Every kind of face, without options."""
    return {kind: FaceValue(kind) for kind in PROMISES}


def read_face(given: str | FaceValue, schema: Schema) -> FaceValue:
    """The face that a word names, such as `nonnegative:norm=l1`, with the facts read that it names."""
    value = given if isinstance(given, FaceValue) else read_word(given, faces(), "face")
    if isinstance(value.facts, str):
        value = replace(value, facts=Facts.from_yaml(read_text(value.facts, FactsError, "facts"), schema))
    return value
