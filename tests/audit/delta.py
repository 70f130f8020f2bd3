"""The exact delta of independent discrete Gaussians whose means move by integers: no formula of hushcube is used.

For one number, P(k) ~ exp(-k²/2v) against P(k - s): the loss ln P(k)/P(k - s) = s (s - 2k) / 2v is a random number, and
the losses of independent numbers add up. delta(epsilon) = E[max(0, 1 - exp(epsilon - loss))]. For a single number that
is a sum; for several, losses are rounded up to a grid, which can only increase delta, and the distribution of their sum
is a product of Fourier transforms.
"""

import numpy as np

GRID = 2.0**-13
REACH = 12.0
"""Standard deviations of one number that are looked at; what lies beyond is counted as lost altogether."""
BEYOND = 4 * np.exp(-(REACH**2) / 2)


def delta(epsilon, moves):
    """An upper bound of delta for numbers that move by `shift` under noise of `variance`, given as pairs; tight."""
    if len(moves) == 1:
        loss, mass = _law(*map(float, moves[0]))
        return float((mass * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()) + BEYOND
    losses = [_losses(int(shift), float(variance)) for shift, variance in moves]
    low = sum(start for start, _ in losses)
    size = sum(len(masses) for _, masses in losses) + 1
    length = 1 << (size - 1).bit_length()
    product = np.ones(length // 2 + 1, complex)
    for _, masses in losses:
        product *= np.fft.rfft(masses, length)
    masses = np.maximum(np.fft.irfft(product, length)[:size], 0.0)
    loss = (low + np.arange(size)) * GRID
    return float((masses * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum()) + len(moves) * BEYOND


def _law(shift, variance):
    """The losses of one number, and their probabilities."""
    reach = np.ceil(REACH * np.sqrt(variance)) + 1
    k = np.arange(-reach, reach + 1)
    mass = np.exp(-(k**2) / (2 * variance))
    return shift * (shift - 2 * k) / (2 * variance), mass / mass.sum()


def _losses(shift, variance):
    """The same on the grid: the first place, and the mass at each place from there."""
    loss, mass = _law(shift, variance)
    places = np.ceil(loss / GRID).astype(np.int64)
    start = int(places.min())
    return start, np.bincount(places - start, weights=mass)
