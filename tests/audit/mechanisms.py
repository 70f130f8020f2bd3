"""Every mechanism on a tiny domain: a plan, what a person may be, and a run on the rows of some people.

A person is a tuple of rows; a database is a tuple of people. All answers are sums over rows, but where a person's rows
are bounded: there an engine chooses among them, with its keys held fixed.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations_with_replacement, product
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from audit.tags import Tags
from helpers import NEIGHBOURS, MemoryEngine, make_schema
from hushcube import Attribute, Schema, plan
from hushcube.designs import StackedDesign
from hushcube.designs.design import BUDGETS
from hushcube.designs.request import Request
from hushcube.errors import BadInput
from hushcube.model.measure import Measure
from hushcube.model.privacy import Privacy, Unit
from hushcube.model.queries import query_table
from hushcube.model.workload import Workload
from hushcube.planning.plan import Plan
from hushcube.private.blocks import Noise
from hushcube.private.engines import bounding, open_source
from hushcube.private.measure import carry_out
from hushcube.strategies import ALL, Hierarchy, Matrix, Sketch
from nested import attribute, flat
from ranged import ordered_schema

GUARANTEES = ({"epsilon": 1}, {"rho": "1/2"}, {"epsilon": 1, "delta": "1e-6"})
NOT_HERE = ("twophase", "iresamp", "ireduct", "selective")
"""They decide while answers come in: their runs are replayed.     [tape.py, unit/private/adaptive/test_selecting.py]"""


@dataclass(frozen=True, eq=False)
class Mechanism:
    """What is attacked: a plan, all people there may be, and how a database of them is counted."""

    family: str
    name: str
    plan: Plan
    people: tuple
    data: Callable[[tuple], object]
    """A database as rows: an engine that counts them in memory, or an Arrow table that DuckDB reads."""
    spoil: Callable[[Noise], Noise] = lambda noise: noise
    """What becomes of the noise: nothing, unless it is to be seen that this would be found."""

    @property
    def privacy(self):
        """The guarantee."""
        return self.plan.privacy

    def engine(self, people):
        """What counts a database."""
        data = self.data(people)
        return open_source(data) if isinstance(data, pa.Table) else data

    def seen(self, people):
        """What a run publishes, taken apart."""
        tags = Tags()
        noise = self.spoil(tags.noise)
        with fixed_keys():
            _, parts = carry_out(self.plan, self.engine(people), noise=noise)
            return tags.read([values for measured in parts.values() for values in measured.values])


def fixed_keys():
    """Of a person with too many rows the same ones are chosen again."""
    return patch.object(bounding, "os", SimpleNamespace(urandom=bytes))


def mechanisms(scale, families=None):
    """All mechanisms, or those of some families; the short form has one of each kind under each guarantee."""
    for guarantee, neighbours in product(GUARANTEES, NEIGHBOURS):
        for family in families or FAMILIES:
            if scale == "long" or "delta" not in guarantee or family not in READ:
                yield from FAMILIES[family]({**guarantee, "neighbours": neighbours}, scale)


# --------------------------------------------------------------------------------------------------- counts in memory


def _tables(privacy, scale):
    """Every strategy for tables, which together use the four bases; uniform noise (dwork)."""
    domains = (
        [((2, 3), "cube")] if scale == "short" else [((2, 3), "cube"), ((2, 2, 2), "<=2-way"), ((4, 1, 2), "1-way")]
    )
    for sizes, words in domains:
        yield from _planned("tables", make_schema(sizes), words, privacy, scale)


def _sketches(privacy, scale):
    for sizes in [(2, 3)] if scale == "short" else [(2, 3), (2, 2, 2)]:
        yield from _planned("sketches", make_schema(sizes), "cube", privacy, scale, [Sketch(buckets=3, repetitions=3)])


def _ranges(privacy, scale):
    yield from _planned(
        "trees", ordered_schema((5, 2)), "prefix(a0)*a1", privacy, scale, [ALL["wavelet"], Hierarchy(fan_out=2)]
    )


def _levels(privacy, scale):
    schema = Schema((attribute("s", [[0, 0, 1, 1, 1], [0, 1]]), flat("u", 2)))
    yield from _planned("levels", schema, "s*u,s@l1,s@l2*u,0-way", privacy, scale, [ALL["levels"]])


def _stacks(privacy, scale):
    """Layers one after the other, in every pair of bases, and at nested levels; deltas are not stacked."""
    if "delta" in privacy:
        return
    schema, guarantee = make_schema((2, 3)), Privacy.of(**privacy)
    names = ["workload", "fourier", "covering"] if guarantee.is_pure else ["workload", "fourier", "residual"]
    for first, second in [names[:2], names[::2]] if scale == "short" else product(names, repeat=2):
        asked = [Request(Workload.parse(words, schema), guarantee, effort="low") for words in ("a0,a1", "cube")]
        layers = [ALL[name].plan(each, "optimal", "gls") for name, each in zip((first, second), asked, strict=True)]
        yield in_memory("stacks", f"{first}, then {second}", StackedDesign.of(layers, asked[-1].workload))
    schema = Schema((attribute("s", [[0, 0, 1]]), flat("u", 2)))
    asked = [Request(Workload.parse(words, schema), guarantee, effort="low") for words in ("s@l1*u", "s")]
    layers = [ALL["workload"].plan(each, "optimal", "gls") for each in asked]
    yield in_memory("stacks", "levels", StackedDesign.of(layers, Workload.parse("s@l1*u,s", schema)))


def _matrices(privacy, scale):
    schema = make_schema((2, 3))
    rows = query_table(schema, None, [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [2, -1, 0, 0, 1, 0], [0, 1, 3, 0, 0, -2]])
    own = Workload.parse("queries", schema, rows)
    yield from _planned("matrices", schema, own, privacy, scale, [Matrix(rows=rows)])
    yield from _planned("matrices", schema, own, privacy, "short", [ALL["dwork"]])


def _several_rows(privacy, scale):
    """Up to two rows per person, taken at their word: nothing bounds them but the declaration."""
    for sizes in [(3,)] if scale == "short" else [(3,), (2, 2)]:
        several = {**privacy, "rows_per_person": 2}
        yield from _planned("2 rows per person", make_schema(sizes), "cube", several, scale)


def _planned(family, schema, words, privacy, scale, strategies=None):
    asked = words if isinstance(words, Workload) else Workload.parse(words, schema)
    request = Request(asked, Privacy.of(**privacy), effort="low")
    for strategy in strategies or [ALL[name] for name in ALL if name not in ("sketch", *NOT_HERE)]:
        for rule in BUDGETS if scale == "long" else BUDGETS[:1]:
            if strategy.accepts(request) is not None:
                continue
            try:
                plan = strategy.plan(request, rule, "none" if strategy.name == "dwork" else "gls")
            except BadInput:  # the request is not for this strategy
                continue
            yield in_memory(family, f"{strategy.name} {rule} {schema.sizes}", plan)


def in_memory(family, name, plan):
    """A plan on rows that are counted in memory."""
    people = people_of(cells(plan.schema), plan.privacy.rows_per_person)
    return Mechanism(
        family, name, Plan.of_counts(plan), people, lambda some: MemoryEngine(rows_of(some), len(plan.schema))
    )


def rows_of(people):
    """The rows of all people."""
    return [row for person in people for row in person]


def cells(schema):
    """Every row there may be, as codes: levels follow from the finest values."""
    finest = [chain[-1] for chain in schema.chains]
    rows = []
    for values in product(*(range(schema.sizes[i]) for i in finest)):
        codes = [0] * len(schema)
        for chain, value in zip(schema.chains, values, strict=True):
            for position in chain:
                codes[position] = int(schema.coarsening(chain[-1], position)[value])
        rows.append(tuple(codes))
    return rows


def people_of(rows, most):
    """Everybody of one to `most` rows."""
    return tuple(person for k in range(1, most + 1) for person in combinations_with_replacement(rows, k))


# ------------------------------------------------------------------------------------- rows that an engine reads itself


def _cubes(privacy, scale):
    """Sums beside counts: values far beyond the bounds, between the steps, and missing ones."""
    values = (-9e9, 2.6, 9e9, None)
    bounds = [{"bounds": (0, 3)}, {"bounds": (-2, 2), "resolution": "1/2"}]
    for given in bounds[:1] if scale == "short" else bounds:
        schema = Schema((Attribute(name="a", codes=2),), "sums", measures=(Measure(name="v", missing=1, **given),))
        cube = plan(schema, "cube", measures="avg(v)", strategy="workload", **privacy)

        def frame(people):
            return _frame(rows_of(people), a=pa.int64(), v=pa.float64())

        people = people_of(list(product(range(2), values)), 1)
        yield Mechanism("cubes", f"sums within {given['bounds']}", cube, people, frame)


def _bounded(privacy, scale):
    """A declared unit: whatever rows a person has, two of them count, and their order in the data does not matter."""
    schema = Schema((Attribute(name="a", codes=3),), "visits", Unit("id", 2))
    request = Request(Workload.parse("cube", schema), Privacy.of(**privacy, rows_per_person=2), effort="low")
    kinds = ((0,), (2,), (0, 1), (1, 1, 2), (0, 1, 2, 2, 2))
    people = tuple(tuple((a,) for a in person) for person in (kinds[2:] if scale == "short" else kinds))

    def frame(people):
        alike, rows = Counter(), []
        for person in people:
            alike[person] += 1
            rows += [(*row, f"{kinds.index(tuple(a for (a,) in person))} {alike[person]}") for row in person]
        np.random.default_rng(len(rows)).shuffle(rows)
        return _frame(rows, a=pa.int64(), id=pa.string())

    for strategy in ("identity",) if scale == "short" else ("identity", "residual"):
        plan = ALL[strategy].plan(request, "optimal", "gls")
        yield Mechanism("bounded units", f"{strategy}, at most 2 rows", Plan.of_counts(plan), people, frame)


def _frame(rows, **columns):
    """An Arrow table of rows."""
    return pa.table(
        {name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(columns.items())}
    )


FAMILIES = {
    "tables": _tables,
    "sketches": _sketches,
    "trees": _ranges,
    "levels": _levels,
    "stacks": _stacks,
    "matrices": _matrices,
    "2 rows per person": _several_rows,
    "cubes": _cubes,
    "bounded units": _bounded,
}
READ = ("cubes", "bounded units")
"""Families whose data is read by DuckDB, which takes its time: the short form has less of them."""
