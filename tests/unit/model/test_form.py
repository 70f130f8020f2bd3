"""Range tables and tables of queries against their dense rows, and the words that ask for them."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, strategies as st

from helpers import kron
from hushcube.designs.tree.errors import form_energies
from hushcube.errors import BadInput, SchemaError, WorkloadError
from hushcube.lattice.trees import Tree
from hushcube.model.attribute import Attribute
from hushcube.model.form import ALONG, RangeTable
from hushcube.model.queries import QueryTable, SparseRows
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from ranged import axis_rows, folded, form_rows, projections


def brute_squares(q):
    """M_S of one row q, a table: its squared norm after summing the axes outside S."""
    result = np.empty((2,) * q.ndim)
    for kept in np.ndindex(result.shape):
        result[kept] = (q.sum(axis=tuple(axis for axis, k in enumerate(kept) if not k)) ** 2).sum()
    return result


@st.composite
def ordered_attributes(draw, number=0):
    missing, other = draw(st.sampled_from([("error", "error"), ("gone", "error"), ("gone", "else"), ("x", "x")]))
    n = draw(st.integers(1, 6))
    return Attribute(name=f"a{number}", range=(0, n - 1), missing=missing, other=other)


@st.composite
def range_tables(draw, most=3):
    attributes = tuple(draw(ordered_attributes(number)) for number in range(draw(st.integers(1, most))))
    kinds = tuple(draw(st.sampled_from(ALONG)) for _ in attributes)
    return RangeTable(tuple(range(len(attributes))), attributes, kinds)


@st.composite
def query_tables(draw, most=3):
    shape = draw(st.lists(st.integers(1, 4), min_size=1, max_size=most))
    cells = int(np.prod(shape))
    values = st.sampled_from([0.0, 0.0, 1.0, -2.0, 0.5])
    rows = draw(st.lists(st.lists(values, min_size=cells, max_size=cells), min_size=1, max_size=4))
    attributes = tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate(shape))
    return QueryTable(tuple(range(len(shape))), attributes, SparseRows.of(rows))


forms = st.one_of(range_tables(), query_tables())


@given(forms, st.integers(0, 2**32 - 1))
def test_answers_are_the_rows_times_the_cells(form, seed):
    table = np.random.default_rng(seed).integers(-99, 99, form.carrier_shape).astype(float)
    found = form.evaluate(table)
    assert found.shape == form.shape == tuple(map(len, form.labels)) and form.cells == found.size
    np.testing.assert_allclose(found.ravel(), form_rows(form) @ table.ravel(), atol=1e-9)


@given(forms, st.integers(0, 2**32 - 1))
def test_squares_are_those_of_the_rows(form, seed):
    each = np.stack([brute_squares(row.reshape(form.carrier_shape)) for row in form_rows(form)])
    np.testing.assert_allclose(form.squares(), each.sum(axis=0), rtol=1e-12, atol=1e-12)
    weights = np.random.default_rng(seed).normal(size=each.shape[1:])
    expected = (each * weights).reshape(len(each), -1).sum(axis=1).reshape(form.shape)
    np.testing.assert_allclose(form.combine(weights), expected, rtol=1e-10, atol=1e-9)


@given(range_tables(), st.integers(1, 4), st.integers(1, 3))
def test_block_energies_are_those_of_the_rows_over_any_blocks(form, span, more):
    """Blocks of any span, up to some blocks beyond the cells; what is beyond belongs to the last cell."""
    for axis, (attribute, kind) in enumerate(zip(form.attributes, form.along, strict=True)):
        leaves = span * (-(-attribute.size // span) + more - 1)
        q = np.pad(axis_rows(attribute, kind), [(0, 0), (0, leaves - attribute.size)], mode="edge")
        brute = (q.reshape(len(q), -1, span).sum(axis=2) ** 2).sum() / span
        assert form.block_energy(axis, span, leaves) == pytest.approx(brute, rel=1e-12)


@given(st.one_of(range_tables(2), query_tables(2)), st.data())
def test_energies_on_the_levels_of_trees_are_those_of_the_rows(form, data):
    axes = []
    for n in form.carrier_shape:
        depth = data.draw(st.integers(1, 3))
        axes.append(Tree.of_depth(n, depth) if data.draw(st.booleans()) else Tree.with_fan_out(n, depth + 1))
    spaces = [projections(tree) for tree in axes]
    rows = form_rows(form) @ kron([folded(tree) for tree in axes])
    expected = np.empty([len(each) for each in spaces])
    for level in np.ndindex(expected.shape):
        P = kron([each[at] for each, at in zip(spaces, level, strict=True)])
        expected[level] = ((rows @ P) ** 2).sum()
    np.testing.assert_allclose(form_energies(form, axes), expected, rtol=1e-9, atol=1e-9)


# ----------------------------------------------------------------------------------------------- intervals and labels


def test_categories_for_missing_and_other_stay_single():
    age = Attribute(name="age", range=(3, 5), missing="unknown", other="else")
    prefix, ranges, cells = (RangeTable((0,), (age,), (kind,)) for kind in ("prefix", "ranges", "cells"))
    assert prefix.labels == (("up to 3", "up to 4", "up to 5", "unknown", "else"),)
    assert ranges.labels == (("3", "3 to 4", "3 to 5", "4", "4 to 5", "5", "unknown", "else"),)
    assert cells.labels == (age.labels,)
    starts, ends = ranges.intervals[0]
    assert list(zip(starts, ends, strict=True)) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 4), (4, 5)]
    assert (prefix.cells, ranges.cells, cells.cells) == (5, 8, 5)


def test_a_category_that_is_a_value_is_no_category():
    age = Attribute(name="age", range=(0, 2), missing="0")
    assert RangeTable((0,), (age,), ("prefix",)).labels == (("up to 0", "up to 1", "up to 2"),)


@given(ordered_attributes(), st.sampled_from(ALONG))
def test_intervals_are_those_of_the_rows(attribute, kind):
    form = RangeTable((0,), (attribute,), (kind,))
    starts, ends = form.intervals[0]
    k = np.arange(attribute.size)
    found = (starts[:, None] <= k) & (k < ends[:, None])
    np.testing.assert_array_equal(found, axis_rows(attribute, kind).astype(bool))
    assert len(set(form.labels[0])) == len(form.labels[0])


def test_bins_and_ordered_values_have_ranges_too():
    income = Attribute(name="income", bins=(0, 10, 50))
    size = Attribute(name="size", values=("S", "M", "L"), ordered=True)
    form = RangeTable((0, 1), (income, size), ("prefix", "ranges"))
    assert form.word == "prefix(income)*ranges(size)" and form.axes == ("prefix(income)", "ranges(size)")
    assert form.labels == (("up to [0, 10)", "up to [10, 50]"), ("S", "S to M", "S to L", "M", "M to L", "L"))


def test_a_form_of_a_million_values_is_counted_without_being_listed():
    wide = Attribute(name="a", range=(1, 1_000_000))
    assert RangeTable((0,), (wide,), ("ranges",)).cells == 500_000_500_000


# ------------------------------------------------------------------------------------------------------- sparse rows

MATRIX = [[1.0, 0, -2, 0], [0, 0, 0, 0], [0.5, 1, 1, 0]]
SPARSE = [scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_array, scipy.sparse.lil_matrix]


@pytest.mark.parametrize("make", [list, np.array, *SPARSE])
def test_rows_come_from_lists_arrays_and_sparse_matrices(make):
    rows = SparseRows.of(make(MATRIX), names=["x", "y", "z"])
    assert rows == SparseRows(4, (0, 2, 2, 5), (0, 2, 0, 1, 2), (1.0, -2.0, 0.5, 1.0, 1.0), ("x", "y", "z"))
    np.testing.assert_array_equal(rows.dense(), MATRIX)
    np.testing.assert_array_equal(list(rows.iterate()), MATRIX)
    assert (rows @ np.arange(4.0)).tolist() == [-4, 0, 3]
    assert len(rows) == 3 and rows.labels == ("x", "y", "z")
    assert hash(rows) == hash(SparseRows.of(MATRIX, names=("x", "y", "z")))


def test_rows_without_names_are_numbered():
    assert SparseRows.of(np.eye(3, dtype=bool)).labels == ("0", "1", "2")


def test_entries_given_twice_are_added_and_zeros_are_dropped():
    matrix = scipy.sparse.coo_array(([1.0, 2.0, 0.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    assert SparseRows.of(matrix) == SparseRows(2, (0, 1, 1), (1,), (3.0,))


@given(query_tables())
def test_rows_are_written_and_read_back(form):
    for rows in (form.rows, SparseRows.of(form.rows.dense(), [f"q{i}" for i in range(len(form.rows))])):
        assert SparseRows.from_dict(rows.to_dict()) == rows


@pytest.mark.parametrize(
    ("matrix", "problem"),
    [
        ([[1, 2], [3]], "equally long lists"),
        ([["x"]], "equally long lists"),
        ([[1, None]], "NaN or infinite"),
        ([[np.nan, 1]], "NaN or infinite"),
        ([[np.inf]], "NaN or infinite"),
        ([1, 2], "not a table"),
        ([], "not a table"),
        ([[]], "not a table"),
        (np.zeros((1, 1, 1)), "not a table"),
        (7, "not a table"),
        (scipy.sparse.csr_matrix((0, 3)), "no rows"),
        (scipy.sparse.csr_matrix([[np.nan]]), "NaN or infinite"),
    ],
    ids=str,
)
def test_what_is_no_matrix_is_refused(matrix, problem):
    with pytest.raises(BadInput, match=problem) as caught:
        SparseRows.of(matrix)
    assert str(caught.value).startswith("matrix:") and "Fix:" in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ((2, (0,), (), ()), "no rows"),
        ((2, (0, 2), (0,), (1.0,)), "well-formed"),
        ((2, (1, 1), (0,), (1.0,)), "well-formed"),
        ((2, (0, 2, 1), (0,), (1.0,)), "well-formed"),
        ((2, (0, 1), (0,), ()), "numbers"),
        ((2, (0, 1), (2,), (1.0,)), r"outside 0\.\.1"),
        ((2, (0, 1), (-1,), (1.0,)), r"outside 0\.\.1"),
        ((2, (0, 2), (1, 1), (1.0, 1.0)), "twice"),
        ((2, (0, 1), (1,), (1.0,), ("x", "y")), "names"),
        ((2, (0, 1, 1), (1,), (1.0,), ("x", "x")), "names"),
        ((2, (0, 1), (1,), (1.0,), (7,)), "names"),
        ((2, (0, 1), (1,), (1.0,), ("",)), "names"),
    ],
)
def test_damaged_rows_are_refused(fields, problem):
    with pytest.raises(BadInput, match=problem):
        SparseRows(*fields)


def test_queries_must_fit_the_cells():
    attributes = (Attribute(name="sex", codes=2), Attribute(name="age", codes=3))
    with pytest.raises(WorkloadError, match=r"queries: its rows have 5 numbers, the table sex\*age has 6 cells"):
        QueryTable((0, 1), attributes, SparseRows.of(np.ones((2, 5))))


# ----------------------------------------------------------------------------------------------------- workload words

SCHEMA = Schema(
    (
        Attribute(name="sex", values=("F", "M")),
        Attribute(name="age", range=(0, 4)),
        Attribute(name="income", bins=(0, 1, 2, 3), missing="unknown"),
    )
)
QUERIES = QueryTable((1,), SCHEMA.attributes[1:2], SparseRows.of([[1, 1, 0, 0, 0], [0, 0, 1, 1, 1]], ["young", "old"]))


def parse(words, queries=None):
    return Workload.parse(words, SCHEMA, queries)


@pytest.mark.parametrize("words", ["prefix(age)", "ranges(age)*sex,2-way=3", "prefix(age)*ranges(income)=0.5", "sex"])
def test_words_print_back_and_parse_again(words):
    workload = parse(words)
    assert str(workload) == words
    assert parse(str(workload)) == workload


def test_forms_and_marginals_stand_apart_with_their_weights():
    workload = parse("sex=2, prefix(age)*sex=3, ranges(income), 0-way")
    assert workload.marginals == ((0,), ()) and workload.weights == (2.0, 1.0)
    assert [form.word for form in workload.forms] == ["sex*prefix(age)", "ranges(income)"]
    assert workload.form_weights == (3.0, 1.0)
    assert workload.published == ((0,), (), (0, 1), (2,))
    assert len(workload) == 4 and workload.cells == 2 + 1 + 10 + 7


def test_the_order_of_names_is_irrelevant():
    one, other = parse("prefix(age)*sex"), parse("sex * prefix( age )")
    assert one.forms == other.forms and one.forms[0].marginal == (0, 1)
    for word in ("sex*prefix(age)", "prefix(age)*sex", " prefix(age) * sex ", "prefix( age )*sex"):
        assert one.form(word) == one.forms[0]
    assert one.form("prefix(age)") is one.form("ranges(age)*sex") is one.form("age*sex") is None


def test_the_same_form_twice_is_one_with_the_later_weight():
    workload = parse("prefix(age)*sex=2,ranges(age),sex*prefix(age)=5")
    assert [form.word for form in workload.forms] == ["sex*prefix(age)", "ranges(age)"]
    assert workload.form_weights == (5.0, 1.0)


@pytest.mark.parametrize(("kind", "word"), list(product(["prefix", "ranges"], ["{}(sex)", "age*{}(sex)", "{}(sex)=2"])))
def test_a_range_over_values_without_order_names_them_and_the_fix(kind, word):
    with pytest.raises(WorkloadError) as caught:
        parse(word.format(kind))
    assert f"{kind}(sex): the values of 'sex' have no order" in str(caught.value)
    assert "ordered: true" in caught.value.fix


def test_values_declared_in_order_have_ranges_and_ranges_declared_without_have_none():
    ordered = Schema((Attribute(name="grade", values=("low", "high"), ordered=True),))
    assert Workload.parse("prefix(grade)", ordered).forms[0].labels == (("up to low", "up to high"),)
    with pytest.raises(WorkloadError, match="no order"):
        Workload.parse("prefix(a)", Schema((Attribute(name="a", range=(0, 3), ordered=False),)))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("prefix(agee)", "'agee' is not in the schema"),
        ("prefix(age)*seks", "'seks' is not in the schema"),
        ("prefix(age)*age", "twice"),
        ("prefix(age)*ranges(age)", "twice"),
        ("prefix()", "not in the schema"),
        ("prefix(age", "not in the schema"),
        ("suffix(age)", "not in the schema"),
        ("prefix(age)*", "cannot be read|not in the schema"),
        ("prefix(age)=0", "weight"),
        ("prefix(age)=-1", "weight"),
        ("prefix(age)=x", "weight"),
        ("prefix(prefix(age))", "not in the schema"),
        ("queries", "no matrix is given"),
        ("queries=2", "no matrix is given"),
        ("age*queries", "not in the schema"),
    ],
)
def test_words_that_cannot_be_read_are_refused(words, problem):
    with pytest.raises(WorkloadError, match=problem):
        parse(words)


def test_queries_are_asked_for_by_word_or_added():
    for words, weight in (("sex,queries=4", 4.0), ("sex", 1.0), ("queries", 1.0)):
        workload = parse(words, QUERIES)
        assert workload.queries is QUERIES and workload.forms == (QUERIES,) and workload.form_weights == (weight,)
        assert workload.form("queries") is QUERIES
        assert workload.published == workload.marginals, "single cells are not published for queries"
    assert parse("sex").queries is None
    assert str(parse("sex", QUERIES)) == "sex,queries"
    assert QUERIES.labels == (("young", "old"),) and QUERIES.axes == ("query",)


@pytest.mark.parametrize("name", ["prefix(x)", "ranges(age)", "prefix()", "queries", "cube", "2-way"])
def test_workload_words_cannot_name_an_attribute(name):
    with pytest.raises(SchemaError, match="workload word"):
        Attribute(name=name, codes=2)


@pytest.mark.parametrize("name", ["prefix", "ranges", "prefix(", "my prefix(x)", "query", "prefix(x) of y", "(x)"])
def test_other_names_with_brackets_are_fine(name):
    schema = Schema((Attribute(name=name, range=(0, 2)),))
    workload = Workload.parse(f"prefix({name}),{name}", schema)
    assert workload.forms[0].marginal == workload.marginals[0] == (0,)
