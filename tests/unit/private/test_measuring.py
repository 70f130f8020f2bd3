"""What leaves the private folder says whether its noise protects anybody."""

import threading

import numpy as np
import pytest

from helpers import Counts, MemoryEngine, Silence, adaptive, make_schema, random_codes
from hushcube import plan
from hushcube.private import blocks
from hushcube.private.blocks import Noise, noisy_values
from hushcube.private.measure import carry_out, draw, measure
from hushcube.private.noise import SeededEntropy, SystemEntropy
from hushcube.progress import silent

SIZES = (2, 3)
CODES = random_codes(SIZES, 20, 1)


def planned(strategy):
    return plan(make_schema(SIZES), "1-way", epsilon=1, neighbours="add-remove", strategy=strategy)


@pytest.mark.parametrize(
    ("given", "private"),
    [
        ({}, True),
        ({"entropy": SystemEntropy()}, True),
        ({"entropy": SeededEntropy(1)}, False),
        ({"noise": Silence()}, False),
        ({"noise": Noise()}, False),  # whatever it draws: nobody checks it
        ({"entropy": SystemEntropy(), "noise": Silence()}, False),
    ],
    ids=["neither", "system", "seeded", "silence", "other noise", "system and silence"],
)
def test_a_result_is_private_only_if_neither_entropy_nor_noise_is_given(given, private):
    made = planned("identity")
    assert measure(made.count, MemoryEngine(CODES), **given).private is private
    _, parts = carry_out(made, MemoryEngine(CODES), **given)
    assert [part.private for part in parts.values()] == [private]
    refined = planned(adaptive("twophase", sanity_bound=1)).count
    assert draw(refined, Counts(refined.schema, CODES), **given)[1].private is private


def residuals():
    return plan(make_schema(SIZES), "<=2-way", rho="1/2", neighbours="add-remove", strategy="residual").count


def test_the_next_tables_are_counted_while_noise_is_drawn(monkeypatch):
    monkeypatch.setattr(blocks, "_WORTH", 0)
    counted = threading.Semaphore(0)

    class Watched(Counts):
        def tables(self, marginals):
            counted.release()
            return super().tables(marginals)

    class Waiting(Silence):
        left = sum(1 for _ in residuals().blocks())

        def _gaussian(self, variances, multipliers, entropy):
            self.left -= 1
            assert counted.acquire(timeout=60)
            if self.left:  # there is a next block: it is counted before this one is done
                assert counted.acquire(timeout=60)
                counted.release()
            return super()._gaussian(variances, multipliers, entropy)

    design = residuals()
    noisy_values(design, Watched(design.schema, CODES), SystemEntropy(), silent, Waiting())


def test_a_seed_draws_the_same_numbers_with_and_without_a_second_thread(monkeypatch):
    design = residuals()
    counts = Counts(design.schema, CODES)
    found = []
    for worth in (0, 1 << 60):
        monkeypatch.setattr(blocks, "_WORTH", worth)
        found.append(noisy_values(design, counts, SeededEntropy(7), silent))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
