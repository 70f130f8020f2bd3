"""Who asks: streams of questions over 20 and 30 attributes, repeatable, and made without data.

uniform       tables of one to three attributes, all alike
Zipf          the same, but attributes are asked for in proportion to 1 / rank
drill-down    paths: one attribute, then a second, a third and a fourth; they too in proportion to 1 / rank
all 2-way     every table of two attributes in random order, and then random ones of three
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np

from hushcube.model.arrays import Floats, Marginal

SCHEMAS = {
    "20 binary": (2,) * 20,
    "30 mixed": (2,) * 10 + (3, 3, 3, 4, 4, 4, 5, 5, 5, 6, 8, 10, 12, 15, 16, 20, 25, 40, 60, 100),
}
"""The sizes of the attributes."""
Stream = Callable[[int, int, np.random.Generator], list[Marginal]]
"""Of so many attributes, so many questions."""


def uniform(attributes: int, questions: int, rng: np.random.Generator) -> list[Marginal]:
    """Each table has one to three attributes."""
    return _tables(np.full(attributes, 1 / attributes), questions, rng)


def zipf(attributes: int, questions: int, rng: np.random.Generator) -> list[Marginal]:
    """Some attributes are asked for much more often."""
    return _tables(_popularity(attributes, rng), questions, rng)


def drill_down(attributes: int, questions: int, rng: np.random.Generator) -> list[Marginal]:
    """Down to four attributes, one at a time, and again from the top."""
    popularity, asked = _popularity(attributes, rng), list[Marginal]()
    while len(asked) < questions:
        path = rng.choice(attributes, 4, replace=False, p=popularity).tolist()
        asked += [tuple(sorted(path[:depth])) for depth in range(1, 5)]
    return asked[:questions]


def all_pairs(attributes: int, questions: int, rng: np.random.Generator) -> list[Marginal]:
    """A survey of all pairs, and then some triples."""
    pairs = [tuple(map(int, pair)) for pair in rng.permutation(list(combinations(range(attributes), 2)))]
    more = max(questions - len(pairs), 0)
    triples = [tuple(sorted(rng.choice(attributes, 3, replace=False).tolist())) for _ in range(more)]
    return (pairs + triples)[:questions]


def _tables(popularity: Floats, questions: int, rng: np.random.Generator) -> list[Marginal]:
    d = len(popularity)
    sizes = rng.integers(1, 4, questions).tolist()
    return [tuple(sorted(rng.choice(d, k, replace=False, p=popularity).tolist())) for k in sizes]


def _popularity(attributes: int, rng: np.random.Generator) -> Floats:
    """In proportion to 1 / rank; which attribute has which rank is drawn."""
    weights = 1 / (1 + rng.permutation(attributes))
    return np.asarray(weights / weights.sum())


STREAMS: dict[str, Stream] = {"uniform": uniform, "Zipf": zipf, "drill-down": drill_down, "all 2-way": all_pairs}
