"""Clusters: covers are ranked by what they come to after recovery; `printed` is the papers' C and C+."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from helpers import ADULT8, LAWS, NEIGHBOURS, make_plan, make_request
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import OBJECTIVES
from hushcube.errors import BadInput
from hushcube.model.noise import law_of
from hushcube.strategies import read_strategy
from hushcube.strategies.cluster import Cluster, Prediction
from hushcube.strategies.k_part import Cube
from hushcube.strategies.search import cuboids
from hushcube.strategies.strategy import objective_value

PRINTED = "cluster:covers=printed"
BITS = (2,) * 16
asked_words = st.lists(
    st.tuples(st.sets(st.integers(0, 3), min_size=1), st.sampled_from([1, 4, 0.25])), min_size=1, max_size=6
).map(lambda asked: ",".join("*".join(f"a{i}" for i in sorted(A)) + f"={w}" for A, w in asked))


def total(plan):
    """By the continuous formula."""
    return plan.errors.total_variance(exact=False)


def continuous(plan):
    request, variances = plan.request, plan.errors.cell_variances(exact=False)
    if request.objective == "max":
        return float((variances * request.weights).max())
    return float((variances * request.weights * request.marginals.cells).sum())


@settings(max_examples=25, deadline=None)
@given(
    asked_words,
    st.sampled_from(LAWS[:2]),
    st.sampled_from(NEIGHBOURS),
    st.sampled_from(OBJECTIVES),
    st.sampled_from(["gls", "ols"]),
)
def test_predictions_are_the_errors_of_plans_up_to_a_unit(asked, law, neighbours, objective, recovery):
    request = replace(make_request((2, 3, 1, 4), asked, neighbours=neighbours, **law), objective=objective)
    cube, power = Cube.of(request), law_of(request.privacy).power
    predicted = Prediction(cube, request.workload, power, recovery, objective)
    unit = float(cube.even_variance(request.privacy, 1))
    for cover in cuboids.distinct_covers(cube.coverage, cube.energies, power):
        kept = {"against": "nothing", "settle": False, "details": lambda _: {}}
        even, closed = (
            continuous(Cluster().measure(request, budgets, recovery, cube, cover, **kept))
            for budgets in ("uniform", "optimal")
        )
        assert unit * np.array(predicted(cover)) == pytest.approx([even, min(even, closed)], rel=1e-9)


@pytest.mark.parametrize("law", LAWS[:2], ids=str)
def test_printed_budgets_are_the_closed_form_for_the_clusters_of_bmax(law):
    request = make_request(ADULT8, "star:1,a1*a3=5", **law)
    even, closed = (make_plan(request, PRINTED, budgets) for budgets in BUDGETS[::-1])
    measured = [set(table) for table in closed.measured]
    assert list(even.measured) == list(closed.measured) == list(make_plan(request, "bmax", "uniform").measured)
    assert len(set(even.budgets.tolist())) == 1
    s = np.zeros(len(measured))
    cells = closed.measured.cells
    for A, weight in zip(request.workload.marginals, request.workload.weights, strict=True):
        source = min((i for i, table in enumerate(measured) if set(A) <= table), key=lambda i: cells[i])
        s[source] += weight * cells[source]  # a_A cells(A) mag(A, C)
    shape = s ** (1 / 3 if "epsilon" in law else 1 / 2)  # Corollary 3.3
    allowed = float(request.privacy.epsilon or request.privacy.rho)
    assert closed.budgets == pytest.approx(allowed * shape / shape.sum(), rel=1e-9)
    assert closed.details == {"clusters": len(measured), "covers": "printed"}


FIGURES = [  # C, C+, and `cluster` with uniform and with optimal budgets: the table of docs/strategies.md
    (BITS, "star:1", "gls", (175_616, 164_827, 175_616, 164_827)),
    (BITS, "star:2", "gls", (7_918_455, 7_975_448, 7_918_455, 7_870_252)),
    (BITS, "1..3-way", "gls", (25_513_310, 25_077_599, 25_513_310, 24_712_034)),
    (ADULT8, "star:1", "none", (1_196_448, 776_257, 817_870, 554_910)),
    (ADULT8, "star:1", "gls", (940_896, 525_506, 614_269, 404_391)),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sizes", "words", "recovery", "figures"),
    FIGURES,
    ids=lambda part: part if isinstance(part, str) else str(len(part)),
)
def test_c_and_c_plus_and_the_best_clusters_have_these_totals(sizes, words, recovery, figures):
    request = make_request(sizes, words, epsilon=1)
    variants = product((PRINTED, "cluster"), ("uniform", "optimal"))
    found = [total(make_plan(request, strategy, budgets, recovery)) for strategy, budgets in variants]
    assert found == pytest.approx(figures, rel=1e-5)


def test_after_recovery_clusters_are_no_worse_than_the_cover_of_bmax():
    request = make_request(BITS, "1..3-way", epsilon=1)
    for budgets in BUDGETS:
        found, rival = (objective_value(make_plan(request, strategy, budgets)) for strategy in ("cluster", "bmax"))
        assert found <= rival * (1 + 1e-12)


@pytest.mark.parametrize("recovery", RECOVERIES)
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_no_cover_of_the_few_that_are_possible_is_better(objective, recovery):
    """On a small lattice every cover is planned, by hand."""
    for law in LAWS[:2]:
        request = replace(make_request((2, 3, 4), "1-way,a0*a1=3,a1*a2", **law), objective=objective)
        cube, power = Cube.of(request), law_of(request.privacy).power
        for budgets in BUDGETS:
            best = objective_value(make_plan(request, "cluster", budgets, recovery))
            for cover in cuboids.distinct_covers(cube.coverage, cube.energies, power):
                by_hand = Cluster().measure(request, budgets, recovery, cube, cover, details=lambda _: {})
                assert best <= objective_value(by_hand) * (1 + 1e-9)


def test_covers_are_best_or_printed():
    assert read_strategy(PRINTED) == Cluster(covers="printed")
    with pytest.raises(BadInput, match="best or printed"):
        read_strategy("cluster:covers=greedy")
