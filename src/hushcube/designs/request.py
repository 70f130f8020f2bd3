"""What is asked of a strategy: a workload under a guarantee. Sizes are checked here, before any memory is taken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np

from hushcube.errors import TooLarge
from hushcube.lattice.basis import dimensions
from hushcube.lattice.family import Family
from hushcube.model.arrays import Floats, Marginal, subsets
from hushcube.model.form import Form
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.options import check_choice

Effort = Literal["low", "default", "high"]
Objective = Literal["total", "max"]
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
OBJECTIVES: Final[tuple[Objective, ...]] = get_args(Objective)
MAX_TABLE_CELLS: Final = 100_000_000  # the largest single table that is measured or answered: 800 MB of 64-bit numbers
MAX_WORKLOAD_CELLS: Final = 2_000_000_000  # the most cells of one release; they stream to disk
_LITTLE: Final = 1e-9  # of the weight of a form: what the cells that it is summed from weigh at least, all of them


@dataclass(frozen=True, repr=False)
class Request:
    """A workload (with its schema) under a guarantee."""

    workload: Workload
    privacy: Privacy
    objective: Objective = field(default="total", compare=False, kw_only=True)
    """Least total variance over the workload (weights count), or least maximum variance of a cell."""
    effort: Effort = field(default="default", compare=False, kw_only=True)
    """How long strategies that search may search. Neither is needed to read a plan again: its decision is in it."""

    def __repr__(self) -> str:
        return f"Request({self.workload!r}, {self.privacy!r})"

    def __post_init__(self) -> None:
        check_choice(self.objective, "objective", OBJECTIVES)
        check_choice(self.effort, "effort", EFFORTS)
        # floats are exact below 2^53, far above the limits; what is refused is counted in Python integers
        if self.marginals.cells.max() > MAX_TABLE_CELLS:
            raise TooLarge("workload, largest marginal", max(map(self.schema.cells, self._needed)), MAX_TABLE_CELLS)
        for form in self.workload.forms:
            if form.cells > MAX_TABLE_CELLS:
                raise TooLarge(f"workload, {form.word}", form.cells, MAX_TABLE_CELLS)
        if self.marginals.cells.sum() + sum(form.cells for form in self.workload.forms) > MAX_WORKLOAD_CELLS:
            raise TooLarge("workload", self.workload.cells, MAX_WORKLOAD_CELLS)

    @property
    def schema(self) -> Schema:
        """The declared domain."""
        return self.workload.schema

    @cached_property
    def as_asked(self) -> Request:
        """With the weights of the workload's words, where plans are made with others: what a plan file says of it."""
        return self if self.workload.origin is None else replace(self, workload=self.workload.as_asked)

    @cached_property
    def marginals(self) -> Family:
        """The marginals asked for, and the carriers of forms."""
        return Family.of(self._needed, self.schema.sizes)

    @property
    def _needed(self) -> tuple[Marginal, ...]:
        return tuple(dict.fromkeys((*self.workload.marginals, *(form.marginal for form in self.workload.forms))))

    @cached_property
    def weights(self) -> Floats:
        """The weights a_A, in the family's order; zero for marginals that only carry forms."""
        result = np.zeros(len(self.marginals))
        result[self.marginals.ids(self.workload.marginals)] = self.workload.weights
        return result

    @cached_property
    def least_weights(self) -> Floats:
        """What a table weighs at least: a little where it carries forms, whose cells are recovered, needed or not."""
        result = np.zeros(len(self.marginals))
        for form, weight in self.weighted_forms:
            mean = float(form.squares().flat[-1]) / math.prod(form.carrier_shape)
            result[self.marginals.ids([form.marginal])] += _LITTLE * weight * (mean if mean > 0 else 1.0)
        return result

    @property
    def spaces(self) -> Family:
        """The residual spaces seen by the workload."""
        return self.marginals.closure

    @cached_property
    def energies(self) -> Floats:
        """For each marginal, what a unit of variance on its cells adds to the objective: a_A cells(A), and forms'."""
        result = self.weights * self.marginals.cells
        for form, weight in self.weighted_forms:
            result[self.marginals.ids([form.marginal])] += weight * form.squares().flat[-1]
        return np.maximum(result, self.least_weights * self.marginals.cells)

    @cached_property
    def space_weights(self) -> Floats:
        """k_B = m_B sum_{A >= B} a_A / cells(A): the objective is sum_B k_B cells(B) v_B.        [lattice/basis.py]

        The rows q of a form on A count as the sum of ||P_B q||² where a table of cells counts as m_B.
        """
        result, least = (
            dimensions(self.spaces) * self.marginals.sum_over_supersets(self.spaces, weights / self.marginals.cells)
            for weights in (self.weights, self.least_weights)
        )
        for form, weight in self.weighted_forms:
            for B, energy in space_energies(form).items():
                result[self.spaces.ids([B])] += weight * energy / math.prod(form.carrier_shape)
        return np.maximum(result, least)

    def own_space_weights(self, marginal: Marginal) -> Floats:
        """The part of k_B that one marginal has, with the forms that it carries, for its subsets B in their order."""
        inside, at = subsets(marginal), self.marginals.ids([marginal])[0]
        own = max(self.weights[at], self.least_weights[at]) / self.marginals.cells[at]
        result = {B: own * math.prod(self.schema.sizes[i] - 1 for i in B) for B in inside}
        for form, weight in self.weighted_forms:
            for B, energy in space_energies(form).items() if form.marginal == marginal else ():
                result[B] += weight * energy / math.prod(form.carrier_shape)
        return np.array([result[B] for B in inside])

    @property
    def weighted_forms(self) -> zip[tuple[Form, float]]:
        """The forms asked for, with their weights."""
        return zip(self.workload.forms, self.workload.form_weights, strict=True)


def space_energies(form: Form) -> dict[Marginal, float]:
    """The sum of ||P_B q||² over the rows q of a form, for each residual space B of its carrier."""
    shape, found = form.carrier_shape, {}
    for inside in np.ndindex((2,) * len(shape)):
        B = tuple(i for i, kept in zip(form.marginal, inside, strict=True) if kept)
        found[B] = float((projected(one_hot(inside), shape) * form.squares()).sum())
    return found


def projected(f: Floats, shape: tuple[int, ...]) -> Floats:
    """sum_B f_B ||P_B q||² as a combination of the squares M_S of q: axis by axis, ||centred||² = kept - summed / n."""
    for axis, n in enumerate(shape):
        constant, centred = np.moveaxis(f, axis, 0)
        f = np.moveaxis(np.stack(((constant - centred) / n, centred)), 0, axis)
    return f


def one_hot(index: tuple[int, ...]) -> Floats:
    """The array of shape (2, ..., 2) with a single 1."""
    result = np.zeros((2,) * len(index))
    result[index] = 1.0
    return result
