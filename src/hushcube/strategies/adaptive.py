"""Small relative errors: tables start with much noise, and a method decides from the noisy answers which get less.

minimise   mean over tables of  E|noise_A| mean_cells 1/max(count, delta)               [Xiao et al. 2011, Definition 6]

    dwork       one scale for all tables, from the start to the end: nothing is adapted
    twophase    a first look, then independent noise of scales made for what was seen         [Figure 1; Rescale mended]
    iresamp     independent samples of half the scale, again and again                                      [Figure 12]
    ireduct     correlated samples of smaller and smaller scale, which cost what the last one costs           [Figure 4]

The base allocation is uniform as in the paper, or in the proportions of the plan `workload` (budgets `optimal`).
"""

from __future__ import annotations

from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from hushcube.designs.adaptive.design import AdaptiveDesign
from hushcube.designs.adaptive.groups import make_grids
from hushcube.designs.adaptive.start import Measured, full_rates, start_rates
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.lattice.design import LatticeDesign
from hushcube.designs.matrix.design import MAX_CELLS, MatrixDesign
from hushcube.designs.refinement import Rule
from hushcube.designs.repeated import RepeatedDesign
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.queries import integer_problem
from hushcube.strategies.strategy import Strategy

NOT_PRIVATE: Final = ("oracle", "proportional")
"""Methods that choose their noise by the exact counts: for experiments against the truth only."""
STOPPING: Final = ("iresamp", "ireduct")
"""Methods that can end a run when a target is met."""


class Adaptive(Strategy):
    """A method for small relative errors; `auto` never takes it, for it compares another kind of error."""

    automatic = False
    makes: ClassVar[tuple[type[Design], ...]] = (AdaptiveDesign, RepeatedDesign, LatticeDesign, MatrixDesign)
    """What is to be carried out, and what runs end with."""

    def concerns(self, request: Request) -> bool:  # noqa: ARG002 - whatever is asked
        """Only when it is named."""
        return False

    def accepts(self, request: Request) -> str | None:
        """Pure epsilon, and marginals or a matrix of queries."""
        workload, rule = request.workload, request.options.rule
        if not request.privacy.is_pure:
            return "it is for pure epsilon: its noise is Laplace noise"
        if workload.forms and (workload.marginals or len(workload.forms) > 1 or workload.queries is None):
            return "it measures marginals, or a matrix of queries, but no ranges, and not both together"
        if workload.queries is not None and workload.queries.rows.width > MAX_CELLS:
            return f"the queries are over {workload.queries.rows.width:,} cells, more than {MAX_CELLS:,}"
        if workload.queries is not None and (problem := integer_problem(workload.queries.rows)):
            return f"in the queries, {problem[0]}: {problem[1]}"
        if rule.people_epsilon is not None and request.privacy.total_is_public:
            return "under replace-one the number of people is public: give --people, not --people-epsilon"
        if rule.people_epsilon is not None and workload.queries is not None:
            return "a noisy number of people is measured beside marginals only: give --people"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """The start, and the rule by which it is refined."""
        rule = request.options.rule
        if rule.sanity_bound is None:
            fix = "say below which count relative errors stop to matter, for example `--sanity-bound 100`"
            raise BadInput("sanity-bound", "is not given", fix)
        measured = Measured.of(request, budgets, rule.people_epsilon)
        rates = self.start(measured, request, rule)
        own = (measured.kind, measured.fields, rule)
        return AdaptiveDesign(request, self.name, budgets, recovery, "direct", rates, *own)

    def start(self, measured: Measured, request: Request, rule: Rule, people: int | None = None) -> NDArray[np.float64]:
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


class TwoPhase(Adaptive):
    """A first look, and a second one with noise to measure."""

    name = "twophase"
    measures = "a first look at all tables, then noise by the sizes of the counts seen"

    def start(self, measured: Measured, request: Request, rule: Rule, people: int | None = None) -> NDArray[np.float64]:
        """What the first phase may cost."""
        return start_rates(measured, request, rule, first_share=rule.first_share, people=people)


class IResamp(Adaptive):
    """Independent samples."""

    name = "iresamp"
    measures = "fresh samples, more of them where relative errors are large"


class IReduct(Adaptive):
    """Correlated samples."""

    name = "ireduct"
    measures = "noise taken away step by step where relative errors are large"

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """Also refuses progressions of too many scales, as far as they can be known."""
        design = super().plan(request, budgets, recovery)
        if isinstance(design, AdaptiveDesign) and design.rule.people_epsilon is None:
            make_grids(design.underlying, design.rule.settled(), np.flatnonzero(np.isfinite(design.budgets)))
        return design


ADAPTIVE: Final[dict[str, Adaptive]] = {method.name: method for method in (Dwork(), TwoPhase(), IResamp(), IReduct())}
