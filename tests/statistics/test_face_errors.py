"""Faces on real data: what they do to the error, over several draws of the noise."""

import pytest

from datasets import adult8_schema, coded, nltcs_schema, shared
from helpers import seeded_releases
from hushcube import plan, release
from hushcube.faces.face import make_face
from hushcube.faces.people import PeopleTables
from hushcube.faces.value import FaceValue
from hushcube.progress import Clock

DRAWS = 3


def people_of(name, schema):
    return PeopleTables(coded(name, schema), schema.sizes)


def squared(answers, truth, family):
    return sum(
        float(((answers.tables(b.rows, b.shape) - truth.tables(b.rows, b.shape)) ** 2).sum()) for b in family.batches
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make_schema", "words", "epsilon", "most"),
    [
        ("adult8.parquet", adult8_schema, "1..3-way", "1", 0.5),
        ("adult8.parquet", adult8_schema, "1..3-way", "0.1", 0.5),
        ("adult8.parquet", adult8_schema, "2-way", "0.1", 0.9),
        ("nltcs.parquet", nltcs_schema, "1..3-way", "0.1", 1.0),
    ],
)
def test_no_negative_cell_means_less_error(name, make_schema, words, epsilon, most):
    """In every draw; on sparse three-way tables by more than half."""
    schema = make_schema()
    decided = plan(schema, words, epsilon=epsilon, neighbours="add-remove", strategy="workload")
    truth, family = people_of(name, schema), decided.count.request.marginals
    for published in seeded_releases(decided, str(shared(name)), range(DRAWS)):
        before = squared(published.source, truth, family)
        measurement = published.source.measurement()
        face = make_face(decided.count, measurement, FaceValue("nonnegative", method="local"), Clock())
        assert squared(face.tables, truth, family) < most * before


@pytest.mark.slow
def test_whole_numbers_cost_little():
    """The people's tables are about as near to the truth as the non-negative ones they follow."""
    schema = adult8_schema()
    decided = plan(schema, "2-way", epsilon=1, neighbours="add-remove", strategy="workload")
    truth, family = people_of("adult8.parquet", schema), decided.count.request.marginals
    measurement = release(decided, str(shared("adult8.parquet")), seed=0).source.measurement()
    real = make_face(decided.count, measurement, FaceValue("nonnegative", method="local"), Clock())
    whole = make_face(decided.count, measurement, FaceValue("integral", method="local"), Clock())
    assert squared(whole.tables, truth, family) < 1.1 * squared(real.tables, truth, family)
