"""Xiao et al. 2011, section 4: the exact NoiseDown law, proved in fractions, and why the printed one is not used.

Numbers are those of docs/maths.md, sections 3 and 9. Infinite sums are exact: outside a window the
summand is geometric (which is checked), so that its tails have closed forms.
"""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from scipy.optimize import brentq

from hushcube.model.noise import laplace_variance
from hushcube.private.noise import SeededEntropy
from noise_down import exact_coin, noise_down, pmf, posterior, stay, step_pmf

HALF, THIRD = Fraction(1, 2), Fraction(1, 3)
PAIRS = [
    (HALF, THIRD),
    (HALF, HALF),
    (Fraction(99, 100), Fraction(98, 99)),
    (Fraction(9, 10), Fraction(1, 10)),
    (Fraction(2, 7), Fraction(1, 1000)),
]
CHAIN = [Fraction(100 - i, 101) for i in range(91)]  # 90 steps: scales from 100 down to 0.43
rationals = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=200)
chains = st.lists(rationals, min_size=2, max_size=5).map(lambda found: sorted(found, reverse=True))
noises = st.integers(-12, 12)


def whole_sum(f, marks, ratio):
    """The sum of f over all integers, exactly: f is geometric with the ratio below and above the marks."""
    low, high = min(marks), max(marks)
    for edge, side in ((low, -1), (high, 1)):
        assert f(edge + 2 * side) == ratio * f(edge + side)
        assert f(edge + 5 * side) == ratio**4 * f(edge + side)
    return sum(f(k) for k in range(low, high + 1)) + (f(low - 1) + f(high + 1)) / (1 - ratio)


# --------------------------------------------------------------------------------------------------- the sampler's law


class Asked(Exception):
    """The sampler asked for one decision more than it was given."""


def decision_tree(sampler, depth):
    """The exact probability of each outcome, over all sequences of at most `depth` answers of the coin."""
    leaves = defaultdict(Fraction)
    paths = [((), Fraction(1))]
    while paths:
        answers, mass = paths.pop()
        left = list(answers)

        def coin(chance, left=left):
            if left:
                return left.pop(0)
            raise Asked(chance)

        try:
            leaves[sampler(coin)] += mass
        except Asked as question:
            (chance,) = question.args
            assert 0 <= chance <= 1
            if len(answers) < depth:
                branches = ((True, chance), (False, 1 - chance))
                paths += [((*answers, answer), mass * share) for answer, share in branches if share]
    return dict(leaves)


def assert_the_sampler_has_the_posterior(p, q, d, beyond=6):
    """On every outcome from `beyond` across the truth to `beyond` past d.

    What the tree gives is at least the part of the probability found so far; as the posterior sums to one, equality on
    all windows leaves no mass for anything else.
    """
    found = decision_tree(lambda coin: noise_down(p, q, d, coin), abs(d) + 3 + beyond)
    assert found == {x: posterior(p, q, d, x) for x in found}
    if p > q:
        towards = 1 if d >= 0 else -1
        assert {towards * x for x in range(-beyond, abs(d) + beyond + 1)} <= found.keys()
    else:
        assert found == {d: 1}


@pytest.mark.parametrize("d", [-9, -2, -1, 0, 1, 2, 9])
@pytest.mark.parametrize(("p", "q"), PAIRS)
def test_the_decision_tree_has_the_posterior_law(p, q, d):
    assert_the_sampler_has_the_posterior(p, q, d)


@given(rationals, rationals, noises)
@settings(max_examples=40, deadline=None)
def test_the_decision_tree_has_the_posterior_law_for_rationals(p, q, d):
    assert_the_sampler_has_the_posterior(max(p, q), min(p, q), d, beyond=3)


def test_vector_9():
    numbers = ["5/576", "5/96", "5/16", "5/24", "7/18", "5/216", "5/1296", "5/7776"]
    expected = {x: Fraction(number) for x, number in zip(range(-2, 6), numbers, strict=True)}
    tree = decision_tree(lambda coin: noise_down(HALF, THIRD, 2, coin), 9)
    assert {x: posterior(HALF, THIRD, 2, x) for x in expected} == expected
    assert {x: tree[x] for x in expected} == expected
    assert stay(HALF, THIRD) == Fraction(3, 8)


def test_vector_10():
    expected = {x: Fraction(n) for x, n in {-2: "5/576", -1: "5/96", 0: "7/8", 1: "5/96", 2: "5/576"}.items()}
    tree = decision_tree(lambda coin: noise_down(HALF, THIRD, 0, coin), 6)
    assert {x: posterior(HALF, THIRD, 0, x) for x in expected} == expected
    assert {x: tree[x] for x in expected} == expected


@given(rationals, rationals, noises)
@settings(max_examples=40, deadline=None)
def test_the_posterior_sums_to_one(p, q, d):
    p, q = max(p, q), min(p, q)
    assert whole_sum(lambda x: posterior(p, q, d, x), (0, d), p * q) == 1


@pytest.mark.parametrize(("p", "q"), [(THIRD, HALF), (Fraction(1), HALF), (HALF, Fraction(0)), (HALF, -THIRD)])
def test_noise_never_goes_up(p, q):
    with pytest.raises(ValueError, match=f"p = {p}, q = {q}"):
        noise_down(p, q, 1, lambda chance: False)


def test_draws_with_the_exact_coin():
    """Chi-square on 4000 draws; false alarm 1e-6. A scale 30% larger is rejected."""
    coin = exact_coin(SeededEntropy(11))
    draws = [noise_down(HALF, THIRD, 2, coin) for _ in range(4000)]
    seen = [sum(max(-2, min(x, 3)) == cell for x in draws) for cell in range(-2, 4)]

    def p_value(q):
        law = [float(posterior(HALF, q, 2, x)) for x in range(-30, 30)]
        return stats.chisquare(seen, 4000 * np.array([sum(law[:29]), *law[29:33], sum(law[33:])])).pvalue

    assert p_value(THIRD) > 1e-6
    assert p_value(Fraction(math.exp(-math.log(3) / 1.3))) < 1e-6


# ------------------------------------------------------------------------------------------ divisibility and the chain


@given(rationals, rationals, noises)
@settings(max_examples=40, deadline=None)
def test_the_coarse_law_is_the_fine_one_plus_a_step(p, q, k):
    """DLap(q) * (c0 at 0, else DLap(p)) = DLap(p); the atom is added apart from the geometric tails."""
    p, q = max(p, q), min(p, q)
    c0 = stay(p, q)
    smooth = whole_sum(lambda y: pmf(q, y) * (1 - c0) * pmf(p, k - y), (0, k), p * q)
    assert c0 * pmf(q, k) + smooth == pmf(p, k)
    assert whole_sum(lambda z: step_pmf(p, q, z), (0,), p) == 1


@given(chains)
@settings(max_examples=40, deadline=None)
def test_staying_telescopes(chain):
    """So that one uniform tells at which of many levels a value first moves."""
    assert math.prod(stay(p, q) for p, q in pairwise(chain)) == stay(chain[0], chain[-1])


def test_staying_telescopes_over_ninety_steps():
    assert math.prod(stay(p, q) for p, q in pairwise(CHAIN)) == stay(CHAIN[0], CHAIN[-1])


@pytest.mark.parametrize(("rate", "finer"), [(0.01, 0.0101), (0.125, 1.0), (1.0, 3.5)])
def test_staying_is_the_ratio_of_variances(rate, finer):
    found = float(stay(Fraction(math.exp(-rate)), Fraction(math.exp(-finer))))
    assert found == pytest.approx(
        float(laplace_variance(np.array(finer)) / laplace_variance(np.array(rate))), rel=1e-10
    )


@given(st.lists(rationals, min_size=3, max_size=3, unique=True), noises, noises)
@settings(max_examples=40, deadline=None)
def test_two_steps_have_the_law_of_one(parameters, d, x):
    """So that levels may be skipped."""
    r, q, p = sorted(parameters)
    both = whole_sum(lambda y: posterior(p, q, d, y) * posterior(q, r, y, x), (0, d, x), p * q)
    assert both == posterior(p, r, d, x)


@pytest.mark.parametrize("x", [-4, 0, 1, 7])
def test_the_law_after_ninety_steps_is_the_last_one(x):
    """By induction: each step carries the law it finds, DLap(p), to DLap(q), exactly."""
    for p, q in pairwise(CHAIN):
        assert whole_sum(lambda y, p=p, q=q: pmf(p, y) * posterior(p, q, y, x), (0, x), p) == pmf(q, x)


# ------------------------------------------------------------------------------------------------------------- privacy


def joint(chain, path, truth):
    """The probability of all values seen, in the order they are drawn."""
    noise = [y - truth for y in path]
    steps = zip(pairwise(chain), pairwise(noise), strict=True)
    return pmf(chain[0], noise[0]) * math.prod(posterior(p, q, d, x) for (p, q), (d, x) in steps)


@pytest.mark.parametrize("shift", [1, 2])
@pytest.mark.parametrize("chain", [(HALF, THIRD), (Fraction(2, 3), HALF, Fraction(1, 4))], ids=str)
def test_every_prefix_costs_what_its_last_value_costs(chain, shift):
    """Vector 10: the largest ratio over a shift of one is 3 for (1/2, 1/3)."""
    for length in range(1, len(chain) + 1):
        seen = chain[:length]
        ratios = {
            joint(seen, path, 0) / joint(seen, path, shift) for path in product(range(-3, shift + 4), repeat=length)
        }
        assert max(ratios) == 1 / seen[-1] ** shift
        assert min(ratios) == seen[-1] ** shift


@pytest.mark.parametrize("start", [-150, 0, 3, 80])
def test_ninety_values_cost_what_the_last_one_costs(start):
    """On drawn paths: the joint law is the last marginal times steps free of the truth, at every prefix."""
    coin = exact_coin(SeededEntropy(start % 7))
    path = [start]
    for p, q in pairwise(CHAIN):
        path.append(noise_down(p, q, path[-1], coin))
    assert len(set(path)) > 3
    for shift in (1, 2):
        ratio = pmf(CHAIN[0], start) / pmf(CHAIN[0], start - shift)
        for (p, q), (y, new) in zip(pairwise(CHAIN), pairwise(path), strict=True):
            ratio *= posterior(p, q, y, new) / posterior(p, q, y - shift, new - shift)
            assert ratio == q ** (abs(new) - abs(new - shift))
            assert q**shift <= ratio <= 1 / q**shift
    steps = [step_pmf(p, q, y - new) for (p, q), (y, new) in zip(pairwise(CHAIN), pairwise(path), strict=True)]
    assert joint(CHAIN, path, 5) == pmf(CHAIN[-1], path[-1] - 5) * math.prod(steps)


# ------------------------------------------------------------------------------- the continuous law, exact and printed

NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def integral(f, cuts):
    """Gauss-Legendre between the cuts, where f is smooth."""
    total = 0.0
    for a, b in pairwise(sorted(set(cuts))):
        total += (b - a) / 2 * float(WEIGHTS @ f((a + b) / 2 + (b - a) / 2 * NODES))
    return total


def continuous_masses(scale, finer, d):
    """Opposite, between, atom, beyond: docs/maths.md section 3, for d >= 0."""
    r, decay = finer / scale, math.exp(-d * (1 / finer - 1 / scale))
    return (1 - r) / 2, (1 + r) / 2 * (1 - decay), r * decay, (1 - r) / 2 * decay


def test_vector_11():
    expected = (0.1, 0.2332636014, 0.5926545765, 0.0740818221)
    assert continuous_masses(5, 4, 6) == pytest.approx(expected, rel=1e-9)
    assert sum(expected) == pytest.approx(1)

    def smooth(x):
        """Bayes: Lap(x; 4) (1 - r²) Lap(6 - x; 5) / Lap(6; 5), and the atom r² Lap(6; 4) / Lap(6; 5)."""
        return (1 - 0.8**2) * np.exp(-np.abs(x) / 4 - np.abs(6 - x) / 5 + 6 / 5) / 8

    bayes = [integral(smooth, cuts) for cuts in ((-200, 0), (0, 6), (6, 200))]
    atom = 0.8**2 * (math.exp(-6 / 4) / 8) / (math.exp(-6 / 5) / 10)
    assert (bayes[0], bayes[1], atom, bayes[2]) == pytest.approx(expected, rel=1e-9)


def test_the_lattice_law_tends_to_the_continuous_one():
    """The difference is of the order of the width of a cell: below a hundredth at 1/32."""
    width = 1 / 32
    p, q = (Fraction(math.exp(-width / scale)).limit_denominator(10**5) for scale in (5, 4))
    d = round(6 / width)
    opposite, beyond = (posterior(p, q, d, x) / (1 - p * q) for x in (-1, d + 1))
    between = sum(posterior(p, q, d, x) for x in range(d))
    found = [float(mass) for mass in (opposite, between, posterior(p, q, d, d), beyond)]
    assert found == pytest.approx(continuous_masses(5, 4, 6), rel=0.01)


def printed_f(scale, finer, d, x):
    """(6) and (7), with d = y - mu and x = y' - mu."""
    cosh, u = math.cosh(1 / finer), d - x
    bracket = 2 * cosh * np.exp(-np.abs(u) / scale) - np.exp(-np.abs(u - 1) / scale) - np.exp(-np.abs(u + 1) / scale)
    gamma = bracket / (4 * scale * (cosh - 1))
    return scale / finer * np.exp(abs(d) / scale - np.abs(x) / finer) * gamma


def printed_mass(scale, finer, d, low=-math.inf, high=math.inf):
    far = abs(d) + 1 + 60 * finer
    low, high = max(low, -far), min(high, far)
    cuts = [low, high, *(c for c in (0.0, d - 1.0, float(d), d + 1.0) if low < c < high)]
    return integral(lambda x: printed_f(scale, finer, d, x), cuts)


def thetas(scale, finer, d, *, printed):
    """(8), (9), (10) for d >= 0; (9) as printed, or without its cosh."""
    s, f = 1 / scale, 1 / finer
    cosh, xi = math.cosh(f), min(0.0, d - 1.0)
    outer = scale * (cosh - math.cosh(s)) / (2 * (finer + scale) * (cosh - 1))
    inner = scale * (math.exp(f) - math.exp(s)) * (1 - math.exp(-f - s)) / (4 * (scale - finer) * (cosh - 1))
    return (
        outer * math.exp((f + s) * xi),
        (cosh if printed else 1) * inner * (1 - math.exp((f - s) * (xi - d + 1))),
        outer * math.exp((-d - 1) * f - (1 - d) * s),
    )


@pytest.mark.parametrize(
    ("scale", "finer", "at_truth", "away"),
    [(5, 4, 0.9366663196, 1.0033273719), (1.5, 1, 0.8159983392, 1.0357745471)],
)
def test_vector_12_the_printed_density_is_none(scale, finer, at_truth, away):
    assert printed_mass(scale, finer, 0) == pytest.approx(at_truth, rel=1e-9)
    for d in (1, -1, 1.5, 7):
        assert printed_mass(scale, finer, d) == pytest.approx(away, rel=1e-9)


@pytest.mark.parametrize(
    ("scale", "finer", "at_truth", "away", "renormalised", "figure_3", "mended", "printed"),
    [
        (5, 4, 0.93667, 1.00333, 0.3188, 0.3294, 111.7, 67.3),
        (1.5, 1, 0.81600, 1.03577, 1.2385, 1.2627, 10.5, 3.86),
        (0.5, 0.4, 0.62610, 1.28278, 3.2173, 3.2512, 3.81, 1.26),
        (100, 99, 0.99667, 1.00001, 0.01344, 0.01347, 1.157e5, 9.63e4),
    ],
)
def test_the_table_of_section_2(scale, finer, at_truth, away, renormalised, figure_3, mended, printed):
    """Every loss is above the claimed 1/λ'. Past d* Figure 3 has nothing left for (y-1, y+1): the loss is infinite."""
    masses = [printed_mass(scale, finer, d) for d in (0, 1)]
    assert masses == pytest.approx([at_truth, away], abs=6e-6)
    s, f = 1 / scale, 1 / finer
    closed = (math.cosh(f) - math.cosh(s)) / ((1 - (finer / scale) ** 2) * (math.cosh(f) - 1))
    assert masses[1] == pytest.approx(closed, rel=1e-9)

    assert f + math.log(masses[1] / masses[0]) == pytest.approx(renormalised, rel=4e-4)
    rest = [sum(thetas(scale, finer, d, printed=False)) for d in (0, 1)]
    inflated = [(1 - outer) / (mass - outer) for outer, mass in zip(rest, masses, strict=True)]
    assert f + math.log(inflated[0] / inflated[1]) == pytest.approx(figure_3, rel=4e-4)
    for as_printed, end in ((False, mended), (True, printed)):
        empty = brentq(lambda d, w=as_printed: 1 - sum(thetas(scale, finer, d, printed=w)), 1, 2e5)
        assert empty == pytest.approx(end, rel=4e-3)


def test_the_excess_of_a_chain_adds_up():
    """10 -> 1 in steps of 0.1 claims a loss of 1; renormalised, it may lose 7.94 more."""
    steps = [(10 - i / 10, 9.9 - i / 10) for i in range(90)]
    excess = sum(math.log(printed_mass(*step, 1) / printed_mass(*step, 0)) for step in steps)
    assert excess == pytest.approx(7.94, abs=0.005)


@pytest.mark.parametrize(("scale", "finer"), [(5, 4), (1.5, 1), (1, 0.5)])
@pytest.mark.parametrize("d", [0.3, 2.5, 4])
def test_equation_9_has_a_factor_too_many(scale, finer, d):
    xi = min(0.0, d - 1.0)
    true = [printed_mass(scale, finer, d, *ends) for ends in ((-math.inf, xi), (xi, d - 1.0), (d + 1.0, math.inf))]
    assert thetas(scale, finer, d, printed=False) == pytest.approx(true, rel=1e-9, abs=1e-15)
    assert thetas(scale, finer, d, printed=True)[1] == pytest.approx(
        math.cosh(1 / finer) * true[1], rel=1e-9, abs=1e-15
    )


@pytest.mark.parametrize(("scale", "finer", "d", "total"), [(1.5, 1, 4, 1.023), (1, 0.5, 3, 2.88)])
def test_the_printed_masses_of_figure_3_exceed_one(scale, finer, d, total):
    assert sum(thetas(scale, finer, d, printed=True)) == pytest.approx(total, abs=0.005 if total > 2 else 0.0005)


@pytest.mark.parametrize("d", [0, 1, -3, 20])
def test_vector_13_the_lattice_sum(d):
    x = np.arange(-400, 401)
    assert printed_f(5, 4, d, x).sum() == pytest.approx(1.0052029160, rel=1e-9)
    assert printed_f(1.5, 1, d, x).sum() == pytest.approx(1.0819767, rel=1e-7)
    assert 1 / math.tanh(1 / 8) / 8 == pytest.approx(1.0052029160, rel=1e-9)


@given(rationals, rationals, noises, noises)
@settings(max_examples=40, deadline=None)
def test_on_the_lattice_the_printed_law_is_the_posterior_times_a_constant(p, q, d, x):
    """f = coth(1/(2λ'))/(2λ') P(x | d); times 4 λ' both are rational in p and q, and equal exactly."""
    p, q = max(p, q), min(p, q)
    cosh, u = (q + 1 / q) / 2, d - x
    bracket = 2 * cosh * p ** abs(u) - p ** abs(u - 1) - p ** abs(u + 1)
    printed = q ** abs(x) / p ** abs(d) * bracket / (cosh - 1)
    assert printed == 2 * (1 + q) / (1 - q) * posterior(p, q, d, x)


# ------------------------------------------------------------------------------------------------------------ variances


def test_vector_17_is_the_variance_of_the_law():
    assert laplace_variance(np.array(1.0)) == pytest.approx(1.8413471884, rel=1e-9)
    p = Fraction(math.exp(-1))
    assert float(sum(pmf(p, k) * k**2 for k in range(-60, 61))) == pytest.approx(1.8413471884, rel=1e-9)


def test_vector_30_averaging_is_worse_than_noise_down_at_equal_cost():
    """Scales 5 and 4: the best average of two draws, against one value at the rate 1/5 + 1/4 (Appendix A, mended)."""
    weight = np.linspace(0, 1, 4101)  # of the draw of scale 4; the best, 25/41, is on the grid
    combined = (weight**2 * 2 * 4**2 + (1 - weight) ** 2 * 2 * 5**2).min()
    assert combined == pytest.approx(19.512195122, rel=1e-9)
    rate = 1 / 5 + 1 / 4
    assert 2 / rate**2 == pytest.approx(9.876543210, rel=1e-9)
    # on the lattice the variance is 1/6 less than 2/rate², up to rate²/120
    assert laplace_variance(np.array(rate)) == pytest.approx(9.876543210 - 1 / 6, abs=rate**2 / 120)
