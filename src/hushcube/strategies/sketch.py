"""Throw the cells of the full table into buckets, several times, and measure the buckets.

minimise over nothing: t and b are given; budgets are equal, for repetitions are alike       [designs/sketch/design.py]

    noise        2 t / epsilon² for a cell (average, Laplace, add-remove), whatever b is: many buckets cost no privacy
    collisions   at most ||x||² / (t b) for a cell on average over throws: what others in its bucket add or take away

The second part depends on the data and is stated as a bound, not known: `auto` never chooses a sketch. It measures
fewer numbers than there are cells, which is what it is for. Budgets and recoveries all come to the same here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np

from hushcube.costs.calibrate import Proof, smoothing_variance
from hushcube.designs.design import Budgets, Design, Recovery
from hushcube.designs.request import Request
from hushcube.designs.sketch.design import ESTIMATES, MAX_CELLS, MAX_NUMBERS, Estimate, SketchDesign, Throws, row_cost
from hushcube.errors import BadInput, readable
from hushcube.model.arrays import Floats, Marginal
from hushcube.options import choice, option, whole
from hushcube.strategies.strategy import Strategy, best_fit

SEED: Final = 0x68757368  # Public: it decides where cells fall, not the noise
BUCKETS: Final = 2**16  # the most buckets unless told otherwise: more would cost memory, not privacy


@dataclass(frozen=True, kw_only=True)
class Sketch(Strategy):
    """Repetitions of buckets of the smallest table that contains all those asked for."""

    name = "sketch"
    measures = "random buckets of the full table's cells"
    makes = (SketchDesign,)
    automatic = False

    buckets: int | None = option(
        None,
        f"buckets of one repetition; as many as there are cells, at most {BUCKETS:,}, unless given",
        takes="NUMBER",
        read=whole(1),
    )
    repetitions: int = option(5, "how often cells are thrown into buckets", takes="NUMBER", read=whole(1))
    estimate: Estimate = choice("average", "how the repetitions are combined", ESTIMATES)

    def accepts(self, request: Request) -> str | None:
        """Refuse tables that cannot be held."""
        cells = request.schema.cells(carrier(request))
        if cells > MAX_CELLS:
            return f"the table that contains all those asked for has {readable(cells)} cells, more than {MAX_CELLS:,}"
        return None

    def plan(self, request: Request, budgets: Budgets, recovery: Recovery) -> Design:
        """Equal budgets for all repetitions."""
        privacy, marginal = request.privacy, carrier(request)
        cells = request.schema.cells(marginal)
        t, b = self.repetitions, self.buckets or min(cells, BUCKETS)
        if t * b > MAX_NUMBERS:
            raise BadInput("buckets", f"{t:,} repetitions of {b:,} are more than {MAX_NUMBERS:,}", "give fewer")
        if self.estimate == "median" and t % 2 == 0:
            raise BadInput("repetitions", f"the median of {t:,} is not one of them", "give an odd number")
        throws = Throws(cells, t, b, SEED)

        def make(proof: Proof, fit: Floats) -> SketchDesign:
            own = (marginal, b, SEED, self.estimate)
            made = SketchDesign(request, self.name, budgets, recovery, proof, fit, *own)
            return replace(made, details={"collisions": made.collisions})

        cost, smooth = partial(row_cost, throws, privacy=privacy), partial(smoothing_variance, privacy, t)
        return best_fit(privacy, [np.ones(t)], cost, smooth, make)


def carrier(request: Request) -> Marginal:
    """The attributes of all tables together."""
    return tuple(request.marginals.attributes.tolist())
