"""What a session knows, residual space by residual space: how precisely, and the estimate itself.

Everything that was measured adds to the information on the spaces that it sees, whatever its noise law,

    kappa_B = sum_{measured C >= B}  w_C / cells(C)  (tables; K_B of lattice/basis.py), w = 1 / variance,

and the estimate of a Helmert coefficient of V_B is the mean of what each measurement says, weighted by what it adds.
That is generalised least squares over all of them at once. Every cell of a marginal A then has the variance

    Var(A) = sum_{B <= A} m_B / kappa_B  /  cells(A)²                                              [docs/maths.md, 7]

A question touches the 2^k subsets of its k attributes, and nothing of the domain's size is ever held. All answers are
made of the same coefficients: sums of one table equal the cells of another.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from hushcube.designs.lattice.design import LatticeDesign
from hushcube.errors import TooLarge
from hushcube.lattice import helmert
from hushcube.lattice.basis import Basis
from hushcube.model.arrays import Floats, Marginal, subsets
from hushcube.model.noise import Law, Measurement

MOST_ATTRIBUTES: Final = 16  # of one question: it has 2^k residual spaces


@dataclass(frozen=True, eq=False)
class Spaces:
    """The residual spaces of a question that have a dimension, with what is known of them."""

    marginals: tuple[Marginal, ...]
    dimensions: Floats
    cells: Floats
    information: Floats
    asked: float
    """The cells of the question itself."""

    def variance(self, added: Floats | float = 0.0) -> float:
        """Of every cell of the question, with so much more information; infinite where a space is unknown."""
        with np.errstate(divide="ignore"):
            return float((self.dimensions / (self.information + added)).sum()) / self.asked**2


class Knowledge:
    """The information on each residual space and the estimates of its coefficients.

    >>> known = Knowledge((2, 3))
    >>> known.variance((0,))
    inf
    >>> known.add({(): 0.5, (0,): 0.25})  # 1/4 (1/0.5 + 1/0.25)
    >>> known.variance((0,)), known.version
    (1.5, 1)
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = tuple(sizes)
        self.version = 0
        """How many steps it comes from."""
        self._information: dict[Marginal, float] = {}
        self._estimates: dict[Marginal, Floats] = {}

    def cells(self, marginal: Marginal) -> int:
        """The number of cells of a marginal."""
        return math.prod(self.sizes[i] for i in marginal)

    def spaces(self, marginal: Marginal) -> Spaces:
        """The residual spaces that a table sees; an attribute of one value varies with nothing."""
        varying = tuple(i for i in marginal if self.sizes[i] > 1)
        if len(varying) > MOST_ATTRIBUTES:
            raise TooLarge("question", len(varying), MOST_ATTRIBUTES, "ask for fewer attributes", "attributes")
        inside = tuple(subsets(varying))
        return Spaces(
            inside,
            np.array([float(math.prod(self.sizes[i] - 1 for i in B)) for B in inside]),
            np.array([float(self.cells(B)) for B in inside]),
            np.array([self._information.get(B, 0.0) for B in inside]),
            float(self.cells(marginal)),
        )

    def variance(self, marginal: Marginal) -> float:
        """The variance of each cell of a table; infinite where it cannot be answered yet."""
        return self.spaces(marginal).variance()

    def add(self, information: Mapping[Marginal, float]) -> None:
        """One more step, of which only the precision is known: what a plan may reckon with before any data is."""
        for B, kappa in information.items():
            self._information[B] = self._information.get(B, 0.0) + kappa
        self.version += 1

    def learn(self, design: LatticeDesign, measurement: Measurement) -> None:
        """One more step, with the noisy numbers that it measured."""
        for measured, batch in zip(measurement.values, design.measured.batches, strict=True):
            for marginal, at, numbers in zip(batch.rows.tolist(), batch.ids.tolist(), measured, strict=True):
                own, budget = tuple(marginal), float(design.budgets[at])
                coefficients = dict(_coefficients(design.basis, own, numbers.astype(np.float64), self.sizes))
                for B, kappa in seen(design.basis, design.law, own, budget, self.sizes):
                    self._merge(B, kappa, coefficients[B])
        self.version += 1

    def _merge(self, space: Marginal, kappa: float, coefficients: Floats) -> None:
        before = self._information.get(space, 0.0)
        if before == 0 or math.isinf(kappa):
            self._estimates[space] = coefficients
        elif math.isfinite(before):
            old = self._estimates[space]
            self._estimates[space] = old + (coefficients - old) * (kappa / (before + kappa))
        self._information[space] = before + kappa

    def table(self, marginal: Marginal) -> Floats:
        """The estimate of every cell."""
        full = np.zeros([self.sizes[i] for i in marginal])
        for B in self.spaces(marginal).marginals:
            full[tuple(slice(1, None) if i in B else 0 for i in marginal)] = self._estimates[B].reshape(
                [self.sizes[i] - 1 for i in B]
            )
        return helmert.inverse(full, range(len(marginal)))


def seen(
    basis: Basis, law: Law, marginal: Marginal, budget: float, sizes: Sequence[int]
) -> Iterator[tuple[Marginal, float]]:
    """The spaces that a measured set sees, and the information that it adds to each; infinite where it is public."""
    cells = math.prod(sizes[i] for i in marginal)
    if basis.is_minimal:  # Helmert rows have the parameter as their variance, per unit of squared norm
        yield marginal, 2 * budget / cells
        return
    variance = float(law.variance(np.array(budget))) if math.isfinite(budget) else 0.0
    for B in subsets(tuple(i for i in marginal if sizes[i] > 1)):
        if eigenvalue := _eigenvalue(basis, marginal, B, sizes):
            yield B, eigenvalue / (variance * cells) if variance else math.inf


def _coefficients(
    basis: Basis, marginal: Marginal, numbers: Floats, sizes: Sequence[int]
) -> Iterator[tuple[Marginal, Floats]]:
    """What a measured set says about the coefficients of each space that it sees."""
    if basis.is_minimal:
        yield marginal, numbers
        return
    shape = [sizes[i] for i in marginal]
    whole = helmert.forward(basis.adjoint(numbers[None], shape)[0], range(len(shape)))
    for B in subsets(tuple(i for i in marginal if sizes[i] > 1)):
        if eigenvalue := _eigenvalue(basis, marginal, B, sizes):
            yield B, whole[tuple(slice(1, None) if i in B else 0 for i in marginal)] / eigenvalue


def _eigenvalue(basis: Basis, marginal: Marginal, space: Marginal, sizes: Sequence[int]) -> int:
    """Of the Gram matrix of a measured set's rows, on a space inside it; 0 where it does not see the space."""
    return math.prod(basis.inside(sizes[i]) if i in space else basis.outside(sizes[i]) for i in marginal)
