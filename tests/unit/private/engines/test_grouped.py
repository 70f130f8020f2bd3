"""Groups count like the rows they stand for: a warehouse written in plain Python serves the engine."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from hushcube.errors import DataError
from hushcube.model.attribute import Attribute
from hushcube.model.measure import Measure
from hushcube.model.privacy import Unit
from hushcube.model.schema import Schema
from hushcube.private.engines import grouped, open_source
from hushcube.private.engines.grouped import GroupedEngine, choose_groups as choose
from hushcube.private.engines.grouped.warehouse import MISSING, OUTSIDE, Binned, Known, Opened, People, Warehouse, Whole


class Rows(Warehouse, Opened):
    """The rules for adapters, value by value."""

    def __init__(self, table):
        self.table, self.names = table, tuple(table.column_names)
        self.column_types = tuple(map(kind, table.schema.types))
        self.asked = []
        self.bounds = []

    @contextmanager
    def open(self):
        yield self

    def grouped(self, columns, sums=()):
        self.asked.append(tuple(columns))
        values = [[key(column, value) for value in self.table.column(column.name).to_pylist()] for column in columns]
        keys = list(zip(*values, strict=True)) if columns else [()] * self.table.num_rows
        groups = Counter(keys) if columns else {(): self.table.num_rows}
        coded = [pa.int64() if isinstance(c, Binned | Whole) else self.table.schema.field(c.name).type for c in columns]
        found = list(zip(*groups, strict=True)) or [()] * len(columns)
        arrays = [pa.array(c, t) for c, t in zip(found, coded, strict=True)]
        totals = {"n": list(groups.values())}
        for i, measure in enumerate(sums):
            for what, part in zip("sm", summed_by(measure, self.table), strict=True):
                own = Counter()
                for group, x in zip(keys, part, strict=True):
                    own[group] += x
                totals[f"{what}{i}"] = [own[group] for group in groups]
        names = [*(f"k{i}" for i in range(len(columns))), *totals]
        return pa.table([*arrays, *(pa.array(total, pa.int64()) for total in totals.values())], names)

    def people(self, unit):
        rows = Counter(self.table.column(unit.column).to_pylist())
        nobody = rows.pop(None, 0)
        return People(self.table.num_rows, nobody, nobody + sum(min(n, unit.max_rows) for n in rows.values()))

    def bounded(self, unit, columns, key):
        """The first rows of each person."""
        self.bounds.append((tuple(columns), key))
        seen, kept = Counter(), []
        for who in self.table.column(unit.column).to_pylist():
            seen[who] += 1
            kept.append(who is None or seen[who] <= unit.max_rows)
        return Rows(self.table.filter(pa.array(kept)).select(list(columns)))


def summed_by(measure, table):
    """The integer of each row by exact fractions, and 1 where it is missing."""
    values = table.column(measure.source_column).to_pylist()
    missing = [int(x is None or x != x) for x in values]
    low, high = measure.bounds
    fills = measure.center if measure.missing is None else measure.missing
    return [
        measure.quantised(fills if gone else min(max(Fraction(x), low), high))
        for x, gone in zip(values, missing, strict=True)
    ], missing


def kind(arrow):
    if pa.types.is_integer(arrow):
        return "integer"
    if pa.types.is_floating(arrow):
        return "number"
    return "text" if pa.types.is_string(arrow) else "other"


def key(column, value):
    if isinstance(column, Known):
        return value if value is None or value in column.labels else column.outside
    if not isinstance(column, Binned | Whole):
        return value
    if value is None or value != value or value == column.missing:
        return MISSING
    if isinstance(column, Whole):
        inside = column.low <= value <= column.high and value == int(value)
        return int(value) - column.low if inside else OUTSIDE
    if value == column.edges[-1]:
        return len(column.edges) - 2
    found = [i for i, (low, high) in enumerate(itertools.pairwise(column.edges)) if low <= value < high]
    return found[0] if found else OUTSIDE


SCHEMA = Schema(
    (
        Attribute(name="t", values=("a", "?", "??"), missing="none", other="rest"),
        Attribute(name="i", range=(-1, 3), missing="7", other="none"),
        Attribute(name="j", column="i", values=("0", "-1.0", "x", "2.5"), missing="none", other="0"),
        Attribute(name="f", bins=(-1, 0, 0.5, 9), missing="0.5", other="rest"),
        Attribute(name="g", column="f", values=("0.5", "-2", "0"), missing="none", other="rest"),
        Attribute(name="h", column="f", values=("0.1", "0.3"), missing="0.1", other="rest"),
        Attribute(name="b", values=("true",), missing="none", other="rest"),
        Attribute(name="c", column="b", codes=2, missing="none", other="rest"),
    )
)


def marginals(d, orders):
    return [np.array(list(itertools.combinations(range(d), k)), np.int32).reshape(-1 if k else 1, k) for k in orders]


rows = st.tuples(
    st.sampled_from(["a", "?", "???", "b", "none", None]),
    st.one_of(st.none(), st.integers(-3, 8)),
    st.one_of(st.none(), st.sampled_from([0.1, 0.3, 0.5, -0.0, math.nan, math.inf, -2.0, 9.0, 9.5]), st.floats()),
    st.sampled_from([True, False, None]),
)


@pytest.mark.slow
@pytest.mark.parametrize("cells", [100, 1 << 20])
@given(data=st.lists(rows, max_size=25))
@settings(max_examples=6, deadline=None)
def test_groups_count_like_rows_however_they_are_asked_for(cells, data):
    columns = list(zip(*data, strict=True)) or [()] * 4
    types = (pa.string(), pa.int32(), pa.float64(), pa.bool_())
    table = pa.table({name: pa.array(c, t) for name, c, t in zip("tifb", columns, types, strict=True)})
    wanted = marginals(len(SCHEMA), (0, 1, 2))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grouped, "GROUPS", cells)
        patch.setattr(grouped, "MOST_SCANS", 100)
        found = GroupedEngine(Rows(table)).count(SCHEMA, wanted)
    expected = open_source(table).count(SCHEMA, wanted)
    assert found.rows == expected.rows == len(data)
    for marginal in itertools.chain(*wanted):
        assert np.array_equal(found.tables(marginal[None]), expected.tables(marginal[None])), SCHEMA.describe(marginal)


def test_tables_of_one_shape_come_together_from_several_groups(monkeypatch):
    monkeypatch.setattr(grouped, "GROUPS", 1)
    codes = {name: np.random.default_rng(3).integers(0, 3, 200) + 0 * i for i, name in enumerate("abcd")}
    table = pa.table(codes)
    schema = Schema(tuple(Attribute(name=name, codes=3) for name in "abcd"))
    (wanted,) = marginals(4, (2,))
    warehouse = Rows(table)
    found = GroupedEngine(warehouse).count(schema, [wanted])
    assert len(warehouse.asked) == 6
    asked = wanted[[3, 0, 5, 3]]
    assert np.array_equal(found.tables(asked), open_source(table).count(schema, [wanted]).tables(asked))
    assert found.tables(np.zeros((0, 2), np.int32)).shape[0] == 0
    assert "200" not in repr(found)
    with pytest.raises(LookupError):
        found.tables(np.array([[0, 1, 2]], np.int32))


def test_refusals_say_what_duckdb_says():
    table = pa.table({"a": pa.array([0, 1, None, 5]), "t": pa.array(["x", "y", "y", "y"])})
    for attributes in (
        (Attribute(name="a", codes=2), Attribute(name="t", values=("x",))),
        (Attribute(name="a", codes=2, missing="none"), Attribute(name="t", values=("x",))),
        (Attribute(name="a", codes=6, missing="none"), Attribute(name="t", values=("x",))),
        (Attribute(name="A", codes=6),),
        (Attribute(name="q", codes=6),),
    ):
        schema, messages = Schema(attributes), []
        for engine in (GroupedEngine(Rows(table)), open_source(table)):
            with pytest.raises(DataError) as caught:
                engine.count(schema, marginals(len(schema), (1,)))
            messages.append(str(caught.value))
        assert messages[0] == messages[1]


def test_what_travels_is_bounded_by_the_domain():
    many = 5_000
    table = pa.table({"t": [str(i) for i in range(many)], "i": range(many), "f": [i / 7 for i in range(many)]})
    asked = (
        Attribute(name="t", values=("1", "2"), other="rest"),
        Attribute(name="i", range=(1, 3), other="rest"),
        Attribute(name="j", column="i", values=("5", "6"), other="rest"),
        Attribute(name="f", bins=(0, 1, 10), other="rest"),
        Attribute(name="g", column="f", values=("1", "2"), other="rest"),
    )
    for attribute in asked:
        warehouse = Rows(table)
        travelled = []
        plain = warehouse.grouped
        warehouse.grouped = lambda columns, sums, plain=plain, into=travelled: into.append(plain(columns)) or into[-1]
        GroupedEngine(warehouse).count(Schema((attribute,)), [np.array([[0]], np.int32)])
        assert sum(found.num_rows for found in travelled) <= 2 * attribute.size + 2


def test_sizes_alone_decide_between_one_group_by_and_several():
    pairs, triples = (marginals(12, (k,)) for k in (2, 3))
    assert choose(pairs, (3,) * 12) == [tuple(range(12))]
    several = choose(pairs, (20,) * 12)
    assert 1 < len(several) <= grouped.MOST_SCANS
    for table in several:
        assert 20 ** len(table) <= grouped.GROUPS
    assert all(any(set(m) <= set(table) for table in several) for m in pairs[0].tolist())
    assert choose(triples, (90,) * 12) == [tuple(range(12))]  # 220 scans would be too many
    assert choose([], ()) == [()]


def test_data_that_changes_between_group_bys_is_refused(monkeypatch):
    monkeypatch.setattr(grouped, "GROUPS", 1)

    class Changing(Rows):
        def grouped(self, columns, sums=()):
            self.table = self.table.slice(1)
            return super().grouped(columns, sums)

    schema = Schema((Attribute(name="a", codes=9), Attribute(name="b", codes=9)))
    with pytest.raises(DataError, match="changed while"):
        GroupedEngine(Changing(pa.table({"a": [1, 2, 3], "b": [1, 2, 3]}))).count(schema, marginals(2, (1,)))


def test_an_adapter_that_returns_no_bin_is_caught():
    class Wrong(Rows):
        def grouped(self, columns, sums=()):
            return pa.table({"k0": pa.array([9]), "n": pa.array([1])})

    with pytest.raises(DataError, match=r"ValueError at private/engines/grouped/asking\.py"):
        GroupedEngine(Wrong(pa.table({"a": [1]}))).count(Schema((Attribute(name="a", codes=2),)), marginals(1, (1,)))


def test_progress_ends_at_one(monkeypatch):
    monkeypatch.setattr(grouped, "GROUPS", 1)
    seen = []
    schema = Schema((Attribute(name="a", codes=9), Attribute(name="b", codes=9)))
    engine = GroupedEngine(Rows(pa.table({"a": [1, 2, 3], "b": [1, 2, 3]})))
    engine.count(schema, marginals(2, (1,)), progress=seen.append)
    assert seen == [0.5, 1.0]


def test_people_keep_so_many_rows_and_measures_are_summed_over_those():
    table = pa.table({"a": [1, 1, 1, 2, 0], "p": ["x", "x", "x", "y", None], "m": [3.0, None, 9.0, 1.0, 2.0]})
    rows = Rows(table)
    measure = Measure(name="w", column="m", bounds=(0, 5), missing=4)
    schema = Schema((Attribute(name="a", codes=3),), unit=Unit("p", 2, "own"))
    counts = GroupedEngine(rows).count(schema, marginals(1, (0, 1)), measures=[measure])
    assert (counts.rows, counts.dropped) == (4, 1)
    assert counts.tables(np.array([[0]], np.int32)).tolist() == [[1, 2, 1]]
    assert counts.sums["w"].tables(np.array([[0]], np.int32)).tolist() == [[2, 7, 1]]
    assert counts.sums["w"].rows == 10
    (columns, key), *_ = rows.bounds
    assert columns == ("a", "m") and len(key) == 16
    GroupedEngine(rows).count(schema, marginals(1, (1,)))
    assert rows.bounds[1] == (("a",), rows.bounds[1][1]) and rows.bounds[1][1] != key


def test_nobody_is_trusted_to_have_few_rows_next_time_unless_the_source_is_steady():
    rows = Rows(pa.table({"a": [1, 2], "p": ["x", "y"]}))
    schema = Schema((Attribute(name="a", codes=3),), unit=Unit("p", 1))
    GroupedEngine(rows).count(schema, marginals(1, (1,)))
    assert len(rows.bounds) == 1
    rows.steady = True
    assert GroupedEngine(rows).count(schema, marginals(1, (1,))).dropped == 0
    assert len(rows.bounds) == 1


def test_people_who_come_between_the_two_readings_are_noticed():
    class Growing(Rows):
        def bounded(self, unit, columns, key):
            return Rows(pa.concat_tables([self.table, self.table]).select(list(columns)))

    schema = Schema((Attribute(name="a", codes=3),), unit=Unit("p", 1))
    with pytest.raises(DataError, match="changed while"):
        GroupedEngine(Growing(pa.table({"a": [1, 2], "p": ["x", "y"]}))).count(schema, marginals(1, (1,)))


def test_groups_in_many_parts_are_counted_as_they_arrive(monkeypatch):
    """Beyond what is kept, groups go into covering tables: nothing else changes."""
    from hushcube.private.engines import counting

    class Parts(Rows):
        def several(self, groups, sums=()):
            for place, table in super().several(groups, sums):
                yield from ((place, table.slice(start, 100)) for start in range(0, max(1, table.num_rows), 100))

    rng = np.random.default_rng(3)
    table = pa.table({**{name: rng.integers(0, 9, 2_000) for name in "abcd"}, "m": rng.integers(-5, 6, 2_000)})
    schema = Schema(tuple(Attribute(name=name, codes=9) for name in "abcd"))
    measure = Measure(name="m", bounds=(-5, 5))
    wanted = marginals(4, (0, 1, 2))
    expected = open_source(table).count(schema, wanted, measures=[measure])
    for kept in (1 << 25, 1_000):
        monkeypatch.setattr(counting, "KEPT_BYTES", kept)
        found = GroupedEngine(Parts(table)).count(schema, wanted, measures=[measure])
        assert found.rows == expected.rows
        for group in wanted:
            assert np.array_equal(found.tables(group), expected.tables(group))
            assert np.array_equal(found.sums["m"].tables(group), expected.sums["m"].tables(group))
