"""NoiseDown: replace noisy y by a less noisy y', so that both together cost what y' alone costs.

With the law DLap(p): P(k) = (1-p)/(1+p) p^|k|, p = exp(-1/λ), and q = exp(-1/λ') <= p, the coarse law is the fine one
plus noise that knows nothing of the truth:

    DLap(p) = DLap(q) + Z,    Z = 0 with probability c0 = q (1-p)² / (p (1-q)²), else Z ~ DLap(p)          (*)

(divide the generating functions (1-p)² / ((1-ps)(1-p/s))). So draw y' given y by Bayes, with d = y - μ, x = y' - μ:

    P(x | d) = DLap(q)(x) P(Z = d - x) / DLap(p)(d)

The joint law of a chain y_0, y_1, ..., y_k is then DLap(p_k)(y_k - μ) times factors P(Z_i = y_i - y_{i+1}) free of μ:
it costs 1/λ_k for each unit by which the truth moves, at every k, and nothing for the values before. With
S(λ) = cosh(1/λ) - 1 = (1-p)²/(2p), c0 = S(λ)/S(λ') telescopes: a value stays put over several steps with the
probability c0 of the one step from the first law to the last, and several steps have the law of one.

For d >= 0 (mirror for d < 0) the posterior falls into geometric pieces, as 1 - c0 = (p-q)(1-pq) / (p (1-q)²):

    x < 0        a (pq)^|x|,  a = (p-q)(1-pq)/(p(1-q²)),  of mass q(p-q)/(1-q²)                             [step 1]
    0 <= x <= d  a (q/p)^x: of the mass left, (1-pq)/(1-q²), the share (1-q/p)(q/p)^x                       [step 2]
    x >= d       all that is left: the share (1-p²)/(1-pq) at x = d, the other in proportion to (pq)^(x-d)  [step 3]

Departs from the paper [Xiao et al. 2011]: Definition 5, (6)-(7), has no atom at y' = y (it is smeared over y-1 .. y+1)
and is no density: its integral is 0.937 at y = μ and 1.003 from |y-μ| = 1 on (λ = 5 -> 4), so Theorem 1 fails, and a
chain of ever smaller steps leaks without bound. (9) has a factor cosh(1/λ') too many: the masses of Figure 3 may sum to
more than one. On the integers (6)-(7) is the posterior above, but for the constant coth(1/(2λ'))/(2λ').
"""

from collections.abc import Callable
from fractions import Fraction

from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.exact import LazyUniform

Coin = Callable[[Fraction], bool]
"""Answers true with the probability given, independently of all other answers."""


def pmf(p: Fraction, k: int) -> Fraction:
    """Return the probability of k under DLap(p).

    >>> pmf(Fraction(1, 2), -3)
    Fraction(1, 24)
    """
    return (1 - p) / (1 + p) * p ** abs(k)


def stay(p: Fraction, q: Fraction) -> Fraction:
    """Return c0 of (*): the probability that the step between DLap(p) and the finer DLap(q) changes nothing.

    >>> stay(Fraction(1, 2), Fraction(1, 3))
    Fraction(3, 8)
    """
    if not 0 < q <= p < 1:
        raise ValueError(f"noise can only go down: 0 < q <= p < 1 is needed, not p = {p}, q = {q}")
    return q * (1 - p) ** 2 / (p * (1 - q) ** 2)


def step_pmf(p: Fraction, q: Fraction, z: int) -> Fraction:
    """Return P(Z = z) of (*): the law of y - y', whatever y' and the truth.

    >>> step_pmf(Fraction(1, 2), Fraction(1, 3), 1)
    Fraction(5, 48)
    """
    c0 = stay(p, q)
    return (1 - c0) * pmf(p, z) + (c0 if z == 0 else 0)


def posterior(p: Fraction, q: Fraction, d: int, x: int) -> Fraction:
    """Return P(x | d): the new noise is x, given that the old noise is d.

    >>> posterior(Fraction(1, 2), Fraction(1, 3), 2, 2)
    Fraction(7, 18)
    """
    return pmf(q, x) * step_pmf(p, q, d - x) / pmf(p, d)


def noise_down(p: Fraction, q: Fraction, d: int, coin: Coin) -> int:
    """Draw the new noise x, of law `posterior(p, q, d, .)`, given the old noise d.

    >>> noise_down(Fraction(1, 2), Fraction(1, 3), -2, lambda chance: chance > Fraction(1, 2))
    -2
    """
    stay(p, q)  # refuses other p, q
    size, sign = abs(d), -1 if d < 0 else 1
    if coin(q * (p - q) / (1 - q**2)):  # step 1: across the truth
        return -sign * _geometric(p * q, coin)
    for x in range(size + 1):  # step 2: G with P(G = g) = (1 - q/p) (q/p)^g, no further than needed
        if coin(1 - q / p):
            return sign * x
    if coin((1 - p**2) / (1 - p * q)):  # step 3: the atom, or beyond
        return d
    return sign * (size + _geometric(p * q, coin))


def _geometric(ratio: Fraction, coin: Coin) -> int:
    """Draw J >= 1 of law (1 - ratio) ratio^(j - 1)."""
    j = 1
    while coin(ratio):
        j += 1
    return j


def exact_coin(entropy: Entropy) -> Coin:
    """Return a coin whose chances are exactly as asked, whatever their denominators."""
    return lambda chance: LazyUniform(entropy).is_below(lambda _: (chance, chance))
