"""What the tests of adaptive methods share: subjects on small tables, paths from dense values, and exact costs."""

from fractions import Fraction
from itertools import combinations

import numpy as np

from helpers import Counts, adaptive, make_schema, random_codes
from hushcube import plan
from hushcube.designs import MatrixDesign
from hushcube.private.adaptive.paths import Path
from hushcube.private.adaptive.run import prepared
from hushcube.private.noise import SeededEntropy


def make_plan(sizes, words, rule, *, strategy="ireduct", epsilon=1, neighbours="add-remove", queries=None):
    return plan(
        make_schema(sizes),
        words,
        queries=None if queries is None else (None, queries),
        epsilon=epsilon,
        neighbours=neighbours,
        strategy=adaptive(strategy, **rule),
        recovery="none",
    ).count


def make_subject(sizes, words, rule, *, rows=60, seed=0, **rest):
    made = make_plan(sizes, words, rule, **rest)
    return prepared(made, Counts(made.schema, random_codes(sizes, rows, seed)), SeededEntropy(seed))


def path_of(dense):
    """The path with the given answers (levels, cells)."""
    dense = np.asarray(dense, np.int64)
    levels, cells = np.nonzero(dense[1:] != dense[:-1])
    return Path(dense[0], levels + 1, cells, dense[levels, cells], dense[levels + 1, cells])


def garbled(path, level, levels, seed):
    """The same path up to a level, and other answers beyond."""
    rng = np.random.default_rng(seed)
    dense = np.stack([path.at(at) for at in range(levels)])
    dense[level + 1 :] = rng.integers(-1000, 10_000, dense[level + 1 :].shape)
    return path_of(dense)


def exact_cost(start, rates):
    """What rates cost a row of data, from the definition: the largest change in L1, weighted by rates."""
    return max(_cost(start, rates, change) for change in changes_of(start.privacy))


def changes_of(privacy):
    """A person with several rows may also be replaced by one with fewer."""
    several = privacy.neighbours == "replace-one" and privacy.rows_per_person > 1
    return ("add-remove", "replace-one") if several else (privacy.neighbours,)


def _cost(start, rates, change):
    if not isinstance(start, MatrixDesign):
        pairs = zip(start.measured, rates.tolist(), strict=True)
        moved = [Fraction(r) for A, r in pairs if change == "add-remove" or any(start.schema.sizes[i] > 1 for i in A)]
        return (2 if change == "replace-one" else 1) * sum(moved, Fraction(0))
    S = start.rows.dense().astype(int).tolist()
    rows = [(row, Fraction(rate)) for row, rate in zip(S, rates.tolist(), strict=True) if np.isfinite(rate)]
    cells = range(start.rows.width)
    if change == "add-remove":
        return max(sum((rate * abs(row[c]) for row, rate in rows), Fraction(0)) for c in cells)
    pairs = combinations(cells, 2)
    return max((sum((rate * abs(row[a] - row[b]) for row, rate in rows), Fraction(0)) for a, b in pairs), default=0)
