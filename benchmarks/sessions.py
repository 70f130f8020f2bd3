"""200 questions one by one on real people: errors, consistency, coverage; and how long a session takes.

    python -m benchmarks.sessions

Needs nltcs.parquet and acs2018_census9.parquet of the shared data. The coverage compares with exact counts: for the
owner of the data only. Times are of a session of 20 binary and of 30 mixed attributes, on 100,000 made-up people.
"""

from __future__ import annotations

import math
import resource
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np

import hushcube as hc
from hushcube.private.measure import measure
from hushcube.session.answering import margins
from hushcube.session.cube import LatticeCube

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from datasets import shared
from helpers import MemoryEngine, exact_table, make_schema, random_codes

QUESTIONS = 200
CASES = (("nltcs.parquet", 30, 4), ("acs2018_census9.parquet", 100, 3))  # standard error, most attributes
LARGEST = 200_000
MIXED = (*[2] * 11, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10, 12, 15, 20, 25, 30, 50, 72, 100)


def people(name: str) -> tuple[hc.Schema, np.ndarray]:
    """The columns of a file, coded in the order of first occurrence."""
    import pyarrow.parquet as pq

    table = pq.read_table(shared(name))
    coded = [table.column(column).combine_chunks().dictionary_encode() for column in table.column_names]
    pairs = zip(table.column_names, coded, strict=True)
    attributes = [hc.Attribute(name=column, codes=len(own.dictionary)) for column, own in pairs]
    return hc.Schema(attributes, "people"), np.stack([c.indices.to_numpy(zero_copy_only=False) for c in coded], axis=1)


def coverage(name: str, std_error: float, most: int, **law: int) -> None:
    """A stream of random tables of up to so many attributes, answered and compared with the exact counts."""
    schema, codes = people(name)
    account, left = hc.Privacy.of(**law, neighbours="add-remove"), Fraction(*law.values())
    cube, engine, rng = LatticeCube(schema, account, hc.Policy()), MemoryEngine(codes), np.random.default_rng(1)
    asked, t = [], float(std_error) ** 2
    for _ in range(QUESTIONS):
        question = tuple(sorted(rng.choice(len(schema), int(rng.integers(1, most + 1)), replace=False).tolist()))
        question = question if schema.cells(question) <= LARGEST else question[:2]
        asked.append(question)
        if cube.worst(question) > t * (1 + 1e-9):
            proposal = cube.for_variance(question, t, left, left)
            design = proposal.step.design(schema, account)
            cube.learn(design, measure(design, engine))
            left -= proposal.price
    inside = cells = 0
    apart = 0.0
    for question in asked:
        table = cube.table(question)
        width = float(margins(account, np.sqrt(cube.variances(question))))
        inside += int((np.abs(table - exact_table(schema, codes, question)) <= width).sum())
        cells += table.size
        for axis in range(table.ndim):
            rest = cube.table(question[:axis] + question[axis + 1 :])
            apart = max(apart, float(np.abs(table.sum(axis=axis) - rest).max()))
    told = f"{QUESTIONS} questions, {cube.version} paid for; {inside / cells:.2%} of {cells:,} cells covered"
    print(f"{name}, {law}: {told}; answers differ by at most {apart:.1e}", flush=True)


def times(label: str, sizes: tuple[int, ...]) -> None:
    """Opening, paid and stored questions, resuming."""
    schema, codes = make_schema(sizes), random_codes(sizes, 100_000)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        _write(place / "people.parquet", schema, codes)
        with hc.Ledger.create(place / "ledger.db") as ledger:
            ledger.create_account("people", rho=5, neighbours="add-remove")
        start = time.perf_counter()
        session = hc.Session.open(
            schema,
            ledger=place / "ledger.db",
            account="people",
            data=str(place / "people.parquet"),
            folder=place / "session",
        )
        opening, rng, paid = time.perf_counter() - start, np.random.default_rng(0), []
        for _ in range(40):
            names = [schema.names[i] for i in rng.choice(len(sizes), int(rng.integers(1, 4)), replace=False)]
            if math.prod(schema[name].size for name in names) <= 50_000:
                start = time.perf_counter()
                if not session.ask(names, std_error=30).free:
                    paid.append(time.perf_counter() - start)
        stored = [_timed(lambda one=one: session.stored(one.question)) for one in session.questions()]
        free = _timed(lambda: session.ask(session.questions()[0].question, std_error=30))
        session.close()
        resumed = _timed(lambda: hc.Session.resume(place / "session").close())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    told = f"opened in {opening:.2f} s, paid {np.median(paid):.2f} s, stored at most {1e3 * max(stored):.1f} ms"
    print(f"{label}: {told}, free {1e3 * free:.1f} ms, {len(paid)} steps resumed in {resumed:.2f} s, {memory:.0f} MB")


def _write(path: Path, schema: hc.Schema, codes: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(dict(zip(schema.names, codes.T, strict=True))), path)


def _timed(work: object) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    times("20 binary attributes", (2,) * 20)
    times("30 attributes of 2 to 100 values", MIXED)
    for name, std_error, most in CASES:
        coverage(name, std_error, most, rho=1)
        coverage(name, std_error, most, epsilon=20)
