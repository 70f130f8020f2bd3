"""At most so many rows of a person, chosen uniformly at random and once for all tables.

A person p with n > k rows keeps k of them:

    order   p's rows by hash(key, p, columns used), which numbers them i = 1 ... n; equal rows are interchangeable
    keep    the rows whose hash(key, p, i) is among the k smallest: a uniform choice of k numbers out of n

The keys are drawn from the operating system for every count, so which rows are kept is as unforeseeable as the noise.
Whatever the keys are, what is kept of a person is a function of that person's rows alone: a person who comes, goes or
changes moves at most k rows, and the guarantee does not rest on the quality of the hash.

Only people of more than k rows need a choice. A first scan lists them; in a second one the rows of all others pass
through, and in a third one the rows of those listed are sorted, which DuckDB does on disk where memory is short.
Where another scan may see other rows (a query may draw at random), nobody can be listed, and all rows are sorted.

Measured on 10 million rows of 3 million people, of whom a quarter have more than k = 4, processor time: the list takes
2 s, passing through 1 s, and the choice 4 s, half of which is the order that makes it a function of the person's own
rows. Keeping the k smallest structs of everybody, an aggregate, took 24 s and thrice the memory.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final, cast

import duckdb

from hushcube.model.privacy import Unit
from hushcube.private.engines.contract import position, without_unit
from hushcube.private.engines.source import Opened

_ROWS: Final = "hushcube_rows"
_PEOPLE: Final = "hushcube_people"


def bounded(data: Opened, unit: Unit, columns: Sequence[str] | None = None) -> tuple[Opened, int]:
    """The rows that count, and how many are left out; only `columns` are kept, where given."""
    place = position(data.names, unit.column, f"unit {unit.column!r}")
    used = [i for i, name in enumerate(data.names) if columns is None or name in columns]
    shown = ", ".join(f"#{i + 1} AS c{i}" for i in sorted({*used, place}))
    rows = data.relation.project(shown)
    choice = _Choice(rows, f"c{place}", [f"c{i}" for i in used] or [f"c{place}"], unit.max_rows)
    total, missing, dropped = choice.list_people() if data.steady else choice.count_people()
    if missing and unit.missing == "error":
        raise without_unit(unit)
    if data.steady:
        chosen = choice.among_listed() if dropped else rows.project(choice.columns)
    else:
        chosen = choice.among_all(own=unit.missing == "own")
    names = tuple(data.names[i] for i in used) or (unit.column,)
    return Opened(chosen, names, total - dropped, data.steady, data.stop, bad=data.bad), dropped


class _Choice:
    """The statements; columns have names of our own, the data's are never written into them."""

    def __init__(self, rows: duckdb.DuckDBPyRelation, person: str, columns: Sequence[str], most: int) -> None:
        self.rows = rows
        self.person = person
        self.columns = ", ".join(columns)
        self.most = most

    def list_people(self) -> tuple[int, int, int]:
        """Write down who has too many rows; count all rows, those of nobody, and those that are too many."""
        grouped = f"""SELECT {self.person} AS p, count(*) AS n, grouping({self.person}) AS everybody
            FROM {_ROWS} GROUP BY GROUPING SETS (({self.person}), ())"""  # noqa: S608
        listed = f"SELECT * FROM ({grouped}) WHERE everybody = 1 OR p IS NULL OR n > {self.most}"  # noqa: S608
        self.rows.query(_ROWS, f"CREATE TEMP TABLE {_PEOPLE} AS {listed}")
        nobody, excess = "FILTER (everybody = 0 AND p IS NULL)", f"sum(n - {self.most}) FILTER (p IS NOT NULL)"
        people = self._select(f"* FROM {_PEOPLE}")
        return _integers(people, ["sum(n) FILTER (everybody = 1)", f"sum(n) {nobody}", excess])

    def count_people(self) -> tuple[int, int, int]:
        """The same numbers, of a scan that need not be like the next one."""
        people = self.rows.aggregate(f"{self.person} AS p, count(*) AS n", self.person)
        excess = f"sum(n - {self.most}) FILTER (p IS NOT NULL AND n > {self.most})"
        return _integers(people, ["sum(n)", "sum(n) FILTER (p IS NULL)", excess])

    def among_listed(self) -> duckdb.DuckDBPyRelation:
        """Everybody else's rows, and some of the listed people's, who are now numbers: texts take longer to sort."""
        others = self._select(f"{self.columns} FROM {_ROWS} ANTI JOIN {_PEOPLE} ON p = {self.person}")
        theirs = self._select(f"{_ROWS}.*, {_PEOPLE}.rowid AS who FROM {_ROWS} JOIN {_PEOPLE} ON p = {self.person}")
        return others.union(self._chosen(theirs))

    def among_all(self, *, own: bool) -> duckdb.DuckDBPyRelation:
        """Some of everybody's rows, by one scan; rows of nobody are people of their own, or else one person."""
        everybody = self.rows.project(f"*, {self.person} AS who")
        if not own:
            return self._chosen(everybody)
        nobody = self.rows.filter(f"{self.person} IS NULL").project(self.columns)
        return nobody.union(self._chosen(everybody.filter(f"{self.person} IS NOT NULL")))

    def _chosen(self, rows: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
        first, second = (f"{int.from_bytes(os.urandom(8), 'little')}::UBIGINT" for _ in range(2))
        hashes = f"hash({first}, {self.person}, {self.columns}) AS h, hash({second}, {self.person}) AS s"
        hashed = rows.project(f"{self.columns}, who, {hashes}")
        numbered = hashed.project(f"{self.columns}, who, s, row_number() OVER (PARTITION BY who ORDER BY h) AS i")
        # A hash of one number mixes; hash(s, i) would be a XOR of two hashes, whose order is far from uniform.
        ranked = "row_number() OVER (PARTITION BY who ORDER BY hash(xor(s, i::UBIGINT))) AS r"
        # Not `r <= most`: DuckDB makes an aggregate of structs of that, which takes twice as long.
        return numbered.project(f"{self.columns}, {ranked}").filter(f"r = least(r, {self.most})").project(self.columns)

    def _select(self, rest: str) -> duckdb.DuckDBPyRelation:
        return cast("duckdb.DuckDBPyRelation", self.rows.query(_ROWS, f"SELECT {rest}"))


def _integers(people: duckdb.DuckDBPyRelation, terms: Sequence[str]) -> tuple[int, int, int]:
    total, missing, dropped = people.aggregate(", ".join(f"coalesce({term}, 0)" for term in terms)).fetchall()[0]
    return int(total), int(missing), int(dropped)
