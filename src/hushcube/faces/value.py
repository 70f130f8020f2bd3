"""What is asked of a face: which promise the tables keep, and how they are found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from hushcube.errors import BadInput
from hushcube.model.facts import Facts

Kind = Literal["consistent", "nonnegative", "integral"]
Norm = Literal["l2", "l1", "linf"]
Method = Literal["auto", "full-table", "local", "barak", "shift"]
Weights = Literal["equal", "deviation"]
Objective = Literal["max-coefficient", "total-coefficient", "max-marginal", "total-marginal"]

UNBIASED: Final = "unbiased"
NAMES: Final[dict[Kind, str]] = {"consistent": "consistent", "nonnegative": "nonnegative", "integral": "face-valid"}
"""What a face is called in a release. Only the face `face-valid` promises whole numbers."""
MOST_PEOPLE: Final = 10**8
"""Synthetic people of one face."""


@dataclass(frozen=True)
class FaceValue:
    """A face that is wanted.

    >>> FaceValue("integral").name
    'face-valid'
    """

    kind: Kind = "integral"
    norm: Norm = "l2"
    """The distance from the noisy tables that is least."""
    method: Method = "auto"
    weights: Weights = "equal"
    """Of the tables in l1, linf and barak: equal, or the reciprocals of the noise's standard deviations."""
    objective: Objective = "max-coefficient"
    """What barak's linear program minimises."""
    probability: float = 0.95
    """With which the shift leaves no negative cell."""
    facts: Facts | None = None
    rows: int | None = None
    """The number of synthetic people, where it is not that of the tables."""

    def __post_init__(self) -> None:
        for field, choices in (("kind", Kind), ("norm", Norm), ("method", Method), ("weights", Weights)):
            _check(field, getattr(self, field), get_args(choices))
        _check("objective", self.objective, get_args(Objective))
        if not 0 < self.probability < 1:
            raise BadInput("--probability", "is not between 0 and 1", "give a number such as 0.95")
        if self.rows is not None and (type(self.rows) is not int or not 1 <= self.rows <= MOST_PEOPLE):
            fix = f"give a whole number up to {MOST_PEOPLE:,}, or auto"
            raise BadInput("--rows", "is no number of people", fix)
        if self.rows is not None and self.facts:
            raise BadInput("--rows", "does not go with public facts", "leave it out: the facts are about all people")
        if self.kind == "consistent" and self.method != "auto":
            raise BadInput(
                "--method", "does not apply to `consistent`", "leave it out, or ask for nonnegative or integral"
            )
        if self.norm != "l2" and self.method not in ("auto", "local"):
            raise BadInput("--norm", f"{self.norm} is found by its own linear program", "leave --method out")
        if self.method == "shift" and self.kind == "integral":
            raise BadInput("--method", "shift gives no whole numbers", "ask for nonnegative, or use another method")
        if self.facts and self.kind == "consistent" and self.norm == "l2":
            raise BadInput("--facts", "plain least squares takes no public facts", "use nonnegative or integral, or l1")
        if self.facts and self.method in ("barak", "shift"):
            raise BadInput("--facts", f"{self.method} takes no public facts", "use the method full-table or local")

    @property
    def name(self) -> str:
        """What the face is called in a release."""
        return NAMES[self.kind]

    def to_dict(self) -> dict[str, Any]:
        """What was asked for, for the manifest."""
        chosen: dict[str, Any] = {"kind": self.kind, "norm": self.norm, "method": self.method}
        if self.norm != "l2" or self.method == "barak":
            chosen["weights"] = self.weights
        if self.method == "barak":
            chosen["objective"] = self.objective
        if self.method == "shift":
            chosen["probability"] = self.probability
        return chosen


_OPTIONS: Final = {"kind": "--face-value", "objective": "--barak-objective"}


def _check(field: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        option = _OPTIONS.get(field, f"--{field}")
        raise BadInput(option, f"{value!r} is unknown", f"choose {', '.join(choices[:-1])} or {choices[-1]}")
