"""The relative error of the worst cell: what iReduct comes to when it picks for it, printed as a table.

    python -m benchmarks.worst_cell [--runs N] [--quick]

`dwork` is even noise, `average` iReduct for the average error, `printed` the paper's rule for the worst cell (the table
with the largest lambda / max(min y, delta) next; no caution), and `worst` ours [private/adaptive/picking.py]. Each
figure is a mean over runs of the largest relative error of any cell, and in brackets the median; the last column says
how `worst` compares with the better of `dwork` and `average`. The truth is known here: nothing of this is private.
"""

from __future__ import annotations

import argparse
from contextlib import contextmanager
from itertools import combinations

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.datasets import shared

from hushcube import Attribute, Schema, plan
from hushcube.experiments.truth import HeldTables
from hushcube.private.adaptive import ireduct
from hushcube.private.adaptive.picking import seen
from hushcube.private.measure import draw
from hushcube.private.noise import SeededEntropy
from hushcube.strategies.adaptive import IReduct

DELTA = 10
SHARED = {"Adult": "adult8.parquet", "NLTCS": "nltcs.parquet", "ACS": "acs2018_census9.parquet"}
CALLS = {4: 2.5, 9: 3.0, 41: 2.0, 3: 5.0, 25: 3.0, 2: 1.0, 60: 2.0, 12: 3.0, 6: 4.0}
"""Sizes of nine attributes of calls to a fire department, and how steeply their values fall off, by Zipf's law."""


def codes_of(file):
    table = pq.read_table(shared(file))
    encoded = [table.column(name).combine_chunks().dictionary_encode() for name in table.column_names[:9]]
    return np.stack([np.asarray(column.indices.fill_null(len(column.dictionary))) for column in encoded], axis=1)


def made_up(people, shapes, seed):
    rng = np.random.default_rng(seed)
    columns = []
    for size, fall in shapes:
        weights = rng.permutation((np.arange(size) + 1.0) ** -fall)
        columns.append(rng.choice(size, people, p=weights / weights.sum()))
    return np.stack(columns, axis=1)


def datasets(quick):
    """Name, codes and the attributes of a table; those that are not there are left out."""
    calls = made_up(305_119, CALLS.items(), 1)
    yield "calls", calls, 1
    if quick:
        return
    yield "calls, reversed", calls[:, ::-1], 1
    rng = np.random.default_rng(5)
    for number in range(4):
        shapes = [(int(rng.integers(2, 80)), rng.uniform(0, 4)) for _ in range(rng.integers(3, 12))]
        yield f"made up {number}", made_up(int(10 ** rng.uniform(3.7, 5.5)), shapes, number), 1
    for name, file in SHARED.items():
        try:
            codes = codes_of(file)
        except pytest.skip.Exception as reason:
            print(f"{name} is left out: {reason}")
            continue
        yield name, codes, 1
        if name != "ACS":
            yield f"{name}, 2-way", codes, 2


def counted(codes, order):
    schema = Schema(tuple(Attribute(name=f"a{i}", codes=int(n)) for i, n in enumerate(codes.max(axis=0) + 1)), "data")
    tables = {}
    for marginal in combinations(range(codes.shape[1]), order):
        shape = schema.shape(marginal)
        places = np.ravel_multi_index(tuple(codes[:, i] for i in marginal), shape)
        tables[marginal] = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape)
    return schema, HeldTables(len(codes), tables), tables


@contextmanager
def printed_rule():
    """Section 4.3 as it stands."""

    def priorities(subject, at, path, grid):
        return grid.scales[:-1] / np.maximum(seen(path, grid, DELTA)[1], float(subject.sanity_bounds[at]))[:-1]

    ours, ireduct.priorities = ireduct.priorities, priorities
    try:
        yield
    finally:
        ireduct.priorities = ours


def worst_errors(schema, counts, tables, order, epsilon, strategy, runs):
    asked = {"epsilon": epsilon, "neighbours": "add-remove", "recovery": "none", "budgets": "uniform"}
    design = plan(schema, f"{order}-way", strategy=strategy, **asked).count
    found = []
    for run in range(runs):
        made, measurement = draw(design, counts, entropy=SeededEntropy(run))
        answers = made.answers(measurement)
        errors = []
        for marginal, truth in tables.items():
            noisy = answers.tables(np.array([marginal], np.int32), truth.shape)[0]
            errors.append((np.abs(noisy - truth) / np.maximum(truth, DELTA)).max())
        found.append(max(errors))
    return np.array(found)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--runs", type=int, default=40)
    options.add_argument("--quick", action="store_true", help="the made-up calls only")
    given = options.parse_args()
    print("| data | epsilon | dwork | average | printed | worst | worst / the better |\n|---|---|---|---|---|---|---|")
    for name, codes, order in datasets(given.quick):
        case = counted(codes, order)
        runs = given.runs if order == 1 else max(3, given.runs // 4)
        for epsilon in ("0.02", "0.2", "1"):
            average, worst = (IReduct(sanity_bound=DELTA, pick=pick) for pick in ("average", "worst"))
            found = {"dwork": worst_errors(*case, order, epsilon, "dwork", runs)}
            found["average"] = worst_errors(*case, order, epsilon, average, runs)
            with printed_rule():
                found["printed"] = worst_errors(*case, order, epsilon, average, runs)
            found["worst"] = worst_errors(*case, order, epsilon, worst, runs)
            cells = [f"{errors.mean():.3g} ({np.median(errors):.3g})" for errors in found.values()]
            best = min(found["dwork"].mean(), found["average"].mean())
            middle = min(np.median(found["dwork"]), np.median(found["average"]))
            ratio = f"{found['worst'].mean() / best:.2f} ({np.median(found['worst']) / middle:.2f})"
            print(f"| {name} | {epsilon} | {' | '.join(cells)} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
