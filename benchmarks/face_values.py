"""Measure the error of every face on real data and write the table of docs/face-values.md: `make faces`.

The same noisy measurement is behind all rows of a block: only the post-processing differs. The truth is known here, and
this is the one place where it is compared with what was published; such a comparison is not private. Where the shared
data is absent, people are made up in its place: what they come to is printed, and the page stays as it is.
"""

from __future__ import annotations

import os
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest
from tests.datasets import adult8_schema, coded, nltcs_schema, shared
from tests.populations import ADULT8, generated

from benchmarks.__main__ import table
from hushcube import Attribute, Schema, plan, recover, release, synthesize
from hushcube.bundle.folder import read_people
from hushcube.faces.people import PeopleTables
from hushcube.faces.value import FaceValue

PAGE = Path(__file__).parent.parent / "docs" / "face-values.md"
MARK, END = "<!-- errors of faces: written by `make faces` -->", "<!-- end -->"
DATA = {"Adult-8": ("adult8.parquet", adult8_schema), "NLTCS": ("nltcs.parquet", nltcs_schema)}
BITS = Schema(tuple(Attribute(name=f"a{i}", codes=2) for i in range(16)), "nltcs")
MADE_UP = {"Adult-8": (ADULT8, 32_561), "NLTCS": (BITS, 21_574)}
"""Schemas of the same sizes, and as many people."""
WORDS, EPSILONS, SEEDS = ("2-way", "1..3-way"), ("1", "0.1"), range(3)
OBJECTIVES = {
    "fourier": ("max-coefficient", "total-coefficient", "max-marginal", "total-marginal"),
    "workload": ("max-marginal", "total-marginal"),
}
FACES = {
    "L1": FaceValue("consistent", norm="l1", weights="deviation"),
    "L-infinity": FaceValue("consistent", norm="linf", weights="deviation"),
    "non-negative, table by table": FaceValue("nonnegative", method="local"),
    "non-negative, full table": FaceValue("nonnegative"),
    "integral": FaceValue(),
}


def data_of(name):
    """A data set: its schema, its people, their exact tables (the truth), and whether they are made up."""
    file, make_schema = DATA[name]
    try:
        schema, people = make_schema(), str(shared(file))
    except pytest.skip.Exception:  # it is not here; in another process, this exception could not be raised again
        schema, many = MADE_UP[name]
        people = generated(many, schema.sizes, seed=1).rename_columns(list(schema.names))
        codes = np.stack([column.to_numpy() for column in people.columns], axis=1)
        return schema, people, PeopleTables(codes, schema.sizes), True
    return schema, people, PeopleTables(coded(file, schema), schema.sizes), False


def errors(source, truth, family):
    """Absolute and squared errors summed over all cells of the workload."""
    found = [source.tables(b.rows, b.shape) - truth.tables(b.rows, b.shape) for b in family.batches]
    return np.array([sum(np.abs(d).sum() for d in found), sum((d**2).sum() for d in found)])


def block(case):
    """The rows of one data set, workload and epsilon: errors averaged over several draws of the noise."""
    (name, words), epsilon = case
    schema, everybody, truth, _ = data_of(name)
    chosen = plan(schema, words, epsilon=epsilon, neighbours="add-remove")
    family = chosen.count.request.marginals
    sums, seconds = {}, {}

    def add(label, source, start):
        sums[label] = sums.get(label, 0) + errors(source, truth, family)
        seconds[label] = seconds.get(label, 0) + time.perf_counter() - start

    for seed in SEEDS:
        start = time.perf_counter()
        published = release(chosen, everybody, seed=seed)
        add("least squares (unbiased)", published.source, start)
        for label, value in FACES.items():
            start = time.perf_counter()
            published = recover(published, value)
            add(label, published.face(value.name).source, start)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            file_out = Path(folder) / "people.parquet"
            synthesize(published, out=file_out)
            people = PeopleTables(read_people(file_out.parent, file_out.name, schema), schema.sizes)
        add("synthetic people, counted from their file", people, start)
    cells = family.cells.sum() * len(SEEDS)
    base = sums["least squares (unbiased)"][1]
    rows = [
        {
            "data": name,
            "tables": words,
            "epsilon": epsilon,
            "face": label,
            "mean absolute error": f"{absolute / cells:.2f}",
            "root mean square error": f"{(squared / cells) ** 0.5:.2f}",
            "total squared error": f"{squared / base:.3f}",
            "seconds": f"{seconds[label] / len(SEEDS):.1f}",
        }
        for label, (absolute, squared) in sums.items()
    ]
    return chosen.strategy, rows


def barak(strategy):
    """Barak et al.'s tables beside their bounds: NLTCS, 2-way, epsilon 1, uniform budgets, one draw."""
    schema, everybody, truth, _ = data_of("NLTCS")
    chosen = plan(schema, "2-way", epsilon=1, neighbours="add-remove", strategy=strategy, budgets="uniform")
    published = release(chosen, everybody, seed=0)
    family = chosen.count.request.marginals
    exact = [truth.tables(b.rows, b.shape) for b in family.batches]
    rows = []
    for objective in OBJECTIVES[strategy]:
        start = time.perf_counter()
        value = FaceValue(method="barak", minimise=objective)
        face = recover(published, value).face("face-valid")
        seconds = time.perf_counter() - start
        off = [face.source.tables(b.rows, b.shape) - t for b, t in zip(family.batches, exact, strict=True)]
        report = face.description["report"]
        bound = report.get("bound", {})
        rows.append(
            {
                "strategy": strategy,
                "objective": objective,
                "occupied cells": report["support"],
                "numbers fitted": report["numbers_fitted"],
                "moved by rounding": f"{report['moved_by_rounding']:.1f}",
                "largest L1 error of a table": max(float(np.abs(d).sum(axis=(1, 2)).max()) for d in off),
                "bound of the theorem": bound.get("largest_l1_error", "none"),
                "sharper bound": bound.get("largest_l1_error_sharper", "none"),
                "root mean square error": f"{np.sqrt(np.mean(np.concatenate([d.ravel() for d in off]) ** 2)):.2f}",
                "seconds": f"{seconds:.1f}",
            }
        )
    return rows


def main():
    start = time.perf_counter()
    cases = list(product(product(DATA, WORDS), EPSILONS))[::-1]  # the longest first
    with ProcessPoolExecutor(2) as processes:
        tables = [processes.submit(barak, strategy) for strategy in OBJECTIVES]
        found = list(processes.map(block, cases))[::-1]
        bounds = [row for part in tables for row in part.result()]
    rows = [row for _, part in found for row in part]
    text = (
        f"Averages of {len(SEEDS)} draws; strategy {', '.join(sorted({s for s, _ in found}))}; add-remove neighbours. "
        "The total squared error is relative to least squares; seconds are those of one face on one core, "
        f"two running side by side.\n\n{table(rows)}\n\n"
        "The algorithm of Barak et al. on NLTCS, 2-way, epsilon 1, equal budgets, one draw; bounds hold with "
        f"probability 0.95:\n\n{table(bounds)}"
    )
    if any(data_of(name)[-1] for name in DATA):
        print(f"{text}\n\nThe shared data is not here: people were made up, and {PAGE.name} stays as it is.")
        return
    page = PAGE.read_text(encoding="utf-8")
    head, _, rest = page.partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{text}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")
    print(f"wrote {PAGE.name} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
