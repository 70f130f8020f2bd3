"""The owner's check: releases of every kind against counts made by hand, damage that is seen, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import hushcube as hc
from hushcube.bundle.part import FormsFromCells
from hushcube.errors import BadInput, BundleError, DataError, QueryError
from hushcube.verbs.check_charts import draw_check

N = 6000
RNG = np.random.default_rng(7)
SEX, AGE, CITY = RNG.integers(0, 2, N), RNG.binomial(9, 0.3, N), RNG.integers(0, 12, N)
WAGE = RNG.gamma(2.0, 20.0, N).round(1) + 5 * AGE
PEOPLE = pa.table({"sex": SEX, "age": AGE, "city": CITY, "wage": WAGE})
WAGES = hc.Measure("wage", bounds=[0, 120], center=30, resolution="0.5")
SCHEMA = hc.Schema(
    [
        hc.Attribute("sex", values=["0", "1"], labels={"0": "women", "1": "men"}),
        hc.Attribute("age", range=[0, 9], levels=[{"name": "half", "starts": [0, 5]}]),
        hc.Attribute("city", codes=12),
    ],
    "people",
    measures=[WAGES],
)
GUARANTEES = {
    "epsilon": {"epsilon": 1, "neighbours": "add-remove"},
    "rho": {"rho": "0.5", "neighbours": "replace-one"},
    "epsilon and delta": {"epsilon": 1, "delta": "1e-6", "neighbours": "add-remove"},
}


def make_release(words="<=3-way", *, seed=3, measures=(), schema=SCHEMA, data=PEOPLE, **guarantee):
    plan = hc.plan(schema, words, measures=measures, effort="low", **(guarantee or GUARANTEES["epsilon"]))
    return hc.release(plan, data, seed=seed)


@pytest.fixture(scope="module")
def cube():
    return make_release("<=2-way,sex*age*city", measures=["avg(wage)"])


@pytest.fixture(scope="module")
def checked(cube):
    return hc.evaluate_release(cube, PEOPLE)


class Shifted(FormsFromCells):
    """A source whose numbers are all off by as much."""

    def __init__(self, source, by):
        self._source, self._by = source, by

    def tables(self, rows, shape):
        return self._source.tables(rows, shape) + self._by

    def form(self, form):
        return self._source.form(form) + self._by


def shifted(release, by):
    part = release.parts["count"]
    return replace(release, parts={**release.parts, "count": replace(part, source=Shifted(part.source, by))})


def by_hand(release, word, what, truth):
    """The numbers of one table, from what `table` says and a truth that is known."""
    table = release.table(word, what)
    off = table.values - truth
    known = np.isfinite(off)
    held = ((table.low <= truth) & (truth <= table.high))[known]
    return {
        "compared": known.sum(),
        "root_mean_square": np.sqrt(np.mean(off[known] ** 2)),
        "mean_error": np.abs(off[known]).mean(),
        "worst_cell": np.abs(off[known]).max(),
        "coverage": held.mean(),
    }


def quantised():
    """What wages count as: clipped, and rounded to the resolution from the center on."""
    return np.round((np.clip(WAGE, 0, 120) - 30) / 0.5) * 0.5 + 30


@pytest.mark.parametrize("what", ["count", "sum(wage)", "avg(wage)"])
def test_the_numbers_are_those_of_a_count_by_hand(cube, checked, what):
    counts, sums = np.zeros((2, 10)), np.zeros((2, 10))
    np.add.at(counts, (SEX, AGE), 1)
    np.add.at(sums, (SEX, AGE), quantised())
    truth = {"count": counts, "sum(wage)": sums, "avg(wage)": sums / np.where(counts > 0, counts, np.nan)}[what]
    [row] = [row for row in checked.rows() if (row["table"], row["what"]) == ("sex*age", what)]
    for name, number in by_hand(cube, "sex*age", what, truth).items():
        assert row[name] == pytest.approx(number), name
    if what == "avg(wage)":
        assert np.isnan(row["std_error"]) and row["compared"] < row["cells"] == 20, "nobody is 9, or hardly anybody"
    else:
        stated = cube.table("sex*age", what).std_errors
        assert row["std_error"] == pytest.approx(np.sqrt(np.mean(stated**2)))


@pytest.mark.parametrize("law", GUARANTEES.values(), ids=GUARANTEES)
def test_intervals_cover_under_every_guarantee(law):
    """Means over six seeds. Tables share noise, so that one release varies: over 150 seeds coverage had a standard
    deviation of at most 0.012, and the squared ratio of measured to stated errors one of at most 0.43. Bounds are at
    least 4 standard deviations of the mean from 0.951 to 0.956 and from 1.
    """
    plan = hc.plan(SCHEMA, "<=3-way", measures=["sum(wage)"], effort="low", **law)
    found = [hc.evaluate_release(hc.release(plan, PEOPLE, seed=seed), PEOPLE) for seed in range(6)]
    assert 0.93 < np.mean([check.coverage for check in found]) < 0.976
    wholes = [whole for check in found for whole in check.parts("release")]
    assert 0.5 < np.mean([(whole.root_mean_square / whole.std_error) ** 2 for whole in wholes]) < 1.5
    assert all(whole.compared == whole.cells == 429 for whole in wholes)
    assert [part.attributes for part in found[0].parts("dimension")] == [0, 1, 2, 3] * 2


def test_parts_add_up(checked):
    for whole in checked.parts("release"):
        tables = [part for part in checked.parts() if part.what == whole.what]
        dimensions = [part for part in checked.parts("dimension") if part.what == whole.what]
        for parts in (tables, dimensions):
            assert sum(part.tables for part in parts) == whole.tables == 8
            covered = sum(part.coverage * part.compared for part in parts if part.compared)
            assert covered == pytest.approx(whole.coverage * whole.compared)
            squares = sum(part.root_mean_square**2 * part.compared for part in parts if part.compared)
            assert squares == pytest.approx(whole.root_mean_square**2 * whole.compared)
            assert max(part.worst_cell for part in parts if part.compared) == whole.worst_cell


def test_a_release_whose_values_were_shifted_is_not_covered():
    release = make_release("<=2-way")
    before, after = hc.evaluate_release(release, PEOPLE), hc.evaluate_release(shifted(release, 1000.0), PEOPLE)
    assert before.coverage > 0.9 and after.coverage < 0.05
    assert "far fewer" in str(after) and "far fewer" not in str(before)
    assert after.rows("release")[0]["mean_error"] > 900
    assert min(abs(cell.standardised) for cell in after.worst) > 10


def test_the_data_of_another_release_is_not_covered(checked):
    others = PEOPLE.set_column(0, "sex", pa.array(np.zeros(N, np.int64)))
    assert hc.evaluate_release(checked.release, others).coverage < checked.coverage - 0.2


def test_the_worst_cells_are_named(cube, checked):
    sizes = [abs(cell.standardised) for cell in checked.worst]
    assert len(sizes) == 10 and sizes == sorted(sizes, reverse=True)
    for cell in checked.worst:
        where = dict(zip(cell.table.split("*"), cell.labels, strict=True)) if cell.labels else None
        told = cube.table(cell.table, cell.what, where)
        assert told.values.item() == pytest.approx(cell.published)
        if cell.what != "avg(wage)":
            error = (cell.published - cell.truth) / told.std_errors.item()
            assert cell.standardised == pytest.approx(error) and cell.std_error == pytest.approx(told.std_errors.item())
    least = max(abs(row["worst_cell"]) / row["std_error"] for row in checked.rows() if row["what"] == "count")
    assert sizes[0] >= least - 1e-9, "no cell of a table is further off"
    assert len(hc.evaluate_release(cube, PEOPLE, worst=3).worst) == 3
    assert hc.evaluate_release(cube, PEOPLE, worst=0).worst == ()


def test_levels_and_ranges_are_compared():
    release = make_release("age@half*sex,age*city,prefix(age)*sex")
    found = hc.evaluate_release(release, PEOPLE)
    assert [row["table"] for row in found.rows()] == list(release)
    truth = np.zeros((2, 2))
    np.add.at(truth, (AGE // 5, SEX), 1)
    prefix = np.cumsum([[np.sum((age == AGE) & (sex == SEX)) for sex in (0, 1)] for age in range(10)], axis=0)
    rows = {row["table"]: row for row in found.rows()}
    for word, exact in (("age@half*sex", truth), ("prefix(age)*sex", prefix)):
        [own] = [name for name in rows if sorted(name.split("*")) == sorted(word.split("*"))]
        for name, number in by_hand(release, word, "count", exact).items():
            assert rows[own][name] == pytest.approx(number), (word, name)


def test_faces_have_errors_alone():
    release = hc.recover(make_release("<=2-way", epsilon="0.05", neighbours="add-remove"), "nonnegative")
    found = hc.evaluate_release(release, PEOPLE)
    plain, face = found.parts("release")
    assert (plain.face, face.face) == ("unbiased", "nonnegative")
    assert face.coverage is None and plain.coverage is not None
    assert face.root_mean_square < plain.root_mean_square, "small counts are no longer below zero"
    only = hc.evaluate_release(release, PEOPLE, faces="nonnegative")
    assert list(only.parts("release")) == [face] and only.coverage is None
    assert "errors alone" in repr(only) and {cell.face for cell in only.worst} == {"nonnegative"}


def test_a_public_total_has_no_error_and_is_covered():
    found = hc.evaluate_release(make_release("<=1-way", rho="0.5", neighbours="replace-one"), PEOPLE)
    total = found.rows()[0]
    assert (total["table"], total["std_error"], total["worst_cell"], total["coverage"]) == ("total", 0, 0, 1)


@pytest.mark.parametrize(("most", "left_out"), [(20, False), (1, True)])
def test_the_truth_is_that_after_bounding(most, left_out):
    people = PEOPLE.append_column("person", pa.array(np.arange(N) // 3))
    schema = replace(SCHEMA, unit=hc.Unit("person", max_rows=most))
    found = hc.evaluate_release(make_release("<=1-way", schema=schema, data=people), people)
    assert found.rows_counted == (N // 3 if left_out else N) and found.rows_left_out == N - found.rows_counted
    assert "after bounding" in str(found) and ("chosen at random anew" in str(found)) is left_out


def test_it_says_what_it_is(checked, tmp_path):
    assert str(checked).startswith("NOT PRIVATE") and "NOT PRIVATE" in repr(checked)
    document = json.loads(json.dumps(checked.to_dict(), allow_nan=False))
    assert document["private"] is False and document["coverage"] == checked.coverage
    assert [len(document[name]) for name in ("results", "dimensions", "tables", "worst")] == [3, 12, 24, 10]
    lines = checked.to_csv(tmp_path / "check.csv").read_text().splitlines()
    assert len(lines) == 25 and all(line.startswith("false,unbiased,") for line in lines[1:])


def test_the_page_of_pictures(checked, tmp_path):
    told = draw_check(checked).to_dict()
    assert "NOT PRIVATE" in told["title"]["text"] and len(told["vconcat"]) == 3
    assert all(len(line["hconcat"]) == 3 for line in told["vconcat"])
    assert (
        hc.chart(replace(checked, tallies=checked.tallies[:1]), tmp_path / "check.svg").read_text().startswith("<svg")
    )


def test_what_is_refused(cube, checked, tmp_path):
    with pytest.raises(QueryError, match="no face 'integral'"):
        hc.evaluate_release(cube, PEOPLE, faces="integral")
    with pytest.raises(BadInput, match="worst"):
        hc.evaluate_release(cube, PEOPLE, worst=-1)
    with pytest.raises(BadInput, match="faces"):
        hc.evaluate_release(cube, PEOPLE, faces=[])
    with pytest.raises(DataError, match="no column 'age'"):
        hc.evaluate_release(cube, PEOPLE.drop_columns(["age"]))
    with pytest.raises(BundleError):
        hc.evaluate_release(tmp_path / "nothing", PEOPLE)
