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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, combinations, islice, product
from typing import Final

import numpy as np

from hushcube.designs.request import MAX_TABLE_CELLS, Effort, Request
from hushcube.model.arrays import Floats, Marginal
from hushcube.strategies.search.supports import (
    THRESHOLDS,
    Stage,
    Start,
    Support,
    SupportProblem,
    Tables,
    all_tables,
    covers_of,
    evenly,
    optimise_own_tables,
)


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
_FEW_ATTRIBUTES: Final = 5  # up to here the starts nearly exhaust the supports
_MOST_CANDIDATES: Final = 1024
"""Tables up to which covers and random budgets on all of them are among the starts; beyond, some covers are apart."""
_MOST_SHARED: Final = 2**15  # random budgets, of all tables together, at the beginning
_MOST_COVERED: Final = 1024  # marginals beyond which no covers are tried, where not all tables are candidates
_PATIENCE: Final = 12  # rounds without progress after which a pool has settled
_ISLAND_NUMBERS: Final = 20_000  # islands times tables times spaces at the default effort: what some seconds allow
_MOST_CHANGED: Final = 2**16
"""Tables times spaces of a support beyond which it is only descended on: small changes no longer pay."""
_ROUND_NUMBERS: Final = 2**20
"""Numbers descended on in one round of a pool: large problems try fewer variants of each support."""
_SWAPPED: Final = 0.3
"""How often two attributes change places in all tables, which changes of single tables hardly come to."""
_STAGES: Final = (Stage(15, kept=1 / 4), Stage(60))
_FIRST_STAGES: Final = (Stage(6, kept=1 / 8), Stage(80))
_BATCH_NUMBERS: Final = 2**20  # numbers in one batch of matrices M: 8 MB, which stay in a cache
_MOST_NUMBERS: Final = 2**24  # spaces times tables of a workload: beyond, its own tables are measured


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
    first = _best([own, *_first(problem, request, level, random)], level.islands * level.kept)
    affordable = _ISLAND_NUMBERS * level.islands // (16 * len(first[0].sets) * len(problem.k))
    islands = min(level.islands, max(affordable, 3))  # large supports take longer and get fewer
    pools = [first[i::islands][: level.kept] for i in range(islands)]
    pools = _evolve(problem, [*pools, _apart(problem, request, level, random)], level, random)
    pool = _best([s for pool in pools for s in pool], 2 * level.kept)
    [pool] = _evolve(problem, [pool], replace(level, rounds=3 * level.rounds), random)
    [polished] = _race(problem, [[s.start for s in pool]], (Stage(400),))
    return _best([*polished, *pool, own], 1)[0]


def _evolve(
    problem: SupportProblem, pools: Sequence[list[Support]], level: _Effort, random: np.random.Generator
) -> list[list[Support]]:
    """Rounds of change, descent and choice of the best, side by side in each pool until it has settled."""
    pools = list(pools)
    idle = [0 if p and len(p[0].sets) * len(problem.k) <= _MOST_CHANGED else _PATIENCE for p in pools]
    for _ in range(level.rounds):
        live = [i for i, rounds in enumerate(idle) if rounds < _PATIENCE]
        changed = [list(_changed(problem, pools[i], level, random)) for i in live]
        for i, found in zip(live, _race(problem, changed, _STAGES), strict=True):
            before, pools[i] = pools[i][0].error, _best([*pools[i], *found], level.kept)
            idle[i] = 0 if pools[i][0].error < before * (1 - 1e-4) else idle[i] + 1
    return pools


def _first(problem: SupportProblem, request: Request, level: _Effort, random: np.random.Generator) -> list[Support]:
    """Supports to begin with: the full table, covers, random budgets on all, and designs."""
    sizes, marginals = problem.sizes, [m for m in request.workload.marginals if m]
    groups: list[list[Tables]] = [[(tuple(range(len(sizes))),)]] if sizes.prod() <= MAX_TABLE_CELLS else []
    found: list[Support] = []
    if 2 ** len(sizes) <= _MOST_CANDIDATES:
        groups += covers_of(marginals, sizes, max(level.starts // THRESHOLDS, 1), random)
        candidates = all_tables(sizes)
        count = min(level.starts, max(_MOST_SHARED // len(candidates), 1))
        starts = np.log(random.random((count, len(candidates))) + 1e-3)
        found += problem.optimise_shared(candidates, starts, steps=150)
    groups += _from_block_designs(max(map(len, marginals), default=0), sizes, level.starts, random)
    affordable = 8 * _ROUND_NUMBERS // len(problem.k)
    tables = accumulate(sum(map(len, group)) for group in groups)
    within = [group for group, upto in zip(groups, tables, strict=True) if upto <= affordable]
    return found + [s for group in _race(problem, map(evenly, within), _FIRST_STAGES) for s in group]


def _apart(problem: SupportProblem, request: Request, level: _Effort, random: np.random.Generator) -> list[Support]:
    """A few covers where there are too many tables for more: among designs they would crowd out what ends up better."""
    marginals = [m for m in request.workload.marginals if m]
    if 2 ** len(problem.sizes) <= _MOST_CANDIDATES or len(marginals) > _MOST_COVERED:
        return []
    covers = covers_of(marginals, problem.sizes, 2, random)
    return _best([s for group in _race(problem, map(evenly, covers), _FIRST_STAGES) for s in group], level.kept)


def _from_block_designs(
    strength: int, sizes: Floats, repeats: int, random: np.random.Generator
) -> Iterator[list[Tables]]:
    """Designs with attributes given to points at random, as evenly as their number allows."""
    d = len(sizes)
    designs = known_designs(strength, 2 * d)
    for design in designs:
        found = []
        for _ in range(max(repeats // max(len(designs), 1), 4)):
            order = random.permutation(d)
            at: list[list[int]] = [[] for _ in range(design.points)]
            for i, point in zip(order.tolist(), np.resize(random.permutation(design.points), d).tolist(), strict=True):
                at[point].append(i)
            masks = {sum(1 << i for point in block for i in at[point]) for block in design.blocks}
            largest = [a for a in masks if a and not any(a & b == a != b for b in masks)]
            chosen = tuple(sorted(tuple(i for i in range(d) if mask >> i & 1) for mask in largest))
            if max(np.prod(sizes[list(b)]) for b in chosen) <= MAX_TABLE_CELLS:
                found.append(chosen)
        yield found


def _changed(
    problem: SupportProblem, pool: Sequence[Support], level: _Effort, random: np.random.Generator
) -> Iterator[Start]:
    """Variants of all supports of a pool."""
    numbers = sum(len(s.sets) for s in pool) * len(problem.k)  # of one variant of each
    count = min(level.variants, max(1, _ROUND_NUMBERS // numbers))
    for support in pool:
        yield from _variants(support, problem, count, random)


def _variants(support: Support, problem: SupportProblem, count: int, random: np.random.Generator) -> Iterator[Start]:
    """Small changes: a table more, an attribute added or dropped, two tables merged, two attributes swapped in all."""
    d, n = len(problem.sizes), len(support.sets)
    sizes = problem.sizes.tolist()
    logs = np.log(support.budgets)
    start, level = dict(zip(support.sets, logs.tolist(), strict=True)), float(np.median(logs))
    swaps = random.random(count) < _SWAPPED
    changes = (random.integers(1, 4, count) - swaps).tolist()
    dice = iter(random.integers(0, (4, n, n, d), (sum(changes), 4)).tolist())
    for many, swap in zip(changes, swaps.tolist(), strict=True):
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
        if swap:
            tables = dict(zip(_swapped(tables, random.permutation(d)[:2].tolist()), tables.values(), strict=True))
        if tables and max(math.prod(sizes[i] for i in table) for table in tables) <= MAX_TABLE_CELLS:
            yield tuple(tables), np.fromiter(tables.values(), float, len(tables))


def _swapped(tables: Iterable[Marginal], pair: Sequence[int]) -> Iterator[Marginal]:
    """The tables with two attributes exchanged."""
    for table in tables:
        inside = [i in table for i in pair]
        yield tuple(sorted({*table} ^ {*pair})) if any(inside) and not all(inside) else table


def _race(problem: SupportProblem, groups: Iterable[Sequence[Start]], stages: Sequence[Stage]) -> list[list[Support]]:
    """The races of groups, as many at once as a cache holds."""
    result: list[list[Support]] = []
    batch: list[Sequence[Start]] = []
    for group in groups:
        rows, width = sum(map(len, batch)) + len(group), max((len(s) for g in (*batch, group) for s, _ in g), default=0)
        if batch and rows * width * len(problem.k) > _BATCH_NUMBERS:
            result += problem.race(batch, stages)
            batch = []
        batch.append(group)
    return [*result, *problem.race(batch, stages)]


def _best(supports: Sequence[Support], count: int) -> list[Support]:
    """The best supports with distinct errors: equal ones are mostly relabelled, and would crowd out others."""
    distinct: dict[str, Support] = {}
    for support in sorted(supports, key=lambda s: s.error):
        distinct.setdefault(f"{support.error:.5g}", support)
    return list(distinct.values())[:count]
