"""What every engine must do with people who have many rows, and with measures; DuckDB and plain Python are the judges.

A test module of an engine imports these tests and has a fixture `make`: a function from an Arrow table to the engine
that counts it. Those named `test_remote_...` are for engines that group where the data lives.
"""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from datasets import shared
from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema
from hushcube.model.workload import Workload
from hushcube.private.bounds import Bound, count_bounds
from hushcube.private.engines import grouped, open_source
from hushcube.private.engines.grouped.warehouse import Column

CELLS = 5
KEY = bytes(range(16))


def marginals(d, orders):
    return [np.array(list(itertools.combinations(range(d), k)), np.int32).reshape(-1 if k else 1, k) for k in orders]


def tables_of(counts, wanted):
    """All that was wanted, by marginal."""
    return {tuple(m.tolist()): counts.tables(m[None])[0] for group in wanted for m in group}


def same_as(expected, engine, schema, orders=(0, 1, 2), measures=()):
    """Two engines give the same tables and sums, or refuse with the same words; what one of them gives."""
    wanted = marginals(len(schema), orders)
    results = []
    for each in (engine, expected):
        try:
            counts = each.count(schema, wanted, measures=measures)
        except DataError as error:
            results.append(str(error))
            continue
        kinds = {"": counts, **counts.sums}
        assert list(counts.sums) == [measure.name for measure in measures]
        results.append(
            (
                counts.rows,
                counts.dropped,
                {kind: {m: t.tolist() for m, t in tables_of(own, wanted).items()} for kind, own in kinds.items()},
            )
        )
    assert results[0] == results[1]
    return results[0]


# --------------------------------------------------------------------------------------------------------- measures

TEXT_NUMBERS = [
    *(
        "1",
        "1.5",
        " 2 ",
        "x",
        "",
        None,
        "1e1",
        "NaN",
        "nan",
        "inf",
        "-Infinity",
        "0x1",
        "-0",
        "+3",
        "1_000",
        "_1",
        "1_",
    ),
    *(
        "1e400",
        "-1e400",
        "1e-400",
        ".5",
        "5.",
        ".",
        "-",
        "1,5",
        "12.",
        "\uff11",
        "1\n",
        "\t1",
        "1e",
        "1e5",
        "true",
        "--1",
    ),
    *(
        "9" * 40,
        "0." + "1" * 40,
        "1'; DROP TABLE t; --",
        "1\u00a0",
        "00012",
        "0.30000000000000004",
        "2.675",
        "1d",
        "1f",
    ),
    *("1e+2", "1E2", "- 1", "0b1", "1__0", "1_0.5", "e5", "1.5.5", "infinity", "+inf", "iNf", "\u0661", "1e1_0"),
]
DOUBLES = [
    *(0.0, -0.0, 0.5, 1.5, 2.5, -0.5, -1.5, 0.1, 0.7, 1e-310, 5e-324, -5e-324, 1e300, -1e300, 1.7e308, math.inf),
    *(-math.inf, math.nan, None, 99.995, 100.0, 100.1, -7.25, 3.0000000000000004, 0.15, 0.25, 0.35, 0.45, 2.0**53),
]
LONGS = [0, 1, -1, 7, None, 2**63 - 1, -(2**63), 2**53 + 1, 14, 15, -3, 100]
MEASURES = (
    Measure(name="text", bounds=(-10, 2_000), resolution="0.5", missing=3),
    Measure(name="fine", column="text", bounds=(0, "0.5"), resolution="1e-9", center="middle", missing="0.1"),
    Measure(name="double", bounds=(-10, 100), resolution="0.01", center="0.005", missing=-3),
    Measure(name="coarse", column="double", bounds=(0, "1e20"), resolution="1e19", missing=0),
    Measure(name="halves", column="double", bounds=(-2, 2), missing=1),
    Measure(name="long", bounds=("-2147483648", "2147483648"), center=0, missing=-1),
    Measure(name="single", bounds=(-1, 1), resolution="0.001", missing="0.5"),
    Measure(name="flag", bounds=(0, 1), missing=1),
)
MEASURED = Schema((Attribute(name="a", codes=CELLS), Attribute(name="b", values=("x", "y'; --"), missing="none")))


def measured_table(seed=0):
    """All of the hostile values, each in some cells."""
    rng = np.random.default_rng(seed)
    rows = 3 * max(len(TEXT_NUMBERS), len(DOUBLES), len(LONGS))

    def cycled(values, kind):
        return pa.array([values[i % len(values)] for i in range(rows)], kind)

    return pa.table(
        {
            "a": rng.integers(0, CELLS, rows),
            "b": pa.array([("x", "y'; --", None)[i] for i in rng.integers(0, 3, rows)]),
            "text": cycled(TEXT_NUMBERS, pa.string()),
            "double": cycled(DOUBLES, pa.float64()),
            "long": cycled(LONGS, pa.int64()),
            "single": cycled(
                [None if x is None else np.float32(np.clip(x, -3e38, 3e38)) for x in DOUBLES], pa.float32()
            ),
            "flag": cycled([True, False, None], pa.bool_()),
        }
    )


@pytest.mark.slow
def test_sums_of_hostile_values_are_duckdbs_bit_for_bit(make):
    table = measured_table()
    found = same_as(open_source(table), make(table), MEASURED, (0, 1, 2), MEASURES)
    assert found[0] == table.num_rows
    assert all(np.any(found[2][measure.name][0,]) for measure in MEASURES if measure.name != "coarse")


def test_sums_over_no_rows_and_over_the_total_alone(make):
    empty = measured_table().slice(0, 0)
    same_as(open_source(empty), make(empty), MEASURED, (0, 1), MEASURES[:2])
    table = measured_table(1)
    same_as(open_source(table), make(table), MEASURED, (0,), MEASURES[2:4])


def test_missing_measures_are_refused_after_attributes_and_by_name(make):
    table = pa.table({"a": [0, 1], "b": ["x", "?"], "m": ["1", "secret"], "w": pa.array([1.0, None])})
    strict = [Measure(name="w", bounds=(0, 1)), Measure(name="money", column="m", bounds=(0, 9))]
    engine, judge = make(table), open_source(table)
    fits = Schema((Attribute(name="a", codes=2), Attribute(name="b", values=("x",), other="rest")))
    assert "measure 'w', column 'w'" in same_as(judge, engine, fits, (1,), strict)
    told = same_as(judge, engine, fits, (1,), strict[1:])
    assert "measure 'money', column 'm'" in told and "secret" not in told
    narrow = Schema((Attribute(name="a", codes=2), Attribute(name="b", values=("x",))))
    assert "attribute 'b'" in same_as(judge, engine, narrow, (1,), strict)


def test_a_missing_column_of_a_measure_or_unit_is_named(make):
    table = pa.table({"a": [0, 1]})
    schema = Schema((Attribute(name="a", codes=2),))
    same_as(open_source(table), make(table), schema, (1,), [Measure(name="m", bounds=(0, 1))])
    told = same_as(open_source(table), make(table), Schema(schema.attributes, unit=Unit("A", 1)), (1,))
    assert "unit 'A'" in told


def test_sums_that_might_overflow_are_refused(make, monkeypatch):
    from hushcube.private.engines import coding

    monkeypatch.setattr(coding, "MOST", 20)
    table = pa.table({"a": [0, 1, 1]})
    schema = Schema((Attribute(name="a", codes=2),))
    told = same_as(open_source(table), make(table), schema, (1,), [Measure(name="a", bounds=(0, 7))])
    assert "64-bit" in told
    assert same_as(open_source(table), make(table), schema, (1,), [Measure(name="a", bounds=(0, 6))])[0] == 3


# ----------------------------------------------------------------------------------------- people with many rows

PEOPLE_ATTRIBUTES = (Attribute(name="a", codes=CELLS), Attribute(name="b", codes=2, missing="none"))


def people(most, missing="error"):
    return Schema(PEOPLE_ATTRIBUTES, "visits", Unit("id; --", most, missing))


def visits(ids, seed=0):
    rng = np.random.default_rng(seed)
    n = len(ids)
    return pa.table(
        {
            "a": rng.integers(0, CELLS, n),
            "id; --": pa.array(ids),
            "b": pa.array([(0, 1, None)[i] for i in rng.integers(0, 3, n)], pa.int64()),
            "m": rng.integers(0, 100, n) / 7,
        }
    )


def test_a_person_of_a_thousand_rows_moves_every_table_by_the_bound(make):
    """Everybody else has one row, which always counts; the measure is 1 for everybody, so that sums are counts."""
    small = visits([f"p{i}" for i in range(60)])
    both = pa.concat_tables([small, visits(["x'; DROP TABLE t; --"] * 1_000, seed=2)])
    one = Measure(name="m", bounds=(-1, 1), missing=1, column="a1")
    small, both = (table.append_column("a1", pa.array([1] * table.num_rows)) for table in (small, both))
    wanted = marginals(2, (0, 1, 2))
    engine = make(both)
    before = tables_of(open_source(small).count(people(1), wanted), wanted)
    for most in (1, 4, 30, 1_000):
        counts = engine.count(people(most), wanted, measures=[one])
        assert (counts.rows, counts.dropped) == (60 + most, 1_000 - most)
        after = tables_of(counts, wanted)
        assert all((after[m] >= before[m]).all() and (after[m] - before[m]).sum() == most for m in after)
        assert (after[0, 1].sum(axis=1) == after[0,]).all() and (after[0, 1].sum(axis=0) == after[1,]).all()
        summed = tables_of(counts.sums["m"], wanted)
        assert all((summed[m] == after[m]).all() for m in after)


def test_rows_of_nobody_are_refused_or_count_as_their_own(make):
    data = visits(["p", None, "p", None, None])
    engine = make(data)
    for most, missing in ((1, "error"), (1, "own"), (2, "own")):
        try:
            counts = engine.count(people(most, missing), marginals(2, (2,)))
        except DataError as error:
            assert missing == "error"
            with pytest.raises(DataError) as caught:
                open_source(data).count(people(most, missing), marginals(2, (2,)))
            assert str(error) == str(caught.value)
        else:
            assert (missing, counts.rows, counts.dropped) == ("own", *{1: (4, 1), 2: (5, 0)}[most])
    nobody = visits([None, None, None, "p"])
    assert make(nobody).count(people(1, "own"), marginals(2, (1,))).rows == 4


def test_what_bounds_leave_out_is_counted(make):
    """Two people of 1 and 5 rows, and two rows of nobody, each a person of its own."""
    data = visits(["p", *["q"] * 5, None, None])
    found = count_bounds(people(1, "own"), make(data), [2], lambda _: None)
    assert found == [Bound(2, 5, 3, 1)]


IDS = {
    "integers": [1, 1, 2**62, 2**62, 2**62 + 1],
    "doubles": [1.5, 1.5, 2.0, 2.0, 1e300],
    "truth": [True, True, False, False, None],
    "case": ["a", "a", "A", "A", "a "],
    "unicode twins": ["\u00e9", "\u00e9", "e\u0301", "e\u0301", "e"],
    "hostile": ["'; DROP TABLE t; --", "'; DROP TABLE t; --", '(",\\', '(",\\', ""],
    "long": ["l" * 5_000, "l" * 5_000, "l" * 4_999 + "m", "l" * 4_999 + "m", "l"],
}


@pytest.mark.parametrize("kind", IDS)
def test_ids_of_any_kind(make, kind):
    """Two people of two rows each, and one of one row; a person's rows are alike, so that the choice is the judge's."""
    ids = IDS[kind]
    data = pa.table({"a": [0, 0, 1, 1, 2], "id; --": pa.array(ids), "b": pa.array([1, 1, 0, 0, None], pa.int64())})
    found = same_as(open_source(data), make(data), people(1, "own"))
    assert found[:2] == (3, 2)


def one_person_of(engine, column, most=3):
    """An engine over rows of which all have equal ids, as their column sees it, counts those of one person."""
    schema = Schema((Attribute(name="a", codes=CELLS),), unit=Unit(column, most))
    counts = engine.count(schema, marginals(1, (0, 1)))
    assert counts.rows == most
    assert counts.tables(np.array([[0]], np.int32)).sum() == most


@pytest.mark.parametrize("ids", [(0.0, -0.0), (math.nan, -math.nan)], ids=["zeros", "no numbers"])
def test_ids_that_their_column_calls_equal_are_one_person(make, ids):
    numbers = np.array(ids * 20)
    one_person_of(make(pa.table({"a": np.arange(40) % CELLS, "id": numbers})), "id")


def test_nobody_at_all(make):
    empty = visits(["p"]).slice(0, 0)
    assert same_as(open_source(empty), make(empty), people(2))[:2] == (0, 0)


def test_the_choice_is_uniform_and_new_each_time(make):
    """2,000 people of 5 rows, of which 2 count: each row is kept 800 times, standard deviation 22."""
    count = 2_000
    data = pa.table(
        {"a": list(range(CELLS)) * count, "b": [0] * CELLS * count, "id; --": np.arange(count).repeat(CELLS)}
    )
    engine, both = make(data), []
    for _ in range(2):
        kept = engine.count(people(2), marginals(2, (1,))).tables(np.array([[0]], np.int32))[0]
        assert kept.sum() == 2 * count
        assert np.abs(kept - 800).max() < 6 * np.sqrt(count * 0.4 * 0.6)  # false alarm: 1e-8
        both.append(kept.tolist())
    assert both[0] != both[1]  # all alike with a chance below 1e-6


def kept_rows(engine, unit, key, names=("id; --", "a", "b", "m")):
    """The rows that a key chooses, each as often as it is kept."""
    with engine.warehouse.open() as data:
        found = data.bounded(unit, names, key).grouped([Column(name) for name in names]).to_pydict()
    kept = Counter()
    for *row, n in zip(*found.values(), strict=True):
        kept[tuple(row)] += n
    return kept


def test_remote_choices_are_a_persons_own(make):
    """Under one key the same rows stay whoever else comes or goes, and in whatever order rows lie."""
    unit = people(3).unit
    ids = [f"p{i}" for i in np.random.default_rng(4).integers(0, 9, 200)] + [None, None]
    table = visits(ids, seed=5)
    table = pa.concat_tables([table, table.slice(0, 40)])  # some rows come twice
    all_kept = kept_rows(make(table), unit, KEY)
    assert Counter(row[0] for row in all_kept.elements()) == {**{f"p{i}": 3 for i in range(9)}, None: 2}
    available = Counter(zip(*(table.column(name).to_pylist() for name in ("id; --", "a", "b", "m")), strict=True))
    assert not all_kept - available
    shuffled = table.take(np.random.default_rng(6).permutation(table.num_rows))
    fewer = shuffled.filter(pa.array([row not in ("p3", None) for row in shuffled.column("id; --").to_pylist()]))
    expected = Counter({row: n for row, n in all_kept.items() if row[0] not in ("p3", None)})
    assert kept_rows(make(fewer), unit, KEY) == expected
    assert kept_rows(make(shuffled), unit, bytes(16)) != all_kept  # equal with a chance far below 1e-9


def test_remote_choices_are_uniform_over_sets(make):
    """400 people with the rows 0, 0, 1, 2, of which 2 count: six sets alike, chi-square of their kinds below 30.

    {0, 0} 1/6, {0, 1} 2/6, {0, 2} 2/6, {1, 2} 1/6: three degrees of freedom; false alarm 1e-6, but the key is fixed.
    """
    count = 400
    data = pa.table(
        {
            "a": [0, 0, 1, 2] * count,
            "b": [1] * (4 * count),
            "id; --": pa.array([f"{i}" for i in np.arange(count).repeat(4)]),
            "m": [None, None, math.nan, 1.0] * count,
        }
    )
    chosen = {}
    for (who, a, *_), n in kept_rows(make(data), people(2).unit, KEY).items():
        chosen.setdefault(who, []).extend([a] * n)
    kinds = Counter(tuple(sorted(own)) for own in chosen.values())
    expected = {(0, 0): count / 6, (0, 1): count / 3, (0, 2): count / 3, (1, 2): count / 6}
    assert kinds.keys() == expected.keys()
    assert sum((kinds[kind] - mean) ** 2 / mean for kind, mean in expected.items()) < 30


def test_remote_choices_do_not_mix_up_columns(make):
    """Rows whose columns read alike when they are written one after the other are different rows.

    With one hash for two of them it would be the order of the rows that decides; 60 people would show it.
    """
    pairs = [("1", "2,3"), ("1,2", "3"), ("", None), (None, ""), ("(1", "2)"), ("1)", "(2"), ("a\\", "b"), ("a", "\\b")]
    rows = [(f"p{i}", *pair) for i in range(60) for pair in pairs]
    names = ("id; --", "s", "t")
    kept = []
    for order in (rows, rows[::-1]):
        table = pa.table([pa.array(column) for column in zip(*order, strict=True)], names)
        kept.append(kept_rows(make(table), people(1).unit, KEY, names))
    assert kept[0] == kept[1]
    assert sum(kept[0].values()) == 60
    assert {row[1:] for row in kept[0]} == set(pairs)  # one is never chosen with a chance of 1e-3; the key is fixed


def test_remote_group_bys_of_one_count_are_of_the_same_rows(make, monkeypatch):
    monkeypatch.setattr(grouped, "GROUPS", 6)
    schema = Schema((*PEOPLE_ATTRIBUTES, Attribute(name="c", column="a", codes=CELLS)), unit=people(3).unit)
    wanted = marginals(3, (1, 2))
    counts = make(visits(["one"] * 500 + ["two"] * 500)).count(schema, wanted)
    assert counts.rows == 6
    found = tables_of(counts, wanted)
    assert (found[0, 2].sum(axis=0) == found[2,]).all() and (np.diag(found[0, 2]) == found[0,]).all()
    assert (found[0, 1] == found[1, 2].T).all()


def test_remote_sums_by_hand(make):
    """What an adapter answers, against plain Python."""
    numbers = [0.25, 0.5, 1.5, 99.0, -4.0, None, math.nan, math.inf]
    table = pa.table({"k": pa.array([0, 0, 0, 1, 1, 1, 1, 2], pa.int64()), "x": pa.array(numbers, pa.float64())})
    strict, kind = Measure(name="x", bounds=(0, 10)), Measure(name="y", column="x", bounds=(0, 10), missing=4)
    with make(table).warehouse.open() as data:
        found = data.grouped([Column("k")], [strict, kind])
        total = data.grouped([], [strict])
    assert found.column_names == ["k0", "n", "s0", "m0", "s1", "m1"]
    assert all(each == pa.int64() for each in found.schema.types[1:])
    summed = Counter()
    for key, *values in zip(*found.to_pydict().values(), strict=True):
        summed.update({(key, name): value for name, value in zip(found.column_names[1:], values, strict=True)})
    expected = {0: (3, 2, 0, 2, 0), 1: (4, 10, 2, 18, 2), 2: (1, 10, 0, 10, 0)}
    assert {k: tuple(summed[k, name] for name in found.column_names[1:]) for k in range(3)} == expected
    parts = total.to_pydict()
    assert [sum(parts[name]) for name in ("n", "s0", "m0")] == [8, 22, 2]


# -------------------------------------------------------------------------------------------------------- real data

ACS = ("AGEP", "SEX", "MAR", "STATE", "COW", "HH", "PINCP", "WKHP")
ACS_SCHEMA = Schema(
    (
        Attribute(name="age", column="AGEP", bins=(0, 18, 30, 45, 65, 99)),
        Attribute(name="sex", column="SEX", values=("1", "2")),
        Attribute(name="marital", column="MAR", range=(1, 5)),
        Attribute(name="state", column="STATE", range=(1, 56)),
        Attribute(name="worker", column="COW", range=(1, 9), missing="none"),
        Attribute(name="week", column="WKHP", bins=(0, 20, 35, 41), missing="none", other="long"),
    ),
    "acs",
    Unit("HH", 20),
)
ACS_MEASURES = (
    Measure(name="income", column="PINCP", bounds=(-10_000, 200_000), resolution=100, center="middle", missing=0),
    Measure(name="hours", column="WKHP", bounds=(0, 60), missing=0),
)
HOSPITAL = ("patient_nbr", "race", "age", "diag_1", "readmitted", "time_in_hospital", "num_medications")
HOSPITAL_MEASURES = (
    Measure(name="days", column="time_in_hospital", bounds=(1, 14)),
    Measure(name="drugs", column="num_medications", bounds=(0, 40)),
    Measure(name="diagnosis", column="diag_1", bounds=(1, 1000), resolution="0.01", missing=500),
)


def acs_table(rows):
    return pq.read_table(shared("acs2024_persons49.parquet"), columns=list(ACS)).slice(0, rows)


def hospital_table():
    return pq.read_table(shared("diabetes130_encounters.parquet"), columns=list(HOSPITAL))


def hospital_schema(table, unit=None):
    ages, outcomes = (tuple(sorted(table.column(name).unique().to_pylist())) for name in ("age", "readmitted"))
    return Schema(
        (
            Attribute(name="race", values=("Caucasian", "AfricanAmerican"), other="other"),
            Attribute(name="age", values=ages),
            Attribute(name="readmitted", values=outcomes),
            Attribute(name="diagnosis", column="diag_1", values=("250.83", "276", "428", "414"), other="other"),
            Attribute(name="chapter", column="diag_1", bins=(1, 140, 240, 280, 1000), other="other"),
            Attribute(name="days", column="time_in_hospital", range=(1, 14)),
        ),
        "hospital",
        unit,
    )


@pytest.mark.slow
def test_acs_counts_and_sums_as_in_duckdb(make):
    """No household has more than 20 people, so that the bound leaves all of them; a bound of 1 leaves one of each."""
    rows = 300_000
    table = acs_table(rows)
    engine = make(table)
    assert same_as(open_source(table), engine, ACS_SCHEMA, (0, 1, 2), ACS_MEASURES)[:2] == (rows, 0)
    households = len(table.column("HH").unique())
    counts = engine.count(Schema(ACS_SCHEMA.attributes, unit=Unit("HH", 1)), marginals(6, (1,)), measures=ACS_MEASURES)
    assert (counts.rows, counts.dropped) == (households, rows - households)


@pytest.mark.slow
def test_hospital_counts_and_sums_as_in_duckdb(make):
    table = hospital_table()
    engine, judge = make(table), open_source(table)
    assert same_as(judge, engine, hospital_schema(table), (0, 1, 2), HOSPITAL_MEASURES)[0] == 101_766
    wanted = marginals(6, (1, 2))
    schema = hospital_schema(table, Unit("patient_nbr", 2))
    found, expected = (each.count(schema, wanted, measures=HOSPITAL_MEASURES) for each in (engine, judge))
    assert (found.rows, found.dropped) == (expected.rows, expected.dropped)
    # Which visits count is drawn anew each time: tables differ by chance, by far less than by what is left out.
    for one, other in zip(tables_of(found, wanted[:1]).values(), tables_of(expected, wanted[:1]).values(), strict=True):
        assert np.abs(one - other).sum() < 0.02 * found.rows


# ------------------------------------------------------------------------------------------------- levels and dates

LEVELLED = Schema(
    (
        Attribute(
            name="age", range=(0, 9), missing="none", other="rest", levels=({"name": "band", "starts": [0, 3, 7]},)
        ),
        Attribute(
            name="mixed", codes=6, other="rest", levels=({"name": "odd", "groups": {"o": [1, 3, 5], "e": [0, 2, 4]}},)
        ),
        Attribute(name="edge", range=(0, 5), other="rest", levels=({"name": "last", "starts": [0, 5]},)),
        Attribute(
            name="wage", bins=(0, 1.5, 3, 9), missing="7.5", other="rest", levels=({"name": "two", "starts": [0, 3]},)
        ),
        Attribute(
            name="code", values=("250", "V5'7"), before=".", missing="none", other="rest",
            levels=({"name": "kind", "groups": {"sugar": ["250"], "rest": ["V5'7"]}},),
        ),
        Attribute(name="day", dates=("2023-12-30", "2024-04-02"), missing="none", other="rest"),
    )
)  # fmt: skip


def levelled_table(rows=400):
    rng = np.random.default_rng(4)

    def some(values, kind):
        return pa.array([values[i] for i in rng.integers(0, len(values), rows)], kind)

    days = [datetime.date(2023, 12, 29) + datetime.timedelta(days=i) for i in range(0, 110, 7)]
    return pa.table(
        {
            "age": some([*range(-1, 11), None], pa.int64()),
            "mixed": some([*range(7)], pa.int32()),
            "edge": some([0.0, 0.5, 4.0, 4.5, 5.0, 5.5], pa.float64()),
            "wage": some([0.0, 1.49, 1.5, 3.0, 8.9, 9.0, 9.1, 7.5, None], pa.float64()),
            "code": some(["250.83", "250", "V5'7.1", "x", ".250", None, "none"], pa.string()),
            "day": some([*days, None], pa.date32()),
        }
    )


@pytest.mark.parametrize(
    "words",
    [
        "age@band*mixed@odd,edge@last*wage@two,code@kind*day@quarter,age@band*day@month",
        "code*age@band,day*mixed@odd,wage@two*edge@last",
    ],
)
def test_levels_dates_and_cut_texts_are_counted_as_in_duckdb(make, words):
    table = levelled_table()
    workload = Workload.parse(words, LEVELLED)
    wanted = [np.array(workload.marginals, np.int32)]
    expected = open_source(table).count(workload.schema, wanted)
    found = make(table).count(workload.schema, wanted)
    assert found.rows == expected.rows == len(table)
    for marginal in wanted[0]:
        assert found.tables(marginal[None]).tolist() == expected.tables(marginal[None]).tolist()


def test_refusals_of_levels_name_the_declared_attribute(make):
    strict = Attribute(name="age", range=(0, 9), levels=({"name": "band", "starts": [0, 3]},))
    workload = Workload.parse("age@band", Schema((strict,)))
    for value, what in ((None, "missing values"), (12, "outside the declared domain")):
        engine = make(pa.table({"age": pa.array([1, value], pa.int64())}))
        with pytest.raises(DataError, match=f"attribute 'age', column 'age'.*{what}"):
            engine.count(workload.schema, [np.array([[0]], np.int32)])
