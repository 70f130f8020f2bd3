"""Exact discrete noise: the samplers' outcomes have exactly the stated law, given ideal random bits."""

from hushcube.private.noise.entropy import Entropy, SeededEntropy, SystemEntropy
from hushcube.private.noise.gaussian import discrete_gaussian
from hushcube.private.noise.laplace import Laws, discrete_laplace

__all__ = ["Entropy", "Laws", "SeededEntropy", "SystemEntropy", "discrete_gaussian", "discrete_laplace"]
