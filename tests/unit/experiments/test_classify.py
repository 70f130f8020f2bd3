"""Cross-validation: folds counted row by row are the judge; rows are read in any order to the same end."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from helpers import exact_table, make_schema, random_codes
from hushcube.designs.request import Request
from hushcube.errors import BadInput, DataError, WorkloadError
from hushcube.experiments.classify import (
    EXACT,
    NaiveBayes,
    accuracy,
    class_workload,
    coded_rows,
    cross_validate,
    divide,
)
from hushcube.experiments.contender import Contender
from hushcube.experiments.errors import RunErrors
from hushcube.experiments.trial import Trial
from hushcube.model.attribute import Attribute
from hushcube.model.privacy import Privacy
from hushcube.model.schema import Schema
from hushcube.private.engines.counting import RowCounts
from hushcube.private.noise import SeededEntropy
from hushcube.samples import TITANIC, titanic
from hushcube.strategies.adaptive import ADAPTIVE, NOT_PRIVATE

SIZES = (4, 3, 2, 7)
SCHEMA = make_schema(SIZES)
USUAL = {"sanity_bound": 5}
CLASS, PLACE = "a1", 1
ASKED = {**USUAL, "runs": 5, "seed": 9, "workers": 1}


def make_trial(methods, *, epsilon=1, **changed):
    privacies = [Privacy.of(epsilon=epsilon, neighbours="replace-one")]
    return Trial(methods=methods, privacies=privacies, **{**ASKED, **changed})


def dependent_columns(rows=400, seed=1):
    """Attributes that lean towards the class."""
    codes = random_codes(SIZES, rows, seed)
    leaning = np.random.default_rng(seed).random(codes.shape) < 0.4
    codes = np.where(leaning, codes[:, [PLACE]] % np.array(SIZES), codes)
    return {i: codes[:, i].astype(np.uint8) for i in range(len(SIZES))}


COLUMNS = dependent_columns()


def classifier(tables):
    """From tables by marginal."""
    features = {}
    for (first, *rest), table in tables.items():
        if rest:
            features[rest[0] if first == PLACE else first] = table if first == PLACE else table.T
    return NaiveBayes.of(tables[(PLACE,)], features)


def test_every_fold_is_predicted_from_the_others():
    """Training rows counted one by one, noise from the seed plus the fold, and the classifier by itself."""
    (reference, result), _ = cross_validate(SCHEMA, COLUMNS, CLASS, make_trial(["ireduct"]))
    request = Request(class_workload(SCHEMA, CLASS), Privacy.of(epsilon=1, neighbours="replace-one"))
    method = Contender.of("ireduct", request, "uniform", "none", USUAL)
    codes, division = np.stack(list(COLUMNS.values()), axis=1), divide(400, 5, 9)
    exact_shares, shares, errors = [], [], []
    for fold in range(5):
        training = codes[division != fold]
        tables = {m: exact_table(SCHEMA, training, m) for m in request.workload.marginals}
        counts = RowCounts({i: training[:, i].astype(np.uint8) for i in range(4)}, len(training), SIZES)
        noisy = method.run(counts, SeededEntropy(9 + fold))
        held_out = {i: column[division == fold] for i, column in COLUMNS.items()}
        exact_shares.append(accuracy(classifier(tables).predict(held_out), held_out[PLACE]))
        shares.append(accuracy(classifier(noisy.marginals).predict(held_out), held_out[PLACE]))
        errors.append(RunErrors.of(list(tables.values()), noisy.tables, [np.array(5.0)] * len(tables)).relative.mean())
    assert reference.accuracy == pytest.approx(np.mean(exact_shares))
    assert result.accuracy == pytest.approx(np.mean(shares))
    assert result.accuracy_error == pytest.approx(np.std(shares, ddof=1) / np.sqrt(5))
    assert result.overall_error == pytest.approx(np.mean(errors))
    assert result.standard_error == pytest.approx(np.std(errors, ddof=1) / np.sqrt(5))
    assert (reference.method, reference.overall_error, result.folds) == (EXACT, 0, 5)


def test_accuracy_comes_with_budget():
    """With much of it noise does not matter; with little a class is guessed."""
    methods = [*ADAPTIVE, *NOT_PRIVATE, "covering"]
    much, _ = cross_validate(SCHEMA, COLUMNS, CLASS, make_trial(methods, epsilon=200))
    little, _ = cross_validate(SCHEMA, COLUMNS, CLASS, make_trial(["dwork"], epsilon="1/1000"))
    assert much[0].accuracy > 0.55
    for result in much[1:]:
        assert result.accuracy == pytest.approx(much[0].accuracy, abs=0.03)
        assert 0 < result.spent <= 200.0001
    assert little[1].accuracy < much[0].accuracy - 0.1
    assert [result.method for result in much] == [EXACT, *methods]


def test_seeds_repeat(tmp_path):
    """Also side by side, and with folds that are kept in a file."""

    def results(**changed):
        found, _ = cross_validate(SCHEMA, COLUMNS, CLASS, make_trial(["dwork", "oracle"], **changed))
        return [replace(result, seconds=0) for result in found]

    first, kept = results(), tmp_path / "folds.jsonl"
    assert first == results() == results(workers=2, keep=kept) == results(keep=kept)
    new, _ = cross_validate(SCHEMA, COLUMNS, CLASS, make_trial(["dwork"], seed=None))
    assert new[1].overall_error != first[1].overall_error


def test_the_class_of_any_place_and_of_two_attributes():
    for name in SCHEMA.names:
        words = class_workload(SCHEMA, name).words
        assert words[0] == name and len(words) == len(SIZES)
        assert all(name in word.split("*") for word in words)
    two = make_schema((3, 2))
    columns = {0: COLUMNS[1], 1: COLUMNS[2]}
    assert cross_validate(two, columns, "a0", make_trial(["dwork"]))[0][0].accuracy > 1 / 3


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"runs": 1}, "folds: 1 is less than two"),
        ({"runs": 401}, "folds: there are more folds than rows"),
        ({"seed": -1}, "seed"),
        ({"methods": ["nonsense"]}, "method: 'nonsense' is unknown"),
        ({"methods": ["ireduct"], "sanity_bound": None}, "sanity_bound"),
        ({"seed": None, "keep": Path("folds.jsonl")}, "seed: is not given"),
        ({"columns": {0: COLUMNS[0]}}, "columns: are not one for each attribute"),
        ({"columns": {**COLUMNS, 2: COLUMNS[2][:-1]}}, "columns: are not one for each attribute"),
        ({"columns": {**COLUMNS, 2: COLUMNS[2] + 1}}, "attribute 'a2': holds codes outside its domain"),
        ({"columns": {**COLUMNS, 2: COLUMNS[2].astype(float)}}, "attribute 'a2': holds codes outside its domain"),
    ],
)
def test_what_is_wrong_is_told(changed, told):
    asked = {"columns": COLUMNS, "methods": ["dwork"], **changed}
    with pytest.raises(BadInput) as problem:
        cross_validate(SCHEMA, asked.pop("columns"), CLASS, make_trial(**asked))
    assert told in str(problem.value)


def test_a_class_that_is_not_there_and_one_that_is_alone():
    with pytest.raises(WorkloadError, match="not in the schema"):
        class_workload(SCHEMA, "nonsense")
    with pytest.raises(BadInput, match="no other attribute"):
        class_workload(make_schema((3,)), "a0")


def test_rows_are_read_only_once_all_else_is_right():
    def unread():
        raise AssertionError("the rows were read")

    with pytest.raises(BadInput):
        cross_validate(SCHEMA, unread, CLASS, make_trial(["nonsense"]))
    with pytest.raises(AssertionError):
        cross_validate(SCHEMA, unread, CLASS, make_trial(["dwork"]))


def test_coded_rows_are_the_people_in_the_order_of_their_codes():
    people = titanic()
    columns = coded_rows(TITANIC, people)
    shuffled = coded_rows(TITANIC, people.take(np.random.default_rng(1).permutation(len(people))))
    rows = list(zip(*(column.tolist() for column in columns.values()), strict=True))
    expected = sorted(tuple(a.labels.index(row[a.name]) for a in TITANIC.attributes) for row in people.to_pylist())
    assert rows == expected
    assert all((columns[i] == shuffled[i]).all() and columns[i].dtype == np.uint8 for i in columns)


def test_coded_rows_of_large_domains_and_of_none():
    schema = Schema((Attribute(name="a", range=(0, 60_000)), Attribute(name="b", codes=2)))
    columns = coded_rows(schema, pa.table({"a": [60_000, 3], "b": [1, 0]}))
    assert columns[0].tolist() == [3, 60_000] and columns[0].dtype == np.uint16
    empty = coded_rows(schema, pa.table({"a": pa.array([], pa.int64()), "b": pa.array([], pa.int64())}))
    assert [len(column) for column in empty.values()] == [0, 0]


@pytest.mark.parametrize(("value", "told"), [(None, "missing values"), (9, "outside the declared domain")])
def test_rows_that_do_not_fit_the_schema_are_refused(value, told):
    with pytest.raises(DataError, match=told):
        coded_rows(make_schema((2, 2)), pa.table({"a0": [0, 1], "a1": pa.array([1, value], pa.int64())}))
