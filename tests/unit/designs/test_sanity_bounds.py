"""Sanity bounds of some tables or queries: how they are written, what they are refused for, and that they count."""

import json

import numpy as np
import pytest

from helpers import Counts, adaptive, make_schema, random_codes
from hushcube import IReduct, plan
from hushcube.designs.refinement import Amount, Rule, SanityBound
from hushcube.designs.sanity import table_bounds
from hushcube.errors import BadInput
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.planning.plan import read_design
from hushcube.private.adaptive.run import prepared
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy

SCHEMA = make_schema((3, 4, 5))


def bounds(text, words, queries=None):
    own = None if queries is None else query_table(SCHEMA, *queries)
    return [each.tolist() for each in table_bounds(SanityBound.parse(text, "sanity_bound"), workload(words, own))]


def workload(words, own=None):
    return Workload.parse(words, SCHEMA, own)


def asked(bound, words="1-way", strategy="ireduct", **given):
    chosen = adaptive(strategy, sanity_bound=bound, **given)
    return plan(SCHEMA, words, epsilon=1, neighbours="add-remove", strategy=chosen, recovery="none").count


def test_tables_have_their_own_and_the_others_one():
    assert bounds("20", "1-way,a0*a1") == [20, 20, 20, 20]
    assert bounds("20; a1=5; a1*a0 = 50", "1-way,a0*a1") == [20, 5, 20, 50]
    assert bounds("20;2-way=7", "1..2-way") == [20, 20, 20, 7, 7, 7]
    assert bounds("2-way=7;1-way=3;a0=1", "1..2-way") == [1, 3, 3, 7, 7, 7], "what comes later counts"
    assert bounds({"a0": 1, "others": 4}, "1-way") == [1, 4, 4]
    assert bounds("20;0-way=3", "0-way,a0") == [3, 20]


def test_queries_have_their_own_by_their_names():
    rows = [[1, 0, 0], [0, 1, 1]]
    assert bounds("20;1=5", "queries", (["a0"], rows)) == [[20, 5]]
    assert bounds("20;queries=5", "queries,a0", (["a0"], rows)) == [20, [5, 5]]


@pytest.mark.parametrize(
    ("text", "says", "fix"),
    [
        ("20;a9=3", "'a9' names something that is not asked for", "such as a0, a1, a2"),
        ("20;a0*a1=3", "'a0*a1' names something", "such as a0"),
        ("20;2-way=3", "'2-way' names something", "such as a0"),
        ("20;=3", "'' names something", "such as a0"),
        ("a0=3", "says nothing of 'a1'", "`20;a0=3`"),
    ],
)
def test_what_names_no_table_is_refused_by_name(text, says, fix):
    with pytest.raises(BadInput) as caught:
        asked(text)
    assert caught.value.field == "sanity_bound" and says in caught.value.problem and fix in caught.value.fix


@pytest.mark.parametrize("text", ["20;a0=x", "20;a0=-1", "20;30", "20;a0=1;a0=2", "a0=", ";"])
def test_what_cannot_be_read_is_refused_by_name(text):
    with pytest.raises(BadInput, match="sanity_bound"):
        asked(text)


def test_the_word_the_object_and_the_plan_file_say_the_same():
    made = asked("20;a1=0.5%", people=1000)
    word = "ireduct:sanity-bound=20;a1=0.5%,people=1000"
    again = plan(SCHEMA, "1-way", epsilon=1, neighbours="add-remove", strategy=word, recovery="none").count
    own = IReduct(sanity_bound={"others": 20, "a1": "0.5%"}, people=1000)
    third = plan(SCHEMA, "1-way", epsilon=1, neighbours="add-remove", strategy=own, recovery="none").count
    assert made.digest == again.digest == third.digest
    assert json.loads(made.to_json())["rule"]["sanity_bound"] == "20;a1=0.5%"
    assert read_design(made.to_json()).rule == made.rule
    assert Rule.from_dict(made.rule.to_dict()) == made.rule
    assert SanityBound.parse("7", "sanity_bound") == Amount.parse(7, "sanity_bound"), "one for all is what it was"


def test_shares_are_settled():
    made = asked("20;a1=0.5%", people=1000)
    subject = prepared(made, Counts(SCHEMA, random_codes(SCHEMA.sizes, 50)), SeededEntropy(1))
    assert subject.sanity_bounds.tolist() == [20, 5, 20]
    with pytest.raises(BadInput, match="share of the people"):
        asked("20;a1=0.5%")


@pytest.mark.parametrize("pick", ["average", "worst"])
@pytest.mark.parametrize("strategy", ["twophase", "iresamp", "ireduct"])
def test_a_table_with_a_small_bound_gets_less_noise(strategy, pick):
    """Tables that are alike but for their bounds, far above their counts: the smaller one matters more."""
    schema = make_schema((4, 4))
    codes = random_codes((4, 4), 100)
    chosen = adaptive(strategy, sanity_bound="50;a1=5000", pick=pick)
    made = plan(schema, "1-way", epsilon="0.5", neighbours="add-remove", strategy=chosen, recovery="none").count
    spent = np.zeros(2)
    for seed in range(5):
        ended, _ = draw(made, Counts(schema, codes), entropy=SeededEntropy(seed))
        spent += np.bincount(getattr(ended, "sample_of", range(2)), weights=ended.budgets)
    assert spent[0] > 2 * spent[1]


def test_one_number_is_asked_for_where_only_one_can_be_used():
    with pytest.raises(BadInput, match="one number is needed"):
        float(SanityBound.parse("20;a=3", "sanity_bound").value)
