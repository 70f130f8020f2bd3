"""ARCHITECTURE.md says what to touch to add something. Here it is done: toys are registered, and go all the way."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from hushcube import Attribute, Schema, compare, plan, recover, release, strategies
from hushcube.bundle.verify import verify
from hushcube.cli import run
from hushcube.errors import BadInput
from hushcube.faces import maker, value
from hushcube.faces.maker import Face
from hushcube.faces.value import Promise
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.options import option, whole
from hushcube.private import engines
from hushcube.private.engines.contract import ExactCounts
from hushcube.strategies.strategy import Strategy

SCHEMA = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
ROWS = [{"sex": "F", "age": 0}, {"sex": "M", "age": 2}, {"sex": "M", "age": 2}]
PEOPLE = pa.table({"sex": ["F", "M", "M"] * 50, "age": [0, 2, 2] * 50})


# -------------------------------------------------------------------------------------------------- a toy strategy


@dataclass(frozen=True, kw_only=True)
class Doubled(Strategy):
    """The tables asked for, and the full table with some of the budget; a toy, and rarely wise."""

    name = "doubled"
    measures = "each of the tables asked for, and the full table"

    share: int = option(10, "the weight of the full table in percent", takes="PERCENT", read=whole(1))

    def accepts(self, request):
        return "the domain is large" if math.prod(request.schema.sizes) > 1000 else None

    def plan(self, request, budgets, recovery):
        asked = request.marginals
        full = tuple(range(len(request.schema)))
        tables = Family.of((*(m for m in asked if m != full), full), request.schema.sizes)
        s = np.where(tables.cells == tables.cells.max(), self.share / 100, 1.0) * tables.cells
        return self.decide(request, budgets, recovery, MARGINAL, tables, s)


def test_a_strategy(monkeypatch, tmp_path, capfd):
    """A class that decides, and one line in the registry: it is compared, planned, released and verified."""
    for registry in (strategies.REGISTRY, strategies.ALL):
        monkeypatch.setitem(registry, Doubled.name, Doubled())
    monkeypatch.chdir(tmp_path)
    asked = {"epsilon": 5, "neighbours": "add-remove"}
    compared = compare(SCHEMA, "1-way", strategy="all", **asked)
    assert Doubled.name in {each.strategy for each in compared.plans}
    light, heavy = (plan(SCHEMA, "1-way", strategy=f"doubled:share={share}", **asked) for share in (1, 90))
    assert light.count.budgets[-1] < heavy.count.budgets[-1]
    published = release(heavy, PEOPLE, out="published")
    assert verify(Path("published")).holds and published.plan.strategy == Doubled.name
    (tmp_path / "schema.yaml").write_text(SCHEMA.to_yaml())
    words = "plan --schema schema.yaml --workload 1-way --epsilon 1 --neighbours add-remove --strategy doubled:share=20"
    assert not run(words.split())
    assert Doubled.measures in capfd.readouterr().out
    with pytest.raises(BadInput, match="share: "):
        plan(SCHEMA, "1-way", strategy="doubled:share=none", **asked)


# ------------------------------------------------------------------------------------------------------ a toy face


class Even:
    """Tables in which everybody is spread evenly: they add up and have no negative cell, and say little."""

    def __init__(self, people):
        self.people = people

    def tables(self, rows, shape):
        return np.full((len(rows), *shape), self.people / math.prod(shape))


def make_even(maker):
    total = maker.answers.tables(np.zeros((1, 0), np.int32), ()).item()
    return Face(maker.value, Even(max(total, 0.0)), {"found_by": "spreading the total"})


def test_a_face(monkeypatch, tmp_path, capfd):
    """A promise and a maker: it is made, published with its statement, shown, and verified."""
    promise = Promise("even", "everybody spread evenly", "spreads everybody evenly over the cells.", nonnegative=True)
    monkeypatch.setitem(value.PROMISES, "even", promise)
    monkeypatch.setitem(maker.MAKERS, "even", make_even)
    monkeypatch.chdir(tmp_path)
    release(plan(SCHEMA, "<=2-way", epsilon=5, neighbours="add-remove"), PEOPLE, out="published")
    published = recover("published", "even")
    table = published.table("sex*age", face="even")
    assert np.ptp(table.values) == 0 and table.values.sum() > 0
    assert promise.sentence in (tmp_path / "published" / "faces" / "even" / "PRIVACY.md").read_text()
    assert verify(Path("published")).holds
    assert not run(["show", "published", "sex*age", "--face", "even"])
    assert "even" in capfd.readouterr().out
    monkeypatch.setitem(value.PROMISES, "even", replace(promise, whole=True))
    assert not verify(Path("published")).holds  # the promise is checked: these are not whole numbers


# ---------------------------------------------------------------------------------------------------- a toy engine


class ListCounts(ExactCounts):
    """Counts of rows that are coded already."""

    def __init__(self, codes, sizes):
        self.codes, self.sizes = codes, sizes

    @property
    def rows(self):
        return len(self.codes)

    def tables(self, marginals):
        found = []
        for marginal in marginals:
            table = np.zeros([self.sizes[i] for i in marginal] or [1], np.int64)
            np.add.at(table, tuple(self.codes[:, i] for i in marginal) or (np.zeros(self.rows, int),), 1)
            found.append(table)
        return np.stack(found)


class ListEngine:
    """Counts a list of dictionaries, one for each row."""

    def __init__(self, rows):
        self.rows = rows

    def count(self, schema, wanted, *, measures=(), progress=None):
        codes = [[a.labels.index(str(row[a.name])) for a in schema.attributes] for row in self.rows]
        return ListCounts(np.array(codes, dtype=int).reshape(len(codes), len(schema)), schema.sizes)


def recognise_list(source, engine):
    return ListEngine(source) if isinstance(source, list) else None


def test_an_engine(monkeypatch):
    """A class that counts, a function that recognises its sources, and one line in the registry."""
    monkeypatch.setitem(engines.REMOTE, "list", f"{__name__}:recognise_list")
    decided = plan(SCHEMA, "<=2-way", epsilon=50, neighbours="add-remove")
    published = release(decided, ROWS, engine="list", seed=1)
    assert np.allclose(published.table("sex*age").values, [[1, 0, 0], [0, 0, 2]], atol=1)
    assert math.isclose(published.table("total").values.item(), 3, abs_tol=1)
    assert np.array_equal(release(decided, ROWS, seed=1).table("sex*age").values, published.table("sex*age").values)
