"""Measure the tables that the user names, with the user's shares of the budget or the best ones.

S made of any marginals, any budgets                                              [Yaroslavtsev et al. 2013, (1)-(3)]

    shares given     budget_B in exactly these proportions, whatever the recovery is
    none             s_B = sum_{A read from B} a_A cells(B), budgets in closed form; reading and sharing alternate
    ols              s_B = sum_{C <= B} k_C / (K_C(1)² cells(B)), budgets in closed form
    gls              sum_C k_C / K_C(1/variance) is descended on from even budgets and from those for `ols`

with k_C and K_C of designs/request.py and lattice/basis.py. The pooled error is convex in the budgets for Gaussian
noise, and not for Laplace noise: there the descent also starts from all sets of a few tables, or from random budgets,
and a table that is not worth its budget is left out and named in the plan. For the objective `max` all tables stay,
with the budgets of the least maximum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, Final, Self

import numpy as np

from hushcube.costs.row_cost import unchanged_by_replacing
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.designs.weights import Weights
from hushcube.errors import BadInput, WorkloadError, readable
from hushcube.lattice.basis import MARGINAL, kernel
from hushcube.lattice.family import Family, Inclusion
from hushcube.model.arrays import Floats, Marginal
from hushcube.model.coarser import MARK
from hushcube.model.noise import GAUSSIAN, law_of
from hushcube.model.privacy import exact_number
from hushcube.model.schema import Schema
from hushcube.model.workload import named_number, tables_of
from hushcube.options import option
from hushcube.strategies.covering import SEED
from hushcube.strategies.search.supports import NEGLIGIBLE, SupportProblem, optimise_tables
from hushcube.strategies.strategy import Strategy, best_of
from hushcube.text import short

_TOTAL: Final = "0-way"
_MISSING: Final = "no tables are given: write `given:tables=a*b,c*d`"
_EXAMPLE: Final = "write for example `a*b=0.3,c*d=0.7`, or `a*b,c*d` for the best shares"
_ROUNDS: Final = 100
_SHORT, _STEPS = 60, 400  # of descent from all starts, and from the best
_KEPT: Final = 4
_FEW: Final = 6  # tables, all sets of which are tried
_STARTS, _SPREAD = 64, 2.5
_MOST_NUMBERS: Final = 2**18  # tables times spaces, up to which many starts are tried
_LEAST: Final = 1e-6
"""Of the largest share: what a table gets that is no help, where it must be measured."""


@dataclass(frozen=True)
class GivenTables:
    """Words for tables in the grammar of workloads, each with a share of the budget, or none with one.

    >>> print(GivenTables.read("a * b = 0.3, c*d=0.7", "tables"))
    a*b=3/10,c*d=7/10
    """

    shares: Mapping[str, Fraction | None]

    @classmethod
    def read(cls, given: Any, field: str) -> GivenTables:
        """From a text, several texts, or a mapping from words to shares."""
        if isinstance(given, cls):
            return given
        if isinstance(given, Mapping):
            pairs = [(named_number(str(word))[0], share) for word, share in given.items()]
        else:
            texts = [given] if isinstance(given, str) else list(given) if isinstance(given, Iterable) else []
            if not texts or not all(isinstance(text, str) for text in texts):
                raise BadInput(field, f"{short(given)} names no tables", _EXAMPLE)
            pairs = [named_number(word) for text in texts for word in text.split(",")]
        shares = {word: None if share is None else exact_number(field, share, BadInput) for word, share in pairs}
        if not shares or not all(shares):
            raise BadInput(field, "a word is empty", _EXAMPLE)
        if any(share is not None and share <= 0 for share in shares.values()):
            raise BadInput(field, "a share of the budget is not positive", _EXAMPLE)
        if len({share is None for share in shares.values()}) > 1:
            raise BadInput(field, "some tables have a share of the budget and others have none", _EXAMPLE)
        return cls(shares)

    def __str__(self) -> str:
        return ",".join(word if share is None else f"{word}={share}" for word, share in self.shares.items())

    def __hash__(self) -> int:
        return hash(tuple(self.shares.items()))

    @property
    def are_shared(self) -> bool:
        """Whether shares are given."""
        return None not in self.shares.values()

    def on(self, schema: Schema) -> GivenTables:
        """The same with a word for each table; only tables at levels wait for the schema that has them."""
        single: dict[str, Fraction | None] = {}
        for word, share in self.shares.items():
            tables = [()] if MARK in word else tables_of(word, schema.declared)
            names = ("*".join(schema.declared.names[i] for i in table) or _TOTAL for table in tables)
            single |= dict.fromkeys([word] if MARK in word else names, share)
        return GivenTables(single)

    def within(self, schema: Schema) -> dict[Marginal, Fraction | None]:
        """The tables, over the places that their attributes have in a schema; a later word for a table holds."""
        return {table: share for word, share in self.shares.items() for table in tables_of(word, schema)}


@dataclass(frozen=True, kw_only=True)
class Given(Strategy):
    """The user's own tables."""

    name = "given"
    measures = "tables that you name, with your shares or the best"

    tables: GivenTables | str | Sequence[str] | Mapping[str, Any] | None = option(
        None,
        "the tables to measure, in the words of a workload; shares of the budget for all of them or for none",
        takes="TABLE[=SHARE],...",
        read=GivenTables.read,
        several=True,
    )

    @property
    def _tables(self) -> GivenTables | None:
        return self.tables if isinstance(self.tables, GivenTables) else None

    def on(self, schema: Schema) -> Self:
        """Lists the tables of words for several."""
        return self if self._tables is None else replace(self, tables=self._tables.on(schema))

    @property
    def attributes(self) -> tuple[str, ...]:
        """Those of the tables, once they are listed."""
        words = () if self._tables is None else self._tables.shares
        names = (name.partition(MARK)[0] for word in words if word != _TOTAL for name in word.split("*"))
        return tuple(dict.fromkeys(names))

    @property
    def own_budgets(self) -> Budgets | None:
        """Shares take the place of every rule."""
        return "given" if self._tables is not None and self._tables.are_shared else None

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - whatever is asked
        """Only where tables are given."""
        return self._tables is not None

    def accepts(self, request: Request) -> str | None:
        """It needs tables that can be held, and that contain all those asked for."""
        if self._tables is None:
            return _MISSING
        describe = request.schema.describe
        try:
            tables = list(self._tables.within(request.schema))
        except WorkloadError as problem:
            return problem.problem
        for table in tables:
            if (cells := request.schema.cells(table)) > MAX_TABLE_CELLS:
                return f"the table {describe(table)} has {readable(cells)} cells, more than {MAX_TABLE_CELLS:,}"
        held = Family.of(tables, request.schema.sizes).sum_over_supersets(request.marginals, np.ones(len(tables)))
        for marginal, holders in zip(request.marginals, held.tolist(), strict=True):
            if not holders and not (request.privacy.total_is_public and not marginal):
                return f"none of the given tables contains {describe(marginal)}, which is asked for"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The given tables, but for those that the best shares leave out."""
        given = {} if self._tables is None else self._tables.within(request.schema)
        measured = Family.of(given, request.schema.sizes)
        if self.own_budgets is not None:
            shares = np.array([float(given[table] or 0) for table in measured])
            return self._with(request, self.own_budgets, recovery, measured, shares)
        if budgets == "uniform":
            return self._with(request, budgets, recovery, measured, np.ones(len(measured)))
        shares = best_shares(request, measured, recovery)
        everything = self._with(request, budgets, recovery, measured, np.maximum(shares, _LEAST * shares.max()))
        kept = shares > NEGLIGIBLE * shares.max()
        if kept.all() or request.objective == "max":
            return everything
        fewer, unused = (
            Family.of([t for t, keep in zip(measured, kept, strict=True) if keep == wanted], request.schema.sizes)
            for wanted in (True, False)
        )
        if (fewer.sum_over_supersets(request.marginals, np.ones(len(fewer))) == 0).any():
            return everything
        names = [request.schema.describe(table) for table in unused]
        return best_of([self._with(request, budgets, recovery, fewer, shares[kept], names), everything])

    def _with(
        self,
        request: Request,
        budgets: Budgets,
        recovery: Recovery,
        measured: Family,
        shares: Floats,
        unused: Sequence[str] = (),
    ) -> LatticeDesign:
        s = shares ** (law_of(request.privacy).power + 1)  # whose closed form these shares are
        told = {"unused": list(unused)} if unused else {}
        return self.decide(request, budgets, recovery, MARGINAL, measured, s, shares, details=lambda _: told)


def best_shares(request: Request, measured: Family, recovery: Recovery) -> Floats:
    """Proportions of the budget for which the total is least under a recovery; next to nothing for what is no help."""
    public = unchanged_by_replacing(measured) & request.privacy.total_is_public  # measured for nothing, come what may
    result = np.ones(len(measured))
    if public.all() or isinstance(recovery, Weights):  # whose closed form is that of all strategies
        return result
    noisy = Family.of([t for t, free in zip(measured, public, strict=True) if not free], request.schema.sizes)
    result[~public] = (
        _for_sources(request, noisy) if recovery in ("none", "answers") else _for_spaces(request, noisy, recovery)
    )
    result[public] = result[~public].max()
    return result


def _for_spaces(request: Request, measured: Family, recovery: Recovery) -> Floats:
    """For least squares, ordinary in closed form and generalised by descent."""
    law, spaces, ones = law_of(request.privacy), request.spaces, np.ones(len(measured))
    known = unchanged_by_replacing(spaces) & request.privacy.total_is_public
    k = np.where(known, 0.0, request.space_weights)
    K = kernel(MARGINAL, measured, ones, spaces)
    s = measured.sum_over_subsets(spaces, np.divide(k, K**2, out=np.zeros_like(k), where=k > 0)) / measured.cells
    separate = law.best_budgets(s, ones)
    if recovery == "ols" or not separate.any():
        return separate
    starts = [ones, np.maximum(separate, _LEAST * separate.max())]
    if law is GAUSSIAN or len(measured) * len(spaces) > _MOST_NUMBERS:
        found = [optimise_tables(measured, spaces, k, start, steps=_STEPS, law=law) for start in starts]
    else:
        problem, sets = SupportProblem(request), tuple(measured)
        problem.k = k
        tried = problem.optimise_shared(sets, np.log([*starts, *_variety(len(sets))]), steps=_SHORT)
        best = sorted(tried, key=lambda support: support.error)[:_KEPT]
        found = [*best, *problem.optimise([support.start for support in best], steps=_STEPS)]
    support = min(found, key=lambda support: support.error)
    shares = np.zeros(len(measured))
    shares[measured.ids(support.sets)] = support.budgets
    return shares


def _variety(tables: int) -> Floats:
    """Budgets to start from: next to nothing for each set of a few tables, or random ones; repeatable."""
    if tables <= _FEW:
        return np.where(np.array(list(product((False, True), repeat=tables))), _LEAST, 1.0)[1:-1]
    return np.exp(_SPREAD * np.random.default_rng(SEED).standard_normal((_STARTS, tables)))


def _for_sources(request: Request, measured: Family) -> Floats:
    """Without recovery: each table is read from one measured table, its own or the one that is best for it then."""
    marginals, law, ones = request.marginals, law_of(request.privacy), np.ones(len(measured))
    shares, best, least = ones, ones, np.inf
    for _ in range(_ROUNDS):
        noise = measured.cells * law.formula(np.maximum(shares / shares.max(), _LEAST))

        def price(pair: Inclusion, noise: Floats = noise) -> Floats:
            own = measured.cells[pair.big] == marginals.cells[pair.small]
            return np.where(own, -1.0, noise[pair.big])

        source, _ = measured.cheapest_holders(marginals, price)
        read = source >= 0  # the others are public
        energies = request.energies[read] / marginals.cells[read] * measured.cells[source[read]]
        s = np.bincount(source[read], energies, len(measured)).astype(np.float64)
        shares = law.best_budgets(s, ones)
        value = float(shares.sum() ** (law.power + 1))  # of Corollary 3.3, up to a constant
        if not value < least * (1 - 1e-12):
            break
        best, least = shares, value
    return best
