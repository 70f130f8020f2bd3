"""K_part: measure some cuboids, read each of the others from the one that magnifies its noise least.

    Var(A) = min_{C measured} mag(A, C) variance_C,   mag(A, C) = cells(C) / cells(A)   [Ding et al. 2011, (1), (2)]

Which cuboids are measured is chosen in search/cuboids.py, by even budgets. Optimal budgets keep what was chosen
for [section 7.2]: with s_C = sum_{A read from C} a_A cells(A) mag(A, C), shares of the budget

    minimise sum_C s_C variance_C   subject to   mag(A, C) variance_C <= allowed_A for each A read from C

which is share_C = max(needed_C, c s_C^(1/3)) for Laplace, s_C^(1/2) for Gaussian noise [Yaroslavtsev et al. 2013, C+].
Reading and sharing alternate until they settle; neither makes the other worse.
Attributes of one value ride along in every table. Under replace-one the total is public, and not part of the choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final

import numpy as np

from hushcube.costs import calibrate
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy
from hushcube.strategies.search.coverage import MOST_ATTRIBUTES, MOST_CUBOIDS, Coverage, coverage_of
from hushcube.strategies.search.cuboids import Selection
from hushcube.strategies.search.weighted import weighted
from hushcube.strategies.strategy import Rivals, Strategy

_ROUNDS: Final = 100
_MOST_READINGS: Final = 2**24  # tables times cuboids up to which sources are chosen anew for unequal budgets
_LEAST: Final = 1e-9
"""Of the largest s_C, for tables that only cuboids of weight zero are read from: every table needs a budget."""


@dataclass(frozen=True, eq=False)
class Cube:
    """The cuboids of a request as bit masks of the attributes that vary, and what they weigh."""

    coverage: Coverage
    attributes: tuple[int, ...]
    """The positions in the schema of the bits."""
    single: tuple[int, ...]
    """Attributes of one value."""
    public: tuple[Marginal, ...]
    """Tables that cost nothing and are measured too: the total under replace-one, and what equals it."""
    cuboid: Ints
    """For each marginal of the request, the number of its cuboid; -1 where it is public."""
    weights: Floats
    energies: Floats
    emphasis: Floats
    """What the variance of each marginal of the request weighs in a maximum."""

    @classmethod
    def of(cls, request: Request, also: tuple[Marginal, ...] = ()) -> Cube:
        """The cuboids of a request, the same for every budget; tables that are `also` looked at need not be listed."""
        privacy = request.privacy
        several = min(privacy.rows_per_person, 2)  # whether a person may have several rows is all that matters
        any_budget = Privacy.of(epsilon=1, neighbours=privacy.neighbours, rows_per_person=several)
        return _cube(replace(request, privacy=any_budget, objective="total", effort="default"), also)

    def table(self, mask: int) -> Marginal:
        """The set of attributes that is measured for a mask."""
        return tuple(sorted((*self.single, *(i for bit, i in enumerate(self.attributes) if mask >> bit & 1))))

    def mask(self, table: Marginal) -> int:
        """The mask for which such a set of attributes is measured."""
        return sum(1 << bit for bit, attribute in enumerate(self.attributes) if attribute in table)

    @cached_property
    def importance(self) -> Floats:
        """What the variance of each cuboid weighs in a maximum."""
        result, paid = np.zeros(len(self.coverage)), self.cuboid >= 0
        np.maximum.at(result, self.cuboid[paid], self.emphasis[paid])
        return result

    @cached_property
    def weighted(self) -> Coverage:
        """The coverage by weighted magnifications."""
        return weighted(self.coverage, self.importance)

    def totals(self, selection: Selection) -> Floats:
        """s_C of the selected tables."""
        return _sums(selection.source, self.energies * selection.magnification, len(selection.tables))

    def even_variance(self, privacy: Privacy, tables: int) -> Fraction:
        """The variance of the cells of that many tables with equal shares of the budget."""
        return TableNoise.of(privacy, tables, len(self.public)).evenly(tables)


@lru_cache(maxsize=4)
def _cube(request: Request, also: tuple[Marginal, ...]) -> Cube:
    marginals, sizes = request.marginals, request.schema.sizes
    used = marginals.attributes.tolist()
    attributes = tuple(i for i in used if sizes[i] > 1)
    bit = {attribute: 1 << at for at, attribute in enumerate(attributes)}
    masks, others = ([sum(bit.get(i, 0) for i in marginal) for marginal in some] for some in (marginals, also))
    single = tuple(i for i in used if sizes[i] == 1)
    public: tuple[Marginal, ...] = ()
    if request.privacy.total_is_public:
        constant = any(marginal and not mask for marginal, mask in zip(marginals, masks, strict=True))
        public = ((), single) if constant else ((),)
    numbers = {mask: number for number, mask in enumerate(sorted({mask for mask in masks if mask or not public}))}
    cuboid = np.array([numbers.get(mask, -1) for mask in masks], np.int64)
    paid = cuboid >= 0
    weights, energies = (_sums(cuboid[paid], x[paid], len(numbers)) for x in (request.weights, request.energies))
    coverage = coverage_of(list(numbers), [sizes[i] for i in attributes], MAX_TABLE_CELLS, others)
    emphasis = request.weights.copy()
    for form, weight in request.weighted_forms:
        np.maximum.at(emphasis, request.marginals.ids([form.marginal]), weight)
    return Cube(coverage, attributes, single, public, cuboid, weights, energies, emphasis)


def _sums(at: Ints, values: Floats, length: int) -> Floats:
    return np.bincount(at, values, length).astype(np.float64)


@dataclass(frozen=True)
class TableNoise:
    """The noise of tables of counts under a guarantee, by the share of the budget that a table has.

    2 / (share budget)² for Laplace, 1 / (2 share budget) + extra for Gaussian noise: what is drawn has at most this
    variance; `extra` is the proof's by smoothing.                                                  [costs/calibrate.py]
    """

    unit: Fraction
    power: int
    extra: Fraction

    @classmethod
    def of(cls, privacy: Privacy, tables: int, public: int) -> TableNoise:
        """Under the proof that is best for that many tables, beside the public ones."""
        moved = 2 if privacy.neighbours == "replace-one" else 1  # numbers of a table that one row moves
        found = []
        for proof in calibrate.proofs(privacy, tables=tables + public):
            if budget := calibrate.row_budget(privacy, proof) / moved:
                unit = 2 / budget**2 if privacy.is_pure else 1 / (2 * budget)
                extra = calibrate.smoothing_variance(privacy, float(tables + public)) if proof == "smoothing" else 0
                found.append(cls(unit, law_of(privacy).power, Fraction(extra)))
        return min(found, key=lambda noise: noise.evenly(tables))

    def evenly(self, tables: int) -> Fraction:
        """The variance of each of some tables with equal shares."""
        return self.unit * Fraction(tables) ** self.power + self.extra

    def variances(self, shares: Floats) -> Floats:
        """The variances for given shares."""
        return float(self.unit) / shares**self.power + float(self.extra)

    def shares(self, variances: Floats) -> Floats:
        """The shares needed for given variances; none for infinite ones."""
        return (float(self.unit) / (variances - float(self.extra))) ** (1 / self.power)


class KPart(Strategy):
    """A strategy that selects cuboids to measure."""

    searches = True
    most_cuboids: ClassVar[int] = MOST_CUBOIDS
    """The most that it selects for, beyond as many attributes as all tables can be listed of."""

    def accepts(self, request: Request) -> str | None:
        """Refuse very many tables of many attributes."""
        varying = sum(request.schema.sizes[i] > 1 for i in request.marginals.attributes.tolist())
        most, asked = self.most_cuboids, len(request.marginals)
        if varying > MOST_ATTRIBUTES and asked > most:
            limit = f"beyond {MOST_ATTRIBUTES} attributes it selects for at most {most:,} tables"
            return f"{limit}; {asked:,} are asked for"
        return None

    def measure(
        self,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        cube: Cube,
        selection: Selection,
        allowed: Floats | float = np.inf,
        *,
        against: Rivals = "all",
        settle: bool = True,
        details: Callable[[Floats], Mapping[str, Any]],
    ) -> Design:
        """The plan that measures the selected tables, in shares that keep to the `allowed` variances of cuboids.

        The shares are those of the least total, with sources that follow unless they are to stay (`settle`); then they
        are the closed form for the sources of the selection. What they are compared `against` is decide's word.
        Details are told from the variance of a cell of each marginal of the request without recovery.
        """
        tables, public, law = selection.tables, len(cube.public), law_of(request.privacy)
        noise = TableNoise.of(request.privacy, len(tables), public)
        shares = _optimal_shares(cube, selection, noise, allowed, settle=settle)
        sets = [*cube.public, *map(cube.table, tables)]
        measured = Family.of(sets, request.schema.sizes)
        at, ordered = measured.ids(sets), np.empty(len(measured))
        ordered[at] = np.concatenate([np.ones(public), shares])

        def say(given: Floats) -> Mapping[str, Any]:
            drawn = law.formula(given[at[public:]])  # what is drawn has at most this variance
            return details(_variances(cube, tables, drawn))

        s = ordered ** (law.power + 1)  # whose closed form these shares are
        found = (MARGINAL, measured, s, ordered)
        return self.decide(request, budgets, recovery, *found, against=against, details=say)


def _optimal_shares(
    cube: Cube, selection: Selection, noise: TableNoise, allowed: Floats | float, *, settle: bool
) -> Floats:
    """Shares with the least total, at most the `allowed` variance for each cuboid; sources follow, if they `settle`."""
    coverage, tables, readings = cube.coverage, selection.tables, None
    if (
        settle and len(tables) * len(coverage) <= _MOST_READINGS and selection.largest > 1
    ):  # else sources may not change
        readings = np.array([coverage.magnifications(coverage.number(mask)) for mask in tables])
    least = np.inf
    for _ in range(_ROUNDS):
        s = cube.totals(selection)
        ceiling = np.full(len(tables), np.inf)
        np.minimum.at(ceiling, selection.source, allowed / selection.magnification)
        shares = filled(np.maximum(s, _LEAST * s.max(initial=0)) ** (1 / (noise.power + 1)), noise.shares(ceiling))
        variances = noise.variances(shares)
        value = float(s @ variances)
        if readings is None or not value < least * (1 - 1e-12):
            break
        least = value
        source = (readings * variances[:, None]).argmin(axis=0)
        source = np.where(selection.magnification == 1, selection.source, source)  # its own table answers itself
        selection = Selection(tables, source, readings[source, np.arange(len(source))])
    return shares


def filled(shape: Floats, needed: Floats) -> Floats:
    """max(needed, c shape), summing to 1.

    >>> filled(np.array([1.0, 1.0, 2.0]), np.array([0.4, 0.0, 0.0])).round(9).tolist()
    [0.4, 0.2, 0.4]
    """
    bound = np.zeros(len(shape), bool)
    while not bound.all():
        level = (1 - needed[bound].sum()) / shape[~bound].sum()
        below = ~bound & (level * shape < needed)
        if not below.any():
            return np.where(bound, needed, level * shape)
        bound |= below
    scaled: Floats = needed / needed.sum()
    return scaled


def _variances(cube: Cube, tables: Sequence[int], noise: Floats) -> Floats:
    """The variance of a cell of each marginal, from its own table or else from the best one."""
    coverage, own = cube.coverage, dict(zip(tables, noise.tolist(), strict=True))
    least = np.full(len(coverage), np.inf)
    for mask, variance in own.items() if not own.keys() >= set(coverage.masks) else ():
        least = np.minimum(least, variance * coverage.magnifications(coverage.number(mask)))
    for number, mask in enumerate(coverage.masks):
        least[number] = own.get(mask, least[number])
    return np.where(cube.cuboid >= 0, np.concatenate([least, [0.0]])[cube.cuboid], 0.0)
