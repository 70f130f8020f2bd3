"""Stacks for tests: random layers under random guarantees, and dense matrices of all of them that judge the algebra."""

import math
from fractions import Fraction

import numpy as np

from helpers import Dense, all_subsets, make_schema, marginal_rows
from hushcube.costs.row_cost import cost_of_sets, unchanged_by_replacing
from hushcube.designs import StackedDesign
from hushcube.designs.request import Request
from hushcube.designs.stacked.layer import Layer
from hushcube.lattice.basis import BASES
from hushcube.lattice.family import Family
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload

DOMAINS = [(2, 3, 4), (2, 2, 2, 2), (3, 5), (2, 1, 3), (7,)]


def hand_layer(workload, basis, budgets, *, pure, neighbours="add-remove", rows=1):
    """A layer of sets with budgets of one's own, whose guarantee is what it costs."""
    measured = Family.of(budgets, workload.schema.sizes)
    ordered = np.array([budgets[marginal] for marginal in measured])
    unit = Privacy.of(**{"epsilon" if pure else "rho": 1}, neighbours=neighbours, rows_per_person=rows)
    cost = cost_of_sets(BASES[basis], measured, ordered, unit) * rows ** (1 if pure else 2)
    amount = max(Fraction(math.ceil(cost * 10**15), 10**15), Fraction(1, 10**9))
    spent = Privacy.of(**{"epsilon" if pure else "rho": amount}, neighbours=neighbours, rows_per_person=rows)
    return Layer(spent, BASES[basis], measured).design(Request(workload, spent), ordered)


def random_layers(rng, *, tables_only=False, most=4):
    """Layers on a random small domain; all of them together see everything. Noise may be tiny, or totals public."""
    sizes = DOMAINS[rng.integers(len(DOMAINS))]
    pure, neighbours = bool(rng.integers(2)), ["add-remove", "replace-one"][rng.integers(2)]
    rows = 1 if rng.integers(3) else 2
    words = ["cube", "1-way,0-way"][rng.integers(2)]
    workload = Workload.parse(words, make_schema(sizes))
    bases = ["marginal", "fourier", "centred"] if pure else ["marginal", "fourier", "helmert"]
    every = all_subsets(range(len(sizes)))
    layers = []
    for number in range(rng.integers(1, most + 1)):
        basis = "marginal" if tables_only else bases[rng.integers(3)]
        sets = [every[i] for i in rng.choice(len(every), rng.integers(1, len(every) + 1), replace=False)]
        sets = every if number == 0 else sets
        if basis != "marginal":  # whose sets have no rows along an attribute of one value
            sets = [marginal for marginal in sets if all(sizes[i] > 1 for i in marginal)] or [()]
        public = unchanged_by_replacing(Family.of(every, sizes)) & (neighbours == "replace-one") & (rows == 1)
        known = {marginal for marginal, is_public in zip(Family.of(every, sizes), public, strict=True) if is_public}
        scale = 10.0 ** rng.uniform(-3, 0.3)
        budgets = {m: math.inf if m in known else float(scale * rng.uniform(0.1, 1)) for m in sets}
        layers.append(hand_layer(workload, basis, budgets, pure=pure, neighbours=neighbours, rows=rows))
    return layers, workload


def random_stack(seed, **given):
    """The stack of such layers."""
    return StackedDesign.of(*random_layers(np.random.default_rng(seed), **given))


class DenseStack(Dense):
    """All layers of a stack as one set of rows: z = S x + noise."""

    def __init__(self, stack):
        self.plan, parts = stack, list(map(Dense, stack.designs))
        starts = np.cumsum([0, *(design.groups for design in stack.designs)])
        self.set_of = np.concatenate([part.set_of + at for part, at in zip(parts, starts, strict=False)])
        for name in ("S", "norms", "stretch", "budget", "public"):
            setattr(self, name, np.concatenate([getattr(part, name) for part in parts]))

    def recovery(self, A, *, exact=True):
        """Generalised least squares over everything."""
        return marginal_rows(self.plan.schema.sizes, A) @ self._least_squares(exact=exact)

    def measurement(self, numbers):
        """A Measurement that holds the given integers."""
        ends = np.cumsum(list(map(math.prod, self.plan.shapes)))
        split = zip(np.split(np.asarray(numbers, np.int64), ends[:-1]), self.plan.shapes, strict=True)
        return Measurement(self.plan.digest, tuple(own.reshape(shape) for own, shape in split), private=False)

    def numbers(self, rng):
        """Any integers at all, but public answers are true ones."""
        numbers, x = rng.integers(-50, 50, len(self.S)), rng.integers(0, 9, self.S.shape[1])
        numbers[self.public] = (self.S @ x)[self.public]
        return numbers
