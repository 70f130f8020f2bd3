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
from functools import lru_cache
from typing import Any, Final

import numpy as np

from hushcube.costs import calibrate
from hushcube.designs.design import Budgets, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.noise import law_of
from hushcube.model.privacy import Privacy
from hushcube.strategies.search.all_tables import MOST_ATTRIBUTES
from hushcube.strategies.search.coverage import Coverage
from hushcube.strategies.search.listed_tables import MOST_CUBOIDS
from hushcube.strategies.search.selection import Selection, coverage_of
from hushcube.strategies.strategy import decide

_ROUNDS: Final = 100
_MOST_READINGS: Final = 2**24
"""Tables times cuboids up to which sources are chosen anew for unequal budgets."""
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

    def table(self, mask: int) -> Marginal:
        """The set of attributes that is measured for a mask."""
        return tuple(sorted((*self.single, *(i for bit, i in enumerate(self.attributes) if mask >> bit & 1))))


def cube_of(request: Request) -> Cube:
    """The cuboids of a request; the same for every budget."""
    privacy = request.privacy
    several = min(privacy.rows_per_person, 2)  # whether a person may have several rows is all that matters
    any_budget = Privacy.of(epsilon=1, neighbours=privacy.neighbours, rows_per_person=several)
    return _cube(replace(request, privacy=any_budget, objective="total", effort="default"))


@lru_cache(maxsize=4)
def _cube(request: Request) -> Cube:
    marginals, sizes = request.marginals, request.schema.sizes
    used = marginals.attributes.tolist()
    attributes = tuple(i for i in used if sizes[i] > 1)
    bit = {attribute: 1 << at for at, attribute in enumerate(attributes)}
    masks = [sum(bit.get(i, 0) for i in marginal) for marginal in marginals]
    single = tuple(i for i in used if sizes[i] == 1)
    public: tuple[Marginal, ...] = ()
    if request.privacy.total_is_public:
        constant = any(marginal and not mask for marginal, mask in zip(marginals, masks, strict=True))
        public = ((), single) if constant else ((),)
    numbers = {mask: number for number, mask in enumerate(sorted({mask for mask in masks if mask or not public}))}
    cuboid = np.array([numbers.get(mask, -1) for mask in masks], np.int64)
    paid = cuboid >= 0
    weights, energies = (
        _sums(cuboid[paid], values[paid], len(numbers)) for values in (request.weights, request.energies)
    )
    coverage = coverage_of(list(numbers), [sizes[i] for i in attributes], MAX_TABLE_CELLS)
    return Cube(coverage, attributes, single, public, cuboid, weights, energies)


def refusal(request: Request, most: int = MOST_CUBOIDS) -> str | None:
    """Why tables cannot be selected for a request."""
    varying = sum(request.schema.sizes[i] > 1 for i in request.marginals.attributes.tolist())
    if varying > MOST_ATTRIBUTES and len(request.marginals) > most:
        return (
            f"beyond {MOST_ATTRIBUTES} attributes it selects for at most {most:,} tables; "
            f"{len(request.marginals):,} are asked for"
        )
    return None


def power_of(privacy: Privacy) -> int:
    """How the variance of a table grows with the number of tables: squared for Laplace, linear for Gaussian noise."""
    return 2 if privacy.is_pure else 1


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
            budget = calibrate.row_budget(privacy, proof) / moved
            if privacy.is_pure:
                found.append(cls(2 / budget**2, 2, Fraction(0)))
            elif budget > 0:
                smooth = calibrate.smoothing_variance(privacy, float(tables + public)) if proof == "smoothing" else 0
                found.append(cls(1 / (2 * budget), 1, Fraction(smooth)))
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


def optimal_shares(
    cube: Cube, selection: Selection, noise: TableNoise, allowed: Floats | None = None
) -> tuple[Floats, Selection]:
    """Shares with the least total, at most the `allowed` variance for each cuboid; and what is read from where."""
    allowed = np.full(len(cube.coverage), np.inf) if allowed is None else allowed
    readings = _readings(cube.coverage, selection)
    least, shares = np.inf, np.full(len(selection.tables), 1 / max(len(selection.tables), 1))
    for _ in range(_ROUNDS):
        s = totals(cube, selection)
        ceiling = np.full(len(shares), np.inf)
        np.minimum.at(ceiling, selection.source, allowed / selection.magnification)
        shares = filled(np.maximum(s, _LEAST * s.max(initial=0)) ** (1 / (noise.power + 1)), noise.shares(ceiling))
        value = float(s @ noise.variances(shares))
        if readings is None or not value < least * (1 - 1e-12):
            break
        least = value
        selection = _read(selection, readings, noise.variances(shares))
    return shares, selection


def totals(cube: Cube, selection: Selection) -> Floats:
    """s_C of the selected tables."""
    return _sums(selection.source, cube.energies * selection.magnification, len(selection.tables))


def _sums(at: Ints, values: Floats, length: int) -> Floats:
    return np.bincount(at, values, length).astype(np.float64)


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


def _readings(coverage: Coverage, selection: Selection) -> Ints | None:
    """All magnifications, (tables, cuboids), where sources may change."""
    if len(selection.tables) * len(coverage) > _MOST_READINGS or selection.largest == 1:
        return None
    return np.array([coverage.magnifications(coverage.number(mask)) for mask in selection.tables])


def _read(selection: Selection, readings: Ints, variances: Floats) -> Selection:
    """Each cuboid from the table with the least variance after summing; its own table answers itself."""
    source = (readings * variances[:, None]).argmin(axis=0)
    source = np.where(selection.magnification == 1, selection.source, source)
    return Selection(selection.tables, source, readings[source, np.arange(len(source))])


def measure(
    request: Request,
    strategy: str,
    cube: Cube,
    tables: Sequence[int],
    shares: Floats,
    budgets: Budgets,
    recovery: Recovery,
    *,
    keep: bool,
    details: Callable[[Floats], Mapping[str, Any]],
) -> LatticeDesign:
    """The plan that measures some tables, given by masks, with shares of the budget.

    For the objective `max` the shares are where a search for better ones starts, unless they are to be kept. Details
    are told from the variance of a cell of each marginal of the request without recovery.
    """
    sets = [*cube.public, *(cube.table(mask) for mask in tables)]
    measured = Family.of(sets, request.schema.sizes)
    ordered = np.empty(len(measured))
    ordered[measured.ids(sets)] = np.concatenate([np.ones(len(cube.public)), shares])
    kept = keep or request.objective == "total"

    def say(_: Family, given: Floats) -> Mapping[str, Any]:
        rates = given[measured.ids(sets[len(cube.public) :])]
        noise = law_of(request.privacy).formula(rates)  # what is drawn has at most this variance
        return details(_variances(cube, tables, noise))

    return decide(
        request,
        strategy=strategy,
        basis=MARGINAL,
        measured=measured,
        s=ordered ** (power_of(request.privacy) + 1),  # whose closed form these shares are
        budgets=budgets,
        recovery=recovery,
        proportions=ordered if kept else None,
        start=None if kept else ordered,
        details=say,
    )


def _variances(cube: Cube, tables: Sequence[int], noise: Floats) -> Floats:
    """The variance of a cell of each marginal, from its own table or else from the best one."""
    coverage, own = cube.coverage, dict(zip(tables, noise.tolist(), strict=True))
    least = np.full(len(coverage), np.inf)
    for mask, variance in own.items() if not own.keys() >= set(coverage.masks) else ():
        least = np.minimum(least, variance * coverage.magnifications(coverage.number(mask)))
    for number, mask in enumerate(coverage.masks):
        least[number] = own.get(mask, least[number])
    return np.where(cube.cuboid >= 0, np.concatenate([least, [0.0]])[cube.cuboid], 0.0)
