"""The search: covers, designs and random budgets as starts, then small changes of the best, all descended in batches.

Repeatable: the seed is public, and effort counts rounds, not seconds.

Block designs: few sets of points such that every pair, or every triple, lies in one of them.

A design on v points becomes a support by giving each attribute a point: attributes that share a point stay together,
points without attributes vanish. Good supports for pure epsilon look like these.              [docs/maths.md, 8]

    AG(2, q)     affine plane: q² points, q² + q lines of q points; every pair on one line
    PG(2, q)     projective plane: q² + q + 1 points, as many lines of q + 1 points
    planes(n)    planes of AG(n, 2): 2^n points, quadruples {a, b, c, a+b+c}; every triple in one (Steiner S(3, 4, 2^n))
    halves(n)    hyperplanes of AG(n, 2): 2(2^n - 1) sets of 2^(n-1) points; every triple in 2^(n-2) - 1
    PG(n, 2)     hyperplanes: 2^(n+1) - 1 points, as many sets of 2^n - 1; every n points in one
    groups(v, k) all choices of k of v points
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations, islice, product
from typing import Final

import numpy as np

from hushcube.designs.request import MAX_TABLE_CELLS, Effort, Request
from hushcube.model.arrays import Marginal
from hushcube.strategies.search.supports import GreedyCovers, Support, SupportProblem, optimise_own_tables


@dataclass(frozen=True)
class BlockDesign:
    """Blocks of points; every `strength` points lie in some block."""

    name: str
    points: int
    strength: int
    blocks: tuple[tuple[int, ...], ...]


@cache
def known_designs(strength: int, most_points: int) -> tuple[BlockDesign, ...]:
    """The designs of at least that strength on at most that many points.

    >>> [(d.name, len(d.blocks)) for d in known_designs(3, 8)][-2:]
    [('planes(3)', 14), ('halves(3)', 14)]
    """
    return tuple(d for d in _all(most_points) if d.strength >= strength)


def _all(most_points: int) -> Iterator[BlockDesign]:
    for v in range(3, 11):
        for k in range(2, min(v, 6)):
            if math.comb(v, k) <= 120 and v <= most_points:
                yield BlockDesign(f"groups({v}, {k})", v, k, tuple(combinations(range(v), k)))
    for q in (2, 3, 4, 5, 7):
        if q * q <= most_points:
            yield affine_plane(q)
        if q * q + q + 1 <= most_points:
            yield projective_plane(q)
    for n in (3, 4):
        if 2**n <= most_points:
            quadruples = {tuple(sorted((a, b, c, a ^ b ^ c))) for a, b, c in combinations(range(2**n), 3)}
            yield BlockDesign(f"planes({n})", 2**n, 3, tuple(sorted(quadruples)))
            yield BlockDesign(f"halves({n})", 2**n, 3, tuple(_halves(n)))
    for n in (3, 4):
        if 2 ** (n + 1) - 1 <= most_points:
            yield BlockDesign(f"PG({n}, 2)", 2 ** (n + 1) - 1, n, tuple(_hyperplanes(n)))


def affine_plane(q: int) -> BlockDesign:
    """Lines y = m x + b and x = c over the field of q elements.

    >>> plane = affine_plane(4)
    >>> plane.points, len(plane.blocks), sorted({len(set(a) & set(b)) for a, b in combinations(plane.blocks, 2)})
    (16, 20, [0, 1])
    """
    add, times = _field(q)
    sloped = [tuple(sorted(x * q + add(times(m, x), b) for x in range(q))) for m, b in product(range(q), repeat=2)]
    upright = [tuple(c * q + y for y in range(q)) for c in range(q)]
    return BlockDesign(f"AG(2, {q})", q * q, 2, tuple(sloped + upright))


def projective_plane(q: int) -> BlockDesign:
    """The affine plane with a point at infinity on each class of parallel lines, and the line of these points."""
    plane = affine_plane(q)
    classes = [m for m in range(q) for _ in range(q)] + [q] * q
    lines = [(*line, q * q + c) for line, c in zip(plane.blocks, classes, strict=True)]
    infinite = tuple(q * q + c for c in range(q + 1))
    return BlockDesign(f"PG(2, {q})", q * q + q + 1, 2, (*lines, infinite))


def _halves(n: int) -> Iterator[tuple[int, ...]]:
    for mask in range(1, 2**n):
        for parity in (0, 1):
            yield tuple(x for x in range(2**n) if (x & mask).bit_count() % 2 == parity)


def _hyperplanes(n: int) -> Iterator[tuple[int, ...]]:
    for mask in range(1, 2 ** (n + 1)):
        yield tuple(x - 1 for x in range(1, 2 ** (n + 1)) if (x & mask).bit_count() % 2 == 0)


def _field(q: int) -> tuple[Callable[[int, int], int], Callable[[int, int], int]]:
    """Addition and multiplication of the field of q elements, q prime or 4."""
    if q == 4:  # GF(4) = GF(2)[w] / (w² + w + 1), elements as bit pairs
        table = ((0, 0, 0, 0), (0, 1, 2, 3), (0, 2, 3, 1), (0, 3, 1, 2))
        return (lambda a, b: a ^ b), (lambda a, b: table[a][b])
    return (lambda a, b: (a + b) % q), (lambda a, b: a * b % q)


@dataclass(frozen=True)
class _Stage:
    """Steps of descent, and the share of supports that go on after them."""

    steps: int
    kept: float = 1.0


@dataclass(frozen=True)
class _Effort:
    starts: int
    islands: int
    rounds: int
    kept: int
    variants: int


_EFFORTS: Final[dict[Effort, _Effort]] = {
    "low": _Effort(starts=60, islands=1, rounds=5, kept=6, variants=16),
    "default": _Effort(starts=300, islands=16, rounds=20, kept=4, variants=32),
    "high": _Effort(starts=1000, islands=64, rounds=60, kept=6, variants=32),
}
_FEW_ATTRIBUTES: Final = 5
"""Up to here the starts nearly exhaust the supports."""
_MOST_CANDIDATES: Final = 1024
_MOST_COVERING: Final = 4096
"""Tables from which covers are chosen; beyond `_MOST_CANDIDATES` only a few covers."""
_THRESHOLDS: Final = 24
"""Magnifications for which covers are tried."""
_PATIENCE: Final = 12
"""Rounds without progress after which a pool has settled."""
_ISLAND_NUMBERS: Final = 20_000
"""Islands times tables times spaces at the default effort: what half a minute allows."""
_MOST_CHANGED: Final = 2**16
"""Tables times spaces of a support beyond which it is only descended on: small changes no longer pay."""
_ROUND_NUMBERS: Final = 2**20
"""Numbers descended on in one round: large problems try fewer variants of each support."""
_STAGES: Final = (_Stage(15, kept=1 / 4), _Stage(60))
_FIRST_STAGES: Final = (_Stage(6, kept=1 / 8), _Stage(80))
_BATCH: Final = 256
_BATCH_NUMBERS: Final = 2**20
"""Numbers in one batch of matrices M: 8 MB, which stay in a cache."""
_MOST_NUMBERS: Final = 2**24
"""Spaces times tables of a workload: beyond, its own tables are measured."""


def search(request: Request, *, effort: Effort, seed: int) -> Support:
    """The best support found for a request under pure epsilon; of a large workload, only its own tables are tried.

    Never worse than those tables with closed-form budgets: a descent from there is always among the answers.
    """
    own = optimise_own_tables(request, steps=40)
    if len(request.spaces) * len(request.marginals) > _MOST_NUMBERS:
        return own
    problem = SupportProblem(request)
    random = np.random.default_rng(seed)
    level = _EFFORTS[effort]
    if len(problem.sizes) <= _FEW_ATTRIBUTES:
        level = replace(level, islands=1, rounds=min(level.rounds, 6), variants=8, starts=60)
    first = _best(_first(problem, request, level, random), level.islands * level.kept)
    islands = _islands(level, len(first[0].sets) * len(problem.k))
    settled = [_settle(problem, first[i::islands][: level.kept], level, random) for i in range(islands)]
    settled.append(_settle(problem, _apart(problem, request, level, random), level, random))
    pool = _best([s for island in settled for s in island], 2 * level.kept)
    pool = _settle(problem, pool, replace(level, rounds=3 * level.rounds), random)
    return _best([*_in_batches(problem, [(s.sets, np.log(s.budgets)) for s in pool], steps=400), *pool, own], 1)[0]


def _islands(level: _Effort, numbers: int) -> int:
    """How many pools evolve apart; supports with many tables or spaces take longer and get fewer."""
    affordable = _ISLAND_NUMBERS * level.islands // (16 * numbers)
    return min(level.islands, max(affordable, 3))


def _settle(problem: SupportProblem, pool: list[Support], level: _Effort, random: np.random.Generator) -> list[Support]:
    """Rounds of change until nothing has improved for a while."""
    if not pool or len(pool[0].sets) * len(problem.k) > _MOST_CHANGED:
        return pool
    idle = 0
    for _ in range(level.rounds):
        before = pool[0].error
        pool = _next(problem, pool, level, random)
        idle = 0 if pool[0].error < before * (1 - 1e-4) else idle + 1
        if idle == _PATIENCE:
            break
    return pool


def _next(problem: SupportProblem, pool: list[Support], level: _Effort, random: np.random.Generator) -> list[Support]:
    """One round: change, descend a little, descend the promising ones further, keep the best."""
    numbers = sum(len(s.sets) for s in pool) * len(problem.k)  # of one variant of each
    count = min(level.variants, max(1, _ROUND_NUMBERS // numbers))
    variants = [v for s in pool for v in _variants(s, problem, count, random)]
    return _best([*pool, *_in_stages(problem, variants, _STAGES)], level.kept)


def _first(problem: SupportProblem, request: Request, level: _Effort, random: np.random.Generator) -> list[Support]:
    """Supports to begin with: the workload's own tables, the full one, covers, random budgets on all, and designs."""
    sizes = problem.sizes
    d = len(sizes)
    marginals = [m for m in request.workload.marginals if m]
    supports: list[tuple[Marginal, ...]] = [request.workload.marginals]
    full = tuple(range(d))
    if np.prod(sizes) <= MAX_TABLE_CELLS:
        supports.append((full,))
    found: list[Support] = []
    if 2**d <= _MOST_CANDIDATES:
        candidates, chosen = _covers(problem, marginals, max(level.starts // _THRESHOLDS, 1), random)
        supports += chosen
        starts = np.log(random.random((level.starts, len(candidates))) + 1e-3)
        found += problem.optimise_shared(candidates, starts, steps=300)
    supports += _from_block_designs(max(map(len, marginals), default=0), d, sizes, level.starts, random)
    affordable = 8 * _ROUND_NUMBERS // len(problem.k)
    within = [s for s, tables in zip(supports, accumulate(map(len, supports)), strict=True) if tables <= affordable]
    return found + _in_stages(problem, _evenly(within or supports[:1]), _FIRST_STAGES)


def _evenly(supports: Sequence[tuple[Marginal, ...]]) -> list[tuple[tuple[Marginal, ...], np.ndarray]]:
    """Distinct supports with equal budgets."""
    return [(s, np.zeros(len(s))) for s in dict.fromkeys(supports)]


def _apart(problem: SupportProblem, request: Request, level: _Effort, random: np.random.Generator) -> list[Support]:
    """A few covers where there are too many tables for more: among designs they would crowd out what ends up better."""
    if not _MOST_CANDIDATES < 2 ** len(problem.sizes) <= _MOST_COVERING:
        return []
    _, chosen = _covers(problem, [m for m in request.workload.marginals if m], 2, random)
    return _best(_in_stages(problem, _evenly(chosen), _FIRST_STAGES), level.kept)


def _covers(
    problem: SupportProblem, marginals: Sequence[Marginal], repeats: int, random: np.random.Generator
) -> tuple[list[Marginal], list[tuple[Marginal, ...]]]:
    """All tables, and covers by them for every threshold."""
    d = len(problem.sizes)
    candidates = [c for k in range(1, d + 1) for c in combinations(range(d), k)]
    covers = GreedyCovers(marginals, candidates, problem.sizes)
    thresholds = covers.thresholds(_THRESHOLDS).tolist()
    return candidates, [c for threshold in thresholds for c in covers.covers(threshold, repeats, random)]


def _from_block_designs(
    strength: int, d: int, sizes: np.ndarray, repeats: int, random: np.random.Generator
) -> Iterator[tuple[Marginal, ...]]:
    """Designs with attributes given to points at random, as evenly as their number allows."""
    designs = known_designs(strength, 2 * d)
    for design in designs:
        for _ in range(max(repeats // max(len(designs), 1), 4)):
            order = random.permutation(d)
            point = np.empty(d, dtype=np.int64)
            point[order] = np.resize(random.permutation(design.points), d)
            blocks = {tuple(i for i in range(d) if point[i] in block) for block in design.blocks}
            chosen = tuple(sorted(b for b in blocks if b and not any(set(b) < set(c) for c in blocks)))
            if max(np.prod(sizes[list(b)]) for b in chosen) <= MAX_TABLE_CELLS:
                yield chosen


def _variants(
    support: Support, problem: SupportProblem, count: int, random: np.random.Generator
) -> Iterator[tuple[tuple[Marginal, ...], np.ndarray]]:
    """Small changes of a support: a table more, an attribute added or dropped, two tables merged."""
    d, n = len(problem.sizes), len(support.sets)
    sizes = problem.sizes.tolist()
    logs = np.log(support.budgets)
    start, level = dict(zip(support.sets, logs.tolist(), strict=True)), float(np.median(logs))
    changes = random.integers(1, 4, count).tolist()
    dice = iter(random.integers(0, (4, n, n, d), (sum(changes), 4)).tolist())
    for many in changes:
        tables = start.copy()
        for kind, first, second, attribute in islice(dice, many):
            victim, other = support.sets[first], support.sets[second]
            if kind == 0:
                new = tuple(sorted(random.permutation(d)[: int(random.integers(1, min(d, 6) + 1))].tolist()))
            elif kind == 1:
                new = tuple(sorted({*victim, *other}))
                tables.pop(other, None)
            else:
                new = tuple(sorted({*victim} ^ {attribute}))
            if kind in (1, 2):
                tables.pop(victim, None)
            if new and math.prod(sizes[i] for i in new) <= MAX_TABLE_CELLS:
                tables.setdefault(new, level)
        yield tuple(tables), np.fromiter(tables.values(), float, len(tables))


def _in_stages(
    problem: SupportProblem, supports: Sequence[tuple[tuple[Marginal, ...], np.ndarray]], stages: Sequence[_Stage]
) -> list[Support]:
    """Descend from all supports a little, and from the promising ones further."""
    for stage in stages:
        descended = _in_batches(problem, supports, steps=stage.steps)
        supports = [(s.sets, np.log(s.budgets)) for s in _best(descended, max(int(len(descended) * stage.kept), 1))]
    return descended


def _in_batches(
    problem: SupportProblem, supports: Sequence[tuple[tuple[Marginal, ...], np.ndarray]], *, steps: int
) -> list[Support]:
    """Descend from all supports, as many at once as a cache holds."""
    supports = sorted((s for s in supports if s[0]), key=lambda s: len(s[0]))
    result: list[Support] = []
    at = 0
    while at < len(supports):
        width = len(supports[min(at + _BATCH - 1, len(supports) - 1)][0])
        batch = supports[at : at + max(1, min(_BATCH, _BATCH_NUMBERS // (width * len(problem.k))))]
        at += len(batch)
        result += problem.optimise([s for s, _ in batch], [t for _, t in batch], steps=steps)
    return result


def _best(supports: Sequence[Support], count: int) -> list[Support]:
    """The best supports with distinct errors: equal ones are mostly relabelled, and would crowd out others."""
    distinct: dict[str, Support] = {}
    for support in sorted(supports, key=lambda s: s.error):
        distinct.setdefault(f"{support.error:.5g}", support)
    return list(distinct.values())[:count]
