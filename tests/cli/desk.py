"""A publisher's desk for the tests: a schema, the same people in every kind of source, a plan, a release."""

import contextlib
import hashlib
import shutil
from pathlib import Path

SECRET = "qz7731"
"""Stands in the data wherever the data is wrong; it may never come out."""

SCHEMA = """\
name: people
attributes:
  - {name: sex, values: [Female, Male]}
  - {name: age, range: [0, 9]}
  - {name: income, bins: [0, 10, 50], missing: unknown}
  - {name: region, size: 3}
"""
PEOPLE = [("Female", 1, 5, 0), ("Male", 2, 10, 1), ("Male", 9, 50, 2), ("Female", 0, None, 2)] * 25
COLUMNS = ("sex", "age", "income", "region")
BUDGET = ["--epsilon", "1", "--neighbours", "add-remove"]
ASKED = ["--schema", "people.yaml", "--workload", "<=2-way"]
SOURCES = {
    "csv": ["--data", "people.csv"],
    "tsv": ["--data", "people.tsv"],
    "gzip": ["--data", "people.csv.gz"],
    "csv prefix": ["--data", "csv:people.txt"],
    "parquet": ["--data", "people.parquet"],
    "glob": ["--data", "parts/*.parquet"],
    "database": ["--data", "people.duckdb#people"],
    "view": ["--data", "people.duckdb#everyone"],
    "database query": ["--data", "people.duckdb", "--query", "SELECT * FROM people"],
    "query": ["--query", "SELECT * FROM 'people.parquet'"],
}


def write_desk(folder: Path) -> None:
    """Write all of it into a folder."""
    import gzip

    import duckdb
    import pyarrow as pa
    import pyarrow.parquet as pq

    from hushcube.cli import run

    (folder / "people.yaml").write_text(SCHEMA)
    text = (
        "\n".join([",".join(COLUMNS), *(",".join("" if v is None else str(v) for v in row) for row in PEOPLE)]) + "\n"
    )
    for name in ("people.csv", "people.txt"):
        (folder / name).write_text(text)
    (folder / "people.tsv").write_text(text.replace(",", "\t"))
    (folder / "people.csv.gz").write_bytes(gzip.compress(text.encode()))
    table = pa.table(dict(zip(COLUMNS, map(list, zip(*PEOPLE, strict=True)), strict=True)))
    pq.write_table(table, folder / "people.parquet")
    (folder / "parts").mkdir()
    for i in range(4):
        pq.write_table(table.slice(i * 25, 25), folder / "parts" / f"{i}.parquet")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        connection.execute(f"CREATE TABLE people AS SELECT * FROM '{folder / 'people.parquet'}'")
        connection.execute("CREATE VIEW everyone AS SELECT * FROM people")
    with contextlib.chdir(folder):
        assert run(["plan", *ASKED, *BUDGET, "--out", "plan.json"]) == 0
        assert run(["release", "plan.json", "--data", "people.csv", "--out", "published"]) == 0


def listing(folder: Path) -> dict[str, str]:
    """Every file and folder below, with the files' contents."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in sorted(folder.rglob("*"))
    }


def copy_desk(source: Path, target: Path) -> Path:
    """A fresh copy, for one test."""
    return shutil.copytree(source, target)
