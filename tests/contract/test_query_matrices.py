"""Any matrix of queries can be planned and answered under any guarantee; what a strategy cannot serve, it refuses."""

import math

import numpy as np
import pytest

from helpers import NEIGHBOURS, MemoryEngine, random_codes, released
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import Request
from hushcube.errors import NotApplicable
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.queries import query_table
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.planning.planner import compare
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.strategies import REGISTRY
from hushcube.strategies.adaptive import Dwork

LAWS = [{"epsilon": 1}, {"rho": "1/2"}, {"rho": 20}, {"epsilon": 1, "delta": "1e-6"}]
RNG = np.random.default_rng(18)
MATRICES = [
    ((2,), [[1, 1]]),  # the total alone: nobody needs the difference
    ((2,), [[1, -1]]),  # the difference alone
    ((2,), [[1, 1], [0, 0]]),
    ((2,), [[0, 1]]),
    ((1,), [[2]]),
    ((3,), [[1, 1, 0], [0, 1, 1]]),
    ((2, 2), [[1, 1, 1, 1]]),
    ((2, 2), [[1, 0, 0, 1]]),
    ((2, 3), [[1, 1, 1, 0, 0, 0]]),
    ((2, 1, 2), [[0, 0, 0, 0]]),
    *(((2, 3), RNG.choice([0, 1], (k, 6)).tolist()) for k in (1, 2, 3)),
    *(((4,), RNG.choice([0, 0.5, 1, -1, 2], (k, 4)).tolist()) for k in (1, 2, 5)),
]


def request_for(sizes, rows, law, neighbours, *, words=(), ordered=False, objective="total"):
    schema = Schema(
        tuple(
            Attribute(name=f"a{i}", range=(0, n - 1))
            if ordered
            else Attribute(name=f"a{i}", values=tuple(f"v{k}" for k in range(n)))
            for i, n in enumerate(sizes)
        )
    )
    workload = Workload.parse(list(words), schema, query_table(schema, None, np.array(rows, float)))
    return Request(workload, Privacy.of(neighbours=neighbours, **law), effort="low", objective=objective)


def check(plan, sizes):
    """Its errors are finite, and on data it answers every query."""
    assert math.isfinite(plan.errors.total_variance(exact=True))
    found = measure(plan, MemoryEngine(random_codes(sizes, 3)), entropy=SeededEntropy(0))
    (form,) = plan.workload.forms
    answers = released(plan, found).source.form(form)
    assert answers.shape == form.shape
    assert np.isfinite(answers).all()


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize(("sizes", "rows"), MATRICES, ids=str)
def test_auto_serves_every_matrix(sizes, rows, law, neighbours):
    for words, ordered, objective in (((), False, "total"), (("1-way",), True, "total"), ((), False, "max")):
        request = request_for(sizes, rows, law, neighbours, words=words, ordered=ordered, objective=objective)
        check(compare(request).chosen, sizes)


@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("law", [{"epsilon": 1}, {"rho": "1/2"}], ids=str)
@pytest.mark.parametrize(("sizes", "rows"), MATRICES[:10], ids=str)
def test_every_strategy_serves_or_refuses(sizes, rows, law, neighbours):
    request = request_for(sizes, rows, law, neighbours, ordered=True)
    for strategy in (*REGISTRY, Dwork.name):
        for budgets in BUDGETS:
            for recovery in RECOVERIES:
                try:
                    plan = compare(request, strategy=strategy, budgets=budgets, recovery=recovery).chosen
                except NotApplicable:
                    assert strategy != "identity"
                else:
                    check(plan, sizes)


def test_what_no_query_looks_at_costs_next_to_nothing():
    """The total of two cells, with nearly the whole budget: the variance of one number, within a percent."""
    chosen = compare(request_for((2,), [[1, 1]], {"rho": "1/200"}, "add-remove")).chosen
    assert chosen.errors.total_variance(exact=False) == pytest.approx(100, rel=0.01)
