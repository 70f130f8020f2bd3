"""Plans that measure the levels of trees over ordered attributes, for ranges.                      [lattice/trees.py]

Every attribute has a tree; one without ranges has a single level, its cells. A measured set is a level m_i for each
attribute (0: summed out) of a table of nodes. An attribute is measured in cells (one number a node of level m_i)
or in wavelets (the difference of the two halves of each node of level m_i - 1; the sum for m_i = 0). Either way a row
of data moves one number of every set by 1: each set costs its budget, and budgets are those of the noise as drawn.

    replace-one   max over where the two rows' paths part, d_i on attribute i, of sum_m beta_m change_m(d):
                  g = prod_i g_i, g_i = 1 above the parting (m_i < d_i), -1 at it (wavelets), 0 otherwise;
                  change = 2 [g != 1] (Laplace), 2 (1 - g) (Gaussian)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Final

import numpy as np

from hushcube.costs import calibrate
from hushcube.costs.family_cost import ROUND_UP, exact_sum
from hushcube.designs.answers import Answers
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.designs.request import MAX_TABLE_CELLS, Request
from hushcube.designs.tree.answers import TreeAnswers
from hushcube.designs.tree.errors import TreeErrors
from hushcube.lattice.trees import Tree
from hushcube.model.arrays import Bools, Floats, Ints, Marginal, frozen, position_rows
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Neighbours, Privacy
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
        if self.wavelet_trees_are_binary and self.levels_fit and leaves_fit(self.request, self.trees):
            return super().__post_init__()
        raise ValueError("the measured levels do not fit the trees or the workload")

    @property
    def wavelet_trees_are_binary(self) -> bool:
        """Differences of halves need nodes with two children."""
        pairs = zip(self.trees, self.wavelet, strict=True)
        return all(set(tree.fan_outs) <= {2} or not wavelet for tree, wavelet in pairs)

    @property
    def levels_fit(self) -> bool:
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
        return [
            tuple(
                tree.nodes[m] - (tree.nodes[m - 1] if wavelet else 0)
                for tree, wavelet, m in zip(self.trees, self.wavelet, row, strict=True)
                if m
            )
            for row in self.levels.tolist()
        ]

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

    def proof_variance(self) -> Floats:
        """What the proof by smoothing adds: a row moves one number of each set."""
        return proof_variance(self.levels, self.privacy)

    @cached_property
    def errors(self) -> TreeErrors:
        """Predicted errors."""
        return TreeErrors(self)

    def make_answers(self, measurement: Measurement) -> Answers:
        """Least squares over the spaces between levels."""
        return TreeAnswers(self, measurement)

    def is_answerable(self) -> bool:
        """Whether some set sees each space of each table."""
        for A in self.carriers:
            dimension = np.ones(())
            for i in A:
                dimension = np.multiply.outer(dimension, np.diff(self.trees[i].nodes, prepend=0))
            if not ((self.kernel(A, np.ones(self.groups)) > 0) | (dimension == 0)).all():
                return False
        return True

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
        return {
            "design": "tree",
            "fan_outs": [list(tree.fan_outs) for tree in self.trees],
            "wavelet": list(self.wavelet),
            "measured": self.levels.tolist(),
        }

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


def proof_variance(levels: Levels, privacy: Privacy) -> Floats:
    """t² for each set: a row moves one number of each."""
    return np.full(len(levels), calibrate.smoothing_variance(privacy, float(len(levels))))


def row_cost(
    trees: Sequence[Tree], wavelet: Sequence[bool], levels: Levels, budgets: Floats, privacy: Privacy
) -> Fraction:
    """The exact cost of one row, in epsilon or rho; under replace-one rounded up."""
    pure = privacy.is_pure
    return max(_cost(trees, wavelet, levels, budgets, change, pure=pure) for change in privacy.row_changes)


def _cost(
    trees: Sequence[Tree], wavelet: Sequence[bool], levels: Levels, budgets: Floats, change: Neighbours, *, pure: bool
) -> Fraction:
    if change == "add-remove":
        if not np.isfinite(budgets).all():
            raise OverflowError("exact answers have no finite cost when rows are added or removed")
        return exact_sum(budgets)
    varying = (levels > 0).any(axis=1)
    if not np.isfinite(budgets[varying]).all():
        raise OverflowError("exact answers have no finite cost when a row is replaced")
    spent = np.where(varying, budgets, 0.0)
    return Fraction(_largest_change(trees, wavelet, levels, spent, pure=pure)) * ROUND_UP


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
