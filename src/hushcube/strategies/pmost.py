"""Measure the cuboids that make most tables precise: a cuboid is precise if its cells have variance theta0 or less.

maximise over R   sum of a_A over the A with noise(A, R) <= theta0                         [Ding et al. 2011, Problem 2]

theta0 is a variance, or a share of the bound of `bmax` for tables of equal weight; half of that unless given (the
paper's experiments), or the least that makes some table precise, where that is more. What is precise is counted with
even budgets, or the shares of cover=cheapest, and recovery `none` (K_part); `gls` only lowers variances. Of equal
weights the fewest cuboids are taken.
Optimal budgets keep the precise tables precise and make the total least under that.

publish=precise: the paper's problem. What is not precise is left out, the plan's workload is the rest, and its details
name what is missing. The greedy choice reaches 1 - 1/e of the optimum [Theorem 7]; with cover=cheapest, for tables with
shares of their own, never less, and 1 - 1/sqrt(e) of the optimum over all shares [section 7.2].

publish=all: every table is answered. Where the chosen cuboids do not hold all, one more is measured, and paid for by
all of them [docs/maths.md, P6]; what is precise is counted after that. The greedy choice reaches half of the optimum if
one table can hold the rest: its first s - 1 cuboids reach 1 - (1 - 1/s)^(s-1) >= 1/2 for s > 1, and the best single
cuboid is found.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Final, Literal, get_args

import numpy as np

from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.arrays import Bools, Floats, Marginal
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy
from hushcube.options import choice, option
from hushcube.strategies.bmax import COVER, COVERS, Cover, check_pairs, least_maximum
from hushcube.strategies.k_part import Cube, KPart, TableNoise
from hushcube.strategies.search.cuboids import Selection, select, whole
from hushcube.strategies.search.precise import Precise, easiest, publish_most, publish_precise
from hushcube.strategies.search.prices import Prices, serve
from hushcube.strategies.strategy import Rivals
from hushcube.text import short

Publish = Literal["all", "precise"]
PUBLISH: Final[tuple[Publish, ...]] = get_args(Publish)
_SHARE: Final = Fraction(1, 2)
_ROUNDING: Final = 1e-9  # budgets are floats: a variance that far above the threshold is at the threshold


@dataclass(frozen=True)
class Threshold:
    """A bound on the variance of a cell: absolute, or a share of the least maximum that `bmax` finds.

    >>> Threshold.parse("80"), Threshold.parse("50%")
    (Threshold(value=80.0, is_share=False), Threshold(value=0.5, is_share=True))
    >>> str(Threshold.parse("80")), str(Threshold.parse("7%"))
    ('80', '7%')
    """

    value: float
    is_share: bool = False

    def __str__(self) -> str:
        return f"{self.value * 100:.12g}%" if self.is_share else f"{self.value:.12g}"

    @classmethod
    def parse(cls, given: object, field: str = "threshold") -> Threshold:
        """Read `80` (a variance) or `50%` (of bmax's)."""
        if isinstance(given, cls):
            return given
        body = str(given).strip()
        try:
            value = float(body.removesuffix("%"))
        except ValueError:
            value = math.nan
        if not 0 < value < math.inf:
            fix = "write a variance, or a share of bmax's such as 50%"
            raise BadInput(field, f"{short(given)} is not a positive number", fix)
        return cls(value / 100, is_share=True) if body.endswith("%") else cls(value)


@dataclass(frozen=True, kw_only=True)
class PMost(KPart):
    """The cover with the most precise tables, or those tables alone."""

    name = "pmost"
    measures = "the cover that makes most tables precise"
    most_cuboids = 1024
    """Fewer than the others: there is a greedy run for each number of precise magnifications."""

    threshold: Threshold | str | float | None = option(
        None,
        "the variance up to which a table is precise, or a share of the least maximum that bmax finds; "
        "50% unless given, or the least that makes some table precise",
        takes="VARIANCE|SHARE%",
        read=Threshold.parse,
    )
    publish: Publish = choice(
        "all", "whether all tables are published, or only the precise ones: the others are left out", PUBLISH
    )

    cover: Cover = choice("fewest", COVER, COVERS)

    @property
    def publishes_all(self) -> bool:
        """Not where only precise tables are published."""
        return self.publish == "all"

    def accepts(self, request: Request) -> str | None:
        """Refuse very many tables of many attributes, and requests without tables of cells."""
        if not request.workload.marginals:
            return "it is for tables of cells, and only other sums are asked for"
        if request.workload.forms and not self.publishes_all:
            return "only tables of cells can be precise, and other sums are asked for as well"
        if self.cover == "cheapest" and (self.publishes_all or request.privacy.delta is not None):
            return "cover=cheapest is for publish=precise, under epsilon or rho"
        return super().accepts(request)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The tables with even budgets, or with those of the least total that keep what is precise."""
        cube = Cube.of(request)
        threshold = theta0(request, cube, self.threshold, self.publish)
        found: dict[str, Any] = {"threshold": float(threshold)}
        priced = self.cover == "cheapest" and budgets == "optimal"  # with even shares all tables cost the same
        if self.publishes_all:
            selection, precise = most_precise(cube, request.privacy, threshold)
        else:
            tables, within = (cheaply_precise if priced else only_precise)(cube, request.privacy, threshold)
            named = dict(zip(request.marginals, within[cube.cuboid].tolist(), strict=True))
            asked = request.workload
            if left := [asked.word(marginal) for marginal in asked.marginals if not named[marginal]]:
                found["left_out"] = left
            request = replace(request, workload=asked.keeping([m for m, is_kept in named.items() if is_kept]))
            cube = Cube.of(request, tuple(tables))
            upto = {cube.coverage.number(cube.mask(table)): most for table, most in tables.items()}
            selection = Prices(cube.coverage, law_of(request.privacy).power, upto).selection
            precise = selection.largest
        kept = np.where(selection.magnification <= precise, float(threshold), np.inf)

        def details(variances: Floats) -> dict[str, Any]:
            near = (variances <= float(threshold) * (1 + _ROUNDING)).tolist()
            within = dict(zip(request.marginals, near, strict=True))
            asked = zip(request.workload.marginals, request.workload.weights, strict=True)
            told = [(marginal, weight) for marginal, weight in asked if within[marginal]]
            words = [request.schema.describe(marginal) for marginal, _ in told]
            return {**found, "precise": words, "weight": math.fsum(weight for _, weight in told)}

        against: Rivals = "nothing" if priced else "even"
        return self.measure(request, budgets, recovery, cube, selection, kept, against=against, details=details)


def _largest_precise(cube: Cube, privacy: Privacy, threshold: Fraction) -> Precise:
    """The largest magnification that is precise where some tables are measured."""

    @cache
    def precise(tables: int) -> int:
        return math.floor(threshold / cube.even_variance(privacy, tables)) if tables else 0

    return precise


@lru_cache(maxsize=8)
def most_precise(cube: Cube, privacy: Privacy, threshold: Fraction) -> tuple[Selection, int]:
    """The selection that answers everything, and the largest magnification that is precise in it."""
    precise = _largest_precise(cube, privacy, threshold)
    known, weights = least_maximum(cube.coverage, law_of(privacy).power), whole(cube.weights)
    found = publish_most(cube.coverage, weights, precise, known) if weights.any() else known
    return found, precise(len(found.tables))


@lru_cache(maxsize=8)
def only_precise(cube: Cube, privacy: Privacy, threshold: Fraction) -> tuple[dict[Marginal, int], Bools]:
    """The tables that are measured where the rest is left out, and which cuboids are precise; the last is public.

    With each table goes the magnification up to which it serves.
    """
    precise = _largest_precise(cube, privacy, threshold)
    known = least_maximum(cube.coverage, law_of(privacy).power)
    chosen = publish_precise(cube.coverage, whole(cube.weights), precise, known)
    return _needed(cube, select(cube.coverage, chosen), dict.fromkeys(chosen, precise(len(chosen))))


@lru_cache(maxsize=8)
def cheaply_precise(cube: Cube, privacy: Privacy, threshold: Fraction) -> tuple[dict[Marginal, int], Bools]:
    """The same for tables with shares of their own, never less weight: the whole budget is what they may cost."""
    check_pairs(cube.coverage, PMost.name)
    even, noise = only_precise(cube, privacy, threshold), TableNoise.of(privacy, 1, len(cube.public))
    upto = serve(cube.coverage, whole(cube.weights), lambda most: noise.shares(float(threshold) / most), 1.0)
    prices = Prices(cube.coverage, noise.power, upto).lowered()
    own = _needed(cube, prices.selection, prices.upto)
    return max(even, own, key=lambda found: math.fsum(cube.weights[found[1][:-1]].tolist()))


def _needed(cube: Cube, selection: Selection, upto: Mapping[int, int]) -> tuple[dict[Marginal, int], Bools]:
    """Which cuboids are within what their sources serve up to; tables hold no attribute that those do not need."""
    coverage = cube.coverage
    most = np.array([upto[coverage.number(mask)] for mask in selection.tables] + [0], np.int64)  # the last: no source
    within: Bools = selection.magnification <= most[selection.source]
    unions: dict[int, int] = {}
    for number in np.flatnonzero(within).tolist():
        source = int(selection.source[number])
        unions[source] = unions.get(source, 0) | coverage.masks[number]
    tables: dict[Marginal, int] = {}
    for source, union in unions.items():
        table = tuple(sorted(set(cube.table(union)) - set(cube.single)))
        tables[table] = max(tables.get(table, 0), int(most[source]))
    return tables, np.append(within, True)


def theta0(request: Request, cube: Cube, given: Threshold | str | float | None, publish: Publish) -> Fraction:
    """The threshold as a variance; refused where no table can be that precise."""
    known, weights = least_maximum(cube.coverage, law_of(request.privacy).power), whole(cube.weights)
    alone = [(1, 1)]  # where nothing else has to be answered, a single table
    ways = (easiest(cube.coverage, weights, known) if publish == "all" else alone) if weights.any() else []
    variances = [cube.even_variance(request.privacy, tables) * magnification for tables, magnification in ways]
    least = min(variances, default=Fraction(0))
    tables = len(known.tables)
    bound = cube.even_variance(request.privacy, tables) * known.largest if tables else Fraction(0)
    if given is None:
        return max(bound * _SHARE, least)
    given = Threshold.parse(given)
    threshold = Fraction(repr(given.value)) * (bound if given.is_share else 1)  # as written, in decimals
    if threshold < least:
        share = f", which is {_rounded_up(least / bound * 100)}% of bmax's" if bound else ""
        beside = " while every table is answered" if publish == "all" else ""
        problem = f"no table can have a variance of at most {float(threshold):.6g}{beside}"
        others = publish == "all" and threshold >= cube.even_variance(request.privacy, 1)
        fewer = ", or leave tables out with publish=precise" if others else ""
        raise BadInput("threshold", problem, f"give at least {_rounded_up(least)}{share}{fewer}")
    return threshold


def _rounded_up(value: Fraction) -> str:
    """The value with six digits, not below it.

    >>> _rounded_up(Fraction(2, 3)), _rounded_up(Fraction(40))
    ('0.666667', '40')
    """
    text = f"{float(value):.6g}"
    return text if Fraction(text) >= value else f"{float(value) * (1 + 1e-5):.6g}"
