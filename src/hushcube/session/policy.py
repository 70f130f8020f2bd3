"""What is expected of the questions to come: how far ahead a step looks, and how much it may spend.

A residual space that later questions share is worth more than this question needs of it. If n_B questions will use the
space B, this one among them, what it pays for B is shared by n_B; the step that is cheapest for all of them together
raises B in proportion to sqrt(n_B), the proportion in which a plan that knew them all would   [docs/maths.md, 7].

    n_B = 1 + M share_B          M: how many more questions like this one the rest of the budget could pay for

share_B is the share of the expected questions that contain B. Unless they are declared, a later question is taken to
have as many attributes as this one, k of the schema's d, all choices alike: share_B = C(d-|B|, k-|B|) / C(d, k).
Nothing of this depends on data, and with nothing left to spend it is the plain step: M = 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

import numpy as np

from hushcube.errors import BadInput
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.privacy import exact_number
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload

_LIKELIEST: Final = 32  # declared questions that a wider table is weighed against
_EXAMPLE: Final = "give a share of the account's total, from 0 to 1"


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Declared when a session is opened; public, and the same for every question.

    >>> Policy(largest="0.25").largest
    Fraction(1, 4)
    """

    expected: tuple[str, ...] = ()
    """Workload words, with weights, for the questions that are likely to come."""
    kept: Fraction = field(default=Fraction(0))
    """The share of the account's total that the session leaves unspent."""
    largest: Fraction = field(default=Fraction(1))
    """The largest share of the account's total that one question may be charged."""
    ahead: bool = True
    """Whether steps look ahead at all, or measure as little as each question needs."""

    def __post_init__(self) -> None:
        for name in ("kept", "largest"):
            share = exact_number(name, getattr(self, name), BadInput)
            if not 0 <= share <= 1 or (name == "largest" and share == 0) or (name == "kept" and share == 1):
                raise BadInput(name, f"{float(share):g} is no such share", _EXAMPLE)
            object.__setattr__(self, name, share)
        words = (self.expected,) if isinstance(self.expected, str) else tuple(self.expected)
        object.__setattr__(self, "expected", words)
        if not isinstance(self.ahead, bool):
            raise BadInput("ahead", "is neither true nor false", "leave it out")

    def allowed(self, total: Fraction, left: Fraction) -> Fraction:
        """What one question may be charged."""
        return min(self.largest * total, self.left(total, left))

    def left(self, total: Fraction, left: Fraction) -> Fraction:
        """What all later questions together may be charged."""
        return max(left - self.kept * total, Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        shares = {"kept": str(self.kept), "largest": str(self.largest)}
        return {"expected": list(self.expected), **shares, "ahead": self.ahead}

    @classmethod
    def from_dict(cls, raw: Any) -> Policy:
        """Read the JSON form."""
        if not isinstance(raw, Mapping) or not raw.keys() <= {"expected", "kept", "largest", "ahead"}:
            raise BadInput("policy", "is not a policy", "give expected, kept, largest, ahead")
        return cls(**raw)


class Outlook:
    """How many questions will use a residual space, under a policy and for a schema."""

    def __init__(self, policy: Policy, schema: Schema) -> None:
        self.looks = policy.ahead
        self._attributes = sum(n > 1 for n in schema.sizes)
        self._expected: dict[Marginal, float] = {}
        if policy.expected:
            asked = Workload.parse(policy.expected, schema)
            if asked.forms:
                raise BadInput("expected", "ranges and prefixes are no questions of a session", "name tables")
            whole = math.fsum(asked.weights)
            self._expected = {m: w / whole for m, w in zip(asked.marginals, asked.weights, strict=True)}

    def uses(self, spaces: tuple[Marginal, ...], more: float) -> Floats:
        """n_B for each space of a question, if `more` questions like it may follow."""
        if not self.looks or more <= 0:
            return np.ones(len(spaces))
        k = max(map(len, spaces))
        return 1 + more * np.array([self._share(B, k) for B in spaces])

    @property
    def is_declared(self) -> bool:
        """Whether the questions to come are declared."""
        return bool(self._expected)

    def chance(self, question: Marginal, more: float) -> float:
        """How likely another question with as many attributes is asked at all, if `more` may follow, all alike."""
        if not self.looks or more <= 0:
            return 0.0
        k = min(len(question), self._attributes)  # attributes of one value tell questions apart in name only
        return -math.expm1(-more / math.comb(self._attributes, k))

    def chances(self, more: float) -> dict[Marginal, float]:
        """Of the likeliest declared questions, how likely each is asked at all, if `more` questions may follow."""
        if not self.looks or more <= 0:
            return {}
        likeliest = sorted(self._expected.items(), key=lambda item: -item[1])[:_LIKELIEST]
        return {question: -math.expm1(-more * share) for question, share in likeliest}

    def _share(self, space: Marginal, k: int) -> float:
        if self._expected:
            return math.fsum(share for own, share in self._expected.items() if set(space) <= set(own))
        return math.prod((k - j) / (self._attributes - j) for j in range(len(space)))
