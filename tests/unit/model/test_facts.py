"""Public facts: what a file may say, what is refused and how, and the classes of values that facts leave alike."""

import json
import re

import numpy as np
import pytest
import yaml
from hypothesis import given, strategies as st

from hushcube.errors import FactsError
from hushcube.model.attribute import Attribute
from hushcube.model.facts import MAX_COUNT, Fact, Facts
from hushcube.model.schema import Schema

SCHEMA = Schema(
    (
        Attribute(name="sex", values=("Female", "Male")),
        Attribute(name="pregnant", values=("yes", "no"), missing="unknown"),
        Attribute(name="age", range=(0, 99)),
        Attribute(name="income", bins=(0, 10, 50)),
        Attribute(name="big", codes=500),
        Attribute(name="7", codes=500),
    )
)
EXAMPLE = """
zeros:
  - {sex: Male, pregnant: yes}
  - {age: [0, "1", 2], pregnant: ["yes", unknown]}
totals:
  - {count: 32561}
  - {where: {sex: Female}, count: 10771}
"""


def test_a_file_is_read_with_its_combinations_and_labels_as_texts():
    facts = Facts.from_yaml(EXAMPLE, SCHEMA)
    young = [Fact((1, 2), (answer, age), 0) for answer in (0, 2) for age in (0, 1, 2)]
    assert facts.facts == (Fact((0, 1), (1, 0), 0), *young, Fact((), (), 32561), Fact((0,), (0,), 10771))
    assert facts == Facts.of(
        SCHEMA,
        zeros=[{"pregnant": "yes", "sex": "Male"}, {"age": range_labels(3), "pregnant": ("yes", "unknown")}],
        totals=[({"sex": "Female"}, np.int64(10771)), ({}, 32561)],
    )
    assert isinstance(facts.facts[-1].count, int)
    assert hash(facts) == hash(Facts.from_yaml(EXAMPLE, SCHEMA))


def range_labels(n):
    return [str(i) for i in range(n)]


def test_numbers_of_the_array_library_are_labels_too():
    assert Facts.of(SCHEMA, zeros=[{"age": np.int64(3), "7": [np.str_("4")]}]).facts == (Fact((2, 5), (3, 4), 0),)
    assert Facts.of(SCHEMA, zeros=[{7: 4.0}]).facts == (Fact((5,), (4,), 0),)


def test_facts_in_words():
    assert Facts.from_yaml(EXAMPLE, SCHEMA).describe() == [
        "No person has sex = Male and pregnant = yes.",
        "No person has pregnant = yes and age = 0.",
        "No person has pregnant = yes and age = 1.",
        "No person has pregnant = yes and age = 2.",
        "No person has pregnant = unknown and age = 0.",
        "No person has pregnant = unknown and age = 1.",
        "No person has pregnant = unknown and age = 2.",
        "The number of people is 32,561.",
        "The number of people with sex = Female is 10,771.",
    ]
    assert Facts.none(SCHEMA).describe() == []
    assert Facts.of(SCHEMA, totals=[({}, 0)]).describe() == ["The number of people is 0."]


@pytest.mark.parametrize(("ages", "lines"), [(20, 20), (21, 21), (100, 21)])
def test_long_lists_are_cut_in_words_but_not_in_the_file(ages, lines):
    zeros = Facts.of(SCHEMA, zeros=[{"age": range_labels(ages)}])
    assert len(zeros.describe()) == lines
    known = Facts.of(SCHEMA, totals=[({"age": age}, 5) for age in range_labels(ages)])
    assert len(known.describe()) == lines
    if ages > 20:
        assert zeros.describe()[-1] == f"... and {ages - 20} more cells declared empty."
        assert known.describe()[-1] == f"... and {ages - 20} more known counts."
    assert len(zeros.to_dict()["zeros"]) == len(known.to_dict()["totals"]) == ages


def test_thousands_are_readable():
    facts = Facts.of(SCHEMA, zeros=[{"big": range_labels(100), "age": range_labels(100)}])
    assert facts.describe()[-1] == "... and 9,980 more cells declared empty."


def test_nothing_is_known():
    assert not Facts.none(SCHEMA)
    assert Facts.from_dict({}, SCHEMA) == Facts.none(SCHEMA) == Facts.from_yaml("{}", SCHEMA)
    assert Facts.none(SCHEMA).to_dict() == {}
    assert Facts.of(SCHEMA, totals=[({}, 0)])


def test_the_same_cell_with_the_same_count_is_one_fact():
    facts = Facts.of(SCHEMA, zeros=[{"age": [1, 2]}, {"age": [2, 3]}], totals=[({"age": 1}, 0), ({}, 9), ({}, 9)])
    assert facts.facts == (*(Fact((2,), (age,), 0) for age in (1, 2, 3)), Fact((), (), 9))


@st.composite
def any_facts(draw, schema=SCHEMA):
    def fact():
        marginal = tuple(sorted(draw(st.sets(st.integers(0, len(schema) - 1), max_size=3))))
        cell = tuple(draw(st.integers(0, schema.sizes[i] - 1)) for i in marginal)
        return Fact(marginal, cell, draw(st.integers(0, 9)))

    found = {(one.marginal, one.cell): one for one in (fact() for _ in range(draw(st.integers(0, 8))))}
    return Facts(schema, tuple(found.values()))


@given(any_facts())
def test_the_file_form_comes_back(facts):
    assert Facts.from_dict(facts.to_dict(), SCHEMA) == facts
    assert Facts.from_yaml(yaml.safe_dump(facts.to_dict()), SCHEMA) == facts
    assert Facts.from_dict(json.loads(json.dumps(facts.to_dict())), SCHEMA) == facts
    assert Facts(SCHEMA, facts.facts[::-1]) == facts


TINY = Schema(tuple(Attribute(name=f"a{i}", codes=n) for i, n in enumerate((2, 4, 3, 1))))


@given(any_facts(TINY))
def test_no_fact_tells_values_of_a_class_apart_and_classes_are_as_large_as_that_allows(facts):
    for position, classes in enumerate(facts.classes()):
        seen = np.array(
            [
                [fact.cell[fact.marginal.index(position)] == value for value in range(len(classes))]
                for fact in facts.facts
                if position in fact.marginal
            ],
            bool,
        ).reshape(-1, len(classes))
        for one in range(len(classes)):
            for other in range(len(classes)):
                alike = bool((seen[:, one] == seen[:, other]).all())
                assert (classes[one] == classes[other]) == alike
        assert list(dict.fromkeys(classes.tolist())) == list(range(classes.max() + 1))


def test_classes_are_numbered_by_their_first_value():
    facts = Facts.of(SCHEMA, zeros=[{"sex": "Male", "age": [0, 2]}])
    sex, pregnant, age, *_ = facts.classes()
    assert sex.tolist() == [0, 1]
    assert pregnant.tolist() == [0, 0, 0]
    assert age.tolist() == [0, 1, 2] + [1] * 97


def test_arrays_of_each_marginal():
    facts = Facts.from_yaml(EXAMPLE, SCHEMA)
    assert list(facts.by_marginal) == [(0, 1), (1, 2), (), (0,)]
    for marginal, known in facts.by_marginal.items():
        for number, cell, count in zip(known.ids, known.cells, known.counts, strict=True):
            assert facts.facts[number] == Fact(marginal, tuple(cell.tolist()), count)


WRONG = {
    "": ("facts", "must be a mapping", "start it with `zeros:` or `totals:`"),
    "- {sex: Male}": ("facts", "must be a mapping", "start it with"),
    "zeroes: []": ("facts", "has the unknown key 'zeroes'", "use only zeros and totals"),
    "7: []": ("facts", "has the unknown key 7", "use only zeros and totals"),
    "zeros:": ("facts, zeros", "must be a list", "write `zeros:` and one `- {...}` for each"),
    "totals: {count: 3}": ("facts, totals", "must be a list", "write `totals:` and one `- {...}` for each"),
    "zeros: [sex]": ("facts, zeros[1]", "must be a mapping", "write attributes with their labels"),
    "zeros: [{}]": ("facts, zeros[1]", "names no attribute", "write for example"),
    "zeros: [{sex: Male}, {sax: Male}]": ("facts, zeros[2]", "'sax' is not in the schema", "use one of: sex, pregnant"),
    "zeros: [{sex: Mail}]": ("facts, zeros[1], sex", "'Mail' is not one of its values", "use one of: 'Female', 'Male'"),
    "zeros: [{age: 100}]": ("facts, zeros[1], age", "'100' is not one of", "use one of: '0', '1', '2'"),
    "zeros: [{income: [10, 50]}]": ("facts, zeros[1], income", "'10' is not one", "use one of: '[0, 10)', '[10, 50]'"),
    "zeros: [{sex: null}]": ("facts, zeros[1], sex", "None is not a label", "use labels of the schema"),
    "zeros: [{null: Male}]": ("facts, zeros[1]", "None is not a label", "use labels of the schema"),
    "zeros: [{age: .inf}]": ("facts, zeros[1], age", "inf is not a label", "use labels"),
    "zeros: [{sex: {Male: 1}}]": ("facts, zeros[1], sex", "is not a label", "use labels"),
    "zeros: [{sex: [[Male]]}]": ("facts, zeros[1], sex", "is not a label", "use labels"),
    "zeros: [{sex: []}]": ("facts, zeros[1], sex", "the list is empty", "leave the attribute out"),
    "zeros: [{age: [1, '1']}]": ("facts, zeros[1], age", "names a label twice", "list each label once"),
    "zeros: [{sex: Male, sex: Female}]": ("facts", "the key 'sex' occurs twice", "keep one of them"),
    "zeros: [&a {sex: Male}, {<<: *a}]": ("facts", "unknown key '<<'", "write each item out"),
    "zeros: &a [*a]": ("facts, zeros[1]", "must be a mapping", "write attributes"),
    "totals: [32561]": ("facts, totals[1]", "must be a mapping", "write for example {where:"),
    "totals: [{count: 1, were: {}}]": ("facts, totals[1]", "has the unknown key 'were'", "use only where and count"),
    "totals: [{where: {sex: Male}}]": ("facts, totals[1]", "has no count", "add `count:`"),
    "totals: [{where: Male, count: 1}]": ("facts, totals[1], where", "must be a mapping", "write attributes"),
    "totals: [{where: , count: 1}]": ("facts, totals[1], where", "must be a mapping", "write attributes"),
    "totals: [{count: 1}, {where: {sex: Mail}, count: 1}]": ("facts, totals[2], where, sex", "'Mail' is", "use one of"),
    "totals: [{where: {sax: Male}, count: 1}]": ("facts, totals[1], where", "'sax' is not in the schema", "use one of"),
    "totals: [{where: {sex: [Male, Female]}, count: 1}]": ("facts, totals[1], where, sex", "is a list", "give one"),
    "totals: [{count: true}]": ("facts, totals[1], count", "True is not a number of people", "write a whole number"),
    "totals: [{count: '12'}]": ("facts, totals[1], count", "'12' is not a number of people", "without quotes"),
    "totals: [{count: 12.0}]": ("facts, totals[1], count", "12.0 is not a number of people", "or decimals"),
    "totals: [{count: 10,771}]": ("facts, totals[1]", "has the unknown key", "use only"),
    "totals: [{count: .nan}]": ("facts, totals[1], count", "nan is not a number of people", "write a whole number"),
    "totals: [{count: null}]": ("facts, totals[1], count", "None is not a number of people", "write a whole number"),
    "totals: [{count: -1}]": ("facts, totals[1], count", "is negative", "write a whole number, 0 or more"),
    f"totals: [{{count: {MAX_COUNT + 1}}}]": ("facts, totals[1], count", "is more than 1,000,000,000,000", "smaller"),
    f"totals: [{{count: {'9' * 400}}}]": ("facts, totals[1], count", "about 10^400", "give a smaller count"),
    f"totals: [{{count: {'9' * 9999}}}]": ("facts", "holds a number that is too long", "write plain lists"),
    f"zeros: {'[' * 1200}{']' * 1200}": ("facts", "lists that are too deep", "write plain lists"),
    "zeros: [{sex: !!bool x}]": ("facts", "a tag that does not fit", "write plain lists"),
    "zeros: [{sex: !!int ''}]": ("facts", "a tag that does not fit", "write plain lists"),
    "zeros: [{sex: !!timestamp x}]": ("facts", "a tag that does not fit", "write plain lists"),
    "zeros: [{sex: !!python/object:os.system x}]": ("facts, line 1", "is not valid YAML", "see the page"),
    "zeros:\n  - {sex: [0, 10)}": ("facts, line 2", "is not valid YAML", "see the page"),
    "zeros: []\n---\nzeros: []": ("facts, line 2", "is not valid YAML", "see the page"),
    "zeros: [{? [a] : b}]": ("facts, line 1", "is not valid YAML", "see the page"),
    "totals: [{count: 1}, {count: 2}]": ("facts, totals[2]", "of which facts, totals[1] says 1", "keep one"),
    "zeros: [{sex: [Male]}]\ntotals: [{where: {sex: Male}, count: 2}]": (
        "facts, totals[1]", "says 2 of a cell of which facts, zeros[1] says 0", "keep one of them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_named_with_its_fix(text):
    field, problem, fix = WRONG[text]
    with pytest.raises(FactsError) as caught:
        Facts.from_yaml(text, SCHEMA)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert fix in caught.value.fix


@pytest.mark.slow
def test_no_more_than_a_hundred_thousand_cells():
    almost = [{"big": range_labels(200), "7": range_labels(500)}]
    assert len(Facts.of(SCHEMA, zeros=almost).facts) == 100_000
    with pytest.raises(FactsError, match=re.escape("facts: there are more than 100,000 cells. Fix: declare fewer")):
        Facts.of(SCHEMA, zeros=almost, totals=[({}, 1)])
    everything = {name: [*SCHEMA[name].labels] for name in SCHEMA.names}
    with pytest.raises(FactsError, match="more than 100,000 cells"):  # refused before it is expanded
        Facts.of(SCHEMA, zeros=[everything] * 3)


def test_names_that_are_one_as_texts_are_refused():
    with pytest.raises(FactsError, match=re.escape("facts, zeros[1]: names '7' twice. Fix: name each attribute once")):
        Facts.of(SCHEMA, zeros=[{7: 1, "7": 2}])


@pytest.mark.parametrize(
    ("fact", "problem"),
    [
        (Fact((1, 0), (0, 0), 1), "is not a marginal"),
        (Fact((0, 0), (0, 0), 1), "is not a marginal"),
        (Fact((0, 6), (0, 0), 1), "is not a marginal"),
        (Fact((-1, 0), (0, 0), 1), "is not a marginal"),
        (Fact((0, 1), (0,), 1), "is outside the marginal"),
        (Fact((0,), (2,), 1), "is outside the marginal"),
        (Fact((0,), (-1,), 1), "is outside the marginal"),
        (Fact((0,), (1,), -1), "is negative"),
        (Fact((0,), (1,), True), "is not a number of people"),
        (Fact((0,), (0,), 8), "another fact says another count"),
    ],
)
def test_facts_made_in_python_are_checked_too(fact, problem):
    with pytest.raises(FactsError, match=problem) as caught:
        Facts(SCHEMA, (Fact((0,), (0,), 7), fact))
    assert caught.value.field in ("facts", "facts[2]", "facts[2], count")
