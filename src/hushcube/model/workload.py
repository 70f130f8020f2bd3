"""The marginals asked for, each with a weight, in words that are parsed and printed back identically.

2-way                all marginals of exactly two attributes; 0-way is the total
<=3-way              all of at most three, the total included
1..3-way             all of one to three
cube                 all
star:2               all 2-way, and the first half (rounded down) of the 3-way in lexicographic order
anchored:2:sex       all 2-way, and the 3-way that contain sex
age*sex,education    these
WORD=2.5             the same with weight 2.5; a later word sets the weight of a marginal named before
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice
from typing import Final

from hushcube.errors import WorkloadError
from hushcube.model.marginal import Marginal
from hushcube.model.schema import Schema

MAX_MARGINALS: Final = 1_000_000
_EXAMPLE: Final = "write for example `2-way`, `<=3-way`, `1..3-way`, `cube`, `star:2`, `anchored:2:sex` or `age*sex`"
_WAYS: Final = re.compile(r"(?:(?P<most><=)|(?P<low>\d{1,4})\.\.)?(?P<high>\d{1,4})-way")
_STAR: Final = re.compile(r"star:(?P<k>\d{1,4})")
_ANCHORED: Final = re.compile(r"anchored:(?P<k>\d{1,4}):(?P<name>.+)")


@dataclass(frozen=True)
class Workload:
    """Marginals of a schema in the order asked for, with positive weights.

    >>> from hushcube.model.attribute import Attribute
    >>> schema = Schema(tuple(Attribute(name=n, codes=2) for n in "abc"))
    >>> workload = Workload.parse(["2-way", "a*b=4"], schema)
    >>> str(workload), workload.marginals, workload.weights
    ('2-way,a*b=4', ((0, 1), (0, 2), (1, 2)), (4.0, 1.0, 1.0))
    """

    schema: Schema
    words: tuple[str, ...]
    marginals: tuple[Marginal, ...]
    weights: tuple[float, ...]

    @classmethod
    def parse(cls, words: str | Sequence[str], schema: Schema) -> Workload:
        """Read workload words: one text, or several (each may hold several, separated by commas)."""
        texts = [words] if isinstance(words, str) else list(words)
        if not all(isinstance(text, str) for text in texts):
            raise WorkloadError("workload", "must be words", _EXAMPLE)
        split = [word.strip() for text in texts for word in text.split(",")]
        weights: dict[Marginal, float] = {}
        printed = []
        for word in split:
            if not word:
                raise WorkloadError("workload", "a word is empty", _EXAMPLE)
            body, weight, text = _split_weight(word)
            for marginal in _expand(body, schema):
                weights[marginal] = weight
                if len(weights) > MAX_MARGINALS:
                    raise _too_many()
            printed.append(text)
        if not weights:
            raise WorkloadError("workload", "it asks for no marginal", _EXAMPLE)
        return cls(schema, tuple(printed), tuple(weights), tuple(weights.values()))

    def __str__(self) -> str:
        return ",".join(self.words)

    def __len__(self) -> int:
        return len(self.marginals)

    @cached_property
    def cells(self) -> int:
        """How many cells are asked for, as a Python integer that cannot overflow."""
        return sum(map(self.schema.cells, self.marginals))


def _split_weight(word: str) -> tuple[str, float, str]:
    body, equals, number = (
        (part.strip() for part in word.rpartition("=")) if re.search(r"[^<]=", word) else (word, "", "")
    )
    body = "*".join(part.strip() for part in body.split("*"))
    if not equals:
        return body, 1.0, body
    try:
        weight = float(number)
    except ValueError:
        weight = math.nan
    if not (0 < weight < math.inf):
        raise WorkloadError(
            "workload", f"the weight of {body!r} is not a positive number", "write for example `age*sex=2.5`"
        )
    return body, weight, f"{body}={number}"


def _expand(word: str, schema: Schema) -> Iterator[Marginal]:
    d = len(schema)
    if word == "cube":
        return _sizes(range(d + 1), d)
    if match := _WAYS.fullmatch(word):
        high = int(match["high"])
        low = 0 if match["most"] else high if match["low"] is None else int(match["low"])
        if low > high:
            raise WorkloadError("workload", f"{word!r} runs backwards", f"write `{high}..{low}-way`")
        _check_size(word, high, d)
        return _sizes(range(low, high + 1), d)
    if match := _STAR.fullmatch(word):
        k = int(match["k"])
        _check_size(word, k + 1, d)
        return chain(_sizes([k], d), islice(_sizes([k + 1], d), math.comb(d, k + 1) // 2))
    if match := _ANCHORED.fullmatch(word):
        k, anchor = int(match["k"]), schema.position(match["name"].strip())
        _check_size(word, k + 1, d)
        return chain(_sizes([k], d), (m for m in _sizes([k + 1], d) if anchor in m))
    names = word.split("*")
    if not all(names):
        raise WorkloadError("workload", f"{word!r} cannot be read", _EXAMPLE)
    return iter([schema.marginal(names)])


def _sizes(orders: Sequence[int], d: int) -> Iterator[Marginal]:
    if sum(math.comb(d, k) for k in orders) > MAX_MARGINALS:
        raise _too_many()
    return chain.from_iterable(combinations(range(d), k) for k in orders)


def _check_size(word: str, k: int, d: int) -> None:
    if k > d:
        raise WorkloadError("workload", f"{word!r} needs {k} attributes, the schema has {d}", "ask for fewer ways")


def _too_many() -> WorkloadError:
    return WorkloadError("workload", f"it asks for more than {MAX_MARGINALS:,} marginals", "ask for fewer ways")
