"""Every face works on every release: tiny domains, hardly anybody in them, and every kind of plan."""

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st

from face_promises import check_promise
from helpers import NEIGHBOURS, MemoryEngine, adaptive, carried_out, random_codes
from hushcube.designs.design import BUDGETS, RECOVERIES
from hushcube.designs.request import Request
from hushcube.errors import HushcubeError, NotApplicable
from hushcube.faces.checking import check_face
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue
from hushcube.model.facts import Fact, Facts
from hushcube.model.privacy import Privacy
from hushcube.model.workload import Workload
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from hushcube.strategies import ADAPTIVE, ALL
from ranged import ordered_schema, random_queries

NORMED = [
    FaceValue(kind, norm=norm, weights=weights)
    for kind in ("consistent", "nonnegative", "integral")
    for norm in ("l1", "linf")
    for weights in ("equal", "deviation")
]
FITTED = [
    FaceValue("consistent"),
    *(FaceValue(kind, method=method) for kind in ("nonnegative", "integral") for method in ("local", "full-table")),
    FaceValue(rows=5),
]
BARAK = [
    FaceValue(kind, method="barak", minimise=objective, weights=weights)
    for kind in ("nonnegative", "integral")
    for objective in ("max-coefficient", "total-coefficient", "max-marginal", "total-marginal")
    for weights in ("equal", "deviation")
]
SHIFTED = FaceValue("nonnegative", method="shift", probability=1 - 1e-12)

SIZES = [(1,), (2,), (3,), (5,), (1, 1), (2, 1), (2, 2), (3, 2), (1, 2, 3)]
WORDS = ["0-way", "1-way", "<=1-way", "cube", "prefix(a0)", "ranges(a0)"]
LAWS = [
    {"epsilon": "0.01"},
    {"epsilon": "1"},
    {"epsilon": "10"},
    {"epsilon": "500"},
    {"rho": "0.0001"},
    {"rho": "1/2"},
    {"rho": "500"},
    {"epsilon": "1", "delta": "1e-6"},
]


@st.composite
def releases(draw):
    """A plan for a tiny domain, made by any strategy, and what it measured on at most a handful of people."""
    sizes = draw(st.sampled_from(SIZES))
    schema = ordered_schema(sizes)
    words = draw(st.sampled_from(WORDS))
    words = words if schema.sizes[0] > 1 or "(" not in words else "1-way"
    queries = None
    if draw(st.booleans()) and draw(st.booleans()):
        queries = random_queries(schema, tuple(range(len(sizes))), rows=2, seed=draw(st.integers(0, 9)))
    privacy = Privacy.of(
        neighbours=draw(st.sampled_from(NEIGHBOURS)),
        rows_per_person=draw(st.sampled_from([1, 1, 2])),
        **draw(st.sampled_from(LAWS)),
    )
    request = Request(Workload.parse(words, schema, queries), privacy, effort="low")
    strategies = [adaptive(name, sanity_bound="2") if name in ADAPTIVE else ALL[name] for name in ALL]
    serving = [strategy for strategy in strategies if strategy.refusal(request) is None]
    try:
        plan = draw(st.sampled_from(serving)).plan(
            request, draw(st.sampled_from(BUDGETS)), draw(st.sampled_from(RECOVERIES))
        )
    except NotApplicable:
        plan = ALL["identity"].plan(request, "optimal", "gls")
    seed, people = draw(st.integers(0, 10**6)), draw(st.sampled_from([0, 0, 1, 1, 2, 5]))
    codes = random_codes(sizes, people, seed)
    return *carried_out(plan, MemoryEngine(codes, len(sizes)), entropy=SeededEntropy(seed)), people


@st.composite
def faces(draw):
    """One of each family, and those that need no solver."""
    return [draw(st.sampled_from(NORMED)), *FITTED, draw(st.sampled_from(BARAK)), SHIFTED]


def sketch_of_nobody():
    """A release whose number of people is public and not measured."""
    privacy = Privacy.of(epsilon="0.01", neighbours="replace-one")
    request = Request(Workload.parse("prefix(a0)", ordered_schema((2,))), privacy)
    plan = ALL["sketch"].plan(request, "optimal", "gls")
    return *carried_out(plan, MemoryEngine(np.zeros((0, 1), np.int64), 1), entropy=SeededEntropy(0)), 0


@pytest.mark.slow
@settings(max_examples=40)
@given(release=releases(), values=faces())
@example(release=sketch_of_nobody(), values=[NORMED[0], *FITTED, BARAK[0], SHIFTED])
def test_every_face_works_on_every_release(release, values):
    plan, found, people = release
    total = Facts(plan.schema, (Fact((), (), people),))
    for value in (*values, FaceValue("nonnegative", method="local", facts=total), FaceValue(facts=total)):
        try:
            check_face(plan, value, Clock())
        except HushcubeError:
            assert value.method in ("barak", "shift") or value.norm != "l2", value
            continue
        check_promise(plan, make_face(plan, found, value, Clock()), people)


@pytest.mark.parametrize("words", ["1-way", "<=1-way", "0-way"])
def test_hardly_anybody_in_two_cells(words):
    """Steps of the full table's fit are so short here that nothing of them was left in single precision."""
    schema = ordered_schema((2,))
    request = Request(Workload.parse(words, schema), Privacy.of(epsilon=10, neighbours="add-remove"))
    plan = ALL["identity"].plan(request, "optimal", "gls")
    for seed in range(10):
        for people in (0, 1):
            engine = MemoryEngine(np.zeros((people, 1), np.int64), 1)
            _, found = carried_out(plan, engine, entropy=SeededEntropy(seed))
            for value in (FaceValue("nonnegative"), FaceValue()):
                check_promise(plan, make_face(plan, found, value, Clock()), people)
