"""Independent rows of any matrix of queries, and the nearest consistent answers against a program over all cells."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

from hushcube.errors import BadInput, TimeLimitReached
from hushcube.faces.query_rows import decompose, nearest_answers
from hushcube.model.queries import SparseRows
from hushcube.progress import Clock

NORMS = ["l1", "l2", "linf"]


def size(off, weights, norm):
    if norm == "l2":
        return np.sqrt((weights * off**2).sum())
    return (weights * np.abs(off)).sum() if norm == "l1" else (weights * np.abs(off)).max()


def brute(Q, z, weights, norm):
    """The least distance over all x, with a variable for each cell."""
    k, n = Q.shape
    if norm == "l2":
        root = np.sqrt(weights)
        return size(Q @ np.linalg.lstsq(root[:, None] * Q, root * z, rcond=None)[0] - z, weights, norm)
    slack = np.eye(k) if norm == "l1" else 1 / weights[:, None]
    cost = weights if norm == "l1" else np.ones(1)
    return linprog(
        np.concatenate([np.zeros(n), cost]),
        A_ub=np.block([[Q, -slack], [-Q, -slack]]),
        b_ub=np.concatenate([z, -z]),
        bounds=[(None, None)] * n + [(0, None)] * len(cost),
    ).fun


def prefixes_and_ranges(n):
    low, high = np.triu_indices(n)
    k = np.arange(n)
    return ((low[:, None] <= k) & (k <= high[:, None])).astype(float)


def cases():
    rng = np.random.default_rng(1)
    yield "ranges", prefixes_and_ranges(6)
    yield "product of low rank", rng.integers(-2, 3, (14, 4)) @ rng.integers(-1, 2, (4, 9)).astype(float)
    yield "wide and independent", rng.normal(size=(5, 12))
    yield "zero rows and repeats", np.array([[0, 0, 0], [1, 1, 0], [1, 1, 0], [0, 0, 0], [3, 3, 0], [0, 0, 1.0]])
    yield "very unequal lengths", prefixes_and_ranges(5) * 10.0 ** rng.integers(-5, 6, (15, 1))


CASES = dict(cases())


@pytest.mark.parametrize("name", CASES)
def test_the_chosen_rows_are_independent_and_give_all_others(name):
    Q = CASES[name]
    rows, C = decompose(Q, Clock())
    assert len(rows) == np.linalg.matrix_rank(Q / np.maximum(np.abs(Q).max(axis=1, keepdims=True), 1e-300))
    assert np.linalg.matrix_rank(C) == len(rows)
    assert (np.diff(rows) > 0).all()
    assert (C[rows] == np.eye(len(rows))).all()
    assert np.allclose(C @ Q[rows], Q, rtol=1e-9, atol=1e-9 * np.abs(Q).max(axis=1, keepdims=True))
    sparse_rows, sparse_C = decompose(SparseRows.of(Q), Clock())
    assert (sparse_rows == rows).all() and (sparse_C == C).all()


def test_nearly_dependent_rows_are_told_from_dependent_ones():
    """Rows 1e-6 apart are two rows, of which a Gram matrix sees 1e-12; rows 1e-13 apart are one."""
    rng = np.random.default_rng(2)
    for near, rank in ((1e-6, 20), (1e-13, 10)):
        Q = rng.normal(size=(10, 40))
        Q = np.concatenate([Q, Q + near * rng.normal(size=(10, 40))])
        rows, C = decompose(Q, Clock())
        assert len(rows) == rank
        assert np.allclose(C @ Q[rows], Q, atol=1e-9)


def test_a_matrix_of_zeros_has_rank_zero():
    answers, distance = nearest_answers(np.zeros((3, 4)), np.array([1.0, -2.0, 3.0]), np.ones(3), "l1", Clock())
    assert answers.tolist() == [0, 0, 0] and distance == pytest.approx(6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("name", [name for name in CASES if name != "very unequal lengths"])
def test_the_distance_is_that_of_the_program_over_the_domain(name, norm):
    Q = CASES[name]
    rng = np.random.default_rng(3)
    for _ in range(5):
        x = rng.integers(0, 20, Q.shape[1])
        z = Q @ x + np.rint(rng.laplace(scale=5, size=len(Q)))
        weights = rng.uniform(0.2, 3, len(Q))
        answers, distance = nearest_answers(Q, z, weights, norm, Clock())
        assert distance == pytest.approx(brute(Q, z, weights, norm), rel=1e-6, abs=1e-6)
        assert distance == pytest.approx(size(answers - z, weights, norm), abs=1e-12)
        assert np.allclose(Q @ np.linalg.lstsq(Q, answers, rcond=None)[0], answers, atol=1e-8)
        noise = size(Q @ x - z, weights, norm)
        assert distance <= noise * (1 + 1e-7) + 1e-9
        assert size(answers - Q @ x, weights, norm) <= 2 * noise * (1 + 1e-7) + 1e-9


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 8), st.integers(1, 4), st.sampled_from(NORMS))
def test_consistent_answers_come_back_and_distances_scale(seed, rows, cells, rank, norm):
    rng = np.random.default_rng(seed)
    Q = rng.integers(-2, 3, (rows, rank)) @ rng.integers(-2, 3, (rank, cells)).astype(float)
    consistent = Q @ rng.integers(0, 1000, cells)
    weights = rng.uniform(0.2, 3, rows)
    answers, distance = nearest_answers(Q, consistent, weights, norm, Clock())
    assert distance <= 1e-7 and np.allclose(answers, consistent, atol=1e-7)
    z = rng.integers(-5, 6, rows).astype(float)
    once = nearest_answers(Q, z, weights, norm, Clock())[1]
    tenfold = nearest_answers(Q, 10 * z + consistent, weights, norm, Clock())[1]
    assert tenfold == pytest.approx(10 * once, rel=1e-5, abs=1e-6)


def test_wrong_arguments_are_named():
    Q = np.ones((2, 1))
    with pytest.raises(BadInput, match="weights"):
        nearest_answers(Q, np.ones(2), np.array([1.0, -1.0]), "l2", Clock())
    with pytest.raises(BadInput, match="norm"):
        nearest_answers(Q, np.ones(2), np.ones(2), "l3", Clock())
    with pytest.raises(TimeLimitReached):
        nearest_answers(Q, np.ones(2), np.ones(2), "l1", Clock(seconds=0.0))
