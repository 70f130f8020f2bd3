"""The standard errors of a session's answers against simulation, and the coverage of its intervals.

The false-alarm rate of each test is stated; each must also reject errors that are wrong by 30%.
"""

from fractions import Fraction

import numpy as np
import pytest

from datasets import coded, nltcs_schema
from helpers import MemoryEngine, Silence, exact_table, make_schema, random_codes
from hushcube.model.privacy import Privacy
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.session.answering import margins
from hushcube.session.cube import LatticeCube
from hushcube.session.policy import Policy

SIZES = (2, 3, 4)
QUESTIONS = [(0,), (0, 1), (1, 2), (0, 1, 2), (2,)]
ACCOUNTS = [
    {"rho": 1, "neighbours": "add-remove"},
    {"epsilon": 1, "neighbours": "add-remove"},
    {"rho": 1, "neighbours": "replace-one"},
]


def planned(schema, account, questions, t, left=Fraction(1)):
    """The steps for questions of variance t: they depend on no data, so that many sessions take the same ones."""
    cube, silent = LatticeCube(schema, account, Policy()), Silence()
    for question in questions:
        if cube.worst(question) > t * (1 + 1e-9):
            design = cube.for_variance(question, t, left, left).step.design(schema, account)
            cube.learn(design, measure(design, MemoryEngine(np.zeros((1, len(schema)))), noise=silent))
    return [design for design, _ in cube.steps]


def measured(schema, account, designs, engine, entropy):
    """A cube that has taken these steps on some people."""
    cube = LatticeCube(schema, account, Policy())
    for design in designs:
        cube.learn(design, measure(design, engine, entropy=entropy))
    return cube


@pytest.mark.parametrize("law", ACCOUNTS, ids=str)
def test_predicted_variances_are_the_measured_ones(law):
    """The mean squared error of 150 sessions within 4.5 of its own standard errors: false alarms below 1e-4 in all."""
    schema, account = make_schema(SIZES), Privacy.of(**law)
    people, entropy = random_codes(SIZES, 300), SeededEntropy(7)
    engine, designs = MemoryEngine(people), planned(schema, account, QUESTIONS, 25.0)
    ratios = {question: [] for question in QUESTIONS}
    for _ in range(150):
        cube = measured(schema, account, designs, engine, entropy)
        for question in QUESTIONS:
            error = cube.table(question) - exact_table(schema, people, question)
            ratios[question].append((error**2).mean() / cube.worst(question))
    every = [np.array(found) for found in ratios.values()]
    assert all(map(_accepts, every)) and not any(_accepts(1.69 * found) for found in every[2:4])  # those of many cells


def _accepts(ratios):
    """Squared errors over their variance have mean 1."""
    return abs(ratios.mean() - 1) < 4.5 * ratios.std() / np.sqrt(len(ratios))


@pytest.mark.parametrize("law", ACCOUNTS[:2], ids=str)
def test_intervals_cover_on_real_people(law):
    """40 questions about NLTCS: 95% of the cells, normal intervals; false alarms below 1e-4 (cells are correlated)."""
    schema, account = nltcs_schema(), Privacy.of(**law)
    people = coded("nltcs.parquet", schema)
    rng = np.random.default_rng(3)
    questions = [tuple(sorted(rng.choice(16, 1 + i % 3, replace=False).tolist())) for i in range(40)]
    designs = planned(schema, account, questions, 900.0)
    cube = measured(schema, account, designs, MemoryEngine(people), SeededEntropy(5))
    inside = []
    for question in questions:
        off = np.abs(cube.table(question) - exact_table(schema, people, question))
        width = margins(account, np.sqrt(cube.variances(question)))
        inside.append((off <= width).mean())
        low = cube.table(question)
        for axis in range(len(question)):
            rest = question[:axis] + question[axis + 1 :]
            assert np.abs(low.sum(axis=axis) - cube.table(rest)).max() < 1e-9 * len(people)
    assert 0.88 < np.mean(inside) <= 1
