"""The public parameters of adaptive methods, those of Xiao et al. 2011.

    sanity_bound    delta of (1): relative errors divide by max(count, delta); one for all, or for some tables their own
    lambda_max      the scale that every table starts with; without it, the start costs `start_share` of epsilon
    lambda_step     an arithmetic progression of scales, as in the paper; without it, a geometric one: each scale is
                    `lambda_factor` of the one before
    first_share     TwoPhase: epsilon_1 / epsilon
    caution         a count below this part of its noise is taken for that part; 0 as in the paper
    pick            PickQueries aims at the average relative error (Definition 6), or at the worst cell
    target          stop as soon as the noisy answers say that relative errors are small enough

Departs from the paper: nothing is derived from the exact number of rows, which is private when rows come and go. An
amount may be a share of a declared number of people, or of a noisy one that is paid for (`people_epsilon`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import partial
from typing import Any, Final, Literal, get_args

from hushcube.errors import BadInput, PrivacyError
from hushcube.model.privacy import exact_number
from hushcube.text import short

SMALLEST: Final = Fraction(1, 10**9)
LARGEST: Final = Fraction(10**15)  # noise of a larger scale would not fit 64-bit integers
Pick = Literal["average", "worst"]
PICKS: Final[tuple[Pick, ...]] = get_args(Pick)
OTHERS: Final = "others"
"""The word of all tables whose sanity bounds are not given."""
MOST_FACTOR: Final = Fraction(999_999, 1_000_000)
MOST_PEOPLE: Final = 2**34  # as many rows as can be measured


@dataclass(frozen=True)
class Amount:
    """A positive number, or a share of the people.

    >>> Amount.parse("500", "sanity_bound").of(None)
    Fraction(500, 1)
    >>> str(Amount.parse("0.01%", "sanity_bound")), Amount.parse("0.01%", "sanity_bound").of(1_000_000)
    ('0.01%', Fraction(100, 1))
    """

    value: Fraction
    is_share: bool = False

    @classmethod
    def parse(cls, raw: object, field: str) -> Amount:
        """Read `500`, or `0.01%` of the people."""
        if isinstance(raw, cls):
            return raw
        is_share = isinstance(raw, str) and raw.strip().endswith("%")
        body = raw.strip().removesuffix("%").strip() if isinstance(raw, str) else raw
        value = positive(body, field)
        return cls(value / 100 if is_share else value, is_share)

    def of(self, people: int | None) -> Fraction:
        """The number itself, given how many people there are."""
        if not self.is_share:
            return self.value
        if people is None:
            raise BadInput("people", "is not given, but an amount is a share of it", "declare the number of people")
        return self.value * people

    def settled(self, people: int | None) -> Amount:
        """The same as a plain number."""
        return Amount(self.of(people))

    def __str__(self) -> str:
        return f"{_decimal(self.value * 100)}%" if self.is_share else _decimal(self.value)


@dataclass(frozen=True)
class SanityBound:
    """Sanity bounds of their own for some tables, by the words of the workload, or for queries, by their names.

    >>> bound = SanityBound.parse("20; age*sex=0.1%; 3-way=100", "sanity_bound")
    >>> print(bound)
    20;age*sex=0.1%;3-way=100
    >>> bound == SanityBound.parse({"others": 20, "age*sex": "0.1%", "3-way": 100}, "sanity_bound")
    True
    """

    others: Amount | None
    own: tuple[tuple[str, Amount], ...]

    @classmethod
    def parse(cls, raw: object, field: str) -> Amount | SanityBound:
        """Read one amount for all, or a text or a mapping with the bounds of some tables, and one for all others."""
        if isinstance(raw, cls):
            return raw
        if isinstance(raw, str) and ("=" in raw or ";" in raw):
            parts = [part.rpartition("=") for part in raw.split(";")]
            given = [(word.strip() if equals else OTHERS, amount) for word, equals, amount in parts]
        elif isinstance(raw, Mapping):
            given = [(str(word).strip(), amount) for word, amount in raw.items()]
        else:
            return Amount.parse(raw, field)
        words = [word for word, _ in given]
        if twice := next((word for word in words if words.count(word) > 1), None):
            raise BadInput(
                field, f"{short(twice)} is given twice", "give one bound for each table, and one for the others"
            )
        read = {word: Amount.parse(amount, field) for word, amount in given}
        others = read.pop(OTHERS, None)
        return cls(others, tuple(read.items())) if read or others is None else others

    @property
    def amounts(self) -> tuple[Amount, ...]:
        """All of them."""
        return (*(() if self.others is None else (self.others,)), *(amount for _, amount in self.own))

    @property
    def is_share(self) -> bool:
        """Whether one of them is a share of the people."""
        return any(amount.is_share for amount in self.amounts)

    @property
    def value(self) -> Fraction:
        """There is none for all tables: whoever asks for it takes one number."""
        raise BadInput(
            "sanity_bound", "tables have bounds of their own, and one number is needed here", "give a number"
        )

    def settled(self, people: int | None) -> SanityBound:
        """The same with plain numbers."""
        others = None if self.others is None else self.others.settled(people)
        return SanityBound(others, tuple((word, amount.settled(people)) for word, amount in self.own))

    def __str__(self) -> str:
        others = [] if self.others is None else [str(self.others)]
        return ";".join([*others, *(f"{word}={amount}" for word, amount in self.own)])


def positive(raw: object, field: str) -> Fraction:
    """A positive number within reason, with the meaning its decimal digits have."""
    value = _number(raw, field)
    if value <= 0:
        raise BadInput(field, "must be above zero", "give a positive number")
    if not SMALLEST <= value <= LARGEST:
        problem = f"is not between {float(SMALLEST):g} and {float(LARGEST):g}"
        raise BadInput(field, problem, "give a number between them")
    return value


def share(raw: object, field: str, *, or_zero: bool = False) -> Fraction:
    """A number between 0 and 1, both excluded unless zero is allowed."""
    if or_zero and _number(raw, field) == 0:
        return Fraction(0)
    value = positive(raw, field)
    if value >= 1:
        raise BadInput(field, "must be below 1", "give a number between 0 and 1, such as 0.05")
    return value


def _number(raw: object, field: str) -> Fraction:
    try:
        return exact_number(field, raw)
    except PrivacyError as problem:
        raise BadInput(field, problem.problem, problem.fix) from None


def _decimal(value: Fraction) -> str:
    """Digits where they are exact, a ratio elsewhere."""
    text = format(float(value), ".15g")
    return text if Fraction(text) == value else str(value)


@dataclass(frozen=True)
class RelativeTarget:
    """Cells of at least `above` people shall be off by no more than `relative_error` of their count, on average."""

    relative_error: Fraction
    above: Amount


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The parameters; `Rule.of` reads and checks what a user gives."""

    sanity_bound: Amount | SanityBound | None = None
    pick: Pick = "average"
    lambda_max: Amount | None = None
    start_share: Fraction = Fraction(1, 20)
    lambda_step: Amount | None = None
    lambda_factor: Fraction = Fraction(99, 100)
    first_share: Fraction = Fraction(7, 100)
    caution: Fraction = Fraction(1, 10)
    people: int | None = None
    people_epsilon: Fraction | None = None
    target: RelativeTarget | None = None

    @classmethod
    def of(cls, *, relative_error: object = None, above: object = None, **given: object) -> Rule:
        """Read texts or numbers; what is None keeps its default."""
        read: dict[str, Any] = {name: raw for name, raw in given.items() if raw is not None}
        read |= {name: _READERS[name](raw, name) for name, raw in read.items() if name in _READERS}
        if (relative_error is None) != (above is None):
            missing = "above" if above is None else "relative_error"
            fix = "give both, for example `relative_error=0.1` and `above=500`"
            raise BadInput(missing, "is not given, but the other half of the target is", fix)
        if relative_error is not None:
            read["target"] = RelativeTarget(positive(relative_error, "relative_error"), Amount.parse(above, "above"))
            read.setdefault("sanity_bound", read["target"].above)
        largest, step = read.get("lambda_max"), read.get("lambda_step")
        if largest and step and largest.is_share == step.is_share and step.value >= largest.value:
            raise step_too_large()
        return cls(**read)

    def __post_init__(self) -> None:
        if self.pick not in PICKS:
            raise BadInput("pick", f"{self.pick!r} is unknown", "choose average or worst")
        people = self.people
        if people is not None and (isinstance(people, bool) or not isinstance(people, int) or people < 1):
            raise BadInput("people", "is not a whole number of at least 1", "declare how many people there are")
        if people is not None and people > MOST_PEOPLE:
            raise BadInput("people", "is more than 2^34", "release parts of the data separately")
        if people is not None and self.people_epsilon is not None:
            problem = "cannot be combined with a declared number of people"
            raise BadInput("people_epsilon", problem, "give one of the two")
        if self.shares and people is None and self.people_epsilon is None:
            fix = (
                "give `people` if their number is public, `people_epsilon` to pay for a noisy count, or a plain number"
            )
            raise BadInput(self.shares[0], "is a share of the people, whose number is not declared", fix)
        if self.people_epsilon is not None and not self.shares:
            raise BadInput("people_epsilon", "nothing is a share of the people", "leave it out: nothing needs a count")
        if self.lambda_factor > MOST_FACTOR:
            raise BadInput("lambda_factor", f"is above {float(MOST_FACTOR)}", "give a smaller factor, such as 0.99")

    @property
    def shares(self) -> list[str]:
        """The amounts that are shares of the people."""
        above = {"above": self.target.above} if self.target is not None else {}
        return [name for name, amount in (self._amounts | above).items() if amount.is_share]

    @property
    def _amounts(self) -> dict[str, Amount | SanityBound]:
        named = {name: getattr(self, name) for name in ("sanity_bound", "lambda_max", "lambda_step")}
        return {name: amount for name, amount in named.items() if amount is not None}

    def settled(self, people: int | None = None) -> Rule:
        """The rule with plain numbers, for a declared or noisy number of people."""
        people = self.people if people is None else people
        plain: dict[str, Any] = {name: amount.settled(people) for name, amount in self._amounts.items()}
        target = self.target and replace(self.target, above=self.target.above.settled(people))
        return replace(self, **plain, people=people, people_epsilon=None, target=target)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form; numbers as exact texts."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "target"}
        if self.target is not None:
            given |= {"relative_error": self.target.relative_error, "above": self.target.above}
        exact = {
            name: str(value) for name, value in given.items() if isinstance(value, Amount | SanityBound | Fraction)
        }
        return {name: exact.get(name, value) for name, value in given.items() if value is not None}

    @classmethod
    def from_dict(cls, raw: Any) -> Rule:
        """Read the JSON form."""
        known = {field.name for field in fields(cls)} - {"target"} | {"relative_error", "above"}
        if not isinstance(raw, Mapping) or not raw.keys() <= known:
            raise ValueError
        return cls.of(**raw)


_READERS: Final[Mapping[str, Callable[[object, str], object]]] = {
    "sanity_bound": SanityBound.parse,
    **dict.fromkeys(("lambda_max", "lambda_step"), Amount.parse),
    **dict.fromkeys(("start_share", "lambda_factor", "first_share"), share),
    "caution": partial(share, or_zero=True),
    "people_epsilon": positive,
}


def step_too_large() -> BadInput:
    """The error for an arithmetic progression that would end with its first step."""
    fix = "give a step well below `lambda_max`, such as a hundredth of it, or none"
    return BadInput("lambda_step", "is not below `lambda_max`: not a single step could be taken", fix)
