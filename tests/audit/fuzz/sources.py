"""The rows of a subject as a source, whole or damaged; a canary stands wherever something is wrong with a value."""

import csv
import gzip
import io
from datetime import date
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from audit.fuzz.hostile import CANARY, damage
from audit.fuzz.subjects import Subject

ODD = (
    CANARY, f"{CANARY}\n", f'"{CANARY}', f"{CANARY},{CANARY}", f"\x1b[2J{CANARY}", CANARY * 200, f"1{CANARY}",
    f"\x00{CANARY}",
)  # fmt: skip
COLUMNS: tuple[list[Any], ...] = (
    [CANARY], [b"\xff" + CANARY.encode()], [1e308], [float("nan")], [2**62], [Decimal("1.5")], [date(2024, 1, 1)],
    [[CANARY]], [{"a": CANARY}], [None], [True],
)  # fmt: skip
ADDRESSES = (
    f"postgresql://u:{CANARY}@127.0.0.1:1/db#t", f"POSTGRES://u:{CANARY}@127.0.0.1:1/db#t",
    f"mysql://u:{CANARY}@h/db#t", f"postgresql://127.0.0.1:1/db?password={CANARY}#t", f"http://u:{CANARY}@h/x.csv",
    f"s3://k:{CANARY}@h/x.parquet", "none.csv", "*.parquet", "people.xls", "csv:", "parquet:", "duckdb:", "duckdb:#",
    "#", "", ".", "people.duckdb", "people.duckdb#no", "csv:people.csv#x", "people.csv#", "[.csv", "sc://", "spark://",
)  # fmt: skip
QUERIES = (
    "SELECT * FROM 'people.csv'", "SELECT * FROM people", "SELECT 1; SELECT 2", f"SELECT error('{CANARY}')",
    "DROP TABLE people", "", f"SELECT '{CANARY}'::INTEGER AS sex", "COPY (SELECT 1) TO 'copied.csv'",
    "ATTACH 'new.duckdb'", "SELECT * FROM read_csv('none.csv')", "CREATE TABLE t AS SELECT 1", "PRAGMA version",
    "SELECT", ";", "SELECT 1 AS sex, 2 AS sex", f"SELECT * FROM '{CANARY}.csv'",
)  # fmt: skip


def columns(subject: Subject) -> list[str]:
    """The columns that the schema reads."""
    declared = [spec.get("column", spec["name"]) for spec in subject.schema["attributes"]]
    more = ["person"] * ("unit" in subject.schema) + subject.measures
    return [*dict.fromkeys(declared + more)]


def write_source(rng: Random, subject: Subject, folder: Path, *, hostile: float) -> list[list[str]]:
    """Write the data; the options that name it."""
    if rng.random() < hostile / 5:
        return [["--data", rng.choice(ADDRESSES)]]
    rows = [dict(row) for row in subject.rows]
    if rows and rng.random() < hostile:
        rng.choice(rows)[rng.choice(columns(subject))] = rng.choice(ODD)
    kind = rng.choice(
        ("csv", "csv", "csv", "parquet", "parquet", "gz", "tsv", "duckdb" if rng.random() < 0.3 else "csv")
    )
    if kind == "parquet":
        name, content = "people.parquet", _parquet(rng, subject, rows, hostile=hostile)
    elif kind == "duckdb":
        name, content = "people.duckdb", b""
        _database(subject, rows, folder / name)
    else:
        name, content = (
            {"gz": "people.csv.gz"}.get(kind, f"people.{kind}"),
            _delimited(rng, subject, rows, kind, hostile=hostile),
        )
    if kind != "duckdb":
        (folder / name).write_bytes(damage(rng, content) if rng.random() < hostile / 2 else content)
    elif rng.random() < hostile:
        (folder / name).write_bytes(damage(rng, (folder / name).read_bytes()))
    options = [["--data", f"{name}#people" if kind == "duckdb" else name]]
    if rng.random() < hostile / 4:
        options.append(["--query", rng.choice(QUERIES)])
        if rng.random() < 0.5:
            options.pop(0)
    return options


def _delimited(rng: Random, subject: Subject, rows: list[dict[str, Any]], kind: str, *, hostile: float) -> bytes:
    header = columns(subject)
    if rng.random() < hostile / 3:
        header = rng.choice(
            (header[1:], header * 2, [*header, ""], [name.upper() for name in header], [CANARY, *header])
        )
    text = io.StringIO()
    mark = "\t" if kind == "tsv" else rng.choice((",", ",", ",", ";", "|"))
    writer = csv.writer(text, delimiter=mark, lineterminator=rng.choice(("\n", "\n", "\r\n")))
    writer.writerow(header)
    writer.writerows(["" if row.get(name) is None else row[name] for name in header] for row in rows)
    content = text.getvalue().encode()
    if rng.random() < hostile / 3:
        line = rng.choice(
            (f'"{CANARY}\n', f"{CANARY}{mark * 9}\n", "\n", f"{CANARY}\r", "\n" * 3, f'{CANARY}"x"{mark}\n')
        )
        content += line.encode()
    if rng.random() < hostile / 6:
        content = rng.choice(
            (b"\xef\xbb\xbf" + content, content + b"\xff\xfe" + CANARY.encode(), content.decode().encode("utf-16"))
        )
    return gzip.compress(content, mtime=0) if kind == "gz" else content


def _table(subject: Subject, rows: list[dict[str, Any]]) -> pa.Table:
    arrays = {}
    for name in columns(subject):
        values = [row.get(name) for row in rows]
        try:
            arrays[name] = pa.array(values)
        except (pa.ArrowException, TypeError):
            arrays[name] = pa.array([None if value is None else str(value) for value in values])
    return pa.table(arrays)


def _parquet(rng: Random, subject: Subject, rows: list[dict[str, Any]], *, hostile: float) -> bytes:
    table = _table(subject, rows)
    if table.num_rows and rng.random() < hostile / 2:
        at = rng.randrange(table.num_columns)
        odd = pa.array(rng.choice(COLUMNS) * table.num_rows)
        table = table.set_column(at, table.schema.field(at).name, odd)
    if rng.random() < hostile / 4:
        table = table.select(rng.sample(range(table.num_columns), table.num_columns - 1))
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def _database(subject: Subject, rows: list[dict[str, Any]], path: Path) -> None:
    people = _table(subject, rows)
    with duckdb.connect(str(path)) as connection:
        connection.register("arrow", people)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
