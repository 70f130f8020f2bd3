"""Barak et al. 2007, and the noise laws: the numbers of docs/maths.md section 9, by their numbers there."""

from fractions import Fraction

import numpy as np
import pytest

from helpers import ADULT8, make_plan, make_request
from hushcube.costs.row_cost import cost_of_sets
from hushcube.lattice.basis import FOURIER
from hushcube.lattice.hadamard import padded
from hushcube.model.noise import laplace_variance
from hushcube.model.privacy import Privacy


def sixteen_bits():
    return make_plan(make_request((2,) * 16, "<=2-way", epsilon=1), "fourier", "uniform").measured


def unit_cost(measured, neighbours):
    return cost_of_sets(FOURIER, measured, np.ones(len(measured)), Privacy.of(epsilon=1, neighbours=neighbours))


def test_vector_17_discrete_laplace_variance():
    assert laplace_variance(np.array(1.0)) == pytest.approx(1.8413471884, rel=1e-9)


def test_vector_18_closure_has_137_coefficients():
    assert len(sixteen_bits()) == 137


def test_vector_18_add_remove_sensitivity():
    assert unit_cost(sixteen_bits(), "add-remove") / 2**8 == Fraction("0.53515625")


def test_vector_18_tight_replace_one_sensitivity():
    """144 and not the paper's 274; the maximum is rounded up by at most 2^-40."""
    found = unit_cost(sixteen_bits(), "replace-one") / 2**8
    assert Fraction("0.5625") <= found <= Fraction("0.5625") * (1 + Fraction(1, 2**39))
    assert 2 * unit_cost(sixteen_bits(), "add-remove") / 2**8 == Fraction("1.0703125")


@pytest.mark.parametrize(("words", "coefficients"), [("2-way", 1969), ("<=3-way", 30_077)])
def test_vector_19_adult_closure(words, coefficients):
    plan = make_plan(make_request(ADULT8, words, epsilon=1), "fourier", "uniform")
    assert plan.measured.product([FOURIER.rows(n) for n in ADULT8]).sum() == coefficients


def test_vector_19_adult_bits_and_domain():
    assert sum(padded(n).bit_length() - 1 for n in ADULT8) == 23
    assert make_request(ADULT8, epsilon=1).schema.cells(tuple(range(8))) == 1_814_400
