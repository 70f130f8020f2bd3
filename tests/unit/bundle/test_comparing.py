"""Differences, ratios, shares and cross-tables of published numbers: against the definition, cell by cell."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import hushcube as hc
import nested
from hushcube import Attribute, Measure, Schema, plan
from hushcube.bundle.estimate import Estimate
from hushcube.bundle.ratios import ratio_estimate, ratio_interval
from hushcube.errors import BadInput, QueryError

SCHEMA = Schema(
    [Attribute("sex", values=["F", "M"]), Attribute("age", codes=4), Attribute("region", values=["N", "E", "S"])],
    measures=[Measure("days", bounds=[0, 10]), Measure("change", bounds=[-5, 5])],
)


WIDE = Schema([Attribute("age", codes=60)])


def released(words="2-way", schema=SCHEMA, measures="sum(days),avg(days),sum(change)", **given):
    """People of whom some are rare, with enough noise for some totals to be no more than that."""
    given = {"neighbours": "add-remove", "epsilon": 1, **given}
    asked = plan(schema, words, **({} if measures is None else {"measures": measures}), **given)
    rng = np.random.default_rng(5)
    people = {a.name: rng.choice(a.labels, 900, p=_rare(a.size)) for a in schema.attributes}
    numbers = {"days": rng.integers(0, 11, 900), "change": rng.integers(-5, 6, 900)}
    return hc.release(asked, pd.DataFrame(people | numbers), seed=1)


def _rare(n):
    weights = np.arange(n) ** 2 + 0.02
    return weights / weights.sum()


@pytest.fixture(scope="module", params=["workload", "residual", "none"])
def release(request):
    if request.param == "residual":
        return released(epsilon=None, rho=0.5)
    return released(strategy="workload", recovery="none" if request.param == "none" else "gls")


@pytest.mark.parametrize("what", ["count", "sum(days)", "sum(change)"])
def test_covariance_is_that_of_variances(release, what):
    a, b = {"sex": "F", "age": ["0", "2"]}, {"age": ["1", "2"]}
    found = release.covariance("sex*age", a, b, what)
    own = release.covariance("sex*age", a, a, what)
    assert own == pytest.approx(release.estimate("sex*age", a, what).std_error ** 2)
    # Var(a + b): all cells of either, those of both twice; cell by cell
    every = [{"sex": s, "age": g} for s in "FM" for g in "0123"]
    pairs = [(x, y) for x in every for y in every if _in(x, a) and _in(y, b)]
    brute = sum(release.covariance("sex*age", x, y, what) for x, y in pairs)
    assert found == pytest.approx(brute, rel=1e-9, abs=1e-9)


def _in(cell, where):
    return all(cell[name] in labels for name, labels in where.items())


@pytest.mark.parametrize("what", ["count", "sum(days)"])
@pytest.mark.parametrize(
    ("of", "columns", "where"),
    [
        ("row", None, {}),
        ("column", None, {}),
        ("all", None, {"age": ["1", "3"]}),
        ("row", "sex", {"sex": "F", "age": ["0", "1", "2"]}),
        ("column", None, {"age": ["1", "2"]}),
    ],
)
def test_shares_are_ratios_of_each_cell_and_its_total(release, of, columns, where, what):
    table = release.shares("sex*age", of, what, where, columns=columns)
    across = columns or "age"
    down = "sex" if across == "age" else "age"
    assert table.attributes == (down, across) and table.what.startswith(f"% of {of}")
    for at in np.ndindex(table.values.shape):
        cell = {name: table.labels[axis][i] for axis, (name, i) in enumerate(zip(table.attributes, at, strict=True))}
        own = {"row": [down], "column": [across], "all": []}[of]
        total = {**where, **{name: cell[name] for name in own}}
        expected = release.compare("sex*age", {**where, **cell}, _all_of(release, where, total), what).ratio
        if math.isnan(expected.value):
            assert np.isnan(table.values[at])
            continue
        assert table.values[at] == pytest.approx(100 * min(expected.value, 1))
        if expected.value > 1:  # moved to 100% before the interval is taken
            assert table.low[at] <= 100 * expected.low
            continue
        assert table.low[at] == pytest.approx(100 * expected.low, abs=1e-6)
        assert table.high[at] == pytest.approx(100 * min(expected.high, 1), rel=1e-6)


def _all_of(release, where, total):
    return {name: total.get(name, release.schema[name].labels) for name in ("sex", "age")}


def test_shares_at_levels_and_from_finer_tables():
    release = released("s*u,s@l1*t@l1", nested.SCHEMA, None)
    for marginal, across in (("u*s@l1", "s@l1"), ("s@l2*t@l1", "t@l1"), ("s", "s")):
        table = release.shares(marginal, "row")
        assert table.attributes[-1] == across
        for at in np.ndindex(table.values.shape):
            cell = {
                name: table.labels[axis][i] for axis, (name, i) in enumerate(zip(table.attributes, at, strict=True))
            }
            labels = list(release.schema.seen(across).labels)
            expected = release.compare(marginal, cell, {across: labels}).ratio
            assert table.values[at] == pytest.approx(100 * expected.value, nan_ok=True)
            if not math.isnan(expected.value):
                assert table.low[at] == pytest.approx(100 * expected.low, abs=1e-6)


def test_a_difference_has_the_variance_of_both_and_their_covariance(release):
    a, b = {"sex": "F", "age": "1"}, {"sex": "F", "age": "2"}
    for what in ("count", "sum(days)", "sum(change)"):
        found = release.compare("sex*age", a, {"age": "2"}, what)
        assert found.first == release.estimate("sex*age", a, what)
        assert found.second == release.estimate("sex*age", b, what)
        assert found.difference.value == pytest.approx(found.first.value - found.second.value)
        both = found.first.std_error**2 + found.second.std_error**2
        expected = both - 2 * release.covariance("sex*age", a, b, what)
        assert found.difference.std_error**2 == pytest.approx(expected)
    assert found.groups == ("sex = F, age = 1", "sex = F, age = 2")


def test_ratio_ends_solve_the_equation_with_the_covariance(release):
    a, b = {"age": "2"}, {"age": "3"}
    found = release.compare("sex*age", a, b)
    errors = release.parts["count"].design.errors
    m_S, m_C = (float(errors.any_margin(np.array(e.std_error))) for e in (found.first, found.second))
    m_SC = errors.any_quantile() ** 2 * release.covariance("sex*age", a, b)
    for t in (found.ratio.low, found.ratio.high):
        assert (found.first.value - t * found.second.value) ** 2 == pytest.approx(m_S**2 - 2 * t * m_SC + t**2 * m_C**2)
    assert found.share.low < found.share.value < found.share.high < 1
    assert found.share.value == pytest.approx(found.first.value / (found.first.value + found.second.value))
    assert release.compare("sex*age", a, {"age": ["2", "3"]}).share is None  # they overlap


def test_two_averages_are_compared_by_intervals_that_hold_at_once(release):
    found = release.compare("sex*age", {"age": "2"}, {"age": "3"}, "avg(days)")
    assert found.share is None and math.isnan(found.difference.std_error)
    assert found.difference.value == pytest.approx(found.first.value - found.second.value)
    # wider than two 95% intervals taken together
    assert found.difference.low < found.first.low - found.second.high
    assert found.difference.high > found.first.high - found.second.low
    assert found.ratio.low < found.first.low / found.second.high
    rare = release.compare("sex*age", {"age": "3"}, {"age": "0"}, "avg(days)")
    assert math.isnan(rare.ratio.value) and math.isnan(rare.difference.value)


# ------------------------------------------------------------------------------------------------- sets without an end


def contains(estimate, t):
    inside = estimate.low <= t <= estimate.high
    return inside and (estimate.gap is None or not estimate.gap[0] < t < estimate.gap[1])


@pytest.mark.parametrize("may_be_negative", [True, False])
def test_sets_are_those_of_the_inequality(may_be_negative):
    """On a grid of ratios, for random numbers: intervals, half-lines, gaps and everything."""
    rng, kinds = np.random.default_rng(3), set()
    for _ in range(400):
        S, C = rng.normal(0, 3, 2)
        L = rng.normal(size=(2, 2))
        m_SS, m_SC, m_CC = (L @ L.T)[np.triu_indices(2)]
        found = ratio_estimate(S, C, math.sqrt(m_SS), math.sqrt(m_CC), m_SC, may_be_negative=may_be_negative)
        if not may_be_negative:
            S, C = (max(S, 0.0) if C >= 0 else S), (max(C, 0.0) if S >= 0 else C)
        kinds.add((math.isinf(found.low), math.isinf(found.high), found.gap is not None))
        for t in np.linspace(0 if not may_be_negative else -20, 20, 81):
            left, right = (S - t * C) ** 2, m_SS - 2 * t * m_SC + t**2 * m_CC
            if abs(left - right) > 1e-9:
                assert contains(found, t) == (left < right), (S, C, t, found)
    assert kinds >= ({(False, False, False), (True, True, True), (True, True, False)} if may_be_negative else set())
    assert kinds >= (set() if may_be_negative else {(False, False, False), (False, True, True), (False, True, False)})


def test_open_intervals_are_told_in_words_and_json():
    told = ratio_estimate(20.0, 1.0, 4.0, 2.0, 0.0, may_be_negative=False)
    assert "or more" in str(told) and "unknown" in str(told)
    document = told.to_dict()
    assert document["value"] is None and document["high_95"] is None and "or more" in document["interval"]
    gap = ratio_estimate(-5.0, 1.0, 2.0, 3.0, 2.0, may_be_negative=True)
    assert gap.gap is not None and gap.to_dict()["gap_95"] == list(gap.gap) and ", or " in gap.interval
    assert ratio_estimate(1.0, 0.0, 5.0, 5.0, 0.0, may_be_negative=True).interval == "anything"
    assert str(ratio_estimate(1.0, 0.0, 0.0, 0.0, 0.0, may_be_negative=False)) == "unknown"
    assert json.dumps(document)
    assert Estimate(1.0, 0.5, 0.0, 2.0).to_dict() == {"value": 1.0, "std_error": 0.5, "low_95": 0.0, "high_95": 2.0}


def test_without_covariance_the_interval_is_as_it_was():
    S, C, m_S, m_C = np.random.default_rng(2).uniform(1, 9, (4, 50))
    for one, other in zip(ratio_interval(S, C, m_S, m_C), ratio_interval(S, C, m_S, m_C, 0.0), strict=True):
        np.testing.assert_array_equal(one, other)


# --------------------------------------------------------------------------------------------------------- cross-tables


def test_totals_are_sums_of_what_is_shown(release):
    for where in ({}, {"age": ["0", "3"]}, {"sex": "M", "age": ["0", "3"]}):
        for what in ("count", "sum(days)", "sum(change)"):
            found = release.cross("sex*age", what, where)
            assert found.table.attributes == ("sex", "age")
            np.testing.assert_allclose(found.row_totals.values, found.table.values.sum(axis=1))
            np.testing.assert_allclose(found.column_totals.values, found.table.values.sum(axis=0))
            assert float(found.total.values) == pytest.approx(found.table.values.sum())
            expected = release.estimate("sex*age", where, what)
            assert float(found.total.std_errors) == pytest.approx(expected.std_error)
            for at, sex in enumerate(found.table.labels[0]):
                expected = release.estimate("sex*age", {**where, "sex": sex}, what)
                assert found.row_totals.std_errors[at] == pytest.approx(expected.std_error)


def test_cross_tables_are_shown_with_margins_flags_and_totals(release):
    shown = str(release.cross("sex*age", columns="sex"))
    assert "age*sex, count" in shown and "sex F" in shown and "±" in shown and "total" in shown
    averages = release.cross("sex*age", "avg(days)")
    assert averages.total.values == pytest.approx(release.estimate("sex*age", None, "avg(days)").value)
    assert release.cross("sex*age").to_dict()["total"]["quality"] == "reliable"
    assert release.table("total").columns()["quality"].tolist() == ["reliable"]
    document = release.cross("sex*age", share="column").to_dict()
    assert document.keys() == {"rows", "columns", "cells", "column_totals"}
    assert document["cells"][0].keys() == {"sex", "age", "value", "low_95", "high_95", "quality"}


def test_what_has_one_attribute_has_one_row(release):
    found = release.cross("sex")
    assert found.column_totals is None and float(found.row_totals.values) == pytest.approx(found.table.values.sum())
    assert len(found.page().parts[0].rows) == 1
    assert release.cross("total").row_totals is None and "total" in str(release.cross("total"))


def test_many_rows_and_columns_are_cut(release):
    parts = release.cross("sex*age").page(rows=1, columns=2).parts
    assert len(parts[0].rows) == 2 and len(parts[0].columns) == 4
    assert max(map(len, str(released("age", WIDE, None).cross("age")).splitlines())) <= 120
    remarks = [str(part) for part in parts[1:]]
    assert any("1 more rows" in told for told in remarks) and any("2 more columns" in told for told in remarks)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda r: r.shares("sex*age", "diagonal"), "of: 'diagonal' is unknown"),
        (lambda r: r.shares("sex*age", "row", "avg(days)"), "avg.days. has no shares"),
        (lambda r: r.shares("sex*age", "row", "sum(change)"), "sum.change. has no shares"),
        (lambda r: r.shares("sex*age", columns="region"), "'region' is not an attribute of this table"),
        (lambda r: r.covariance("sex*age", {}, {}, "avg(days)"), "averages have intervals"),
        (lambda r: r.compare("sex*age", {"sex": "F"}, {}), "versus: names nothing"),
        (lambda r: r.compare("sex*age", {}, {"sex": "X"}), "'X' is not one of its labels"),
        (lambda r: r.cross("sex*age*region"), "is not published"),
    ],
    ids=range(8),
)
def test_what_has_no_answer_says_so(release, ask, told):
    with pytest.raises((QueryError, BadInput), match=told):
        ask(release)
