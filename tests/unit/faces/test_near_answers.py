"""Tables that agree nearest to the answers, as printed in Yaroslavtsev et al. 2013, III-C: min ||Q x - y0|| over x."""

import numpy as np
import pytest
from scipy.optimize import linprog

from helpers import MemoryEngine, all_tables, make_plan, make_request, marginal_rows, random_codes
from hushcube.errors import BadInput
from hushcube.faces.checking import check_face
from hushcube.faces.face import make_face
from hushcube.faces.value import FaceValue, read_face
from hushcube.private.measure import measure
from hushcube.private.noise import SeededEntropy
from hushcube.progress import Clock
from ranged import ordered_schema, ranged_request

SIZES = (2, 3, 2)
WORDS = "a0,a0*a1,a1*a2,a0*a1*a2"


def measured(strategy, recovery="gls", **privacy):
    plan = make_plan(make_request(SIZES, WORDS, **(privacy or {"epsilon": 1})), strategy, "optimal", recovery)
    return plan, measure(plan, MemoryEngine(random_codes(SIZES, 60)), entropy=SeededEntropy(7))


def printed(plan, found, norm):
    """The least distance over all tables x of the domain from the first answers."""
    alone = plan.recovered_by("none")
    first = all_tables(alone, alone.make_answers(found))
    Q = np.concatenate([marginal_rows(SIZES, A) for A in first])
    y = np.concatenate([table.ravel() for table in first.values()])
    n, slack = Q.shape[1], np.eye(len(y)) if norm == "l1" else np.ones((len(y), 1))
    rows = np.block([[Q, -slack], [-Q, -slack]])
    cost = np.r_[np.zeros(n), np.ones(slack.shape[1])]
    pinned = {}
    if plan.publishes_total:
        total = int(found.values[0].reshape(-1)[0])
        pinned = {"A_eq": np.r_[np.ones(n), np.zeros(slack.shape[1])][None], "b_eq": [total]}
    return linprog(cost, rows, np.r_[y, -y], bounds=[(None, None)] * len(cost), **pinned).fun, first


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("privacy", [{"epsilon": 1}, {"epsilon": 1, "neighbours": "replace-one"}], ids=str)
@pytest.mark.parametrize("strategy", ["workload", "bmax", "fourier"])
def test_no_consistent_tables_are_nearer_to_the_answers(strategy, privacy, norm):
    plan, found = measured(strategy, **privacy)
    face = make_face(plan, found, FaceValue("consistent", norm=norm, near="answers"), Clock())
    least, first = printed(plan, found, norm)
    off = [np.abs(table - first[A]) for A, table in all_tables(plan, face.tables).items()]
    reached = sum(o.sum() for o in off) if norm == "l1" else max(o.max() for o in off)
    assert face.report["distance"] == pytest.approx(reached, rel=1e-3)  # a public total weighs a thousandth
    assert reached == pytest.approx(least, rel=1e-6, abs=1e-6)
    assert reached > 0.1 or strategy != "workload"


@pytest.mark.parametrize("privacy", [{"epsilon": 1}, {"rho": 1, "neighbours": "replace-one"}], ids=str)
@pytest.mark.parametrize("strategy", ["workload", "bmax", "fourier", "residual"])
def test_in_l2_they_are_the_tables_of_the_recovery(strategy, privacy):
    plan, found = measured(strategy, "answers", **privacy)
    face = make_face(plan, found, FaceValue("consistent", near="answers"), Clock())
    tables = all_tables(plan, plan.answers(found))
    for A, table in all_tables(plan, face.tables).items():
        np.testing.assert_allclose(table, tables[A], atol=1e-8)


def test_the_manifest_says_what_they_are_near_to():
    assert FaceValue("consistent", norm="l1", near="answers").to_dict()["near"] == "answers"
    assert "near" not in FaceValue("consistent", norm="l1").to_dict()
    word = "consistent:norm=l1,near=answers"
    assert str(read_face(word, make_request(SIZES, epsilon=1).schema)) == word


def test_what_has_no_answers_one_by_one_is_refused():
    with pytest.raises(BadInput, match="near: in l2, nonnegative"):
        FaceValue("nonnegative", near="answers")
    plan = make_plan(ranged_request(ordered_schema((8,)), "prefix(a0)", epsilon=1), "hierarchy")
    with pytest.raises(BadInput, match="near: only plans of marginals"):
        check_face(plan, FaceValue("consistent", norm="l1", near="answers"), Clock())


@pytest.mark.parametrize("strategy", ["hierarchy", "wavelet"])
def test_the_recovery_is_refused_there_too(strategy):
    with pytest.raises(BadInput, match="no recovery `answers`"):
        make_plan(ranged_request(ordered_schema((8,)), "prefix(a0)", epsilon=1), strategy, "optimal", "answers")
