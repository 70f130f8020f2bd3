"""Covariances of cells that only depend on which attributes agree, held against brute force."""

from itertools import product

import numpy as np
import pytest

import hushcube as hc
from hushcube.model.attribute import Attribute

SCHEMA = hc.Schema([Attribute("a", codes=2), Attribute("b", codes=3), Attribute("c", codes=2)])
LAPLACE = {"epsilon": 1, "neighbours": "add-remove"}
GAUSSIAN = {"rho": "0.1", "neighbours": "add-remove"}
DESIGNS = [
    ("residual", "gls", GAUSSIAN),
    ("workload", "gls", LAPLACE),
    ("workload", "ols", GAUSSIAN),
    ("workload", "answers", LAPLACE),
    ("workload", "none", LAPLACE),
    ("fourier", "none", LAPLACE),
    ("fourier", "gls", LAPLACE),
    ("identity", "gls", LAPLACE),
]


def by_brute_force(errors, marginal, shape):
    """The covariance of the first cell with every other one, from variances of sums."""
    cells = list(np.ndindex(shape))
    one = np.zeros(shape)
    one[cells[0]] = 1
    alone = errors.sum_variance(marginal, one)
    for cell in cells:
        other = np.zeros(shape)
        other[cell] = 1
        yield cell, (errors.sum_variance(marginal, one + other) - errors.sum_variance(marginal, other) - alone) / 2


@pytest.mark.parametrize(("strategy", "recovery", "guarantee"), DESIGNS, ids=lambda x: x if isinstance(x, str) else "")
@pytest.mark.parametrize("word", ["a*b*c,b*c,a,0-way", "<=2-way"])
def test_equal_those_of_sums_of_two_cells(strategy, recovery, guarantee, word):
    design = hc.plan(SCHEMA, word, strategy=strategy, recovery=recovery, **guarantee).count
    for marginal in design.workload.published:
        found = design.errors.cell_covariances(marginal)
        shape = SCHEMA.shape(marginal)
        assert found.shape == (2,) * len(marginal)
        for cell, expected in by_brute_force(design.errors, marginal, shape):
            agree = tuple(int(at == 0) for at in cell)
            assert found[agree] == pytest.approx(expected, rel=1e-9, abs=1e-9 * abs(found.max()))


def test_are_not_given_where_more_matters():
    age = Attribute("age", codes=16, ordered=True)
    design = hc.plan(hc.Schema([age]), "prefix(age)", strategy="hierarchy", **LAPLACE).count
    assert design.errors.cell_covariances((0,)) is None


def test_give_the_variance_of_any_sum():
    design = hc.plan(SCHEMA, "<=2-way", strategy="residual", **GAUSSIAN).count
    found, weights = design.errors.cell_covariances((0, 1)), np.array([[1.0, 0, 2], [0, -1, 1]])
    cells = list(np.ndindex(2, 3))
    total = sum(
        weights[x] * weights[y] * found[tuple(int(i == j) for i, j in zip(x, y, strict=True))]
        for x, y in product(cells, cells)
    )
    assert total == pytest.approx(design.errors.sum_variance((0, 1), weights), rel=1e-9)
