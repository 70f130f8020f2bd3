"""Ding et al. 2011: consistency by least squares, the numbers of math-notes section 9, by their numbers there."""

import numpy as np
import pytest

from helpers import all_tables, hand_plan, make_request
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.variances import kernel
from hushcube.model.measurement import Measurement
from hushcube.plan import error
from hushcube.recover.recovery import recover


def two_by_three():
    """A with variance 2 and AB with variance 8: Gaussian noise of rho 1/4 and 1/16."""
    request = make_request((2, 3), "cube", rho="5/16")
    return hand_plan(request, MARGINAL, [(0,), (0, 1)], [1 / 4, 1 / 16])


def test_vector_23_weighted_gls():
    plan = two_by_three()
    z = (np.array([[10, 4]]), np.array([[[3, 5, 1], [2, 0, 3]]]))
    tables = all_tables(plan, recover(plan, Measurement(plan.digest, z, private=False)))
    np.testing.assert_allclose(tables[0,], np.array([129, 53]) / 13, rtol=1e-9)
    np.testing.assert_allclose(tables[0, 1], np.array([[43, 69, 17], [22, -4, 35]]) / 13, rtol=1e-9)
    np.testing.assert_allclose(tables[1,], [5, 5, 4], rtol=1e-9)
    np.testing.assert_allclose(tables[()], 14, rtol=1e-9)


def test_vector_24_eigenvalues():
    plan = two_by_three()
    mu = 6 * kernel(MARGINAL, plan.measured, 1 / error.set_variances(plan, exact=False), plan.request.spaces)
    assert list(plan.request.spaces) == [(), (0,), (1,), (0, 1)]
    assert mu == pytest.approx([13 / 8, 13 / 8, 1 / 8, 1 / 8], rel=1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_vector_24_cell_variances(exact):
    found = error.cell_variances(two_by_three(), exact=exact)
    assert found == pytest.approx([48 / 13, 24 / 13, 144 / 13, 72 / 13], rel=1e-9)


def test_vector_25_example_3_1_with_consistency():
    """Sizes 2, 7, 5; L_pre = {100, 110, 101, 111}, each with variance 2 (4/eps)² = 32."""
    request = make_request((2, 7, 5), "cube", epsilon=1)
    plan = hand_plan(request, MARGINAL, [(0,), (0, 1), (0, 2), (0, 1, 2)], [0.25] * 4)
    found = dict(zip(request.marginals, error.cell_variances(plan, exact=False), strict=True))
    for A, variance in found.items():
        assert variance == pytest.approx(70 / 3 if 0 in A else 140 / 3, rel=1e-9)
