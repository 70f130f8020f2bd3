"""Optimal budgets are never worse than even ones: every strategy, recovery and objective, on random lattices."""

import math

import numpy as np
import pytest

from helpers import NEIGHBOURS, label, make_plan
from hushcube.designs.design import RECOVERIES
from hushcube.designs.request import OBJECTIVES, Request
from hushcube.errors import NotApplicable
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.strategies import REGISTRY, Matrix
from hushcube.strategies.strategy import objective_value

SEEDS, LATTICES = 20, 10
GUARANTEES = [
    {"epsilon": 1},
    {"epsilon": "0.1"},
    {"epsilon": 8},
    {"rho": "1/2"},
    {"rho": 20},
    {"epsilon": 1, "delta": "1e-6"},
]
STRATEGIES = [name for name in REGISTRY if name != "sketch"]  # whose budgets are always even


def pick(rng, things):
    return things[int(rng.integers(len(things)))]


def some_request(rng, name):
    """One to five attributes, some of their tables with some weights, and what the strategy is for."""
    most = 2 if name == "matrix" else 5
    sizes = rng.integers(4 if name == "levels" else 1, 7, rng.integers(1, most + 1)).tolist()
    halves = [({"name": "half", "starts": [0, n // 2]},) if name == "levels" else () for n in sizes]
    attributes = [Attribute(name=f"a{i}", range=(0, n - 1), levels=halves[i]) for i, n in enumerate(sizes)]
    words = []
    for _ in range(int(rng.integers(1, 9))):
        chosen = [a.name for a in attributes if rng.random() < 0.5] or [pick(rng, attributes).name]
        if name == "levels":
            chosen = [pick(rng, [attribute, f"{attribute}@half"]) for attribute in chosen]
        words.append("*".join(chosen) + f"={pick(rng, [1, 1, 4, 0.1])}")
    if name == "levels":
        words += ["a0", "a0@half"]
    elif name in ("hierarchy", "wavelet") or rng.random() < 0.1:
        words.append(f"{pick(rng, ['prefix', 'ranges'])}(a0)")
    privacy = Privacy.of(neighbours=pick(rng, NEIGHBOURS), **pick(rng, GUARANTEES))
    workload = Workload.parse(words, Schema(tuple(attributes)))
    return Request(workload, privacy, objective=pick(rng, OBJECTIVES), effort="low")


def some_strategy(rng, name, schema):
    if name != "matrix":
        return REGISTRY[name]
    cells = math.prod(schema.sizes)
    rows = np.concatenate([np.eye(cells, dtype=int), rng.integers(-1, 2, (int(rng.integers(0, 6)), cells))])
    return Matrix(rows=(None, rows))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_optimal_budgets_are_never_worse_than_even_ones(seed):
    rng = np.random.default_rng(seed)
    for number in range(LATTICES):
        name = STRATEGIES[(seed * LATTICES + number) % len(STRATEGIES)]
        request, recovery = some_request(rng, name), pick(rng, RECOVERIES)
        strategy = some_strategy(rng, name, request.schema)
        if strategy.refusal(request):
            continue
        try:
            even, optimal = (make_plan(request, strategy, budgets, recovery) for budgets in ("uniform", "optimal"))
        except NotApplicable:
            continue
        told = f"{label(optimal)}, {request.objective}, {request!r}, lattice {number}"
        assert objective_value(optimal) <= objective_value(even) * (1 + 1e-12), told
