"""At most so many rows of a person, chosen uniformly at random and once for all tables.

Each row gets a keyed hash of its number in the scan, and of each person the rows with the smallest ones are kept: an
aggregate over people, several times faster than sorting rows. The key is drawn from the operating system for every
count, so which rows are kept is as unforeseeable as the noise. What is kept of one person does not depend on anybody
else: a person who comes, goes or changes moves at most `max_rows` rows.
"""

from __future__ import annotations

import os

import duckdb

from hushcube.errors import DataError
from hushcube.model.unit import Unit
from hushcube.private.engines.coding import literal
from hushcube.private.engines.source import Opened


def bounded(data: Opened, unit: Unit) -> tuple[Opened, int]:
    """The rows that count, and how many are left out."""
    place = data.position(unit.column, f"unit {unit.column!r}")
    people = data.relation.project(f"#{place + 1} AS p").aggregate("p, count(*) AS n", "p")
    kept = f"sum(CASE WHEN p IS NULL THEN n ELSE least(n, {unit.max_rows}) END)"
    sums = "sum(n)", "sum(n) FILTER (p IS NULL)", kept
    rows, missing, counted = people.aggregate(", ".join(f"coalesce({total}, 0)" for total in sums)).fetchall()[0]
    if missing and unit.missing == "error":
        fix = "mend the data, or declare `unit_missing: own`: each such row is then a person of its own"
        raise DataError(f"unit, column {unit.column!r}", "holds missing values", fix)
    if counted == rows:
        return Opened(data.relation, data.names, int(rows)), 0
    return Opened(_chosen(data, place, unit.max_rows), data.names, int(counted)), int(rows - counted)


def _chosen(data: Opened, place: int, most: int) -> duckdb.DuckDBPyRelation:
    names = [f"c{i}" for i in range(len(data.names))]
    columns, person = ", ".join(names), names[place]
    listed = ", ".join(f"#{i + 1} AS {name}" for i, name in enumerate(names))
    numbered = data.relation.project(f"{listed}, row_number() OVER () AS n")
    chance = f"md5_number_lower({literal(os.urandom(16).hex())} || CAST(n AS VARCHAR))"
    fields = ", ".join(f"{name}: {name}" for name in names)
    known = numbered.filter(f"{person} IS NOT NULL")
    smallest = known.aggregate(f"min({{chance: {chance}, n: n, {fields}}}, {most}) AS kept", person)
    chosen = smallest.project("unnest(kept) AS one").project(", ".join(f"one.{name} AS {name}" for name in names))
    return chosen.union(numbered.filter(f"{person} IS NULL").project(columns))
