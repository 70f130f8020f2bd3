"""Where random bits come from: the operating system, or a seed for experiments."""

import os
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray


class Entropy(ABC):
    """A source of independent uniform words."""

    private: bool
    """Whether nobody can foresee or repeat the words."""

    @abstractmethod
    def words(self, count: int) -> NDArray[np.uint64]:
        """Return `count` uniform 64-bit words."""

    def half_words(self, count: int) -> NDArray[np.uint32]:
        """Return `count` uniform 32-bit words: most draws need no more, and entropy is the dearest part."""
        return self.words((count + 1) // 2).view(np.uint32)[:count]


class SystemEntropy(Entropy):
    """The operating system's cryptographic generator and nothing else.

    Nothing is buffered, so a forked process can never replay its parent's words.
    """

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        """Ask the operating system."""
        return np.frombuffer(os.urandom(8 * count), np.uint64)


class SeededEntropy(Entropy):
    """A repeatable source for experiments and tests; what is drawn from it is NOT private.

    >>> bool((SeededEntropy(7).words(3) == SeededEntropy(7).words(3)).all())
    True
    """

    private = False

    def __init__(self, seed: int) -> None:
        self._bits = np.random.Philox(seed)

    def words(self, count: int) -> NDArray[np.uint64]:
        """Go on where the last call ended."""
        return np.asarray(self._bits.random_raw(count), np.uint64)
