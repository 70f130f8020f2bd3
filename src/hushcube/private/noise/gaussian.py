"""Exact discrete Gaussian noise: inversion for small variances, rejection for the others."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hushcube.private.noise.entropy import Entropy
from hushcube.private.noise.inversion import draw_small, thresholds
from hushcube.private.noise.parameters import blocks, distinct
from hushcube.private.noise.rejection import draw_large

MAX_VARIANCE = 1 << 80  # beyond, too many draws would fall into the filter's error band

# Both methods are exact between sigma 1 and 6; these are where their speeds cross. Inversion needs some
# 10 sigma exponentials for each different variance, so it goes further where variances repeat.
_SMALL_SIGMA = 1.5
_SMALL_SIGMA_REPEATED = 6.0
_REPEATED = 16

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]


def discrete_gaussian(variances: Sequence[Fraction], multipliers: _Integers, entropy: Entropy) -> _Integers:
    """Return independent draws: in row r, column c, P(k) ~ exp(-k**2 / (2 * variances[r] * multipliers[c])).

    >>> from hushcube.private.noise import SystemEntropy
    >>> discrete_gaussian([Fraction(1, 10_000)], np.array([1, 2, 3]), SystemEntropy())
    array([[0, 0, 0]])
    """
    _check(multipliers)
    values, index = distinct(variances, "variances")
    noise = np.empty((index.size, multipliers.size), np.int64)
    if not noise.size:
        return noise
    largest = int(multipliers.max())
    for value in values:
        if value.numerator * largest > value.denominator * MAX_VARIANCE:
            raise ValueError(f"variances times multipliers must be at most 2**80, not {value} * {largest}")
    root = np.sqrt([value.numerator / value.denominator for value in values])
    for rows, columns in blocks(*noise.shape):
        noise[rows, columns] = _draw(values, index[rows], multipliers[columns], entropy, root)
    return noise


def _draw(
    values: list[Fraction], index: NDArray[np.intp], multipliers: _Integers, entropy: Entropy, root: _Floats
) -> _Floats:
    """Return one block of draws; row r has the variance values[index[r]], with the root root[index[r]]."""
    shape = index.size, multipliers.size
    sigma = np.multiply.outer(root[index], np.sqrt(multipliers.astype(np.float64))).ravel()

    def variance(i: int) -> Fraction:
        row, column = divmod(i, shape[1])
        return values[int(index[row])] * int(multipliers[column])

    if sigma.min() > _SMALL_SIGMA_REPEATED:
        return draw_large(sigma, variance, entropy).reshape(shape)

    rows, its_row = _different(index)
    columns, its_column = _different(multipliers)
    laws = rows.size * columns.size
    small = _SMALL_SIGMA_REPEATED if laws * _REPEATED <= sigma.size else _SMALL_SIGMA
    noise = np.empty(sigma.size)
    chosen = np.flatnonzero(sigma <= small)
    if chosen.size:
        table = thresholds(np.minimum(np.multiply.outer(root[rows] ** 2, columns).ravel(), small**2))
        law = np.add.outer(its_row * columns.size, its_column).ravel()
        noise[chosen] = draw_small(table, law[chosen], _at(variance, chosen), entropy)
    chosen = np.flatnonzero(sigma > small)
    if chosen.size:
        noise[chosen] = draw_large(sigma[chosen], _at(variance, chosen), entropy)
    return noise.reshape(shape)


def _different(keys: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different keys, and which of them stands at each place."""
    if keys.min() == keys.max():  # the usual case, without sorting
        return keys[:1], np.zeros(keys.size, np.intp)
    return np.unique(keys, return_inverse=True)


def _at(variance: Callable[[int], Fraction], entries: NDArray[np.intp]) -> Callable[[int], Fraction]:
    """Return the variance of an entry counted among the chosen ones."""
    return lambda i: variance(int(entries[i]))


def _check(multipliers: _Integers) -> None:
    """Refuse what is not a row of positive 64-bit integers."""
    if not isinstance(multipliers, np.ndarray) or multipliers.ndim != 1 or multipliers.dtype != np.int64:
        raise ValueError("multipliers must be a one-dimensional array of int64")
    if multipliers.size and multipliers.min() < 1:
        raise ValueError(f"multipliers must be positive, not {multipliers.min()}")
