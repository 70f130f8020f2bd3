"""What leaves the private folder says whether its noise protects anybody."""

import pytest

from helpers import Counts, MemoryEngine, Silence, adaptive, make_schema, random_codes
from hushcube import plan
from hushcube.private.blocks import Noise
from hushcube.private.measure import carry_out, draw, measure
from hushcube.private.noise import SeededEntropy, SystemEntropy

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
