"""Small relative errors: tables start with much noise, and a method decides from the noisy answers which get less.

minimise   mean over tables of  E|noise_A| mean_cells 1/max(count, delta)               [Xiao et al. 2011, Definition 6]

    dwork       one scale for all tables, from the start to the end: nothing is adapted
    twophase    a first look, then independent noise of scales made for what was seen         [Figure 1; Rescale mended]
    iresamp     independent samples of half the scale, again and again                                      [Figure 12]
    ireduct     correlated samples of smaller and smaller scale, which cost what the last one costs           [Figure 4]

The base allocation is uniform as in the paper, or in the proportions of the plan `workload` (budgets `optimal`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import ClassVar, Final, Self

import numpy as np

from hushcube.designs.adaptive import AdaptiveDesign, Measured, full_rates, make_grids, start_rates
from hushcube.designs.derived import RepeatedDesign
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.matrix.design import MAX_CELLS, MatrixDesign
from hushcube.designs.refinement import PICKS, Amount, Pick, Rule, SanityBound, positive, share
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.arrays import Floats
from hushcube.model.privacy import Number
from hushcube.model.queries import integer_problem
from hushcube.options import choice, option, whole
from hushcube.strategies.strategy import Strategy

NOT_PRIVATE: Final = ("oracle", "proportional")
"""Methods that choose their noise by the exact counts: for experiments against the truth only."""


@dataclass(frozen=True, kw_only=True)
class Adaptive(Strategy):
    """A method for small relative errors; `auto` never takes it, for it compares another kind of error."""

    automatic = False
    makes: ClassVar[tuple[type[Design], ...]] = (AdaptiveDesign, RepeatedDesign, LatticeDesign, MatrixDesign)
    """What is to be carried out, and what runs end with."""

    @cached_property
    def rule(self) -> Rule:
        """The parameters that its options give; refused where they contradict each other."""
        return Rule.of(**{own.name: getattr(self, own.name) for own in self.options()})

    def filled(self, **usual: object) -> Self:
        """The same, where options that are not given take these values, as far as it has them."""
        free = {own.name for own in self.options() if getattr(self, own.name) is own.default}
        return replace(self, **{name: value for name, value in usual.items() if name in free and value is not None})

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - whatever is asked
        """Only when it is named."""
        return False

    def accepts(self, request: Request) -> str | None:
        """Pure epsilon, and marginals or a matrix of queries."""
        workload, queries, pays = request.workload, request.workload.queries, self.rule.people_epsilon is not None
        if not request.privacy.is_pure:
            return "it is for pure epsilon: its noise is Laplace noise"
        if workload.forms and (workload.marginals or len(workload.forms) > 1 or queries is None):
            return "it measures marginals, or a matrix of queries, but no ranges, and not both together"
        if queries is not None and queries.rows.width > MAX_CELLS:
            return f"the queries are over {queries.rows.width:,} cells, more than {MAX_CELLS:,}"
        if queries is not None and (problem := integer_problem(queries.rows)):
            return f"in the queries, {problem[0]}: {problem[1]}"
        if pays and request.privacy.total_is_public:
            return "under replace-one the number of people is public: give `people`, not `people_epsilon`"
        if pays and queries is not None:
            return "a noisy number of people is measured beside marginals only: give `people`"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The start, and the rule by which it is refined."""
        rule = self.rule
        if rule.sanity_bound is None:
            fix = f"say below which count relative errors stop to matter, for example `{self.name}:sanity-bound=100`"
            raise BadInput("sanity_bound", "is not given", fix)
        measured = Measured.of(request, budgets, rule.people_epsilon)
        own = (self.start(measured, request, rule), measured.kind, measured.fields, rule)
        return AdaptiveDesign(request, self.name, budgets, recovery, "direct", *own)

    def start(self, measured: Measured, request: Request, rule: Rule, people: int | None = None) -> Floats:
        """The rates of the first answers; `people` is the noisy number, once it is known."""
        return start_rates(measured, request, rule, first_share=None, people=people)


class Dwork(Adaptive):
    """The same noise everywhere."""

    name = "dwork"
    measures = "the tables asked for, all with the same noise"
    makes = (LatticeDesign, MatrixDesign)

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """All of the budget at once: a plan like any other."""
        measured = Measured.of(request, budgets, None)
        rates = full_rates(measured, request)
        return measured.kind(request, self.name, budgets, recovery, "direct", rates, **measured.fields)


@dataclass(frozen=True, kw_only=True)
class _Adapting(Adaptive):
    """What methods that look before they choose have in common."""

    sanity_bound: Amount | SanityBound | Mapping[str, Amount | Number] | Number | None = option(
        None,
        "relative errors are errors over max(count, this); a share such as 0.01% is one of the people; "
        "some tables or queries may have their own",
        takes="COUNT|SHARE%|COUNT;TABLE=COUNT",
        read=SanityBound.parse,
    )
    pick: Pick = choice("average", "make the average relative error small, or that of the worst cell", PICKS)
    caution: Fraction | Number = option(
        Fraction(1, 10),
        "counts below this share of their noise are taken for it when the method picks for the average; "
        "0 as in the paper",
        takes="SHARE",
        read=partial(share, or_zero=True),
    )
    people: int | None = option(None, "how many people there are, if that is public", takes="NUMBER", read=whole(1))
    people_epsilon: Fraction | Number | None = option(
        None, "part of epsilon that pays for a noisy number of people", takes="NUMBER", read=positive
    )


@dataclass(frozen=True, kw_only=True)
class TwoPhase(_Adapting):
    """A first look, and a second one with noise to measure."""

    name = "twophase"
    measures = "a first look at all tables, then noise by the sizes of the counts seen"

    first_share: Fraction | Number = option(
        Fraction(7, 100), "share of epsilon for the first phase", takes="SHARE", read=share
    )

    def start(self, measured: Measured, request: Request, rule: Rule, people: int | None = None) -> Floats:
        """What the first phase may cost."""
        return start_rates(measured, request, rule, first_share=rule.first_share, people=people)


@dataclass(frozen=True, kw_only=True)
class _Stepwise(_Adapting):
    """What methods that go down in steps, and may stop early, have in common."""

    lambda_max: Amount | Number | None = option(
        None, "scale of the noise to start with; a share is one of the people", takes="SCALE|SHARE%", read=Amount.parse
    )
    start_share: Fraction | Number = option(
        Fraction(1, 20), "share of epsilon to start with, without lambda-max", takes="SHARE", read=share
    )
    relative_error: Fraction | Number | None = option(
        None, "stop when relative errors are at most this, with above", takes="SHARE", read=positive
    )
    above: Amount | Number | None = option(
        None, "the counts for which relative-error is wanted", takes="COUNT|SHARE%", read=Amount.parse
    )


class IResamp(_Stepwise):
    """Independent samples."""

    name = "iresamp"
    measures = "fresh samples, more of them where relative errors are large"


@dataclass(frozen=True, kw_only=True)
class IReduct(_Stepwise):
    """Correlated samples."""

    name = "ireduct"
    measures = "noise taken away step by step where relative errors are large"

    lambda_step: Amount | Number | None = option(
        None, "scales go down in equal steps; a share is one of the people", takes="SCALE|SHARE%", read=Amount.parse
    )
    lambda_factor: Fraction | Number = option(
        Fraction(99, 100), "scales go down by this factor, without lambda-step", takes="FACTOR", read=share
    )

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """Also refuses progressions of too many scales, as far as they can be known."""
        design = super().plan(request, budgets, recovery)
        if isinstance(design, AdaptiveDesign) and design.rule.people_epsilon is None:
            make_grids(design.underlying, design.rule.settled(), np.flatnonzero(np.isfinite(design.budgets)))
        return design


ADAPTIVE: Final[dict[str, Adaptive]] = {method.name: method for method in (Dwork(), TwoPhase(), IResamp(), IReduct())}


def with_target(strategy: Strategy, target: Mapping[str, Number]) -> Strategy:
    """A strategy that stops when relative errors are small enough: `relative_error` and `above`."""
    if not isinstance(strategy, _Stepwise):
        stopping = " or ".join(name for name, method in ADAPTIVE.items() if isinstance(method, _Stepwise))
        fix = f"use the strategy {stopping}, or leave the target out"
        raise BadInput(next(iter(target)), f"{strategy.name} does not stop when a target is met", fix)
    return strategy.with_options(target)
