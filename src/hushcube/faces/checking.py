"""What no measurement of a plan could give is refused, before anything is measured."""

from __future__ import annotations

import math
from typing import Final

from hushcube.designs import LatticeDesign, MatrixDesign, SelectedLevels, SelectiveLevels, WideMatrixDesign
from hushcube.designs.design import Design
from hushcube.designs.selective.design import GuessingDesign
from hushcube.errors import BadInput, FactsError, NotApplicable, TooLarge
from hushcube.faces import barak, facts as public
from hushcube.faces.people import require_room
from hushcube.faces.programs import require_solver
from hushcube.faces.target import observed_tables
from hushcube.faces.value import FaceValue, Objective
from hushcube.model.facts import Facts
from hushcube.progress import Clock

FULL_TABLE: Final = 12_000_000  # the largest domain whose full table is fitted
LARGEST_PROGRAM: Final = 200_000  # the most cells of tables in one linear program
LARGEST_FACE: Final = 50_000_000  # the most cells of tables that are made non-negative together


def check_face(design: Design, value: FaceValue, clock: Clock) -> None:
    """Refuse what no measurement of a plan could give, before anything is measured."""
    if isinstance(design, SelectiveLevels | SelectedLevels):
        if value.public_facts:
            problem = "an attribute is published at several levels, and facts are held at one"
            raise BadInput("facts", problem, "leave them out, or ask for each attribute at one level")
        check_face(design.underlying, value, clock)
        return
    if value.promise.whole:
        _check_people(design, value)
    chosen, design = design, design.underlying
    if design.schema.is_nested:
        problem = "an attribute is published at several levels, and faces do not hold levels together"
        fix = "plan with `--for face-valid` or `--strategy selective`, or ask for each attribute at its finest level"
        raise BadInput("face", problem, fix)
    if (cells := int(design.request.marginals.cells.sum())) > LARGEST_FACE:
        fix = "the unbiased face serves releases of this size; ask for fewer tables"
        raise TooLarge("face", cells, LARGEST_FACE, fix)
    if value.norm != "l2" or value.method == "barak":
        require_solver()
    facts = value.public_facts or Facts.none(design.schema)
    if facts.schema != design.schema:
        raise FactsError("facts", "belong to another schema", "declare them for this release")
    if facts:
        public.check(facts, clock)
    if value.method == "full-table" and (domain := math.prod(design.schema.sizes)) > FULL_TABLE:
        raise TooLarge("method", domain, FULL_TABLE, "use the method local, which never builds the full table")
    if value.method == "barak":
        if not isinstance(design, LatticeDesign):
            raise NotApplicable("barak", "it needs noisy Fourier coefficients or tables")
        barak.check(design, fitting_objective(design, value), value.weights)
    if value.method == "shift":
        if not (isinstance(design, LatticeDesign) and design.basis.has_inverse):
            raise NotApplicable("shift", "it needs noisy Fourier coefficients: plan with the strategy `fourier`")
        if any(n & (n - 1) for n in design.schema.sizes):
            problem = "an attribute's size is not a power of two: codes without a value get people too"
            raise NotApplicable("shift", problem)
    if value.near == "answers" and not isinstance(design, LatticeDesign):
        problem = "only plans of marginals, or parts of marginals, answer tables one by one"
        raise BadInput("near", problem, "leave it out, or plan with a strategy such as `workload`")
    if value.method == "entropy" and not (isinstance(design, LatticeDesign) and design.recovery == "gls"):
        problem = "it needs plans of marginals, or parts of marginals, with the recovery gls"
        raise NotApplicable("entropy", problem)
    if value.like is not None:
        _check_like(chosen, value)
    if isinstance(design, WideMatrixDesign):
        raise NotApplicable(
            value.kind, "the plan measures sparse rows of a matrix, and knows no cells of its large table"
        )
    if isinstance(design, MatrixDesign) and (value.norm != "l2" or value.kind == "consistent"):
        if value.kind != "consistent" or facts:
            problem = f"{value.norm} has no {'facts' if facts else value.kind} for plans that measure rows of a matrix"
            raise BadInput("norm", problem, "use l2, or ask for consistent without facts")
        return
    if value.norm != "l2" and (program := int(observed_tables(design, value.near).cells.sum())) > LARGEST_PROGRAM:
        raise TooLarge("norm", program, LARGEST_PROGRAM, "use l2, which needs no linear program")


def _check_like(design: Design, value: FaceValue) -> None:
    """Refuse an earlier edition where no guess is made of it."""
    if isinstance(design, GuessingDesign):
        fix = "plan with it (`--like`): the run looks at both guesses, and the face needs no word more"
        raise BadInput("like", "the plan is selective, and its run looks at guesses without it", fix)
    if value.method != "entropy":
        raise BadInput("like", f"the method {value.method} guesses nothing", "add `method=entropy`, or leave it out")
    if value.edition is not None and value.edition.schema != design.schema:
        raise BadInput("like", "is for another schema", "read it again for this release")


def _check_people(design: Design, value: FaceValue) -> None:
    """Refuse whole numbers where the noise alone counts more people than can be made."""
    attributes = len(design.schema)
    people = value.rows if value.rows is not None else (value.public_facts or Facts.none(design.schema)).people
    if people is not None:
        require_room(people, attributes)
    elif not (design.publishes_total or design.adapts):
        least = float((design.errors.exact_cell_variances * design.request.marginals.cells).min())
        require_room(int(math.sqrt(least)) if math.isfinite(least) else 0, attributes)


def fitting_objective(design: LatticeDesign, value: FaceValue) -> Objective:
    """The first objective of the paper that fits what was measured."""
    first = design.basis.holds_cells and value.minimise == "max-coefficient"
    return "max-marginal" if first else value.minimise
