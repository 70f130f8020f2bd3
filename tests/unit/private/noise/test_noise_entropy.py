import os
import warnings
from fractions import Fraction

import numpy as np
import pytest

from hushcube.private.noise import SeededEntropy, SystemEntropy, discrete_gaussian, discrete_laplace


def test_only_the_system_is_private():
    assert SystemEntropy().private
    assert not SeededEntropy(1).private


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
def test_words_have_their_size_and_never_repeat(entropy):
    """40,000 words of 64 bits: two are equal with probability below 10**-10."""
    words = np.concatenate([entropy.words(10_000) for _ in range(4)])
    assert words.dtype == np.uint64
    assert np.unique(words).size == words.size
    half_words = entropy.half_words(10_001)
    assert half_words.dtype == np.uint32
    assert half_words.shape == (10_001,)
    assert entropy.words(0).size == entropy.half_words(0).size == 0


@pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
def test_every_bit_is_fair(entropy):
    """Each of 64 + 32 bits within 7 standard errors of 1/2: a false alarm once in 10**9."""
    words = entropy.words(40_000)
    for bit in range(64):
        assert abs((words >> np.uint64(bit) & np.uint64(1)).mean() - 0.5) < 7 * 0.5 / 200
    words = entropy.half_words(40_000)
    for bit in range(32):
        assert abs((words >> np.uint32(bit) & np.uint32(1)).mean() - 0.5) < 7 * 0.5 / 200


def test_a_seed_repeats_and_another_does_not():
    assert (SeededEntropy(5).words(10) == SeededEntropy(5).words(10)).all()
    assert (SeededEntropy(5).words(10) != SeededEntropy(6).words(10)).all()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_never_replays_its_parent():
    entropy = SystemEntropy()
    entropy.words(10)  # anything buffered would be shared
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # other tests' threads do not matter to a child that only writes
        child = os.fork()
    if child == 0:
        os.write(write, entropy.words(100).tobytes())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = np.frombuffer(os.read(read, 800), np.uint64)
    os.close(read)
    os.close(write)
    assert np.intersect1d(theirs, entropy.words(100)).size == 0


def test_consecutive_calls_and_blocks_differ():
    """At scale 10**12 two equal draws are as good as impossible, so a repeated block would show."""
    laplace = [discrete_laplace([Fraction(1, 10**12)], 70_000, SystemEntropy()) for _ in range(2)]
    gaussian = [discrete_gaussian([Fraction(10) ** 23], np.ones(70_000, np.int64), SystemEntropy()) for _ in range(2)]
    for draws in (np.concatenate(laplace, axis=None), np.concatenate(gaussian, axis=None)):
        assert np.unique(draws).size > draws.size - 5
