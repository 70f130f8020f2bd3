"""The one loop from exact counts to noisy integers, for every design: count, transform, add noise.

A design says what to measure as blocks [designs/block.py]: which tables are counted, which integer map is applied to
them, and which noise each number gets. Nothing here knows the kinds of designs, and nothing here depends on the data
but the integers themselves.

The next block is counted and transformed in a second thread while the noise of this one is drawn. One thread draws all
of the noise, block after block, so that a seed gives the same numbers however the work is divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from hushcube.ahead import ahead
from hushcube.designs.block import Block
from hushcube.designs.design import Design
from hushcube.model.arrays import Ints
from hushcube.model.noise import LAPLACE
from hushcube.private.engines import ExactCounts
from hushcube.private.noise import Entropy, discrete_gaussian, discrete_laplace
from hushcube.progress import Progress


@dataclass(frozen=True)
class Noise:
    """How noise of a law is drawn. Tests draw marks in its place, to see which noise each number gets."""

    laplace: Callable[[Sequence[Fraction], int, Entropy], Ints] = discrete_laplace
    """A row of so many columns for each rate."""
    gaussian: Callable[[Sequence[Fraction], Ints, Entropy], Ints] = discrete_gaussian
    """A row for each parameter, times one multiplier for each column."""


EXACT: Final = Noise()  # exactly the laws that the cost assumes
_WORTH: Final = 1 << 18
"""Numbers from which on a second thread is worth starting."""


def noisy_values(
    design: Design, counts: ExactCounts, entropy: Entropy, report: Progress, noise: Noise | None = None
) -> tuple[Ints, ...]:
    """Exact integers plus noise, in the design's shapes; exact noise unless told otherwise."""
    noise = EXACT if noise is None else noise
    values = tuple(np.empty(shape, dtype=np.int64) for shape in design.shapes)
    done, total = 0, max(1, sum(array.size for array in values))

    def counted() -> Iterator[tuple[Block, Ints, Ints]]:
        for block, exact in transformed(design, counts):
            place = np.atleast_1d(values[block.array])[block.lines]
            place.fill(0)  # memory is paged in by the thread that has less to do
            yield block, exact, place

    for block, exact, place in ahead(counted()) if total > _WORTH else counted():
        own = drawn(design, block, entropy, noise)
        np.add(exact.reshape(place.shape), own.reshape(place.shape), out=place)
        done += place.size
        report("measuring", done / total)
    return values


def transformed(design: Design, counts: ExactCounts) -> Iterator[tuple[Block, Ints]]:
    """Every block with its exact integers, (rows, columns); tables that several blocks share are counted once."""
    counted, tables = np.zeros((0, 0), np.int32), np.zeros(0, np.int64)
    for block in design.blocks():
        if block.marginals is not counted:
            counted = block.marginals
            tables = counts.tables(counted).reshape(len(counted), *design.schema.shape(tuple(counted[0].tolist())))
        yield block, block.transform.apply(tables).reshape(len(block.budgets), block.columns)


def drawn(design: Design, block: Block, entropy: Entropy, noise: Noise) -> Ints:
    """Independent draws for the numbers of a block; none for what is public."""
    noisy = block.noisy
    budgets = block.budgets[noisy].tolist()
    parameter = {budget: design.law.parameter(Fraction(budget), block.stretch) for budget in set(budgets)}
    parameters = [parameter[budget] for budget in budgets]
    if design.law is LAPLACE:
        found = noise.laplace(parameters, block.columns, entropy)
    else:
        multipliers = np.ones(block.columns, np.int64) if block.multipliers is None else block.multipliers
        found = noise.gaussian(parameters, multipliers, entropy)
    if noisy.all():
        return found
    result = np.zeros((len(noisy), block.columns), dtype=np.int64)
    result[noisy] = found
    return result
