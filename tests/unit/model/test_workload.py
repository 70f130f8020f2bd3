"""Workload words against plain combinations."""

from itertools import combinations

import pytest
from hypothesis import given, strategies as st

from helpers import make_schema
from hushcube.errors import WorkloadError
from hushcube.model.workload import Workload

SCHEMA = make_schema((2, 3, 4, 5))


def parse(words):
    return Workload.parse(words, SCHEMA)


def ways(*orders):
    return {m for k in orders for m in combinations(range(4), k)}


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("2-way", ways(2)),
        ("0-way", {()}),
        ("<=3-way", ways(0, 1, 2, 3)),
        ("1..3-way", ways(1, 2, 3)),
        ("cube", ways(0, 1, 2, 3, 4)),
        ("star:2", ways(2) | {(0, 1, 2), (0, 1, 3)}),
        ("anchored:1:a2", ways(1) | {(0, 2), (1, 2), (2, 3)}),
        ("a3*a0, a1", {(0, 3), (1,)}),
    ],
)
def test_words_mean_these_marginals(word, expected):
    assert set(parse(word).marginals) == expected


@given(
    st.lists(
        st.sampled_from(["2-way", "<=1-way", "cube=3", "a0*a1=0.5", "a2", "star:1", "anchored:2:a1=7"]), min_size=1
    )
)
def test_words_print_and_parse_back_identically(words):
    workload = parse(words)
    again = parse(str(workload))
    assert (again.marginals, again.weights, str(again)) == (workload.marginals, workload.weights, str(workload))


def test_a_later_word_sets_the_weight():
    assert dict(zip(*[(w := parse("1-way=2,a1=5")).marginals, w.weights], strict=True)) == {
        (0,): 2,
        (1,): 5,
        (2,): 2,
        (3,): 2,
    }


def test_cells_are_counted():
    assert parse("cube").cells == 3 * 4 * 5 * 6


@pytest.mark.parametrize(
    "word",
    [
        "",
        ",",
        "5-way",
        "3..2-way",
        "a9",
        "a0*a0",
        "a0*",
        "a0=0",
        "a0=-1",
        "a0=nan",
        "a0=x",
        "star:4",
        "anchored:1:x",
        "-way",
        "<=-way",
    ],
)
def test_words_that_cannot_be_read_are_refused(word):
    with pytest.raises(WorkloadError):
        parse(word)


def test_too_many_marginals_are_refused_before_they_are_listed():
    with pytest.raises(WorkloadError, match="more than"):
        Workload.parse("cube", make_schema((2,) * 300))
