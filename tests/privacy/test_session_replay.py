"""Whoever asks may look at every answer before the next question: with the noisy answers frozen, data decides nothing.

A session is recorded on data, and run again on neighbouring data whose noise is such that the same noisy numbers come
out. An analyst who asks by what they read must then be led the same way: every plan, price and answer is the same.
"""

from fractions import Fraction

import numpy as np
import pytest

from helpers import MemoryEngine, make_schema, random_codes
from hushcube.model.privacy import Privacy
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.session.cube import LatticeCube
from hushcube.session.policy import Policy

SIZES = (2, 3, 4, 2)
LAWS = [
    {"rho": 1, "neighbours": "add-remove"},
    {"epsilon": 2, "neighbours": "add-remove"},
    {"rho": 1, "neighbours": "replace-one"},
    {"epsilon": 2, "neighbours": "replace-one"},
]


def analyst(cube, frozen, engine, entropy=None):
    """Asks eight questions, each chosen by the largest cell of the last answer; returns all that was decided."""
    question, told, left = (0, 1), [], Fraction(1)
    for turn in range(8):
        t = 30.0 + 5 * turn
        if cube.worst(question) > t * (1 + 1e-9):
            proposal = cube.for_variance(question, t, left, left)
            design = proposal.step.design(cube.schema, cube.account)
            counts = engine.count(cube.schema, design.counted)
            if turn not in frozen:
                frozen[turn] = measure(design, engine, entropy=entropy)
            assert counts is not None  # whatever the data is, it has been looked at
            cube.learn(design, frozen[turn])
            left -= proposal.price
            told.append((design.digest, proposal.price))
        table = cube.table(question)
        told.append((question, cube.worst(question), table.tobytes()))
        largest = int(np.argmax(table))
        question = tuple(sorted({largest % 4, (largest + turn) % 4, (turn + int(abs(table.flat[0]))) % 4}))
    return told


@pytest.mark.parametrize("sizes", [SIZES, (2,) * 4], ids=str)
@pytest.mark.parametrize("ahead", [True, False], ids=["ahead", "plain"])
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_with_the_noisy_answers_frozen_every_decision_is_the_same(law, ahead, sizes):
    schema, account, policy = make_schema(sizes), Privacy.of(**law), Policy(ahead=ahead)
    people = random_codes(sizes, 60)
    other = people[1:] if law["neighbours"] == "add-remove" else np.vstack([[n - 1 for n in sizes], people[1:]])
    frozen = {}
    first = analyst(LatticeCube(schema, account, policy), frozen, MemoryEngine(people), SeededEntropy(1))
    again = analyst(LatticeCube(schema, account, policy), dict(frozen), MemoryEngine(other))
    assert first == again and len(frozen) >= (1 if account.is_pure and ahead else 3)  # a wide table answers most
    fresh = analyst(LatticeCube(schema, account, policy), {}, MemoryEngine(people), SeededEntropy(2))
    assert fresh != first  # the analyst does look at the answers
