"""What tests of range workloads share: ordered attributes, dense rows of forms, and a dense judge for tree plans.

As in `helpers`, matrices are built from definitions. A tree plan is judged on its leaves, phantoms included, which hold
nobody and belong to the last cell.
"""

import math
from itertools import pairwise, product

import numpy as np

from helpers import Dense, kron
from hushcube.designs import LatticeDesign, TreeDesign
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import Request
from hushcube.errors import NotApplicable
from hushcube.model.attribute import Attribute
from hushcube.model.noise import Measurement
from hushcube.model.privacy import Privacy
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.strategies import REGISTRY, Hierarchy, read_strategy


def ordered_schema(sizes, missing=()):
    """Attributes a0, a1, ... with as many ordered values; those in `missing` have one more category."""
    return Schema(
        tuple(
            Attribute(name=f"a{i}", range=(0, n - 1), missing="unknown" if i in missing else "error")
            for i, n in enumerate(sizes)
        )
    )


def random_queries(schema, marginal, rows=3, seed=0):
    """Sparse rows of small numbers over the cells of a marginal."""
    matrix = np.random.default_rng(seed).choice([0, 0, 1, 1, -1, 0.5], (rows, schema.cells(marginal)))
    return QueryTable(marginal, tuple(schema.attributes[i] for i in marginal), SparseRows.of(matrix))


def ranged_request(schema, words, *, queries=None, neighbours="add-remove", **privacy):
    return Request(
        Workload.parse(words, schema, queries),
        Privacy.of(neighbours=neighbours, **privacy),
        effort="low",
    )


def strategies(request):
    """The strategies that accept a request and whose answers are linear in what they measure."""
    return [name for name, s in REGISTRY.items() if name != "sketch" and s.accepts(request) is None]


def every_variant(request, names=None, budgets=BUDGETS, recoveries=RECOVERIES):
    """All variants that the strategies make; some refuse a recovery."""
    for name, rule, recovery in product(strategies(request) if names is None else names, budgets, recoveries):
        try:
            yield read_strategy(name).plan(request, rule, recovery)
        except NotApplicable:
            assert isinstance(read_strategy(name), Hierarchy) or recovery == "none", (
                f"{name} {rule} {recovery} was refused"
            )


# ------------------------------------------------------------------------------------------------- dense rows of forms


def axis_rows(attribute, kind):
    """The sums along an axis, in the order published: of values; then the categories, each alone."""
    n, size = attribute.domain_size, attribute.size
    if kind == "cells":
        sums = [(k, k + 1) for k in range(n)]
    elif kind == "prefix":
        sums = [(0, k + 1) for k in range(n)]
    else:
        sums = [(j, k + 1) for j in range(n) for k in range(j, n)]
    sums += [(k, k + 1) for k in range(n, size)]
    return np.array([[float(a <= k < b) for k in range(size)] for a, b in sums])


def form_rows(form):
    """All answers of a form as rows over the cells of its carrier."""
    if isinstance(form, QueryTable):
        return form.rows.dense()
    return kron([axis_rows(a, kind) for a, kind in zip(form.attributes, form.along, strict=True)])


# --------------------------------------------------------------------------------------------------------- dense trees


def node_sums(tree, level):
    span = math.prod(tree.fan_outs[level:])
    return np.kron(np.eye(math.prod(tree.fan_outs[:level])), np.ones((1, span)))


def halves(tree, level):
    """The first half of each node of level - 1, less the second."""
    pair = np.kron(np.eye(len(node_sums(tree, level - 1))), np.array([[1.0, -1.0]]))
    return pair @ node_sums(tree, level)


def projections(tree):
    """P_l: the mean over the nodes of level l, less that of level l - 1."""
    means = [(rows := node_sums(tree, level)).T @ rows / rows[0].sum() for level in range(len(tree.fan_outs) + 1)]
    return [means[0], *(b - a for a, b in pairwise(means))]


def folded(tree):
    """Cells from leaves: each its own, the last one the phantoms too."""
    result = np.eye(tree.size, math.prod(tree.fan_outs))
    result[-1, tree.size :] = 1
    return result


class DenseTree(Dense):
    """A tree plan on a small domain as matrices over its leaves: z = S x + noise, answers = R z."""

    def __init__(self, plan):
        self.plan = plan
        blocks = [
            kron(
                [
                    halves(tree, m) if wavelet and m else node_sums(tree, m)
                    for tree, wavelet, m in zip(plan.trees, plan.wavelet, row, strict=True)
                ]
            )
            for row in plan.levels.tolist()
        ]
        self.S = np.concatenate(blocks)
        self.set_of = np.repeat(np.arange(len(blocks)), [len(block) for block in blocks])
        self.norms = self.stretch = np.ones(len(self.S))
        self.budget = plan.budgets[self.set_of]
        self.public = ~np.isfinite(self.budget)

    def padded(self, table):
        """A table over the cells of all attributes as counts of leaves."""
        return np.pad(table, [(0, math.prod(t.fan_outs) - t.size) for t in self.plan.trees]).ravel()

    def recovery(self, A, *, exact=True):
        """R for the cells of one marginal."""
        rows = [folded(t) if i in A else np.ones((1, math.prod(t.fan_outs))) for i, t in enumerate(self.plan.trees)]
        return kron(rows) @ self._least_squares(exact=exact)

    def measurement(self, numbers):
        """A Measurement that holds the given integers."""
        ends = np.cumsum([0] + [math.prod(shape) for shape in self.plan.shapes])
        assert ends[-1] == len(numbers)
        parts = (np.asarray(numbers[a:b], np.int64) for a, b in pairwise(ends))
        values = tuple(part.reshape(shape) for part, shape in zip(parts, self.plan.shapes, strict=True))
        return Measurement(self.plan.digest, values, private=False)


def dense_of(plan):
    """The dense judge of a plan, or None where its kind has none here."""
    if isinstance(plan, TreeDesign):
        return DenseTree(plan)
    return Dense(plan) if isinstance(plan, LatticeDesign) else None
