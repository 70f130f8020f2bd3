"""Matrices that users give: dense, sparse, in any order of attributes; and in plans and the Python interface."""

import json

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

from helpers import make_schema, random_codes
from hushcube import compare, find_budget, plan, release, what_if
from hushcube.errors import BadInput, WorkloadError
from hushcube.model.queries import SparseRows, integer_problem, query_table
from hushcube.planning.plan import Plan
from hushcube.planning.summary import table_errors
from hushcube.strategies import Matrix
from hushcube.strategies.strategy import objective_value

SCHEMA = make_schema((2, 3, 4))
Q = np.arange(48.0).reshape(2, 24) - 7
ASKED = {"epsilon": 1, "neighbours": "add-remove", "strategy": "identity"}


@given(st.permutations(["a0", "a1", "a2"]))
def test_columns_follow_the_order_of_the_attributes(names):
    sizes = {"a0": 2, "a1": 3, "a2": 4}
    table = query_table(SCHEMA, names, Q)
    given_order = Q.reshape(2, *(sizes[name] for name in names))
    expected = given_order.transpose(0, *(1 + names.index(name) for name in ("a0", "a1", "a2")))
    assert table.marginal == (0, 1, 2)
    assert table.rows.dense().tolist() == expected.reshape(2, 24).tolist()


@pytest.mark.parametrize(
    "matrix", [Q, Q.tolist(), scipy.sparse.csr_matrix(Q), scipy.sparse.coo_array(Q), SparseRows.of(Q)]
)
def test_dense_and_sparse_matrices_are_the_same(matrix):
    assert query_table(SCHEMA, None, matrix).rows.dense().tolist() == Q.tolist()


def test_names_and_the_total():
    assert query_table(SCHEMA, [], SparseRows.of([[3]], ["thrice"])).rows.labels == ("thrice",)


@pytest.mark.parametrize(
    ("attributes", "matrix"),
    [
        (["a0"], [[1, 2, 3]]),
        (["a0", "a0"], [[1, 2]]),
        (["b"], [[1, 2]]),
        (["a0"], [[1, np.nan]]),
        (["a0"], [1, 2]),
        (["a0"], []),
        (["a0"], "text"),
    ],
)
def test_bad_matrices(attributes, matrix):
    with pytest.raises(WorkloadError) as caught:
        query_table(SCHEMA, attributes, matrix, field="mine")
    assert caught.value.field in ("mine", "attribute", "marginal")


def test_integers_are_told_from_others():
    assert integer_problem(SparseRows.of([[1, -2]])) is None
    assert "row b holds 0.25" in integer_problem(SparseRows.of([[1, 2], [1, 0.25]], ["a", "b"]))[0]
    with pytest.raises(BadInput, match="not a whole number"):
        Matrix(rows=query_table(SCHEMA, ["a0"], [[0.5, 1]]))


def test_a_plan_remembers_its_queries():
    decided = plan(SCHEMA, "a0", queries=(["a2", "a0"], [[1] * 8]), **ASKED)
    assert decided.workload.words == ("a0", "queries")
    raw = json.loads(decided.to_json())
    assert raw["queries"]["attributes"] == ["a0", "a2"] and raw["queries"]["width"] == 8
    again = Plan.from_json(decided.to_json())
    assert again.digest == decided.digest and again.workload.queries == decided.workload.queries
    other = plan(SCHEMA, "a0", queries=(["a2", "a0"], [[1] * 7 + [2]]), **ASKED)
    assert other.digest != decided.digest
    assert "queries" not in json.loads(plan(SCHEMA, "a0", **ASKED).to_json())


def test_every_verb_takes_queries():
    table = query_table(SCHEMA, None, Q)
    assert len(compare(SCHEMA, [], queries=table, **ASKED).chosen.workload) == 1
    assert len(what_if(SCHEMA, "a1", queries=table, **{**ASKED, "epsilon": [1, 2]})) == 2
    asked = {k: v for k, v in ASKED.items() if k != "epsilon"}
    found = find_budget(SCHEMA, "queries=2", queries=table, targets=["queries: stderr<=1000"], **asked)
    assert found.reached[0] <= 1000


def test_a_release_holds_the_answers(tmp_path):
    import pandas as pd

    codes = random_codes((2, 3, 4), 500)
    decided = plan(SCHEMA, "a0", queries=(None, SparseRows.of(Q, ["up", "down"])), **ASKED)
    people = pd.DataFrame(codes, columns=["a0", "a1", "a2"])
    published = release(decided, people, out=tmp_path / "out")
    table = published.table("queries", where={"query": "down"})
    counts = np.bincount(np.ravel_multi_index(codes.T, (2, 3, 4)), minlength=24)
    assert abs(table.values[0] - Q[1] @ counts) < 25 * table.std_errors[0]
    assert list(published) == ["a0", "queries"]


@pytest.mark.parametrize("budget", [{"epsilon": "1e-6"}, {"epsilon": 10}, {"rho": "1e-9"}, {"rho": 10}], ids=str)
def test_the_largest_and_smallest_weights_and_entries_have_finite_errors(budget):
    schema = make_schema((2, 3))
    queries = (None, [[1e15, 1e-15, 0, -1e15, 1, 1e-15], [1e-15, 0, 0, 0, 0, 0]])
    words = ["1-way=1e-9", "2-way=1e9", "queries=1e9"]
    for strategy in ("identity", "auto"):
        found = compare(schema, words, queries=queries, neighbours="add-remove", strategy=strategy, **budget)
        assert all(np.isfinite(told.std_error) for told in table_errors(found.chosen))
        assert np.isfinite(objective_value(found.chosen.count))
