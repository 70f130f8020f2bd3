"""Designs that measure the levels of trees over ordered attributes, for ranges.                   [lattice/trees.py]

Every attribute has a tree; one without ranges has a single level, its cells. A measured set is a level m_i for each
attribute (0: summed out) of a table of nodes. An attribute is measured in cells (one number a node of level m_i)
or in wavelets (the difference of the two halves of each node of level m_i - 1; the sum for m_i = 0). Either way a row
of data moves one number of every set by 1: each set costs its budget, and budgets are those of the noise as drawn.

    replace-one   max over where the two rows' paths part, d_i on attribute i, of sum_m beta_m change_m(d):
                  g = prod_i g_i, g_i = 1 above the parting (m_i < d_i), -1 at it (wavelets), 0 otherwise;
                  change = 2 [g != 1] (Laplace), 2 (1 - g) (Gaussian)

Consistent tables come back by weighted least squares, diagonal over the spaces between the levels:

    coefficient_l = sum_{m sees l}  u_m / nodes(m)  coefficient_l(measured set m)  /  K_l(u)

The coefficients of a set measured in wavelets are the measured numbers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import Any, Final

import numpy as np

from hushcube.costs.row_cost import ROUND_UP, exact_sum, largest_cost
from hushcube.designs.answers import Answers, OneByOne
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.designs.tree.errors import TreeErrors, outer
from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, frozen, position_rows
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema

Levels = Ints
_MOST_PARTINGS: Final = 2**24
"""Partings times sets that are tried; beyond, the sum of each set's largest change bounds the cost."""


@dataclass(frozen=True)
class NodeSums:
    """A table summed to the nodes of a level of each attribute's tree, as wavelets to differences of halves."""

    axes: tuple[tuple[Tree, bool, int], ...]
    """For each attribute of the table its tree, whether wavelets are measured, and the level."""

    def apply(self, tables: Ints) -> Ints:
        """The integers of one set, from the one table that carries it."""
        table: Ints = tables[0]
        axis = 0
        for tree, wavelet, level in self.axes:
            table = np.asarray(tree.pad(table, axis))
            table = table.reshape(*table.shape[:axis], tree.nodes[level], -1, *table.shape[axis + 1 :])
            table = table.sum(axis=axis + 1)
            if level == 0:
                table = np.asarray(table.sum(axis=axis), dtype=np.int64)  # one node: drops the axis
                continue
            if wavelet:
                halves = table.reshape(*table.shape[:axis], -1, 2, *table.shape[axis + 1 :])
                table = np.subtract(*np.moveaxis(halves, axis + 1, 0))
            axis += 1
        return table


@dataclass(frozen=True, eq=False, repr=False)
class TreeDesign(Design, kind="tree"):
    """Levels of trees, each measured with a budget."""

    trees: tuple[Tree, ...]
    wavelet: tuple[bool, ...]
    levels: Levels
    """One row for each measured set, one column for each attribute."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "levels", frozen(self.levels, np.int64))
        pairs = zip(self.trees, self.wavelet, strict=True)
        halves = all(set(tree.fan_outs) <= {2} for tree, wavelet in pairs if wavelet)  # whose difference is measured
        if not (halves and self._levels_fit() and leaves_fit(self.request, self.trees)):
            raise ValueError("the measured levels do not fit the trees or the workload")
        super().__post_init__()

    def _levels_fit(self) -> bool:
        """Each set once, on levels that the trees have, on attributes that a table of the workload has together."""
        depths = np.array([tree.depth for tree in self.trees])
        inside = (self.levels >= 0).all() and (self.levels <= depths).all()
        supports = {tuple(np.flatnonzero(row).tolist()) for row in self.levels}
        carried = all(any(set(s) <= set(c) for c in self.carriers) for s in supports)
        return bool(inside and carried and len(np.unique(self.levels, axis=0)) == len(self.levels))

    @cached_property
    def carriers(self) -> tuple[Marginal, ...]:
        """The tables that all sets are counted from."""
        return maximal(self.request)

    @property
    def groups(self) -> int:
        """One for each set of levels."""
        return len(self.levels)

    def blocks(self) -> Iterator[Block]:
        """One set after the other, those of one carrier together."""
        left = dict(enumerate(self.levels.tolist()))
        for carrier in self.carriers:
            counted = position_rows(carrier)
            for number, row in list(left.items()):
                if {i for i, m in enumerate(row) if m} <= set(carrier):
                    del left[number]
                    nodes = NodeSums(tuple((self.trees[i], self.wavelet[i], row[i]) for i in carrier))
                    columns, budgets = math.prod(self.shapes[number]), self.budgets[[number]]
                    yield Block(counted, nodes, np.array([number]), budgets, columns, array=number)

    @cached_property
    def shapes(self) -> list[tuple[int, ...]]:
        """For each set, the numbers along the attributes that are not summed out."""
        axes = [list(zip(self.trees, self.wavelet, row, strict=True)) for row in self.levels.tolist()]
        return [tuple(tree.nodes[m] - (tree.nodes[m - 1] if haar else 0) for tree, haar, m in row if m) for row in axes]

    @property
    def in_words(self) -> str:
        """What is measured, in words."""
        return f"{self.groups:,} set(s) of {'wavelets' if any(self.wavelet) else 'tree nodes'}"

    @property
    def nodes(self) -> Floats:
        """The number of nodes of each set's tables: `cells` for sets of levels."""
        per_axis = [np.array(tree.nodes, np.float64)[m] for tree, m in zip(self.trees, self.levels.T, strict=True)]
        return np.asarray(np.prod(per_axis, axis=0))

    @property
    def row_norms(self) -> Floats:
        """The squared norm of each set's rows over its nodes: 2 for each wavelet."""
        return np.asarray(2.0 ** ((self.levels > 0) & np.array(self.wavelet)).sum(axis=1))

    def sees(self, attribute: int, levels: Levels) -> Bools:
        """Whether each set (rows) sees the given levels of V along an attribute (columns)."""
        m = self.levels[:, attribute, None]
        return m == levels if self.wavelet[attribute] else m >= levels

    @property
    def is_consistent(self) -> bool:
        """Wavelets are a basis; nodes need least squares."""
        return True

    def row_cost(self, budgets: Floats) -> Fraction:
        """The exact cost of one row; under replace-one rounded up."""
        return row_cost(self.trees, self.wavelet, self.levels, budgets, self.privacy)

    def moves(self) -> Floats:
        """By 1, or from one half of a node to the other, as wavelets."""
        opposite = ((self.levels > 0) & np.array(self.wavelet)).any(axis=1)
        return np.where(opposite & (self.privacy.neighbours == "replace-one"), 2.0, 1.0)

    @cached_property
    def errors(self) -> TreeErrors:
        """Predicted errors."""
        return TreeErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the spaces between levels; the coefficients of a carrier when it is first asked for."""
        coefficients = cache(partial(_coefficients, self, measurement.values))

        def table(marginal: Marginal) -> Floats:
            carrier = next(c for c in self.carriers if set(marginal) <= set(c))
            result = coefficients(carrier)[tuple(slice(None) if i in marginal else 0 for i in carrier)]
            for axis, i in enumerate(marginal):
                result = self.trees[i].inverse(result, axis)
            return result

        return OneByOne(table)

    def is_answerable(self) -> bool:
        """Whether some set sees each space of each table."""
        levels = [np.asarray(np.diff(tree.nodes, prepend=0), np.float64) for tree in self.trees]
        spaces = ((self.kernel(A, np.ones(self.groups)), outer([levels[i] for i in A])) for A in self.carriers)
        return all(((K > 0) | (dimension == 0)).all() for K, dimension in spaces)

    def kernel(self, A: Marginal, weights: Floats) -> Floats:
        """K_l = sum over the sets m that see l of weights_m / nodes(m), for the spaces of a marginal; by levels."""
        terms = weights / self.nodes
        for i in range(len(self.trees)):
            seen = self.sees(i, np.arange(self.trees[i].depth + 1 if i in A else 1))
            terms = terms[..., None] * seen.reshape(self.groups, *[1] * (terms.ndim - 1), -1)
            if i not in A:
                terms = terms[..., 0]
        return np.asarray(terms.sum(axis=0))

    def specification(self) -> dict[str, Any]:
        """The JSON form of what is measured."""
        trees = {"fan_outs": [list(tree.fan_outs) for tree in self.trees], "wavelet": list(self.wavelet)}
        return {"design": "tree", **trees, "measured": self.levels.tolist()}

    @classmethod
    def from_specification(cls, raw: dict[str, Any], schema: Schema) -> dict[str, Any]:
        """The trees and the measured levels from the JSON form."""
        pairs = zip(schema.sizes, raw["fan_outs"], strict=True)
        trees = tuple(Tree(size, tuple(map(int, fan_outs))) for size, fan_outs in pairs)
        levels = np.array(raw["measured"], dtype=np.int64).reshape(-1, len(schema))
        return {"trees": trees, "wavelet": tuple(map(bool, raw["wavelet"])), "levels": levels}


def maximal(request: Request) -> tuple[Marginal, ...]:
    """The marginals that are needed and not contained in another one."""
    result: list[Marginal] = []
    for marginal in sorted(request.marginals, key=len, reverse=True):
        if not any(set(marginal) <= set(larger) for larger in result):
            result.append(marginal)
    return tuple(result)


def leaves_fit(request: Request, trees: Sequence[Tree]) -> bool:
    """Whether the tables stay within the largest size when they are filled up with phantoms."""
    return all(math.prod(trees[i].leaves for i in carrier) <= MAX_TABLE_CELLS for carrier in maximal(request))


def _coefficients(design: TreeDesign, numbers: Sequence[Ints], A: Marginal) -> Floats:
    """The coefficients of one carrier: what every set says about its spaces, weighted."""
    weights = design.errors.recovery_weights()
    result, shares = np.zeros([design.trees[i].leaves for i in A]), weights / design.nodes
    for number, (row, values) in enumerate(zip(design.levels.tolist(), numbers, strict=True)):
        seen = _seen(design, row, values.astype(np.float64), A)
        if seen is not None and shares[number]:
            axes = [(design.trees[i], design.wavelet[i], row[i]) for i in A]
            place = tuple(tree.block(m) if wavelet else slice(0, tree.nodes[m]) for tree, wavelet, m in axes)
            result[place] += shares[number] * seen
    scale = design.kernel(A, weights)
    scale = scale[np.ix_(*(design.trees[i].levels for i in A))] if A else scale
    result = np.divide(result, scale, out=np.zeros_like(result), where=scale > 0)
    for number in np.flatnonzero(~np.isfinite(design.budgets)).tolist():  # the total, where it is known exactly
        result[(0,) * len(A)] = float(numbers[number])
    return result


def _seen(design: TreeDesign, row: list[int], values: Floats, A: Marginal) -> Floats | None:
    """One set's coefficients, an axis for each attribute of A; None where it sees nothing of A."""
    axis = 0
    for i, (tree, wavelet, m) in enumerate(zip(design.trees, design.wavelet, row, strict=True)):
        if m and not wavelet:
            values = Tree(tree.nodes[m], tree.fan_outs[:m]).forward(values, axis)
        if m and i not in A:
            if wavelet:
                return None
            values = np.asarray(values.take(0, axis=axis))
        elif i in A:
            values = values if m else np.expand_dims(values, axis)
            axis += 1
    return values


def row_cost(
    trees: Sequence[Tree], wavelet: Sequence[bool], levels: Levels, budgets: Floats, privacy: Privacy
) -> Fraction:
    """The exact cost of one row, in epsilon or rho; under replace-one rounded up."""

    def replaced(spent: Floats) -> Fraction:
        return Fraction(_largest_change(trees, wavelet, levels, spent, pure=privacy.is_pure)) * ROUND_UP

    return largest_cost(budgets, np.asarray((levels > 0).any(axis=1)), privacy, exact_sum, replaced)


def _largest_change(
    trees: Sequence[Tree], wavelet: Sequence[bool], levels: Levels, budgets: Floats, *, pure: bool
) -> float:
    partings = math.prod(tree.depth + 1 for tree in trees if tree.size > 1)
    if partings * len(levels) > _MOST_PARTINGS:
        opposite = ((levels > 0) & np.array(wavelet)).any(axis=1)
        largest = np.where(opposite & (not pure), 4.0, 2.0)
        return math.fsum((largest * budgets).tolist())
    g = np.ones((1, len(levels)))
    for tree, haar, m in zip(trees, wavelet, levels.T, strict=True):
        if tree.size > 1:
            parting = np.arange(1, tree.depth + 2)[:, None]  # the last one: the rows agree here
            factor = (m < parting) - 1.0 * (haar & (m == parting))
            g = (g[:, None] * factor).reshape(-1, len(levels))
    change = 2.0 * (g != 1) if pure else 2 * (1 - g)
    return float((change @ budgets).max())
