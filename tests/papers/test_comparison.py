"""Which strategy wins: the totals of math-notes section 8 and of the first step's issue, to the digits printed."""

import math

import pytest

from helpers import ADULT8, make_plan, make_request
from hushcube.plan import error

BINARY16 = (2,) * 16
COLUMNS = [(ADULT8, "2-way"), (ADULT8, "1..3-way"), (BINARY16, "2-way"), (BINARY16, "1..3-way")]

SECTION_8 = {
    ("identity", "uniform", "none"): (1.016e8, 3.339e8, 1.573e7, 9.123e7),
    ("workload", "uniform", "none"): (2.481e6, 3.936e8, 1.382e7, 4.836e9),
    ("workload", "uniform", "gls"): (1.930e6, 2.470e8, 3.946e6, 6.753e8),
    ("workload", "optimal", "none"): (1.881e6, 2.144e8, 1.382e7, 4.712e9),
    ("workload", "optimal", "gls"): (1.337e6, 1.028e8, 3.946e6, 6.239e8),
    ("fourier", "uniform", "none"): (1.537e8, 1.079e11, 4.505e6, 6.762e8),
    ("fourier", "optimal", "none"): (8.983e7, 3.185e10, 2.221e6, 2.176e8),
    ("residual", "optimal", "none"): (1.301e7, 2.039e9, 7.365e6, 1.259e9),
}


def total(sizes, words, variant, **privacy):
    return error.total_variance(make_plan(make_request(sizes, words, **privacy), *variant), exact=False)


def to_digits(found, printed, digits):
    """Half a unit of the last printed digit, and 1% of one: the notes round 3.338496e8 to 3.339e8."""
    unit = 10.0 ** (math.floor(math.log10(printed)) - digits + 1)
    assert abs(found - printed) <= 0.51 * unit


@pytest.mark.parametrize("column", range(4), ids=lambda i: f"{'adult8' if i < 2 else 'binary16'} {COLUMNS[i][1]}")
@pytest.mark.parametrize("variant", SECTION_8, ids=" ".join)
def test_section_8_pure_epsilon_1(variant, column):
    to_digits(total(*COLUMNS[column], variant, epsilon=1), SECTION_8[variant][column], 4)


@pytest.mark.parametrize(("column", "printed"), list(enumerate([4.20e5, 1.05e7, 1.66e5, 3.53e6])))
def test_section_8_residual_under_epsilon_1_delta_1e_6(column, printed):
    to_digits(total(*COLUMNS[column], ("residual", "optimal", "gls"), epsilon=1, delta="1e-6"), printed, 3)


@pytest.mark.parametrize(
    ("variant", "expected"),
    [
        (("identity", "uniform", "none"), 101_606_400),
        (("workload", "uniform", "none"), 2_480_576),
        (("workload", "uniform", "gls"), 1_930_208),
        (("workload", "optimal", "none"), 1_881_298.09),
        (("workload", "optimal", "gls"), 1_336_772.26),
    ],
    ids=str,
)
def test_issue_adult8_two_way_epsilon_1(variant, expected):
    assert total(ADULT8, "2-way", variant, epsilon=1) == pytest.approx(expected, rel=5e-9)


@pytest.mark.parametrize(("budgets", "expected"), [("uniform", 4_504_560), ("optimal", 2_221_317.27)])
def test_issue_sixteen_binary_two_way_fourier(budgets, expected):
    assert total(BINARY16, "2-way", ("fourier", budgets, "none"), epsilon=1) == pytest.approx(expected, rel=5e-9)


@pytest.mark.parametrize(
    ("sizes", "words", "expected"),
    [
        (ADULT8, "2-way", 23_515.02),
        (ADULT8, "<=3-way", 590_556.545),
        ((10,) * 10, "<=3-way", 10_888_529.55),
    ],
    ids=str,
)
def test_issue_residual_rho_one_half(sizes, words, expected):
    assert total(sizes, words, ("residual", "optimal", "gls"), rho="1/2") == pytest.approx(expected, rel=3e-7)
