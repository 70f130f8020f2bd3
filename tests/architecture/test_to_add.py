"""ARCHITECTURE.md says what to touch to add something. Here it is done: toys are registered, and go all the way."""

import math
from pathlib import Path

import numpy as np
import pyarrow as pa

from hushcube import Attribute, Schema, strategies
from hushcube.api import compare, plan, release
from hushcube.bundle.verify import verify
from hushcube.lattice.basis import MARGINAL
from hushcube.lattice.family import Family
from hushcube.private import engines
from hushcube.private.engines.contract import ExactCounts
from hushcube.strategies.strategy import Strategy, decide

SCHEMA = Schema((Attribute(name="sex", values=("F", "M")), Attribute(name="age", codes=3)))
ROWS = [{"sex": "F", "age": 0}, {"sex": "M", "age": 2}, {"sex": "M", "age": 2}]
PEOPLE = pa.table({"sex": ["F", "M", "M"] * 50, "age": [0, 2, 2] * 50})


# -------------------------------------------------------------------------------------------------- a toy strategy


class Doubled(Strategy):
    """The tables asked for, and the full table; a toy, and rarely wise."""

    name = "doubled"
    measures = "each of the tables asked for, and the full table"

    def accepts(self, request):
        return "the domain is large" if math.prod(request.schema.sizes) > 1000 else None

    def plan(self, request, budgets, recovery):
        full = tuple(range(len(request.schema)))
        tables = Family.of((*(m for m in request.marginals if m != full), full), request.schema.sizes)
        return decide(
            request, strategy=self.name, basis=MARGINAL, measured=tables, s=tables.cells, budgets=budgets,
            recovery=recovery,
        )  # fmt: skip


def test_a_strategy(monkeypatch, tmp_path):
    """A class that decides, and one line in the registry: it is compared, planned, released and verified."""
    for registry in (strategies.REGISTRY, strategies.ALL):
        monkeypatch.setitem(registry, Doubled.name, Doubled())
    monkeypatch.chdir(tmp_path)
    asked = {"epsilon": 5, "neighbours": "add-remove"}
    compared = compare(SCHEMA, "1-way", strategy="all", **asked)
    assert Doubled.name in {candidate.plan.strategy for candidate in compared.candidates}
    release(plan(SCHEMA, "1-way", strategy="doubled", **asked), PEOPLE, out="published")
    assert verify(Path("published")).holds


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
