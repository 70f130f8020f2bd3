"""The levels of a schema: which tables hold which, and the coordinates in which measured ones are combined.

Levels at which nothing is measured have no coordinates of their own: a table at such a level is a sum of groups of the
next finer one that is measured. So the fewer levels are measured, the less there is to combine; where each attribute
is measured at one level only, nothing couples at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from typing import Final

import numpy as np

from hushcube.lattice.nested import AxisSums, Chain, group_sums
from hushcube.lattice.nested_blocks import Blocks, Levels
from hushcube.model.arrays import Floats, Ints, Marginal
from hushcube.model.schema import Schema

Rows = Floats | tuple[Ints, Ints] | None
"""Sums along an axis: a row of weights for each, or intervals (starts, ends), or None for the cells themselves."""

LARGEST_CORE: Final = 2_048  # groups of the second finest measured level of an attribute: matrices over them are dense
MOST_CHOICES: Final = 300_000  # pairs of a table and a block that it sees
MOST_WORK: Final = 4e9  # multiplications of one inversion of all blocks: about a second
MOST_NUMBERS: Final = 2**24  # numbers that hold what each table says about each block: 128 MB


@dataclass(frozen=True, eq=False)
class Nesting:
    """Marginals as levels of the declared attributes."""

    schema: Schema

    @cached_property
    def _places(self) -> dict[int, tuple[int, int]]:
        """The chain and the level of each position."""
        chains = enumerate(self.schema.chains)
        return {at: (number, level) for number, positions in chains for level, at in enumerate(positions, 1)}

    def levels(self, marginal: Marginal) -> Levels:
        """A marginal as (chain, level) of each of its axes, in their order; levels from 1, coarse to fine."""
        return tuple(self._places[position] for position in marginal)

    def marginal(self, levels: Iterable[tuple[int, int]]) -> Marginal:
        """The marginal of some levels."""
        return tuple(self.schema.chains[chain][level - 1] for chain, level in levels)

    def holds(self, big: Marginal, small: Marginal) -> bool:
        """Whether a table can be summed to another: it has every attribute at a level at least as fine."""
        finest = dict(self.levels(big))
        return all(level <= finest.get(chain, 0) for chain, level in self.levels(small))

    def matrix(self, marginals: Iterable[Marginal]) -> Ints:
        """The level of each chain (columns) in each table (rows); 0 where it is summed out."""
        listed = list(marginals)
        result = np.zeros((len(listed), len(self.schema.chains)), np.int64)
        for row, marginal in enumerate(listed):
            for chain, level in self.levels(marginal):
                result[row, chain] = level
        return result

    def all_held(self, smalls: Iterable[Marginal], bigs: Iterable[Marginal]) -> bool:
        """Whether each of some tables is held by one of others."""
        able = self.matrix(bigs)
        return all(bool((able >= own).all(axis=1).any()) for own in self.matrix(smalls))

    def groups(self, big: Marginal, small: Marginal) -> list[Ints | None]:
        """For each axis of a table that holds another, the group of each position there; None where summed out."""
        wanted = {chain: position for position, (chain, _) in zip(small, self.levels(small), strict=True)}
        fine = [(position, wanted.get(chain)) for position, (chain, _) in zip(big, self.levels(big), strict=True)]
        return [None if own is None else self.schema.coarsening(position, own) for position, own in fine]

    def maximal(self, marginals: Iterable[Marginal]) -> list[Marginal]:
        """Those that no other one holds."""
        listed = list(dict.fromkeys(marginals))
        levels = self.matrix(listed)
        return [m for m, own in zip(listed, levels, strict=True) if (levels >= own).all(axis=1).sum() == 1]

    def below(self, marginal: Marginal) -> Iterator[Marginal]:
        """All tables that can be summed from one, with itself."""
        ways = [[(chain, level) for level in range(own + 1)] for chain, own in self.levels(marginal)]
        for choice in product(*ways):
            yield self.marginal(pair for pair in choice if pair[1])

    def join(self, marginals: Iterable[Marginal]) -> Marginal:
        """The smallest table that holds all."""
        return self.marginal(sorted(self._finest(marginals).items()))

    def refined(self, marginals: Iterable[Marginal]) -> list[Marginal]:
        """Tables that hold all, each attribute at one level only: the finest that occurs."""
        listed = list(marginals)
        finest = self._finest(listed)
        return self.maximal({self.marginal((chain, finest[chain]) for chain, _ in self.levels(m)) for m in listed})

    def _finest(self, marginals: Iterable[Marginal]) -> dict[int, int]:
        finest: dict[int, int] = {}
        for marginal in marginals:
            for chain, level in self.levels(marginal):
                finest[chain] = max(level, finest.get(chain, 0))
        return finest


@lru_cache(maxsize=16)
def nesting(schema: Schema) -> Nesting:
    """The levels of a schema, looked up once."""
    return Nesting(schema)


@dataclass(frozen=True, eq=False)
class Frame:
    """The coordinates of measured tables; other tables as sums of groups in them."""

    nesting: Nesting
    chains: tuple[Chain, ...]
    levels: tuple[tuple[int, ...], ...]
    """The measured levels of each chain."""
    blocks: Blocks

    @classmethod
    def of(cls, nesting: Nesting, measured: Sequence[Marginal]) -> Frame | None:
        """The coordinates of some tables, or None where combining them is too much work."""
        seen: list[set[int]] = [set() for _ in nesting.schema.chains]
        for marginal in measured:
            for chain, level in nesting.levels(marginal):
                seen[chain].add(level)
        schema, chains, levels = nesting.schema, [], []
        for positions, own in zip(schema.chains, seen, strict=True):
            used = sorted(own) or [1]
            at = [positions[level - 1] for level in used]
            if len(at) > 1 and schema.sizes[at[-2]] > LARGEST_CORE:
                return None
            coarsest = np.zeros(schema.sizes[at[0]], np.int64)
            chains.append(Chain((coarsest, *(schema.coarsening(fine, coarse) for coarse, fine in pairwise(at)))))
            levels.append(tuple(used))
        place = [{level: number for number, level in enumerate(used, 1)} for used in levels]
        tables = [tuple((a, place[a][level]) for a, level in nesting.levels(m)) for m in measured]
        if _choices(chains, tables) > MOST_CHOICES:
            return None
        blocks = Blocks(chains, tables)
        fits = blocks.work <= MOST_WORK and blocks.numbers(tables) <= MOST_NUMBERS
        return cls(nesting, tuple(chains), tuple(levels), blocks) if fits else None

    def table(self, marginal: Marginal) -> Levels:
        """A table in the chains of the coordinates: at each axis' own level, or the next finer one."""
        places = self.nesting.levels(marginal)
        return tuple((a, 1 + sum(own < level for own in self.levels[a])) for a, level in places)

    def groups(self, marginal: Marginal) -> list[Ints | None]:
        """For each axis, the group that each position of the next finer level lies in; None where it is measured."""
        nested = self.nesting
        finer = nested.marginal((a, self.levels[a][number - 1]) for a, number in self.table(marginal))
        pairs = zip(finer, marginal, strict=True)
        return [None if fine == own else nested.schema.coarsening(fine, own) for fine, own in pairs]

    def sums(self, marginal: Marginal, rows: Sequence[Rows] | None = None) -> list[AxisSums]:
        """Sums along the axes of a table, of its cells where no rows are given, in coordinates."""
        rows = [None] * len(marginal) if rows is None else rows
        every = zip(self.table(marginal), rows, self.groups(marginal), marginal, strict=True)
        return [self._sums(self.chains[a], level, own, groups, i) for (a, level), own, groups, i in every]

    def pairs(self, marginal: Marginal, rows: Sequence[Rows], totals: Sequence[Floats | None]) -> list[AxisSums]:
        """The same; along axes with totals, the cells that those of the table are summed from, each with the total."""
        every = zip(self.sums(marginal, rows), self.table(marginal), totals, self.groups(marginal), strict=True)
        return [
            sums if total is None else self.chains[a].paired(level, total if groups is None else total[groups])
            for sums, (a, level), total, groups in every
        ]

    def _sums(self, chain: Chain, level: int, rows: Rows, groups: Ints | None, position: int) -> AxisSums:
        if rows is None:
            return chain.cells(level) if groups is None else chain.grouped(level, groups)
        if isinstance(rows, tuple) and groups is None:
            return chain.intervals(level, *rows)
        weights = _dense(rows, self.nesting.schema.sizes[position])
        return chain.sums(level, weights if groups is None else weights[:, groups])

    def fits(self, marginals: Sequence[Marginal]) -> bool:
        """Whether what is said about some tables can be held."""
        tables = [self.table(m) for m in marginals]
        return _choices(self.chains, tables) <= MOST_CHOICES and self.blocks.numbers(tables) <= MOST_NUMBERS

    def expanded(self, weights: Floats, marginal: Marginal) -> Floats:
        """Weights of the cells of tables (tables, *shape) as weights of the cells that they are summed from."""
        for axis, groups in enumerate(self.groups(marginal), 1):
            weights = weights if groups is None else weights.take(groups, axis=axis)
        return weights

    def summed(self, cells: Floats, marginal: Marginal) -> Floats:
        """A table from the cells that it is summed from."""
        for axis, groups in enumerate(self.groups(marginal)):
            cells = cells if groups is None else group_sums(cells, axis, groups)
        return cells


def _choices(chains: Sequence[Chain], tables: Iterable[Levels]) -> int:
    return sum(math.prod(len(chains[a].pieces) for a, _ in table) for table in tables)


def _dense(rows: Floats | tuple[Ints, Ints], n: int) -> Floats:
    if not isinstance(rows, tuple):
        return rows
    starts, ends = rows
    cells = np.arange(n)
    return ((cells >= starts[:, None]) & (cells < ends[:, None])).astype(np.float64)
