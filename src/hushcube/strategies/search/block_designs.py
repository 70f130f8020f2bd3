"""Block designs: few sets of points such that every pair, or every triple, lies in one of them.

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product


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
